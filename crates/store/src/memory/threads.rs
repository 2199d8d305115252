//! Threads in memory.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use runyard_domain::AppendId;
use runyard_redact::Safe;
use serde_json::Value;

use super::{MemoryStore, page};
use crate::threads::plan::{
    self, CallHead, Earlier, Found, LookFor, Outcome, Planned, PreparedCommit, RunHead, Step,
};
use crate::{
    AgentRunId, AgentRunRow, Claimed, Committed, Lease, PAGE_BYTES_MAX, RunStore, Scope, StateValue,
    StorageError, StoredMessage, ThreadCommit, ThreadId, ThreadRow, ThreadRunStore, ThreadStore, ToolCallRow,
};

/// The rows of all threads.
#[derive(Default)]
pub(super) struct Threads {
    threads: BTreeMap<ThreadId, Thread>,
    runs: HashMap<AgentRunId, Run>,
    /// How many threads were made.
    made: u64,
}

type Values = BTreeMap<String, Vec<u8>>;

struct Thread {
    row: ThreadRow,
    messages: Vec<(AppendId, Arc<[u8]>)>,
    /// Commits without messages, with the version at each.
    quiet: HashMap<AppendId, u64>,
    values: Values,
    /// The runs in the order of their numbers.
    runs: Vec<AgentRunId>,
}

struct Run {
    row: AgentRunRow,
    values: Values,
    calls: Vec<ToolCallRow>,
    /// Where in the journal each call is.
    places: HashMap<String, usize>,
}

impl Thread {
    fn earlier(&self, append: AppendId, look_for: LookFor) -> Option<Earlier> {
        match look_for {
            LookFor::Nothing => None,
            LookFor::Quiet => self.quiet.get(&append).map(|version| Earlier::Quiet { version: *version }),
            LookFor::MessageAt(position) => {
                let (append, body) = self.messages.get(index(position)?)?;
                Some(Earlier::Message { append: *append, body: body.to_vec() })
            }
        }
    }
}

/// Where in a list the part of this number is.
fn index(number: u64) -> Option<usize> {
    usize::try_from(number).ok()?.checked_sub(1)
}

impl Threads {
    fn get(&self, id: &ThreadId) -> Result<&Thread, StorageError> {
        self.threads.get(id).ok_or_else(|| StorageError::not_found(format!("thread {id}")))
    }

    fn head(&self, thread: &ThreadId, run: &AgentRunId) -> Option<RunHead> {
        self.runs.get(run).map(|found| RunHead {
            is_of_thread: found.row.thread == *thread,
            number: found.row.number,
            finished: found.row.finished,
        })
    }

    /// Changes a thread's row as the rules of claims say.
    fn step<T>(
        &mut self,
        id: &ThreadId,
        step: impl FnOnce(&Self, &ThreadRow) -> Result<Step<T>, StorageError>,
    ) -> Result<T, StorageError> {
        let Step { after, answer } = step(self, &self.get(id)?.row)?;
        if let (Some(after), Some(thread)) = (after, self.threads.get_mut(id)) {
            thread.row = after;
        }
        Ok(answer)
    }

    fn found(&self, prepared: &PreparedCommit) -> Found {
        let thread = self.threads.get(&prepared.thread);
        let look_for = prepared.look_for(thread.map(|thread| &thread.row));
        let run = self.runs.get(&prepared.run);
        let known = |call: &str| {
            let run = run?;
            let place = run.places.get(call)?;
            let is_answered = run.calls.get(*place)?.result.is_some();
            Some((call.to_owned(), if is_answered { CallHead::Answered } else { CallHead::Open }))
        };
        Found {
            earlier: thread.and_then(|thread| thread.earlier(prepared.append, look_for)),
            run: self.head(&prepared.thread, &prepared.run),
            calls: prepared.calls().filter_map(known).collect(),
        }
    }

