//! Runs whose steps become durable in a store of threads.
//!
//! One run at a time writes to a thread, under a claim that [`StoreCheckpoint::open`] takes and the last step gives back. What
//! a thread holds is read once, when it is opened, and only as far as it is not known already.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use runyard_domain::{AppendId, Code};
use runyard_llm::inference::Message;
use runyard_redact::{Kind, Redactor, Safe};
use runyard_store::{
    AgentRunId, COMMIT_ROWS_MAX, Claim, ClaimAfter, Claimed, JournalWrite, KeyDigest, PAGE_MAX, RunWrite,
    Scope, StorageError, ThreadCommit, ThreadId, ThreadRunStore, ThreadWrites, ValueWrite,
    commit_until_known, stored_json,
};
use serde_json::Value;
use tokio::time::timeout;

use super::safe::{is_of, safe, safe_call, safe_record};
use super::{CallNote, CallPlace, Checkpoint, CheckpointError, Opened, StepCommit, StepLimits};
use crate::run::{END_STEP_MAX, RunRecord, RunStatus};
use crate::state::{StateChanges, StateError};

/// So long a claim holds unless it is renewed. A run whose process died is free to be taken up after it.
pub const CLAIM_TERM: Duration = Duration::from_secs(30);

/// How the names of the loop's own keys begin. What somebody else's words are in them is read back as whatever it is.
const OWN_KEYS: &str = "runtime.";

/// So many messages without secrets are kept for their commit.
const READY_MAX: usize = 256;

/// The steps of one run, durable in a store.
pub struct StoreCheckpoint {
    store: Arc<dyn ThreadRunStore>,
    redactor: Redactor,
    thread: ThreadId,
    run: AgentRunId,
    generation: u64,
    written: Mutex<Written>,
    /// Messages without secrets that were not committed yet, the oldest first: looking for secrets once is enough.
    ready: Mutex<VecDeque<Safe<Value>>>,
    /// Set while nobody knows whether the step that comes next is durable already.
    is_unsettled: AtomicBool,
}

/// What this run has written so far.
#[derive(Debug, Clone, Default)]
struct Written {
    /// How many messages the thread has.
    version: u64,
    /// How many steps were committed under this claim.
    steps: u64,
    /// Calls that have an intent and no result.
    intended: BTreeSet<CallPlace>,
}

/// Why a thread cannot be opened for a run.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The store failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// Somebody writes to it.
    #[error("run {run} of {owner} writes to the thread")]
    Held {
        /// Which run.
        run: String,
        /// Whose.
        owner: String,
    },
    /// Another run of it has not finished: it waits, or its process died.
    #[error("run {run} of the thread has not finished")]
    Unfinished {
        /// Which run.
        run: String,
    },
}

impl StoreCheckpoint {
    /// Takes a thread for a run, makes it where there is none, and reads what is stored. Of the messages only those are read
    /// that come after the `known` ones, which must be the first of the thread.
    pub async fn open(
        store: Arc<dyn ThreadRunStore>,
        redactor: Redactor,
        (thread, run, owner): (&str, &str, &str),
        known: Vec<Arc<Message>>,
    ) -> Result<(Self, Opened), OpenError> {
        Self::open_with(store, redactor, (thread, run, owner), |_| known).await
    }

    /// The same, where what is known is asked for when the thread is taken, and not before, by the generation of the claim.
    pub(crate) async fn open_with(
        store: Arc<dyn ThreadRunStore>,
        redactor: Redactor,
        (thread, run, owner): (&str, &str, &str),
        known: impl FnOnce(u64) -> Vec<Arc<Message>>,
    ) -> Result<(Self, Opened), OpenError> {
        let thread = ThreadId::new(name(&redactor, thread)?)?;
        let run = AgentRunId::new(name(&redactor, run)?)?;
        let owner = name(&redactor, owner)?;
        let claim = claim(store.as_ref(), &thread, &run, owner).await?;
        let taken = StoreCheckpoint {
            store,
            redactor,
            thread,
            run,
            generation: claim.generation,
            written: Mutex::default(),
            ready: Mutex::default(),
            is_unsettled: AtomicBool::new(false),
        };
        if let Some(other) = claim.unfinished.as_ref().filter(|other| **other != taken.run) {
            let run = other.to_string();
            taken.give_up_in_time().await;
            return Err(OpenError::Unfinished { run });
        }
        match taken.read(&claim, known(claim.generation)).await {
            Ok(opened) => {
                let written = Written { version: claim.version, steps: 0, intended: opened.unknown.clone() };
                *taken.written.lock().unwrap_or_else(PoisonError::into_inner) = written;
                Ok((taken, opened))
            }
            Err(error) => {
                taken.give_up_in_time().await;
                Err(error.into())
            }
        }
    }

