//! The tools of our own agent, each through the hub: what the gate says, what is in the file afterwards, and what the model reads.
//!
//! clause: J01
//! clause: J07
//! clause: C11

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use support::api::Api;
use support::native::{Native, messages, of_type, results};

/// A secret of a form that nobody can mistake.
const SECRET: &str = "ghp_9fK2mQ7xT4vB8nL1cR6wY3zH5jD0sA2eG4uP";

/// What the gate says of a call.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Gate {
    Allows,
    /// A person is asked, who says yes.
    Asks,
    Denies,
    /// It never comes to the gate.
    Unasked,
}

use Gate::{Allows, Asks, Denies, Unasked};

/// A call, what the gate says of it, a file and what it holds afterwards, and a part of what the model reads.
type Row<'a> = (&'a str, Value, Gate, (&'a str, Option<&'a str>), &'a str);

/// Plays a row and gives all that the run's log says.
#[track_caller]
fn check(
    native: &Native,
    api: &Api,
    (tool, arguments, gate, (file, holds), reads): Row<'_>,
    more: &Value,
) -> String {
    let row = format!("{tool} {arguments}");
    let run = native.start(api, &format!("[[scenario:tool {tool} {arguments}]]"), more);
    if gate == Asks {
        assert_eq!(
            native.file(&run, file).as_deref().filter(|_| tool != "read"),
            None,
            "{row}: not before the yes"
        );
        api.approve(&api.asked(&run, &[]));
    }
    let done = api.until(&run, "completed");
    assert_eq!(done["response"], "The tool was called.", "{row}: {done}");
    let events = api.events(&run);
    let judged: Vec<&Value> =
        of_type(&events, "run.gate.judged").iter().map(|judged| &judged["effect"]).collect();
    let asked = of_type(&events, "run.approval.requested").len();
    let said = match (judged.as_slice(), asked) {
        ([], 0) => Unasked,
        ([], 1) => Asks,
        ([effect], 0) if *effect == "allow" => Allows,
        ([effect], 0) if *effect == "deny" => Denies,
        _ => panic!("{row}: {judged:?} {asked}"),
    };
    assert_eq!(said, gate, "{row}");
    let (calls, ended) = (of_type(&events, "run.tool.call"), of_type(&events, "run.tool.result"));
    assert_eq!((calls.len(), ended.len()), (1, 1), "{row}: told, with its result");
    let is_denied = ended[0]["outcome"] == "denied" && ended[0]["code"] == "tool.denied";
    assert_eq!(is_denied, matches!(gate, Denies | Unasked), "{row}: made only if it may be: {}", ended[0]);
    assert_eq!(native.file(&run, file).as_deref(), holds, "{row}");
    let [read] = results(&messages(&events, 0)).try_into().unwrap();
    assert!(read.contains(reads), "{row}: {read}");
    let asked = native.provider.requests().last().unwrap().body.to_string();
    let log = serde_json::to_string(&events).unwrap();
    assert!(!log.contains(SECRET) && !asked.contains(SECRET), "{row}: {asked} {log}");
    log
}

