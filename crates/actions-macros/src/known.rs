//! The known keys of `#[action(…)]`, and what is said of any other.

use proc_macro2::{Ident, Span};
use syn::ext::IdentExt;
use syn::{Error, Result};

/// Every key and how it is written.
const KEYS: [(&str, &str); 23] = [
    ("name", r#"`name = "create_task"`"#),
    ("title", r#"`title = "Create a task"`"#),
    ("description", r#"`description = "Create a task in the user's inbox."`"#),
    ("version", r#"`version = "1.0.0"`"#),
    ("side_effects", r#"`side_effects = "read"`, `"write"` or `"destructive"`"#),
    (
        "idempotency",
        r#"`idempotency = "idempotent"`, `"non_idempotent"`, `"conditional"` or `"unspecified"`"#,
    ),
    ("owns_idempotency_key", "`owns_idempotency_key` without a value"),
    ("visibility", r#"`visibility = "public"`, `"local"` or `"private"`"#),
    ("people_only", "`people_only` without a value"),
    ("permissions", r#"`permissions = ["tasks.write"]`"#),
    ("surfaces", r#"`surfaces = ["cli", "http"]`"#),
    ("timeout_ms", "`timeout_ms = 5000`, a whole number of milliseconds"),
    ("deadline_ms", "`deadline_ms = 60000`, a whole number of milliseconds"),
    ("retry", "`retry = true`, `retry = false` or `retry(retries = 2, delay_ms = 100)`"),
    ("requires_confirmation", "`requires_confirmation = true` or `requires_confirmation = false`"),
    ("concurrency", "`concurrency(max = 1, wait_ms = 0)`"),
    (
        "deprecated",
        r#"`deprecated = "why"` or `deprecated(message = "why", since = "1.2.0", replacement = "other")`"#,
    ),
    ("example", r##"`example = r#"{"title":"Buy milk"}"#`"##),
    ("http", r#"`http = "POST /api/v1/tasks"`"#),
    ("resource", r#"`resource = "shop://orders/{id}"`"#),
    ("prompt", "`prompt` without a value"),
    ("task", r#"`task = "never"`, `"possible"`, `"answered"` or `"required"`"#),
    ("crate", r#"`crate = "runyard"`"#),
];

/// A misspelt key is taken for a known one if it is at most this many letters off.
const TYPO_DISTANCE_MAX: usize = 3;

/// How this key is written.
pub(crate) fn usage(key: &Ident) -> Result<&'static str> {
    let name = key.unraw().to_string();
    let known = KEYS.iter().find(|(known, _)| *known == name);
    known.map(|(_, usage)| *usage).ok_or_else(|| unknown(&name, key.span()))
}

/// Says that there is no such key, and which ones there are.
pub(crate) fn unknown(name: &str, span: Span) -> Error {
    let nearest = KEYS.iter().map(|(known, _)| (distance(name, known), known)).min();
    let hint = match nearest {
        Some((off, known)) if off <= TYPO_DISTANCE_MAX && off < name.len() => {
            format!(": did you mean `{known}`?")
        }
        _ => String::new(),
    };
    let keys = KEYS.map(|(known, _)| known).join(", ");
    Error::new(span, format!("there is no key `{name}`{hint}\nthe keys are {keys}"))
}

/// How many letters must be added, left out or changed to get from one word to the other.
fn distance(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.chars().count()).collect();
    for (done, left) in from.chars().enumerate() {
        let mut diagonal = row.first().copied().unwrap_or_default();
        let mut before = done + 1;
        for (cell, right) in row.iter_mut().skip(1).zip(to.chars()) {
            let cost = (diagonal + usize::from(left != right)).min(*cell + 1).min(before + 1);
            diagonal = std::mem::replace(cell, cost);
            before = cost;
        }
        if let Some(first) = row.first_mut() {
            *first = done + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}
