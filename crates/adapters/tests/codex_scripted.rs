//! A scripted codex: what it says becomes signals and failures, whatever it says, and each profile sees its own secrets alone.
//!
//! These are T1, T2 and T4 of the adapter's specification. Time stands still: a pause and a deadline take no time.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "these are tests")]

mod scripted;

use runyard_backend::{Access, Command, Ending, GatewayAccess, SecretFile, Signal, Start};
use runyard_domain::run::{FailureKind, Task, ToolOutcome, TurnOutcome};
use runyard_domain::{CommandId, Network, Sandbox};
use scripted::{Act, Scene, asks, ended, ending, failed, message, note, opened, opened_in, turn};
use serde_json::{Value, json};

fn scene(acts: impl IntoIterator<Item = Vec<Act>>) -> Scene {
    Scene::new(acts.into_iter().flatten().collect())
}

fn kind(signals: &[Signal]) -> FailureKind {
    match ending(signals) {
        Ending::Failed { failure_kind, .. } => *failure_kind,
        other => panic!("it fails: {other:?}"),
    }
}

fn file(key: &str, content: &str) -> SecretFile {
    SecretFile { key: key.to_owned(), content: content.as_bytes().to_vec() }
}

#[tokio::test(start_paused = true)]
async fn b08_t1_message_output_error_usage_and_end_become_signals() {
    let item = |status: &str, more: Value| {
        let mut item =
            json!({ "type": "commandExecution", "id": "c", "command": "make", "cwd": "/", "status": status });
        item.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "item": item })
    };
    let ask = json!({ "itemId": "c", "threadId": "thread-1", "command": "make", "cwd": "/" });
    let error = json!({ "message": "Reconnecting... 1/2", "codexErrorInfo": { "responseStreamDisconnected": { "httpStatusCode": 502 } } });
    let used = json!({ "inputTokens": 10, "outputTokens": 2 });
    let scene = scene([
        opened(),
        turn("t"),
        vec![
            note("item/started", item("inProgress", json!({}))),
            Act::Say(json!({ "id": 0, "method": "item/commandExecution/requestApproval", "params": ask })),
            Act::HearAnswer(json!({ "id": 0, "result": { "decision": "accept" } })),
            note("item/commandExecution/outputDelta", json!({ "itemId": "c", "delta": "made\n" })),
            note("item/completed", item("completed", json!({ "exitCode": 0, "aggregatedOutput": "made\n" }))),
            note("error", json!({ "error": error, "willRetry": true })),
        ],
        message("It is made."),
        vec![
            note(
                "thread/tokenUsage/updated",
                json!({ "turnId": "t", "tokenUsage": { "total": used, "last": used } }),
            ),
            ended("t", "completed"),
        ],
    ]);
    let signals = scene.played().await;
    let told: Vec<String> = signals
        .iter()
        .map(|signal| match signal {
            Signal::Status { phase, usage, .. } => {
                format!("status {phase} {}", usage.and_then(|usage| usage.tokens()).unwrap_or(0))
            }
            Signal::ToolCall { tool, summary, .. } => format!("call {tool} {summary}"),
            Signal::ToolOutput { text, .. } => format!("output {text:?}"),
            Signal::ToolResult { outcome: ToolOutcome::Succeeded, summary, .. } => {
                format!("result {summary}")
            }
            Signal::Error { failure_kind, retrying, .. } => format!("error {failure_kind:?} {retrying}"),
            Signal::Message { text, .. } => format!("message {text}"),
            Signal::Delta { text, .. } => format!("delta {text}"),
            Signal::Ask { .. } => "ask".to_owned(),
            Signal::TurnStarted { .. } => "turn".to_owned(),
            Signal::TurnEnded { outcome } => format!("end {outcome:?}"),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(
        told,
        [
            "status starting 0",
            "status ready 0",
            "turn",
            "ask",
            "call shell make",
            "output \"made\\n\"",
            "error Some(ProviderUnavailable) true",
            "result exit code 0",
            "delta It is made.",
            "message It is made.",
            "status working 12",
            "end Completed",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn b10_t2_each_failure_of_a_turn_has_its_kind() {
    use FailureKind as K;
    let http = |word: &str, status: Value| json!({ word: { "httpStatusCode": status } });
    for (said, info, expected, tries) in [
        (
            "unexpected status 401 Unauthorized",
            http("httpConnectionFailed", json!(401)),
            K::ProviderAuthFailed,
            1,
        ),
        (
            "exceeded retry limit, last status: 429",
            http("responseTooManyFailedAttempts", json!(429)),
            K::ProviderRateLimited,
            3,
        ),
        ("Quota exceeded.", json!("usageLimitExceeded"), K::ProviderRateLimited, 1),
        (
            "unexpected status 503 Service Unavailable",
            http("httpConnectionFailed", json!(503)),
            K::ProviderUnavailable,
            3,
        ),
        ("cut", http("responseStreamDisconnected", json!(502)), K::ProviderUnavailable, 3),
        ("cut", http("responseStreamDisconnected", json!(null)), K::ProviderUnavailable, 3),
        ("Missing environment variable: `KEY`.", json!("other"), K::SecretUnavailable, 1),
        ("no such model", json!("modelNotFound"), K::BackendFailed, 1),
        (
            "unexpected status 400 Bad Request: budget_exceeded: the run's budget of tokens is used up",
            json!("other"),
            K::BackendFailed,
            1,
        ),
        ("a shape of tomorrow", json!({ "newThing": [1] }), K::BackendFailed, 1),
    ] {
        let turns =
            (0..tries).map(|n| [turn(&format!("t{n}")), failed(&format!("t{n}"), said, &info)].concat());
        let scene = scene(std::iter::once(opened()).chain(turns));
        let signals = scene.played().await;
        assert_eq!(kind(&signals), expected, "{said}");
        let again =
            signals.iter().filter(|signal| matches!(signal, Signal::Error { retrying: true, .. })).count();
        assert_eq!(again, tries - 1, "{said}: {signals:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn b10_t2_a_turn_that_works_at_another_try_is_one_turn() {
    let unavailable = json!({ "httpConnectionFailed": { "httpStatusCode": 503 } });
    let scene = scene([
        opened(),
        turn("t0"),
        failed("t0", "unexpected status 503", &unavailable),
        turn("t1"),
        message("Hello."),
        vec![ended("t1", "completed")],
    ]);
    let signals = scene.played().await;
    assert_eq!(signals.last(), Some(&Signal::TurnEnded { outcome: TurnOutcome::Completed }));
    let begun = signals.iter().filter(|signal| matches!(signal, Signal::TurnStarted { .. })).count();
    assert_eq!(begun, 1);
}

#[tokio::test(start_paused = true)]
async fn b10_t2_what_is_no_protocol_has_its_kind() {
    use FailureKind as K;
    let line = |text: &str| vec![Act::Bytes(format!("{text}\n").into_bytes())];
    let answers = |result: Value| {
        vec![
            Act::Hear("initialize"),
            Act::Reply(json!({})),
            Act::Hear("initialized"),
            Act::Hear("thread/start"),
            Act::Reply(result),
        ]
    };
    let no_id = note("turn/completed", json!({ "turn": { "status": "completed" } }));
    let no_turn = note("turn/completed", json!({}));
    #[rustfmt::skip]
    let table: Vec<(&str, Vec<Vec<Act>>, K)> = vec![
        ("a line that is no JSON",           vec![line("Warning: hello")],                        K::BackendJsonParseError),
        ("a line that was cut",              vec![vec![Act::Bytes(b"{\"id\":1,\"resu".to_vec()), Act::Exit(0)]], K::BackendJsonParseError),
        ("bytes that are no text",           vec![vec![Act::Bytes(vec![0xff, 0xfe, b'\n'])]],     K::BackendJsonParseError),
        ("no JSON in the middle of a turn",  vec![opened(), turn("t"), line("panicked at")],      K::BackendJsonParseError),
        ("a message that is none",           vec![line("{}")],                                    K::BackendProtocolError),
        ("a list",                           vec![line("[1]")],                                   K::BackendProtocolError),
        ("a line without an end",            vec![vec![Act::Bytes(vec![b'1'; 9 * 1024 * 1024])]], K::BackendProtocolError),
        ("an answer without its fields",     vec![answers(json!({}))],                            K::BackendResponseInvalid),
        ("an answer without a result",       vec![answers(Value::Null)],                          K::BackendResponseInvalid),
        ("an end without its turn",          vec![opened(), turn("t"), vec![no_turn]],            K::BackendResponseInvalid),
        ("an end of a turn without an id",   vec![opened(), turn("t"), vec![no_id]],              K::BackendResponseInvalid),
        ("an end of a kind of tomorrow",     vec![opened(), turn("t"), vec![ended("t", "hibernated")]], K::BackendResponseInvalid),
        ("a failure without an error",       vec![opened(), turn("t"), vec![ended("t", "failed")]], K::BackendResponseInvalid),
        ("a piece without its item",         vec![opened(), turn("t"), vec![note("item/agentMessage/delta", json!({ "delta": "x" }))]], K::BackendResponseInvalid),
        ("an error that is none",            vec![vec![Act::Hear("initialize"), Act::Say(json!({ "id": 1, "error": "no" }))]], K::BackendResponseInvalid),
        ("a configuration that is broken",   vec![vec![Act::Hear("initialize"), Act::Reply(json!({})), Act::Hear("initialized"), Act::Hear("thread/start"), Act::Refuse(-32600, "failed to load configuration")]], K::BackendFailed),
        ("an end at the start",              vec![vec![Act::Complain("Error: CODEX_HOME"), Act::Exit(1)]], K::BackendFailed),
        ("nothing, ever",                    vec![],                                              K::BackendProtocolError),
        ("nothing after the first answer",   vec![vec![Act::Hear("initialize"), Act::Reply(json!({}))]], K::BackendProtocolError),
    ];
    for (what, acts, expected) in table {
        let signals = scene(acts).played().await;
        assert_eq!(kind(&signals), expected, "{what}: {signals:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn trap_codex_is_overloaded_for_a_moment() {
    let mut acts = opened();
    acts.splice(3..3, [Act::Hear("thread/start"), Act::Refuse(-32001, "Server overloaded; retry later.")]);
    let scene = scene([acts, turn("t"), message("Hello."), vec![ended("t", "completed")]]);
    let signals = scene.played().await;
    assert_eq!(signals.last(), Some(&Signal::TurnEnded { outcome: TurnOutcome::Completed }));
}

#[tokio::test(start_paused = true)]
async fn trap_an_end_before_the_end_of_the_turn_is_a_death_whatever_its_code() {
    for code in [0, 1] {
        let scene = scene([opened(), turn("t"), vec![Act::Complain("terminated"), Act::Exit(code)]]);
        let signals = scene.played().await;
        let Ending::Died { message } = ending(&signals) else { panic!("{signals:#?}") };
        assert_eq!(message, &format!("codex is gone: exit code {code}; it said last: terminated"));
    }
}

#[tokio::test(start_paused = true)]
async fn trap_what_is_said_on_standard_error_is_no_failure() {
    let loud = Act::Complain("\u{1b}[31mERROR\u{1b}[0m request failed with client error\n");
    let scene = scene([opened(), turn("t"), vec![loud], message("Hello."), vec![ended("t", "completed")]]);
    let signals = scene.played().await;
    assert!(
        !signals.iter().any(|signal| matches!(signal, Signal::Error { .. } | Signal::Ended { .. })),
        "{signals:#?}"
    );
}

#[tokio::test(start_paused = true)]
async fn b08_what_is_new_in_codex_is_tolerated() {
    let odd = json!({ "item": { "type": "hologram", "id": "h", "shape": { "sides": 12 } }, "turnId": "t" });
    let scene = scene([
        opened(),
        vec![note("thread/started", json!({ "thread": { "id": "thread-1", "mood": "good" } }))],
        turn("t"),
        vec![
            note("thread/dreamed", json!({ "of": ["sheep"] })),
            note("item/started", odd.clone()),
            note("item/completed", odd),
            Act::Say(
                json!({ "id": 5, "method": "item/tool/dance", "params": { "threadId": "thread-1" }, "urgency": 3 }),
            ),
            Act::HearAnswer(json!({ "id": 5, "error": { "code": -32000, "message": "declined" } })),
            Act::Say(json!({ "id": 77, "result": "nobody asked" })),
        ],
        message("Hello."),
        vec![ended("t", "completed")],
    ]);
    let signals = scene.played().await;
    assert_eq!(signals.last(), Some(&Signal::TurnEnded { outcome: TurnOutcome::Completed }));
    assert!(signals.iter().any(|signal| matches!(signal, Signal::Message { text, .. } if text == "Hello.")));
}

#[tokio::test(start_paused = true)]
async fn b02_t2_a_cancelled_turn_ends_as_interrupted_and_one_that_does_not_end_is_ended() {
    let interrupt = || Command::Interrupt { id: CommandId::from_bytes([1; 16]) };
    let speaks = |signals: &[Signal]| signals.iter().any(|signal| matches!(signal, Signal::Message { .. }));
    for obeys in [true, false] {
        let end =
            if obeys { vec![Act::Hear("turn/interrupt"), ended("t", "interrupted")] } else { Vec::new() };
        let playing = scene([opened(), turn("t"), message("Hello."), end]).open().await.unwrap();
        playing.until("it speaks", speaks).await;
        playing.send(interrupt()).await;
        let over = |signals: &[Signal]| {
            matches!(signals.last(), Some(Signal::TurnEnded { .. } | Signal::Ended { .. }))
        };
        playing.until("it is over", over).await;
        let signals = playing.close().await;
        let expected = match obeys {
            true => Signal::TurnEnded { outcome: TurnOutcome::Interrupted },
            false => Signal::Ended { ending: Ending::Cancelled },
        };
        assert_eq!(signals.last(), Some(&expected));
    }
}

#[tokio::test(start_paused = true)]
async fn trap_a_step_that_was_never_completed_is_closed_with_its_turn() {
    let item = json!({ "item": { "type": "fileChange", "id": "c", "status": "inProgress",
        "changes": [{ "path": "a", "kind": { "type": "add" }, "diff": "x\n" }] } });
    let ask = json!({ "itemId": "c", "threadId": "thread-1" });
    let scene = scene([
        opened(),
        turn("t"),
        vec![
            note("item/started", item),
            Act::Say(json!({ "id": 0, "method": "item/fileChange/requestApproval", "params": ask })),
            Act::HearAnswer(json!({ "id": 0, "result": { "decision": "accept" } })),
            ended("t", "interrupted"),
        ],
    ]);
    let signals = scene.played().await;
    assert_eq!(asks(&signals).count(), 1);
    assert!(
        signals
            .iter()
            .any(|signal| matches!(signal, Signal::ToolResult { outcome: ToolOutcome::Cancelled, .. }))
    );
}

#[tokio::test(start_paused = true)]
async fn b12_t4_each_profile_has_its_own_home_and_secrets_and_none_falls_back_to_another() {
    let auth = |key: &str| format!("{{\"OPENAI_API_KEY\":\"{key}\"}}");
    let hello = || scene([opened(), turn("t"), message("Hello."), vec![ended("t", "completed")]]);
    let mut homes = Vec::new();
    for (name, key) in [("codex", "sk-one"), ("deepseek", "sk-two")] {
        let mut scene = hello();
        scene.profile.profile = name.to_owned();
        scene.profile.required_secret_keys = vec!["auth.json".to_owned()];
        scene.access = Access::Projected(vec![file("auth.json", &auth(key))]);
        scene.played().await;
        assert_eq!(std::fs::read_to_string(scene.home().join("auth.json")).unwrap(), auth(key));
        let launches = scene.launches.lock().unwrap().clone();
        let [launch] = &launches[..] else { panic!("{launches:?}") };
        assert_eq!(launch.environment["CODEX_HOME"], scene.home().to_string_lossy());
        assert!(
            !launch.environment.values().chain(&launch.arguments).any(|word| word.contains("sk-")),
            "{launch:?}"
        );
        homes.push(scene.home());
    }
    assert_ne!(homes[0], homes[1]);
    let mut missing = hello();
    missing.profile.profile = "deepseek".to_owned();
    missing.profile.required_secret_keys = vec!["auth.json".to_owned()];
    for access in
        [Access::Open, Access::Projected(Vec::new()), Access::Projected(vec![file("config.toml", "")])]
    {
        missing.access = access;
        let error = missing.open().await.err().unwrap();
        assert_eq!(error.failure_kind, FailureKind::SecretUnavailable);
        assert!(missing.launches.lock().unwrap().is_empty(), "nothing was started");
    }
}

#[tokio::test(start_paused = true)]
async fn b12_behind_the_gateway_the_token_is_in_codex_own_environment_and_nowhere_else() {
    let mut scene = scene([opened(), turn("t"), message("Hello."), vec![ended("t", "completed")]]);
    let files =
        vec![file("config.toml", "model = \"theirs\"\nnotify = [\"x\"]\n[mcp_servers.a]\ncommand = \"b\"\n")];
    scene.access = Access::Gateway(GatewayAccess {
        base_url: "http://127.0.0.1:1/v1".to_owned(),
        token: "run-token".to_owned(),
        files,
    });
    let signals = scene.played().await;
    let launch = scene.launches.lock().unwrap()[0].clone();
    assert_eq!(launch.environment["RUNYARD_GATEWAY_TOKEN"], "run-token");
    let config = std::fs::read_to_string(scene.home().join("config.toml")).unwrap();
    assert!(config.contains("http://127.0.0.1:1/v1") && !config.contains("run-token"), "{config}");
    assert!(!scene.home().join("auth.json").exists());
    let unused = "config.toml: not used: mcp_servers, notify".to_owned();
    let said = Signal::Error { failure_kind: None, message: unused, retrying: false };
    assert_eq!(signals.iter().filter(|signal| **signal == said).count(), 1, "{signals:#?}");
}

/// Codex asks for all that it can ask for, and waits for each answer.
fn asks_for_everything() -> Vec<Act> {
    let change = json!({ "item": { "type": "fileChange", "id": "f", "status": "inProgress",
        "changes": [{ "path": "a", "kind": { "type": "add" }, "diff": "x\n" }] } });
    let permissions = |asked: Value| json!({ "itemId": "p", "cwd": "/", "permissions": asked });
    let mut acts = vec![note("item/started", change)];
    for (method, mut params) in [
        ("item/commandExecution/requestApproval", json!({ "itemId": "c", "command": "make", "cwd": "/" })),
        ("item/fileChange/requestApproval", json!({ "itemId": "f" })),
        ("item/permissions/requestApproval", permissions(json!({ "fileSystem": { "write": ["/"] } }))),
        ("item/permissions/requestApproval", permissions(json!({ "network": { "enabled": true } }))),
        (
            "item/permissions/requestApproval",
            permissions(json!({ "network": { "enabled": true }, "fileSystem": { "read": ["/"] } })),
        ),
        ("item/fileChange/requestApproval", json!({ "itemId": "f", "grantRoot": "/" })),
        ("item/tool/call", json!({ "tool": "t", "arguments": {} })),
    ] {
        params["threadId"] = "thread-1".into();
        acts.push(Act::Say(json!({ "id": acts.len(), "method": method, "params": params })));
        acts.push(Act::HearAny);
    }
    acts.extend([ended("t", "completed"), Act::HearAny, Act::Reply(json!({}))]);
    acts
}

#[tokio::test(start_paused = true)]
async fn b07_under_every_policy_what_is_started_said_and_granted_is_within_it() {
    let gateway = GatewayAccess {
        base_url: "http://edge/v1".to_owned(),
        token: "run-token".to_owned(),
        files: Vec::new(),
    };
    let accesses = [Access::Open, Access::Gateway(gateway), Access::Projected(vec![file("auth.json", "{}")])];
    let policies =
        [Sandbox::ReadOnly, Sandbox::WorkspaceWrite, Sandbox::None].into_iter().flat_map(|sandbox| {
            let networks = [Network::Deny, Network::Ask, Network::Allow].into_iter();
            networks.flat_map(move |network| [false, true].map(|confined| (sandbox, network, confined)))
        });
    for (sandbox, network, confined) in policies {
        for access in &accesses {
            let walled = sandbox == Sandbox::ReadOnly && !confined;
            let (asked, answered) =
                if walled { ("read-only", "readOnly") } else { ("danger-full-access", "dangerFullAccess") };
            let mut scene = scene([opened_in(answered), turn("t"), asks_for_everything()]);
            (scene.policy.sandbox, scene.policy.network, scene.confined) = (sandbox, network, confined);
            scene.access = access.clone();
            let signals = scene.played().await;
            let what = format!("{sandbox:?} {network:?} {confined} {access:?}");
            assert_eq!(
                signals.last(),
                Some(&Signal::TurnEnded { outcome: TurnOutcome::Completed }),
                "{what}: {signals:#?}"
            );

            let launch = scene.launches.lock().unwrap()[0].clone();
            assert_eq!(launch.arguments, ["app-server", "--listen", "stdio://"]);
            let mut names: Vec<&str> = launch.environment.keys().map(String::as_str).collect();
            names.retain(|name| !matches!(*name, "PATH" | "CODEX_HOME"));
            let expected: &[&str] =
                if matches!(access, Access::Gateway(_)) { &["RUNYARD_GATEWAY_TOKEN"] } else { &[] };
            assert_eq!(names, expected, "{what}");

            let heard = scene.heard.lock().unwrap().clone();
            let opened = heard.iter().find(|message| message["method"] == "thread/start").unwrap();
            assert_eq!(
                (&opened["params"]["approvalPolicy"], &opened["params"]["sandbox"]),
                (&json!("untrusted"), &json!(asked))
            );
            let turns = heard.iter().filter(|message| message["method"] == "turn/start");
            assert!(
                turns.map(|turn| turn["params"].as_object().unwrap().len()).eq([2]),
                "a turn has no policy of its own"
            );

            // Everything that is asked of a person is approved here; the rest must be a no.
            let answers: Vec<&Value> = heard
                .iter()
                .filter(|message| message.get("method").is_none() && message.get("id").is_some())
                .collect();
            assert_eq!(answers.len(), 7, "{what}: each is answered once: {answers:?}");
            let said = |at: usize| answers[at].to_string();
            let writes = sandbox != Sandbox::ReadOnly;
            for (at, granted) in
                [(0, !walled), (1, writes), (2, writes), (3, !walled), (4, false), (5, false), (6, false)]
            {
                let yes = said(at).contains("\"accept\"")
                    || said(at).contains("enabled")
                    || said(at).contains("fileSystem");
                assert_eq!(yes, granted, "{what}: {}", said(at));
                assert!(!said(at).contains("ession"), "never for longer than asked: {}", said(at));
            }
            assert_eq!(
                asks(&signals).count(),
                [!walled, writes, writes, !walled].into_iter().filter(|asked| *asked).count()
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn c09_raw_lines_are_kept_only_where_the_profile_says_so() {
    let acts = || [opened(), turn("t"), message("Hello."), vec![Act::Bytes(b"no json\n".to_vec())]];
    let raw = |signals: &[Signal]| -> Vec<(bool, String)> {
        let raw = signals.iter().filter_map(|signal| match signal {
            Signal::Raw { told, line } => Some((*told, line.clone())),
            _ => None,
        });
        raw.collect()
    };
    assert_eq!(raw(&scene(acts()).played().await), []);
    let mut kept = scene(acts());
    kept.profile.debug_raw = true;
    let lines = raw(&kept.played().await);
    let told: Vec<&str> = lines.iter().filter(|(told, _)| *told).map(|(_, line)| line.as_str()).collect();
    assert_eq!(told.len(), 4, "initialize, initialized, thread/start, turn/start: {told:?}");
    assert!(told[0].contains("\"initialize\""));
    assert_eq!(lines.last(), Some(&(false, "no json".to_owned())), "also what ended it");
}

#[tokio::test(start_paused = true)]
async fn j05_a_session_that_was_parked_goes_on_with_its_thread_and_asks_again() {
    let mut acts = opened();
    acts[3] = Act::Hear("thread/resume");
    let ask = json!({ "itemId": "c", "threadId": "thread-1", "command": "make", "cwd": "/" });
    acts.extend(turn("t"));
    acts.extend([
        Act::Say(json!({ "id": 0, "method": "item/commandExecution/requestApproval", "params": ask })),
        Act::HearAnswer(json!({ "id": 0, "result": { "decision": "accept" } })),
        ended("t", "completed"),
        // Its command was never said to be over.
        Act::Hear("thread/backgroundTerminals/clean"),
        Act::Reply(json!({})),
    ]);
    let scene = Scene::new(acts);
    let task = Task::Text { text: "hello".to_owned(), redacted: false };
    let start = Start::Resume { task, thread: Some("thread-1".to_owned()), turn_active: true };
    let playing = scene.open_at(start).await.unwrap();
    let signals = playing.until("it asks", |signals| asks(signals).count() == 1).await;
    playing.answer(asks(&signals).next().unwrap(), true).await;
    let over =
        |signals: &[Signal]| matches!(signals.last(), Some(Signal::TurnEnded { .. } | Signal::Ended { .. }));
    let signals = playing.until("it is over", over).await;
    assert_eq!(signals.last(), Some(&Signal::TurnEnded { outcome: TurnOutcome::Completed }));
}
