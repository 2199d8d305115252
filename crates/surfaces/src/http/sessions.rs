//! One-time links and the browser sessions that they lead to: digests, times and limits, in memory only.
//!
//! A session holds the token that it was made with, so that whoever asks can ask again whose it is. Who that is, and what a
//! request must show besides, the guard decides.

use std::fmt;
use std::io::Read;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::tokens::TokenDigest;

/// A link can be used for so long, once.
pub(super) const LINK_TIME_MAX: Duration = Duration::from_secs(2 * 60);
/// So many links of one token are open at once; its oldest goes.
const LINKS_OF_TOKEN_MAX: usize = 4;
/// So many are open in all; the oldest goes.
const LINKS_MAX: usize = 256;
/// A session ends after so long, however much it is used.
pub(super) const SESSION_TIME_MAX: Duration = Duration::from_secs(12 * 60 * 60);
/// A session ends when it is not used for so long.
const SESSION_IDLE_MAX: Duration = Duration::from_secs(2 * 60 * 60);
/// So many sessions of one token are there at once; the one that was used longest ago goes. Nobody pushes others out.
const SESSIONS_OF_TOKEN_MAX: usize = 16;
/// So many are there in all.
const SESSIONS_MAX: usize = 1024;

/// A bearer token in memory, which nothing prints.
#[derive(Clone)]
pub(super) struct HeldToken(Arc<str>);

impl HeldToken {
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<&str> for HeldToken {
    fn from(token: &str) -> Self {
        HeldToken(token.into())
    }
}

impl fmt::Debug for HeldToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HeldToken")
    }
}

/// What a browser is given at the start of a session: once, and only digests of it are kept.
pub(super) struct Keys {
    /// For the cookie.
    pub(super) cookie: String,
    /// For the page. Cookies go to every port of a host, so a cookie alone counts for nothing; this is what the page of this
    /// very origin has beside it, and what no page of another can send.
    pub(super) page: String,
}

/// Makes a text that nobody can guess.
type Random = fn() -> std::io::Result<String>;

/// All links and sessions of one server.
pub(super) struct Sessions {
    random: Random,
    all: Mutex<All>,
    /// Counts what was ended, for those who must not go on after that.
    ended: watch::Sender<u64>,
}

#[derive(Default)]
struct All {
    links: Vec<Link>,
    sessions: Vec<Session>,
}

struct Link {
    code: TokenDigest,
    redeemed: Redeemed,
    made: Instant,
}

/// What a link stands for.
pub(super) struct Redeemed {
    /// The token that it was made with.
    pub(super) token: HeldToken,
    /// The user of this machine who asked for it, where that is known and counts.
    pub(super) user: Option<u32>,
}

struct Session {
    cookie: TokenDigest,
    page: TokenDigest,
    token: HeldToken,
    /// Where it was started.
    origin: String,
    made: Instant,
    used: Instant,
}

impl Session {
    fn is_live(&self, now: Instant) -> bool {
        now.duration_since(self.made) < SESSION_TIME_MAX && now.duration_since(self.used) < SESSION_IDLE_MAX
    }

    /// Both are compared, so that the time does not tell which of them was right.
    fn has(&self, cookie: TokenDigest, page: TokenDigest) -> bool {
        self.cookie.matches(cookie) & self.page.matches(page)
    }
}

impl Sessions {
    pub(super) fn new(random: Random) -> Self {
        Sessions { random, all: Mutex::default(), ended: watch::Sender::new(0) }
    }

    /// Told whenever a session was ended. One that runs out ends without a word.
    pub(super) fn ended(&self) -> watch::Receiver<u64> {
        self.ended.subscribe()
    }

