//! What the provider puts on the wire of chat completions.

use runyard_demo_provider::DemoProvider;
use serde_json::{Value, json};

use crate::client::{Reply, ask_whole, complete, request};

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

async fn play(text: &str) -> Reply {
    let provider = DemoProvider::start().await.unwrap();
    complete(provider.address(), "k", json!([user(text)])).await
}

/// What the deltas of a field add up to.
fn joined(chunks: &[Value], field: &str) -> String {
    chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"][field].as_str()).collect()
}

/// The tool calls of a stream, each with its arguments joined.
fn calls(chunks: &[Value]) -> Vec<Value> {
    let mut calls: Vec<Value> = Vec::new();
    for part in chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["tool_calls"].get(0)) {
        let arguments = part["function"]["arguments"].as_str().unwrap();
        let index = usize::try_from(part["index"].as_u64().unwrap()).unwrap();
        if part["id"].is_string() {
            assert_eq!((index, arguments), (calls.len(), ""));
            calls.push(json!({"id": part["id"], "name": part["function"]["name"], "arguments": ""}));
        }
        let so_far = calls[index]["arguments"].as_str().unwrap().to_owned();
        calls[index]["arguments"] = json!(so_far + arguments);
    }
    calls
}

fn finish_reasons(chunks: &[Value]) -> Vec<&str> {
    chunks.iter().filter_map(|chunk| chunk["choices"][0]["finish_reason"].as_str()).collect()
}

#[tokio::test]
async fn a_text_comes_in_several_deltas_and_ends_with_its_usage_and_done() {
    let reply = play("hello").await;
    assert_eq!((reply.status, reply.whole), (200, true));
    assert!(reply.head.contains("content-type: text/event-stream"), "{}", reply.head);
    let (chunks, done) = reply.chunks();
    assert!(done);
    assert_eq!(chunks[0]["choices"][0]["delta"], json!({"role": "assistant", "content": ""}));
    let text = joined(&chunks, "content");
    assert_eq!(text, "Hello from the demo provider.");
    // The role, six deltas, the end and the usage.
    assert_eq!((chunks.len(), finish_reasons(&chunks)), (9, vec!["stop"]));
    assert!(chunks.iter().all(|chunk| chunk["id"] == chunks[0]["id"] && chunk["model"] == "m-1"));
    assert!(chunks.iter().all(|chunk| chunk["object"] == "chat.completion.chunk"));

    let (last, others) = chunks.split_last().unwrap();
    assert_eq!(last["choices"], json!([]));
    let usage = &last["usage"];
    assert_eq!(usage["completion_tokens"], text.len().div_ceil(4));
    let total = usage["prompt_tokens"].as_u64().unwrap() + usage["completion_tokens"].as_u64().unwrap();
    assert_eq!(usage["total_tokens"], total);
    assert!(others.iter().all(|chunk| chunk.get("usage") == Some(&Value::Null)));
}

#[tokio::test]
async fn a_stream_has_a_usage_only_where_it_is_asked_for() {
    let provider = DemoProvider::start().await.unwrap();
    for options in [json!({}), json!({"stream_options": {"include_usage": false}})] {
        let mut body = json!({"model": "m-1", "stream": true, "messages": [user("hello")]});
        body.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
        let path = "/v1/chat/completions";
        let (chunks, done) = request(provider.address(), "POST", path, "k", &body.to_string()).await.chunks();
        assert!(done && chunks.iter().all(|chunk| chunk.get("usage").is_none()), "{chunks:?}");
        assert_eq!(finish_reasons(&chunks), ["stop"]);
    }
}

#[tokio::test]
async fn reasoning_comes_before_the_text_in_a_field_of_its_own() {
    let (chunks, _) = play("[[scenario:reasoning]]").await.chunks();
    assert_eq!(joined(&chunks, "reasoning_content"), "The person says hello; I say hello too.");
    assert_eq!(joined(&chunks, "content"), "Hello, after some thought.");
    let first_text = chunks.iter().position(|chunk| chunk["choices"][0]["delta"]["content"] == "Hello, ");
    let last_thought =
        chunks.iter().rposition(|chunk| chunk["choices"][0]["delta"].get("reasoning_content").is_some());
    assert!(last_thought < first_text);
    assert_eq!(chunks.last().unwrap()["usage"]["completion_tokens_details"]["reasoning_tokens"], 10);
}

