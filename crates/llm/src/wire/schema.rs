//! Schemas as providers take them: whether one is exact enough to hold a model to it, one that is made so, a tool's, and one in words.
//!
//! Only places that hold schemas are looked at: a property may well be called `minimum`.

use serde_json::{Map, Value, json};

use crate::inference::AnswerFormat;

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

/// All that OpenAI takes in a schema that it holds a model to.
const STRICT: [&str; 20] = [
    "$schema",
    "$defs",
    "definitions",
    "title",
    "description",
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "const",
    "anyOf",
    "$ref",
    "pattern",
    "format",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
];
/// A schema with more levels is not held to there.
const STRICT_DEPTH_MAX: usize = 10;

/// Whether OpenAI takes it as strict: an object whose every object names all its fields, demands them, and takes no others, said with
/// the keywords that are taken.
pub(super) fn is_strict(schema: &Value) -> bool {
    schema["type"] == "object" && schema.get("anyOf").is_none() && is_strict_at(schema, STRICT_DEPTH_MAX)
}

fn is_strict_at(schema: &Value, depth: usize) -> bool {
    let Some(fields) = schema.as_object().filter(|_| depth > 0) else { return false };
    if !fields.keys().all(|name| STRICT.contains(&name.as_str())) {
        return false;
    }
    if fields.contains_key("$ref") {
        return fields.len() == 1;
    }
    let says_what = fields.contains_key("type") || fields.contains_key("anyOf");
    says_what && (!is_object(fields) || is_closed(fields)) && are_strict_in(fields, depth - 1)
}

/// Whether an object names all its fields, demands them, and takes no others.
fn is_closed(fields: &Map<String, Value>) -> bool {
    let required: Vec<&str> = required(fields).collect();
    let properties = fields.get("properties").and_then(Value::as_object);
    fields.get("additionalProperties") == Some(&Value::Bool(false))
        && properties.is_some_and(|named| named.keys().all(|name| required.contains(&name.as_str())))
}

fn are_strict_in(fields: &Map<String, Value>, depth: usize) -> bool {
    fields.iter().all(|(name, value)| match (place(name), value) {
        (Place::One, value) => name == "additionalProperties" || is_strict_at(value, depth),
        (Place::List, Value::Array(values)) => values.iter().all(|value| is_strict_at(value, depth)),
        (Place::Named, Value::Object(named)) => named.values().all(|value| is_strict_at(value, depth)),
        (Place::List | Place::Named, _) => false,
        (Place::Other, _) => true,
    })
}

fn required(fields: &Map<String, Value>) -> impl Iterator<Item = &str> {
    fields.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// The schema with every object closed and without what Anthropic does not take. `None` where an object takes fields that it does not
/// name: closed, it could hold nothing.
pub(super) fn closed(schema: &Value) -> Option<Value> {
    (!has_map(schema, DEPTH_MAX)).then(|| closed_at(schema, DEPTH_MAX))
}

/// Whether there is an object in it whose fields are not named.
fn has_map(schema: &Value, depth: usize) -> bool {
    let Some(fields) = schema.as_object().filter(|_| depth > 0) else { return false };
    let names_none = fields.get("properties").and_then(Value::as_object).is_none_or(Map::is_empty);
    let is_map = match fields.get("additionalProperties") {
        Some(Value::Bool(false)) => false,
        Some(Value::Object(_)) => true,
        _ => is_object(fields) && names_none,
    };
    is_map
        || fields.iter().any(|(name, value)| match (place(name), value) {
            (Place::One, value) => has_map(value, depth - 1),
            (Place::List, Value::Array(values)) => values.iter().any(|value| has_map(value, depth - 1)),
            (Place::Named, Value::Object(named)) => named.values().any(|value| has_map(value, depth - 1)),
            _ => false,
        })
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

/// What no provider takes at the top of a tool's schema.
const NOT_AT_THE_TOP: [&str; 5] = ["anyOf", "oneOf", "allOf", "enum", "not"];

/// The schema of a tool's arguments as every provider takes it: an object's, without alternatives at its top. Their fields are all in it
/// then, and only what each of them demands is demanded: the model is told less, and what it calls is held to the whole schema.
pub(super) fn parameters(schema: &Value) -> Value {
    let mut fields = schema.as_object().cloned().unwrap_or_default();
    for name in NOT_AT_THE_TOP {
        let Some(Value::Array(choices)) = fields.remove(name) else { continue };
        let choices: Vec<Value> = choices.iter().map(|choice| followed(choice, schema).clone()).collect();
        let objects: Vec<&Map<String, Value>> = choices.iter().filter_map(Value::as_object).collect();
        merge(&mut fields, &objects, if name == "allOf" { Hold::All } else { Hold::Some });
    }
    fields.insert("type".to_owned(), "object".into());
    fields.entry("properties").or_insert_with(|| Map::new().into());
    fields.into()
}

/// What a reference within the schema refers to, or the schema itself.
fn followed<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    let place = schema["$ref"].as_str().and_then(|place| place.strip_prefix('#'));
    place.and_then(|place| root.pointer(place)).unwrap_or(schema)
}

/// How many of several schemas hold.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hold {
    All,
    Some,
}

