//! The disk budget of an edge: what the directories of all its runs may take together.
//!
//! Before a run gets a checkout, what is over the budget is collected as far as nothing has to be kept first: what nobody changed, and
//! what is in the person's files by now. The rest is for a person, who may still want to apply it.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use runyard_domain::run::Failure;
use runyard_domain::{Code, RunId};
use tokio::sync::watch;

use crate::blocking::blocking;
use crate::collecting::{AppliedJournal, CarryOut, Collecting};
use crate::places::Places;
use crate::prepare::own_fault;
use crate::usage;
use crate::workspaces::AllowList;

/// How many checkouts are looked at for one run that begins.
const LOOKED_AT_MAX: usize = 32;
const MIB: f64 = 1024.0 * 1024.0;

/// The budget of one edge. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Disk(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    home: PathBuf,
    bytes_max: u64,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// What runs take that nobody works on.
    bytes: HashMap<RunId, u64>,
    /// Runs that had to be left as they are.
    left: HashSet<RunId>,
}

impl Disk {
    pub(crate) fn new(home: &Path, bytes_max: u64) -> Self {
        Disk(Arc::new(Shared { home: home.to_owned(), bytes_max, known: Mutex::default() }))
    }

    /// Makes room for one more checkout, or says that there is none.
    pub(crate) async fn make_room(
        &self,
        workspaces: &AllowList,
        living: &Arc<watch::Sender<()>>,
    ) -> Result<(), Failure> {
        for _ in 0..LOOKED_AT_MAX {
            let shared = Arc::clone(&self.0);
            let looked = blocking(living, move |_| shared.look()).await;
            let (bytes, oldest) = match looked {
                Ok(looked) => looked.map_err(|error| own_fault("checkouts cannot be counted", &error))?,
                Err(error) => return Err(own_fault("checkouts cannot be counted", &error)),
            };
            if bytes <= self.0.bytes_max {
                return Ok(());
            }
            let Some(run) = oldest else { return Err(self.full(bytes)) };
            self.collect(run, workspaces, living).await;
        }
        let shared = Arc::clone(&self.0);
        match blocking(living, move |_| shared.look()).await {
            Ok(Ok((bytes, _))) if bytes > self.0.bytes_max => Err(self.full(bytes)),
            _ => Ok(()),
        }
    }

    fn full(&self, bytes: u64) -> Failure {
        let mib = |bytes: u64| bytes as f64 / MIB;
        let message = format!(
            "The checkouts of runs take {:.1} MiB, and {:.1} MiB are allowed; \"runyard gc\" collects those of runs that have ended.",
            mib(bytes),
            mib(self.0.bytes_max)
        );
        Failure::new(Code::CheckoutsFull, message)
    }

    /// Collects a run that is over, where nothing has to be kept first; else it is not looked at again.
    async fn collect(&self, run: RunId, workspaces: &AllowList, living: &Arc<watch::Sender<()>>) {
        let shared = Arc::clone(&self.0);
        let owner = Places::of(&shared.home, run).owner().ok().flatten();
        let workspace = match owner {
            Some(owner) => workspaces.root(owner.workspace).await.ok(),
            None => None,
        };
        let collected = blocking(living, move |stop| {
            let collecting = Collecting {
                home: &shared.home,
                workspace: workspace.as_deref(),
                archive: None,
                applied: AppliedJournal::Kept,
                carry_out: CarryOut::Really,
            };
            let collected = collecting.collect(run, stop);
            let mut known = shared.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.bytes.remove(&run);
            known.left.insert(run);
            collected
        });
        match collected.await {
            Ok(Ok(collected)) => {
                tracing::info!(%run, collected.bytes, "a checkout was collected to make room")
            }
            Ok(Err(kept)) => tracing::info!(%run, %kept, "a checkout is kept"),
            Err(error) => tracing::error!(%run, %error, "collecting broke down"),
        }
    }
}

impl Shared {
    /// What all runs take, and where that is too much the oldest one that is over and may be collected.
    fn look(&self) -> io::Result<(u64, Option<RunId>)> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let runs = usage::runs(&self.home)?;
        let mut still = HashMap::with_capacity(runs.len());
        let mut all = 0;
        for run in &runs {
            let places = Places::of(&self.home, *run);
            // Nobody works there, so nothing grows; somebody else may have collected it.
            let at_rest = places.alone()?.is_some();
            let bytes = match known.bytes.get(run) {
                Some(bytes) if at_rest && places.checkout().is_dir() => *bytes,
                _ => usage::of_run(&places)?,
            };
            all += bytes;
            if at_rest {
                still.insert(*run, bytes);
            }
        }
        known.bytes = still;
        if all <= self.bytes_max {
            return Ok((all, None));
        }
        let is_over = |run: &RunId| {
            let places = Places::of(&self.home, *run);
            let ended = places.owner().is_ok_and(|owner| owner.is_some_and(|owner| owner.ended_at.is_some()));
            ended && places.checkout().is_dir() && !known.left.contains(run)
        };
        Ok((all, runs.into_iter().find(is_over)))
    }
}
