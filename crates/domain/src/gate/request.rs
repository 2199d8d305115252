//! What an agent asks for, as types.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One thing that an agent wants to do. Paths inside the workspace are relative to it, with `/` between parts and no `..`; every
/// other path is absolute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Request {
    /// Read a file or list a directory.
    Read {
        /// Which.
        path: String,
    },
    /// Write or remove a file.
    Write {
        /// Which.
        path: String,
        /// What the file will hold, as far as it is text and known.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        content: Option<String>,
    },
    /// Change files by a patch.
    Patch {
        /// The files it changes.
        files: Vec<String>,
        /// The patch.
        patch: String,
    },
    /// Run a command.
    Shell {
        /// The command line as a shell reads it.
        command: String,
        /// The directory it runs in; the workspace itself is `.`.
        cwd: String,
    },
    /// Open a connection.
    Network {
        /// The host's name or address.
        host: String,
        /// The port, where known.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        port: Option<u16>,
    },
    /// Make a commit.
    GitCommit {
        /// Its message.
        message: String,
    },
    /// Push commits.
    GitPush {
        /// Where to.
        remote: String,
        /// Which branch or ref.
        branch: String,
    },
    /// Publish something: a package, a page, a message to others.
    Publish {
        /// What, and where to.
        target: String,
    },
    /// Deploy something.
    Deploy {
        /// What, and where to.
        target: String,
    },
    /// Read a secret.
    Secret {
        /// Its name.
        name: String,
    },
    /// Call an action.
    Action {
        /// Its name.
        action: String,
        /// What it does to the world.
        side_effects: SideEffects,
        /// Its input.
        input: Value,
    },
    /// Ask a person something. Nothing is done by it, so no rule decides it: it is always asked.
    Question(Question),
    /// Bring what changed in the run's checkout to a person's files. No rule decides it: it is always asked.
    Apply {
        /// What it starts from.
        base: String,
        /// What it leads to.
        target: String,
        /// How much changed.
        stats: crate::DiffStats,
        /// The first of the files.
        files: Vec<String>,
        /// Where to.
        to: crate::ApplyTo,
        /// Whether what was applied is taken back.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        undo: bool,
    },
    /// Repeat a step that a dead process had begun: nobody knows whether it took effect.
    Repeat {
        /// The step, as the log names it.
        step: String,
    },
}

/// A question to a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// What is asked.
    pub prompt: String,
    /// The JSON Schema of the answer.
    pub answer_schema: Value,
}

/// What an action does to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SideEffects {
    /// Nothing.
    Read,
    /// It changes something.
    Write,
    /// It destroys something.
    Destructive,
}

impl Request {
    /// Its kind, as rules and approvals name it.
    pub const fn kind(&self) -> &'static str {
        match self {
            Request::Read { .. } => "read",
            Request::Write { .. } => "write",
            Request::Patch { .. } => "patch",
            Request::Shell { .. } => "shell",
            Request::Network { .. } => "network",
            Request::GitCommit { .. } => "git_commit",
            Request::GitPush { .. } => "git_push",
            Request::Publish { .. } => "publish",
            Request::Deploy { .. } => "deploy",
            Request::Secret { .. } => "secret",
            Request::Action { .. } => "action",
            Request::Question(_) => "question",
            Request::Apply { .. } => "apply",
            Request::Repeat { .. } => "repeat",
        }
    }
}
