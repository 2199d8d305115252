//! The provider's key in the file that agents keep it in: `auth.json`, as Codex has it.

use runyard_domain::Wire;
use serde_json::{Map, Value};

/// The key that counts where there are several, for who speaks as OpenAI does.
pub const OPENAI_KEY: &str = "OPENAI_API_KEY";
/// The same for who speaks Anthropic Messages.
pub const ANTHROPIC_KEY: &str = "ANTHROPIC_API_KEY";
/// How the names of other providers' keys end.
const KEY_ENDING: &str = "_API_KEY";

/// Why there is no key to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoKey {
    /// A person's login instead of a key.
    Login,
    /// More than one, and none that comes first.
    Several,
    /// None.
    None,
}

/// The key to a provider that speaks this: that of whose API it is, or the only other one.
pub fn api_key(auth: &Map<String, Value>, wire: Wire) -> Result<&str, NoKey> {
    let own = match wire {
        Wire::Responses | Wire::Chat => OPENAI_KEY,
        Wire::Messages => ANTHROPIC_KEY,
    };
    let text = |value: &'_ Value| value.as_str().is_some_and(|text| !text.trim().is_empty());
    if let Some(key) = auth.get(own).filter(|key| text(key)).and_then(Value::as_str) {
        return Ok(key.trim());
    }
    let mut others = auth.iter().filter(|(name, value)| name.ends_with(KEY_ENDING) && text(value));
    match (others.next().and_then(|(_, value)| value.as_str()), others.next()) {
        (Some(key), None) => Ok(key.trim()),
        (Some(_), Some(_)) => Err(NoKey::Several),
        (None, _) if auth.get("tokens").is_some_and(Value::is_object) => Err(NoKey::Login),
        (None, _) => Err(NoKey::None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn b12_each_provider_gets_the_key_of_its_own_api() {
        let found = |auth: Value, wire| api_key(auth.as_object().unwrap(), wire).map(str::to_owned);
        let both = json!({"OPENAI_API_KEY": "o", "ANTHROPIC_API_KEY": "a"});
        assert_eq!(found(both.clone(), Wire::Messages), Ok("a".to_owned()));
        assert_eq!(found(both, Wire::Responses), Ok("o".to_owned()));
        assert_eq!(found(json!({"OPENAI_API_KEY": " k "}), Wire::Messages), Ok("k".to_owned()));
        assert_eq!(found(json!({"A_API_KEY": "a", "B_API_KEY": "b"}), Wire::Chat), Err(NoKey::Several));
        assert_eq!(found(json!({"tokens": {}}), Wire::Responses), Err(NoKey::Login));
        assert_eq!(found(json!({"OPENAI_API_KEY": ""}), Wire::Responses), Err(NoKey::None));
    }
}
