//! What a tool is told beside its arguments.

use std::sync::Arc;

use runyard_domain::Actor;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::phase::RunIdentity;
use crate::state::Snapshot;

/// What a tool is told beside its arguments.
#[derive(Clone)]
pub struct ToolContext {
    /// By what the result is found. A model may use it twice.
    pub call_id: String,
    /// Names this call and no other one, and is the same when the call is made again after a crash. 1 to 256 visible ASCII
    /// characters, since an action takes no other.
    pub idempotency_key: String,
    /// The run.
    pub run: RunIdentity,
    /// Who calls: the run's agent, in a run.
    pub actor: Arc<Actor>,
    /// The state when the call was made.
    pub snapshot: Snapshot,
    /// Cancelled when the call is not wanted any more. The tool itself need not look at it: its future is dropped.
    pub cancellation: CancellationToken,
    /// Where it says how far it is.
    pub reporter: Reporter,
    /// Whether the run's gate approved exactly this call.
    pub approved: bool,
    /// The answer, where the call waited for one and it is passed to the tool.
    pub decision: Option<Value>,
}

impl ToolContext {
    /// A call that nobody listens to, that was not approved and had not waited.
    pub fn new(
        run: RunIdentity,
        call_id: impl Into<String>,
        idempotency_key: impl Into<String>,
        actor: Arc<Actor>,
        snapshot: Snapshot,
    ) -> Self {
        ToolContext {
            call_id: call_id.into(),
            idempotency_key: idempotency_key.into(),
            run,
            actor,
            snapshot,
            cancellation: CancellationToken::new(),
            reporter: Reporter::none(),
            approved: false,
            decision: None,
        }
    }
}

/// What a tool says while it runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Report {
    /// How far it is.
    Progress {
        /// From 0 to 100, where that is known.
        percent: Option<f64>,
        /// What is going on.
        message: String,
    },
    /// More of what it puts out.
    Output(String),
    /// Something for the log.
    Log(runyard_actions::LogEntry),
    /// Something to look at.
    Artifact(runyard_actions::Artifact),
}

/// Where a tool says how far it is. What listens must not block, and bounds what it keeps.
#[derive(Clone)]
pub struct Reporter(Option<Arc<dyn Fn(Report) + Send + Sync>>);

impl Reporter {
    /// Nobody listens.
    pub const fn none() -> Self {
        Reporter(None)
    }

    /// This listens.
    pub fn new(listen: impl Fn(Report) + Send + Sync + 'static) -> Self {
        Reporter(Some(Arc::new(listen)))
    }

    /// Whether anybody listens.
    pub fn is_heard(&self) -> bool {
        self.0.is_some()
    }

    /// Says something.
    pub fn report(&self, report: Report) {
        if let Some(listen) = &self.0 {
            listen(report);
        }
    }

    /// Says how far it is.
    pub fn progress(&self, percent: f64, message: impl Into<String>) {
        self.report(Report::Progress { percent: Some(percent), message: message.into() });
    }

    /// Says more of what it puts out.
    pub fn output(&self, text: impl Into<String>) {
        self.report(Report::Output(text.into()));
    }
}

impl std::fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolContext")
            .field("call_id", &self.call_id)
            .field("run", &self.run)
            .field("approved", &self.approved)
            .finish_non_exhaustive()
    }
}
