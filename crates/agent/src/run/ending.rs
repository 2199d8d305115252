//! The end of a run, however it comes about.

use std::time::Duration;

use runyard_domain::{Class, Code};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::following::{NotFollowed, NotFollowedUpdate};
use super::keeping::{Extent, Patience};
use super::limits::{Counted, Counters};
use super::waiting::{AnsweredQuestions, SuspendedCalls};
use super::{AgentEvent, Course, Halt, RunEnd, RunOutcome, RunStatus};
use crate::checkpoint::{CallPlace, CheckpointError, Opened};
use crate::phase::{LastOffer, Moment, Offer, PhaseReport};
use crate::state::{MutationBatch, Scope, StateError};

/// So long the last phase may take.
const END_PHASE_MAX: Duration = Duration::from_secs(30);
/// So long one attempt to make the end durable may take.
pub(crate) const END_STEP_MAX: Duration = Duration::from_secs(10);

impl Course {
    /// Runs the last phase, records the end and tells it. A run that cannot be stored as waiting has failed.
    pub(super) async fn end(mut self, mut reason: Halt) -> RunOutcome {
        if reason == Halt::Suspended {
            match self.record_waiting().await {
                Ok(()) => return self.told(reason).await,
                Err(error) => reason = error.into(),
            }
        }
        self.pair("the run ended before this call did").await;
        reason = self.with_unknown(reason);
        self.leave_nothing();
        if let Err(failed) = self.last_phase(&reason).await {
            reason = first_of(reason, failed);
        }
        if let Err(error) = self.record_end(&mut reason).await {
            reason = first_of(reason, error.into());
            let _ = timeout(END_STEP_MAX, self.parts.checkpoint.give_up()).await;
        }
        self.told(reason).await
    }

    /// Calls that may have been made come before whatever else ended the run: they are what somebody has to look after.
    fn with_unknown(&self, reason: Halt) -> Halt {
        if self.never_known.is_empty() {
            return reason;
        }
        let calls = self.never_known.join(", ");
        let RunEnd { reason, code, detail } = RunEnd::from(&reason);
        let words = [Some(reason), code, detail];
        let end = words.into_iter().flatten().collect::<Vec<_>>().join(": ");
        let message =
            format!("whether these calls were made is not known: {calls}; the run ended then ({end})");
        Halt::Failed { code: Code::OutcomeUnknown, message }
    }

    async fn told(self, reason: Halt) -> RunOutcome {
        let usage = self.usage;
        self.tell(AgentEvent::RunEnded { reason: reason.clone(), usage }).await;
        let waiting = self.store.snapshot().get::<SuspendedCalls>().cloned().unwrap_or_default();
        let waiting =
            waiting.into_iter().filter_map(|(text, call)| Some((CallPlace::parse(&text)?, call.ticket)));
        RunOutcome {
            message: self.conversation.last_said(self.before),
            usage,
            rounds: self.watch.rounds(),
            waiting: waiting.collect(),
            thread: self.into_opened(&reason),
            reason,
        }
    }

    /// What a next run begins with, or this one goes on with. State that cannot be stored is not carried over either.
    fn into_opened(self, reason: &Halt) -> Opened {
        if self.parts.checkpoint.is_read_back() {
            return Opened { messages: self.conversation.into_messages(), ..Opened::default() };
        }
        let snapshot = self.store.snapshot();
        let waits = *reason == Halt::Suspended;
        Opened {
            thread_state: snapshot.export(Scope::Thread).unwrap_or_default(),
            run_state: snapshot.export(Scope::Run).unwrap_or_default(),
            record: waits.then(|| self.record(Some(reason))),
            messages: self.conversation.into_messages(),
            ..Opened::default()
        }
    }

    /// Nothing waits any more, and what was said and not read stays in the thread. All that can be wrong is that the
    /// environment has not got the keys, and then there is nothing.
    fn leave_nothing(&mut self) {
        let snapshot = self.store.snapshot();
        let waiting = snapshot.get::<SuspendedCalls>().into_iter().flat_map(|all| all.keys());
        for place in waiting.filter_map(|text| CallPlace::parse(text)) {
            let _ = self.waits_no_more(place);
        }
        let answered = snapshot.get::<AnsweredQuestions>().into_iter().flat_map(|all| all.keys());
        for place in answered.filter_map(|text| CallPlace::parse(text)) {
            let _ = self.forget_answers(place);
        }
        let _ = self.forget_run();
        let _ = self.hear();
        self.parts.inbox.close().into_iter().for_each(|word| {
            let word = self.parts.checkpoint.stored(word);
            self.conversation.push(word);
        });
    }

