//! Agents on threads: which runs where, one at a time on each thread, and what is known of a thread for its next run.
//!
//! ```text
//! drive.rs            a request becomes a run: resolved, the thread taken, opened, driven, given back
//! threads.rs          one run on each thread of this process
//! durable.rs          the store: opening a thread, and what is remembered of it
//! hold.rs             a claim on a thread, renewed for as long as the run goes on
//! kept.rs             a checkpoint that knows how much is durable
//! cache.rs            conversations by thread, within a number of bytes
//! away.rs             runs of agents that are elsewhere
//! ```
//!
//! The loop itself is [`run`](crate::run). Nothing here starts by itself: a run whose process died goes on when somebody
//! says so ([`AgentRuntime::recover`]).

mod away;
mod cache;
mod drive;
mod durable;
mod error;
mod hold;
mod kept;
mod request;
mod threads;

use std::sync::Arc;

use runyard_domain::RunId;
use runyard_llm::inference::{Jitter, Message, SeededJitter};
use runyard_store::{AgentRunRow, MESSAGE_BYTES_MAX};

pub use self::cache::CACHE_BYTES_DEFAULT;
use self::drive::{Drive, Ears, Purpose, Undriven, in_time};
pub(crate) use self::durable::Durable;
pub use self::error::RuntimeError;
pub use self::hold::RENEW_EVERY;
pub use self::request::{ResumeRequest, RunRequest};
use self::threads::Threads;
use crate::checkpoint::CheckpointError;
use crate::resolve::AgentResolver;
use crate::run::{RunOutcome, RunRecord, RunStatus, weighing};

/// So many times as long as it was a message without secrets is at most: a name stands where each secret was.
const GROWTH_MAX: usize = 16;

/// Runs agents on threads. Cheap to clone.
#[derive(Clone)]
pub struct AgentRuntime(Arc<Parts>);

struct Parts {
    resolver: AgentResolver,
    durable: Option<Durable>,
    threads: Arc<Threads>,
    /// For ids, which are unique and no secret.
    chance: SeededJitter,
}

impl AgentRuntime {
    pub(crate) fn new(resolver: AgentResolver, durable: Option<Durable>) -> Self {
        let (threads, chance) = (Arc::default(), SeededJitter::from_chance());
        AgentRuntime(Arc::new(Parts { resolver, durable, threads, chance }))
    }

    /// Finds the agents of this runtime.
    pub fn resolver(&self) -> &AgentResolver {
        &self.0.resolver
    }

    /// Runs an agent on a thread until it ends or waits. How it ended, also when it failed, is the outcome.
    ///
    /// The run is a task of its own. Whoever drops this future cancels it, and it comes to its end in order. Where there is
    /// a store the outcome's thread is empty: the next run gets it from there.
    ///
    /// # Errors
    /// Where the run cannot begin: the agent cannot be resolved, the input is too large, or the thread has a run that is not
    /// over.
    pub async fn run(&self, request: RunRequest) -> Result<RunOutcome, RuntimeError> {
        let plan = self.0.resolver.resolve_run(&request.agent_id)?;
        self.check(&request.input)?;
        let slot = self.0.threads.take(&request.thread_id)?;
        let RunRequest { input, observer, cancellation, inbox, actor, .. } = request;
        let (run_id, purpose, thread_id) =
            (self.fresh_id(), Purpose::Begin(input), Arc::clone(slot.thread_id()));
        let drive = Drive { plan, thread_id, run_id, purpose, observer, cancellation, inbox, actor };
        let driven = drive.start(&self.0, slot).await;
        driven.map_err(|_| RuntimeError::ThreadAlreadyRunning { thread_id: request.thread_id })
    }

    /// Goes on with the run that waits on a thread. `None` where none does. Calls whose answers are not among the decisions
    /// wait on.
    ///
    /// A run that is no longer wanted is ended by resuming it with a token that is cancelled already.
    ///
    /// # Errors
    /// Where it cannot go on: its agent cannot be resolved, or it goes on already.
    pub async fn resume(&self, request: ResumeRequest) -> Result<Option<RunOutcome>, RuntimeError> {
        self.go_on(request, RunStatus::Waiting).await
    }

