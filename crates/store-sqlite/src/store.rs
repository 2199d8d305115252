//! Opening and closing a store.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use runyard_store::{Clock, Live, StorageError, SystemClock};

use crate::blob_files::BlobFiles;
use crate::checkpoint::LogKeeper;
use crate::clock::SteadyClock;
use crate::connection;
use crate::fault::translate;
use crate::follow::Follower;
use crate::group::Committer;
use crate::ledger::{Ledger, latest_time};
use crate::lock::Possession;
use crate::options::OpenOptions;
use crate::paths::Paths;
use crate::poison::Poison;
use crate::readers::Readers;
use crate::writer::{Writer, WriterParts};

const DOING: &str = "opening the database";

/// The store in a SQLite file.
///
/// Dropping it writes what is waiting and frees the file, which takes a moment; [`close`](SqliteStore::close) does the same
/// without holding up the runtime.
pub struct SqliteStore {
    pub(crate) paths: Arc<Paths>,
    // Before the writer, since fields are dropped in order and the writer's connection is to be the last.
    pub(crate) readers: Readers,
    pub(crate) blobs: BlobFiles,
    pub(crate) live: Arc<Live>,
    pub(crate) clock: Arc<dyn Clock>,
    commits: Arc<AtomicU64>,
    access: Access,
}

/// What may be done.
enum Access {
    /// Everything: this process owns the database.
    Owner(Writer),
    /// Reading: another process may own it.
    Reader(Mutex<Follower>),
}

impl SqliteStore {
    /// Opens the database, makes it if it is not there, and takes possession of it.
    ///
    /// It touches the disk and is not for a runtime's own threads, except at the start of a program.
    pub fn open(options: OpenOptions) -> Result<Self, StorageError> {
        let paths = Arc::new(Paths::of(&options.path));
        connection::prepare_folder(&paths)?;
        let possession = Possession::take(&paths, &options.owner, SystemClock.now())?;
        let mut connection = connection::open_for_writing(&paths)?;
        let known = latest_time(&connection).map_err(|error| translate(DOING, &paths.name, error))?;
        let clock = options.clock.unwrap_or_else(|| Arc::new(SteadyClock::after(known)));
        let blobs = BlobFiles::of(&paths);
        blobs.sweep_unfinished().map_err(|error| blobs.fault(DOING, error))?;
        let poison = Arc::new(Poison::new(options.fatal));
        let keeper = LogKeeper::start(&mut connection, &paths, Arc::clone(&poison))?;
        let live = Arc::new(Live::default());
        let commits = Arc::new(AtomicU64::new(0));
        let committer = Committer {
            ledger: Ledger::new(connection, Arc::clone(&clock)),
            live: Arc::clone(&live),
            poison,
            commits: Arc::clone(&commits),
            name: paths.name.clone(),
        };
        let group_events_max = options.group_events_max;
        let writer = Writer::start(WriterParts { committer, keeper, possession, group_events_max })?;
        let readers = Readers::new(Arc::clone(&paths));
        readers.check()?;
        Ok(SqliteStore { paths, readers, blobs, live, clock, commits, access: Access::Owner(writer) })
    }

    /// Opens a database that another process may own, for reading. Every write is refused, and what the owner writes is
    /// seen within a second by those who follow.
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self, StorageError> {
        let paths = Arc::new(Paths::of(path.as_ref()));
        let connection = connection::open_for_reading(&paths)?;
        let known = latest_time(&connection).map_err(|error| translate(DOING, &paths.name, error))?;
        let live = Arc::new(Live::default());
        let follower = Follower::start(&paths, Arc::clone(&live))?;
        Ok(SqliteStore {
            readers: Readers::new(Arc::clone(&paths)),
            blobs: BlobFiles::of(&paths),
            live,
            clock: Arc::new(SteadyClock::after(known)),
            commits: Arc::default(),
            access: Access::Reader(Mutex::new(follower)),
            paths,
        })
    }

    /// Writes what is waiting, brings everything into the database file and frees it. What is asked for afterwards is an
    /// error.
    pub async fn close(&self) {
        self.readers.close();
        let closing = match &self.access {
            Access::Owner(writer) => {
                let Some(thread) = writer.close().await else { return };
                tokio::task::spawn_blocking(move || drop(thread.join()))
            }
            Access::Reader(follower) => {
                let stopped = std::mem::take(&mut *follower.lock().unwrap_or_else(PoisonError::into_inner));
                tokio::task::spawn_blocking(move || drop(stopped))
            }
        };
        // A thread that panicked is gone too.
        let _ = closing.await;
    }

    /// How many groups were committed since the store was opened.
    pub fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    /// The way to write.
    pub(crate) fn writer(&self, doing: &'static str) -> Result<&Writer, StorageError> {
        match &self.access {
            Access::Owner(writer) => {
                writer.poison().check()?;
                Ok(writer)
            }
            Access::Reader(_) => {
                let what = format!("{}, which was opened for reading,", self.paths.name);
                Err(StorageError::ReadOnly { doing, what })
            }
        }
    }
}
