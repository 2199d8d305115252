//! Results kept by idempotency key, and the outbox.

use async_trait::async_trait;
use runyard_domain::RunId;
use runyard_store::{Idempotency, KeptResult, KeyDigest, KeyedResult, Outbox, OutboxItem, StorageError};
use rusqlite::{Connection, OptionalExtension, params};

use crate::append;
use crate::ledger::Ledger;
use crate::log::page;
use crate::run_row::{number, signed};
use crate::store::SqliteStore;

#[async_trait]
impl Idempotency for SqliteStore {
    async fn kept(&self, key: KeyDigest) -> Result<Option<KeptResult>, StorageError> {
        let now = self.clock.now();
        let read = move |connection: &Connection| {
            let mut select = connection
                .prepare_cached("SELECT fingerprint, result FROM results WHERE key = ?1 AND expires > ?2")?;
            let kept = select.query_row(params![key.as_bytes(), now.unix_ms()], |row| {
                Ok(KeptResult { fingerprint: row.get(0)?, result: row.get(1)? })
            });
            Ok(kept.optional()?)
        };
        self.readers.read("looking for a kept result", read).await
    }

    async fn keep(&self, result: KeyedResult) -> Result<(), StorageError> {
        let work = move |ledger: &mut Ledger| {
            let now = ledger.now();
            append::keep(&ledger.connection, &result, now)
        };
        self.writer("keeping a result")?.ask(work).await
    }

    async fn forget_expired(&self, limit: u32) -> Result<u64, StorageError> {
        let work = move |ledger: &mut Ledger| {
            let now = ledger.now();
            let mut delete = ledger.connection.prepare_cached(
                "DELETE FROM results WHERE key IN
                 (SELECT key FROM results WHERE expires <= ?1 ORDER BY expires LIMIT ?2)",
            )?;
            Ok(delete.execute([now.unix_ms(), page(limit) as i64])? as u64)
        };
        self.writer("forgetting expired results")?.ask(work).await
    }
}

#[async_trait]
impl Outbox for SqliteStore {
    async fn undelivered(&self, after: u64, limit: u32) -> Result<Vec<OutboxItem>, StorageError> {
        let read = move |connection: &Connection| {
            let mut select = connection.prepare_cached(
                "SELECT outbox.id, runs.run_id, outbox.payload FROM outbox JOIN runs ON runs.key = outbox.run
                 WHERE outbox.id > ?1 ORDER BY outbox.id LIMIT ?2",
            )?;
            let items = select.query_map([signed(after), page(limit) as i64], |row| {
                let run = RunId::from_bytes(row.get(1)?);
                Ok(OutboxItem { id: number(row, 0)?, run, payload: row.get(2)? })
            })?;
            Ok(items.collect::<rusqlite::Result<Vec<_>>>()?)
        };
        self.readers.read("reading the outbox", read).await
    }

    async fn delivered(&self, ids: &[u64]) -> Result<(), StorageError> {
        let ids: Vec<i64> = ids.iter().copied().map(signed).collect();
        let work = move |ledger: &mut Ledger| {
            let mut delete = ledger.connection.prepare_cached("DELETE FROM outbox WHERE id = ?1")?;
            for id in &ids {
                delete.execute([id])?;
            }
            Ok(())
        };
        self.writer("emptying the outbox")?.ask(work).await
    }
}
