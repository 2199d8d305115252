//! How each thing of a Responses request is said in chat completions.
#![allow(clippy::unwrap_used, missing_docs)]

mod bodies;

use bodies::{call, chat, function, made, messages, no_place, refused, result, says, user};
use serde_json::{Value, json};

#[test]
fn instructions_and_developers_speak_as_the_system() {
    let fields = json!({"instructions": "be brief", "input": [
        {"role": "developer", "content": "a"}, {"role": "system", "content": "b"}, {"role": "user", "content": "c"},
    ]});
    let expected = json!([
        {"role": "system", "content": "be brief"}, {"role": "system", "content": "a"},
        {"role": "system", "content": "b"}, {"role": "user", "content": "c"},
    ]);
    assert_eq!(chat(fields)["messages"], expected);
    messages(json!("hello"), json!([{"role": "user", "content": "hello"}]));
}

#[test]
fn what_the_model_did_in_one_go_is_one_message_and_its_results_follow() {
    let input = json!([
        user("go"),
        {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "first"}],
         "content": [{"type": "reasoning_text", "text": "then"}], "encrypted_content": "sealed"},
        {"type": "message", "role": "assistant", "status": "completed", "id": "m", "phase": "commentary",
         "content": [{"type": "output_text", "text": "look", "annotations": [], "logprobs": []}]},
        call("1"), call("2"), result("1", "one"), result("2", "two"),
        {"type": "message", "role": "assistant", "content": "done"},
    ]);
    messages(
        input,
        json!([
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": "look", "reasoning_content": "first\n\nthen", "tool_calls": [made("1"), made("2")]},
            {"role": "tool", "tool_call_id": "1", "content": "one"},
            {"role": "tool", "tool_call_id": "2", "content": "two"},
            {"role": "assistant", "content": "done"},
        ]),
    );
}

#[test]
fn a_result_follows_its_call_also_where_somebody_spoke_in_between() {
    let input = json!([call("1"), call("2"), user("hurry"), result("2", "two"), result("1", "one")]);
    messages(
        input,
        json!([
            {"role": "assistant", "content": null, "tool_calls": [made("1"), made("2")]},
            {"role": "tool", "tool_call_id": "1", "content": "one"},
            {"role": "tool", "tool_call_id": "2", "content": "two"},
            {"role": "user", "content": "hurry"},
        ]),
    );
}

#[test]
fn an_id_may_come_again_in_a_later_turn() {
    messages(
        json!([call("1"), result("1", "a"), call("1"), result("1", "b")]),
        json!([
            {"role": "assistant", "content": null, "tool_calls": [made("1")]},
            {"role": "tool", "tool_call_id": "1", "content": "a"},
            {"role": "assistant", "content": null, "tool_calls": [made("1")]},
            {"role": "tool", "tool_call_id": "1", "content": "b"},
        ]),
    );
}

#[test]
fn a_custom_call_of_the_past_is_a_function_with_one_text() {
    let input = json!([
        {"type": "custom_tool_call", "call_id": "1", "name": "apply_patch", "input": "*** \"x\"\n"},
        {"type": "custom_tool_call_output", "call_id": "1", "output": [
            {"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]},
    ]);
    messages(
        input,
        json!([
            {"role": "assistant", "content": null, "tool_calls": [{"type": "function", "id": "1",
                "function": {"name": "apply_patch", "arguments": "{\"input\":\"*** \\\"x\\\"\\n\"}"}}]},
            {"role": "tool", "tool_call_id": "1", "content": "a\nb"},
        ]),
    );
}

#[test]
fn reasoning_alone_is_a_message_that_says_nothing() {
    let thought = json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]});
    messages(
        json!([thought, user("a")]),
        json!([{"role": "assistant", "content": "", "reasoning_content": "hm"}, {"role": "user", "content": "a"}]),
    );
    messages(
        json!([{"type": "reasoning", "summary": []}, user("a")]),
        json!([{"role": "user", "content": "a"}]),
    );
}

