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
use crate::collecting::{AppliedJournal, CarryOut, Collecting, Kept};
use crate::places::Places;
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
    /// What runs take that are over: it grows no more, and is not looked at again until there is too much.
    over: HashMap<RunId, u64>,
    /// What others take that nobody works on at the moment.
    bytes: HashMap<RunId, u64>,
    /// Runs that are left as they are until somebody keeps what they changed.
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
        let mut looked_at = HashSet::new();
        loop {
            // A run is not to suffer from what lies in the directories of others.
            let Some((bytes, oldest)) = self.look(looked_at.clone(), living).await else { return Ok(()) };
            match oldest {
                _ if bytes <= self.0.bytes_max => return Ok(()),
                Some(run) if looked_at.len() < LOOKED_AT_MAX => {
                    looked_at.insert(run);
                    self.collect(run, workspaces, living).await;
                }
                _ => return Err(self.full(bytes)),
            }
        }
    }

    /// As [`Shared::look`]; none where it cannot be told.
    async fn look(
        &self,
        looked_at: HashSet<RunId>,
        living: &Arc<watch::Sender<()>>,
    ) -> Option<(u64, Option<RunId>)> {
        let shared = Arc::clone(&self.0);
        match blocking(living, move |_| shared.look(&looked_at)).await {
            Ok(Ok(looked)) => return Some(looked),
            Ok(Err(error)) => tracing::error!(%error, "checkouts cannot be counted"),
            Err(error) => tracing::error!(%error, "counting checkouts broke down"),
        }
        None
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

    /// Collects a run that is over, where nothing has to be kept first; where something has, it is not looked at again.
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
            known.over.remove(&run);
            let needs_a_person = |kept: &Kept| {
                matches!(kept, Kept::Unarchived { .. } | Kept::NotInPatch { .. } | Kept::Aside { .. })
            };
            if collected.as_ref().is_err_and(needs_a_person) {
                known.left.insert(run);
            }
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
    /// What all runs take, and where that is too much the oldest one that is over and may be collected, but those just looked at.
    fn look(&self, looked_at: &HashSet<RunId>) -> io::Result<(u64, Option<RunId>)> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let runs = usage::runs(&self.home)?;
        let mut all = self.count(&mut known, &runs)?;
        if all > self.bytes_max {
            // Somebody else may have collected some of them.
            known.over.clear();
            all = self.count(&mut known, &runs)?;
        }
        if all <= self.bytes_max {
            return Ok((all, None));
        }
        let may_go = |run: &RunId| {
            let places = Places::of(&self.home, *run);
            is_over(&places)
                && places.checkout().is_dir()
                && !known.left.contains(run)
                && !looked_at.contains(run)
        };
        Ok((all, runs.into_iter().find(may_go)))
    }

    /// Counts what these runs take, which are all that there are. It costs little for those that are known to be over.
    fn count(&self, known: &mut Known, runs: &[RunId]) -> io::Result<u64> {
        let mut still = HashMap::new();
        let mut all = 0;
        for run in runs {
            if let Some(bytes) = known.over.get(run) {
                all += bytes;
                continue;
            }
            let places = Places::of(&self.home, *run);
            // Nobody works there, so nothing grows; somebody else may have collected it.
            let at_rest = places.alone()?.is_some();
            let bytes = match known.bytes.get(run) {
                Some(bytes) if at_rest && places.checkout().is_dir() => *bytes,
                _ => usage::of_run(&places)?,
            };
            all += bytes;
            if at_rest && is_over(&places) {
                known.over.insert(*run, bytes);
            } else if at_rest {
                still.insert(*run, bytes);
            }
        }
        known.bytes = still;
        if known.over.len() > runs.len() {
            let there: HashSet<&RunId> = runs.iter().collect();
            known.over.retain(|run, _| there.contains(run));
        }
        Ok(all)
    }
}

