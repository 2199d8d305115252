//! Artifacts: what runs produced to be looked at. Add one, list them, look at one.
//!
//! Adding one to its own run is all that an agent may do here without asking: it is a note in that run's record, accepts nothing
//! and changes no file.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use runyard_actions::{Action, ActionError, Context, DefinitionError, Issue, action};
use runyard_domain::run::ArtifactReady;
use runyard_domain::{Actor, ArtifactFacts, Code, RunId};
use runyard_engine::{
    ArtifactRecord, Engine, EngineError, NewArtifact, content_digest, image_size, permissions,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::artifact_facts::FactsSchema;
use crate::failed::{failed, not_found};
use crate::scope::run_for;
use crate::who_view::WhoView;

/// How much of a text is shown with an artifact.
const PREVIEW_BYTES_MAX: usize = 16 * 1024;
/// The action that adds one.
const ADD: &str = "artifact_add";

pub(crate) fn actions() -> Vec<Result<Action, DefinitionError>> {
    vec![artifact_add(), artifact_list(), artifact_get()]
}

/// What the gate judges of a call that adds an artifact. It does nothing to the world but tell the run's record something, so it is
/// judged as a call that only looks; and what it holds stands there by its digest, since the artifact itself is kept elsewhere.
pub(crate) fn as_note(action: &str, input: &Value) -> Option<Value> {
    if action != ADD {
        return None;
    }
    let mut shown = input.clone();
    for field in ["text", "base64"] {
        if let Some(Value::String(content)) = input.get(field) {
            let digest = content_digest(content.as_bytes());
            shown[field] = json!({ "bytes": content.len(), "digest": digest });
        }
    }
    Some(shown)
}

#[derive(Deserialize, JsonSchema)]
struct Add {
    /// The run's id. It has not ended.
    id: String,
    /// The name of the file that it is, or would be; no path.
    #[schemars(length(min = 1, max = 255))]
    name: String,
    /// What it is, in a line.
    #[schemars(length(min = 1, max = 512))]
    summary: Option<String>,
    /// Its kind, with what that must say.
    #[schemars(with = "FactsSchema")]
    facts: ArtifactFacts,
    /// What it holds, as text. Either this or base64.
    text: Option<String>,
    /// What it holds, in base64. Either this or text.
    base64: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct AddAnswer {
    /// The artifact.
    artifact: ArtifactView,
}

/// Add something that a run produced to be looked at: a file, a screenshot, built documents.
#[action(
    crate = "runyard_actions",
    side_effects = "write",
    idempotency = "conditional",
    owns_idempotency_key,
    permissions = ["artifacts.write"],
    http = "POST /api/v1/runs/{id}/artifacts",
    example = r##"{"id": "run_018bcfe5680077078707070707070707", "name": "report.md", "facts": {"kind": "file"}, "text": "# All is well"}"##
)]
async fn artifact_add(input: Add, ctx: &Context) -> Result<AddAnswer, ActionError> {
    let engine = ctx.service::<Engine>()?;
    let run = run_for(&engine, ctx.actor(), &input.id, ctx.action()).await?.run.id;
    let (content, field) = content(input.text, input.base64)?;
    let new = NewArtifact {
        name: input.name,
        summary: input.summary,
        facts: input.facts,
        content,
        key: ctx.idempotency_key().map(str::to_owned),
    };
    let added = engine.add_artifact(run, new, ctx.actor()).await.map_err(|error| match error {
        EngineError::Invalid { path: "content", message } => {
            failed(EngineError::Invalid { path: field, message })
        }
        other => failed(other),
    })?;
    Ok(AddAnswer { artifact: ArtifactView::of(run, &added)? })
}

