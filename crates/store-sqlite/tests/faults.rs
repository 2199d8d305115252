//! A disk that fails, at every call in turn. The faults are made by a small library that is compiled here and loaded before
//! the system's own into a child process.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a failed expectation fails the test"
)]

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::OnceLock;
use std::time::Duration;

use runyard_store::conformance::{commit_of, event, record};
use runyard_store::{
    AgentRunId, Blobs, Claimed, EventLog, StorageError, ThreadId, ThreadRunStore, ThreadStore, ThreadWrites,
};
use runyard_store_sqlite::{OpenOptions, POISONED_EXIT_CODE, SqliteStore};
use serde_json::json;
use support::{Player, change, markers, open, play, proof, repeatable, run_number, runtime, say};

/// How many changes the child makes, in turns to each of its runs.
const CHANGES: u64 = 40;
const RUNS: u64 = 3;
/// How often the child tries a change again when the disk is full.
const ATTEMPTS_MAX: u32 = 40;

#[test]
fn child() {
    play(&[("script", script), ("checkpoints", checkpoints), ("commits", commits)]);
}

/// Makes its changes one after another, says what becomes of each, and closes the store.
fn script(database: &Path) {
    runtime().block_on(async {
        let store = match SqliteStore::open(OpenOptions::new(database, "the script")) {
            Ok(store) => store,
            Err(error) => return say(&format!("not open: {}", error.code())),
        };
        say("open");
        for marker in 0..CHANGES {
            let (run, after) = (run_number(marker % RUNS), marker / RUNS);
            if !try_until_made(&store, || repeatable(run, after, marker), marker).await {
                return;
            }
            // Some content beside the log now and then.
            if marker % 8 == 0 {
                match store.put(runyard_redact::Safe::<String>::from(BLOBS[marker as usize / 8]).into()).await
                {
                    Ok(id) => say(&format!("blob {id}")),
                    Err(error) => say(&format!("no blob: {}", error.code())),
                }
            }
        }
        store.close().await;
        say("closed");
    });
}

const BLOBS: [&str; 5] = ["one blob", "another blob", "a third blob", "a fourth blob", "a fifth blob"];

/// Whether the change was made in the end.
async fn try_until_made(
    store: &SqliteStore,
    mut make: impl FnMut() -> runyard_store::Change,
    marker: u64,
) -> bool {
    for _ in 0..ATTEMPTS_MAX {
        say(&format!("try {marker}"));
        match store.append(make()).await {
            Ok(_) => {
                say(&format!("made {marker}"));
                return true;
            }
            Err(error) => {
                say(&format!("not made: {}", error.code()));
                match error {
                    StorageError::DiskFull { .. }
                    | StorageError::CommitUnknown(..)
                    | StorageError::Io(..)
                    | StorageError::Poisoned => {}
                    error => panic!("{error:?}"),
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }
    }
    false
}

/// Writes so much that checkpoints are made meanwhile.
fn checkpoints(database: &Path) {
    let store = SqliteStore::open(OpenOptions::new(database, "the script")).unwrap();
    runtime().block_on(async {
        let text = "x".repeat(100_000);
        // Far more than is needed: how many checkpoints are made meanwhile depends on the disk, and the fault ends it.
        for marker in 0..10_000 {
            say(&format!("try {marker}"));
            let event = event(json!({ "marker": marker, "text": text }));
            match store.append(change(run_number(0), marker, vec![event])).await {
                Ok(_) => say(&format!("made {marker}")),
                Err(error) => say(&format!("not made: {}", error.code())),
            }
        }
    });
}

/// Commits to a thread, one commit after another.
fn commits(database: &Path) {
    runtime().block_on(async {
        // It goes on when the store is poisoned, to say what it is told then.
        let options = OpenOptions::new(database, "the script").on_poisoned(|| ());
        let store = match SqliteStore::open(options) {
            Ok(store) => store,
            Err(error) => return say(&format!("not open: {}", error.code())),
        };
        say("open");
        let thread = ThreadId::new("talk".into()).unwrap();
        let run = AgentRunId::new("run".into()).unwrap();
        // A fault may be here already; then there is nothing to go on with.
        if store.create_thread(&thread, runyard_redact::Safe::NULL).await.is_err() {
            return;
        }
        let term = Duration::from_secs(60);
        let Ok(Claimed::Granted(claim)) = store.claim(&thread, &run, "the script".into(), term).await else {
            return;
        };
        for version in 0..CHANGES {
            say(&format!("try {version}"));
            let writes = ThreadWrites { messages: vec![version.into()], ..record("running") };
            match store.commit(commit_of(&thread, &run, &claim, version, writes)).await {
                Ok(_) => say(&format!("made {version}")),
                Err(error) => {
                    say(&format!("not made: {}", error.code()));
                    let again = commit_of(&thread, &run, &claim, version, record("running"));
                    let error = store.commit(again).await.unwrap_err();
                    return say(&format!("nor again: {}", error.code()));
                }
            }
        }
        store.close().await;
        say("closed");
    });
}

/// The library that makes faults.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults.c");
        let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("faults-{}.so", std::process::id()));
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"])
            .args([&built, &source])
            .arg("-ldl")
            .status()
            .unwrap();
        assert!(compiled.success());
        built
    })
}