    /// What was counted, offered and left to the hooks is this run's alone, also where the next one is stored under the same name.
    fn forget_run(&mut self) -> Result<(), StateError> {
        let mut batch = MutationBatch::new();
        self.store.look(|now| {
            if now.get::<Counters>().is_some() {
                batch.update::<Counters>(Counted::default());
            }
            if now.get::<NotFollowed>().is_some_and(|calls| !calls.is_empty()) {
                batch.update::<NotFollowed>(NotFollowedUpdate::Forget);
            }
            if now.get::<LastOffer>().is_some() {
                batch.update::<LastOffer>(Offer::default());
            }
        });
        self.store.commit(batch).map(drop)
    }

    /// It has a token of its own: also a cancelled run has its end.
    async fn last_phase(&mut self, reason: &Halt) -> Result<(), Halt> {
        let token = CancellationToken::new();
        let mut occasion = self.occasion(Moment::RunEnd { reason });
        occasion.cancellation = &token;
        let (mut report, environment) = (PhaseReport::default(), &self.parts.agent.environment);
        let phase = environment.run_phase_reporting(&self.store, occasion, &mut report);
        let done = timeout(END_PHASE_MAX, phase).await;
        self.tell_failures(report).await;
        match done {
            Ok(done) => Ok(done?),
            Err(_) => {
                let message = format!("the end of the run took longer than {} s", END_PHASE_MAX.as_secs());
                Err(Halt::Failed { code: Code::StatePhaseRunLoopExceeded, message })
            }
        }
    }

    /// Makes durable that the run waits, with all that it needs to go on.
    async fn record_waiting(&mut self) -> Result<(), CheckpointError> {
        self.parts.inbox.refuse();
        self.keep_words().map_err(|error| not_storable(&error))?;
        let mut patience = Patience::new();
        loop {
            let step = match self.unsettled.take() {
                Some(step) => step,
                None => {
                    self.step_of(Some(&Halt::Suspended), Extent::All).map_err(|error| not_storable(&error))?
                }
            };
            let is_end = step.commit.record.end.is_some();
            match self.attempt(step, sleep(END_STEP_MAX)).await {
                Ok(()) if is_end => return Ok(()),
                Ok(()) => {}
                Err(error) => sleep(patience.next(&error).ok_or(error)?).await,
            }
        }
    }

    /// Makes the end durable. What cannot be stored must not keep the end from being: then the run has failed, and less of
    /// it is stored.
    async fn record_end(&mut self, reason: &mut Halt) -> Result<(), CheckpointError> {
        let mut patience = Patience::new();
        let mut extent = Extent::All;
        if self.unsettled.as_ref().is_some_and(|step| step.commit.record.status == RunStatus::Waiting) {
            // As far as the store knows it may be waiting, and goes on from there or from the step before.
            let message = "whether the run waits is not known".to_owned();
            return Err(CheckpointError { code: Code::StorageCommitUnknown, message });
        }
        loop {
            let step = match self.unsettled.take() {
                Some(step) => Ok(step),
                None => self.step_of(Some(reason), extent).map_err(|error| not_storable(&error)),
            };
            let error = match step {
                Ok(step) => {
                    let is_end = step.commit.record.end.is_some();
                    match self.attempt(step, sleep(END_STEP_MAX)).await {
                        Ok(()) if is_end => return Ok(()),
                        Ok(()) => continue,
                        Err(error) => error,
                    }
                }
                Err(error) => error,
            };
            if error.code.row().class == Class::Permanent && extent != Extent::RecordAlone {
                extent = if extent == Extent::All { Extent::NoState } else { Extent::RecordAlone };
                *reason = first_of(reason.clone(), error.into());
                continue;
            }
            sleep(patience.next(&error).ok_or(error)?).await;
        }
    }
}

/// What went wrong first is what people need to hear of.
pub(crate) fn first_of(reason: Halt, failed: Halt) -> Halt {
    if matches!(reason, Halt::Failed { .. }) { reason } else { failed }
}

fn not_storable(error: &StateError) -> CheckpointError {
    CheckpointError { code: error.code(), message: error.to_string() }
}
