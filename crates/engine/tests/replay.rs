//! Runs that are derived from their logs again: the same as what is stored, unless somebody changed one of the two.
//!
//! clause: C07
//! clause: C08
//! clause: J02

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::path::PathBuf;
use std::sync::Arc;

use runyard_backend::Signal;
use runyard_backend::link::{OpenRun, Report, ToEdge};
use runyard_domain::run::{ThreadRecorded, Usage};
use runyard_domain::{Code, RunId};
use runyard_engine::{Decision, Engine, NewRun, Replay, Resolve};
use runyard_llm::inference::{Image, ImageSource, Message, Part, Reasoning, Role, ToolCall, ToolOutput};
use runyard_store_sqlite::{OpenOptions, SqliteStore};
use serde_json::{Value, json};
use tempfile::TempDir;

use support::*;

/// A hub whose store is a file that can be changed behind its back.
struct InFile {
    world: World,
    database: PathBuf,
    _folder: TempDir,
}

impl InFile {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("runyard.db");
        let store = Arc::new(SqliteStore::open(OpenOptions::new(&database, "the test")).unwrap());
        InFile { world: World { store, ..World::default() }, database, _folder: folder }
    }

    /// Changes one row by hand.
    fn tamper(&self, sql: &str) {
        let raw = rusqlite::Connection::open(&self.database).unwrap();
        assert_eq!(raw.execute(sql, []).unwrap(), 1, "{sql}");
    }
}

/// Text for text in a column.
fn replace(column: &str, from: &str, to: &str) -> String {
    format!("{column} = CAST(replace(CAST({column} AS TEXT), '{from}', '{to}') AS BLOB)")
}

/// The run is the one with the newest key: the installation's own log is the first.
fn row(from: &str, to: &str) -> String {
    format!("UPDATE runs SET {} WHERE key = (SELECT max(key) FROM runs)", replace("state", from, to))
}

fn event(sequence: u64, from: &str, to: &str) -> String {
    let run = "(SELECT max(key) FROM runs)";
    format!("UPDATE events SET {} WHERE sequence = {sequence} AND run = {run}", replace("body", from, to))
}

fn said(text: &str) -> Report {
    Report::Signal(Signal::Message { item: "m1".into(), text: text.into() })
}

fn used(input: u64, output: u64) -> Report {
    let usage = Usage { input_tokens: Some(input), output_tokens: Some(output), cost_usd: None };
    let (phase, thread) = ("working".to_owned(), Some("thread-1".to_owned()));
    Report::Signal(Signal::Status { phase, model: None, version: None, thread, usage: Some(usage) })
}

fn recorded(after: u64, messages: Vec<Value>) -> Report {
    let state = [("run/rounds".to_owned(), json!(after))].into_iter().collect();
    Report::Signal(Signal::Thread(ThreadRecorded { thread: "thread-1".into(), after, messages, state }))
}

fn message(message: &Message) -> Value {
    serde_json::to_value(message).unwrap()
}

fn calls(id: &str) -> Value {
    let call = ToolCall { id: id.into(), name: "shell".into(), arguments: json!({"command": "ls"}) };
    message(&Message { role: Role::Assistant, content: vec![Part::ToolCall(call)] })
}

fn answers(id: &str) -> Value {
    let (call_id, content) = (id.to_owned(), "README.md".to_owned());
    message(&Message::tool(ToolOutput { call_id, content, is_error: false }))
}

/// A run that has asked, was answered, and waits again. Seven batches.
async fn waiting(engine: &Engine, edge: &mut PlayedEdge) -> OpenRun {
    engine.create_run(new_run("look around"), &person()).await.unwrap();
    let open = edge.start().await;
    edge.recorded(&open, 4, vec![said("I look."), used(12, 3), asked("a1", "ls")]).await;
    approve(engine, edge, &open, "ls").await;
    edge.recorded(&open, 5, vec![call("c1", false)]).await;
    edge.recorded(&open, 6, vec![result("c1"), said("I have looked.")]).await;
    edge.recorded(&open, 7, vec![asked("a2", "make")]).await;
    open
}

async fn approve(engine: &Engine, edge: &mut PlayedEdge, open: &OpenRun, command: &str) {
    let waiting = engine.open_approvals(Some(open.run), None, 10, true).await.unwrap();
    let id = waiting[0].asked.approval_id;
    let yes = Resolve::new(Decision::Approve, format!("digest of {command}"));
    engine.resolve(id, yes, &person()).await.unwrap();
    assert!(matches!(edge.hear().await, ToEdge::Decision { approval, .. } if approval == id));
}

