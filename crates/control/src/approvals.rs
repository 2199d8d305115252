//! Approvals: what waits for people, and their answers.

use runyard_actions::{Action, ActionError, Context, DefinitionError, Issue, PathSegment, Schema, action};
use runyard_domain::gate::Request;
use runyard_domain::run::DecisionScope;
use runyard_domain::{ApprovalId, Code, Comment, SelectedFile};
use runyard_engine::{Decision, Engine, EngineError, Resolve, SNOOZE_MS_MAX};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::approval_view::ApprovalView;
use crate::failed::{failed, not_found};
use crate::page::{LIMIT_MAX, limit_default, page};
use crate::refused::record_refusal;
use crate::scope::{bound_to, check, id};

pub(crate) fn actions() -> Vec<Result<Action, DefinitionError>> {
    vec![approval_list(), approval_show(), approval_resolve(), approval_snooze()]
}

/// Which approvals are listed.
#[derive(Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Listed {
    /// Those that nobody has answered.
    #[default]
    Open,
}

#[derive(Deserialize, JsonSchema)]
struct List {
    /// Which: those that are open. One that is over stands in its run's events.
    #[serde(default)]
    #[expect(dead_code, reason = "there is only one kind of list, and a caller may name it")]
    state: Listed,
    /// Only of this run.
    run: Option<String>,
    /// Whether also what was snoozed is listed.
    #[serde(default)]
    snoozed: bool,
    /// Only those after this one: the `next` of the page before.
    after: Option<String>,
    /// How many at most.
    #[serde(default = "limit_default")]
    #[schemars(range(min = 1, max = LIMIT_MAX))]
    limit: u32,
}

#[derive(Serialize, JsonSchema)]
struct ApprovalsAnswer {
    /// The approvals, oldest first.
    approvals: Vec<ApprovalView>,
    /// Where the next page begins; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// List what waits for a person's decision, oldest first, of one run or of all.
#[action(
    crate = "runyard_actions",
    idempotency = "idempotent",
    permissions = ["runs.read"],
    http = "GET /api/v1/approvals",
    resource = "runyard://approvals",
    example = r#"{"state": "open"}"#
)]
async fn approval_list(input: List, ctx: &Context) -> Result<ApprovalsAnswer, ActionError> {
    let engine = ctx.service::<Engine>()?;
    let run = match input.run {
        Some(text) => {
            let run = id("run", &text)?;
            check(&engine, ctx.actor(), run, ctx.action()).await?;
            Some(run)
        }
        None => bound_to(ctx.actor()),
    };
    let after = input.after.map(|text| id("after", &text)).transpose()?;
    let open = engine.open_approvals(run, after, input.limit + 1, input.snoozed).await.map_err(failed)?;
    let (approvals, more) = page(open.iter().map(ApprovalView::of), input.limit);
    let last = approvals.len().checked_sub(1).and_then(|last| open.get(last));
    let next = last.filter(|_| more).map(|last| last.asked.approval_id.to_string());
    Ok(ApprovalsAnswer { approvals, next })
}

#[derive(Deserialize, JsonSchema)]
struct One {
    /// The approval's id.
    id: String,
}

#[derive(Serialize, JsonSchema)]
struct ApprovalAnswer {
    /// The approval.
    approval: ApprovalView,
}

/// Show an approval: exactly what is asked, why, and who decided.
#[action(
    crate = "runyard_actions",
    idempotency = "idempotent",
    permissions = ["runs.read"],
    http = "GET /api/v1/approvals/{id}",
    resource = "runyard://approvals/{id}"
)]
async fn approval_show(input: One, ctx: &Context) -> Result<ApprovalAnswer, ActionError> {
    let engine = ctx.service::<Engine>()?;
    let asked: ApprovalId = id("id", &input.id)?;
    let record = engine.approval(asked).await.map_err(failed)?;
    if bound_to(ctx.actor()).is_some_and(|own| own != record.run) {
        record_refusal(&engine, ctx.actor(), ctx.action(), Some(record.run)).await;
        return Err(not_found(&format!("approval {asked}")));
    }
    Ok(ApprovalAnswer { approval: ApprovalView::of(&record).denied(engine.denied_by_now(&record)) })
}

#[derive(Serialize, JsonSchema)]
struct ResolvedAnswer {
    /// The approval.
    approval: ApprovalView,
    /// Whether something of what was said with the decision was redacted: the agent is told it as it is stored.
    redacted: bool,
}

/// A person's decision.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Decided {
    /// It may be done.
    Approve,
    /// It may not be done.
    Reject,
}

/// How far a decision reaches.
#[derive(Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Reach {
    /// To the one request.
    #[default]
    Once,
    /// To the same request, as often as it comes in the run.
    Run,
    /// As for the run; and a rule allows this command, path, host or target in the runs of its session.
    Session,
    /// As for the run; and a rule allows this command, path, host or target in the workspace, until it is removed.
    Project,
}

#[derive(Deserialize, JsonSchema)]
struct ResolveInput {
    /// The approval's id.
    id: String,
    /// Yes or no.
    decision: Decided,
    /// The digest of what was looked at, as the approval shows it.
    #[schemars(length(min = 1, max = 256))]
    digest: String,
    /// Why.
    #[schemars(length(max = 2000))]
    reason: Option<String>,
    /// How far the decision reaches.
    #[serde(default)]
    scope: Reach,
    /// The answer to a question, by its schema.
    answer: Option<Value>,
    /// Which part of the changes is approved: files by their id in the diff, each whole or by hunk. Without it all of them,
    /// but for the protected ones.
    #[schemars(with = "Option<Vec<SelectedSchema>>")]
    selection: Option<Vec<SelectedFile>>,
    /// What is said on lines of the changes; the agent hears it with `revise`.
    #[serde(default)]
    #[schemars(with = "Vec<CommentSchema>")]
    comments: Vec<Comment>,
    /// With a rejection: whether the agent is to try again, with the reason and the comments.
    #[serde(default)]
    revise: bool,
}

