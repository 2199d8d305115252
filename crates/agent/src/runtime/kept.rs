//! A checkpoint that knows how much of its thread is durable, and where its run stands.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use async_trait::async_trait;
use runyard_domain::Code;
use runyard_llm::inference::Message;

use super::cache::Known;
use crate::checkpoint::{Checkpoint, CheckpointError, StepCommit, StepLimits, StoreCheckpoint};
use crate::run::RunRecord;

/// A checkpoint that knows how much of its thread is durable.
pub(super) struct Kept {
    inner: StoreCheckpoint,
    known: Known,
    /// How many messages of the thread are durable.
    durable: AtomicUsize,
    record: Mutex<RunRecord>,
    /// Set while nobody knows whether a step is durable.
    is_unsettled: AtomicBool,
    lost: OnceLock<CheckpointError>,
}

impl Kept {
    pub(super) fn new(inner: StoreCheckpoint, known: Known, durable: usize, record: RunRecord) -> Self {
        Kept {
            inner,
            known,
            durable: AtomicUsize::new(durable),
            record: Mutex::new(record),
            is_unsettled: AtomicBool::new(false),
            lost: OnceLock::new(),
        }
    }

    pub(super) fn store(&self) -> &StoreCheckpoint {
        &self.inner
    }

    /// How much was known of the thread when it was opened.
    pub(super) fn known(&self) -> Known {
        self.known
    }

    /// How many messages of the thread are durable.
    pub(super) fn durable(&self) -> usize {
        self.durable.load(Ordering::Acquire)
    }

    /// What is recorded of the run.
    pub(super) fn record(&self) -> RunRecord {
        self.record.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The claim on the thread is lost, or may be.
    pub(super) fn lose(&self, why: CheckpointError) {
        let _ = self.lost.set(why);
    }

    /// Whether nobody knows if the last step is durable: then no other one may come.
    pub(super) fn is_unsettled(&self) -> bool {
        self.is_unsettled.load(Ordering::Acquire)
    }
}

#[async_trait]
impl Checkpoint for Kept {
    fn stored(&self, message: Message) -> Message {
        self.inner.stored(message)
    }

    fn limits(&self) -> StepLimits {
        self.inner.limits()
    }

    async fn commit(&self, step: StepCommit) -> Result<(), CheckpointError> {
        let (messages, record) = (step.messages.len(), step.record.clone());
        // It stays set when the future is dropped.
        self.is_unsettled.store(true, Ordering::Release);
        let committed = self.inner.commit(step).await;
        let is_unknown = matches!(&committed, Err(error) if error.code == Code::StorageCommitUnknown);
        self.is_unsettled.store(is_unknown, Ordering::Release);
        committed?;
        self.durable.fetch_add(messages, Ordering::AcqRel);
        *self.record.lock().unwrap_or_else(PoisonError::into_inner) = record;
        Ok(())
    }

    fn is_one_with_observers(&self) -> bool {
        self.inner.is_one_with_observers()
    }

    fn is_read_back(&self) -> bool {
        true
    }

    fn lost(&self) -> Option<CheckpointError> {
        self.lost.get().cloned()
    }

    async fn give_up(&self) {
        self.inner.give_up().await;
    }
}