    /// A thread that was not opened for long is not worth a long wait: its claim runs out by itself.
    async fn give_up_in_time(&self) {
        let _ = timeout(END_STEP_MAX, self.give_up()).await;
    }

    /// Holds the thread for another [`CLAIM_TERM`].
    pub async fn renew(&self) -> Result<(), StorageError> {
        self.store.renew_claim(&self.thread, self.generation, CLAIM_TERM).await.map(drop)
    }

    /// The generation of the claim.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// How many messages the thread has, as far as this run knows.
    pub fn version(&self) -> u64 {
        self.written().version
    }

    async fn read(&self, claim: &Claim, known: Vec<Arc<Message>>) -> Result<Opened, StorageError> {
        let goes_on = claim.unfinished.is_some();
        let mut opened = Opened { messages: self.messages(claim.version, known).await?, ..Opened::default() };
        let mut after: Option<String> = None;
        loop {
            let page = self.store.thread_values(&self.thread, after.as_deref(), PAGE_MAX).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.key.clone());
            for value in &page {
                let stored = stored_json(format_args!("value {} of the thread", value.key), &value.value)?;
                opened.thread_state.values.insert(value.key.clone(), stored);
            }
        }
        if !goes_on {
            return Ok(opened);
        }
        if let Some(row) = self.store.agent_run(&self.run).await? {
            let record = stored_json(format_args!("run {}", self.run), &row.payload)?;
            opened.record = Some(read::<RunRecord>("the run's record", record)?);
        }
        let mut after: Option<String> = None;
        loop {
            let page = self.store.run_values(&self.run, after.as_deref(), PAGE_MAX).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.key.clone());
            for value in &page {
                let stored = stored_json(format_args!("value {} of the run", value.key), &value.value)?;
                opened.run_state.values.insert(value.key.clone(), stored);
            }
        }
        let mut place = 0;
        loop {
            let page = self.store.tool_calls(&self.run, place, PAGE_MAX).await?;
            let Some(last) = page.last() else { break };
            place = last.place;
            let open = page.iter().filter(|call| call.result.is_none());
            opened.unknown.extend(open.filter_map(|call| CallPlace::parse(&call.call)));
        }
        Ok(opened)
    }

    async fn messages(
        &self,
        version: u64,
        mut messages: Vec<Arc<Message>>,
    ) -> Result<Vec<Arc<Message>>, StorageError> {
        if messages.len() as u64 > version {
            // Another thread of the same name was there before.
            messages.clear();
        }
        while (messages.len() as u64) < version {
            let page = self.store.messages(&self.thread, messages.len() as u64, PAGE_MAX).await?;
            if page.is_empty() {
                return Err(StorageError::not_found("message that the thread says it has"));
            }
            for stored in page {
                let message = serde_json::from_slice(&stored.body).map_err(|source| {
                    let record = format!("message {} of the thread", stored.position);
                    StorageError::unreadable(record, source)
                })?;
                messages.push(Arc::new(message));
            }
        }
        Ok(messages)
    }

    /// A message without secrets.
    fn safe(&self, message: &Message) -> Safe<Value> {
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        match ready.iter().position(|safe| is_of(safe, message)) {
            Some(at) => ready.drain(..=at).next_back(),
            None => None,
        }
        .unwrap_or_else(|| safe(&self.redactor, message))
    }

    fn written(&self) -> Written {
        self.written.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The step as a commit, and what is written with it.
    fn commit_of(&self, step: &StepCommit) -> Result<(ThreadCommit, Written), CheckpointError> {
        let mut written = self.written();
        let number = written.steps.to_string();
        let generation = self.generation.to_string();
        let digest = KeyDigest::of(&[self.thread.as_str(), self.run.as_str(), &generation, &number]);
        let (thread, run) = (&step.thread_state, &step.run_state);
        let keys = thread.set.len() + thread.cleared.len() + run.set.len() + run.cleared.len();
        if keys > COMMIT_ROWS_MAX {
            return Err(too_many_keys(keys));
        }
        let mut append = [0; 16];
        append.copy_from_slice(&digest.as_bytes()[..16]);
        let writes = ThreadWrites {
            messages: step.messages.iter().map(|message| self.safe(message)).collect(),
            values: [
                self.values(Scope::Thread, &step.thread_state)?,
                self.values(Scope::Run, &step.run_state)?,
            ]
            .concat(),
            journal: self.journal(&step.calls, &mut written)?,
            record: Some(RunWrite {
                status: step.record.status.as_str(),
                finished: step.record.status == RunStatus::Done,
                payload: safe_record(&self.redactor, &step.record).map_err(unserializable)?,
            }),
        };
        let commit = ThreadCommit {
            thread: self.thread.clone(),
            run: self.run.clone(),
            append: AppendId::from_bytes(append),
            generation: self.generation,
            expected: written.version,
            claim: match step.record.status {
                RunStatus::Running => ClaimAfter::Kept,
                RunStatus::Waiting | RunStatus::Done => ClaimAfter::Released,
            },
            writes,
        };
        written.steps += 1;
        written.version += step.messages.len() as u64;
        Ok((commit, written))
    }

    fn values(&self, scope: Scope, changes: &StateChanges) -> Result<Vec<ValueWrite>, CheckpointError> {
        let key = |key: &String| self.redactor.text(Kind::Text, key);
        let cleared = changes.cleared.iter().map(|name| Ok(ValueWrite::Remove { scope, key: key(name) }));
        let set = changes.set.iter().map(|(name, value)| {
            let safe = self.redactor.json(value.clone());
            if !name.starts_with(OWN_KEYS) && !has_shape_of(value, &safe) {
                return Err(unreadable_later(name));
            }
            Ok(ValueWrite::Set { scope, key: key(name), value: safe })
        });
        cleared.chain(set).collect()
    }

    /// The journal of a step. A call that was not made has no intent, and then nothing is written of it.
    fn journal(
        &self,
        notes: &[CallNote],
        written: &mut Written,
    ) -> Result<Vec<JournalWrite>, CheckpointError> {
        let mut journal = Vec::new();
        for note in notes {
            match note {
                // One that is made again has its intent already.
                CallNote::Intent { place, call, idempotency_key, .. } if written.intended.insert(*place) => {
                    journal.push(JournalWrite::Intent {
                        call: self.redactor.text(Kind::Text, &place.to_string()),
                        key: KeyDigest::of(&[idempotency_key]),
                        payload: safe_call(&self.redactor, call),
                    });
                }
                CallNote::Ended { place, how } if written.intended.remove(place) => {
                    journal.push(JournalWrite::Result {
                        call: self.redactor.text(Kind::Text, &place.to_string()),
                        payload: self.redactor.serialize(how).map_err(unserializable)?,
                    });
                }
                CallNote::Intent { .. } | CallNote::Ended { .. } => {}
            }
        }
        Ok(journal)
    }
}

