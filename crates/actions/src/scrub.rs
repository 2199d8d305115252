//! Takes credentials out of log fields, artifact metadata and error texts by their key or their unmistakable form.
//!
//! This is the runtime's own last line of defence, for values it is handed by application code; it knows no particular
//! secret. Data that an action returns is its own affair and is never touched.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

/// What stands where something was taken out.
pub(crate) const REDACTED: &str = "[REDACTED]";

const SECRET_KEYS: [&str; 17] = [
    "password",
    "passwd",
    "secret",
    "token",
    "apikey",
    "authorization",
    "proxyauthorization",
    "cookie",
    "setcookie",
    "session",
    "xapikey",
    "accesstoken",
    "refreshtoken",
    "idtoken",
    "privatekey",
    "clientsecret",
    "passphrase",
];

/// Whether a key names a credential, whatever its spelling (`api_key`, `apiKey`, `API-KEY`).
fn is_secret_key(key: &str) -> bool {
    // Longer keys cannot be one of the list, and are not worth folding.
    if key.len() > 32 {
        return false;
    }
    let folded: String =
        key.chars().filter(|c| *c != '_' && *c != '-').map(|c| c.to_ascii_lowercase()).collect();
    SECRET_KEYS.contains(&folded.as_str())
}

struct Form {
    pattern: Regex,
    replacement: &'static str,
}

static FORMS: LazyLock<Vec<Form>> = LazyLock::new(|| {
    [
        (r"(?i)\b(bearer|basic)\s+[A-Za-z0-9+/=._~-]{8,}", "$1 [REDACTED]"),
        (r"\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?", "[REDACTED]"),
        (r"\b(?:sk|pk|rk|ghp|gho|ghu|ghs|ghr|xoxb|xoxp|xoxa|github_pat)[-_][A-Za-z0-9_-]{12,}", "[REDACTED]"),
        (r"([A-Za-z][A-Za-z0-9+.-]*://)[^/\s:@]+:[^/\s@]+@", "$1[REDACTED]@"),
        (
            r#"(?i)\b(password|passwd|secret|token|api[_-]?key|access[_-]?token|refresh[_-]?token|private[_-]?key|client[_-]?secret|passphrase)(["']?\s*[=:]\s*["']?)[^\s"',;&]+"#,
            "$1$2[REDACTED]",
        ),
    ]
    .into_iter()
    .filter_map(|(pattern, replacement)| Some(Form { pattern: Regex::new(pattern).ok()?, replacement }))
    .collect()
});

/// The text without credentials of an unmistakable form.
pub(crate) fn text(text: &str) -> String {
    let mut clean = std::borrow::Cow::Borrowed(text);
    for form in FORMS.iter() {
        if form.pattern.is_match(&clean) {
            clean = form.pattern.replace_all(&clean, form.replacement).into_owned().into();
        }
    }
    clean.into_owned()
}

/// Sends panics to the process's log without credentials, instead of raw to standard error.
pub fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let said = panic.payload_as_str().unwrap_or("a panic without a message");
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(place, "panicked: {}", text(said));
    }));
}

/// Takes the values of credential keys out of structured data, at every depth.
pub(crate) fn value(value: &mut Value) {
    match value {
        Value::Object(object) => {
            for (key, child) in object.iter_mut() {
                if is_secret_key(key) && !child.is_null() {
                    *child = Value::String(REDACTED.to_owned());
                } else {
                    self::value(child);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(self::value),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_form_compiles() {
        assert_eq!(FORMS.len(), 5);
    }

    #[test]
    fn credentials_are_taken_out_of_texts_by_their_form() {
        #[track_caller]
        fn check(before: &str, after: &str) {
            assert_eq!(text(before), after);
        }
        check("Authorization: Bearer abcdef123456", "Authorization: Bearer [REDACTED]");
        check("postgres://ada:hunter22@db/app", "postgres://[REDACTED]@db/app");
        check("key sk-abcdefghijklmnop rest", "key [REDACTED] rest");
        check("api_key=12345 and password: 'x y'", "api_key=[REDACTED] and password: '[REDACTED] y'");
        check(
            "a commit 4b825dc642cb6eb9a060e54bf8d69288fbee4904",
            "a commit 4b825dc642cb6eb9a060e54bf8d69288fbee4904",
        );
        check("the token expired", "the token expired");
    }

    #[test]
    fn values_of_credential_keys_are_taken_out_at_every_depth() {
        let mut fields =
            json!({"apiKey": "k", "deep": [{"Set-Cookie": {"a": 1}}], "tokens": 12, "password": null});
        value(&mut fields);
        assert_eq!(
            fields,
            json!({"apiKey": REDACTED, "deep": [{"Set-Cookie": REDACTED}], "tokens": 12, "password": null})
        );
    }
}