#[test]
fn j01_j07_each_tool_does_what_it_says_where_the_gate_lets_it_and_nothing_else() {
    let native = Native::new("");
    let place = native.yard.workspace.path();
    std::fs::create_dir(place.join("src")).unwrap();
    std::fs::write(place.join("src/a.txt"), "one\ntwo\n").unwrap();
    std::fs::write(place.join("keys.txt"), format!("token = {SECRET}\n")).unwrap();
    std::fs::write(native.yard.workspace.path().parent().unwrap().join("elsewhere.txt"), "").unwrap();
    symlink("/etc/hostname", place.join("out")).unwrap();
    symlink("..", place.join("up")).unwrap();
    let (_hub, api) = native.yard.up();
    let edit = |old: &str, new: &str| json!({"path": "src/a.txt", "edits": [{"old": old, "new": new}]});
    let held = "key = [REDACTED:known:0123abcd]";
    let a = ("src/a.txt", Some("one\ntwo\n"));
    let none = |file| (file, None);
    #[rustfmt::skip]
    let rows: Vec<Row<'_>> = vec![
        ("read",   json!({"path": "src/a.txt"}),                                Allows,  a, "one\ntwo"),
        ("read",   json!({"path": "src/a.txt", "from_line": 2}),                Allows,  a, "two"),
        ("list",   json!({}),                                                   Allows,  a, r#"{"entries":["README.md","keys.txt","out","src/","up"],"more":false}"#),
        ("list",   json!({"path": "src"}),                                      Allows,  a, r#"["a.txt"]"#),
        ("search", json!({"pattern": "^t.o$"}),                                 Allows,  a, "src/a.txt:2: two"),
        ("write",  json!({"path": "new/b.txt", "content": "hello\n"}),          Allows,  ("new/b.txt", Some("hello\n")), "wrote 6 bytes to new/b.txt"),
        ("write",  json!({"path": "src/a.txt", "content": "other\n"}),          Allows,  ("src/a.txt", Some("other\n")), "wrote 6 bytes"),
        ("patch",  edit("two\n", "2\n"),                                        Allows,  ("src/a.txt", Some("one\n2\n")), "replaced 1 parts of src/a.txt"),
        ("patch",  edit("three", "3"),                                          Allows,  a, "does not stand there; nothing was changed"),
        ("shell",  json!({"command": "echo hi > c.txt; echo done; exit 3"}),    Asks,    ("c.txt", Some("hi\n")), r#""exit_code":3"#),
        // What configures agents, commands or keys is asked about.
        ("write",  json!({"path": ".git/hooks/pre-commit", "content": "x"}),    Asks,    (".git/hooks/pre-commit", Some("x")), "wrote 1 bytes"),
        ("write",  json!({"path": ".env", "content": "A=b"}),                   Asks,    (".env", Some("A=b")), "wrote 3 bytes"),
        // Our placeholder never gets into a file in a secret's place.
        ("write",  json!({"path": "d.txt", "content": held}),                   Denies,  none("d.txt"), "redacted_content"),
        ("patch",  edit("one", held),                                           Denies,  a, "redacted_content"),
        // A secret is read by nobody, from a file or from what a command prints.
        ("read",   json!({"path": "keys.txt"}),                                 Allows,  a, "token = [REDACTED:"),
        ("search", json!({"pattern": "token"}),                                 Allows,  a, "token = [REDACTED:"),
        ("shell",  json!({"command": "cat keys.txt"}),                          Asks,    none("e.txt"), "token = [REDACTED:"),
        // Nothing leads out.
        ("read",   json!({"path": "../elsewhere.txt"}),                         Unasked, a, "a path may not lead upwards"),
        ("write",  json!({"path": "src/../../elsewhere.txt", "content": "x"}),  Unasked, a, "a path may not lead upwards"),
        ("read",   json!({"path": "/etc/hostname"}),                            Denies,  a, "permission_denied"),
        ("write",  json!({"path": "/etc/x", "content": "x"}),                   Denies,  a, "permission_denied"),
        ("read",   json!({"path": "out"}),                                      Allows,  a, "cannot read out"),
        ("write",  json!({"path": "out", "content": "x"}),                      Allows,  a, "cannot write out"),
        ("write",  json!({"path": "up/x.txt", "content": "x"}),                 Allows,  none("../x.txt"), "cannot write up/x.txt"),
        ("patch",  json!({"path": "out", "edits": [{"old": "a", "new": "b"}]}), Allows,  a, "cannot read out"),
        ("list",   json!({"path": "up"}),                                       Allows,  a, "cannot list up"),
    ];
    for row in rows {
        check(&native, &api, row, &json!({}));
    }
    assert_eq!(
        std::fs::read_to_string(place.join("src/a.txt")).unwrap(),
        "one\ntwo\n",
        "the person's own stays"
    );
    let policy = json!({"executionPolicy": {"changes": "keep", "sandbox": "read-only"}});
    for row in [
        ("read", json!({"path": "src/a.txt"}), Allows, a, "one\ntwo"),
        ("write", json!({"path": "src/a.txt", "content": "x"}), Denies, a, "permission_denied"),
        ("patch", edit("one", "1"), Denies, a, "permission_denied"),
    ] {
        check(&native, &api, row, &policy);
    }
}
