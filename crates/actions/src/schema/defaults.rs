//! Defaults of a schema, found once, filled in on every call.
//!
//! Only defaults that hold whatever the value is are applied: those of properties and items, through local references,
//! `allOf`, and `anyOf [X, null]`, which is how an optional value is written. Which branch of any other `anyOf` or of
//! `oneOf` would apply is not decided here.
//!
//! They are a graph, so a recursive schema costs no more than what is written of it, and its defaults are found as deep
//! as a value goes.

mod graph;

use std::collections::HashSet;
use std::ptr;

use serde_json::{Map, Value, json};

/// So many defaults are filled in inside one default, which may be of a recursive type.
const NESTED_MAX: usize = 1_000;
/// So deep does a default have defaults inside that it does not itself mention.
const NESTED_DEPTH_MAX: usize = 32;

/// The first node is the root; where there is no default at all, there is no node.
#[derive(Debug)]
pub(super) struct Defaults(Vec<Node>);

/// Everything that describes one value, and has a default somewhere inside.
#[derive(Debug, Default)]
struct Node {
    properties: Vec<Property>,
    items: Option<usize>,
}

#[derive(Debug)]
struct Property {
    name: String,
    /// What is filled in, with its own defaults.
    value: Option<Value>,
    inside: Option<usize>,
}

impl Defaults {
    pub(super) fn of(root: &Value) -> Defaults {
        graph::build(root).0
    }

    pub(super) fn apply(&self, value: &mut Value) {
        if !self.0.is_empty() {
            self.apply_node(0, value);
        }
    }

    /// Goes only where the value already was, so it ends however the schema refers to itself.
    fn apply_node(&self, node: usize, value: &mut Value) {
        let Some(node) = self.0.get(node) else { return };
        match value {
            Value::Object(object) => {
                for property in &node.properties {
                    self.apply_property(property, object);
                }
            }
            Value::Array(items) => {
                if let Some(inside) = node.items {
                    items.iter_mut().for_each(|item| self.apply_node(inside, item));
                }
            }
            _ => {}
        }
    }

    fn apply_property(&self, property: &Property, object: &mut Map<String, Value>) {
        match (object.get_mut(&property.name), property.inside, &property.value) {
            (Some(present), Some(inside), _) => self.apply_node(inside, present),
            (None, _, Some(value)) => {
                object.insert(property.name.clone(), value.clone());
            }
            _ => {}
        }
    }

    /// Fills every default with the defaults inside it.
    fn complete(&mut self) {
        let mut completed = Vec::new();
        for (node, Node { properties, .. }) in self.0.iter().enumerate() {
            for (index, property) in properties.iter().enumerate() {
                if let (Some(value), Some(inside)) = (&property.value, property.inside) {
                    let mut value = value.clone();
                    Filling { defaults: self, under_way: vec![(node, index)], left: NESTED_MAX }
                        .fill(inside, &mut value);
                    completed.push((node, index, value));
                }
            }
        }
        for (node, index, value) in completed {
            self.0[node].properties[index].value = Some(value);
        }
    }

    /// The name of a property whose default its own schema refuses. Off the hot path: builds the graph again.
    pub(super) fn first_invalid(root: &Value) -> Option<String> {
        let (defaults, written) = graph::build(root);
        let mut checked = HashSet::new();
        written
            .into_iter()
            .filter(|default| checked.insert(ptr::from_ref(default.schema)))
            .find(|default| {
                let mut value = default.value.clone();
                defaults.apply_node(default.inside, &mut value);
                !satisfies(&value, default.schema, root)
            })
            .map(|default| default.name.to_owned())
    }
}

/// Filling in a default: one that is under way is not filled in again inside itself, or it would never end.
struct Filling<'a> {
    defaults: &'a Defaults,
    under_way: Vec<(usize, usize)>,
    left: usize,
}

impl Filling<'_> {
    fn fill(&mut self, node: usize, value: &mut Value) {
        let Some(Node { properties, items }) = self.defaults.0.get(node) else { return };
        match value {
            Value::Object(object) => {
                for (index, property) in properties.iter().enumerate() {
                    self.fill_property((node, index), property, object);
                }
            }
            Value::Array(values) => {
                if let Some(inside) = items {
                    values.iter_mut().for_each(|value| self.fill(*inside, value));
                }
            }
            _ => {}
        }
    }

    fn fill_property(&mut self, at: (usize, usize), property: &Property, object: &mut Map<String, Value>) {
        if let Some(present) = object.get_mut(&property.name) {
            if let Some(inside) = property.inside {
                self.fill(inside, present);
            }
            return;
        }
        let Some(value) = &property.value else { return };
        if self.left == 0 || self.under_way.len() >= NESTED_DEPTH_MAX || self.under_way.contains(&at) {
            return;
        }
        self.left -= 1;
        let mut value = value.clone();
        if let Some(inside) = property.inside {
            self.under_way.push(at);
            self.fill(inside, &mut value);
            self.under_way.pop();
        }
        object.insert(property.name.clone(), value);
    }
}

