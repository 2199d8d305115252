//! A thread's row and what is known of its runs.

use runyard_store::threads::plan::RunHead;
use runyard_store::{AgentRunId, ThreadHolder, ThreadId, ThreadRow};
use tokio_postgres::Row;

use crate::fault::Failure;
use crate::run_row::{lease, time, unsigned};

/// The columns that [`read`] reads, in that order.
macro_rules! thread_columns {
    () => {
        "key, thread_id, version, runs, generation, held_for, held_by, held_since, held_until, unfinished, \
         created, updated, metadata"
    };
}
/// The columns that [`head`] reads, in that order.
macro_rules! head_columns {
    () => {
        "run_id, thread, number, finished"
    };
}
pub(crate) use {head_columns, thread_columns};

/// A row of the table.
pub(crate) struct StoredThread {
    pub(crate) key: i64,
    pub(crate) row: ThreadRow,
}

pub(crate) fn read(row: &Row) -> Result<StoredThread, Failure> {
    let run =
        |column| Ok::<_, Failure>(row.try_get::<_, Option<String>>(column)?.map(AgentRunId::from_stored));
    let holder = match (run(5)?, lease(row, 6)?) {
        (Some(run), Some(lease)) => Some(ThreadHolder { run, lease }),
        _ => None,
    };
    let thread = ThreadRow {
        id: ThreadId::from_stored(row.try_get(1)?),
        version: unsigned(row.try_get(2)?)?,
        runs: unsigned(row.try_get(3)?)?,
        generation: unsigned(row.try_get(4)?)?,
        holder,
        unfinished: run(9)?,
        created: time(row.try_get(10)?),
        updated: time(row.try_get(11)?),
        metadata: row.try_get(12)?,
    };
    Ok(StoredThread { key: row.try_get(0)?, row: thread })
}

/// A run that is recorded somewhere.
pub(crate) struct StoredHead {
    pub(crate) run: AgentRunId,
    thread: i64,
    number: u64,
    finished: bool,
}

impl StoredHead {
    /// What it is to a thread.
    pub(crate) fn of(&self, thread: i64) -> RunHead {
        RunHead { is_of_thread: self.thread == thread, number: self.number, finished: self.finished }
    }
}

pub(crate) fn head(row: &Row) -> Result<StoredHead, Failure> {
    Ok(StoredHead {
        run: AgentRunId::from_stored(row.try_get(0)?),
        thread: row.try_get(1)?,
        number: unsigned(row.try_get(2)?)?,
        finished: row.try_get(3)?,
    })
}
