//! `runyard log` as a process: on a database that was written before, beside a hub, and on one that was tampered with.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use runyard::RunId;
use runyard_redact::process::RedactedWriter;
use runyard_store::Store;
use runyard_store::conformance::{append, plant_secrets, redactor_of_secrets, start, texts_with_secrets};
use runyard_store_postgres::PostgresStore;
use runyard_store_sqlite::{OpenOptions, SqliteStore};
use runyard_testkit_postgres::Postgres;
use serde_json::json;

use support::Home;

/// Two runs of five events each in the home's database.
fn two_runs(home: &Home) -> Vec<RunId> {
    std::fs::create_dir_all(home.path("")).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store = SqliteStore::open(OpenOptions::new(home.path("runyard.db"), "the test")).unwrap();
        let runs = write_two_runs(&store).await;
        store.close().await;
        runs
    })
}

async fn write_two_runs(store: &dyn Store) -> Vec<RunId> {
    let mut runs = Vec::new();
    for _ in 0..2 {
        let run = start(store).await;
        for after in 1..5 {
            append(store, run, after, json!({"n": after})).await.unwrap();
        }
        runs.push(run);
    }
    runs
}

fn tamper(database: &Path, sql: &str) {
    let raw = rusqlite::Connection::open(database).unwrap();
    assert_eq!(raw.execute(sql, []).unwrap(), 1);
}

#[test]
fn c07_a_record_that_holds_is_said_to_hold_run_by_run_and_as_a_whole() {
    let home = Home::new();
    let runs = two_runs(&home);
    assert_eq!(home.run(["log", "verify"]).data(), json!({"runs": 2, "events": 10}));
    let one = home.run(["log", "verify", &runs[0].to_string()]).data();
    assert_eq!((&one["run"], &one["events"]), (&json!(runs[0]), &json!(5)));
    assert_eq!(one["head"].as_str().unwrap().len(), 64);
    let text = home.run(["log", "verify", "--output", "text"]);
    assert!(text.exit == 0 && text.stdout.contains("10"), "{}", text.stdout);
}

#[test]
fn c07_the_first_changed_event_is_named_and_the_other_run_still_holds() {
    let home = Home::new();
    let runs = two_runs(&home);
    tamper(
        &home.path("runyard.db"),
        "UPDATE events SET body = CAST(replace(body, '\"n\":2', '\"n\":7') AS BLOB) \
         WHERE sequence = 3 AND run = (SELECT min(run) FROM events)",
    );
    let ran = home.run(["log", "verify"]);
    let (exit, code, message) = ran.failure();
    assert_eq!((exit, code.as_str()), (1, "storage.corrupt"), "{message}");
    let issues = ran.envelope()["error"]["issues"].to_string();
    assert!(issues.contains(&runs[0].to_string()) && issues.contains("event 4"), "{issues}");
    assert!(!issues.contains(&runs[1].to_string()), "{issues}");
    assert_eq!(home.run(["log", "verify", &runs[0].to_string()]).failure().0, 1);
    assert_eq!(home.run(["log", "verify", &runs[1].to_string()]).data()["events"], 5);
}

#[test]
fn what_cannot_be_verified_is_said_clearly() {
    let home = Home::new();
    // Nothing was recorded yet.
    let (exit, code, message) = home.run(["log", "verify"]).failure();
    assert_eq!((exit, code.as_str()), (1, "storage.not_found"), "{message}");
    assert!(!home.path("runyard.db").exists(), "looking makes nothing");
    two_runs(&home);
    let unknown = RunId::from_parts(1, &[1; 10]).to_string();
    let (exit, code, message) = home.run(["log", "verify", &unknown]).failure();
    assert_eq!((exit, code.as_str()), (1, "storage.not_found"), "{message}");
    assert!(message.contains(&unknown), "{message}");
    let (exit, code, _) = home.run(["log", "verify", "nonsense"]).failure();
    assert_eq!((exit, code.as_str()), (2, "VALIDATION_ERROR"));
    std::fs::write(
        home.path("runyard.db"),
        "this is no database, whatever its name says it is. ".repeat(100),
    )
    .unwrap();
    let (exit, code, message) = home.run(["log", "verify"]).failure();
    assert_eq!((exit, code.as_str()), (1, "storage.corrupt"), "{message}");
}

#[test]
fn c08_a_hub_keeps_the_database_for_itself_and_others_may_read() {
    let home = Home::new();
    let hub = home.up();
    // The installation's own log is there from the first start on.
    assert_eq!(home.run(["log", "verify"]).data(), json!({"runs": 0, "events": 1}));
    let Err(error) = SqliteStore::open(OpenOptions::new(home.path("runyard.db"), "the test")) else {
        panic!("two processes own the database");
    };
    assert!(error.to_string().contains(&format!("pid {}", hub.pid())), "{error}");
    assert!(error.to_string().contains("runyard up"), "{error}");
    hub.signal(rustix::process::Signal::KILL);
    hub.ended();
    let store = SqliteStore::open(OpenOptions::new(home.path("runyard.db"), "the test")).unwrap();
    drop(store);
}

