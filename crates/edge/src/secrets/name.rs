//! The names of profiles and keys: one plain name each, so that none leads anywhere.

use super::SecretsError;

/// How long a name may be, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// Whether it can be the name of a profile's directory or of a key. A mounted Secret's own entries (`..data`) are no names.
pub(super) fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=NAME_BYTES_MAX).contains(&name.len())
        && name.bytes().all(plain)
        && !name.starts_with('.')
        && !name.contains("..")
}

/// The name, if it is one. What is none is not repeated: it may be a value in the wrong place.
pub(super) fn checked<'a>(what: &'static str, name: &'a str) -> Result<&'a str, SecretsError> {
    if is_name(name) { Ok(name) } else { Err(SecretsError::Name { what }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b12_a_name_is_one_plain_name() {
        let longest = "n".repeat(NAME_BYTES_MAX);
        for name in ["a", "codex", "auth.json", "config.toml", "A_b-c.9", "-", "a.", &longest] {
            assert!(is_name(name), "{name}");
        }
        let longer = "n".repeat(NAME_BYTES_MAX + 1);
        for name in [
            "", ".", "..", "..data", ".draft", "a..b", "a/b", "/a", "a\\b", "a b", "a\0", "a\n", "ä", "~",
            "$a", "*", &longer,
        ] {
            assert!(!is_name(name), "{name:?}");
        }
    }
}