/// What a child said, and how it ended.
struct Played {
    said: Vec<String>,
    status: ExitStatus,
}

impl Played {
    fn with_fault(role: &str, database: &Path, faults: &str) -> Self {
        let mut command = Player::command(role, database);
        command.env("LD_PRELOAD", library()).env("FAULTS", faults);
        // What it would log about its end is expected.
        command.stderr(std::process::Stdio::null());
        let (said, status) = Player::spawn(command).finish();
        Played { said, status }
    }

    fn had_fault(&self) -> bool {
        self.said.iter().any(|line| line == "fault")
    }

    fn made(&self) -> Vec<u64> {
        self.said.iter().filter_map(|line| line.strip_prefix("made ")?.parse().ok()).collect()
    }

    /// What was tried after the fault and made all the same.
    fn made_after_fault(&self) -> Vec<u64> {
        let after = self.said.iter().skip_while(|line| *line != "fault");
        let mut tried = Vec::new();
        let mut made = Vec::new();
        for line in after {
            if let Some(marker) = line.strip_prefix("try ") {
                tried.push(marker.to_owned());
            } else if let Some(marker) = line.strip_prefix("made ")
                && tried.iter().any(|tried| tried == marker)
            {
                made.push(marker.parse().unwrap());
            }
        }
        made
    }

    /// Whether the last of several errors of this code came.
    fn was_told(&self, code: &str) -> bool {
        self.said.iter().any(|line| line.ends_with(code))
    }
}

/// A fresh place whose name the library knows.
fn place() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("faulty.db");
    (folder, database)
}

/// Opens the database on a disk that works again. Everything that was acknowledged must be there, and nothing twice.
fn check_after(database: &Path, played: &Played, faults: &str) {
    let store = open(database);
    runtime().block_on(async {
        let mut there = Vec::new();
        for number in 0..RUNS {
            if store.head(run_number(number)).await.unwrap().is_some() {
                let markers = markers(&store, run_number(number)).await;
                assert!(
                    markers.iter().zip(0..).all(|(marker, at)| *marker == at * RUNS + number),
                    "{faults}"
                );
                there.extend(markers);
            }
        }
        for marker in played.made() {
            assert!(there.contains(&marker), "{faults}: {marker} was acknowledged and is not there");
        }
        for blob in played.said.iter().filter_map(|line| line.strip_prefix("blob ")) {
            store.get(blob.parse().unwrap()).await.unwrap();
        }
        assert_eq!(store.check().await.unwrap(), [], "{faults}");
    });
}

/// One fault at every call in turn (at some of them, in a shorter proof), until the child gets through without meeting it.
fn sweep(steps_max: usize, mut check: impl FnMut(usize, &Path) -> Played) -> usize {
    let mut faults = 0;
    let mut call = 1;
    loop {
        let (_folder, database) = place();
        let played = check(call, &database);
        if !played.had_fault() {
            assert!(played.said.contains(&"closed".to_owned()), "{:?}", played.said);
            return faults;
        }
        faults += 1;
        // Every call at the beginning, then further and further apart.
        call += 1 + call / steps_max;
    }
}

