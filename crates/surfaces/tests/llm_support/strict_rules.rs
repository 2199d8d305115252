//! The rules that OpenAI publishes for schemas in strict mode ("Structured Outputs", supported schemas), for all models, the
//! fine-tuned ones too. It shares no code with what it checks.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// All that a schema breaks, each with its place.
pub(crate) fn broken_rules(schema: &Value) -> Vec<String> {
    let mut check = Check { root: schema, broken: Vec::new(), properties: 0, enum_values: 0, length: 0 };
    if schema["type"] != "object" {
        check.tell("", "the root must be an object");
    }
    if schema.get("anyOf").is_some() {
        check.tell("", "the root must not be anyOf");
    }
    check.schema("", schema);
    for (name, definition) in entries(schema, "$defs") {
        check.length += name.len();
        check.schema(&format!("/$defs/{name}"), definition);
    }
    let limits = [
        (check.properties <= 5000, "more than 5000 properties"),
        (check.enum_values <= 1000, "more than 1000 enum values"),
        (check.length <= 120_000, "names and values of more than 120000 characters"),
        (depth(schema, schema, &mut Vec::new()) <= 10, "more than 10 levels"),
    ];
    limits.iter().filter(|(holds, _)| !holds).for_each(|(_, what)| check.tell("", what));
    check.broken
}

struct Check<'a> {
    root: &'a Value,
    broken: Vec<String>,
    properties: usize,
    enum_values: usize,
    length: usize,
}

impl Check<'_> {
    fn tell(&mut self, at: &str, what: &str) {
        self.broken.push(format!("{at}: {what}"));
    }

    fn schema(&mut self, at: &str, schema: &Value) {
        let Some(object) = schema.as_object() else { return self.tell(at, "is no object") };
        let known = [
            "$defs",
            "$ref",
            "additionalProperties",
            "anyOf",
            "const",
            "description",
            "enum",
            "items",
            "properties",
            "required",
            "type",
        ];
        for key in object.keys().filter(|key| !known.contains(&key.as_str())) {
            self.tell(at, &format!("the keyword {key} is not supported"));
        }
        if object.contains_key("$defs") && !at.is_empty() {
            self.tell(at, "definitions stand at the root");
        }
        if let Some(reference) = object.get("$ref") {
            let pointer = reference.as_str().and_then(|text| text.strip_prefix('#')).unwrap_or("?");
            if self.root.pointer(pointer).is_none() || !(pointer.is_empty() || pointer.starts_with("/$defs/"))
            {
                self.tell(at, "the reference leads nowhere");
            }
            if object.len() > 1 {
                self.tell(at, "$ref cannot have other keywords");
            }
            return;
        }
        if let Some(branches) = object.get("anyOf") {
            return self.any_of(at, branches);
        }
        self.typed(at, object);
    }

    fn any_of(&mut self, at: &str, branches: &Value) {
        let branches = branches.as_array().cloned().unwrap_or_default();
        if branches.is_empty() {
            self.tell(at, "anyOf is empty");
        }
        let mut firsts: Vec<(String, Option<Value>)> = Vec::new();
        for (index, branch) in branches.iter().enumerate() {
            self.schema(&format!("{at}/anyOf/{index}"), branch);
            let target = match branch["$ref"].as_str() {
                Some(reference) => self.root.pointer(&reference[1..]).unwrap_or(branch),
                None => branch,
            };
            if let Some((name, first)) = entries(target, "properties").next() {
                let first = (name.clone(), first.get("const").or_else(|| first.get("enum")).cloned());
                if firsts
                    .iter()
                    .any(|(known, value)| *known == first.0 && (value.is_none() || *value == first.1))
                {
                    self.tell(at, "objects of an anyOf must not share identical first keys");
                }
                firsts.push(first);
            }
        }
    }

    fn typed(&mut self, at: &str, object: &Map<String, Value>) {
        let types: Vec<String> = match object.get("type") {
            Some(Value::String(one)) => vec![one.clone()],
            Some(Value::Array(several)) => {
                several.iter().filter_map(Value::as_str).map(str::to_owned).collect()
            }
            _ => return self.tell(at, "has no type"),
        };
        let known = ["string", "number", "boolean", "integer", "object", "array", "null"];
        if types.is_empty() || !types.iter().all(|one| known.contains(&one.as_str())) {
            self.tell(at, "has a type that is none");
        }
        if types.iter().any(|one| one == "object") {
            self.object(at, object);
        }
        if types.iter().any(|one| one == "array") {
            match object.get("items") {
                Some(items) => self.schema(&format!("{at}/items"), items),
                None => self.tell(at, "an array needs items"),
            }
        }
        let values: Vec<&Value> = object
            .get("enum")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .chain(object.get("const"))
            .collect();
        if values.is_empty() && (object.contains_key("enum") || object.contains_key("const")) {
            self.tell(at, "names no values");
        }
        let is_typed = |value: &Value| {
            let name = match value {
                Value::Null => "null",
                Value::Bool(_) => "boolean",
                Value::String(_) => "string",
                Value::Number(number) if number.is_f64() => "number",
                Value::Number(_) => "integer",
                _ => "nothing",
            };
            types.iter().any(|one| one == name)
        };
        if !values.iter().all(|value| is_typed(value)) {
            self.tell(at, "names a value of another type");
        }
        let length: usize = values.iter().filter_map(|value| value.as_str()).map(str::len).sum();
        if values.len() > 250 && length > 15_000 {
            self.tell(at, "an enum of more than 250 values is longer than 15000 characters");
        }
        self.length += length;
        self.enum_values += object.get("enum").map_or(0, |_| values.len());
    }

    fn object(&mut self, at: &str, object: &Map<String, Value>) {
        if object.get("additionalProperties") != Some(&Value::Bool(false)) {
            self.tell(at, "additionalProperties must be false");
        }
        let schema = Value::Object(object.clone());
        let required: BTreeSet<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let names: BTreeSet<&str> = entries(&schema, "properties").map(|(name, _)| name.as_str()).collect();
        if required != names {
            self.tell(at, "required must name every property");
        }
        for (name, property) in entries(&schema, "properties") {
            self.properties += 1;
            self.length += name.len();
            self.schema(&format!("{at}/properties/{name}"), property);
        }
    }
}

fn entries<'a>(schema: &'a Value, key: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    schema.get(key).and_then(Value::as_object).into_iter().flatten()
}

/// How deep objects stand in each other, through references once.
fn depth<'a>(schema: &'a Value, root: &'a Value, inside: &mut Vec<&'a str>) -> usize {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        if reference == "#" || inside.contains(&reference) {
            return 0;
        }
        inside.push(reference);
        let depth = root.pointer(&reference[1..]).map_or(0, |target| depth(target, root, inside));
        inside.pop();
        return depth;
    }
    let own = usize::from(schema["type"] == "object");
    let properties = entries(schema, "properties").map(|(_, child)| child);
    let branches = schema.get("anyOf").and_then(Value::as_array).into_iter().flatten();
    let children = properties.chain(schema.get("items")).chain(branches);
    own + children.map(|child| depth(child, root, inside)).max().unwrap_or(0)
}