fn is_over(places: &Places) -> bool {
    places.owner().is_ok_and(|owner| owner.is_some_and(|owner| owner.ended_at.is_some()))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::sync::atomic::AtomicBool;

    use runyard_domain::WorkspaceId;
    use runyard_store::{Clock, SystemClock};

    use super::*;
    use crate::owner::Owner;

    /// Runs that have ended and changed nothing, each with a checkout of a MiB.
    fn ended(home: &Path, count: u8) -> Vec<Places> {
        let workspace = home.join("workspace");
        fs::create_dir(&workspace).unwrap();
        fs::write(workspace.join("file"), vec![7; 1024 * 1024]).unwrap();
        let make = |number| {
            let run = RunId::from_parts(u64::from(number), &[number; 10]);
            let places = Places::of(home, run);
            places.make().unwrap();
            let owner = Owner {
                run,
                workspace: WorkspaceId::from_parts(1, &[1; 10]),
                edge: "edge".to_owned(),
                made_at: SystemClock.now(),
                ended_at: Some(SystemClock.now()),
                bytes: None,
            };
            places.own(&owner).unwrap();
            let (checkout, base, never) = (places.checkout(), places.base(), AtomicBool::new(false));
            runyard_checkout::make(&workspace, &checkout, &base, &Default::default(), &never).unwrap();
            places
        };
        (1..=count).map(make).collect()
    }

    #[tokio::test]
    async fn c13_a_run_that_was_in_use_is_passed_over_once_and_collected_when_it_is_not() {
        let home = tempfile::tempdir().unwrap();
        let runs = ended(home.path(), 2);
        let workspaces = AllowList::open(home.path(), "edge", &[]).unwrap();
        let (disk, living) = (Disk::new(home.path(), 256 * 1024), Arc::new(watch::channel(()).0));
        let session = File::open(runs[0].directory()).unwrap();
        session.lock_shared().unwrap();
        let full = disk.make_room(&workspaces, &living).await.unwrap_err();
        assert_eq!(full.code, Code::CheckoutsFull);
        assert!(runs[0].checkout().is_dir() && !runs[1].checkout().exists(), "the next one went");
        drop(session);
        disk.make_room(&workspaces, &living).await.unwrap();
        assert!(!runs[0].checkout().exists());
    }

    #[test]
    fn what_runs_take_that_are_over_is_looked_at_again_only_when_it_is_too_much() {
        const MIB: u64 = 1024 * 1024;
        let home = tempfile::tempdir().unwrap();
        let runs = ended(home.path(), 3);
        let last = runs[2].directory().with_extension("aside");
        fs::rename(runs[2].directory(), &last).unwrap();
        let disk = Disk::new(home.path(), 8 * MIB);
        let look = || disk.0.look(&HashSet::new()).unwrap();
        let (before, none) = look();
        let sizes = |runs: &[Places]| -> u64 {
            runs.iter().map(|run| usage::size_of_directory(run.directory()).unwrap()).sum()
        };
        assert_eq!((before, none), (sizes(&runs[..2]), None));
        // Not though somebody looks at them, and not though they were tampered with.
        let session = File::open(runs[0].directory()).unwrap();
        session.lock_shared().unwrap();
        fs::write(runs[0].directory().join("more"), vec![7; 2 * 1024 * 1024]).unwrap();
        assert_eq!(look(), (before, None));
        drop(session);
        // What somebody else collected is gone by then.
        fs::remove_dir_all(runs[1].checkout()).unwrap();
        assert_eq!(look(), (before, None));
        fs::rename(&last, runs[2].directory()).unwrap();
        let tight = Disk::new(home.path(), 3 * MIB);
        tight.0.known.lock().unwrap().over.insert(runs[1].owner().unwrap().unwrap().run, 4 * MIB);
        let (all, oldest) = tight.0.look(&HashSet::new()).unwrap();
        assert_eq!(all, sizes(&runs), "all of it was counted anew");
        assert_eq!(oldest, Some(runs[0].owner().unwrap().unwrap().run), "and what may go is what is there");
    }

    #[tokio::test]
    async fn c13_a_run_begins_though_what_others_take_cannot_be_counted() {
        let home = tempfile::tempdir().unwrap();
        let runs = ended(home.path(), 1);
        fs::write(runs[0].directory().join("owner.json"), "no owner").unwrap();
        let workspaces = AllowList::open(home.path(), "edge", &[]).unwrap();
        let (disk, living) = (Disk::new(home.path(), 0), Arc::new(watch::channel(()).0));
        disk.make_room(&workspaces, &living).await.unwrap();
        assert!(runs[0].checkout().is_dir());
    }
}