#[test]
fn c08_a_database_url_selects_postgresql_and_its_password_is_shown_nowhere() {
    let postgres = Postgres::start().unwrap();
    let url = postgres.database().unwrap();
    let home = Home::new();
    let run = |url: &str, arguments: &[&str]| {
        support::Ran::of(home.command(arguments).env("RUNYARD_DATABASE_URL", url))
    };
    // Nothing was recorded yet, and looking makes nothing.
    let (exit, code, message) = run(&url, &["log", "verify"]).failure();
    assert_eq!((exit, code.as_str()), (1, "storage.not_found"), "{message}");
    assert!(message.contains("othing is recorded yet"), "{message}");
    let made = "SELECT count(*) FROM pg_namespace WHERE nspname = 'runyard'";
    assert_eq!(postgres.sql(&url, made).unwrap(), "0");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let runs = runtime.block_on(async {
        let store = PostgresStore::connect(&url).await.unwrap();
        write_two_runs(&store).await
    });
    assert_eq!(run(&url, &["log", "verify"]).data(), json!({"runs": 2, "events": 10}));
    assert_eq!(run(&url, &["log", "verify", &runs[1].to_string()]).data()["events"], 5);
    assert!(!home.path("runyard.db").exists());
    let wrong = url.replace(runyard_testkit_postgres::PASSWORD, "canary-wrong-password");
    for (url, exit, code) in [
        (wrong.as_str(), 1, "storage.io"),
        ("postgres://ada:canary-wrong-password@127.0.0.1:1/none", 1, "storage.io"),
        ("mysql://ada:canary-wrong-password@127.0.0.1/none", 2, "VALIDATION_ERROR"),
        ("postgres://ada:canary-wrong-password@[broken", 1, "storage.validation"),
    ] {
        let ran = run(url, &["log", "verify"]);
        let (exited, found, message) = ran.failure();
        assert_eq!((exited, found.as_str()), (exit, code), "{message}");
        assert!(!format!("{}{}", ran.stdout, ran.stderr).contains("canary-wrong-password"), "{}", ran.stdout);
    }
}

#[test]
fn b11_no_planted_secret_is_in_any_file_of_the_home() {
    let home = Home::new();
    std::fs::create_dir_all(home.path("")).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (store, needles) = runtime.block_on(async {
        let store =
            Arc::new(SqliteStore::open(OpenOptions::new(home.path("runyard.db"), "the test")).unwrap());
        let needles = plant_secrets(store.clone()).await;
        (store, needles)
    });
    // Whatever the process logs goes the way of its log lines.
    runyard_redact::process::set(redactor_of_secrets());
    let mut log = RedactedWriter(std::fs::File::create(home.path("process.log")).unwrap());
    for text in texts_with_secrets() {
        log.write_all(format!("WARN the agent said: {text}\n").as_bytes()).unwrap();
    }
    // While it is open, with its write-ahead log, and once it is closed.
    let files = search(&home.path(""), &needles);
    assert!(files.iter().any(|file| file.ends_with("-wal")) && files.len() > 4, "{files:?}");
    drop(store);
    search(&home.path(""), &needles);
    assert_eq!(home.run(["log", "verify"]).data()["runs"], 1);
}

#[test]
fn b11_no_planted_secret_is_in_any_file_or_row_of_postgresql() {
    let postgres = Postgres::start().unwrap();
    let url = postgres.database().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let needles = runtime.block_on(async {
        let store = Arc::new(PostgresStore::connect(&url).await.unwrap());
        plant_secrets(store).await
    });
    postgres.sql(&url, "CHECKPOINT").unwrap();
    let files = search(postgres.folder(), &needles);
    assert!(files.iter().any(|file| file.contains("pg_wal")), "{} files", files.len());
    // The server compresses long values, so its rows are looked at too.
    let tables = "SELECT string_agg(schemaname || '.' || tablename, ' ') FROM pg_tables \
                  WHERE schemaname NOT IN ('pg_catalog', 'information_schema')";
    let tables = postgres.sql(&url, tables).unwrap();
    assert!(tables.split_whitespace().count() > 5, "{tables}");
    for table in tables.split_whitespace() {
        let rows = format!("SET bytea_output = 'escape'; SELECT string_agg(t::text, ' ') FROM {table} t");
        let rows = postgres.sql(&url, &rows).unwrap();
        runyard_store::conformance::assert_holds_none(table, rows.as_bytes(), &needles);
    }
}

/// Looks for the needles in every file below a folder, and gives the files.
fn search(folder: &Path, needles: &[Vec<u8>]) -> Vec<String> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(search(&path, needles));
        } else {
            let name = path.display().to_string();
            runyard_store::conformance::assert_holds_none(&name, &std::fs::read(&path).unwrap(), needles);
            files.push(name);
        }
    }
    files
}

#[test]
fn a_keyed_call_is_made_once_although_the_hub_was_killed_in_between() {
    let home = Home::new();
    let call = |hub: &support::Hub, key: &str, title: &str| -> (u16, serde_json::Value) {
        let body = json!({"input": {"title": title}, "idempotencyKey": key}).to_string();
        let token = std::fs::read_to_string(home.path("token")).unwrap();
        let (status, text) = hub.post("/api/v1/actions/task_create/invoke", &token, &body);
        (status, serde_json::from_str(&text).unwrap())
    };
    let hub = home.up();
    let (status, first) = call(&hub, "key-1", "Buy milk");
    assert_eq!((status, &first["ok"]), (200, &json!(true)), "{first}");
    hub.signal(rustix::process::Signal::KILL);
    hub.ended();
    let hub = home.up();
    let (status, again) = call(&hub, "key-1", "Buy milk");
    assert_eq!((status, &again["data"]), (200, &first["data"]), "{again}");
    let (status, other) = call(&hub, "key-1", "Buy bread");
    assert_eq!((status, &other["error"]["code"]), (409, &json!("CONFLICT")), "{other}");
    let (_, second) = call(&hub, "key-2", "Buy bread");
    assert_ne!(second["data"]["id"], first["data"]["id"]);
    let listed = home.run(["call", "task-list"]).data();
    assert_eq!(
        listed["tasks"].as_array().map(Vec::len).or_else(|| listed.as_array().map(Vec::len)),
        Some(2),
        "{listed}"
    );
}
