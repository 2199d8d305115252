//! `runyard replay` as a process: on runs that ended, that wait, and that somebody changed by hand.
//!
//! clause: C07
//! clause: C08

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use runyard_testkit_postgres::Postgres;
use serde_json::{Value, json};

use support::api::{Api, Scripted, Yard};
use support::{Home, Hub, Ran};

const ASKS: Scripted<'_> = Scripted {
    name: "asks",
    profile: "",
    script: r#"
[[turn]]
[[turn.step]]
status = { model = "scripted", input_tokens = 12, output_tokens = 3 }
[[turn.step]]
say = "I look."
[[turn.step]]
shell = "ls"
[[turn.step]]
write = "notes.md"
content = "One line.\n"
[[turn.step]]
say = "I have looked."
"#,
};

/// A run of the demo that came to its end, and no hub any more.
fn demo_run() -> (Home, String) {
    let home = Home::with("[[policy.rule]]\neffect = \"allow\"\nkind = \"shell\"\n");
    let folder = home.beside("site");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("README.md"), "# Site\n").unwrap();
    let place = folder.to_str().unwrap();
    home.run(["workspaces", "add", place]).data();
    let ran = home.run(["run", "look around", "--keep", "--workspace", place, "--output", "json"]);
    let run = ran.data()["run"]["id"].as_str().unwrap().to_owned();
    (home, run)
}

fn tamper(home: &Home, sql: &str) {
    let raw = rusqlite::Connection::open(home.path("runyard.db")).unwrap();
    assert_eq!(raw.execute(sql, []).unwrap(), 1, "{sql}");
}

fn replace(column: &str, from: &str, to: &str) -> String {
    format!("{column} = CAST(replace(CAST({column} AS TEXT), '{from}', '{to}') AS BLOB)")
}

/// Where something differs the envelope is whole all the same, and only the exit code says so.
#[track_caller]
fn differs(ran: &Ran) -> Value {
    assert_eq!((ran.exit, ran.stderr.as_str()), (1, ""), "{}", ran.stdout);
    let envelope: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(envelope["ok"], true);
    let replay = envelope["data"]["replay"].clone();
    assert_eq!(replay["same"], false);
    replay
}

#[test]
fn c08_a_run_replays_to_the_same_and_the_command_says_so_to_people_and_to_programs() {
    let (home, run) = demo_run();
    let replay = home.run(["replay", &run]).data()["replay"].clone();
    assert_eq!((&replay["same"], &replay["differences"]), (&json!(true), &json!([])), "{replay}");
    let states: Vec<&str> = replay["states"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entered| entered["state"].as_str().unwrap())
        .collect();
    assert_eq!(states, ["created", "planned", "accepted", "preparing", "running", "completed"]);
    let stored = home.run(["runs", "show", &run]).data()["run"].clone();
    let mut derived = replay["derived"].clone();
    // When a row was written is the database's word; the log has when its last event happened.
    derived["lastEventAt"] = stored["lastEventAt"].clone();
    derived["metrics"]["wallMs"] = stored["metrics"]["wallMs"].clone();
    assert_eq!(derived, stored);
    assert_eq!(replay["events"], stored["lastSequence"]);
    let verified = home.run(["log", "verify", &run]).data();
    assert_eq!(replay["head"], verified["head"]);
    let again = home.run(["replay", &run]).data()["replay"].clone();
    assert_eq!(again, replay, "two replays are the same");

    let text = home.run(["replay", &run, "--output", "text"]);
    assert_eq!((text.exit, text.stderr.as_str()), (0, ""), "{}", text.stdout);
    assert!(text.stdout.trim_end().ends_with("nothing differs"), "{}", text.stdout);
    let first = &replay["states"][0];
    let line = format!("  {}  #1      created", first["at"].as_str().unwrap());
    assert!(text.stdout.lines().any(|found| found == line), "{line:?} is not in {}", text.stdout);

    let (exit, code, message) = home.run(["replay", "run_00000000000000000000000000000001"]).failure();
    assert_eq!((exit, code.as_str()), (1, "NOT_FOUND"), "{message}");
    let (exit, code, _) = home.run(["replay", "nonsense"]).failure();
    assert_eq!((exit, code.as_str()), (2, "VALIDATION_ERROR"));
    let help = home.run(["--help"]);
    assert!(help.stdout.contains("\n  replay "), "{}", help.stdout);
    assert!(home.run(["completions", "bash"]).stdout.contains("runyard__subcmd__replay"));
}

