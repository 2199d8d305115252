//! An input's schema as the parameters of a tool: always a plain object at the top.

use serde_json::{Map, Value, json};

/// Where an input stands that is no plain object.
pub const WRAPPED: &str = "input";
/// With one of these at the top a provider refuses the whole request.
const NOT_AT_THE_TOP: [&str; 7] = ["$ref", "allOf", "anyOf", "const", "enum", "not", "oneOf"];
/// So long may the name of a property at the top be; a provider (Anthropic) refuses the whole request for a longer one.
const NAME_LENGTH_MAX: usize = 64;
/// What holds data, not schemas.
const DATA: [&str; 4] = ["const", "default", "enum", "examples"];
/// What holds schemas by name.
const BY_NAME: [&str; 5] = ["$defs", "definitions", "dependentSchemas", "patternProperties", "properties"];

/// The parameters, and whether the input stands in [`WRAPPED`] there.
pub(super) fn parameters(schema: &Value) -> (Value, bool) {
    match schema.as_object().filter(|object| is_plain(object)) {
        Some(object) => {
            let mut plain = object.clone();
            plain.insert("type".to_owned(), "object".into());
            (Value::Object(plain), false)
        }
        None => (wrapped(schema.clone()), true),
    }
}

/// A plain object says so, or names its properties; and it has no alternatives, and no name that a provider refuses. Names
/// are checked at the top only, so further in they can be what they are.
fn is_plain(object: &Map<String, Value>) -> bool {
    let says_so = match object.get("type") {
        Some(kind) => kind == "object",
        None => object.contains_key("properties"),
    };
    let properties = object.get("properties").and_then(Value::as_object);
    says_so
        && NOT_AT_THE_TOP.iter().all(|key| !object.contains_key(*key))
        && properties.into_iter().flatten().all(|(name, _)| is_taken_name(name))
}

fn is_taken_name(name: &str) -> bool {
    let taken = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    (1..=NAME_LENGTH_MAX).contains(&name.len()) && name.chars().all(taken)
}

fn wrapped(mut schema: Value) -> Value {
    let definitions = schema.as_object_mut().and_then(|object| object.shift_remove("$defs"));
    move_references(&mut schema);
    let mut parameters = json!({
        "type": "object",
        "properties": {WRAPPED: schema},
        "required": [WRAPPED],
        "additionalProperties": false,
    });
    if let Some(mut definitions) = definitions {
        if let Value::Object(definitions) = &mut definitions {
            definitions.values_mut().for_each(move_references);
        }
        parameters["$defs"] = definitions;
    }
    parameters
}

/// What pointed at the schema's own top now points at where it went; the definitions stay at the top.
fn move_references(schema: &mut Value) {
    let Value::Object(object) = schema else { return };
    for (key, child) in object.iter_mut() {
        match (key.as_str(), child) {
            ("$ref", Value::String(reference)) => {
                let moved = reference.strip_prefix('#').filter(|pointer| !pointer.starts_with("/$defs/"));
                if let Some(pointer) = moved {
                    *reference = format!("#/properties/{WRAPPED}{pointer}");
                }
            }
            (data, _) if DATA.contains(&data) => {}
            (key, Value::Object(children)) if BY_NAME.contains(&key) => {
                children.values_mut().for_each(move_references);
            }
            (_, Value::Array(children)) => children.iter_mut().for_each(move_references),
            (_, child) => move_references(child),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_that_is_no_plain_object_is_wrapped_and_its_references_still_lead_where_they_led() {
        let schema = json!({
            "anyOf": [{"type": "null"}, {"type": "array", "items": {"$ref": "#"}}, {"$ref": "#/$defs/a"}],
            "default": {"$ref": "#"},
            "$defs": {"a": {"type": "object", "properties": {"$ref": {"$ref": "#/anyOf/0"}}}},
        });
        let expected = json!({
            "type": "object",
            "properties": {"input": {
                "anyOf": [
                    {"type": "null"},
                    {"type": "array", "items": {"$ref": "#/properties/input"}},
                    {"$ref": "#/$defs/a"},
                ],
                "default": {"$ref": "#"},
            }},
            "required": ["input"],
            "additionalProperties": false,
            "$defs": {"a": {"type": "object", "properties": {"$ref": {"$ref": "#/properties/input/anyOf/0"}}}},
        });
        assert_eq!(parameters(&schema), (expected, true));
    }

    #[test]
    fn an_object_stays_as_it_is() {
        let plain = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        assert_eq!(parameters(&plain), (plain.clone(), false));
        let mut untyped = plain.clone();
        untyped.as_object_mut().unwrap().shift_remove("type");
        let (said, wrapped) = parameters(&untyped);
        assert_eq!(
            (&said["type"], &said["properties"], wrapped),
            (&json!("object"), &plain["properties"], false)
        );
        for other in [json!(true), json!({}), json!({"type": "string"}), json!({"type": ["object", "null"]})]
        {
            assert!(parameters(&other).1, "{other}");
        }
    }

    #[test]
    fn an_object_with_a_name_at_its_top_that_a_provider_refuses_is_wrapped() {
        let named = |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}});
        for taken in ["a", "A.b-c_9", &"n".repeat(NAME_LENGTH_MAX)] {
            assert_eq!(parameters(&named(taken)), (named(taken), false), "{taken}");
        }
        for refused in ["", "two words", "filter[id]", "$top", "größe", &"n".repeat(NAME_LENGTH_MAX + 1)] {
            let (wrapped, is_wrapped) = parameters(&named(refused));
            assert_eq!((&wrapped["properties"][WRAPPED], is_wrapped), (&named(refused), true), "{refused}");
        }
    }
}
