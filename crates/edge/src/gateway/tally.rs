//! What one request costs: set aside before it is sent, and counted when it ends, however it ends.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::course::Cost;
use super::refusal::Refusal;
use super::runs::{Asked, Open};

/// Where a provider does not say what something cost, so many bytes count as one token.
const BYTES_PER_TOKEN: u64 = 4;

fn estimated(bytes: u64) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN)
}

/// Tokens that are set aside for a request of which nobody knows yet what it costs. They are free again when this is dropped.
pub(super) struct Reserved {
    open: Arc<Open>,
    tokens: u64,
}

impl Reserved {
    /// Sets aside what a request of so many bytes will cost at least. Where the budget may be used up by what is already on its way,
    /// that is waited for: only what was counted can end a run.
    pub(super) async fn of(open: &Arc<Open>, bytes: u64, limit: Duration) -> Result<Self, Refusal> {
        let tokens = estimated(bytes).max(1);
        let mut pending = open.pending();
        let reserving = async {
            loop {
                pending.borrow_and_update();
                match open.reserve(tokens) {
                    Asked::Granted => return Ok(Reserved { open: Arc::clone(open), tokens }),
                    Asked::Spent => return Err(Refusal::Budget),
                    Asked::Closed => return Err(Refusal::Unauthorized),
                    Asked::Later => {}
                }
                if pending.changed().await.is_err() {
                    return Err(Refusal::Unauthorized);
                }
            }
        };
        timeout(limit, reserving).await.unwrap_or(Err(Refusal::Busy))
    }

    /// It is known how large the request is.
    pub(super) fn resize(&mut self, bytes: usize) {
        let tokens = estimated(bytes as u64).max(1);
        self.open.resize(self.tokens, tokens);
        self.tokens = tokens;
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.open.release(self.tokens);
    }
}

/// What one request costs. It is added to what the run has used when this is dropped.
pub(super) struct Tally {
    asked_bytes: usize,
    /// What the model said, in bytes.
    pub(super) said_bytes: u64,
    /// What the provider says that it cost; the rest is estimated.
    pub(super) told: Cost,
    /// Whether the provider has taken the request, as far as is known.
    counts: bool,
    /// Released after it is counted, so that at no time both are missing.
    reserved: Reserved,
}

impl Tally {
    /// A request that is about to be sent.
    pub(super) fn sent(reserved: Reserved, asked_bytes: usize) -> Self {
        reserved.open.add_request();
        Tally { asked_bytes, said_bytes: 0, told: Cost::default(), counts: true, reserved }
    }

    /// The provider refused it, or was not reached: it cost nothing.
    pub(super) fn void(mut self) {
        self.counts = false;
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        if !self.counts {
            return;
        }
        let input = self.told.input_tokens.unwrap_or_else(|| estimated(self.asked_bytes as u64));
        let output = self.told.output_tokens.unwrap_or_else(|| estimated(self.said_bytes));
        self.reserved.open.add(input, output);
    }
}
