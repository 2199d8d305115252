//! Parameters as OpenAI's strict mode takes them.
//!
//! In strict mode every object is closed and requires all of its properties, alternatives are `anyOf` and never at the top, a
//! reference stands alone, and little else is known. So an optional property becomes one that may be null, and what limits a
//! value (lengths, ranges, patterns, defaults) is said in its description, in words: the runtime checks it anyway. Some models
//! take a few of these keywords, others refuse the whole request for them.
//!
//! What cannot be said so gives nothing, and the tool is not strict: open objects, values of any type, composed schemas,
//! alternatives that cannot be told apart by their form, and long defaults where null is a value of its own. Every input that the schema takes is taken in its strict form, too.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::limits::{in_words, within_limits};
use super::nullable::{alternatives, resolved, takes_null};

/// Schemas inside each other are rewritten so deep, alternatives looked into so far.
const LEVELS_MAX: usize = 32;
/// A default may be so long to be said in a description.
const DEFAULT_LENGTH_MAX: usize = 80;
/// What a schema consists of.
const STRUCTURE: [&str; 10] = [
    "$ref",
    "additionalProperties",
    "anyOf",
    "const",
    "enum",
    "items",
    "oneOf",
    "properties",
    "required",
    "type",
];
/// What limits a value and can be said in words.
const LIMITS: [&str; 14] = [
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "pattern",
    "uniqueItems",
];
/// What says nothing of which values are taken.
const ANNOTATIONS: [&str; 11] = [
    "$comment",
    "$defs",
    "$schema",
    "default",
    "definitions",
    "deprecated",
    "description",
    "examples",
    "readOnly",
    "title",
    "writeOnly",
];

/// The parameters for strict mode; nothing where they cannot be said there.
pub(super) fn strict(parameters: &Value) -> Option<Value> {
    let mut rewriter = Rewriter { root: parameters, named: BTreeSet::new(), pending: Vec::new() };
    let mut strict = rewriter.schema(parameters, LEVELS_MAX)?;
    let mut definitions = BTreeMap::new();
    while let Some(name) = rewriter.pending.pop() {
        let definition = parameters.get("$defs")?.get(&name)?;
        let definition = rewriter.schema(definition, LEVELS_MAX)?;
        definitions.insert(name, definition);
    }
    if !definitions.is_empty() {
        strict["$defs"] = definitions.into_iter().collect::<Map<_, _>>().into();
    }
    within_limits(&strict).then_some(strict)
}

struct Rewriter<'a> {
    root: &'a Value,
    /// The definitions that something refers to.
    named: BTreeSet<String>,
    /// Those of them that are not yet rewritten.
    pending: Vec<String>,
}

