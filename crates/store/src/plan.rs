//! What a change does to a run, decided once for every store: append id, lease, guard, sequence and hash.
//!
//! It reads and writes nothing. A store looks up the run's row and whether the change was made before, asks [`Prepared::plan`],
//! and writes what the plan says, all in one transaction.

use runyard_domain::{AppendId, BlobId, RunId, Timestamp};
use runyard_redact::Safe;
use serde_json::Value;

use crate::change::Decide;
use crate::event::EncodedEvent;
use crate::{
    Appended, ApprovalWrite, Change, Hash, KeyedResult, PAYLOAD_BYTES_MAX, Place, Projection, RunRow,
    StorageError, TimerWrite, Writes,
};

/// The most events of one change.
pub const CHANGE_EVENTS_MAX: usize = 256;
/// The most bytes of one change, with all its rows.
pub const CHANGE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The most rows of one kind beside the events.
const CHANGE_ROWS_MAX: usize = 256;
/// The longest name of a timer.
const NAME_BYTES_MAX: usize = 1024;

/// A change whose events are encoded: done before it waits for the writer.
pub struct Prepared {
    /// The run.
    pub run: RunId,
    /// The change's id.
    pub append: AppendId,
    generation: Option<u64>,
    place: PreparedPlace,
}

#[expect(clippy::large_enum_variant, reason = "the large one is the usual one, and is moved seldom")]
enum PreparedPlace {
    At(u64, Encoded),
    Head(Decide),
}

/// Writes with their events encoded.
struct Encoded {
    events: Vec<EncodedEvent>,
    projection: Option<Projection>,
    rows: OtherRows,
    /// About how many bytes all of it takes.
    bytes: usize,
}

/// The rows of a change beside its events and the run's own.
#[derive(Clone, Debug, Default)]
pub struct OtherRows {
    /// Approvals.
    pub approvals: Vec<ApprovalWrite>,
    /// Timers.
    pub timers: Vec<TimerWrite>,
    /// Outbox.
    pub outbox: Vec<Safe<Value>>,
    /// A kept result.
    pub result: Option<KeyedResult>,
}

impl OtherRows {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.approvals.is_empty() && self.timers.is_empty() && self.outbox.is_empty() && self.result.is_none()
    }
}

/// An earlier change of the same append id, as the store found it.
#[derive(Clone, Debug)]
pub enum Earlier {
    /// In the log, at the place where the last event of this one wants to go.
    At {
        /// Its append id.
        append: AppendId,
        /// The stored bytes of its event.
        body: Vec<u8>,
    },
    /// Among the changes at the head.
    Head(Appended),
}

/// Where to look for an earlier change of the same append id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookFor {
    /// The event at this place: its append id and bytes.
    EventAt(u64),
    /// The append id among the changes that were made at the head.
    HeadChange,
    /// Nowhere: it cannot have been made.
    Nothing,
}

/// What is to be done.
#[derive(Debug)]
pub enum Outcome {
    /// Nothing: it was done before.
    Already(Appended),
    /// These rows are to be written.
    Write(Box<Planned>),
}

/// The rows that a change writes.
#[derive(Debug)]
pub struct Planned {
    /// The change's id, which every event row carries.
    pub append: AppendId,
    /// Whether the append id must be kept by itself, since a repetition will not know the place.
    pub at_head: bool,
    /// The events.
    pub events: Vec<PlannedEvent>,
    /// The run's row as it is from now on. `created` says whether it is new.
    pub row: RunRow,
    /// Whether the run's row is new.
    pub created: bool,
    /// Whether status and state changed, or only the head.
    pub projected: bool,
    /// The rest.
    pub rows: OtherRows,
}

/// An event with its place.
#[derive(Debug)]
pub struct PlannedEvent {
    /// Its place.
    pub sequence: u64,
    /// The bytes to store.
    pub body: Vec<u8>,
    /// The blobs it refers to. Storing is refused when one is missing.
    pub blobs: Vec<BlobId>,
}

impl Planned {
    /// The answer, once it is durable.
    pub fn appended(&self) -> Appended {
        let last = self.row.sequence;
        Appended { first: last + 1 - self.events.len() as u64, last }
    }
}

