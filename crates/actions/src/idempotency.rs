//! Idempotency keys: the same key and input give the first result again; in flight it is shared; other input is `CONFLICT`.

mod memory;

use std::future::Future;
use std::time::Duration;

use async_trait::async_trait;
use runyard_domain::{Actor, ActorKind, Code};
use serde_json::Value;
use sha2::{Digest, Sha256};

pub use self::memory::MemoryIdempotency;
use crate::caught::caught;
use crate::{ActionError, Envelope};

/// The longest key.
pub(crate) const KEY_LENGTH_MAX: usize = 256;
/// How often a waiter that finds the first call abandoned tries to take its place.
const TAKEOVERS_MAX: usize = 64;
/// How long a store may take to look a key up, or to keep a result.
const STORE_TIME_MAX: Duration = Duration::from_secs(5);

/// What a key belongs to: two actors, or two actions, never share one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IdempotencyScope {
    /// The action.
    pub action: String,
    /// Who calls, with the kind of actor.
    pub actor: String,
    /// The key.
    pub key: String,
}

impl IdempotencyScope {
    pub(crate) fn new(action: &str, actor: &Actor, key: &str) -> Self {
        let actor = match actor.kind {
            ActorKind::Person => format!("person:{}", actor.id),
            ActorKind::Service => format!("service:{}", actor.id),
            // Two runs of one agent profile are strangers to each other.
            ActorKind::Agent { run } => format!("agent:{}:{run}", actor.id),
        };
        IdempotencyScope { action: action.to_owned(), actor, key: key.to_owned() }
    }
}

/// Where a call with a key stands.
pub enum Begin {
    /// Nobody has used the key: run, then settle the claim.
    Run(Box<dyn Claim>),
    /// A call with the key is running: wait for its result.
    InFlight(Box<dyn Waiting>),
    /// A call with the key ended for good before: this was its envelope.
    Done(Box<Envelope>),
    /// The key was used with another input.
    OtherInput,
    /// There is no room for another key now.
    Full,
}

/// Keeps results by idempotency key. The memory one forgets them with the process; a store keeps them.
#[async_trait]
pub trait IdempotencyStore: Send + Sync {
    /// Looks a key up and claims it if it is free. `fingerprint` stands for the input.
    async fn begin(&self, scope: IdempotencyScope, fingerprint: [u8; 32]) -> Result<Begin, ActionError>;
}

/// The right to run the call that a key stands for. Dropped unsettled, the key is free again and a waiter takes over.
#[async_trait]
pub trait Claim: Send {
    /// Hands the envelope to all who wait; one that [stands for good](is_kept) is kept.
    async fn settle(self: Box<Self>, envelope: &Envelope) -> Result<(), ActionError>;
}

/// Waits for the result of a call that is running.
#[async_trait]
pub trait Waiting: Send {
    /// Its envelope, or nothing when it was abandoned.
    async fn result(self: Box<Self>) -> Option<Envelope>;
}

/// How a keyed call came by its envelope.
pub(crate) enum Keyed {
    /// It ran; the claim is to be settled once nothing can stop that any more.
    Ran(Envelope, Box<dyn Claim>),
    Replayed(Envelope),
}

/// Runs `run` at most once for a key, whoever else calls with it.
pub(crate) async fn once<F, Fut>(
    store: &dyn IdempotencyStore,
    scope: IdempotencyScope,
    input: &Value,
    run: F,
) -> Result<Keyed, ActionError>
where
    F: FnOnce() -> Fut,
    Fut: Future<Output = Envelope>,
{
    let fingerprint = fingerprint(input);
    for _ in 0..TAKEOVERS_MAX {
        let begun = tokio::time::timeout(STORE_TIME_MAX, store.begin(scope.clone(), fingerprint)).await;
        match begun.map_err(|_| ActionError::internal("the idempotency store gave no answer in time"))?? {
            Begin::Run(claim) => return Ok(Keyed::Ran(run().await, claim)),
            Begin::InFlight(waiting) => match waiting.result().await {
                Some(envelope) => return Ok(Keyed::Replayed(envelope)),
                None => continue,
            },
            Begin::Done(envelope) => return Ok(Keyed::Replayed(*envelope)),
            Begin::OtherInput => {
                return Err(ActionError::conflict("The idempotency key was used before with another input."));
            }
            Begin::Full => break,
        }
    }
    let message = "Too many calls with idempotency keys are in flight.";
    Err(ActionError::new(Code::ConcurrencyLimit, message).retry_after(Duration::from_secs(1)))
}