#[async_trait]
impl Checkpoint for StoreCheckpoint {
    fn stored(&self, message: Message) -> Message {
        let safe = safe(&self.redactor, &message);
        let stored = if is_of(&safe, &message) {
            message
        } else {
            // A message that is one stays one without its secrets; were it not, nothing of it may go on.
            let read = serde_json::from_value((*safe).clone());
            read.unwrap_or_else(|_| Message::text(message.role, ""))
        };
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        if ready.len() == READY_MAX {
            ready.pop_front();
        }
        ready.push_back(safe);
        stored
    }

    fn limits(&self) -> StepLimits {
        StepLimits::STORE
    }

    async fn commit(&self, step: StepCommit) -> Result<(), CheckpointError> {
        let (commit, written) = self.commit_of(&step)?;
        // It stays set when the future is dropped.
        let was_unsettled = self.is_unsettled.swap(true, Ordering::AcqRel);
        let append = commit.append;
        let committed = match self.store.commit(commit).await {
            Ok(_) => Ok(()),
            Err(unknown @ StorageError::CommitUnknown(..)) => {
                let (again, _) = self.commit_of(&step)?;
                until_known(self.store.as_ref(), &again, unknown).await
            }
            Err(error) if was_unsettled && !is_an_answer(&error) => {
                tracing::warn!(thread = %self.thread, %error, "whether a step is stored is still not known");
                Err(StorageError::unknown(append))
            }
            Err(error) => Err(error),
        };
        let is_unknown = matches!(committed, Err(StorageError::CommitUnknown(..)));
        self.is_unsettled.store(is_unknown, Ordering::Release);
        committed?;
        *self.written.lock().unwrap_or_else(PoisonError::into_inner) = written;
        Ok(())
    }

