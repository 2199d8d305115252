//! Whether a request is one that the real provider would take, so that what only a demonstration takes is found here.
//!
//! Pure. It looks at what is known to be refused and easily got wrong: what has to be there, who may speak, that calls and results are
//! paired, how things may be called, and what does not go together. It knows no model, and so nothing of what one of them does not
//! take; one that is not named is any.

mod anthropic;
mod chat;
mod responses;

use serde_json::Value;

use crate::{requests::Recorded, wire::Wire};

/// What is wrong with a request, in the provider's words.
pub(crate) type Checked = Result<(), String>;

/// Looks at a request.
pub(crate) fn check(wire: Wire, request: &Recorded, asked: &Value) -> Checked {
    match wire {
        Wire::Responses => responses::check(asked),
        Wire::Chat => chat::check(asked),
        Wire::Anthropic => anthropic::check(request, asked),
    }
}

/// Whether something may be called so.
fn check_name(what: &str, name: &Value, chars_max: usize) -> Checked {
    let fits = |name: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        (1..=chars_max).contains(&name.len()) && name.chars().all(is_plain)
    };
    if name.as_str().is_some_and(fits) {
        return Ok(());
    }
    Err(format!("Invalid '{what}': {name} does not match the pattern '^[a-zA-Z0-9_-]{{1,{chars_max}}}$'."))
}

fn check_least(what: &str, number: &Value, least: u64) -> Checked {
    if number.is_null() || number.as_u64().is_some_and(|number| number >= least) {
        return Ok(());
    }
    Err(format!(
        "Invalid '{what}': integer below minimum value. Expected a value >= {least}, but got {number}."
    ))
}

/// The elements of a list that has some.
fn some_of<'a>(what: &str, list: &'a Value) -> Result<&'a [Value], String> {
    match list.as_array().map(Vec::as_slice) {
        Some([]) => Err(format!("Invalid '{what}': empty array. Expected an array with minimum length 1.")),
        Some(elements) => Ok(elements),
        None => Err(format!("Missing required parameter: '{what}'.")),
    }
}

fn each(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}
