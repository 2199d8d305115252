//! Talking to the hub of this home over HTTP: calling its actions and following its runs.
//!
//! The hub is found through `hub.json`; its token is in the home. Nothing here knows what an action does.

use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::{Method, Request, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use runyard::{ActionError, Code, Envelope, Invocation, Surface};
use runyard_surfaces::http::{LOGINS_PATH, PageOrigin};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::home::Home;
use crate::hub_file;
use crate::hub_here::Stay;

/// The largest answer of an action.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The longest line of a stream of events.
const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(5);

/// A hub that answers.
#[derive(Clone, Debug)]
pub(crate) struct HubClient {
    /// Host and port.
    authority: String,
    token: String,
    stay: Stay,
}

impl HubClient {
    /// The hub of this home, if one runs.
    pub(crate) async fn find(home: &Home) -> Option<Self> {
        let told = hub_file::told(&home.hub())?;
        let client = HubClient::at(home, &told.url, told.stay)?;
        client.connect().await.ok()?;
        Some(client)
    }

    /// The hub at this URL, with the token of this home.
    pub(crate) fn at(home: &Home, url: &str, stay: Stay) -> Option<Self> {
        let authority = url.strip_prefix("http://")?.trim_end_matches('/').to_owned();
        let token = std::fs::read_to_string(home.token()).ok()?.trim().to_owned();
        Some(HubClient { authority, token, stay })
    }

    /// How long it is there.
    pub(crate) fn stay(&self) -> Stay {
        self.stay
    }

    /// Where it is.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.authority)
    }

    /// Calls an action and gives its envelope.
    pub(crate) async fn invoke(
        &self,
        action: &str,
        input: Value,
        confirm: bool,
        key: Option<&str>,
    ) -> Result<Envelope, ActionError> {
        let mut body = json!({"input": input, "confirm": confirm});
        if let Some(key) = key {
            body["idempotencyKey"] = key.into();
        }
        self.post(&format!("/api/v1/actions/{action}/invoke"), &body).await
    }

    /// Makes exactly this call, on its own surface.
    pub(crate) async fn make(
        &self,
        action: &str,
        call: &Invocation,
        key: Option<&str>,
    ) -> Result<Envelope, ActionError> {
        let mut body = json!({"input": call.input, "confirm": call.options.confirm});
        if let Some(key) = key {
            body["idempotencyKey"] = key.into();
        }
        // A model's call stays one on the hub, which asks more of it than of a person's.
        let surface = (call.surface == Surface::AiSdk).then_some(("runyard-surface", "ai-sdk"));
        self.post_with(&format!("/api/v1/actions/{action}/invoke"), &body, surface.as_slice()).await
    }

    /// Asks for a link that logs a browser in once, at a further page if one is named, and then leads to an address.
    pub(crate) async fn login(
        &self,
        next: &str,
        origin: Option<&PageOrigin>,
    ) -> Result<Envelope, ActionError> {
        let mut wanted = json!({ "next": next });
        if let Some(origin) = origin {
            wanted["origin"] = origin.as_str().into();
        }
        self.post(LOGINS_PATH, &wanted).await
    }

    async fn post(&self, path: &str, body: &Value) -> Result<Envelope, ActionError> {
        self.post_with(path, body, &[]).await
    }

    async fn post_with(
        &self,
        path: &str,
        body: &Value,
        headers: &[(&str, &str)],
    ) -> Result<Envelope, ActionError> {
        let response = self.send(Method::POST, path, Some(body.to_string()), headers).await?;
        let bytes = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
        let bytes = bytes.map_err(|_| lost("it closed the connection"))?.to_bytes();
        serde_json::from_slice(&bytes).map_err(|_| lost("its answer is no envelope"))
    }

    /// Follows a run from a place on.
    pub(crate) async fn follow(&self, run: &str, after: u64) -> Result<Events, ActionError> {
        let path = format!("/api/v1/runs/{run}/stream?after={after}");
        let response = self.send(Method::GET, &path, None, &[("accept", "text/event-stream")]).await?;
        if response.status() != StatusCode::OK {
            let bytes = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
            let envelope =
                bytes.ok().and_then(|body| serde_json::from_slice::<Envelope>(&body.to_bytes()).ok());
            let failure = envelope.and_then(|envelope| envelope.outcome.err());
            return Err(failure.map_or_else(|| lost("it does not show the run"), ActionError::from));
        }
        Ok(Events { body: response.into_body(), buffer: Vec::new() })
    }

    async fn connect(&self) -> Result<TcpStream, ActionError> {
        match tokio::time::timeout(CONNECT, TcpStream::connect(&self.authority)).await {
            Ok(Ok(stream)) => Ok(stream),
            _ => Err(lost("it does not answer")),
        }
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<String>,
        headers: &[(&str, &str)],
    ) -> Result<Response<Incoming>, ActionError> {
        let stream = self.connect().await?;
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|_| lost("it does not speak HTTP"))?;
        tokio::spawn(connection);
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, &self.authority)
            .header(header::AUTHORIZATION, format!("Bearer {}", self.token));
        if body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(Bytes::from(body.unwrap_or_default())));
        let request = request.map_err(|error| ActionError::internal(error.to_string()))?;
        sender.send_request(request).await.map_err(|_| lost("it closed the connection"))
    }
}

fn lost(what: &str) -> ActionError {
    ActionError::new(Code::ExternalServiceError, format!("The hub cannot be talked to: {what}."))
}

/// The events of a run, as they come.
pub(crate) struct Events {
    body: Incoming,
    buffer: Vec<u8>,
}

impl Events {
    /// The next event's stored text; nothing when the run is at its end. An error means that the hub is gone: whoever knows
    /// the last sequence can follow again.
    pub(crate) async fn next(&mut self) -> Result<Option<String>, ActionError> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|pair| pair == b"\n\n") {
                let message: Vec<u8> = self.buffer.drain(..end + 2).collect();
                let text = String::from_utf8_lossy(&message);
                let data: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("data:")).collect();
                if data.is_empty() {
                    continue;
                }
                return Ok(Some(data.iter().map(|line| line.trim_start()).collect::<Vec<_>>().join("\n")));
            }
            if self.buffer.len() > LINE_BYTES_MAX {
                return Err(lost("an event is too long"));
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(Err(_)) => return Err(lost("it closed the connection")),
                Some(Ok(frame)) => {
                    if let Some(data) = frame.data_ref() {
                        self.buffer.extend_from_slice(data);
                    }
                }
            }
        }
    }
}
