//! What a model wants back of its thoughts: kept with the names of the provider and the model, since no other one could read it.

use serde_json::{Value, json};

/// Who thought something.
#[derive(Debug, Clone)]
pub(super) struct Maker {
    pub(super) provider: String,
    pub(super) model: String,
}

impl Maker {
    pub(super) fn new(provider: &str, model: &str) -> Self {
        Maker { provider: provider.to_owned(), model: model.to_owned() }
    }

    /// Keeps what it wants back.
    pub(super) fn seal(&self, item: Value) -> Value {
        json!({"provider": self.provider, "model": self.model, "item": item})
    }

    /// What was kept, if it is its own and of this type.
    pub(super) fn unseal<'a>(&self, sealed: Option<&'a Value>, types: &[&str]) -> Option<&'a Value> {
        let sealed = sealed?;
        let item = sealed.get("item")?;
        let is_known = item["type"].as_str().is_some_and(|kind| types.contains(&kind));
        let is_own = sealed["provider"] == *self.provider && sealed["model"] == *self.model;
        (is_own && is_known).then_some(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_model_sealed_no_other_one_and_no_other_wire_gets() {
        let item = json!({"type": "thinking", "signature": "s"});
        let one = Maker::new("one", "m");
        let sealed = one.seal(item.clone());
        assert_eq!(one.unseal(Some(&sealed), &["thinking"]), Some(&item));
        assert_eq!(Maker::new("two", "m").unseal(Some(&sealed), &["thinking"]), None);
        assert_eq!(Maker::new("one", "n").unseal(Some(&sealed), &["thinking"]), None);
        assert_eq!(one.unseal(Some(&sealed), &["reasoning"]), None);
        assert_eq!(one.unseal(Some(&item), &["thinking"]), None);
        assert_eq!(one.unseal(None, &["thinking"]), None);
    }
}
