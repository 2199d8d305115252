//! The fields of an action's input, as texts can give them: command line flags, path and query parameters.
//!
//! Texts are turned into the JSON that the schema asks for where that is clear. Where it is not, the text itself goes on, so
//! that the runtime's own validation says what is wrong and every surface says it in the same words.

use runyard_actions::Schema;
use serde_json::{Map, Value};

/// Nested objects become flags such as `--a.b` this deep.
const NESTING_MAX: usize = 4;
/// Local references are followed this far.
const REFERENCES_MAX: usize = 16;

/// One field of an input that texts can set.
#[derive(Clone, Debug, PartialEq)]
pub struct InputField {
    /// Keys from the root.
    pub path: Vec<String>,
    /// How a text becomes its value.
    pub kind: FieldKind,
    /// Whether the schema requires it.
    pub required: bool,
    /// What it is.
    pub description: Option<String>,
    /// What it is when it is not given.
    pub default: Option<Value>,
    /// Its range, length or pattern, in words.
    pub limits: Vec<String>,
}

/// How a text becomes a value.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldKind {
    /// As it is; one of these if any are named.
    Text(Vec<String>),
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// Several of a kind, given one by one or as a JSON array.
    List(Box<FieldKind>),
    /// JSON where it parses as such, else text.
    Json,
}

impl FieldKind {
    /// The value that a text stands for; a text that fits nothing stays a text.
    pub fn read(&self, text: &str) -> Value {
        let as_text = || Value::String(text.to_owned());
        let as_json = || serde_json::from_str::<Value>(text);
        match self {
            FieldKind::Text(_) => as_text(),
            FieldKind::Integer | FieldKind::Number => match as_json() {
                Ok(value @ (Value::Number(_) | Value::Null)) => value,
                _ => as_text(),
            },
            FieldKind::Boolean => match text {
                "true" | "yes" | "1" => Value::Bool(true),
                "false" | "no" | "0" => Value::Bool(false),
                "null" => Value::Null,
                _ => as_text(),
            },
            FieldKind::List(item) => match as_json() {
                Ok(value @ Value::Array(_)) => value,
                _ => Value::Array(vec![item.read(text)]),
            },
            FieldKind::Json => as_json().unwrap_or_else(|_| as_text()),
        }
    }

    /// The value of a field that was given several times.
    pub fn read_all<'a>(&self, texts: impl IntoIterator<Item = &'a str>) -> Value {
        let mut values: Vec<Value> = texts.into_iter().map(|text| self.read(text)).collect();
        match self {
            FieldKind::List(_) => {
                let flat = values.into_iter().flat_map(|value| match value {
                    Value::Array(items) => items,
                    other => vec![other],
                });
                flat.collect()
            }
            // The last one counts, as everywhere on a command line.
            _ => values.pop().unwrap_or(Value::Null),
        }
    }

    /// A word for help texts.
    pub fn word(&self) -> String {
        match self {
            FieldKind::Text(_) => "TEXT".to_owned(),
            FieldKind::Integer => "INTEGER".to_owned(),
            FieldKind::Number => "NUMBER".to_owned(),
            FieldKind::Boolean => "true|false".to_owned(),
            FieldKind::List(item) => item.word(),
            FieldKind::Json => "JSON".to_owned(),
        }
    }
}

/// The fields of an input schema, in its own order, nested ones after the object that holds them.
pub fn input_fields(schema: &Schema) -> Vec<InputField> {
    let mut fields = Vec::new();
    gather(schema.json(), schema.json(), &[], true, &mut fields);
    fields
}

/// Sets a field in an input, making the objects on the way. What stands in the way and is no object is replaced.
pub fn set_field(input: &mut Map<String, Value>, path: &[String], value: Value) {
    match path {
        [] => {}
        [key] => {
            input.insert(key.clone(), value);
        }
        [key, rest @ ..] => {
            let child = input.entry(key.clone()).or_insert_with(|| Value::Object(Map::new()));
            if !child.is_object() {
                *child = Value::Object(Map::new());
            }
            if let Value::Object(child) = child {
                set_field(child, rest, value);
            }
        }
    }
}

