//! What stands where a secret was: `[REDACTED:<kind>:<tag>]`, with a tag that only the installation's key can make.
//!
//! The tag tells two secrets apart and shows that two places held the same one. Without the key it can neither be turned
//! back nor be guessed at.

use std::fmt;
use std::hash::{BuildHasher, RandomState};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

const OPENING: &[u8] = b"[REDACTED:";
/// Longest word for a kind that is still read as one of ours, also from a later version.
const KIND_LEN_MAX: usize = 16;
const TAG_LEN: usize = 8;

/// What kind of secret was taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SecretKind {
    Known,
    Pem,
    Jwt,
    Token,
    Key,
    Password,
    Secret,
    Header,
    Cookie,
    Url,
}

impl SecretKind {
    /// The word in the placeholder.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            SecretKind::Known => "known",
            SecretKind::Pem => "pem",
            SecretKind::Jwt => "jwt",
            SecretKind::Token => "token",
            SecretKind::Key => "key",
            SecretKind::Password => "password",
            SecretKind::Secret => "secret",
            SecretKind::Header => "header",
            SecretKind::Cookie => "cookie",
            SecretKind::Url => "url",
        }
    }
}

/// The key of an installation's tags: 32 random bytes that are kept as carefully as a secret.
#[derive(Clone)]
pub struct TagKey(Hmac<Sha256>);

/// The first eight hexadecimal digits of a keyed digest.
pub(crate) type Tag = [u8; TAG_LEN];

impl TagKey {
    /// A key from the caller's random bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        // A key that is shorter than the hash's block is filled up with zeros.
        let mut block = [0; 64];
        block[..32].copy_from_slice(&bytes);
        TagKey(Hmac::new(&block.into()))
    }

    /// A key that ends with the process, for logs and messages that nobody compares across processes.
    pub fn for_this_process() -> Self {
        // Keyed hashes under a key of the operating system; nothing here needs more than that they cannot be guessed.
        let state = RandomState::new();
        let mut bytes = [0; 32];
        for (part, number) in bytes.chunks_exact_mut(8).zip(0u64..) {
            part.copy_from_slice(&state.hash_one(number).to_le_bytes());
        }
        TagKey::from_bytes(bytes)
    }

    /// A digest that cannot be made, and so not be guessed at, without the key.
    pub fn digest(&self, bytes: &[u8]) -> [u8; 32] {
        let mut mac = self.0.clone();
        mac.update(bytes);
        mac.finalize().into_bytes().into()
    }

    pub(crate) fn tag(&self, secret: &[u8]) -> Tag {
        let digest = self.digest(secret);
        let mut tag = [0; TAG_LEN];
        for (digit, at) in tag.iter_mut().zip(0..) {
            let byte = digest[at / 2];
            let nibble = if at % 2 == 0 { byte >> 4 } else { byte & 15 };
            *digit = b"0123456789abcdef"[usize::from(nibble)];
        }
        tag
    }
}

impl fmt::Debug for TagKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TagKey(..)")
    }
}

/// Writes a placeholder.
pub(crate) fn write(out: &mut Vec<u8>, kind: SecretKind, tag: Tag) {
    out.extend_from_slice(OPENING);
    out.extend_from_slice(kind.word().as_bytes());
    out.push(b':');
    out.extend_from_slice(&tag);
    out.push(b']');
}

/// The length of the placeholder that `text` starts with, if it starts with one.
fn leading(text: &[u8]) -> Option<usize> {
    let rest = text.strip_prefix(OPENING)?;
    let kind = rest.iter().take(KIND_LEN_MAX).take_while(|byte| byte.is_ascii_lowercase()).count();
    if kind == 0 || rest.get(kind) != Some(&b':') {
        return None;
    }
    let tag = rest.get(kind + 1..kind + 1 + TAG_LEN)?;
    let is_tag = tag.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    let closed = rest.get(kind + 1 + TAG_LEN) == Some(&b']');
    (is_tag && closed).then_some(OPENING.len() + kind + 1 + TAG_LEN + 1)
}

