//! The limits of strict mode, and a schema's own limits in words.

use serde_json::{Map, Value};

use crate::input_fields::limits_of;

/// A strict schema may have so many properties in all.
const PROPERTIES_MAX: usize = 5000;
/// Its objects and lists may stand so deep inside each other.
const NESTING_MAX: usize = 10;
/// It may name so many values in all.
const ENUM_VALUES_MAX: usize = 1000;
/// The names of properties and definitions and the values may be so long in all.
const NAMES_LENGTH_MAX: usize = 120_000;
/// One list of more values than this …
const LONG_ENUM_VALUES: usize = 250;
/// … may be so long in all.
const LONG_ENUM_LENGTH_MAX: usize = 15_000;
/// So many schemas are looked at, each as often as something refers to it.
const LOOKS_MAX: usize = 20_000;

/// What limits a value, in words.
pub(super) fn in_words(object: &Map<String, Value>) -> Vec<String> {
    let mut limits = limits_of(&Value::Object(object.clone()));
    let value = |key: &str| object.get(key).filter(|value| !value.is_null());
    limits.extend(value("multipleOf").map(|step| format!("a multiple of {step}")));
    if value("uniqueItems") == Some(&Value::Bool(true)) {
        limits.push("all different".to_owned());
    }
    limits.extend(value("minProperties").map(|low| format!("at least {low} properties")));
    limits.extend(value("maxProperties").map(|high| format!("at most {high} properties")));
    limits
}

/// Whether strict mode takes a schema of this size.
pub(super) fn within_limits(strict: &Value) -> bool {
    let mut size = Size::default();
    let definitions = || strict.get("$defs").and_then(Value::as_object).into_iter().flatten();
    size.count(strict);
    for (name, definition) in definitions() {
        size.names_length += name.chars().count();
        size.count(definition);
    }
    let mut looks = LOOKS_MAX;
    let nesting = nesting(strict, strict, &mut Vec::new(), &mut looks);
    size.properties <= PROPERTIES_MAX
        && size.enum_values <= ENUM_VALUES_MAX
        && size.names_length <= NAMES_LENGTH_MAX
        && !size.has_long_enum
        && nesting.is_some_and(|nesting| nesting <= NESTING_MAX)
}

#[derive(Default)]
struct Size {
    properties: usize,
    enum_values: usize,
    names_length: usize,
    has_long_enum: bool,
}

impl Size {
    fn count(&mut self, schema: &Value) {
        for (name, property) in properties(schema) {
            self.properties += 1;
            self.names_length += name.chars().count();
            self.count(property);
        }
        let values = schema.get("enum").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let length = |value: &Value| value.as_str().map_or(0, |text| text.chars().count());
        let lengths: usize = values.iter().map(length).sum();
        self.enum_values += values.len();
        self.has_long_enum |= values.len() > LONG_ENUM_VALUES && lengths > LONG_ENUM_LENGTH_MAX;
        self.names_length += lengths + schema.get("const").map_or(0, length);
        schema.get("items").into_iter().chain(branches(schema)).for_each(|child| self.count(child));
    }
}

/// How deep objects and lists stand inside each other; what holds itself counts once. Nothing where it is too much to look at.
fn nesting<'a>(
    schema: &'a Value,
    root: &'a Value,
    inside: &mut Vec<&'a str>,
    looks: &mut usize,
) -> Option<usize> {
    *looks = looks.checked_sub(1)?;
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        if reference == "#" || inside.contains(&reference) {
            return Some(0);
        }
        inside.push(reference);
        let depth = nesting(root.pointer(reference.strip_prefix('#')?)?, root, inside, looks);
        inside.pop();
        return depth;
    }
    let children =
        properties(schema).map(|(_, child)| child).chain(schema.get("items")).chain(branches(schema));
    let mut deepest = 0;
    for child in children {
        deepest = deepest.max(nesting(child, root, inside, looks)?);
    }
    let own = matches!(schema.get("type").and_then(Value::as_str), Some("object" | "array"));
    Some(deepest + usize::from(own))
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

fn branches(schema: &Value) -> impl Iterator<Item = &Value> {
    schema.get("anyOf").and_then(Value::as_array).into_iter().flatten()
}
