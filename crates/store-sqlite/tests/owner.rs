//! Who may open a database: one owner at a time, anybody for reading, nobody what is not ours or too new.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a failed expectation fails the test"
)]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use runyard_store::conformance::{append, start};
use runyard_store::{Blobs, EventLog, Leases, Runs, RunsQuery, StorageError, Tail};
use runyard_store_sqlite::{OpenOptions, SqliteStore};
use serde_json::json;
use support::{Player, markers, open, place, play, run_number, runtime, say};

#[test]
fn child() {
    play(&[("owner", owner), ("refused", refused), ("writer", writer)]);
}

/// Owns the database and does nothing more.
fn owner(database: &Path) {
    let _store = SqliteStore::open(OpenOptions::new(database, "runyard up")).unwrap();
    say("open");
    std::thread::sleep(Duration::from_secs(60));
}

/// Owns the database and writes to it.
fn writer(database: &Path) {
    let store = SqliteStore::open(OpenOptions::new(database, "runyard up")).unwrap();
    runtime().block_on(async {
        for marker in 0..u64::MAX {
            store.append(support::marked(run_number(1), marker, marker)).await.unwrap();
            say(&format!("{marker}"));
        }
    });
}

/// Says why it cannot open the database.
fn refused(database: &Path) {
    match SqliteStore::open(OpenOptions::new(database, "runyard up")) {
        Ok(_) => say("open"),
        Err(error) => say(&format!("{} {error}", error.code())),
    }
}

fn error(opened: Result<SqliteStore, StorageError>) -> StorageError {
    match opened {
        Ok(_) => panic!("it was opened"),
        Err(error) => error,
    }
}

#[test]
fn d11_a_second_process_is_refused_with_the_owners_name_and_takes_over_when_it_is_killed() {
    let (_folder, database) = place();
    let mut owner = Player::start("owner", &database);
    owner.expect("open");
    let refused = error(SqliteStore::open(OpenOptions::new(&database, "second")));
    let StorageError::Locked { owner: name } = &refused else { panic!("{refused}") };
    assert!(name.starts_with(&format!("runyard up (pid {} on ", owner.pid())), "{name}");
    assert_eq!(refused.code().as_str(), "storage.locked");
    owner.kill();
    drop(open(&database));
}

#[test]
fn d11_a_link_to_a_database_meets_the_same_owner() {
    let (folder, database) = place();
    let (elsewhere, link) = (folder.path().join("elsewhere"), folder.path().join("elsewhere/link.db"));
    std::fs::create_dir(&elsewhere).unwrap();
    // Made before there is a database, too.
    std::os::unix::fs::symlink(&database, &link).unwrap();
    let first = open(&link);
    for path in [&database, &link] {
        let refused = error(SqliteStore::open(OpenOptions::new(path, "second")));
        assert!(matches!(refused, StorageError::Locked { .. }), "{refused}");
    }
    drop(first);
    open(&database);
}

#[test]
fn d11_the_same_process_cannot_open_it_twice_either() {
    let (_folder, database) = place();
    let first = open(&database);
    assert!(matches!(
        error(SqliteStore::open(OpenOptions::new(&database, "second"))),
        StorageError::Locked { .. }
    ));
    drop(first);
    open(&database);
}

#[test]
fn c08_a_second_process_reads_and_follows_what_the_owner_writes() {
    let (_folder, database) = place();
    let mut writer = Player::start("writer", &database);
    writer.expect("0");
    let store = Arc::new(SqliteStore::open_read_only(&database).unwrap());
    runtime().block_on(async {
        let mut tail = Tail::open(Arc::clone(&store), run_number(1), 0).await.unwrap();
        let mut seen = 0;
        // More than the first page, so that some of it is written after the tail began.
        let first_head = store.head(run_number(1)).await.unwrap().unwrap();
        while seen < first_head + 50 {
            for event in tail.next().await.unwrap() {
                assert_eq!(event.sequence, seen + 1);
                seen = event.sequence;
            }
        }
        let written = store.append(support::marked(run_number(1), 0, 0)).await;
        assert!(matches!(written, Err(StorageError::ReadOnly { .. })), "{written:?}");
        let leased = store.acquire(run_number(1), "reader".into(), Duration::ZERO).await;
        assert!(matches!(leased, Err(StorageError::ReadOnly { .. })), "{leased:?}");
        let put = store.put(runyard_redact::Safe::<String>::from("text").into()).await;
        assert!(matches!(put, Err(StorageError::ReadOnly { .. })), "{put:?}");
        assert_eq!(store.check().await.unwrap(), []);
        // Killing the owner takes nothing away from readers.
        writer.kill();
        let read = markers(&store, run_number(1)).await;
        assert!(read.len() as u64 >= seen);
        store.close().await;
    });
    let owned = open(&database);
    runtime().block_on(async { assert!(!markers(&owned, run_number(1)).await.is_empty()) });
}

