//! `actions.ts`: what each action of a hub takes and gives, from the OpenAPI document that it serves.
//!
//! The document has a copy of every type for every action that uses it. Those that say the same become one type; those of one
//! name that differ are told apart by their action.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Map, Value};

use super::emitter::{comment, declaration};
use super::schemas::{open_where_not_closed, without_needless_null};

const COMPONENTS: &str = "#/components/schemas/";

/// An action of the document.
struct Action<'a> {
    name: &'a str,
    said: String,
    input: Value,
    output: Value,
}

/// The whole file, without the actions that `left_out` names.
pub fn actions(document: &Value, left_out: &[String]) -> String {
    let actions = read(document, left_out);
    let components =
        document.pointer("/components/schemas").and_then(Value::as_object).cloned().unwrap_or_default();
    let names = Names::of(components, &actions);
    let mut declarations: BTreeMap<String, String> = BTreeMap::new();
    for (component, schema) in &names.components {
        let name = names.name(component);
        let text = declaration(&name, schema, &|reference| names.of_reference(reference));
        declarations.insert(name, text);
    }
    let mut table = String::new();
    for action in &actions {
        let pascal = pascal(action.name);
        for (side, schema) in [("Input", &action.input), ("Output", &action.output)] {
            let name = format!("{pascal}{side}");
            let text = declaration(&name, schema, &|reference| names.of_reference(reference));
            declarations.insert(name, text);
        }
        table += &comment(&action.said, 2);
        let _ = writeln!(table, "  {}: {{ input: {pascal}Input; output: {pascal}Output }};", action.name);
    }
    let mut text = super::HEAD.to_owned();
    text += "\n/** The actions of a hub, each with what it takes and what it gives. */\nexport interface HubActions {\n";
    text += &table;
    text += "}\n";
    declarations.values().for_each(|declaration| text += &format!("\n{declaration}"));
    text
}

fn read<'a>(document: &'a Value, left_out: &[String]) -> Vec<Action<'a>> {
    let paths = document.get("paths").and_then(Value::as_object).into_iter().flatten();
    let invoked = paths.filter_map(|(path, item)| {
        let name = path.strip_prefix("/api/v1/actions/")?.strip_suffix("/invoke")?;
        Some((name, item.get("post")?))
    });
    invoked
        .filter(|(name, _)| !left_out.iter().any(|left_out| left_out == name))
        .map(|(name, operation)| {
            let at = |pointer: &str| operation.pointer(pointer).cloned().unwrap_or_default();
            let mut output = at("/responses/200/content/application~1json/schema/properties/data");
            without_needless_null(&mut output);
            let mut input = at("/requestBody/content/application~1json/schema/properties/input");
            open_where_not_closed(&mut input);
            Action {
                name,
                said: operation.get("description").and_then(Value::as_str).unwrap_or_default().to_owned(),
                input,
                output,
            }
        })
        .collect()
}

/// What the document's schemas are called.
struct Names {
    /// Those that the actions refer to.
    components: Map<String, Value>,
    /// Which of those that share a short name each is.
    classes: BTreeMap<String, usize>,
}

impl Names {
    fn of(components: Map<String, Value>, actions: &[Action<'_>]) -> Self {
        let is_used = |name: &str| {
            name.split_once('.').is_some_and(|(owner, _)| actions.iter().any(|action| action.name == owner))
        };
        let mut components: Map<String, Value> =
            components.into_iter().filter(|(name, _)| is_used(name)).collect();
        for (name, schema) in &mut components {
            if name.contains(".output.") {
                without_needless_null(schema);
            } else {
                open_where_not_closed(schema);
            }
        }
        let classes = components.keys().map(|name| (name.clone(), 0)).collect();
        let mut names = Names { components, classes };
        // What refers to different things is different itself, and so on until nothing more comes of it.
        loop {
            let finer = names.finer();
            if finer == names.classes {
                return names;
            }
            names.classes = finer;
        }
    }

    fn finer(&self) -> BTreeMap<String, usize> {
        let mut kinds: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
        let mut classes = BTreeMap::new();
        for (name, schema) in &self.components {
            let mut schema = schema.clone();
            self.point_at_classes(&mut schema);
            let kinds = kinds.entry(short(name)).or_default();
            let known = kinds.iter().position(|kind| *kind == schema);
            let class = known.unwrap_or_else(|| {
                kinds.push(schema);
                kinds.len() - 1
            });
            classes.insert(name.clone(), class);
        }
        classes
    }

    fn point_at_classes(&self, schema: &mut Value) {
        match schema {
            Value::Object(object) => {
                for (keyword, value) in object {
                    let target = value
                        .as_str()
                        .filter(|_| keyword == "$ref")
                        .and_then(|text| text.strip_prefix(COMPONENTS));
                    match target {
                        Some(target) => {
                            let class = self.classes.get(target).copied().unwrap_or_default();
                            *value = Value::String(format!("{} {class}", short(target)));
                        }
                        None => self.point_at_classes(value),
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.point_at_classes(item)),
            _ => {}
        }
    }

    fn of_reference(&self, reference: &str) -> String {
        self.name(reference.strip_prefix(COMPONENTS).unwrap_or(reference))
    }

    /// The short name where all of that name are the same, else that of the first that says the same.
    fn name(&self, component: &str) -> String {
        let (short_name, class) = (short(component), self.classes.get(component));
        let alike = |name: &&String| short(name) == short_name;
        if self.classes.iter().filter(|(name, _)| alike(name)).all(|(_, other)| Some(other) == class) {
            return readable(short_name);
        }
        let first = self.classes.iter().find(|(name, other)| alike(name) && Some(*other) == class);
        let owner = first.map_or(component, |(name, _)| name);
        let (action, rest) = owner.split_once('.').unwrap_or((owner, ""));
        let side = rest.split('.').next().unwrap_or_default();
        format!("{}{}{}", pascal(action), pascal(side), readable(short_name))
    }
}

/// The Rust type's name.
fn short(component: &str) -> &str {
    component.rsplit('.').next().unwrap_or(component)
}

/// The same for people: what is a schema of something else in Rust is what may be sent of it.
fn readable(short: &str) -> String {
    short.strip_suffix("Schema").map_or_else(|| short.to_owned(), |name| format!("{name}Input"))
}

fn pascal(name: &str) -> String {
    let words = name.split('_').map(|word| {
        let (first, rest) = word.split_at_checked(1).unwrap_or((word, ""));
        first.to_ascii_uppercase() + rest
    });
    words.collect()
}
