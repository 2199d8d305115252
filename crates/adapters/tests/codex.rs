//! Codex, the real program, against a model provider on loopback: what it says, asks and does, and what remains after it was killed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "these are tests")]

mod planted;
mod support;

use std::path::Path;
use std::time::Duration;

use runyard_adapters::codex::CodexBackend;
use runyard_backend::conformance::{Decide, PlainProcesses, Recorder};
use runyard_backend::{Access, Answer, Backend, Command, Ending, GatewayAccess, SecretFile, Signal, Start};
use runyard_demo_provider::Options;
use runyard_domain::gate::Request;
use runyard_domain::run::{FailureKind, ToolOutcome, TurnOutcome};
use runyard_domain::{CommandId, Sandbox};
use support::{Codex, profile, text};

runyard_backend::backend_conformance_tests!(support::Codex::new);

fn asked(signals: &[Signal]) -> Vec<(String, Request)> {
    let asked = signals.iter().filter_map(|signal| match signal {
        Signal::Ask { key, request } => Some((key.clone(), request.clone())),
        _ => None,
    });
    asked.collect()
}

fn messages(signals: &[Signal]) -> Vec<&str> {
    let said = signals.iter().filter_map(|signal| match signal {
        Signal::Message { text, .. } => Some(text.as_str()),
        _ => None,
    });
    said.collect()
}

fn failure(signals: &[Signal]) -> (FailureKind, &str) {
    match signals.last() {
        Some(Signal::Ended { ending: Ending::Failed { failure_kind, message, .. } }) => {
            (*failure_kind, message)
        }
        last => panic!("it failed, and said {last:?} last"),
    }
}

#[tokio::test]
async fn b15_a_text_turn_and_a_further_one_say_what_runs() {
    let codex = Codex::new().await;
    let mut live = codex.fresh("hello").await;
    live.turn_over(Decide::Approve, 1).await;
    let id = CommandId::from_bytes([1; 16]);
    live.send(Command::Turn { id, text: "and again".to_owned() }).await;
    live.turn_over(Decide::Approve, 2).await;
    let signals = live.recorder.signals();
    live.close().await;
    let Signal::Status { phase, model, version, thread, .. } = &signals[1] else { panic!("{signals:#?}") };
    assert_eq!((phase.as_str(), model.as_deref()), ("ready", Some("gpt-5.5")));
    assert_eq!(version.as_deref(), Some("0.166.0"));
    assert!(thread.is_some());
    assert_eq!(signals[2], Signal::TurnStarted { command: None });
    assert_eq!(messages(&signals), ["Hello from the demo provider."; 2]);
    let used = |signal: &Signal| matches!(signal, Signal::Status { usage: Some(usage), .. } if usage.input_tokens > Some(0));
    assert!(signals.iter().any(used), "what it used is said");
    assert!(
        !signals.iter().any(|signal| matches!(signal, Signal::Degraded { .. } | Signal::Error { .. })),
        "{signals:#?}"
    );
}

#[tokio::test]
async fn c11_a_command_is_asked_for_as_it_will_run_and_runs_once() {
    let codex = Codex::new().await;
    let mut live = codex.fresh("[[scenario:shell echo ran >> made.txt; cat made.txt]]").await;
    live.turn_over(Decide::Approve, 1).await;
    let signals = live.recorder.signals();
    live.close().await;
    let command = "/bin/bash -lc 'echo ran >> made.txt; cat made.txt'".to_owned();
    let requests: Vec<Request> = asked(&signals).into_iter().map(|(_, request)| request).collect();
    assert_eq!(requests, [Request::Shell { command, cwd: ".".to_owned() }]);
    assert_eq!(codex.file("made.txt").as_deref(), Some("ran\n"));
    // A login shell may say something of its own before it, in the same piece or in another.
    let printed =
        |signal: &Signal| matches!(signal, Signal::ToolOutput { text, .. } if text.ends_with("ran\n"));
    assert!(signals.iter().any(printed), "{signals:#?}");
}

