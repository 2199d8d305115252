//! An approval as answers show it: what is asked, exactly, and a title that names verb, object and scope.

use runyard_domain::ApplyTo;
use runyard_domain::gate::{Request, SideEffects};
use runyard_domain::run::DecisionScope;
use runyard_engine::{ApprovalRecord, ApprovalState};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::Value;

use crate::run_view::WorkspaceView;
use crate::who_view::WhoView;

/// So much of an object stands in a title; the whole of it is in the request.
const OBJECT_CHARS_MAX: usize = 120;
/// So many files are named in a title.
const FILES_MAX: usize = 3;

/// An approval. What is absent is left out.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalView {
    /// Its id.
    id: String,
    /// The run that waits for it.
    run_id: String,
    /// Where it stands.
    #[schemars(schema_with = "states")]
    state: &'static str,
    /// What is asked in one sentence: verb, object, place and how far a yes reaches.
    title: String,
    /// What is asked, exactly; what was redacted is a placeholder.
    #[schemars(schema_with = "request")]
    request: Value,
    /// Whether something in the request was redacted.
    redacted: bool,
    /// Stands for the content: whoever decides says what they looked at by giving it back.
    digest: String,
    /// How much is at stake: low, medium or high.
    risk: String,
    /// Why it is asked and not simply done.
    reason: String,
    /// What else there is to know, as which part only the sandbox bounds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    /// Why it can only be rejected by now: a rule denies it.
    #[serde(skip_serializing_if = "Option::is_none")]
    denied: Option<String>,
    /// Where.
    workspace: WorkspaceView,
    /// The agent that asks.
    agent_id: String,
    /// When no answer counts as a rejection.
    expires_at: String,
    /// Until when nobody wants to be reminded of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    snoozed_until: Option<String>,
    /// Who decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_by: Option<WhoView>,
    /// What they said about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    decision_reason: Option<String>,
    /// How far the decision reaches.
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<&'static str>,
    /// The answer to a question.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<Value>,
}

fn states(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": ["open", "approved", "rejected", "expired", "withdrawn"] })
}

fn request(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "description": "What is asked, by its kind: read, write, patch, shell, network, git_commit, git_push, publish, \
                        deploy, secret, action, question, apply or repeat.",
        "properties": { "kind": { "type": "string" } },
        "required": ["kind"],
    })
}

impl ApprovalView {
    /// What is recorded of an approval.
    pub fn of(record: &ApprovalRecord) -> Self {
        let asked = &record.asked;
        let resolved = record.resolved.as_ref();
        let scope = resolved.and_then(|resolved| resolved.scope);
        ApprovalView {
            id: asked.approval_id.to_string(),
            run_id: record.run.to_string(),
            state: ApprovalState::as_str(record.state()),
            title: title(&asked.request, &asked.workspace.label, scope.unwrap_or_default()),
            // A request is a JSON tree of texts already.
            request: serde_json::to_value(&asked.request).unwrap_or_default(),
            redacted: asked.redacted,
            digest: asked.digest.clone(),
            risk: asked.risk.to_string(),
            reason: asked.reason.clone(),
            notes: asked.notes.clone(),
            denied: None,
            workspace: (&asked.workspace).into(),
            agent_id: asked.actor.id.clone(),
            expires_at: asked.expires_at.to_string(),
            snoozed_until: record.snoozed_until.map(|until| until.to_string()),
            decided_by: resolved.map(|resolved| (&resolved.decided_by).into()),
            decision_reason: resolved.and_then(|resolved| resolved.reason.clone()),
            scope: scope.map(DecisionScope::as_str),
            answer: resolved.and_then(|resolved| resolved.answer.clone()),
        }
    }
}

impl ApprovalView {
    /// The same with what denies it by now.
    #[must_use]
    pub(crate) fn denied(self, denied: Option<String>) -> Self {
        ApprovalView { denied, ..self }
    }
}

/// What is asked in one sentence.
fn title(request: &Request, workspace: &str, scope: DecisionScope) -> String {
    let scope = match scope {
        DecisionScope::Once => "once",
        DecisionScope::Run => "for this run",
        DecisionScope::Session => "in this session",
        DecisionScope::Project => "in this project",
    };
    let what = match request {
        Request::Read { path } => format!("Read {} in {workspace}", quoted(path)),
        Request::Write { path, .. } => format!("Write {} in {workspace}", quoted(path)),
        Request::Patch { files, .. } => format!("Change {} in {workspace}", listed(files)),
        Request::Shell { command, cwd } if cwd == "." || cwd.is_empty() => {
            format!("Run {} in {workspace}", quoted(command))
        }
        Request::Shell { command, cwd } => {
            format!("Run {} in {} of {workspace}", quoted(command), quoted(cwd))
        }
        Request::Network { host, port: None } => format!("Connect to {} from {workspace}", quoted(host)),
        Request::Network { host, port: Some(port) } => {
            format!("Connect to {} from {workspace}", quoted(&format!("{host}:{port}")))
        }
        Request::GitCommit { message } => format!("Commit {} in {workspace}", quoted(message)),
        Request::GitPush { remote, branch } => {
            format!("Push {} to {} from {workspace}", quoted(branch), quoted(remote))
        }
        Request::Publish { target } => format!("Publish {} from {workspace}", quoted(target)),
        Request::Deploy { target } => format!("Deploy {} from {workspace}", quoted(target)),
        Request::Secret { name } => format!("Read the secret {} in {workspace}", quoted(name)),
        Request::Action { action, side_effects, .. } => {
            let effect = match side_effects {
                SideEffects::Read => "which only reads",
                SideEffects::Write => "which changes something",
                SideEffects::Destructive => "which destroys something",
            };
            format!("Call {}, {effect}, in {workspace}", quoted(action))
        }
        Request::Question(question) => return format!("Answer {} for {workspace}", quoted(&question.prompt)),
        Request::Apply { to: ApplyTo::Branch(name), undo: true, .. } => {
            format!("Take back the branch {} that was made in {workspace}", quoted(name))
        }
        Request::Apply { files, to, undo: true, .. } => {
            let commit = if *to == ApplyTo::Commit { ", with its commit," } else { "" };
            format!("Take back what was applied to {}{commit} in {workspace}", listed(files))
        }
        Request::Apply { stats, files, to, .. } => {
            let to = match to {
                ApplyTo::Files => "the files of",
                ApplyTo::Commit => "a commit in",
                ApplyTo::Branch(name) => &format!("a new branch {} in", quoted(name)),
            };
            format!("Apply the changes ({stats}) of {} to {to} {workspace}", listed(files))
        }
        Request::Repeat { step } => {
            format!("Repeat {} in {workspace}, which may have taken effect already", quoted(step))
        }
    };
    format!("{what} ({scope})")
}

