//! Two profiles of one adapter, with the real codex: each with its own secret, its own provider and its own home, and no way from
//! one to the other. `codex` talks to a loopback provider that speaks Responses; `deepseek` to one that speaks chat completions
//! alone, through the gateway's translation. No provider of the world outside is called.
//!
//! clause: B03
//! clause: B12
//! clause: B13
//! clause: B14
//! clause: B15
//! clause: B18

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use serde_json::{Value, json};

use support::api::Api;
use support::codex::{Bench, CODEX_KEY, DEEPSEEK_KEY, nothing_left};

fn statuses(events: &[Value]) -> Vec<&Value> {
    let of = |event: &&Value| {
        event["payload"]["backendEvent"] == "backend_status" && event["type"] == "runtime.status"
    };
    events.iter().filter(of).map(|event| &event["payload"]).collect()
}

/// A shortest turn, and what it must have said.
#[track_caller]
fn turn(bench: &Bench, api: &Api, profile: &str) {
    let run = bench.start(api, profile, "[[scenario:text]] hello");
    let done = api.until(&run, "completed");
    assert_eq!(done["response"], "Hello from the demo provider.", "{done}");
    assert_eq!(done["backendProfile"], profile);
    let events = api.events(&run);
    let statuses = statuses(&events);
    assert!(!statuses.is_empty());
    for status in &statuses {
        assert_eq!(status["profile"], profile, "{status}");
        assert_eq!(status["backendKind"], "codex-app-server-stdio");
        assert_eq!(status["protocol"], "codex-app-server-jsonrpc-stdio");
    }
    let said = |name: &str| statuses.iter().find_map(|status| status[name].as_str());
    assert_eq!(said("version"), Some("0.166.0"), "the version that really ran");
    assert_eq!(said("model"), Some(if profile == "codex" { "gpt-5.5" } else { "deepseek-chat" }));
    assert_eq!(done["backend"]["kind"], "codex-app-server-stdio");
    assert_eq!(done["backend"]["found"], "codex-cli 0.166.0", "{}", done["backend"]);
    let planned = &events.iter().find(|event| event["type"] == "run.planned").unwrap()["payload"];
    assert_eq!(
        (&planned["runtimeProfile"], &planned["backend"]["command"]),
        (&json!(profile), &done["backend"]["command"])
    );
    let word = |word: &str| events.iter().any(|event| event["payload"]["backendEvent"] == word);
    assert!(word("assistant_message") && word("terminal_status"), "{events:#?}");
    let projected: Vec<&Value> = events
        .iter()
        .filter(|event| event["type"] == "run.secrets.projected")
        .map(|event| &event["payload"])
        .collect();
    assert_eq!(projected, [&json!({"profile": profile, "keys": ["auth.json"], "how": "gateway"})]);
    let audited = api.audit("audit.secret");
    assert!(
        audited
            .iter()
            .any(|entry| entry["what"]["runId"] == json!(run) && entry["what"]["profile"] == profile)
    );
    nothing_left(&run);
}

#[test]
fn b14_b15_b18_codex_then_deepseek_then_codex_again_with_the_real_program() {
    let bench = Bench::new();
    let (_hub, api) = bench.yard.up();
    for profile in ["codex", "deepseek", "codex"] {
        turn(&bench, &api, profile);
    }
    let (responses, chat) = (bench.responses.requests(), bench.chat.requests());
    assert!(responses.iter().all(|request| request.path == "/v1/responses"), "{responses:?}");
    assert!(chat.iter().all(|request| request.path == "/v1/chat/completions"), "{chat:?}");
    assert_eq!(responses.len(), 2);
    assert_eq!(chat.len(), 1);
    assert!(responses.iter().all(|request| request.bearer() == Some(CODEX_KEY)));
    assert!(chat.iter().all(|request| request.bearer() == Some(DEEPSEEK_KEY)));
    for file in bench.written() {
        let bytes = std::fs::read(&file).unwrap_or_default();
        for key in [CODEX_KEY, DEEPSEEK_KEY] {
            let found = bytes.windows(key.len()).any(|window| window == key.as_bytes());
            assert!(!found, "a key is in {}", file.display());
        }
    }
}

