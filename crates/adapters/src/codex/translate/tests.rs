//! What recorded turns say.

use std::path::Path;

use runyard_backend::Stream;

use super::*;

fn translation() -> Translation {
    Translation::new(Workspace::new(Path::new("/checkout")), Before::NOTHING)
}

/// What the notifications of a recorded turn say; requests are approved or not, as they come.
fn play(lines: &str, approve: bool) -> Vec<Signal> {
    let mut translation = translation();
    let mut signals = Vec::new();
    for line in lines.lines() {
        let message: Value = serde_json::from_str(line).unwrap();
        let Some(method) = message["method"].as_str() else { continue };
        let params = &message["params"];
        match (method, params["itemId"].as_str()) {
            ("item/commandExecution/requestApproval", Some(item)) => {
                let command = params["command"].as_str().unwrap().to_owned();
                translation.shell(item, command, params["cwd"].as_str().unwrap());
                signals.extend(approve.then(|| translation.begin(item)).flatten());
            }
            ("item/fileChange/requestApproval", Some(item)) => {
                translation.patch(item).unwrap();
                signals.extend(approve.then(|| translation.begin(item)).flatten());
            }
            ("turn/completed", _) => signals.extend(translation.close()),
            _ => signals.extend(translation.notification(method, params).unwrap()),
        }
    }
    signals
}

/// The signals without usage, each in a line.
fn told(signals: &[Signal]) -> Vec<String> {
    let line = |signal: &Signal| match signal {
        Signal::Delta { text, .. } => Some(format!("delta {text:?}")),
        Signal::Message { text, .. } => Some(format!("message {text:?}")),
        Signal::ToolCall { tool, summary, arguments, .. } => {
            Some(format!("call {tool}: {summary} {arguments}"))
        }
        Signal::ToolOutput { stream: Stream::Stdout, text, .. } => Some(format!("output {text:?}")),
        Signal::ToolResult { outcome, summary, .. } => Some(format!("{outcome:?}: {summary}")),
        Signal::Status { usage: Some(_), .. } => None,
        Signal::Error { failure_kind, retrying, .. } => Some(format!("error {failure_kind:?} {retrying}")),
        other => Some(format!("{other:?}")),
    };
    signals.iter().filter_map(line).collect()
}

#[test]
fn c25_a_text_is_deltas_and_a_message() {
    let signals = play(include_str!("../../../tests/codex/text.jsonl"), true);
    let deltas = ["Hello ", "from ", "the ", "demo ", "provider", "."].map(|text| format!("delta {text:?}"));
    let all = deltas.into_iter().chain(["message \"Hello from the demo provider.\"".to_owned()]);
    assert_eq!(told(&signals), all.collect::<Vec<_>>());
    let usage =
        runyard_domain::run::Usage { input_tokens: Some(9500), output_tokens: Some(8), cost_usd: None };
    let used: Vec<_> = signals
        .iter()
        .filter_map(|signal| match signal {
            Signal::Status { usage, .. } => *usage,
            _ => None,
        })
        .collect();
    assert_eq!(used, [usage]);
}

#[test]
fn c25_an_approved_command_is_a_call_its_output_and_its_result() {
    assert_eq!(
        told(&play(include_str!("../../../tests/codex/shell.jsonl"), true)),
        [
            r#"call shell: /bin/bash -lc 'cat notes.txt' {"command":"/bin/bash -lc 'cat notes.txt'","cwd":"."}"#,
            r#"output "a note\n""#,
            r#"FileRead { path: "notes.txt" }"#,
            "Succeeded: exit code 0",
            r#"delta "The command ""#,
            r#"delta "has run""#,
            r#"delta ".""#,
            r#"message "The command has run.""#,
        ]
    );
}

#[test]
fn c25_of_a_slow_command_every_line_is_there_once() {
    let told = told(&play(include_str!("../../../tests/codex/shell-slow.jsonl"), true));
    assert_eq!(
        told[1..5],
        [
            r#"output "two\n""#,
            r#"output "three\n""#,
            r#"output "one\n""#,
            "Succeeded: exit code 0; the beginning of its output came last",
        ]
    );
}

#[test]
fn c25_a_step_that_was_not_approved_never_begins() {
    let declined = told(&play(include_str!("../../../tests/codex/shell-declined.jsonl"), false));
    assert!(declined.iter().all(|line| line.starts_with("delta") || line.starts_with("message")));
    assert_eq!(told(&play(include_str!("../../../tests/codex/shell-interrupted.jsonl"), false)), [""; 0]);
}