#[test]
fn a_persons_picture_is_shown_and_any_other_refused() {
    let image = json!({"type": "input_image", "image_url": "data:x", "detail": "high"});
    messages(
        json!([{"role": "user", "content": [{"type": "input_text", "text": "see"}, image]}]),
        json!([{"role": "user", "content": [
            {"type": "text", "text": "see"},
            {"type": "image_url", "image_url": {"url": "data:x", "detail": "high"}},
        ]}]),
    );
    let said = json!({"input": [{"role": "assistant", "content": [image]}]});
    refused(said, &no_place("part", "input_image", "input[0].content[0]"));
    let found = json!({"type": "function_call_output", "call_id": "1", "output": [{"type": "input_text", "text": "x"}, image]});
    refused(json!({"input": [call("1"), found]}), &no_place("part", "input_image", "input[1].output[1]"));
    let stored = json!({"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]});
    refused(stored, "`input[0].content[0].image_url` should be a text");
}

#[test]
fn tools_become_functions() {
    let tools = json!([
        {"type": "function", "name": "f", "description": "does f", "strict": false, "parameters": {"type": "object"}},
        {"type": "custom", "name": "c", "description": "does c", "format": {"type": "grammar", "syntax": "lark", "definition": "start: x"}},
        {"type": "namespace", "name": "mcp__demo", "description": "About the demo.", "tools": [
            {"type": "function", "name": "ping", "parameters": {"type": "object"}}]},
    ]);
    let one_text = json!({
        "type": "object", "required": ["input"], "additionalProperties": false,
        "properties": {"input": {"type": "string", "description": "The tool's whole input, as it is."}},
    });
    says(
        json!({"tools": tools, "tool_choice": "auto", "parallel_tool_calls": true}),
        json!({
            "messages": [{"role": "system", "content": "Tools whose names begin with `mcp__demo__`: About the demo."}],
            "tools": [
                {"type": "function", "function":
                    {"name": "f", "description": "does f", "parameters": {"type": "object"}, "strict": false}},
                {"type": "function", "function": {"name": "c",
                    "description": "does c\n\n`input` must fit this lark grammar:\nstart: x", "parameters": one_text}},
                {"type": "function", "function": {"name": "mcp__demo__ping", "parameters": {"type": "object"}}},
            ],
            "tool_choice": "auto",
        }),
    );
}

#[test]
fn what_a_group_is_for_is_said_behind_what_the_application_says_first() {
    let group = json!({"type": "namespace", "name": "g", "description": "d", "tools": [function("f"), function("h")]});
    let system = |content: &str| json!({"role": "system", "content": content});
    let input =
        json!([{"role": "developer", "content": "b"}, user("c"), {"role": "developer", "content": "e"}]);
    assert_eq!(
        chat(json!({"instructions": "a", "input": input, "tools": [group]}))["messages"],
        json!([
            system("a"),
            system("b"),
            system("Tools whose names begin with `g__`: d"),
            {"role": "user", "content": "c"},
            system("e"),
        ]),
    );
}

#[test]
fn a_choice_of_tools_is_passed_on_where_there_are_tools() {
    let tools = || json!([function("f")]);
    let choose =
        |choice: Value| chat(json!({"tools": tools(), "tool_choice": choice}))["tool_choice"].clone();
    assert_eq!(choose(json!("none")), json!("none"));
    assert_eq!(choose(json!("required")), json!("required"));
    let named = json!({"type": "function", "function": {"name": "f"}});
    assert_eq!(choose(json!({"type": "function", "name": "f"})), named);
    assert_eq!(choose(json!({"type": "custom", "name": "f"})), named);
    says(json!({"tool_choice": "auto", "parallel_tool_calls": false}), json!({}));
    let other = |choice: Value, name: &str| {
        refused(
            json!({"tools": tools(), "tool_choice": choice}),
            &no_place("tool choice", name, "tool_choice"),
        );
    };
    other(json!({"type": "function", "name": "g"}), "g");
    other(json!({"type": "web_search"}), "web_search");
    other(json!("sometimes"), "sometimes");
    refused(json!({"tool_choice": "required"}), &no_place("tool choice", "required", "tool_choice"));
}

#[test]
fn what_shapes_the_answer_is_passed_on() {
    let fields = json!({
        "tools": [function("f")], "parallel_tool_calls": false, "reasoning": {"effort": "high", "summary": "auto"},
        "max_output_tokens": 7, "temperature": 0.2, "top_p": 1,
    });
    let chat = chat(fields);
    assert_eq!(chat["parallel_tool_calls"], json!(false));
    assert_eq!(chat["reasoning_effort"], json!("high"));
    assert_eq!(
        (&chat["max_tokens"], &chat["temperature"], &chat["top_p"]),
        (&json!(7), &json!(0.2), &json!(1))
    );
    let format = json!({"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": true});
    says(
        json!({"text": {"format": format, "verbosity": "low"}}),
        json!({"response_format": {"type": "json_schema",
            "json_schema": {"name": "n", "schema": {"type": "object"}, "strict": true}}}),
    );
    says(
        json!({"text": {"format": {"type": "json_object"}}}),
        json!({"response_format": {"type": "json_object"}}),
    );
    says(json!({"text": {"format": {"type": "text"}}}), json!({}));
}

#[test]
fn what_says_nothing_about_the_answer_may_be_there() {
    says(
        json!({
            "store": false, "background": false, "truncation": "disabled", "include": ["reasoning.encrypted_content"],
            "client_metadata": {"a": "b"}, "metadata": {}, "prompt_cache_key": "k", "prompt_cache_retention": "24h",
            "safety_identifier": "s", "user": "u", "service_tier": "priority", "stream_options": {},
            "previous_response_id": null,
        }),
        json!({}),
    );
}
