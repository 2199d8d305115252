//! A run's log, event by event: each follows from the one before it, and folds into the run.

use std::collections::BTreeMap;

use runyard_domain::run::{Run, RunEvent};
use runyard_domain::{ApprovalId, RunId, Timestamp};
use runyard_store::{BreakKind, Chain, Hash, LoggedEvent};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::compare::Differences;
use super::thread::{Conversation, Part};
use super::{Entered, Replay, ReplayedThread, hexadecimal};
use crate::record::Standing;

/// So many states are listed; of further ones only the count is kept.
const STATES_MAX: usize = 1_000;

/// Where an approval stands in the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    /// The event that asked.
    pub(super) asked: u64,
    /// The event that answered.
    pub(super) answered: Option<u64>,
}

/// How far a run was folded.
pub(super) struct Walk {
    pub(super) run: RunId,
    chain: Chain,
    folded: Option<Run>,
    at: Option<Timestamp>,
    stopped: bool,
    states: Vec<Entered>,
    states_left_out: u64,
    /// The approvals, by the places of their events: what those say is read again when it is compared.
    pub(super) approvals: BTreeMap<ApprovalId, Told>,
    /// What the run recorded of its conversation.
    pub(super) thread: Part,
    /// What is wrong with the log itself.
    pub(super) differences: Differences,
}

impl Walk {
    /// Nothing is folded yet.
    pub(super) fn of(run: RunId) -> Self {
        Walk {
            run,
            chain: Chain::of(run),
            folded: None,
            at: None,
            stopped: false,
            states: Vec::new(),
            states_left_out: 0,
            approvals: BTreeMap::new(),
            thread: Part::of(None),
            differences: Differences::default(),
        }
    }

    pub(super) fn sequence(&self) -> u64 {
        self.chain.sequence()
    }

    pub(super) fn head(&self) -> Option<Hash> {
        self.chain.head()
    }

    pub(super) fn derived(&self) -> Option<&Run> {
        self.folded.as_ref()
    }

    /// Whether an event came that cannot be folded: what is stored stands for more than was read.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Goes no further than before this event.
    pub(super) fn stop(&mut self, sequence: u64, found: &str) {
        self.stopped = true;
        self.broken(sequence, found);
    }

    fn broken(&mut self, sequence: u64, found: &str) {
        let expected = match sequence {
            1 => "the run's first event".to_owned(),
            _ => format!("an event that follows from event {}", sequence - 1),
        };
        self.differences.add(format!("events.{sequence}"), expected.into(), found.into());
    }

    /// Takes the next event.
    pub(super) fn take(&mut self, event: &LoggedEvent) {
        let next = self.sequence() + 1;
        if event.sequence != next {
            return self.stop(next, &BreakKind::Missing.to_string());
        }
        // What is not folded is not walked over either.
        let mut chain = self.chain.clone();
        match chain.follow(&event.body) {
            Ok(()) => {}
            // It is an event of this place, so that what was changed shows in what is derived from it too.
            Err(kind @ BreakKind::Unchained) => {
                self.broken(next, &kind.to_string());
                chain.go_on_from(&event.body);
            }
            Err(kind) => return self.stop(next, &kind.to_string()),
        }
        let Ok(envelope) = event.envelope() else {
            return self.stop(next, &BreakKind::Unreadable.to_string());
        };
        let said = match RunEvent::read(&envelope.kind, &envelope.payload) {
            Ok(said) => said,
            Err(error) => return self.stop(next, &error.to_string()),
        };
        // A refused event leaves the run as it was.
        match Run::fold(self.folded.clone(), self.run, envelope.timestamp, &said) {
            Ok(run) => self.entered(run, next, envelope.timestamp),
            Err(error) => return self.stop(next, &error.to_string()),
        }
        self.chain = chain;
        self.note(next, &said);
    }

    fn entered(&mut self, run: Run, sequence: u64, at: Timestamp) {
        let state = run.state.name();
        if self.folded.as_ref().is_none_or(|before| before.state.name() != state) {
            match self.states.len() < STATES_MAX {
                true => self.states.push(Entered { state, sequence, at }),
                false => self.states_left_out += 1,
            }
        }
        (self.folded, self.at) = (Some(run), Some(at));
    }

    fn note(&mut self, sequence: u64, said: &RunEvent) {
        match said {
            RunEvent::ApprovalRequested(asked) => {
                self.approvals.insert(asked.approval_id, Told { asked: sequence, answered: None });
            }
            RunEvent::ApprovalResolved(resolved) => {
                if let Some(told) = self.approvals.get_mut(&resolved.approval_id) {
                    told.answered = Some(sequence);
                }
            }
            said => self.thread.take(sequence, said),
        }
    }

    /// The conversation with what this run added to it.
    pub(super) fn thread_after(
        &self,
        mut conversation: Conversation,
        differences: &mut Differences,
    ) -> ReplayedThread {
        let (messages_before, runs_before) = (conversation.messages(), conversation.parts());
        conversation.join(self.thread.clone());
        let ended = self.derived().is_some_and(|run| run.state == runyard_domain::run::RunState::Completed);
        let calls_open = self.thread.calls_open();
        // A run that ended well has answered whatever its agent called, and seen the end of whatever it began.
        let open = [("thread.callsOpen", calls_open), ("thread.stepsOpen", self.thread.steps_open())];
        for (field, count) in open.into_iter().filter(|(_, count)| ended && *count > 0) {
            differences.add(field, 0.into(), count.into());
        }
        let (messages, calls) = (conversation.messages(), conversation.calls());
        let (digest, found) = conversation.end();
        differences.extend(found);
        ReplayedThread { messages, messages_before, runs_before, calls, calls_open, digest }
    }

    /// What there is to tell.
    pub(super) fn told(self, thread: Option<ReplayedThread>, differences: Differences) -> Replay {
        let (events, head) = (self.sequence(), self.head());
        let digest = self.folded.as_ref().map(|run| {
            let text = serde_json::to_value(run).unwrap_or(Value::Null).to_string();
            hexadecimal(Sha256::new_with_prefix(text))
        });
        let standing = self.folded.zip(self.at);
        let derived = standing.map(|(run, updated_at)| Standing { run, sequence: events, updated_at });
        Replay {
            run: self.run,
            events,
            head,
            states: self.states,
            states_left_out: self.states_left_out,
            derived,
            digest,
            thread,
            differences: differences.listed,
            differences_left_out: differences.left_out,
        }
    }
}
