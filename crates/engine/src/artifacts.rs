//! Artifacts: what a run produced to be looked at, on its way into the record, and out of it again.
//!
//! Recording one is a note: it accepts nothing and changes no file. What it holds is kept as a blob that a redactor has seen: text
//! without its secrets, anything else only if none is in it. What is packed inside other bytes (an archive, a compressed picture)
//! is not opened. A run's own diff and patch are shown as artifacts too, as the run stands, and are not stored a second time.

use std::ops::Range;

use runyard_backend::WorkspaceError;
use runyard_domain::run::{ApplyStatus, ArtifactReady, PreviewReady, Review, Run, RunEvent, Who};
use runyard_domain::{
    ARTIFACTS_MAX, Actor, Artifact, ArtifactContent, ArtifactFacts, ArtifactId, BlobId, InvalidArtifact,
    PrivacyReview, RunId, Timestamp, WorkspaceId, is_file_name,
};
use runyard_redact::{Kind, Safe};
use runyard_store::{StorageError, blob_id};
use serde_json::json;

use crate::fresh::fresh;
use crate::keys::{Key, Keyed};
use crate::media::media;
use crate::record::Decided;
use crate::{Engine, EngineError};

/// The largest artifact: what fits into the input of an action, written in base64.
pub const ARTIFACT_BYTES_MAX: usize = 700 * 1024;
/// How large all artifacts of a run may be together.
pub const ARTIFACTS_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// The longest line that says what an artifact is.
const SUMMARY_BYTES_MAX: usize = 512;

/// The name under which a run's own diff is among its artifacts.
pub const OWN_DIFF: &str = "diff";
/// The name under which a run's own patch is among its artifacts.
pub const OWN_PATCH: &str = "patch";

/// Something that was produced to be looked at.
#[derive(Clone, Debug)]
pub struct NewArtifact {
    /// The name of the file that it is, or would be.
    pub name: String,
    /// What it is, in a line; its name without.
    pub summary: Option<String>,
    /// What its kind says about it.
    pub facts: ArtifactFacts,
    /// What it holds.
    pub content: Vec<u8>,
    /// The caller's idempotency key.
    pub key: Option<String>,
}

/// An artifact of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtifactRecord {
    /// What is known of it. A run's own diff and patch have no content here: the diff is read by itself.
    pub ready: ArtifactReady,
    /// When it was recorded, where it was by itself.
    pub at: Option<Timestamp>,
}

impl From<&Artifact> for ArtifactRecord {
    fn from(artifact: &Artifact) -> Self {
        ArtifactRecord { ready: artifact.ready.clone(), at: Some(artifact.at) }
    }
}

impl Engine {
    /// Records an artifact of a run. The same key gives the same artifact.
    pub async fn add_artifact(
        &self,
        run: RunId,
        new: NewArtifact,
        actor: &Actor,
    ) -> Result<ArtifactRecord, EngineError> {
        check(&new, actor)?;
        let input = json!([run, new.name, new.summary, new.facts, blob_id(&new.content)]);
        let key = Key::of("artifact_add", actor, new.key.as_deref(), &input)?;
        if let Some(Keyed { id, .. }) = self.kept::<ArtifactId>(key.as_ref()).await? {
            return self.artifact(run, &id.to_string()).await;
        }
        // Before anything is stored; it is looked at again where it is decided.
        let standing = self.run(run).await?.run;
        takes(&standing, new.content.len() as u64)?;
        self.check_approval(run, &new.facts).await?;
        let given = blob_id(&new.content);
        let new = self.without_root(standing.created.workspace.id, new).await?;
        let (mut content, safe) = self.made_safe(&new)?;
        content.redacted = content.blob != given;
        let id = fresh!(ArtifactId, self.now());
        let blob = self.recorder().put(safe).await?;
        let ready = ArtifactReady {
            artifact_id: id.to_string(),
            kind: new.facts.kind().to_owned(),
            summary: new.summary.unwrap_or_else(|| new.name.clone()),
            facts: Some(new.facts),
            name: Some(new.name),
            content: Some(ArtifactContent { blob, ..content }),
            by: Some(Who::from(actor)),
        };
        self.record_artifact(run, id, ready, key).await
    }

