//! The `runyard` program's commands: calling any action, the JSON runner, tools, and actions that the home declares.
//!
//! clause: A19
//! clause: A21

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::{Value, json};

use support::{Home, Ran, eventually, is_running, send};

/// Actions that collide, fail, report and never end.
const DECLARED: &str = r#"
[actions.odd]
description = "Gives its input back; its fields are named like flags."
command = ["cat"]

[actions.odd.input]
type = "object"
properties.help = { type = "string" }
properties.json = { type = "string" }
properties.output = { type = "string" }
properties.schema = { type = "boolean" }
properties.confirm = { type = "boolean" }
properties.timeoutMs = { type = "integer" }
properties.dueAt = { type = "string" }
properties.due_at = { type = "string" }
properties.deep = { type = "object", properties = { some_list = { type = "array", items = { type = "integer" } }, output = { type = "number", minimum = 0 } } }

[actions.fail]
description = "Fails with the code it is told."
command = ["sh", "-c", 'echo "{\"error\": {\"code\": \"$(cat code)\", \"message\": \"As told.\"}}"; exit 1']

[actions.forever]
description = "Starts a process of its own and never ends."
command = ["sh", "-c", 'sleep 1000 & echo $! > grandchild; echo $$ > child; echo started >&2; wait']

[actions.report]
description = "Says how far it is."
command = ["sh", "-c", 'echo "{\"type\": \"progress\", \"percent\": 50, \"message\": \"half way\"}" >&2; echo "plain words" >&2; echo 42']
"#;

