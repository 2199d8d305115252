//! A store in memory, for tests: it forgets everything with the process, and keeps every other promise.

mod threads;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use runyard_domain::{AppendId, ApprovalId, BlobId, RunId, Timestamp};
use runyard_redact::Safe;

use crate::plan::{Earlier, LookFor, Outcome, Planned};
use crate::{
    Acquired, Appended, Approval, ApprovalWrite, Approvals, BLOB_BYTES_MAX, Blobs, Change, Clock, Collected,
    EventLog, FeedCursor, FeedEntry, FeedPage, Idempotency, KeptResult, KeyDigest, KeyedResult, Lease,
    LeaseRow, Leases, Live, LoggedEvent, Outbox, OutboxItem, PAGE_MAX, RunPage, RunRow, Runs, RunsQuery,
    StorageError, SystemClock, Timer, TimerWrite, Timers, blob_id,
};

/// The store in memory.
pub struct MemoryStore {
    tables: Mutex<Tables>,
    threads: Mutex<threads::Threads>,
    clock: Arc<dyn Clock>,
    live: Live,
}

/// The rows. Ordered as the other stores order theirs.
#[derive(Clone, Default)]
struct Tables {
    runs: BTreeMap<RunId, RunRow>,
    events: HashMap<RunId, Vec<(AppendId, LoggedEvent)>>,
    /// Every event in the order of its commit.
    feed: Vec<(RunId, u64)>,
    head_changes: HashMap<(RunId, AppendId), Appended>,
    approvals: BTreeMap<ApprovalId, Approval>,
    timers: BTreeMap<(RunId, String), Timer>,
    outbox: BTreeMap<u64, OutboxItem>,
    outbox_next: u64,
    results: HashMap<KeyDigest, (KeptResult, Timestamp)>,
    blobs: HashMap<BlobId, (Vec<u8>, Timestamp)>,
    referred: HashSet<BlobId>,
}

