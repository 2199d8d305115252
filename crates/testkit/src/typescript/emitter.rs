//! A JSON Schema as a TypeScript type.
//!
//! It knows what schemars writes: objects open and closed, maps, arrays and tuples, literals, alternatives, references, and
//! all of them together where something is flattened. What limits a value without changing its type, such as a pattern or a
//! maximum, is left out.

use serde_json::{Map, Value};

/// How wide a line of a comment may be.
const COMMENT_WIDTH: usize = 118;
/// How long alternatives may be that stand in one line.
const LINE_WIDTH: usize = 100;

/// Says how a reference is called in TypeScript.
pub type Names<'a> = &'a dyn Fn(&str) -> String;

/// A named type with its comment, as it stands in a file.
pub fn declaration(name: &str, schema: &Value, names: Names<'_>) -> String {
    let comment =
        schema.get("description").and_then(Value::as_str).map(|text| comment(text, 0)).unwrap_or_default();
    match body_of_interface(schema, names) {
        Some(body) => format!("{comment}export interface {name} {body}\n"),
        None => {
            let text = expression(schema, 0, names);
            let space = if text.starts_with('\n') { "" } else { " " };
            format!("{comment}export type {name} ={space}{text};\n")
        }
    }
}

/// A schema as an expression, for a place that is indented by so much.
pub fn expression(schema: &Value, indent: usize, names: Names<'_>) -> String {
    let parts = parts(schema, indent, names);
    match parts.as_slice() {
        [] => "unknown".to_owned(),
        [one] => one.clone(),
        several => several.iter().map(|part| enclosed(part)).collect::<Vec<_>>().join(" & "),
    }
}

/// A comment in front of something.
pub fn comment(text: &str, indent: usize) -> String {
    let space = " ".repeat(indent);
    let text = text.replace("*/", "* /");
    let lines = wrapped(&text, COMMENT_WIDTH.saturating_sub(indent));
    match lines.as_slice() {
        [line] => format!("{space}/** {line} */\n"),
        lines => {
            let lines: String =
                lines.iter().map(|line| format!("{space} * {line}").trim_end().to_owned() + "\n").collect();
            format!("{space}/**\n{lines}{space} */\n")
        }
    }
}

/// A JSON value as a literal.
pub fn literal(value: &Value) -> String {
    value.to_string()
}

/// A name as a key of an object.
pub fn key(name: &str) -> String {
    let plain = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if plain { name.to_owned() } else { format!("{name:?}") }
}

/// What a value has to be at once.
fn parts(schema: &Value, indent: usize, names: Names<'_>) -> Vec<String> {
    let Value::Object(schema) = schema else {
        return if *schema == Value::Bool(false) { vec!["never".to_owned()] } else { Vec::new() };
    };
    if let Some(value) = schema.get("const") {
        return vec![literal(value)];
    }
    if let Some(Value::Array(values)) = schema.get("enum") {
        return vec![union(&values.iter().map(|value| (None, literal(value))).collect::<Vec<_>>(), indent)];
    }
    let mut parts = Vec::new();
    if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        parts.push(names(target));
    }
    parts.extend(of_type(schema, indent, names));
    for keyword in ["oneOf", "anyOf"] {
        if let Some(Value::Array(members)) = schema.get(keyword) {
            parts.push(alternatives(members, indent, names));
        }
    }
    if let Some(Value::Array(all)) = schema.get("allOf") {
        parts.extend(all.iter().flat_map(|part| self::parts(part, indent, names)));
    }
    parts
}

fn alternatives(members: &[Value], indent: usize, names: Names<'_>) -> String {
    let nested = if members.len() > 1 { indent + 4 } else { indent };
    let members: Vec<(Option<&str>, String)> = members
        .iter()
        .map(|member| (member.get("description").and_then(Value::as_str), expression(member, nested, names)))
        .collect();
    union(&members, indent)
}

/// One of several: each in a line of its own where one has a comment or takes several lines.
fn union(members: &[(Option<&str>, String)], indent: usize) -> String {
    let mut texts: Vec<&str> = Vec::new();
    for (_, text) in members {
        if !texts.contains(&text.as_str()) {
            texts.push(text);
        }
    }
    let line = texts.join(" | ");
    let tall =
        line.len() > LINE_WIDTH || members.iter().any(|(said, text)| said.is_some() || text.contains('\n'));
    if !tall || members.len() < 2 {
        return line;
    }
    let space = " ".repeat(indent + 2);
    let lines = members.iter().map(|(said, text)| {
        let said = said.map(|said| comment(said, indent + 2)).unwrap_or_default();
        format!("{said}{space}| {}\n", text.trim_start())
    });
    format!("\n{}", lines.collect::<String>().trim_end_matches('\n'))
}

