//! Why a run failed: a stable code, and the backend's failure kind where a backend failed.

use serde::{Deserialize, Serialize};

use super::budget::Exceeded;
use crate::Code;

/// What went wrong in a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// A secret that the profile needs is missing or unreadable.
    SecretUnavailable,
    /// The provider refused the credential.
    ProviderAuthFailed,
    /// The provider's limit or quota is reached.
    ProviderRateLimited,
    /// The provider does not answer, or answers with a 5xx.
    ProviderUnavailable,
    /// The backend broke its protocol.
    BackendProtocolError,
    /// The backend wrote something that is no JSON.
    BackendJsonParseError,
    /// An answer of the backend lacks a field.
    BackendResponseInvalid,
    /// The backend's process cannot start.
    BackendSpawnFailed,
    /// The backend ended with an error.
    BackendFailed,
    /// The backend took longer than the policy allows.
    BackendTimeout,
    /// An interrupt or cancel took effect.
    Cancelled,
}

impl FailureKind {
    /// Every kind.
    pub const ALL: [FailureKind; 11] = [
        FailureKind::SecretUnavailable,
        FailureKind::ProviderAuthFailed,
        FailureKind::ProviderRateLimited,
        FailureKind::ProviderUnavailable,
        FailureKind::BackendProtocolError,
        FailureKind::BackendJsonParseError,
        FailureKind::BackendResponseInvalid,
        FailureKind::BackendSpawnFailed,
        FailureKind::BackendFailed,
        FailureKind::BackendTimeout,
        FailureKind::Cancelled,
    ];

    /// Its own row in the error table, which has its word and its recovery.
    pub const fn code(self) -> Code {
        match self {
            FailureKind::SecretUnavailable => Code::SecretUnavailable,
            FailureKind::ProviderAuthFailed => Code::ProviderAuthFailed,
            FailureKind::ProviderRateLimited => Code::ProviderRateLimited,
            FailureKind::ProviderUnavailable => Code::ProviderUnavailable,
            FailureKind::BackendProtocolError => Code::BackendProtocolError,
            FailureKind::BackendJsonParseError => Code::BackendJsonParseError,
            FailureKind::BackendResponseInvalid => Code::BackendResponseInvalid,
            FailureKind::BackendSpawnFailed => Code::BackendSpawnFailed,
            FailureKind::BackendFailed => Code::BackendFailed,
            FailureKind::BackendTimeout => Code::BackendTimeout,
            FailureKind::Cancelled => Code::BackendCancelled,
        }
    }

    /// The code of a run that failed for it.
    pub const fn run_code(self) -> Code {
        match self {
            FailureKind::SecretUnavailable
            | FailureKind::BackendSpawnFailed
            | FailureKind::ProviderAuthFailed
            | FailureKind::BackendFailed
            | FailureKind::Cancelled => Code::RuntimeUnavailable,
            FailureKind::BackendProtocolError
            | FailureKind::BackendJsonParseError
            | FailureKind::BackendResponseInvalid => Code::SchemaValidationFailed,
            FailureKind::BackendTimeout => Code::RunTimeout,
            FailureKind::ProviderRateLimited => Code::RunProviderRateLimited,
            FailureKind::ProviderUnavailable => Code::RunProviderUnavailable,
        }
    }
}

/// Why a run failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// The run's code.
    pub code: Code,
    /// The backend's failure kind, where a backend failed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub failure_kind: Option<FailureKind>,
    /// What happened, safe to show.
    pub message: String,
    /// What to do first: the failure kind's, where there is one.
    pub recovery: String,
    /// The code of what our own agent loop failed with, where it did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cause: Option<Code>,
    /// The limit of its budget that the run went beyond.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exceeded: Option<Exceeded>,
}

impl Failure {
    /// A failure that is not a backend's.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        let recovery = code.row().recovery.to_owned();
        Failure { code, failure_kind: None, message: message.into(), recovery, cause: None, exceeded: None }
    }

    /// A run went beyond its budget.
    pub fn of_budget(exceeded: Exceeded) -> Self {
        let failure = Failure::new(Code::BudgetExceeded, exceeded.to_string());
        Failure { exceeded: Some(exceeded), ..failure }
    }

    /// The same, for a cause of our own agent loop's.
    pub fn caused_by(self, cause: Option<Code>) -> Self {
        Failure { cause, ..self }
    }

    /// A backend's failure.
    pub fn of_backend(kind: FailureKind, message: impl Into<String>) -> Self {
        let recovery = kind.code().row().recovery.to_owned();
        Failure {
            code: kind.run_code(),
            failure_kind: Some(kind),
            message: message.into(),
            recovery,
            cause: None,
            exceeded: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_of_our_own_loop_keeps_its_cause_and_the_rest() {
        let failure = Failure::of_backend(FailureKind::ProviderRateLimited, "too fast");
        let caused = failure.clone().caused_by(Some(Code::InferenceRateLimited));
        assert_eq!(caused.cause, Some(Code::InferenceRateLimited));
        assert_eq!(caused.caused_by(None), failure);
    }

    #[test]
    fn c16_each_failure_kind_has_its_run_code_and_its_own_recovery() {
        #[rustfmt::skip]
        let table = [
            ("secret-unavailable",       "runtime_unavailable"),
            ("provider-auth-failed",     "runtime_unavailable"),
            ("provider-rate-limited",    "provider_rate_limited"),
            ("provider-unavailable",     "provider_unavailable"),
            ("backend-protocol-error",   "schema_validation_failed"),
            ("backend-json-parse-error", "schema_validation_failed"),
            ("backend-response-invalid", "schema_validation_failed"),
            ("backend-spawn-failed",     "runtime_unavailable"),
            ("backend-failed",           "runtime_unavailable"),
            ("backend-timeout",          "run_timeout"),
            ("cancelled",                "runtime_unavailable"),
        ];
        let found = FailureKind::ALL.map(|kind| (kind.code().as_str(), kind.run_code().as_str()));
        assert_eq!(found, table);
        for kind in FailureKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.code().as_str());
            let failure = Failure::of_backend(kind, "it failed");
            assert_eq!(failure.recovery, kind.code().row().recovery, "the kind's recovery is the one shown");
        }
    }
}