    async fn record_artifact(
        &self,
        run: RunId,
        id: ArtifactId,
        ready: ArtifactReady,
        key: Option<Key>,
    ) -> Result<ArtifactRecord, EngineError> {
        let bytes = ready.content.as_ref().map_or(0, |content| content.bytes);
        let redacted = ready.content.as_ref().is_some_and(|content| content.redacted);
        let made = Keyed { id, redacted };
        let result = key.map(|key| key.result(&self.recorder().redactor, &made, self.now())).transpose()?;
        let mut events = vec![RunEvent::ArtifactReady(ready.clone())];
        if let Some(ArtifactFacts::FilePreview { path, read_at }) = &ready.facts {
            let artifact_id = Some(ready.artifact_id.clone());
            events.push(RunEvent::PreviewReady(PreviewReady {
                path: path.clone(),
                read_at: *read_at,
                artifact_id,
            }));
        }
        let decide = move |run: &Run, _| {
            takes(run, bytes)?;
            Ok(Decided { facts: events.iter().cloned().map(Into::into).collect(), result: result.clone() })
        };
        let recorded = match self.recorder().head(run, decide).await {
            // The same key at the same time: the first one counts.
            Err(EngineError::Storage(StorageError::AlreadyExists(..))) if key.is_some() => {
                let kept: Option<Keyed<ArtifactId>> = self.kept(key.as_ref()).await?;
                let id = kept.ok_or(EngineError::KeyTaken)?.id;
                return self.artifact(run, &id.to_string()).await;
            }
            recorded => recorded?,
        };
        self.changed(&recorded);
        one(&recorded.run, &ready.artifact_id)
    }

    /// The artifacts of a run, oldest first, and before them its own diff and patch where it has changed something.
    pub async fn artifacts(&self, run: RunId) -> Result<Vec<ArtifactRecord>, EngineError> {
        Ok(all(&self.run(run).await?.run).collect())
    }

    /// One artifact of a run.
    pub async fn artifact(&self, run: RunId, id: &str) -> Result<ArtifactRecord, EngineError> {
        one(&self.run(run).await?.run, id)
    }

    /// A part of what an artifact holds, checked against its digest. What lies beyond its end is left out.
    pub async fn artifact_content(
        &self,
        run: RunId,
        id: &str,
        range: Range<u64>,
    ) -> Result<Vec<u8>, EngineError> {
        let artifact = self.artifact(run, id).await?;
        let Some(content) = artifact.ready.content else {
            let what = format!("content of artifact {id} by itself: it is the diff of run {run}");
            return Err(EngineError::NotFound { what });
        };
        let mut bytes = self.recorder().store.get(content.blob).await?;
        let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
        let (from, to) = (place(range.start), place(range.end));
        bytes.truncate(to);
        bytes.drain(..from.min(to));
        Ok(bytes)
    }

    /// The same, with what it says of the workspace's files named from its root on. Secrets are taken out first: what the
    /// workspace's edge would take for one is none any more.
    async fn without_root(
        &self,
        workspace: WorkspaceId,
        mut new: NewArtifact,
    ) -> Result<NewArtifact, EngineError> {
        let redactor = &self.recorder().redactor;
        if let Some(summary) = new.summary.take() {
            let safe = redactor.content(&summary).into_inner();
            new.summary = Some(self.shown(workspace, safe).await?);
        }
        if let Ok(text) = std::str::from_utf8(&new.content)
            && media(&new.name, &new.content).is_text
        {
            let safe = redactor.content(text).into_inner();
            new.content = self.shown(workspace, safe).await?.into_bytes();
        }
        Ok(new)
    }

    /// What others may read of a text. Where the workspace is off the list by now, nobody knows its root any more.
    async fn shown(&self, workspace: WorkspaceId, text: String) -> Result<String, EngineError> {
        match self.workspaces().shown(workspace, text.clone()).await {
            Err(WorkspaceError::Outside { .. } | WorkspaceError::Unknown { .. }) => Ok(text),
            shown => Ok(shown?),
        }
    }

    /// What was given, as it may be stored, and what is known of it. Where it is kept is not known yet.
    fn made_safe(&self, new: &NewArtifact) -> Result<(ArtifactContent, Safe<Vec<u8>>), EngineError> {
        let (given, redactor) = (&new.content, &self.recorder().redactor);
        let found = media(&new.name, given);
        let safe = match std::str::from_utf8(given) {
            Ok(text) if found.is_text => redactor.content(text).into(),
            _ => redactor.bytes(Kind::Diff, given),
        };
        let redacted = *safe != *given;
        if redacted && !found.is_text {
            // Bytes that are changed in the middle would be no picture any more.
            return Err(EngineError::RedactedContent);
        }
        if matches!(new.facts, ArtifactFacts::Screenshot { .. })
            && !["image/png", "image/jpeg", "image/gif", "image/webp"].contains(&found.name)
        {
            return Err(invalid("content", "Expected a picture for a screenshot: PNG, JPEG, GIF or WebP."));
        }
        let (blob, bytes) = (blob_id(&safe), safe.len() as u64);
        Ok((ArtifactContent { blob, bytes, media_type: found.name.to_owned(), redacted }, safe))
    }