#[tokio::test]
async fn a_shell_call_comes_in_pieces_and_its_result_brings_the_text() {
    let provider = DemoProvider::start().await.unwrap();
    let mut messages = vec![user("[[scenario:shell touch a.txt]]")];
    let (chunks, done) = complete(provider.address(), "k", json!(messages)).await.chunks();
    let made = calls(&chunks);
    assert_eq!((done, finish_reasons(&chunks), made.len()), (true, vec!["tool_calls"], 1));
    assert_eq!(made[0]["name"], "exec_command");
    assert_eq!(made[0]["arguments"], json!({"cmd": "touch a.txt"}).to_string());

    let function = json!({"name": "exec_command", "arguments": made[0]["arguments"]});
    messages.push(json!({"role": "assistant", "content": null,
        "tool_calls": [{"id": made[0]["id"], "type": "function", "function": function}]}));
    let aborted = json!({"role": "tool", "tool_call_id": made[0]["id"], "content": "aborted"});
    let again = [messages.clone(), vec![aborted]].concat();
    let (chunks, _) = complete(provider.address(), "k", json!(again)).await.chunks();
    assert_eq!(
        calls(&chunks)[0]["arguments"],
        made[0]["arguments"],
        "a call that came to nothing is made again"
    );
    assert_ne!(calls(&chunks)[0]["id"], made[0]["id"]);

    messages.push(json!({"role": "tool", "tool_call_id": made[0]["id"], "content": "ok"}));
    let (chunks, _) = complete(provider.address(), "k", json!(messages)).await.chunks();
    assert_eq!(joined(&chunks, "content"), "The command has run.");
    let played: Vec<_> = provider.requests().into_iter().map(|request| request.played.unwrap()).collect();
    assert_eq!(played, [("shell".to_owned(), 0), ("shell".to_owned(), 0), ("shell".to_owned(), 1)]);
}

#[tokio::test]
async fn two_calls_of_one_answer_are_told_apart_by_their_index() {
    let provider = DemoProvider::start().await.unwrap();
    let call =
        json!({"id": "c1", "type": "function", "function": {"name": "exec_command", "arguments": "{}"}});
    let called = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    let result = json!({"role": "tool", "tool_call_id": "c1", "content": "one"});
    let messages = json!([user("[[scenario:shells]]"), called, result]);
    let (chunks, _) = complete(provider.address(), "k", messages).await.chunks();
    let made = calls(&chunks);
    let arguments: Vec<_> = made.iter().map(|call| call["arguments"].as_str().unwrap()).collect();
    assert_eq!(arguments, [r#"{"cmd":"echo two"}"#, r#"{"cmd":"echo three"}"#]);
    assert_ne!(made[0]["id"], made[1]["id"]);
}

#[tokio::test]
async fn a_free_form_tool_is_a_function_of_one_text() {
    let (chunks, _) = play("[[scenario:patch b.txt]]").await.chunks();
    let made = calls(&chunks);
    assert_eq!(made[0]["name"], "apply_patch");
    let arguments: Value = serde_json::from_str(made[0]["arguments"].as_str().unwrap()).unwrap();
    let patch = "*** Begin Patch\n*** Add File: b.txt\n+one line from the demo provider\n*** End Patch\n";
    assert_eq!(arguments, json!({"input": patch}));
}

#[tokio::test]
async fn without_a_stream_the_same_is_one_json_body() {
    let provider = DemoProvider::start().await.unwrap();
    let whole = async |text: &str| {
        let reply = ask_whole(provider.address(), "/v1/chat/completions", "k", text).await;
        assert!(reply.head.contains("content-type: application/json"), "{}", reply.head);
        reply.json()
    };
    let said = whole("[[scenario:reasoning]]").await;
    let message = &said["choices"][0]["message"];
    assert_eq!((&said["object"], &said["model"]), (&json!("chat.completion"), &json!("m-1")));
    assert_eq!(message["content"], "Hello, after some thought.");
    assert_eq!(message["reasoning_content"], "The person says hello; I say hello too.");
    assert_eq!(
        (&message["role"], &said["choices"][0]["finish_reason"]),
        (&json!("assistant"), &json!("stop"))
    );
    assert_eq!(said["usage"]["completion_tokens"], 17);

    let called = whole("[[scenario:shell ls]]").await;
    let choice = &called["choices"][0];
    assert_eq!(
        (&choice["finish_reason"], &choice["message"]["content"]),
        (&json!("tool_calls"), &Value::Null)
    );
    let call = &choice["message"]["tool_calls"][0];
    assert_eq!(call["function"], json!({"name": "exec_command", "arguments": r#"{"cmd":"ls"}"#}));
    assert_eq!(call["type"], "function");
}