#[tokio::test]
async fn c11_the_reason_of_a_no_reaches_the_model_and_nothing_runs() {
    let codex = Codex::new().await;
    let mut live = codex.fresh("[[scenario:shell touch made.txt]]").await;
    live.asked().await;
    let (key, _) = asked(&live.recorder.signals()).remove(0);
    let reason = Some("not on a Sunday".to_owned());
    let answer = Answer { approved: false, reason, answer: None };
    live.send(Command::Answer { key, answer }).await;
    live.turn_over(Decide::Wait, 1).await;
    let signals = live.recorder.signals();
    live.close().await;
    assert_eq!(codex.file("made.txt"), None);
    assert!(!signals.iter().any(|signal| matches!(signal, Signal::ToolCall { .. })), "no step began");
    codex.provider.wait_for(|request| request.body.contains("not on a Sunday")).await;
}

#[tokio::test]
async fn c11_a_patch_is_asked_for_with_its_content() {
    let codex = Codex::new().await;
    let mut live = codex.fresh("[[scenario:patch]]").await;
    live.turn_over(Decide::Approve, 1).await;
    let signals = live.recorder.signals();
    live.close().await;
    let patch =
        "--- /dev/null\n+++ b/patched.txt\n@@ -0,0 +1,1 @@\n+one line from the demo provider\n".to_owned();
    let files = vec!["patched.txt".to_owned()];
    let requests: Vec<Request> = asked(&signals).into_iter().map(|(_, request)| request).collect();
    assert_eq!(requests, [Request::Patch { files: files.clone(), patch }]);
    assert_eq!(codex.file("patched.txt").as_deref(), Some("one line from the demo provider\n"));
    assert!(signals.contains(&Signal::Patch { files, summary: "patched.txt".to_owned() }));
}

#[tokio::test]
async fn b02_a_slow_turn_is_interrupted_and_the_next_one_works() {
    let codex = Codex::new().await;
    let mut live = codex.fresh("[[scenario:slow]]").await;
    let delta = |signal: &Signal| matches!(signal, Signal::Delta { .. });
    live.until(Decide::Wait, "it speaks", |signals, _| signals.iter().any(delta)).await;
    live.interrupt().await;
    live.turn_over(Decide::Wait, 1).await;
    assert_eq!(
        live.recorder.signals().last(),
        Some(&Signal::TurnEnded { outcome: TurnOutcome::Interrupted })
    );
    let id = CommandId::from_bytes([2; 16]);
    live.send(Command::Turn { id, text: "[[scenario:text]]".to_owned() }).await;
    live.turn_over(Decide::Wait, 2).await;
    let signals = live.recorder.signals();
    live.close().await;
    assert_eq!(messages(&signals).last(), Some(&"Hello from the demo provider."));
}

#[tokio::test]
async fn c17_a_command_that_outlives_its_turn_is_stopped_with_it() {
    let scenarios = tempfile::tempdir().unwrap();
    let background = r#"
        [[step]]
        [[step.answer.call]]
        tool = "exec_command"
        arguments = { cmd = "{argument}", yield_time_ms = 250 }
        [[step]]
        answer.say = ["It runs."]
    "#;
    std::fs::write(scenarios.path().join("background.toml"), background).unwrap();
    let options = Options { scenarios: Some(scenarios.path().to_owned()), ..Options::default() };
    let codex = Codex::with(options).await;
    let mut live = codex.fresh("[[scenario:background echo $$ > pid; exec sleep 1000]]").await;
    live.turn_over(Decide::Approve, 1).await;
    let signals = live.recorder.signals();
    assert_eq!(signals.last(), Some(&Signal::TurnEnded { outcome: TurnOutcome::Completed }));
    assert_eq!(messages(&signals), ["It runs."]);
    let cancelled =
        |signal: &Signal| matches!(signal, Signal::ToolResult { outcome: ToolOutcome::Cancelled, .. });
    assert!(signals.iter().any(cancelled), "{signals:#?}");
    let pid = codex.file("pid").expect("the command ran");
    let gone = async {
        while Path::new("/proc").join(pid.trim()).exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), gone)
        .await
        .expect("the command is gone before the session is");
    live.close().await;
}

