//! Answers as providers send them, on each wire: a thought, a text, and two calls.
#![allow(dead_code, unreachable_pub)]

use runyard_llm::wire::{AnthropicOptions, ChatOptions, ResponsesOptions, Wire};
use serde_json::{Value, json};

pub fn responses() -> Wire {
    Wire::Responses(ResponsesOptions::default())
}

pub fn chat() -> Wire {
    Wire::Chat(ChatOptions::default())
}

pub fn anthropic() -> Wire {
    Wire::Anthropic(AnthropicOptions::default())
}

pub fn stream(events: &[Value]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

pub fn responses_events() -> Vec<Value> {
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "status": "completed",
        "summary": [{"type": "summary_text", "text": "One.\n\nTwo."}], "encrypted_content": "e"});
    vec![
        json!({"type": "response.created", "response": {"status": "in_progress"}}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "reasoning", "id": "rs_1"}}),
        json!({"type": "response.reasoning_summary_part.added", "output_index": 0, "summary_index": 0}),
        json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "One."}),
        json!({"type": "response.reasoning_summary_part.added", "output_index": 0, "summary_index": 1}),
        json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "Two."}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": reasoning}),
        json!({"type": "response.output_item.added", "output_index": 1, "item": {"type": "message"}}),
        json!({"type": "response.output_text.delta", "output_index": 1, "delta": "Hé"}),
        json!({"type": "response.output_text.delta", "output_index": 1, "delta": ""}),
        json!({"type": "response.output_text.delta", "output_index": 1, "delta": "llo\r\n🦀"}),
        json!({"type": "response.output_item.done", "output_index": 1,
            "item": {"type": "message", "content": [{"type": "output_text", "text": "Héllo\r\n🦀"}]}}),
        json!({"type": "response.output_item.added", "output_index": 2,
            "item": {"type": "function_call", "id": "fc", "call_id": "c1", "name": "look", "arguments": ""}}),
        json!({"type": "response.output_item.added", "output_index": 3,
            "item": {"type": "function_call", "id": "fd", "call_id": "c2", "name": "hear", "arguments": ""}}),
        json!({"type": "response.function_call_arguments.delta", "output_index": 3, "delta": "{\"b\":"}),
        json!({"type": "response.function_call_arguments.delta", "output_index": 2, "delta": "{\"a\":1}"}),
        json!({"type": "response.function_call_arguments.delta", "output_index": 3, "delta": "2}"}),
        json!({"type": "response.output_item.done", "output_index": 3,
            "item": {"type": "function_call", "call_id": "c2", "status": "completed", "arguments": "{\"b\":2}"}}),
        json!({"type": "response.output_item.done", "output_index": 2,
            "item": {"type": "function_call", "call_id": "c1", "status": "completed", "arguments": "{\"a\":1}"}}),
        json!({"type": "response.completed", "response": {"status": "completed", "usage": {
            "input_tokens": 90, "input_tokens_details": {"cached_tokens": 60},
            "output_tokens": 20, "output_tokens_details": {"reasoning_tokens": 10}}}}),
    ]
}

pub fn chunk(delta: Value, finish_reason: Option<&str>) -> Value {
    json!({"id": "a1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]})
}

pub fn calls(calls: Value) -> Value {
    chunk(json!({"tool_calls": calls}), None)
}

pub fn chat_events() -> Vec<Value> {
    vec![
        chunk(json!({"role": "assistant", "content": ""}), None),
        chunk(json!({"reasoning_content": "Hm, "}), None),
        chunk(json!({"reasoning_content": "ä."}), None),
        chunk(json!({"content": "Hello"}), None),
        calls(
            json!([{"index": 0, "id": "c1", "type": "function", "function": {"name": "look", "arguments": ""}}]),
        ),
        calls(
            json!([{"index": 1, "id": "c2", "type": "function", "function": {"name": "hear", "arguments": "{\"b\""}}]),
        ),
        calls(
            json!([{"index": 0, "function": {"arguments": "{\"a\":1}"}}, {"index": 1, "function": {"arguments": ":2}"}}]),
        ),
        chunk(json!({}), Some("tool_calls")),
        json!({"id": "a1", "choices": [], "usage": {"prompt_tokens": 90, "completion_tokens": 20,
            "prompt_tokens_details": {"cached_tokens": 60}, "completion_tokens_details": {"reasoning_tokens": 10}}}),
    ]
}

pub fn anthropic_events() -> Vec<Value> {
    let start = |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let delta =
        |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let stop = |index: u64| json!({"type": "content_block_stop", "index": index});
    vec![
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 20, "cache_creation_input_tokens": 10,
            "cache_read_input_tokens": 60, "output_tokens": 1}}}),
        start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        json!({"type": "ping"}),
        delta(0, json!({"type": "thinking_delta", "thinking": "Hm, ä."})),
        delta(0, json!({"type": "signature_delta", "signature": "sig"})),
        stop(0),
        start(1, json!({"type": "redacted_thinking", "data": "xyz"})),
        stop(1),
        start(2, json!({"type": "text", "text": ""})),
        delta(2, json!({"type": "text_delta", "text": "Hello 🦀"})),
        stop(2),
        start(3, json!({"type": "tool_use", "id": "c1", "name": "look", "input": {}})),
        start(4, json!({"type": "tool_use", "id": "c2", "name": "hear", "input": {}})),
        delta(4, json!({"type": "input_json_delta", "partial_json": "{\"b\":"})),
        delta(3, json!({"type": "input_json_delta", "partial_json": ""})),
        delta(4, json!({"type": "input_json_delta", "partial_json": "2}"})),
        stop(3),
        stop(4),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 20,
            "output_tokens_details": {"thinking_tokens": 10}}}),
        json!({"type": "message_stop"}),
    ]
}

pub fn all() -> [(Wire, Vec<Value>); 3] {
    [(responses(), responses_events()), (chat(), chat_events()), (anthropic(), anthropic_events())]
}
