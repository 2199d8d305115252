//! Idempotency keys in memory: bounded in number, size and age, gone with the process.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::sync::watch;

use super::{Begin, Claim, IdempotencyScope, IdempotencyStore, Waiting, is_kept};
use crate::safe_json::{OUTPUT_BYTES_MAX, check_limits, to_safe_value};
use crate::{ActionError, Envelope};

const ENTRIES_MAX: usize = 10_000;
const BYTES_MAX: usize = 64 * 1024 * 1024;
const KEPT_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// Keeps results in memory for a day.
#[derive(Clone, Default)]
pub struct MemoryIdempotency(Arc<Mutex<Table>>);

#[derive(Default)]
struct Table {
    entries: HashMap<IdempotencyScope, Entry>,
    /// Settled keys, oldest first.
    settled: VecDeque<(IdempotencyScope, Instant)>,
    bytes: usize,
}

struct Entry {
    fingerprint: [u8; 32],
    state: State,
}

enum State {
    Running(watch::Receiver<Option<Arc<Envelope>>>),
    Settled { envelope: Arc<Envelope>, bytes: usize },
}

impl MemoryIdempotency {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn forget_old(&mut self, now: Instant) {
        while let Some((_, since)) = self.settled.front() {
            let full = self.entries.len() >= ENTRIES_MAX || self.bytes > BYTES_MAX;
            if !full && now.duration_since(*since) < KEPT_FOR {
                break;
            }
            if let Some((scope, _)) = self.settled.pop_front()
                && let Some(Entry { state: State::Settled { bytes, .. }, .. }) = self.entries.remove(&scope)
            {
                self.bytes -= bytes;
            }
        }
    }
}

#[async_trait]
impl IdempotencyStore for MemoryIdempotency {
    async fn begin(&self, scope: IdempotencyScope, fingerprint: [u8; 32]) -> Result<Begin, ActionError> {
        let mut table = self.table();
        table.forget_old(Instant::now());
        if let Some(entry) = table.entries.get(&scope) {
            return Ok(match &entry.state {
                _ if entry.fingerprint != fingerprint => Begin::OtherInput,
                State::Running(result) => Begin::InFlight(Box::new(MemoryWaiting(result.clone()))),
                State::Settled { envelope, .. } => Begin::Done(Box::new(Envelope::clone(envelope))),
            });
        }
        if table.entries.len() >= ENTRIES_MAX {
            return Ok(Begin::Full);
        }
        let (sender, receiver) = watch::channel(None);
        table.entries.insert(scope.clone(), Entry { fingerprint, state: State::Running(receiver) });
        drop(table);
        Ok(Begin::Run(Box::new(MemoryClaim { store: self.clone(), scope: Some(scope), sender })))
    }
}

struct MemoryClaim {
    store: MemoryIdempotency,
    /// Taken when settled.
    scope: Option<IdempotencyScope>,
    sender: watch::Sender<Option<Arc<Envelope>>>,
}

#[async_trait]
impl Claim for MemoryClaim {
    async fn settle(mut self: Box<Self>, envelope: &Envelope) -> Result<(), ActionError> {
        let shared = Arc::new(envelope.clone());
        if is_kept(envelope)
            && let Some(scope) = self.scope.take()
        {
            let size = to_safe_value(envelope).and_then(|value| check_limits(&value, usize::MAX));
            let bytes = size.unwrap_or(OUTPUT_BYTES_MAX);
            let mut table = self.store.table();
            if let Some(entry) = table.entries.get_mut(&scope) {
                entry.state = State::Settled { envelope: Arc::clone(&shared), bytes };
                table.bytes += bytes;
                table.settled.push_back((scope, Instant::now()));
            }
        }
        self.sender.send_replace(Some(shared));
        Ok(())
    }
}

impl Drop for MemoryClaim {
    fn drop(&mut self) {
        if let Some(scope) = self.scope.take() {
            self.store.table().entries.remove(&scope);
        }
    }
}

struct MemoryWaiting(watch::Receiver<Option<Arc<Envelope>>>);

#[async_trait]
impl Waiting for MemoryWaiting {
    async fn result(mut self: Box<Self>) -> Option<Envelope> {
        // An error means that the claim was dropped; a result sent just before that is still there.
        let _ = self.0.wait_for(Option::is_some).await;
        let result = self.0.borrow().clone();
        result.map(|envelope| Envelope::clone(&envelope))
    }
}
