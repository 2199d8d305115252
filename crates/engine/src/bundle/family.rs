//! The runs that came from a run: what applied or took back its changes, and what went on from it.

use std::collections::BTreeSet;

use runyard_domain::RunId;
use runyard_store::{RunRow, RunsQuery, StorageError, Store};

use super::{BundleError, RUNS_MAX};
use crate::installation::is_installation;
use crate::record::Standing;

/// How many runs are looked at at a time.
const PAGE: u32 = 500;

/// The run's row, and those of all that came from it, oldest first.
pub(super) async fn family(store: &dyn Store, run: RunId) -> Result<Vec<RunRow>, BundleError> {
    let found = store.run(run).await?.filter(|row| row.sequence > 0 && !is_installation(row.run));
    let row = found.ok_or_else(|| StorageError::not_found(format!("run {run}")))?;
    let mut later = Vec::new();
    let mut before = None;
    loop {
        let page = store.runs(RunsQuery { status: None, before, limit: PAGE }).await?;
        before = page.runs.last().map(|row| row.run);
        // Ids begin with the time, and nothing comes from a run before it is there.
        for row in page.runs.into_iter().filter(|row| row.run > run && !is_installation(row.run)) {
            let standing = Standing::of(&row)
                .map_err(|error| StorageError::unreadable(format!("run {}", row.run), error))?;
            later.extend(standing.run.created.parent_run_id.map(|parent| (parent, row)));
        }
        if !page.more || before.is_none_or(|last| last <= run) {
            break;
        }
    }
    later.reverse();
    let (mut known, mut rows) = (BTreeSet::from([run]), vec![row]);
    for (parent, row) in later {
        if known.contains(&parent) {
            known.insert(row.run);
            rows.push(row);
        }
        if rows.len() > RUNS_MAX {
            return Err(BundleError::TooManyRuns { run });
        }
    }
    Ok(rows)
}
