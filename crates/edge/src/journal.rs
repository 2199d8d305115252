//! The journal that a backend is given: it hands each batch to its session and waits for the word that it is durable.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use runyard_backend::{Journal, JournalError, Signal};
use tokio::sync::{mpsc, oneshot};

/// How many batches of one backend wait at a time.
const WAITING_MAX: usize = 16;

/// A batch on its way.
pub(crate) struct Entry {
    pub(crate) batch: Vec<Signal>,
    pub(crate) recorded: oneshot::Sender<Result<(), JournalError>>,
}

/// The backend's side.
struct SessionJournal {
    entries: mpsc::Sender<Entry>,
    verdict: Arc<OnceLock<JournalError>>,
}

/// The session's side. When it is gone nothing more is recorded, for the reason that it gave.
pub(crate) struct Entries {
    pub(crate) entries: mpsc::Receiver<Entry>,
    verdict: Arc<OnceLock<JournalError>>,
}

pub(crate) fn journal() -> (Arc<dyn Journal>, Entries) {
    let (sender, entries) = mpsc::channel(WAITING_MAX);
    let verdict = Arc::new(OnceLock::new());
    let journal = SessionJournal { entries: sender, verdict: Arc::clone(&verdict) };
    (Arc::new(journal), Entries { entries, verdict })
}

impl Entries {
    /// Takes nothing more.
    pub(crate) fn close(self, reason: JournalError) {
        let _ = self.verdict.set(reason);
    }
}

#[async_trait]
impl Journal for SessionJournal {
    async fn record(&self, batch: Vec<Signal>) -> Result<(), JournalError> {
        let closed = || self.verdict.get().copied().unwrap_or(JournalError::Stopped);
        let (recorded, answer) = oneshot::channel();
        self.entries.send(Entry { batch, recorded }).await.map_err(|_| closed())?;
        answer.await.unwrap_or_else(|_| Err(closed()))
    }
}
