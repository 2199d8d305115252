//! The tokens with which what a run starts may call the hub, for that run alone. They live as long as the session.

use std::collections::HashMap;
use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};

use runyard_domain::{Actor, RunId};
use sha2::{Digest, Sha256};

use crate::permissions;

/// The permissions of a run's own token.
const PERMISSIONS: [&str; 2] = [permissions::RUNS_READ, permissions::ARTIFACTS_WRITE];

/// The tokens of the sessions that are open.
#[derive(Default)]
pub(crate) struct RunTokens(Mutex<HashMap<[u8; 32], Arc<Actor>>>);

impl RunTokens {
    /// A new token for a run's session.
    pub(crate) fn issue(&self, run: RunId, agent: &str) -> std::io::Result<String> {
        let mut random = [0; 32];
        std::fs::File::open("/dev/urandom")?.read_exact(&mut random)?;
        let hex: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let token = format!("ryr_{hex}");
        let actor = Arc::new(Actor::agent(agent, run, PERMISSIONS));
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(digest(&token), actor);
        Ok(token)
    }

    /// Who holds it. A digest is looked up, so the time tells nothing about the token.
    pub(crate) fn holder(&self, token: &str) -> Option<Arc<Actor>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&digest(token)).cloned()
    }

    /// Ends all tokens of a run.
    pub(crate) fn end(&self, run: RunId) {
        use runyard_domain::ActorKind;
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|_, actor| actor.kind != ActorKind::Agent { run });
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}
