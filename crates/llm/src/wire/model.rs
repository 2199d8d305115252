//! One question to one model: the request, the head of its answer, and what a refusal means.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, USER_AGENT,
};
use hyper::{Method, Request};
use tokio::time::timeout;

use super::answer::Answering;
use super::anthropic::VERSION;
use super::endpoint::Target;
use super::failure::{Said, Wording};
use super::{Endpoint, Wire, retry_after};
use crate::http::{Answer, Client, Failed, Unusable, is_encoded};
use crate::inference::{InferenceExecutionError, InferenceRequest, Model, ModelStream, Refusal};

/// So much of a refusal's body is read.
pub const ERROR_BODY_BYTES_MAX: usize = 64 * 1024;
/// A refusal's body may take so long; what has come by then is what there is.
pub const ERROR_BODY_TIME_MAX: Duration = Duration::from_secs(10);

const EVENT_STREAM: &str = "text/event-stream";
const AGENT: &str = concat!("runyard/", env!("CARGO_PKG_VERSION"));

/// One model of a provider, asked over the network.
pub struct WireModel {
    target: Target,
    wire: Wire,
    client: Arc<Client>,
    wording: Wording,
    clock: fn() -> SystemTime,
}

impl fmt::Debug for WireModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WireModel")
            .field("name", &self.target.name)
            .field("wire", &self.wire)
            .finish_non_exhaustive()
    }
}

impl WireModel {
    /// The model at this endpoint, which speaks this. One client serves any number of models.
    ///
    /// # Errors
    /// Where the address or the key cannot be used.
    pub fn new(endpoint: Endpoint, wire: Wire, client: Arc<Client>) -> Result<Self, Unusable> {
        let target = Target::new(endpoint)?;
        let wording = Wording::without(target.key());
        Ok(WireModel { target, wire, client, wording, clock: SystemTime::now })
    }

    /// The same, with another clock. It is asked for the time when a provider gives a date to come back at.
    #[must_use]
    pub fn with_clock(self, clock: fn() -> SystemTime) -> Self {
        WireModel { clock, ..self }
    }

    fn request(&self, asked: &InferenceRequest) -> Result<Request<Full<Bytes>>, Failed> {
        let Target { provider, model, address, .. } = &self.target;
        let body = self.wire.encode(provider, model, asked).to_string();
        let host = HeaderValue::from_str(&address.authority).map_err(|_| Failed::Unusable)?;
        let mut request = Request::new(Full::new(body.into()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = address.below(self.wire.path()).parse().map_err(|_| Failed::Unusable)?;
        let headers = request.headers_mut();
        headers.insert(HOST, host);
        for (name, value) in [
            (USER_AGENT, AGENT),
            (CONTENT_TYPE, "application/json"),
            (ACCEPT, EVENT_STREAM),
            (ACCEPT_ENCODING, "identity"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        if matches!(self.wire, Wire::Anthropic(_)) {
            headers.insert(HeaderName::from_static("anthropic-version"), HeaderValue::from_static(VERSION));
        }
        if let Some((name, value)) = self.target.authorization(&self.wire) {
            headers.insert(HeaderName::from_static(name), value);
        }
        Ok(request)
    }

    /// What an answer is that is no stream of events.
    async fn refused(&self, answer: Answer) -> Refusal {
        let Answer { response, connection } = answer;
        let (head, body) = response.into_parts();
        // A body that cannot be read says nothing, and the status and the headers say what they say.
        let body = if is_encoded(&head.headers) { Vec::new() } else { beginning(body).await };
        drop(connection);
        let after = retry_after(&head.headers, (self.clock)());
        if !head.status.is_success() {
            return Said::of_body(&body).refused(head.status.as_u16(), after, &self.wording);
        }
        // Some servers say what is wrong under a status that says the opposite.
        if let Some(said) = Said::of_success(&body) {
            let status = said.status();
            return said.refused(status, after, &self.wording);
        }
        let message = "it gave something else than a stream of events".to_owned();
        Refusal { error: InferenceExecutionError::Provider(message), retry_after: after }
    }
}

#[async_trait]
impl Model for WireModel {
    fn name(&self) -> &str {
        &self.target.name
    }

    async fn open(&self, request: &InferenceRequest) -> Result<ModelStream, Refusal> {
        let limits = self.target.limits;
        let request = self.request(request).map_err(failed)?;
        let answer = self.client.send(&limits, &self.target.address, request).await.map_err(failed)?;
        let head = &answer.response;
        if head.status().is_success() && is_encoded(head.headers()) {
            return Err(failed(Failed::Unusable));
        }
        if !head.status().is_success() || !is_stream(head.headers()) {
            return Err(self.refused(answer).await);
        }
        let decoder =
            self.wire.decoder(&self.target.provider, &self.target.model).worded(self.wording.clone());
        Ok(Box::pin(Answering::new(answer, decoder, limits.idle)))
    }
}

/// What a connection that failed is.
fn failed(failed: Failed) -> Refusal {
    let message = failed.to_string();
    let error = if failed.is_late() {
        InferenceExecutionError::Timeout(message)
    } else {
        InferenceExecutionError::Provider(message)
    };
    error.into()
}

/// Whether the answer says that it is a stream of events, or does not say what it is.
fn is_stream(headers: &HeaderMap) -> bool {
    let Some(kind) = headers.get(CONTENT_TYPE) else { return true };
    let kind = kind.to_str().unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(EVENT_STREAM)
}

/// As much of a body as is read, and as came in time.
async fn beginning(mut body: Incoming) -> Vec<u8> {
    let mut bytes = Vec::new();
    let read = async {
        while bytes.len() < ERROR_BODY_BYTES_MAX {
            let Some(Ok(frame)) = body.frame().await else { break };
            bytes.extend_from_slice(frame.data_ref().map_or(&[][..], AsRef::as_ref));
        }
    };
    // What has come is looked at, whether the rest came or not.
    let _ = timeout(ERROR_BODY_TIME_MAX, read).await;
    bytes.truncate(ERROR_BODY_BYTES_MAX);
    bytes
}
