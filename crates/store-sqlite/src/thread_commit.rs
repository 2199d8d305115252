//! A commit to a thread, written into the open transaction.

use std::collections::HashMap;

use runyard_domain::{AppendId, Timestamp};
use runyard_store::threads::plan::{CallHead, Earlier, Found, LookFor, Outcome, Planned, PreparedCommit};
use runyard_store::{AgentRunId, Committed, Scope, StorageError};
use rusqlite::{Connection, OptionalExtension, params};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::errand::{Ending, Job, outcome};
use crate::fault::Trouble;
use crate::ledger::Ledger;
use crate::run_row::{number, signed};
use crate::thread_row::{self, StoredThread, ThreadKey, find_run};

impl Ledger {
    /// Writes the commit as far as the transaction goes, or says why not. Once it is planned nothing refuses it any more,
    /// so it needs no savepoint.
    fn commit_to_thread(&self, prepared: &PreparedCommit, now: Timestamp) -> Result<Committed, Trouble> {
        let connection = &self.connection;
        let stored = thread_row::find(connection, &prepared.thread)?;
        let found = match &stored {
            Some(stored) => look_up(connection, stored, prepared)?,
            None => Found::default(),
        };
        let row = stored.as_ref().map(|stored| &stored.row);
        match (prepared.plan(row, &found, now)?, &stored) {
            (Outcome::Already(committed), _) => Ok(committed),
            (Outcome::Write(planned), Some(StoredThread { key, .. })) => {
                write(connection, *key, &prepared.run, &planned)?;
                Ok(planned.committed())
            }
            (Outcome::Write(_), None) => {
                Err(StorageError::not_found(format!("thread {}", prepared.thread)).into())
            }
        }
    }
}

fn look_up(
    connection: &Connection,
    stored: &StoredThread,
    prepared: &PreparedCommit,
) -> rusqlite::Result<Found> {
    let key = stored.key;
    let earlier = match prepared.look_for(Some(&stored.row)) {
        LookFor::Nothing => None,
        LookFor::MessageAt(position) => connection
            .prepare_cached("SELECT append_id, body FROM thread_messages WHERE key = ?1")?
            .query_row([key.part(position)], |row| {
                Ok(Earlier::Message { append: AppendId::from_bytes(row.get(0)?), body: row.get(1)? })
            })
            .optional()?,
        LookFor::Quiet => connection
            .prepare_cached("SELECT version FROM thread_commits WHERE thread = ?1 AND append_id = ?2")?
            .query_row(params![key.0, prepared.append.as_bytes()], |row| {
                Ok(Earlier::Quiet { version: number(row, 0)? })
            })
            .optional()?,
    };
    let run = find_run(connection, key, &prepared.run)?;
    let mut calls = HashMap::new();
    if let Some(run) = run {
        let mut select = connection
            .prepare_cached("SELECT result IS NOT NULL FROM tool_calls WHERE run = ?1 AND call = ?2")?;
        for call in prepared.calls() {
            let is_answered: Option<bool> =
                select.query_row(params![key.part(run.number), call], |row| row.get(0)).optional()?;
            if let Some(is_answered) = is_answered {
                let head = if is_answered { CallHead::Answered } else { CallHead::Open };
                calls.insert(call.to_owned(), head);
            }
        }
    }
    Ok(Found { earlier, run, calls })
}

