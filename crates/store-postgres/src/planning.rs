//! What the changes of a group do, one after the other, the runs standing as they were found. Nothing here waits.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use runyard_domain::{AppendId, Code, RunId, Timestamp};
use runyard_store::plan::{Earlier, LookFor, Outcome, Planned, Prepared};
use runyard_store::{Appended, RunRow, StorageError};

/// What was found in the database, under the locks of the runs.
pub(crate) struct Found {
    pub(crate) now: Timestamp,
    /// The number of this transaction in the feed.
    pub(crate) feed: i64,
    pub(crate) runs: HashMap<RunId, FoundRun>,
    pub(crate) events: HashMap<(RunId, u64), (AppendId, Vec<u8>)>,
    pub(crate) head_changes: HashMap<(RunId, AppendId), Appended>,
}

/// A run that is there.
pub(crate) struct FoundRun {
    pub(crate) row: RunRow,
    /// The number of its last event in the feed.
    pub(crate) feed: i64,
}

/// What becomes of a change.
pub(crate) enum Judged {
    /// Nothing, for this reason.
    Refused(StorageError),
    /// Nothing: it was made before.
    Already(Appended),
    /// It is to be written.
    Planned(Box<Planned>),
}

impl Judged {
    pub(crate) fn planned(&self) -> Option<&Planned> {
        match self {
            Judged::Planned(planned) => Some(planned),
            Judged::Refused(_) | Judged::Already(_) => None,
        }
    }
}

impl Found {
    /// Nothing yet.
    pub(crate) fn new(now: Timestamp, feed: i64) -> Self {
        Found { now, feed, runs: HashMap::new(), events: HashMap::new(), head_changes: HashMap::new() }
    }

    /// What becomes of a change, after those `before` it in the group.
    pub(crate) fn judge(&self, change: &mut Prepared, before: &[Judged]) -> Judged {
        let run = change.run;
        let of_run =
            || before.iter().rev().filter_map(Judged::planned).filter(move |plan| plan.row.run == run);
        let row =
            of_run().next().map(|plan| &plan.row).or_else(|| self.runs.get(&run).map(|found| &found.row));
        let earlier = match change.look_for(row) {
            LookFor::Nothing => None,
            LookFor::EventAt(sequence) => of_run()
                .find_map(|plan| event_at(plan, sequence))
                .or_else(|| self.events.get(&(run, sequence)).map(|(append, body)| (*append, body.clone())))
                .map(|(append, body)| Earlier::At { append, body }),
            LookFor::HeadChange => of_run()
                .find(|plan| plan.at_head && plan.append == change.append)
                .map(Planned::appended)
                .or_else(|| self.head_changes.get(&(run, change.append)).copied())
                .map(Earlier::Head),
        };
        // The decision at the head is the caller's code. If it panics, the others of the group go on.
        match catch_unwind(AssertUnwindSafe(|| change.plan(row, earlier, self.now))) {
            Ok(Ok(Outcome::Already(appended))) => Judged::Already(appended),
            Ok(Ok(Outcome::Write(planned))) => Judged::Planned(planned),
            Ok(Err(error)) => Judged::Refused(error),
            Err(_) => Judged::Refused(StorageError::Refused {
                code: Code::InternalError,
                source: "deciding on the change panicked".into(),
            }),
        }
    }
}

fn event_at(plan: &Planned, sequence: u64) -> Option<(AppendId, Vec<u8>)> {
    let event = plan.events.iter().find(|event| event.sequence == sequence)?;
    Some((plan.append, event.body.clone()))
}
