//! The actions of an application as a Markdown page, the same bytes on every run.

use std::fmt::Write;

use runyard_actions::{Action, Runtime, Visibility};
use serde_json::Value;

use crate::{FieldKind, InputField, input_fields};

/// A page with one section for each action that is not private.
pub fn action_docs(name: &str, runtime: &Runtime) -> String {
    let mut page = format!("# Actions of {name}\n");
    for action in runtime.actions().filter(|action| action.spec().visibility != Visibility::Private) {
        section(&mut page, action);
    }
    page
}

fn section(page: &mut String, action: &Action) {
    let spec = action.spec();
    // Writing to a string cannot fail.
    let _ =
        write!(page, "\n## {}\n\n`{}` {}\n\n{}\n\n", spec.title, spec.name, spec.version, spec.description);
    if let Some(deprecation) = &spec.deprecation {
        let _ = writeln!(page, "**Deprecated:** {}\n", deprecation.message);
    }
    let surfaces: Vec<_> = spec.surfaces.iter().map(|surface| surface.as_str()).collect();
    let _ = writeln!(page, "- Side effects: {}", word(&spec.side_effects));
    let _ = writeln!(page, "- Idempotency: {}", word(&spec.idempotency));
    let _ = writeln!(page, "- Surfaces: {}", surfaces.join(", "));
    if spec.requires_confirmation {
        let _ = writeln!(page, "- Asks for confirmation");
    }
    if spec.people_only {
        let _ = writeln!(page, "- For people only");
    }
    if !spec.permissions.is_empty() {
        let _ = writeln!(page, "- Permissions: {}", spec.permissions.join(", "));
    }
    if let Some(route) = &spec.http {
        let _ = writeln!(page, "- HTTP: `{route}`");
    }
    if let Some(timeout_ms) = spec.timeout_ms {
        let _ = writeln!(page, "- Timeout: {timeout_ms} ms");
    }
    let fields = input_fields(&spec.input);
    if !fields.is_empty() {
        let _ = writeln!(page, "\n| input | type | required | about |\n|---|---|---|---|");
        fields.iter().for_each(|field| row(page, field));
    }
    for example in &spec.examples {
        let _ = writeln!(page, "\nExample input:\n\n```json\n{example:#}\n```");
    }
}

fn row(page: &mut String, field: &InputField) {
    let mut about: Vec<String> = field.description.iter().map(|text| text.replace('\n', " ")).collect();
    about.extend(field.limits.iter().cloned());
    if let FieldKind::Text(options) = &field.kind
        && !options.is_empty()
    {
        about.push(format!("one of {}", options.join(", ")));
    }
    about.extend(field.default.iter().map(|default| format!("default {default}")));
    let required = if field.required { "yes" } else { "no" };
    let about = about.join("; ").replace('|', "\\|");
    let _ = writeln!(page, "| `{}` | {} | {required} | {about} |", field.path.join("."), kind(&field.kind));
}

fn kind(kind: &FieldKind) -> String {
    match kind {
        FieldKind::Text(_) => "string".to_owned(),
        FieldKind::Integer => "integer".to_owned(),
        FieldKind::Number => "number".to_owned(),
        FieldKind::Boolean => "boolean".to_owned(),
        FieldKind::List(item) => format!("list of {}", self::kind(item)),
        FieldKind::Json => "JSON".to_owned(),
    }
}

/// The wire word of a unit enum.
fn word(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value).ok().as_ref().and_then(Value::as_str).unwrap_or_default().to_owned()
}
