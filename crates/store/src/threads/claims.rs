//! Who may write to a thread: the rules of claims, for every store.

use std::time::Duration;

use runyard_domain::{Code, Timestamp};

use super::commit::KEY_BYTES_MAX;
use super::plan::{RunHead, THREAD_PARTS_MAX};
use crate::{AgentRunId, Claim, Claimed, Lease, LeaseRow, StorageError, ThreadHolder, ThreadId, ThreadRow};

/// What becomes of a thread's row, and the answer.
#[derive(Debug)]
pub struct Step<T> {
    /// The row from now on, if it changes.
    pub after: Option<ThreadRow>,
    /// The answer, once that is durable.
    pub answer: T,
}

/// The generation of a thread before its first claim. `key` is a number that the store gives to no other thread, also when
/// this one is gone: so whoever held a thread cannot write to a later one of the same name.
pub fn first_generation(key: u64) -> u64 {
    key.saturating_mul(THREAD_PARTS_MAX + 1)
}

/// A thread without messages.
pub fn new_thread(id: &ThreadId, key: u64, metadata: Vec<u8>, now: Timestamp) -> ThreadRow {
    ThreadRow {
        id: id.clone(),
        version: 0,
        runs: 0,
        unfinished: None,
        generation: first_generation(key),
        holder: None,
        created: now,
        updated: now,
        metadata,
    }
}

/// Whether this can be the name of an owner.
pub fn check_owner(owner: &str) -> Result<(), StorageError> {
    if owner.is_empty() || owner.len() > KEY_BYTES_MAX || owner.contains('\0') {
        let what = format!("an owner's name has 1 to {KEY_BYTES_MAX} bytes, and no zero among them");
        return Err(StorageError::invalid(what));
    }
    Ok(())
}

/// Takes the thread for a run, which was found as `head`.
pub fn claim(
    row: &ThreadRow,
    run: (&AgentRunId, Option<RunHead>),
    owner: &str,
    term: Duration,
    now: Timestamp,
) -> Result<Step<Claimed>, StorageError> {
    let (run, head) = run;
    if let Some(ThreadHolder { run: other, lease }) = &row.holder
        && !lease.is_over(now)
        && (other != run || lease.owner != owner)
    {
        let (run, owner, expires) = (other.clone(), lease.owner.clone(), lease.expires);
        return Ok(Step { after: None, answer: Claimed::Held { run, owner, expires } });
    }
    if let Some(head) = head {
        head.check(run)?;
    }
    let mut after = row.clone();
    after.generation += 1;
    if after.generation.is_multiple_of(THREAD_PARTS_MAX + 1) {
        return Err(StorageError::invalid(format!("a thread is claimed at most {THREAD_PARTS_MAX} times")));
    }
    let expires = later(now, term);
    let lease = LeaseRow { owner: owner.to_owned(), granted: now, expires };
    after.holder = Some(ThreadHolder { run: run.clone(), lease });
    let (generation, version) = (after.generation, row.version);
    let claim = Claim { generation, expires, version, unfinished: row.unfinished.clone() };
    Ok(Step { after: Some(after), answer: Claimed::Granted(claim) })
}

/// Prolongs a claim.
pub fn renew(
    row: &ThreadRow,
    generation: u64,
    term: Duration,
    now: Timestamp,
) -> Result<Step<Lease>, StorageError> {
    let mut after = row.clone();
    match &mut after.holder {
        Some(holder) if row.generation == generation => {
            let expires = later(now, term);
            (holder.lease.granted, holder.lease.expires) = (now, expires);
            Ok(Step { after: Some(after), answer: Lease { generation, expires } })
        }
        _ => Err(StorageError::StaleGeneration { held: generation, current: row.generation }),
    }
}

/// Gives a claim up.
pub fn release(row: &ThreadRow, generation: u64) -> Result<Step<()>, StorageError> {
    if row.generation != generation {
        return Err(StorageError::StaleGeneration { held: generation, current: row.generation });
    }
    let after = row.holder.is_some().then(|| ThreadRow { holder: None, ..row.clone() });
    Ok(Step { after, answer: () })
}

/// Whether the thread may be taken away.
pub fn check_delete(row: &ThreadRow, now: Timestamp) -> Result<(), StorageError> {
    match &row.holder {
        Some(ThreadHolder { run, lease }) if !lease.is_over(now) => Err(StorageError::Refused {
            code: Code::RuntimeThreadAlreadyRunning,
            source: format!("run {run} of {} writes to thread {}", lease.owner, row.id).into(),
        }),
        _ => Ok(()),
    }
}

fn later(now: Timestamp, by: Duration) -> Timestamp {
    Timestamp::from_unix_ms(now.unix_ms().saturating_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)))
}
