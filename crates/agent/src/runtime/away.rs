//! A run of an agent that is elsewhere: what is said to it and what it answers are kept here like those of any other.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use runyard_domain::Code;
use runyard_llm::inference::{Message, Role};
use tokio_util::sync::CancellationToken;

use crate::caught::caught;
use crate::checkpoint::{Checkpoint, CheckpointError, Opened, StepCommit};
use crate::phase::{RunIdentity, TerminationReason};
use crate::remote::{RemoteAnswer, RemoteError, RemoteRequest};
use crate::resolve::RemoteAgent;
use crate::run::{AgentEvent, Begin, Observer, RunEnd, RunOutcome, RunRecord, RunStatus, first_lost};

/// So often the end is tried to be made durable.
const END_ATTEMPTS_MAX: u32 = 4;
/// The first wait between two attempts.
const END_WAIT: Duration = Duration::from_millis(50);

/// Everything that such a run needs beside what is said to it.
pub(super) struct Parts {
    pub(super) agent: RemoteAgent,
    pub(super) identity: RunIdentity,
    pub(super) checkpoint: Arc<dyn Checkpoint>,
    pub(super) observer: Arc<dyn Observer>,
    pub(super) cancellation: CancellationToken,
}

/// What was said and is not known to be durable.
enum Left {
    Nothing,
    These(Vec<Arc<Message>>),
    Unknown,
}

/// Keeps a panic of whoever listens from the run, as the loop does.
struct Calm(Arc<dyn Observer>);

#[async_trait]
impl Observer for Calm {
    async fn observe(&self, event: AgentEvent) {
        if let Err(panicked) = caught(self.0.observe(event)).await {
            tracing::warn!("an observer {panicked}");
        }
    }
}

/// Runs it until it ends.
pub(super) async fn run(mut parts: Parts, begin: Begin) -> RunOutcome {
    parts.observer = Arc::new(Calm(parts.observer));
    parts.observer.observe(AgentEvent::RunStarted { resumed: begin.resumed }).await;
    let stored = |message| Arc::new(parts.checkpoint.stored(message));
    let said: Vec<Arc<Message>> = begin.input.into_iter().map(stored).collect();
    // What is asked for again after a crash is what was said since the last answer.
    let input = if begin.resumed { unanswered(&begin.opened) } else { said.clone() };
    let mut thread = begin.opened;
    thread.messages.extend(said.iter().cloned());
    let begun = if begin.resumed { Ok(()) } else { parts.begun(said.clone()).await };
    let (answered, left) = match begun {
        Ok(()) => (parts.ask(input).await, Left::Nothing),
        Err(CheckpointError { code, message }) => {
            let left = if code == Code::StorageCommitUnknown { Left::Unknown } else { Left::These(said) };
            (Err(TerminationReason::Failed { code, message }), left)
        }
    };
    parts.end(answered, left, thread).await
}

fn unanswered(opened: &Opened) -> Vec<Arc<Message>> {
    let from = opened.messages.iter().rposition(|message| message.role == Role::Assistant);
    opened.messages[from.map_or(0, |at| at + 1)..].to_vec()
}

impl Parts {
    /// Makes durable what is asked, before it is.
    async fn begun(&self, messages: Vec<Arc<Message>>) -> Result<(), CheckpointError> {
        let record = RunRecord { agent_id: self.agent.id.to_string(), ..RunRecord::default() };
        self.checkpoint.commit(StepCommit { messages, record, ..StepCommit::default() }).await
    }

    async fn ask(&self, input: Vec<Arc<Message>>) -> Result<RemoteAnswer, TerminationReason> {
        let RunIdentity { run_id, thread_id, agent_id } = self.identity.clone();
        let request = RemoteRequest { agent_id, thread_id, run_id, input };
        tokio::select! {
            biased;
            () = self.cancellation.cancelled() => {
                Err(first_lost(TerminationReason::Cancelled, self.checkpoint.as_ref()))
            }
            answer = self.agent.remote.run(&request, self.observer.as_ref()) => {
                answer.map_err(|RemoteError { code, message }| TerminationReason::Failed { code, message })
            }
        }
    }

    async fn end(
        self,
        answered: Result<RemoteAnswer, TerminationReason>,
        left: Left,
        mut thread: Opened,
    ) -> RunOutcome {
        let (answer, mut reason) = match answered {
            Ok(answer) => {
                let reason = answer.reason();
                (answer, reason)
            }
            Err(reason) => (RemoteAnswer::default(), reason),
        };
        let message = (!answer.text.is_empty())
            .then(|| Arc::new(self.checkpoint.stored(Message::assistant(answer.text.as_str()))));
        let usage = answer.usage.into();
        if let Some(message) = &message {
            let (message, model) = (Arc::clone(message), self.agent.backend.to_string());
            self.observer.observe(AgentEvent::Answered { message, usage, model }).await;
        }
        let record = RunRecord {
            agent_id: self.agent.id.to_string(),
            status: RunStatus::Done,
            rounds: answer.rounds,
            usage: answer.usage,
            end: Some(RunEnd::from(&reason)),
            ..RunRecord::default()
        };
        if let Err(CheckpointError { code, message }) = self.record(left, message.clone(), record).await
            && !matches!(reason, TerminationReason::Failed { .. })
        {
            reason = TerminationReason::Failed { code, message };
        }
        self.observer.observe(AgentEvent::RunEnded { reason: reason.clone(), usage }).await;
        thread.messages.extend(message.iter().cloned());
        RunOutcome { reason, message, usage, rounds: answer.rounds, waiting: Vec::new(), thread }
    }

    /// Makes the end durable, with what was said and is not.
    async fn record(
        &self,
        left: Left,
        answer: Option<Arc<Message>>,
        record: RunRecord,
    ) -> Result<(), CheckpointError> {
        let mut messages = match left {
            Left::Nothing => Vec::new(),
            Left::These(messages) => messages,
            Left::Unknown => {
                // No other step may come before that one: the run is left to whoever recovers it.
                self.checkpoint.give_up().await;
                return Ok(());
            }
        };
        messages.extend(answer);
        let commit = StepCommit { messages, record, ..StepCommit::default() };
        let mut wait = END_WAIT;
        for _ in 1..END_ATTEMPTS_MAX {
            if self.checkpoint.commit(commit.clone()).await.is_ok() {
                return Ok(());
            }
            tokio::time::sleep(wait).await;
            wait *= 4;
        }
        let last = self.checkpoint.commit(commit).await;
        if last.is_err() {
            self.checkpoint.give_up().await;
        }
        last
    }
}
