//! Taking out again what strict mode made a model put in: null for a property that it wanted to leave out.
//!
//! Nothing else is changed, and nothing is judged: whether the input is right is for the runtime to say.

use runyard_actions::DEPTH_MAX;
use serde_json::{Map, Value};

use super::nullable::{alternatives, resolved, takes_null};

/// Takes the nulls out of arguments that are of strict parameters.
pub(super) fn restore(arguments: &mut Value, parameters: &Value) {
    within(arguments, parameters, parameters, DEPTH_MAX);
}

/// `levels` bounds how deep a value is looked into; the runtime refuses deeper ones.
fn within(value: &mut Value, schema: &Value, root: &Value, levels: usize) {
    let Some(object) = resolved(schema, root).filter(|_| levels > 0) else { return };
    if let Some(branches) = alternatives(object) {
        if let Some(branch) = branches.iter().find(|branch| is_of(value, branch, root, levels)) {
            within(value, branch, root, levels - 1);
        }
        return;
    }
    match value {
        Value::Array(items) => {
            if let Some(schema) = object.get("items") {
                items.iter_mut().for_each(|item| within(item, schema, root, levels - 1));
            }
        }
        Value::Object(fields) => {
            let property = |name: &str| object.get("properties").and_then(|all| all.get(name));
            fields.retain(|name, value| {
                let left_out = property(name).is_some_and(|schema| {
                    value.is_null() && is_optional(object, name) && !takes_null(schema, root)
                });
                !left_out
            });
            for (name, value) in fields {
                if let Some(schema) = property(name) {
                    within(value, schema, root, levels - 1);
                }
            }
        }
        _ => {}
    }
}

fn is_optional(object: &Map<String, Value>, name: &str) -> bool {
    let required = object.get("required").and_then(Value::as_array);
    !required.is_some_and(|required| required.iter().any(|required| required == name))
}

/// Whether a value has the form that a schema has in strict mode: every property there, no other, the same constants. Strict
/// alternatives can be told apart by that.
fn is_of(value: &Value, schema: &Value, root: &Value, levels: usize) -> bool {
    let Some(object) = resolved(schema, root).filter(|_| levels > 0) else { return false };
    if let Some(branches) = alternatives(object) {
        return branches.iter().any(|branch| is_of(value, branch, root, levels - 1));
    }
    if let Some(constant) = object.get("const") {
        return value == constant;
    }
    if let Some(values) = object.get("enum").and_then(Value::as_array) {
        return values.contains(value);
    }
    is_typed(value, object.get("type"))
        && match value {
            Value::Array(items) => items
                .iter()
                .all(|item| object.get("items").is_some_and(|schema| is_of(item, schema, root, levels - 1))),
            Value::Object(fields) => {
                let none = Map::new();
                let properties = object.get("properties").and_then(Value::as_object).unwrap_or(&none);
                properties.len() == fields.len()
                    && properties.iter().all(|(name, schema)| match fields.get(name) {
                        None => false,
                        Some(Value::Null) if is_optional(object, name) => true,
                        Some(value) => is_of(value, schema, root, levels - 1),
                    })
            }
            _ => true,
        }
}

fn is_typed(value: &Value, kind: Option<&Value>) -> bool {
    let is = |kind: &Value| match (kind.as_str().unwrap_or_default(), value) {
        ("null", Value::Null)
        | ("boolean", Value::Bool(_))
        | ("string", Value::String(_))
        | ("array", Value::Array(_))
        | ("object", Value::Object(_))
        | ("number", Value::Number(_)) => true,
        ("integer", Value::Number(number)) => number.as_f64().is_some_and(|number| number.fract() == 0.0),
        _ => false,
    };
    match kind {
        Some(Value::Array(kinds)) => kinds.iter().any(is),
        Some(kind) => is(kind),
        None => false,
    }
}
