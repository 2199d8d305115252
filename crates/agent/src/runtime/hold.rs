//! A claim on a thread, renewed for as long as its run goes on.

use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;

use runyard_store::StorageError;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::checkpoint::{CLAIM_TERM, StoreCheckpoint};

/// How often a claim is renewed: twice it may fail before the term is over.
pub const RENEW_EVERY: Duration = Duration::from_secs(10);
/// How soon a renewal that failed is tried again.
const RENEW_AGAIN: Duration = Duration::from_secs(1);

/// Renews the claim that was asked for at `claimed` until it is dropped. When the claim is lost, or may be since nobody answers, the
/// run is cancelled: another process may be at it.
pub(super) async fn hold(
    checkpoint: &StoreCheckpoint,
    claimed: Instant,
    run: &CancellationToken,
) -> Infallible {
    let mut until = claimed + CLAIM_TERM;
    let mut wait = RENEW_EVERY;
    loop {
        sleep(wait).await;
        let asked = Instant::now();
        wait = match timeout_at(until, checkpoint.renew()).await {
            Ok(Ok(())) => {
                until = asked + CLAIM_TERM;
                RENEW_EVERY
            }
            Ok(Err(StorageError::StaleGeneration { .. })) | Err(_) => break,
            Ok(Err(error)) if Instant::now() < until => {
                tracing::warn!(%error, "the claim on a thread could not be renewed");
                RENEW_AGAIN
            }
            Ok(Err(_)) => break,
        };
    }
    tracing::warn!("the claim on a thread is lost; its run is stopped");
    run.cancel();
    pending().await
}
