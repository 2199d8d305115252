//! The names that an object may have at its top level, as far as its schema says them.

use std::collections::{BTreeSet, HashSet};
use std::ptr;

use serde_json::Value;

use super::references;

/// Every name that `properties` mentions, here or in what is referred to or composed. Which of them can occur together
/// is not decided.
pub(super) fn collect(root: &Value) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    // By address: each schema is looked at once, however often and however recursively it is referred to.
    let mut seen = HashSet::new();
    let mut pending = vec![root];
    while let Some(schema) = pending.pop() {
        let Value::Object(object) = schema else { continue };
        if !seen.insert(ptr::from_ref(schema)) {
            continue;
        }
        let properties = object.get("properties").and_then(Value::as_object);
        names.extend(properties.into_iter().flat_map(|properties| properties.keys().map(String::as_str)));
        pending.extend(references::resolve(object, root));
        for composed in ["allOf", "anyOf", "oneOf"] {
            pending.extend(object.get(composed).and_then(Value::as_array).into_iter().flatten());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_found_wherever_the_same_object_is_described() {
        let schema = json!({
            "properties": {"own": {"properties": {"deeper": {}}}},
            "$ref": "#/$defs/a",
            "allOf": [{"properties": {"all": {}}}],
            "anyOf": [{"properties": {"any": {}}}, {"type": "null"}, true],
            "oneOf": [{"oneOf": [{"properties": {"one": {}}}]}],
            "$defs": {
                "a": {"properties": {"referred": {}}, "allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#"}]},
                "unused": {"properties": {"unused": {}}},
            },
        });
        assert_eq!(
            collect(&schema).into_iter().collect::<Vec<_>>(),
            ["all", "any", "one", "own", "referred"]
        );
    }
}