fn gather(
    schema: &Value,
    root: &Value,
    path: &[String],
    parent_required: bool,
    fields: &mut Vec<InputField>,
) {
    let object = resolved(schema, root);
    let required: Vec<&str> = object
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    for (name, property) in object.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let mut at = path.to_vec();
        at.push(name.clone());
        let target = resolved(property, root);
        let required = parent_required && required.contains(&name.as_str());
        let text = |key: &str| property.get(key).or_else(|| target.get(key)).and_then(Value::as_str);
        fields.push(InputField {
            kind: kind_of(target, root),
            required,
            description: text("description").map(str::to_owned),
            default: property.get("default").filter(|value| !value.is_null()).cloned(),
            limits: limits_of(target),
            path: at.clone(),
        });
        if target.get("properties").is_some() && at.len() < NESTING_MAX {
            gather(target, root, &at, required, fields);
        }
    }
}

/// The schema behind local references, and behind `anyOf [X, null]`.
fn resolved<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    let mut schema = schema;
    for _ in 0..REFERENCES_MAX {
        let reference = schema.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix('#'));
        if let Some(target) = reference.and_then(|pointer| root.pointer(pointer)) {
            schema = target;
        } else if let Some(only) = only_alternative(schema) {
            schema = only;
        } else {
            break;
        }
    }
    schema
}

fn only_alternative(schema: &Value) -> Option<&Value> {
    let alternatives =
        schema.get("anyOf").or_else(|| schema.get("oneOf")).or_else(|| schema.get("allOf"))?.as_array()?;
    let mut others =
        alternatives.iter().filter(|one| one.get("type").and_then(Value::as_str) != Some("null"));
    let only = others.next()?;
    others.next().is_none().then_some(only)
}

fn kind_of(schema: &Value, root: &Value) -> FieldKind {
    let options = options_of(schema);
    if !options.is_empty() {
        return FieldKind::Text(options);
    }
    match type_of(schema) {
        Some("string") if schema.get("enum").is_none() => FieldKind::Text(Vec::new()),
        Some("integer") => FieldKind::Integer,
        Some("number") => FieldKind::Number,
        Some("boolean") => FieldKind::Boolean,
        Some("array") => {
            let item =
                schema.get("items").map_or(FieldKind::Json, |items| kind_of(resolved(items, root), root));
            FieldKind::List(Box::new(item))
        }
        _ => FieldKind::Json,
    }
}

/// The one type beside null.
fn type_of(schema: &Value) -> Option<&str> {
    match schema.get("type")? {
        Value::String(name) => Some(name),
        Value::Array(names) => {
            let mut others = names.iter().filter_map(Value::as_str).filter(|name| *name != "null");
            let only = others.next()?;
            others.next().is_none().then_some(only)
        }
        _ => None,
    }
}

/// The texts that an enumeration allows; none where it allows anything that is no text.
fn options_of(schema: &Value) -> Vec<String> {
    let listed =
        schema.get("enum").and_then(Value::as_array).map(|options| options.iter().collect::<Vec<_>>());
    let one_of = || {
        let alternatives = schema.get("oneOf").and_then(Value::as_array)?;
        alternatives.iter().map(|one| one.get("const")).collect::<Option<Vec<_>>>()
    };
    let options = listed.or_else(one_of).unwrap_or_default();
    let texts =
        options.iter().filter(|option| !option.is_null()).map(|option| option.as_str().map(str::to_owned));
    texts.collect::<Option<Vec<_>>>().unwrap_or_default()
}

