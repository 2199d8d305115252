//! Replaying a run: it is derived from its log again, from nothing, and held against what is stored beside the log.
//!
//! It only reads. Whatever is wrong is a difference that names what the log says and what is stored; nothing is repaired. A
//! run that goes on meanwhile is looked at where its row stood.

mod approvals;
mod compare;
mod thread;
mod walk;

use runyard_domain::{RunId, Timestamp};
use runyard_store::{BreakKind, Hash, RunRow};
use serde_json::Value;
use sha2::{Digest, Sha256};

use self::compare::Differences;
use self::thread::Conversation;
use self::walk::Walk;
use crate::installation::is_installation;
use crate::record::Standing;
use crate::{Engine, EngineError};

/// How often what is stored beside the log is read again because the run went on meanwhile.
const TRIES_MAX: usize = 100;
/// So many events are read at a time.
const PAGE: u32 = 500;

/// What a run's log says, and where what is stored says otherwise.
#[derive(Clone, Debug)]
pub struct Replay {
    /// The run.
    pub run: RunId,
    /// How many events were folded: all, unless one of them cannot be.
    pub events: u64,
    /// The hash of the last of them.
    pub head: Option<Hash>,
    /// The states in their order.
    pub states: Vec<Entered>,
    /// How many further ones are not listed.
    pub states_left_out: u64,
    /// The run as its log says it is; nothing where not even its first event can be read.
    pub derived: Option<Standing>,
    /// The SHA-256 of that, the same for every replay of the same log.
    pub digest: Option<String>,
    /// The conversation, where the run's backend keeps it in the log.
    pub thread: Option<ReplayedThread>,
    /// What differs.
    pub differences: Vec<Difference>,
    /// How many further differences are not listed.
    pub differences_left_out: u64,
}

/// A state that a run entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entered {
    /// Which.
    pub state: &'static str,
    /// By which event.
    pub sequence: u64,
    /// When.
    pub at: Timestamp,
}

/// A conversation, as the logs of its runs say it went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayedThread {
    /// How many messages it has.
    pub messages: u64,
    /// How many of them were there before this run.
    pub messages_before: u64,
    /// How many runs had part in it before this one.
    pub runs_before: u64,
    /// How many calls of tools it has.
    pub calls: u64,
    /// How many of those have no result.
    pub calls_open: u64,
    /// The SHA-256 of the messages and of the agent's state.
    pub digest: String,
}

/// Something that is stored otherwise than the log says.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// What: a field of the run's row, an approval, an event by its place, or the conversation.
    pub field: String,
    /// What the log says, or has to say there.
    pub derived: Value,
    /// What is stored.
    pub stored: Value,
}

impl Engine {
    /// Derives a run from its log again, and says where what is stored differs.
    pub async fn replay(&self, run: RunId) -> Result<Replay, EngineError> {
        let mut walk = Walk::of(run);
        let mut conversation = None;
        for _ in 0..TRIES_MAX {
            let row = self.row(run).await?;
            self.walk_to(&mut walk, row.sequence).await?;
            let mut differences = walk.differences.clone();
            if !walk.is_stopped() {
                let redactor = &self.recorder().redactor;
                compare::row(&walk, &row, redactor, &mut differences);
            }
            // What the runs before it recorded does not change any more.
            if conversation.is_none() && walk.thread.is_recorded() {
                conversation = Some(self.conversation_before(&walk).await?);
            }
            let thread = conversation.clone().map(|before| walk.thread_after(before, &mut differences));
            // Only these are read after the row, and may be ahead of it.
            let mut later = Differences::default();
            if !walk.is_stopped() {
                self.beyond(&row, &mut later).await?;
                self.compare_approvals(&walk, &mut later).await?;
            }
            if later.is_empty() || self.row(run).await?.sequence == row.sequence {
                differences.extend(later);
                return Ok(walk.told(thread, differences));
            }
        }
        Err(EngineError::Contended { run })
    }

    /// The run's row as it is, also where what it holds cannot be read.
    async fn row(&self, run: RunId) -> Result<RunRow, EngineError> {
        let row = self.recorder().store.run(run).await?;
        let row = row.filter(|row| row.sequence > 0 && !is_installation(run));
        row.ok_or_else(|| EngineError::NotFound { what: format!("run {run}") })
    }

    /// Folds the events up to this place.
    async fn walk_to(&self, walk: &mut Walk, place: u64) -> Result<(), EngineError> {
        while !walk.is_stopped() && walk.sequence() < place {
            let events = self.recorder().store.read(walk.run, walk.sequence(), PAGE).await?;
            let before = walk.sequence();
            for event in events.iter().take_while(|event| event.sequence <= place) {
                walk.take(event);
                if walk.is_stopped() {
                    return Ok(());
                }
            }
            if walk.sequence() == before {
                walk.stop(before + 1, &BreakKind::Missing.to_string());
            }
        }
        Ok(())
    }

    /// Whether there are events after the one that the run's row knows as the last.
    async fn beyond(&self, row: &RunRow, differences: &mut Differences) -> Result<(), EngineError> {
        if let [event, ..] = self.recorder().store.read(row.run, row.sequence, 1).await?.as_slice() {
            let found = BreakKind::BeyondTheHead.to_string();
            differences.add(format!("events.{}", event.sequence), Value::Null, found.into());
        }
        Ok(())
    }

    /// What the runs before it recorded of the conversation.
    async fn conversation_before(&self, walk: &Walk) -> Result<Conversation, EngineError> {
        let mut conversation = Conversation::default();
        let Some(derived) = walk.derived() else { return Ok(conversation) };
        let earlier = match self.earlier_in_thread(derived).await {
            Ok(earlier) => earlier,
            // What is missing or cannot be read is what this is to find.
            Err(error @ (EngineError::NotFound { .. } | EngineError::Json(_))) => {
                conversation.unreadable("thread.before", &error.to_string());
                return Ok(conversation);
            }
            Err(error) => return Err(error),
        };
        for run in earlier.into_iter().rev() {
            let mut after = 0;
            let mut part = thread::Part::of(Some(run));
            loop {
                let events = self.recorder().store.read(run, after, PAGE).await?;
                let Some(last) = events.last() else { break };
                after = last.sequence;
                events.iter().for_each(|event| part.take_logged(event));
            }
            conversation.join(part);
        }
        Ok(conversation)
    }
}

/// The SHA-256 of bytes, in hexadecimal.
fn hexadecimal(digest: Sha256) -> String {
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
