//! Builds the graph of defaults: one node for each set of schemas that together describe one value.
//!
//! Nodes are told apart by the addresses of their schemas, so that a definition is one node however often it is
//! referred to.

use std::collections::{HashMap, HashSet};
use std::ptr;

use serde_json::Value;

use super::{Defaults, Node, Property};
use crate::schema::references;

/// Beyond so many nodes a schema has no defaults. Only parts that overlap in ever new ways make so many.
const NODES_MAX: usize = 100_000;

/// A default as it is written, to be checked.
pub(super) struct Written<'a> {
    pub(super) name: &'a str,
    pub(super) value: &'a Value,
    pub(super) schema: &'a Value,
    /// The node of what describes the value.
    pub(super) inside: usize,
}

/// The graph, and every default in it in the order in which they are found.
pub(super) fn build(root: &Value) -> (Defaults, Vec<Written<'_>>) {
    let mut graph =
        Graph { root, known: HashMap::new(), nodes: Vec::new(), pending: Vec::new(), written: Vec::new() };
    graph.node(&[root]);
    while let Some((node, schemas)) = graph.pending.pop() {
        graph.nodes[node] = graph.expand(&schemas);
    }
    let Graph { mut nodes, written, .. } = graph;
    prune(&mut nodes);
    let mut defaults = Defaults(nodes);
    defaults.complete();
    (defaults, written)
}

struct Graph<'a> {
    root: &'a Value,
    known: HashMap<Vec<*const Value>, usize>,
    nodes: Vec<Node>,
    pending: Vec<(usize, Vec<&'a Value>)>,
    written: Vec<Written<'a>>,
}

impl<'a> Graph<'a> {
    /// The node of a value that all of `schemas` describe.
    fn node(&mut self, schemas: &[&'a Value]) -> usize {
        let mut together = Together { root: self.root, seen: HashSet::new(), schemas: Vec::new() };
        schemas.iter().for_each(|schema| together.add(schema));
        let key = together.schemas.iter().map(|schema| ptr::from_ref(*schema)).collect();
        let next = self.nodes.len();
        *self.known.entry(key).or_insert_with(|| {
            self.nodes.push(Node::default());
            if next < NODES_MAX {
                self.pending.push((next, together.schemas));
            }
            next
        })
    }

    fn expand(&mut self, schemas: &[&'a Value]) -> Node {
        let mut names: Vec<&'a str> = Vec::new();
        let mut named: HashMap<&'a str, Vec<&'a Value>> = HashMap::new();
        for (name, property) in
            schemas.iter().filter_map(|schema| schema.get("properties")?.as_object()).flatten()
        {
            let properties = named.entry(name).or_default();
            if properties.is_empty() {
                names.push(name);
            }
            properties.push(property);
        }
        let mut properties = Vec::with_capacity(names.len());
        for name in names {
            let described = named.remove(name).unwrap_or_default();
            let inside = self.node(&described);
            let written = || described.iter().filter_map(|schema| Some((*schema, schema.get("default")?)));
            let value = written().next().map(|(_, value)| value.clone());
            self.written.extend(written().map(|(schema, value)| Written { name, value, schema, inside }));
            properties.push(Property { name: name.to_owned(), value, inside: Some(inside) });
        }
        let items: Vec<&'a Value> = schemas.iter().filter_map(|schema| schema.get("items")).collect();
        let items = if items.is_empty() { None } else { Some(self.node(&items)) };
        Node { properties, items }
    }
}

/// Finds all that describes the same value and says something of what is inside it.
struct Together<'a> {
    root: &'a Value,
    seen: HashSet<*const Value>,
    schemas: Vec<&'a Value>,
}

impl<'a> Together<'a> {
    fn add(&mut self, schema: &'a Value) {
        let Value::Object(object) = schema else { return };
        if !self.seen.insert(ptr::from_ref(schema)) {
            return;
        }
        if let Some(target) = references::resolve(object, self.root) {
            self.add(target);
        }
        for part in object.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.add(part);
        }
        if object.contains_key("properties") || object.contains_key("items") {
            self.schemas.push(schema);
        }
        if let Some(present) = object.get("anyOf").and_then(optional) {
            self.add(present);
        }
    }
}

/// The X of `anyOf [X, null]`.
fn optional(any_of: &Value) -> Option<&Value> {
    let is_null = |schema: &Value| schema.get("type").and_then(Value::as_str) == Some("null");
    match any_of.as_array()?.as_slice() {
        [present, null] | [null, present] if is_null(null) => Some(present),
        _ => None,
    }
}

/// Drops what has no default anywhere inside, so that applying costs nothing there.
fn prune(nodes: &mut Vec<Node>) {
    let mut live = vec![false; nodes.len()];
    let mut changed = true;
    while changed {
        changed = false;
        // A node comes before what is inside it, mostly: backwards there is little to repeat.
        for index in (0..nodes.len()).rev().filter(|index| !live[*index]).collect::<Vec<_>>() {
            let node = &nodes[index];
            live[index] = node.items.is_some_and(|items| live[items])
                || node.properties.iter().any(|property| {
                    property.value.is_some() || property.inside.is_some_and(|inside| live[inside])
                });
            changed |= live[index];
        }
    }
    for node in nodes.iter_mut() {
        node.items = node.items.filter(|items| live[*items]);
        for property in &mut node.properties {
            property.inside = property.inside.filter(|inside| live[*inside]);
        }
        node.properties.retain(|property| property.value.is_some() || property.inside.is_some());
    }
    if !live.first().is_some_and(|live| *live) {
        nodes.clear();
    }
}
