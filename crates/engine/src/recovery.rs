//! Going on after a death: what may be resumed, what a person is asked about, and what nobody can know.

use runyard_backend::{BackendInfo, Resumes};
use runyard_domain::gate::{Request, Risk};
use runyard_domain::run::{
    ApprovalRequested, ApprovalUsed, Failure, Run, RunEvent, RunState, RuntimeStatus, ToolOutcome,
    ToolResult, TurnEnded, TurnOutcome, Who,
};
use runyard_domain::{Approval, ApprovalId, Code, RunId, Timestamp};
use runyard_store::{RunRow, RunsQuery};
use sha2::{Digest, Sha256};

use crate::commands::finished;
use crate::endings::{cancelled, failed};
use crate::fresh::fresh;
use crate::record::{Decided, Fact, Standing};
use crate::translate::{agent, status, unsaid};
use crate::{Engine, EngineError, Limits};

/// The key of an approval that the engine itself asks for.
pub(crate) const RECOVERY_KEY: &str = "recovery";
/// What nobody knows of where no single step is known.
pub(crate) const THE_TURN: &str = "the turn";
/// From so long on it is said that nobody looked after a run.
pub(crate) const AWAY_MS_MIN: u64 = 1_000;
/// How many runs are read at a time.
const PAGE: u32 = 500;

/// What is done with a run whose session died.
#[derive(Debug, PartialEq, Eq)]
enum Recovery {
    /// Its backend goes on.
    Resume,
    /// This step was begun, and nobody knows whether it took effect.
    Unknown {
        /// The step.
        step: String,
    },
}

/// A step may have been done or not, unless it has a result, may be repeated, or the backend knows from its conversation.
fn decide(run: &Run, info: &BackendInfo) -> Recovery {
    match (info.resumes, run.unknown_steps()) {
        (Resumes::Thread, _) if run.thread.is_some() => Recovery::Resume,
        (Resumes::Thread | Resumes::Steps, None) => Recovery::Resume,
        (Resumes::Never, None) if !run.turn_active => Recovery::Resume,
        (_, Some(step)) => Recovery::Unknown { step },
        (Resumes::Never, None) => Recovery::Unknown { step: THE_TURN.to_owned() },
    }
}

/// What is recorded before a run that was running is opened again; it may be nothing.
pub(crate) fn reopening(run: &Run, info: &BackendInfo, limits: &Limits, now: Timestamp) -> Vec<Fact> {
    if run.state != RunState::Running {
        return Vec::new();
    }
    if run.kept_open_until().is_some() && run.thread.is_none() {
        // Without its conversation the backend would begin with the task again.
        return finished(run, info.checkout, now);
    }
    let Recovery::Unknown { step } = decide(run, info) else { return Vec::new() };
    if let Some(by) = run.interrupted_by.clone().filter(|_| run.turn_active) {
        return interrupted(run, by, now);
    }
    let digest = repeat_digest(run.id, &step);
    // A person has said that exactly this is to be repeated.
    if let Some(grant) = run.grants.iter().find(|grant| grant.digest == digest && grant.approved) {
        let used = RunEvent::ApprovalUsed(ApprovalUsed { approval_id: grant.approval_id });
        let closed = run.open_steps.keys().map(|call| {
            let summary = "Unknown: the process died. It is repeated by a person's decision.".to_owned();
            RunEvent::ToolResult(ToolResult {
                call: call.clone(),
                outcome: ToolOutcome::Cancelled,
                code: None,
                summary,
            })
        });
        return std::iter::once(used).chain(closed).map(Fact::from).collect();
    }
    if run.created.execution_policy.approval == Approval::Never {
        let message = "The process died during a step, and whether it took effect is unknown.";
        let failure = Failure::new(Code::OutcomeUnknown, message);
        return vec![failed(run, failure, "failed", Some(step), now)];
    }
    vec![
        RunEvent::ApprovalRequested(ApprovalRequested {
            approval_id: fresh!(ApprovalId, now),
            key: RECOVERY_KEY.to_owned(),
            request: Request::Repeat { step },
            redacted: false,
            digest,
            risk: Risk::Medium,
            reason: "The process died during this step, and whether it took effect is unknown.".to_owned(),
            notes: Vec::new(),
            workspace: run.created.workspace.clone(),
            actor: agent(run),
            expires_at: now.plus_ms(limits.approval_expiry_ms),
        })
        .into(),
    ]
}

/// The end of a turn that somebody interrupted while nobody knew of its steps: none of them is repeated.
fn interrupted(run: &Run, by: Who, now: Timestamp) -> Vec<Fact> {
    let closed = run.open_steps.keys().map(|call| {
        let summary = "Unknown: the process died, and its turn was interrupted.".to_owned();
        RunEvent::ToolResult(ToolResult {
            call: call.clone(),
            outcome: ToolOutcome::Cancelled,
            summary,
            code: None,
        })
    });
    let over = RunEvent::TurnEnded(TurnEnded { outcome: TurnOutcome::Interrupted });
    let mut events: Vec<RunEvent> = closed.chain(unsaid(run)).chain([over]).collect();
    let after =
        events.iter().try_fold(run.clone(), |after, event| Run::fold(Some(after), run.id, now, event));
    if let Ok(after) = after
        && after.queued.is_empty()
        && after.kept_open_until().is_none()
    {
        events.push(cancelled(&after, by, "The turn was interrupted.", None, now));
    }
    events.into_iter().map(Fact::from).collect()
}

