//! Whether a value has the form that its key's name promises. What is wrong is told by its place, never by what stands there.

use serde_json::Value;

/// A value that does not have the form of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadForm {
    /// It is no text.
    #[error("it is no text in UTF-8")]
    NotText,
    /// It is no JSON.
    #[error("it is no JSON (line {line}, column {column})")]
    Json {
        /// Where it stops being one.
        line: usize,
        /// And in which column.
        column: usize,
    },
    /// It is JSON and no object.
    #[error("it is no JSON object")]
    NotAnObject,
    /// It is no TOML.
    #[error("it is no TOML (line {line})")]
    Toml {
        /// Where it stops being one.
        line: usize,
    },
}

/// Checks a value by its key: `….json` holds a JSON object, `….toml` holds TOML, and anything else what it likes.
pub fn check_form(key: &str, value: &[u8]) -> Result<(), BadForm> {
    match key.rsplit_once('.').map(|(_, extension)| extension) {
        Some("json") => json_of(value).map(drop),
        Some("toml") => toml_of(value).map(drop),
        _ => Ok(()),
    }
}

pub(crate) fn json_of(value: &[u8]) -> Result<serde_json::Map<String, Value>, BadForm> {
    let text = std::str::from_utf8(value).map_err(|_| BadForm::NotText)?;
    let bad = |error: serde_json::Error| BadForm::Json { line: error.line(), column: error.column() };
    match serde_json::from_str(text).map_err(bad)? {
        Value::Object(object) => Ok(object),
        _ => Err(BadForm::NotAnObject),
    }
}

pub(crate) fn toml_of(value: &[u8]) -> Result<toml::Table, BadForm> {
    let text = std::str::from_utf8(value).map_err(|_| BadForm::NotText)?;
    text.parse().map_err(|error: toml::de::Error| {
        let at = error.span().map_or(0, |span| span.start);
        BadForm::Toml { line: text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1 }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b11_a_bad_form_is_told_by_its_place_and_never_by_its_text() {
        let check = |key: &str, value: &[u8], expected: Result<(), &str>| {
            let found = check_form(key, value).map_err(|error| error.to_string());
            assert_eq!(found, expected.map_err(str::to_owned), "{key}");
        };
        check("auth.json", br#"{"OPENAI_API_KEY": "sk-1"}"#, Ok(()));
        check("auth.json", b"{\n\"a\": sk-secret}", Err("it is no JSON (line 2, column 6)"));
        check("auth.json", b"[]", Err("it is no JSON object"));
        check("auth.json", b"\"sk-secret\"", Err("it is no JSON object"));
        check("auth.json", b"\xff", Err("it is no text in UTF-8"));
        check("config.toml", b"model = \"m\"\n", Ok(()));
        check("config.toml", b"model = \"m\"\ntoken = sk-secret\n", Err("it is no TOML (line 2)"));
        check("TOKEN", b"\xff{", Ok(()));
    }
}
