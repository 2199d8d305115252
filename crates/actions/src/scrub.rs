//! Takes credentials out of log fields, artifact metadata and error texts by their key or their unmistakable form.
//!
//! This is the runtime's own last line of defence, for values it is handed by application code; it knows no particular
//! secret. Data that an action returns is its own affair and is never touched.

use std::sync::LazyLock;

use regex::{Regex, RegexSet};
use serde_json::Value;

/// What stands where something was taken out.
pub(crate) const REDACTED: &str = "[REDACTED]";

/// A key that ends in one of these names a credential (`db_password`, `GITHUB_TOKEN`, `apiKey`).
const SECRET_ENDINGS: [&str; 12] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "secretkey",
    "privatekey",
    "credentials",
    "authorization",
    "cookie",
];
/// These name one only when they are the whole key.
const SECRET_WORDS: [&str; 3] = ["session", "sessionid", "pwd"];

/// Whether a key names a credential, whatever its spelling (`api_key`, `apiKey`, `API-KEY`).
fn is_secret_key(key: &str) -> bool {
    // Longer keys are no names, and not worth folding.
    if key.len() > 64 {
        return false;
    }
    let folded: String =
        key.chars().filter(|c| *c != '_' && *c != '-').map(|c| c.to_ascii_lowercase()).collect();
    SECRET_WORDS.contains(&folded.as_str()) || SECRET_ENDINGS.iter().any(|ending| folded.ends_with(ending))
}

/// Credentials of an unmistakable form, and what is left of each. Word boundaries are ASCII ones: with Unicode's the regex
/// engine falls back to its slow path on text that is not ASCII.
const FORMS: [(&str, &str); 9] = [
    (r"-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(?:-----END [A-Z ]*PRIVATE KEY-----)?", "[REDACTED]"),
    (r"(?i)(?-u:\b)(bearer|basic)\s+[A-Za-z0-9+/=._~-]{8,}", "$1 [REDACTED]"),
    (r"(?-u:\b)eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?", "[REDACTED]"),
    (
        r"(?-u:\b)(?:(?:sk|pk|rk|ghp|gho|ghu|ghs|ghr|xoxb|xoxp|xoxa|github_pat|glpat)[-_][A-Za-z0-9_-]{12,}|(?:AKIA|ASIA)[0-9A-Z]{16}|AIza[0-9A-Za-z_-]{35})",
        "[REDACTED]",
    ),
    (r"([A-Za-z][A-Za-z0-9+.-]*://)[^/\s:@]*:[^/\s@]+@", "$1[REDACTED]@"),
    (
        r#"(?i)((?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key)["']?\s*[=:]\s*["'])[^"'\n]+"#,
        "$1[REDACTED]",
    ),
    (
        r#"(?i)((?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key)\s*=\s*)[^\s"',;&\[]+"#,
        "$1[REDACTED]",
    ),
    (
        // Not after a slash: the name of a file, as in `/home/ada/token: not found`.
        r#"(?i)((?:^|[\s"'{,;(?&])[a-z0-9_-]*(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key)\s*:\s*)[^\s"',;&\[]+"#,
        "$1[REDACTED]",
    ),
    (r"(?i)(?-u:\b)(set-cookie|cookie)(\s*:\s*)[^\r\n]+", "$1$2[REDACTED]"),
];

struct Forms {
    /// Whether any form is there at all: most texts hold none, and one look tells.
    any: RegexSet,
    each: Vec<Regex>,
}

static COMPILED: LazyLock<Option<Forms>> = LazyLock::new(|| {
    let any = RegexSet::new(FORMS.iter().map(|(pattern, _)| pattern)).ok()?;
    let each = FORMS.iter().map(|(pattern, _)| Regex::new(pattern).ok()).collect::<Option<Vec<_>>>()?;
    Some(Forms { any, each })
});

/// The text without credentials of an unmistakable form.
pub(crate) fn text(text: &str) -> String {
    let Some(forms) = COMPILED.as_ref() else { return REDACTED.to_owned() };
    if !forms.any.is_match(text) {
        return text.to_owned();
    }
    let replaced = forms.each.iter().zip(FORMS);
    replaced.fold(text.to_owned(), |text, (form, (_, left))| form.replace_all(&text, left).into_owned())
}

/// Sends panics to the process's log without credentials, instead of raw to standard error.
pub fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let said = panic.payload_as_str().unwrap_or("a panic without a message");
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(place, "panicked: {}", text(said));
    }));
}

/// Takes the values of credential keys, and texts of a credential's form, out of structured data at every depth.
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
        Value::String(text) => *text = self::text(text),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_form_compiles() {
        assert!(COMPILED.is_some());
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
        check("api_key=12345 and password: 'x y' end", "api_key=[REDACTED] and password: '[REDACTED]' end");
        check(
            "DB_PASSWORD=foo AWS_SECRET_ACCESS_KEY=bar",
            "DB_PASSWORD=[REDACTED] AWS_SECRET_ACCESS_KEY=[REDACTED]",
        );
        check("AKIAABCDEFGHIJKLMNOP glpat-abcdefghijkl", "[REDACTED] [REDACTED]");
        check("a\n-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\nb", "a\n[REDACTED]\nb");
        check("api_key: 12345", "api_key: [REDACTED]");
        check("cannot read /home/ada/token: not found", "cannot read /home/ada/token: not found");
        check("Cookie: a=b; c=d\nHost: x", "Cookie: [REDACTED]\nHost: x");
        check(
            "a commit 4b825dc642cb6eb9a060e54bf8d69288fbee4904",
            "a commit 4b825dc642cb6eb9a060e54bf8d69288fbee4904",
        );
        check("the token expired, 12 tokens: fine", "the token expired, 12 tokens: fine");
    }

    #[test]
    fn values_of_credential_keys_and_forms_are_taken_out_at_every_depth() {
        let mut fields = json!({
            "apiKey": "k",
            "db_password": "p",
            "GITHUB_TOKEN": 5,
            "deep": [{"Set-Cookie": {"a": 1}}, "see https://ada:pw@host/"],
            "tokens": 12,
            "password": null,
        });
        value(&mut fields);
        assert_eq!(
            fields,
            json!({
                "apiKey": REDACTED,
                "db_password": REDACTED,
                "GITHUB_TOKEN": REDACTED,
                "deep": [{"Set-Cookie": REDACTED}, "see https://[REDACTED]@host/"],
                "tokens": 12,
                "password": null,
            })
        );
    }
}