#[test]
fn d11_after_a_failed_sync_nothing_is_acknowledged_and_the_process_ends() {
    let faults = sweep(proof(6, 30, 10_000), |call, database| {
        let faults = format!("fsync:{call}");
        let played = Played::with_fault("script", database, &faults);
        assert_eq!(played.made_after_fault(), [0; 0], "{faults}: {:?}", played.said);
        if played.had_fault() {
            let is_open = played.said.contains(&"open".to_owned());
            let code = if is_open { POISONED_EXIT_CODE } else { 0 };
            assert_eq!(played.status.code(), Some(code), "{faults}: {:?}", played.said);
            assert!(!played.said.contains(&"closed".to_owned()), "{faults}");
        }
        check_after(database, &played, &faults);
        played
    });
    assert!(faults > 5, "only {faults} calls failed");
    println!("{faults} faults");
}

#[test]
fn d11_after_a_failed_sync_no_commit_to_a_thread_is_acknowledged() {
    let mut unknown = 0;
    let faults = sweep(proof(4, 20, 10_000), |call, database| {
        let faults = format!("fsync:{call}");
        let played = Played::with_fault("commits", database, &faults);
        assert_eq!(played.made_after_fault(), [0; 0], "{faults}: {:?}", played.said);
        if let Some(refused) = played.said.iter().find(|line| line.starts_with("not made")) {
            assert_eq!(refused, "not made: storage.commit_unknown", "{faults}");
            assert!(played.said.contains(&"nor again: storage.poisoned".to_owned()), "{:?}", played.said);
            unknown += 1;
        }
        let store = open(database);
        runtime().block_on(async {
            let thread = store.thread(&ThreadId::new("talk".into()).unwrap()).await.unwrap();
            let version = thread.map_or(0, |thread| thread.version);
            assert!(version >= played.made().len() as u64, "{faults}: {:?}", played.said);
        });
        played
    });
    assert!(faults > 5 && unknown > 2, "{faults} faults, {unknown} left a commit unknown");
}

#[test]
fn d11_a_full_disk_is_told_and_writing_goes_on_when_there_is_space() {
    let mut told = 0;
    let faults = sweep(proof(6, 30, 10_000), |call, database| {
        let faults = format!("full:{call}:3");
        let played = Played::with_fault("script", database, &faults);
        told += usize::from(played.was_told("storage.disk_full"));
        if played.said.contains(&"open".to_owned()) {
            assert_eq!(played.made(), (0..CHANGES).collect::<Vec<_>>(), "{faults}: {:?}", played.said);
            assert!(played.status.success(), "{faults}");
        } else {
            let refused = played.said.iter().find(|line| line.starts_with("not open")).unwrap();
            assert!(
                ["storage.disk_full", "storage.io"].iter().any(|code| refused.ends_with(code)),
                "{refused}"
            );
        }
        check_after(database, &played, &faults);
        played
    });
    assert!(faults > 5 && told * 2 > faults, "{faults} faults, and {told} were told as a full disk");
    println!("{faults} faults, {told} told as a full disk");
}

#[test]
fn d11_a_write_that_fails_is_told_and_never_acknowledged() {
    let faults = sweep(proof(4, 20, 10_000), |call, database| {
        let faults = format!("write:{call}:1");
        let played = Played::with_fault("script", database, &faults);
        check_after(database, &played, &faults);
        played
    });
    assert!(faults > 3, "{faults} faults");
}

#[test]
fn d11_a_write_that_is_cut_short_is_completed() {
    let (_folder, database) = place();
    let played = Played::with_fault("script", &database, "short:1:100000");
    assert!(played.had_fault());
    assert_eq!(played.made(), (0..CHANGES).collect::<Vec<_>>());
    assert!(played.said.contains(&"closed".to_owned()));
    check_after(&database, &played, "short");
}

#[test]
fn d11_a_sync_that_fails_in_a_checkpoint_ends_the_process_too() {
    // The first few are those of making the database.
    for call in [4, 6, 8] {
        let (_folder, database) = place();
        let faults = format!("database:{call}");
        let played = Played::with_fault("checkpoints", &database, &faults);
        assert!(played.had_fault(), "{faults}");
        assert_eq!(played.status.code(), Some(POISONED_EXIT_CODE), "{faults}");
        // A checkpoint is made beside the writer. What commits in the moment in which its failure becomes known is durable
        // in the log all the same.
        let after = played.made_after_fault().len();
        assert!(after < 5, "{faults}: {after} changes were acknowledged afterwards");
        let store = open(&database);
        runtime().block_on(async {
            assert!(markers(&store, run_number(0)).await.len() >= played.made().len(), "{faults}");
        });
    }
}
