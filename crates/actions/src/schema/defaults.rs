//! Defaults of a schema, found once, filled in on every call.
//!
//! Only defaults that hold whatever the value is are applied: those of properties and items, through local references and
//! `allOf`. Which branch of `anyOf` or `oneOf` would apply is not decided here.

use serde_json::{Map, Value};

/// References are followed this far; a recursive type has no default deeper down.
const REFERENCE_DEPTH_MAX: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Defaults {
    properties: Vec<PropertyDefault>,
    items: Option<Box<Defaults>>,
}

#[derive(Debug)]
struct PropertyDefault {
    name: String,
    value: Option<Value>,
    schema: Value,
    inside: Defaults,
}

impl Defaults {
    pub(super) fn of(root: &Value) -> Defaults {
        let mut defaults = Defaults::default();
        defaults.gather(root, root, 0);
        defaults
    }

    fn is_empty(&self) -> bool {
        self.properties.is_empty() && self.items.is_none()
    }

    fn gather(&mut self, schema: &Value, root: &Value, depth: usize) {
        if depth > REFERENCE_DEPTH_MAX {
            return;
        }
        let Value::Object(object) = schema else { return };
        if let Some(target) = resolve(object, root) {
            self.gather(target, root, depth + 1);
        }
        for part in object.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.gather(part, root, depth + 1);
        }
        for (name, property) in object.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let mut inside = Defaults::default();
            inside.gather(property, root, depth + 1);
            let value = property.get("default").cloned();
            if value.is_some() || !inside.is_empty() {
                self.properties.push(PropertyDefault {
                    name: name.clone(),
                    value,
                    schema: property.clone(),
                    inside,
                });
            }
        }
        if let Some(items) = object.get("items") {
            let mut inside = Defaults::default();
            inside.gather(items, root, depth + 1);
            if !inside.is_empty() {
                self.items = Some(Box::new(inside));
            }
        }
    }

    pub(super) fn apply(&self, value: &mut Value) {
        match value {
            Value::Object(object) => {
                for property in &self.properties {
                    property.apply(object);
                }
            }
            Value::Array(items) => {
                if let Some(inside) = &self.items {
                    items.iter_mut().for_each(|item| inside.apply(item));
                }
            }
            _ => {}
        }
    }

    /// The name of a property whose default its own schema refuses.
    pub(super) fn first_invalid(&self, root: &Value) -> Option<String> {
        self.properties
            .iter()
            .find_map(|property| {
                let invalid =
                    property.value.as_ref().is_some_and(|value| !satisfies(value, &property.schema, root));
                if invalid { Some(property.name.clone()) } else { property.inside.first_invalid(root) }
            })
            .or_else(|| self.items.as_ref().and_then(|items| items.first_invalid(root)))
    }
}

impl PropertyDefault {
    fn apply(&self, object: &mut Map<String, Value>) {
        match object.get_mut(&self.name) {
            Some(present) => self.inside.apply(present),
            None => {
                if let Some(value) = &self.value {
                    let mut value = value.clone();
                    self.inside.apply(&mut value);
                    object.insert(self.name.clone(), value);
                }
            }
        }
    }
}

fn resolve<'a>(object: &Map<String, Value>, root: &'a Value) -> Option<&'a Value> {
    let pointer = object.get("$ref")?.as_str()?.strip_prefix('#')?;
    root.pointer(pointer)
}

/// Whether a default satisfies its property's schema, with the root's definitions in reach.
fn satisfies(value: &Value, schema: &Value, root: &Value) -> bool {
    let mut schema = schema.clone();
    if let (Value::Object(object), Some(definitions)) = (&mut schema, root.get("$defs")) {
        object.insert("$defs".to_owned(), definitions.clone());
    }
    super::compile(&schema).is_ok_and(|compiled| compiled.validator.is_valid(value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::Schema;

    #[test]
    fn a03_defaults_are_filled_in_at_every_depth() {
        let schema = Schema::new(json!({
            "properties": {
                "size": {"type": "integer", "default": 3},
                "inner": {"$ref": "#/$defs/inner"},
                "list": {"items": {"$ref": "#/$defs/inner"}},
            },
            "$defs": {"inner": {"properties": {"on": {"type": "boolean", "default": true}, "next": {"$ref": "#/$defs/inner"}}}},
        }))
        .unwrap();
        let mut value = json!({"inner": {"next": {}}, "list": [{}, {"on": false}]});
        schema.apply_defaults(&mut value);
        assert_eq!(
            value,
            json!({
                "size": 3,
                "inner": {"on": true, "next": {"on": true}},
                "list": [{"on": true}, {"on": false}],
            })
        );
    }

    #[test]
    fn an_invalid_default_is_refused_when_the_schema_is_defined() {
        let error =
            Schema::new(json!({"properties": {"n": {"type": "integer", "default": "three"}}})).unwrap_err();
        assert!(error.to_string().contains("default of \"n\""), "{error}");
    }
}
