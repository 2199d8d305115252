//! The command line of the example, driven as a process: flags from schemas, help, parse errors, exit codes, tools.
//!
//! clause: A19
//! clause: A03

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::io::Read;
use std::os::unix::ffi::OsStringExt;

use serde_json::{Value, json};

use support::{Program, assert_envelope};

#[test]
fn every_way_to_give_an_input_stores_the_same_task() {
    let program = Program::new();
    let whole = r#"{"title":"Buy milk","priority":"high","tags":["home","shop"]}"#;
    let file = program.file("input.json", whole);
    let at_file = format!("@{file}");
    let ways: &[&[&str]] = &[
        &["task-create", "--title", "Buy milk", "--priority", "high", "--tags", "home", "--tags", "shop"],
        &["task_create", "--title=Buy milk", "--priority=high", "--tags=home", "--tags=shop"],
        &["call", "task-create", "--tags", r#"["home","shop"]"#, "--title", "Buy milk", "--priority", "high"],
        &[
            "call",
            "task_create",
            "--tags",
            r#"["home"]"#,
            "--tags",
            "shop",
            "--title",
            "Buy milk",
            "--priority=high",
        ],
        &[
            "task-create",
            "--title",
            "first",
            "--title",
            "Buy milk",
            "--priority",
            "high",
            "--tags",
            r#"["home","shop"]"#,
        ],
        &["task-create", "--json", whole],
        &["task-create", &format!("--json={whole}")],
        &["task-create", "--json", &at_file],
        &[
            "task-create",
            "--json",
            r#"{"title":"Buy milk","priority":"low","tags":["home","shop"]}"#,
            "--priority",
            "high",
        ],
        &["task-create", "--json", "-"],
        &["task-create", "--json", "{}", "--json", whole],
    ];
    for way in ways {
        program.run_with(*way, whole.as_bytes()).data();
    }
    let expected = json!({"title": "Buy milk", "priority": "high", "tags": ["home", "shop"], "done": false});
    assert_eq!(program.stored(), vec![expected; ways.len()]);
}

#[test]
fn texts_that_look_like_something_else_stay_texts() {
    let program = Program::new();
    let titles = [
        "null",
        "12",
        "true",
        "[1]",
        "--title",
        "-x",
        "a=b",
        "=",
        "@file",
        "- ",
        "\"quoted\"",
        "é\u{1f600}",
        " ",
    ];
    for title in titles {
        program.run(["task-create", &format!("--title={title}"), "--tags", "null"]).data();
    }
    let stored: Vec<Value> =
        program.stored().iter().map(|task| json!([task["title"], task["tags"]])).collect();
    assert_eq!(stored, titles.map(|title| json!([title, ["null"]])));
}

#[test]
fn a_boolean_is_set_alone_or_after_an_equals_sign() {
    let program = Program::new();
    for title in ["one", "two"] {
        program.run(["task-create", "--title", title]).data();
    }
    program.run(["task-complete", "--id", "t1"]).data();
    let check = |flags: &[&str], expected: &[&str]| {
        let data = program.run([&["task-list"], flags].concat()).data();
        let titles: Vec<&str> =
            data["tasks"].as_array().unwrap().iter().map(|task| task["title"].as_str().unwrap()).collect();
        assert_eq!(titles, expected, "{flags:?}");
    };
    check(&[], &["one", "two"]);
    check(&["--done"], &["one"]);
    check(&["--done=true"], &["one"]);
    check(&["--done=yes"], &["one"]);
    check(&["--done=false"], &["two"]);
    check(&["--done", "false"], &["two"]);
    check(&["--done", "--limit", "1"], &["one"]);
    check(&["--done=null"], &["one", "two"]);
    let (code, message) = program.run(["task-list", "--done=maybe"]).refusal();
    assert_eq!((code.as_str(), message.contains("boolean")), ("VALIDATION_ERROR", true), "{message}");
}

#[test]
fn help_shows_every_flag_with_its_values_defaults_and_limits() {
    let program = Program::new();
    let expected = "\
Create a task.

Usage: tasks task-create [OPTIONS]

Options:
      --title <TEXT>     What is to be done. [required; 1 to 200 characters]
      --priority <TEXT>  How urgent it is. [one of: low, normal, high; default: normal]
      --tags <TEXT>      Words to find it by. [repeatable; at most 20 items; default: []]
  -h, --help             Print help

Call options:
";
    for way in [["task-create", "--help"], ["task_create", "-h"], ["help", "task-create"]] {
        let ran = program.run(way);
        assert_eq!((ran.exit, ran.stdout.get(..expected.len())), (0, Some(expected)), "{}", ran.stdout);
        for flag in ["--json <JSON>", "--schema", "--confirm", "--timeout-ms <MS>", "--idempotency-key <KEY>"]
        {
            assert!(ran.stdout.contains(flag), "{flag}");
        }
        let words: Vec<&str> = ran.stdout.split_whitespace().collect();
        assert!(words.join(" ").contains("[possible values: text, json, ndjson]"));
        assert!(ran.stdout.contains("Side effects: write."));
        assert!(ran.stdout.contains(r#"Example: task-create --json '{"title":"Buy milk","tags":["home"]}'"#));
    }
    let list = program.run(["task-list", "--help"]).stdout;
    assert!(list.contains("--limit <INTEGER>      At most so many. [1 to 100; default: 50]"), "{list}");
    let delete = program.run(["call", "task-delete", "--help"]).stdout;
    assert!(delete.contains("Side effects: destructive (asks for --confirm)."), "{delete}");
}

#[test]
fn root_help_lists_every_command_and_exits_with_success() {
    let program = Program::new();
    let none: [&str; 0] = [];
    let help = program.run(none);
    for arguments in [&["--help"][..], &["-h"], &["help"]] {
        let ran = program.run(arguments);
        assert_eq!((ran.exit, &ran.stdout), (0, &help.stdout));
    }
    assert_eq!(help.exit, 0);
    for command in [
        "task-create",
        "task-list",
        "task-delete",
        "serve",
        "call",
        "json",
        "manifest",
        "diff",
        "lint",
        "docs",
    ] {
        assert!(help.stdout.contains(&format!("\n  {command} ")), "{command}: {}", help.stdout);
    }
    for (tool, usage) in [
        ("manifest", "Usage: tasks manifest"),
        ("call", "Usage: tasks call"),
        ("serve", "Usage: tasks serve"),
    ] {
        let ran = program.run([tool, "--help"]);
        assert_eq!((ran.exit, ran.stdout.contains(usage)), (0, true), "{}", ran.stdout);
    }
    assert_eq!(program.run(["--version"]).stdout, format!("tasks {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn the_schema_is_printed_as_json_whatever_else_is_asked() {
    let program = Program::new();
    for arguments in
        [&["task-create", "--schema"][..], &["task-create", "--schema", "--json", "broken", "--schema"]]
    {
        let ran = program.run(arguments);
        let schema: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(ran.exit, 0);
        assert_eq!(schema["required"], json!(["title"]));
        assert_eq!(schema["properties"]["title"]["maxLength"], 200);
    }
    assert!(program.stored().is_empty());
}

#[test]
fn a19_a_command_line_that_does_not_parse_is_a_validation_error() {
    let program = Program::new();
    let table: &[(&[&str], &str)] = &[
        (
            &["task-create", "--titel", "x"],
            "Unexpected argument '--titel' found; tip: a similar argument exists: '--title'.",
        ),
        (&["task-create", "--title"], "A value is required for '--title <TEXT>' but none was supplied."),
        (
            &["task-create", "--title", "--tags", "x"],
            "A value is required for '--title <TEXT>' but none was supplied.",
        ),
        (&["task-create", "--title", "-x"], "Unexpected argument '-x' found."),
        (
            &["task-create", "--title", "x", "--output", "xml"],
            "Invalid value 'xml' for '--output <FORMAT>'; [possible values: text, json, ndjson].",
        ),
        (
            &["task-create", "--title", "x", "--confirm=yes"],
            "Unexpected value 'yes' for '--confirm' found; no more were expected.",
        ),
        (&["task-create", "stray"], "Unexpected argument 'stray' found."),
        (&["task-create", "--title", "x", "--", "stray"], "Unexpected argument 'stray' found."),
        (&["task-create", "--json", "5", "--title", "x"], "Flags can be set on top of a JSON object only."),
        (&["call"], "Name the action to call; \"actions\" lists them."),
        (&["--bogus"], "There is no command \"--bogus\". \"tasks --help\" lists the commands."),
        (
            &["serve", "--listen", "nowhere"],
            "Invalid value 'nowhere' for '--listen <ADDR>': invalid socket address syntax.",
        ),
        (&["lint", "stray"], "Unexpected argument 'stray' found."),
    ];
    for (arguments, expected) in table {
        let ran = program.run(*arguments);
        let (code, message) = ran.refusal();
        assert_eq!(
            (ran.exit, code.as_str(), message.as_str()),
            (2, "VALIDATION_ERROR", *expected),
            "{arguments:?}"
        );
        assert_eq!(ran.envelope()["error"]["message"], "Invalid command line.");
        assert_eq!(ran.envelope()["meta"]["surface"], "cli");
    }
    assert!(program.stored().is_empty(), "nothing was done");
}

#[test]
fn a03_a_value_that_does_not_fit_is_an_issue_at_its_path() {
    let program = Program::new();
    let table: &[(&[&str], Value, &str)] = &[
        (&["task-create"], json!(["title"]), "Required value is missing."),
        (&["task-create", "--title", ""], json!(["title"]), "Expected at least 1 characters."),
        (&["task-create", "--title", "x", "--priority", "urgent"], json!(["priority"]), ""),
        (&["task-create", "--title", "x", "--tags", ""], json!(["tags", 0]), ""),
        (&["task-create", "--title", "x", "--tags", "[1]"], json!(["tags", 0]), "Expected string."),
        (&["task-list", "--limit", "0"], json!(["limit"]), "Expected value >= 1."),
        (&["task-list", "--limit", "-3"], json!(["limit"]), "Expected value >= 1."),
        (&["task-list", "--limit", "ten"], json!(["limit"]), "Expected integer."),
        (&["task-list", "--limit", "1e400"], json!(["limit"]), "Expected integer."),
        (&["task-create", "--json", "5"], json!([]), "Expected object."),
        (&["task-create", "--json", "null"], json!([]), "Expected object."),
        (&["task-create", "--json", "[]"], json!([]), "Expected object."),
        (
            &["task-create", "--json", "{\"title\":\"x\",\"tilte\":1}"],
            json!(["tilte"]),
            "Unexpected property \"tilte\".",
        ),
        (
            &["task-create", "--title", "x", "--timeout-ms", "abc"],
            json!(["timeoutMs"]),
            "Expected a whole number of milliseconds.",
        ),
        (
            &["task-create", "--title", "x", "--timeout-ms", "-1"],
            json!(["timeoutMs"]),
            "Expected a whole number of milliseconds.",
        ),
        (
            &["task-create", "--title", "x", "--timeout-ms", "1.5"],
            json!(["timeoutMs"]),
            "Expected a whole number of milliseconds.",
        ),
        (
            &["task-create", "--title", "x", "--retry", "3"],
            json!(["retry"]),
            "Expected true, false or {retries, delayMs}.",
        ),
        (&["task-create", "--title", "x", "--idempotency-key", ""], json!(["idempotencyKey"]), ""),
    ];
    for (arguments, path, message) in table {
        let ran = program.run(*arguments);
        let envelope = ran.envelope();
        let issue = &envelope["error"]["issues"][0];
        assert_eq!(
            (&envelope["error"]["code"], &issue["path"]),
            (&json!("VALIDATION_ERROR"), path),
            "{arguments:?} {envelope}"
        );
        assert_eq!(ran.exit, 2);
        if !message.is_empty() {
            assert_eq!(issue["message"], *message, "{arguments:?}");
        }
    }
}

#[test]
fn a19_every_kind_of_end_has_its_exit_code() {
    let program = Program::new();
    let check = |arguments: &[&str], exit: i32, code: Value| {
        let ran = program.run(arguments);
        let envelope = ran.envelope();
        assert_eq!((ran.exit, &envelope["error"]["code"]), (exit, &code), "{arguments:?}");
    };
    check(&["task-create", "--title", "x"], 0, Value::Null);
    check(&["task-create"], 2, json!("VALIDATION_ERROR"));
    check(&["nosuch"], 4, json!("ACTION_NOT_FOUND"));
    check(&["call", "nosuch", "--help"], 4, json!("ACTION_NOT_FOUND"));
    check(&["task-delete", "--id", "t1"], 1, json!("CONFIRMATION_REQUIRED"));
    check(&["task-delete", "--id", "t9", "--confirm"], 1, json!("NOT_FOUND"));
    check(&["task-delete", "--id", "t1", "--confirm"], 0, Value::Null);
    std::fs::write(program.path("tasks.json"), "no tasks").unwrap();
    check(&["task-list"], 1, json!("INTERNAL_ERROR"));
    assert_eq!(
        program.run(["task-list"]).envelope()["error"]["message"]
            .as_str()
            .map(|text| text.contains("tasks.json")),
        Some(false)
    );
}

#[test]
fn a01_an_unknown_action_is_named_as_asked_and_a_near_one_is_suggested_to_people() {
    let program = Program::new();
    let envelope = program.run(["task-creat"]).envelope();
    assert_eq!(envelope["meta"]["action"], "task-creat");
    assert_eq!(envelope["error"]["message"], "Action \"task-creat\" was not found.");
    let suggested = |asked: &str| program.run([asked, "--output", "text"]).stderr;
    assert!(suggested("task-creat").contains("Did you mean \"task-create\"?"));
    assert!(suggested("task_lst").contains("Did you mean \"task-list\"?"));
    assert!(suggested("manifst").contains("Did you mean \"manifest\"?"));
    assert!(suggested("serv").contains("Did you mean \"serve\"?"));
    assert!(!suggested("zzz").contains("Did you mean"));
}

#[test]
fn json_that_cannot_be_read_says_why() {
    let program = Program::new();
    let huge = program.file("huge.json", format!("{{\"title\":\"{}\"}}", "é".repeat(1024 * 1024)));
    let broken = program.file("broken.json", "{\"title\":\n  oops}");
    let binary = program.file("binary.json", b"\"\xff\"");
    let folder = program.path("folder");
    std::fs::create_dir(&folder).unwrap();
    let table = [
        ("@nosuch.json".to_owned(), "Cannot read nosuch.json: entity not found.".to_owned()),
        ("@".to_owned(), "Cannot read : entity not found.".to_owned()),
        (format!("@{}", folder.display()), format!("Cannot read {}: is a directory.", folder.display())),
        (format!("@{huge}"), format!("{huge} holds more than 2097152 bytes.")),
        (format!("@{broken}"), "Not valid JSON at line 2, column 3: expected value.".to_owned()),
        (format!("@{binary}"), format!("{binary} is not valid UTF-8.")),
        ("{".to_owned(), "Not valid JSON at line 1, column 1: EOF while parsing an object.".to_owned()),
        (String::new(), "Not valid JSON at line 1, column 0: EOF while parsing a value.".to_owned()),
        ("{} {}".to_owned(), "Not valid JSON at line 1, column 4: trailing characters.".to_owned()),
    ];
    for (source, expected) in table {
        let ran = program.run(["task-create", "--json", &source]);
        assert_eq!(ran.refusal(), ("VALIDATION_ERROR".to_owned(), expected), "{source}");
        assert_eq!(ran.envelope()["error"]["issues"][0]["path"], json!(["json"]));
        assert_eq!(ran.envelope()["meta"]["action"], "task_create");
    }
    let endless = vec![b' '; 3 * 1024 * 1024];
    let (_, message) = program.run_with(["task-create", "--json", "-"], &endless).refusal();
    assert_eq!(message, "standard input holds more than 2097152 bytes.");
    let (_, message) = program.run_with(["task-create", "--json", "-"], b"").refusal();
    assert_eq!(message, "Not valid JSON at line 1, column 0: EOF while parsing a value.");
    let nested = format!("{}1{}", "[".repeat(50_000), "]".repeat(50_000));
    let (_, message) = program.run(["task-create", "--json", &nested]).refusal();
    assert!(message.contains("recursion limit"), "{message}");
}

#[test]
fn the_envelope_is_the_default_where_there_is_no_terminal() {
    let program = Program::new();
    let ran = program.run(["task-create", "--title", "x"]);
    assert_eq!(ran.data()["title"], "x");
    assert_eq!(ran.stderr, "", "logs are in the envelope");
    assert_eq!(ran.envelope()["logs"][0]["message"], "task created");
    assert!(!ran.stdout.contains('\u{1b}'));
}

#[test]
fn text_shows_data_on_standard_output_and_everything_else_on_standard_error() {
    let program = Program::new();
    let ran = program.run(["task-create", "--title", "Buy milk", "--output", "text"]);
    assert_eq!(
        ran.stdout,
        "id        t1\ntitle     Buy milk\npriority  normal\ntags      []\ndone      false\n"
    );
    assert_eq!(ran.stderr, "info: task created id=t1\n");
    let list = program.run(["task-list", "--output=text"]);
    assert_eq!(
        list.stdout,
        "ID  TITLE     PRIORITY  TAGS  DONE\nt1  Buy milk  normal    []    false\ntotal  1\n"
    );
    let none = program.run(["task-list", "--tag", "x", "--output", "text"]);
    assert_eq!(none.stdout, "nothing\ntotal  0\n");
    let failed = program.run(["task-complete", "--id", "t9", "--output", "text"]);
    assert_eq!((failed.exit, failed.stdout.as_str()), (1, ""));
    assert!(failed.stderr.starts_with("error[NOT_FOUND]: There is no task \"t9\".\n"), "{}", failed.stderr);
}

#[test]
fn ndjson_is_one_event_a_line_and_the_result_last() {
    let program = Program::new();
    let lines = |arguments: &[&str]| -> Vec<Value> {
        program.run(arguments).stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let events = lines(&["task-create", "--title", "x", "--output", "ndjson"]);
    assert_eq!(events.len(), 2);
    assert_eq!((&events[0]["type"], &events[0]["message"]), (&json!("log"), &json!("task created")));
    assert_eq!(events[1]["type"], "result");
    assert_envelope(&events[1]["envelope"]);
    for refused in [
        &["task-create", "--output", "ndjson"][..],
        &["task-create", "--bogus", "--output=ndjson"],
        &["nosuch", "--output", "ndjson"],
    ] {
        let events = lines(refused);
        assert_eq!(events.len(), 1, "{refused:?}");
        assert_envelope(&events[0]["envelope"]);
        assert_eq!(events[0]["envelope"]["ok"], false);
    }
}

#[test]
fn what_a_terminal_would_obey_is_shown_and_not_sent() {
    let program = Program::new();
    let nasty = "\u{1b}[2J\u{7}\u{9b}\u{202e}\u{2066}\u{61c}\u{7f}\r";
    program.run(["task-create", "--title", nasty, "--tags", "\u{1b}]0;owned\u{7}", "--output", "text"]);
    let shown = "\\u{1b}[2J\\u{7}\\u{9b}\\u{202e}\\u{2066}\\u{61c}\\u{7f}\\r";
    for arguments in
        [&["task-list", "--output", "text"][..], &["task-complete", "--id", "t1", "--output", "text"]]
    {
        let ran = program.run(arguments);
        assert!(ran.stdout.contains(shown), "{}", ran.stdout);
        assert!(
            !(ran.stdout + &ran.stderr).contains(|c: char| (c.is_control() && c != '\n') || c == '\u{202e}')
        );
    }
    for arguments in [["task-complete", "--id", nasty], ["task-create", nasty, "x"], [nasty, "x", "y"]] {
        let ran = program.run([&arguments[..], &["--output", "text"]].concat());
        assert!(
            !(ran.stdout + &ran.stderr).contains(|c: char| (c.is_control() && c != '\n') || c == '\u{202e}')
        );
    }
    assert_eq!(program.stored()[0]["title"], nasty, "it is kept as it was given");
}

#[test]
fn nothing_in_a_text_passes_for_a_further_line() {
    let program = Program::new();
    let forged = "x\nerror[FORGED]: y\n\tz";
    let check = |arguments: &[&str], lines: usize| {
        let ran = program.run([arguments, &["--output", "text"]].concat());
        let shown = ran.stdout + &ran.stderr;
        assert_eq!(shown.lines().count(), lines, "{arguments:?}: {shown}");
        assert!(!shown.contains("\nerror[FORGED]") && !shown.contains('\t'), "{arguments:?}: {shown}");
    };
    check(&["task-create", "--title", forged, "--tags", forged], 6);
    check(&["task-list"], 3);
    check(&["task-complete", "--id", "t1"], 5);
    check(&["task-complete", "--id", forged], 2);
    check(&["task-create", "--json", &json!({"title": "x", forged: 1}).to_string()], 3);
    check(&[forged], 2);
    check(&["diff", forged, forged], 3);
    let manifest = |actions: Value| json!({"name": "x", "version": "1", "actions": actions}).to_string();
    let old = program.file("old.json", manifest(json!([])));
    let action = json!({"name": forged, "inputSchema": {}});
    let new = program.file("new.json", manifest(json!([action])));
    check(&["diff", &old, &new], 2);
}

#[test]
fn an_argument_that_is_not_unicode_is_refused_in_an_envelope() {
    let program = Program::new();
    let odd = std::ffi::OsString::from_vec(b"--title=\xff".to_vec());
    let ran = program.run(vec!["task-create".into(), odd]);
    assert_eq!(ran.refusal(), ("VALIDATION_ERROR".to_owned(), "An argument is not valid UTF-8.".to_owned()));
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let program = Program::new();
    for arguments in [&["manifest"][..], &["docs"], &["--help"], &["task-list"], &["completions", "bash"]] {
        let mut child = program.command(arguments).spawn().unwrap();
        let mut few = [0; 2];
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut few).unwrap();
        drop(stdout);
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            (output.status.code(), String::from_utf8(output.stderr).unwrap()),
            (Some(0), String::new()),
            "{arguments:?}"
        );
    }
    // Closed before the first byte.
    let mut child = program.command(["manifest"]).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap()), (Some(0), String::new()));
}

#[test]
fn events_that_nobody_reads_end_the_call_as_cancelled_without_a_word() {
    let program = Program::new();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = program.command(["task-create", "--title", "x", "--output", "ndjson"]);
    let output = command.stdout(writer).output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap()), (Some(130), String::new()));
}