/// Whether `content` holds one of our placeholders: then something was taken out of it, and it must not be written or
/// applied as if it were the original.
pub fn holds_placeholder(content: impl AsRef<[u8]>) -> bool {
    let content = content.as_ref();
    memchr::memmem::find_iter(content, OPENING).any(|at| leading(&content[at..]).is_some())
}

/// The text with each placeholder's tag left out, `[REDACTED:token]`: for comparing what different installations show.
pub fn without_tags(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr::memmem::find(rest.as_bytes(), OPENING) {
        let length = leading(&rest.as_bytes()[at..]).unwrap_or_default();
        let end = at + if length > 0 { length - TAG_LEN - 2 } else { OPENING.len() };
        shown.push_str(&rest[..end]);
        rest = &rest[end + if length > 0 { TAG_LEN + 1 } else { 0 }..];
    }
    shown + rest
}

/// Whether a value is nothing but placeholders and what closes around them, so that there is nothing left to take out.
pub(crate) fn is_only_placeholders(mut value: &[u8]) -> bool {
    let mut any = false;
    while !value.is_empty() {
        match leading(value) {
            Some(length) => {
                any = true;
                value = &value[length..];
            }
            None if any && b" ,;.:)]}\"'`\\".contains(&value[0]) => value = &value[1..],
            None => return false,
        }
    }
    any
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn j07_content_that_holds_a_placeholder_is_recognised() {
        #[track_caller]
        fn check(content: &str, holds: bool) {
            assert_eq!(holds_placeholder(content), holds, "{content}");
        }
        check("a = [REDACTED:known:0123abcd]\n", true);
        check("[REDACTED:x:[REDACTED:pem:00000000]", true);
        check("[REDACTED]", false);
        check("[REDACTED:known:0123ABCD]", false);
        check("[REDACTED:known:0123abc]", false);
        check("[REDACTED:known:0123abcde]", false);
        check("[REDACTED::0123abcd]", false);
        check("[REDACTED:thiskindistoolongtobeone:0123abcd]", false);
        check("[REDACTED:known:0123abcd", false);
        check("[REDACTED:known:0123abcg]", false);
        check("[REDACTED:known:0123ab-d]", false);
        check(&format!("[REDACTED:{}:0123abcd]", "k".repeat(KIND_LEN_MAX)), true);
        check(&format!("[REDACTED:{}:0123abcd]", "k".repeat(KIND_LEN_MAX + 1)), false);
    }

    #[test]
    fn a_value_of_nothing_but_placeholders_holds_nothing() {
        #[track_caller]
        fn check(value: &str, nothing: bool) {
            assert_eq!(is_only_placeholders(value.as_bytes()), nothing, "{value}");
        }
        check("[REDACTED:known:0123abcd]", true);
        check("[REDACTED:known:0123abcd][REDACTED:pem:00000000], \"", true);
        check("[REDACTED:known:0123abcd]x", false);
        check("x[REDACTED:known:0123abcd]", false);
        check(", ", false);
        check("", false);
    }

    #[test]
    fn tags_are_left_out_and_nothing_else() {
        assert_eq!(
            without_tags("a [REDACTED:known:0123abcd], [REDACTED:x [REDACTED:pem:01234567]b"),
            "a [REDACTED:known], [REDACTED:x [REDACTED:pem]b"
        );
    }

    #[test]
    fn one_secret_has_one_tag_under_a_key_and_another_under_another() {
        let (one, other) = (TagKey::from_bytes([1; 32]), TagKey::from_bytes([2; 32]));
        assert_eq!(one.tag(b"secret"), one.tag(b"secret"));
        assert_ne!(one.tag(b"secret"), one.tag(b"Secret"));
        assert_ne!(one.tag(b"secret"), other.tag(b"secret"));
        assert_eq!(format!("{one:?}"), "TagKey(..)");
    }
}
