//! How the chunks of a chat completion become the events that a client of the Responses API waits for.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod answer;

use answer::{chunk, done, finish, last, piece, said, translated};
use serde_json::{Value, json};

/// The events without what is in every one of them, with the items of an answer by their type.
fn names(events: &[Value]) -> Vec<String> {
    let kind =
        |event: &Value| event["item"]["type"].as_str().map_or(String::new(), |kind| format!(" {kind}"));
    events
        .iter()
        .map(|event| {
            let name = event["type"].as_str().unwrap();
            format!("{}{}", name.strip_prefix("response.").unwrap(), kind(event))
        })
        .collect()
}

#[test]
fn b15_text_is_a_message_in_the_order_that_codex_needs() {
    let usage = json!({"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13, "prompt_cache_hit_tokens": 8,
        "completion_tokens_details": {"reasoning_tokens": 2}});
    let events = translated(&[
        chunk(json!({"role": "assistant", "content": ""})),
        said("Hel"),
        said("lo"),
        finish("stop"),
        json!({"choices": [], "usage": usage}).to_string(),
        done(),
    ]);
    assert_eq!(
        names(&events),
        [
            "created",
            "output_item.added message",
            "content_part.added",
            "output_text.delta",
            "output_text.delta",
            "output_text.done",
            "content_part.done",
            "output_item.done message",
            "completed",
        ]
    );
    let message = json!({"type": "message", "id": "msg_r_0", "status": "completed", "role": "assistant",
        "content": [{"type": "output_text", "text": "Hello", "annotations": []}]});
    let response = json!({
        "id": "r", "object": "response", "status": "completed", "model": "m", "output": [message], "error": null,
        "incomplete_details": null,
        "usage": {"input_tokens": 9, "input_tokens_details": {"cached_tokens": 8}, "output_tokens": 4,
            "output_tokens_details": {"reasoning_tokens": 2}, "total_tokens": 13},
    });
    assert_eq!(last(&events)["response"], response);
    assert_eq!(
        events[3],
        json!({"type": "response.output_text.delta", "item_id": "msg_r_0", "output_index": 0, "content_index": 0,
            "delta": "Hel", "sequence_number": 3})
    );
}

#[test]
fn reasoning_is_an_item_of_its_own_before_what_is_said() {
    let thought = |text: &str| chunk(json!({"reasoning_content": text, "content": null}));
    let events = translated(&[thought("h"), thought("m"), said("ok"), finish("stop"), done()]);
    assert_eq!(
        names(&events)[..8],
        [
            "created",
            "output_item.added reasoning",
            "reasoning_summary_part.added",
            "reasoning_summary_text.delta",
            "reasoning_summary_text.delta",
            "reasoning_summary_text.done",
            "reasoning_summary_part.done",
            "output_item.done reasoning",
        ]
    );
    let output = &last(&events)["response"]["output"];
    let reasoning =
        json!({"type": "reasoning", "id": "rs_r_0", "summary": [{"type": "summary_text", "text": "hm"}]});
    assert_eq!(output[0], reasoning);
    assert_eq!(output[1]["content"][0]["text"], json!("ok"));
    let other_name = translated(&[chunk(json!({"reasoning": "hm"})), finish("stop"), done()]);
    assert_eq!(last(&other_name)["response"]["output"], json!([reasoning]));
}

#[test]
fn a_refusal_is_what_the_model_says() {
    let events = translated(&[chunk(json!({"refusal": "No."})), finish("stop"), done()]);
    assert_eq!(last(&events)["response"]["output"][0]["content"][0]["text"], json!("No."));
}

#[test]
fn a_functions_arguments_come_in_pieces() {
    let events = translated(&[
        said("look"),
        piece(
            json!({"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": ""}}),
        ),
        piece(json!({"index": 0, "function": {"arguments": "{\"a\""}})),
        piece(json!({"index": 0, "function": {"arguments": ":1}"}})),
        finish("tool_calls"),
        done(),
    ]);
    assert_eq!(
        names(&events)[6..],
        [
            "output_item.done message",
            "output_item.added function_call",
            "function_call_arguments.delta",
            "function_call_arguments.delta",
            "function_call_arguments.done",
            "output_item.done function_call",
            "completed",
        ]
    );
    let call = json!({"type": "function_call", "id": "fc_r_1", "status": "completed", "call_id": "c1", "name": "f",
        "arguments": "{\"a\":1}"});
    assert_eq!(last(&events)["response"]["output"][1], call);
}