#[test]
fn b13_without_its_secret_a_profile_fails_and_falls_back_to_no_other() {
    let bench = Bench::new();
    let (_hub, api) = bench.yard.up();
    let ran = bench.yard.home.run(["secrets", "rm", "deepseek", "auth.json", "--yes"]);
    assert_eq!(ran.exit, 0, "{} {}", ran.stdout, ran.stderr);
    let run = bench.start(&api, "deepseek", "[[scenario:text]] hello");
    let failed = api.until(&run, "failed");
    assert_eq!(failed["failureKind"], "secret-unavailable", "{failed}");
    assert_eq!(failed["code"], "runtime_unavailable");
    let last = api.events(&run).pop().unwrap();
    let message = last["payload"]["message"].as_str().unwrap();
    assert!(message.contains("runyard secrets set deepseek"), "it says what to do: {message}");
    assert!(bench.responses.requests().is_empty() && bench.chat.requests().is_empty());
    turn(&bench, &api, "codex");
}

#[test]
fn b13_a_key_of_another_profile_is_a_wrong_key() {
    let bench = Bench::new();
    bench.secret("deepseek", CODEX_KEY);
    let (_hub, api) = bench.yard.up();
    let run = bench.start(&api, "deepseek", "[[scenario:text]] hello");
    let failed = api.until(&run, "failed");
    assert_eq!(failed["failureKind"], "provider-auth-failed", "{failed}");
    turn(&bench, &api, "codex");
}

#[test]
fn b05_a_scope_without_the_profiles_secret_is_refused_and_nothing_is_stored() {
    let bench = Bench::new();
    let (_hub, api) = bench.yard.up();
    let credential = |profile: &str, name: &str, keys: Value| json!([{"profile": profile, "secretRef": {"name": name, "keys": keys}}]);
    for credentials in [
        json!([]),
        credential("deepseek", "deepseek", json!(["auth.json"])),
        credential("codex", "deepseek", json!(["auth.json"])),
        credential("codex", "codex", json!(["config.toml"])),
        credential("codex", "codex", json!(["auth.json", "other"])),
    ] {
        let policy = json!({"secretScope": {"providerCredentials": credentials}});
        let new = json!({"task": "hello", "agent": "codex", "workspace": bench.yard.place(), "executionPolicy": policy});
        let (status, body) = api.send("POST", "/runs", Some(&new));
        assert_ne!(status, 200, "{credentials}: {body}");
        let error = &serde_json::from_str::<Value>(&body).unwrap()["error"];
        assert_eq!(
            (&error["code"], &error["failureKind"]),
            (&json!("secret-unavailable"), &json!("secret-unavailable")),
            "{credentials}"
        );
    }
    assert_eq!(api.get("/runs")["runs"], json!([]));
    let policy =
        json!({"secretScope": {"providerCredentials": credential("codex", "codex", json!(["auth.json"]))}});
    let run = bench.start_with(&api, "codex", "[[scenario:text]] hello", &json!({"executionPolicy": policy}));
    api.until(&run, "completed");
    let created = api.events(&run).remove(0);
    let scope = &created["payload"]["executionPolicy"]["secretScope"];
    assert_eq!(scope["providerCredentials"], credential("codex", "codex", json!(["auth.json"])));
}

#[test]
fn b12_without_the_gateway_the_file_is_in_the_sessions_home_and_gone_when_the_process_is() {
    let bench = Bench::with("gateway = false", None);
    let (_hub, api) = bench.yard.up();
    let run = bench.start(&api, "codex", "[[scenario:shell echo hello]]");
    let approval = api.asked(&run, &[]);
    let session = api.run(&run)["sessionId"].as_str().unwrap().to_owned();
    let home = bench.yard.home.path(&format!("edge/sessions/{session}/codex/codex"));
    let auth = std::fs::read_to_string(home.join("auth.json")).unwrap();
    assert!(auth.contains(CODEX_KEY));
    assert!(!auth.contains(DEEPSEEK_KEY));
    let reason = api.run(&run)["degraded"]["reason"].to_string();
    assert!(
        reason.contains("its secrets lie in the agent's own home"),
        "it is said before it begins: {reason}"
    );
    api.approve(&approval);
    api.until(&run, "completed");
    nothing_left(&run);
    support::eventually("the secret is gone", || (!home.join("auth.json").exists()).then_some(()));
    assert!(home.join("sessions").is_dir(), "what codex keeps of the conversation stays");
    let projected =
        api.events(&run).into_iter().find(|event| event["type"] == "run.secrets.projected").unwrap();
    assert_eq!(projected["payload"]["how"], "home");
    assert!(bench.responses.requests().iter().all(|request| request.bearer() == Some(CODEX_KEY)));
}