pub(crate) fn limits_of(schema: &Value) -> Vec<String> {
    let value = |key: &str| schema.get(key).filter(|value| !value.is_null());
    let mut limits = Vec::new();
    // A bound that a number type has anyway says nothing.
    let telling = |bound: &&Value| bound.as_f64().is_some_and(|bound| bound.abs() < 2_147_483_647.0);
    match (value("minimum").filter(telling), value("maximum").filter(telling)) {
        (Some(low), Some(high)) => limits.push(format!("{low} to {high}")),
        (Some(low), None) => limits.push(format!("{low} or more")),
        (None, Some(high)) => limits.push(format!("{high} or less")),
        (None, None) => {}
    }
    limits.extend(value("exclusiveMinimum").map(|low| format!("more than {low}")));
    limits.extend(value("exclusiveMaximum").map(|high| format!("less than {high}")));
    for (low, high, what) in [("minLength", "maxLength", "characters"), ("minItems", "maxItems", "items")] {
        match (value(low), value(high)) {
            (Some(low), Some(high)) => limits.push(format!("{low} to {high} {what}")),
            (Some(low), None) => limits.push(format!("at least {low} {what}")),
            (None, Some(high)) => limits.push(format!("at most {high} {what}")),
            (None, None) => {}
        }
    }
    limits.extend(value("pattern").and_then(Value::as_str).map(|pattern| format!("matches /{pattern}/")));
    let numeric = [
        "int32", "uint32", "int64", "uint64", "uint8", "int8", "uint16", "int16", "uint", "int", "double",
        "float",
    ];
    let format = value("format").and_then(Value::as_str).filter(|format| !numeric.contains(format));
    limits.extend(format.map(str::to_owned));
    limits
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(property: Value, texts: &[&str], expected: Value) {
        let schema = Schema::new(json!({"properties": {"x": property}})).unwrap();
        let fields = input_fields(&schema);
        assert_eq!(fields[0].kind.read_all(texts.iter().copied()), expected);
    }

    #[test]
    fn texts_become_what_the_schema_asks_for() {
        check(json!({"type": "string"}), &["12"], json!("12"));
        check(json!({"type": ["string", "null"]}), &["null"], json!("null"));
        check(json!({"type": "integer"}), &["-12"], json!(-12));
        check(json!({"type": "integer"}), &["18446744073709551615"], json!(u64::MAX));
        check(json!({"type": "number"}), &["1e3"], json!(1000.0));
        check(json!({"type": "boolean"}), &["yes"], json!(true));
        check(json!({"type": "array", "items": {"type": "integer"}}), &["1", "2"], json!([1, 2]));
        check(
            json!({"type": "array", "items": {"type": "string"}}),
            &[r#"["a","b"]"#, "c"],
            json!(["a", "b", "c"]),
        );
        check(json!({"type": "array", "items": {"type": "string"}}), &["null"], json!(["null"]));
        check(json!({"anyOf": [{"type": "integer"}, {"type": "null"}]}), &["null"], json!(null));
        check(json!({"type": "object"}), &[r#"{"a": 1}"#], json!({"a": 1}));
        check(json!({"type": "string"}), &["first", "last"], json!("last"));
    }

    #[test]
    fn a_text_that_fits_nothing_stays_a_text_for_the_validation_to_name() {
        check(json!({"type": "integer"}), &["abc"], json!("abc"));
        check(json!({"type": "boolean"}), &["maybe"], json!("maybe"));
        check(json!({"type": "number"}), &["NaN"], json!("NaN"));
    }

    #[test]
    fn nested_objects_give_nested_fields() {
        let schema = Schema::new(json!({
            "properties": {"a": {"$ref": "#/$defs/a"}},
            "$defs": {"a": {"type": "object", "properties": {"b": {"type": "integer", "minimum": 1, "maximum": 9}}}},
        }))
        .unwrap();
        let fields = input_fields(&schema);
        assert_eq!(fields[1].path, ["a", "b"]);
        assert_eq!(fields[1].limits, ["1 to 9"]);
        let mut input = Map::new();
        set_field(&mut input, &fields[1].path, json!(3));
        assert_eq!(Value::Object(input), json!({"a": {"b": 3}}));
    }
}
