//! A request becomes a run: its thread is opened, the agent driven, and the thread given back, whatever happens.

use std::sync::Arc;
use std::time::Duration;

use runyard_domain::{Actor, Code, RunId};
use runyard_llm::inference::Message;
use runyard_store::StorageError;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::hold::hold;
use super::kept::Kept;
use super::threads::Slot;
use super::{Parts, away};
use crate::caught::caught;
use crate::checkpoint::{
    CLAIM_TERM, Checkpoint, CheckpointError, NoCheckpoint, OpenError, Opened, StepCommit,
};
use crate::phase::{RunIdentity, TerminationReason};
use crate::resolve::ResolvedRunPlan;
use crate::run::{
    AgentEvent, Begin, CANCELLED_MAX, Decision, END_STEP_MAX, Inbox, Observer, RunEnd, RunOutcome, RunParts,
    RunRecord, RunStatus, Teller, run,
};

/// So long opening a thread may take: a claim that nobody renews meanwhile is over by then.
const OPEN_MAX: Duration = CLAIM_TERM;

/// A run that is to be driven.
pub(super) struct Drive {
    pub(super) plan: ResolvedRunPlan,
    pub(super) thread_id: Arc<str>,
    pub(super) run_id: RunId,
    pub(super) purpose: Purpose,
    pub(super) observer: Arc<dyn Observer>,
    pub(super) cancellation: CancellationToken,
    pub(super) inbox: Arc<Inbox>,
    pub(super) actor: Option<Arc<Actor>>,
}

/// Why it is driven.
pub(super) enum Purpose {
    /// It begins, and this is said to it.
    Begin(Vec<Message>),
    /// It goes on, and these are the answers.
    GoOn(Vec<Decision>),
}

/// Why it is not driven.
pub(super) enum Undriven {
    /// The thread has a run that is not over.
    Busy,
    /// It was to go on, and another process has brought it to its end meanwhile.
    Over,
}

impl Drive {
    /// Drives it in a task of its own, which has the thread. When nobody waits for that any more it is cancelled, and comes
    /// to its end.
    pub(super) async fn start(mut self, parts: &Arc<Parts>, slot: Slot) -> Result<RunOutcome, Undriven> {
        self.cancellation = self.cancellation.child_token();
        let _cancelled_when_dropped = self.cancellation.clone().drop_guard();
        let parts = Arc::clone(parts);
        let driving = async move {
            // The thread is free when all is done, and not before.
            let _slot = slot;
            self.drive(&parts).await
        };
        match tokio::spawn(driving).await {
            Ok(outcome) => outcome,
            // Panics are caught within; so this process is ending.
            Err(_) => Ok(ended(TerminationReason::Cancelled)),
        }
    }

    async fn drive(self, parts: &Parts) -> Result<RunOutcome, Undriven> {
        let Some(durable) = &parts.durable else {
            let checkpoint = Arc::new(NoCheckpoint);
            return Ok(match self.go(checkpoint, Opened::default()).await {
                Ok(outcome) => outcome,
                Err(failed) => failed.told().await,
            });
        };
        let (thread_id, claimed) = (Arc::clone(&self.thread_id), Instant::now());
        let ears = Ears::new(&self.observer, &self.cancellation, &self.inbox);
        let opening = in_time(&self.cancellation, durable.open(&thread_id, self.run_id)).await;
        let (kept, opened) = match opening {
            // Whether the thread is taken nobody knows: if it is, that runs out by itself.
            Err(error) => return Ok(ears.not_begun(self.is_resumed(), error).await),
            Ok(opened) => match opened {
                Ok((kept, opened)) => (Arc::new(kept), opened),
                Err(OpenError::Held { .. } | OpenError::Unfinished { .. }) => return Err(Undriven::Busy),
                Err(OpenError::Storage(StorageError::AlreadyExists(..))) if self.is_resumed() => {
                    return Err(Undriven::Over);
                }
                Err(OpenError::Storage(error)) => {
                    return Ok(ears.not_begun(self.is_resumed(), error.into()).await);
                }
            },
        };
        let cancellation = self.cancellation.clone();
        let agent_id = Arc::clone(self.plan.agent_id());
        let outcome = tokio::select! {
            biased;
            outcome = self.go(Arc::clone(&kept) as Arc<dyn Checkpoint>, opened) => outcome,
            never = hold(&kept, claimed, &cancellation) => match never {},
        };
        let mut outcome = match outcome {
            Ok(outcome) => outcome,
            Err(failed) => failed.recorded(&kept, &agent_id).await,
        };
        // The store has the thread, and the next run gets it from there or from here.
        let thread = std::mem::take(&mut outcome.thread);
        durable.close(&thread_id, &kept, thread.messages);
        Ok(outcome)
    }

    /// Runs it until it ends or waits. What panicked is an error.
    async fn go(self, checkpoint: Arc<dyn Checkpoint>, opened: Opened) -> Result<RunOutcome, Panicked> {
        let ears = Ears::new(&self.observer, &self.cancellation, &self.inbox);
        let outcome = caught(self.run(checkpoint, opened)).await;
        outcome.map_err(|message| Panicked { ears, message })
    }

