//! The id of a blob: the digest of its content.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A text that is no blob's id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a blob's id: expected \"sha256:\" and 64 hexadecimal digits")]
pub struct InvalidBlobId;

/// A blob's id: the SHA-256 of its content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct BlobId([u8; 32]);

impl BlobId {
    /// The id of a content with this digest. Digesting is the caller's.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        BlobId(bytes)
    }

    /// Its bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for BlobId {
    type Err = InvalidBlobId;

    fn from_str(text: &str) -> Result<Self, InvalidBlobId> {
        let digits = text.strip_prefix("sha256:").ok_or(InvalidBlobId)?;
        if digits.len() != 64 || !digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(InvalidBlobId);
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(0..) {
            *byte = u8::from_str_radix(&digits[pair * 2..pair * 2 + 2], 16).map_err(|_| InvalidBlobId)?;
        }
        Ok(BlobId(bytes))
    }
}

impl From<BlobId> for String {
    fn from(id: BlobId) -> String {
        id.to_string()
    }
}

impl TryFrom<String> for BlobId {
    type Error = InvalidBlobId;

    fn try_from(text: String) -> Result<Self, InvalidBlobId> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blobs_id_reads_back_and_nothing_else_does() {
        let id = BlobId::from_bytes([0xa7; 32]);
        assert_eq!(id.to_string().parse::<BlobId>().unwrap(), id);
        let upper = id.to_string().to_uppercase();
        for text in ["", "sha256:", "sha256:zz", "md5:00", upper.as_str(), &"é".repeat(35)] {
            assert!(text.parse::<BlobId>().is_err(), "{text}");
        }
    }
}