/// What was given, and the field that it was given in.
fn content(text: Option<String>, base64: Option<String>) -> Result<(Vec<u8>, &'static str), ActionError> {
    let issue = |field, message: &str| Err(ActionError::invalid_input(vec![Issue::at(field, message)]));
    match (text, base64) {
        (Some(text), None) => Ok((text.into_bytes(), "text")),
        (None, Some(base64)) => match STANDARD.decode(base64) {
            Ok(bytes) => Ok((bytes, "base64")),
            Err(_) => issue("base64", "Expected base64 with padding."),
        },
        _ => issue("text", "Expected the content once: as text, or as base64."),
    }
}

/// An artifact.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ArtifactView {
    /// Its id in the run. The run's own changes are `diff` and `patch`.
    id: String,
    /// The run.
    run_id: String,
    /// What kind of thing it is: diff, patch, file_preview, screenshot, generated_docs or file.
    kind: String,
    /// What it is, in a line.
    summary: String,
    /// What its kind says about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    facts: Option<Value>,
    /// The name of the file that it is, or would be.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// What its bytes were found to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    media_type: Option<String>,
    /// How long it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    /// The SHA-256 of what is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    /// Whether redaction changed what was given.
    redacted: bool,
    /// Whether its content may be private, and so is for people and for the agent that gave it only.
    people_only: bool,
    /// Where its content is read.
    content_path: String,
    /// Who gave it; absent for the run's own changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<WhoView>,
    /// When it was recorded; absent for the run's own changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    recorded_at: Option<String>,
}

impl ArtifactView {
    fn of(run: RunId, artifact: &ArtifactRecord) -> Result<Self, ActionError> {
        let ArtifactReady { artifact_id: id, kind, summary, facts, name, content, by } =
            artifact.ready.clone();
        let content_path = match content {
            Some(_) => format!("/api/v1/runs/{run}/artifacts/{id}/content"),
            None => format!("/api/v1/runs/{run}/diff"),
        };
        Ok(ArtifactView {
            id,
            run_id: run.to_string(),
            kind,
            summary,
            people_only: facts.as_ref().is_some_and(ArtifactFacts::needs_review),
            facts: facts.map(serde_json::to_value).transpose()?,
            name,
            media_type: content.as_ref().map(|content| content.media_type.clone()),
            bytes: content.as_ref().map(|content| content.bytes),
            digest: content.as_ref().map(|content| content.blob.to_string()),
            redacted: content.as_ref().is_some_and(|content| content.redacted),
            content_path,
            by: by.as_ref().map(WhoView::from),
            recorded_at: artifact.at.map(|at| at.to_string()),
        })
    }
}

#[derive(Deserialize, JsonSchema)]
struct List {
    /// The run's id.
    id: String,
}

#[derive(Serialize, JsonSchema)]
struct ListAnswer {
    /// The run's own diff and patch, if it changed something, and what was added to it, oldest first.
    artifacts: Vec<ArtifactView>,
}

/// List what a run produced to be looked at: its own diff and patch, and the artifacts that were added.
#[action(
    crate = "runyard_actions",
    idempotency = "idempotent",
    permissions = ["runs.read"],
    http = "GET /api/v1/runs/{id}/artifacts"
)]
async fn artifact_list(input: List, ctx: &Context) -> Result<ListAnswer, ActionError> {
    let engine = ctx.service::<Engine>()?;
    let run = run_for(&engine, ctx.actor(), &input.id, ctx.action()).await?.run.id;
    let found = engine.artifacts(run).await.map_err(failed)?;
    let artifacts = found.iter().map(|artifact| ArtifactView::of(run, artifact)).collect::<Result<_, _>>()?;
    Ok(ListAnswer { artifacts })
}

#[derive(Deserialize, JsonSchema)]
struct Get {
    /// The run's id.
    id: String,
    /// The artifact's id in the run.
    #[schemars(length(min = 1, max = 64))]
    artifact: String,
    /// Whether all of its content is given too, in base64.
    #[serde(default)]
    content: bool,
}

#[derive(Serialize, JsonSchema)]
struct GetAnswer {
    /// The artifact.
    artifact: ArtifactView,
    /// What can be shown of it at once; absent where nothing can.
    #[serde(skip_serializing_if = "Option::is_none")]
    preview: Option<PreviewView>,
    /// All of its content, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
}