#[test]
fn d11_opening_for_reading_makes_nothing() {
    let (folder, database) = place();
    assert!(matches!(error(SqliteStore::open_read_only(&database)), StorageError::NotFound(..)));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn d11_a_newer_database_is_refused_and_left_as_it_is() {
    let (_folder, database) = place();
    drop(open(&database));
    let raw = rusqlite::Connection::open(&database).unwrap();
    raw.pragma_update(None, "user_version", 99).unwrap();
    raw.close().unwrap();
    for refused in [
        error(SqliteStore::open(OpenOptions::new(&database, "old"))),
        error(SqliteStore::open_read_only(&database)),
    ] {
        assert!(matches!(refused, StorageError::NewerSchema { found: 99, known: 2 }), "{refused}");
    }
    let raw = rusqlite::Connection::open(&database).unwrap();
    let version: i32 = raw.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(version, 99);
}

#[test]
fn d11_what_is_no_database_of_ours_is_refused_and_left_as_it_is() {
    let (folder, database) = place();
    let text = "This is a letter, and not a database. ".repeat(100);
    std::fs::write(&database, &text).unwrap();
    let refused = error(SqliteStore::open(OpenOptions::new(&database, "us")));
    assert!(matches!(refused, StorageError::Corrupt { .. }), "{refused}");
    assert!(!refused.to_string().contains(folder.path().to_str().unwrap()), "{refused}");
    assert_eq!(std::fs::read_to_string(&database).unwrap(), text);

    let other = folder.path().join("other.db");
    rusqlite::Connection::open(&other).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap();
    let before = std::fs::read(&other).unwrap();
    let refused = error(SqliteStore::open(OpenOptions::new(&other, "us")));
    assert_eq!(refused.to_string(), "other.db is a database of another program, not of Runyard");
    assert_eq!(std::fs::read(&other).unwrap(), before);
}

#[test]
fn d11_what_is_made_is_for_its_owner_alone() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("made");
    let store = open(&inside.join("runyard.db"));
    runtime().block_on(async {
        let run = start(&*store).await;
        append(&*store, run, 1, json!({})).await.unwrap();
        store.put(runyard_redact::Safe::<String>::from("text").into()).await.unwrap();
    });
    let mut looked_at = 0;
    let mut folders = vec![inside];
    while let Some(folder) = folders.pop() {
        assert_eq!(std::fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700, "{folder:?}");
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let found = std::fs::metadata(&path).unwrap();
            if found.is_dir() {
                folders.push(path);
                continue;
            }
            assert_eq!(found.permissions().mode() & 0o777, 0o600, "{path:?}");
            looked_at += 1;
        }
    }
    assert!(looked_at >= 5, "{looked_at}");
}

/// A user that may do nothing here.
const NOBODY: u32 = 65_534;

/// What a process without privileges is told.
fn as_nobody(database: &Path) -> String {
    let mut command = Player::command("refused", database);
    if rustix::process::getuid().is_root() {
        // The test program itself is somewhere that nobody may not go.
        let program = database.parent().unwrap().parent().unwrap().join("program");
        if !program.exists() {
            std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
            std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        }
        let mut as_nobody = std::process::Command::new(program);
        as_nobody.args(command.get_args());
        as_nobody.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        as_nobody.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped());
        as_nobody.uid(NOBODY).gid(NOBODY).current_dir("/");
        command = as_nobody;
    }
    let (said, _) = Player::spawn(command).finish();
    said.into_iter().next().unwrap()
}

#[test]
fn d11_an_unprivileged_user_is_told_what_is_read_only() {
    let folder = tempfile::tempdir().unwrap();
    let set = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    set(folder.path(), 0o755);
    let inside = folder.path().join("data");
    std::fs::create_dir(&inside).unwrap();
    let database = inside.join("runyard.db");

    // Nothing may be made in the folder.
    set(&inside, 0o555);
    assert_eq!(
        as_nobody(&database),
        "storage.read_only taking possession of the database: the folder of runyard.db is read-only"
    );
    // Everything may be done in the folder, and nothing with the file.
    set(&inside, 0o777);
    drop(open(&database));
    set(&inside, 0o777);
    set(&inside.join("runyard.db.lock"), 0o666);
    set(&database, 0o444);
    assert_eq!(as_nobody(&database), "storage.read_only opening the database: runyard.db is read-only");
    // The files may be written, the folder not, so there is no place for the log.
    set(&database, 0o666);
    set(&inside, 0o555);
    let said = as_nobody(&database);
    assert!(said.starts_with("storage.read_only opening the database: runyard.db"), "{said}");
    // And when all is well, so it is said.
    set(&inside, 0o777);
    assert_eq!(as_nobody(&database), "open");
}

#[test]
fn d11_what_was_written_is_there_after_closing_and_after_dropping() {
    let (_folder, database) = place();
    let runtime = runtime();
    let store = open(&database);
    let run = runtime.block_on(async {
        let run = start(&*store).await;
        store.close().await;
        let late = append(&*store, run, 1, json!({})).await;
        assert!(matches!(late, Err(StorageError::Io(..))), "{late:?}");
        run
    });
    assert!(!database.with_extension("db-wal").exists(), "the log was not brought into the database");
    let store = open(&database);
    runtime.block_on(async { append(&*store, run, 1, json!({})).await.unwrap() });
    drop(store);
    let store = open(&database);
    runtime.block_on(async {
        assert_eq!(store.head(run).await.unwrap(), Some(2));
        let page = store.runs(RunsQuery { limit: 10, ..RunsQuery::default() }).await.unwrap();
        assert_eq!(page.runs.len(), 1);
    });
}