/// Whether a default satisfies its property's schema, with all that the root defines in reach.
fn satisfies(value: &Value, schema: &Value, root: &Value) -> bool {
    const ROOT: &str = "runyard:///root";
    let mut root = root.clone();
    if let Value::Object(root) = &mut root {
        root.insert("$id".to_owned(), ROOT.into());
        if let Value::Object(definitions) = root.entry("$defs").or_insert_with(|| json!({})) {
            definitions.insert("runyard_default".to_owned(), schema.clone());
        }
    }
    super::validator(&json!({"$ref": format!("{ROOT}#/$defs/runyard_default"), "$defs": {"root": root}}))
        .is_ok_and(|validator| validator.is_valid(value))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

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

    #[track_caller]
    fn check(schema: Value, given: Value, expected: Value) {
        let mut value = given;
        Schema::new(schema).unwrap().apply_defaults(&mut value);
        assert_eq!(value, expected);
    }

    /// `{"p0": {"p0": ... inner}}`, so deep.
    fn nested(name: &str, depth: usize, inner: Value) -> Value {
        (0..depth).fold(inner, |value, _| json!({name: value}))
    }

    #[test]
    fn a_schema_that_refers_to_itself_often_has_its_defaults_at_any_depth() {
        let mut filter: Value =
            (0..8).map(|n| (format!("p{n}"), json!({"$ref": "#/$defs/filter"}))).collect();
        filter["on"] = json!({"type": "boolean", "default": true});
        let schema = Schema::new(json!({
            "$ref": "#/$defs/filter",
            "$defs": {"filter": {"type": "object", "properties": filter}},
        }))
        .unwrap();
        let mut value = nested("p7", 50, json!({}));
        schema.apply_defaults(&mut value);
        let deepest = (0..50).fold(&value, |value, _| &value["p7"]);
        assert_eq!(*deepest, json!({"on": true}));
        assert_eq!(value["p7"]["on"], json!(true));
    }

    #[test]
    fn a_default_of_a_recursive_type_is_not_filled_in_inside_itself() {
        let next = json!({"$ref": "#", "default": {}});
        check(
            json!({"type": "object", "properties": {"next": next, "n": {"default": 1}}}),
            json!({}),
            json!({"next": {"n": 1}, "n": 1}),
        );
        // Described twice, once without a default: what one part fills in, the other does not go into.
        check(
            json!({"allOf": [{"properties": {"next": next}}, {"properties": {"next": {"$ref": "#"}}}]}),
            json!({}),
            json!({"next": {}}),
        );
        let many: Value = (0..30).map(|n| (format!("p{n}"), next.clone())).collect();
        assert!(Schema::new(json!({"properties": many})).is_ok());
        check(
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}, {"properties": {"n": {"default": 1}}}]}}}),
            json!({}),
            json!({"n": 1}),
        );
    }

    #[test]
    fn an_optional_value_that_is_there_has_its_defaults() {
        let schema = json!({
            "properties": {
                "one": {"anyOf": [{"$ref": "#/$defs/inner"}, {"type": "null"}]},
                "many": {"anyOf": [{"type": "null"}, {"items": {"$ref": "#/$defs/inner"}}]},
                "either": {"anyOf": [{"$ref": "#/$defs/inner"}, {"type": "object"}]},
                "exact": {"oneOf": [{"$ref": "#/$defs/inner"}, {"type": "null"}]},
            },
            "$defs": {"inner": {"properties": {"n": {"default": 1}}}},
        });
        check(
            schema.clone(),
            json!({"one": {}, "many": [{}], "either": {}, "exact": {}}),
            json!({"one": {"n": 1}, "many": [{"n": 1}], "either": {}, "exact": {}}),
        );
        check(schema.clone(), json!({"one": null, "many": null}), json!({"one": null, "many": null}));
        check(schema, json!({}), json!({}));
    }

    #[test]
    fn the_first_of_several_defaults_of_a_property_counts_and_all_describe_what_is_inside() {
        check(
            json!({
                "$ref": "#/$defs/base",
                "properties": {"a": {"default": 2}, "b": {"properties": {"y": {"default": 2}}}},
                "$defs": {"base": {"properties": {"a": {"default": 1}, "b": {"properties": {"x": {"default": 1}}, "default": {}}}}},
            }),
            json!({}),
            json!({"a": 1, "b": {"x": 1, "y": 2}}),
        );
    }

    #[test]
    fn where_there_is_no_default_nothing_is_kept() {
        let schema = json!({"properties": {"a": {"$ref": "#"}, "b": {"items": {"$ref": "#"}}}});
        assert!(super::Defaults::of(&schema).0.is_empty());
    }

    #[test]
    fn a_default_is_checked_as_it_is_filled_in() {
        let with = |default: Value| {
            json!({
                "type": "object",
                "properties": {"next": {"$ref": "#", "default": default}, "n": {"type": "integer", "default": 1}},
                "required": ["n"],
            })
        };
        assert!(Schema::new(with(json!({}))).is_ok());
        assert!(Schema::new(with(json!({"next": {"next": {}}}))).is_ok());
        assert!(Schema::new(with(json!({"next": {"n": "one"}}))).is_err());
        assert!(Schema::new(with(json!(3))).is_err());
    }
}
