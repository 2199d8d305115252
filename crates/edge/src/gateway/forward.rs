//! The request as the provider gets it, and the head of its answer as the agent does.
//!
//! Of the headers only those pass that are named here, in both directions, so that neither side sees what was said to the gateway.

use std::sync::Arc;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT,
};
use hyper::{Method, Request, Response};
use runyard_domain::Wire;
use runyard_llm::http::{Answer, Failed, is_encoded};
use runyard_llm::{LlmError, translate};
use serde_json::{Value, json};

use super::course::{Course, Meter};
use super::listening::{Server, Visit};
use super::permitted::{Form, permitted};
use super::refusal::Refusal;
use super::routes::{Admitted, Route, Taken};
use super::runs::{Open, Target};
use super::stream::{Out, Pump, start};
use super::tally::Tally;

const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// What of an agent's headers goes to the provider.
const TO_THE_PROVIDER: [HeaderName; 8] = [
    ACCEPT,
    USER_AGENT,
    HeaderName::from_static("anthropic-version"),
    HeaderName::from_static("openai-beta"),
    HeaderName::from_static("originator"),
    HeaderName::from_static("session_id"),
    HeaderName::from_static("conversation_id"),
    HeaderName::from_static("x-client-request-id"),
];

/// What of a provider's headers goes to the agent.
const TO_THE_AGENT: [HeaderName; 4] = [
    CONTENT_TYPE,
    RETRY_AFTER,
    HeaderName::from_static("retry-after-ms"),
    HeaderName::from_static("x-request-id"),
];

/// What is sent, and how the answer is to be read.
struct Asked {
    method: Method,
    name: &'static str,
    body: Bytes,
    chat: Option<translate::Stream>,
}

/// Sends a request on, and begins to carry its answer back.
pub(super) async fn forward(
    server: &Server,
    open: &Arc<Open>,
    admitted: Admitted,
    headers: &HeaderMap,
    taken: Taken,
    visit: Arc<Visit>,
) -> Result<Response<Out>, Refusal> {
    let target = &open.target;
    let Admitted { route, place, reserved } = admitted;
    let Taken { bytes, room } = taken;
    let asked_bytes = bytes.len();
    let Asked { method, name, body, chat } = asked(open, route, bytes)?;
    let request = request(target, method, name, headers, body)?;
    let tally = reserved.map(|reserved| Tally::sent(reserved, asked_bytes));
    let Answer { response, connection } =
        match server.client.send(&server.limits.provider, &target.address, request).await {
            Ok(answer) => answer,
            Err(failed) => {
                // One that is late may have cost something.
                if let (Some(tally), false) = (tally, matches!(failed, Failed::HeadTime)) {
                    tally.void();
                }
                tracing::debug!(run = %open.run, error = ?failed, "a provider gave no answer");
                return Err(failed.into());
            }
        };
    // A provider answers what it has read.
    drop(room);
    let (head, body) = response.into_parts();
    if head.status.is_informational() || is_encoded(&head.headers) {
        return Err(Failed::Unusable.into());
    }
    let mut headers = passed_on(&head.headers, target);
    let (course, tally) = match (tally, chat) {
        (Some(tally), Some(stream)) if head.status.is_success() => {
            headers.insert(CONTENT_TYPE, EVENT_STREAM);
            (Course::Chat(Box::new(stream), Meter::default()), Some(tally))
        }
        (Some(tally), None) if head.status.is_success() => (course(&head.headers), Some(tally)),
        (Some(tally), _) => {
            tally.void();
            (Course::Free, None)
        }
        (None, _) => (Course::Free, None),
    };
    let (pieces, out) = Out::pieces();
    let mask = target.forms.mask();
    let pump = Pump {
        body,
        course,
        mask,
        tally,
        pieces,
        limits: server.limits,
        _place: place,
        _connection: connection,
    };
    start(pump, Arc::clone(open), visit);
    let mut response = Response::new(out);
    *response.status_mut() = head.status;
    *response.headers_mut() = headers;
    Ok(response)
}