    fn tell(&self) {
        self.ended.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Opens a link for the holder of a token and gives its code.
    pub(super) fn link(&self, token: &str, user: Option<u32>, now: Instant) -> std::io::Result<String> {
        let code = (self.random)()?;
        let mut all = self.all(now);
        let own = |link: &Link| link.redeemed.token.reveal() == token;
        if all.links.iter().filter(|link| own(link)).count() >= LINKS_OF_TOKEN_MAX
            && let Some(place) = all.links.iter().position(own)
        {
            all.links.remove(place);
        }
        if all.links.len() >= LINKS_MAX {
            all.links.remove(0);
        }
        let redeemed = Redeemed { token: token.into(), user };
        all.links.push(Link { code: TokenDigest::of(&code), redeemed, made: now });
        Ok(code)
    }

    /// Uses a link up: what it stands for, if it is one that can still be used.
    pub(super) fn redeem(&self, code: &str, now: Instant) -> Option<Redeemed> {
        let code = TokenDigest::of(code);
        let mut all = self.all(now);
        let place = all.links.iter().position(|link| link.code.matches(code))?;
        Some(all.links.remove(place).redeemed)
    }

    /// Starts a session of a page of this origin.
    pub(super) fn start(&self, token: HeldToken, origin: &str, now: Instant) -> std::io::Result<Keys> {
        let keys = Keys { cookie: (self.random)()?, page: (self.random)()? };
        let mut all = self.all(now);
        let own = |session: &Session| session.token.reveal() == token.reveal();
        let own_are_full =
            all.sessions.iter().filter(|session| own(session)).count() >= SESSIONS_OF_TOKEN_MAX;
        if own_are_full || all.sessions.len() >= SESSIONS_MAX {
            let going = all.sessions.iter().enumerate().filter(|(_, session)| !own_are_full || own(session));
            if let Some(place) = going.min_by_key(|(_, session)| session.used).map(|(place, _)| place) {
                all.sessions.remove(place);
            }
        }
        let (cookie, page) = (TokenDigest::of(&keys.cookie), TokenDigest::of(&keys.page));
        all.sessions.push(Session { cookie, page, token, origin: origin.to_owned(), made: now, used: now });
        drop(all);
        // Another may have had to go for it.
        self.tell();
        Ok(keys)
    }

    /// The token of the session that has both keys, if the origin where it was started is the right one. It counts as a use.
    pub(super) fn token(
        &self,
        cookie: TokenDigest,
        page: TokenDigest,
        is_right: impl Fn(&str) -> bool,
        now: Instant,
    ) -> Option<HeldToken> {
        let mut all = self.all(now);
        let found = all.sessions.iter_mut().find(|session| session.has(cookie, page));
        let session = found.filter(|session| is_right(&session.origin))?;
        session.used = now;
        Some(session.token.clone())
    }

    /// The same without using it.
    pub(super) fn look(&self, cookie: TokenDigest, page: TokenDigest, now: Instant) -> Option<HeldToken> {
        let all = self.all(now);
        all.sessions.iter().find(|session| session.has(cookie, page)).map(|session| session.token.clone())
    }

    /// Ends a session.
    pub(super) fn end(&self, cookie: &str, now: Instant) {
        let cookie = TokenDigest::of(cookie);
        self.all(now).sessions.retain(|session| !session.cookie.matches(cookie));
        self.tell();
    }

    /// What there is, without what has run out.
    fn all(&self, now: Instant) -> MutexGuard<'_, All> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.links.retain(|link| now.duration_since(link.made) < LINK_TIME_MAX);
        all.sessions.retain(|session| session.is_live(now));
        all
    }
}

