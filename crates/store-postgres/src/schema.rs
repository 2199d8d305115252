//! The tables, as numbered steps from one schema to the next.
//!
//! A step that was released is never changed. All steps are made in one transaction, under a lock, so that of several
//! hubs that start together one makes them and the others wait.

use runyard_store::StorageError;
use tokio_postgres::Client;

use crate::connection::{Connector, SCHEMA_NAME, within};
use crate::fault::Failure;

const DOING: &str = "bringing the database to the newest schema";
/// The advisory lock of migrations: "RYRD".
const LOCK: i64 = 0x5259_5244;

/// The steps, the first one from nothing.
const MIGRATIONS: [&str; 2] = [include_str!("schema/0001.sql"), include_str!("schema/0002.sql")];

/// The schema that this program reads and writes.
const SCHEMA: u32 = MIGRATIONS.len() as u32;

/// One row. `feed_offset` is added to the number of a transaction (see [`mend_feed`]).
const META: &str = "
    CREATE TABLE meta (
        one         boolean PRIMARY KEY DEFAULT true CHECK (one),
        version     integer NOT NULL,
        feed_offset bigint NOT NULL
    );
    INSERT INTO meta (version, feed_offset) VALUES (0, 0)";

/// Brings the database to the newest schema; refuses one that is newer.
pub(crate) async fn migrate(connector: &Connector, client: &mut Client) -> Result<(), StorageError> {
    let steps = async {
        if version(client).await? == Some(SCHEMA) {
            return Ok(());
        }
        let transaction = client.transaction().await?;
        // A step over large tables takes as long as it takes, and so does waiting for a hub that makes it.
        transaction.batch_execute("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0").await?;
        transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
        // Another hub may have made them while this one waited.
        let found = match version(transaction.client()).await? {
            Some(found) => found,
            None => {
                make_namespace(transaction.client()).await?;
                transaction.batch_execute(META).await?;
                0
            }
        };
        if found > SCHEMA {
            return Err(newer(found).into());
        }
        for step in MIGRATIONS.iter().skip(found as usize) {
            transaction.batch_execute(step).await?;
        }
        transaction.execute("UPDATE meta SET version = $1", &[&(SCHEMA as i32)]).await?;
        transaction.commit().await?;
        Ok(())
    };
    steps.await.map_err(|failure: Failure| failure.into_storage(DOING, connector.place()))
}

/// Whether what is there can be read as it stands. Nothing is made or changed.
pub(crate) async fn check_to_read(connector: &Connector, client: &Client) -> Result<(), Failure> {
    let older = || {
        let place = connector.place();
        StorageError::invalid(format!(
            "the database at {place} has an older schema: start the hub once, which brings it to the newest"
        ))
    };
    match within(connector.options().silence(), version(client)).await? {
        None => Err(StorageError::not_found("database: nothing is recorded yet").into()),
        Some(found) if found < SCHEMA => Err(older().into()),
        Some(found) if found > SCHEMA => Err(newer(found).into()),
        Some(_) => Ok(()),
    }
}

/// The version of the tables, unless there are none.
async fn version(client: &Client) -> Result<Option<u32>, Failure> {
    // Asked of the catalogue itself: functions such as `to_regclass` may answer from before a lock was waited for.
    const THERE: &str =
        "SELECT EXISTS (SELECT FROM pg_catalog.pg_tables WHERE schemaname = $1 AND tablename = 'meta')";
    if !client.query_one(THERE, &[&SCHEMA_NAME]).await?.try_get::<_, bool>(0)? {
        return Ok(None);
    }
    let row = client.query_one("SELECT version FROM runyard.meta", &[]).await?;
    Ok(Some(u32::try_from(row.try_get::<_, i32>(0)?).unwrap_or(u32::MAX)))
}

/// Whether the tables are those that this program knows: a newer one may have changed them since it connected.
pub(crate) fn check(version: i32) -> Result<(), StorageError> {
    match u32::try_from(version) {
        Ok(SCHEMA) => Ok(()),
        found => Err(newer(found.unwrap_or(u32::MAX))),
    }
}

fn newer(found: u32) -> StorageError {
    StorageError::NewerSchema { found, known: SCHEMA }
}

/// Who may not make a schema may still use one that somebody made for them.
async fn make_namespace(client: &Client) -> Result<(), Failure> {
    const THERE: &str = "SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1)";
    if !client.query_one(THERE, &[&SCHEMA_NAME]).await?.try_get::<_, bool>(0)? {
        client.batch_execute(&format!("CREATE SCHEMA {SCHEMA_NAME}")).await?;
    }
    Ok(())
}

/// Sees to it that the numbers of new transactions are higher than those in the feed.
///
/// They always are, except in a server that is younger than the events: after a dump was restored there. Then the
/// difference is added to every number from now on, so that the feed goes on behind what it holds, and cursors stay valid.
pub(crate) async fn mend_feed(client: &mut Client) -> Result<(), Failure> {
    const BEHIND: &str = "
        SELECT last.feed + 1 - pg_snapshot_xmin(pg_current_snapshot())::text::bigint
        FROM meta, (SELECT max(feed) AS feed FROM events) AS last
        WHERE last.feed >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint + feed_offset";
    if client.query_opt(BEHIND, &[]).await?.is_none() {
        return Ok(());
    }
    let transaction = client.transaction().await?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    if let Some(row) = transaction.query_opt(BEHIND, &[]).await? {
        let offset: i64 = row.try_get(0)?;
        transaction.execute("UPDATE meta SET feed_offset = $1", &[&offset]).await?;
        tracing::warn!(
            offset,
            "the database comes from another server; its feed goes on behind its last event"
        );
    }
    transaction.commit().await?;
    Ok(())
}