impl Default for MemoryStore {
    fn default() -> Self {
        MemoryStore::with_clock(Arc::new(SystemClock))
    }
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        MemoryStore::default()
    }

    /// An empty store that lives by this clock.
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        MemoryStore { tables: Mutex::default(), threads: Mutex::default(), clock, live: Live::default() }
    }

    /// Changes a run's stored events behind the log's back.
    #[cfg(test)]
    pub(crate) fn tamper(&self, run: RunId, tamper: impl Fn(&mut Vec<LoggedEvent>)) {
        let mut tables = self.tables();
        let stored = tables.events.entry(run).or_default();
        let mut events: Vec<LoggedEvent> = stored.iter().map(|(_, event)| event.clone()).collect();
        tamper(&mut events);
        *stored = events.into_iter().map(|event| (AppendId::from_parts(0, &[0; 10]), event)).collect();
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tables {
    fn earlier(&self, run: RunId, append: AppendId, look_for: LookFor) -> Option<Earlier> {
        match look_for {
            LookFor::Nothing => None,
            LookFor::HeadChange => self.head_changes.get(&(run, append)).copied().map(Earlier::Head),
            LookFor::EventAt(sequence) => {
                let index = usize::try_from(sequence).ok()?.checked_sub(1)?;
                let (append, event) = self.events.get(&run)?.get(index)?;
                Some(Earlier::At { append: *append, body: event.body.to_vec() })
            }
        }
    }

    /// Writes what was planned, or nothing.
    fn write(&mut self, planned: Planned) -> Result<Vec<LoggedEvent>, StorageError> {
        let run = planned.row.run;
        let mut after = self.approvals_after(run, &planned.rows.approvals)?;
        let referred = planned.events.iter().flat_map(|event| event.blobs.iter().copied());
        for blob in referred.clone() {
            if !self.blobs.contains_key(&blob) {
                return Err(StorageError::not_found(format!("blob {blob}")));
            }
        }
        if let Some(result) = &planned.rows.result {
            self.keep(result.clone(), planned.row.updated)?;
        }
        // From here on nothing can fail.
        self.referred.extend(referred);
        self.approvals.append(&mut after);
        for timer in &planned.rows.timers {
            match timer {
                TimerWrite::Set { name, due, payload } => {
                    let payload = bytes(payload);
                    let timer = Timer { run, name: name.to_string(), due: *due, payload };
                    self.timers.insert((run, name.to_string()), timer);
                }
                TimerWrite::Cancel { name } => drop(self.timers.remove(&(run, name.to_string()))),
            }
        }
        for message in &planned.rows.outbox {
            self.outbox_next += 1;
            let item = OutboxItem { id: self.outbox_next, run, payload: bytes(message) };
            self.outbox.insert(item.id, item);
        }
        if planned.at_head {
            self.head_changes.insert((run, planned.append), planned.appended());
        }
        let mut written = Vec::with_capacity(planned.events.len());
        for event in planned.events {
            let event = LoggedEvent { sequence: event.sequence, body: event.body.into() };
            self.feed.push((run, event.sequence));
            self.events.entry(run).or_default().push((planned.append, event.clone()));
            written.push(event);
        }
        self.runs.insert(run, planned.row);
        Ok(written)
    }

    /// The approvals that these writes change, as they are afterwards.
    fn approvals_after(
        &self,
        run: RunId,
        writes: &[ApprovalWrite],
    ) -> Result<BTreeMap<ApprovalId, Approval>, StorageError> {
        let mut after: BTreeMap<ApprovalId, Approval> = BTreeMap::new();
        for write in writes {
            match write {
                ApprovalWrite::Open { id, expires, request } => {
                    if self.approvals.contains_key(id) || after.contains_key(id) {
                        return Err(StorageError::exists(format!("approval {id}")));
                    }
                    let request = bytes(request);
                    after.insert(*id, Approval { id: *id, run, expires: *expires, request, decision: None });
                }
                ApprovalWrite::Resolve { id, decision } => {
                    let found =
                        after.get(id).or_else(|| self.approvals.get(id)).filter(|found| found.run == run);
                    let mut approval =
                        found.cloned().ok_or_else(|| StorageError::not_found(format!("approval {id}")))?;
                    if approval.decision.is_some() {
                        let what = format!("a decision on approval {id}");
                        return Err(StorageError::exists(what));
                    }
                    approval.decision = Some(bytes(decision));
                    after.insert(*id, approval);
                }
            }
        }
        Ok(after)
    }

    fn keep(&mut self, result: KeyedResult, now: Timestamp) -> Result<(), StorageError> {
        let kept = KeptResult { fingerprint: result.fingerprint, result: bytes(&result.result) };
        match self.results.get(&result.key) {
            Some((first, expires)) if *expires > now => {
                if *first == kept {
                    return Ok(());
                }
                Err(StorageError::exists("a result for the idempotency key"))
            }
            _ => {
                self.results.insert(result.key, (kept, result.expires));
                Ok(())
            }
        }
    }

    fn row_mut(&mut self, run: RunId) -> Result<&mut RunRow, StorageError> {
        self.runs.get_mut(&run).ok_or_else(|| StorageError::not_found(format!("run {run}")))
    }
}

/// A JSON tree always has a text.
fn bytes(value: &Safe<serde_json::Value>) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

fn later(now: Timestamp, by: Duration) -> Timestamp {
    Timestamp::from_unix_ms(now.unix_ms().saturating_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)))
}

fn page(limit: u32) -> usize {
    limit.min(PAGE_MAX) as usize
}

#[async_trait]
impl EventLog for MemoryStore {
    async fn append(&self, change: Change) -> Result<Appended, StorageError> {
        let mut prepared = change.prepare()?;
        let mut tables = self.tables();
        let row = tables.runs.get(&prepared.run);
        let earlier = tables.earlier(prepared.run, prepared.append, prepared.look_for(row));
        match prepared.plan(row, earlier, self.clock.now())? {
            Outcome::Already(appended) => Ok(appended),
            Outcome::Write(planned) => {
                let appended = planned.appended();
                let events = tables.write(*planned)?;
                // Under the lock, so that events reach their followers in order.
                self.live.publish(prepared.run, &events);
                Ok(appended)
            }
        }
    }

    async fn head(&self, run: RunId) -> Result<Option<u64>, StorageError> {
        Ok(self.tables().runs.get(&run).map(|row| row.sequence))
    }