fn of_type(schema: &Map<String, Value>, indent: usize, names: Names<'_>) -> Option<String> {
    let words: Vec<&str> = match schema.get("type") {
        Some(Value::String(word)) => vec![word],
        Some(Value::Array(words)) => words.iter().filter_map(Value::as_str).collect(),
        _ if schema.contains_key("properties") => vec!["object"],
        _ => return None,
    };
    let says_more = ["oneOf", "anyOf", "allOf", "$ref"].iter().any(|keyword| schema.contains_key(*keyword));
    let texts: Vec<(Option<&str>, String)> = words
        .iter()
        // Alternatives say themselves which objects they are.
        .filter(|word| !(says_more && **word == "object" && !schema.contains_key("properties")))
        .map(|word| (None, of_word(word, schema, indent, names)))
        .collect();
    (!texts.is_empty()).then(|| union(&texts, indent))
}

fn of_word(word: &str, schema: &Map<String, Value>, indent: usize, names: Names<'_>) -> String {
    match word {
        "integer" | "number" => "number".to_owned(),
        "array" => array(schema, indent, names),
        "object" => object(schema, indent, names),
        other => other.to_owned(),
    }
}

fn array(schema: &Map<String, Value>, indent: usize, names: Names<'_>) -> String {
    if let Some(Value::Array(places)) = schema.get("prefixItems") {
        let places: Vec<String> = places.iter().map(|place| expression(place, indent, names)).collect();
        return format!("[{}]", places.join(", "));
    }
    let item =
        schema.get("items").map_or_else(|| "unknown".to_owned(), |items| expression(items, indent, names));
    format!("{}[]", enclosed(&item))
}

fn object(schema: &Map<String, Value>, indent: usize, names: Names<'_>) -> String {
    let others = match schema.get("additionalProperties") {
        Some(Value::Bool(false)) => Some("never".to_owned()),
        Some(others @ Value::Object(_)) => Some(expression(others, indent, names)),
        _ => None,
    };
    let is_empty = schema.get("properties").and_then(Value::as_object).is_none_or(Map::is_empty);
    match others {
        _ if !is_empty => members(schema, indent, names),
        Some(others) => format!("Record<string, {others}>"),
        None => "Record<string, unknown>".to_owned(),
    }
}

/// The properties of an object, each in a line with its comment.
fn members(schema: &Map<String, Value>, indent: usize, names: Names<'_>) -> String {
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let space = " ".repeat(indent);
    let mut text = "{\n".to_owned();
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if let Some(said) = property.get("description").and_then(Value::as_str) {
            text += &comment(said, indent + 2);
        }
        let optional = if required.contains(&name.as_str()) { "" } else { "?" };
        let value = expression(property, indent + 2, names);
        let gap = if value.starts_with('\n') { "" } else { " " };
        text += &format!("{space}  {}{optional}:{gap}{value};\n", key(name));
    }
    if matches!(schema.get("additionalProperties"), Some(Value::Bool(true) | Value::Object(_))) {
        // The members have to have the type of the rest, too, so that it can be no narrower.
        text += &format!("{space}  [key: string]: unknown;\n");
    }
    text + &space + "}"
}

/// The members of an object that is nothing else.
fn body_of_interface(schema: &Value, names: Names<'_>) -> Option<String> {
    let object = schema.as_object()?;
    let composed = ["oneOf", "anyOf", "allOf", "$ref", "enum", "const"];
    let plain = object.get("type").is_some_and(|word| word == "object")
        && !composed.iter().any(|keyword| object.contains_key(*keyword));
    let told = object.get("properties").and_then(Value::as_object).is_some_and(|members| !members.is_empty());
    (plain && told).then(|| members(object, 0, names))
}

/// In parentheses, where another operator next to it would change its meaning.
fn enclosed(text: &str) -> String {
    let alternatives = text.starts_with('\n') || (text.contains(" | ") && !text.starts_with('{'));
    if alternatives || text.contains(" & ") { format!("({text})") } else { text.to_owned() }
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for (number, paragraph) in text.split("\n\n").enumerate() {
        if number > 0 {
            lines.push(String::new());
        }
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines
}
