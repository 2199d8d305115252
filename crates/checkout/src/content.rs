//! What a file holds, by its digest.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Stands for what a file holds, or for where a link leads. It is plain and unkeyed, so it never leaves the edge.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ContentId([u8; 32]);

impl ContentId {
    /// Of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        ContentId(Sha256::digest(bytes).into())
    }

    /// Of what was fed to a hasher.
    pub fn from_hasher(hasher: Sha256) -> Self {
        ContentId(hasher.finalize().into())
    }

    /// Its bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for ContentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ContentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
