//! A run of an agent that is elsewhere: what is said to it and what it answers are kept here like those of any other.
//!
//! Nothing can be said to it while it is under way: its inbox is closed from the beginning.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use runyard_domain::{Class, Code};
use runyard_llm::inference::{Message, Role, Update};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::checkpoint::{Checkpoint, CheckpointError, Opened, StepCommit};
use crate::phase::{RunIdentity, TerminationReason};
use crate::remote::{RemoteAnswer, RemoteError, RemoteRequest};
use crate::resolve::RemoteAgent;
use crate::run::{
    AgentEvent, Begin, CANCELLED_MAX, END_STEP_MAX, Inbox, Observer, Patience, RunEnd, RunOutcome, RunRecord,
    RunStatus, Stored, Teller, first_lost, first_of, stored,
};

/// Everything that such a run needs beside what is said to it.
pub(super) struct Parts {
    pub(super) agent: RemoteAgent,
    pub(super) identity: RunIdentity,
    pub(super) checkpoint: Arc<dyn Checkpoint>,
    pub(super) inbox: Arc<Inbox>,
    pub(super) observer: Arc<dyn Observer>,
    pub(super) cancellation: CancellationToken,
}

/// Tells as the loop does, and remembers the words: what clients saw is what is stored.
struct Telling {
    teller: Teller,
    said: Mutex<String>,
}

#[async_trait]
impl Observer for Telling {
    async fn observe(&self, event: AgentEvent) {
        match &event {
            AgentEvent::Inference(Update::Text(piece)) => self.said().push_str(piece),
            AgentEvent::Inference(Update::Reset) => self.said().clear(),
            _ => {}
        }
        self.teller.tell(event).await;
    }
}

impl Telling {
    fn said(&self) -> std::sync::MutexGuard<'_, String> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Such a run, under way.
struct Away {
    parts: Parts,
    telling: Telling,
    /// Its own words begin behind so many messages of the thread.
    before: usize,
}

/// Runs it until it ends.
pub(super) async fn run(parts: Parts, begin: Begin) -> RunOutcome {
    let teller = Teller::new(Arc::clone(&parts.observer), parts.cancellation.clone());
    let mut thread = begin.opened;
    let record = thread.record.as_ref().filter(|_| begin.resumed);
    let before = record.map_or(thread.messages.len(), |record| {
        usize::try_from(record.before).unwrap_or(usize::MAX).min(thread.messages.len())
    });
    let is_cut = record.is_some_and(|record| record.incomplete);
    let away = Away { parts, telling: Telling { teller, said: Mutex::default() }, before };
    away.telling.observe(AgentEvent::RunStarted { resumed: begin.resumed }).await;
    let words = begin.input.into_iter().chain(away.parts.inbox.close());
    let said: Vec<Arc<Message>> = words.map(|word| Arc::new(away.parts.checkpoint.stored(word))).collect();
    // After a crash it is asked again what it was asked, and nothing that an earlier run was.
    let mut input = asked(&thread.messages[before..], is_cut).to_vec();
    input.extend(said.iter().cloned());
    thread.messages.extend(said.iter().cloned());
    let begun = StepCommit { messages: said, record: away.record(None), ..StepCommit::default() };
    let is_kept = begin.resumed && begun.messages.is_empty();
    match if is_kept { Ok(()) } else { away.begun(&begun).await } {
        Ok(()) => {
            let answered = away.ask(input).await;
            away.end(answered, None, thread).await
        }
        Err(error) => away.end(Err(error.into()), Some(begun), thread).await,
    }
}

/// What was said to it: all but the beginning of an answer, where that is cut.
fn asked(own: &[Arc<Message>], is_cut: bool) -> &[Arc<Message>] {
    let is_word = |message: &Arc<Message>| message.role != Role::Assistant;
    let end = if is_cut { own.iter().rposition(is_word).map_or(0, |last| last + 1) } else { own.len() };
    &own[..end]
}

impl Away {
    fn record(&self, end: Option<(&TerminationReason, &RemoteAnswer)>) -> RunRecord {
        let agent_id = self.parts.agent.id.to_string();
        let before = self.before as u64;
        let Some((reason, answer)) = end else {
            return RunRecord { agent_id, before, ..RunRecord::default() };
        };
        RunRecord {
            agent_id,
            before,
            status: RunStatus::Done,
            rounds: answer.rounds,
            usage: answer.usage,
            end: Some(RunEnd::from(reason)),
            ..RunRecord::default()
        }
    }

    /// Makes durable what is asked, before it is. A run that is cancelled does not wait long for that.
    async fn begun(&self, step: &StepCommit) -> Result<(), CheckpointError> {
        let in_vain = async {
            self.parts.cancellation.cancelled().await;
            sleep(CANCELLED_MAX).await;
        };
        tokio::select! {
            biased;
            done = self.parts.checkpoint.commit(step.clone()) => done,
            () = in_vain => Err(late()),
        }
    }

