//! Local references: what `"$ref": "#/$defs/task"` points at. Remote ones and anchors are not followed here.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// The JSON pointer of a local reference, with its percent-encoding undone.
pub(super) fn pointer(schema: &Map<String, Value>) -> Option<Cow<'_, str>> {
    let fragment = schema.get("$ref")?.as_str()?.strip_prefix('#')?;
    if fragment.contains('%') { decode(fragment).map(Cow::Owned) } else { Some(Cow::Borrowed(fragment)) }
}

/// The schema that a local reference points at.
pub(super) fn resolve<'a>(schema: &Map<String, Value>, root: &'a Value) -> Option<&'a Value> {
    root.pointer(&pointer(schema)?)
}

fn decode(fragment: &str) -> Option<String> {
    let mut bytes = fragment.bytes();
    let mut decoded = Vec::with_capacity(fragment.len());
    let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
    while let Some(byte) = bytes.next() {
        decoded.push(if byte == b'%' {
            let (high, low) = (digit(bytes.next())?, digit(bytes.next())?);
            u8::try_from(high * 16 + low).ok()?
        } else {
            byte
        });
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_local_reference_is_a_pointer_in_a_fragment() {
        let root = json!({"$defs": {"plain": 1, "Page<ä/~>": 2, "a%b": 3}});
        for (reference, expected) in [
            ("#/$defs/plain", Some(json!(1))),
            ("#/$defs/Page%3C%C3%A4~1~0%3E", Some(json!(2))),
            ("#/$defs/a%25b", Some(json!(3))),
            ("#", Some(root.clone())),
            ("#/$defs/none", None),
            ("#/$defs/a%2", None),
            ("https://example.com/#/$defs/plain", None),
        ] {
            let schema = json!({"$ref": reference});
            assert_eq!(resolve(schema.as_object().unwrap(), &root), expected.as_ref(), "{reference}");
        }
    }
}
