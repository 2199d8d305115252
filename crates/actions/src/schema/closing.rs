//! Closing the schemas of input types: a property that a plain struct does not know is refused, not dropped.
//!
//! An object is closed only where nothing else describes it as well: `additionalProperties` sees its siblings alone, so
//! in a part of a composed object (a tagged newtype variant, a flattened enum) it would refuse what the other parts
//! allow. What is composed stays as open as serde makes it.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::references;

/// Keywords that say nothing of which properties an object has.
const ANNOTATIONS: [&str; 13] = [
    "$comment",
    "$defs",
    "$id",
    "$schema",
    "default",
    "deprecated",
    "description",
    "examples",
    "format",
    "readOnly",
    "title",
    "type",
    "writeOnly",
];

/// An object with one of these is open, or closed, by its own word, or composed.
const COMPOSED: [&str; 12] = [
    "$ref",
    "additionalProperties",
    "allOf",
    "anyOf",
    "dependentSchemas",
    "else",
    "if",
    "not",
    "oneOf",
    "patternProperties",
    "then",
    "unevaluatedProperties",
];

/// Whether other keywords describe the same value as well.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Described {
    Alone,
    Elsewhere,
}

/// Closes every plain object of a generated schema.
pub(super) fn close(root: &mut Value) {
    let open = extended_targets(root);
    let described =
        |pointer: &str| if open.contains(pointer) { Described::Elsewhere } else { Described::Alone };
    walk(root, described(""), &mut close_object);
    for (name, definition) in definitions(root) {
        walk(definition, described(&definition_pointer(name)), &mut close_object);
    }
}

fn close_object(object: &mut Map<String, Value>, described: Described) {
    let composed = || COMPOSED.iter().any(|key| object.contains_key(*key));
    if described == Described::Alone && object.contains_key("properties") && !composed() {
        object.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
}

/// The pointers of the definitions (and of the root) that some reference makes part of a larger object.
fn extended_targets(root: &mut Value) -> BTreeSet<String> {
    let mut extended = BTreeSet::new();
    let mut pending = Vec::new();
    let mut visit = |object: &mut Map<String, Value>, described: Described, pending: &mut Vec<String>| {
        if parts_described(object, described) == Described::Elsewhere
            && let Some(pointer) = references::pointer(object)
            && extended.insert(pointer.clone().into_owned())
        {
            pending.push(pointer.into_owned());
        }
    };
    walk(root, Described::Alone, &mut |object, described| visit(object, described, &mut pending));
    for (_, definition) in definitions(root) {
        walk(definition, Described::Alone, &mut |object, described| visit(object, described, &mut pending));
    }
    // What an extended definition refers to is extended in turn. Each is visited once more, when it is found.
    while let Some(pointer) = pending.pop() {
        if let Some(target) = root.pointer_mut(&pointer) {
            walk(target, Described::Elsewhere, &mut |object, described| {
                visit(object, described, &mut pending)
            });
        }
    }
    extended
}

/// Visits a schema and its subschemas, each with how it is described. Definitions are walked on their own.
fn walk(
    schema: &mut Value,
    described: Described,
    visit: &mut impl FnMut(&mut Map<String, Value>, Described),
) {
    use Described::{Alone, Elsewhere};
    let Value::Object(object) = schema else { return };
    let parts = parts_described(object, described);
    for (key, child) in object.iter_mut() {
        match (key.as_str(), child) {
            // Values inside this one.
            ("items" | "additionalProperties" | "unevaluatedProperties" | "unevaluatedItems", child) => {
                walk(child, Alone, visit);
            }
            ("properties" | "patternProperties", Value::Object(children)) => {
                children.values_mut().for_each(|child| walk(child, Alone, visit));
            }
            ("prefixItems", Value::Array(children)) => {
                children.iter_mut().for_each(|child| walk(child, Alone, visit));
            }
            // This same value, or one that another keyword describes too.
            ("anyOf" | "oneOf", Value::Array(children)) => {
                children.iter_mut().for_each(|child| walk(child, parts, visit));
            }
            ("allOf", Value::Array(children)) => {
                children.iter_mut().for_each(|child| walk(child, Elsewhere, visit));
            }
            ("not" | "if" | "then" | "else" | "contains" | "propertyNames", child) => {
                walk(child, Elsewhere, visit);
            }
            ("dependentSchemas", Value::Object(children)) => {
                children.values_mut().for_each(|child| walk(child, Elsewhere, visit));
            }
            _ => {}
        }
    }
    visit(object, described);
}

fn definitions(root: &mut Value) -> impl Iterator<Item = (&String, &mut Value)> {
    root.get_mut("$defs").and_then(Value::as_object_mut).into_iter().flatten()
}

/// How a schema's `$ref` or alternatives are described: alone if that one keyword is all the schema says.
fn parts_described(object: &Map<String, Value>, described: Described) -> Described {
    let says = |key: &&String| !ANNOTATIONS.contains(&key.as_str()) && !key.starts_with("x-");
    if object.keys().filter(says).count() <= 1 { described } else { Described::Elsewhere }
}

fn definition_pointer(name: &str) -> String {
    format!("/$defs/{}", name.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(mut schema: Value, closed: &[&str]) {
        close(&mut schema);
        for place in ["", "/$defs/a", "/$defs/b", "/$defs/c~1d"] {
            let found = schema.pointer(place).and_then(|schema| schema.get("additionalProperties"));
            assert_eq!(found.is_some(), closed.contains(&place), "{place:?} of {schema}");
        }
    }

    #[test]
    fn a_definition_is_closed_only_where_every_reference_stands_alone() {
        let plain = || json!({"type": "object", "properties": {"n": {}}});
        let defs = |a: Value| json!({"a": a, "b": plain(), "c/d": plain()});
        let all = ["/$defs/a", "/$defs/b", "/$defs/c~1d"];
        check(json!({"$ref": "#/$defs/a", "title": "A", "x-ui": 1, "$defs": defs(plain())}), &all);
        check(json!({"properties": {}, "$ref": "#/$defs/a", "$defs": defs(plain())}), &all[1..]);
        check(json!({"required": ["n"], "$ref": "#/$defs/a", "$defs": defs(plain())}), &all[1..]);
        check(json!({"allOf": [{"$ref": "#/$defs/a"}], "$defs": defs(plain())}), &all[1..]);
        check(
            json!({"properties": {"x": {"$ref": "#/$defs/a"}}, "$defs": defs(plain())}),
            &["", "/$defs/a", "/$defs/b", "/$defs/c~1d"],
        );
        check(
            json!({"anyOf": [{"$ref": "#/$defs/a"}, {"type": "null"}], "default": null, "$defs": defs(plain())}),
            &all,
        );
        check(json!({"$ref": "#/$defs/c~1d", "minProperties": 1, "$defs": defs(plain())}), &all[..2]);
    }

    #[test]
    fn what_an_extended_definition_refers_to_is_extended_as_well() {
        let plain = || json!({"type": "object", "properties": {"n": {}}});
        let defs =
            json!({"a": {"oneOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/c~1d"}, "c/d": plain()});
        check(json!({"$ref": "#/$defs/a", "$defs": defs}), &["/$defs/c~1d"]);
        check(json!({"properties": {}, "$ref": "#/$defs/a", "$defs": defs}), &[]);
        check(
            json!({"properties": {"x": {"allOf": [{"$ref": "#"}]}}, "$defs": {"a": plain()}}),
            &["/$defs/a"],
        );
    }
}
