//! A secret's value, as long as it is needed.

use std::fmt;

use zeroize::Zeroizing;

/// A secret's value. It is wiped when it is dropped, and never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// This value.
    pub fn new(value: Vec<u8>) -> Self {
        Secret(Zeroizing::new(value))
    }

    /// The value.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// The value as text, if it is one.
    pub fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}
