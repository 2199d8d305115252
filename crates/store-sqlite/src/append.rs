//! A change of a run, written into the open transaction.

use std::panic::{AssertUnwindSafe, catch_unwind};

use runyard_domain::{AppendId, ApprovalId, BlobId, Code, RunId, Timestamp};
use runyard_redact::Safe;
use runyard_store::plan::{Earlier, LookFor, Outcome, Planned, PlannedEvent, Prepared};
use runyard_store::{Appended, ApprovalWrite, KeyedResult, RunRow, StorageError, TimerWrite};
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::Value;

use crate::fault::Trouble;
use crate::ledger::Ledger;
use crate::places::Places;
use crate::run_cache::{CachedRun, Unwritten};
use crate::run_row::{self, StoredRun, number, signed};

/// A change that is written, though not durable yet.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) appended: Appended,
    /// Its events, if anybody is to be told of them.
    pub(crate) events: Vec<PlannedEvent>,
}

impl Ledger {
    /// Writes the change as far as the transaction goes, or says why not.
    pub(crate) fn append(&mut self, prepared: &mut Prepared, now: Timestamp) -> Result<Written, Trouble> {
        self.stored_run(prepared.run)?;
        let stored = self.runs.get(prepared.run).map(|known| &known.stored);
        let row = stored.map(|stored| &stored.row);
        let earlier = match stored {
            Some(stored) => find_earlier(&self.connection, stored, prepared.append, prepared.look_for(row))?,
            None => None,
        };
        match planned(prepared, row, earlier, now)? {
            Outcome::Already(appended) => Ok(Written { appended, events: Vec::new() }),
            Outcome::Write(planned) => {
                let (known, mut places) = stored.map(|stored| (stored.key, stored.places.clone())).unzip();
                let mut places = places.take().unwrap_or_default();
                let key = self.in_savepoint(|ledger| {
                    let key = match known {
                        Some(key) => key,
                        None => run_row::insert(&ledger.connection, &planned.row)?,
                    };
                    write(&ledger.connection, key, &planned, &mut places, now)?;
                    Ok(key)
                })?;
                Ok(self.note(key, *planned, places, now))
            }
        }
    }

    /// Remembers the run's row as it is now.
    fn note(&mut self, key: i64, planned: Planned, places: Places, now: Timestamp) -> Written {
        let appended = planned.appended();
        self.note_time(now);
        let unwritten = if planned.projected { Unwritten::Row } else { Unwritten::Head };
        if planned.created {
            let stored = StoredRun { key, row: planned.row, places };
            self.runs.remember(CachedRun { stored, unwritten: Unwritten::Head });
        } else {
            self.runs.change(planned.row, Some(places), unwritten);
        }
        Written { appended, events: planned.events }
    }
}

/// The plan. It calls a function that was handed in, and a panic there must not end the writer.
fn planned(
    prepared: &mut Prepared,
    row: Option<&RunRow>,
    earlier: Option<Earlier>,
    now: Timestamp,
) -> Result<Outcome, StorageError> {
    catch_unwind(AssertUnwindSafe(|| prepared.plan(row, earlier, now))).unwrap_or_else(|_| {
        Err(StorageError::Refused {
            code: Code::InternalError,
            source: "the function that decides what to write panicked".into(),
        })
    })
}

fn find_earlier(
    connection: &Connection,
    stored: &StoredRun,
    append: AppendId,
    look_for: LookFor,
) -> rusqlite::Result<Option<Earlier>> {
    let StoredRun { key, row, places } = stored;
    match look_for {
        LookFor::Nothing => Ok(None),
        LookFor::EventAt(sequence) => {
            let Some(position) = places.find(connection, *key, row.sequence, sequence)? else {
                return Ok(None);
            };
            connection
                .prepare_cached("SELECT append_id, body FROM events WHERE pos = ?1 AND run = ?2")?
                .query_row([position, *key], |row| {
                    Ok(Earlier::At { append: AppendId::from_bytes(row.get(0)?), body: row.get(1)? })
                })
                .optional()
        }
        LookFor::HeadChange => connection
            .prepare_cached("SELECT first, last FROM head_changes WHERE run = ?1 AND append_id = ?2")?
            .query_row(params![key, append.as_bytes()], |row| {
                Ok(Earlier::Head(Appended { first: number(row, 0)?, last: number(row, 1)? }))
            })
            .optional(),
    }
}