#[test]
fn c07_c08_a_row_or_an_event_that_was_changed_by_hand_is_named_and_is_the_exit_code() {
    let (home, run) = demo_run();
    let last = "WHERE key = (SELECT max(key) FROM runs)";
    let same = home.run(["replay", &run]).data()["replay"].clone();
    tamper(
        &home,
        &format!(
            "UPDATE runs SET {}, status = 'failed' {last}",
            replace("state", "look around", "look away")
        ),
    );
    let replay = differs(&home.run(["replay", &run]));
    assert_eq!(
        replay["differences"],
        json!([
            {"field": "status", "derived": "completed", "stored": "failed"},
            {"field": "created.task.text", "derived": "look around", "stored": "look away"},
        ])
    );
    assert_eq!(
        (&replay["digest"], &replay["head"]),
        (&same["digest"], &same["head"]),
        "the log is what it was"
    );
    let text = home.run(["replay", &run, "--output", "text"]);
    assert_eq!(text.exit, 1);
    let told = "2 differences:\n  status\n    the log says  completed\n    is stored     failed\n";
    assert!(text.stdout.contains(told), "{}", text.stdout);

    let back = replace("state", "look away", "look around");
    tamper(&home, &format!("UPDATE runs SET {back}, status = 'completed' {last}"));
    assert_eq!(home.run(["replay", &run]).data()["replay"], same);
    let body = replace("body", "look around", "look twice!");
    let place = "WHERE sequence = 1 AND run = (SELECT max(key) FROM runs)";
    tamper(&home, &format!("UPDATE events SET {body} {place}"));
    let replay = differs(&home.run(["replay", &run]));
    let fields: Vec<&str> = replay["differences"]
        .as_array()
        .unwrap()
        .iter()
        .map(|found| found["field"].as_str().unwrap())
        .collect();
    assert_eq!(fields, ["events.2", "created.task.text"], "{replay}");
    assert_ne!(replay["digest"], same["digest"]);
}

#[test]
fn c08_a_run_that_waits_replays_to_the_same_beside_its_hub_and_for_a_viewer() {
    let yard = Yard::new("", &[ASKS]);
    let (_hub, owner) = yard.up();
    let run = owner.start("asks", yard.place());
    let asked = owner.asked(&run, &[]);
    let viewer = owner.person("vera", "viewer");
    let replay = viewer.get(&format!("/runs/{run}/replay"))["replay"].clone();
    assert_eq!((&replay["same"], &replay["differences"]), (&json!(true), &json!([])), "{replay}");
    assert_eq!(replay["derived"]["openApprovals"], json!([asked["id"]]));
    assert_eq!(replay["derived"]["metrics"]["inputTokens"], 12);
    assert_eq!(replay["states"].as_array().unwrap().last().unwrap()["state"], "needs_approval");
    let beside = yard.home.run(["replay", &run]).data()["replay"].clone();
    assert_eq!(beside, replay);
    owner.approve(&asked);
    owner.until(&run, "completed");
    let ended = viewer.get(&format!("/runs/{run}/replay"))["replay"].clone();
    assert_eq!(
        (&ended["same"], &ended["derived"]["response"]),
        (&json!(true), &json!("I have looked.")),
        "{ended}"
    );
}

#[test]
fn c08_a_run_on_postgresql_replays_to_the_same_and_an_event_beyond_its_end_is_named() {
    let postgres = Postgres::shared().unwrap();
    let database = postgres.database().unwrap();
    let yard = Yard::new("", &[ASKS]);
    let started = yard.home.command_up().env("RUNYARD_DATABASE_URL", &database).spawn().unwrap();
    let hub = Hub::of(started).expect("the hub starts");
    let api = Api::owner(&yard.home, &hub);
    api.add_workspace(yard.workspace.path());
    let run = api.start("asks", yard.place());
    api.approve(&api.asked(&run, &[]));
    api.until(&run, "completed");
    let replayed = || api.get(&format!("/runs/{run}/replay"))["replay"].clone();
    let same = replayed();
    assert_eq!((&same["same"], &same["differences"]), (&json!(true), &json!([])), "{same}");
    let events = same["events"].as_u64().unwrap();
    let shorter = "UPDATE runyard.runs SET sequence = sequence - 1 WHERE status = 'completed'";
    postgres.sql(&database, shorter).unwrap();
    let beyond = json!({"field": format!("events.{events}"), "derived": null, "stored": "it is beyond the end of the run"});
    let replay = replayed();
    assert!(replay["differences"].as_array().unwrap().contains(&beyond), "{replay}");
    assert_eq!(replay["events"], events - 1);
}
