//! How an answer ends: whole, cut short, failed, or not at all.
#![allow(clippy::unwrap_used, missing_docs)]

mod answer;

use answer::{done, finish, last, piece, said, tools, translated};
use runyard_llm::{
    LlmError,
    translate::{ANSWER_BYTES_MAX, CALLS_MAX, Stream},
};
use serde_json::{Value, json};

#[track_caller]
fn fails(chunks: &[String], code: &str) {
    let events = translated(chunks);
    let response = &last(&events)["response"];
    assert_eq!(last(&events)["type"], json!("response.failed"));
    assert_eq!((&response["status"], &response["error"]["code"]), (&json!("failed"), &json!(code)));
    assert!(!is_any_call_whole(&events), "a client would carry out a call of an answer that failed");
}

fn is_any_call_whole(events: &[Value]) -> bool {
    let whole = events.iter().filter(|event| event["type"] == "response.output_item.done");
    whole.into_iter().any(|event| event["item"]["type"].as_str().unwrap().ends_with("call"))
}

#[test]
fn an_answer_that_cannot_be_understood_fails_and_none_of_its_calls_is_whole() {
    let good = piece(json!({"index": 0, "id": "c1", "function": {"name": "f", "arguments": "{}"}}));
    let patch = |arguments: &str| {
        piece(json!({"index": 1, "id": "c2", "function": {"name": "apply_patch", "arguments": arguments}}))
    };
    for arguments in [
        "*** Begin Patch",
        "{\"input\": \"cut",
        "{\"input\": 3}",
        "{\"patch\": \"x\"}",
        "{\"input\":\"x\",\"y\":1}",
    ] {
        fails(&[good.clone(), patch(arguments), finish("tool_calls"), done()], "invalid_custom_tool_input");
    }
    let nameless = piece(json!({"index": 1, "id": "c2", "function": {"arguments": "{}"}}));
    fails(&[good.clone(), nameless, finish("tool_calls"), done()], "invalid_tool_call");
    let same = piece(json!({"index": 1, "id": "c1", "function": {"name": "f", "arguments": "{}"}}));
    fails(&[good.clone(), same, finish("tool_calls"), done()], "invalid_tool_call");
    fails(&[good, finish("boredom"), done()], "unknown_finish_reason");
    let many: Vec<String> =
        (0..=CALLS_MAX).map(|index| piece(json!({"index": index, "function": {"name": "f"}}))).collect();
    fails(&many, "too_many_tool_calls");
}

#[test]
fn what_the_provider_says_of_its_failure_is_passed_on() {
    let error = |error: Value| json!({"error": error}).to_string();
    fails(
        &[said("a"), error(json!({"message": "no", "type": "t", "code": "rate_limit_exceeded"}))],
        "rate_limit_exceeded",
    );
    fails(&[error(json!({"message": "no", "type": "overloaded", "code": 529}))], "overloaded");
    fails(&[error(json!("no"))], "server_error");
    fails(&[said("a"), finish("insufficient_system_resource"), done()], "server_is_overloaded");
    let events = translated(&[error(json!({"message": "x".repeat(5000)}))]);
    assert_eq!(last(&events)["response"]["error"]["message"].as_str().unwrap().len(), 1000);
}

#[test]
fn an_answer_that_a_limit_cut_is_incomplete_and_its_calls_are_not_whole() {
    let call = piece(json!({"index": 0, "id": "c1", "function": {"name": "f", "arguments": "{}"}}));
    for (reason, told) in [("length", "max_output_tokens"), ("content_filter", "content_filter")] {
        let events = translated(&[said("a"), call.clone(), finish(reason), done()]);
        assert_eq!(last(&events)["type"], json!("response.incomplete"));
        let response = &last(&events)["response"];
        assert_eq!(response["incomplete_details"], json!({"reason": told}));
        assert_eq!(response["output"].as_array().unwrap().len(), 1);
        assert!(!is_any_call_whole(&events));
    }
}

#[test]
fn a_stream_without_a_reason_has_no_last_event() {
    for chunks in [vec![], vec![said("a")], vec![said("a"), done()]] {
        let events = translated(&chunks);
        assert!(events.iter().all(|event| !answer::is_last(event)), "{events:?}");
    }
}

#[test]
fn a_reason_is_the_end_also_where_nothing_marks_it() {
    let events = translated(&[said("a"), finish("stop")]);
    assert_eq!(last(&events)["type"], json!("response.completed"));
    assert_eq!(last(&events)["response"]["usage"], json!(null));
}

#[test]
fn what_comes_after_the_end_is_not_looked_at() {
    let mut stream = Stream::new("r", "m", tools());
    stream.chunk(&finish("stop")).unwrap();
    assert!(!stream.is_over());
    assert!(stream.chunk("[DONE]").unwrap()[0].is_last());
    assert!(stream.is_over());
    assert_eq!(stream.chunk(&said("more")), Ok(vec![]));
    assert_eq!(stream.chunk("not json"), Ok(vec![]));
    assert_eq!(stream.finish(), b"");
}

#[test]
fn what_is_no_chunk_cuts_the_stream() {
    for data in [
        "<html>",
        "3",
        "{\"choices\": 3}",
        "{\"choices\": [{\"index\": 1, \"delta\": {\"content\": \"x\"}}]}",
    ] {
        let mut stream = Stream::new("r", "m", tools());
        assert_eq!(stream.push(format!("data: {data}\n\n").as_bytes()), Err(LlmError::NotAChunk), "{data}");
    }
}

#[test]
fn a_cut_stream_has_no_last_event_although_the_model_said_why_it_stopped() {
    let mut stream = Stream::new("r", "m", tools());
    stream.chunk(&finish("stop")).unwrap();
    assert_eq!(stream.chunk("<html>"), Err(LlmError::NotAChunk));
    assert_eq!(stream.finish(), b"");
}

#[test]
fn an_empty_reason_is_none() {
    let events = translated(&[said("a"), finish(""), said("b"), finish("stop"), finish(""), done()]);
    assert_eq!(last(&events)["response"]["output"][0]["content"][0]["text"], json!("ab"));
    assert_eq!(last(&events)["type"], json!("response.completed"));
}

#[test]
fn an_answer_without_end_is_cut() {
    let mut stream = Stream::new("r", "m", tools());
    let text = said(&"x".repeat(1024 * 1024));
    for _ in 0..ANSWER_BYTES_MAX / (1024 * 1024) {
        stream.chunk(&text).unwrap();
    }
    assert_eq!(stream.chunk(&said("x")), Err(LlmError::AnswerTooLong { max: ANSWER_BYTES_MAX }));
}