/// A file that is chosen.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "it only describes what the domain's type takes")]
pub(crate) struct SelectedSchema {
    /// The file's id in the diff.
    #[schemars(length(min = 1, max = 64))]
    file: String,
    /// The hunks: 1, 2, 3, …; without them the whole file.
    hunks: Option<Vec<u32>>,
}

/// A word on a line.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "it only describes what the domain's type takes")]
struct CommentSchema {
    /// The file's id in the diff.
    #[schemars(length(min = 1, max = 64))]
    file: String,
    /// The line in the new text.
    line: Option<u64>,
    /// What is said.
    #[schemars(length(min = 1, max = 2000))]
    text: String,
}

/// Decide what a run asks. The first answer counts; the same again is fine.
#[action(
    crate = "runyard_actions",
    side_effects = "write",
    idempotency = "idempotent",
    people_only,
    permissions = ["approvals.resolve"],
    http = "POST /api/v1/approvals/{id}/resolve"
)]
async fn approval_resolve(input: ResolveInput, ctx: &Context) -> Result<ResolvedAnswer, ActionError> {
    let lasts = matches!(input.scope, Reach::Session | Reach::Project);
    if lasts && !ctx.actor().grants.include("policy.write") {
        let message =
            "A yes beyond its run is a rule, which needs the permission policy.write: say once or run.";
        return Err(ActionError::new(Code::AuthorizationError, message));
    }
    let answer = Resolve {
        decision: match input.decision {
            Decided::Approve => Decision::Approve,
            Decided::Reject => Decision::Reject,
        },
        digest: input.digest,
        reason: input.reason,
        scope: match input.scope {
            Reach::Once => DecisionScope::Once,
            Reach::Run => DecisionScope::Run,
            Reach::Session => DecisionScope::Session,
            Reach::Project => DecisionScope::Project,
        },
        answer: input.answer,
        selection: input.selection,
        comments: input.comments,
        revise: input.revise,
    };
    let engine = ctx.service::<Engine>()?;
    let asked: ApprovalId = id("id", &input.id)?;
    let comments = by_path(&engine, asked, answer.comments).await?;
    let answer = Resolve { comments, ..answer };
    let (given, redacted) = (answer.answer.clone(), engine.is_redacted(&answer));
    match engine.resolve(asked, answer, ctx.actor()).await {
        Ok(record) => Ok(ResolvedAnswer { approval: ApprovalView::of(&record), redacted }),
        Err(error @ EngineError::Invalid { path: "answer", .. }) => {
            match misfits(&engine, asked, given).await {
                issues if issues.is_empty() => Err(failed(error)),
                issues => Err(ActionError::invalid_input(issues)),
            }
        }
        Err(error) => Err(failed(error)),
    }
}

/// Each place at which an answer does not fit its question, so that a form says it at the field.
async fn misfits(engine: &Engine, asked: ApprovalId, given: Option<Value>) -> Vec<Issue> {
    let Ok(record) = engine.approval(asked).await else { return Vec::new() };
    let (Request::Question(question), Some(given)) = (record.asked.request, given) else { return Vec::new() };
    if !question.is_bounded() {
        return Vec::new();
    }
    let Ok(schema) = Schema::new(question.answer_schema) else { return Vec::new() };
    let mut issues = schema.issues(&given).unwrap_or_default();
    for issue in &mut issues {
        issue.path.insert(0, PathSegment::Key("answer".to_owned()));
    }
    issues
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SnoozeInput {
    /// The approval's id.
    id: String,
    /// For how long, in milliseconds.
    #[schemars(range(min = 1, max = SNOOZE_MS_MAX))]
    for_ms: u64,
    /// Why.
    #[schemars(length(max = 2000))]
    reason: Option<String>,
}

/// Leave an approval for later: it stays open, is not listed for a while, and expires later by as much. It is no rejection.
#[action(
    crate = "runyard_actions",
    side_effects = "write",
    idempotency = "non_idempotent",
    people_only,
    permissions = ["approvals.resolve"],
    http = "POST /api/v1/approvals/{id}/snooze"
)]
async fn approval_snooze(input: SnoozeInput, ctx: &Context) -> Result<ApprovalAnswer, ActionError> {
    let engine = ctx.service::<Engine>()?;
    let asked: ApprovalId = id("id", &input.id)?;
    let record = engine.snooze(asked, input.for_ms, input.reason, ctx.actor()).await.map_err(failed)?;
    Ok(ApprovalAnswer { approval: ApprovalView::of(&record) })
}

/// The comments with the paths of their files: an agent knows nothing of the ids in a diff.
async fn by_path(
    engine: &Engine,
    asked: ApprovalId,
    mut comments: Vec<Comment>,
) -> Result<Vec<Comment>, ActionError> {
    if !comments.is_empty() {
        let run = engine.approval(asked).await.map_err(failed)?.run;
        for comment in &mut comments {
            comment.file = engine.diff_file(run, &comment.file).await.map_err(failed)?.0.path;
        }
    }
    Ok(comments)
}
