//! Typed ids: a prefix that says what they name, and a time-ordered unique part.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::{Builder, Uuid};

/// A text that is not an id of the kind asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a {kind} id: expected \"{kind}_\" and a UUID")]
pub struct InvalidId {
    /// The prefix that was expected.
    pub kind: &'static str,
}

macro_rules! typed_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(into = "String", try_from = "String")]
        pub struct $name(Uuid);

        impl $name {
            /// The id made at a time (milliseconds since 1970) with some randomness; later ones sort after earlier ones.
            ///
            /// Time and randomness are the caller's: this crate has neither.
            pub const fn from_parts(unix_ms: u64, random: &[u8; 10]) -> Self {
                $name(Builder::from_unix_timestamp_millis(unix_ms, random).into_uuid())
            }

            /// The sixteen bytes that tell it apart, as a store keeps them.
            pub const fn as_bytes(&self) -> &[u8; 16] {
                self.0.as_bytes()
            }

            /// The id of these bytes.
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                $name(Uuid::from_bytes(bytes))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "_{}"), self.0.simple())
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.to_string()
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                text.strip_prefix(concat!($prefix, "_"))
                    .and_then(|unique| Uuid::try_parse(unique).ok())
                    .map($name)
                    .ok_or(InvalidId { kind: $prefix })
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;

            fn try_from(text: String) -> Result<Self, InvalidId> {
                text.parse()
            }
        }
    };
}

typed_id!(
    /// One attempt at a task.
    RunId,
    "run"
);

typed_id!(
    /// One invocation of an action.
    InvocationId,
    "inv"
);

typed_id!(
    /// A thing to review that an invocation or a run produced.
    ArtifactId,
    "art"
);

typed_id!(
    /// A fact in a run's log.
    EventId,
    "evt"
);

typed_id!(
    /// A conversation that runs share.
    SessionId,
    "ses"
);

typed_id!(
    /// A person's decision on one named risk, asked for or given.
    ApprovalId,
    "apr"
);

typed_id!(
    /// One change of a run: who repeats it with the same id is answered as the first time.
    AppendId,
    "app"
);

typed_id!(
    /// A directory that a person named, on one edge.
    WorkspaceId,
    "wsp"
);

typed_id!(
    /// An instruction to a live run.
    CommandId,
    "cmd"
);

typed_id!(
    /// A stored rule of the policy.
    RuleId,
    "rul"
);

typed_id!(
    /// A named token.
    TokenId,
    "tok"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_says_what_it_names_and_reads_back() {
        let id = RunId::from_parts(1_700_000_000_000, &[7; 10]);
        assert_eq!(id.to_string(), "run_018bcfe5680077078707070707070707");
        assert_eq!(id.to_string().parse(), Ok(id));
        assert!(id < RunId::from_parts(1_700_000_000_001, &[0; 10]));
        assert_eq!("apr_0".parse::<RunId>(), Err(InvalidId { kind: "run" }));
    }
}
