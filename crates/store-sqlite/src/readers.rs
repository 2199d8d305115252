//! Connections for reading. They see what is committed, and neither hold up the writer nor are held up by it.

use std::sync::{Arc, Mutex, PoisonError};

use runyard_store::StorageError;
use rusqlite::Connection;
use tokio::sync::Semaphore;

use crate::connection::open_for_reading;
use crate::fault::{Trouble, translate};
use crate::paths::Paths;

/// How many read at the same time; whoever comes then waits.
const READERS_MAX: usize = 4;

/// A small pool of connections, made when they are needed.
#[derive(Clone)]
pub(crate) struct Readers {
    paths: Arc<Paths>,
    permits: Arc<Semaphore>,
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl Readers {
    pub(crate) fn new(paths: Arc<Paths>) -> Self {
        Readers { paths, permits: Arc::new(Semaphore::new(READERS_MAX)), idle: Arc::default() }
    }

    /// Makes the first connection, so that what stands in the way is known at once.
    pub(crate) fn check(&self) -> Result<(), StorageError> {
        self.put_back(open_for_reading(&self.paths)?);
        Ok(())
    }

    /// Reads, on a thread that may wait for the disk.
    pub(crate) async fn read<T, R>(&self, doing: &'static str, read: R) -> Result<T, StorageError>
    where
        T: Send + 'static,
        R: FnOnce(&Connection) -> Result<T, Trouble> + Send + 'static,
    {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let permit = permit.map_err(|_| StorageError::io(doing, "the store is closed"))?;
        let readers = self.clone();
        let reading = tokio::task::spawn_blocking(move || {
            let taken = locked(&readers.idle).pop();
            let connection = match taken {
                Some(connection) => connection,
                None => open_for_reading(&readers.paths)?,
            };
            let answer = read(&connection).map_err(|trouble| match trouble {
                Trouble::Refused(error) => error,
                Trouble::Database(error) => translate(doing, &readers.paths.name, error),
            });
            readers.put_back(connection);
            drop(permit);
            answer
        });
        reading.await.map_err(|error| StorageError::io(doing, error))?
    }

    /// Lets nobody read any more.
    pub(crate) fn close(&self) {
        self.permits.close();
        locked(&self.idle).clear();
    }

    fn put_back(&self, connection: Connection) {
        if !self.permits.is_closed() {
            locked(&self.idle).push(connection);
        }
    }
}

/// A list of connections stays whole even if a thread panicked while it held the lock.
fn locked(idle: &Mutex<Vec<Connection>>) -> std::sync::MutexGuard<'_, Vec<Connection>> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}
