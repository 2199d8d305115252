//! What can go wrong with the installation's log. Nothing here ever repeats a token's text, not even a mistyped one.

use runyard_domain::Code;
use runyard_domain::gate::InvalidRule;
use runyard_redact::RedactError;
use runyard_store::{Break, Refusal, StorageError};

use super::registry::{REGISTRY_BYTES_MAX, RULES_MAX, TOKENS_MAX};
use super::token::NAME_BYTES_MAX;

/// Why the installation's log did not do what it was asked to. Unless it says otherwise, nothing was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InstallationError {
    /// The store said no.
    #[error(transparent)]
    Storage(StorageError),
    /// An agent wants what only people may do.
    #[error("only people may change tokens and rules")]
    PeopleOnly,
    /// A token cannot have this name. The name is not repeated: it could be a token.
    #[error(
        "a token's name has 1 to {NAME_BYTES_MAX} letters, digits, dots, dashes, underscores or @, begins with a \
         letter or digit, and looks neither like a token or its id nor like one of Runyard's own names"
    )]
    InvalidName,
    /// A living token has this name.
    #[error("there is a token \"{name}\" already")]
    NameTaken {
        /// The name.
        name: String,
    },
    /// The token would never have let anybody in.
    #[error("the token would have expired already")]
    ExpiredAlready,
    /// No token has this id or name. What was asked for is not repeated: it could be a token.
    #[error("there is no token of this id or name")]
    NoSuchToken,
    /// No stored rule has this id: it was never there, was removed, or was used up.
    #[error("there is no stored rule of this id")]
    NoSuchRule,
    /// The rule is none.
    #[error(transparent)]
    Rule(#[from] InvalidRule),
    /// The rule holds for more than one request, so using it does not retire it.
    #[error("the rule does not hold once, but until it is removed or expires")]
    NotOnce,
    /// There is no room for another token.
    #[error("there are {TOKENS_MAX} tokens already: revoke one first")]
    TokensFull,
    /// There is no room for another rule.
    #[error("there are {RULES_MAX} stored rules already: remove one first")]
    RulesFull,
    /// All tokens and rules together would be too large.
    #[error("tokens and rules would take {bytes} bytes; {REGISTRY_BYTES_MAX} are the limit")]
    TooLarge {
        /// How many they would take.
        bytes: usize,
    },
    /// It holds something that may not be stored, and without that it would mean something else.
    #[error("{what} holds something that may not be stored")]
    RedactedContent {
        /// What.
        what: &'static str,
    },
    /// An event or the state cannot be read.
    #[error("event {sequence} of the installation's log cannot be read: {source}")]
    Unreadable {
        /// Its place.
        sequence: u64,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// An event of a kind that this version does not know changes tokens or rules.
    #[error("event {sequence} of the installation's log is of a kind that this version does not know")]
    UnknownKind {
        /// Its place.
        sequence: u64,
    },
    /// The change is made and durable, but this process could not take it in: it goes on with what it knew until it can.
    #[error("the change is made, but not in force here yet: {0}")]
    NotInForceYet(#[source] Box<InstallationError>),
    /// The log does not hold.
    #[error("the installation's log does not hold: {0}")]
    Broken(#[from] Break),
    /// The tokens and rules in force are not the ones that the log leads to.
    #[error("the stored tokens and rules are not what the installation's log says up to event {sequence}")]
    StateDiffers {
        /// The last event.
        sequence: u64,
    },
    /// Something cannot be written as JSON.
    #[error("cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// Something cannot be redacted.
    #[error(transparent)]
    Redact(#[from] RedactError),
    /// The system gives no randomness, so no token can be made.
    #[error("no randomness for a token: {0}")]
    Randomness(#[source] std::io::Error),
}

impl InstallationError {
    /// Its row in the error table.
    pub fn code(&self) -> Code {
        match self {
            InstallationError::Storage(error) => error.code(),
            InstallationError::PeopleOnly => Code::AuthorizationError,
            InstallationError::InvalidName
            | InstallationError::ExpiredAlready
            | InstallationError::Rule(_)
            | InstallationError::NotOnce => Code::ValidationError,
            InstallationError::NameTaken { .. }
            | InstallationError::TokensFull
            | InstallationError::RulesFull
            | InstallationError::TooLarge { .. } => Code::Conflict,
            InstallationError::NoSuchToken | InstallationError::NoSuchRule => Code::NotFound,
            InstallationError::RedactedContent { .. } => Code::RedactedContent,
            InstallationError::Unreadable { .. } | InstallationError::UnknownKind { .. } => {
                Code::StorageSerialization
            }
            InstallationError::NotInForceYet(error) => error.code(),
            InstallationError::Broken(_) | InstallationError::StateDiffers { .. } => Code::StorageCorrupt,
            InstallationError::Json(_) | InstallationError::Redact(_) | InstallationError::Randomness(_) => {
                Code::InternalError
            }
        }
    }
}

/// What was refused inside the transaction comes out as what it was.
impl From<StorageError> for InstallationError {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::Refused { code, source } => match source.downcast::<InstallationError>() {
                Ok(own) => *own,
                Err(source) => InstallationError::Storage(StorageError::Refused { code, source }),
            },
            other => InstallationError::Storage(other),
        }
    }
}

impl From<InstallationError> for Refusal {
    fn from(error: InstallationError) -> Self {
        Refusal { code: error.code(), source: Box::new(error) }
    }
}
