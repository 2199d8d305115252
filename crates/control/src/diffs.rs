//! What a run changed, for people: the files first, then each by itself.

use runyard_actions::{Action, ActionError, Context, DefinitionError, action};
use runyard_domain::run::Review;
use runyard_domain::{ApplyTo, SelectedFile};
use runyard_engine::{Carry, Engine};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::approvals::SelectedSchema;
use crate::failed::failed;
use crate::hunks::{HunkView, hunks};
use crate::page::{LIMIT_MAX, limit_default};
use crate::run_view::RunView;
use crate::scope::run_for;

pub(crate) fn actions() -> Vec<Result<Action, DefinitionError>> {
    vec![run_diff(), run_diff_file(), run_apply(), run_undo()]
}

#[derive(Deserialize, JsonSchema)]
struct Diff {
    /// The run's id.
    id: String,
    /// Only files after so many: the `next` of the page before.
    #[serde(default)]
    after: u32,
    /// How many at most.
    #[serde(default = "limit_default")]
    #[schemars(range(min = 1, max = LIMIT_MAX))]
    limit: u32,
}

#[derive(Serialize, JsonSchema)]
struct DiffAnswer {
    /// All of it, in short.
    diff: DiffView,
    /// The files, by path.
    files: Vec<FileView>,
    /// Where the next page begins; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u32>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DiffView {
    /// What it starts from.
    base: String,
    /// What it leads to.
    target: String,
    /// Stands for all of it.
    digest: String,
    /// What it is, in a line.
    summary: String,
    /// How many files changed.
    files: u64,
    /// Lines that are new.
    insertions: u64,
    /// Lines that are gone.
    deletions: u64,
    /// How many files count only where they are chosen by themselves.
    protected: u64,
    /// How many things in the checkout can be no change.
    problems: u64,
    /// What became of it: proposed, approved, applying, applied, rejected, failed or undone.
    apply_status: Value,
    /// The approval that asks for applying it.
    #[serde(skip_serializing_if = "Option::is_none")]
    approval_id: Option<String>,
    /// The commit that holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
}

impl DiffView {
    fn of(review: &Review) -> Result<Self, ActionError> {
        let (diff, stats) = (&review.diff, review.diff.stats);
        Ok(DiffView {
            base: diff.base.clone(),
            target: diff.target.clone(),
            digest: diff.digest.clone(),
            summary: diff.summary.clone(),
            files: stats.files,
            insertions: stats.insertions,
            deletions: stats.deletions,
            protected: stats.protected,
            problems: stats.problems,
            apply_status: serde_json::to_value(review.status)?,
            approval_id: review.approval_id.map(|id| id.to_string()),
            commit: review.commit.clone(),
        })
    }
}

/// A file that changed.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct FileView {
    /// Names it in the diff.
    id: String,
    /// Where it is, relative to the workspace.
    path: String,
    /// Where it came from, where it was renamed or copied.
    #[serde(skip_serializing_if = "Option::is_none")]
    old_path: Option<String>,
    /// What happened: added, deleted, modified, renamed, copied or retyped.
    change: String,
    /// What it was, as git writes modes.
    #[serde(skip_serializing_if = "Option::is_none")]
    old_mode: Option<String>,
    /// What it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    new_mode: Option<String>,
    /// How its content is shown: text, `binary`, `too_large`, or same where it did not change.
    content: String,
    /// Lines that are new.
    insertions: u64,
    /// Lines that are gone.
    deletions: u64,
    /// How many hunks there are to choose from: 1, 2, 3, …
    hunks: u32,
    /// Its size before.
    old_bytes: u64,
    /// Its size after.
    new_bytes: u64,
    /// Whether it counts only where it is chosen by itself, since it configures who may do what.
    protected: bool,
}

impl From<runyard_domain::DiffFile> for FileView {
    fn from(file: runyard_domain::DiffFile) -> Self {
        FileView {
            id: file.id,
            path: file.path,
            old_path: file.old_path,
            change: file.change,
            old_mode: file.old_mode,
            new_mode: file.new_mode,
            content: file.content,
            insertions: file.insertions,
            deletions: file.deletions,
            hunks: file.hunks,
            old_bytes: file.bytes.0,
            new_bytes: file.bytes.1,
            protected: file.protected,
        }
    }
}