fn listed(files: &[String]) -> String {
    let named: Vec<String> = files.iter().take(FILES_MAX).map(|file| quoted(file)).collect();
    match (named.as_slice(), files.len().saturating_sub(FILES_MAX)) {
        ([], _) => "files that the patch does not name".to_owned(),
        (named, 0) => named.join(", "),
        (named, more) => format!("{} and {more} more", named.join(", ")),
    }
}

/// The object as one line between backticks. What could hide part of it on a screen is shown as its escape.
fn quoted(text: &str) -> String {
    let mut shown = String::new();
    for (count, letter) in text.trim().chars().enumerate() {
        if count == OBJECT_CHARS_MAX {
            shown.push('…');
            break;
        }
        match letter {
            '\n' => shown.push('⏎'),
            hidden if hidden.is_control() || is_direction(hidden) => shown.extend(hidden.escape_unicode()),
            plain => shown.push(plain),
        }
    }
    format!("`{shown}`")
}

/// Marks that turn the direction of writing, or that do not show at all.
const fn is_direction(letter: char) -> bool {
    matches!(letter, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use runyard_domain::gate::Question;
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(request: Request, expected: &str) {
        assert_eq!(title(&request, "demo", DecisionScope::Once), expected);
    }

    fn shell(command: &str, cwd: &str) -> Request {
        Request::Shell { command: command.to_owned(), cwd: cwd.to_owned() }
    }

    #[test]
    fn c12_a_title_names_verb_object_and_scope() {
        let text = str::to_owned;
        check(shell("rm -rf build", "."), "Run `rm -rf build` in demo (once)");
        check(shell("make", "sub/dir"), "Run `make` in `sub/dir` of demo (once)");
        check(Request::Read { path: text("/etc/hosts") }, "Read `/etc/hosts` in demo (once)");
        check(Request::Write { path: text("a.txt"), content: None }, "Write `a.txt` in demo (once)");
        check(
            Request::Patch { files: ["a", "b", "c", "d", "e"].map(text).to_vec(), patch: String::new() },
            "Change `a`, `b`, `c` and 2 more in demo (once)",
        );
        check(
            Request::Patch { files: Vec::new(), patch: String::new() },
            "Change files that the patch does not name in demo (once)",
        );
        check(
            Request::Network { host: text("example.com"), port: Some(443) },
            "Connect to `example.com:443` from demo (once)",
        );
        check(Request::Network { host: text("::1"), port: None }, "Connect to `::1` from demo (once)");
        check(Request::GitCommit { message: text("Fix it") }, "Commit `Fix it` in demo (once)");
        check(
            Request::GitPush { remote: text("origin"), branch: text("main") },
            "Push `main` to `origin` from demo (once)",
        );
        check(Request::Publish { target: text("npm") }, "Publish `npm` from demo (once)");
        check(Request::Deploy { target: text("prod") }, "Deploy `prod` from demo (once)");
        check(Request::Secret { name: text("KEY") }, "Read the secret `KEY` in demo (once)");
        check(
            Request::Action {
                action: text("task_delete"),
                side_effects: SideEffects::Destructive,
                input: json!({}),
            },
            "Call `task_delete`, which destroys something, in demo (once)",
        );
        check(
            Request::Question(Question { prompt: text("Which branch?"), answer_schema: json!({}) }),
            "Answer `Which branch?` for demo",
        );
        check(
            Request::Repeat { step: text("npm publish") },
            "Repeat `npm publish` in demo, which may have taken effect already (once)",
        );
        assert_eq!(title(&shell("ls", "."), "demo", DecisionScope::Run), "Run `ls` in demo (for this run)");
    }

    #[test]
    fn c12_nothing_in_a_title_hides_a_part_of_it() {
        check(shell("ls\nrm -rf /", "."), "Run `ls⏎rm -rf /` in demo (once)");
        check(shell("ls\u{1b}[2K\u{202e}x", "."), "Run `ls\\u{1b}[2K\\u{202e}x` in demo (once)");
        let long = "x".repeat(OBJECT_CHARS_MAX + 1);
        check(shell(&long, "."), &format!("Run `{}…` in demo (once)", "x".repeat(OBJECT_CHARS_MAX)));
    }
}