impl Rewriter<'_> {
    fn schema(&mut self, schema: &Value, levels: usize) -> Option<Value> {
        let object = schema.as_object().filter(|_| levels > 0)?;
        let known =
            |key: &str| [&STRUCTURE[..], &LIMITS, &ANNOTATIONS].iter().any(|keys| keys.contains(&key));
        if !object.keys().all(|key| known(key)) {
            return None;
        }
        let consists_of =
            |keys: &[&str]| STRUCTURE.iter().all(|key| keys.contains(key) || !object.contains_key(*key));
        let strict = if let Some(reference) = object.get("$ref") {
            consists_of(&["$ref"]).then_some(())?;
            self.reference(reference.as_str()?)?
        } else if let Some(branches) = alternatives(object) {
            (consists_of(&["anyOf", "type"]) || consists_of(&["oneOf", "type"])).then_some(())?;
            self.alternatives(branches, levels)?
        } else if let Some(constant) = object.get("const") {
            consists_of(&["const", "type"]).then_some(())?;
            constant_of(constant)?
        } else if let Some(values) = object.get("enum") {
            consists_of(&["enum", "type"]).then_some(())?;
            enumeration(values.as_array()?, object.get("type"))?
        } else {
            self.typed(object, levels)?
        };
        Some(described(strict, object.get("description"), in_words(object)))
    }

    fn reference(&mut self, reference: &str) -> Option<Value> {
        if reference != "#" {
            let name = reference.strip_prefix("#/$defs/")?;
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
            name.chars().all(plain).then_some(())?;
            if self.named.insert(name.to_owned()) {
                self.pending.push(name.to_owned());
            }
        }
        Some(json!({ "$ref": reference }))
    }

    fn alternatives(&mut self, branches: &[Value], levels: usize) -> Option<Value> {
        if branches.is_empty() || !self.can_be_told_apart(branches) {
            return None;
        }
        let branches: Option<Vec<Value>> =
            branches.iter().map(|branch| self.schema(branch, levels - 1)).collect();
        Some(json!({ "anyOf": branches? }))
    }

    /// By type, and then by type alone.
    fn typed(&mut self, object: &Map<String, Value>, levels: usize) -> Option<Value> {
        let kinds: Vec<&str> = match object.get("type")? {
            Value::String(kind) => vec![kind],
            Value::Array(kinds) => kinds.iter().map(Value::as_str).collect::<Option<_>>()?,
            _ => return None,
        };
        let mut branches = Vec::new();
        for kind in kinds.iter().filter(|kind| **kind != "null") {
            branches.push(match *kind {
                "object" => self.object(object, levels)?,
                "array" => json!({"type": "array", "items": self.schema(object.get("items")?, levels - 1)?}),
                kind => json!({ "type": kind }),
            });
        }
        let strict = match branches.len() {
            0 => return kinds.contains(&"null").then(|| json!({"type": "null"})),
            1 => branches.remove(0),
            _ => json!({ "anyOf": branches }),
        };
        Some(if kinds.contains(&"null") { or_null(strict) } else { strict })
    }

    fn object(&mut self, object: &Map<String, Value>, levels: usize) -> Option<Value> {
        if object.get("additionalProperties") != Some(&Value::Bool(false)) {
            return None;
        }
        let required = required(object);
        let properties = ordered_properties(object);
        required.iter().all(|name| properties.iter().any(|(known, _)| known == name)).then_some(())?;
        let mut strict = Map::new();
        for (name, schema) in properties {
            let mut property = self.schema(schema, levels - 1)?;
            let mut notes = Vec::new();
            let default = schema.get("default").or_else(|| resolved(schema, self.root)?.get("default"));
            let default = default.filter(|default| !default.is_null()).map(Value::to_string);
            let said = default.as_ref().filter(|text| text.len() <= DEFAULT_LENGTH_MAX);
            if required.contains(name) {
                // It is there anyway.
            } else if takes_null(schema, self.root) {
                property = or_null(property);
                // Null says null here, so the default is used only where the model can write it.
                if default.is_some() {
                    notes.push(format!("default: {}, to be written out; null stays null", said?));
                }
            } else {
                property = or_null(property);
                notes.push(said.map_or_else(|| "null: left out".to_owned(), |it| format!("null: {it}")));
            }
            strict.insert(name.to_owned(), described(property, None, notes));
        }
        let names: Vec<Value> = strict.keys().cloned().map(Value::from).collect();
        Some(json!({
            "type": "object", "properties": strict, "required": names, "additionalProperties": false,
        }))
    }

    /// Whether it can be seen of a value which alternative it is, also for the provider, which goes by the first property.
    fn can_be_told_apart(&self, branches: &[Value]) -> bool {
        let mut leaves = Vec::new();
        if !branches.iter().all(|branch| self.leaves(branch, LEVELS_MAX, &mut leaves)) {
            return false;
        }
        let is = |leaf: &Map<String, Value>, kind: &str| match leaf.get("type") {
            Some(Value::Array(kinds)) => kinds.iter().any(|known| known == kind),
            Some(known) => known == kind,
            None => false,
        };
        let arrays = leaves.iter().filter(|leaf| is(leaf, "array")).count();
        let objects: Vec<_> = leaves.iter().filter(|leaf| is(leaf, "object")).collect();
        let pairs = objects
            .iter()
            .enumerate()
            .flat_map(|(at, one)| objects[..at].iter().map(move |other| (*one, *other)));
        arrays <= 1 && pairs.into_iter().all(|(one, other)| differ(one, other))
    }

    /// The alternatives behind references and inside alternatives; false where there is no end to them.
    fn leaves<'s>(
        &'s self,
        branch: &'s Value,
        levels: usize,
        found: &mut Vec<&'s Map<String, Value>>,
    ) -> bool {
        let Some(object) = resolved(branch, self.root).filter(|_| levels > 0) else { return false };
        match alternatives(object) {
            Some(branches) => branches.iter().all(|branch| self.leaves(branch, levels - 1, found)),
            None => {
                found.push(object);
                found.len() <= LEVELS_MAX * LEVELS_MAX
            }
        }
    }
}

