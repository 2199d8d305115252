//! JSON Schema for inputs and outputs: compiled once on first use, checked without ever repeating the value.

mod closing;
mod defaults;
mod issues;
mod property_names;
mod references;

use std::collections::BTreeSet;
use std::sync::OnceLock;

use jsonschema::{PatternOptions, Validator};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use self::defaults::Defaults;
pub(crate) use self::issues::from_serde;
use crate::{DefinitionError, Issue};

/// A JSON Schema (2020-12). Remote references are never fetched and patterns run in linear time.
#[derive(Debug)]
pub struct Schema {
    json: Value,
    compiled: OnceLock<Result<Compiled, String>>,
}

#[derive(Debug)]
struct Compiled {
    validator: Validator,
    defaults: Defaults,
}

impl Schema {
    /// A schema from its JSON, checked at once.
    pub fn new(json: Value) -> Result<Self, DefinitionError> {
        let schema = Schema::unchecked(json);
        schema.check()?;
        Ok(schema)
    }

    /// The schema that an input type accepts. Properties that a plain struct does not know are refused, not dropped;
    /// what is composed (a flattened enum, a tagged newtype variant) stays as open as serde makes it.
    pub fn of_input<T: JsonSchema>() -> Self {
        let mut json = generate::<T>(SchemaSettings::draft2020_12().for_deserialize());
        walk(&mut json, &mut bound_integers);
        closing::close(&mut json);
        Schema::unchecked(json)
    }

    /// The schema of what an output type gives.
    pub fn of_output<T: JsonSchema>() -> Self {
        let mut json = generate::<T>(SchemaSettings::draft2020_12().for_serialize());
        walk(&mut json, &mut bound_integers);
        Schema::unchecked(json)
    }

    /// The schema of an action without input.
    pub fn empty_object() -> Self {
        Schema::unchecked(json!({"type": "object", "properties": {}, "additionalProperties": false}))
    }

    /// The same schema again.
    pub(crate) fn duplicate(&self) -> Self {
        Schema::unchecked(self.json.clone())
    }

    fn unchecked(json: Value) -> Self {
        Schema { json, compiled: OnceLock::new() }
    }

    /// The schema as JSON.
    pub fn json(&self) -> &Value {
        &self.json
    }

    /// Compiles the schema and checks that its defaults satisfy it.
    pub fn check(&self) -> Result<(), DefinitionError> {
        let invalid = |reason: String| DefinitionError::InvalidSchema { reason };
        self.compiled().map_err(|reason| invalid(reason.to_owned()))?;
        match Defaults::first_invalid(&self.json) {
            None => Ok(()),
            Some(path) => Err(invalid(format!("the default of \"{path}\" does not satisfy its own schema"))),
        }
    }

    /// Fills in defaults for what is missing.
    pub fn apply_defaults(&self, value: &mut Value) {
        if let Ok(compiled) = self.compiled() {
            compiled.defaults.apply(value);
        }
    }

    /// The names that an input object may have at its top level, whichever alternative it is.
    pub(crate) fn property_names(&self) -> BTreeSet<&str> {
        property_names::collect(&self.json)
    }

    /// Every way in which `value` does not satisfy the schema; `Err` when the schema itself is broken.
    pub fn issues(&self, value: &Value) -> Result<Vec<Issue>, &str> {
        let compiled = self.compiled()?;
        if compiled.validator.is_valid(value) {
            return Ok(Vec::new());
        }
        Ok(issues::collect(compiled.validator.iter_errors(value)))
    }

    /// The same of `value` as an action would see it: with defaults for what is missing.
    pub fn issues_with_defaults(&self, value: &Value) -> Result<Vec<Issue>, &str> {
        let mut value = value.clone();
        self.apply_defaults(&mut value);
        self.issues(&value)
    }

    fn compiled(&self) -> Result<&Compiled, &str> {
        self.compiled.get_or_init(|| compile(&self.json)).as_ref().map_err(String::as_str)
    }
}

fn compile(json: &Value) -> Result<Compiled, String> {
    Ok(Compiled { validator: validator(json)?, defaults: Defaults::of(json) })
}

fn validator(json: &Value) -> Result<Validator, String> {
    jsonschema::options()
        .with_draft(jsonschema::Draft::Draft202012)
        .should_validate_formats(true)
        // The linear-time engine: a pattern cannot be made to hang by its input.
        .with_pattern_options(PatternOptions::regex())
        .build(json)
        .map_err(|error| error.to_string())
}

fn generate<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let root = settings.into_generator().into_root_schema_for::<T>();
    let mut json = root.to_value();
    if let Value::Object(object) = &mut json {
        object.remove("$schema");
        // The Rust type's name tells a caller nothing.
        object.remove("title");
    }
    json
}

/// Visits every subschema in the places where schemars puts them.
fn walk(schema: &mut Value, visit: &mut impl FnMut(&mut Map<String, Value>)) {
    let Value::Object(object) = schema else { return };
    visit(object);
    for (key, child) in object.iter_mut() {
        match (key.as_str(), child) {
            ("properties" | "$defs" | "patternProperties" | "dependentSchemas", Value::Object(children)) => {
                children.values_mut().for_each(|child| walk(child, visit));
            }
            ("items" | "additionalProperties" | "not" | "contains" | "propertyNames", child) => {
                walk(child, visit)
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(children)) => {
                children.iter_mut().for_each(|child| walk(child, visit));
            }
            _ => {}
        }
    }
}

/// Says the range that a Rust integer has, where only its `format` tells it.
fn bound_integers(object: &mut Map<String, Value>) {
    let range = match object.get("format").and_then(Value::as_str) {
        Some("int32") => (json!(i32::MIN), json!(i32::MAX)),
        Some("uint32") => (json!(0), json!(u32::MAX)),
        Some("int64" | "int") => (json!(i64::MIN), json!(i64::MAX)),
        Some("uint64" | "uint") => (json!(0), json!(u64::MAX)),
        _ => return,
    };
    if !object.contains_key("exclusiveMinimum") {
        object.entry("minimum").or_insert(range.0);
    }
    if !object.contains_key("exclusiveMaximum") {
        object.entry("maximum").or_insert(range.1);
    }
}
