//! Making durable what a run did: step by step, in order, and the same step again while nobody knows whether it is.

use std::time::Duration;

use runyard_domain::{Class, Code};
use tokio::time::sleep;

use super::{Course, Halt, RunEnd, RunRecord, RunStatus, weighing};
use crate::caught::caught;
use crate::checkpoint::{CheckpointError, StepCommit, StepLimits};
use crate::state::{Scope, StateError};

/// So often a step is tried again that could not be made durable for a reason that may pass.
const RETRIES_MAX: u32 = 3;
/// The first wait before that.
const WAIT: Duration = Duration::from_millis(50);
/// So long a run that is cancelled waits for a step that is on its way.
pub(crate) const CANCELLED_MAX: Duration = Duration::from_secs(5);

/// A step on its way.
pub(super) struct Step {
    pub(super) commit: StepCommit,
    /// So many messages of the conversation are durable with it.
    messages: usize,
    /// The revision of the state that is durable with it.
    revision: u64,
}

/// How much of what is not durable goes into a run's last step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// All of it.
    All,
    /// No state.
    NoState,
    /// Nothing but the record.
    RecordAlone,
}

/// The waits between attempts at something that may pass.
pub(crate) struct Patience {
    left: u32,
    wait: Duration,
}

impl Patience {
    pub(crate) fn new() -> Self {
        Patience { left: RETRIES_MAX, wait: WAIT }
    }

    /// The next wait, if the error may pass and there is one left.
    pub(crate) fn next(&mut self, error: &CheckpointError) -> Option<Duration> {
        self.left = self.left.checked_sub(1)?;
        let wait = self.wait;
        self.wait *= 4;
        (error.code.row().class == Class::Transient).then_some(wait)
    }
}

impl Course {
    /// Makes durable what is not.
    pub(super) async fn flush(&mut self) -> Result<(), Halt> {
        let mut patience = Patience::new();
        while let Some(step) = self.next_step()? {
            let token = self.cancellation.clone();
            let in_vain = async {
                token.cancelled().await;
                sleep(CANCELLED_MAX).await;
            };
            let Err(error) = self.attempt(step, in_vain).await else { continue };
            let Some(wait) = patience.next(&error) else { return Err(error.into()) };
            tokio::select! {
                biased;
                () = self.cancellation.cancelled() => return Err(Halt::Cancelled),
                () = sleep(wait) => {}
            }
        }
        Ok(())
    }

    fn next_step(&mut self) -> Result<Option<Box<Step>>, StateError> {
        if let Some(step) = self.unsettled.take() {
            return Ok(Some(step));
        }
        let is_kept = self.conversation.not_stored().is_empty() && self.notes.is_empty();
        if is_kept && self.recorded && self.store.snapshot().revision() == self.stored_revision {
            return Ok(None);
        }
        let step = self.step_of(None, Extent::All)?;
        if step.commit.is_empty() && self.recorded {
            self.stored_revision = step.revision;
            return Ok(None);
        }
        Ok(Some(step))
    }

    /// The next step of what is not durable yet. It is the last one when it has an end, or nothing is left.
    ///
    /// What is too much for one goes in several: the messages, then the notes, which are less than they seem without them, and
    /// the state with the end.
    pub(super) fn step_of(&mut self, end: Option<&Halt>, extent: Extent) -> Result<Box<Step>, StateError> {
        let (limits, stored) = (self.parts.checkpoint.limits(), self.conversation.stored());
        let (messages, mut bytes) = match extent {
            Extent::All | Extent::NoState => self.conversation.next_stored(&limits),
            Extent::RecordAlone => (stored, 0),
        };
        let mut commit = StepCommit {
            messages: self.conversation.messages()[stored..messages].to_vec(),
            ..StepCommit::default()
        };
        let (mut calls, mut revision, mut is_last) = (0, self.stored_revision, extent == Extent::RecordAlone);
        if extent != Extent::RecordAlone && messages == self.conversation.messages().len() {
            (calls, bytes) = self.next_noted(&limits, bytes);
            is_last = calls == self.notes.len();
            let now = self.store.snapshot();
            if is_last && extent == Extent::All && now.revision() != revision {
                let thread = now.export_changes(Scope::Thread, revision)?;
                let run = now.export_changes(Scope::Run, revision)?;
                let with = bytes + weighing::state(&thread) + weighing::state(&run);
                is_last = with <= limits.bytes_max || bytes == 0;
                if is_last {
                    (commit.thread_state, commit.run_state, revision) = (thread, run, now.revision());
                }
            }
        }
        commit.calls = self.notes.drain(..calls).collect();
        commit.record = RunRecord {
            incomplete: self.conversation.breaks_off_at(messages),
            ..self.record(end.filter(|_| is_last))
        };
        Ok(Box::new(Step { commit, messages, revision }))
    }

    /// So many notes go into a step that has so many bytes already, and so many bytes it has then.
    fn next_noted(&self, limits: &StepLimits, mut bytes: usize) -> (usize, usize) {
        let mut count = 0;
        for note in self.notes.iter().take(limits.calls_max) {
            let with = bytes + weighing::note(note);
            if bytes > 0 && with > limits.bytes_max {
                break;
            }
            (count, bytes) = (count + 1, with);
        }
        (count, bytes)
    }

    pub(super) fn record(&self, end: Option<&Halt>) -> RunRecord {
        let status = match end {
            None => RunStatus::Running,
            Some(Halt::Suspended) => RunStatus::Waiting,
            Some(_) => RunStatus::Done,
        };
        RunRecord {
            agent_id: self.parts.agent.id.to_string(),
            status,
            rounds: self.watch.rounds(),
            steps: self.step,
            usage: self.usage.into(),
            elapsed_ms: u64::try_from(self.clock.elapsed().as_millis()).unwrap_or(u64::MAX),
            before: self.before as u64,
            incomplete: false,
            end: end.map(RunEnd::from),
        }
    }

    /// Tries to make a step durable, until `in_vain` is over. One of which nobody knows whether it is comes before any other.
    pub(super) async fn attempt(
        &mut self,
        step: Box<Step>,
        in_vain: impl Future<Output = ()>,
    ) -> Result<(), CheckpointError> {
        let unknown = |message| CheckpointError { code: Code::StorageCommitUnknown, message };
        let outcome = tokio::select! {
            biased;
            done = caught(self.parts.checkpoint.commit(step.commit.clone())) => {
                done.unwrap_or_else(|panicked| Err(unknown(format!("the checkpoint {panicked}"))))
            }
            () = in_vain => Err(unknown("the step was not durable in time".to_owned())),
        };
        match outcome {
            Ok(()) => {
                self.conversation.stored_until(step.messages);
                self.stored_revision = step.revision;
                self.recorded = true;
            }
            Err(CheckpointError { code: Code::StorageCommitUnknown, .. }) => self.unsettled = Some(step),
            Err(_) => {
                let later = std::mem::replace(&mut self.notes, step.commit.calls);
                self.notes.extend(later);
            }
        }
        outcome
    }
}
