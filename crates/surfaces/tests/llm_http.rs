//! Tools for language models over HTTP: definitions, calls, approvals, and a client that goes away.
//!
//! clause: A02
//! clause: A21
//! clause: A22
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed expectation fails the test"
)]

mod llm_support;
mod support;

use llm_support::call;
use runyard_actions::{Exposure, RuntimeBuilder, SideEffects};
use runyard_domain::Surface;
use runyard_surfaces::http::{BearerTokens, Guard, HttpApi, RouteError};
use runyard_surfaces::llm_tools::Format;
use serde_json::{Value, json};
use support::app::{Seen, app, echoing, open};
use support::server::{BOB, BOT, Server};
use support::until;

fn with_erase() -> RuntimeBuilder {
    runyard_actions::Runtime::builder()
        .action(echoing(open("echo")))
        .action(echoing(open("erase").side_effects(SideEffects::Destructive)))
        .action(echoing(open("people").people_only()))
        .action(echoing(open("http_only").surfaces([Surface::Http])))
        .exposure(Exposure::new().destructive("erase", [Surface::AiSdk]))
}

fn body(format: Format, name: &str, beside: Value) -> Value {
    let mut body = json!({"format": format, "call": call(format, name, &json!({"a": 1}))});
    body.as_object_mut().unwrap().extend(beside.as_object().unwrap().clone());
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn a02_the_definitions_are_those_of_the_surface_and_the_caller() {
    let server = Server::start(with_erase()).await;
    let names = |data: &Value| {
        let tools = data["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let answer = server.send(server.get("/api/v1/tools?format=openai-responses")).await;
    assert_eq!((answer.status, answer.json()["meta"]["surface"].as_str()), (200, Some("ai-sdk")));
    assert_eq!(answer.data()["format"], "openai-responses");
    assert_eq!(names(&answer.data()), ["echo", "erase", "people"]);
    let agents = server.send(server.get("/api/v1/tools?format=anthropic").by(BOT)).await;
    assert_eq!(names(&agents.data()), ["echo", "erase"]);
    for query in ["", "?format=openai", "?format=ai-sdk&format=ai-sdk", "?format=ai-sdk&more=1"] {
        let answer = server.send(server.get(&format!("/api/v1/tools{query}"))).await;
        assert_eq!(answer.outcome(), (400, "VALIDATION_ERROR".to_owned()), "{query}");
    }
    let stranger = server.send(server.get("/api/v1/tools?format=ai-sdk").without("Authorization")).await;
    assert_eq!(stranger.outcome(), (401, "AUTHENTICATION_ERROR".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a22_a_call_is_on_the_surface_of_its_entry_point_and_is_answered_however_it_ended() {
    let server = Server::start(with_erase()).await;
    let call = |body: &Value| server.post("/api/v1/tools/call", body).with("Runyard-Surface", "http");
    let answer = server.send(call(&body(Format::AiSdk, "echo", json!({})))).await;
    assert_eq!(answer.status, 200);
    let output = json!({"input": {"a": 1}, "actor": "ada", "surface": "ai-sdk"});
    assert_eq!(answer.data()["message"]["output"], output);
    assert_eq!(answer.data()["envelope"]["meta"]["action"], "echo");
    let answer = server.send(call(&body(Format::Anthropic, "http_only", json!({})))).await;
    assert_eq!((answer.status, &answer.data()["message"]["is_error"]), (200, &json!(true)));
    assert_eq!(answer.data()["envelope"]["error"]["code"], "UNSUPPORTED_SURFACE");
    for wrong in [json!({}), json!([]), json!({"format": "ai-sdk", "call": {}})] {
        let answer = server.send(call(&wrong)).await;
        assert_eq!(answer.outcome(), (400, "VALIDATION_ERROR".to_owned()), "{wrong}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_is_answered_in_a_later_request_by_the_same_caller() {
    let server = Server::start(with_erase()).await;
    let call = |beside: Value| server.post("/api/v1/tools/call", &body(Format::AiSdk, "erase", beside));
    let asked = server.send(call(json!({}))).await.data();
    assert_eq!(asked["message"]["type"], "tool-approval-request");
    let yes = json!({"approval": {"approvalId": asked["approval"]["approvalId"], "approved": true}});
    for other in [BOB, BOT] {
        let refused = server.send(call(yes.clone()).by(other)).await.data();
        assert_eq!(refused["envelope"]["error"]["code"], "CONFIRMATION_REQUIRED");
    }
    let done = server.send(call(yes)).await.data();
    assert_eq!(done["message"]["output"]["actor"], "ada");
}

#[tokio::test(flavor = "multi_thread")]
async fn a21_a_client_that_goes_away_ends_its_call() {
    let seen = Seen::default();
    let server = Server::start(app(&seen)).await;
    let mut client = server.connect().await;
    let request = server.post("/api/v1/tools/call", &body(Format::OpenaiChat, "hang", json!({})));
    client.write(&request.bytes()).await;
    until("the handler has begun", || seen.started() == 1).await;
    drop(client);
    until("the handler is dropped", || seen.dropped() == 1).await;
    until("the hook saw it end", || seen.ended() == ["CANCELLED"]).await;
}

#[test]
fn the_paths_of_the_tools_are_taken() {
    for route in ["GET /api/v1/tools", "POST /api/v1/tools/call"] {
        let action = echoing(open("it").http(route));
        let api = HttpApi {
            name: "x".to_owned(),
            version: "1".to_owned(),
            runtime: runyard_actions::Runtime::builder().action(action).build().unwrap(),
            guard: Guard::new(([127, 0, 0, 1], 1).into(), BearerTokens::new()),
        };
        assert!(matches!(api.router(), Err(RouteError::Taken { .. })), "{route}");
    }
}
