//! Command actions, with real processes: what goes in and comes out, and that nothing is left running.
#![allow(clippy::panic, clippy::unwrap_used, reason = "the helpers of tests fail like tests")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use runyard_actions::testing::TestApp;
use runyard_actions::{
    Action, CommandActionsError, InvocationOptions, LogLevel, OUTPUT_BYTES_MAX, Runtime, command_actions,
};
use runyard_redact::without_tags;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// Waiting for processes ends after so many looks.
const LOOKS_MAX: u32 = 1000;

/// An application with the declared actions, and their folder.
#[track_caller]
fn app_in(folder: &Path, toml: &str) -> TestApp {
    let actions = command_actions(toml, folder).unwrap();
    TestApp::new(actions.into_iter().fold(Runtime::builder(), |builder, action| builder.action(action)))
}

/// An application with one action `run` that takes any object and runs a script.
#[track_caller]
fn script(script: &str) -> TestApp {
    app_in(Path::new("/"), &declared(script, ""))
}

fn declared(script: &str, more: &str) -> String {
    assert!(!script.contains("'''"));
    format!(
        "[actions.run]\ndescription = \"Runs.\"\ncommand = [\"sh\", \"-c\", '''{script}''']\n\
         input = {{ type = \"object\" }}\n{more}"
    )
}

fn keyed(key: &str) -> InvocationOptions {
    InvocationOptions { idempotency_key: Some(key.to_owned()), ..InvocationOptions::default() }
}

/// A number of seconds to sleep that no other process sleeps.
fn marker() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("98765.{}{:03}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// How many processes have the marker in an argument.
fn running(marker: &str) -> usize {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(marker)).count()
}

#[track_caller]
fn look_until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..LOOKS_MAX {
        if holds() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("it never came about that {what}");
}

#[track_caller]
fn assert_gone(marker: &str) {
    look_until("no process is left", || running(marker) == 0);
}

/// A script of four sleeping processes: one in the group, three that left it in their own ways.
fn escaping(marker: &str) -> String {
    format!(
        "sleep {marker} & setsid sleep {marker} & (setsid sh -c 'sleep {marker} & exit 0' &) ; \
         env -i setsid sleep {marker} & wait"
    )
}

fn sleeping(marker: &str) -> usize {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| *line == format!("sleep\0{marker}\0").into_bytes()).count()
}

/// A value without the tags of placeholders, which are different in every process.
fn untagged(value: &Value) -> Value {
    serde_json::from_str(&without_tags(&value.to_string())).unwrap()
}

#[tokio::test]
async fn a_command_gets_its_input_with_defaults_and_gives_its_output() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("tools")).unwrap();
    fs::write(folder.path().join("tools/echo.sh"), "read -r line; printf '{\"got\": %s}' \"$line\"").unwrap();
    let app = app_in(
        folder.path(),
        r#"
        [server]
        port = 7000

        [actions.repeat]
        description = "Repeats its input."
        command = ["sh", "echo.sh"]
        cwd = "tools"
        input = { type = "object", properties = { text = { type = "string" }, times = { type = "integer", default = 2 } }, required = ["text"] }
        output = { type = "object", required = ["got"] }
        "#,
    );
    let data = app.call("repeat", json!({"text": "a"})).await.expect_ok();
    assert_eq!(data, json!({"got": {"text": "a", "times": 2}}));
    app.call("repeat", json!({"times": 1})).await.expect_error("VALIDATION_ERROR");
}

#[tokio::test]
async fn a_program_beside_the_document_runs_wherever_its_working_folder_is() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("elsewhere")).unwrap();
    let program = folder.path().join("where");
    fs::write(&program, "#!/bin/sh\nprintf '\"%s\"' \"${PWD##*/}\"").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let toml = "[actions.where]\ndescription = \"Says where it runs.\"\ncommand = [\"./where\"]\ncwd = \"elsewhere\"";
    assert_eq!(app_in(folder.path(), toml).call("where", json!({})).await.expect_ok(), json!("elsewhere"));
}

#[tokio::test]
async fn arguments_are_never_read_by_a_shell() {
    let toml = "[actions.say]\ndescription = \"Says.\"\ncommand = [\"printf\", '\"%s\"', '$(id) ; `id` | *']";
    assert_eq!(
        app_in(Path::new("/"), toml).call("say", json!({})).await.expect_ok(),
        json!("$(id) ; `id` | *")
    );
}

