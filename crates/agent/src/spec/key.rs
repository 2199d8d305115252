//! What a provider or an endpoint knows its customer by.

use std::fmt;

use zeroize::Zeroizing;

/// A key. It is never printed and never serialised, and wiped when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(Zeroizing<String>);

impl ApiKey {
    /// This key.
    pub fn new(key: impl Into<String>) -> Self {
        ApiKey(Zeroizing::new(key.into()))
    }

    /// The key itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<&str> for ApiKey {
    fn from(key: &str) -> Self {
        ApiKey::new(key)
    }
}

impl From<String> for ApiKey {
    fn from(key: String) -> Self {
        ApiKey::new(key)
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey")
    }
}
