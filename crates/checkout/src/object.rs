//! How git names content, and how we do. Nothing is read or stored here.

use sha1::Sha1;
use sha2::{Digest, Sha256};

use crate::base::{ObjectFormat, Oid};

/// Takes content bit by bit and names it.
pub(crate) enum Hasher {
    Sha1(Sha1),
    Sha256(Sha256),
}

impl Hasher {
    /// For a plain digest of a file that git keeps for itself.
    pub(crate) fn plain(format: ObjectFormat) -> Hasher {
        match format {
            ObjectFormat::Sha1 => Hasher::Sha1(Sha1::new()),
            ObjectFormat::Sha256 => Hasher::Sha256(Sha256::new()),
        }
    }

    /// For content of that many bytes, as git names it.
    pub(crate) fn blob(format: ObjectFormat, bytes: u64) -> Hasher {
        let mut hasher = Hasher::plain(format);
        hasher.update(format!("blob {bytes}\0").as_bytes());
        hasher
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self {
            Hasher::Sha1(hasher) => hasher.update(bytes),
            Hasher::Sha256(hasher) => hasher.update(bytes),
        }
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        match self {
            Hasher::Sha1(hasher) => hasher.finalize().to_vec(),
            Hasher::Sha256(hasher) => hasher.finalize().to_vec(),
        }
    }

    /// What git calls it.
    pub(crate) fn finish(self) -> Oid {
        Oid::of_bytes(&self.into_bytes())
    }
}
