//! Results kept by idempotency key.

use async_trait::async_trait;
use runyard_domain::Timestamp;
use runyard_redact::Safe;
use runyard_store::{Idempotency, KeptResult, KeyDigest, KeyedResult, StorageError};
use serde_json::Value;
use tokio_postgres::Row;

use crate::fault::Failure;
use crate::run_row::now_ms;
use crate::store::{PostgresStore, page};

const KEEPING: &str = "keeping a result";

#[async_trait]
impl Idempotency for PostgresStore {
    async fn kept(&self, key: KeyDigest) -> Result<Option<KeptResult>, StorageError> {
        const SQL: &str =
            concat!("SELECT fingerprint, result FROM results WHERE key = $1 AND expires > ", now_ms!());
        let rows = self.rows("reading a kept result", SQL, &[&key.as_bytes().as_slice()]).await?;
        let found = rows.first().map(|row| kept(row, 0)).transpose();
        found.map_err(|failure| failure.into_storage("reading a kept result", ""))
    }

    async fn keep(&self, result: KeyedResult) -> Result<(), StorageError> {
        // The same again changes nothing: it expires when the first said.
        const SQL: &str = concat!(
            "INSERT INTO results (key, fingerprint, result, expires) VALUES ($1, $2, $3, $4)
             ON CONFLICT (key) DO UPDATE
                SET fingerprint = excluded.fingerprint, result = excluded.result, expires =
                    CASE WHEN results.expires <= ",
            now_ms!(),
            " THEN excluded.expires ELSE results.expires END WHERE results.expires <= ",
            now_ms!(),
            " OR (results.fingerprint = excluded.fingerprint AND results.result = excluded.result) RETURNING 1"
        );
        let (key, fingerprint) = (result.key.as_bytes().as_slice(), result.fingerprint.as_slice());
        let (content, expires) = (json(&result.result), result.expires.unix_ms());
        let rows = self.rows(KEEPING, SQL, &[&key, &fingerprint, &content, &expires]).await?;
        if rows.is_empty() { Err(taken()) } else { Ok(()) }
    }

    async fn forget_expired(&self, limit: u32) -> Result<u64, StorageError> {
        const SQL: &str = concat!(
            "DELETE FROM results WHERE key IN (SELECT key FROM results WHERE expires <= ",
            now_ms!(),
            " ORDER BY expires LIMIT $1 FOR UPDATE SKIP LOCKED) RETURNING 1"
        );
        Ok(self.rows("forgetting expired results", SQL, &[&page(limit)]).await?.len() as u64)
    }
}

/// The result in two columns from `first` on.
pub(crate) fn kept(row: &Row, first: usize) -> Result<KeptResult, Failure> {
    let fingerprint = row.try_get::<_, &[u8]>(first)?.try_into().map_err(|_| StorageError::Corrupt {
        doing: "reading a kept result",
        detail: "a fingerprint has another length".to_owned(),
    })?;
    Ok(KeptResult { fingerprint, result: row.try_get(first + 1)? })
}

/// Whether a result counts as forgotten.
pub(crate) fn is_over(expires: Timestamp, now: Timestamp) -> bool {
    expires <= now
}

/// Another result is kept for the key.
pub(crate) fn taken() -> StorageError {
    StorageError::exists("a result for the idempotency key")
}

/// The bytes that are stored. A JSON tree always has a text.
pub(crate) fn json(value: &Safe<Value>) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}
