//! The one thread that writes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, ThreadId};

use runyard_domain::AppendId;
use runyard_store::plan::Prepared;
use runyard_store::threads::plan::PreparedCommit;
use runyard_store::{Appended, Committed, StorageError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::checkpoint::LogKeeper;
use crate::errand::{AppendJob, Errand, Job};
use crate::fault::{Kind, Trouble};
use crate::group::{Committer, Message, gather};
use crate::ledger::Ledger;
use crate::lock::Possession;
use crate::poison::Poison;
use crate::thread_commit::CommitJob;

/// How many jobs wait; whoever comes then waits for a place.
const WAITING_MAX: usize = 4_096;
/// How many KiB of changes wait.
const WAITING_KIB_MAX: u32 = 64 * 1024;

/// What the thread owns.
pub(crate) struct WriterParts {
    pub(crate) committer: Committer,
    pub(crate) keeper: LogKeeper,
    pub(crate) possession: Possession,
    pub(crate) group_events_max: usize,
}

/// The way to the thread.
pub(crate) struct Writer {
    jobs: Option<mpsc::Sender<Message>>,
    room: Arc<Semaphore>,
    thread: Mutex<Option<JoinHandle<()>>>,
    thread_id: ThreadId,
    poison: Arc<Poison>,
}

impl Writer {
    pub(crate) fn start(parts: WriterParts) -> Result<Self, StorageError> {
        let (jobs, waiting) = mpsc::channel(WAITING_MAX);
        let poison = Arc::clone(&parts.committer.poison);
        let at_panic = Arc::clone(&poison);
        let thread = std::thread::Builder::new()
            .name("sqlite-writer".to_owned())
            .spawn(move || {
                if catch_unwind(AssertUnwindSafe(|| parts.run(waiting))).is_err() {
                    at_panic.end("the writer panicked");
                }
            })
            .map_err(|error| StorageError::io("starting a thread", error))?;
        let thread_id = thread.thread().id();
        let room = Arc::new(Semaphore::new(WAITING_KIB_MAX as usize));
        Ok(Writer { jobs: Some(jobs), room, thread: Mutex::new(Some(thread)), thread_id, poison })
    }

    /// Makes a change, and returns when it is durable.
    pub(crate) async fn append(&self, prepared: Prepared) -> Result<Appended, StorageError> {
        let append: AppendId = prepared.append;
        let room = self.room(prepared.size()).await?;
        let (job, answered) = AppendJob::answered(prepared, room);
        self.send(job).await?;
        match answered.await {
            Ok(answer) => answer.appended,
            Err(_) => Err(StorageError::unknown(append)),
        }
    }

    /// Makes a commit to a thread, and returns when it is durable.
    pub(crate) async fn commit(&self, prepared: PreparedCommit) -> Result<Committed, StorageError> {
        let append = prepared.append;
        let room = self.room(prepared.size()).await?;
        let (job, answered) = CommitJob::answered(prepared, room);
        self.send(job).await?;
        match answered.await {
            Ok(answer) => answer.committed,
            Err(_) => Err(StorageError::unknown(append)),
        }
    }

    /// Waits for room for so many bytes.
    async fn room(&self, bytes: usize) -> Result<OwnedSemaphorePermit, StorageError> {
        let kib = u32::try_from(bytes / 1024 + 1).unwrap_or(u32::MAX).min(WAITING_KIB_MAX);
        Arc::clone(&self.room).acquire_many_owned(kib).await.map_err(|_| closed())
    }

    /// Does something in the writer's transaction, and returns when it is durable.
    pub(crate) async fn ask<T, W>(&self, work: W) -> Result<T, StorageError>
    where
        T: Send + 'static,
        W: FnMut(&mut Ledger) -> Result<T, Trouble> + Send + 'static,
    {
        self.ask_then(work, |_| {}).await
    }

    /// The same, with something that is done once it is durable, before the writer goes on.
    pub(crate) async fn ask_then<T, W, A>(&self, work: W, after: A) -> Result<T, StorageError>
    where
        T: Send + 'static,
        W: FnMut(&mut Ledger) -> Result<T, Trouble> + Send + 'static,
        A: FnOnce(&T) + Send + 'static,
    {
        let (job, answered): (_, oneshot::Receiver<_>) = Errand::answered(work, after);
        self.send(job).await?;
        answered.await.unwrap_or(Err(StorageError::Poisoned))
    }

    async fn send(&self, job: Box<dyn Job>) -> Result<(), StorageError> {
        self.poison.check()?;
        let jobs = self.jobs.as_ref().ok_or_else(closed)?;
        jobs.send(Message::Job(job)).await.map_err(|_| closed())
    }

    pub(crate) fn poison(&self) -> &Poison {
        &self.poison
    }

    /// Takes nothing more, and gives what to wait for until everything is written.
    pub(crate) async fn close(&self) -> Option<JoinHandle<()>> {
        if let Some(jobs) = &self.jobs {
            // It has closed already if it cannot be sent.
            let _ = jobs.send(Message::Close).await;
        }
        self.take_thread()
    }

    fn take_thread(&self) -> Option<JoinHandle<()>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for Writer {
    /// What is waiting is still written, and the file is free afterwards.
    fn drop(&mut self) {
        self.jobs = None;
        // The last owner of a store may be a function that the writer itself has just called.
        if std::thread::current().id() != self.thread_id
            && let Some(thread) = self.take_thread()
        {
            let _ = thread.join();
        }
    }
}

fn closed() -> StorageError {
    StorageError::io("writing to the database", "the store is closed")
}

impl WriterParts {
    fn run(mut self, mut waiting: mpsc::Receiver<Message>) {
        let mut held = None;
        while let Some(message) = held.take().or_else(|| waiting.blocking_recv()) {
            match message {
                Message::Job(first) => {
                    let jobs = gather(first, &mut waiting, &mut held, self.group_events_max);
                    self.committer.settle(jobs);
                    self.look_after_the_log();
                }
                Message::Close => waiting.close(),
            }
        }
        self.finish();
    }

    fn look_after_the_log(&mut self) {
        if self.committer.poison.is_set() {
            return;
        }
        if let Err(error) = self.keeper.look(&self.committer.ledger.connection) {
            match Kind::of(&error) {
                Kind::Unsynced => self.committer.poison.end(&error.to_string()),
                // Everything stays in the log until it works.
                _ => tracing::warn!(%error, "a checkpoint failed"),
            }
        }
    }

    fn finish(mut self) {
        if self.committer.poison.is_set() {
            return;
        }
        let ledger = &mut self.committer.ledger;
        let finished = ledger.save_time().and_then(|()| self.keeper.finish(&ledger.connection));
        if let Err(error) = finished {
            if Kind::of(&error) == Kind::Unsynced {
                self.committer.poison.end(&error.to_string());
            }
            tracing::warn!(%error, "the log could not be brought into the database; that is done at the next start");
        }
        drop(self.committer);
        drop(self.possession);
    }
}
