//! What the provider puts on the wire of Anthropic Messages.

use runyard_demo_provider::{DemoProvider, Options};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::client::{Reply, ask_whole, request};

const PATH: &str = "/v1/messages";

async fn ask(provider: &DemoProvider, messages: Value) -> Reply {
    let body = json!({"model": "m-1", "max_tokens": 100, "stream": true, "messages": messages});
    request(provider.address(), "POST", PATH, "k", &body.to_string()).await
}

fn user(content: impl Into<Value>) -> Value {
    json!({"role": "user", "content": content.into()})
}

async fn play(text: &str) -> Reply {
    ask(&DemoProvider::start().await.unwrap(), json!([user(text)])).await
}

/// What the deltas of a block add up to.
fn joined(events: &[Value], index: usize, field: &str) -> String {
    let of_block = events.iter().filter(|event| event["index"] == index);
    of_block.filter_map(|event| event["delta"][field].as_str()).collect()
}

fn blocks(events: &[Value]) -> Vec<Value> {
    let started = events.iter().filter(|event| event["type"] == "content_block_start");
    started.map(|event| event["content_block"].clone()).collect()
}

fn stop_reason(events: &[Value]) -> Option<&str> {
    events.iter().find_map(|event| event["delta"]["stop_reason"].as_str())
}

#[tokio::test]
async fn a_text_comes_in_several_deltas_and_ends_with_its_usage() {
    let reply = play("hello").await;
    assert_eq!((reply.status, reply.whole), (200, true));
    assert!(reply.head.contains("content-type: text/event-stream"), "{}", reply.head);
    let mut expected = vec!["message_start", "ping", "content_block_start"];
    expected.extend(["content_block_delta"; 6]);
    expected.extend(["content_block_stop", "message_delta", "message_stop"]);
    assert_eq!(reply.event_types(), expected);
    let events = reply.events();
    assert_eq!(joined(&events, 0, "text"), "Hello from the demo provider.");
    assert_eq!(stop_reason(&events), Some("end_turn"));
    assert!(events[0]["message"]["usage"]["input_tokens"].as_u64().unwrap() > 0);
    assert_eq!(events[10]["usage"]["output_tokens"], 8);
}

#[tokio::test]
async fn a_call_comes_in_pieces_and_its_result_brings_the_text() {
    let provider = DemoProvider::start().await.unwrap();
    let mut messages = vec![user("[[scenario:shell touch a.txt]]")];
    let events = ask(&provider, json!(messages)).await.events();
    let call = blocks(&events)[0].clone();
    assert_eq!(
        (&call["type"], &call["name"], &call["input"]),
        (&json!("tool_use"), &json!("exec_command"), &json!({}))
    );
    assert_eq!(joined(&events, 0, "partial_json"), json!({"cmd": "touch a.txt"}).to_string());
    assert_eq!(stop_reason(&events), Some("tool_use"));

    messages.push(json!({"role": "assistant", "content": [call]}));
    messages.push(user(json!([{"type": "tool_result", "tool_use_id": call["id"], "content": "ok"}])));
    let events = ask(&provider, json!(messages)).await.events();
    assert_eq!(joined(&events, 0, "text"), "The command has run.");
}