#[tokio::test]
async fn b02_a_word_into_the_turn_reaches_the_model() {
    let codex = Codex::new().await;
    let mut live = codex.fresh("[[scenario:shell echo hello]]").await;
    live.asked().await;
    let id = CommandId::from_bytes([3; 16]);
    live.send(Command::Steer { id, text: "in Latin, please".to_owned() }).await;
    live.turn_over(Decide::Approve, 1).await;
    live.close().await;
    codex.provider.wait_for(|request| request.body.contains("in Latin, please")).await;
}

#[tokio::test]
async fn j05_what_was_asked_before_codex_was_killed_is_asked_again_and_done_once() {
    let codex = Codex::new().await;
    let mut live = codex.fresh("[[scenario:shell echo ran >> made.txt]]").await;
    live.asked().await;
    let before = live.recorder.signals();
    codex.kill();
    live.until(Decide::Wait, "its end is noticed", |signals, _| {
        matches!(signals.last(), Some(Signal::Ended { .. }))
    })
    .await;
    let signals = live.recorder.signals();
    let Some(Signal::Ended { ending: Ending::Died { message } }) = signals.last() else {
        panic!("a death is no failure: {signals:#?}")
    };
    assert!(message.starts_with("codex is gone: signal 9"), "{message}");
    live.over().await;

    let thread = before.iter().find_map(|signal| match signal {
        Signal::Status { thread, .. } => thread.clone(),
        _ => None,
    });
    let start = Start::Resume { task: text("[[scenario:shell]]"), thread: thread.clone(), turn_active: true };
    let mut live = codex.open(start, Recorder::new()).await;
    live.turn_over(Decide::Approve, 1).await;
    let after = live.recorder.signals();
    live.close().await;
    let requests = |signals: &[Signal]| asked(signals).into_iter().map(|(_, r)| r).collect::<Vec<_>>();
    assert_eq!(requests(&after), requests(&before));
    assert_ne!(asked(&after)[0].0, asked(&before)[0].0, "the new request has a key of its own");
    let Signal::Status { phase, thread: again, .. } = &after[1] else { panic!("{after:#?}") };
    assert_eq!((phase.as_str(), again), ("resumed", &thread));
    assert_eq!(codex.file("made.txt").as_deref(), Some("ran\n"));
}

#[tokio::test]
async fn c22_a_session_goes_on_with_the_thread_of_an_earlier_one() {
    let codex = Codex::new().await;
    let mut live = codex.fresh("the word is marmalade").await;
    live.turn_over(Decide::Wait, 1).await;
    let Some(Signal::Status { thread, .. }) = live.recorder.signals().get(1).cloned() else { panic!() };
    live.close().await;
    let start = Start::Fresh { task: text("and now?"), thread: thread.clone() };
    let mut live = codex.open(start, Recorder::new()).await;
    live.turn_over(Decide::Wait, 1).await;
    let signals = live.recorder.signals();
    live.close().await;
    let Signal::Status { phase, thread: again, .. } = &signals[1] else { panic!("{signals:#?}") };
    assert_eq!((phase.as_str(), again), ("resumed", &thread));
    assert_eq!(signals[2], Signal::TurnStarted { command: None });
    let last = codex.provider.requests().pop().unwrap();
    assert!(last.body.contains("the word is marmalade") && last.body.contains("and now?"));
}

#[tokio::test]
async fn c16_what_a_run_used_is_its_own_also_on_anothers_thread_and_after_it_was_opened_again() {
    let codex = Codex::new().await;
    let mut live = codex.fresh("hello").await;
    live.turn_over(Decide::Wait, 1).await;
    let Some(Signal::Status { thread, .. }) = live.recorder.signals().get(1).cloned() else { panic!() };
    let first = used(&live.recorder.signals());
    live.close().await;
    assert!(first > 0);
    let start = Start::Fresh { task: text("and now?"), thread: thread.clone() };
    let mut live = codex.open(start, Recorder::new()).await;
    live.turn_over(Decide::Wait, 1).await;
    let second = used(&live.recorder.signals());
    live.close().await;
    assert_eq!(second / first, 1, "only its own turn: {second} after {first}");
    let start = Start::Resume { task: text("and now?"), thread, turn_active: false };
    let mut live = codex.open(start, Recorder::new()).await;
    live.send(Command::Turn { id: CommandId::from_bytes([1; 16]), text: "and then?".to_owned() }).await;
    live.turn_over(Decide::Wait, 1).await;
    let third = used(&live.recorder.signals());
    live.close().await;
    assert_eq!(third / first, 2, "both of its own turns: {third} after {second} and {first}");
}

