//! Taking out again what strict mode made a model put in: null for a property that it wanted to leave out.
//!
//! Nothing else is changed, and nothing is judged: whether the input is right is for the runtime to say.

use runyard_actions::DEPTH_MAX;
use serde_json::{Map, Value};

use super::nullable::{alternatives, resolved, takes_null};

/// A value is looked into so deep: as deep as the runtime takes an input, which may stand in a wrapper.
const LEVELS_MAX: usize = DEPTH_MAX + 2;
/// Alternatives inside each other are looked into so deep, which is deeper than any that are strict.
const ALTERNATIVES_MAX: usize = 64;

/// Takes the nulls out of arguments that are of strict parameters. Every value is looked at once.
pub(super) fn restore(arguments: &mut Value, parameters: &Value) {
    within(arguments, parameters, parameters, LEVELS_MAX);
}

fn within(value: &mut Value, schema: &Value, root: &Value, levels: usize) {
    let Some(object) = form_of(value, schema, root).filter(|_| levels > 0) else { return };
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

/// The schema itself, or the one of its alternatives whose form the value has.
fn form_of<'a>(value: &Value, schema: &'a Value, root: &'a Value) -> Option<&'a Map<String, Value>> {
    let object = resolved(schema, root)?;
    match alternatives(object) {
        Some(branches) => chosen(value, branches, root, ALTERNATIVES_MAX),
        None => Some(object),
    }
}

fn chosen<'a>(
    value: &Value,
    branches: &'a [Value],
    root: &'a Value,
    levels: usize,
) -> Option<&'a Map<String, Value>> {
    branches.iter().find_map(|branch| {
        let object = resolved(branch, root).filter(|_| levels > 0)?;
        match alternatives(object) {
            Some(branches) => chosen(value, branches, root, levels - 1),
            None => has_form(value, object).then_some(object),
        }
    })
}

fn is_optional(object: &Map<String, Value>, name: &str) -> bool {
    let required = object.get("required").and_then(Value::as_array);
    !required.is_some_and(|required| required.iter().any(|required| required == name))
}

/// Whether a value has the form that a schema has in strict mode: its type, every property there, no other, the same constants.
/// Strict alternatives can be told apart by that. What stands inside is not looked at: in every alternative at every level that
/// would be exponential.
fn has_form(value: &Value, object: &Map<String, Value>) -> bool {
    if let Some(is_named) = is_named(value, |key| object.get(key)) {
        return is_named;
    }
    let Value::Object(fields) = value else { return is_typed(value, object.get("type")) };
    let none = Map::new();
    let properties = object.get("properties").and_then(Value::as_object).unwrap_or(&none);
    is_typed(value, object.get("type"))
        && properties.len() == fields.len()
        && properties.iter().all(|(name, schema)| match fields.get(name) {
            None => false,
            Some(Value::Null) if is_optional(object, name) => true,
            Some(value) => is_named(value, |key| schema.get(key)).unwrap_or(true),
        })
}

/// Whether a schema names this value; nothing where it names none.
fn is_named<'a>(value: &Value, keyword: impl Fn(&str) -> Option<&'a Value>) -> Option<bool> {
    match (keyword("const"), keyword("enum").and_then(Value::as_array)) {
        (Some(constant), _) => Some(value == constant),
        (None, Some(values)) => Some(values.contains(value)),
        (None, None) => None,
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A tree of two kinds of nodes, with what stands below before the tag that tells them apart.
    fn parameters() -> Value {
        let node = |kind: &str| {
            json!({
                "type": "object",
                "properties": {
                    "child": {"$ref": "#/$defs/node"},
                    "note": {"type": "string"},
                    "kind": {"type": "string", "const": kind},
                },
                "required": ["child", "kind"],
                "additionalProperties": false,
            })
        };
        json!({
            "type": "object",
            "properties": {"tree": {"$ref": "#/$defs/node"}},
            "required": ["tree"],
            "additionalProperties": false,
            "$defs": {"node": {"anyOf": [node("a"), node("b"), {"type": "null"}]}},
        })
    }

    /// So many nodes, the innermost of this kind; the strict form has the notes as null.
    fn tree(depth: usize, innermost: &str, strict: bool) -> Value {
        let tree = (0..depth).fold(Value::Null, |child, level| {
            let kind = if level == 0 { innermost } else { ["b", "a"][level % 2] };
            match strict {
                true => json!({"child": child, "note": null, "kind": kind}),
                false => json!({"child": child, "kind": kind}),
            }
        });
        json!({ "tree": tree })
    }

    #[test]
    fn alternatives_that_hold_themselves_are_restored_as_deep_as_the_runtime_takes_them() {
        // Looking below before the tag would take two to the power of this.
        let depth = DEPTH_MAX;
        let mut arguments = tree(depth, "b", true);
        restore(&mut arguments, &parameters());
        assert_eq!(arguments, tree(depth, "b", false));
    }

    #[test]
    fn what_is_wrong_further_in_does_not_keep_the_nulls_around_it() {
        let mut arguments = tree(3, "neither", true);
        restore(&mut arguments, &parameters());
        let mut expected = tree(3, "neither", false);
        expected["tree"]["child"]["child"]["note"] = Value::Null;
        assert_eq!(arguments, expected);
    }
}
