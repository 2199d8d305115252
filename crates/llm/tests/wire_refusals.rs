//! Which error a refusal is, and which fault a failure in the middle of an answer: by status and typed words alone.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::time::Duration;

use runyard_llm::inference::{Fault, InferenceExecutionError as Error, InterruptCause};
use runyard_llm::wire::{MESSAGE_CHARS_MAX, Said};
use serde_json::{Value, json};

/// The name of the variant.
fn variant(error: &Error) -> String {
    format!("{error:?}").split(['(', ' ']).next().unwrap().to_owned()
}

/// Which error a refusal is. The names of `error` are the fields of its object.
fn refused(status: u16, error: Value) -> String {
    variant(&Said::of_body(json!({"error": error}).to_string().as_bytes()).refusal(status, None).error)
}

// clause: D05
#[test]
#[rustfmt::skip]
fn d05_a_status_and_a_typed_body_make_an_error() {
    let code = |code: &str| json!({"message": "m", "type": "invalid_request_error", "code": code});
    let kind = |kind: &str| json!({"message": "m", "type": kind});
    let none = || json!({});
    let table = [
        // status, body, error
        (400, none(), "InvalidRequest"),
        (422, none(), "InvalidRequest"),
        (400, code("context_length_exceeded"), "ContextOverflow"),
        (400, code("string_above_max_length"), "ContextOverflow"),
        (422, code("context_length_exceeded"), "ContextOverflow"),
        (400, kind("exceed_context_size_error"), "ContextOverflow"),
        (413, kind("request_too_large"), "ContextOverflow"),
        (413, none(), "ContextOverflow"),
        (400, code("content_filter"), "ContentFiltered"),
        (400, code("content_policy_violation"), "ContentFiltered"),
        (400, json!({"code": "other", "innererror": {"code": "ResponsibleAIPolicyViolation"}}), "ContentFiltered"),
        (400, code("model_not_found"), "ModelNotFound"),
        (401, none(), "Unauthorized"),
        (401, code("context_length_exceeded"), "Unauthorized"),
        (403, none(), "Unauthorized"),
        (403, kind("permission_error"), "Unauthorized"),
        (402, none(), "RateLimited"),
        (402, kind("billing_error"), "RateLimited"),
        (404, code("model_not_found"), "ModelNotFound"),
        (404, kind("not_found_error"), "ModelNotFound"),
        (404, code("DeploymentNotFound"), "ModelNotFound"),
        (404, json!({"type": "NotFoundError", "code": 404, "message": "m"}), "ModelNotFound"),
        (404, json!({"status": "NOT_FOUND", "code": 404, "message": "m"}), "ModelNotFound"),
        (404, kind("invalid_request_error"), "InvalidRequest"),
        (404, none(), "InvalidRequest"),
        (404, kind("api_error"), "InvalidRequest"),
        (404, kind("server_error"), "InvalidRequest"),
        (404, kind("service_unavailable"), "InvalidRequest"),
        (405, none(), "InvalidRequest"),
        (301, none(), "InvalidRequest"),
        (408, none(), "Timeout"),
        (409, none(), "Provider"),
        (429, none(), "RateLimited"),
        (429, code("insufficient_quota"), "RateLimited"),
        (429, code("context_length_exceeded"), "RateLimited"),
        (400, code("insufficient_quota"), "RateLimited"),
        (500, none(), "Provider"),
        (500, kind("overloaded_error"), "Overloaded"),
        (500, kind("invalid_request_error"), "Provider"),
        (502, none(), "Provider"),
        (520, none(), "Provider"),
        (503, none(), "Overloaded"),
        (503, code("slow_down"), "Overloaded"),
        (529, kind("overloaded_error"), "Overloaded"),
        (504, none(), "Timeout"),
        (504, kind("timeout_error"), "Timeout"),
        // What Anthropic says in a message alone, and only at its beginning and with its type.
        (400, json!({"type": "invalid_request_error", "message": "prompt is too long: 9 tokens > 8 maximum"}), "ContextOverflow"),
        (400, json!({"type": "invalid_request_error", "message": "the prompt is too long"}), "InvalidRequest"),
        (400, json!({"type": "other", "message": "prompt is too long: 9 tokens > 8 maximum"}), "InvalidRequest"),
        (400, json!({"type": "invalid_request_error", "message": "Output blocked by content filtering policy"}), "ContentFiltered"),
        (500, json!({"type": "invalid_request_error", "message": "prompt is too long"}), "Provider"),
        // And what others do, each with its own type or none.
        (400, json!({"type": "invalid_request_error", "code": "invalid_request_error", "message": "This model's maximum context length is 65536 tokens. However, you requested 65537 tokens."}), "ContextOverflow"),
        (400, json!({"type": "BadRequestError", "code": 400, "message": "This model's maximum context length is 4096 tokens."}), "ContextOverflow"),
        (400, json!({"code": 400, "message": "This endpoint's maximum context length is 8192 tokens."}), "ContextOverflow"),
        (400, json!({"code": 400, "message": "This model's maximum context length is 8192 tokens."}), "InvalidRequest"),
        (400, json!({"code": 400, "status": "INVALID_ARGUMENT", "message": "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576)."}), "ContextOverflow"),
        (400, json!({"code": 400, "status": "INVALID_ARGUMENT", "message": "The input token count is 1048577 but model only supports up to 1048576."}), "ContextOverflow"),
        (400, json!({"code": 400, "status": "INVALID_ARGUMENT", "message": "Invalid value at 'tools'."}), "InvalidRequest"),
        (400, json!({"code": 400, "message": "The input token count (1048577) exceeds the maximum."}), "InvalidRequest"),
        (500, json!({"type": "BadRequestError", "message": "This model's maximum context length is 4096 tokens."}), "Provider"),
        // Words in prose mean nothing.
        (400, json!({"message": "context_length_exceeded rate limit 429 timeout overloaded content_filter"}), "InvalidRequest"),
        (500, json!({"message": "rate limit exceeded, insufficient_quota, 503"}), "Provider"),
        (400, json!({"message": "could not generate or operate"}), "InvalidRequest"),
    ];
    for (status, error, expected) in table {
        assert_eq!(refused(status, error.clone()), expected, "{status} {error}");
    }
}

