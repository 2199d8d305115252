//! Listing and invoking actions over HTTP: envelopes, statuses, options and surfaces.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a failed expectation fails the test"
)]

mod support;

use runyard_actions::Runtime;
use runyard_domain::Surface;
use serde_json::{Value, json};
use support::app::{Seen, app, echoing, open};
use support::client::{Answer, Client};
use support::server::{ADA, BOB, BOT, Server};
use support::until;

async fn server() -> Server {
    Server::start(app(&Seen::default())).await
}

#[track_caller]
fn check(answer: &Answer, status: u16, code: &str) {
    assert_eq!(answer.outcome(), (status, code.to_owned()), "{}", answer.json());
}

fn names(answer: &Answer) -> Vec<String> {
    let data = answer.data();
    data["actions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|action| action["name"].as_str().unwrap().to_owned())
        .collect()
}

// clause: A20
#[tokio::test(flavor = "multi_thread")]
async fn an_invocation_answers_the_whole_envelope() {
    let server = server().await;
    let answer = server.send(server.invoke("echo", json!({"a": [1, null, "x"]}))).await;
    let mut envelope = answer.json();
    assert_eq!((answer.status, answer.header("content-type")), (200, "application/json"));
    let meta = envelope["meta"].as_object_mut().unwrap();
    assert!(meta.remove("invocationId").unwrap().as_str().unwrap().starts_with("inv_"));
    assert!(meta.remove("durationMs").unwrap().is_u64());
    let expected = json!({
        "ok": true,
        "data": {"input": {"a": [1, null, "x"]}, "actor": "ada", "surface": "http"},
        "artifacts": [],
        "logs": [],
        "meta": {"action": "echo", "surface": "http"},
    });
    assert_eq!(envelope, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_before_any_action_is_a_whole_envelope_too() {
    let server = server().await;
    for request in [
        server.get("/nowhere"),
        server.get("/api/v1/actions").without("Authorization"),
        server.get("/api/v1/actions").with("Host", "evil.example"),
        server.request("DELETE", "/api/v1/actions"),
        server.request("POST", "/api/v1/actions/echo/invoke").with("Content-Type", "text/plain").body("{}"),
        server
            .request("POST", "/api/v1/actions/echo/invoke")
            .with("Content-Type", "application/json")
            .body("{"),
    ] {
        let answer = server.send(request).await;
        let envelope = answer.json();
        let keys: Vec<&String> = envelope.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["ok", "error", "artifacts", "logs", "meta"], "{envelope}");
        let keys: Vec<&String> = envelope["error"].as_object().unwrap().keys().collect();
        assert_eq!(keys, ["code", "message", "issues", "retryable"], "{envelope}");
        assert_eq!(envelope["meta"]["surface"], "http");
        assert!(envelope["meta"]["invocationId"].is_string() && envelope["meta"]["durationMs"].is_u64());
    }
}

// clause: A02
#[tokio::test(flavor = "multi_thread")]
async fn the_list_holds_what_the_caller_can_call_here_and_nothing_else() {
    let server = server().await;
    let everybody = [
        "count",
        "create_task",
        "delete_task",
        "echo",
        "fail",
        "find_tasks",
        "follow",
        "get_task",
        "guarded",
        "hang",
        "limited",
        "update_task",
        "wait",
    ];
    let mut person: Vec<&str> = everybody.into();
    person.push("people_thing");
    person.sort_unstable();
    assert_eq!(names(&server.send(server.get("/api/v1/actions")).await), person);
    assert_eq!(names(&server.send(server.get("/api/v1/actions").by(BOT)).await), everybody);
    let to_models = server.get("/api/v1/actions").with("Runyard-Surface", "ai-sdk");
    let to_models = server.send(to_models).await;
    assert!(!names(&to_models).contains(&"delete_task".to_owned()), "it is offered on http only");
    assert_eq!(to_models.json()["meta"]["surface"], "ai-sdk");
}

// clause: A02
#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_listed_cannot_be_called_by_name_or_by_route() {
    let server = server().await;
    for name in ["private_thing", "local_thing", "wipe", "nothing_of_this_name"] {
        let asked = server.post(&format!("/api/v1/actions/{name}/invoke"), &json!({"confirm": true}));
        let answer = server.send(asked).await;
        check(&answer, 404, "ACTION_NOT_FOUND");
        assert_eq!(answer.json()["meta"]["action"], name, "the name is as asked");
    }
    for path in ["/api/v1/private", "/api/v1/local", "/api/v1/wipe"] {
        check(&server.send(server.post(path, &json!({"confirm": true}))).await, 404, "NOT_FOUND");
    }
    check(&server.send(server.invoke("cli_only", json!({}))).await, 403, "UNSUPPORTED_SURFACE");
    check(&server.send(server.invoke("people_thing", json!({})).by(BOT)).await, 403, "AUTHORIZATION_ERROR");
    check(&server.send(server.invoke("guarded", json!({})).by(BOB)).await, 403, "AUTHORIZATION_ERROR");
}

// clause: A16
#[tokio::test(flavor = "multi_thread")]
async fn every_failure_has_the_status_of_the_error_table() {
    let server = server().await;
    for (code, status) in [
        ("VALIDATION_ERROR", 400),
        ("AUTHENTICATION_ERROR", 401),
        ("AUTHORIZATION_ERROR", 403),
        ("CONFLICT", 409),
        ("CANCELLED", 499),
        ("INTERNAL_ERROR", 500),
        ("OUTPUT_VALIDATION_ERROR", 502),
        ("OUTPUT_SERIALIZATION_ERROR", 502),
        ("EXTERNAL_SERVICE_ERROR", 502),
        ("TIMEOUT", 504),
    ] {
        check(&server.send(server.invoke("fail", json!({ "code": code }))).await, status, code);
    }
    let late = json!({"input": {"ms": 60_000}, "timeoutMs": 1});
    check(&server.send(server.post("/api/v1/actions/wait/invoke", &late)).await, 504, "TIMEOUT");
    let own = server.send(server.invoke("fail", json!({"code": "PAYMENT_DECLINED"}))).await;
    assert_eq!(own.code(), "PAYMENT_DECLINED");
    assert!((400..600).contains(&own.status), "{}", own.status);
}

// clause: A18
#[tokio::test(flavor = "multi_thread")]
async fn the_detail_of_an_internal_error_or_panic_stays_inside() {
    let server = server().await;
    for code in ["INTERNAL_ERROR", "PANIC"] {
        let answer = server.send(server.invoke("fail", json!({ "code": code }))).await;
        check(&answer, 500, "INTERNAL_ERROR");
        assert!(!String::from_utf8_lossy(&answer.body).contains("nobody may read"), "{}", answer.json());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_that_is_known_is_told_in_whole_seconds_rounded_up() {
    let server = server().await;
    let answer = server.send(server.invoke("fail", json!({"code": "WAIT"}))).await;
    check(&answer, 502, "EXTERNAL_SERVICE_ERROR");
    assert_eq!(answer.header("retry-after"), "2");
    assert_eq!(answer.json()["error"]["retryAfterMs"], 1500);
    let without = server.send(server.invoke("fail", json!({"code": "CONFLICT"}))).await;
    assert_eq!(without.all("retry-after"), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_at_once_is_429_with_a_wait_and_a_place_is_free_again_when_its_holder_goes() {
    let seen = Seen::default();
    let server = Server::start(app(&seen)).await;
    let mut holder = server.connect().await;
    holder.write(&server.invoke("limited", json!({})).bytes()).await;
    until("the place is taken", || seen.started() == 1).await;
    let short = server.post("/api/v1/actions/limited/invoke", &json!({"timeoutMs": 50}));
    let refused = server.send(short).await;
    check(&refused, 429, "CONCURRENCY_LIMIT");
    assert_eq!(refused.header("retry-after"), "1");
    assert_eq!(refused.json()["error"]["retryable"], true);
    drop(holder);
    until("the holder is cancelled", || seen.ended().contains(&"CANCELLED".to_owned())).await;
    let short = server.post("/api/v1/actions/limited/invoke", &json!({"timeoutMs": 50}));
    check(&server.send(short).await, 504, "TIMEOUT");
}

// clause: A04
#[tokio::test(flavor = "multi_thread")]
async fn only_the_boolean_true_confirms() {
    let server = server().await;
    let path = "/api/v1/actions/delete_task/invoke";
    for confirm in [json!(null), json!(false), json!("true"), json!(1), json!([true])] {
        let asked = server.post(path, &json!({"input": {"id": 1}, "confirm": confirm}));
        check(&server.send(asked).await, 409, "CONFIRMATION_REQUIRED");
    }
    check(&server.send(server.post(path, &json!({"input": {"id": 1}}))).await, 409, "CONFIRMATION_REQUIRED");
    check(&server.send(server.post(path, &json!({"input": {"id": 1}, "confirm": true}))).await, 200, "OK");
    let inside = server.post(path, &json!({"input": {"id": 1, "confirm": true}}));
    check(&server.send(inside).await, 400, "VALIDATION_ERROR");
    let by_agent = server.post(path, &json!({"input": {"id": 1}, "confirm": true})).by(BOT);
    check(&server.send(by_agent).await, 409, "CONFIRMATION_REQUIRED");
}

// clause: A03
#[tokio::test(flavor = "multi_thread")]
async fn every_part_of_a_call_that_cannot_be_read_is_listed() {
    let server = server().await;
    let call = json!({
        "input": {"title": "", "done": 3},
        "timeoutMs": -1,
        "retry": 3,
        "idempotencyKey": 7,
        "inputs": {},
        "user": "root",
    });
    let answer = server.send(server.post("/api/v1/actions/create_task/invoke", &call)).await;
    check(&answer, 400, "VALIDATION_ERROR");
    assert_eq!(answer.json()["error"]["message"], "Invalid action input.");
    let mut issues = answer.issues();
    issues.sort();
    assert_eq!(issues.len(), 7, "{issues:?}");
    for path in ["title", "done", "timeoutMs", "retry", "idempotencyKey", "inputs", "user"] {
        assert!(issues.iter().any(|issue| issue.starts_with(&format!("{path}: "))), "{path} in {issues:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_cannot_say_who_calls_or_from_where() {
    let server = server().await;
    for key in ["user", "auth", "actor", "surface", "metadata", "action"] {
        let mut call = json!({"input": {}});
        call[key] = json!("react");
        let answer = server.send(server.post("/api/v1/actions/echo/invoke", &call)).await;
        check(&answer, 400, "VALIDATION_ERROR");
        assert_eq!(answer.issues(), [format!("{key}: Unexpected property \"{key}\".")]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_no_object_is_refused_and_one_without_input_has_an_empty_one() {
    let server = server().await;
    let path = "/api/v1/actions/echo/invoke";
    for call in [json!(null), json!([]), json!("echo"), json!(3)] {
        check(&server.send(server.post(path, &call)).await, 400, "VALIDATION_ERROR");
    }
    assert_eq!(server.send(server.post(path, &json!({}))).await.data()["input"], json!({}));
    check(&server.send(server.post(path, &json!({"input": null}))).await, 400, "VALIDATION_ERROR");
}

// clause: A08
#[tokio::test(flavor = "multi_thread")]
async fn a_retry_that_the_caller_asks_for_is_made_and_logged() {
    let server = server().await;
    let call = json!({"input": {"code": "WAIT"}, "retry": {"retries": 2, "delayMs": 0}});
    let answer = server.send(server.post("/api/v1/actions/fail/invoke", &call)).await;
    check(&answer, 502, "EXTERNAL_SERVICE_ERROR");
    let logs = answer.json()["logs"].as_array().unwrap().len();
    assert_eq!(logs, 2, "one entry for each retry: {}", answer.json());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_gives_the_first_result_again_and_refuses_another_input() {
    let seen = Seen::default();
    let server = Server::start(app(&seen)).await;
    let path = "/api/v1/actions/count/invoke";
    let call = json!({"input": {"a": 1, "b": 2}, "idempotencyKey": "k1"});
    assert_eq!(server.send(server.post(path, &call)).await.data(), 1);
    let again =
        server.send(server.post(path, &json!({"input": {"b": 2, "a": 1}, "idempotencyKey": "k1"}))).await;
    assert_eq!((again.data(), again.json()["meta"]["idempotent"].clone()), (json!(1), json!("replayed")));
    let by_header = server.invoke("count", json!({"a": 1, "b": 2})).with("Idempotency-Key", "k1");
    assert_eq!(server.send(by_header).await.data(), 1);
    let other = server.post(path, &json!({"input": {"a": 2}, "idempotencyKey": "k1"}));
    check(&server.send(other).await, 409, "CONFLICT");
    assert_eq!(seen.started(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_empty_too_long_or_no_text_is_an_issue() {
    let server = server().await;
    for key in ["", &"k".repeat(257), "kl\u{fc}"] {
        let answer = server.send(server.invoke("count", json!({})).with("Idempotency-Key", key)).await;
        check(&answer, 400, "VALIDATION_ERROR");
        assert!(answer.issues()[0].starts_with("idempotencyKey: "), "{:?}", answer.issues());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_header_that_is_given_twice_does_not_count_once() {
    let seen = Seen::default();
    let server = Server::start(app(&seen)).await;
    let two_keys =
        server.invoke("count", json!({})).and("Idempotency-Key", "k1").and("Idempotency-Key", "k2");
    check(&server.send(two_keys).await, 400, "VALIDATION_ERROR");
    assert_eq!(seen.started(), 0);
    let two_minds = server.request("DELETE", "/api/v1/tasks/1").and("Runyard-Confirm", "true");
    let two_minds = server.send(two_minds.and("Runyard-Confirm", "false")).await;
    check(&two_minds, 409, "CONFIRMATION_REQUIRED");
    let two_surfaces =
        server.invoke("echo", json!({})).and("Runyard-Surface", "http").and("Runyard-Surface", "react");
    check(&server.send(two_surfaces).await, 403, "UNSUPPORTED_SURFACE");
}

#[tokio::test(flavor = "multi_thread")]
async fn a22_a_token_calls_on_http_or_by_header_on_ai_sdk() {
    let server = server().await;
    for (header, surface) in [(None, "http"), (Some("http"), "http"), (Some("ai-sdk"), "ai-sdk")] {
        let asked = server.invoke("echo", json!({}));
        let asked = match header {
            None => asked,
            Some(name) => asked.with("Runyard-Surface", name),
        };
        let answer = server.send(asked).await;
        assert_eq!(answer.data()["surface"], surface);
        assert_eq!(answer.json()["meta"]["surface"], surface);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a22_no_header_gives_a_token_the_surfaces_of_a_browser_or_any_other() {
    let server = server().await;
    for surface in ["react", "dev", "cli", "json", "mcp", "code", "unknown", "", "HTTP", "ai-sdk, dev"] {
        for request in [
            server.post("/api/v1/actions/delete_task/invoke", &json!({"input": {"id": 1}})),
            server.request("DELETE", "/api/v1/tasks/1"),
            server.get("/api/v1/actions"),
        ] {
            let answer = server.send(request.with("Runyard-Surface", surface)).await;
            check(&answer, 403, "UNSUPPORTED_SURFACE");
        }
    }
}

// clause: A22
#[tokio::test(flavor = "multi_thread")]
async fn an_action_of_other_surfaces_is_refused_on_each_of_the_two() {
    let cli = echoing(open("act").surfaces([Surface::Cli]));
    let http = echoing(open("on_http").surfaces([Surface::Http]));
    let server = Server::start(Runtime::builder().action(cli).action(http)).await;
    check(&server.send(server.invoke("act", json!({}))).await, 403, "UNSUPPORTED_SURFACE");
    check(&server.send(server.invoke("on_http", json!({}))).await, 200, "OK");
    let as_tool = server.invoke("on_http", json!({})).with("Runyard-Surface", "ai-sdk");
    let answer = server.send(as_tool).await;
    check(&answer, 403, "UNSUPPORTED_SURFACE");
    assert_eq!(answer.json()["meta"]["surface"], "ai-sdk");
}

// clause: A20
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_body_names_the_surface_and_the_action_that_were_meant() {
    let server = server().await;
    let asked = server.request("POST", "/api/v1/actions/echo/invoke").with("Runyard-Surface", "ai-sdk");
    let answer = server.send(asked.with("Content-Type", "application/json").body("{")).await;
    check(&answer, 400, "INVALID_JSON_BODY");
    let meta = answer.json()["meta"].clone();
    assert_eq!((&meta["surface"], &meta["action"]), (&json!("ai-sdk"), &json!("echo")));
}

// clause: A20
#[tokio::test(flavor = "multi_thread")]
async fn many_callers_at_once_each_get_their_own_answer() {
    let server = server().await;
    let callers: Vec<_> = (0..32_u64)
        .map(|caller| {
            let token = if caller % 2 == 0 { ADA } else { BOB };
            let requests: Vec<_> = (0..20_u64)
                .map(|turn| server.invoke("echo", json!({"caller": caller, "turn": turn})).by(token))
                .collect();
            let address = server.address;
            tokio::spawn(async move {
                let mut client = Client::connect(address).await;
                for (turn, request) in requests.iter().enumerate() {
                    let data: Value = client.send(request).await.data();
                    assert_eq!(data["input"], json!({"caller": caller, "turn": turn}));
                    assert_eq!(data["actor"], if caller % 2 == 0 { "ada" } else { "bob" });
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
}
