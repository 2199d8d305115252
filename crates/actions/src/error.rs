//! What an action fails with, and the issues that say where its input was wrong.

use std::fmt;
use std::time::Duration;

use runyard_domain::run::FailureKind;
use runyard_domain::{ApplicationCode, Code, ErrorCode};
use serde::{Deserialize, Serialize};

use crate::Failure;

/// Issues beyond this number are cut, with a last one that says so.
pub(crate) const ISSUES_MAX: usize = 100;

/// So many issues are counted; where there are more, the last one says so.
pub(crate) const ISSUES_COUNTED_MAX: usize = 10_000;

/// One thing that is wrong with a value, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issue {
    /// Keys and indices from the root to the place.
    pub path: Vec<PathSegment>,
    /// What is wrong there. It never repeats the value, which may be secret.
    pub message: String,
}

/// One step of an issue's path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PathSegment {
    /// An array index.
    Index(u64),
    /// An object key.
    Key(String),
}

impl Issue {
    /// An issue with the value as a whole.
    pub fn root(message: impl Into<String>) -> Self {
        Issue { path: Vec::new(), message: message.into() }
    }

    /// An issue with one top-level field.
    pub fn at(field: &str, message: impl Into<String>) -> Self {
        Issue { path: vec![PathSegment::Key(field.to_owned())], message: message.into() }
    }
}

impl fmt::Display for Issue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, segment) in self.path.iter().enumerate() {
            match segment {
                PathSegment::Key(key) if position == 0 => f.write_str(key)?,
                PathSegment::Key(key) => write!(f, ".{key}")?,
                PathSegment::Index(index) => write!(f, "[{index}]")?,
            }
        }
        let separator = if self.path.is_empty() { "" } else { ": " };
        write!(f, "{separator}{}", self.message)
    }
}

/// Cuts a list of issues to [`ISSUES_MAX`], saying how many were left out.
pub(crate) fn limit_issues(mut issues: Vec<Issue>) -> Vec<Issue> {
    if issues.len() > ISSUES_MAX {
        let cut = issues.len() - (ISSUES_MAX - 1);
        issues.truncate(ISSUES_MAX - 1);
        let at_least = if cut > ISSUES_COUNTED_MAX - ISSUES_MAX { "At least " } else { "" };
        issues.push(Issue::root(format!("{at_least}{cut} more issues are not listed.")));
    }
    issues
}

/// A typed failure of an action: its code, message, issues and whether repeating may help are kept to the very end.
///
/// Any other error turns into one with `?`; it becomes `INTERNAL_ERROR` with a fixed message, and its own text goes to the
/// scrubbed log only. For that reason this type is not itself a [`std::error::Error`].
pub struct ActionError(Box<Inner>);

#[derive(Clone)]
struct Inner {
    code: ErrorCode,
    message: String,
    issues: Vec<Issue>,
    retryable: bool,
    retry_after: Option<Duration>,
    /// For the log only; never in an envelope.
    detail: Option<String>,
}

impl ActionError {
    /// An error with a code of the table.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self::with_code(code.into(), message.into())
    }

    /// An error with the application's own code, such as `PAYMENT_DECLINED`.
    ///
    /// A code that is no valid one (see [`ApplicationCode`]) becomes `INTERNAL_ERROR`; one of the table's is taken as that.
    pub fn application(code: &str, message: impl Into<String>) -> Self {
        match ErrorCode::parse(code) {
            Ok(code) => Self::with_code(code, message.into()),
            Err(invalid) => Self::internal(format!("{invalid}: {}", message.into())),
        }
    }

    /// An error with an application code that was checked before.
    pub fn from_application_code(code: ApplicationCode, message: impl Into<String>) -> Self {
        Self::with_code(ErrorCode::Application(code), message.into())
    }

    /// The caller is not who they must be.
    pub fn authentication(message: impl Into<String>) -> Self {
        Self::new(Code::AuthenticationError, message)
    }

    /// Another service failed. Say [`retryable`](Self::retryable) where repeating may help.
    pub fn external_service(message: impl Into<String>) -> Self {
        Self::new(Code::ExternalServiceError, message)
    }

    /// What was asked for does not fit the present state.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(Code::Conflict, message)
    }

    /// The action was aborted.
    pub fn cancelled() -> Self {
        Self::new(Code::Cancelled, "Action was cancelled.")
    }

    /// The input was wrong in ways that only the handler can see.
    pub fn invalid_input(issues: Vec<Issue>) -> Self {
        Self::new(Code::ValidationError, "Invalid action input.").with_issues(issues)
    }

    /// A fault of the program. `detail` goes to the scrubbed log, never into an envelope.
    pub fn internal(detail: impl Into<String>) -> Self {
        let mut error = Self::new(Code::InternalError, "The action failed because of an internal error.");
        error.0.detail = Some(detail.into());
        error
    }

    fn with_code(code: ErrorCode, message: String) -> Self {
        ActionError(Box::new(Inner {
            code,
            message,
            issues: Vec::new(),
            retryable: false,
            retry_after: None,
            detail: None,
        }))
    }

    /// Says that repeating the same call may succeed.
    #[must_use]
    pub fn retryable(mut self) -> Self {
        self.0.retryable = true;
        self
    }

    /// Says that repeating the same call may succeed after this wait.
    #[must_use]
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.0.retry_after = Some(wait);
        self.retryable()
    }

    /// Adds issues.
    #[must_use]
    pub fn with_issues(mut self, issues: Vec<Issue>) -> Self {
        self.0.issues.extend(issues);
        self
    }

    /// The code.
    pub fn code(&self) -> &ErrorCode {
        &self.0.code
    }

    /// The message.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The issues.
    pub fn issues(&self) -> &[Issue] {
        &self.0.issues
    }

    /// Whether repeating the same call may succeed.
    pub fn is_retryable(&self) -> bool {
        self.0.retryable
    }

    pub(crate) fn detail(&self) -> Option<&str> {
        self.0.detail.as_deref()
    }
}

/// What another process answered, as this one's failure.
impl From<Failure> for ActionError {
    fn from(failure: Failure) -> Self {
        let error = Self::with_code(failure.code, failure.message).with_issues(failure.issues);
        if failure.retryable { error.retryable() } else { error }
    }
}

impl From<ActionError> for Failure {
    fn from(error: ActionError) -> Self {
        let inner = *error.0;
        let failure_kind = FailureKind::ALL.into_iter().find(|kind| inner.code == kind.code());
        Failure {
            failure_kind,
            code: inner.code,
            message: inner.message,
            issues: limit_issues(inner.issues),
            retryable: inner.retryable,
            retry_after_ms: inner.retry_after.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
        }
    }
}

impl Clone for ActionError {
    fn clone(&self) -> Self {
        ActionError(self.0.clone())
    }
}

impl fmt::Debug for ActionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActionError")
            .field("code", &self.0.code.as_str())
            .field("message", &self.0.message)
            .field("issues", &self.0.issues)
            .field("retryable", &self.0.retryable)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for ActionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.code, self.0.message)
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for ActionError {
    fn from(error: E) -> Self {
        // An aborted task is an abort, not a fault.
        let aborted = (&error as &dyn std::any::Any)
            .downcast_ref::<tokio::task::JoinError>()
            .is_some_and(tokio::task::JoinError::is_cancelled);
        if aborted { ActionError::cancelled() } else { ActionError::internal(describe(&error)) }
    }
}

/// An error with its chain of causes, in one line.
fn describe(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        text.push_str(": ");
        text.push_str(&source.to_string());
        cause = source.source();
    }
    text
}
