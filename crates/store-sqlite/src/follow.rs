//! Following a database that another process writes: its heads are looked at once in a while.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use runyard_store::{Live, StorageError};
use rusqlite::{Connection, OptionalExtension};

use crate::connection::open_for_reading;
use crate::paths::Paths;
use crate::run_row::number;

/// How often is looked.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The thread that looks, until it is dropped.
#[derive(Default)]
pub(crate) struct Follower {
    stop: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Follower {
    pub(crate) fn start(paths: &Paths, live: Arc<Live>) -> Result<Self, StorageError> {
        let connection = open_for_reading(paths)?;
        let (stop, stopped) = sync_channel::<()>(1);
        let thread = std::thread::Builder::new()
            .name("sqlite-follow".to_owned())
            .spawn(move || {
                let mut version = None;
                while stopped.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
                    if let Err(error) = look(&connection, &live, &mut version) {
                        tracing::warn!(%error, "the database could not be looked at; it is tried again");
                        version = None;
                    }
                }
            })
            .map_err(|error| StorageError::io("starting a thread", error))?;
        Ok(Follower { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Wakes those who follow, if another connection has written since the last look.
fn look(connection: &Connection, live: &Live, version: &mut Option<i64>) -> rusqlite::Result<()> {
    let found = connection.pragma_query_value(None, "data_version", |row| row.get(0))?;
    if *version == Some(found) {
        return Ok(());
    }
    for run in live.followed() {
        let head = connection
            .prepare_cached("SELECT sequence FROM runs WHERE run_id = ?1")?
            .query_row([run.as_bytes()], |row| number(row, 0))
            .optional()?;
        if let Some(head) = head {
            live.wake(run, head);
        }
    }
    live.wake_feed();
    *version = Some(found);
    Ok(())
}
