//! What can be wrong with a configuration, each with its place.
//!
//! A problem says what was expected and where; it does not repeat what was given, which may be secret.

use std::fmt;
use std::io;

use runyard::{ActionError, Code, CommandActionsError, Issue, closest};
use runyard_domain::gate::InvalidRule;

use super::origin::Origin;

/// How many problems are told at once.
pub(crate) const PROBLEMS_MAX: usize = 100;
/// How large a file may be.
pub(crate) const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Everything that is wrong, never nothing. It is no `Error`: any of those passes for an internal error of an action.
#[derive(Debug)]
pub(crate) struct ConfigurationProblems(pub(crate) Vec<Problem>);

/// One thing that is wrong.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) origin: Origin,
    pub(crate) fault: Fault,
}

/// What is wrong.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    #[error("cannot be read: {0}")]
    Unreadable(#[source] io::Error),
    #[error("others can write it; take that away with chmod go-w")]
    WritableByOthers,
    #[error("is larger than {FILE_BYTES_MAX} bytes")]
    TooLarge,
    #[error("is not UTF-8")]
    NotText,
    #[error("column {column}: {message}")]
    Syntax { column: usize, message: String },
    #[error("unknown key \"{key}\"{hint}")]
    UnknownKey { key: String, hint: Hint },
    #[error("\"{key}\": expected {expected}, found {found}")]
    WrongType { key: String, expected: String, found: &'static str },
    #[error("\"{key}\": expected {expected}")]
    WrongValue { key: String, expected: String },
    #[error("\"{key}\" is missing")]
    Missing { key: String },
    #[error("\"{key}\" counts only for an agent with backend = \"native\"")]
    OnlyNative { key: String },
    #[error(
        "\"{key}\" is an agent of its own and has a backend profile of its name: there is another [backend] so called"
    )]
    NameTaken { key: String },
    #[error(
        "\"{key}\" goes with no \"effort\" where the provider speaks messages: a model that thinks takes no temperature there; leave one of them out"
    )]
    NoThought { key: String },
    #[error("\"{key}\" names no {what}{hint}")]
    UnknownName { key: String, what: &'static str, hint: Hint },
    #[error("\"{key}\" can only be given as {variable}: it holds a password, which belongs in no file")]
    EnvironmentOnly { key: String, variable: String },
    #[error(transparent)]
    Action(#[from] CommandActionsError),
    #[error("\"{key}\": {fault}")]
    Rule {
        key: String,
        #[source]
        fault: InvalidRule,
    },
    #[error(
        "\"{key}\": a rule of scope \"once\" allows; one that asks or denies is never used up, so leave its scope out"
    )]
    NeverUsedUp { key: String },
    #[error(
        "\"{key}\": \"{id}\" is the name of a rule that was added with \"runyard policy add\"; leave id out"
    )]
    NamedAsStored { key: String, id: String },
    #[error("\"{key}\" has more than {max} entries")]
    TooMany { key: String, max: usize },
    #[error("\"{key}\" does not fit: {source}")]
    Unfit { key: String, source: serde_json::Error },
    #[error("is no record of trust: {0}")]
    TrustRecord(#[source] serde_json::Error),
}

/// What was probably meant, and what there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Hint {
    Meant(String),
    Known(Vec<String>),
}

impl Hint {
    pub(crate) fn of<'a>(asked: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        match closest(asked, known.iter().copied()) {
            Some(meant) => Hint::Meant(meant.to_owned()),
            None => Hint::Known(known.into_iter().map(str::to_owned).collect()),
        }
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Hint::Meant(name) => write!(f, "; did you mean \"{name}\"?"),
            Hint::Known(names) if names.is_empty() => Ok(()),
            Hint::Known(names) => write!(f, "; there are {}", names.join(", ")),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.origin, self.fault)
    }
}

impl fmt::Display for ConfigurationProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, problem) in self.0.iter().take(PROBLEMS_MAX).enumerate() {
            write!(f, "{}{problem}", if position == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

impl From<ConfigurationProblems> for ActionError {
    fn from(problems: ConfigurationProblems) -> Self {
        let issues = problems.0.iter().take(PROBLEMS_MAX).map(|problem| Issue::root(problem.to_string()));
        ActionError::new(Code::ValidationError, "The configuration is not valid.")
            .with_issues(issues.collect())
    }
}
