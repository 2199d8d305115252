//! What an agent is told when its request goes nowhere, in the form that clients of these APIs read.

use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use runyard_domain::Wire;
use runyard_llm::http::Failed;
use serde_json::{Value, json};

use super::permitted::Unpermitted;
use super::stream::Out;

/// Why a request is not answered by the provider.
#[derive(Debug)]
pub(super) enum Refusal {
    /// No token, or one that opens nothing.
    Unauthorized,
    /// It came for another host than this machine.
    NotLoopback,
    /// It is no request of HTTP/1.1.
    Version,
    /// There is no such route for an agent that speaks this.
    NoRoute(Wire),
    /// The body is too large.
    TooLarge,
    /// The body did not come in time, or broke off.
    Unread,
    /// The body is encoded, so that it could not be read.
    Encoded,
    /// The run already has as many requests on their way as it may.
    Busy,
    /// The run's budget is used up.
    Budget,
    /// So many requests are in memory that this one found no room in time.
    Full,
    /// It asks for what no agent may have of its provider.
    Unpermitted(Unpermitted),
    /// It cannot be said in what the provider speaks; the body says why.
    Untranslatable(Value),
    /// The provider did not answer.
    Failed(Failed),
}

impl Refusal {
    fn parts(&self) -> (StatusCode, &'static str, &'static str, String) {
        const INVALID: &str = "invalid_request_error";
        let says = |status, kind, code, message: &str| (status, kind, code, message.to_owned());
        match self {
            Refusal::Unauthorized => says(
                StatusCode::UNAUTHORIZED,
                INVALID,
                "invalid_api_key",
                "the token is not one of a run that is open at this gateway",
            ),
            Refusal::NotLoopback => {
                says(StatusCode::FORBIDDEN, INVALID, "not_loopback", "the gateway serves loopback hosts only")
            }
            Refusal::Version => says(
                StatusCode::HTTP_VERSION_NOT_SUPPORTED,
                INVALID,
                "http_version",
                "the gateway speaks HTTP/1.1 only",
            ),
            Refusal::NoRoute(wire) => {
                let served = match wire {
                    Wire::Responses => "POST /v1/responses",
                    Wire::Chat => "POST /v1/chat/completions",
                    Wire::Messages => "POST /v1/messages",
                };
                let message = format!("the gateway serves {served} and GET /v1/models only");
                (StatusCode::NOT_FOUND, INVALID, "no_such_route", message)
            }
            Refusal::TooLarge => {
                let max = super::routes::REQUEST_BYTES_MAX;
                let message = format!("the request is larger than {max} bytes");
                (StatusCode::PAYLOAD_TOO_LARGE, INVALID, "request_too_large", message)
            }
            Refusal::Unread => says(
                StatusCode::REQUEST_TIMEOUT,
                INVALID,
                "request_unread",
                "the request did not arrive whole in time",
            ),
            Refusal::Encoded => says(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                INVALID,
                "unsupported",
                "the gateway takes requests without a content encoding only",
            ),
            Refusal::Busy => says(
                StatusCode::TOO_MANY_REQUESTS,
                "rate_limit_error",
                "too_many_requests",
                "this run has as many requests on their way as it may have",
            ),
            Refusal::Budget => says(
                StatusCode::BAD_REQUEST,
                "budget_exceeded",
                "budget_exceeded",
                "budget_exceeded: the run's budget of tokens is used up",
            ),
            Refusal::Full => says(
                StatusCode::SERVICE_UNAVAILABLE,
                "server_error",
                "gateway_full",
                "the gateway has no room for the request now: try again",
            ),
            Refusal::Unpermitted(why) => {
                let code = if *why == Unpermitted::Malformed { "malformed_request" } else { "unsupported" };
                (StatusCode::BAD_REQUEST, INVALID, code, why.to_string())
            }
            Refusal::Untranslatable(_) => says(StatusCode::BAD_REQUEST, INVALID, "unsupported", ""),
            Refusal::Failed(failed) => {
                (failed.status(), "server_error", "provider_unreachable", failed.to_string())
            }
        }
    }

    pub(super) fn response(self) -> Response<Out> {
        let (status, kind, code, message) = self.parts();
        let body = match self {
            Refusal::Untranslatable(body) => body,
            _ => json!({"error": {"message": message, "type": kind, "param": null, "code": code}}),
        };
        let mut response = Response::new(Out::whole(body.to_string()));
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }
}

impl From<Failed> for Refusal {
    fn from(failed: Failed) -> Self {
        Refusal::Failed(failed)
    }
}
