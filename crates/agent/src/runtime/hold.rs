//! A claim on a thread, renewed for as long as its run goes on.

use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;

use runyard_store::StorageError;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use super::kept::Kept;
use crate::checkpoint::CLAIM_TERM;

/// How often a claim is renewed: twice it may fail before the term is over.
pub const RENEW_EVERY: Duration = Duration::from_secs(10);
/// How soon a renewal that failed is tried again.
const RENEW_AGAIN: Duration = Duration::from_secs(1);

/// So long one renewal may take: one that hangs does not use up the term.
const RENEWAL_MAX: Duration = Duration::from_secs(5);

/// Renews the claim that was asked for at `claimed` until it is dropped. When the claim is lost, or may be since nobody
/// answers, the run is cancelled, and fails with that: another process may be at it.
pub(super) async fn hold(kept: &Kept, claimed: Instant, run: &CancellationToken) -> Infallible {
    let mut until = claimed + CLAIM_TERM;
    let mut wait = RENEW_EVERY;
    let error = loop {
        sleep(wait).await;
        let asked = Instant::now();
        let error = match timeout_at(until.min(asked + RENEWAL_MAX), kept.store().renew()).await {
            Ok(Ok(())) => {
                until = asked + CLAIM_TERM;
                wait = RENEW_EVERY;
                continue;
            }
            Ok(Err(error)) => error,
            Err(_) => StorageError::io("renewing the claim on a thread", "no answer came in time"),
        };
        if matches!(error, StorageError::StaleGeneration { .. }) || Instant::now() + RENEW_AGAIN >= until {
            break error;
        }
        tracing::warn!(%error, "the claim on a thread could not be renewed");
        wait = RENEW_AGAIN;
    };
    tracing::warn!(%error, "the claim on a thread is lost; its run is stopped");
    kept.lose(error.into());
    run.cancel();
    pending().await
}
