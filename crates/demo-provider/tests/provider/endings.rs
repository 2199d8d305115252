//! How an answer ends otherwise than it should, on each wire, as a stream and whole.

use runyard_demo_provider::DemoProvider;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

use crate::client::{Reply, ask_whole, complete, respond, send, user};

const WIRES: [&str; 2] = ["/v1/responses", "/v1/chat/completions"];

/// What each wire sends for a text: the Responses API first.
async fn play(text: &str) -> [Reply; 2] {
    let provider = DemoProvider::start().await.unwrap();
    let messages = json!([{"role": "user", "content": text}]);
    [
        respond(provider.address(), "k", json!([user(text)])).await,
        complete(provider.address(), "k", messages).await,
    ]
}

async fn play_whole(text: &str) -> [Reply; 2] {
    let provider = DemoProvider::start().await.unwrap();
    let [responses, chat] = WIRES;
    [
        ask_whole(provider.address(), responses, "k", text).await,
        ask_whole(provider.address(), chat, "k", text).await,
    ]
}

fn has_finish_reason(chunks: &[Value]) -> bool {
    chunks.iter().any(|chunk| chunk["choices"][0]["finish_reason"].is_string())
}

#[tokio::test]
async fn a_cut_stream_has_no_end_and_an_unfinished_one_ends_without_saying_so() {
    for (scenario, whole) in [("cut", false), ("unfinished", true)] {
        let [responses, chat] = play(&format!("[[scenario:{scenario}]]")).await;
        assert_eq!((responses.whole, chat.whole), (whole, whole), "{scenario}");
        let last = if scenario == "cut" { "never " } else { "all." };
        assert_eq!(responses.event_types().last().unwrap(), "response.output_text.delta");
        assert_eq!(responses.events().last().unwrap()["delta"], last);
        let (chunks, done) = chat.chunks();
        assert_eq!(chunks.last().unwrap()["choices"][0]["delta"], json!({"content": last}));
        assert!(!done && !has_finish_reason(&chunks), "{scenario}: {chunks:?}");
        for reply in play_whole(&format!("[[scenario:{scenario}]]")).await {
            assert_eq!((reply.status, reply.whole), (200, whole), "{scenario}");
            assert!(serde_json::from_str::<Value>(&reply.body).is_err(), "{}", reply.body);
        }
    }
}