    /// Refuses a patch that names an approval which is none of this run's.
    async fn check_approval(&self, run: RunId, facts: &ArtifactFacts) -> Result<(), EngineError> {
        let ArtifactFacts::Patch { approval_id: Some(approval), .. } = facts else { return Ok(()) };
        match self.recorder().store.approval(*approval).await? {
            Some(found) if found.run == run => Ok(()),
            _ => Err(invalid("facts.approvalId", "Expected an approval of this run.")),
        }
    }
}

/// Stands for a content.
pub fn content_digest(content: &[u8]) -> BlobId {
    blob_id(content)
}

fn invalid(path: &'static str, message: impl Into<String>) -> EngineError {
    EngineError::Invalid { path, message: message.into() }
}

fn check(new: &NewArtifact, actor: &Actor) -> Result<(), EngineError> {
    new.facts
        .check()
        .map_err(|InvalidArtifact { field, problem }| invalid(field_path(field), problem.to_string()))?;
    if !is_file_name(&new.name) {
        return Err(invalid("name", runyard_domain::Problem::NotAName.to_string()));
    }
    if new.summary.as_ref().is_some_and(|line| line.trim().is_empty() || line.len() > SUMMARY_BYTES_MAX) {
        return Err(invalid("summary", format!("Expected 1 to {SUMMARY_BYTES_MAX} bytes.")));
    }
    if new.content.is_empty() || new.content.len() > ARTIFACT_BYTES_MAX {
        return Err(invalid("content", format!("Expected 1 to {ARTIFACT_BYTES_MAX} bytes.")));
    }
    match &new.facts {
        // What people decide, an agent cannot say of its own work.
        ArtifactFacts::Screenshot { privacy_review: PrivacyReview::Passed, .. } if actor.is_agent() => {
            Err(invalid("facts.privacyReview", "Expected pending: only a person can pass a review."))
        }
        ArtifactFacts::Patch { apply_status, .. }
            if actor.is_agent() && *apply_status != ApplyStatus::Proposed =>
        {
            Err(invalid("facts.applyStatus", "Expected proposed: applying is for people."))
        }
        _ => Ok(()),
    }
}

/// The place of a field of the facts in the input.
fn field_path(field: &'static str) -> &'static str {
    match field {
        "base" => "facts.base",
        "target" => "facts.target",
        "paths" => "facts.paths",
        "summary" => "facts.summary",
        "files" => "facts.files",
        "approvalId" => "facts.approvalId",
        "path" => "facts.path",
        "viewport" => "facts.viewport",
        "route" => "facts.route",
        "theme" => "facts.theme",
        "language" => "facts.language",
        "sourceRoute" => "facts.sourceRoute",
        _ => "facts",
    }
}

/// Whether the run takes one more artifact of this size.
fn takes(run: &Run, bytes: u64) -> Result<(), EngineError> {
    let what = if run.state.is_terminal() {
        "it has ended; what comes later belongs to a new run"
    } else if run.produced.len() >= ARTIFACTS_MAX {
        "it has as many artifacts as a run may have"
    } else if run.artifact_bytes().saturating_add(bytes) > ARTIFACTS_BYTES_MAX {
        "its artifacts are as large together as they may be"
    } else {
        return Ok(());
    };
    Err(EngineError::Conflict { run: run.id, state: run.state.name(), what })
}

fn all(run: &Run) -> impl Iterator<Item = ArtifactRecord> {
    let own = run.review.as_ref().map(own).unwrap_or_default();
    own.into_iter().chain(run.produced.iter().map(ArtifactRecord::from))
}

fn one(run: &Run, id: &str) -> Result<ArtifactRecord, EngineError> {
    let found = all(run).find(|artifact| artifact.ready.artifact_id == id);
    found.ok_or_else(|| EngineError::NotFound { what: format!("artifact {id} of run {}", run.id) })
}

/// What a run changed, as artifacts; none where it changed nothing.
fn own(review: &Review) -> Vec<ArtifactRecord> {
    let diff = &review.diff;
    let facts = [
        ArtifactFacts::Diff {
            base: diff.base.clone(),
            target: diff.target.clone(),
            paths: diff.paths.clone(),
            summary: diff.summary.clone(),
        },
        ArtifactFacts::Patch {
            files: diff.paths.clone(),
            apply_status: review.status,
            approval_id: review.approval_id,
        },
    ];
    let named = [OWN_DIFF, OWN_PATCH].into_iter().zip(facts).filter(|_| !diff.paths.is_empty());
    let ready = named.map(|(id, facts)| ArtifactReady {
        artifact_id: id.to_owned(),
        kind: facts.kind().to_owned(),
        summary: diff.summary.clone(),
        facts: Some(facts),
        name: None,
        content: None,
        by: None,
    });
    ready.map(|ready| ArtifactRecord { ready, at: None }).collect()
}