impl Change {
    /// Encodes the change, or says why it can never be made.
    pub fn prepare(self) -> Result<Prepared, StorageError> {
        let place = match self.place {
            Place::At(sequence, writes) => PreparedPlace::At(sequence, encode(self.run, writes)?),
            Place::Head(decide) => PreparedPlace::Head(decide),
        };
        Ok(Prepared { run: self.run, append: self.append, generation: self.generation, place })
    }
}

fn encode(run: RunId, writes: Writes) -> Result<Encoded, StorageError> {
    let Writes { events, projection, approvals, timers, outbox, result } = writes;
    if events.is_empty() {
        return Err(StorageError::invalid("a change has at least one event"));
    }
    if events.len() > CHANGE_EVENTS_MAX {
        return Err(StorageError::invalid(format!("a change has at most {CHANGE_EVENTS_MAX} events")));
    }
    let events =
        events.into_iter().map(|event| EncodedEvent::new(run, event)).collect::<Result<Vec<_>, _>>()?;
    let rows = OtherRows { approvals, timers, outbox, result };
    let state = projection.as_ref().map_or(Ok(0), |projection| row_bytes(&projection.state))?;
    let bytes = events.iter().map(EncodedEvent::size).sum::<usize>() + state + rows.bytes()?;
    if bytes > CHANGE_BYTES_MAX {
        return Err(StorageError::invalid(format!("a change has at most {CHANGE_BYTES_MAX} bytes")));
    }
    Ok(Encoded { events, projection, rows, bytes })
}

impl OtherRows {
    /// About how many bytes they take, or which of them is too large.
    fn bytes(&self) -> Result<usize, StorageError> {
        let counts = [self.approvals.len(), self.timers.len(), self.outbox.len()];
        if counts.iter().any(|count| *count > CHANGE_ROWS_MAX) {
            let what = format!("a change has at most {CHANGE_ROWS_MAX} approvals, timers or messages");
            return Err(StorageError::invalid(what));
        }
        let approvals = self.approvals.iter().map(|approval| match approval {
            ApprovalWrite::Open { request, .. } => request,
            ApprovalWrite::Resolve { decision, .. } => decision,
        });
        let timers = self.timers.iter().filter_map(|timer| match timer {
            TimerWrite::Set { payload, .. } => Some(payload),
            TimerWrite::Cancel { .. } => None,
        });
        let names = self.timers.iter().map(|timer| match timer {
            TimerWrite::Set { name, .. } | TimerWrite::Cancel { name } => name,
        });
        if names.into_iter().any(|name| name.len() > NAME_BYTES_MAX || name.contains('\0')) {
            let what = format!("a timer's name has at most {NAME_BYTES_MAX} bytes, and no zero among them");
            return Err(StorageError::invalid(what));
        }
        let others = self.outbox.iter().chain(self.result.as_ref().map(|kept| &kept.result));
        approvals.chain(timers).chain(others).try_fold(0, |sum, payload| Ok(sum + row_bytes(payload)?))
    }
}

/// About how many bytes a row with this payload takes, or that it is too large.
fn row_bytes(payload: &Value) -> Result<usize, StorageError> {
    let bytes = json_bytes(payload);
    if bytes > PAYLOAD_BYTES_MAX {
        return Err(StorageError::invalid(format!("what a row holds has at most {PAYLOAD_BYTES_MAX} bytes")));
    }
    Ok(bytes)
}

/// About how long a value is as JSON.
fn json_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| json_bytes(item) + 1).sum::<usize>() + 2,
        Value::Object(fields) => {
            fields.iter().map(|(name, field)| name.len() + json_bytes(field) + 4).sum::<usize>() + 2
        }
        _ => 8,
    }
}

impl Prepared {
    /// How many events it has, as far as that is known before its turn; at least 1.
    pub fn events(&self) -> usize {
        match &self.place {
            PreparedPlace::At(_, encoded) => encoded.events.len(),
            PreparedPlace::Head(_) => 1,
        }
    }

    /// About how many bytes it writes, as far as that is known before its turn.
    pub fn size(&self) -> usize {
        match &self.place {
            PreparedPlace::At(_, encoded) => encoded.bytes,
            // It may be anything; too much only makes a smaller group.
            PreparedPlace::Head(_) => 32 * 1024,
        }
    }

