//! The one write path: events are redacted, folded into the run and appended in one transaction.
//!
//! The owner of a live run writes `at` the place where it knows the run to stand; a person's answer, a cancel or a timer writes
//! at the `head`, decided inside the transaction, and so cannot lose the race to a chatty agent.

use std::sync::{Arc, Mutex, PoisonError};

use runyard_backend::failpoint;
use runyard_domain::run::{Run, RunEvent};
use runyard_domain::{AppendId, BlobId, EventId, RunId, Timestamp};
use runyard_redact::{Redactor, Safe};
use runyard_store::{
    ApprovalWrite, Change, Clock, KeyedResult, NewEvent, Place, Projection, Refusal, RunRow, StorageError,
    Store, Writes, append_until_known,
};
use serde_json::Value;

use crate::fresh::fresh;
use crate::timers;
use crate::{EngineError, Limits};

/// How often an owner's write is decided anew because somebody else wrote first: people who all speak to a run at once must
/// not keep it from being recorded.
const ATTEMPTS_MAX: usize = 512;

/// A run, and where its log stands.
#[derive(Clone, Debug)]
pub struct Standing {
    /// The run.
    pub run: Run,
    /// Its last event's place.
    pub sequence: u64,
    /// When that was recorded.
    pub updated_at: Timestamp,
}

impl Standing {
    /// What a run's row says.
    pub(crate) fn of(row: &RunRow) -> Result<Self, EngineError> {
        let run = serde_json::from_slice(&row.state)?;
        Ok(Standing { run, sequence: row.sequence, updated_at: row.updated })
    }
}

/// An event on its way into the log, with the adapter's word for it where an adapter said it.
#[derive(Clone, Debug)]
pub(crate) struct Fact {
    pub(crate) event: RunEvent,
    pub(crate) backend_event: Option<&'static str>,
}

impl From<RunEvent> for Fact {
    fn from(event: RunEvent) -> Self {
        Fact { event, backend_event: None }
    }
}

/// What a write at the head is decided to be.
#[derive(Default)]
pub(crate) struct Decided {
    pub(crate) facts: Vec<Fact>,
    /// What the caller's idempotency key stands for from now on.
    pub(crate) result: Option<KeyedResult>,
}

/// Writes to runs.
#[derive(Clone)]
pub(crate) struct Recorder {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) redactor: Redactor,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) limits: Limits,
}

impl Recorder {
    /// Keeps what is too long for an event, durably.
    pub(crate) async fn put(&self, content: Safe<Vec<u8>>) -> Result<BlobId, StorageError> {
        failpoint::reach("blob.put");
        let blob = self.store.put(content).await?;
        failpoint::reach("blob.kept");
        Ok(blob)
    }

    /// Where a run stands.
    pub(crate) async fn load(&self, run: RunId) -> Result<Standing, EngineError> {
        let row = self.store.run(run).await?.filter(|row| row.sequence > 0);
        Standing::of(&row.ok_or_else(|| EngineError::NotFound { what: format!("run {run}") })?)
    }

    /// Makes a run.
    pub(crate) async fn create(
        &self,
        run: RunId,
        facts: Vec<Fact>,
        result: Option<KeyedResult>,
    ) -> Result<Standing, EngineError> {
        let now = self.clock.now();
        let (folded, mut writes) = self.encode(None, run, now, &facts)?;
        writes.result = result;
        let append = fresh!(AppendId, now);
        let change = || Change { run, append, generation: None, place: Place::At(0, writes.clone()) };
        failpoint::reach("record.commit");
        let appended = append_until_known(&*self.store, change).await?;
        failpoint::reach("record.committed");
        Ok(Standing { run: folded, sequence: appended.last, updated_at: now })
    }

    /// Writes as the owner of a live run. `decide` is asked again when somebody else wrote first; what it decides may be
    /// nothing.
    pub(crate) async fn at(
        &self,
        mut standing: Standing,
        generation: u64,
        append: AppendId,
        mut decide: impl FnMut(&Run, Timestamp) -> Result<Vec<Fact>, EngineError>,
    ) -> Result<Standing, EngineError> {
        let id = standing.run.id;
        for _ in 0..ATTEMPTS_MAX {
            let now = self.clock.now();
            let facts = decide(&standing.run, now)?;
            if facts.is_empty() {
                return Ok(standing);
            }
            let (run, writes) = self.encode(Some(&standing.run), id, now, &facts)?;
            let place = standing.sequence;
            let change = || Change {
                run: id,
                append,
                generation: Some(generation),
                place: Place::At(place, writes.clone()),
            };
            failpoint::reach("record.commit");
            match append_until_known(&*self.store, change).await {
                Ok(appended) => {
                    failpoint::reach("record.committed");
                    return Ok(Standing { run, sequence: appended.last, updated_at: now });
                }
                // Someone answered or cancelled meanwhile, so what is legal may have changed.
                Err(StorageError::VersionConflict { .. }) => standing = self.load(id).await?,
                Err(error) => return Err(error.into()),
            }
        }
        Err(EngineError::Contended { run: id })
    }