fn asked(open: &Open, route: Route, body: Bytes) -> Result<Asked, Refusal> {
    let post = |name, body, chat| Asked { method: Method::POST, name, body, chat };
    match route {
        Route::Models => {}
        Route::Responses => permitted(&body, Form::Responses).map_err(Refusal::Unpermitted)?,
        Route::Chat => permitted(&body, Form::Chat).map_err(Refusal::Unpermitted)?,
        Route::Messages => permitted(&body, Form::Messages).map_err(Refusal::Unpermitted)?,
    }
    match (route, open.target.wire) {
        (Route::Models, _) => {
            Ok(Asked { method: Method::GET, name: "models", body: Bytes::new(), chat: None })
        }
        (Route::Responses, Wire::Responses) => Ok(post("responses", body, None)),
        (Route::Chat, Wire::Chat) => Ok(post("chat/completions", body, None)),
        (Route::Messages, Wire::Messages) => Ok(post("messages", body, None)),
        (Route::Responses, Wire::Chat) => {
            let translated = translated(body, open.new_answer_id());
            let (request, stream) = translated.map_err(|error| Refusal::Untranslatable(refused(&error)))?;
            Ok(post("chat/completions", request, Some(stream)))
        }
        // No request comes so far: nothing else is translated.
        (Route::Responses | Route::Chat | Route::Messages, _) => Err(Refusal::NoRoute(open.target.spoken)),
    }
}

fn translated(body: Bytes, id: String) -> Result<(Bytes, translate::Stream), LlmError> {
    let malformed = |_| LlmError::Malformed { path: "request".to_owned(), expected: "a JSON object" };
    let parsed: Value = serde_json::from_slice(&body).map_err(malformed)?;
    // It may be large, and there is soon another copy of it.
    drop(body);
    let translate::Translated { request, tools } = translate::to_chat(parsed)?;
    let text = serde_json::to_vec(&request).map_err(malformed)?;
    Ok((text.into(), translate::Stream::new(id, request.model, tools)))
}

/// What cannot be said in chat completions is one code for an agent; the words say what it is.
fn refused(error: &LlmError) -> Value {
    let mut body = error.body();
    if !matches!(error, LlmError::Malformed { .. }) {
        body["error"]["code"] = json!("unsupported");
    }
    body
}

fn request(
    target: &Target,
    method: Method,
    name: &str,
    headers: &HeaderMap,
    body: Bytes,
) -> Result<Request<Full<Bytes>>, Failed> {
    let host = HeaderValue::from_str(&target.address.authority).map_err(|_| Failed::Unusable)?;
    let (key_name, key) = target.authorization().ok_or(Failed::Unusable)?;
    let has_body = !body.is_empty();
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = method;
    *request.uri_mut() = target.address.below(name).parse().map_err(|_| Failed::Unusable)?;
    let sent = request.headers_mut();
    sent.insert(HOST, host);
    sent.insert(key_name, key);
    // What comes back is read on its way.
    sent.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    for name in TO_THE_PROVIDER {
        if let Some(value) = headers.get(&name) {
            sent.insert(name, value.clone());
        }
    }
    if has_body {
        // What was looked at is what the provider is to read, whatever the agent calls it.
        sent.insert(CONTENT_TYPE, JSON);
    }
    if has_body && target.wire == Wire::Chat {
        sent.insert(ACCEPT, EVENT_STREAM);
    }
    Ok(request)
}

fn passed_on(headers: &HeaderMap, target: &Target) -> HeaderMap {
    let passed = TO_THE_AGENT.into_iter().filter_map(|name| {
        let value = headers.get(&name).filter(|value| !target.forms.are_in(value.as_bytes()))?;
        Some((name, value.clone()))
    });
    passed.collect()
}

/// How an answer that is passed on as it is is counted.
fn course(headers: &HeaderMap) -> Course {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    match kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("text/event-stream") {
        true => Course::Events(Meter::default()),
        false => Course::Whole(Vec::new(), 0),
    }
}