/// What can be shown of an artifact at once.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PreviewView {
    /// The beginning of a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// Whether there is more of the text than is shown.
    truncated: bool,
    /// The width of a picture.
    #[serde(skip_serializing_if = "Option::is_none")]
    width: Option<u32>,
    /// The height of a picture.
    #[serde(skip_serializing_if = "Option::is_none")]
    height: Option<u32>,
}

impl PreviewView {
    fn of(content: &[u8]) -> Option<Self> {
        if let Some((width, height)) = image_size(content) {
            return Some(PreviewView {
                text: None,
                truncated: false,
                width: Some(width),
                height: Some(height),
            });
        }
        let text = std::str::from_utf8(content).ok().filter(|text| !text.contains('\0'))?;
        let end = text.floor_char_boundary(PREVIEW_BYTES_MAX);
        let (text, truncated) = (Some(text[..end].to_owned()), end < text.len());
        Some(PreviewView { text, truncated, width: None, height: None })
    }
}

/// Show an artifact: what it is, and the beginning of it if it is text.
#[action(
    crate = "runyard_actions",
    idempotency = "idempotent",
    permissions = ["runs.read"],
    http = "GET /api/v1/runs/{id}/artifacts/{artifact}"
)]
async fn artifact_get(input: Get, ctx: &Context) -> Result<GetAnswer, ActionError> {
    let engine = ctx.service::<Engine>()?;
    let run = run_for(&engine, ctx.actor(), &input.id, ctx.action()).await?.run.id;
    let found = engine.artifact(run, &input.artifact).await.map_err(failed)?;
    let artifact = ArtifactView::of(run, &found)?;
    if found.ready.content.is_none() && input.content {
        return Err(by_itself(run, &input.artifact));
    }
    if found.ready.content.is_none() || (!input.content && !found.ready.is_for(ctx.actor())) {
        return Ok(GetAnswer { artifact, preview: None, base64: None });
    }
    check_private(&found.ready, ctx.actor())?;
    let content = read(&engine, run, &input.artifact).await?;
    let base64 = input.content.then(|| STANDARD.encode(&content));
    Ok(GetAnswer { artifact, preview: PreviewView::of(&content), base64 })
}

/// An artifact of a run with all of its content, as far as the caller may see it: for the route that downloads it.
pub async fn artifact_content(
    engine: &Engine,
    actor: &Actor,
    run: &str,
    artifact: &str,
) -> Result<(ArtifactReady, Vec<u8>), ActionError> {
    const WHAT: &str = "artifact_content";
    if !actor.grants.include(permissions::RUNS_READ) {
        let message = format!("This needs the permission \"{}\".", permissions::RUNS_READ);
        return Err(ActionError::new(Code::AuthorizationError, message));
    }
    let run = run_for(engine, actor, run, WHAT).await?.run.id;
    let found = engine.artifact(run, artifact).await.map_err(failed)?;
    if found.ready.content.is_none() {
        return Err(by_itself(run, artifact));
    }
    check_private(&found.ready, actor)?;
    let content = read(engine, run, artifact).await?;
    Ok((found.ready, content))
}

async fn read(engine: &Engine, run: RunId, artifact: &str) -> Result<Vec<u8>, ActionError> {
    engine.artifact_content(run, artifact, 0..u64::MAX).await.map_err(failed)
}

fn by_itself(run: RunId, artifact: &str) -> ActionError {
    not_found(&format!("content of {artifact} to download: it is read at /api/v1/runs/{run}/diff"))
}

/// Refuses whoever may not see what may be private.
fn check_private(artifact: &ArtifactReady, actor: &Actor) -> Result<(), ActionError> {
    if artifact.is_for(actor) {
        return Ok(());
    }
    let message =
        "Nobody has looked yet for what is private in this screenshot, so it is shown to people only.";
    Err(ActionError::new(Code::AuthorizationError, message))
}
