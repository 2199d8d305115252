//! What kind of failure codex reports.
//!
//! Its error info is an open union (a word, an object with one key, anything), so it is looked at as JSON; what is not known by
//! its word is known by its text, and a last error that says nothing by the one before it, after which codex tried again.

use runyard_domain::run::FailureKind;
use serde::Deserialize;
use serde_json::Value;

use crate::cut::clip;

/// How much of a message is kept, in bytes.
const MESSAGE_BYTES_MAX: usize = 2 * 1024;

/// What the gateway says once the run has used its budget. The edge ends the run for it; here it is only no fault of a moment.
const OUR_BUDGET: &str = "budget_exceeded";

/// An error of a turn.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TurnError {
    message: String,
    #[serde(default)]
    codex_error_info: Value,
    #[serde(default)]
    additional_details: Option<String>,
}

impl TurnError {
    /// The failure kind; `before` is the last error after which codex tried again.
    pub(super) fn failure_kind(&self, before: Option<&TurnError>) -> FailureKind {
        let known = self.by_word().or_else(|| self.by_text());
        known
            .or_else(|| before.and_then(|error| error.by_word().or_else(|| error.by_text())))
            .unwrap_or(FailureKind::BackendFailed)
    }

    /// Whether the same may work a little later: not without a key that is good, nor with nothing left to spend.
    pub(super) fn is_transient(&self, before: Option<&TurnError>) -> bool {
        match self.failure_kind(before) {
            FailureKind::ProviderUnavailable => true,
            FailureKind::ProviderRateLimited => !self.is_spent() && !before.is_some_and(TurnError::is_spent),
            _ => false,
        }
    }

    fn is_spent(&self) -> bool {
        let text = self.message().to_lowercase();
        self.codex_error_info == "usageLimitExceeded"
            || ["quota", "budget", "status 402", "balance"].iter().any(|word| text.contains(word))
    }

    /// The message, bounded, with the cause where it has one.
    pub(super) fn message(&self) -> String {
        match &self.additional_details {
            Some(details) => clip(&format!("{} ({details})", self.message), MESSAGE_BYTES_MAX),
            None => clip(&self.message, MESSAGE_BYTES_MAX),
        }
    }

    fn by_word(&self) -> Option<FailureKind> {
        let (word, status) = match &self.codex_error_info {
            Value::String(word) => (word.as_str(), None),
            Value::Object(object) => {
                let (word, inner) = object.iter().next()?;
                (word.as_str(), inner.get("httpStatusCode").and_then(Value::as_u64))
            }
            _ => return None,
        };
        if let Some(kind) = status.and_then(by_status) {
            return Some(kind);
        }
        match word {
            "unauthorized" => Some(FailureKind::ProviderAuthFailed),
            "usageLimitExceeded" | "rateLimitExceeded" => Some(FailureKind::ProviderRateLimited),
            "internalServerError"
            | "serverOverloaded"
            | "flexUnavailable"
            | "policyCapacityUnavailable"
            | "httpConnectionFailed"
            | "responseStreamConnectionFailed"
            | "responseStreamDisconnected"
                if status.is_none() =>
            {
                Some(FailureKind::ProviderUnavailable)
            }
            "contextWindowExceeded" | "badRequest" | "modelNotFound" | "sandboxError" => {
                Some(FailureKind::BackendFailed)
            }
            _ => None,
        }
    }

    fn by_text(&self) -> Option<FailureKind> {
        let text = format!("{} {}", self.message, self.additional_details.as_deref().unwrap_or_default());
        if text.contains("Missing environment variable") {
            return Some(FailureKind::SecretUnavailable);
        }
        if text.contains(OUR_BUDGET) {
            return Some(FailureKind::BackendFailed);
        }
        let status = ["unexpected status ", "last status: "].iter().find_map(|before| {
            let (_, after) = text.split_once(before)?;
            after.get(..3)?.parse().ok()
        });
        let lower = text.to_lowercase();
        let unavailable = [
            "stream disconnected before completion",
            "connection failed",
            "service unavailable",
            "provider unavailable",
            "temporary unavailable",
            "temporarily unavailable",
        ];
        status.and_then(by_status).or_else(|| {
            unavailable.iter().any(|words| lower.contains(words)).then_some(FailureKind::ProviderUnavailable)
        })
    }
}