#[test]
fn call_invokes_any_action() {
    let home = Home::with(DECLARED);
    assert_eq!(home.run(["call", "version-show"]).data()["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(home.run(["call", "version_show"]).data()["name"], "runyard");
    assert_eq!(home.run(["call", "task-create", "--title", "x"]).data()["id"], "t1");
    assert_eq!(home.run(["call", "error-explain", "--code=TIMEOUT"]).data()["exit"], 124);
    let help = home.run(["call", "error-explain", "--help"]);
    assert!(help.stdout.contains("Usage: runyard call error-explain [OPTIONS]"), "{}", help.stdout);
    let (exit, code, _) = home.run(["call", "nosuch"]).failure();
    assert_eq!((exit, code.as_str()), (4, "ACTION_NOT_FOUND"));
    assert_eq!(home.run(["call"]).failure().0, 2);
}

#[test]
fn json_takes_every_option_of_a_call() {
    let home = Home::new();
    let payloads = [
        json!({"action": "version_show"}),
        json!({"action": "task_create", "input": {"title": "x"}, "idempotencyKey": "k", "timeoutMs": 60000, "retry": {"retries": 1, "delayMs": 1}}),
        json!({"action": "task_create", "input": {"title": "x"}, "idempotencyKey": "k", "retry": true}),
        json!({"action": "task_delete", "input": {"id": "t1"}}),
        json!({"action": "task_delete", "input": {"id": "t1"}, "confirm": true}),
    ];
    let lines: String = payloads.iter().map(|payload| format!("{payload}\n")).collect();
    let ran = home.run_with(["json"], lines.as_bytes());
    let envelopes: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let outcomes: Vec<Value> =
        envelopes.iter().map(|one| json!([one["error"]["code"], one["data"]["id"]])).collect();
    assert_eq!(
        outcomes,
        [
            json!([null, null]),
            json!([null, "t1"]),
            json!([null, "t1"]),
            json!(["CONFIRMATION_REQUIRED", null]),
            json!([null, "t1"])
        ]
    );
    assert_eq!(ran.exit, 1);
}

#[test]
fn the_tools_tell_of_built_in_example_and_declared_actions() {
    let home = Home::with(DECLARED);
    let manifest: Value = serde_json::from_str(&home.run(["manifest"]).stdout).unwrap();
    let listed: Value = serde_json::from_str(&home.run(["actions"]).stdout).unwrap();
    let docs = home.run(["docs"]).stdout;
    for tool in [&manifest, &listed] {
        let names: Vec<&str> =
            tool["actions"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
        for name in ["version_show", "error_list", "task_create", "odd", "forever"] {
            assert!(names.contains(&name), "{name} is not in {names:?}");
            assert!(docs.contains(&format!("`{name}`")), "{name}");
        }
    }
    assert_eq!(home.run(["lint"]).exit, 0);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = home.run(["completions", shell]);
        for word in ["version-show", "task-create", "forever", "priority", "allow-plaintext"] {
            assert!(ran.stdout.contains(word), "{shell} does not know {word}: {}", ran.stderr);
        }
    }
}

#[test]
fn an_unknown_command_is_refused_with_what_was_probably_meant() {
    let home = Home::new();
    let table = [
        ("upp", "There is no command \"upp\". Did you mean \"up\"?"),
        ("manifst", "There is no command \"manifst\". Did you mean \"manifest\"?"),
        ("task-create", "There is no command \"task-create\". Did you mean \"call task-create\"?"),
        ("version_show", "There is no command \"version_show\". Did you mean \"call version-show\"?"),
        ("zzz", "There is no command \"zzz\". \"runyard --help\" lists the commands."),
        ("--zzz", "There is no command \"--zzz\". \"runyard --help\" lists the commands."),
    ];
    for (command, expected) in table {
        let ran = home.run([command]);
        assert_eq!((ran.exit, &ran.envelope()["error"]["issues"][0]["message"]), (2, &json!(expected)));
    }
}

#[test]
fn fields_that_are_named_like_flags_have_flags_of_their_own() {
    let home = Home::with(DECLARED);
    let help = home.run(["call", "odd", "--help"]);
    assert_eq!(help.exit, 0, "{}", help.stderr);
    for flag in
        ["--input.help <TEXT>", "--input.json <TEXT>", "--timeoutMs <INTEGER>", "--deep.some-list <INTEGER>"]
    {
        assert!(help.stdout.contains(flag), "{flag}: {}", help.stdout);
    }
    let flags = [
        "--input.help=a",
        "--input.json",
        "b",
        "--input.output",
        "c",
        "--input.schema",
        "--input.confirm=false",
        "--timeoutMs",
        "7",
        "--dueAt",
        "d",
        "--due_at",
        "e",
        "--deep.some_list",
        "1",
        "--deep.some-list=[2,3]",
        "--deep.output",
        "0.5",
        "--timeout-ms",
        "60000",
        "--output",
        "json",
    ];
    let expected = json!({
        "help": "a", "json": "b", "output": "c", "schema": true, "confirm": false, "timeoutMs": 7, "dueAt": "d",
        "due_at": "e", "deep": {"some_list": [1, 2, 3], "output": 0.5},
    });
    assert_eq!(home.run([&["call", "odd"], &flags[..]].concat()).data(), expected);
    let on_top =
        ["call", "odd", "--json", r#"{"deep":{"output":9,"some_list":[]},"help":"kept"}"#, "--deep.output=1"];
    assert_eq!(home.run(on_top).data(), json!({"deep": {"output": 1, "some_list": []}, "help": "kept"}));
    let (exit, _, _) = home.run(["call", "odd", "--deep.output", "-1"]).failure();
    assert_eq!(exit, 2);
}

#[test]
fn a19_the_exit_code_follows_from_the_error_code() {
    let home = Home::with(DECLARED);
    let table = [
        ("VALIDATION_ERROR", 2),
        ("AUTHENTICATION_ERROR", 3),
        ("AUTHORIZATION_ERROR", 3),
        ("ACTION_NOT_FOUND", 4),
        ("EXTERNAL_SERVICE_ERROR", 5),
        ("CONFLICT", 1),
        ("SOLD_OUT", 1),
    ];
    for (code, exit) in table {
        std::fs::write(home.path("code"), code).unwrap();
        let failure = home.run(["call", "fail"]).failure();
        assert_eq!(failure, (exit, code.to_owned(), "As told.".to_owned()));
    }
    let (exit, code, _) = home.run(["call", "forever", "--timeout-ms", "100"]).failure();
    assert_eq!((exit, code.as_str()), (124, "TIMEOUT"));
}

/// The processes that `forever` started, once it has.
fn family(home: &Home) -> [u32; 2] {
    ["child", "grandchild"].map(|name| {
        eventually("forever starts", || std::fs::read_to_string(home.path(name)).ok()?.trim().parse().ok())
    })
}

#[track_caller]
fn assert_gone(home: &Home) {
    for pid in family(home) {
        eventually("nothing is left running", || (!is_running(pid)).then_some(()));
    }
}

#[test]
fn a21_ctrl_c_cancels_a_running_action_and_leaves_nothing_running() {
    for signal in [Signal::INT, Signal::TERM] {
        let home = Home::with(DECLARED);
        let child = home.command(["call", "forever"]).spawn().unwrap();
        assert!(family(&home).into_iter().all(is_running));
        send(child.id(), signal);
        let ran = Ran::from(child.wait_with_output().unwrap());
        let (exit, code, _) = ran.failure();
        assert_eq!((exit, code.as_str()), (130, "CANCELLED"));
        assert_eq!(ran.envelope()["logs"][0]["message"], "started", "what was logged is kept");
        assert_gone(&home);
    }
}

#[test]
fn a21_ctrl_c_cancels_what_the_json_runner_runs() {
    let home = Home::with(DECLARED);
    let mut child = home.command(["json"]).stdin(Stdio::piped()).spawn().unwrap();
    // The input stays open: only the signal can end it.
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, b"{\"action\":\"forever\"}\n").unwrap();
    family(&home);
    send(child.id(), Signal::INT);
    let (exit, code, _) = Ran::from(child.wait_with_output().unwrap()).failure();
    assert_eq!((exit, code.as_str()), (130, "CANCELLED"));
    assert_gone(&home);
}

#[test]
fn a21_ctrl_c_on_a_terminal_cancels_and_shows_it() {
    let home = Home::with(DECLARED);
    let mut command = Command::new("script");
    let line = format!("{} call forever", env!("CARGO_BIN_EXE_runyard"));
    command
        .args(["-q", "-e", "-c", &line, "/dev/null"])
        .env("RUNYARD_HOME", home.path(""))
        .env("SHELL", "/bin/sh");
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("script of util-linux");
    family(&home);
    let (mut keys, mut shown) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    // What is told on the way is there before it is cut off.
    let (mut screen, mut chunk) = (String::new(), [0; 1024]);
    while !screen.contains("info: started") {
        let read = shown.read(&mut chunk).unwrap();
        assert!(read > 0, "{screen}");
        screen.push_str(&String::from_utf8_lossy(&chunk[..read]));
    }
    std::io::Write::write_all(&mut keys, b"\x03").unwrap();
    shown.read_to_string(&mut screen).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{screen}");
    assert!(screen.contains("CANCELLED"), "{screen}");
    assert_gone(&home);
}

#[test]
fn progress_is_a_line_in_a_pipe_and_a_bar_on_a_terminal() {
    let home = Home::with(DECLARED);
    let ran = home.run(["call", "report", "--output", "text"]);
    assert_eq!(
        (ran.exit, ran.stdout.as_str(), ran.stderr.as_str()),
        (0, "42\n", "50% half way\ninfo: plain words\n")
    );
    let events: Vec<Value> = home
        .run(["call", "report", "--output", "ndjson"])
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let types: Vec<&Value> = events.iter().map(|event| &event["type"]).collect();
    assert_eq!(types, ["progress", "log", "result"]);
    let line = format!("{} call report", env!("CARGO_BIN_EXE_runyard"));
    let output = Command::new("script")
        .args(["-q", "-e", "-c", &line, "/dev/null"])
        .env("RUNYARD_HOME", home.path(""))
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let screen = String::from_utf8_lossy(&output.stdout);
    assert!(screen.contains("50% half way") && screen.contains("42"), "{screen:?}");
    assert!(!screen.contains("{\"type\""), "{screen:?}");
}

#[test]
fn a_configuration_that_is_broken_is_told_with_file_and_line() {
    let table = [
        ("[actions.x]\ncommand = [\"cat\"\ndescription = 1", "runyard.toml:3: column 1: "),
        ("[actions.x]\ncommand = [\"cat\"]\ncomand = 1", "unknown key \"comand\""),
        ("[actions.x]\ndescription = \"No command.\"", "has no command"),
        ("[actions]\nx = 1", "\"actions.x\": expected a table"),
        ("[actions.Bad-Name]\ncommand = [\"cat\"]", "Bad-Name"),
        (
            "[actions.version_show]\ndescription = \"A name that is taken.\"\ncommand = [\"cat\"]",
            "version_show",
        ),
    ];
    for (configuration, expected) in table {
        let home = Home::with(configuration);
        for arguments in [&["call", "version-show"][..], &["up", "--listen", "127.0.0.1:0"]] {
            let (exit, code, message) = home.run(arguments).failure();
            assert_eq!((exit, code.as_str()), (2, "VALIDATION_ERROR"), "{message}");
            assert!(message.contains(expected), "{expected}: {message}");
        }
        let text = home.run(["call", "version-show", "--output", "text"]);
        assert!(text.stderr.starts_with("error[VALIDATION_ERROR]: Cannot start: "), "{}", text.stderr);
        assert!(!text.stderr.contains("backtrace"), "{}", text.stderr);
    }
    let home = Home::with("[actions.x\n");
    let (_, _, message) = home.run(["actions"]).failure();
    assert!(message.contains(&home.path("runyard.toml").display().to_string()), "{message}");
}

#[test]
fn a_declared_program_that_is_not_there_is_a_failure_of_the_call_only() {
    let home =
        Home::with("[actions.gone]\ndescription = \"Is not there.\"\ncommand = [\"./no-such-program\"]\n");
    assert_eq!(home.run(["call", "version-show"]).exit, 0);
    let (exit, _, message) = home.run(["call", "gone"]).failure();
    assert!(exit != 0 && message.contains("no-such-program"), "{exit} {message}");
}

#[test]
fn the_home_is_found_by_its_variable_then_below_home() {
    let folder = tempfile::tempdir().unwrap();
    let program = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_runyard"));
        command.args(["call", "task-create", "--title", "x"]).current_dir(folder.path());
        command.env_remove("RUNYARD_HOME").env_remove("HOME").env_remove("RUST_BACKTRACE");
        command
    };
    let (exit, code, message) = Ran::of(&mut program()).failure();
    assert_eq!((exit, code.as_str()), (2, "VALIDATION_ERROR"));
    assert_eq!(
        message,
        "Cannot start: neither RUNYARD_HOME nor HOME is set: say where Runyard keeps its data."
    );
    assert_eq!(
        Ran::of(program().env("RUNYARD_HOME", "").env("HOME", "")).exit,
        2,
        "empty is as good as unset"
    );
    Ran::of(program().env("HOME", folder.path())).data();
    assert!(folder.path().join(".runyard/tasks.json").exists());
    Ran::of(program().env("HOME", folder.path()).env("RUNYARD_HOME", "relative/home")).data();
    assert!(folder.path().join("relative/home/tasks.json").exists());
}

#[test]
fn a_first_call_makes_a_home_that_only_its_owner_can_enter() {
    let home = Home::new();
    let data = home.run(["call", "task-create", "--title", "x"]).data();
    assert_eq!(data["id"], "t1");
    let mode = std::fs::metadata(home.path("")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn a_configuration_that_others_can_write_is_not_trusted() {
    let home = Home::with(DECLARED);
    std::fs::set_permissions(home.path("runyard.toml"), std::fs::Permissions::from_mode(0o666)).unwrap();
    let (exit, code, message) = home.run(["call", "version-show"]).failure();
    assert_eq!((exit, code.as_str()), (2, "VALIDATION_ERROR"));
    assert!(message.contains("others can write it"), "{message}");
}

/// The lock that the task list waits for is held by this test, so the call blocks where no future can be dropped.
// clause: A21
#[test]
fn ctrl_c_and_timeouts_work_also_while_a_handler_waits_for_a_lock() {
    let home = Home::new();
    home.run(["call", "task-create", "--title", "first"]).data();
    let lock = std::fs::File::create(home.path("tasks.lock")).unwrap();
    lock.lock().unwrap();
    let (exit, code, _) =
        home.run(["call", "task-create", "--title", "second", "--timeout-ms", "50"]).failure();
    assert_eq!((exit, code.as_str()), (124, "TIMEOUT"));
    let mut command = home.command(["call", "task-create", "--title", "third"]);
    let child = command.stdout(Stdio::piped()).spawn().unwrap();
    let threads = format!("/proc/{}/task", child.id());
    // The thread that listens for signals and the one that waits for the lock are there.
    eventually("the call waits", || (std::fs::read_dir(&threads).ok()?.count() >= 3).then_some(()));
    send(child.id(), Signal::INT);
    let (exit, code, _) = Ran::from(child.wait_with_output().unwrap()).failure();
    assert_eq!((exit, code.as_str()), (130, "CANCELLED"));
}
