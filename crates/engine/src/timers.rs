//! The deadlines of a run: which timers its state calls for, and what happens when one is due.
//!
//! Timers are rows, set and cancelled by the change that calls for it, so they outlive every process. How long a run is silent
//! is not one of them: that is for whoever drives it.

use runyard_domain::run::{Asked, Failure, FailureKind, Run, RunEvent, RunState, RuntimeError};
use runyard_domain::{ApprovalId, Code, Timestamp};
use runyard_redact::Safe;
use runyard_store::TimerWrite;

use crate::approvals::expired;
use crate::commands::finished;
use crate::endings::{failed, withdrawn};
use crate::record::Fact;
use crate::{Catalog, EngineError, Limits};

/// The whole run, not counting the time in which it waits for people.
const RUN: &str = "run";
/// The phase that it is in.
const PHASE: &str = "phase";
/// How long it is kept open for a further turn.
const OPEN: &str = "open";
/// A timer that is moved on within a state is not due sooner than this.
const MOVED_MS_MIN: u64 = 1_000;
/// What is said of a run whose changes take longer to be applied than they may.
pub(crate) const APPLYING_LATE: &str =
    "Applying took longer than allowed, and what was written by then is taken back.";
/// What is said of a run of which nobody knows what it wrote, since taking it back does not end either.
pub(crate) const TAKING_BACK_LATE: &str = "Taking back what was written did not end in time, so nobody knows how much of the changes is in the files.";
/// What is said of a run that takes longer than it may.
const RUN_LATE: &str = "The run took longer than its execution policy allows.";
/// The step that is named then.
const APPLYING_STEP: &str = "apply the changes";
/// An approval; its id stands behind it.
const EXPIRY: &str = "expiry:";

/// The timers that a change of a run sets and cancels.
pub(crate) fn writes(before: Option<&Run>, after: &Run, now: Timestamp, limits: &Limits) -> Vec<TimerWrite> {
    let mut writes = Vec::new();
    let wanted_before = before.map(|run| run_timers(run, limits)).unwrap_or_default();
    let wanted = run_timers(after, limits);
    for (name, due) in [(RUN, wanted.run_ms), (PHASE, wanted.phase_ms)] {
        let was = if name == RUN { wanted_before.run_ms } else { wanted_before.phase_ms };
        let entered = before.is_some_and(|before| before.entered_at != after.entered_at);
        // Time that was none of the run's was taken out of it. Where hardly any is left, that is not said over and over.
        let is_moved = before.is_some_and(|before| before.state.name() == after.state.name());
        match (was, due) {
            (None, None) => {}
            (Some(_), None) => writes.push(TimerWrite::Cancel { name: name.into() }),
            (Some(was), Some(ms)) if !entered && (name == RUN || was == ms) => {}
            (_, Some(ms)) => {
                let ms = if is_moved { ms.max(MOVED_MS_MIN) } else { ms };
                writes.push(TimerWrite::Set { name: name.into(), due: now.plus_ms(ms), payload: Safe::NULL })
            }
        }
    }
    match (before.and_then(Run::kept_open_until), after.kept_open_until()) {
        (was, until) if was == until => {}
        (_, Some(due)) => {
            writes.push(TimerWrite::Set { name: OPEN.into(), due, payload: Safe::NULL });
        }
        (_, None) => writes.push(TimerWrite::Cancel { name: OPEN.into() }),
    }
    let open_before = before.into_iter().flat_map(|run| run.state.open());
    let gone = open_before.filter(|(id, _)| after.state.open().all(|(open, _)| open != *id));
    writes.extend(gone.map(|(id, _)| TimerWrite::Cancel { name: expiry(id) }));
    let as_before = |(id, asked): &(ApprovalId, &Asked)| {
        let mut open = before.into_iter().flat_map(|run| run.state.open());
        open.any(|(open, before)| open == *id && before.expires_at == asked.expires_at)
    };
    let new = after.state.open().filter(|open| !as_before(open));
    writes.extend(new.map(|(id, asked)| TimerWrite::Set {
        name: expiry(id),
        due: asked.expires_at,
        payload: Safe::NULL,
    }));
    writes
}

fn expiry(id: ApprovalId) -> Safe<String> {
    Safe::join([EXPIRY.into(), id.into()])
}

/// How long from its entering on, for each of the two timers.
#[derive(Default)]
struct RunTimers {
    run_ms: Option<u64>,
    phase_ms: Option<u64>,
}

