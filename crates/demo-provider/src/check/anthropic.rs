//! What Anthropic Messages refuses.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Checked, check_least, check_name, each, some_of};
use crate::requests::Recorded;

const NAME_CHARS_MAX: usize = 128;
const BUDGET_TOKENS_MIN: u64 = 1024;
/// With thinking no less may be chosen from.
const TOP_P_MIN: f64 = 0.95;

pub(super) fn check(request: &Recorded, asked: &Value) -> Checked {
    if request.header("anthropic-version").is_none() {
        return Err("anthropic-version: header is required".to_owned());
    }
    if asked["max_tokens"].is_null() {
        return Err("max_tokens: Field required".to_owned());
    }
    check_least("max_tokens", &asked["max_tokens"], 1)?;
    for tool in each(&asked["tools"]) {
        check_name("tools.name", &tool["name"], NAME_CHARS_MAX)?;
        let schema = &tool["input_schema"];
        if schema["type"] != "object" {
            return Err("tools.input_schema.type: Input should be 'object'".to_owned());
        }
        if ["oneOf", "allOf", "anyOf"].iter().any(|word| schema.get(word).is_some()) {
            return Err(
                "tools.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level"
                    .to_owned(),
            );
        }
    }
    check_thinking(asked)?;
    if !asked["temperature"].is_null() && !asked["top_p"].is_null() {
        return Err("`temperature` and `top_p` cannot both be specified for this model.".to_owned());
    }
    check_turns(some_of("messages", &asked["messages"])?)
}

/// What does not go with thinking.
fn check_thinking(asked: &Value) -> Checked {
    let thinking = &asked["thinking"];
    if thinking.is_null() || thinking["type"] == "disabled" {
        return Ok(());
    }
    let wrong = if asked["temperature"].as_f64().is_some_and(|temperature| temperature < 1.0) {
        "`temperature` may only be set to 1 when thinking is enabled"
    } else if asked["top_p"].as_f64().is_some_and(|top_p| top_p < TOP_P_MIN) {
        "`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled"
    } else if ["any", "tool"].iter().any(|choice| asked["tool_choice"]["type"] == *choice) {
        "Thinking may not be enabled when tool_choice forces tool use."
    } else {
        let Some(budget) = thinking["budget_tokens"].as_u64() else { return Ok(()) };
        check_least("thinking.enabled.budget_tokens", &thinking["budget_tokens"], BUDGET_TOKENS_MIN)?;
        if asked["max_tokens"].as_u64() > Some(budget) {
            return Ok(());
        }
        "`max_tokens` must be greater than `thinking.budget_tokens`"
    };
    Err(wrong.to_owned())
}

/// Whose turn it is, and that a turn holds the results of all calls of the one before it, and of no others, first.
fn check_turns(turns: &[Value]) -> Checked {
    if turns.first().is_some_and(|turn| turn["role"] != "user") {
        return Err("messages: first message must use the \"user\" role".to_owned());
    }
    let mut open: BTreeSet<&str> = BTreeSet::new();
    for turn in turns {
        let is_user = match turn["role"].as_str() {
            Some("user") => true,
            Some("assistant") => false,
            _ => return Err(format!("messages: Unexpected role {}.", turn["role"])),
        };
        let mut has_begun = false;
        for block in each(&turn["content"]) {
            check_block(block)?;
            if block["type"] != "tool_result" {
                has_begun = true;
                continue;
            }
            let id = block["tool_use_id"].as_str().unwrap_or_default();
            if !is_user || has_begun || !open.remove(id) {
                return Err(format!(
                    "messages: unexpected `tool_use_id` found in `tool_result` blocks: {id}."
                ));
            }
        }
        if let Some(id) = open.first() {
            return Err(format!(
                "messages: `tool_use` ids were found without `tool_result` blocks immediately after: {id}."
            ));
        }
        let called = each(&turn["content"]).filter(|block| block["type"] == "tool_use");
        open.extend(called.filter_map(|block| block["id"].as_str()));
    }
    match open.first() {
        Some(id) => Err(format!(
            "messages: `tool_use` ids were found without `tool_result` blocks immediately after: {id}."
        )),
        None => Ok(()),
    }
}

fn check_block(block: &Value) -> Checked {
    match block["type"].as_str() {
        Some("text") if block["text"].as_str().is_none_or(|text| text.trim().is_empty()) => {
            Err("messages: text content blocks must be non-empty".to_owned())
        }
        Some("tool_use") => {
            check_name("messages.content.tool_use.name", &block["name"], NAME_CHARS_MAX)?;
            check_name("messages.content.tool_use.id", &block["id"], usize::MAX)
        }
        Some("thinking") if block["signature"].as_str().is_none_or(str::is_empty) => {
            Err("messages: each `thinking` block must have a signature".to_owned())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_says_which_version_of_the_api_it_speaks() {
        let mut request = Recorded {
            number: 1,
            method: "POST".into(),
            path: "/v1/messages".into(),
            headers: Vec::new(),
            body: String::new(),
            played: None,
            status: None,
        };
        let asked = json!({"max_tokens": 1, "messages": [{"role": "user", "content": "hello"}]});
        assert_eq!(check(&request, &asked), Err("anthropic-version: header is required".to_owned()));
        request.headers.push(("anthropic-version".into(), "2023-06-01".into()));
        assert_eq!(check(&request, &asked), Ok(()));
    }
}