fn write(
    connection: &Connection,
    key: i64,
    planned: &Planned,
    places: &mut Places,
    now: Timestamp,
) -> Result<(), Trouble> {
    let append = planned.append.as_bytes();
    {
        let mut insert = connection
            .prepare_cached("INSERT INTO events (run, sequence, append_id, body) VALUES (?1, ?2, ?3, ?4)")?;
        for event in &planned.events {
            let position = insert.insert(params![key, signed(event.sequence), append, event.body])?;
            places.push(event.sequence, position);
        }
    }
    places.write_full(connection, key)?;
    for blob in planned.events.iter().flat_map(|event| &event.blobs) {
        refer(connection, key, *blob)?;
    }
    if planned.at_head {
        let Appended { first, last } = planned.appended();
        connection
            .prepare_cached("INSERT INTO head_changes (run, append_id, first, last) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![key, append, signed(first), signed(last)])?;
    }
    if planned.rows.is_empty() {
        return Ok(());
    }
    for approval in &planned.rows.approvals {
        write_approval(connection, key, planned.row.run, approval)?;
    }
    for timer in &planned.rows.timers {
        write_timer(connection, key, timer)?;
    }
    for message in &planned.rows.outbox {
        connection
            .prepare_cached("INSERT INTO outbox (run, payload) VALUES (?1, ?2)")?
            .execute(params![key, bytes(message)])?;
    }
    if let Some(result) = &planned.rows.result {
        keep(connection, result, now)?;
    }
    Ok(())
}

fn refer(connection: &Connection, key: i64, blob: BlobId) -> Result<(), Trouble> {
    let is_there =
        connection.prepare_cached("SELECT 1 FROM blobs WHERE id = ?1")?.exists([blob.as_bytes()])?;
    if !is_there {
        return Err(StorageError::not_found(format!("blob {blob}")).into());
    }
    connection
        .prepare_cached("INSERT OR IGNORE INTO blob_refs (blob, run) VALUES (?1, ?2)")?
        .execute(params![blob.as_bytes(), key])?;
    Ok(())
}

fn write_approval(
    connection: &Connection,
    key: i64,
    run: RunId,
    write: &ApprovalWrite,
) -> Result<(), Trouble> {
    match write {
        ApprovalWrite::Open { id, expires, request } => {
            let inserted = connection
                .prepare_cached(
                    "INSERT INTO approvals (id, run, expires, request) VALUES (?1, ?2, ?3, ?4)
                     ON CONFLICT (id) DO NOTHING",
                )?
                .execute(params![id.as_bytes(), key, expires.unix_ms(), bytes(request)])?;
            if inserted == 0 {
                return Err(StorageError::exists(format!("approval {id}")).into());
            }
        }
        ApprovalWrite::Resolve { id, decision } => {
            let resolved = connection
                .prepare_cached(
                    "UPDATE approvals SET decision = ?3 WHERE id = ?1 AND run = ?2 AND decision IS NULL",
                )?
                .execute(params![id.as_bytes(), key, bytes(decision)])?;
            if resolved == 0 {
                return Err(unresolved(connection, key, run, *id)?.into());
            }
        }
    }
    Ok(())
}

/// Why an approval could not be answered.
fn unresolved(
    connection: &Connection,
    key: i64,
    run: RunId,
    id: ApprovalId,
) -> rusqlite::Result<StorageError> {
    let is_there = connection
        .prepare_cached("SELECT 1 FROM approvals WHERE id = ?1 AND run = ?2")?
        .exists(params![id.as_bytes(), key])?;
    Ok(if is_there {
        StorageError::exists(format!("a decision on approval {id}"))
    } else {
        StorageError::not_found(format!("approval {id} of run {run}"))
    })
}

fn write_timer(connection: &Connection, key: i64, write: &TimerWrite) -> rusqlite::Result<()> {
    match write {
        TimerWrite::Set { name, due, payload } => connection
            .prepare_cached(
                "INSERT INTO timers (run, name, due, payload) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (run, name) DO UPDATE SET due = excluded.due, payload = excluded.payload",
            )?
            .execute(params![key, name.as_str(), due.unix_ms(), bytes(payload)])?,
        TimerWrite::Cancel { name } => connection
            .prepare_cached("DELETE FROM timers WHERE run = ?1 AND name = ?2")?
            .execute(params![key, name.as_str()])?,
    };
    Ok(())
}

/// Keeps a result, unless another one is kept for the same key.
pub(crate) fn keep(connection: &Connection, result: &KeyedResult, now: Timestamp) -> Result<(), Trouble> {
    let key = result.key.as_bytes();
    let kept = bytes(&result.result);
    let first: Option<([u8; 32], Vec<u8>)> = connection
        .prepare_cached("SELECT fingerprint, result FROM results WHERE key = ?1 AND expires > ?2")?
        .query_row(params![key, now.unix_ms()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    match first {
        Some(first) if first == (result.fingerprint, kept) => Ok(()),
        Some(_) => Err(StorageError::exists("a result for the idempotency key").into()),
        None => {
            connection
                .prepare_cached(
                    "INSERT OR REPLACE INTO results (key, fingerprint, result, expires)
                     VALUES (?1, ?2, ?3, ?4)",
                )?
                .execute(params![key, result.fingerprint, bytes(&result.result), result.expires.unix_ms()])?;
            Ok(())
        }
    }
}

/// A JSON tree always has a text.
fn bytes(value: &Safe<Value>) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}
