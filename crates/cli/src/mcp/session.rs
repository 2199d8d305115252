//! What the client and the hub agreed on, on the older wire; enough of it to agree on the same with another hub.

use std::collections::BTreeSet;

use hyper::Method;
use serde_json::{Value, json};

use super::exchange::{Answer, Endpoint, Lost, SESSION};
use super::message::Message;

/// So many addresses are remembered as watched; the hub lets a client watch no more.
const WATCHED_MAX: usize = 256;

/// A session.
#[derive(Clone, Default)]
pub(super) struct Session {
    /// Its id; nothing on the newer wire.
    pub(super) id: Option<String>,
    /// The revision.
    pub(super) version: Option<String>,
    /// What began it.
    begun: Option<Value>,
    /// What the client watches.
    watched: BTreeSet<String>,
}

impl Session {
    /// The headers of whatever belongs to it.
    pub(super) fn headers(&self) -> Vec<(&'static str, String)> {
        let id = self.id.clone().map(|id| (SESSION, id));
        id.into_iter().chain(self.version.clone().map(|version| ("mcp-protocol-version", version))).collect()
    }

    /// Remembers what a request changes in it.
    pub(super) fn hears(&mut self, message: &Message) {
        let uri = message.body["params"]["uri"].as_str();
        match (message.method(), uri) {
            ("initialize", _) => *self = Session { begun: Some(message.body.clone()), ..Session::default() },
            ("resources/subscribe", Some(uri)) if self.watched.len() < WATCHED_MAX => {
                self.watched.insert(uri.to_owned());
            }
            ("resources/unsubscribe", Some(uri)) => drop(self.watched.take(uri)),
            _ => {}
        }
    }

    /// Remembers what the hub said to its beginning.
    pub(super) fn begins(&mut self, answered: &Value) {
        self.version = answered["result"]["protocolVersion"].as_str().map(str::to_owned);
    }

    /// The same session with another hub, where there was one.
    pub(super) async fn again(&self, hub: &Endpoint) -> Result<Session, Lost> {
        let Some(begun) = self.begun.as_ref().filter(|_| self.id.is_some()) else { return Ok(self.clone()) };
        let mut answer = hub.send(Method::POST, Some(begun), &[]).await?;
        let mut session = Session { id: answer.header(SESSION), ..self.clone() };
        session.begins(&answered(&mut answer).await?);
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        hub.send(Method::POST, Some(&initialized), &session.headers()).await?;
        for uri in &session.watched {
            let watch =
                json!({"jsonrpc": "2.0", "id": uri, "method": "resources/subscribe", "params": {"uri": uri}});
            answered(&mut hub.send(Method::POST, Some(&watch), &session.headers()).await?).await?;
        }
        Ok(session)
    }
}

/// What a request is answered with, passing over what is said meanwhile.
async fn answered(answer: &mut Answer) -> Result<Value, Lost> {
    while let Some(message) = answer.next().await? {
        if message.get("method").is_none() {
            return Ok(message);
        }
    }
    Err(Lost::because("it did not answer"))
}