    /// Where an earlier change of the same append id would be, the run standing at `row`.
    pub fn look_for(&self, row: Option<&RunRow>) -> LookFor {
        match (&self.place, row) {
            (_, None) => LookFor::Nothing,
            (PreparedPlace::At(after, encoded), Some(row)) => {
                // The last of its events: if that is there, all of them are.
                let last = after.saturating_add(encoded.events.len() as u64);
                if row.sequence >= last { LookFor::EventAt(last) } else { LookFor::Nothing }
            }
            (PreparedPlace::Head(_), Some(_)) => LookFor::HeadChange,
        }
    }

    /// What is to be done, the run standing at `row`, with what was found where [`look_for`](Prepared::look_for) said.
    pub fn plan(
        &mut self,
        row: Option<&RunRow>,
        earlier: Option<Earlier>,
        now: Timestamp,
    ) -> Result<Outcome, StorageError> {
        if let Some(before) = self.made_before(earlier)? {
            return Ok(Outcome::Already(before));
        }
        if let (Some(held), Some(row)) = (self.generation, row)
            && held != row.generation
        {
            return Err(StorageError::StaleGeneration { held, current: row.generation });
        }
        let actual = row.map_or(0, |row| row.sequence);
        let fresh;
        let (encoded, at_head) = match (&mut self.place, row) {
            (PreparedPlace::At(expected, _), _) if *expected != actual => {
                return Err(StorageError::VersionConflict { expected: *expected, actual });
            }
            (PreparedPlace::At(_, encoded), _) => (&*encoded, false),
            (PreparedPlace::Head(_), None) => {
                return Err(StorageError::not_found(format!("run {}", self.run)));
            }
            (PreparedPlace::Head(decide), Some(row)) => {
                let decided = decide(row);
                let writes = decided.map_err(|refusal| StorageError::Refused {
                    code: refusal.code,
                    source: refusal.source,
                })?;
                fresh = encode(self.run, writes)?;
                (&fresh, true)
            }
        };
        let next = row.cloned().unwrap_or_else(|| RunRow::new(self.run, now));
        let (events, next) = encoded.place(next, now);
        Ok(Outcome::Write(Box::new(Planned {
            append: self.append,
            at_head,
            events,
            row: next,
            created: row.is_none(),
            projected: encoded.projection.is_some(),
            rows: encoded.rows.clone(),
        })))
    }

    fn made_before(&self, earlier: Option<Earlier>) -> Result<Option<Appended>, StorageError> {
        match (earlier, &self.place) {
            (Some(Earlier::At { append, body }), PreparedPlace::At(after, encoded))
                if append == self.append =>
            {
                if !encoded.events.last().is_some_and(|event| event.is_stored_as(&body)) {
                    let what = format!("a change {append} with another content");
                    return Err(StorageError::exists(what));
                }
                Ok(Some(Appended { first: after + 1, last: after + encoded.events.len() as u64 }))
            }
            (Some(Earlier::Head(appended)), PreparedPlace::Head(_)) => Ok(Some(appended)),
            _ => Ok(None),
        }
    }
}

impl Encoded {
    /// The events with their places after `row`, and the row after them.
    fn place(&self, mut row: RunRow, now: Timestamp) -> (Vec<PlannedEvent>, RunRow) {
        let mut events = Vec::with_capacity(self.events.len());
        for event in &self.events {
            row.sequence += 1;
            let body = event.body(row.sequence, row.head);
            row.head = Some(Hash::of(&body));
            events.push(PlannedEvent { sequence: row.sequence, body, blobs: event.blobs.clone() });
        }
        if let Some(projection) = &self.projection {
            projection.status.clone_into(&mut row.status);
            // A JSON tree always has a text.
            row.state = serde_json::to_vec(&projection.state).unwrap_or_default();
        }
        row.updated = now;
        (events, row)
    }
}

impl RunRow {
    /// A run before its first event.
    fn new(run: RunId, now: Timestamp) -> Self {
        RunRow {
            run,
            sequence: 0,
            head: None,
            status: String::new(),
            state: b"null".to_vec(),
            generation: 0,
            lease: None,
            created: now,
            updated: now,
        }
    }
}
