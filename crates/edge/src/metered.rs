//! What the gateway counts of a run, as the run says it.

use runyard_backend::Signal;
use runyard_backend::link::OpenRun;
use runyard_domain::run::{Exceeded, Usage};
use tokio::sync::watch;

use crate::gateway::{Lease, Used};

/// What the gateway counts, on top of what the run used before.
pub(crate) struct Metered {
    used: watch::Receiver<Used>,
    before: Usage,
    allowed: Option<u64>,
}

impl Metered {
    pub(crate) fn new(open: &OpenRun, lease: &Lease) -> Self {
        let allowed = open.execution_policy.budget.as_ref().and_then(|budget| budget.tokens);
        Metered { used: lease.used(), before: open.usage.unwrap_or_default(), allowed }
    }

    /// Waits until something more was counted; for ever where nothing is.
    pub(crate) async fn changed(metered: &mut Option<Self>) {
        let counts = match metered {
            Some(metered) => metered.used.changed().await.is_ok(),
            None => false,
        };
        if !counts {
            std::future::pending::<()>().await;
        }
    }

    /// What the run used by now, if that was not looked at yet.
    pub(crate) fn pending(&mut self) -> Option<Signal> {
        let pending = self.used.has_changed().unwrap_or(true);
        self.used.mark_unchanged();
        pending.then(|| self.status())
    }

    /// What the run used by now.
    pub(crate) fn status(&self) -> Signal {
        let used = *self.used.borrow();
        let sum = |before: Option<u64>, more: u64| Some(before.unwrap_or_default().saturating_add(more));
        let usage = Usage {
            input_tokens: sum(self.before.input_tokens, used.input_tokens),
            output_tokens: sum(self.before.output_tokens, used.output_tokens),
            cost_usd: None,
        };
        let phase = "working".to_owned();
        Signal::Status { phase, model: None, version: None, thread: None, usage: Some(usage) }
    }

    /// By how much its budget is used up, once a request was refused for it.
    pub(crate) fn exceeded(&self) -> Option<Exceeded> {
        let used = *self.used.borrow();
        let allowed = self.allowed.filter(|_| used.refused_for_budget)?;
        let before = self.before.tokens().unwrap_or_default();
        let used = before.saturating_add(used.input_tokens).saturating_add(used.output_tokens);
        Some(Exceeded::Tokens { allowed, used })
    }
}