    /// Writes what was planned: nothing in it can fail.
    fn write(&mut self, run_id: &AgentRunId, planned: &Planned<'_>) {
        let Some(thread) = self.threads.get_mut(&planned.row.id) else { return };
        let now = planned.row.updated;
        let messages = planned.messages.iter().map(|body| (planned.append, body.as_slice().into()));
        thread.messages.extend(messages);
        if planned.is_quiet() {
            thread.quiet.insert(planned.append, planned.row.version);
        }
        let run = self.runs.entry(run_id.clone()).or_insert_with(|| {
            thread.runs.push(run_id.clone());
            Run {
                row: AgentRunRow {
                    id: run_id.clone(),
                    thread: planned.row.id.clone(),
                    number: planned.number,
                    status: String::new(),
                    finished: false,
                    payload: Vec::new(),
                    created: now,
                    updated: now,
                },
                values: Values::new(),
                calls: Vec::new(),
                places: HashMap::new(),
            }
        });
        if let Some(record) = planned.record {
            record.status.clone_into(&mut run.row.status);
            (run.row.finished, run.row.updated) = (record.finished, now);
            run.row.payload.clone_from(&record.payload);
        }
        for ((scope, key), value) in planned.values {
            let values = match scope {
                Scope::Thread => &mut thread.values,
                Scope::Run => &mut run.values,
            };
            match value {
                Some(value) => drop(values.insert(key.clone(), value.clone())),
                None => drop(values.remove(key)),
            }
        }
        for intent in &planned.intents {
            run.places.insert(intent.call.to_owned(), run.calls.len());
            run.calls.push(ToolCallRow {
                place: run.calls.len() as u64 + 1,
                call: intent.call.to_owned(),
                key: intent.key,
                intent: intent.intent.to_vec(),
                result: intent.result.map(<[u8]>::to_vec),
            });
        }
        for (call, result) in &planned.results {
            if let Some(row) = run.places.get(*call).and_then(|place| run.calls.get_mut(*place)) {
                row.result = Some(result.to_vec());
            }
        }
        thread.row = planned.row.clone();
    }
}

/// The rows of a page: until it has enough of them, or is too large.
fn take_page<T>(rows: impl Iterator<Item = T>, limit: u32, bytes: impl Fn(&T) -> usize) -> Vec<T> {
    let mut taken = 0;
    let fits = |row: &T| {
        let has_room = taken < PAGE_BYTES_MAX;
        taken += bytes(row);
        has_room
    };
    rows.take(page(limit)).take_while(fits).collect()
}

fn values(values: &Values, after: Option<&str>, limit: u32) -> Vec<StateValue> {
    let after = after.map_or(Bound::Unbounded, Bound::Excluded);
    let found = values.range::<str, _>((after, Bound::Unbounded));
    let found = found.map(|(key, value)| StateValue { key: key.clone(), value: value.clone() });
    take_page(found, limit, |row| row.key.len() + row.value.len())
}

impl MemoryStore {
    fn locked(&self) -> MutexGuard<'_, Threads> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl ThreadStore for MemoryStore {
    async fn create_thread(&self, thread: &ThreadId, metadata: Safe<Value>) -> Result<(), StorageError> {
        let metadata = plan::encode("a thread's metadata", &metadata)?;
        let mut threads = self.locked();
        if threads.threads.contains_key(thread) {
            return Err(StorageError::exists(format!("thread {thread}")));
        }
        threads.made += 1;
        let row = plan::new_thread(thread, threads.made, metadata, self.clock.now());
        let made = Thread {
            row,
            messages: Vec::new(),
            quiet: HashMap::new(),
            values: Values::new(),
            runs: Vec::new(),
        };
        threads.threads.insert(thread.clone(), made);
        Ok(())
    }

    async fn thread(&self, thread: &ThreadId) -> Result<Option<ThreadRow>, StorageError> {
        Ok(self.locked().threads.get(thread).map(|found| found.row.clone()))
    }

    async fn threads(&self, after: Option<&ThreadId>, limit: u32) -> Result<Vec<ThreadRow>, StorageError> {
        let threads = self.locked();
        let after = after.map_or(Bound::Unbounded, Bound::Excluded);
        let found = threads.threads.range::<ThreadId, _>((after, Bound::Unbounded));
        Ok(take_page(found.map(|(_, found)| found.row.clone()), limit, |row| row.metadata.len()))
    }

