//! JSON values in memory: the same rules as for JSON as text, on a tree.

use serde_json::{Map, Value};

use crate::kind::Kind;
use crate::placeholder::{self, SecretKind};
use crate::redactor::Redactor;
use crate::structured::{
    Words, announced, is_collection, is_description, is_secret_pair, is_secret_text, is_value_key,
};

/// What is nested deeper is not shown.
const DEPTH_MAX: usize = 128;

/// Takes secrets out of a value.
pub(crate) fn redact(redactor: &Redactor, value: &mut Value) {
    walk(redactor, value, None, 0);
}

/// `value_kind` is the kind of secret that members such as `value` hold.
fn walk(redactor: &Redactor, value: &mut Value, value_kind: Option<SecretKind>, depth: usize) {
    if depth >= DEPTH_MAX {
        withhold(redactor, value, SecretKind::Secret);
        return;
    }
    match value {
        Value::String(text) => *text = redactor.text(Kind::Text, text).into_inner(),
        Value::Object(members) => walk_object(redactor, members, value_kind, depth),
        Value::Array(items) => {
            let (mut kind, mut words) = (None, Words::default());
            for item in items {
                let next = item.as_str().and_then(|text| words.take(text.as_bytes()));
                under_kind(redactor, item, b"", kind, depth);
                kind = next;
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn walk_object(
    redactor: &Redactor,
    members: &mut Map<String, Value>,
    inherited: Option<SecretKind>,
    depth: usize,
) {
    let mut value_kind = inherited;
    let mut renamed = false;
    for (key, value) in members.iter_mut() {
        let by_name = crate::names::secret_kind(key.as_bytes());
        let pair = value.as_str().is_some_and(|text| is_secret_pair(key.as_bytes(), text.as_bytes()));
        let kind = by_name
            .or(value_kind.filter(|_| is_value_key(key.as_bytes())))
            .or(pair.then_some(SecretKind::Secret));
        let next = value.as_str().and_then(|text| announced(key.as_bytes(), text.as_bytes()));
        match (kind, &*value) {
            (Some(_), Value::Object(_) | Value::Array(_)) if is_collection(key.as_bytes()) => {
                walk(redactor, value, kind, depth + 1);
            }
            _ => under_kind(redactor, value, key.as_bytes(), kind, depth),
        }
        value_kind = next.or(value_kind);
        renamed |= *redactor.text(Kind::Text, key) != *key;
    }
    if renamed {
        let before = std::mem::take(members);
        members.extend(
            before.into_iter().map(|(key, value)| (redactor.text(Kind::Text, &key).into_inner(), value)),
        );
    }
}

/// A value under a key of this kind.
fn under_kind(redactor: &Redactor, value: &mut Value, key: &[u8], kind: Option<SecretKind>, depth: usize) {
    let is_plain = |kind: SecretKind, item: &Value| {
        item.as_str().is_some_and(|text| !is_secret_text(key, kind, text.as_bytes()))
    };
    match (kind, &*value) {
        (None, _) => walk(redactor, value, None, depth + 1),
        (Some(_), Value::Null | Value::Bool(_)) => {}
        // What is empty holds nothing.
        (Some(_), Value::Object(members)) if members.is_empty() => {}
        (Some(kind), Value::String(_)) if is_plain(kind, value) => walk(redactor, value, None, depth + 1),
        (Some(kind), Value::Array(items)) if items.iter().all(|item| is_plain(kind, item)) => {
            walk(redactor, value, None, depth + 1);
        }
        (Some(kind), Value::Object(members)) if describes(members) => {
            walk(redactor, value, Some(kind), depth + 1)
        }
        (Some(kind), _) => withhold(redactor, value, kind),
    }
}

fn describes(members: &Map<String, Value>) -> bool {
    let first = members.iter().next();
    first.is_some_and(|(key, value)| is_description(key.as_bytes(), value.as_str().map(str::as_bytes)))
}

fn is_deeper(value: &Value, depth: usize) -> bool {
    match value {
        Value::Array(items) => depth == 0 || items.iter().any(|item| is_deeper(item, depth - 1)),
        Value::Object(members) => depth == 0 || members.values().any(|member| is_deeper(member, depth - 1)),
        _ => false,
    }
}

fn withhold(redactor: &Redactor, value: &mut Value, kind: SecretKind) {
    let tag = match &*value {
        Value::String(text) => redactor.rules().key.tag(text.as_bytes()),
        // What cannot even be written without running out of stack has no tag of its own.
        other if is_deeper(other, DEPTH_MAX) => redactor.rules().key.tag(b""),
        other => redactor.rules().key.tag(other.to_string().as_bytes()),
    };
    let mut shown = Vec::new();
    placeholder::write(&mut shown, kind, tag);
    *value = Value::String(String::from_utf8(shown).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::placeholder::TagKey;

    fn shown(value: Value) -> Value {
        Redactor::assembled(TagKey::from_bytes([1; 32]), &[], Vec::new()).json(value).into_inner()
    }

    fn nested(levels: usize, leaf: Value, level: impl Fn(Value) -> Value) -> Value {
        (0..levels).fold(leaf, |value, _| level(value))
    }

    /// Checks that the leaf's text is shown inside so many levels, and not inside one more.
    #[track_caller]
    fn check_levels(levels_max: usize, leaf: &Value, level: impl Fn(Value) -> Value) {
        let is_shown = |levels| shown(nested(levels, leaf.clone(), &level)).to_string().contains("required");
        assert_eq!([levels_max, levels_max + 1].map(is_shown), [true, false]);
    }

    #[test]
    fn b11_what_is_nested_too_deep_is_not_shown_in_whatever_it_is_nested() {
        let list = |value| json!([value]);
        check_levels(127, &json!("required"), list);
        check_levels(127, &json!("required"), |value| json!({ "a": value }));
        check_levels(127, &json!("required"), |value| json!({ "credentials": value }));
        check_levels(63, &json!("required"), |value| json!({"password": {"type": "string", "a": value}}));
        check_levels(126, &json!({"password": "required"}), list);
        check_levels(125, &json!({"password": ["required"]}), list);
        check_levels(126, &json!({"credentials": "required"}), list);
    }

    #[test]
    fn what_is_withheld_has_a_tag_of_its_own_unless_it_is_too_deep_to_be_written() {
        fn differ(levels: usize, level: impl Fn(Value) -> Value) -> bool {
            let of = |leaf: &str| shown(json!({"password": nested(levels, json!(leaf), &level)}));
            of("hunter2") != of("hunter3")
        }
        for levels in [1, 127, 128] {
            assert!(differ(levels, |value| json!([value])), "{levels}");
            assert!(differ(levels, |value| json!({ "a": value })), "{levels}");
        }
        for levels in [129, 300] {
            assert!(!differ(levels, |value| json!([value])), "{levels}");
            assert!(!differ(levels, |value| json!({ "a": value })), "{levels}");
        }
    }

    #[test]
    fn b11_what_is_empty_or_only_speaks_of_a_secret_stays() {
        for value in
            [json!({"password": []}), json!({"token": {}}), json!({"secret": ["required", "optional"]})]
        {
            assert_eq!(shown(value.clone()), value);
        }
        for value in [json!({"password": ["hunter2"]}), json!({"secret": ["required", "a1b2c3d4"]})] {
            assert!(!shown(value.clone()).to_string().contains("\":["), "{value}");
        }
    }
}
