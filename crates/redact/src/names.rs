//! Which names say that a value is secret, whatever their spelling: `DB_PASSWORD`, `apiKey`, `x-api-key`.
//!
//! A name counts by how it ends. `max_tokens` counts tokens, `token_url` is no token, and `primary_key` opens no door.

use crate::placeholder::SecretKind;

/// Longer keys are no names.
pub(crate) const NAME_MAX: usize = 64;

/// Endings that name a secret, folded.
const ENDINGS: [(&str, SecretKind); 20] = [
    ("password", SecretKind::Password),
    ("passwd", SecretKind::Password),
    ("passphrase", SecretKind::Password),
    ("passcode", SecretKind::Password),
    ("passwort", SecretKind::Password),
    ("kennwort", SecretKind::Password),
    ("contrasena", SecretKind::Password),
    ("motdepasse", SecretKind::Password),
    ("presharedkey", SecretKind::Key),
    ("mnemonic", SecretKind::Secret),
    ("seedphrase", SecretKind::Secret),
    ("sessid", SecretKind::Cookie),
    ("secret", SecretKind::Secret),
    ("token", SecretKind::Token),
    ("credential", SecretKind::Secret),
    ("credentials", SecretKind::Secret),
    ("authorization", SecretKind::Header),
    ("cookie", SecretKind::Cookie),
    ("cookies", SecretKind::Cookie),
    ("connectionstring", SecretKind::Secret),
];

/// Names that are secret only as a whole, folded.
const WHOLE: [(&str, SecretKind); 9] = [
    ("pwd", SecretKind::Password),
    ("psk", SecretKind::Password),
    ("senha", SecretKind::Password),
    ("pass", SecretKind::Password),
    ("passwords", SecretKind::Password),
    ("apikeys", SecretKind::Key),
    ("bearer", SecretKind::Token),
    ("jwt", SecretKind::Jwt),
    ("sas", SecretKind::Token),
];

/// What makes a `…key` one that opens something.
#[rustfmt::skip]
const KEY_QUALIFIERS: &[&str] = &[
    "api", "access", "private", "secret", "encryption", "encrypt", "decryption", "signing", "sign",
    "master", "account", "auth", "shared", "storage", "ssh", "deploy", "service", "hmac", "jwt", "session",
    "webhook", "subscription", "admin", "function", "write", "app", "client", "consumer", "server", "aes",
    "enc", "cipher", "crypto", "recovery", "fernet", "servicerole", "stripe", "openai", "anthropic", "gemini", "mistral",
    "groq", "sendgrid", "twilio", "mailgun", "datadog", "algolia",
];

/// What makes a `…pass` or `…pwd` a password; `compass` and `bypass` are none.
#[rustfmt::skip]
const PASS_QUALIFIERS: &[&str] = &[
    "db", "user", "admin", "root", "smtp", "mail", "ftp", "redis", "mysql", "database", "proxy",
    "basicauth", "store", "key", "ssl", "cert", "ssh", "vpn", "wifi", "login", "bind", "sudo", "my",
];

/// `…token` that says where to go on, or what a parser or model saw.
#[rustfmt::skip]
const HARMLESS_TOKENS: &[&str] = &[
    "next", "page", "nextpage", "pagination", "continuation", "continue", "resume", "sync", "cancellation",
    "cancel", "eos", "bos", "pad", "unk", "sep", "mask", "cls", "start", "end", "stop", "last", "first",
    "current", "prev", "previous", "unexpected", "expected", "idempotency", "per",
];

/// What may stand behind the word that counts: which of several it is, or how it is written.
#[rustfmt::skip]
const SUFFIXES: &[&str] = &[
    "base", "prod", "production", "dev", "development", "test", "staging", "live", "sandbox", "value",
    "plain", "plaintext", "raw", "base64", "b64", "hex", "json", "pem", "old", "new", "current", "primary",
    "secondary", "default", "backup", "data",
];

/// Letters and digits of a name in lower case, nothing else.
pub(crate) fn folded(name: &[u8]) -> String {
    name.iter()
        .filter(|byte| byte.is_ascii_alphanumeric())
        .map(|byte| char::from(byte.to_ascii_lowercase()))
        .collect()
}

