//! What a person gives as a secret, and what is kept of it.

use std::io::Read;

use runyard::{ActionError, Code};
use runyard_edge::{SECRET_BYTES_MAX, Secret, check_form};
use serde_json::json;

use super::invalid;

/// Where codex keeps its provider's key.
pub(super) const AUTH: &str = "auth.json";

/// What is kept.
pub(super) struct Value {
    pub(super) bytes: Secret,
    /// Whether an API key was put into the form that its key has.
    pub(super) wrapped: bool,
}

/// All that is given on standard input.
pub(super) fn read(input: impl Read) -> Result<Secret, ActionError> {
    let mut bytes = Vec::new();
    let read = input.take(SECRET_BYTES_MAX + 1).read_to_end(&mut bytes);
    let given = Secret::new(bytes);
    read.map_err(|error| ActionError::new(Code::StorageIo, format!("Cannot read standard input: {error}.")))?;
    Ok(given)
}

/// What is kept under a key.
pub(super) fn of(key: &str, given: Secret) -> Result<Value, ActionError> {
    let bytes = given.expose();
    if bytes.len() as u64 > SECRET_BYTES_MAX {
        return Err(invalid(format!("A secret has at most {SECRET_BYTES_MAX} bytes.")));
    }
    let trimmed = bytes.trim_ascii();
    if trimmed.is_empty() {
        return Err(invalid("Nothing was given on standard input, so nothing is kept."));
    }
    if key == AUTH
        && let Some(api_key) = api_key(trimmed)
    {
        let wrapped = json!({ "OPENAI_API_KEY": api_key }).to_string();
        return Ok(Value { bytes: Secret::new(wrapped.into_bytes()), wrapped: true });
    }
    check_form(key, bytes)
        .map_err(|error| invalid(format!("What was given cannot be {key}: {error}. Nothing is kept.")))?;
    // The line break at the end of a single line is the shell's.
    let single = !key.ends_with(".json") && !key.ends_with(".toml") && !trimmed.contains(&b'\n');
    let bytes = if single { Secret::new(trimmed.to_vec()) } else { given.clone() };
    Ok(Value { bytes, wrapped: false })
}

/// The text, if it is one word of visible characters and no JSON.
fn api_key(text: &[u8]) -> Option<&str> {
    let is_json = text.starts_with(b"{") || text.starts_with(b"[") || text.starts_with(b"\"");
    let is_word = text.iter().all(u8::is_ascii_graphic);
    (is_word && !is_json).then(|| std::str::from_utf8(text).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn kept(key: &str, given: &str) -> (String, bool) {
        let Value { bytes, wrapped } = of(key, Secret::new(given.as_bytes().to_vec())).unwrap();
        (bytes.text().unwrap().to_owned(), wrapped)
    }

    #[test]
    fn b06_an_api_key_alone_becomes_an_auth_file_and_files_stay_as_they_are() {
        let wrapped = r#"{"OPENAI_API_KEY":"sk-1"}"#.to_owned();
        for given in ["sk-1", "sk-1\n", "  sk-1\r\n"] {
            assert_eq!(kept(AUTH, given), (wrapped.clone(), true));
        }
        let file = "{\n  \"OPENAI_API_KEY\": \"sk-1\"\n}\n";
        assert_eq!(kept(AUTH, file), (file.to_owned(), false));
        assert_eq!(kept("config.toml", "model = \"m\"\n"), ("model = \"m\"\n".to_owned(), false));
        assert_eq!(kept("TOKEN", "tok\n"), ("tok".to_owned(), false));
        assert_eq!(kept("KEY", "-----BEGIN\nabc\n"), ("-----BEGIN\nabc\n".to_owned(), false));
    }

    #[test]
    fn b06_what_cannot_be_kept_is_refused_without_repeating_it() {
        let large = "k".repeat(SECRET_BYTES_MAX as usize + 1);
        for (key, given) in [
            (AUTH, ""),
            (AUTH, " \n"),
            (AUTH, "{sk-1"),
            (AUTH, "[\"sk-1\"]"),
            (AUTH, "two sk-1 words"),
            ("config.toml", "sk-1"),
            ("TOKEN", &large),
        ] {
            let refused = of(key, Secret::new(given.as_bytes().to_vec())).err().unwrap();
            assert_eq!(refused.code().as_str(), "VALIDATION_ERROR");
            assert!(!refused.message().contains("sk-1"), "{}", refused.message());
        }
    }
}
