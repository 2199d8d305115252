//! Where a model is, by what name, and with what key.

use std::fmt;
use std::sync::Arc;

use hyper::header::HeaderValue;
use zeroize::Zeroizing;

use super::Wire;
use crate::http::{Address, Limits, Unusable, is_key};

/// Where a model is.
#[derive(Clone)]
pub struct Endpoint {
    /// What the provider is called here.
    pub provider: String,
    /// Where it listens, such as `https://api.example.com/v1`.
    pub base_url: String,
    /// What it knows its customer by, if it asks for that. Never printed.
    pub key: Option<String>,
    /// The model's name there.
    pub model: String,
    /// How long the provider may take. The idle limit is the one after which an answer counts as stalled,
    /// unless an agent is less patient.
    pub limits: Limits,
}

/// An address that somebody wrote may hold a password.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("provider", &self.provider)
            .field("model", &self.model)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// An endpoint that was looked at.
pub(super) struct Target {
    /// The provider and the model.
    pub(super) name: String,
    pub(super) provider: String,
    pub(super) model: String,
    pub(super) address: Address,
    pub(super) limits: Limits,
    key: Option<Key>,
}

/// A key that can be sent.
#[derive(Clone)]
pub(super) struct Key(Arc<Zeroizing<String>>);

impl Target {
    pub(super) fn new(endpoint: Endpoint) -> Result<Self, Unusable> {
        let Endpoint { provider, base_url, key, model, limits } = endpoint;
        let address = Address::parse(&base_url)?;
        let key = key.map(|key| Key::new(Zeroizing::new(key))).transpose()?;
        Ok(Target { name: format!("{provider}/{model}"), provider, model, address, limits, key })
    }

    /// The header that holds the key, where there is one. A value that cannot be sent is impossible: the key was looked at.
    pub(super) fn authorization(&self, wire: &Wire) -> Option<(&'static str, HeaderValue)> {
        let key = self.key.as_ref()?;
        let (name, prefix) = match wire {
            Wire::Responses(_) | Wire::Chat(_) => ("authorization", "Bearer "),
            Wire::Anthropic(_) => ("x-api-key", ""),
        };
        let text = Zeroizing::new(format!("{prefix}{}", key.expose()));
        let mut value = HeaderValue::from_str(&text).ok()?;
        value.set_sensitive(true);
        Some((name, value))
    }

    /// What is looked for in a provider's words.
    pub(super) fn key(&self) -> Option<Key> {
        self.key.clone()
    }
}

impl Key {
    fn new(key: Zeroizing<String>) -> Result<Self, Unusable> {
        if is_key(key.as_bytes()) { Ok(Key(Arc::new(key))) } else { Err(Unusable::Key) }
    }

    pub(super) fn expose(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(key: &str) -> Endpoint {
        Endpoint {
            provider: "p".to_owned(),
            base_url: "https://h/v1".to_owned(),
            key: Some(key.to_owned()),
            model: "m".to_owned(),
            limits: Limits::default(),
        }
    }

    #[test]
    fn an_endpoint_is_printed_without_its_key_and_its_address() {
        let printed = format!("{:?}", endpoint("Sorrel64-Dipper"));
        assert!(!printed.contains("Sorrel64") && !printed.contains("https"), "{printed}");
        let wire = Wire::Chat(super::super::ChatOptions::default());
        let header = Target::new(endpoint("Sorrel64-Dipper")).unwrap().authorization(&wire).unwrap().1;
        assert!(!format!("{header:?}").contains("Sorrel64"));
        assert_eq!(header.as_bytes(), b"Bearer Sorrel64-Dipper");
    }

    #[test]
    fn a_key_that_cannot_be_sent_is_refused() {
        for key in ["", "a b", "a\nb", "ä"] {
            assert_eq!(Target::new(endpoint(key)).err(), Some(Unusable::Key), "{key:?}");
        }
    }
}