/// The tokens that were reported last.
fn used(signals: &[Signal]) -> u64 {
    let usage = signals.iter().rev().find_map(|signal| match signal {
        Signal::Status { usage, .. } => *usage,
        _ => None,
    });
    usage.and_then(|usage| usage.tokens()).expect("what it used is said")
}

#[tokio::test]
async fn j05_a_thread_that_is_lost_is_never_replaced() {
    let thread = Some("01a1e005-ea25-7160-9f14-adf7d41c07e4".to_owned());
    let start = Start::Fresh { task: text("hello"), thread: thread.clone() };
    for start in [start, Start::Resume { task: text("hello"), thread, turn_active: true }] {
        let codex = Codex::new().await;
        let mut live = codex.open(start, Recorder::new()).await;
        live.turn_over(Decide::Wait, 1).await;
        let signals = live.recorder.signals();
        let (kind, message) = failure(&signals);
        assert_eq!(kind, FailureKind::BackendFailed);
        assert!(message.contains("no rollout found"), "{message}");
        live.over().await;
        assert!(codex.provider.requests().iter().all(|request| request.method == "GET"), "no turn began");
    }
}

#[tokio::test]
async fn b10_what_the_provider_does_has_its_failure_kind() {
    let codex = Codex::new().await;
    for (scenario, expected) in [
        ("http-401", FailureKind::ProviderAuthFailed),
        ("http-403", FailureKind::ProviderAuthFailed),
        ("http-429", FailureKind::ProviderRateLimited),
        ("http-503", FailureKind::ProviderUnavailable),
        ("http-404", FailureKind::BackendFailed),
        ("http-400", FailureKind::BackendFailed),
        ("cut", FailureKind::ProviderUnavailable),
        ("unfinished", FailureKind::ProviderUnavailable),
        ("html", FailureKind::ProviderUnavailable),
        ("malformed", FailureKind::ProviderUnavailable),
        ("http-500", FailureKind::ProviderUnavailable),
        ("quota", FailureKind::ProviderRateLimited),
        ("failed-server-error", FailureKind::ProviderUnavailable),
        ("failed-overloaded", FailureKind::ProviderUnavailable),
        ("failed-rate-limit", FailureKind::ProviderRateLimited),
        ("failed-quota", FailureKind::ProviderRateLimited),
        ("failed-context-length", FailureKind::BackendFailed),
        ("incomplete", FailureKind::BackendFailed),
    ] {
        let mut live = codex.fresh(&format!("[[scenario:{scenario}]]")).await;
        live.turn_over(Decide::Wait, 1).await;
        let signals = live.recorder.signals();
        let (kind, message) = failure(&signals);
        assert_eq!(kind, expected, "{scenario}: {message}");
        let said = |signal: &Signal| matches!(signal, Signal::Error { failure_kind: Some(kind), .. } if *kind == expected);
        assert!(signals.iter().any(said), "{scenario}: the error is said too: {signals:#?}");
        live.over().await;
    }
}

