//! What a provider wants back of a thought: kept with the provider's name, since no other one could read it.

use serde_json::{Value, json};

/// Keeps what this provider wants back.
pub(super) fn seal(provider: &str, item: Value) -> Value {
    json!({"provider": provider, "item": item})
}

/// What was kept, if it is this provider's and of this type.
pub(super) fn unseal<'a>(sealed: Option<&'a Value>, provider: &str, types: &[&str]) -> Option<&'a Value> {
    let sealed = sealed?;
    let item = sealed.get("item")?;
    let is_known = item["type"].as_str().is_some_and(|kind| types.contains(&kind));
    (sealed["provider"] == provider && is_known).then_some(item)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_provider_sealed_no_other_one_and_no_other_wire_gets() {
        let item = json!({"type": "thinking", "signature": "s"});
        let sealed = seal("one", item.clone());
        assert_eq!(unseal(Some(&sealed), "one", &["thinking"]), Some(&item));
        assert_eq!(unseal(Some(&sealed), "two", &["thinking"]), None);
        assert_eq!(unseal(Some(&sealed), "one", &["reasoning"]), None);
        assert_eq!(unseal(Some(&item), "one", &["thinking"]), None);
        assert_eq!(unseal(None, "one", &["thinking"]), None);
    }
}