/// Show what a run changed: how much, and which files.
#[action(
    crate = "runyard_actions",
    idempotency = "idempotent",
    permissions = ["runs.read"],
    http = "GET /api/v1/runs/{id}/diff",
    resource = "runyard://runs/{id}/diff"
)]
async fn run_diff(input: Diff, ctx: &Context) -> Result<DiffAnswer, ActionError> {
    let engine = ctx.service::<Engine>()?;
    let run = run_for(&engine, ctx.actor(), &input.id, ctx.action()).await?.run.id;
    let page = engine.diff(run, input.after as usize, input.limit as usize).await.map_err(failed)?;
    let next = page.next.and_then(|next| u32::try_from(next).ok());
    let files = page.files.into_iter().map(FileView::from).collect();
    Ok(DiffAnswer { diff: DiffView::of(&page.review)?, files, next })
}

#[derive(Deserialize, JsonSchema)]
struct DiffFileInput {
    /// The run's id.
    id: String,
    /// The file's id in the diff.
    #[schemars(length(min = 1, max = 64))]
    file: String,
}

#[derive(Serialize, JsonSchema)]
struct DiffFileAnswer {
    /// The file.
    file: FileView,
    /// What changed in it, piece by piece, to choose from.
    hunks: Vec<HunkView>,
    /// The same as a unified diff.
    patch: String,
    /// How many bytes of it are left out at its end.
    omitted: u64,
}

/// Show what a run changed in one file, hunk by hunk.
#[action(
    crate = "runyard_actions",
    idempotency = "idempotent",
    permissions = ["runs.read"],
    http = "GET /api/v1/runs/{id}/diff/{file}"
)]
async fn run_diff_file(input: DiffFileInput, ctx: &Context) -> Result<DiffFileAnswer, ActionError> {
    let engine = ctx.service::<Engine>()?;
    let run = run_for(&engine, ctx.actor(), &input.id, ctx.action()).await?.run.id;
    let (file, text) = engine.diff_file(run, &input.file).await.map_err(failed)?;
    let (patch, omitted) = text.map(|text| (text.patch, text.omitted)).unwrap_or_default();
    Ok(DiffFileAnswer { file: file.into(), hunks: hunks(&patch), patch, omitted })
}

#[derive(Deserialize, JsonSchema)]
struct Apply {
    /// The id of the run whose changes are applied. It has ended.
    id: String,
    /// The digest of what was looked at, as the diff shows it.
    #[schemars(length(min = 1, max = 256))]
    digest: String,
    /// Which part of the changes: files by their id in the diff, each whole or by hunk. Without it all of them, but for the
    /// protected ones.
    #[schemars(with = "Option<Vec<SelectedSchema>>")]
    selection: Option<Vec<SelectedFile>>,
    /// The name of a new branch that the changes are committed to; the files of the workspace then stay as they are.
    #[schemars(length(min = 1, max = 255))]
    branch: Option<String>,
    /// Whether the changes are committed too, on the branch that is checked out.
    #[serde(default)]
    commit: bool,
}

#[derive(Serialize, JsonSchema)]
struct CarryAnswer {
    /// The new run. It asks before it changes anything: its approval is to be answered.
    run: RunView,
}

/// Apply what a run changed, after its end: a new run, which asks before it does.
#[action(
    crate = "runyard_actions",
    side_effects = "write",
    idempotency = "conditional",
    owns_idempotency_key,
    people_only,
    permissions = ["runs.write"],
    http = "POST /api/v1/runs/{id}/apply"
)]
async fn run_apply(input: Apply, ctx: &Context) -> Result<CarryAnswer, ActionError> {
    let to = match (input.branch, input.commit) {
        (Some(name), _) => ApplyTo::Branch(name),
        (None, true) => ApplyTo::Commit,
        (None, false) => ApplyTo::Files,
    };
    carry(ctx, &input.id, Carry::Apply { digest: input.digest, selection: input.selection, to }).await
}

#[derive(Deserialize, JsonSchema)]
struct Undo {
    /// The id of the run that applied changes.
    id: String,
}

/// Take back what a run applied: a new run, which asks before it does.
#[action(
    crate = "runyard_actions",
    side_effects = "write",
    idempotency = "conditional",
    owns_idempotency_key,
    people_only,
    permissions = ["runs.write"],
    http = "POST /api/v1/runs/{id}/undo"
)]
async fn run_undo(input: Undo, ctx: &Context) -> Result<CarryAnswer, ActionError> {
    carry(ctx, &input.id, Carry::Undo).await
}

async fn carry(ctx: &Context, id: &str, carry: Carry) -> Result<CarryAnswer, ActionError> {
    let engine = ctx.service::<Engine>()?;
    let of = run_for(&engine, ctx.actor(), id, ctx.action()).await?.run.id;
    let made = engine.carry(of, carry, ctx.idempotency_key(), ctx.actor()).await.map_err(failed)?;
    Ok(CarryAnswer { run: RunView::of(&made.standing) })
}
