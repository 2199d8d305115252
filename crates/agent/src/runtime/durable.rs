//! The store of a runtime: opening a thread for a run, and what is remembered of it.

use std::sync::{Arc, Mutex, PoisonError};

use runyard_domain::RunId;
use runyard_llm::inference::{Jitter, Message, SeededJitter};
use runyard_redact::{Kind, Redactor};
use runyard_store::threads::plan::THREAD_PARTS_MAX;
use runyard_store::{AgentRunRow, StorageError, ThreadId, ThreadRunStore};

use super::cache::{Cache, Known, Remembered};
use super::kept::Kept;
use crate::checkpoint::{CheckpointError, OpenError, Opened, StoreCheckpoint, bytes_stored};

/// Where a runtime keeps conversations and runs.
pub(crate) struct Durable {
    store: Arc<dyn ThreadRunStore>,
    redactor: Redactor,
    /// What this runtime goes by among those who use the store.
    owner: String,
    cache: Mutex<Cache>,
}

impl Durable {
    pub(crate) fn new(store: Arc<dyn ThreadRunStore>, redactor: Redactor, cache_bytes: usize) -> Self {
        let chance = SeededJitter::from_chance();
        let owner = format!("agents-{:016x}{:016x}", chance.roll(), chance.roll());
        Durable { store, redactor, owner, cache: Mutex::new(Cache::new(cache_bytes)) }
    }

    /// Takes a thread for a run and gives what is stored. Of the conversation only that is read which is not remembered.
    pub(super) async fn open(&self, thread_id: &str, run_id: RunId) -> Result<(Kept, Opened), OpenError> {
        let (store, redactor) = (Arc::clone(&self.store), self.redactor.clone());
        let names = (thread_id, &*run_id.to_string(), self.owner.as_str());
        let mut known = Known::default();
        // Who is refused leaves what is remembered to the run that has the thread.
        let remembered = |generation| {
            let incarnation = incarnation(generation);
            let found = self.cache().take(thread_id);
            // Another thread of the same name may have been there before, and what is remembered is of that one.
            let found = found.filter(|remembered| remembered.incarnation == incarnation);
            let messages;
            (messages, known) =
                found.map_or_else(|| (Vec::new(), Known::nothing(incarnation)), Remembered::into_known);
            messages
        };
        let (inner, opened) = StoreCheckpoint::open_with(store, redactor, names, remembered).await?;
        let record = opened.record.clone().unwrap_or_default();
        Ok((Kept::new(inner, known, opened.messages.len(), record), opened))
    }

    /// A run on the thread is over or waits: what is durable of the conversation, which is its beginning, is remembered.
    pub(super) fn close(&self, thread_id: &Arc<str>, kept: &Kept, mut conversation: Vec<Arc<Message>>) {
        if conversation.len() < kept.durable() {
            return;
        }
        conversation.truncate(kept.durable());
        self.cache().put(Arc::clone(thread_id), kept.known().with(conversation));
    }

    /// How many bytes a message has as it is stored.
    pub(super) fn bytes_of(&self, message: &Message) -> usize {
        bytes_stored(&self.redactor, message)
    }

    /// The run of a thread that is not over.
    pub(super) async fn unfinished(&self, thread_id: &str) -> Result<Option<AgentRunRow>, CheckpointError> {
        let safe = self.redactor.text(Kind::Text, thread_id);
        if *safe != thread_id {
            return Err(StorageError::invalid("a name holds what looks like a secret").into());
        }
        let thread = ThreadId::new(safe)?;
        Ok(self.store.unfinished_run(&thread).await?)
    }

    fn cache(&self) -> std::sync::MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Which thread of its name a claim is for: one that is made anew begins its generations beyond those of the one before it
/// (see [`first_generation`](runyard_store::threads::plan::first_generation)).
fn incarnation(generation: u64) -> u64 {
    generation / (THREAD_PARTS_MAX + 1)
}
