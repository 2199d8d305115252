//! Results of keyed calls that outlive the process: in flight they are shared in memory, once settled they are in the store.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use runyard::{
    ActionError, Begin, Claim, Code, Envelope, IdempotencyScope, IdempotencyStore, MemoryIdempotency, is_kept,
};
use runyard_backend::failpoint;
use runyard_domain::Timestamp;
use runyard_redact::Redactor;
use runyard_store::{KeyDigest, KeyedResult, Store};
use sha2::{Digest, Sha256};

use crate::database::refused;

/// How long a result is kept.
const KEPT_FOR: Duration = Duration::from_secs(24 * 60 * 60);
/// How many expired results each new one makes room of.
const FORGOTTEN_AT_ONCE: u32 = 16;

/// Keeps results in a store, without secrets: what is given back after a restart is the redacted envelope.
pub(crate) struct KeptResults {
    store: Arc<dyn Store>,
    redactor: Redactor,
    running: MemoryIdempotency,
}

impl KeptResults {
    pub(crate) fn new(store: Arc<dyn Store>, redactor: Redactor) -> Self {
        KeptResults { store, redactor, running: MemoryIdempotency::default() }
    }
}

#[async_trait]
impl IdempotencyStore for KeptResults {
    async fn begin(&self, scope: IdempotencyScope, fingerprint: [u8; 32]) -> Result<Begin, ActionError> {
        let key = KeyDigest::of(&[&scope.action, &scope.actor, &scope.key]);
        // The digest of a small input could be turned back by trying; not without the key, which is stored nowhere.
        let fingerprint_kept =
            Sha256::new_with_prefix(&scope.key).chain_update(fingerprint).finalize().into();
        let claim = match self.running.begin(scope, fingerprint).await? {
            Begin::Run(claim) => claim,
            begun => return Ok(begun),
        };
        match self.store.kept(key).await.map_err(refused)? {
            Some(kept) if kept.fingerprint != fingerprint_kept => Ok(Begin::OtherInput),
            Some(kept) => {
                let envelope = serde_json::from_slice(&kept.result).map_err(|error| {
                    ActionError::new(
                        Code::StorageSerialization,
                        format!("Cannot read a kept result: {error}."),
                    )
                })?;
                Ok(Begin::Done(Box::new(envelope)))
            }
            None => {
                let (store, redactor) = (Arc::clone(&self.store), self.redactor.clone());
                let keeper = Keeper { store, redactor, key, fingerprint: fingerprint_kept };
                Ok(Begin::Run(Box::new(KeptClaim { keeper, claim })))
            }
        }
    }
}

struct KeptClaim {
    keeper: Keeper,
    claim: Box<dyn Claim>,
}

/// Keeps the result of one key.
struct Keeper {
    store: Arc<dyn Store>,
    redactor: Redactor,
    key: KeyDigest,
    fingerprint: [u8; 32],
}

impl Keeper {
    async fn keep(&self, envelope: &Envelope) -> Result<(), ActionError> {
        let result =
            self.redactor.serialize(envelope).map_err(|error| ActionError::internal(error.to_string()))?;
        let now = self.store.now().await.map_err(refused)?;
        let kept_ms = i64::try_from(KEPT_FOR.as_millis()).unwrap_or(i64::MAX);
        let expires = Timestamp::from_unix_ms(now.unix_ms().saturating_add(kept_ms));
        let kept = KeyedResult { key: self.key, fingerprint: self.fingerprint, result, expires };
        failpoint::reach("result.keep");
        self.store.keep(kept).await.map_err(refused)?;
        failpoint::reach("result.kept");
        self.store.forget_expired(FORGOTTEN_AT_ONCE).await.map_err(refused)?;
        failpoint::reach("result.forgotten");
        Ok(())
    }
}

#[async_trait]
impl Claim for KeptClaim {
    async fn settle(self: Box<Self>, envelope: &Envelope) -> Result<(), ActionError> {
        let KeptClaim { keeper, claim } = *self;
        // Durable before anybody is told, and told in any case.
        let kept = if is_kept(envelope) { keeper.keep(envelope).await } else { Ok(()) };
        claim.settle(envelope).await?;
        kept
    }
}