/// Hands a result to all who wait and keeps what stands for good. A store that fails here fails its later readers, not this caller.
pub(crate) async fn settle(claim: Box<dyn Claim>, envelope: &Envelope) {
    if !is_for_everybody(envelope) {
        return;
    }
    match caught(async { tokio::time::timeout(STORE_TIME_MAX, claim.settle(envelope)).await }).await {
        Ok(Ok(Ok(()))) => {}
        Ok(Ok(Err(error))) => tracing::error!(%error, "the idempotency store failed to keep a result"),
        Ok(Err(_)) => tracing::error!("the idempotency store took too long to keep a result"),
        Err(panicked) => {
            tracing::error!(
                detail = runyard_redact::process::text(&panicked.0),
                "the idempotency store panicked"
            )
        }
    }
}

/// A result that is due to the first caller alone (it went away, its own time ran out, it found no place) is not shared:
/// whoever waits takes over.
fn is_for_everybody(envelope: &Envelope) -> bool {
    let own = [Code::Cancelled, Code::Timeout, Code::ConcurrencyLimit];
    !envelope.error().is_some_and(|failure| own.iter().any(|code| failure.code == *code))
}

/// Whether a result stands for good. A failure that is not retryable may come after the effect, so the same key must not run
/// it again; one that is retryable says itself that repeating is right.
pub fn is_kept(envelope: &Envelope) -> bool {
    envelope.error().is_none_or(|failure| !failure.retryable)
}

/// A digest of the input that does not depend on the order of keys.
fn fingerprint(input: &Value) -> [u8; 32] {
    let mut digest = Sha256::new();
    feed(&mut digest, input);
    digest.finalize().into()
}

fn feed(digest: &mut Sha256, value: &Value) {
    match value {
        Value::Array(items) => {
            digest.update([b'[']);
            digest.update((items.len() as u64).to_le_bytes());
            items.iter().for_each(|item| feed(digest, item));
        }
        Value::Object(object) => {
            let mut keys: Vec<&String> = object.keys().collect();
            keys.sort_unstable();
            digest.update([b'{']);
            digest.update((keys.len() as u64).to_le_bytes());
            for key in keys {
                feed_text(digest, key);
                feed(digest, &object[key]);
            }
        }
        Value::String(text) => {
            digest.update([b'"']);
            feed_text(digest, text);
        }
        scalar => feed_text(digest, &scalar.to_string()),
    }
}

fn feed_text(digest: &mut Sha256, text: &str) {
    digest.update((text.len() as u64).to_le_bytes());
    digest.update(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_fingerprint_depends_on_the_input_and_not_on_the_order_of_its_keys() {
        let one: Value = serde_json::from_str(r#"{"a": 1, "b": [1, "2"]}"#).unwrap();
        let same: Value = serde_json::from_str(r#"{"b": [1, "2"], "a": 1}"#).unwrap();
        assert_eq!(fingerprint(&one), fingerprint(&same));
        for other in [
            json!({"a": 1, "b": ["1", 2]}),
            json!({"a": 1, "b": [1]}),
            json!({"a": "1"}),
            json!("a"),
            json!(["a"]),
        ] {
            assert_ne!(fingerprint(&one), fingerprint(&other), "{other}");
        }
    }
}
