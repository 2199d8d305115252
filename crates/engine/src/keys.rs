//! Idempotency keys that commit with their effect: what is kept for a key is written by the change that it stands for.

use runyard_domain::{Actor, Timestamp};
use runyard_redact::Redactor;
use runyard_store::{KeyDigest, KeyedResult};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{Engine, EngineError};

/// How long a result is kept.
const KEPT_MS: u64 = 24 * 60 * 60 * 1000;

/// A caller's key, with what it stands for.
#[derive(Clone, Copy)]
pub(crate) struct Key {
    digest: KeyDigest,
    fingerprint: [u8; 32],
}

/// What is kept for a key: the id of what was made, and whether its text was redacted.
#[derive(Serialize, Deserialize)]
pub(crate) struct Keyed<T> {
    pub(crate) id: T,
    pub(crate) redacted: bool,
}

impl Key {
    /// The key, if the caller gave one. The fingerprint is keyed by it, so it cannot be turned back by trying inputs.
    pub(crate) fn of(
        what: &str,
        actor: &Actor,
        key: Option<&str>,
        input: &Value,
    ) -> Result<Option<Self>, EngineError> {
        let Some(key) = key else { return Ok(None) };
        let digest = KeyDigest::of(&[what, &actor.to_string(), key]);
        let input = serde_json::to_vec(input)?;
        let fingerprint = Sha256::new_with_prefix(key).chain_update(input).finalize().into();
        Ok(Some(Key { digest, fingerprint }))
    }

    pub(crate) fn result<T: Serialize>(
        self,
        redactor: &Redactor,
        made: &Keyed<T>,
        now: Timestamp,
    ) -> Result<KeyedResult, EngineError> {
        Ok(KeyedResult {
            key: self.digest,
            fingerprint: self.fingerprint,
            result: redactor.serialize(made)?,
            expires: now.plus_ms(KEPT_MS),
        })
    }
}

impl Engine {
    /// What was made under the key before.
    pub(crate) async fn kept<T: DeserializeOwned>(
        &self,
        key: Option<&Key>,
    ) -> Result<Option<Keyed<T>>, EngineError> {
        let Some(key) = key else { return Ok(None) };
        match self.recorder().store.kept(key.digest).await? {
            None => Ok(None),
            Some(kept) if kept.fingerprint != key.fingerprint => Err(EngineError::KeyTaken),
            Some(kept) => Ok(Some(serde_json::from_slice(&kept.result)?)),
        }
    }
}
