//! Hooks: told when an invocation starts and ends; they cannot change it, break it or hold it up for long.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::caught::caught;
use crate::{Context, Envelope};

/// A hook that takes longer is given up.
const HOOK_TIME_MAX: Duration = Duration::from_secs(5);

/// Observes invocations, for audit and metrics.
///
/// It is told the invocation and its frozen envelope, never the raw input. A hook that panics or takes too long is given up
/// and the invocation goes on.
#[async_trait]
pub trait Hook: Send + Sync {
    /// An invocation of a known action begins.
    async fn started(&self, _context: &Context) {}

    /// An invocation ended, by whatever way, also by its caller going away.
    async fn ended(&self, _envelope: &Envelope) {}
}

pub(crate) async fn tell_started(hooks: &[Arc<dyn Hook>], context: &Context) {
    for hook in hooks {
        settle(async { hook.started(context).await }).await;
    }
}

pub(crate) async fn tell_ended(hooks: &[Arc<dyn Hook>], envelope: &Envelope) {
    for hook in hooks {
        settle(async { hook.ended(envelope).await }).await;
    }
}

async fn settle(told: impl Future<Output = ()> + Send) {
    match caught(async { tokio::time::timeout(HOOK_TIME_MAX, told).await }).await {
        Ok(Ok(())) => {}
        Ok(Err(_)) => {
            tracing::error!("a hook took longer than {} s and was given up", HOOK_TIME_MAX.as_secs())
        }
        Err(panicked) => {
            tracing::error!(detail = runyard_redact::process::text(&panicked.0), "a hook panicked")
        }
    }
}