    async fn messages(
        &self,
        thread: &ThreadId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredMessage>, StorageError> {
        let threads = self.locked();
        let Some(found) = threads.threads.get(thread) else { return Ok(Vec::new()) };
        let skipped = usize::try_from(after).unwrap_or(usize::MAX);
        let messages = found.messages.iter().skip(skipped).zip(after.saturating_add(1)..);
        let messages =
            messages.map(|((_, body), position)| StoredMessage { position, body: Arc::clone(body) });
        Ok(take_page(messages, limit, |message| message.body.len()))
    }

    async fn thread_values(
        &self,
        thread: &ThreadId,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<StateValue>, StorageError> {
        let threads = self.locked();
        Ok(threads.threads.get(thread).map_or_else(Vec::new, |found| values(&found.values, after, limit)))
    }

    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), StorageError> {
        let now = self.clock.now();
        let mut threads = self.locked();
        let Some(found) = threads.threads.get(thread) else { return Ok(()) };
        plan::check_delete(&found.row, now)?;
        if let Some(gone) = threads.threads.remove(thread) {
            gone.runs.iter().for_each(|run| drop(threads.runs.remove(run)));
        }
        Ok(())
    }
}

#[async_trait]
impl RunStore for MemoryStore {
    async fn agent_run(&self, run: &AgentRunId) -> Result<Option<AgentRunRow>, StorageError> {
        Ok(self.locked().runs.get(run).map(|found| found.row.clone()))
    }

    async fn agent_runs(
        &self,
        thread: &ThreadId,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<AgentRunRow>, StorageError> {
        let threads = self.locked();
        let Some(found) = threads.threads.get(thread) else { return Ok(Vec::new()) };
        let last = before.map_or(found.runs.len(), |before| index(before).unwrap_or(0).min(found.runs.len()));
        let runs = found.runs.iter().take(last).rev();
        let runs = runs.filter_map(|run| threads.runs.get(run).map(|found| found.row.clone()));
        Ok(take_page(runs, limit, |row| row.payload.len()))
    }

    async fn unfinished_run(&self, thread: &ThreadId) -> Result<Option<AgentRunRow>, StorageError> {
        let threads = self.locked();
        let run = threads.threads.get(thread).and_then(|found| found.row.unfinished.as_ref());
        Ok(run.and_then(|run| threads.runs.get(run)).map(|found| found.row.clone()))
    }

    async fn run_values(
        &self,
        run: &AgentRunId,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<StateValue>, StorageError> {
        let threads = self.locked();
        Ok(threads.runs.get(run).map_or_else(Vec::new, |found| values(&found.values, after, limit)))
    }

    async fn tool_calls(
        &self,
        run: &AgentRunId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<ToolCallRow>, StorageError> {
        let threads = self.locked();
        let Some(found) = threads.runs.get(run) else { return Ok(Vec::new()) };
        let calls = found.calls.iter().skip(usize::try_from(after).unwrap_or(usize::MAX)).cloned();
        Ok(take_page(calls, limit, |call| call.intent.len() + call.result.as_ref().map_or(0, Vec::len)))
    }
}

#[async_trait]
impl ThreadRunStore for MemoryStore {
    async fn claim(
        &self,
        thread: &ThreadId,
        run: &AgentRunId,
        owner: Safe<String>,
        term: Duration,
    ) -> Result<Claimed, StorageError> {
        plan::check_owner(&owner)?;
        let now = self.clock.now();
        self.locked().step(thread, |threads, row| {
            plan::claim(row, (run, threads.head(thread, run)), &owner, term, now)
        })
    }

    async fn renew_claim(
        &self,
        thread: &ThreadId,
        generation: u64,
        term: Duration,
    ) -> Result<Lease, StorageError> {
        let now = self.clock.now();
        self.locked().step(thread, |_, row| plan::renew(row, generation, term, now))
    }

    async fn release_claim(&self, thread: &ThreadId, generation: u64) -> Result<(), StorageError> {
        self.locked().step(thread, |_, row| plan::release(row, generation))
    }

    async fn commit(&self, commit: ThreadCommit) -> Result<Committed, StorageError> {
        let prepared = commit.prepare()?;
        let mut threads = self.locked();
        let found = threads.found(&prepared);
        let row = threads.threads.get(&prepared.thread).map(|thread| &thread.row);
        match prepared.plan(row, &found, self.clock.now())? {
            Outcome::Already(committed) => Ok(committed),
            Outcome::Write(planned) => {
                threads.write(&prepared.run, &planned);
                Ok(planned.committed())
            }
        }
    }
}
