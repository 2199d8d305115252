//! The words of a definition: side effects, visibility, retry, concurrency, deprecation, routes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{DefinitionError, RETRIES_MAX, WAIT_MS_MAX};
use crate::safe_json::whole_floats_to_integers;

/// What an action does to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SideEffects {
    /// Nothing: it only looks.
    Read,
    /// It changes something.
    Write,
    /// It changes something that cannot be brought back; asks for confirmation by default.
    Destructive,
}

/// What happens when the same call is made twice. It informs callers; idempotency keys work whatever it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Idempotency {
    /// Twice is as good as once.
    Idempotent,
    /// Twice does it twice.
    NonIdempotent,
    /// It depends on the input.
    Conditional,
    /// Nobody has said.
    Unspecified,
}

/// Who may see an action at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Visibility {
    /// Every surface it supports.
    Public,
    /// Only callers on this machine: command line, JSON runner, development page.
    Local,
    /// Only Rust code.
    Private,
}

/// How often and after which wait a retryable failure is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RetryPolicy {
    /// How many times after the first.
    pub retries: u32,
    /// The wait before retry k is k times this.
    pub delay_ms: u64,
}

impl RetryPolicy {
    /// No retry.
    pub const NONE: RetryPolicy = RetryPolicy { retries: 0, delay_ms: 100 };
    /// What `retry: true` means.
    pub const DEFAULT: RetryPolicy = RetryPolicy { retries: 2, delay_ms: 100 };

    /// Reads `true`, `false` or `{retries, delayMs}`; anything else is refused with the reason.
    pub fn from_json(value: &Value) -> Result<Self, String> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        struct Wire {
            #[serde(default)]
            retries: u32,
            #[serde(default = "default_delay")]
            delay_ms: u64,
        }
        fn default_delay() -> u64 {
            RetryPolicy::NONE.delay_ms
        }
        let refused = || "Expected true, false or {retries, delayMs}.".to_owned();
        let policy = match value {
            Value::Bool(true) => RetryPolicy::DEFAULT,
            Value::Bool(false) => RetryPolicy::NONE,
            Value::Object(_) => {
                let mut value = value.clone();
                whole_floats_to_integers(&mut value);
                let wire = Wire::deserialize(value).map_err(|_| refused())?;
                RetryPolicy { retries: wire.retries, delay_ms: wire.delay_ms }
            }
            _ => return Err(refused()),
        };
        policy.check().map(|()| policy)
    }

    pub(crate) fn check(self) -> Result<(), String> {
        if self.retries > RETRIES_MAX || self.delay_ms > WAIT_MS_MAX {
            return Err(format!("Expected at most {RETRIES_MAX} retries and {WAIT_MS_MAX} ms."));
        }
        Ok(())
    }
}

/// How many invocations may run at once, and how long a further one waits for its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Concurrency {
    /// So many at once.
    pub max: u32,
    /// A further one waits so long, then gets `CONCURRENCY_LIMIT`; 0 refuses at once.
    pub wait_ms: u64,
}

/// Why an action should no longer be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deprecation {
    /// What to know.
    pub message: String,
    /// The version that deprecated it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// The action to use instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacement: Option<String>,
}

/// A declared HTTP route, written `POST /api/v1/tasks/{id}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRoute {
    /// One of GET, POST, PUT, PATCH, DELETE.
    pub method: &'static str,
    /// The path; `{name}` is the input field of that name.
    pub path: String,
}

impl HttpRoute {
    /// The input fields that are in the path.
    pub fn path_fields(&self) -> impl Iterator<Item = &str> {
        self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
    }
}

impl fmt::Display for HttpRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

impl FromStr for HttpRoute {
    type Err = DefinitionError;

    fn from_str(text: &str) -> Result<Self, DefinitionError> {
        let invalid = || DefinitionError::InvalidRoute { route: text.to_owned() };
        let (method, path) = text.split_once(' ').ok_or_else(invalid)?;
        let method = ["GET", "POST", "PUT", "PATCH", "DELETE"]
            .into_iter()
            .find(|m| *m == method)
            .ok_or_else(invalid)?;
        let part_is_fine = |part: &str| {
            let name = part.strip_prefix('{').map_or(Some(part), |rest| rest.strip_suffix('}'));
            name.is_some_and(|name| {
                !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
            })
        };
        let parts = path.strip_prefix('/').ok_or_else(invalid)?;
        if !parts.split('/').all(part_is_fine) {
            return Err(invalid());
        }
        Ok(HttpRoute { method, path: path.to_owned() })
    }
}

/// The address of a resource; `{name}` is the input field of that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceUri(String);

impl ResourceUri {
    /// The input fields that are in the address.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.0.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
    }

    /// The values of its fields in an address of this form, as text; nothing where the address is none.
    ///
    /// A field is one whole part of the path and never empty, so that an address has one meaning.
    pub fn matched<'a>(&'a self, uri: &'a str) -> Option<Vec<(&'a str, &'a str)>> {
        if self.0.split('/').count() != uri.split('/').count() {
            return None;
        }
        let mut fields = Vec::new();
        for (pattern, part) in self.0.split('/').zip(uri.split('/')) {
            match pattern.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
                Some(field) if !part.is_empty() => fields.push((field, part)),
                None if pattern == part => {}
                _ => return None,
            }
        }
        Some(fields)
    }
}

impl fmt::Display for ResourceUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for ResourceUri {
    type Err = DefinitionError;

    fn from_str(text: &str) -> Result<Self, DefinitionError> {
        let invalid = || DefinitionError::InvalidResource { uri: text.to_owned() };
        let (scheme, path) = text.split_once("://").ok_or_else(invalid)?;
        let scheme_is_fine = scheme.starts_with(|c: char| c.is_ascii_lowercase())
            && scheme.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "+-.".contains(c));
        let part_is_fine = |part: &str| {
            let name = part.strip_prefix('{').map_or(Some(part), |rest| rest.strip_suffix('}'));
            name.is_some_and(|name| {
                !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
            })
        };
        if !scheme_is_fine || !path.split('/').all(part_is_fine) {
            return Err(invalid());
        }
        Ok(ResourceUri(text.to_owned()))
    }
}

/// Whether a call is served as a task: answered at once with an id, and followed until it ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskUse {
    /// Its answer is waited for.
    #[default]
    Never,
    /// Where the caller can follow a task.
    Possible,
    /// Likewise, but what it asks first is answered before the task begins.
    Answered,
    /// Always: a caller who cannot follow a task cannot call it there.
    Required,
}
