//! The registry in memory: taken from the row once, then moved on by the log, whoever writes to it.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use runyard_store::{Break, BreakKind, LoggedEvent, RunRow, Store, Tail};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::INSTALLATION;
use super::error::InstallationError;
use super::registry::{Registry, registry_fact};

/// How many events are read at once.
pub(super) const PAGE: u32 = 500;
/// How long to wait before the log is followed again after an error.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The registry, and how far it has come.
pub(super) struct Current {
    store: Arc<dyn Store>,
    fold: Mutex<Fold>,
    /// The place of the last event that changed the registry.
    changed: watch::Sender<u64>,
}

struct Fold {
    sequence: u64,
    registry: Arc<Registry>,
}

impl Current {
    pub(super) fn at(store: Arc<dyn Store>, row: &RunRow) -> Result<Self, InstallationError> {
        let fold = Fold { sequence: row.sequence, registry: Arc::new(Registry::of(row)?) };
        Ok(Current { store, fold: Mutex::new(fold), changed: watch::Sender::new(row.sequence) })
    }

    pub(super) fn registry(&self) -> Arc<Registry> {
        Arc::clone(&self.fold().registry)
    }

    pub(super) fn changed(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Reads what is missing up to this place.
    pub(super) async fn catch_up(&self, to: u64) -> Result<(), InstallationError> {
        loop {
            let after = self.fold().sequence;
            if after >= to {
                return Ok(());
            }
            let events = self.store.read(INSTALLATION, after, PAGE).await?;
            if events.is_empty() {
                return Err(missing(after + 1));
            }
            self.advance(&events)?;
        }
    }

    /// Takes in events that come right after one that is known; those that are known already may be among them.
    fn advance(&self, events: &[LoggedEvent]) -> Result<(), InstallationError> {
        let mut fold = self.fold();
        for event in events {
            if event.sequence <= fold.sequence {
                continue;
            }
            if event.sequence != fold.sequence + 1 {
                return Err(missing(fold.sequence + 1));
            }
            if let Some((at, by, fact)) = registry_fact(event)? {
                Arc::make_mut(&mut fold.registry).apply(at, by, fact);
                self.changed.send_replace(event.sequence);
            }
            fold.sequence = event.sequence;
        }
        Ok(())
    }

    /// What is behind the lock stays whole even if a thread panicked while it held it.
    fn fold(&self) -> MutexGuard<'_, Fold> {
        self.fold.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn follow(&self) -> Result<Infallible, InstallationError> {
        let from = self.fold().sequence;
        let mut tail = Tail::open(Arc::clone(&self.store), INSTALLATION, from).await?;
        loop {
            let events = tail.next().await?;
            self.advance(&events)?;
        }
    }
}

fn missing(sequence: u64) -> InstallationError {
    InstallationError::Broken(Break { sequence, kind: BreakKind::Missing })
}

/// A task that goes on following the log until this is dropped.
pub(super) struct Follower(AbortHandle);

impl Follower {
    pub(super) fn of(current: &Arc<Current>) -> Self {
        let current = Arc::clone(current);
        let task = tokio::spawn(async move {
            loop {
                let Err(error) = current.follow().await;
                // What is known stays in force meanwhile; own changes are taken in by whoever makes them.
                tracing::warn!(code = %error.code(), %error, "the installation's log cannot be followed");
                tokio::time::sleep(RETRY_AFTER).await;
            }
        });
        Follower(task.abort_handle())
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.0.abort();
    }
}
