//! What a run produces to be looked at: the kinds of artifact, and what each must say about itself.
//!
//! An artifact shows something and does nothing: recording one accepts nothing and changes no file. Where its content lies, and
//! what it may hold, is decided elsewhere.

mod checks;

use serde::{Deserialize, Serialize};

use crate::run::{ApplyStatus, Run, RunEvent, Who};
use crate::{ActorKind, ApprovalId, BlobId, Timestamp};

pub use checks::{InvalidArtifact, Problem, is_file_name, is_relative};

/// The most artifacts of a run.
pub const ARTIFACTS_MAX: usize = 64;
/// The most paths that an artifact names. A summary says how many there are beside them.
const PATHS_MAX: usize = 64;
/// How long all texts of an artifact's facts may be together: a run's row holds them.
const FACTS_BYTES_MAX: usize = 2 * 1024;
/// How wide or high a screenshot can be, in pixels.
const VIEWPORT_MAX: u32 = 16_384;

/// What an artifact is, with what its kind must say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum ArtifactFacts {
    /// What changed between two trees.
    Diff {
        /// What it starts from.
        base: String,
        /// What it leads to.
        target: String,
        /// The first of the files, relative to the workspace.
        paths: Vec<String>,
        /// What it is, in a line.
        summary: String,
    },
    /// A change that can be applied.
    Patch {
        /// The first of the files, relative to the workspace.
        files: Vec<String>,
        /// What became of it.
        apply_status: ApplyStatus,
        /// What asks for applying it, or allowed it. There is none only while it is proposed.
        approval_id: Option<ApprovalId>,
    },
    /// A file as it was when it was read.
    FilePreview {
        /// The file, relative to the workspace.
        path: String,
        /// When it was read.
        read_at: Timestamp,
    },
    /// A picture of a screen.
    Screenshot {
        /// How large the screen was.
        viewport: Viewport,
        /// Which page.
        route: String,
        /// In which colours, such as `light` or `dark`.
        theme: String,
        /// In which language, such as `en`.
        language: String,
        /// Whether somebody looked for what is private in it.
        privacy_review: PrivacyReview,
    },
    /// Documents that were built.
    GeneratedDocs {
        /// Which page they were built from.
        source_route: String,
        /// In which language, such as `en`.
        language: String,
        /// How building them went.
        build_status: BuildStatus,
    },
    /// What a backend and its adapter said to each other, redacted, for whoever looks for a fault.
    Debug {
        /// How many lines.
        lines: u64,
        /// How many lines more were left out.
        omitted: u64,
    },
    /// Anything else.
    File {
        /// Where it lies in the workspace, if it does.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        path: Option<String>,
    },
}

/// The size of a screen, in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Viewport {
    /// How wide.
    pub width: u32,
    /// How high.
    pub height: u32,
}

/// Whether somebody looked for what is private in a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PrivacyReview {
    /// Nobody has yet.
    Pending,
    /// A person did, and it may be seen.
    Passed,
    /// A person did, and it shows something private.
    Failed,
}

/// How building documents went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum BuildStatus {
    /// They are whole.
    Succeeded,
    /// They are not.
    Failed,
}

impl ArtifactFacts {
    /// The kinds that must say something; `file` need not.
    pub const TELLING: [&'static str; 6] =
        ["diff", "patch", "file_preview", "screenshot", "generated_docs", "debug"];

    /// The word on the wire.
    pub const fn kind(&self) -> &'static str {
        match self {
            ArtifactFacts::Diff { .. } => "diff",
            ArtifactFacts::Patch { .. } => "patch",
            ArtifactFacts::FilePreview { .. } => "file_preview",
            ArtifactFacts::Screenshot { .. } => "screenshot",
            ArtifactFacts::GeneratedDocs { .. } => "generated_docs",
            ArtifactFacts::Debug { .. } => "debug",
            ArtifactFacts::File { .. } => "file",
        }
    }

    /// Whether it may show what is private: a picture that no person has passed.
    pub const fn needs_review(&self) -> bool {
        match self {
            ArtifactFacts::Screenshot { privacy_review, .. } => {
                !matches!(privacy_review, PrivacyReview::Passed)
            }
            _ => false,
        }
    }
}

/// What an artifact holds, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ArtifactContent {
    /// Where it is kept, and its digest.
    pub blob: BlobId,
    /// How long it is.
    pub bytes: u64,
    /// What it was found to be by looking at it.
    pub media_type: String,
    /// Whether redaction changed what was given.
    pub redacted: bool,
}

/// `run.artifact.ready`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ArtifactReady {
    /// Its id.
    pub artifact_id: String,
    /// What kind of thing it is.
    pub kind: String,
    /// What it is, in a line.
    pub summary: String,
    /// What its kind says about it. Logs of long ago have artifacts without.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub facts: Option<ArtifactFacts>,
    /// The name of the file that it is, or would be.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    /// What it holds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub content: Option<ArtifactContent>,
    /// Who gave it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub by: Option<Who>,
}

impl ArtifactReady {
    /// Whether this actor may see its content: what may be private is for people, and for the agent that gave it.
    pub fn is_for(&self, actor: &crate::Actor) -> bool {
        let private = self.facts.as_ref().is_some_and(ArtifactFacts::needs_review);
        match actor.kind {
            ActorKind::Person => true,
            ActorKind::Agent { .. } => !private || self.by == Some(Who::from(actor)),
            ActorKind::Service => !private,
        }
    }
}

/// `run.preview.ready`: a file can be looked at as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PreviewReady {
    /// What is shown, relative to the workspace.
    pub path: String,
    /// When it was read.
    pub read_at: Timestamp,
    /// The artifact that holds it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub artifact_id: Option<String>,
}

/// An artifact as the run's row holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Artifact {
    /// What was recorded.
    #[serde(flatten)]
    pub ready: ArtifactReady,
    /// When.
    pub at: Timestamp,
}

impl Run {
    /// How long all its artifacts are together.
    pub fn artifact_bytes(&self) -> u64 {
        let content = self.produced.iter().filter_map(|artifact| artifact.ready.content.as_ref());
        content.fold(0, |sum, content| sum.saturating_add(content.bytes))
    }

    /// Takes in what an event says about an artifact.
    pub(crate) fn note_artifact(&mut self, at: Timestamp, event: &RunEvent) {
        if let RunEvent::ArtifactReady(ready) = event
            && ready.facts.is_some()
            && self.produced.len() < ARTIFACTS_MAX
        {
            self.produced.push(Artifact { ready: ready.clone(), at });
        }
    }
}