/// Stands for the question whether these steps of this run are to be repeated.
fn repeat_digest(run: RunId, step: &str) -> String {
    let digest =
        Sha256::new_with_prefix(b"repeat").chain_update(run.as_bytes()).chain_update(step).finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// When the runs that are not at their end are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Looks {
    /// When the hub begins, before any deadline is kept.
    First,
    /// Later, because others may have changed something.
    Again,
}

/// The states in which a hub has something to do for a run.
const UNFINISHED: [&str; 6] = ["created", "planned", "accepted", "preparing", "running", "applying"];

impl Engine {
    /// Whether a run is not at its end that this hub goes on with, or will once people have answered. One that cannot be read is
    /// none: nobody goes on with it.
    pub async fn has_unfinished_runs(&self) -> Result<bool, EngineError> {
        let is_own = |row: &RunRow| {
            Standing::of(row).is_ok_and(|standing| {
                let edge = standing.run.planned.as_ref().map(|plan| &plan.edge_id);
                edge.is_none_or(|edge| self.own_edges().contains(edge))
            })
        };
        for status in UNFINISHED.into_iter().chain(["needs_approval"]) {
            let mut before = None;
            loop {
                let query = RunsQuery { status: Some(status.to_owned()), before, limit: PAGE };
                let page = self.recorder().store.runs(query).await?;
                if page.runs.iter().any(is_own) {
                    return Ok(true);
                }
                before = page.runs.last().map(|row| row.run);
                if !page.more {
                    break;
                }
            }
        }
        Ok(false)
    }

    /// Looks after every run that is not at its end. A run that waits for people needs nothing but its row.
    pub(crate) async fn recover(&self, looks: Looks) -> Result<u64, EngineError> {
        let mut found = 0;
        for status in UNFINISHED {
            let mut before = None;
            loop {
                let query = RunsQuery { status: Some(status.to_owned()), before, limit: PAGE };
                let page = self.recorder().store.runs(query).await?;
                for row in &page.runs {
                    before = Some(row.run);
                    match Standing::of(row) {
                        Ok(standing) if looks == Looks::First => self.take_up(standing).await,
                        Ok(standing) => self.changed(&standing),
                        Err(error) => {
                            tracing::error!(run = %row.run, %error, "a run cannot be read and is left alone");
                        }
                    }
                    found += 1;
                }
                if !page.more {
                    break;
                }
            }
        }
        Ok(found)
    }

    /// Looks after a run that an earlier process left. The time since its last event counts toward none of its deadlines: how
    /// much of it the run was active nobody knows, and it must not fail for what it could not use.
    async fn take_up(&self, standing: Standing) {
        let (run, left_at) = (standing.run.id, standing.updated_at);
        let away_ms = self.now().ms_since(left_at);
        let own = standing.run.planned.as_ref().is_some_and(|plan| self.own_edges().contains(&plan.edge_id));
        let info = self.catalog().backend(&standing.run.created.backend_profile);
        let (true, true, true, Ok((_, info))) = (own, is_active(&standing.run), away_ms >= AWAY_MS_MIN, info)
        else {
            return self.changed(&standing);
        };
        let info = info.clone();
        let decide = move |run: &Run, now: Timestamp| {
            let recovered = status(run, &info, "recovered");
            let recovered = RuntimeStatus { away_ms: Some(now.ms_since(left_at)), ..recovered };
            let facts = vec![Fact::from(RunEvent::RuntimeStatus(recovered))];
            Ok(Decided { facts, result: None })
        };
        match self.recorder().head(run, decide).await {
            Ok(standing) => self.changed(&standing),
            Err(error) => {
                tracing::error!(%run, %error, "how long nobody looked after a run is not recorded");
                self.changed(&standing);
            }
        }
    }
}

/// What is recorded of a run that waited for a place while its time went on: none of that was the run's.
pub(crate) fn queued(run: &Run, info: &BackendInfo, since: Timestamp, now: Timestamp) -> Option<Fact> {
    let away_ms = Some(now.ms_since(since));
    let queued = || RuntimeStatus { away_ms, ..status(run, info, "queued") };
    is_active(run).then(|| RunEvent::RuntimeStatus(queued()).into())
}

/// Whether the time goes on for the run.
fn is_active(run: &Run) -> bool {
    match run.state {
        RunState::Accepted | RunState::Preparing | RunState::Running | RunState::Applying { .. } => true,
        RunState::Created | RunState::Planned | RunState::NeedsApproval { .. } => false,
        RunState::Completed | RunState::Failed { .. } | RunState::Cancelled { .. } => false,
    }
}