fn required(object: &Map<String, Value>) -> BTreeSet<&str> {
    let required = object.get("required").and_then(Value::as_array);
    required.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The properties with constants first: a model writes them in this order, and by them alternatives differ.
fn ordered_properties(object: &Map<String, Value>) -> Vec<(&str, &Value)> {
    let all = || object.get("properties").and_then(Value::as_object).into_iter().flatten();
    let is_constant = |schema: &Value| schema.get("const").is_some();
    let (first, rest) = (all().filter(|(_, it)| is_constant(it)), all().filter(|(_, it)| !is_constant(it)));
    first.chain(rest).map(|(name, schema)| (name.as_str(), schema)).collect()
}

/// Whether no value is of the form of both objects.
fn differ(one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    let (these, those) = (ordered_properties(one), ordered_properties(other));
    let shared = these.iter().filter_map(|(name, schema)| {
        let (_, other) = those.iter().find(|(known, _)| known == name)?;
        Some((*name, *schema, *other))
    });
    let exclusive = |name: &str, schema: &Value, other_schema: &Value| {
        // One that may be left out is null in both.
        required(one).contains(name)
            && required(other).contains(name)
            && constants(schema)
                .zip(constants(other_schema))
                .is_some_and(|(these, those)| these.iter().all(|value| !those.contains(value)))
    };
    let told_by: Vec<&str> =
        shared.filter(|(name, one, other)| exclusive(name, one, other)).map(|(name, ..)| name).collect();
    let first = |names: &[(&str, &Value)]| names.first().map(|(name, _)| (*name).to_owned());
    let names = |properties: &[(&str, &Value)]| {
        properties.iter().map(|(name, _)| (*name).to_owned()).collect::<BTreeSet<_>>()
    };
    match (first(&these), first(&those)) {
        (Some(one), Some(other)) if one == other => told_by.contains(&one.as_str()),
        _ => !told_by.is_empty() || names(&these) != names(&those),
    }
}

/// The values that a schema names, if it names them.
fn constants(schema: &Value) -> Option<Vec<&Value>> {
    match (schema.get("const"), schema.get("enum").and_then(Value::as_array)) {
        (Some(constant), _) => Some(vec![constant]),
        (None, Some(values)) => Some(values.iter().collect()),
        (None, None) => None,
    }
}

fn constant_of(constant: &Value) -> Option<Value> {
    match kind_of(constant)? {
        "null" => Some(json!({"type": "null"})),
        kind => Some(json!({"type": kind, "const": constant})),
    }
}

/// The values by their types; those that the schema's own type does not take are left out.
fn enumeration(values: &[Value], said: Option<&Value>) -> Option<Value> {
    let is_said = |kind: &str| {
        let is = |said: &Value| said == kind || (said == "number" && kind == "integer");
        match said {
            None => true,
            Some(Value::Array(kinds)) => kinds.iter().any(is),
            Some(said) => is(said),
        }
    };
    let mut by_kind: Vec<(&str, Vec<Value>)> = Vec::new();
    for value in values {
        let kind = kind_of(value)?;
        match by_kind.iter_mut().find(|(known, _)| *known == kind) {
            _ if !is_said(kind) => {}
            Some((_, values)) => values.push(value.clone()),
            None => by_kind.push((kind, vec![value.clone()])),
        }
    }
    let with_null = by_kind.iter().any(|(kind, _)| *kind == "null");
    by_kind.retain(|(kind, _)| *kind != "null");
    let mut branches: Vec<Value> =
        by_kind.into_iter().map(|(kind, values)| json!({"type": kind, "enum": values})).collect();
    let strict = match branches.len() {
        0 => return with_null.then(|| json!({"type": "null"})),
        1 => branches.remove(0),
        _ => json!({ "anyOf": branches }),
    };
    Some(if with_null { or_null(strict) } else { strict })
}

/// The type of a value that strict mode can name; nothing for arrays and objects.
fn kind_of(value: &Value) -> Option<&'static str> {
    match value {
        Value::Null => Some("null"),
        Value::Bool(_) => Some("boolean"),
        Value::String(_) => Some("string"),
        Value::Number(number) if number.is_f64() => Some("number"),
        Value::Number(_) => Some("integer"),
        Value::Array(_) | Value::Object(_) => None,
    }
}

/// The same, or null.
fn or_null(mut strict: Value) -> Value {
    let nothing = json!({"type": "null"});
    if let Some(branches) = strict.get_mut("anyOf").and_then(Value::as_array_mut) {
        if !branches.contains(&nothing) {
            branches.push(nothing);
        }
        return strict;
    }
    let simple = match strict.get("type") {
        Some(Value::String(kind)) if !matches!(kind.as_str(), "object" | "array") => Some(kind.clone()),
        Some(Value::Array(_)) => return strict,
        _ => None,
    };
    match simple.filter(|_| strict.get("const").is_none()) {
        Some(kind) if kind == "null" => strict,
        Some(kind) => {
            strict["type"] = json!([kind, "null"]);
            if let Some(values) = strict.get_mut("enum").and_then(Value::as_array_mut) {
                values.push(Value::Null);
            }
            strict
        }
        None => {
            let description = strict.as_object_mut().and_then(|object| object.shift_remove("description"));
            described(json!({"anyOf": [strict, nothing]}), description.as_ref(), Vec::new())
        }
    }
}

/// The same with a description and notes after what it says already.
fn described(mut strict: Value, description: Option<&Value>, notes: Vec<String>) -> Value {
    let own = strict.as_object_mut().and_then(|object| object.shift_remove("description"));
    let text = [own.as_ref(), description].into_iter().flatten().filter_map(Value::as_str);
    let mut text = text.collect::<Vec<_>>().join(" ");
    if !notes.is_empty() {
        let gap = if text.is_empty() { "" } else { " " };
        text.push_str(&format!("{gap}({})", notes.join("; ")));
    }
    if text.is_empty() {
        return strict;
    }
    // Nothing may stand beside a reference.
    if strict.get("$ref").is_some() {
        strict = json!({ "anyOf": [strict] });
    }
    if let Value::Object(object) = &mut strict {
        object.insert("description".to_owned(), text.into());
    }
    strict
}
