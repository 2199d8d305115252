//! Who holds which token: the owner, people with named tokens, and the runs that are live.

use std::sync::Arc;

use runyard_engine::Engine;
use runyard_surfaces::http::{Actor, BearerTokens, TokenDigest, TokenHolders};
use tokio::sync::watch;

/// The tokens of a hub. Named ones come and go while it runs, and so do those of runs.
pub struct HubTokens {
    owner: BearerTokens,
    engine: Engine,
}

impl HubTokens {
    pub(crate) fn new(owner: TokenDigest, engine: Engine) -> Self {
        HubTokens { owner: BearerTokens::new().with(owner, Actor::owner("owner")), engine }
    }
}

impl TokenHolders for HubTokens {
    fn holder(&self, token: &str) -> Option<Arc<Actor>> {
        let owner = self.owner.holder(token);
        owner
            .or_else(|| self.engine.installation().holder(token))
            .or_else(|| self.engine.run_token_holder(token))
    }

    fn changes(&self) -> Option<watch::Receiver<u64>> {
        Some(self.engine.installation().changed())
    }
}
