//! How a run ends, as events: well, failed or cancelled, and what is given up before. It decides nothing.

use runyard_domain::run::{
    ApprovalResolved, Cancelled, Completed, DiffState, Failed, Failure, Resolution, Run, RunEvent, Who,
};
use runyard_domain::{ApprovalId, Code, Timestamp};

use crate::record::Fact;

/// Everything that is open is given up: what a run's end and a rejection that ends it say first.
pub(crate) fn withdrawn(run: &Run) -> Vec<Fact> {
    let open = run.state.open().map(|(id, _)| withdrawal(id, Who::runyard(), "The run went on without it."));
    open.map(Fact::from).collect()
}

pub(crate) fn withdrawal(approval_id: ApprovalId, decided_by: Who, reason: &str) -> RunEvent {
    RunEvent::ApprovalResolved(ApprovalResolved {
        approval_id,
        resolution: Resolution::Withdrawn,
        decided_by,
        reason: Some(reason.to_owned()),
        scope: None,
        answer: None,
        selection: None,
        comments: Vec::new(),
        revise: false,
    })
}

/// The failed end of a run.
pub(crate) fn failed(
    run: &Run,
    failure: Failure,
    terminal_status: &str,
    step: Option<String>,
    now: Timestamp,
) -> Fact {
    let (terminal_status, metrics) = (terminal_status.to_owned(), run.metrics(now));
    RunEvent::Failed(Failed { failure, terminal_status, step, metrics }).into()
}

/// The good end of a run.
pub(crate) fn completed(run: &Run, diff: DiffState, now: Timestamp) -> RunEvent {
    let unused = run.grants.iter().filter(|grant| !grant.used).map(|grant| grant.approval_id);
    RunEvent::Completed(Completed {
        response: run.response.clone(),
        artifacts: run.artifacts.clone(),
        diff,
        metrics: run.metrics(now),
        unused_approvals: unused.collect(),
    })
}

/// The cancelled end of a run.
pub(crate) fn cancelled(run: &Run, by: Who, reason: &str, code: Option<Code>, now: Timestamp) -> RunEvent {
    RunEvent::Cancelled(Cancelled { by, reason: reason.to_owned(), code, metrics: run.metrics(now) })
}
