//! The provider's key in the file that agents keep it in: `auth.json`, as Codex has it.

use serde_json::{Map, Value};

/// The key that counts where there are several.
pub const OPENAI_KEY: &str = "OPENAI_API_KEY";
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

/// The key: that of OpenAI, or the only other one.
pub fn api_key(auth: &Map<String, Value>) -> Result<&str, NoKey> {
    let text = |value: &'_ Value| value.as_str().is_some_and(|text| !text.trim().is_empty());
    if let Some(key) = auth.get(OPENAI_KEY).filter(|key| text(key)).and_then(Value::as_str) {
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