fn run_timers(run: &Run, limits: &Limits) -> RunTimers {
    let left = run.created.execution_policy.timeout_ms.saturating_sub(run.active_ms_before);
    match run.state {
        RunState::Accepted | RunState::Preparing => {
            RunTimers { run_ms: Some(left), phase_ms: Some(limits.prepare_ms) }
        }
        RunState::Running => RunTimers { run_ms: Some(left), phase_ms: None },
        // What is being applied is not left half way: it is told to stop, and has as long again to take it back.
        RunState::Applying { .. } => {
            let times = if run.stopping.is_some() { 2 } else { 1 };
            RunTimers { run_ms: None, phase_ms: Some(limits.apply_ms.saturating_mul(times)) }
        }
        // Waiting for a place or for people counts toward no deadline.
        RunState::Created
        | RunState::Planned
        | RunState::NeedsApproval { .. }
        | RunState::Completed
        | RunState::Failed { .. }
        | RunState::Cancelled { .. } => RunTimers::default(),
    }
}

/// Whether a timer is one of how long a run or its phase may take.
pub(crate) fn is_of_time(name: &str) -> bool {
    name == RUN || name == PHASE
}

/// What a timer that is due does to the run. Where the run has gone on meanwhile it does nothing.
pub(crate) fn fire(
    run: &Run,
    name: &str,
    now: Timestamp,
    limits: &Limits,
    catalog: &Catalog,
) -> Result<Vec<Fact>, EngineError> {
    let stale = || EngineError::Conflict { run: run.id, state: run.state.name(), what: "the timer is over" };
    if let Some(id) = name.strip_prefix(EXPIRY) {
        let id: ApprovalId = id.parse().map_err(|_| stale())?;
        // It may have been answered or snoozed between the look at the timers and this.
        return expired(run, id, now).ok_or_else(stale);
    }
    if name == OPEN {
        // It may have been given a turn between the look at the timers and this.
        run.kept_open_until().filter(|until| *until <= now).ok_or_else(stale)?;
        let (_, info) = catalog.backend(&run.created.backend_profile)?;
        return Ok(finished(run, info.checkout, now));
    }
    let wanted = run_timers(run, limits);
    let ms = if name == RUN { wanted.run_ms } else { wanted.phase_ms };
    // It may have gone on between the look at the timers and this.
    if ms.is_none_or(|ms| now < run.entered_at.plus_ms(ms)) {
        return Err(stale());
    }
    if let RunState::Applying { .. } = run.state {
        let is_told = run.stopping.is_some();
        let message = if is_told { TAKING_BACK_LATE } else { APPLYING_LATE }.to_owned();
        let late = RuntimeError { failure_kind: None, message: message.clone(), retrying: false };
        let mut facts = vec![RunEvent::RuntimeTimeout(late).into()];
        if is_told {
            let failure = Failure::new(Code::OutcomeUnknown, message);
            facts.push(failed(run, failure, "failed", Some(APPLYING_STEP.to_owned()), now));
        }
        return Ok(facts);
    }
    let what = match name {
        RUN => RUN_LATE,
        _ => "Preparing took longer than allowed.",
    };
    Ok(timed_out(run, what, now))
}

/// What becomes of a run that is told something when it is at its end, or when its time is over; none where it goes on. Timers are
/// looked at now and then, and a run that waits for people has none: one that asked just after its time would have all of theirs.
pub(crate) fn late(run: &Run, now: Timestamp, limits: &Limits) -> Option<Vec<Fact>> {
    if run.state.is_terminal() {
        return Some(Vec::new());
    }
    let left = run_timers(run, limits).run_ms?;
    (now >= run.entered_at.plus_ms(left)).then(|| timed_out(run, RUN_LATE, now))
}

fn timed_out(run: &Run, what: &str, now: Timestamp) -> Vec<Fact> {
    // Before it was started no backend took any time.
    let failure = match run.started {
        Some(_) => Failure::of_backend(FailureKind::BackendTimeout, what),
        None => Failure::new(Code::RunTimeout, what),
    };
    let (failure_kind, message) = (failure.failure_kind, what.to_owned());
    let timeout = RuntimeError { failure_kind, message, retrying: false };
    let mut facts = withdrawn(run);
    facts.push(RunEvent::RuntimeTimeout(timeout).into());
    facts.push(failed(run, failure, "failed", None, now));
    facts
}