    async fn read(&self, run: RunId, after: u64, limit: u32) -> Result<Vec<LoggedEvent>, StorageError> {
        let tables = self.tables();
        let events = tables.events.get(&run).map(Vec::as_slice).unwrap_or_default();
        let skipped = events.partition_point(|(_, event)| event.sequence <= after);
        Ok(events[skipped..].iter().take(page(limit)).map(|(_, event)| event.clone()).collect())
    }

    async fn feed(&self, after: &FeedCursor, limit: u32) -> Result<FeedPage, StorageError> {
        let tables = self.tables();
        let position: usize =
            after.as_str().parse().map_err(|_| StorageError::invalid("not a cursor of this feed"))?;
        if position > tables.feed.len() {
            return Err(StorageError::invalid("the cursor is ahead of the feed"));
        }
        let mut entries = Vec::new();
        for (index, (run, sequence)) in tables.feed.iter().enumerate().skip(position).take(page(limit)) {
            let place = usize::try_from(*sequence).unwrap_or(usize::MAX).saturating_sub(1);
            let event = tables.events.get(run).and_then(|events| events.get(place));
            if let Some((_, event)) = event {
                let cursor = FeedCursor((index + 1).to_string());
                entries.push(FeedEntry { cursor, run: *run, event: event.clone() });
            }
        }
        let next = entries.last().map_or_else(|| after.clone(), |entry| entry.cursor.clone());
        Ok(FeedPage { entries, next })
    }

    fn live(&self) -> &Live {
        &self.live
    }
}

#[async_trait]
impl Runs for MemoryStore {
    async fn run(&self, run: RunId) -> Result<Option<RunRow>, StorageError> {
        Ok(self.tables().runs.get(&run).cloned())
    }

    async fn runs(&self, query: RunsQuery) -> Result<RunPage, StorageError> {
        let tables = self.tables();
        let wanted = |row: &&RunRow| query.status.as_ref().is_none_or(|status| row.status == *status);
        let before = |row: &&RunRow| query.before.is_none_or(|before| row.run < before);
        let found = tables.runs.values().rev().filter(before).filter(wanted);
        let mut runs: Vec<RunRow> = found.take(page(query.limit) + 1).cloned().collect();
        let more = runs.len() > page(query.limit);
        runs.truncate(page(query.limit));
        Ok(RunPage { runs, more })
    }
}

#[async_trait]
impl Approvals for MemoryStore {
    async fn approval(&self, id: ApprovalId) -> Result<Option<Approval>, StorageError> {
        Ok(self.tables().approvals.get(&id).cloned())
    }

    async fn open_approvals(
        &self,
        run: Option<RunId>,
        after: Option<ApprovalId>,
        limit: u32,
    ) -> Result<Vec<Approval>, StorageError> {
        let tables = self.tables();
        let open = tables.approvals.values().filter(|found| found.decision.is_none());
        let wanted = open
            .filter(|found| run.is_none_or(|run| found.run == run))
            .filter(|found| after.is_none_or(|after| found.id > after));
        Ok(wanted.take(page(limit)).cloned().collect())
    }
}

#[async_trait]
impl Timers for MemoryStore {
    async fn due_timers(&self, limit: u32) -> Result<Vec<Timer>, StorageError> {
        let now = self.clock.now();
        let mut due: Vec<Timer> =
            self.tables().timers.values().filter(|timer| timer.due <= now).cloned().collect();
        due.sort_by_key(|timer| timer.due);
        due.truncate(page(limit));
        Ok(due)
    }

    async fn next_timer(&self) -> Result<Option<Timestamp>, StorageError> {
        Ok(self.tables().timers.values().map(|timer| timer.due).min())
    }

    async fn now(&self) -> Result<Timestamp, StorageError> {
        Ok(self.clock.now())
    }
}

