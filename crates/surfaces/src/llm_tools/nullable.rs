//! Following references, and whether a schema takes null.

use serde_json::{Map, Value};

/// References are followed so far.
const REFERENCES_MAX: usize = 16;
/// Alternatives inside each other are looked into so deep.
const ALTERNATIVES_MAX: usize = 16;

/// The schema behind local references; nothing where they lead nowhere.
pub(super) fn resolved<'a>(schema: &'a Value, root: &'a Value) -> Option<&'a Map<String, Value>> {
    let mut schema = schema;
    for _ in 0..REFERENCES_MAX {
        let object = schema.as_object()?;
        let Some(reference) = object.get("$ref") else { return Some(object) };
        schema = root.pointer(reference.as_str()?.strip_prefix('#')?)?;
    }
    None
}

/// The alternatives of a schema, if it has any.
pub(super) fn alternatives(object: &Map<String, Value>) -> Option<&Vec<Value>> {
    object.get("anyOf").or_else(|| object.get("oneOf"))?.as_array()
}

/// Whether a schema takes null. Of what it cannot be said, null is taken: then it stays what it is.
pub(super) fn takes_null(schema: &Value, root: &Value) -> bool {
    within(schema, root, ALTERNATIVES_MAX)
}

fn within(schema: &Value, root: &Value, levels: usize) -> bool {
    let Some(object) = resolved(schema, root).filter(|_| levels > 0) else { return true };
    if let Some(constant) = object.get("const") {
        return constant.is_null();
    }
    if let Some(values) = object.get("enum").and_then(Value::as_array)
        && !values.contains(&Value::Null)
    {
        return false;
    }
    match object.get("type") {
        Some(Value::String(kind)) if kind != "null" => return false,
        Some(Value::Array(kinds)) if !kinds.iter().any(|kind| kind == "null") => return false,
        _ => {}
    }
    alternatives(object).is_none_or(|branches| branches.iter().any(|branch| within(branch, root, levels - 1)))
}
