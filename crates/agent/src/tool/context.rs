//! What a tool is told beside its arguments.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use runyard_domain::Actor;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::phase::RunIdentity;
use crate::state::Snapshot;

/// What a tool is told beside its arguments.
#[derive(Clone)]
pub struct ToolContext {
    /// By what the result is found. A model may use it again in another answer.
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

/// Where a tool says how far it is.
#[derive(Clone)]
pub struct Reporter(Option<Listener>);

#[derive(Clone)]
enum Listener {
    Function(Arc<dyn Fn(Report) + Send + Sync>),
    Line(Arc<Line>),
}

/// Where reports wait to be told.
pub(crate) struct Line {
    reports: mpsc::Sender<Report>,
    /// So many found no room.
    lost: AtomicU64,
}

impl Line {
    /// How many found no room since this was asked last.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.swap(0, Ordering::Relaxed)
    }
}

impl Reporter {
    /// Nobody listens.
    pub const fn none() -> Self {
        Reporter(None)
    }

    /// This listens. It must not block, and bounds what it keeps.
    pub fn new(listen: impl Fn(Report) + Send + Sync + 'static) -> Self {
        Reporter(Some(Listener::Function(Arc::new(listen))))
    }

    /// So many reports wait to be heard at the other end.
    pub(crate) fn line(waiting_max: usize) -> (Self, Arc<Line>, mpsc::Receiver<Report>) {
        let (reports, heard) = mpsc::channel(waiting_max);
        let line = Arc::new(Line { reports, lost: AtomicU64::new(0) });
        (Reporter(Some(Listener::Line(Arc::clone(&line)))), line, heard)
    }

    /// Whether anybody listens.
    pub fn is_heard(&self) -> bool {
        self.0.is_some()
    }

    /// Says something at once. In a run, what comes faster than it is heard is left out, and how much that was is told.
    pub fn report(&self, report: Report) {
        match &self.0 {
            None => {}
            Some(Listener::Function(listen)) => listen(report),
            Some(Listener::Line(line)) => {
                if let Err(mpsc::error::TrySendError::Full(_)) = line.reports.try_send(report) {
                    line.lost.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }

    /// Says something, and waits until there is room for it: nothing of it is left out.
    pub async fn say(&self, report: Report) {
        match &self.0 {
            // When the call is over nobody hears it any more.
            Some(Listener::Line(line)) => drop(line.reports.send(report).await),
            _ => self.report(report),
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