#[async_trait]
impl Leases for MemoryStore {
    async fn acquire(
        &self,
        run: RunId,
        owner: Safe<String>,
        term: Duration,
    ) -> Result<Acquired, StorageError> {
        let now = self.clock.now();
        let mut tables = self.tables();
        let row = tables.row_mut(run)?;
        if let Some(lease) = &row.lease
            && lease.owner != *owner
            && !lease.is_over(now)
        {
            return Ok(Acquired::Held { owner: lease.owner.clone(), expires: lease.expires });
        }
        row.generation += 1;
        let expires = later(now, term);
        row.lease = Some(LeaseRow { owner: owner.into_inner(), granted: now, expires });
        Ok(Acquired::Granted(Lease { generation: row.generation, expires }))
    }

    async fn renew(&self, run: RunId, generation: u64, term: Duration) -> Result<Lease, StorageError> {
        let now = self.clock.now();
        let mut tables = self.tables();
        let row = tables.row_mut(run)?;
        let current = row.generation;
        match &mut row.lease {
            Some(lease) if current == generation => {
                (lease.granted, lease.expires) = (now, later(now, term));
                Ok(Lease { generation, expires: lease.expires })
            }
            _ => Err(StorageError::StaleGeneration { held: generation, current }),
        }
    }

    async fn release(&self, run: RunId, generation: u64) -> Result<(), StorageError> {
        let mut tables = self.tables();
        let row = tables.row_mut(run)?;
        if row.generation != generation {
            return Err(StorageError::StaleGeneration { held: generation, current: row.generation });
        }
        row.lease = None;
        Ok(())
    }
}

#[async_trait]
impl Idempotency for MemoryStore {
    async fn kept(&self, key: KeyDigest) -> Result<Option<KeptResult>, StorageError> {
        let now = self.clock.now();
        let tables = self.tables();
        Ok(tables.results.get(&key).filter(|(_, expires)| *expires > now).map(|(kept, _)| kept.clone()))
    }

    async fn keep(&self, result: KeyedResult) -> Result<(), StorageError> {
        let now = self.clock.now();
        self.tables().keep(result, now)
    }

    async fn forget_expired(&self, limit: u32) -> Result<u64, StorageError> {
        let now = self.clock.now();
        let mut tables = self.tables();
        let expired = tables.results.iter().filter(|(_, (_, expires))| *expires <= now);
        let expired: Vec<KeyDigest> = expired.map(|(key, _)| *key).take(page(limit)).collect();
        expired.iter().for_each(|key| drop(tables.results.remove(key)));
        Ok(expired.len() as u64)
    }
}

#[async_trait]
impl Outbox for MemoryStore {
    async fn undelivered(&self, after: u64, limit: u32) -> Result<Vec<OutboxItem>, StorageError> {
        let tables = self.tables();
        Ok(tables
            .outbox
            .range(after.saturating_add(1)..)
            .take(page(limit))
            .map(|(_, item)| item.clone())
            .collect())
    }

    async fn delivered(&self, ids: &[u64]) -> Result<(), StorageError> {
        let mut tables = self.tables();
        ids.iter().for_each(|id| drop(tables.outbox.remove(id)));
        Ok(())
    }
}

#[async_trait]
impl Blobs for MemoryStore {
    async fn put(&self, content: Safe<Vec<u8>>) -> Result<BlobId, StorageError> {
        if content.len() > BLOB_BYTES_MAX {
            return Err(StorageError::invalid(format!("a blob has at most {BLOB_BYTES_MAX} bytes")));
        }
        let id = blob_id(&content);
        self.tables().blobs.insert(id, (content.into_inner(), self.clock.now()));
        Ok(id)
    }

    async fn get(&self, id: BlobId) -> Result<Vec<u8>, StorageError> {
        let tables = self.tables();
        let found = tables.blobs.get(&id).map(|(content, _)| content.clone());
        found.ok_or_else(|| StorageError::not_found(format!("blob {id}")))
    }

    async fn collect(&self, unused_for: Duration) -> Result<Collected, StorageError> {
        let now = self.clock.now();
        let mut tables = self.tables();
        let Tables { blobs, referred, .. } = &mut *tables;
        let mut collected = Collected::default();
        blobs.retain(|id, (content, put)| {
            let keeps = referred.contains(id) || later(*put, unused_for) > now;
            if !keeps {
                collected.blobs += 1;
                collected.bytes += content.len() as u64;
            }
            keeps
        });
        Ok(collected)
    }
}