    /// Goes on with the run of a thread whose process died. `None` where there is none.
    ///
    /// Calls whose results are known are not made again. One of which nobody knows whether it was made is, if that is as
    /// good as once; else the run waits for somebody to decide.
    ///
    /// # Errors
    /// Where it cannot go on: its agent cannot be resolved, or its process may still be alive.
    pub async fn recover(&self, request: ResumeRequest) -> Result<Option<RunOutcome>, RuntimeError> {
        self.go_on(request, RunStatus::Running).await
    }

    async fn go_on(
        &self,
        request: ResumeRequest,
        wanted: RunStatus,
    ) -> Result<Option<RunOutcome>, RuntimeError> {
        let Some(durable) = &self.0.durable else { return Ok(None) };
        let slot = self.0.threads.take(&request.thread_id)?;
        let found = in_time(&request.cancellation, durable.unfinished(&request.thread_id)).await;
        let (run_id, record) = match found.flatten().and_then(|row| row.as_ref().map(read).transpose()) {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(None),
            Err(error) => {
                let ears = Ears::new(&request.observer, &request.cancellation, &request.inbox);
                return Ok(Some(ears.not_begun(true, error).await));
            }
        };
        if record.status != wanted {
            return Ok(None);
        }
        let plan = self.0.resolver.resolve_run(&record.agent_id)?;
        let ResumeRequest { decisions, observer, cancellation, inbox, actor, .. } = request;
        let (purpose, thread_id) = (Purpose::GoOn(decisions), Arc::clone(slot.thread_id()));
        let drive = Drive { plan, thread_id, run_id, purpose, observer, cancellation, inbox, actor };
        match drive.start(&self.0, slot).await {
            Ok(outcome) => Ok(Some(outcome)),
            Err(Undriven::Over) => Ok(None),
            Err(Undriven::Busy) => Err(RuntimeError::ThreadAlreadyRunning { thread_id: request.thread_id }),
        }
    }

    /// Refuses what is too large to be stored, also where nothing is: a conversation is the same with a store and without.
    fn check(&self, input: &[Message]) -> Result<(), RuntimeError> {
        for (message, number) in input.iter().zip(1..) {
            let mut bytes = weighing::json(message);
            if let Some(durable) = &self.0.durable
                && bytes > MESSAGE_BYTES_MAX / GROWTH_MAX
            {
                bytes = durable.bytes_of(message);
            }
            if bytes > MESSAGE_BYTES_MAX {
                let bytes_max = MESSAGE_BYTES_MAX;
                return Err(RuntimeError::InputTooLarge { message: number, bytes, bytes_max });
            }
        }
        Ok(())
    }

    fn fresh_id(&self) -> RunId {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let mut random = [0; 10];
        random[..8].copy_from_slice(&self.0.chance.roll().to_le_bytes());
        random[8..].copy_from_slice(&self.0.chance.roll().to_le_bytes()[..2]);
        RunId::from_parts(u64::try_from(since.as_millis()).unwrap_or_default(), &random)
    }
}

/// Which run it is, and where it stands.
fn read(row: &AgentRunRow) -> Result<(RunId, RunRecord), CheckpointError> {
    let unreadable = |what: String| CheckpointError {
        code: runyard_domain::Code::StorageSerialization,
        message: format!("run {} of the thread cannot be read: {what}", row.id),
    };
    let run_id = row.id.as_str().parse().map_err(|error| unreadable(format!("{error}")))?;
    let record = serde_json::from_slice(&row.payload).map_err(|error| unreadable(error.to_string()))?;
    Ok((run_id, record))
}

impl std::fmt::Debug for AgentRuntime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentRuntime")
            .field("resolver", &self.0.resolver)
            .field("durable", &self.0.durable.is_some())
            .finish_non_exhaustive()
    }
}