/// The fields that differ, with what the log says and what is stored.
fn told(replay: &Replay) -> Vec<(String, Value, Value)> {
    let told = |found: &runyard_engine::Difference| {
        (found.field.clone(), found.derived.clone(), found.stored.clone())
    };
    replay.differences.iter().map(told).collect()
}

#[track_caller]
fn check(replay: &Replay, field: &str, derived: impl Into<Value>, stored: impl Into<Value>) {
    let (derived, stored) = (derived.into(), stored.into());
    let found = told(replay);
    assert!(found.contains(&(field.to_owned(), derived, stored)), "{field} is not in {found:#?}");
}

fn entered(replay: &Replay) -> Vec<(&'static str, u64)> {
    replay.states.iter().map(|entered| (entered.state, entered.sequence)).collect()
}

#[tokio::test]
async fn c08_a_run_that_is_derived_from_its_log_again_is_the_stored_one_at_every_step() {
    let (engine, mut edge) = World::default().hub_and_edge().await;
    let run = engine.create_run(new_run("x"), &person()).await.unwrap().standing.run.id;
    let open = edge.start().await;
    let same = async |events: u64| {
        let replay = engine.replay(run).await.unwrap();
        assert_eq!(told(&replay), []);
        let standing = engine.run(run).await.unwrap();
        let derived = replay.derived.clone().unwrap();
        assert_eq!((&derived.run, derived.sequence), (&standing.run, standing.sequence));
        assert_eq!(replay.events, events);
        assert_eq!(replay.digest, engine.replay(run).await.unwrap().digest, "two replays say the same");
        replay
    };
    let first = same(6).await;
    let life = ["created", "planned", "accepted", "preparing", "running"];
    assert_eq!(entered(&first), life.into_iter().zip(1..).collect::<Vec<_>>());
    edge.recorded(&open, 4, vec![said("I look."), used(12, 3), asked("a1", "ls")]).await;
    let waits = same(9).await;
    assert_eq!(entered(&waits)[5..], [("needs_approval", 9)]);
    assert_ne!(first.digest, waits.digest);
    approve(&engine, &mut edge, &open, "ls").await;
    assert_eq!(entered(&same(10).await)[6..], [("running", 10)]);
    edge.recorded(&open, 5, vec![call("c1", false), result("c1"), turn_ended()]).await;
    edge.closes(run).await;
    until(&engine, run, "completed").await;
    let ended = engine.replay(run).await.unwrap();
    assert_eq!((told(&ended), ended.thread), (vec![], None));
    assert_eq!(
        ended.states.last().map(|last| (last.state, last.sequence)),
        Some(("completed", ended.events))
    );
    let unknown = engine.replay(RunId::from_parts(1, &[9; 10])).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);
    let installation = engine.replay(runyard_engine::INSTALLATION).await.unwrap_err();
    assert_eq!(installation.code(), Code::NotFound, "the installation's own log is no run");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c08_whatever_was_changed_in_a_runs_row_is_named_with_what_the_log_says() {
    #[rustfmt::skip]
    let changed = [
        ("I have looked.",    "I was paid.", "response",           json!("I have looked."), json!("I was paid.")),
        ("\"inputTokens\":12", "\"inputTokens\":2", "usage.inputTokens", json!(12),          json!(2)),
        ("digest of make",    "digest of rm", "",                  Value::Null,             Value::Null),
        ("\"turns\":1",       "\"turns\":3", "turns",              json!(1),                json!(3)),
        ("look around",       "look away",   "created.task.text",  json!("look around"),    json!("look away")),
        ("\"name\":\"needs_approval\"", "\"name\":\"complete\"", "state.name", json!("needs_approval"), json!("complete")),
    ];
    for (from, to, field, derived, stored) in changed {
        let file = InFile::new();
        let (engine, mut edge) = file.world.hub_and_edge().await;
        let open = waiting(&engine, &mut edge).await;
        assert_eq!(told(&engine.replay(open.run).await.unwrap()), []);
        file.tamper(&row(from, to));
        let replay = engine.replay(open.run).await.unwrap();
        assert_eq!(replay.differences.len(), 1, "{:#?}", told(&replay));
        let found = &replay.differences[0];
        if field.is_empty() {
            assert!(
                found.field.starts_with("state.open.apr_") && found.field.ends_with(".digest"),
                "{found:?}"
            );
        } else {
            assert_eq!(*found, runyard_engine::Difference { field: field.to_owned(), derived, stored });
        }
        assert_eq!(replay.derived.unwrap().run.state.name(), "needs_approval");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c08_a_secret_that_stands_in_a_row_where_the_log_has_none_is_named_and_not_shown() {
    let file = InFile::new();
    let (engine, mut edge) = file.world.hub_and_edge().await;
    engine.create_run(new_run("look around"), &person()).await.unwrap();
    let open = edge.start().await;
    let token = "ghp_16C7e42F292c6912E7710c838347Ae178B4a".to_owned();
    edge.recorded(&open, 4, vec![said(&token)]).await;
    let replay = engine.replay(open.run).await.unwrap();
    assert_eq!(told(&replay), []);
    let placeholder = replay.derived.unwrap().run.response;
    assert!(placeholder != token && !placeholder.is_empty(), "{placeholder}");
    file.tamper(&row(&placeholder, &token));
    let replay = engine.replay(open.run).await.unwrap();
    assert_eq!(replay.differences.len(), 1, "{:#?}", told(&replay));
    assert_eq!(replay.differences[0].field, "row");
    assert!(!format!("{:?}", told(&replay)).contains(&token));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c08_a_row_of_another_end_of_another_word_or_of_no_sense_is_named() {
    let file = InFile::new();
    let (engine, mut edge) = file.world.hub_and_edge().await;
    let open = waiting(&engine, &mut edge).await;
    let events = engine.replay(open.run).await.unwrap().events;
    let last = "WHERE key = (SELECT max(key) FROM runs)";
    file.tamper(&format!("UPDATE runs SET status = 'completed' {last}"));
    let replay = engine.replay(open.run).await.unwrap();
    check(&replay, "status", "needs_approval", "completed");
    file.tamper(&format!("UPDATE runs SET status = 'needs_approval', head = x'{}' {last}", "ab".repeat(32)));
    let replay = engine.replay(open.run).await.unwrap();
    let head = replay.head.unwrap().to_string();
    assert_eq!(told(&replay), [("head".to_owned(), json!(head), json!("ab".repeat(32)))]);
    file.tamper(&format!("UPDATE runs SET head = x'{head}', sequence = sequence + 1 {last}"));
    let replay = engine.replay(open.run).await.unwrap();
    assert_eq!((replay.differences.len(), replay.events), (1, events));
    check(
        &replay,
        &format!("events.{}", events + 1),
        format!("an event that follows from event {events}"),
        "it is missing",
    );
    file.tamper(&format!("UPDATE runs SET sequence = sequence - 2 {last}"));
    let replay = engine.replay(open.run).await.unwrap();
    check(&replay, "state.name", "running", "needs_approval");
    assert_eq!(replay.events, events - 1);
    file.tamper(&format!("UPDATE runs SET sequence = sequence + 1, state = x'00' {last}"));
    let replay = engine.replay(open.run).await.unwrap();
    assert_eq!(replay.differences.len(), 1, "{:#?}", told(&replay));
    let found = &replay.differences[0];
    assert!(found.field == "row" && found.stored.as_str().unwrap().starts_with("it is no JSON"), "{found:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c07_a_changed_event_is_named_and_so_is_what_follows_from_the_change() {
    let file = InFile::new();
    let (engine, mut edge) = file.world.hub_and_edge().await;
    let open = waiting(&engine, &mut edge).await;
    let kinds = kinds(&engine, open.run).await;
    let place = |kind: &str| kinds.iter().position(|found| found == kind).unwrap() as u64 + 1;
    let unchained = "it does not follow from the event before it: one of the two was changed";

    file.tamper(&event(1, "look around", "look inside"));
    let replay = engine.replay(open.run).await.unwrap();
    assert_eq!(replay.differences.len(), 2, "{:#?}", told(&replay));
    check(&replay, "events.2", "an event that follows from event 1", unchained);
    check(&replay, "created.task.text", "look inside", "look around");
    file.tamper(&event(1, "look inside", "look around"));
    assert_eq!(told(&engine.replay(open.run).await.unwrap()), []);

    let asks = place("run.approval.requested");
    file.tamper(&event(asks, "digest of ls", "digest of rm"));
    let replay = engine.replay(open.run).await.unwrap();
    let approval = replay.differences.iter().find(|found| found.field.ends_with(".request.digest"));
    assert_eq!(approval.unwrap().derived, "digest of rm", "{:#?}", told(&replay));
    file.tamper(&event(asks, "digest of rm", "digest of ls"));

    // What cannot be folded ends it; what is stored is not held against the half of it.
    for (sql, at, found) in [
        (event(asks, "run.approval.requested", "run.approval.requestet"), asks, "run.approval.requestet"),
        (event(4, "run.preparing", "run.completed"), 4, ""),
        (event(3, "\"sequence\":3", "\"sequence\":30"), 3, "it belongs to another place or run"),
        (event(3, "{\"sequence\"", "\"sequence\""), 3, "it cannot be read"),
    ] {
        let (file, sql) = (InFile::new(), sql);
        let (engine, mut edge) = file.world.hub_and_edge().await;
        let open = waiting(&engine, &mut edge).await;
        file.tamper(&sql);
        let replay = engine.replay(open.run).await.unwrap();
        let last = replay.differences.last().unwrap();
        assert_eq!(
            (last.field.as_str(), replay.events),
            (format!("events.{at}").as_str(), at - 1),
            "{last:?}"
        );
        assert!(last.stored.as_str().unwrap().contains(found), "{last:?}");
        assert_eq!(replay.differences.len(), 1, "{:#?}", told(&replay));
        assert_eq!(replay.derived.unwrap().sequence, at - 1);
    }
    file.tamper(&event(1, "{\"sequence\"", "\"sequence\""));
    let replay = engine.replay(open.run).await.unwrap();
    assert!(replay.derived.is_none() && replay.digest.is_none() && replay.states.is_empty());
    check(&replay, "events.1", "the run's first event", "it cannot be read");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c08_a_stored_approval_that_is_not_the_one_of_the_log_is_named() {
    let file = InFile::new();
    let (engine, mut edge) = file.world.hub_and_edge().await;
    let open = waiting(&engine, &mut edge).await;
    let open_one = engine.open_approvals(Some(open.run), None, 10, true).await.unwrap().remove(0);
    let waits = open_one.asked.approval_id;
    let decided = "WHERE decision IS NOT NULL";
    file.tamper(&format!("UPDATE approvals SET {} {decided}", replace("decision", "approved", "rejected")));
    let replay = engine.replay(open.run).await.unwrap();
    assert_eq!(replay.differences.len(), 1, "{:#?}", told(&replay));
    let found = &replay.differences[0];
    assert!(found.field.ends_with(".decision.resolution"), "{found:?}");
    assert_eq!([&found.derived, &found.stored], ["approved", "rejected"]);
    file.tamper(&format!("UPDATE approvals SET {} {decided}", replace("decision", "rejected", "approved")));

    let open_row = "WHERE decision IS NULL";
    file.tamper(&format!("UPDATE approvals SET expires = expires + 60000 {open_row}"));
    let replay = engine.replay(open.run).await.unwrap();
    let later = open_one.asked.expires_at.plus_ms(60_000).to_string();
    check(&replay, &format!("approvals.{waits}.expiresAt"), open_one.asked.expires_at.to_string(), later);
    file.tamper(&format!("UPDATE approvals SET expires = expires - 60000 {open_row}"));
    file.tamper(&format!("UPDATE approvals SET {} {open_row}", replace("request", "make", "rm -rf .")));
    let replay = engine.replay(open.run).await.unwrap();
    check(&replay, &format!("approvals.{waits}.request.request.command"), "make", "rm -rf .");
    file.tamper(&format!("UPDATE approvals SET id = x'{}' {open_row}", "01".repeat(16)));
    let replay = engine.replay(open.run).await.unwrap();
    check(&replay, &format!("approvals.{waits}"), "open", Value::Null);
    assert!(replay.differences.iter().any(|found| found.derived.is_null() && found.stored == "open"));
}

#[tokio::test]
async fn j02_a_conversation_is_derived_over_its_runs_with_every_kind_of_message() {
    let (engine, mut edge) = World::default().hub_and_edge().await;
    let first = engine.create_run(new_run("x"), &person()).await.unwrap().standing.run.id;
    let open = edge.start().await;
    let data = ImageSource::Data { media_type: "image/png".into(), data: "iVBORw0KGgo=".into() };
    let address = ImageSource::Url { url: "https://example.com/a.png".into() };
    let picture = |source| Part::Image(Image { source });
    let thought = Reasoning { text: "hm".into(), sealed: Some(json!({"signature": "s"})) };
    let asked = Message { role: Role::User, content: vec![picture(data), picture(address)] };
    let mut answer = Message::assistant("I look.");
    answer.content.push(Part::Reasoning(thought));
    let system = message(&Message::system("Be careful."));
    edge.recorded(&open, 4, vec![used(1, 1), recorded(0, vec![system, message(&asked)])]).await;
    edge.recorded(&open, 5, vec![recorded(2, vec![message(&answer), calls("call-1")]), call("4.0", true)])
        .await;
    let live = engine.replay(first).await.unwrap();
    assert_eq!(told(&live), [], "a call that is under way is no difference");
    let thread = live.thread.unwrap();
    assert_eq!((thread.messages, thread.calls, thread.calls_open), (4, 1, 1));
    edge.recorded(&open, 6, vec![result("4.0"), recorded(4, vec![answers("call-1")]), turn_ended()]).await;
    edge.closes(first).await;
    until(&engine, first, "completed").await;
    let replay = engine.replay(first).await.unwrap();
    assert_eq!(told(&replay), []);
    let thread = replay.thread.unwrap();
    assert_eq!((thread.messages, thread.messages_before, thread.runs_before), (5, 0, 0));

    let next = NewRun { continues: Some(first), ..new_run("and now?") };
    let next = engine.create_run(next, &person()).await.unwrap().standing.run.id;
    let open = edge.start().await;
    edge.recorded(&open, 4, vec![recorded(5, vec![message(&Message::user("and now?"))])]).await;
    let replay = engine.replay(next).await.unwrap();
    assert_eq!(told(&replay), []);
    let goes_on = replay.thread.unwrap();
    assert_eq!((goes_on.messages, goes_on.messages_before, goes_on.runs_before), (6, 5, 1));
    assert_eq!((goes_on.calls, goes_on.calls_open), (1, 0));
    assert_ne!(goes_on.digest, thread.digest);
    assert_eq!(goes_on.digest, engine.replay(next).await.unwrap().thread.unwrap().digest);
}

#[tokio::test]
async fn j02_a_conversation_with_a_gap_a_message_of_no_sense_or_a_stray_result_is_named() {
    let (engine, mut edge) = World::default().hub_and_edge().await;
    let run = engine.create_run(new_run("x"), &person()).await.unwrap().standing.run.id;
    let open = edge.start().await;
    let hello = || message(&Message::user("hello"));
    edge.recorded(&open, 4, vec![recorded(1, vec![hello()])]).await;
    edge.recorded(&open, 5, vec![recorded(3, vec![hello(), json!({"role": "nobody", "content": []})])]).await;
    edge.recorded(&open, 6, vec![recorded(5, vec![calls("call-1"), answers("call-2")])]).await;
    let steps = vec![call("1.0", true), result("1.0"), result("1.0"), call("1.1", true), turn_ended()];
    edge.recorded(&open, 7, steps).await;
    edge.closes(run).await;
    until(&engine, run, "completed").await;
    let replay = engine.replay(run).await.unwrap();
    check(&replay, "thread.after", 0, 1);
    check(&replay, "events.8.after", 2, 3);
    let wrong = replay.differences.iter().find(|found| found.field == "events.8.messages.1").unwrap();
    assert!(wrong.stored.as_str().unwrap().contains("nobody"), "{wrong:?}");
    check(&replay, "events.9.callId", "a call that has no result yet", "call-2");
    check(&replay, "events.12.call", "the one result of a call that was begun", "1.0");
    check(&replay, "thread.callsOpen", 0, 1);
    check(&replay, "thread.stepsOpen", 0, 1);
    assert_eq!(replay.differences.len(), 7, "{:#?}", told(&replay));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn c08_a_run_that_goes_on_while_it_is_derived_differs_in_nothing() {
    let file = InFile::new();
    let (engine, mut edge) = file.world.hub_and_edge().await;
    let run = engine.create_run(new_run("x"), &person()).await.unwrap().standing.run.id;
    let open = edge.start().await;
    let writing = engine.clone();
    let writer = tokio::spawn(async move {
        for turn in 0..40 {
            let command = format!("step {turn}");
            let batch = 4 + 2 * turn;
            edge.recorded(&open, batch, vec![said(&command), asked(&command, &command)]).await;
            approve(&writing, &mut edge, &open, &command).await;
            edge.recorded(&open, batch + 1, vec![call(&command, true), result(&command)]).await;
        }
        // The link must not end before the replays have.
        edge
    });
    let mut replays = 0;
    while !writer.is_finished() {
        let replay = engine.replay(run).await.unwrap();
        assert_eq!(told(&replay), []);
        replays += 1;
    }
    assert!(replays > 1, "nothing was looked at meanwhile");
    drop(writer.await.unwrap());
}