/// Adds the fields of each choice.
fn merge(fields: &mut Map<String, Value>, choices: &[&Map<String, Value>], hold: Hold) {
    let mut properties = fields.remove("properties").unwrap_or_default();
    let mut seen: Map<String, Value> = properties.as_object_mut().map(std::mem::take).unwrap_or_default();
    let named = choices.iter().filter_map(|choice| choice.get("properties")?.as_object()).flatten();
    for (name, value) in named {
        match seen.get_mut(name) {
            None => _ = seen.insert(name.clone(), value.clone()),
            Some(known) if known == value => {}
            Some(Value::Object(known))
                if known.len() == 1 && known.get("anyOf").is_some_and(Value::is_array) =>
            {
                known["anyOf"].as_array_mut().into_iter().for_each(|some| some.push(value.clone()));
            }
            Some(known) => *known = json!({"anyOf": [known.take(), value]}),
        }
    }
    fields.insert("properties".to_owned(), seen.into());
    let mut demanded: Vec<String> = required(fields).map(str::to_owned).collect();
    for name in choices.iter().flat_map(|choice| required(choice)) {
        let by = choices.iter().filter(|choice| required(choice).any(|other| other == name)).count();
        if (hold == Hold::All || by == choices.len()) && !demanded.iter().any(|known| known == name) {
            demanded.push(name.to_owned());
        }
    }
    if !demanded.is_empty() {
        fields.insert("required".to_owned(), demanded.into());
    }
}

/// The form of an answer in words, for who does not take its schema otherwise.
pub(super) fn in_words(format: &AnswerFormat) -> String {
    format!(
        "Answer with one JSON value alone, and nothing around it. It follows this JSON Schema:\n{}",
        format.schema
    )
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
    use super::*;

    #[test]
    fn a_schema_is_strict_only_if_every_object_in_it_is_and_all_of_it_is_taken() {
        let object = |of: Value| json!({"type": "object", "properties": {"a": of}, "required": ["a"], "additionalProperties": false});
        for strict in [
            json!({"type": "string", "description": "d", "pattern": "x"}),
            json!({"type": ["integer", "null"], "minimum": 1}),
            json!({"type": "array", "items": object(json!({"type": "string", "enum": ["x"]}))}),
            json!({"anyOf": [object(json!({"type": "null"})), {"$ref": "#/$defs/l"}]}),
        ] {
            assert!(is_strict(&object(strict.clone())), "{strict}");
            // At the top there is an object, and no choice.
            assert!(!is_strict(&strict), "{strict}");
        }
        for loose in [
            json!({}),
            json!(true),
            json!({"description": "of any type"}),
            json!({"enum": ["x"]}),
            json!({"type": "object", "properties": {}}),
            json!({"type": "object", "properties": {"a": {}}, "additionalProperties": false}),
            json!({"type": ["object", "null"]}),
            json!({"type": "string", "minLength": 3}),
            json!({"oneOf": [{"type": "string"}]}),
            json!({"allOf": [{"type": "string"}]}),
            json!({"type": "string", "not": {"const": "x"}}),
            json!({"type": "array", "items": {}}),
            json!({"$ref": "#/$defs/l", "description": "d"}),
        ] {
            assert!(!is_strict(&object(loose.clone())), "{loose}");
            assert!(!is_strict(&object(json!({"type": "array", "items": {"anyOf": [loose]}}))), "{loose}");
            let mut named = object(json!({"type": "string"}));
            named["$defs"] = json!({"l": loose});
            assert!(!is_strict(&named), "{named}");
        }
        let mut choice = object(json!({"type": "string"}));
        choice["anyOf"] = json!([object(json!({"type": "string"}))]);
        assert!(!is_strict(&choice));
        let deep = (0..STRICT_DEPTH_MAX).fold(json!({"type": "string"}), |inner, _| object(inner));
        assert!(!is_strict(&deep));
    }

    #[test]
    fn a_schema_with_a_map_in_it_cannot_be_closed() {
        let of = |inner: Value| json!({"type": "object", "properties": {"a": inner}});
        for map in [
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"type": "object", "additionalProperties": true}),
            json!({"type": "object"}),
            json!({"type": "object", "properties": {"b": {}}, "additionalProperties": {"type": "string"}}),
        ] {
            assert_eq!(closed(&map), None, "{map}");
            assert_eq!(closed(&of(json!({"type": "array", "items": map}))), None, "{map}");
        }
        let empty = json!({"type": "object", "additionalProperties": false});
        assert_eq!(closed(&empty), Some(empty));
        assert!(closed(&of(json!({"type": "string"}))).is_some());
    }

    #[test]
    fn a_tool_s_schema_has_no_choice_at_its_top() {
        let kind = |kind: &str, field: &str| {
            json!({"type": "object", "properties": {"kind": {"const": kind}, field: {"type": "string"}},
                "required": ["kind", field]})
        };
        let schema =
            json!({"oneOf": [kind("a", "x"), {"$ref": "#/$defs/b"}], "$defs": {"b": kind("b", "y")}});
        let expected = json!({
            "type": "object",
            "properties": {
                "kind": {"anyOf": [{"const": "a"}, {"const": "b"}]},
                "x": {"type": "string"},
                "y": {"type": "string"},
            },
            "required": ["kind"],
            "$defs": {"b": kind("b", "y")},
        });
        assert_eq!(parameters(&schema), expected);
        let both =
            parameters(&json!({"allOf": [kind("a", "x"), kind("a", "y")], "not": {"required": ["z"]}}));
        assert_eq!(both["required"], json!(["kind", "x", "y"]));
        assert_eq!(both.get("not"), None);
        let plain =
            json!({"type": "object", "properties": {"x": {"anyOf": [{"type": "null"}]}}, "required": ["x"]});
        assert_eq!(parameters(&plain), plain);
        assert_eq!(parameters(&json!({"type": ["object", "null"]}))["type"], "object");
        assert_eq!(parameters(&Value::Null), json!({"type": "object", "properties": {}}));
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
        assert_eq!(closed(&schema), Some(expected.clone()));
        assert_eq!(closed(&expected), Some(expected));
    }
}
