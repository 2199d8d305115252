//! Which runs may use the gateway, what each is let through to, and what it has used.
//!
//! Tokens are looked up by their digest, so that the time of a lookup says nothing about any token. How many runs there are is
//! bounded by how many sessions an edge has.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hyper::header::{AUTHORIZATION, HeaderName, HeaderValue};
use runyard_domain::{RunId, Wire};
use runyard_llm::http::{Address, Unusable, is_key};
use sha2::{Digest as _, Sha256};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use zeroize::Zeroizing;

use super::mask::Forms;
use super::{Upstream, Used};
use crate::Secret;

/// So many requests of one run may be on their way at once.
pub(super) const REQUESTS_MAX: usize = 4;
/// So many connections of one run may be there at once, with those that are being refused.
pub(super) const CONNECTIONS_MAX: usize = 32;

/// Where clients of Anthropic Messages put their key.
pub(super) const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

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

    pub(super) fn find(&self, digest: Digest) -> Option<Arc<Open>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&digest).cloned()
    }
}

/// A provider as the gateway uses it.
pub(super) struct Target {
    pub(super) address: Address,
    pub(super) wire: Wire,
    pub(super) spoken: Wire,
    pub(super) forms: Forms,
    key: Secret,
}

impl Target {
    pub(super) fn new(upstream: Upstream, spoken: Wire) -> Result<Self, Unusable> {
        let Upstream { base_url, wire, key } = upstream;
        let address = Address::parse(&base_url)?;
        if !is_key(key.expose()) {
            return Err(Unusable::Key);
        }
        Ok(Target { address, wire, spoken, forms: Forms::of(&key), key })
    }

    /// The header that holds the key, as what the provider speaks wants it. None is impossible: the key was looked at.
    pub(super) fn authorization(&self) -> Option<(HeaderName, HeaderValue)> {
        let (name, prefix): (_, &[u8]) = match self.wire {
            Wire::Responses | Wire::Chat => (AUTHORIZATION, b"Bearer "),
            Wire::Messages => (API_KEY, b""),
        };
        let mut value = Zeroizing::new(prefix.to_vec());
        value.extend_from_slice(self.key.expose());
        let mut header = HeaderValue::from_bytes(&value).ok()?;
        header.set_sensitive(true);
        Some((name, header))
    }
}

/// A run that may use the gateway.
pub(super) struct Open {
    pub(super) run: RunId,
    pub(super) target: Target,
    tokens_left: Option<u64>,
    used: watch::Sender<Used>,
    pending: watch::Sender<Pending>,
    places: Arc<Semaphore>,
    connections: Arc<Semaphore>,
    /// What the ids of answers that are made here begin with; no two leases have the same.
    series: u64,
    answers: AtomicU64,
}

/// What is on its way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pending {
    pub(super) requests: usize,
    /// What is set aside for them.
    tokens: u64,
    /// Whether the run may no longer use the gateway.
    is_closed: bool,
}

/// What becomes of a request that asks for its part of the budget.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Granted,
    /// There may be nothing left once what is on its way is counted.
    Later,
    Spent,
    Closed,
}

impl Open {
    pub(super) fn new(run: RunId, target: Target, tokens_left: Option<u64>, series: u64) -> Self {
        Open {
            run,
            target,
            tokens_left,
            used: watch::Sender::default(),
            pending: watch::Sender::default(),
            places: Arc::new(Semaphore::new(REQUESTS_MAX)),
            connections: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
            series,
            answers: AtomicU64::default(),
        }
    }

    /// The id of an answer that has none of its provider's.
    pub(super) fn new_answer_id(&self) -> String {
        format!("resp_{:016x}{:08x}", self.series, self.answers.fetch_add(1, Ordering::Relaxed))
    }

    pub(super) fn used(&self) -> watch::Receiver<Used> {
        self.used.subscribe()
    }

    pub(super) fn pending(&self) -> watch::Receiver<Pending> {
        self.pending.subscribe()
    }

    /// From now on no request is let through, and those on their way are cut.
    pub(super) fn close(&self) {
        self.pending.send_modify(|pending| pending.is_closed = true);
    }

    /// Returns when the run may no longer use the gateway.
    pub(super) async fn closed(&self) {
        let _ = self.pending().wait_for(|pending| pending.is_closed).await;
    }

    /// Returns when nothing is on its way, so that all is counted.
    pub(super) async fn settled(&self) {
        let _ = self.pending().wait_for(|pending| pending.requests == 0).await;
    }

    /// A place among the run's requests.
    pub(super) fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).try_acquire_owned().ok()
    }

    /// A place among the run's connections.
    pub(super) fn connection(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.connections).try_acquire_owned().ok()
    }

    /// Sets tokens aside, as long as there are some that are neither used nor set aside. That none are left is noted.
    pub(super) fn reserve(&self, tokens: u64) -> Asked {
        let mut asked = Asked::Granted;
        self.pending.send_if_modified(|pending| {
            let Used { input_tokens, output_tokens, .. } = *self.used.borrow();
            let used = input_tokens.saturating_add(output_tokens);
            asked = match self.tokens_left {
                _ if pending.is_closed => Asked::Closed,
                Some(left) if used >= left => Asked::Spent,
                Some(left) if used.saturating_add(pending.tokens) >= left => Asked::Later,
                _ => Asked::Granted,
            };
            let is_granted = asked == Asked::Granted;
            if is_granted {
                pending.requests += 1;
                pending.tokens = pending.tokens.saturating_add(tokens);
            }
            is_granted
        });
        if asked == Asked::Spent {
            self.used.send_if_modified(|used| !std::mem::replace(&mut used.refused_for_budget, true));
        }
        asked
    }

    /// What is set aside for a request changes.
    pub(super) fn resize(&self, from: u64, to: u64) {
        self.pending.send_modify(|pending| pending.tokens = pending.tokens.saturating_sub(from) + to);
    }

    /// A request is over, and was counted.
    pub(super) fn release(&self, tokens: u64) {
        self.pending.send_modify(|pending| {
            pending.requests -= 1;
            pending.tokens = pending.tokens.saturating_sub(tokens);
        });
    }

    pub(super) fn add_request(&self) {
        self.used.send_modify(|used| used.requests += 1);
    }

    pub(super) fn add(&self, input_tokens: u64, output_tokens: u64) {
        self.used.send_modify(|used| {
            used.input_tokens = used.input_tokens.saturating_add(input_tokens);
            used.output_tokens = used.output_tokens.saturating_add(output_tokens);
        });
    }
}
