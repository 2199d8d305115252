//! What the Responses API refuses.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Checked, check_least, check_name, each, some_of};

const NAME_CHARS_MAX: usize = 64;
const OUTPUT_TOKENS_MIN: u64 = 16;

pub(super) fn check(asked: &Value) -> Checked {
    check_least("max_output_tokens", &asked["max_output_tokens"], OUTPUT_TOKENS_MIN)?;
    for tool in each(&asked["tools"]).filter(|tool| tool["type"] == "function") {
        check_name("tools.name", &tool["name"], NAME_CHARS_MAX)?;
    }
    // Without any the question is elsewhere, as in a prompt that is stored.
    if asked["input"].is_string() || asked["input"].is_null() {
        return Ok(());
    }
    let items = some_of("input", &asked["input"])?;
    check_pairs(items)?;
    for (at, item) in items.iter().enumerate() {
        check_item(item, items.get(at + 1))?;
    }
    Ok(())
}

fn check_item(item: &Value, next: Option<&Value>) -> Checked {
    match item["type"].as_str().unwrap_or("message") {
        "message" if !["user", "assistant", "system", "developer"].contains(&role(item)) => Err(format!(
            "Invalid value: {}. Supported values are: 'assistant', 'system', 'developer', and 'user'.",
            item["role"]
        )),
        "function_call" => {
            check_name("input.name", &item["name"], NAME_CHARS_MAX)?;
            if item["arguments"].is_string() {
                Ok(())
            } else {
                Err("Invalid type for 'input.arguments': expected a string.".to_owned())
            }
        }
        // What came of a thought stands right after it.
        "reasoning" if next.is_none_or(|next| is_of(next, "_output") || role(next) == "user") => {
            Err(format!(
                "Item {} of type 'reasoning' was provided without its required following item.",
                item["id"]
            ))
        }
        _ => Ok(()),
    }
}

fn role(item: &Value) -> &str {
    item["role"].as_str().unwrap_or_default()
}

fn is_of(item: &Value, ending: &str) -> bool {
    item["type"].as_str().is_some_and(|kind| kind.ends_with(ending))
}

/// Every call has its output, after it, and every output its call.
fn check_pairs(items: &[Value]) -> Checked {
    let mut open: BTreeSet<&str> = BTreeSet::new();
    let mut known: BTreeSet<&str> = BTreeSet::new();
    for item in items {
        let Some(id) = item["call_id"].as_str() else { continue };
        if is_of(item, "_call") {
            known.insert(id);
            open.insert(id);
        } else if is_of(item, "_call_output") {
            if !known.contains(id) {
                return Err(format!("No tool call found for function call output with call_id {id}."));
            }
            open.remove(id);
        }
    }
    match open.first() {
        Some(id) => Err(format!("No tool output found for function call {id}.")),
        None => Ok(()),
    }
}
