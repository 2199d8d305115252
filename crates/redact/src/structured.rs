//! What counts in structured data: the value of a key that names a secret, wherever it is and whatever it is.
//!
//! Used both on JSON as text ([`crate::json`]) and on values in memory ([`crate::tree`]), so that both agree.

use crate::forms::FORM_MAX;
use crate::forms::headers::decodes_to_a_pair;
use crate::guesses::values::{is_label, is_place_in_keeper, is_plain_words, is_stand_in};
use crate::names::{folded, secret_kind};
use crate::placeholder::SecretKind;

/// Whether a key's text is a secret although the key alone does not say so: `"auth"` as container tools write it.
pub(crate) fn is_secret_pair(key: &[u8], text: &[u8]) -> bool {
    is_pair_key(key) && text.len() <= FORM_MAX && decodes_to_a_pair(text)
}

/// Whether the text of a key may be a user and a password in base64.
pub(crate) fn is_pair_key(key: &[u8]) -> bool {
    key == b"auth"
}

/// Whether what is under a key is looked at member by member: `credentials` holds a user and dates as well.
pub(crate) fn is_collection(key: &[u8]) -> bool {
    let key = folded(key);
    key.ends_with("credentials") || key.ends_with("credential")
}

/// Whether the text under a key that names a secret is one. What is empty, a reference or a mask holds nothing.
pub(crate) fn is_secret_text(key: &[u8], kind: SecretKind, text: &[u8]) -> bool {
    let folded = folded(key);
    let is_words = ["passphrase", "mnemonic", "seedphrase"].iter().any(|name| folded.ends_with(name));
    let is_password = match kind {
        SecretKind::Password | SecretKind::Known => true,
        SecretKind::Secret => !is_collection(key),
        _ => false,
    };
    !is_stand_in(text)
        && !is_label(text)
        && !is_place_in_keeper(text)
        && (is_words || !is_plain_words(text, is_password))
}

/// Whether an object under a key that names a secret describes it rather than holding it: a JSON Schema, by its first
/// member.
pub(crate) fn is_description(first_key: &[u8], first_text: Option<&[u8]>) -> bool {
    match first_key {
        b"type" => first_text.is_none_or(|text| {
            [
                &b"string"[..],
                b"object",
                b"array",
                b"integer",
                b"number",
                b"boolean",
                b"null",
                b"http",
                b"apiKey",
                b"oauth2",
            ]
            .contains(&text)
        }),
        // What a parser saw.
        b"kind" => first_text.is_some_and(|text| text.iter().all(u8::is_ascii_alphabetic)),
        b"$ref" => first_text.is_some_and(|text| text.starts_with(b"#")),
        b"description" | b"title" | b"anyOf" | b"oneOf" | b"allOf" | b"format" | b"minLength"
        | b"maxLength" => true,
        _ => false,
    }
}

/// Whether a key gives the value of what another member of the object names, or what a description describes.
pub(crate) fn is_value_key(key: &[u8]) -> bool {
    [&b"value"[..], b"val", b"default", b"const", b"example", b"stringvalue", b"string_value"]
        .iter()
        .any(|name| key.eq_ignore_ascii_case(name))
}

/// The kind of secret that a member such as `"name": "DB_PASSWORD"` announces for the value beside it.
pub(crate) fn announced(key: &[u8], text: &[u8]) -> Option<SecretKind> {
    let names = [&b"name"[..], b"key", b"header", b"variable", b"field", b"envvar", b"env_var"];
    if names.iter().any(|name| key.eq_ignore_ascii_case(name)) { secret_kind(text) } else { None }
}

/// What the elements of a list say about the next, if they are the words of a command.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Words {
    calls: bool,
    logs_in: bool,
}

impl Words {
    /// Takes an element, and gives the kind of secret that the next one is.
    pub(crate) fn take(&mut self, text: &[u8]) -> Option<SecretKind> {
        let program = text.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        self.calls |= program == b"curl";
        self.logs_in |= program == b"login" || program == b"sshpass";
        match text {
            b"-u" | b"-U" | b"--user" if self.calls => Some(SecretKind::Password),
            b"-p" if self.logs_in => Some(SecretKind::Password),
            _ => announced_in_list(text),
        }
    }
}

/// The kind of secret that an element of a list announces for the next: `["--password", "…"]`,
/// `["Authorization", "…"]`.
fn announced_in_list(text: &[u8]) -> Option<SecretKind> {
    if let Some(flag) = text.strip_prefix(b"--") {
        return secret_kind(flag);
    }
    let headers = ["authorization", "proxyauthorization", "cookie", "setcookie", "xapikey", "xauthtoken"];
    if headers.contains(&folded(text).as_str()) { secret_kind(text) } else { None }
}
