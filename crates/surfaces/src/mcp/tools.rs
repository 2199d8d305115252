//! Actions as tools: their definitions, and lists in pages.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rmcp::ErrorData;
use rmcp::model::{JsonObject, MetaObject, Tool, ToolAnnotations};
use runyard_actions::{Action, Idempotency, SideEffects};
use runyard_domain::Surface;
use serde_json::{Value, json};

use super::callers::Wire;

/// So many stand on one page of a list.
pub(super) const PAGE_MAX: usize = 200;
/// A client may take a list for fresh so long.
pub(super) const LIST_FRESH_MS: u64 = 60_000;
/// Under this name stands an input that is no object: arguments are always one.
pub(super) const WRAPPED: &str = "input";

/// The action as a tool.
pub(super) fn tool(action: &Action, wire: Wire) -> Tool {
    let spec = action.spec();
    let mut tool = Tool::new(spec.name.to_string(), description(action), Arc::new(input_schema(action)));
    tool.title = Some(spec.title.clone());
    tool.output_schema = spec.output.as_ref().and_then(|schema| output_schema(schema.json(), wire));
    let mut hints = ToolAnnotations::default();
    hints.title = Some(spec.title.clone());
    hints.read_only_hint = Some(spec.side_effects == SideEffects::Read);
    hints.destructive_hint = Some(spec.side_effects == SideEffects::Destructive);
    hints.idempotent_hint =
        Some(spec.side_effects == SideEffects::Read || spec.idempotency == Idempotency::Idempotent);
    tool.annotations = Some(hints);
    if action.asks_to_confirm(Surface::Mcp) {
        let mut meta = MetaObject::new();
        meta.insert("io.runyard/requiresConfirmation".to_owned(), json!(true));
        tool.meta = Some(meta);
    }
    tool
}

fn description(action: &Action) -> String {
    let spec = action.spec();
    match &spec.deprecation {
        None => spec.description.clone(),
        Some(deprecation) => format!("{} Deprecated: {}", spec.description, deprecation.message),
    }
}

/// Whether the input is an object, as arguments are.
pub(super) fn takes_object(action: &Action) -> bool {
    let schema = action.spec().input.json();
    schema.get("type").is_some_and(|kind| kind == "object") || schema.get("properties").is_some()
}

fn input_schema(action: &Action) -> JsonObject {
    let schema = action.spec().input.json();
    let schema = if takes_object(action) {
        schema.clone()
    } else {
        // References start at the schema's own root, so what they point at moves up with them.
        let mut inner = schema.clone();
        let mut whole = json!({"type": "object", "required": [WRAPPED], "additionalProperties": false});
        if let Some(definitions) = inner.as_object_mut().and_then(|inner| inner.remove("$defs")) {
            whole["$defs"] = definitions;
        }
        whole["properties"] = json!({ WRAPPED: inner });
        whole
    };
    let mut schema = match schema {
        Value::Object(schema) => schema,
        _ => JsonObject::new(),
    };
    schema.entry("type").or_insert_with(|| json!("object"));
    schema.values_mut().for_each(known_formats);
    schema
}

/// Takes out Rust's own number formats: clients complain about each that they do not know, and the range is said anyway.
fn known_formats(schema: &mut Value) {
    match schema {
        Value::Object(schema) => {
            let of_rust = |format: &Value| {
                format
                    .as_str()
                    .is_some_and(|name| name.starts_with("uint") || matches!(name, "int8" | "int16"))
            };
            if schema.get("format").is_some_and(of_rust) {
                schema.shift_remove("format");
            }
            schema.values_mut().for_each(known_formats);
        }
        Value::Array(schemas) => schemas.iter_mut().for_each(known_formats),
        _ => {}
    }
}

/// The older wire knows only objects as structured content.
fn output_schema(schema: &Value, wire: Wire) -> Option<Arc<JsonObject>> {
    let schema = schema.as_object()?;
    let is_object = schema.get("type").is_some_and(|kind| kind == "object");
    (is_object || wire == Wire::Rounds).then(|| {
        let mut schema = schema.clone();
        schema.values_mut().for_each(known_formats);
        Arc::new(schema)
    })
}

/// One page of a list in a fixed order, and the cursor of the next. A cursor names the last item that was seen, so that it
/// stays right when the list changes.
pub(super) fn page<T>(
    mut items: Vec<(String, T)>,
    cursor: Option<&str>,
) -> Result<(Vec<T>, Option<String>), ErrorData> {
    items.sort_by(|one, other| one.0.cmp(&other.0));
    if let Some(cursor) = cursor {
        let refused = || ErrorData::invalid_params("The cursor is none of this list.", None);
        let after = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| refused())?;
        let after = String::from_utf8(after).map_err(|_| refused())?;
        items.retain(|(name, _)| *name > after);
    }
    let more = items.len() > PAGE_MAX;
    items.truncate(PAGE_MAX);
    let next = items.last().filter(|_| more).map(|(name, _)| URL_SAFE_NO_PAD.encode(name));
    Ok((items.into_iter().map(|(_, item)| item).collect(), next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_that_only_rust_knows_are_left_out_and_others_stay() {
        let mut schema = json!({"properties": {"n": {"type": "integer", "format": "uint64", "minimum": 0},
            "when": {"type": "string", "format": "date-time"}}, "anyOf": [{"format": "int8"}, {"format": "int64"}]});
        known_formats(&mut schema);
        let left = json!({"properties": {"n": {"type": "integer", "minimum": 0},
            "when": {"type": "string", "format": "date-time"}}, "anyOf": [{}, {"format": "int64"}]});
        assert_eq!(schema, left);
    }

    #[test]
    fn pages_hold_every_item_once_in_order_also_when_one_goes_in_between() {
        let items = |skip: &str| -> Vec<(String, usize)> {
            (0..450).map(|n| (format!("{n:03}"), n)).filter(|(name, _)| name != skip).rev().collect()
        };
        let (first, next) = page(items(""), None).unwrap();
        let (second, next) = page(items("199"), next.as_deref()).unwrap();
        let (third, next) = page(items("199"), next.as_deref()).unwrap();
        assert_eq!(next, None);
        assert_eq!([first, second, third].concat(), (0..450).collect::<Vec<_>>());
        assert!(page(items(""), Some("not a cursor!")).is_err());
    }
}