/// 256 bits from the system, as hexadecimal digits.
pub(super) fn random_text() -> std::io::Result<String> {
    let mut random = [0; 32];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut random)?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: &str = "http://127.0.0.1:4710";

    fn sessions() -> (Sessions, Instant) {
        (Sessions::new(random_text), Instant::now())
    }

    fn used(sessions: &Sessions, cookie: &str, page: &str, now: Instant) -> Option<HeldToken> {
        sessions.token(TokenDigest::of(cookie), TokenDigest::of(page), |at| at == HERE, now)
    }

    fn looked_at(sessions: &Sessions, keys: &Keys, now: Instant) -> bool {
        sessions.look(TokenDigest::of(&keys.cookie), TokenDigest::of(&keys.page), now).is_some()
    }

    #[test]
    fn a_link_works_once_and_not_after_its_time() {
        let (sessions, now) = sessions();
        let code = sessions.link("token", None, now).unwrap();
        assert_eq!(code.len(), 64);
        let late = sessions.link("token", None, now).unwrap();
        let last = now + LINK_TIME_MAX - Duration::from_millis(1);
        assert_eq!(sessions.redeem(&code, last).unwrap().token.reveal(), "token");
        assert!(sessions.redeem(&code, last).is_none(), "it is used up");
        assert!(sessions.redeem(&late, now + LINK_TIME_MAX).is_none(), "it is too late");
        assert!(sessions.redeem("", now).is_none());
    }

    #[test]
    fn of_too_many_links_of_a_token_its_oldest_goes_and_nobody_elses() {
        let (sessions, now) = sessions();
        let other = sessions.link("other", None, now).unwrap();
        let codes: Vec<String> =
            (0..=LINKS_OF_TOKEN_MAX).map(|_| sessions.link("token", None, now).unwrap()).collect();
        assert!(sessions.redeem(&codes[0], now).is_none());
        assert!(codes[1..].iter().all(|code| sessions.redeem(code, now).is_some()));
        assert!(sessions.redeem(&other, now).is_some());
        let all: Vec<String> =
            (0..=LINKS_MAX).map(|number| sessions.link(&number.to_string(), None, now).unwrap()).collect();
        assert!(sessions.redeem(&all[0], now).is_none() && sessions.redeem(&all[1], now).is_some());
    }

    #[test]
    fn of_too_many_sessions_of_a_token_the_one_used_longest_ago_goes_and_nobody_elses() {
        let (sessions, now) = sessions();
        let other = sessions.start("other".into(), HERE, now).unwrap();
        let keys: Vec<Keys> =
            (0..SESSIONS_OF_TOKEN_MAX).map(|_| sessions.start("token".into(), HERE, now).unwrap()).collect();
        let later = now + Duration::from_secs(1);
        assert!(used(&sessions, &keys[0].cookie, &keys[0].page, later).is_some());
        sessions.start("token".into(), HERE, later).unwrap();
        let there = |keys: &Keys| used(&sessions, &keys.cookie, &keys.page, later).is_some();
        assert_eq!(keys.iter().filter(|keys| there(keys)).count(), SESSIONS_OF_TOKEN_MAX - 1);
        assert!(there(&keys[0]), "it was used");
        assert!(there(&other));
        for number in 0..SESSIONS_MAX {
            sessions.start(number.to_string().as_str().into(), HERE, later).unwrap();
        }
        assert_eq!(sessions.all(later).sessions.len(), SESSIONS_MAX, "in all there are no more");
    }

    #[test]
    fn a_session_needs_both_of_its_own_keys() {
        let (sessions, now) = sessions();
        let (one, other) = (
            sessions.start("one".into(), HERE, now).unwrap(),
            sessions.start("other".into(), HERE, now).unwrap(),
        );
        assert_eq!(used(&sessions, &one.cookie, &one.page, now).unwrap().reveal(), "one");
        for (cookie, page) in [
            (&one.cookie, &other.page),
            (&other.cookie, &one.page),
            (&one.page, &one.cookie),
            (&one.cookie, &one.cookie),
            (&one.cookie, &String::new()),
        ] {
            assert!(used(&sessions, cookie, page, now).is_none());
        }
        let mut ended = sessions.ended();
        sessions.end(&one.cookie, now);
        assert!(ended.has_changed().unwrap(), "whoever goes on with it is told");
        ended.mark_unchanged();
        assert!(!looked_at(&sessions, &one, now) && looked_at(&sessions, &other, now));
        assert!(!ended.has_changed().unwrap());
    }

    #[test]
    fn a_session_ends_when_it_is_idle_or_old() {
        let (sessions, start) = sessions();
        let keys = sessions.start("token".into(), HERE, start).unwrap();
        let in_use = |now| used(&sessions, &keys.cookie, &keys.page, now).is_some();
        let step = SESSION_IDLE_MAX - Duration::from_secs(1);
        let mut now = start;
        while now + step < start + SESSION_TIME_MAX {
            now += step;
            assert!(in_use(now), "it is in use");
        }
        assert!(!in_use(start + SESSION_TIME_MAX), "it is old");
        let keys = sessions.start("token".into(), HERE, start).unwrap();
        assert!(looked_at(&sessions, &keys, start + step));
        assert!(!looked_at(&sessions, &keys, start + SESSION_IDLE_MAX), "looking is no use");
    }

    #[test]
    fn a_session_of_another_origin_is_none_and_asking_for_it_is_no_use() {
        let (sessions, start) = sessions();
        let keys = sessions.start("token".into(), "http://localhost:5173", start).unwrap();
        let late = start + SESSION_IDLE_MAX - Duration::from_secs(1);
        assert!(used(&sessions, &keys.cookie, &keys.page, late).is_none());
        assert!(looked_at(&sessions, &keys, late) && !looked_at(&sessions, &keys, start + SESSION_IDLE_MAX));
    }

    #[test]
    fn nothing_prints_a_held_token() {
        assert_eq!(format!("{:?}", HeldToken::from("hunter2")), "HeldToken");
    }
}