fn write(
    connection: &Connection,
    key: ThreadKey,
    run: &AgentRunId,
    planned: &Planned<'_>,
) -> rusqlite::Result<()> {
    let append = planned.append.as_bytes();
    for (body, position) in planned.messages.iter().zip(planned.first()..) {
        connection
            .prepare_cached("INSERT INTO thread_messages (key, append_id, body) VALUES (?1, ?2, ?3)")?
            .execute(params![key.part(position), append, body])?;
    }
    if planned.is_quiet() {
        connection
            .prepare_cached("INSERT INTO thread_commits (thread, append_id, version) VALUES (?1, ?2, ?3)")?
            .execute(params![key.0, append, signed(planned.row.version)])?;
    }
    let run_key = key.part(planned.number);
    write_record(connection, run_key, run, planned)?;
    write_values(connection, key, planned)?;
    for intent in &planned.intents {
        connection
            .prepare_cached(
                "INSERT INTO tool_calls (run, call, key, intent, result) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![run_key, intent.call, intent.key.as_bytes(), intent.intent, intent.result])?;
    }
    for (call, result) in &planned.results {
        connection
            .prepare_cached("UPDATE tool_calls SET result = ?3 WHERE run = ?1 AND call = ?2")?
            .execute(params![run_key, call, result])?;
    }
    thread_row::update(connection, key, &planned.row)
}

fn write_record(
    connection: &Connection,
    run_key: i64,
    run: &AgentRunId,
    planned: &Planned<'_>,
) -> rusqlite::Result<()> {
    let Some(record) = planned.record else { return Ok(()) };
    let now = planned.row.updated.unix_ms();
    if planned.is_new_run {
        connection
            .prepare_cached(
                "INSERT INTO agent_runs (key, run_id, finished, created, updated, status, payload)
                 VALUES (?1, ?2, ?3, ?4, ?4, ?5, ?6)",
            )?
            .execute(params![run_key, run.as_str(), record.finished, now, record.status, record.payload])?;
    } else {
        connection
            .prepare_cached(
                "UPDATE agent_runs SET finished = ?2, updated = ?3, status = ?4, payload = ?5 WHERE key = ?1",
            )?
            .execute(params![run_key, record.finished, now, record.status, record.payload])?;
    }
    Ok(())
}

fn write_values(connection: &Connection, key: ThreadKey, planned: &Planned<'_>) -> rusqlite::Result<()> {
    for ((scope, name), value) in planned.values {
        let scope = match scope {
            Scope::Thread => key.part(0),
            Scope::Run => key.part(planned.number),
        };
        match value {
            Some(value) => connection
                .prepare_cached(
                    "INSERT INTO thread_values (scope, name, value) VALUES (?1, ?2, ?3)
                     ON CONFLICT (scope, name) DO UPDATE SET value = excluded.value",
                )?
                .execute(params![scope, name, value])?,
            None => connection
                .prepare_cached("DELETE FROM thread_values WHERE scope = ?1 AND name = ?2")?
                .execute(params![scope, name])?,
        };
    }
    Ok(())
}

/// A commit to a thread, as a part of a group.
pub(crate) struct CommitJob {
    prepared: PreparedCommit,
    /// Its share of the memory that waiting jobs may take.
    _room: OwnedSemaphorePermit,
    outcome: Option<Result<Committed, StorageError>>,
    answer: oneshot::Sender<CommitAnswer>,
}

/// The answer to a commit. With it comes back what the commit was made of, so that its memory is freed by whoever asked.
pub(crate) struct CommitAnswer {
    pub(crate) committed: Result<Committed, StorageError>,
    _spent: PreparedCommit,
}

impl CommitJob {
    pub(crate) fn answered(
        prepared: PreparedCommit,
        room: OwnedSemaphorePermit,
    ) -> (Box<dyn Job>, oneshot::Receiver<CommitAnswer>) {
        let (answer, answered) = oneshot::channel();
        (Box::new(CommitJob { prepared, _room: room, outcome: None, answer }), answered)
    }
}

impl Job for CommitJob {
    fn weight(&self) -> (usize, usize) {
        (self.prepared.weight(), self.prepared.size())
    }

    fn run(&mut self, ledger: &mut Ledger) -> rusqlite::Result<()> {
        let now = ledger.now();
        self.outcome = outcome(ledger.commit_to_thread(&self.prepared, now))?;
        ledger.note_time(now);
        Ok(())
    }

    fn settle(self: Box<Self>, ending: &Ending<'_>) {
        let committed = match (ending, self.outcome) {
            (Ending::Durable(_), Some(outcome)) => outcome,
            (Ending::Failed(error), _) => Err(error()),
            // What was refused was not written, whatever became of the rest.
            (Ending::Unknown(error), Some(Err(_))) => Err(error()),
            (Ending::Unknown(_) | Ending::Durable(_), _) => Err(StorageError::unknown(self.prepared.append)),
        };
        // Whoever went away does not undo the commit.
        let _ = self.answer.send(CommitAnswer { committed, _spent: self.prepared });
    }
}
