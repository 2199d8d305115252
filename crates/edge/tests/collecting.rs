//! Collecting the checkout of a run that is over, tried on real directories: it goes whole, or it stays as it was.
//!
//! clause: C13
//! clause: C14

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, reason = "test code")]

use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use runyard_checkout::{Options, make};
use runyard_domain::RunId;
use runyard_edge::{AppliedJournal, CarryOut, Collected, Collecting, Kept, Safe, usage};

static NEVER: AtomicBool = AtomicBool::new(false);

/// A workspace, and a run with a checkout of it.
struct Yard {
    kept: tempfile::TempDir,
    run: RunId,
}

impl Yard {
    fn new() -> Yard {
        let yard = Yard { kept: tempfile::tempdir().unwrap(), run: RunId::from_parts(1, &[1; 10]) };
        fs::create_dir(yard.workspace()).unwrap();
        fs::create_dir_all(yard.at("home/tmp")).unwrap();
        fs::write(yard.workspace().join("file"), "the person's\n").unwrap();
        let (checkout, base) = (yard.at("checkout"), yard.at("base"));
        make(&yard.workspace(), &checkout, &base, &Options::default(), &NEVER).unwrap();
        yard
    }

    fn workspace(&self) -> PathBuf {
        self.kept.path().join("workspace")
    }

    fn home(&self) -> PathBuf {
        self.kept.path().join("edge")
    }

    fn archive(&self) -> PathBuf {
        self.kept.path().join("archive")
    }

    /// Something in the run's directory.
    fn at(&self, name: &str) -> PathBuf {
        self.home().join("runs").join(self.run.to_string()).join(name)
    }

    fn collect_with(&self, change: impl FnOnce(&mut Collecting<'_>)) -> Result<Collected, Kept> {
        let (home, workspace, archive) = (self.home(), self.workspace(), self.archive());
        let mut collecting = Collecting {
            home: &home,
            workspace: Some(&workspace),
            archive: Some(&archive),
            applied: AppliedJournal::Kept,
            carry_out: CarryOut::Really,
        };
        change(&mut collecting);
        collecting.collect(self.run, &NEVER)
    }

    fn collect(&self) -> Result<Collected, Kept> {
        self.collect_with(|_| {})
    }

    fn is_whole(&self) -> bool {
        self.at("checkout").is_dir() && self.at("base").is_dir() && !self.at("collected.json").exists()
    }
}

#[test]
fn c13_without_an_archive_only_what_is_nowhere_else_is_kept() {
    let yard = Yard::new();
    fs::write(yard.at("checkout/file"), "the agent's\n").unwrap();
    let kept = yard.collect_with(|collecting| collecting.archive = None);
    assert!(matches!(kept, Err(Kept::Unarchived { files: 1 })), "{kept:?}");
    assert!(yard.is_whole());
    fs::write(yard.workspace().join("file"), "the agent's\n").unwrap();
    let collected = yard.collect_with(|collecting| collecting.archive = None).unwrap();
    assert_eq!(collected.safe, Safe::InFiles);
    assert!(!yard.at("checkout").exists() && !yard.at("base").exists() && !yard.at("home").exists());
}

#[test]
fn c14_what_is_only_said_changes_nothing() {
    let yard = Yard::new();
    fs::write(yard.at("checkout/new"), "new\n").unwrap();
    let said = yard.collect_with(|collecting| collecting.carry_out = CarryOut::OnlySaid).unwrap();
    assert_eq!(said.safe, Safe::Archived(yard.archive().join(format!("{}.patch", yard.run))));
    assert!(yard.is_whole() && !yard.archive().exists());
}

#[test]
fn c13_a_checkout_that_a_process_or_a_session_uses_is_left_alone() {
    let yard = Yard::new();
    let lock = File::create(yard.at("custody.lock")).unwrap();
    lock.lock_shared().unwrap();
    assert!(matches!(yard.collect(), Err(Kept::InUse)));
    drop(lock);
    let session = File::open(yard.at("")).unwrap();
    session.lock_shared().unwrap();
    assert!(matches!(yard.collect(), Err(Kept::InUse)));
    assert!(yard.is_whole());
    drop(session);
    assert_eq!(yard.collect().unwrap().safe, Safe::Unchanged);
    assert!(matches!(yard.collect(), Err(Kept::Nothing)));
}

#[test]
fn c13_what_a_killed_collection_left_is_finished_by_the_next() {
    let yard = Yard::new();
    fs::write(yard.at("checkout/new"), "new\n").unwrap();
    let patch = format!("{}.patch", yard.run);
    let gone = serde_json::json!({"at": "2026-01-31T12:00:00.000Z", "patch": patch});
    fs::write(yard.at("collected.json"), gone.to_string()).unwrap();
    fs::remove_dir_all(yard.at("base")).unwrap();
    yard.collect().unwrap();
    assert!(!yard.at("checkout").exists());
    assert_eq!(
        fs::read_to_string(yard.at("collected.json")).unwrap(),
        gone.to_string(),
        "where it is kept is still said"
    );
}

#[test]
fn c22_what_was_applied_stays_to_be_taken_back_until_it_may_go() {
    let yard = Yard::new();
    fs::create_dir(yard.at("applied")).unwrap();
    assert!(yard.collect().unwrap().undo);
    assert!(yard.at("applied").is_dir());
    let removed = yard.collect_with(|collecting| collecting.applied = AppliedJournal::Removed).unwrap();
    assert!(!removed.undo && !yard.at("applied").exists());
}

#[test]
fn c13_what_a_run_took_when_it_ended_is_not_believed_without_its_checkout() {
    let yard = Yard::new();
    let owner = serde_json::json!({
        "run": yard.run,
        "workspace": runyard_domain::WorkspaceId::from_parts(1, &[1; 10]),
        "edge": "edge",
        "madeAt": "2026-01-31T12:00:00.000Z",
        "endedAt": "2026-01-31T12:00:00.000Z",
        "bytes": 1_000_000_000_u64,
    });
    fs::write(yard.at("owner.json"), owner.to_string()).unwrap();
    assert_eq!(usage(&yard.home()).unwrap().bytes, 1_000_000_000);
    fs::remove_dir_all(yard.at("checkout")).unwrap();
    assert!(usage(&yard.home()).unwrap().bytes < 1_000_000);
}
