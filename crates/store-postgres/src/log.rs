//! The log: appending, reading, and the feed of all runs.

use async_trait::async_trait;
use runyard_domain::RunId;
use runyard_store::{
    Appended, Change, EventLog, FeedCursor, FeedEntry, FeedPage, Live, LoggedEvent, StorageError,
};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::fault::Failure;
use crate::run_row::{run_uuid, signed, unsigned};
use crate::store::{Parameter, PostgresStore, page};

/// A page that is as large as this ends there, whatever its limit is. It has at least one event.
const PAGE_BYTES_MAX: i64 = 16 * 1024 * 1024;
const READING: &str = "reading the log";
const FOLLOWING: &str = "reading the feed";

#[async_trait]
impl EventLog for PostgresStore {
    async fn append(&self, change: Change) -> Result<Appended, StorageError> {
        self.lanes()?.append(change).await
    }

    async fn head(&self, run: RunId) -> Result<Option<u64>, StorageError> {
        const SQL: &str = "SELECT sequence FROM runs WHERE run_id = $1";
        let rows = self.rows(READING, SQL, &[&run_uuid(run)]).await?;
        let head = rows.first().map(|row| row.try_get(0)).transpose();
        head.map_err(|error| unreadable(READING, error.into()))?.map(unsigned).transpose()
    }

    async fn read(&self, run: RunId, after: u64, limit: u32) -> Result<Vec<LoggedEvent>, StorageError> {
        // The sizes are added up by the server, which does not look at the bodies for that.
        const SQL: &str = "
            SELECT sequence, body FROM (
                SELECT sequence, body,
                    sum(octet_length(body)) OVER (ORDER BY sequence ROWS UNBOUNDED PRECEDING)
                        - octet_length(body) AS bytes_before
                FROM (
                    SELECT sequence, body FROM events WHERE run_id = $1 AND sequence > $2
                    ORDER BY sequence LIMIT $3
                ) AS limited
            ) AS summed
            WHERE bytes_before < $4 ORDER BY sequence";
        let parameters: [Parameter<'_>; 4] = [&run_uuid(run), &signed(after), &page(limit), &PAGE_BYTES_MAX];
        let rows = self.rows(READING, SQL, &parameters).await?;
        let events = rows.iter().map(|row| event(row, 0)).collect::<Result<Vec<_>, _>>();
        events.map_err(|failure| unreadable(READING, failure))
    }

    async fn feed(&self, after: &FeedCursor, limit: u32) -> Result<FeedPage, StorageError> {
        // Every transaction before the horizon has ended, so what is shown up to there is complete.
        const SQL: &str = "
            WITH horizon AS MATERIALIZED (
                SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint + feed_offset AS feed FROM meta
            )
            SELECT horizon.feed, shown.* FROM horizon LEFT JOIN LATERAL (
                SELECT sequence, body, run_id, feed, pos FROM (
                    SELECT sequence, body, run_id, feed, pos,
                        sum(octet_length(body)) OVER (ORDER BY feed, pos ROWS UNBOUNDED PRECEDING)
                            - octet_length(body) AS bytes_before
                    FROM (
                        SELECT sequence, body, run_id, feed, pos FROM events
                        WHERE (feed, pos) > ($1, $2) AND feed < horizon.feed
                        ORDER BY feed, pos LIMIT $3
                    ) AS limited
                ) AS summed
                WHERE bytes_before < $4 ORDER BY feed, pos
            ) AS shown ON true";
        let Place { feed, pos } = Place::of(after)?;
        let rows = self.rows(FOLLOWING, SQL, &[&feed, &pos, &page(limit), &PAGE_BYTES_MAX]).await?;
        let page = rows.iter().filter_map(|row| entry(row).transpose()).collect::<Result<Vec<_>, _>>();
        let entries: Vec<FeedEntry> = page.map_err(|failure| unreadable(FOLLOWING, failure))?;
        let horizon = rows.first().map(|row| row.try_get::<_, i64>(0)).transpose();
        let horizon = horizon.map_err(|error| unreadable(FOLLOWING, error.into()))?;
        if horizon.is_none_or(|horizon| feed >= horizon) {
            return Err(StorageError::invalid("the cursor is ahead of the feed"));
        }
        let next = entries.last().map_or_else(|| after.clone(), |entry| entry.cursor.clone());
        Ok(FeedPage { entries, next })
    }

    fn live(&self) -> &Live {
        &self.live
    }
}

fn event(row: &Row, first: usize) -> Result<LoggedEvent, Failure> {
    let sequence = unsigned(row.try_get(first)?)?;
    Ok(LoggedEvent { sequence, body: row.try_get::<_, &[u8]>(first + 1)?.into() })
}

/// An event of the feed; none when there was nothing behind the cursor.
fn entry(row: &Row) -> Result<Option<FeedEntry>, Failure> {
    if row.try_get::<_, Option<i64>>(1)?.is_none() {
        return Ok(None);
    }
    let run = RunId::from_bytes(row.try_get::<_, Uuid>(3)?.into_bytes());
    let place = Place { feed: row.try_get(4)?, pos: row.try_get(5)? };
    Ok(Some(FeedEntry { cursor: place.cursor(), run, event: event(row, 1)? }))
}

fn unreadable(doing: &'static str, failure: Failure) -> StorageError {
    failure.into_storage(doing, "")
}

/// What a cursor says: `feed.pos`, or `0` before the first event.
#[derive(Clone, Copy)]
struct Place {
    feed: i64,
    pos: i64,
}

impl Place {
    fn of(cursor: &FeedCursor) -> Result<Self, StorageError> {
        let number = |text: &str| -> Option<i64> {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| text.parse().ok()).flatten()
        };
        let place = match cursor.as_str().split_once('.') {
            None if *cursor == FeedCursor::start() => Some(Place { feed: 0, pos: 0 }),
            None => None,
            Some((feed, pos)) => number(feed).zip(number(pos)).map(|(feed, pos)| Place { feed, pos }),
        };
        place.ok_or_else(|| StorageError::invalid("not a cursor of this feed"))
    }

    fn cursor(self) -> FeedCursor {
        FeedCursor::from_text(format!("{}.{}", self.feed, self.pos))
    }
}
