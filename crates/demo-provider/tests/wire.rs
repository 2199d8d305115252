//! What the provider puts on the wire, read byte by byte.

#![allow(clippy::unwrap_used, reason = "a failed expectation fails the test")]

mod client;

use std::{fs, net::SocketAddr};

use client::{Reply, request, respond, send, user};
use runyard_demo_provider::{DemoProvider, Options, ProviderError};
use serde_json::{Value, json};
use tokio::{io::AsyncReadExt, net::TcpStream};

async fn play(text: &str) -> Reply {
    let provider = DemoProvider::start().await.unwrap();
    respond(provider.address(), "k", json!([user(text)])).await
}

fn result(call: &Value, output: &str) -> Value {
    json!({"type": "function_call_output", "call_id": call["call_id"], "output": output})
}

#[tokio::test]
async fn a_text_comes_in_several_deltas_and_ends_completed() {
    let reply = play("hello").await;
    assert_eq!((reply.status, reply.whole), (200, true));
    assert!(reply.head.contains("content-type: text/event-stream"), "{}", reply.head);
    let mut expected = vec!["response.created", "response.output_item.added", "response.content_part.added"];
    expected.extend(["response.output_text.delta"; 6]);
    expected.extend(["response.output_text.done", "response.content_part.done", "response.output_item.done"]);
    expected.push("response.completed");
    assert_eq!(reply.event_types(), expected);

    let events = reply.events();
    let numbers: Vec<_> = events.iter().map(|event| event["sequence_number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..events.len() as u64).collect::<Vec<_>>());
    let text: String = events.iter().filter_map(|event| event["delta"].as_str()).collect();
    assert_eq!(text, "Hello from the demo provider.");
    let response = &events.last().unwrap()["response"];
    assert_eq!(response["output"][0]["content"][0]["text"], text);
    assert_eq!((&response["status"], &response["model"]), (&json!("completed"), &json!("m-1")));
    assert_eq!(response["usage"]["output_tokens"], text.len().div_ceil(4));
    let item_ids: Vec<_> = events.iter().filter_map(|event| event.get("item_id")).collect();
    assert!(item_ids.iter().all(|id| **id == response["output"][0]["id"]), "{item_ids:?}");
}

#[tokio::test]
async fn a_shell_call_is_made_once_and_its_result_brings_the_text() {
    let provider = DemoProvider::start().await.unwrap();
    let mut input = vec![user("[[scenario:shell touch a.txt]] please")];
    let reply = respond(provider.address(), "k", json!(input)).await;
    assert_eq!(
        reply.event_types(),
        [
            "response.created",
            "response.output_item.added",
            "response.function_call_arguments.delta",
            "response.function_call_arguments.done",
            "response.output_item.done",
            "response.completed",
        ]
    );
    let call = reply.events().last().unwrap()["response"]["output"][0].clone();
    assert_eq!((&call["type"], &call["name"]), (&json!("function_call"), &json!("exec_command")));
    assert_eq!(call["arguments"], json!({"cmd": "touch a.txt"}).to_string());
    assert_eq!(reply.events()[4]["item"], call);

    input.extend([call.clone(), result(&call, "ok")]);
    let reply = respond(provider.address(), "k", json!(input)).await;
    assert_eq!(
        reply.events().last().unwrap()["response"]["output"][0]["content"][0]["text"],
        "The command has run."
    );
    let played: Vec<_> = provider.requests().into_iter().map(|request| request.played.unwrap()).collect();
    assert_eq!(played, [("shell".to_owned(), 0), ("shell".to_owned(), 1)]);
}

#[tokio::test]
async fn a_call_that_died_with_its_agent_is_made_again_with_the_same_arguments_and_a_new_id() {
    let provider = DemoProvider::start().await.unwrap();
    let mut input = vec![user("[[scenario:approval]]")];
    let call_of = |reply: Reply| reply.events().last().unwrap()["response"]["output"][0].clone();
    let first = call_of(respond(provider.address(), "k", json!(input)).await);
    input.extend([first.clone(), result(&first, "aborted"), user("go on")]);
    let second = call_of(respond(provider.address(), "k", json!(input)).await);
    assert_eq!(first["arguments"], second["arguments"]);
    assert_eq!(
        first["arguments"],
        r#"{"cmd":"touch approved.txt","sandbox_permissions":"require_escalated","justification":"The demo needs it."}"#
    );
    assert_ne!(first["call_id"], second["call_id"]);

    let other = DemoProvider::start().await.unwrap();
    let elsewhere = call_of(respond(other.address(), "k", json!([user("[[scenario:approval]]")])).await);
    assert_ne!(first["call_id"], elsewhere["call_id"]);
}

#[tokio::test]
async fn a_patch_is_a_free_form_call() {
    let reply = play("[[scenario:patch b.txt]]").await;
    let events = reply.events();
    let call = &events.last().unwrap()["response"]["output"][0];
    assert_eq!((&call["type"], &call["name"]), (&json!("custom_tool_call"), &json!("apply_patch")));
    let patch = "*** Begin Patch\n*** Add File: b.txt\n+one line from the demo provider\n*** End Patch\n";
    assert_eq!(call["input"], patch);
    assert_eq!(events[2]["type"], "response.custom_tool_call_input.delta");
}

#[tokio::test]
async fn two_calls_of_one_answer_wait_for_both_results() {
    let provider = DemoProvider::start().await.unwrap();
    let one = json!({"call_id": "c1"});
    let mut input = vec![user("[[scenario:shells]]"), result(&one, "one")];
    let reply = respond(provider.address(), "k", json!(input)).await;
    let calls = reply.events().last().unwrap()["response"]["output"].as_array().unwrap().clone();
    assert_eq!(calls.len(), 2);
    input.extend([result(&calls[0], "two"), result(&calls[1], "three")]);
    respond(provider.address(), "k", json!(input)).await;
    assert_eq!(provider.requests().last().unwrap().played, Some(("shells".to_owned(), 2)));
}

#[tokio::test]
async fn a_cut_stream_has_no_end_and_an_unfinished_one_ends_without_completed() {
    let cut = play("[[scenario:cut]]").await;
    assert!(!cut.whole);
    assert_eq!(cut.event_types().last().unwrap(), "response.output_text.delta");

    let unfinished = play("[[scenario:unfinished]]").await;
    assert!(unfinished.whole);
    assert_eq!(unfinished.event_types().last().unwrap(), "response.output_text.delta");
}

#[tokio::test]
async fn each_refusal_has_its_status_and_the_shape_of_the_api() {
    for (status, code, retry_after) in [
        (400, json!(null), None),
        (401, json!("invalid_api_key"), None),
        (403, json!(null), None),
        (404, json!("model_not_found"), None),
        (429, json!("rate_limit_exceeded"), Some("retry-after: 1\r\n")),
        (500, json!(null), None),
        (503, json!(null), None),
    ] {
        let reply = play(&format!("[[scenario:http-{status}]]")).await;
        let error = &reply.json()["error"];
        assert_eq!((reply.status, &error["code"]), (status, &code));
        assert!(error["message"].is_string() && error["type"].is_string(), "{error}");
        assert_eq!(reply.head.contains("retry-after"), retry_after.is_some());
        assert!(reply.head.contains(retry_after.unwrap_or_default()));
    }
}

#[tokio::test]
async fn a_wrong_key_is_refused_where_a_key_is_demanded() {
    let provider = DemoProvider::start().await.unwrap();
    let input = json!([user("[[scenario:key right]]")]);
    assert_eq!(respond(provider.address(), "wrong", input.clone()).await.status, 401);
    assert_eq!(respond(provider.address(), "right", input).await.status, 200);

    let strict =
        DemoProvider::start_with(Options { bearer: Some("K".into()), ..Options::default() }).await.unwrap();
    for (key, status) in [("L", 401), ("K", 200)] {
        assert_eq!(respond(strict.address(), key, json!("hi")).await.status, status);
        assert_eq!(request(strict.address(), "GET", "/v1/models", key, "").await.status, status);
    }
    let keys: Vec<_> = strict.requests().iter().map(|request| request.bearer().unwrap().to_owned()).collect();
    assert_eq!(keys, ["L", "L", "K", "K"]);
}

#[tokio::test]
async fn every_request_is_kept_with_its_body_also_one_for_nothing() {
    let provider = DemoProvider::start().await.unwrap();
    let reply = request(provider.address(), "POST", "/v1/other?x=1", "k", "not JSON").await;
    assert_eq!((reply.status, reply.json()["error"]["type"].as_str()), (404, Some("invalid_request_error")));
    let reply = request(provider.address(), "POST", "/v1/responses", "k", r#"{"input":"hi"}"#).await;
    assert_eq!(reply.status, 400);
    let models = request(provider.address(), "GET", "/v1/models", "k", "").await.json();
    assert_eq!(models["data"][0]["id"], "demo");

    let kept: Vec<_> = provider
        .requests()
        .into_iter()
        .map(|request| format!("{} {} {} {}", request.number, request.method, request.path, request.body))
        .collect();
    let responses = r#"2 POST /v1/responses {"input":"hi"}"#;
    assert_eq!(kept, ["1 POST /v1/other?x=1 not JSON", responses, "3 GET /v1/models "]);
    assert_eq!(provider.requests()[1].json(), json!({"input": "hi"}));
}

#[tokio::test]
async fn a_request_can_be_waited_for_before_and_after_it_comes() {
    let provider = DemoProvider::start().await.unwrap();
    let later = provider.wait_for(|request| request.body.contains("second"));
    let asked = async {
        respond(provider.address(), "k", json!("first")).await;
        respond(provider.address(), "k", json!("second")).await;
    };
    let (found, ()) = tokio::join!(later, asked);
    assert_eq!(found.number, 2);
    assert_eq!(provider.wait_for(|request| request.body.contains("first")).await.number, 1);
}

#[tokio::test]
async fn a_dropped_provider_closes_its_port_and_its_open_streams() {
    let provider = DemoProvider::start().await.unwrap();
    let address = provider.address();
    let body = json!({"stream": true, "input": "[[scenario:stall]]"}).to_string();
    let mut stream = send(address, "POST", "/v1/responses", "k", &body).await;
    let mut read = String::new();
    while !read.contains("to say ") {
        let mut part = [0; 512];
        let count = stream.read(&mut part).await.unwrap();
        assert_ne!(count, 0, "ended early: {read}");
        read.push_str(&String::from_utf8_lossy(&part[..count]));
    }
    drop(provider);
    // Ends at all, properly or not: a stream left open would wait here for ever.
    let _ = stream.read_to_end(&mut Vec::new()).await;
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_unknown_scenario_is_the_plain_text_and_a_directory_adds_its_own() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("mine.toml"), "[[step]]\nanswer.say = ['it is ', '{argument}']").unwrap();
    fs::write(directory.path().join("notes.md"), "not a scenario").unwrap();
    let options = Options { scenarios: Some(directory.path().to_owned()), ..Options::default() };
    let provider = DemoProvider::start_with(options).await.unwrap();
    let reply = respond(provider.address(), "k", json!("[[scenario:mine a {b}]]")).await;
    assert_eq!(reply.events().last().unwrap()["response"]["output"][0]["content"][0]["text"], "it is a {b}");
    respond(provider.address(), "k", json!("[[scenario:nowhere]]")).await;
    assert_eq!(provider.requests()[1].played, Some(("text".to_owned(), 0)));
}

#[tokio::test]
async fn a_provider_does_not_start_where_others_reach_it_nor_with_a_broken_scenario() {
    let listen: SocketAddr = "0.0.0.0:0".parse().unwrap();
    let refused = DemoProvider::start_with(Options { listen, ..Options::default() }).await;
    assert!(matches!(refused.err(), Some(ProviderError::NotLoopback { address }) if address == listen));

    let running = DemoProvider::start().await.unwrap();
    let taken = DemoProvider::start_with(Options { listen: running.address(), ..Options::default() }).await;
    assert!(
        matches!(taken.err(), Some(ProviderError::Listen { address, .. }) if address == running.address())
    );

    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("broken.toml"), "[[step]]\nwait = 1").unwrap();
    let options = Options { scenarios: Some(directory.path().to_owned()), ..Options::default() };
    let broken = DemoProvider::start_with(options).await;
    assert!(matches!(broken.err(), Some(ProviderError::Parse { name, .. }) if name == "broken"));
}