#[tokio::test]
async fn b07_under_a_read_only_policy_no_step_is_taken_and_nobody_is_asked() {
    let mut codex = Codex::new().await;
    codex.policy.sandbox = Sandbox::ReadOnly;
    for scenario in ["[[scenario:shell echo ran >> made.txt]]", "[[scenario:patch made.txt]]"] {
        let mut live = codex.fresh(scenario).await;
        live.turn_over(Decide::Approve, 1).await;
        let signals = live.recorder.signals();
        live.close().await;
        assert_eq!(asked(&signals), []);
        assert_eq!(codex.file("made.txt"), None);
        assert!(signals.iter().any(|signal| matches!(signal, Signal::Degraded { .. })), "{signals:#?}");
        let declined =
            |signal: &Signal| matches!(signal, Signal::Error { message, .. } if message.contains("declined"));
        assert!(signals.iter().any(declined), "{signals:#?}");
    }
}

#[tokio::test]
async fn b07_under_a_read_only_policy_in_a_sandbox_commands_are_asked_for_and_changes_declined() {
    let mut codex = Codex::new().await;
    (codex.policy.sandbox, codex.confined) = (Sandbox::ReadOnly, true);
    for (scenario, asks) in [("[[scenario:shell cat notes.txt]]", 1), ("[[scenario:patch made.txt]]", 0)] {
        let mut live = codex.fresh(scenario).await;
        live.turn_over(Decide::Approve, 1).await;
        let signals = live.recorder.signals();
        live.close().await;
        assert_eq!(asked(&signals).len(), asks, "{signals:#?}");
        assert_eq!(codex.file("made.txt"), None);
        assert!(!signals.iter().any(|signal| matches!(signal, Signal::Degraded { .. })), "{signals:#?}");
    }
}

#[tokio::test]
async fn c11_a_question_reaches_the_person_and_the_answer_the_model() {
    let codex = Codex::new().await;
    let mut live = codex.fresh("[[scenario:question Which colour?]]").await;
    live.asked().await;
    let (key, request) = asked(&live.recorder.signals()).remove(0);
    let Request::Question(question) = request else { panic!("{request:?}") };
    assert!(question.prompt.contains("Which colour?") && question.prompt.contains("Blue"), "{question:?}");
    let ids: Vec<String> =
        question.answer_schema["properties"].as_object().unwrap().keys().cloned().collect();
    let [id] = &ids[..] else { panic!("{ids:?}") };
    let answer = Some(serde_json::json!({ id.as_str(): "like the sea at noon" }));
    live.send(Command::Answer { key, answer: Answer { approved: true, reason: None, answer } }).await;
    live.turn_over(Decide::Wait, 1).await;
    let signals = live.recorder.signals();
    live.close().await;
    assert_eq!(messages(&signals), ["I have your answer."]);
    codex.provider.wait_for(|request| request.body.contains("like the sea at noon")).await;
}

#[tokio::test]
async fn c11_a_question_that_nobody_answers_is_told_to_the_model() {
    let codex = Codex::new().await;
    let mut live = codex.fresh("[[scenario:question]]").await;
    live.asked().await;
    let (key, _) = asked(&live.recorder.signals()).remove(0);
    let reason = Some("choose yourself".to_owned());
    live.send(Command::Answer { key, answer: Answer { approved: false, reason, answer: None } }).await;
    live.turn_over(Decide::Wait, 1).await;
    live.close().await;
    codex.provider.wait_for(|request| request.body.contains("choose yourself")).await;
}

#[tokio::test]
async fn c25_reasoning_and_plan_are_told() {
    let codex = Codex::new().await;
    let plan = r#"[[scenario:tool update_plan {"plan": [{"step": "look", "status": "in_progress"}] }]]"#;
    for (task, told) in [("[[scenario:reasoning]]", "reasoning"), (plan, "plan")] {
        let mut live = codex.fresh(task).await;
        live.turn_over(Decide::Approve, 1).await;
        let signals = live.recorder.signals();
        live.close().await;
        let is = |signal: &Signal| match signal {
            Signal::Reasoning { text, .. } => told == "reasoning" && !text.is_empty(),
            Signal::Plan { steps } => told == "plan" && steps.len() == 1 && steps[0].text == "look",
            _ => false,
        };
        assert!(signals.iter().any(is), "{told}: {signals:#?}");
    }
}

