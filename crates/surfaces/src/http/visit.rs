//! How somebody came in, for what goes on after the request was let in: a stream or a download ends when it does not count any more.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use runyard_domain::Surface;
use tokio::time::Instant;

use super::guard::Guard;
use super::sessions::HeldToken;
use super::tokens::TokenDigest;

/// What ends by itself (an idle session, a token that expires) is looked for so often.
const LOOK: Duration = Duration::from_secs(5);

/// A request that the guard let in; it stands in the request's extensions beside the caller.
#[derive(Clone)]
pub struct Visit {
    pub(super) surface: Surface,
    pub(super) shown: Shown,
    pub(super) guard: Arc<Guard>,
}

/// What the request showed.
#[derive(Clone)]
pub(super) enum Shown {
    Token(HeldToken),
    Session { cookie: TokenDigest, page: TokenDigest },
}

impl Visit {
    /// The surface of the entry: `http` with a token, `react` or `dev` in a session.
    pub fn surface(&self) -> Surface {
        self.surface
    }

    /// Whether it came with a browser session.
    pub fn is_session(&self) -> bool {
        matches!(self.shown, Shown::Session { .. })
    }

    /// Whether what was shown would be let in now. Asking does not count as using a session.
    pub fn is_valid(&self) -> bool {
        match &self.shown {
            Shown::Token(token) => self.guard.tokens().holder(token.reveal()).is_some(),
            Shown::Session { cookie, page } => {
                let token = self.guard.sessions().look(*cookie, *page, Instant::now());
                token.is_some_and(|token| self.guard.person(token.reveal()).is_some())
            }
        }
    }

    /// Returns when what was shown does not count any more: the session was ended or has run out, the token was revoked or has
    /// expired.
    pub async fn over(&self) {
        let mut sessions = self.guard.sessions().ended();
        let mut tokens = self.guard.tokens().changes();
        while self.is_valid() {
            let token_changed = async {
                match &mut tokens {
                    Some(tokens) => tokens.changed().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                Ok(()) = sessions.changed() => {}
                Ok(()) = token_changed => {}
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }
}

impl fmt::Debug for Visit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Visit").field("surface", &self.surface).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::Mutex;

    use axum::http::HeaderMap;
    use runyard_domain::Actor;
    use tokio::sync::watch;

    use super::*;
    use crate::http::TokenHolders;
    use crate::http::guard::{Asking, Wanted};

    /// One token, until it is taken back.
    struct One(Arc<Mutex<bool>>, watch::Sender<u64>);

    impl TokenHolders for One {
        fn holder(&self, token: &str) -> Option<Arc<Actor>> {
            (token == "token" && *self.0.lock().unwrap()).then(|| Arc::new(Actor::owner("ada")))
        }

        fn changes(&self) -> Option<watch::Receiver<u64>> {
            Some(self.1.subscribe())
        }
    }

    struct Place {
        counts: Arc<Mutex<bool>>,
        told: watch::Sender<u64>,
        guard: Arc<Guard>,
    }

    fn place() -> Place {
        let (counts, told) = (Arc::new(Mutex::new(true)), watch::Sender::new(0));
        let tokens = One(Arc::clone(&counts), told.clone());
        let guard = Arc::new(Guard::new(SocketAddr::from(([127, 0, 0, 1], 1)), tokens));
        Place { counts, told, guard }
    }

    impl Place {
        fn by_token(&self) -> Visit {
            let shown = Shown::Token("token".into());
            Visit { surface: Surface::Http, shown, guard: Arc::clone(&self.guard) }
        }

        /// The visit, and the cookie of its session.
        fn by_session(&self) -> (Visit, String) {
            let link = self.guard.link("token", Asking::default(), &Wanted::default()).unwrap();
            let (_, code) = link.split_once('#').unwrap();
            let (keys, _) = self.guard.log_in(code, &HeaderMap::new(), None).unwrap();
            let shown =
                Shown::Session { cookie: TokenDigest::of(&keys.cookie), page: TokenDigest::of(&keys.page) };
            (Visit { surface: Surface::React, shown, guard: Arc::clone(&self.guard) }, keys.cookie)
        }
    }

    // Time stands still, so what ends here was told and not looked for.
    #[tokio::test(start_paused = true)]
    async fn c24_a_visit_is_over_at_once_when_its_session_is_ended_or_its_token_revoked() {
        let place = place();
        let (token, (session, cookie), (other, _)) =
            (place.by_token(), place.by_session(), place.by_session());
        let begun = Instant::now();
        let ended = async { place.guard.sessions().end(&cookie, Instant::now()) };
        tokio::join!(session.over(), ended);
        assert!(!session.is_valid() && other.is_valid() && token.is_valid(), "no other ends with it");
        let revoked = async {
            *place.counts.lock().unwrap() = false;
            place.told.send_modify(|count| *count += 1);
        };
        tokio::join!(other.over(), token.over(), revoked);
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn c24_a_visit_is_over_when_its_session_runs_out_and_asking_does_not_prolong_it() {
        let place = place();
        let (session, _) = place.by_session();
        let begun = Instant::now();
        session.over().await;
        let lasted = begun.elapsed();
        let idle = Duration::from_secs(2 * 60 * 60);
        assert!((idle..idle + LOOK).contains(&lasted), "{lasted:?}");
        assert!(place.by_token().is_valid());
    }
}
