//! A plain HTTP endpoint: one request asks, one answer tells.
//!
//! `POST` with `{"agentId", "threadId", "runId", "input"}`. The answer is a [`RemoteAnswer`] as JSON, or a stream of events:
//! `text` with `{"text"}` for each piece, then `answer` with the [`RemoteAnswer`]. Nothing is tried again.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hyper::Method;
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use runyard_domain::Code;
use runyard_llm::http::{Answer, Client, Limits, Roots, is_key};
use runyard_llm::inference::Update;
use runyard_llm::sse::{Decoder, Event};
use serde::Deserialize;
use serde_json::{Value, json};

use super::http::{Ask, Place, piece, refused, too_long, whole};
use super::{BackendFactory, EndpointRefused, Remote, RemoteAnswer, RemoteError, RemoteRequest};
use crate::run::{AgentEvent, Observer};
use crate::spec::{ApiKey, EndpointSpec};

/// The most bytes of one answer, with all its events.
pub const REMOTE_ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

const EVENT_STREAM: &str = "text/event-stream";

/// Reaches agents behind plain HTTP endpoints.
pub struct HttpBackend {
    client: Arc<Client>,
    /// Each with the place that it is for, and goes to alone.
    keys: Vec<(Place, ApiKey)>,
}

impl HttpBackend {
    /// What endpoints call it.
    pub const NAME: &'static str = "http";

    /// Reaches endpoints without a key.
    pub fn new(client: Arc<Client>) -> Self {
        HttpBackend { client, keys: Vec::new() }
    }

    /// Sends this key to endpoints on the host and port of `url`, and nowhere else.
    ///
    /// # Errors
    /// Where the address or the key cannot be used.
    pub fn with_key(mut self, url: &str, key: impl Into<ApiKey>) -> Result<Self, EndpointRefused> {
        let (place, key) = (place(url)?, key.into());
        if !is_key(key.expose().as_bytes()) {
            let message = "the key is empty, too long, or cannot be sent in a header".to_owned();
            return Err(EndpointRefused { message });
        }
        self.keys.push((place, key));
        Ok(self)
    }
}

impl Default for HttpBackend {
    fn default() -> Self {
        HttpBackend::new(Arc::new(Client::new(Roots::System)))
    }
}

/// What an endpoint may say beside its address.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Options {
    /// How long the head of the answer may take.
    head_ms: Option<u64>,
    /// How long the answer may pause.
    idle_ms: Option<u64>,
}

impl BackendFactory for HttpBackend {
    fn backend(&self) -> &str {
        Self::NAME
    }

    fn connect(&self, _agent_id: &str, endpoint: &EndpointSpec) -> Result<Arc<dyn Remote>, EndpointRefused> {
        let place = place(&endpoint.url)?;
        let options = Options::deserialize(Value::Object(endpoint.options.clone()))
            .map_err(|error| EndpointRefused { message: format!("options: {error}") })?;
        let mut limits = Limits::default();
        limits.head = options.head_ms.map_or(limits.head, Duration::from_millis);
        limits.idle = options.idle_ms.map_or(limits.idle, Duration::from_millis);
        let key = self.keys.iter().find(|(known, _)| known.is_beside(&place)).map(|(_, key)| key.clone());
        Ok(Arc::new(HttpRemote { client: Arc::clone(&self.client), place, limits, key }))
    }
}

fn place(url: &str) -> Result<Place, EndpointRefused> {
    let wrong = |_| "the url is no http or https URL without a user name and a password".to_owned();
    Place::parse(url).map_err(|unusable| EndpointRefused { message: wrong(unusable) })
}

struct HttpRemote {
    client: Arc<Client>,
    place: Place,
    limits: Limits,
    key: Option<ApiKey>,
}

#[async_trait]
impl Remote for HttpRemote {
    async fn run(
        &self,
        request: &RemoteRequest,
        observer: &dyn Observer,
    ) -> Result<RemoteAnswer, RemoteError> {
        let RemoteRequest { agent_id, thread_id, run_id, input } = request;
        let body = json!({ "agentId": agent_id, "threadId": thread_id, "runId": run_id, "input": input });
        let ask = Ask {
            method: Method::POST,
            accept: "text/event-stream, application/json",
            key: self.key.as_ref(),
            body: body.to_string().into_bytes(),
        };
        // The connection is held until the body is read.
        let Answer { response, connection: _connection } =
            self.place.ask(&self.client, &self.limits, ask).await?;
        if !response.status().is_success() {
            return Err(refused(response.status().as_u16(), &self.place));
        }
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let is_stream = kind.is_some_and(|kind| kind.trim_start().starts_with(EVENT_STREAM));
        let body = response.into_body();
        if is_stream {
            return self.follow(body, observer).await;
        }
        read(&whole(body, &self.limits, REMOTE_ANSWER_BYTES_MAX).await?)
    }
}

impl HttpRemote {
    async fn follow(&self, mut body: Incoming, observer: &dyn Observer) -> Result<RemoteAnswer, RemoteError> {
        let (mut decoder, mut bytes) = (Decoder::new(), 0);
        while let Some(piece) = piece(&mut body, &self.limits).await? {
            bytes += piece.len();
            if bytes > REMOTE_ANSWER_BYTES_MAX {
                return Err(too_long(REMOTE_ANSWER_BYTES_MAX));
            }
            for event in decoder.push(&piece).map_err(|error| unreadable(&error))? {
                match event.name.as_str() {
                    "answer" => return read(event.data.as_bytes()),
                    "text" => observer.observe(AgentEvent::Inference(Update::Text(text(&event)?))).await,
                    // There may be more of them one day.
                    _ => {}
                }
            }
        }
        let message = "the answer broke off: the stream ended before its last event".to_owned();
        Err(RemoteError { code: Code::InferenceStreamInterrupted, message })
    }
}

fn text(event: &Event) -> Result<String, RemoteError> {
    #[derive(Deserialize)]
    struct Piece {
        text: String,
    }
    serde_json::from_str::<Piece>(&event.data).map(|piece| piece.text).map_err(|error| unreadable(&error))
}

fn read(bytes: &[u8]) -> Result<RemoteAnswer, RemoteError> {
    serde_json::from_slice(bytes).map_err(|error| unreadable(&error))
}

fn unreadable(error: &dyn std::error::Error) -> RemoteError {
    let message = format!("the answer is none of an agent: {error}");
    RemoteError { code: Code::InferenceProvider, message }
}
