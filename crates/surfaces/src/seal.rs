//! Text that goes out and comes back unchanged: sealed with a key of this process, for one purpose and one holder.
//!
//! The content can be read by whoever holds it; what a seal says is that this process wrote it, for exactly this use. A restart
//! makes a new key, so what was sealed before is refused and asked for anew.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

/// Seals and opens.
pub(crate) struct Seal(hmac::Key);

impl Seal {
    /// With a new random key.
    pub(crate) fn new() -> Self {
        Seal(hmac::Key::new(hmac::HMAC_SHA256, &random()))
    }

    /// The content with its seal, bound to all of `to`.
    pub(crate) fn close(&self, to: &[&str], content: &[u8]) -> String {
        let tag = hmac::sign(&self.0, &bound(to, content));
        format!("{}.{}", URL_SAFE_NO_PAD.encode(content), URL_SAFE_NO_PAD.encode(tag))
    }

    /// The content, if it was sealed here and bound to exactly this.
    pub(crate) fn open(&self, to: &[&str], sealed: &str) -> Option<Vec<u8>> {
        let (content, tag) = sealed.split_once('.')?;
        let content = URL_SAFE_NO_PAD.decode(content).ok()?;
        let tag = URL_SAFE_NO_PAD.decode(tag).ok()?;
        hmac::verify(&self.0, &bound(to, &content), &tag).ok()?;
        Some(content)
    }
}

/// A text that nobody can guess and that is used nowhere else.
pub(crate) fn random_text() -> String {
    URL_SAFE_NO_PAD.encode(random())
}

/// Bytes that nobody can guess.
pub(crate) fn random() -> [u8; 32] {
    let mut bytes = [0_u8; 32];
    #[allow(
        clippy::expect_used,
        reason = "nothing can be protected without randomness; the system always has some"
    )]
    SystemRandom::new().fill(&mut bytes).expect("the operating system gives no randomness");
    bytes
}

/// Each part with its length before it, so that no two different bindings give the same bytes.
fn bound(to: &[&str], content: &[u8]) -> Vec<u8> {
    let parts = to.iter().map(|part| part.as_bytes()).chain([content]);
    let mut bytes = Vec::new();
    for part in parts {
        bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
        bytes.extend_from_slice(part);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_opens_for_the_same_use_and_for_no_other() {
        let seal = Seal::new();
        let sealed = seal.close(&["session", "ada"], b"content");
        assert_eq!(seal.open(&["session", "ada"], &sealed).unwrap(), b"content");
        for other in [
            &["session", "bob"][..],
            &["task", "ada"],
            &["session"],
            &["sessionada"],
            &["session", "ad", "a"],
        ] {
            assert_eq!(seal.open(other, &sealed), None, "{other:?}");
        }
        assert_eq!(Seal::new().open(&["session", "ada"], &sealed), None, "another process");
    }

    #[test]
    fn a_seal_with_any_letter_changed_does_not_open() {
        let seal = Seal::new();
        let sealed = seal.close(&["x"], b"some content");
        for at in 0..sealed.len() {
            let mut changed = sealed.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            // The last letter of a tag has bits that mean nothing; a decoder that is strict refuses it all the same.
            assert_eq!(seal.open(&["x"], &changed), None, "{at}");
        }
        assert_eq!(seal.open(&["x"], ""), None);
        assert_eq!(seal.open(&["x"], "."), None);
    }
}