    fn is_one_with_observers(&self) -> bool {
        false
    }

    // That is known to whoever renews the claim.
    fn lost(&self) -> Option<CheckpointError> {
        None
    }

    async fn give_up(&self) {
        if let Err(error) = self.store.release_claim(&self.thread, self.generation).await {
            tracing::warn!(thread = %self.thread, %error, "a claim that nobody needs is left to run out");
        }
    }
}

/// Asks for a commit again until it is known whether it was made. Where that cannot be found out, it stays unknown.
async fn until_known(
    store: &dyn ThreadRunStore,
    commit: &ThreadCommit,
    unknown: StorageError,
) -> Result<(), StorageError> {
    match commit_until_known(store, commit).await {
        Ok(_) => Ok(()),
        Err(answer) if is_an_answer(&answer) => Err(answer),
        Err(_) => Err(unknown),
    }
}

/// Whether the store has looked at the commit and says what is wrong. Nothing that another error says is about an earlier attempt.
fn is_an_answer(error: &StorageError) -> bool {
    matches!(
        error,
        StorageError::VersionConflict { .. }
            | StorageError::StaleGeneration { .. }
            | StorageError::AlreadyExists(..)
            | StorageError::NotFound(..)
            | StorageError::Refused { .. }
            | StorageError::Validation(..)
    )
}

/// Takes the thread, and makes it where there is none.
async fn claim(
    store: &dyn ThreadRunStore,
    thread: &ThreadId,
    run: &AgentRunId,
    owner: Safe<String>,
) -> Result<Claim, OpenError> {
    let claimed = match store.claim(thread, run, owner.clone(), CLAIM_TERM).await {
        Err(StorageError::NotFound(..)) => {
            match store.create_thread(thread, Safe::NULL).await {
                // Somebody else made it just now.
                Ok(()) | Err(StorageError::AlreadyExists(..)) => {}
                Err(error) => return Err(error.into()),
            }
            store.claim(thread, run, owner, CLAIM_TERM).await?
        }
        claimed => claimed?,
    };
    match claimed {
        Claimed::Granted(claim) => Ok(claim),
        Claimed::Held { run, owner, .. } => Err(OpenError::Held { run: run.to_string(), owner }),
    }
}

/// A name that somebody gave. One that holds a secret names nothing.
fn name(redactor: &Redactor, text: &str) -> Result<Safe<String>, StorageError> {
    let safe = redactor.text(Kind::Text, text);
    match *safe == text {
        true => Ok(safe),
        false => Err(StorageError::invalid("a name holds what looks like a secret")),
    }
}

fn read<T: serde::de::DeserializeOwned>(record: &str, value: Value) -> Result<T, StorageError> {
    serde_json::from_value(value).map_err(|source| StorageError::unreadable(record, source))
}

/// Whether a value without its secrets can still be read as what it was: texts are texts, and all else is there.
fn has_shape_of(value: &Value, safe: &Value) -> bool {
    match (value, safe) {
        (Value::Array(items), Value::Array(safe)) => {
            items.len() == safe.len() && items.iter().zip(safe).all(|(item, safe)| has_shape_of(item, safe))
        }
        (Value::Object(fields), Value::Object(safe)) => {
            let is_kept = |(name, field): (&String, &Value)| {
                safe.get(name).is_none_or(|safe| has_shape_of(field, safe))
            };
            fields.len() == safe.len() && fields.iter().all(is_kept)
        }
        (Value::String(_), Value::String(_)) => true,
        (value, safe) => value == safe,
    }
}

fn unreadable_later(key: &str) -> CheckpointError {
    let message =
        "what stands in it under the name of a secret is no text, and would be stored as one that says so: \
                   give it another name, or make it a text"
            .to_owned();
    let error = StateError::KeyEncode { key: key.to_owned(), message };
    CheckpointError { code: error.code(), message: error.to_string() }
}

/// They are stored together or not at all, so they cannot come in several steps.
fn too_many_keys(keys: usize) -> CheckpointError {
    let message = format!(
        "one step changes {keys} keys of the state, and at most {COMMIT_ROWS_MAX} can be stored at once: change fewer of them \
         before the model is asked again, or keep what belongs together in one key"
    );
    CheckpointError { code: Code::StorageValidation, message }
}

fn unserializable(error: runyard_redact::RedactError) -> CheckpointError {
    CheckpointError { code: Code::StorageSerialization, message: error.to_string() }
}
