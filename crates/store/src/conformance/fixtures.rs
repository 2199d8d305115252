//! What the suite builds its changes from.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use runyard_domain::{AppendId, ApprovalId, EventId, RunId, Timestamp};
use runyard_redact::{Kind, Redactor, Safe, TagKey};
use serde_json::{Value, json};

use crate::{Appended, Change, NewEvent, Place, Projection, StorageError, Store, Writes};

/// A number that is not given twice, also by two processes on one database.
fn unique() -> [u8; 10] {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut unique = [0; 10];
    unique[..8].copy_from_slice(&count.to_be_bytes());
    unique[8..].copy_from_slice(&(std::process::id() as u16).to_be_bytes());
    unique
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64
}

/// A run that nobody used before.
pub fn fresh_run() -> RunId {
    RunId::from_parts(now_ms(), &unique())
}

/// An append id that nobody used before.
pub fn fresh_append() -> AppendId {
    AppendId::from_parts(now_ms(), &unique())
}

/// An approval that nobody used before.
pub fn fresh_approval() -> ApprovalId {
    ApprovalId::from_parts(now_ms(), &unique())
}

fn redactor() -> &'static Redactor {
    static REDACTOR: LazyLock<Redactor> =
        LazyLock::new(|| Redactor::builder(TagKey::from_bytes([7; 32])).build().unwrap());
    &REDACTOR
}

/// A payload, redacted as everything is.
pub fn safe(value: Value) -> Safe<Value> {
    redactor().json(value)
}

/// An event with this payload.
pub fn event(payload: Value) -> NewEvent {
    let at = Timestamp::from_unix_ms(now_ms() as i64);
    NewEvent::new(EventId::from_parts(now_ms(), &unique()), at, "run.message.delta", safe(payload))
}

/// One event with this payload, and nothing else.
pub fn one(payload: Value) -> Writes {
    Writes { events: vec![event(payload)], ..Writes::default() }
}

/// A change of `run` after the place `after`.
pub fn at(run: RunId, after: u64, writes: Writes) -> Change {
    Change { run, append: fresh_append(), generation: None, place: Place::At(after, writes) }
}

/// Appends one event after the place `after`.
pub async fn append(
    store: &dyn Store,
    run: RunId,
    after: u64,
    payload: Value,
) -> Result<Appended, StorageError> {
    store.append(at(run, after, one(payload))).await
}

/// A run with its first event and a state `{"count": 0}`.
pub async fn start(store: &dyn Store) -> RunId {
    let run = fresh_run();
    let mut writes = one(json!({"first": true}));
    writes.projection = Some(Projection { status: "running", state: safe(json!({"count": 0})) });
    assert_eq!(store.append(at(run, 0, writes)).await.unwrap(), Appended { first: 1, last: 1 });
    run
}

/// Runs that were started.
pub struct ManyRuns(pub Vec<RunId>);

impl ManyRuns {
    /// Starts so many.
    pub async fn start(store: &dyn Store, count: usize) -> Self {
        let mut runs = Vec::new();
        for _ in 0..count {
            runs.push(start(store).await);
        }
        ManyRuns(runs)
    }
}

/// A text, redacted as everything is.
pub(super) fn safe_text(text: &str) -> Safe<String> {
    redactor().text(Kind::Text, text)
}