#[tokio::test]
async fn lines_on_the_standard_error_become_logs_progress_and_artifacts() {
    let app = script(
        r#"cat >&2 <<'END'
plain line

{"type":"progress","percent":40,"message":"copying","file":"a.txt"}
{"type":"artifact","artifact":{"name":"report","type":"image","uri":"file:///r.png","sizeBytes":3}}
{"message":"careful","level":"warn","fields":{"count":3,"password":"x"}}
{"level":"warn"}
["not an object"]
{"message": cut
with Bearer abcdef123456 in it
END
printf 'without an end' >&2"#,
    );
    let called = app.call("run", json!({})).await;
    assert_eq!(called.expect_ok(), Value::Null);
    let logs =
        called.0.logs.iter().map(|log| (log.level, without_tags(&log.message), untagged(&json!(log.fields))));
    let expected = [
        (LogLevel::Info, "plain line", json!({})),
        (LogLevel::Info, "copying", json!({"type": "progress", "percent": 40, "file": "a.txt"})),
        (LogLevel::Warn, "careful", json!({"count": 3, "password": "[REDACTED:password]"})),
        (LogLevel::Info, r#"{"level":"warn"}"#, json!({})),
        (LogLevel::Info, r#"["not an object"]"#, json!({})),
        (LogLevel::Info, r#"{"message": cut"#, json!({})),
        (LogLevel::Info, "with Bearer [REDACTED:header] in it", json!({})),
        (LogLevel::Info, "without an end", json!({})),
    ];
    assert_eq!(
        logs.collect::<Vec<_>>(),
        expected.map(|(level, message, fields)| (level, message.to_owned(), fields))
    );
    let [artifact] = called.0.artifacts.as_slice() else {
        panic!("one artifact, not {:?}", called.0.artifacts)
    };
    assert_eq!((artifact.kind.as_str(), artifact.name.as_deref()), ("image", Some("report")));
    assert_eq!((artifact.uri.as_deref(), artifact.size_bytes), (Some("file:///r.png"), Some(3)));
}

#[tokio::test]
async fn a_line_without_an_end_is_cut_and_the_next_one_is_read() {
    let app = script("head -c 300000 /dev/zero | tr '\\0' x >&2; echo >&2; echo next >&2");
    let called = app.call("run", json!({})).await;
    let lengths: Vec<_> = called.0.logs.iter().map(|log| log.message.chars().count()).collect();
    assert_eq!(lengths, [64 * 1024 + 1, 4]);
    called.expect_log("next");
}

#[tokio::test]
async fn a_failing_command_can_say_its_own_error() {
    let app = script(
        r#"printf '{"error":{"code":"PAYMENT_DECLINED","message":"No money.","retryable":true,
            "issues":[{"path":["card",0],"message":"Empty."},{"message":"Root."},7]}}'; exit 3"#,
    );
    let failure = app.call("run", json!({})).await.expect_error("PAYMENT_DECLINED");
    assert_eq!((failure.message.as_str(), failure.retryable), ("No money.", true));
    assert_eq!(
        json!(failure.issues),
        json!([{"path": ["card", 0], "message": "Empty."}, {"path": [], "message": "Root."}])
    );
}

#[tokio::test]
async fn a_command_that_fails_without_a_word_is_an_external_error() {
    #[track_caller]
    fn check(failure: &runyard_actions::Failure, message: &str) {
        assert_eq!((failure.message.as_str(), failure.retryable), (message, false));
    }
    for (text, message) in [
        ("echo why >&2; exit 7", "Command exited with status 7."),
        ("printf '{\"error\": \"text\"}'; exit 1", "Command exited with status 1."),
        ("kill -9 $$", "Command was ended by signal 9."),
    ] {
        check(&script(text).call("run", json!({})).await.expect_error("EXTERNAL_SERVICE_ERROR"), message);
    }
    script("printf '{\"error\":{\"code\":\"not a code\",\"message\":\"m\"}}'; exit 1")
        .call("run", json!({}))
        .await
        .expect_error("INTERNAL_ERROR");
}

#[tokio::test]
async fn an_output_that_is_not_json_is_refused_without_repeating_it() {
    for text in ["echo hunter2", "printf '{\"a\": 1} hunter2'", "printf '{\"a\": hunter2'", "echo 1e999"] {
        let failure = script(text).call("run", json!({})).await.expect_error("OUTPUT_SERIALIZATION_ERROR");
        assert!(
            failure.message.contains("not JSON") && !failure.message.contains("hunter2"),
            "{}",
            failure.message
        );
    }
}

#[tokio::test]
async fn an_output_that_is_too_large_ends_the_command() {
    let marker = marker();
    let more = OUTPUT_BYTES_MAX + 100_000;
    let app = script(&format!("trap '' PIPE; head -c {more} /dev/zero; sleep {marker}"));
    let failure = app.call("run", json!({})).await.expect_error("OUTPUT_SERIALIZATION_ERROR");
    assert!(failure.message.contains("larger than"), "{}", failure.message);
    assert_gone(&marker);
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_named_without_its_place() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("data.txt"), "no program").unwrap();
    for (command, cwd, reason) in [
        ("no-such-program-anywhere", ".", "it was not found (ENOENT)"),
        ("./missing", ".", "it was not found (ENOENT)"),
        ("./data.txt", ".", "it may not be executed (EACCES)"),
        ("sh", "missing", "its working folder was not found"),
    ] {
        let toml =
            format!("[actions.run]\ndescription = \"Runs.\"\ncommand = [\"{command}\"]\ncwd = \"{cwd}\"");
        let called = app_in(folder.path(), &toml).call("run", json!({})).await;
        let failure = called.expect_error("EXTERNAL_SERVICE_ERROR");
        let name = command.trim_start_matches("./");
        assert_eq!(failure.message, format!("Program \"{name}\" could not be started: {reason}."));
    }
}

#[tokio::test]
async fn a_command_that_does_not_read_a_large_input_is_not_waited_for() {
    let input = json!({"text": "x".repeat(900 * 1024)});
    assert_eq!(script("echo 1").call("run", input.clone()).await.expect_ok(), json!(1));
    assert_eq!(script("exec <&-; echo 2").call("run", input.clone()).await.expect_ok(), json!(2));
    let read = script("wc -c | tr -d ' '").call("run", input.clone()).await.expect_ok();
    assert_eq!(read, json!(input.to_string().len() + 1));
}

#[tokio::test]
async fn only_listed_variables_reach_the_command() {
    assert!(std::env::var("CARGO_MANIFEST_DIR").is_ok(), "cargo sets it for tests");
    let text = r#"printf '{"cargo":"%s","path":"%s","own":"%s","action":"%s","key":"%s","id":"%s"}' \
        "${CARGO_MANIFEST_DIR-unset}" "${PATH:+set}" "$OWN" "$RUNYARD_ACTION" "$RUNYARD_IDEMPOTENCY_KEY" \
        "$RUNYARD_INVOCATION_ID""#;
    let app = app_in(Path::new("/"), &declared(text, "env = { OWN = \"a b\" }"));
    let options = keyed("k1");
    let called = app.with(options).call("run", json!({})).await;
    let id = called.0.meta.invocation_id.to_string();
    assert_eq!(
        called.expect_ok(),
        json!({"cargo": "unset", "path": "set", "own": "a b", "action": "run", "key": "k1", "id": id})
    );
}

#[tokio::test]
async fn a_key_that_no_variable_can_hold_is_refused() {
    let options = keyed("a\0b");
    script("echo 1").with(options).call("run", json!({})).await.expect_error("VALIDATION_ERROR");
}

/// Time stands still while the processes are waited for, and then jumps to the timeout.
#[tokio::test(start_paused = true)]
async fn a_timeout_ends_the_whole_process_tree() {
    let marker = marker();
    let app = app_in(Path::new("/"), &declared(&escaping(&marker), "timeout_ms = 60000"));
    let all_run = tokio::task::spawn_blocking({
        let marker = marker.clone();
        move || look_until("all four sleep", || sleeping(&marker) == 4)
    });
    let (called, all_run) = tokio::join!(app.call("run", json!({})), all_run);
    all_run.unwrap();
    called.expect_error("TIMEOUT");
    assert_gone(&marker);
}

#[tokio::test]
async fn a_cancelled_invocation_ends_the_whole_process_tree() {
    let marker = marker();
    let app = script(&escaping(&marker));
    let token = CancellationToken::new();
    let invocation = app.invocation("run", json!({})).cancel_with(token.clone());
    let cancel = tokio::task::spawn_blocking({
        let marker = marker.clone();
        move || {
            look_until("all four sleep", || sleeping(&marker) == 4);
            token.cancel();
        }
    });
    let (envelope, cancelled) = tokio::join!(app.runtime().invoke(invocation), cancel);
    cancelled.unwrap();
    assert_eq!(envelope.error().unwrap().code.as_str(), "CANCELLED");
    assert_gone(&marker);
}

#[tokio::test]
async fn dropping_the_invocation_ends_the_whole_process_tree_and_leaves_no_zombie() {
    let (marker, folder) = (marker(), tempfile::tempdir().unwrap());
    let text = format!("echo $$ > leader; {}", escaping(&marker));
    let app = app_in(folder.path(), &declared(&text, ""));
    let all_run = tokio::task::spawn_blocking({
        let marker = marker.clone();
        move || look_until("all four sleep", || sleeping(&marker) == 4)
    });
    tokio::select! {
        called = app.call("run", json!({})) => panic!("it ended by itself: {called:?}"),
        all_run = all_run => all_run.unwrap(),
    }
    assert_gone(&marker);
    let leader = fs::read_to_string(folder.path().join("leader")).unwrap();
    look_until("the leader is reaped", || !Path::new("/proc").join(leader.trim()).exists());
}

#[tokio::test]
async fn what_a_command_leaves_behind_neither_holds_it_up_nor_goes_on() {
    let marker = marker();
    let app = script(&format!("sleep {marker} & setsid sleep {marker} & echo 5"));
    assert_eq!(app.call("run", json!({})).await.expect_ok(), json!(5));
    assert_gone(&marker);
    let failing = script(&format!("(setsid sleep {marker} &); exit 4"));
    failing.call("run", json!({})).await.expect_error("EXTERNAL_SERVICE_ERROR");
    assert_gone(&marker);
}

#[tokio::test]
async fn a_command_that_closes_its_pipes_is_waited_for() {
    let app = script("exec <&- >&- 2>&-; sleep 0.05; exit 6");
    let failure = app.call("run", json!({})).await.expect_error("EXTERNAL_SERVICE_ERROR");
    assert_eq!(failure.message, "Command exited with status 6.");
}

#[tokio::test]
async fn ending_one_command_leaves_others_alone() {
    let (marker, app) = (marker(), script("sleep 0.05; echo 1"));
    let other = script(&format!("sleep {marker}"));
    let invocation = other.invocation("run", json!({}));
    let runtime = other.runtime().clone();
    let running_on = tokio::spawn(async move { runtime.invoke(invocation).await });
    tokio::task::yield_now().await;
    app.call("run", json!({})).await.expect_ok();
    assert!(!running_on.is_finished());
    tokio::task::spawn_blocking({
        let marker = marker.clone();
        move || look_until("the other one sleeps", || sleeping(&marker) == 1)
    })
    .await
    .unwrap();
    running_on.abort();
    assert!(running_on.await.unwrap_err().is_cancelled());
    assert_gone(&marker);
}

#[test]
fn a_declaration_says_all_that_a_definition_can() {
    let folder = tempfile::tempdir().unwrap();
    let schema =
        json!({"type": "object", "properties": {"zeta": {"type": "string"}, "alpha": {"type": "integer"}}});
    fs::write(folder.path().join("in.json"), schema.to_string()).unwrap();
    let actions = command_actions(
        r#"
        [actions.full]
        title = "All Of It"
        description = "Has everything."
        version = "2.1.0"
        command = ["true"]
        side_effects = "destructive"
        idempotency = "non_idempotent"
        visibility = "local"
        people_only = true
        permissions = ["files:write"]
        surfaces = ["cli", "ai-sdk"]
        timeout_ms = 1000
        deadline_ms = 5000
        retry = { retries = 1, delay_ms = 20 }
        requires_confirmation = false
        concurrency = { max = 2, wait_ms = 50 }
        deprecated = { message = "Old.", since = "2.0.0", replacement = "other" }
        examples = [{ zeta = "a" }, { zeta = 1979-05-27 }]
        http = "POST /full/{zeta}"
        input = "in.json"
        output = { type = "null" }

        [actions.brief]
        description = "Has little."
        command = ["true"]
        retry = true
        deprecated = "Old."
        "#,
        folder.path(),
    );
    let mut manifests: Vec<_> = actions.unwrap().iter().map(Action::manifest).collect();
    manifests.sort_by_key(|manifest| manifest["name"] == "brief");
    assert_eq!(
        manifests[0],
        json!({
            "name": "full", "version": "2.1.0", "title": "All Of It", "description": "Has everything.",
            "inputSchema": schema, "outputSchema": {"type": "null"}, "visibility": "local",
            "sideEffects": "destructive", "idempotency": "non_idempotent", "peopleOnly": true,
            "permissions": ["files:write"], "supportedSurfaces": ["cli", "ai-sdk"], "timeoutMs": 1000,
            "deadlineMs": 5000, "retry": {"retries": 1, "delayMs": 20}, "requiresConfirmation": false,
            "concurrency": {"max": 2, "waitMs": 50}, "deprecated": true,
            "deprecation": {"message": "Old.", "since": "2.0.0", "replacement": "other"},
            "http": "POST /full/{zeta}", "examples": [{"zeta": "a"}, {"zeta": "1979-05-27"}],
        })
    );
    assert_eq!(manifests[1]["retry"], json!({"retries": 2, "delayMs": 100}));
    assert_eq!(manifests[1]["deprecation"], json!({"message": "Old."}));
    assert_eq!(manifests[1]["title"], "Brief");
}

#[test]
fn a_document_without_actions_declares_none() {
    assert!(command_actions("", Path::new("")).unwrap().is_empty());
    assert!(command_actions("[server]\nport = 1\n[actions]\n", Path::new("")).unwrap().is_empty());
}

#[test]
fn what_is_wrong_with_a_declaration_is_said_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("broken.json"), "{").unwrap();
    let check = |toml: &str, expected: &str| match command_actions(toml, folder.path()) {
        Ok(actions) => panic!("{toml} declares {actions:?}"),
        Err(error) => assert!(error.to_string().contains(expected), "{toml} gives {error}, not {expected}"),
    };
    let action = |more: &str| format!("[actions.a]\ndescription = \"A.\"\ncommand = [\"true\"]\n{more}");
    check("[actions.a]\nx = \n", "line 2, column 5");
    check("a = \"ü\" 1", "line 1, column 9");
    check("actions = 1", "\"actions\" is not a table");
    check("actions.a = 1", "\"actions.a\" is not a table");
    check(&action("comand = 1"), "action \"a\" has an unknown key \"comand\"; did you mean \"command\"?");
    check(&action("xyz = 1"), "action \"a\" has an unknown key \"xyz\"; the keys are title, description,");
    check(
        &action("timeout_ms = \"1s\""),
        "action \"a\": \"timeout_ms\" cannot be read: invalid type: string",
    );
    check(&action("timeout_ms = -1"), "\"timeout_ms\" cannot be read");
    check(&action("side_effects = \"some\""), "expected one of `read`, `write`, `destructive`");
    check(&action("surfaces = [\"code\"]"), "\"surfaces[0]\" cannot be read: unknown variant `code`");
    check(&action("retry = 3"), "\"retry\" cannot be read: expected true, false or {retries, delay_ms}");
    check(&action("deprecated = { since = \"1\" }"), "expected a text or {message, since, replacement}");
    check(&action("concurrency = { max = 1, wait = 1 }"), "unknown field `wait`");
    check(&action("concurrency = { max = 0 }"), "action \"a\" is not well defined");
    check(&action("env = { X = 1 }"), "\"env.X\" cannot be read");
    check(&action("env = { \"A=B\" = \"1\" }"), "\"env\" has a NUL character, or a variable");
    check(&action("env = { RUNYARD_ACTION = \"1\" }"), "sets RUNYARD_ACTION, which the runtime sets itself");
    check(&action("http = \"FETCH /a\""), "\"FETCH /a\" is not a route");
    check(&action("input = 1"), "expected a JSON Schema as a table, or the path of a .json file");
    check(&action("input = { type = \"nothing\" }"), "the schema is not valid");
    check(&action("output = \"missing.json\""), "the output schema missing.json cannot be read");
    check(&action("input = \"broken.json\""), "the input schema broken.json is not JSON");
    check("[actions.a]\ncommand = [\"true\"]", "action \"a\" has no description");
    check("[actions.a]\ndescription = \"A.\"", "action \"a\" has no command");
    check("[actions.a]\ndescription = \"A.\"\ncommand = []", "action \"a\" has no command");
    check("[actions.a]\ndescription = \"A.\"\ncommand = \"true\"", "\"command\" cannot be read");
    check("[actions.a]\ndescription = \"A.\"\ncommand = [\"a\\u0000\"]", "\"command\" has a NUL character");
    check(
        "[actions.Upper]\ndescription = \"A.\"\ncommand = [\"true\"]",
        "\"Upper\" is not a name for an action",
    );
}

#[test]
fn errors_of_a_declaration_are_typed() {
    let error = command_actions("[actions.a]\nfoo = 1", Path::new(".")).unwrap_err();
    assert!(
        matches!(error, CommandActionsError::UnknownKey { action, key } if action == "a" && key == "foo")
    );
}
