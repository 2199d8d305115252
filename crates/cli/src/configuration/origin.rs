//! Where a value came from.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A value and where it came from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sourced<T> {
    pub(crate) value: T,
    pub(crate) origin: Origin,
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Built in.
    Default,
    /// The data directory's file.
    Data(Place),
    /// A project's file.
    Project(Place),
    /// This variable.
    Environment(String),
    /// This flag, without its dashes.
    Flag(String),
}

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) file: Arc<PathBuf>,
    /// From 1.
    pub(crate) line: usize,
}

impl Origin {
    /// The words for origins, as `config show --origin` takes them.
    pub(crate) const WORDS: [&'static str; 5] = ["default", "data", "project", "environment", "flag"];

    pub(crate) fn word(&self) -> &'static str {
        match self {
            Origin::Default => "default",
            Origin::Data(_) => "data",
            Origin::Project(_) => "project",
            Origin::Environment(_) => "environment",
            Origin::Flag(_) => "flag",
        }
    }
}

impl Place {
    pub(crate) fn new(file: &Arc<PathBuf>, line: usize) -> Self {
        Place { file: Arc::clone(file), line }
    }

    pub(crate) fn file(&self) -> &Path {
        &self.file
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file.display(), self.line)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::Data(place) | Origin::Project(place) => place.fmt(f),
            Origin::Environment(variable) => f.write_str(variable),
            Origin::Flag(flag) => write!(f, "--{flag}"),
        }
    }
}
