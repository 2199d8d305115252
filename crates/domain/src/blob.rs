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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
        let bytes: [u8; 32] = std::array::from_fn(|at| 0xa0 + at as u8);
        let id = BlobId::from_bytes(bytes);
        let text = "sha256:a0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebf";
        assert_eq!((id.to_string().as_str(), format!("{id:?}").as_str()), (text, text));
        assert_eq!(text.parse(), Ok(id));
        assert_eq!(id.as_bytes(), &bytes);
        assert_eq!(serde_json::to_value(id).unwrap(), text);
        assert_eq!(serde_json::from_value::<BlobId>(text.into()).unwrap(), id);
        let (digits, upper) = (text.replace("sha256:", ""), text.replace('f', "F"));
        let (short, long) = (&text[..text.len() - 1], format!("{text}0"));
        let no_digit = text.replace('f', "g");
        for wrong in ["", "sha256:", "md5:00", &digits, &upper, short, &long, &no_digit, &"é".repeat(35)] {
            assert_eq!(wrong.parse::<BlobId>(), Err(InvalidBlobId), "{wrong}");
            assert!(serde_json::from_value::<BlobId>(wrong.into()).is_err(), "{wrong}");
        }
    }
}
