//! Schemas as providers take them: whether one is exact enough to hold a model to it, and one that is made so.
//!
//! Only places that hold schemas are looked at: a property may well be called `minimum`.

use serde_json::{Map, Value};

/// Deeper schemas are left as they are.
const DEPTH_MAX: usize = 64;

/// What Anthropic does not take in the schema of an answer. The answer is then held to less, never to something else.
const UNSUPPORTED: [&str; 12] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "contains",
];
/// More of them than this cannot be demanded there.
const MIN_ITEMS_MAX: u64 = 1;

/// Whether every object in it names all its fields, demands them, and takes no others: what OpenAI calls strict.
pub(super) fn is_strict(schema: &Value) -> bool {
    is_strict_at(schema, DEPTH_MAX)
}

fn is_strict_at(schema: &Value, depth: usize) -> bool {
    let Some(fields) = schema.as_object() else { return false };
    if depth == 0 {
        return false;
    }
    let own = !is_object(fields) || {
        let required: Vec<&str> = fields
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let properties = fields.get("properties").and_then(Value::as_object);
        fields.get("additionalProperties") == Some(&Value::Bool(false))
            && properties.is_some_and(|named| named.keys().all(|name| required.contains(&name.as_str())))
    };
    own && fields.iter().all(|(name, value)| match place(name) {
        Place::One => value.is_boolean() || is_strict_at(value, depth - 1),
        Place::List => value.as_array().into_iter().flatten().all(|value| is_strict_at(value, depth - 1)),
        Place::Named => {
            value.as_object().into_iter().flatten().all(|(_, value)| is_strict_at(value, depth - 1))
        }
        Place::Other => true,
    })
}

/// The schema with every object closed and without what Anthropic does not take.
pub(super) fn closed(schema: &Value) -> Value {
    closed_at(schema, DEPTH_MAX)
}

fn closed_at(schema: &Value, depth: usize) -> Value {
    let Some(fields) = schema.as_object().filter(|_| depth > 0) else { return schema.clone() };
    let inner = |value: &Value| closed_at(value, depth - 1);
    let kept = fields.iter().filter(|(name, value)| {
        let is_many = *name == "minItems" && value.as_u64().is_none_or(|least| least > MIN_ITEMS_MAX);
        !is_many && !UNSUPPORTED.contains(&name.as_str())
    });
    let mut closed: Map<String, Value> = kept
        .map(|(name, value)| {
            let value = match (place(name), value) {
                (Place::One, _) => inner(value),
                (Place::List, Value::Array(values)) => values.iter().map(inner).collect(),
                (Place::Named, Value::Object(named)) => named
                    .iter()
                    .map(|(name, value)| (name.clone(), inner(value)))
                    .collect::<Map<_, _>>()
                    .into(),
                _ => value.clone(),
            };
            (name.clone(), value)
        })
        .collect();
    if is_object(fields) {
        closed.insert("additionalProperties".to_owned(), false.into());
    }
    closed.into()
}

fn is_object(fields: &Map<String, Value>) -> bool {
    let says = |kind: &Value| match kind {
        Value::Array(kinds) => kinds.iter().any(|kind| kind == "object"),
        kind => kind == "object",
    };
    fields.get("type").is_some_and(says) || fields.contains_key("properties")
}

/// Where a schema may be in a schema.
enum Place {
    One,
    List,
    Named,
    Other,
}

fn place(name: &str) -> Place {
    match name {
        "items" | "additionalProperties" | "not" => Place::One,
        "anyOf" | "allOf" | "oneOf" | "prefixItems" => Place::List,
        "properties" | "$defs" | "definitions" => Place::Named,
        _ => Place::Other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_is_strict_only_if_every_object_in_it_is() {
        let strict = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
            "additionalProperties": false});
        assert!(is_strict(&strict));
        assert!(is_strict(&json!({"type": "array", "items": strict})));
        let open = json!({"type": "object", "properties": {}});
        let optional = json!({"type": "object", "properties": {"a": {}}, "additionalProperties": false});
        for loose in [open, optional, json!({"type": ["object", "null"]}), json!(true)] {
            assert!(!is_strict(&loose), "{loose}");
            assert!(
                !is_strict(&json!({"type": "array", "items": {"anyOf": [strict, loose]}})) || loose == true
            );
            assert!(!is_strict(&json!({"$defs": {"l": loose}, "anyOf": [strict]})), "{loose}");
        }
    }

    #[test]
    fn a_closed_schema_has_no_open_object_and_keeps_fields_that_are_called_like_a_keyword() {
        let schema = json!({
            "type": "object",
            "properties": {
                "minimum": {"type": "integer", "minimum": 1, "maximum": 9},
                "list": {"type": "array", "minItems": 2, "maxItems": 3,
                    "items": {"type": "object", "properties": {"x": {"type": "string", "maxLength": 3}}}},
                "some": {"type": "array", "minItems": 1, "items": {"enum": ["minimum"]}},
            },
            "required": ["minimum"],
        });
        let expected = json!({
            "type": "object",
            "properties": {
                "minimum": {"type": "integer"},
                "list": {"type": "array", "items":
                    {"type": "object", "properties": {"x": {"type": "string"}}, "additionalProperties": false}},
                "some": {"type": "array", "minItems": 1, "items": {"enum": ["minimum"]}},
            },
            "required": ["minimum"],
            "additionalProperties": false,
        });
        assert_eq!(closed(&schema), expected);
        assert_eq!(closed(&closed(&schema)), expected);
    }
}
