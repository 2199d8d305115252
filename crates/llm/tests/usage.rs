//! What an answer cost, as it is told by either API.
#![allow(clippy::unwrap_used, missing_docs)]

use runyard_llm::usage::{Told, Usage, of_body};
use serde_json::{Value, json};

const COST: Usage = Usage { input_tokens: 30, output_tokens: 12, cached_tokens: 20, reasoning_tokens: 5 };

fn responses() -> Value {
    json!({"input_tokens": 30, "input_tokens_details": {"cached_tokens": 20}, "output_tokens": 12,
        "output_tokens_details": {"reasoning_tokens": 5}, "total_tokens": 42})
}

fn chat() -> Value {
    json!({"prompt_tokens": 30, "completion_tokens": 12, "total_tokens": 42,
        "prompt_tokens_details": {"cached_tokens": 20}, "completion_tokens_details": {"reasoning_tokens": 5}})
}

fn metered(events: &[Value]) -> Option<Usage> {
    let mut told = Told::default();
    events.iter().for_each(|event| told.take(&event.to_string()));
    told.usage()
}

#[test]
fn a_stream_of_responses_tells_it_with_its_last_event() {
    for last in ["response.completed", "response.incomplete", "response.failed"] {
        let events = [
            json!({"type": "response.created", "response": {"usage": null}}),
            json!({"type": "response.output_text.delta", "delta": "\"usage\": {\"input_tokens\": 1}"}),
            json!({"type": last, "response": {"usage": responses()}}),
        ];
        assert_eq!(metered(&events), Some(COST));
    }
}

#[test]
fn a_stream_of_chunks_tells_it_near_its_end_and_the_last_word_counts() {
    let early = json!({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 0}});
    let late = json!({"choices": [], "usage": chat()});
    assert_eq!(metered(&[early, late, json!({"choices": [], "usage": null})]), Some(COST));
}

#[test]
fn a_stream_of_messages_tells_the_input_when_it_begins_and_the_output_at_its_end() {
    let input = json!({"input_tokens": 6, "cache_creation_input_tokens": 4, "cache_read_input_tokens": 20,
        "output_tokens": 1});
    let began = json!({"type": "message_start", "message": {"usage": input}});
    let mut told = Told::default();
    told.take(&began.to_string());
    assert_eq!((told.usage(), told.input_tokens()), (None, Some(30)), "no answer has cost anything yet");
    told.take(&json!({"type": "message_delta", "usage": {"output_tokens": 12}}).to_string());
    let cost = Usage { input_tokens: 30, output_tokens: 12, ..Usage::default() };
    assert_eq!(told.usage(), Some(cost));
    let whole = json!({"type": "message_delta", "usage": {"input_tokens": 6, "cache_creation_input_tokens": 4,
        "cache_read_input_tokens": 20, "output_tokens": 12}});
    assert_eq!(metered(&[began, whole]), Some(Usage { cached_tokens: 20, ..cost }));
}

#[test]
fn a_whole_body_tells_it_too() {
    assert_eq!(of_body(json!({"output": [], "usage": responses()}).to_string().as_bytes()), Some(COST));
    assert_eq!(of_body(json!({"choices": [], "usage": chat()}).to_string().as_bytes()), Some(COST));
    let deepseek =
        json!({"usage": {"prompt_tokens": 30, "completion_tokens": 12, "prompt_cache_hit_tokens": 20}});
    assert_eq!(of_body(deepseek.to_string().as_bytes()), Some(Usage { reasoning_tokens: 0, ..COST }));
}

#[test]
fn where_nothing_is_told_there_is_nothing() {
    assert_eq!(metered(&[json!({"choices": []}), json!("[DONE]")]), None);
    assert_eq!(of_body(b"<html>"), None);
    assert_eq!(of_body(b"{\"usage\": {}}"), None);
    assert_eq!(of_body(b"{\"usage\": 3}"), None);
}