#[test]
fn completions_name_every_action_and_its_flags() {
    let program = Program::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = program.run(["completions", shell]);
        assert_eq!(ran.exit, 0);
        for word in
            ["task-create", "task-list", "task-complete", "task-delete", "priority", "limit", "manifest"]
        {
            assert!(ran.stdout.contains(word), "{shell} does not know {word}");
        }
    }
    let bash = program.file("completion.bash", program.run(["completions", "bash"]).stdout);
    let parsed = std::process::Command::new("bash").args(["-n", &bash]).status().unwrap();
    assert!(parsed.success(), "bash cannot read its script");
    let (code, message) = program.run(["completions", "tcsh"]).refusal();
    assert_eq!(code, "VALIDATION_ERROR");
    assert!(message.contains("[possible values: bash, elvish, fish, powershell, zsh]"), "{message}");
    assert_eq!(program.run(["completions"]).refusal().0, "VALIDATION_ERROR");
}

#[test]
fn a_manifest_is_compatible_with_itself_and_breaking_changes_are_told() {
    let program = Program::new();
    let manifest = program.run(["manifest"]);
    assert_eq!(program.run(["manifest"]).stdout, manifest.stdout, "the same bytes on every run");
    let old = program.file("old.json", &manifest.stdout);
    let same = program.run(["diff", &old, &old]);
    let diff: Value = serde_json::from_str(&same.stdout).unwrap();
    assert_eq!((same.exit, &diff["verdict"]), (0, &json!("compatible")));

    let changed = |name: &str, change: fn(&mut Value)| {
        let mut manifest: Value = serde_json::from_str(&manifest.stdout).unwrap();
        let actions = manifest["actions"].as_array_mut().unwrap();
        change(actions.iter_mut().find(|action| action["name"] == "task_create").unwrap());
        program.file(name, manifest.to_string())
    };
    let wider = changed("wider.json", |action| {
        action["inputSchema"]["properties"]["title"]["maxLength"] = json!(400)
    });
    let narrower = changed("narrower.json", |action| {
        action["inputSchema"]["properties"]["title"]["maxLength"] = json!(4)
    });
    let renamed = changed("renamed.json", |action| action["name"] = json!("task_\u{1b}[2Jmake"));
    assert_eq!(program.run(["diff", &old, &wider]).exit, 0);
    for breaking in [&narrower, &renamed] {
        let ran = program.run(["diff", &old, breaking]);
        let diff: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!((ran.exit, &diff["verdict"]), (1, &json!("breaking")));
        let text = program.run(["diff", &old, breaking, "--output", "text"]);
        assert_eq!(text.exit, 1);
        assert!(text.stdout.contains("task_create"), "{}", text.stdout);
        assert!(!text.stdout.contains('\u{1b}'), "{}", text.stdout);
    }
}