/// The kind of secret that a name stands for, if it stands for one.
pub(crate) fn secret_kind(name: &[u8]) -> Option<SecretKind> {
    if name.len() > NAME_MAX {
        return None;
    }
    let whole = folded(name);
    kind_of_folded(&whole, name).or_else(|| {
        // `API_KEY_2`, `SECRET_KEY_BASE`: the last part says only which one.
        let cut = name.iter().rposition(|byte| matches!(byte, b'_' | b'-' | b'.'))?;
        let last = folded(&name[cut..]);
        let is_number = !last.is_empty() && last.len() <= 2 && last.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number && !SUFFIXES.contains(&last.as_str()) {
            return None;
        }
        kind_of_folded(&folded(&name[..cut]), &name[..cut])
    })
}

fn kind_of_folded(folded: &str, name: &[u8]) -> Option<SecretKind> {
    let digits = folded.bytes().rev().take_while(u8::is_ascii_digit).count();
    let folded = if digits <= 2 { &folded[..folded.len() - digits] } else { folded };
    if let Some((_, kind)) = WHOLE.iter().find(|(whole, _)| *whole == folded) {
        return Some(*kind);
    }
    if let Some((ending, kind)) = ENDINGS.iter().find(|(ending, _)| folded.ends_with(ending)) {
        let before = &folded[..folded.len() - ending.len()];
        let harmless = *ending == "token" && HARMLESS_TOKENS.iter().any(|word| before.ends_with(word));
        return (!harmless).then_some(*kind);
    }
    let qualified = |ending: &str, qualifiers: &[&str]| {
        folded.strip_suffix(ending).is_some_and(|before| qualifiers.iter().any(|word| before.ends_with(word)))
    };
    if qualified("key", KEY_QUALIFIERS) {
        return Some(SecretKind::Key);
    }
    let parted = |ending: &str| {
        let before = name.len().checked_sub(ending.len() + 1);
        before.is_some_and(|at| {
            matches!(name[at], b'_' | b'-' | b'.') && name[at + 1..].eq_ignore_ascii_case(ending.as_bytes())
        })
    };
    let is_password =
        ["pass", "pwd", "pw"].iter().any(|ending| qualified(ending, PASS_QUALIFIERS) || parted(ending));
    if is_password {
        return Some(SecretKind::Password);
    }
    if name.eq_ignore_ascii_case(b"_auth") {
        return Some(SecretKind::Secret);
    }
    (folded == "accesskeyid" || folded.ends_with("secretkeybase")).then_some(SecretKind::Key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_count_by_how_they_end() {
        #[track_caller]
        fn check(names: &[&str], secret: bool) {
            for name in names {
                assert_eq!(secret_kind(name.as_bytes()).is_some(), secret, "{name}");
            }
        }
        check(
            &[
                "password",
                "DB_PASSWORD",
                "dbPassword",
                "apiKey",
                "api_key",
                "API-KEY",
                "x-api-key",
                "client_secret",
                "AWS_SECRET_ACCESS_KEY",
                "GITHUB_TOKEN",
                "accessToken",
                "Authorization",
                "Set-Cookie",
                "pwd",
                "credentials",
                "private_key",
                "DB_PASS",
                "SMTP_PWD",
                "SECRET_KEY_BASE",
                "API_KEY_2",
                "password2",
                "STRIPE_SECRET_KEY_LIVE",
                "encryptionKey",
                "passphrase",
                "TOKEN",
                "_authToken",
                "STRIPE_KEY",
                "FERNET_KEY",
                "SUPABASE_SERVICE_ROLE_KEY",
            ],
            true,
        );
        check(
            &[
                "tokens",
                "max_tokens",
                "token_count",
                "password_length",
                "token_url",
                "primary_key",
                "key",
                "publicKey",
                "foreign_key",
                "nextPageToken",
                "eos_token",
                "sessionId",
                "secret_name",
                "password_hash",
                "author",
                "compass",
                "bypass",
                "monkey",
                "keyboard",
                "tokenizer",
                "cancellation_token",
                "sort_key",
                "key_id",
                "cookie_policy",
                "GPG_KEY",
                "cache_key",
                "OLDPWD2X",
            ],
            false,
        );
        check(
            &[
                "foo_pw",
                "foo-pwd",
                "foo.pass",
                "dbpass",
                "ROOTPWD",
                "API_KEY_12",
                "password12",
                "api_key_b64",
            ],
            true,
        );
        check(&["foopw", "xpass", "API_KEY_123", "password123", "api_key_x", "_auth2"], false);
        let long = |length: usize| [vec![b'a'; length - 8], b"password".to_vec()].concat();
        assert_eq!(secret_kind(&long(NAME_MAX)), Some(SecretKind::Password));
        assert_eq!(secret_kind(&long(NAME_MAX + 1)), None);
    }
}