#[tokio::test]
async fn a_call_that_is_cut_has_only_a_part_of_its_arguments() {
    let [responses, chat] = play("[[scenario:cut-call]]").await;
    assert!(!responses.whole && !chat.whole);
    assert_eq!(responses.event_types().last().unwrap(), "response.function_call_arguments.delta");
    let half = responses.events().last().unwrap()["delta"].clone();
    assert_eq!(half, r#"{"cmd":"touch"#);
    let (chunks, _) = chat.chunks();
    let delta = &chunks.last().unwrap()["choices"][0]["delta"]["tool_calls"][0];
    assert_eq!(delta["function"]["arguments"], half);
}

#[tokio::test]
async fn malformed_data_follows_good_data_and_then_the_body_ends() {
    for reply in play("[[scenario:malformed]]").await {
        assert!(reply.whole && reply.head.contains("text/event-stream"));
        let (good, bad): (Vec<_>, Vec<_>) = reply
            .body
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .partition(|data| serde_json::from_str::<Value>(data).is_ok());
        assert!(good.len() > 2, "{}", reply.body);
        assert_eq!(bad.len(), 2, "{}", reply.body);
        assert!(reply.body.trim_end().ends_with(bad[1].trim_end()), "nothing follows: {}", reply.body);
    }
    for reply in play_whole("[[scenario:malformed]]").await {
        assert_eq!((reply.status, reply.body.as_str()), (200, "this is not JSON"));
    }
}

#[tokio::test]
async fn a_page_is_a_page_whatever_was_asked_for() {
    for reply in play("[[scenario:html]]").await.into_iter().chain(play_whole("[[scenario:html]]").await) {
        assert_eq!((reply.status, reply.whole), (200, true));
        assert!(reply.head.contains("content-type: text/html"), "{}", reply.head);
        assert!(reply.body.starts_with("<!doctype html>"), "{}", reply.body);
    }
}

#[tokio::test]
async fn a_failure_within_the_stream_says_its_code() {
    for (scenario, code, status) in [
        ("server-error", "server_error", 500),
        ("rate-limit", "rate_limit_exceeded", 429),
        ("quota", "insufficient_quota", 429),
        ("context-length", "context_length_exceeded", 400),
        ("overloaded", "server_is_overloaded", 503),
    ] {
        let text = format!("[[scenario:failed-{scenario}]]");
        let [responses, chat] = play(&text).await;
        assert_eq!((responses.status, responses.whole, chat.status, chat.whole), (200, true, 200, true));
        let last = responses.events().pop().unwrap();
        assert_eq!(
            (&last["type"], &last["response"]["status"]),
            (&json!("response.failed"), &json!("failed"))
        );
        assert_eq!(last["response"]["error"]["code"], code);
        assert_eq!(last["response"]["usage"], Value::Null);
        let (chunks, done) = chat.chunks();
        let error = &chunks.last().unwrap()["error"];
        assert_eq!(error["code"], code);
        assert!(error["message"].is_string() && error["type"].is_string(), "{error}");
        assert!(!done && !has_finish_reason(&chunks));

        let [responses, chat] = play_whole(&text).await;
        assert_eq!((responses.status, &responses.json()["error"]["code"]), (200, &json!(code)));
        assert_eq!((chat.status, &chat.json()["error"]["code"]), (status, &json!(code)));
    }
}

#[tokio::test]
async fn an_incomplete_answer_says_why_and_has_its_usage() {
    let [responses, chat] = play("[[scenario:incomplete]]").await;
    let last = responses.events().pop().unwrap();
    let response = &last["response"];
    assert_eq!((&last["type"], &response["status"]), (&json!("response.incomplete"), &json!("incomplete")));
    assert_eq!(response["incomplete_details"], json!({"reason": "max_output_tokens"}));
    assert_eq!(response["output"][0]["status"], "incomplete");
    assert_eq!(response["usage"]["output_tokens"], 6);
    let (chunks, done) = chat.chunks();
    assert_eq!(chunks[chunks.len() - 2]["choices"][0]["finish_reason"], "length");
    assert_eq!((done, &chunks.last().unwrap()["usage"]["completion_tokens"]), (true, &json!(6)));

    let [responses, chat] = play_whole("[[scenario:incomplete]]").await;
    assert_eq!(responses.json()["incomplete_details"]["reason"], "max_output_tokens");
    assert_eq!(chat.json()["choices"][0]["finish_reason"], "length");
}

/// Reads until it holds this text.
async fn read_until(stream: &mut (impl AsyncReadExt + Unpin), text: &str) {
    let mut read = String::new();
    while !read.contains(text) {
        let mut part = [0; 512];
        let count = stream.read(&mut part).await.unwrap();
        assert_ne!(count, 0, "ended early: {read}");
        read.push_str(&String::from_utf8_lossy(&part[..count]));
    }
}

#[tokio::test]
async fn a_stall_and_a_silence_last_until_the_provider_goes() {
    for path in WIRES {
        let provider = DemoProvider::start().await.unwrap();
        let ask = async |scenario: &str| {
            let text = format!("[[scenario:{scenario}]]");
            let messages = json!([{"role": "user", "content": text}]);
            let body =
                json!({"model": "m-1", "max_tokens": 9, "stream": true, "input": text, "messages": messages})
                    .to_string();
            send(provider.address(), "POST", path, "k", &body).await
        };
        let mut stalled = ask("stall").await;
        read_until(&mut stalled, "to say ").await;
        let mut silent = ask("no-headers").await;
        let asked = provider.wait_for(|request| request.played == Some(("no-headers".into(), 0))).await;
        assert_eq!(asked.status, None);
        // The answer of another is there although it was asked for later: nothing of the silent one's is on its way.
        read_until(&mut ask("text").await, "provider").await;
        let mut part = [0; 64];
        for stream in [&stalled, &silent] {
            assert_eq!(stream.try_read(&mut part).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
        }
        drop(provider);
        for stream in [&mut stalled, &mut silent] {
            // Ends at all, properly or not: a stream left open would wait here for ever.
            let _ = stream.read_to_end(&mut Vec::new()).await;
        }
    }
}

#[tokio::test]
async fn a_failure_may_say_its_status_and_when_to_come_back() {
    for (scenario, word, status) in [("failed-502", "bad_gateway", 502), ("goaway", "server_shutdown", 503)] {
        let [responses, chat] = play(&format!("[[scenario:{scenario}]]")).await;
        let last = responses.events().pop().unwrap();
        assert_eq!(
            (&last["type"], &last["code"], &last["status"]),
            (&json!("error"), &json!(word), &json!(status))
        );
        let error = chat.chunks().0.pop().unwrap()["error"].clone();
        assert_eq!((&error["type"], &error["code"]), (&json!(word), &json!(status)));
    }
    let [responses, chat] = play("[[scenario:failed-rate-limit-wait]]").await;
    assert_eq!(responses.response()["error"]["retry_after"], 7);
    assert_eq!(chat.chunks().0.pop().unwrap()["error"]["retry_after"], 7);
}

#[tokio::test]
async fn two_interleaved_calls_come_a_piece_of_each_in_turn() {
    let [responses, chat] = play("[[scenario:parallel]]").await;
    let is_delta = |event: &Value| event["type"] == "response.function_call_arguments.delta";
    let order: Vec<Value> =
        responses.events().into_iter().filter(is_delta).map(|event| event["output_index"].clone()).collect();
    assert_eq!(order, [0, 1, 0, 1]);
    assert_eq!(responses.response()["output"][1]["arguments"], r#"{"cmd":"echo right"}"#);
    let pieces = chat.chunks().0.into_iter().filter_map(|chunk| {
        let call = chunk["choices"][0]["delta"]["tool_calls"].get(0)?.clone();
        call["id"].is_null().then(|| call["index"].clone())
    });
    assert_eq!(pieces.collect::<Vec<_>>(), [0, 1, 0, 1]);
}

#[tokio::test]
async fn a_thought_is_sealed_where_that_is_asked_for() {
    let provider = DemoProvider::start().await.unwrap();
    for include in [json!([]), json!(["reasoning.encrypted_content"])] {
        let body =
            json!({"model": "m-1", "stream": true, "include": include, "input": "[[scenario:reasoning]]"})
                .to_string();
        let reply = crate::client::request(provider.address(), "POST", WIRES[0], "k", &body).await;
        let sealed = reply.response()["output"][0]["encrypted_content"].is_string();
        assert_eq!(sealed, include != json!([]));
    }
}