#[test]
fn a19_manifests_that_cannot_be_compared_are_a_validation_error() {
    let program = Program::new();
    let old = program.file("old.json", program.run(["manifest"]).stdout);
    let broken = program.file("broken.json", "{");
    let other = program.file("other.json", "[1]");
    assert_eq!(
        program.run(["diff", &old, "nosuch.json"]).refusal().1,
        "Cannot read nosuch.json: entity not found."
    );
    assert_eq!(
        program.run(["diff", "nosuch.json", &old]).envelope()["error"]["issues"][0]["path"],
        json!(["old"])
    );
    assert!(program.run(["diff", &old, &broken]).refusal().1.contains("is not valid JSON"));
    assert_eq!(program.run(["diff", &old, &other]).refusal().0, "VALIDATION_ERROR");
    assert_eq!(program.run(["diff", &old]).refusal().0, "VALIDATION_ERROR");
}

#[test]
fn lint_docs_and_actions_tell_of_every_action() {
    let program = Program::new();
    let lint = program.run(["lint"]);
    assert_eq!(
        (lint.exit, serde_json::from_str::<Value>(&lint.stdout).unwrap()),
        (0, json!({"findings": []}))
    );
    assert_eq!(program.run(["lint", "--output", "text"]).stdout, "nothing to say\n");

    let docs = program.run(["docs"]);
    assert_eq!(docs.exit, 0);
    assert!(docs.stdout.starts_with("# Actions of tasks\n"));
    assert_eq!(program.run(["docs"]).stdout, docs.stdout, "the same bytes on every run");

    let actions = program.run(["actions"]);
    let listed: Value = serde_json::from_str(&actions.stdout).unwrap();
    let names: Vec<&str> =
        listed["actions"].as_array().unwrap().iter().map(|action| action["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["task_complete", "task_create", "task_delete", "task_list"]);
    let table = program.run(["actions", "--output", "text"]).stdout;
    for name in names {
        assert!(docs.stdout.contains(&format!("`{name}`")), "{name}");
        assert!(table.contains(name), "{table}");
    }
}

#[test]
fn the_json_runner_reads_standard_input_and_exits_with_the_first_failure() {
    let program = Program::new();
    let input =
        "{\"action\":\"task_create\",\"input\":{\"title\":\"x\"}}\nnonsense\n{\"action\":\"nosuch\"}\n";
    let ran = program.run_with(["json"], input.as_bytes());
    let envelopes: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    envelopes.iter().for_each(assert_envelope);
    let codes: Vec<&Value> = envelopes.iter().map(|envelope| &envelope["error"]["code"]).collect();
    assert_eq!(codes, [&Value::Null, &json!("INVALID_JSON_RUNNER_PAYLOAD"), &json!("ACTION_NOT_FOUND")]);
    assert_eq!(ran.exit, 1);
    let nothing = program.run_with(["json"], b"");
    assert_eq!((nothing.exit, nothing.stdout.as_str()), (0, ""));
}

#[test]
fn an_input_that_cannot_be_read_at_all_is_answered_too() {
    let program = Program::new();
    let folder = std::fs::File::open(program.path(".")).unwrap();
    let output = program.command(["json"]).stdin(folder).output().unwrap();
    let envelope: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (output.status.code(), &envelope["error"]["code"]),
        (Some(1), &json!("INVALID_JSON_RUNNER_PAYLOAD"))
    );
}

#[test]
fn a_result_that_cannot_be_written_is_no_success() {
    let program = Program::new();
    for arguments in [&["task-list"][..], &["manifest"], &["actions"], &["task-list", "--output", "text"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let ended = program.command(arguments).stdout(full).output().unwrap();
        assert_eq!(ended.status.code(), Some(1), "{arguments:?}");
        assert!(String::from_utf8_lossy(&ended.stderr).contains("cannot write the result"), "{arguments:?}");
    }
}