    async fn ask(&self, input: Vec<Arc<Message>>) -> Result<RemoteAnswer, TerminationReason> {
        let RunIdentity { run_id, thread_id, agent_id } = self.parts.identity.clone();
        let request = RemoteRequest { agent_id, thread_id, run_id, input };
        tokio::select! {
            biased;
            () = self.parts.cancellation.cancelled() => {
                Err(first_lost(TerminationReason::Cancelled, self.parts.checkpoint.as_ref()))
            }
            answer = self.parts.agent.remote.run(&request, &self.telling) => {
                answer.map_err(|RemoteError { code, message }| TerminationReason::Failed { code, message })
            }
        }
    }

    /// Tells and records the end. `left` is the step that was to begin the run, where it may not be durable.
    async fn end(
        self,
        answered: Result<RemoteAnswer, TerminationReason>,
        left: Option<StepCommit>,
        mut thread: Opened,
    ) -> RunOutcome {
        let (mut answer, mut reason) = match answered {
            Ok(answer) => {
                let reason = answer.reason();
                (answer, reason)
            }
            Err(reason) => (RemoteAnswer::default(), reason),
        };
        let told = self.telling.said().clone();
        if answer.text.is_empty() {
            answer.text = told;
        } else if !told.is_empty() && told != answer.text {
            self.telling.observe(AgentEvent::Inference(Update::Reset)).await;
            self.telling.observe(AgentEvent::Inference(Update::Text(answer.text.clone()))).await;
        }
        let said = (!answer.text.is_empty())
            .then(|| stored(self.parts.checkpoint.as_ref(), Message::assistant(answer.text.as_str())));
        let (message, pieces) = match said {
            None => (None, Vec::new()),
            Some(Stored { whole, pieces }) => {
                let whole = Arc::new(whole);
                let pieces = pieces.map(|pieces| pieces.into_iter().map(Arc::new).collect());
                (Some(Arc::clone(&whole)), pieces.unwrap_or_else(|| vec![whole]))
            }
        };
        let usage = answer.usage.into();
        if let Some(message) = &message {
            let (message, model) = (Arc::clone(message), self.parts.agent.backend.to_string());
            self.telling.observe(AgentEvent::Answered { message, usage, model }).await;
        }
        if let Err(error) = self.recorded(left, &pieces, &mut reason, &answer).await {
            reason = first_of(reason, error.into());
            let _ = timeout(END_STEP_MAX, self.parts.checkpoint.give_up()).await;
        }
        self.telling.observe(AgentEvent::RunEnded { reason: reason.clone(), usage }).await;
        thread.messages.extend(pieces);
        RunOutcome { reason, message, usage, rounds: answer.rounds, waiting: Vec::new(), thread }
    }

    /// Makes the end durable, with what was said and is not. What cannot be stored must not keep the end from being.
    async fn recorded(
        &self,
        left: Option<StepCommit>,
        answer: &[Arc<Message>],
        reason: &mut TerminationReason,
        answered: &RemoteAnswer,
    ) -> Result<(), CheckpointError> {
        let mut messages = Vec::new();
        if let Some(step) = left {
            match self.settled(&step).await {
                Ok(()) => {}
                // No other step may come before that one: the run is left to whoever recovers it.
                Err(unknown) if unknown.code == Code::StorageCommitUnknown => return Err(unknown),
                Err(_) => messages = step.messages,
            }
        }
        messages.extend(answer.iter().cloned());
        // A long answer is more than goes into one step.
        while answer.len() > 1 && messages.len() > 1 {
            let incomplete = messages.len() <= answer.len();
            let (first, record) = (vec![messages.remove(0)], RunRecord { incomplete, ..self.record(None) });
            match self.settled(&StepCommit { messages: first, record, ..StepCommit::default() }).await {
                Err(error) if error.code.row().class == Class::Permanent => {
                    messages.clear();
                    *reason = first_of(reason.clone(), error.into());
                }
                done => done?,
            }
        }
        loop {
            let record = self.record(Some((reason, answered)));
            let step = StepCommit { messages: messages.clone(), record, ..StepCommit::default() };
            match self.settled(&step).await {
                Err(error) if error.code.row().class == Class::Permanent && !messages.is_empty() => {
                    messages.clear();
                    *reason = first_of(reason.clone(), error.into());
                }
                done => return done,
            }
        }
    }

    /// Tries to make a step durable as often as it makes sense.
    async fn settled(&self, step: &StepCommit) -> Result<(), CheckpointError> {
        let mut patience = Patience::new();
        loop {
            let tried = timeout(END_STEP_MAX, self.parts.checkpoint.commit(step.clone())).await;
            let Err(error) = tried.unwrap_or_else(|_| Err(late())) else { return Ok(()) };
            sleep(patience.next(&error).ok_or(error)?).await;
        }
    }
}

fn late() -> CheckpointError {
    let message = "the step was not durable in time".to_owned();
    CheckpointError { code: Code::StorageCommitUnknown, message }
}
