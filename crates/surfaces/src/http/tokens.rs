//! Bearer tokens, of which only digests are kept, and who holds them.

use std::sync::Arc;

use runyard_domain::Actor;
use sha2::{Digest, Sha256};
use tokio::sync::watch;

/// The SHA-256 of a token. The token itself is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenDigest([u8; 32]);

impl TokenDigest {
    /// The digest of a token. Tokens are random and long, so no slow hash is needed.
    pub fn of(token: &str) -> Self {
        TokenDigest(Sha256::digest(token.as_bytes()).into())
    }

    /// Compares without telling by its time how much was equal.
    pub(super) fn matches(self, other: TokenDigest) -> bool {
        self.0.iter().zip(other.0).fold(0, |difference, (one, other)| difference | (one ^ other)) == 0
    }
}

/// Who holds which token. It is asked on every request, so it must not block.
pub trait TokenHolders: Send + Sync {
    /// Who holds the token, if anybody does. The time that the answer takes must not tell how much of a token was right.
    fn holder(&self, token: &str) -> Option<Arc<Actor>>;

    /// Told whenever a token may have stopped to count; nothing where they never do. One that expires does so without a word.
    fn changes(&self) -> Option<watch::Receiver<u64>>;
}

/// Tokens that never change, and who holds each.
#[derive(Clone, Debug, Default)]
pub struct BearerTokens(Vec<(TokenDigest, Arc<Actor>)>);

impl BearerTokens {
    /// No token: nobody comes in.
    pub fn new() -> Self {
        BearerTokens::default()
    }

    /// One more token.
    #[must_use]
    pub fn with(mut self, token: TokenDigest, actor: Actor) -> Self {
        self.0.push((token, Arc::new(actor)));
        self
    }
}

impl TokenHolders for BearerTokens {
    fn holder(&self, token: &str) -> Option<Arc<Actor>> {
        let digest = TokenDigest::of(token);
        // All are compared, so that the time does not tell which one it was.
        self.0.iter().fold(
            None,
            |found, (known, actor)| if known.matches(digest) { Some(Arc::clone(actor)) } else { found },
        )
    }

    fn changes(&self) -> Option<watch::Receiver<u64>> {
        None
    }
}
