//! What is said to the hub, whichever that is: a message finds a hub that answers and, on the older wire, a session that this hub
//! knows. What is said is none of its business.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::{Method, StatusCode};
use serde_json::Value;

use super::exchange::{Answer, Endpoint, Headers, Lost, SESSION, Why};
use super::message::{Kind, Message};
use super::session::Session;
use super::way::{Seek, Way};

/// How often a message is sent: its hub is gone, the next one does not know the session, and once more.
const TRIES_MAX: u32 = 3;
/// How long making a session again may take.
const AGAIN: Duration = Duration::from_secs(10);
/// How long the end of a session may take.
const END: Duration = Duration::from_secs(10);

/// A conversation with a hub, and with the one after it.
pub(super) struct Conversation {
    way: Way,
    session: Mutex<Session>,
    /// How many attempts to find a hub or to make the session again failed: whoever waited for one that did makes no other.
    failed: AtomicU64,
}

/// What a message is sent to and with.
struct Ready {
    hub: Endpoint,
    number: u64,
    headers: Result<Headers, Lost>,
}

impl Conversation {
    pub(super) fn new(way: Way) -> Self {
        Conversation { way, session: Mutex::default(), failed: AtomicU64::new(0) }
    }

    /// Whether it is one of the older wire.
    pub(super) fn has_session(&self) -> bool {
        self.session().id.is_some()
    }

    /// Sends a request. What it changes in the session is remembered.
    pub(super) async fn ask(&self, request: &Message) -> Result<Answer, Lost> {
        self.session().hears(request);
        let (answer, hub) = self.send(Method::POST, Some(request)).await?;
        if request.begins_session() {
            self.session().opens(answer.header(SESSION), hub);
        }
        Ok(answer)
    }

    /// Remembers what the hub said to the beginning of a session.
    pub(super) fn begins(&self, answered: &Value) {
        self.session().begins(answered);
    }

    /// Sends what is not answered.
    pub(super) async fn tell(&self, message: &Message) -> Result<Answer, Lost> {
        self.send(Method::POST, Some(message)).await.map(|(answer, _)| answer)
    }

    /// Listens to what the hub says by itself.
    pub(super) async fn listen(&self) -> Result<Answer, Lost> {
        self.send(Method::GET, None).await.map(|(answer, _)| answer)
    }

    /// Ends the session, if there is one.
    pub(super) async fn end_session(&self) {
        let session = std::mem::take(&mut *self.session());
        if session.id.is_some() {
            let (hub, _) = self.way.hold().await.hub();
            let headers = session.headers();
            // A hub that is gone has no session either.
            let (Ok(_) | Err(_)) = tokio::time::timeout(END, hub.send(Method::DELETE, None, &headers)).await;
        }
    }

    /// Stops the hub if it is in this process.
    pub(super) async fn stop(&self) {
        self.way.stop().await;
    }

    /// Sends, and gives the answer and the number of the hub that it is from. What a hub cannot have heard, or refused because it
    /// does not know the session, is sent again.
    async fn send(&self, method: Method, message: Option<&Message>) -> Result<(Answer, u64), Lost> {
        let kind = message.map(|message| message.kind);
        // Only who asks for something makes this process a hub: it would be in the way of one that somebody starts.
        let seek = if kind == Some(Kind::Request) { Seek::OrStart } else { Seek::Running };
        let body = message.map(|message| &message.body);
        let mut tries = 1;
        loop {
            let Ready { hub, number, headers } = self.ready(message).await;
            let sent = match headers {
                Ok(headers) => self.sent(&hub, method.clone(), body, &headers).await,
                Err(lost) => Err(lost),
            };
            let lost = match sent {
                Ok(answer) => return Ok((answer, number)),
                // An answer belongs to whoever asked, and would mean something else to anybody else.
                Err(lost) if tries == TRIES_MAX || kind == Some(Kind::Response) => return Err(lost),
                Err(lost) => lost,
            };
            let goes_on = match lost.why {
                Why::Unreached => self.follows(number, seek).await,
                Why::UnknownSession => true,
                Why::Unclear => false,
            };
            if !goes_on {
                return Err(lost);
            }
            tries += 1;
        }
    }

    /// Sends once.
    async fn sent(
        &self,
        hub: &Endpoint,
        method: Method,
        body: Option<&Value>,
        headers: &Headers,
    ) -> Result<Answer, Lost> {
        let answer = hub.send(method, body, headers).await?;
        let session = headers.iter().find(|(name, _)| *name == SESSION);
        match session {
            Some((_, id)) if answer.status() == StatusCode::NOT_FOUND => {
                self.session().is_unknown(id);
                Err(Lost::unknown_session())
            }
            _ => Ok(answer),
        }
    }

    /// The hub, and the headers that this message has there. A session that the hub does not know is made again first, with the
    /// way held: whoever comes meanwhile waits, and finds it done.
    async fn ready(&self, message: Option<&Message>) -> Ready {
        let failed = self.failed();
        let way = self.way.hold().await;
        let (hub, number) = way.hub();
        if let Some(own) = message.and_then(Message::own_headers) {
            return Ready { hub, number, headers: Ok(own) };
        }
        let known = {
            let session = self.session();
            session.is_known_to(number).then(|| session.headers())
        };
        let headers = if let Some(headers) = known {
            Ok(headers)
        } else if message.is_some_and(|message| message.kind == Kind::Response) {
            Err(Lost::because("the session in which it asked is over"))
        } else if self.failed() != failed {
            Err(Lost::because("it begins no session"))
        } else {
            self.again(&hub, number).await
        };
        Ready { hub, number, headers }
    }

    async fn again(&self, hub: &Endpoint, number: u64) -> Result<Headers, Lost> {
        let before = self.session().clone();
        let made = tokio::time::timeout(AGAIN, before.again(hub, number)).await;
        match made.unwrap_or_else(|_| Err(Lost::because("it does not begin a session in time"))) {
            Ok(made) => {
                let mut session = self.session();
                session.goes_on_as(&before, made);
                Ok(session.headers())
            }
            Err(lost) => {
                self.failed.fetch_add(1, Ordering::Relaxed);
                tracing::warn!("the session cannot go on: {}", lost.message);
                Err(lost)
            }
        }
    }

    /// Whether there is a hub to go on with after the one of this number.
    async fn follows(&self, gone: u64, seek: Seek) -> bool {
        let failed = self.failed();
        let mut way = self.way.hold().await;
        if way.hub().1 != gone {
            return true;
        }
        if self.failed() != failed {
            return false;
        }
        let found = way.another(seek).await;
        if !found && seek == Seek::OrStart {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
        found
    }

    fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
