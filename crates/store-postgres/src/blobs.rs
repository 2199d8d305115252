//! Big things, by the digest of their content: rows of parts.

use std::time::Duration;

use async_trait::async_trait;
use deadpool_postgres::Object;
use runyard_domain::BlobId;
use runyard_redact::Safe;
use runyard_store::{BLOB_BYTES_MAX, Blobs, Collected, StorageError, blob_id};
use tokio_postgres::Row;

use crate::connection::{given_back, within};
use crate::fault::Failure;
use crate::run_row::{now_ms, unsigned};
use crate::store::PostgresStore;

/// The largest part.
const PART_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How many blobs are collected in one transaction.
const COLLECTED_TOGETHER_MAX: i64 = 100;
const PUTTING: &str = "storing a blob";
const GETTING: &str = "reading a blob";
const COLLECTING: &str = "collecting blobs";

#[async_trait]
impl Blobs for PostgresStore {
    async fn put(&self, content: Safe<Vec<u8>>) -> Result<BlobId, StorageError> {
        if content.len() > BLOB_BYTES_MAX {
            return Err(StorageError::invalid(format!("a blob has at most {BLOB_BYTES_MAX} bytes")));
        }
        let (id, content) = aside(PUTTING, move || (blob_id(&content), content)).await?;
        let content = content.as_slice();
        let put = || async move {
            let mut client = self.client().await?;
            let answer = self.put_on(&mut client, id, content).await;
            given_back(client, answer)
        };
        self.repeated(PUTTING, put).await?;
        Ok(id)
    }

    async fn get(&self, id: BlobId) -> Result<Vec<u8>, StorageError> {
        // One statement sees one state: a blob that is collected meanwhile is there or not, never in part.
        const SQL: &str =
            "SELECT blobs.bytes, blob_parts.content FROM blobs LEFT JOIN blob_parts ON blob = id
            WHERE id = $1 ORDER BY part";
        let rows = self.rows(GETTING, SQL, &[&id.as_bytes().as_slice()]).await?;
        if rows.is_empty() {
            return Err(StorageError::not_found(format!("blob {id}")));
        }
        aside(GETTING, move || whole(id, &rows)).await?
    }

    async fn collect(&self, unused_for: Duration) -> Result<Collected, StorageError> {
        let unused_ms = i64::try_from(unused_for.as_millis()).unwrap_or(i64::MAX);
        let mut collected = Collected::default();
        loop {
            let some = self.repeated(COLLECTING, || self.collect_some(unused_ms)).await?;
            collected.blobs += some.blobs;
            collected.bytes += some.bytes;
            if some.blobs == 0 {
                return Ok(collected);
            }
        }
    }
}

impl PostgresStore {
    async fn put_on(&self, client: &mut Object, id: BlobId, content: &[u8]) -> Result<(), Failure> {
        // Whether the row is new shows in its system column: nobody has touched it yet.
        const PUT: &str = concat!(
            "INSERT INTO blobs (id, bytes, put_at) VALUES ($1, $2, ",
            now_ms!(),
            ") ON CONFLICT (id) DO UPDATE SET put_at = excluded.put_at RETURNING xmax = 0"
        );
        const PART: &str = "INSERT INTO blob_parts (blob, part, content) VALUES ($1, $2, $3)";
        let limit = self.silence();
        let (put, part) = (
            within(limit, client.prepare_cached(PUT)).await?,
            within(limit, client.prepare_cached(PART)).await?,
        );
        let transaction = within(limit, client.transaction()).await?;
        let (key, bytes) = (id.as_bytes().as_slice(), content.len() as i64);
        let row = within(limit, transaction.query_one(&put, &[&key, &bytes])).await?;
        if row.try_get(0)? {
            for (piece, number) in content.chunks(PART_BYTES_MAX).zip(0_i32..) {
                within(limit, transaction.execute(&part, &[&key, &number, &piece])).await?;
            }
        }
        within(limit, transaction.commit()).await?;
        Ok(())
    }

    async fn collect_some(&self, unused_ms: i64) -> Result<Collected, Failure> {
        let mut client = self.client().await?;
        let answer = self.collect_some_on(&mut client, unused_ms).await;
        given_back(client, answer)
    }

    async fn collect_some_on(&self, client: &mut Object, unused_ms: i64) -> Result<Collected, Failure> {
        // Locked first, and looked at again then: whoever refers to one meanwhile waits, and finds it gone.
        const LOCK: &str = concat!(
            "SELECT id FROM blobs WHERE put_at <= ",
            now_ms!(),
            " - $1 AND NOT EXISTS (SELECT 1 FROM blob_refs WHERE blob = id)
             ORDER BY put_at LIMIT $2 FOR UPDATE SKIP LOCKED"
        );
        const DELETE: &str = "DELETE FROM blobs WHERE id = ANY($1)
            AND NOT EXISTS (SELECT 1 FROM blob_refs WHERE blob = id) RETURNING bytes";
        let limit = self.silence();
        let transaction = within(limit, client.transaction()).await?;
        let unused = within(limit, transaction.query(LOCK, &[&unused_ms, &COLLECTED_TOGETHER_MAX])).await?;
        let unused = unused.iter().map(|row| row.try_get(0)).collect::<Result<Vec<&[u8]>, _>>()?;
        let gone = within(limit, transaction.query(DELETE, &[&unused])).await?;
        let mut collected = Collected { blobs: gone.len() as u64, bytes: 0 };
        for row in &gone {
            collected.bytes += unsigned(row.try_get(0)?)?;
        }
        within(limit, transaction.commit()).await?;
        Ok(collected)
    }
}

/// Does what takes long with many bytes where it holds up nobody else.
async fn aside<T: Send + 'static>(
    doing: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, StorageError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| StorageError::io(doing, error))
}

/// The content of a blob's rows, checked against its id.
fn whole(id: BlobId, rows: &[Row]) -> Result<Vec<u8>, StorageError> {
    let unreadable = |error: tokio_postgres::Error| Failure::from(error).into_storage(GETTING, "");
    let mut content = Vec::new();
    for row in rows {
        if content.is_empty() {
            let bytes = unsigned(row.try_get(0).map_err(unreadable)?)?;
            content.reserve_exact(usize::try_from(bytes).unwrap_or_default().min(BLOB_BYTES_MAX));
        }
        content
            .extend_from_slice(row.try_get::<_, Option<&[u8]>>(1).map_err(unreadable)?.unwrap_or_default());
    }
    if blob_id(&content) != id {
        return Err(StorageError::Corrupt {
            doing: GETTING,
            detail: format!("the content of blob {id} is another"),
        });
    }
    Ok(content)
}
