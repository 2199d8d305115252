//! What of a Responses request cannot be said in chat completions, and is refused.
#![allow(clippy::unwrap_used, missing_docs)]

mod bodies;

use bodies::{call, function, no_place, refused, request, result, user};
use runyard_llm::{LlmError, NAME_CHARS_MAX, translate::to_chat};
use serde_json::json;

#[test]
fn a_call_without_its_result_is_refused_and_so_is_a_result_without_its_call() {
    let alone = |what: &str, path: &str| {
        format!("the {what} at `{path}` stands alone: a call needs its result, and a result its call")
    };
    refused(json!({"input": [call("1")]}), &alone("call", "input[0]"));
    refused(json!({"input": [user("a"), result("1", "x")]}), &alone("result", "input[1]"));
    refused(json!({"input": [result("1", "x"), call("1")]}), &alone("result", "input[0]"));
    refused(json!({"input": [call("1"), result("1", "x"), result("1", "y")]}), &alone("result", "input[2]"));
}

#[test]
fn two_tools_with_one_name_are_refused() {
    let group = json!({"type": "namespace", "name": "a", "tools": [function("b")]});
    refused(
        json!({"tools": [function("a__b"), group]}),
        "the tool at `tools[1].tools[0]` would be called `a__b`, like another one",
    );
}

#[test]
fn what_chat_completions_cannot_say_is_refused_by_its_place_and_name() {
    for field in
        ["previous_response_id", "conversation", "prompt", "max_tool_calls", "top_logprobs", "new_thing"]
    {
        refused(json!({field: "x"}), &no_place("field", field, field));
    }
    for tool in [
        "web_search",
        "file_search",
        "computer_use_preview",
        "local_shell",
        "mcp",
        "image_generation",
        "code_interpreter",
        "tool_search",
        "new_thing",
    ] {
        refused(json!({"tools": [{"type": tool}]}), &no_place("tool", tool, "tools[0]"));
    }
    for item in [
        "local_shell_call",
        "web_search_call",
        "tool_search_call",
        "item_reference",
        "compaction",
        "new_thing",
    ] {
        refused(json!({"input": [user("a"), {"type": item}]}), &no_place("item", item, "input[1]"));
    }
    for part in ["input_file", "input_audio", "new_thing"] {
        let input = json!([{"role": "user", "content": [{"type": part}]}]);
        refused(json!({"input": input}), &no_place("part", part, "input[0].content[0]"));
    }
    #[rustfmt::skip]
    let others = [
        (json!({"store": true}), "value", "true", "store"),
        (json!({"background": true}), "value", "true", "background"),
        (json!({"stream": false}), "value", "false", "stream"),
        (json!({"truncation": "auto"}), "value", "auto", "truncation"),
        (json!({"include": ["file_search_call.results"]}), "value", "file_search_call.results", "include[0]"),
        (json!({"input": [{"role": "critic", "content": "x"}]}), "role", "critic", "input[0].role"),
        (json!({"input": [{"role": "user", "content": "x", "mood": "bad"}]}), "field", "mood", "input[0].mood"),
        (json!({"input": [{"type": "reasoning", "summary": [], "encrypted_content": "x"}]}), "field", "encrypted_content", "input[0].encrypted_content"),
        (json!({"text": {"format": {"type": "yaml"}}}), "format", "yaml", "text.format"),
        (json!({"text": {"colour": "red"}}), "field", "colour", "text.colour"),
        (json!({"reasoning": {"depth": 3}}), "field", "depth", "reasoning.depth"),
        (json!({"tools": [{"type": "custom", "name": "c", "format": {"type": "pdf"}}]}), "format", "pdf", "tools[0].format"),
        (json!({"tools": [{"type": "function", "name": "f", "defer_loading": true}]}), "value", "true", "tools[0].defer_loading"),
        (json!({"tools": [{"type": "namespace", "name": "n", "tools": [{"type": "mcp"}]}]}), "tool", "mcp", "tools[0].tools[0]"),
    ];
    for (fields, what, name, path) in others {
        refused(fields, &no_place(what, name, path));
    }
}

#[test]
fn what_is_no_request_is_malformed() {
    assert_eq!(to_chat(json!([])).unwrap_err().to_string(), "`request` should be an object");
    refused(json!({"model": 3}), "`model` should be a text");
    refused(json!({"input": 3}), "`input` should be a list");
    refused(json!({"input": [3]}), "`input[0]` should be an object");
    refused(json!({"store": "no"}), "`store` should be true or false");
    refused(json!({"max_output_tokens": 1.5}), "`max_output_tokens` should be a whole number");
    refused(json!({"temperature": "hot"}), "`temperature` should be a number");
}

#[test]
fn b11_a_refusal_repeats_no_more_than_a_name() {
    let long = "x".repeat(1000) + "\n";
    let error = to_chat(request(json!({"tools": [{"type": long, "key": "sk-secret"}]}))).unwrap_err();
    let LlmError::Untranslatable { name, .. } = &error else { unreachable!("{error}") };
    assert_eq!(name.len(), NAME_CHARS_MAX);
    let body = error.body();
    assert_eq!(body["error"]["param"], json!("tools[0]"));
    assert_eq!(body["error"]["code"], json!("untranslatable"));
    assert_eq!(body["error"]["type"], json!("invalid_request_error"));
    assert!(!body.to_string().contains("sk-secret"));
}
