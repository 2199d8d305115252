//! Whether the rows of a change beside its events may be written: approvals, kept results, blobs, names of timers.
//!
//! What another transaction writes at the same moment is not seen here. The tables' own keys catch that, and the group is
//! planned again.

use std::collections::{HashMap, HashSet};

use runyard_domain::{ApprovalId, BlobId, RunId, Timestamp};
use runyard_store::plan::Planned;
use runyard_store::{ApprovalWrite, KeptResult, KeyDigest, KeyedResult, StorageError, TimerWrite};
use tokio_postgres::Client;
use uuid::Uuid;

use crate::fault::Failure;
use crate::results::{is_over, json, kept, taken};
use crate::run_row::time;
use crate::statements::Statements;

/// What is known of the rows that a group's changes refer to: as they were found, with what the group does to them.
#[derive(Default)]
pub(crate) struct Checks {
    approvals: HashMap<ApprovalId, Option<Asked>>,
    results: HashMap<KeyDigest, Option<(KeptResult, Timestamp)>>,
    blobs: HashMap<BlobId, bool>,
}

/// An approval that was asked for.
#[derive(Clone, Copy)]
struct Asked {
    run: RunId,
    decided: bool,
}

/// What must be looked up before changes can be checked.
#[derive(Default)]
pub(crate) struct Unknown {
    approvals: HashSet<ApprovalId>,
    keys: HashSet<KeyDigest>,
    blobs: HashSet<BlobId>,
}

impl Unknown {
    fn is_empty(&self) -> bool {
        self.approvals.is_empty() && self.keys.is_empty() && self.blobs.is_empty()
    }
}

impl Checks {
    /// What is not known yet of what these changes refer to.
    pub(crate) fn unknown<'a>(&self, plans: impl Iterator<Item = &'a Planned>) -> Unknown {
        let mut unknown = Unknown::default();
        for plan in plans {
            let approvals = plan.rows.approvals.iter().map(approval_id);
            unknown.approvals.extend(approvals.filter(|id| !self.approvals.contains_key(id)));
            let key = plan.rows.result.as_ref().map(|result| result.key);
            unknown.keys.extend(key.filter(|key| !self.results.contains_key(key)));
            let blobs = plan.events.iter().flat_map(|event| event.blobs.iter().copied());
            unknown.blobs.extend(blobs.filter(|id| !self.blobs.contains_key(id)));
        }
        unknown
    }

    /// Looks them up. Blobs that are there stay until the transaction ends.
    pub(crate) async fn look_up(
        &mut self,
        client: &Client,
        statements: &Statements,
        unknown: Unknown,
    ) -> Result<(), Failure> {
        if unknown.is_empty() {
            return Ok(());
        }
        if !unknown.approvals.is_empty() {
            let ids: Vec<Uuid> =
                unknown.approvals.iter().map(|id| Uuid::from_bytes(*id.as_bytes())).collect();
            self.approvals.extend(unknown.approvals.into_iter().map(|id| (id, None)));
            for row in client.query(&statements.approvals, &[&ids]).await? {
                let id = ApprovalId::from_bytes(row.try_get::<_, Uuid>(0)?.into_bytes());
                let run = RunId::from_bytes(row.try_get::<_, Uuid>(1)?.into_bytes());
                self.approvals.insert(id, Some(Asked { run, decided: row.try_get(2)? }));
            }
        }
        if !unknown.keys.is_empty() {
            let keys: Vec<&[u8]> = unknown.keys.iter().map(|key| key.as_bytes().as_slice()).collect();
            let found = client.query(&statements.results, &[&keys]).await?;
            for key in &unknown.keys {
                let mut known = None;
                for row in &found {
                    if row.try_get::<_, &[u8]>(0)? == key.as_bytes() {
                        known = Some((kept(row, 1)?, time(row.try_get(3)?)));
                    }
                }
                self.results.insert(*key, known);
            }
        }
        if !unknown.blobs.is_empty() {
            let ids: Vec<&[u8]> = unknown.blobs.iter().map(|id| id.as_bytes().as_slice()).collect();
            let found = client.query(&statements.blobs, &[&ids]).await?;
            let found =
                found.iter().map(|row| row.try_get::<_, &[u8]>(0)).collect::<Result<HashSet<_>, _>>()?;
            let known = unknown.blobs.iter().map(|id| (*id, found.contains(id.as_bytes().as_slice())));
            self.blobs.extend(known);
        }
        Ok(())
    }

    /// Says whether the change may be made, and if so counts it as made. A result that is kept already is taken out of it.
    pub(crate) fn admit(&mut self, plan: &mut Planned, now: Timestamp) -> Result<(), StorageError> {
        for blob in plan.events.iter().flat_map(|event| &event.blobs) {
            if self.blobs.get(blob) != Some(&true) {
                return Err(StorageError::not_found(format!("blob {blob}")));
            }
        }
        for timer in &plan.rows.timers {
            let (TimerWrite::Set { name, .. } | TimerWrite::Cancel { name }) = timer;
            if name.contains('\0') {
                return Err(StorageError::invalid("a timer's name holds a zero character"));
            }
        }
        let approvals = self.approvals_after(plan.row.run, &plan.rows.approvals)?;
        if let Some(result) = &plan.rows.result {
            match self.result_after(result, now)? {
                Some(kept) => drop(self.results.insert(result.key, Some(kept))),
                None => plan.rows.result = None,
            }
        }
        self.approvals.extend(approvals.into_iter().map(|(id, asked)| (id, Some(asked))));
        Ok(())
    }

    fn approvals_after(
        &self,
        run: RunId,
        writes: &[ApprovalWrite],
    ) -> Result<HashMap<ApprovalId, Asked>, StorageError> {
        let mut after: HashMap<ApprovalId, Asked> = HashMap::new();
        for write in writes {
            let id = approval_id(write);
            let found = after.get(&id).copied().or_else(|| self.approvals.get(&id).copied().flatten());
            match (write, found) {
                (ApprovalWrite::Open { .. }, None) => after.insert(id, Asked { run, decided: false }),
                (ApprovalWrite::Open { .. }, Some(_)) => {
                    return Err(StorageError::exists(format!("approval {id}")));
                }
                (ApprovalWrite::Resolve { .. }, Some(asked)) if asked.run == run && !asked.decided => {
                    after.insert(id, Asked { run, decided: true })
                }
                (ApprovalWrite::Resolve { .. }, Some(asked)) if asked.run == run => {
                    let what = format!("a decision on approval {id}");
                    return Err(StorageError::exists(what));
                }
                (ApprovalWrite::Resolve { .. }, _) => {
                    return Err(StorageError::not_found(format!("approval {id}")));
                }
            };
        }
        Ok(after)
    }

    /// What is kept for the key from now on, unless it is kept already.
    fn result_after(
        &self,
        result: &KeyedResult,
        now: Timestamp,
    ) -> Result<Option<(KeptResult, Timestamp)>, StorageError> {
        let new = KeptResult { fingerprint: result.fingerprint, result: json(&result.result) };
        match self.results.get(&result.key).cloned().flatten() {
            Some((first, expires)) if !is_over(expires, now) => match first == new {
                true => Ok(None),
                false => Err(taken()),
            },
            _ => Ok(Some((new, result.expires))),
        }
    }
}

pub(crate) fn approval_id(write: &ApprovalWrite) -> ApprovalId {
    let (ApprovalWrite::Open { id, .. } | ApprovalWrite::Resolve { id, .. }) = write;
    *id
}