fn by_status(status: u64) -> Option<FailureKind> {
    match status {
        401 | 403 => Some(FailureKind::ProviderAuthFailed),
        // What is not paid for is a limit, too.
        402 | 429 => Some(FailureKind::ProviderRateLimited),
        500..=599 => Some(FailureKind::ProviderUnavailable),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn error(message: &str, info: Value) -> TurnError {
        TurnError { message: message.to_owned(), codex_error_info: info, additional_details: None }
    }

    #[test]
    fn b10_each_failure_of_codex_has_its_kind() {
        use FailureKind as K;
        let http = |word: &str, status: Value| {
            let mut object = serde_json::Map::new();
            object.insert(word.to_owned(), json!({ "httpStatusCode": status }));
            Value::Object(object)
        };
        #[rustfmt::skip]
        let table = [
            ("unexpected status 401 Unauthorized", http("httpConnectionFailed", json!(401)),          K::ProviderAuthFailed),
            ("unexpected status 403 Forbidden",    http("httpConnectionFailed", json!(403)),          K::ProviderAuthFailed),
            ("unexpected status 401 Unauthorized", json!("other"),                                    K::ProviderAuthFailed),
            ("exceeded retry limit",               http("responseTooManyFailedAttempts", json!(429)), K::ProviderRateLimited),
            ("last status: 429 Too Many Requests", json!("other"),                                    K::ProviderRateLimited),
            ("Quota exceeded",                     json!("usageLimitExceeded"),                       K::ProviderRateLimited),
            ("rate limit exceeded",                json!("rateLimitExceeded"),                        K::ProviderRateLimited),
            ("high demand",                        json!("internalServerError"),                      K::ProviderUnavailable),
            ("unexpected status 503",              http("httpConnectionFailed", json!(503)),          K::ProviderUnavailable),
            ("Connection failed: error sending",   http("httpConnectionFailed", json!(null)),         K::ProviderUnavailable),
            ("cut",                                http("responseStreamDisconnected", json!(502)),    K::ProviderUnavailable),
            ("stream disconnected before completion: idle timeout", json!("other"),                   K::ProviderUnavailable),
            ("Missing environment variable: `X`.", json!("other"),                                    K::SecretUnavailable),
            ("too long",                           json!("contextWindowExceeded"),                    K::BackendFailed),
            ("{\"code\":\"budget_exceeded\"}",     json!("other"),                                    K::BackendFailed),
            ("budget_exceeded: it is used up",     http("httpConnectionFailed", json!(400)),          K::BackendFailed),
            ("no such model",                      json!("modelNotFound"),                            K::BackendFailed),
            ("{\"error\":{}}",                     json!("other"),                                    K::BackendFailed),
            ("a shape of tomorrow",                json!([1]),                                        K::BackendFailed),
        ];
        for (message, info, kind) in table {
            assert_eq!(error(message, info.clone()).failure_kind(None), kind, "{message} {info}");
        }
    }

    #[test]
    fn b10_only_what_may_pass_by_itself_is_worth_another_try() {
        let limited = json!({ "responseTooManyFailedAttempts": { "httpStatusCode": 429 } });
        #[rustfmt::skip]
        let table = [
            ("unexpected status 503",                              json!("other"),              true),
            ("exceeded retry limit",                               limited.clone(),             true),
            ("rate limit exceeded",                                json!("rateLimitExceeded"),  true),
            ("Quota exceeded",                                     json!("usageLimitExceeded"), false),
            ("You exceeded your current quota",                    limited.clone(),             false),
            ("the run's budget is spent",                          limited,                     false),
            ("unexpected status 401",                              json!("other"),              false),
            ("too long",                                           json!("contextWindowExceeded"), false),
        ];
        for (message, info, transient) in table {
            assert_eq!(error(message, info).is_transient(None), transient, "{message}");
        }
        let before = error("quota", json!("usageLimitExceeded"));
        assert!(!error("gave up", json!("other")).is_transient(Some(&before)));
    }

    #[test]
    fn an_error_that_says_nothing_is_known_by_the_one_before() {
        let before =
            error("Reconnecting... 1/2", json!({"responseStreamDisconnected": {"httpStatusCode": null}}));
        assert_eq!(
            error("gave up", json!("other")).failure_kind(Some(&before)),
            FailureKind::ProviderUnavailable
        );
        let refused =
            "unexpected status 400 Bad Request: budget_exceeded: the run's budget of tokens is used up";
        for certain in [error("no such model", json!("modelNotFound")), error(refused, json!("other"))] {
            assert_eq!(certain.failure_kind(Some(&before)), FailureKind::BackendFailed);
            assert!(!certain.is_transient(Some(&before)));
        }
    }
}