#[test]
fn calls_that_come_interleaved_are_told_apart() {
    let events = translated(&[
        piece(json!({"index": 0, "id": "c1", "function": {"name": "f", "arguments": "{\"a\":"}})),
        piece(json!({"index": 1, "id": "c2", "function": {"name": "g", "arguments": "{\"b\":"}})),
        piece(json!({"index": 0, "function": {"arguments": "1}"}})),
        piece(json!({"index": 1, "function": {"arguments": "2}"}})),
        finish("tool_calls"),
        done(),
    ]);
    assert_eq!(calls(&events), [("c1", "f", "{\"a\":1}"), ("c2", "g", "{\"b\":2}")]);
    let ids: Vec<&str> = events
        .iter()
        .filter(|event| event["type"] == "response.function_call_arguments.delta")
        .map(|event| event["item_id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["fc_r_0", "fc_r_1", "fc_r_0", "fc_r_1"]);
}

fn calls(events: &[Value]) -> Vec<(&str, &str, &str)> {
    let output = last(events)["response"]["output"].as_array().unwrap();
    output
        .iter()
        .filter_map(|item| {
            Some((item["call_id"].as_str()?, item["name"].as_str()?, item["arguments"].as_str()?))
        })
        .collect()
}

#[test]
fn a_name_or_an_id_may_come_late_or_not_at_all() {
    let events = translated(&[
        piece(json!({"index": 0, "function": {"arguments": "{\"a\""}})),
        piece(json!({"index": 0, "function": {"name": "f"}})),
        piece(json!({"index": 1, "function": {"name": "g", "arguments": "{}"}})),
        piece(json!({"index": 0, "id": "c1", "function": {"name": "", "arguments": ":1}"}})),
        finish("tool_calls"),
        done(),
    ]);
    assert_eq!(calls(&events), [("c1", "f", "{\"a\":1}"), ("call_r_1", "g", "{}")]);
}

#[test]
fn calls_that_come_whole_may_share_a_place_or_have_none() {
    for places in [[json!(0), json!(0)], [json!(null), json!(null)]] {
        let [first, second] = places;
        let events = translated(&[
            piece(json!({"index": first, "id": "c1", "function": {"name": "f", "arguments": "{}"}})),
            piece(json!({"index": second, "id": "c2", "function": {"name": "f", "arguments": "[]"}})),
            finish("tool_calls"),
            done(),
        ]);
        assert_eq!(calls(&events), [("c1", "f", "{}"), ("c2", "f", "[]")]);
    }
}

#[test]
fn a_function_that_was_a_custom_tool_is_called_as_one() {
    let events = translated(&[
        piece(
            json!({"index": 0, "id": "c1", "function": {"name": "apply_patch", "arguments": "{\"input\": \"*** B"}}),
        ),
        piece(json!({"index": 0, "function": {"arguments": "egin\\n\"}"}})),
        finish("tool_calls"),
        done(),
    ]);
    assert_eq!(
        names(&events)[1..],
        [
            "output_item.added custom_tool_call",
            "custom_tool_call_input.delta",
            "custom_tool_call_input.done",
            "output_item.done custom_tool_call",
            "completed",
        ]
    );
    let call = json!({"type": "custom_tool_call", "id": "ctc_r_0", "status": "completed", "call_id": "c1",
        "name": "apply_patch", "input": "*** Begin\n"});
    assert_eq!(last(&events)["response"]["output"], json!([call]));
}

#[test]
fn a_tool_of_a_group_is_called_by_its_group_and_name() {
    let ping = json!({"index": 0, "id": "c1", "function": {"name": "mcp__demo__ping", "arguments": "{}"}});
    let events = translated(&[piece(ping), finish("tool_calls"), done()]);
    let item = &last(&events)["response"]["output"][0];
    assert_eq!((&item["namespace"], &item["name"]), (&json!("mcp__demo"), &json!("ping")));
    let unknown = json!({"index": 0, "id": "c1", "function": {"name": "nobody", "arguments": "{}"}});
    let events = translated(&[piece(unknown), finish("tool_calls"), done()]);
    assert_eq!(calls(&events), [("c1", "nobody", "{}")]);
}
