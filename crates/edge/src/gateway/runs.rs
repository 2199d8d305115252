//! Which runs may use the gateway, what each is let through to, and what it has used.
//!
//! Tokens are looked up by their digest, so that the time of a lookup says nothing about any token. How many runs there are is
//! bounded by how many sessions an edge has.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hyper::header::HeaderValue;
use runyard_domain::{RunId, Wire};
use sha2::{Digest as _, Sha256};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use zeroize::Zeroizing;

use super::address::{Address, Unusable};
use super::mask::Forms;
use super::{Upstream, Used};
use crate::Secret;

/// So many requests of one run may be on their way at once.
pub(super) const REQUESTS_MAX: usize = 16;
/// A key may be so long.
const KEY_BYTES_MAX: usize = 8192;
/// Where a provider does not say what an answer cost, so many bytes count as one token.
const BYTES_PER_TOKEN: u64 = 4;

/// The digest of a token.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Digest([u8; 32]);

impl Digest {
    pub(super) fn of(token: &[u8]) -> Self {
        Digest(Sha256::digest(token).into())
    }
}

/// The runs that may use the gateway, by the digest of their token.
#[derive(Default)]
pub(super) struct Runs(Mutex<HashMap<Digest, Arc<Open>>>);

impl Runs {
    pub(super) fn add(&self, digest: Digest, open: Arc<Open>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(digest, open);
    }

    pub(super) fn remove(&self, digest: Digest) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&digest);
    }

    pub(super) fn by_token(&self, token: &[u8]) -> Option<Arc<Open>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&Digest::of(token)).cloned()
    }
}

/// A provider as the gateway uses it.
pub(super) struct Target {
    pub(super) address: Address,
    pub(super) wire: Wire,
    pub(super) forms: Forms,
    key: Secret,
}

impl Target {
    pub(super) fn new(upstream: Upstream) -> Result<Self, Unusable> {
        let Upstream { base_url, wire, key } = upstream;
        let address = Address::parse(&base_url)?;
        let length = key.expose().len();
        if length == 0 || length > KEY_BYTES_MAX || key.expose().iter().any(|byte| !byte.is_ascii_graphic()) {
            return Err(Unusable::Key);
        }
        Ok(Target { address, wire, forms: Forms::of(&key), key })
    }

    /// The header that holds the key. None is impossible: the key was looked at.
    pub(super) fn authorization(&self) -> Option<HeaderValue> {
        let mut value = Zeroizing::new(b"Bearer ".to_vec());
        value.extend_from_slice(self.key.expose());
        let mut header = HeaderValue::from_bytes(&value).ok()?;
        header.set_sensitive(true);
        Some(header)
    }
}

/// A run that may use the gateway.
pub(super) struct Open {
    pub(super) run: RunId,
    pub(super) target: Target,
    tokens_left: Option<u64>,
    used: watch::Sender<Used>,
    places: Arc<Semaphore>,
    /// Its sender is gone when the run may no longer use it.
    closed: watch::Receiver<()>,
    /// What the ids of answers that are made here begin with; no two leases have the same.
    series: u64,
    answers: AtomicU64,
}

impl Open {
    pub(super) fn new(
        run: RunId,
        target: Target,
        tokens_left: Option<u64>,
        closed: watch::Receiver<()>,
        series: u64,
    ) -> Self {
        let places = Arc::new(Semaphore::new(REQUESTS_MAX));
        let used = watch::Sender::default();
        Open { run, target, tokens_left, used, places, closed, series, answers: AtomicU64::default() }
    }

    /// The id of an answer that has none of its provider's.
    pub(super) fn new_answer_id(&self) -> String {
        format!("resp_{:016x}{:08x}", self.series, self.answers.fetch_add(1, Ordering::Relaxed))
    }

    pub(super) fn used(&self) -> watch::Receiver<Used> {
        self.used.subscribe()
    }

    /// Returns when the run may no longer use the gateway.
    pub(super) async fn closed(&self) {
        let mut closed = self.closed.clone();
        while closed.changed().await.is_ok() {}
    }

    /// A place among the run's requests.
    pub(super) fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).try_acquire_owned().ok()
    }

    /// Whether there are tokens left. That there are none is noted. What is on its way is not known to cost anything yet, so requests
    /// side by side can together go past the budget; the next one cannot.
    pub(super) fn has_budget(&self) -> bool {
        let Some(left) = self.tokens_left else { return true };
        let Used { input_tokens, output_tokens, .. } = *self.used.borrow();
        let has_budget = input_tokens.saturating_add(output_tokens) < left;
        if !has_budget {
            self.used.send_if_modified(|used| !std::mem::replace(&mut used.refused_for_budget, true));
        }
        has_budget
    }

    fn add(&self, input_tokens: u64, output_tokens: u64) {
        self.used.send_modify(|used| {
            used.input_tokens = used.input_tokens.saturating_add(input_tokens);
            used.output_tokens = used.output_tokens.saturating_add(output_tokens);
        });
    }
}

/// What one request costs. It is added to what the run has used when this is dropped, however the request ends.
pub(super) struct Tally {
    open: Arc<Open>,
    asked_bytes: usize,
    /// What the model said, in bytes.
    pub(super) said_bytes: u64,
    /// What the provider says that it cost: input and output.
    pub(super) told: Option<(u64, u64)>,
    /// Whether the provider has taken the request, as far as is known.
    counts: bool,
}

impl Tally {
    /// A request that is about to be sent.
    pub(super) fn sent(open: Arc<Open>, asked_bytes: usize) -> Self {
        open.used.send_modify(|used| used.requests += 1);
        Tally { open, asked_bytes, said_bytes: 0, told: None, counts: true }
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
        let estimated = |bytes: u64| bytes.div_ceil(BYTES_PER_TOKEN);
        let (input, output) =
            self.told.unwrap_or_else(|| (estimated(self.asked_bytes as u64), estimated(self.said_bytes)));
        self.open.add(input, output);
    }
}