#[tokio::test]
async fn two_interleaved_calls_are_told_apart_by_their_index() {
    let events = play("[[scenario:parallel]]").await.events();
    let deltas = events.iter().filter(|event| event["type"] == "content_block_delta");
    let order: Vec<u64> = deltas.map(|event| event["index"].as_u64().unwrap()).collect();
    assert_eq!(order, [0, 1, 0, 1]);
    assert_eq!(joined(&events, 0, "partial_json"), r#"{"cmd":"echo left"}"#);
    assert_eq!(joined(&events, 1, "partial_json"), r#"{"cmd":"echo right"}"#);
    assert_ne!(blocks(&events)[0]["id"], blocks(&events)[1]["id"]);
}

#[tokio::test]
async fn a_call_without_arguments_has_none_and_ends() {
    let events = play("[[scenario:no-arguments]]").await.events();
    assert_eq!(blocks(&events)[0]["name"], "list_files");
    assert_eq!(joined(&events, 0, "partial_json"), "");
    assert!(events.iter().any(|event| event["type"] == "content_block_stop"));
}

#[tokio::test]
async fn reasoning_is_a_signed_block_before_the_text() {
    let events = play("[[scenario:reasoning]]").await.events();
    let kinds: Vec<Value> = blocks(&events).iter().map(|block| block["type"].clone()).collect();
    assert_eq!(kinds, ["thinking", "text"]);
    assert_eq!(joined(&events, 0, "thinking"), "The person says hello; I say hello too.");
    assert_eq!(joined(&events, 0, "signature"), "signed-by-the-demo-provider");
    assert_eq!(joined(&events, 1, "text"), "Hello, after some thought.");
}

#[tokio::test]
async fn an_ending_that_is_none_has_no_last_event() {
    for (scenario, last, whole) in [
        ("cut", "content_block_delta", false),
        ("cut-call", "content_block_delta", false),
        ("unfinished", "content_block_delta", true),
        ("failed-overloaded", "error", true),
        ("incomplete", "message_stop", true),
        ("filtered", "message_stop", true),
    ] {
        let reply = play(&format!("[[scenario:{scenario}]]")).await;
        assert_eq!((reply.event_types().last().unwrap().as_str(), reply.whole), (last, whole), "{scenario}");
    }
    assert_eq!(stop_reason(&play("[[scenario:incomplete]]").await.events()), Some("max_tokens"));
    assert_eq!(stop_reason(&play("[[scenario:filtered]]").await.events()), Some("refusal"));
    let cut = play("[[scenario:cut-calls]]").await;
    assert_eq!(joined(&cut.events(), 1, "partial_json"), r#"{"cmd":"echo one"}"#);
    assert_eq!(joined(&cut.events(), 2, "partial_json"), r#"{"cmd":"touch"#);
    assert!(!cut.whole);
}

#[tokio::test]
async fn failures_have_the_words_of_this_api() {
    let provider = DemoProvider::start().await.unwrap();
    for (scenario, status, kind, message) in [
        ("http-400", 400, "invalid_request_error", ""),
        ("http-401", 401, "authentication_error", ""),
        ("http-402", 402, "billing_error", ""),
        ("http-403", 403, "permission_error", ""),
        ("http-404", 404, "not_found_error", ""),
        ("http-413", 413, "request_too_large", ""),
        ("http-429", 429, "rate_limit_error", ""),
        ("http-500", 500, "api_error", ""),
        ("http-504", 504, "timeout_error", ""),
        ("http-529", 529, "overloaded_error", ""),
        ("http-context-length", 400, "invalid_request_error", "prompt is too long"),
        ("http-content-filter", 400, "invalid_request_error", "Output blocked"),
    ] {
        let reply = ask(&provider, json!([user(format!("[[scenario:{scenario}]]"))])).await;
        let body = reply.json();
        assert_eq!((reply.status, &body["type"]), (status, &json!("error")), "{scenario}");
        assert_eq!(body["error"]["type"], kind, "{scenario}");
        assert!(body["error"]["message"].as_str().unwrap().starts_with(message), "{body}");
    }
    for (scenario, kind) in [
        ("failed-502", "api_error"),
        ("failed-overloaded", "overloaded_error"),
        ("failed-rate-limit", "rate_limit_error"),
        ("failed-context-length", "invalid_request_error"),
        ("goaway", "server_shutdown"),
    ] {
        let last =
            ask(&provider, json!([user(format!("[[scenario:{scenario}]]"))])).await.events().pop().unwrap();
        assert_eq!((&last["type"], &last["error"]["type"]), (&json!("error"), &json!(kind)), "{scenario}");
    }
}

#[tokio::test]
async fn the_key_is_taken_from_the_header_of_this_api() {
    let options = Options { keys: vec!["sk-right".into()], ..Options::default() };
    let provider = DemoProvider::start_with(options).await.unwrap();
    for (key, status) in [("sk-right", "200"), ("sk-wrong", "401")] {
        let body = json!({"model": "m-1", "max_tokens": 9, "messages": [user("hello")]}).to_string();
        let mut stream = tokio::net::TcpStream::connect(provider.address()).await.unwrap();
        let length = body.len();
        let request = format!(
            "POST {PATH} HTTP/1.1\r\nhost: demo\r\nconnection: close\r\nx-api-key: {key}\r\n\
             anthropic-version: 2023-06-01\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.unwrap();
        assert!(reply.starts_with(&format!("HTTP/1.1 {status}")), "{reply}");
    }
}

#[tokio::test]
async fn without_a_stream_the_same_is_one_json_body() {
    let provider = DemoProvider::start().await.unwrap();
    let whole = ask_whole(provider.address(), PATH, "k", "[[scenario:reasoning]]").await.json();
    assert_eq!((&whole["type"], &whole["stop_reason"]), (&json!("message"), &json!("end_turn")));
    assert_eq!(whole["content"][1]["text"], "Hello, after some thought.");
    assert_eq!(whole["usage"]["output_tokens"], 17);
    let called = ask_whole(provider.address(), PATH, "k", "[[scenario:patch b.txt]]").await.json();
    assert!(called["content"][0]["input"]["input"].as_str().unwrap().contains("b.txt"), "{called}");
    let failed = ask_whole(provider.address(), PATH, "k", "[[scenario:failed-overloaded]]").await;
    assert_eq!((failed.status, &failed.json()["error"]["type"]), (503, &json!("overloaded_error")));
}
