//! What providers of chat completions refuse.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Checked, check_least, check_name, each, some_of};

const NAME_CHARS_MAX: usize = 64;

pub(super) fn check(asked: &Value) -> Checked {
    let messages = some_of("messages", &asked["messages"])?;
    check_least("max_tokens", &asked["max_tokens"], 1)?;
    check_least("max_completion_tokens", &asked["max_completion_tokens"], 1)?;
    if !asked["max_tokens"].is_null() && !asked["max_completion_tokens"].is_null() {
        return Err(
            "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.".to_owned()
        );
    }
    for tool in each(&asked["tools"]) {
        check_name("tools.function.name", &tool["function"]["name"], NAME_CHARS_MAX)?;
    }
    if asked["response_format"]["type"] == "json_object"
        && !asked["messages"].to_string().to_lowercase().contains("json")
    {
        return Err("'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.".to_owned());
    }
    check_messages(messages)
}

/// Who may speak; and that each call's result comes right after it.
fn check_messages(messages: &[Value]) -> Checked {
    let mut open: BTreeSet<&str> = BTreeSet::new();
    for message in messages {
        let role = message["role"].as_str().unwrap_or_default();
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            if !open.remove(id) {
                return Err("Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.".to_owned());
            }
            continue;
        }
        check_answered(&open)?;
        match role {
            "system" | "developer" | "user" => {}
            "assistant" => {
                for call in each(&message["tool_calls"]) {
                    check_name(
                        "messages.tool_calls.function.name",
                        &call["function"]["name"],
                        NAME_CHARS_MAX,
                    )?;
                    open.extend(call["id"].as_str());
                }
                if message["content"].is_null() && open.is_empty() {
                    return Err("Invalid value for 'content': expected a string, got null.".to_owned());
                }
            }
            _ => {
                return Err(format!(
                    "Invalid value: {}. Supported values are: 'system', 'assistant', 'user', 'tool' and 'developer'.",
                    message["role"]
                ));
            }
        }
    }
    check_answered(&open)
}

fn check_answered(open: &BTreeSet<&str>) -> Checked {
    match open.first() {
        Some(id) => Err(format!(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following \
             tool_call_ids did not have response messages: {id}"
        )),
        None => Ok(()),
    }
}
