//! The routes: every request is kept, then answered as its scenario says.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State},
    http::{HeaderMap, Method, Uri},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

use crate::{
    Requests,
    check::check,
    flaky::{Caller, Refused},
    library::Library,
    reply::Reply,
    requests::{Recorded, RequestLog},
    scenario::{Refusal, Scenario, Step},
    speech::{Fill, Speech},
    wire::{Context, Wire},
};

/// The models that the list names; any other is answered too.
const MODELS: [&str; 2] = ["demo", "gpt-5.5"];

const BODY_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Of a wrong key so many characters are said back, and none of one that is hardly longer.
const KEY_TAIL_CHARS: usize = 4;
const KEY_CHARS_MIN: usize = 3 * KEY_TAIL_CHARS;

/// What every request needs.
pub(crate) struct Shared {
    pub(crate) library: Library,
    pub(crate) log: RequestLog,
    /// The only keys that are accepted; if there are none, every one is.
    pub(crate) keys: Vec<String>,
    pub(crate) requests: Requests,
    /// Tells this provider's ids from another's.
    pub(crate) seed: String,
    pub(crate) answers: AtomicU64,
    pub(crate) refused: Refused,
}

pub(crate) fn routes(shared: Arc<Shared>) -> Router {
    Router::new().fallback(serve).layer(DefaultBodyLimit::max(BODY_BYTES_MAX)).with_state(shared)
}

async fn serve(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let mut request = recorded(&method, &uri, &headers, &body);
    let reply = match (method.as_str(), uri.path()) {
        ("POST", "/v1/responses") => shared.play(Wire::Responses, &mut request),
        ("POST", "/v1/chat/completions") => shared.play(Wire::Chat, &mut request),
        ("POST", "/v1/messages") => shared.play(Wire::Anthropic, &mut request),
        ("GET", "/v1/models") => Some(shared.models(&request)),
        _ => Some(invalid(Wire::Responses, 404, "The demo provider has no such route.")),
    };
    request.status = reply.as_ref().map(|reply| reply.status);
    shared.log.keep(request);
    match reply {
        Some(reply) => reply.into_response(),
        None => std::future::pending().await,
    }
}

impl Shared {
    fn models(&self, request: &Recorded) -> Reply {
        let model = |id: &&str| json!({"id": id, "object": "model", "created": 0, "owned_by": "runyard"});
        let models: Vec<Value> = MODELS.iter().map(model).collect();
        let list = || Reply::json(&json!({"object": "list", "data": models}));
        self.wrong_key(Wire::Responses, request, None).unwrap_or_else(list)
    }

    /// The answer to a request for what the model says next; nothing where none is ever given.
    fn play(&self, wire: Wire, request: &mut Recorded) -> Option<Reply> {
        let asked = request.json();
        if !asked.is_object() {
            return Some(invalid(wire, 400, "We could not parse the JSON body of your request."));
        }
        let place = wire.place(&asked);
        let (name, scenario) = self.library.find(place.scenario.as_deref());
        let step = scenario.step_after(place.results);
        request.played = Some((name.to_owned(), step));
        let argument = place.argument.as_deref().unwrap_or(&scenario.argument);
        let fill = Fill { argument, key: request.key().unwrap_or_default() };

        let wanted = scenario.bearer.as_ref().map(|bearer| fill.text(bearer));
        if let Some(wrong) = self.wrong_key(wire, request, wanted.as_deref()) {
            return Some(wrong);
        }
        let checked = match self.requests {
            Requests::Real => check(wire, request, &asked),
            Requests::Any => Ok(()),
        };
        if let Err(wrong) = checked {
            return Some(invalid(wire, 400, &wrong));
        }
        if self.is_refused_yet(name, scenario, &fill) {
            return Some(wire.refusal(&refusal(
                503,
                "server_error",
                None,
                "The server is overloaded for now.",
            )));
        }
        match &scenario.steps[step] {
            Step::Silence(_) => None,
            Step::Page(html) => Some(Reply::page(&fill.text(html))),
            Step::Refuse(refusal) => {
                let message = fill.text(&refusal.message);
                Some(wire.refusal(&Refusal { message, ..refusal.clone() }))
            }
            Step::Answer(answer) => {
                let number = self.answers.fetch_add(1, Ordering::Relaxed);
                let context = Context {
                    id: &format!("{}_{number}", self.seed),
                    model: asked["model"].as_str().unwrap_or(MODELS[0]),
                    asked_chars: request.body.len(),
                    include_sealed: includes_sealed(&asked),
                    include_usage: asked["stream_options"]["include_usage"] == true,
                };
                let speech = Speech::of(answer, &fill, wire);
                let streams = asked["stream"] == true;
                Some(if streams { wire.stream(&context, &speech) } else { wire.whole(&context, &speech) })
            }
        }
    }

    fn is_refused_yet(&self, name: &str, scenario: &Scenario, fill: &Fill<'_>) -> bool {
        let caller = Caller {
            scenario: name.to_owned(),
            argument: fill.argument.to_owned(),
            key: fill.key.to_owned(),
        };
        self.refused.refuses(caller, scenario.flaky)
    }

    /// The refusal of a key that is not among those of the provider, or not the one that is wanted.
    fn wrong_key(&self, wire: Wire, request: &Recorded, wanted: Option<&str>) -> Option<Reply> {
        let key = request.key();
        let is_known = self.keys.is_empty() || self.keys.iter().any(|known| Some(known.as_str()) == key);
        let is_right = is_known && wanted.is_none_or(|wanted| key == Some(wanted));
        (!is_right).then(|| {
            let message = format!("Incorrect API key provided: ****{}.", tail(key.unwrap_or_default()));
            wire.refusal(&refusal(401, "invalid_request_error", Some("invalid_api_key"), &message))
        })
    }
}

/// Whether the thoughts are wanted sealed.
fn includes_sealed(asked: &Value) -> bool {
    asked["include"].as_array().into_iter().flatten().any(|what| what == "reasoning.encrypted_content")
}

/// What a provider says back of a key, so that a person sees which one it was.
fn tail(key: &str) -> String {
    let chars: Vec<char> = key.chars().collect();
    let shown = if chars.len() < KEY_CHARS_MIN { 0 } else { KEY_TAIL_CHARS };
    chars[chars.len() - shown..].iter().collect()
}

fn recorded(method: &Method, uri: &Uri, headers: &HeaderMap, body: &Bytes) -> Recorded {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Recorded {
        number: 0,
        method: method.to_string(),
        path: uri.to_string(),
        headers: headers.iter().map(|(name, value)| (name.to_string(), text(value.as_bytes()))).collect(),
        body: text(body),
        played: None,
        status: None,
    }
}

fn invalid(wire: Wire, status: u16, message: &str) -> Reply {
    wire.refusal(&refusal(status, "invalid_request_error", None, message))
}

fn refusal(status: u16, kind: &str, code: Option<&str>, message: &str) -> Refusal {
    Refusal {
        status,
        kind: kind.to_owned(),
        code: code.map(str::to_owned),
        message: message.to_owned(),
        retry_after_s: None,
        retry_after_ms: None,
        retry_after: None,
    }
}
