//! Checkpoints: bringing what is in the write-ahead log into the database file, so that the log can start anew.
//!
//! A thread of its own does the work beside the writer. A log can start anew only when all of it is in the database, which
//! under a steady load is never so by itself; so when little is left, the writer does that little between two groups. Only
//! a reader that stays in one long transaction can hold this up, and then the log grows until it ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use runyard_store::StorageError;
use rusqlite::Connection;

use crate::connection::{self, BUSY_WAIT};
use crate::fault::Kind;
use crate::paths::Paths;
use crate::poison::Poison;

/// So much new in the log is worth a checkpoint beside the writer.
const STEP_BYTES: u64 = 4 * 1024 * 1024;
/// From this size on, the log is to start anew as soon as little is left to do for it.
const TURN_BYTES: u64 = 40 * 1024 * 1024;
/// So much may be left then.
const LEFT_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// At this size the writer does whatever is left.
const WAL_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// How far the log grows before the writer tries again, when a reader was in the way.
const AGAIN_BYTES: u64 = 4 * 1024 * 1024;
/// The same when the reader stays for long.
const AGAIN_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// How long the writer waits for readers to finish their page.
const READERS_WAIT: Duration = Duration::from_millis(20);
/// The same when the log is as large as it may be.
const READERS_WAIT_MAX: Duration = Duration::from_millis(200);
/// After so long without a write, everything is brought into the database.
const IDLE: Duration = Duration::from_secs(1);

/// How full the log is, in pages.
#[derive(Debug, Default)]
pub(crate) struct Gauge {
    written: AtomicU32,
    done: AtomicU32,
    page_bytes: AtomicU64,
}

impl Gauge {
    fn bytes(&self, pages: u32) -> u64 {
        u64::from(pages) * self.page_bytes.load(Ordering::Relaxed)
    }
}

/// The writer's part.
pub(crate) struct LogKeeper {
    gauge: Arc<Gauge>,
    wake: SyncSender<()>,
    woken_at: u64,
    again_at: u64,
    worker: Option<JoinHandle<()>>,
}

/// What a checkpoint did.
struct Checkpointed {
    is_complete: bool,
    pages_done: u32,
}

impl LogKeeper {
    /// Watches the log that `writer` writes, and starts the thread that checkpoints it.
    pub(crate) fn start(
        writer: &mut Connection,
        paths: &Paths,
        poison: Arc<Poison>,
    ) -> Result<Self, StorageError> {
        let fault = |error| crate::fault::translate("opening the database", &paths.name, error);
        let gauge = Arc::new(Gauge::default());
        let page_bytes: u32 =
            writer.pragma_query_value(None, "page_size", |row| row.get(0)).map_err(fault)?;
        gauge.page_bytes.store(u64::from(page_bytes), Ordering::Relaxed);
        let watched = Arc::clone(&gauge);
        let hook = move |_: &mut rusqlite::hooks::Wal, pages: i32| {
            watched.written.store(u32::try_from(pages).unwrap_or(0), Ordering::Relaxed);
            Ok(())
        };
        writer.wal_hook(Some(hook)).map_err(fault)?;
        let connection = connection::open_for_checkpoints(paths)?;
        let (wake, woken) = sync_channel(1);
        let worker = Worker { connection, gauge: Arc::clone(&gauge), poison, woken };
        let worker = std::thread::Builder::new()
            .name("sqlite-checkpoint".to_owned())
            .spawn(move || worker.run())
            .map_err(|error| StorageError::io("starting a thread", error))?;
        Ok(LogKeeper { gauge, wake, woken_at: 0, again_at: 0, worker: Some(worker) })
    }

    /// Looks after the log between two groups.
    pub(crate) fn look(&mut self, writer: &Connection) -> rusqlite::Result<()> {
        let written = self.gauge.written.load(Ordering::Relaxed);
        let size = self.gauge.bytes(written);
        if size < self.woken_at {
            // It started anew.
            (self.woken_at, self.again_at) = (0, 0);
        }
        let done = self.gauge.done.load(Ordering::Relaxed).min(written);
        let is_near = size >= TURN_BYTES && self.gauge.bytes(written - done) <= LEFT_BYTES_MAX;
        if (is_near || size >= WAL_BYTES_MAX) && size >= self.again_at {
            writer.busy_timeout(if size >= WAL_BYTES_MAX { READERS_WAIT_MAX } else { READERS_WAIT })?;
            let turned = checkpoint(writer, "RESTART");
            writer.busy_timeout(BUSY_WAIT)?;
            if turned?.is_complete {
                self.gauge.done.store(0, Ordering::Relaxed);
                self.gauge.written.store(0, Ordering::Relaxed);
                (self.woken_at, self.again_at) = (0, 0);
                return Ok(());
            }
            // A reader that stays for long is met more and more rarely.
            let beyond = size.saturating_sub(WAL_BYTES_MAX);
            self.again_at = size + (beyond / 4).clamp(AGAIN_BYTES, AGAIN_BYTES_MAX);
        }
        if size >= self.woken_at + STEP_BYTES {
            self.woken_at = size;
            // When it is still busy with the last one, it looks again afterwards.
            let _ = self.wake.try_send(());
        }
        Ok(())
    }

    /// Ends the thread and brings everything into the database.
    pub(crate) fn finish(mut self, writer: &Connection) -> rusqlite::Result<()> {
        drop(self.wake);
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
        writer.busy_timeout(READERS_WAIT)?;
        checkpoint(writer, "TRUNCATE").map(drop)
    }
}

/// The thread.
struct Worker {
    connection: Connection,
    gauge: Arc<Gauge>,
    poison: Arc<Poison>,
    woken: Receiver<()>,
}

impl Worker {
    fn run(self) {
        let mut seen = 0;
        loop {
            match self.woken.recv_timeout(IDLE) {
                Ok(()) => {}
                Err(RecvTimeoutError::Timeout) => {
                    let written = self.gauge.written.load(Ordering::Relaxed);
                    let has_news = written != self.gauge.done.load(Ordering::Relaxed);
                    let is_idle = std::mem::replace(&mut seen, written) == written;
                    if !has_news || !is_idle {
                        continue;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
            match checkpoint(&self.connection, "PASSIVE") {
                Ok(checkpointed) => self.gauge.done.store(checkpointed.pages_done, Ordering::Relaxed),
                Err(error) => match Kind::of(&error) {
                    Kind::Unsynced => return self.poison.end(&error.to_string()),
                    // The log stays, and with it everything in it; the writer meets the same trouble when it is its turn.
                    _ => tracing::warn!(%error, "a checkpoint failed"),
                },
            }
        }
    }
}

fn checkpoint(connection: &Connection, mode: &str) -> rusqlite::Result<Checkpointed> {
    connection.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| {
        let (busy, pages, done): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let pages_done = u32::try_from(done).unwrap_or(0);
        Ok(Checkpointed { is_complete: busy == 0 && pages == done, pages_done })
    })
}