#[tokio::test]
async fn b10_a_provider_that_fails_for_a_moment_does_not_fail_the_turn() {
    const SHORT: &[Duration] = &[Duration::from_millis(1)];
    let scenarios = tempfile::tempdir().unwrap();
    // Three streams with three requests each: what codex itself tries.
    let flaky = "about = \"It fails nine times.\"\nflaky = 9\n[[step]]\nanswer.say = [\"It works.\"]\n";
    std::fs::write(scenarios.path().join("nine.toml"), flaky).unwrap();
    let options = Options { scenarios: Some(scenarios.path().to_owned()), ..Options::default() };
    let mut codex = Codex::with(options).await;
    codex.pauses = SHORT;
    let mut live = codex.fresh("[[scenario:nine]]").await;
    live.turn_over(Decide::Wait, 1).await;
    let signals = live.recorder.signals();
    live.close().await;
    assert_eq!(messages(&signals), ["It works."], "{signals:#?}");
    let goes_on = |signal: &Signal| matches!(signal, Signal::Error { retrying: true, message, .. } if message.contains("the turn goes on"));
    assert_eq!(signals.iter().filter(|signal| goes_on(signal)).count(), 1, "{signals:#?}");
}

#[tokio::test]
async fn c16_a_turn_that_the_gateway_refused_for_its_budget_is_not_begun_again() {
    const SHORT: &[Duration] = &[Duration::from_millis(1); 2];
    let scenarios = tempfile::tempdir().unwrap();
    let refusal = "[[step]]\n[step.refuse]\nstatus = 400\nkind = \"budget_exceeded\"\ncode = \"budget_exceeded\"\n\
                   message = \"budget_exceeded: the run's budget of tokens is used up\"\n";
    std::fs::write(scenarios.path().join("budget.toml"), refusal).unwrap();
    let options = Options { scenarios: Some(scenarios.path().to_owned()), ..Options::default() };
    let mut codex = Codex::with(options).await;
    codex.pauses = SHORT;
    let mut live = codex.fresh("[[scenario:budget]]").await;
    live.turn_over(Decide::Wait, 1).await;
    let signals = live.recorder.signals();
    live.over().await;
    let (kind, message) = failure(&signals);
    assert_eq!(kind, FailureKind::BackendFailed);
    assert!(message.contains("budget_exceeded"), "{message}");
    assert_eq!(codex.provider.requests().iter().filter(|request| request.method == "POST").count(), 1);
}

#[tokio::test]
async fn trap_a_provider_that_is_not_there_fails_the_turn_in_bounded_time() {
    let mut codex = Codex::new().await;
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let base_url = format!("http://{nobody}/v1");
    codex.access = Access::Gateway(GatewayAccess { base_url, token: "token".to_owned(), files: Vec::new() });
    let mut live = codex.fresh("hello").await;
    live.turn_over(Decide::Wait, 1).await;
    let signals = live.recorder.signals();
    live.over().await;
    assert_eq!(failure(&signals).0, FailureKind::ProviderUnavailable);
}

#[tokio::test]
async fn b12_the_secret_reaches_the_provider_and_no_command() {
    let token = "run-token-7f3a";
    let auth = format!("{{\"OPENAI_API_KEY\":\"{token}\"}}");
    for gateway in [true, false] {
        let mut codex = Codex::with(Options { keys: vec![token.to_owned()], ..Options::default() }).await;
        codex.access = if gateway {
            let base_url = codex.provider.url();
            Access::Gateway(GatewayAccess { base_url, token: token.to_owned(), files: Vec::new() })
        } else {
            Access::Projected(vec![SecretFile {
                key: "auth.json".to_owned(),
                content: auth.clone().into_bytes(),
            }])
        };
        let mut live = codex.fresh("[[scenario:shell env > environment; echo done]]").await;
        live.turn_over(Decide::Approve, 1).await;
        let signals = live.recorder.signals();
        live.close().await;
        assert_eq!(messages(&signals), ["The command has run."], "{signals:#?}");
        let environment = codex.file("environment").unwrap();
        assert!(
            !environment.contains(token) && !environment.contains("RUNYARD_GATEWAY_TOKEN"),
            "{environment}"
        );
    }
}