#[test]
fn c25_reasoning_is_told_once_it_is_whole() {
    let signals = play(include_str!("../../../tests/codex/reasoning.jsonl"), true);
    let told = told(&signals);
    assert_eq!(told[0], r#"Reasoning { item: "rs_resp_1_0", text: "**Thinking** about it" }"#);
    assert_eq!(told[1..], [r#"delta "Hello.""#, r#"message "Hello.""#]);
}

#[test]
fn c25_a_plan_is_told_whole_each_time() {
    let signals = play(include_str!("../../../tests/codex/plan.jsonl"), true);
    let step = |text: &str, status| PlanStep { text: text.to_owned(), status };
    let steps = vec![
        step("look", PlanStatus::Completed),
        step("write", PlanStatus::InProgress),
        step("check", PlanStatus::Pending),
    ];
    assert_eq!(signals[0], Signal::Plan { steps });
    let proposed = json!({ "item": { "type": "plan", "id": "p", "text": "# Plan\n\n- look\n- write" } });
    let mut translation = translation();
    let Ok(told) = translation.notification("item/completed", &proposed) else { panic!() };
    let [Signal::Plan { steps }] = &told[..] else { panic!("{told:?}") };
    assert_eq!(steps.iter().map(|step| step.text.as_str()).collect::<Vec<_>>(), ["Plan", "look", "write"]);
}

#[test]
fn trap_after_a_retry_the_deltas_come_again_under_a_new_item_and_only_one_message_counts() {
    let told = told(&play(include_str!("../../../tests/codex/retry.jsonl"), true));
    let messages: Vec<&String> = told.iter().filter(|line| line.starts_with("message")).collect();
    assert_eq!(messages, ["message \"half and half\""]);
    assert_eq!(told.iter().filter(|line| line.starts_with("delta")).count(), 3, "{told:?}");
}

#[test]
fn b08_items_that_are_steps_are_steps_and_others_are_nothing() {
    let mut translation = translation();
    let mut item = |mut item: Value| {
        let mut signals = Vec::new();
        for (method, status) in [("item/started", "inProgress"), ("item/completed", "completed")] {
            item["status"] = status.into();
            signals.extend(translation.notification(method, &json!({ "item": item })).unwrap());
        }
        signals.extend(translation.close());
        told(&signals).into_iter().filter(|line| !line.starts_with("Degraded")).collect::<Vec<_>>()
    };
    let calls = |tool: &str, arguments: &str| {
        vec![format!("call {tool}: {tool} {arguments}"), "Succeeded: completed".to_owned()]
    };
    for (shown, expected) in [
        (
            json!({ "type": "mcpToolCall", "id": "1", "server": "s", "tool": "t", "arguments": {} }),
            calls("s.t", "{}"),
        ),
        (json!({ "type": "dynamicToolCall", "id": "2", "tool": "t", "arguments": [1] }), calls("t", "[1]")),
        (
            json!({ "type": "collabAgentToolCall", "id": "3", "tool": "spawnAgent", "prompt": "p" }),
            calls("agent.spawnAgent", r#"{"prompt":"p"}"#),
        ),
        (json!({ "type": "webSearch", "id": "4", "query": "q" }), calls("web_search", r#"{"query":"q"}"#)),
        (json!({ "type": "imageGeneration", "id": "5" }), calls("image_generation", "null")),
        (
            json!({ "type": "imageView", "id": "6", "path": "/checkout/a.png" }),
            vec![r#"FileRead { path: "a.png" }"#.to_owned()],
        ),
        (json!({ "type": "imageView", "id": "7", "path": "/etc/a.png" }), Vec::new()),
        (json!({ "type": "reasoning", "id": "8" }), Vec::new()),
        (json!({ "type": "sleep", "id": "9", "durationMs": 5 }), Vec::new()),
        (json!({ "type": "somethingOfTomorrow", "with": { "anything": [] } }), Vec::new()),
    ] {
        assert_eq!(item(shown.clone()), expected, "{shown}");
    }
    let compacted = item(json!({ "type": "contextCompaction", "id": "10" }));
    assert!(compacted[0].contains("compacted"), "{compacted:?}");
}

#[test]
fn trap_what_comes_after_the_end_of_its_turn_is_nothing() {
    let mut translation = translation();
    let item = json!({ "type": "commandExecution", "id": "call", "command": "sleep 20", "cwd": "/checkout", "status": "inProgress" });
    translation.notification("item/started", &json!({ "item": item })).unwrap();
    translation.shell("call", "sleep 20".to_owned(), "/checkout");
    assert!(translation.begin("call").is_some());
    assert!(matches!(&translation.close()[..], [Signal::ToolResult { outcome: ToolOutcome::Cancelled, .. }]));
    let printed = json!({ "itemId": "call", "delta": "late" });
    assert_eq!(translation.notification("item/commandExecution/outputDelta", &printed).unwrap(), []);
    let mut done = item;
    (done["status"], done["exitCode"]) = ("completed".into(), 0.into());
    assert_eq!(translation.notification("item/completed", &json!({ "item": done })).unwrap(), []);
}

#[test]
fn b08_new_fields_and_new_values_are_tolerated() {
    let mut translation = translation();
    let params = json!({ "item": {
        "type": "commandExecution", "id": "c", "command": "x", "cwd": "/checkout", "status": "pausedByTomorrow",
        "commandActions": [{ "type": "teleport", "to": 1 }], "newField": { "deep": [] },
    }, "another": 1 });
    assert_eq!(translation.notification("item/started", &params).unwrap(), []);
    assert_eq!(translation.notification("item/completed", &params).unwrap(), []);
    let plan = json!({ "plan": [{ "step": "a", "status": "abandoned", "owner": "b" }] });
    let steps = vec![PlanStep { text: "a".to_owned(), status: PlanStatus::Pending }];
    assert_eq!(translation.notification("turn/plan/updated", &plan).unwrap(), [Signal::Plan { steps }]);
}

#[test]
fn trap_a_step_that_its_turn_left_open_is_cancelled() {
    let told = told(&play(include_str!("../../../tests/codex/shell-interrupted.jsonl"), true));
    assert_eq!(told[1..], ["Cancelled: the turn ended before it did"]);
}

#[test]
fn c25_a_change_of_files_is_a_call_a_patch_and_its_result() {
    let told = told(&play(include_str!("../../../tests/codex/patch.jsonl"), true));
    assert_eq!(
        told[..3],
        [
            r#"call apply_patch: patched.txt {"files":["patched.txt"]}"#,
            r#"Patch { files: ["patched.txt"], summary: "patched.txt" }"#,
            "Succeeded: patched.txt",
        ]
    );
}

#[test]
fn c04_a_command_that_was_not_asked_for_is_said_to_be_so() {
    let lines = include_str!("../../../tests/codex/shells.jsonl").lines();
    let unasked: Vec<&str> = lines.filter(|line| !line.contains("requestApproval")).collect();
    let signals = play(&unasked.join("\n"), true);
    let unasked = |signals: &[Signal]| {
        let command = |signal: &Signal| match signal {
            Signal::Unasked { request: Request::Shell { command, .. } } => Some(command.clone()),
            _ => None,
        };
        signals.iter().filter_map(command).collect::<Vec<_>>()
    };
    let summary = |signal: &Signal| match signal {
        Signal::ToolCall { summary, .. } => Some(summary.clone()),
        _ => None,
    };
    let called: Vec<String> = signals.iter().filter_map(summary).collect();
    assert_eq!((unasked(&signals), called.len()), (called, 3));
    let asked = play(include_str!("../../../tests/codex/shells.jsonl"), true);
    assert!(unasked(&asked).is_empty());
    let calls = |signals: &[Signal]| signals.iter().filter(|s| matches!(s, Signal::ToolCall { .. })).count();
    assert_eq!((calls(&signals), calls(&asked)), (3, 3));
}

#[test]
fn c04_what_is_typed_into_a_command_is_said_since_nobody_is_asked() {
    let mut translation = translation();
    let mut typed = |stdin: &str| {
        let params = json!({ "itemId": "call", "processId": "1", "stdin": stdin });
        translation.notification("item/commandExecution/terminalInteraction", &params).unwrap()
    };
    assert_eq!(typed(""), [], "it only looked");
    assert!(matches!(&typed("rm -r build\n")[..], [Signal::Error { .. }, Signal::Degraded { .. }]));
}

#[test]
fn b10_errors_are_said_with_their_kind_and_whether_codex_tries_again() {
    let cut = told(&play(include_str!("../../../tests/codex/cut.jsonl"), true));
    let errors: Vec<&String> = cut.iter().filter(|line| line.starts_with("error")).collect();
    assert_eq!(errors, ["error Some(ProviderUnavailable) true", "error Some(ProviderUnavailable) false"]);
    let auth = told(&play(include_str!("../../../tests/codex/failed-401.jsonl"), true));
    assert_eq!(auth.last().unwrap(), "error Some(ProviderAuthFailed) false");
}

#[test]
fn b10_a_notification_without_a_required_field_is_invalid() {
    let mut translation = translation();
    let error = translation.notification("item/agentMessage/delta", &json!({ "delta": "x" })).unwrap_err();
    assert_eq!(error.failure_kind, FailureKind::BackendResponseInvalid);
    assert!(translation.notification("something/new", &json!(null)).unwrap().is_empty());
}
