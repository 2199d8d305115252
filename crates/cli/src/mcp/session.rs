//! What the client and the hub agreed on, on the older wire; enough of it to agree on the same again.

use std::collections::BTreeSet;

use hyper::Method;
use serde_json::{Value, json};

use super::exchange::{Answer, Endpoint, Headers, Lost, SESSION};
use super::message::Message;

/// So many addresses are remembered as watched; the hub lets a client watch no more.
const WATCHED_MAX: usize = 256;

/// A session.
#[derive(Clone, Default)]
pub(super) struct Session {
    /// Its id; nothing on the newer wire.
    pub(super) id: Option<String>,
    /// The revision.
    version: Option<String>,
    /// The number of the hub that knows it; nothing when none does any more, and it has to be made again.
    hub: Option<u64>,
    /// What began it.
    begun: Option<Value>,
    /// What the client watches.
    watched: BTreeSet<String>,
    /// From which level on the client wants to be told what is logged.
    level: Option<Value>,
}

impl Session {
    /// The headers of whatever belongs to it.
    pub(super) fn headers(&self) -> Headers {
        let id = self.id.clone().map(|id| (SESSION, id));
        id.into_iter().chain(self.version.clone().map(|version| ("mcp-protocol-version", version))).collect()
    }

    /// Remembers what a request changes in it.
    pub(super) fn hears(&mut self, message: &Message) {
        let params = &message.body["params"];
        match (message.method(), params["uri"].as_str()) {
            ("initialize", _) => *self = Session { begun: Some(message.body.clone()), ..Session::default() },
            ("resources/subscribe", Some(uri)) if self.watched.len() < WATCHED_MAX => {
                self.watched.insert(uri.to_owned());
            }
            ("resources/unsubscribe", Some(uri)) => drop(self.watched.take(uri)),
            ("logging/setLevel", _) if params["level"].is_string() => {
                self.level = Some(params["level"].clone())
            }
            _ => {}
        }
    }

    /// Remembers by which id the hub of this number knows it.
    pub(super) fn opens(&mut self, id: Option<String>, hub: u64) {
        (self.id, self.hub) = (id, Some(hub));
    }

    /// Remembers what the hub said to its beginning.
    pub(super) fn begins(&mut self, answered: &Value) {
        self.version = answered["result"]["protocolVersion"].as_str().map(str::to_owned);
    }

    /// Whether the hub of this number can be talked to in it. To have none is known to every hub.
    pub(super) fn is_known_to(&self, hub: u64) -> bool {
        self.id.is_none() || self.hub == Some(hub)
    }

    /// Remembers that the hub does not know it any more by this id.
    pub(super) fn is_unknown(&mut self, id: &str) {
        if self.id.as_deref() == Some(id) {
            self.hub = None;
        }
    }

    /// Goes on as the one that was made from it; not if the client began another one meanwhile.
    pub(super) fn goes_on_as(&mut self, before: &Session, made: Session) {
        if self.id == before.id {
            (self.id, self.version, self.hub) = (made.id, made.version, made.hub);
        }
    }

    /// The same session with the hub of this number.
    pub(super) async fn again(&self, hub: &Endpoint, number: u64) -> Result<Session, Lost> {
        let mut answer = hub.send(Method::POST, self.begun.as_ref(), &[]).await?;
        let id = answer.header(SESSION);
        let said = answered(&mut answer).await?;
        if id.is_none() || said.get("result").is_none() {
            return Err(Lost::because(said["error"]["message"].as_str().unwrap_or("it begins no session")));
        }
        let mut session = self.clone();
        session.opens(id, number);
        session.begins(&said);
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        hub.send(Method::POST, Some(&initialized), &session.headers()).await?;
        let level = session.level.iter().map(|level| ("logging/setLevel", json!({ "level": level })));
        let watched = session.watched.iter().map(|uri| ("resources/subscribe", json!({ "uri": uri })));
        for (id, (method, params)) in level.chain(watched).enumerate() {
            let wish = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
            answered(&mut hub.send(Method::POST, Some(&wish), &session.headers()).await?).await?;
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