    /// Writes wherever the run stands when its turn comes.
    pub(crate) async fn head(
        &self,
        run: RunId,
        decide: impl FnMut(&Run, Timestamp) -> Result<Decided, EngineError> + Send + 'static,
    ) -> Result<Standing, EngineError> {
        let append = fresh!(AppendId, self.clock.now());
        let decide = Arc::new(Mutex::new(decide));
        let made: Arc<Mutex<Option<(Run, Timestamp)>>> = Arc::default();
        let change = || {
            let (recorder, decide, made) = (self.clone(), Arc::clone(&decide), Arc::clone(&made));
            let place = Place::Head(Box::new(move |row: &RunRow| {
                let mut decide = decide.lock().unwrap_or_else(PoisonError::into_inner);
                let (folded, now, writes) = recorder.decided(row, &mut *decide).map_err(refusal)?;
                *made.lock().unwrap_or_else(PoisonError::into_inner) = Some((folded, now));
                Ok(writes)
            }));
            Change { run, append, generation: None, place }
        };
        failpoint::reach("head.commit");
        let appended = append_until_known(&*self.store, change).await.map_err(unwrap_refusal)?;
        failpoint::reach("head.committed");
        let made = made.lock().unwrap_or_else(PoisonError::into_inner).take();
        match made {
            Some((run, updated_at)) => Ok(Standing { run, sequence: appended.last, updated_at }),
            // It had been made by an earlier attempt whose answer was lost.
            None => self.load(run).await,
        }
    }

    fn decided(
        &self,
        row: &RunRow,
        decide: &mut impl FnMut(&Run, Timestamp) -> Result<Decided, EngineError>,
    ) -> Result<(Run, Timestamp, Writes), EngineError> {
        let standing = Standing::of(row)?;
        let now = self.clock.now();
        let decided = decide(&standing.run, now)?;
        let (folded, mut writes) = self.encode(Some(&standing.run), row.run, now, &decided.facts)?;
        writes.result = decided.result;
        Ok((folded, now, writes))
    }

    /// Redacts and folds the events, and says what is to be written with them.
    fn encode(
        &self,
        before: Option<&Run>,
        id: RunId,
        now: Timestamp,
        facts: &[Fact],
    ) -> Result<(Run, Writes), EngineError> {
        let mut folded = before.cloned();
        let mut writes = Writes::default();
        for fact in facts {
            let payload = self.redacted(fact)?;
            // What is folded is what is stored, so that a replay comes to the same.
            let stored = RunEvent::read(fact.event.kind(), &payload)?;
            let run = Run::fold(folded, id, now, &stored)?;
            let event = fresh!(EventId, now);
            writes.approvals.extend(approval_write(&stored, &payload));
            writes.outbox.extend(audited(&stored, event, &payload));
            let blobs = match &stored {
                RunEvent::DiffReady(diff) => {
                    diff.parts.files.iter().chain(&diff.parts.texts).copied().collect()
                }
                RunEvent::ArtifactReady(ready) => ready.content.iter().map(|content| content.blob).collect(),
                _ => Vec::new(),
            };
            writes.events.push(NewEvent {
                blobs,
                session: Some(run.created.session_id),
                agent: Some(self.redactor.content(&run.created.agent_id)),
                ..NewEvent::new(event, now, fact.event.kind(), payload)
            });
            folded = Some(run);
        }
        let run = folded.ok_or_else(|| EngineError::NotFound { what: format!("run {id}") })?;
        if before != Some(&run) {
            let state = self.redactor.serialize(&run)?;
            writes.projection = Some(Projection { status: run.state.name(), state });
        }
        writes.timers = timers::writes(before, &run, now, &self.limits);
        Ok((run, writes))
    }

    /// A text as it will be stored.
    pub(crate) fn redacted_text(&self, text: &str) -> String {
        match self.redactor.json(Value::String(text.to_owned())).into_inner() {
            Value::String(stored) => stored,
            other => other.to_string(),
        }
    }

    fn redacted(&self, fact: &Fact) -> Result<Safe<Value>, EngineError> {
        let mut payload = fact.event.payload()?;
        if let (Some(word), Value::Object(fields)) = (fact.backend_event, &mut payload) {
            fields.insert("backendEvent".to_owned(), word.into());
        }
        Ok(self.redactor.json(payload))
    }
}

fn approval_write(event: &RunEvent, payload: &Safe<Value>) -> Option<ApprovalWrite> {
    match event {
        RunEvent::ApprovalRequested(asked) => Some(ApprovalWrite::Open {
            id: asked.approval_id,
            expires: asked.expires_at,
            request: payload.clone(),
        }),
        RunEvent::ApprovalResolved(resolved) => {
            Some(ApprovalWrite::Resolve { id: resolved.approval_id, decision: payload.clone() })
        }
        _ => None,
    }
}

/// What the audit is told of, with the change that it is about.
fn audited(event: &RunEvent, id: EventId, payload: &Safe<Value>) -> Option<Safe<Value>> {
    match event {
        RunEvent::ApprovalResolved(_) => {
            Some(Safe::object([("eventId", id.into()), ("decision", payload.clone())]))
        }
        RunEvent::SecretsProjected(_) => {
            Some(Safe::object([("eventId", id.into()), ("projected", payload.clone())]))
        }
        RunEvent::Applied(_) => Some(Safe::object([("eventId", id.into()), ("applied", payload.clone())])),
        _ => None,
    }
}

fn refusal(error: EngineError) -> Refusal {
    Refusal { code: error.code(), source: Box::new(error) }
}

/// The engine's own error, where the store hands it back.
fn unwrap_refusal(error: StorageError) -> EngineError {
    match error {
        StorageError::Refused { code, source } => match source.downcast::<EngineError>() {
            Ok(own) => *own,
            Err(source) => StorageError::Refused { code, source }.into(),
        },
        other => other.into(),
    }
}
