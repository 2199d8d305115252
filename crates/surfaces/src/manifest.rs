//! The manifest: every action of an application as one JSON document, for tools and for `diff`.

use runyard_actions::Runtime;
use serde_json::{Value, json};

/// The manifest of all actions, private ones left out, in the order of names. Two runs give the same bytes.
pub fn manifest(name: &str, version: &str, runtime: &Runtime) -> Value {
    let actions: Vec<Value> = runtime
        .actions()
        .filter(|action| action.spec().visibility != runyard_actions::Visibility::Private)
        .map(runyard_actions::Action::manifest)
        .collect();
    json!({"name": name, "version": version, "actions": actions})
}