#[test]
fn d05_an_error_is_read_in_every_shape_that_it_comes_in() {
    let overflow =
        json!({"type": "invalid_request_error", "code": "context_length_exceeded", "message": "m"});
    for body in [
        json!({"error": overflow}),
        json!({"type": "error", "error": overflow, "request_id": "r"}),
        json!([{"error": overflow}]),
        overflow,
    ] {
        let error = Said::of_body(body.to_string().as_bytes()).refusal(400, None).error;
        assert_eq!(error, Error::ContextOverflow("m".into()), "{body}");
    }
    let said = Said::of_body(br#"{"error": "no luck"}"#).refusal(400, None).error;
    assert_eq!(said, Error::InvalidRequest("no luck".into()));
    for nothing in ["", "<html>429 rate limit</html>", "null", "[]", "7", "{\"error\": null}"] {
        let error = Said::of_body(nothing.as_bytes()).refusal(500, None).error;
        assert_eq!(error, Error::Provider("status 500".into()), "{nothing}");
    }
}

#[test]
fn d08_the_header_goes_before_the_body_and_both_are_bounded() {
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    let after =
        |error: Value, header| Said::of(&json!({"error": error})).refusal(429, header).error.retry_after();
    assert_eq!(after(json!({}), None), None);
    assert_eq!(after(json!({}), seconds(3)), seconds(3));
    assert_eq!(after(json!({"retry_after": 7}), seconds(3)), seconds(3));
    assert_eq!(after(json!({"retry_after": 7}), None), seconds(7));
    assert_eq!(after(json!({"retry_after_ms": 1500}), None), Some(Duration::from_millis(1500)));
    assert_eq!(after(json!({"resets_in_seconds": 100_000}), None), seconds(300));
    assert_eq!(after(json!({"retry_after": -1}), None), None);
    let overloaded = Said::default().refusal(503, seconds(9));
    assert_eq!(overloaded.error.retry_after(), seconds(9));
}

#[test]
fn d08_whatever_may_pass_says_when_to_come_back() {
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    for status in [402, 408, 409, 425, 429, 500, 502, 503, 504, 520, 529] {
        let refusal = Said::default().refusal(status, seconds(5));
        assert!(refusal.error.is_retryable(), "{status}");
        assert_eq!(refusal.retry_after, seconds(5), "{status}");
        let said = Said::of(&json!({"error": {"retry_after": 7}}));
        assert_eq!(said.refusal(status, None).retry_after, seconds(7), "{status}");
    }
}

#[test]
#[rustfmt::skip]
fn d09_a_failure_in_the_middle_has_its_exact_status() {
    use InterruptCause::{GoAway, Provider5xxMidStream as Status};
    let interrupted = [
        (json!({"code": "server_error"}), Status(500)),
        (json!({"code": 502}), Status(502)),
        (json!({"type": "whatever", "status": 599}), Status(599)),
        (json!({"type": "api_error"}), Status(500)),
        (json!({"type": "overloaded_error"}), Status(529)),
        (json!({"type": "timeout_error"}), Status(504)),
        (json!({"code": "server_is_overloaded"}), Status(503)),
        (json!({"type": "goaway"}), GoAway),
        (json!({"code": "server_shutdown", "status": 503}), GoAway),
    ];
    for (error, cause) in interrupted {
        let fault = Said::of(&json!({"error": error})).fault();
        assert_eq!(fault, Fault::Interrupted(cause), "{error}");
    }
    let failed = [
        (json!({"code": "rate_limit_exceeded"}), "RateLimited"),
        (json!({"type": "rate_limit_error"}), "RateLimited"),
        (json!({"code": "insufficient_quota"}), "RateLimited"),
        (json!({"code": 429}), "RateLimited"),
        // The body's own status goes before a word that says no more than one, and not before one that does.
        (json!({"type": "invalid_request_error", "code": 429}), "RateLimited"),
        (json!({"type": "server_error", "status": 401}), "Unauthorized"),
        (json!({"code": "context_length_exceeded", "status": 500}), "ContextOverflow"),
        (json!({"type": "BadRequestError", "code": 400, "message": "This model's maximum context length is 9"}), "ContextOverflow"),
        (json!({"code": "context_length_exceeded"}), "ContextOverflow"),
        (json!({"type": "invalid_request_error", "message": "prompt is too long: 9"}), "ContextOverflow"),
        (json!({"type": "invalid_request_error"}), "InvalidRequest"),
        (json!({"code": "content_filter"}), "ContentFiltered"),
        (json!({"type": "authentication_error"}), "Unauthorized"),
        (json!({"type": "not_found_error"}), "ModelNotFound"),
        (json!({"code": "unheard_of", "message": "server_error 503 overloaded"}), "Provider"),
        (json!({}), "Provider"),
    ];
    for (error, expected) in failed {
        let Fault::Failed(failed) = Said::of(&json!({"error": error})).fault() else { panic!("{error}") };
        assert_eq!(variant(&failed), expected, "{error}");
    }
    let Fault::Failed(waits) = Said::of(&json!({"code": "rate_limit_exceeded", "retry_after": 7})).fault() else { panic!() };
    assert_eq!(waits.retry_after(), Some(Duration::from_secs(7)));
}

// clause: D08
#[test]
fn d08_a_provider_that_fails_in_the_middle_says_when_to_come_back() {
    use InterruptCause::{GoAway, Provider5xxMidStream as Status};
    let retry_after = Duration::from_secs(7);
    for (error, cause) in [
        (json!({"type": "overloaded_error", "retry_after": 7}), Status(529)),
        (json!({"code": 503, "retry_after_ms": 7000}), Status(503)),
        (json!({"code": "server_shutdown", "retry_after": 7}), GoAway),
    ] {
        let fault = Said::of(&json!({"error": error})).fault();
        assert_eq!(fault, Fault::BackLater { cause, retry_after }, "{error}");
    }
}

#[test]
fn a_message_is_bounded_and_on_one_line() {
    let long = format!("a\nb\u{1b}{}", "é".repeat(2 * MESSAGE_CHARS_MAX));
    let Error::Provider(message) = Said::of(&json!({"error": {"message": long}})).refusal(500, None).error
    else {
        panic!()
    };
    assert_eq!(message.chars().count(), MESSAGE_CHARS_MAX);
    assert!(message.starts_with("a b é"), "{message}");
}
