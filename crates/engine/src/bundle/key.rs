//! The key that seals bundles, and what others know of it.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use runyard_domain::BlobId;
use runyard_store::blob_id;

use super::BundleError;

/// The installation's signing key (Ed25519). Where it is kept is for the caller.
pub struct SigningKey(Ed25519KeyPair);

impl SigningKey {
    /// A new key, as it is kept: PKCS#8, to be read by its owner alone.
    pub fn generate() -> Result<Vec<u8>, BundleError> {
        let made =
            Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).map_err(|_| BundleError::NoRandomness)?;
        Ok(made.as_ref().to_vec())
    }

    /// The key that was kept.
    pub fn from_pkcs8(kept: &[u8]) -> Result<Self, BundleError> {
        Ed25519KeyPair::from_pkcs8(kept).map(SigningKey).map_err(|_| BundleError::NotAKey)
    }

    /// Its public half, in base64.
    pub fn public_key(&self) -> String {
        STANDARD.encode(self.0.public_key().as_ref())
    }

    /// What people compare.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint(blob_id(self.0.public_key().as_ref()))
    }

    pub(super) fn sign(&self, content: &[u8]) -> String {
        STANDARD.encode(self.0.sign(content).as_ref())
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.fingerprint())
    }
}

/// Whether the holder of this public key signed exactly this, and who that is.
pub(super) fn signed_by(public_key: &str, content: &[u8], signature: &str) -> Option<Fingerprint> {
    let public_key = STANDARD.decode(public_key).ok()?;
    let signature = STANDARD.decode(signature).ok()?;
    UnparsedPublicKey::new(&ED25519, &public_key).verify(content, &signature).ok()?;
    Some(Fingerprint(blob_id(&public_key)))
}

/// The SHA-256 of a public key's bytes: short enough to be read aloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(BlobId);

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A text that is no fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a fingerprint: expected \"sha256:\" and 64 hexadecimal digits")]
pub struct InvalidFingerprint;

impl FromStr for Fingerprint {
    type Err = InvalidFingerprint;

    fn from_str(text: &str) -> Result<Self, InvalidFingerprint> {
        text.parse().map(Fingerprint).map_err(|_| InvalidFingerprint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_key_signs_as_the_same_and_only_for_what_it_signed() {
        let kept = SigningKey::generate().unwrap();
        let key = SigningKey::from_pkcs8(&kept).unwrap();
        let (public, signature) = (key.public_key(), key.sign(b"content"));
        assert_eq!(SigningKey::from_pkcs8(&kept).unwrap().public_key(), public);
        assert_eq!(signed_by(&public, b"content", &signature), Some(key.fingerprint()));
        assert_eq!(signed_by(&public, b"contents", &signature), None);
        let other = SigningKey::from_pkcs8(&SigningKey::generate().unwrap()).unwrap();
        assert_eq!(signed_by(&other.public_key(), b"content", &signature), None);
        assert_ne!(other.fingerprint(), key.fingerprint());
        for wrong in ["", "====", "AAAA", "é"] {
            assert_eq!(signed_by(wrong, b"content", &signature), None);
            assert_eq!(signed_by(&public, b"content", wrong), None);
        }
        assert!(matches!(SigningKey::from_pkcs8(&kept[1..]), Err(BundleError::NotAKey)));
        assert!(!format!("{key:?}").contains(&STANDARD.encode(&kept[16..48])));
    }

    #[test]
    fn a_fingerprint_reads_back_and_nothing_else_does() {
        let key = SigningKey::from_pkcs8(&SigningKey::generate().unwrap()).unwrap();
        let text = key.fingerprint().to_string();
        assert_eq!(text.parse(), Ok(key.fingerprint()));
        for wrong in ["", &text[1..], &text.to_uppercase(), &key.public_key()] {
            assert_eq!(wrong.parse::<Fingerprint>(), Err(InvalidFingerprint), "{wrong}");
        }
    }
}