#[tokio::test]
async fn j06_a_repository_cannot_make_codex_start_anything() {
    let codex = Codex::new().await;
    let marker = codex.directory().join("started");
    let server = format!("[mcp_servers.mine]\ncommand = \"touch\"\nargs = [\"{}\"]\n", marker.display());
    std::fs::create_dir(codex.directory().join(".codex")).unwrap();
    std::fs::write(codex.directory().join(".codex/config.toml"), server).unwrap();
    let mut live = codex.fresh("hello").await;
    live.turn_over(Decide::Approve, 1).await;
    live.close().await;
    assert!(!marker.exists());
}

#[tokio::test]
async fn b07_the_model_is_offered_no_search_of_the_web() {
    let codex = Codex::new().await;
    let mut live = codex.fresh("hello").await;
    live.turn_over(Decide::Approve, 1).await;
    live.close().await;
    let requests = codex.provider.requests();
    let tools =
        requests.iter().find_map(|request| request.json().get("tools").cloned()).expect("tools are offered");
    assert!(tools.to_string().contains("exec_command"));
    assert!(!tools.to_string().contains("web_search"), "{tools}");
}

#[tokio::test]
async fn c17_a_program_that_is_missing_or_is_not_codex_is_told_before_the_start() {
    let codex = CodexBackend::new();
    let probe = PlainProcesses::probe();
    let found = codex.check(&profile(&support::program()), &probe).await.unwrap();
    assert_eq!(found, "codex-cli 0.166.0");
    for program in ["/nowhere/codex", "no-such-program", "/bin/bash"] {
        let error = codex.check(&profile(Path::new(program)), &probe).await.unwrap_err();
        assert_eq!(error.failure_kind, FailureKind::BackendSpawnFailed, "{error}");
    }
    let error = Codex::new().await.refused(Path::new("/nowhere/codex")).await;
    assert_eq!(error.failure_kind, FailureKind::BackendSpawnFailed);
}

#[tokio::test]
async fn b01_codex_introduces_itself_and_reaches_nobody_and_what_is_not_codex_fails_by_kind() {
    let codex = Codex::new().await;
    let said = codex.met(&support::program()).await.unwrap();
    assert!(said.contains("0.166.0"), "{said}");
    assert!(codex.provider.requests().is_empty());
    let script = codex.directory().join("pretender");
    for (body, expected) in [
        ("echo hello", FailureKind::BackendJsonParseError),
        ("echo why >&2; exit 3", FailureKind::BackendFailed),
        ("echo '{\"id\":1,\"error\":{\"message\":\"no\"}}'; cat", FailureKind::BackendProtocolError),
    ] {
        support::write_script(&script, body);
        let error = codex.met(&script).await.unwrap_err();
        assert_eq!(error.failure_kind, expected, "{error}");
    }
}

#[tokio::test]
async fn b10_a_program_that_speaks_no_protocol_fails_by_kind() {
    let codex = Codex::new().await;
    let script = codex.directory().join("pretender");
    for (body, expected) in [
        ("echo hello", FailureKind::BackendJsonParseError),
        (
            "echo '{\"id\":1,\"result\":{}}'; read _; read _; read _; echo '{\"id\":2,\"result\":{}}'; cat",
            FailureKind::BackendResponseInvalid,
        ),
        ("echo '{}'; cat", FailureKind::BackendProtocolError),
        ("echo why >&2; exit 3", FailureKind::BackendFailed),
    ] {
        support::write_script(&script, body);
        let mut live = codex.fresh_with(&script, "hello").await;
        live.turn_over(Decide::Wait, 1).await;
        let signals = live.recorder.signals();
        let (kind, message) = failure(&signals);
        assert_eq!(kind, expected, "{message}");
        if expected == FailureKind::BackendFailed {
            assert_eq!(message, "codex is gone: exit code 3; it said last: why");
        }
        let results =
            |signal: &Signal| matches!(signal, Signal::ToolResult { outcome: ToolOutcome::Succeeded, .. });
        assert!(!signals.iter().any(results));
    }
}