    async fn run(self, checkpoint: Arc<dyn Checkpoint>, opened: Opened) -> RunOutcome {
        let resumed = self.is_resumed();
        let Drive { plan, thread_id, run_id, purpose, observer, cancellation, inbox, actor } = self;
        let identity = RunIdentity { run_id, thread_id, agent_id: Arc::clone(plan.agent_id()) };
        let (input, decisions) = match purpose {
            Purpose::Begin(input) => (input, Vec::new()),
            Purpose::GoOn(decisions) => (Vec::new(), decisions),
        };
        match plan {
            ResolvedRunPlan::Local(agent) => {
                let actor = actor.unwrap_or_else(|| {
                    Arc::new(Actor::agent(identity.agent_id.as_ref(), run_id, Vec::<String>::new()))
                });
                let agent = *agent;
                let parts = RunParts { agent, identity, actor, checkpoint, inbox, observer, cancellation };
                run(parts, Begin { opened, resumed, input, decisions }).await
            }
            ResolvedRunPlan::Remote(agent) => {
                let parts = away::Parts { agent, identity, checkpoint, inbox, observer, cancellation };
                away::run(parts, Begin { opened, resumed, input, decisions }).await
            }
        }
    }

    fn is_resumed(&self) -> bool {
        matches!(self.purpose, Purpose::GoOn(_))
    }
}

impl ResolvedRunPlan {
    fn agent_id(&self) -> &Arc<str> {
        match self {
            ResolvedRunPlan::Local(agent) => &agent.id,
            ResolvedRunPlan::Remote(agent) => &agent.id,
        }
    }
}

/// Waits for what a run needs of its store before it begins. A run that is cancelled does not wait long for that: what the store
/// says in time still counts, since also a run that is called off has an end to record.
pub(super) async fn in_time<T>(
    cancellation: &CancellationToken,
    asked: impl Future<Output = T>,
) -> Result<T, CheckpointError> {
    let called_off = async {
        cancellation.cancelled().await;
        sleep(CANCELLED_MAX).await;
    };
    tokio::select! {
        biased;
        answer = asked => Ok(answer),
        () = called_off => {
            let message = "the run was cancelled before its thread was opened".to_owned();
            Err(CheckpointError { code: Code::StateCancelled, message })
        }
        () = sleep(OPEN_MAX) => {
            let message = format!("the store did not open the thread within {} s", OPEN_MAX.as_secs());
            Err(CheckpointError { code: Code::StorageIo, message })
        }
    }
}

/// Whoever hears of a run, and talks to it.
pub(super) struct Ears {
    teller: Teller,
    inbox: Arc<Inbox>,
}

impl Ears {
    pub(super) fn new(
        observer: &Arc<dyn Observer>,
        cancellation: &CancellationToken,
        inbox: &Arc<Inbox>,
    ) -> Self {
        let teller = Teller::new(Arc::clone(observer), cancellation.clone());
        Ears { teller, inbox: Arc::clone(inbox) }
    }

    /// A run that the store kept from beginning. Whoever listens hears of its end like of any other, and what was said to it is
    /// given back.
    pub(super) async fn not_begun(&self, resumed: bool, error: CheckpointError) -> RunOutcome {
        self.inbox.refuse();
        self.teller.tell(AgentEvent::RunStarted { resumed }).await;
        self.over(error.into()).await
    }

    async fn over(&self, reason: TerminationReason) -> RunOutcome {
        let outcome = ended(reason.clone());
        self.teller.tell(AgentEvent::RunEnded { reason, usage: outcome.usage }).await;
        outcome
    }
}

/// A run whose own code, a model's or an observer's, panicked.
struct Panicked {
    ears: Ears,
    message: String,
}

impl Panicked {
    /// Records the end, and lets the thread go.
    async fn recorded(self, kept: &Kept, agent_id: &Arc<str>) -> RunOutcome {
        let reason = self.reason();
        let record = RunRecord {
            agent_id: agent_id.to_string(),
            status: RunStatus::Done,
            end: Some(RunEnd::from(&reason)),
            ..kept.record()
        };
        // Where a step is unsettled, the run is left to whoever recovers it.
        let end = StepCommit { record, ..StepCommit::default() };
        let is_recorded =
            !kept.is_unsettled() && matches!(timeout(END_STEP_MAX, kept.commit(end)).await, Ok(Ok(())));
        if !is_recorded {
            let _ = timeout(END_STEP_MAX, kept.give_up()).await;
        }
        self.told().await
    }

    /// What was said to it is given back: behind calls without results it cannot stand.
    async fn told(self) -> RunOutcome {
        self.ears.inbox.refuse();
        self.ears.over(self.reason()).await
    }

    fn reason(&self) -> TerminationReason {
        TerminationReason::Failed { code: Code::InternalError, message: self.message.clone() }
    }
}

fn ended(reason: TerminationReason) -> RunOutcome {
    RunOutcome {
        reason,
        message: None,
        usage: Default::default(),
        rounds: 0,
        waiting: Vec::new(),
        thread: Opened::default(),
    }
}
