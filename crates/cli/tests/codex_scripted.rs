//! A scripted app-server in codex's place: what it says becomes the events of a run, and no secret that it says is in any of them.
//! It proves the adapter and the edge, and nothing about the real program.
//!
//! clause: B08
//! clause: B10
//! clause: B11

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use support::codex::{Bench, CODEX_KEY, nothing_left};

/// Answers as codex does, and plays these lines when a turn begins.
fn program(lines: &[Value]) -> String {
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    format!(
        r#"#!/bin/sh
case "$*" in *--version*) echo "codex-cli 9.9.9"; exit 0 ;; esac
while read -r line; do
    case "$line" in
    *'"method":"initialize"'*) echo '{{"id":1,"result":{{"userAgent":"scripted"}}}}' ;;
    *'"method":"thread/start"'*)
        echo '{{"id":2,"result":{{"thread":{{"id":"t-1","cliVersion":"9.9.9"}},"model":"m","approvalPolicy":"untrusted","sandbox":{{"type":"dangerFullAccess"}}}}}}' ;;
    *'"method":"turn/start"'*)
        cat <<'LINES'
{}
LINES
        ;;
    esac
done
"#,
        lines.join("\n")
    )
}

fn notice(method: &str, mut params: Value) -> Value {
    params["threadId"] = json!("t-1");
    params["turnId"] = json!("u-1");
    json!({ "method": method, "params": params })
}

/// A run of a profile whose program plays these lines, once it is over.
fn played(lines: &[Value]) -> (Vec<Value>, Value) {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("scripted");
    std::fs::write(&file, program(lines)).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    let more = format!("\n[backend.played]\ncommand = [{file:?}]\n[agent.played]\nbackend = \"played\"\n");
    let bench = Bench::with(&more, None);
    bench.secret("played", CODEX_KEY);
    let (_hub, api) = bench.yard.up();
    let run = bench.start(&api, "played", "say something");
    let ended = support::eventually("it is over", || {
        let found = api.run(&run);
        ["completed", "failed"].contains(&found["state"].as_str().unwrap()).then_some(found)
    });
    nothing_left(&run);
    (api.events(&run), ended)
}

fn turn(status: &str, error: &Value) -> Value {
    notice("turn/completed", json!({ "turn": { "id": "u-1", "status": status, "error": error } }))
}

#[test]
fn b08_b11_t1_what_a_scripted_server_says_is_normalised_and_redacted() {
    let secrets = [
        "ghp_Zq3vR8tLw2XyN5kD7mB1cF6hJ9pS4aG0eUoT",
        "c2VjcmV0LWJlYXJlci12YWx1ZQ",
        "hunter2-of-ada",
        CODEX_KEY,
    ];
    let said = format!(
        "token {}\nAuthorization: Bearer {}\nsee https://ada:{}@example.com/path\n{{\"OPENAI_API_KEY\": \"{}\"}}",
        secrets[0], secrets[1], secrets[2], secrets[3]
    );
    let message = |text: &str| json!({ "item": { "type": "agentMessage", "id": "m-1", "text": text } });
    let cut = said.len() - CODEX_KEY.len() / 2;
    let failing = json!({ "message": format!("refused: {said}"), "codexErrorInfo": { "responseStreamDisconnected": { "httpStatusCode": 503 } } });
    let lines = [
        json!({ "id": 3, "result": { "turn": { "id": "u-1", "status": "inProgress" } } }),
        notice("turn/started", json!({ "turn": { "id": "u-1", "status": "inProgress" } })),
        notice("item/started", message("")),
        notice("item/agentMessage/delta", json!({ "itemId": "m-1", "delta": &said[..cut] })),
        notice("item/agentMessage/delta", json!({ "itemId": "m-1", "delta": &said[cut..] })),
        notice("item/completed", message(&said)),
        notice("error", json!({ "error": failing, "willRetry": true })),
        turn("completed", &Value::Null),
    ];
    let (events, ended) = played(&lines);
    assert_eq!(ended["state"], "completed", "{ended}");
    let word = |word: &str| events.iter().any(|event| event["payload"]["backendEvent"] == word);
    for expected in ["backend_status", "assistant_message", "error", "terminal_status"] {
        assert!(word(expected), "{expected}");
    }
    let error = events.iter().find(|event| event["payload"]["retrying"] == true).unwrap();
    assert_eq!(error["payload"]["failureKind"], "provider-unavailable");
    let all = serde_json::to_string(&events).unwrap() + &ended.to_string();
    for secret in secrets {
        assert!(!all.contains(secret), "{secret} is in {all}");
    }
    assert!(all.contains("https://"), "what is no secret is still there");
}

#[test]
fn b10_t2_what_a_scripted_server_fails_with_is_the_runs_kind() {
    let begun = json!({ "id": 3, "result": { "turn": { "id": "u-1", "status": "inProgress" } } });
    let failed = |info: Value| turn("failed", &json!({ "message": "it failed", "codexErrorInfo": info }));
    let http = |word: &str, status: u16| json!({ word: { "httpStatusCode": status } });
    #[rustfmt::skip]
    let table = [
        (failed(http("httpConnectionFailed", 401)), "provider-auth-failed"),
        (failed(json!("usageLimitExceeded")),       "provider-rate-limited"),
        (turn("failed", &Value::Null),              "backend-response-invalid"),
        (notice("turn/completed", json!({})),       "backend-response-invalid"),
        (json!({ "neither": "nor" }),               "backend-protocol-error"),
        (json!("no JSON-RPC"),                      "backend-protocol-error"),
    ];
    for (line, kind) in table {
        let (_, ended) = played(&[begun.clone(), line.clone()]);
        assert_eq!(ended["failureKind"], kind, "{line}: {ended}");
    }
}
