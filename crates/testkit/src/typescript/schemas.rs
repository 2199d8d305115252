//! What is done to schemas before types are made of them.

use serde_json::Value;

/// Says of every object that is not closed that it is open. It is for what may be sent: there a type that is not meant to be open
/// is closed, and TypeScript refuses a member that a type does not name.
pub fn open_where_not_closed(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            object.values_mut().for_each(open_where_not_closed);
            let is_object = object.get("type").is_some_and(|word| word == "object");
            let composed =
                ["oneOf", "anyOf", "allOf", "$ref"].iter().any(|keyword| object.contains_key(*keyword));
            if is_object && !composed && object.contains_key("properties") {
                object.entry("additionalProperties").or_insert(Value::Bool(true));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(open_where_not_closed),
        _ => {}
    }
}

/// Takes `null` away from what may be left out: what Runyard writes leaves out what there is not, and never says `null` instead.
/// It is for what is written, not for what may be sent.
pub fn without_needless_null(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            let required = object.get("required").cloned().unwrap_or_default();
            let is_required =
                |name: &str| required.as_array().is_some_and(|names| names.iter().any(|one| one == name));
            if let Some(Value::Object(properties)) = object.get_mut("properties") {
                for (_, property) in properties.iter_mut().filter(|(name, _)| !is_required(name)) {
                    take_null_away(property);
                }
            }
            object.values_mut().for_each(without_needless_null);
        }
        Value::Array(items) => items.iter_mut().for_each(without_needless_null),
        _ => {}
    }
}

fn take_null_away(property: &mut Value) {
    let Value::Object(property) = property else { return };
    if let Some(Value::Array(words)) = property.get_mut("type") {
        words.retain(|word| word != "null");
        if let [word] = words.as_slice() {
            let word = word.clone();
            property.insert("type".to_owned(), word);
        }
    }
    if let Some(Value::Array(values)) = property.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    let Some(Value::Array(members)) = property.get_mut("anyOf") else { return };
    members.retain(|member| member.get("type").is_none_or(|word| word != "null"));
    if let [Value::Object(only)] = members.as_slice() {
        let only = only.clone();
        property.shift_remove("anyOf");
        for (keyword, value) in only {
            property.entry(keyword).or_insert(value);
        }
    }
}
