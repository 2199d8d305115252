//! What codex tells, as signals: items of a turn, messages, usage, errors. Pure, and tested on recorded lines.
//!
//! A step is said to begin when it may begin: codex starts an item before it asks for it, so the call of an item is held back
//! until it is approved, or until something shows that it runs without having been asked for, which is then said. `item/completed`
//! counts, whatever pieces came before. Turns and requests are not looked at here.

use std::collections::BTreeMap;

use runyard_backend::{BackendError, Signal};
use runyard_domain::gate::Request;
use runyard_domain::run::{FailureKind, ToolOutcome};
use serde_json::{Value, json};

use super::failure::TurnError;
use super::place::Workspace;
use super::tokens::Before;
use super::wire::{
    CommandAction, DeltaNotice, ErrorNotice, Execution, FileChange, Item, ItemNotice, Status, TypedNotice,
    UsageNotice, read,
};
use super::{bounds, patch, wire};
use crate::process::clip;

/// The most items that are open at a time.
const OPEN_ITEMS_MAX: usize = 256;
/// How much of a step stands in its summary, in bytes.
const SUMMARY_BYTES_MAX: usize = 160;

/// What codex has begun and not ended.
pub(super) struct Translation {
    workspace: Workspace,
    open: BTreeMap<String, Open>,
    /// Results of steps that codex may forget if it dies now. See [`release`](Self::release).
    results: Vec<Signal>,
    /// The last error after which codex tried again.
    pub(super) tried_again: Option<TurnError>,
    /// What the thread had used before this run.
    pub(super) before: Before,
}

struct Open {
    step: Step,
    asked: bool,
    /// Whether its call was said.
    begun: bool,
    /// How many bytes of its output came in pieces.
    streamed: usize,
}

impl Open {
    fn new(step: Step) -> Self {
        Open { step, asked: false, begun: false, streamed: 0 }
    }
}

enum Step {
    Command { command: String, cwd: String },
    Change(FileChange),
    Tool { tool: String, arguments: Value },
}

impl Translation {
    /// `before` is what the thread had used before this run.
    pub(super) fn new(workspace: Workspace, before: Before) -> Self {
        Translation { workspace, open: BTreeMap::new(), results: Vec::new(), tried_again: None, before }
    }

    /// Takes in what the thread used before the turn that runs.
    pub(super) fn used_before(&mut self, params: &Value) -> Result<(), BackendError> {
        let UsageNotice { token_usage } = read("thread/tokenUsage/updated", params)?;
        self.before.begins_at(token_usage.total);
        Ok(())
    }

    /// What a notification says.
    pub(super) fn notification(&mut self, method: &str, params: &Value) -> Result<Vec<Signal>, BackendError> {
        match method {
            "item/started" => {
                let ItemNotice { item } = read(method, params)?;
                self.started(item)
            }
            "item/completed" => {
                let ItemNotice { item } = read(method, params)?;
                Ok(self.completed(item))
            }
            "item/agentMessage/delta" => {
                let DeltaNotice { item_id: item, delta: text } = read(method, params)?;
                Ok(bounds::pieces(&text).map(|text| Signal::Delta { item: item.clone(), text }).collect())
            }
            "item/commandExecution/outputDelta" => {
                let DeltaNotice { item_id, delta } = read(method, params)?;
                Ok(self.output(&item_id, &delta))
            }
            "item/commandExecution/terminalInteraction" => {
                let TypedNotice { stdin } = read(method, params)?;
                Ok(typed(&stdin))
            }
            "thread/tokenUsage/updated" => {
                let UsageNotice { token_usage: wire::TokenUsage { total, last } } = read(method, params)?;
                let (phase, usage) = ("working".to_owned(), Some(self.before.own(total, last)));
                let used = Signal::Status { phase, model: None, version: None, thread: None, usage };
                Ok(self.release().chain([used]).collect())
            }
            "error" => {
                let ErrorNotice { error, will_retry } = read(method, params)?;
                let failure_kind = Some(error.failure_kind(self.tried_again.as_ref()));
                let said = Signal::Error { failure_kind, message: error.message(), retrying: will_retry };
                if will_retry {
                    self.tried_again = Some(error);
                }
                Ok(vec![said])
            }
            "warning" => {
                let message = params.get("message").and_then(Value::as_str).unwrap_or(method);
                let message = clip(message, SUMMARY_BYTES_MAX);
                Ok(vec![Signal::Error { failure_kind: None, message, retrying: false }])
            }
            _ => Ok(Vec::new()),
        }
    }

    /// What a command approval asks for.
    pub(super) fn shell(&mut self, item: &str, command: String, cwd: &str) -> Request {
        let cwd = self.workspace.place(cwd, "");
        // Codex shows the item first; that it always does is not promised.
        let step = Step::Command { command: command.clone(), cwd: cwd.clone() };
        self.open.entry(item.to_owned()).or_insert_with(|| Open::new(step)).asked = true;
        Request::Shell { command, cwd }
    }

    /// What an approval of a change asks for, if the change was shown.
    pub(super) fn patch(&mut self, item: &str) -> Option<Request> {
        let open = self.open.get_mut(item)?;
        open.asked = true;
        match &open.step {
            Step::Change(change) => Some(patch::request(change, &self.workspace)),
            Step::Command { .. } | Step::Tool { .. } => None,
        }
    }

    /// The call of an item that may begin now.
    pub(super) fn begin(&mut self, item: &str) -> Option<Signal> {
        let open = self.open.get_mut(item).filter(|open| !open.begun)?;
        open.begun = true;
        Some(call(item, &open.step, &self.workspace))
    }

    /// Whether a command was begun and has not ended.
    pub(super) fn command_runs(&self) -> bool {
        self.open.values().any(|open| open.begun && matches!(open.step, Step::Command { .. }))
    }

    /// Closes what the end of its turn left open.
    pub(super) fn close(&mut self) -> Vec<Signal> {
        self.tried_again = None;
        let open = std::mem::take(&mut self.open);
        let begun = open.into_iter().filter(|(_, open)| open.begun);
        let cancelled = begun.map(|(call, _)| {
            let summary = "the turn ended before it did".to_owned();
            Signal::ToolResult { call, outcome: ToolOutcome::Cancelled, summary }
        });
        self.release().chain(cancelled).collect()
    }

    /// The results that are held back. Codex tells that a step is over before it has written that into its own conversation: if
    /// it died in between it would ask for the step again, though the record said that it was done. So a result is said only when
    /// codex goes on, which it does after it has written: it counts tokens, says something new, or ends its turn.
    fn release(&mut self) -> impl Iterator<Item = Signal> + use<> {
        std::mem::take(&mut self.results).into_iter()
    }

    fn started(&mut self, item: Item) -> Result<Vec<Signal>, BackendError> {
        let (id, step) = match item {
            Item::CommandExecution(Execution { id, command, cwd, .. }) => {
                let cwd = self.workspace.place(&cwd, "");
                (id, Step::Command { command, cwd })
            }
            Item::FileChange(change) => (change.id.clone(), Step::Change(change)),
            Item::McpToolCall { id, server, tool, arguments, .. } => {
                (id, Step::Tool { tool: format!("{server}.{tool}"), arguments })
            }
            Item::DynamicToolCall { id, tool, arguments, .. } => (id, Step::Tool { tool, arguments }),
            Item::WebSearch { id, query } => {
                (id, Step::Tool { tool: "web_search".to_owned(), arguments: json!({ "query": query }) })
            }
            Item::AgentMessage { .. } | Item::ImageView { .. } | Item::Other => {
                return Ok(self.release().collect());
            }
        };
        if self.open.len() >= OPEN_ITEMS_MAX {
            let message = format!("codex has more than {OPEN_ITEMS_MAX} items open");
            return Err(BackendError::new(FailureKind::BackendProtocolError, message));
        }
        self.open.entry(id).or_insert_with(|| Open::new(step));
        Ok(Vec::new())
    }

    fn completed(&mut self, item: Item) -> Vec<Signal> {
        match item {
            Item::AgentMessage { id: item, text } => vec![Signal::Message { item, text: bounds::text(text) }],
            Item::CommandExecution(done) => self.command_done(done),
            Item::FileChange(done) => self.change_done(&done),
            Item::McpToolCall { id, status, .. } | Item::DynamicToolCall { id, status, .. } => {
                self.tool_done(id, status)
            }
            Item::WebSearch { id, .. } => self.tool_done(id, Status::Completed),
            Item::ImageView { path } => {
                self.workspace.inside("", &path).map(|path| Signal::FileRead { path }).into_iter().collect()
            }
            Item::Other => Vec::new(),
        }
    }

    fn command_done(&mut self, done: Execution) -> Vec<Signal> {
        let ran = done.status == Status::Completed || done.exit_code.is_some();
        let mut signals = self.late_call(&done.id, ran);
        // What is not open was closed with its turn, or declined.
        let Some(open) = self.open.remove(&done.id).filter(|open| open.begun) else { return signals };
        let output = done.aggregated_output.unwrap_or_default();
        // Only the beginning can be missing in the pieces: all of it, for a quick command.
        let missing = output.floor_char_boundary(output.len().saturating_sub(open.streamed));
        signals.extend(bounds::output(&done.id, &output[..missing]));
        if done.status == Status::Completed {
            signals.extend(done.command_actions.iter().filter_map(|action| match action {
                CommandAction::Read { path } => {
                    self.workspace.inside(&done.cwd, path).map(|path| Signal::FileRead { path })
                }
                CommandAction::Other => None,
            }));
        }
        let mut summary = match done.exit_code {
            Some(code) => format!("exit code {code}"),
            None => "it did not end by itself".to_owned(),
        };
        if missing > 0 && open.streamed > 0 {
            summary.push_str("; the beginning of its output came last");
        }
        self.results.push(Signal::ToolResult { call: done.id, outcome: outcome(done.status), summary });
        signals
    }

    fn change_done(&mut self, done: &FileChange) -> Vec<Signal> {
        let mut signals = self.late_call(&done.id, done.status == Status::Completed);
        if self.open.remove(&done.id).is_none_or(|open| !open.begun) {
            return signals;
        }
        let (files, outcome) = (patch::files(done, &self.workspace), outcome(done.status));
        let summary = clip(&files.join(", "), SUMMARY_BYTES_MAX);
        if outcome == ToolOutcome::Succeeded {
            signals.push(Signal::Patch { files, summary: summary.clone() });
        }
        self.results.push(Signal::ToolResult { call: done.id.clone(), outcome, summary });
        signals
    }

    fn tool_done(&mut self, id: String, status: Status) -> Vec<Signal> {
        let signals = self.late_call(&id, true);
        if self.open.remove(&id).is_some() {
            let summary = format!("{status:?}").to_lowercase();
            self.results.push(Signal::ToolResult { call: id, outcome: outcome(status), summary });
        }
        signals
    }

    fn output(&mut self, item: &str, text: &str) -> Vec<Signal> {
        let mut signals = self.late_call(item, true);
        if let Some(open) = self.open.get_mut(item) {
            open.streamed += text.len();
            signals.extend(bounds::output(item, text));
        }
        signals
    }

    /// The call of a step that shows only now that it was begun, and that it was if nobody had been asked.
    fn late_call(&mut self, item: &str, ran: bool) -> Vec<Signal> {
        if !ran {
            return Vec::new();
        }
        let asked = self.open.get(item).is_some_and(|open| open.asked);
        let Some(call) = self.begin(item) else { return Vec::new() };
        let unasked = (!asked).then(|| Signal::Degraded {
            reason: "codex did something for which it had not asked".to_owned(),
        });
        std::iter::once(call).chain(unasked).collect()
    }
}

/// Codex asks before it starts a command, and not before it types into one that runs.
fn typed(stdin: &str) -> Vec<Signal> {
    if stdin.is_empty() {
        return Vec::new();
    }
    let message = format!("codex typed into a command that runs: {}", clip(stdin, SUMMARY_BYTES_MAX));
    vec![
        Signal::Error { failure_kind: None, message, retrying: false },
        Signal::Degraded {
            reason: "codex typed into a command that runs, for which it does not ask".to_owned(),
        },
    ]
}

fn call(id: &str, step: &Step, workspace: &Workspace) -> Signal {
    let (tool, summary, arguments) = match step {
        Step::Command { command, cwd } => {
            ("shell".to_owned(), command.clone(), json!({ "command": command, "cwd": cwd }))
        }
        Step::Change(change) => {
            let files = patch::files(change, workspace);
            ("apply_patch".to_owned(), files.join(", "), json!({ "files": files }))
        }
        Step::Tool { tool, arguments } => (tool.clone(), tool.clone(), arguments.clone()),
    };
    let (summary, arguments) = (clip(&summary, SUMMARY_BYTES_MAX), bounds::arguments(arguments));
    Signal::ToolCall { call: id.to_owned(), tool, summary, arguments, idempotent: false }
}

fn outcome(status: Status) -> ToolOutcome {
    match status {
        Status::Completed => ToolOutcome::Succeeded,
        Status::Declined => ToolOutcome::Denied,
        Status::InProgress | Status::Interrupted => ToolOutcome::Cancelled,
        Status::Failed | Status::Unknown => ToolOutcome::Failed,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use runyard_backend::Stream;

    use super::*;

    /// What the notifications of a recorded turn say; requests are approved or not, as they come.
    fn play(lines: &str, approve: bool) -> Vec<Signal> {
        let mut translation = Translation::new(Workspace::new(Path::new("/checkout")), Before::NOTHING);
        let mut signals = Vec::new();
        for line in lines.lines() {
            let message: Value = serde_json::from_str(line).unwrap();
            let Some(method) = message["method"].as_str() else { continue };
            let params = &message["params"];
            match (method, params["itemId"].as_str()) {
                ("item/commandExecution/requestApproval", Some(item)) => {
                    let command = params["command"].as_str().unwrap().to_owned();
                    translation.shell(item, command, params["cwd"].as_str().unwrap());
                    signals.extend(approve.then(|| translation.begin(item)).flatten());
                }
                ("item/fileChange/requestApproval", Some(item)) => {
                    translation.patch(item).unwrap();
                    signals.extend(approve.then(|| translation.begin(item)).flatten());
                }
                ("turn/completed", _) => signals.extend(translation.close()),
                _ => signals.extend(translation.notification(method, params).unwrap()),
            }
        }
        signals
    }

    /// The signals without usage, each in a line.
    fn told(signals: &[Signal]) -> Vec<String> {
        let line = |signal: &Signal| match signal {
            Signal::Delta { text, .. } => Some(format!("delta {text:?}")),
            Signal::Message { text, .. } => Some(format!("message {text:?}")),
            Signal::ToolCall { tool, summary, arguments, .. } => {
                Some(format!("call {tool}: {summary} {arguments}"))
            }
            Signal::ToolOutput { stream: Stream::Stdout, text, .. } => Some(format!("output {text:?}")),
            Signal::ToolResult { outcome, summary, .. } => Some(format!("{outcome:?}: {summary}")),
            Signal::Status { usage: Some(_), .. } => None,
            Signal::Error { failure_kind, retrying, .. } => {
                Some(format!("error {failure_kind:?} {retrying}"))
            }
            other => Some(format!("{other:?}")),
        };
        signals.iter().filter_map(line).collect()
    }

    #[test]
    fn c25_a_text_is_deltas_and_a_message() {
        let signals = play(include_str!("../../tests/codex/text.jsonl"), true);
        let deltas =
            ["Hello ", "from ", "the ", "demo ", "provider", "."].map(|text| format!("delta {text:?}"));
        let all = deltas.into_iter().chain(["message \"Hello from the demo provider.\"".to_owned()]);
        assert_eq!(told(&signals), all.collect::<Vec<_>>());
        let usage =
            runyard_domain::run::Usage { input_tokens: Some(9500), output_tokens: Some(8), cost_usd: None };
        let used: Vec<_> = signals
            .iter()
            .filter_map(|signal| match signal {
                Signal::Status { usage, .. } => *usage,
                _ => None,
            })
            .collect();
        assert_eq!(used, [usage]);
    }

    #[test]
    fn c25_an_approved_command_is_a_call_its_output_and_its_result() {
        assert_eq!(
            told(&play(include_str!("../../tests/codex/shell.jsonl"), true)),
            [
                r#"call shell: /bin/bash -lc 'cat notes.txt' {"command":"/bin/bash -lc 'cat notes.txt'","cwd":"."}"#,
                r#"output "a note\n""#,
                r#"FileRead { path: "notes.txt" }"#,
                "Succeeded: exit code 0",
                r#"delta "The command ""#,
                r#"delta "has run""#,
                r#"delta ".""#,
                r#"message "The command has run.""#,
            ]
        );
    }

    #[test]
    fn c25_of_a_slow_command_every_line_is_there_once() {
        let told = told(&play(include_str!("../../tests/codex/shell-slow.jsonl"), true));
        assert_eq!(
            told[1..5],
            [
                r#"output "two\n""#,
                r#"output "three\n""#,
                r#"output "one\n""#,
                "Succeeded: exit code 0; the beginning of its output came last",
            ]
        );
    }

    #[test]
    fn c25_a_step_that_was_not_approved_never_begins() {
        let declined = told(&play(include_str!("../../tests/codex/shell-declined.jsonl"), false));
        assert!(declined.iter().all(|line| line.starts_with("delta") || line.starts_with("message")));
        assert_eq!(told(&play(include_str!("../../tests/codex/shell-interrupted.jsonl"), false)), [""; 0]);
    }

    #[test]
    fn c25_a_step_that_its_turn_left_open_is_cancelled() {
        let told = told(&play(include_str!("../../tests/codex/shell-interrupted.jsonl"), true));
        assert_eq!(told[1..], ["Cancelled: the turn ended before it did"]);
    }

    #[test]
    fn c25_a_change_of_files_is_a_call_a_patch_and_its_result() {
        let told = told(&play(include_str!("../../tests/codex/patch.jsonl"), true));
        assert_eq!(
            told[..3],
            [
                r#"call apply_patch: patched.txt {"files":["patched.txt"]}"#,
                r#"Patch { files: ["patched.txt"], summary: "patched.txt" }"#,
                "Succeeded: patched.txt",
            ]
        );
    }

    #[test]
    fn c04_a_command_that_was_not_asked_for_is_said_to_be_so() {
        let lines = include_str!("../../tests/codex/shells.jsonl").lines();
        let unasked: Vec<&str> = lines.filter(|line| !line.contains("requestApproval")).collect();
        let signals = play(&unasked.join("\n"), true);
        let degraded = signals.iter().filter(|signal| matches!(signal, Signal::Degraded { .. }));
        assert_eq!(degraded.count(), 3);
        let asked = play(include_str!("../../tests/codex/shells.jsonl"), true);
        assert!(!asked.iter().any(|signal| matches!(signal, Signal::Degraded { .. })));
        let calls =
            |signals: &[Signal]| signals.iter().filter(|s| matches!(s, Signal::ToolCall { .. })).count();
        assert_eq!((calls(&signals), calls(&asked)), (3, 3));
    }

    #[test]
    fn c04_what_is_typed_into_a_command_is_said_since_nobody_is_asked() {
        let mut translation = Translation::new(Workspace::new(Path::new("/checkout")), Before::NOTHING);
        let mut typed = |stdin: &str| {
            let params = json!({ "itemId": "call", "processId": "1", "stdin": stdin });
            translation.notification("item/commandExecution/terminalInteraction", &params).unwrap()
        };
        assert_eq!(typed(""), [], "it only looked");
        assert!(matches!(&typed("rm -r build\n")[..], [Signal::Error { .. }, Signal::Degraded { .. }]));
    }

    #[test]
    fn b10_errors_are_said_with_their_kind_and_whether_codex_tries_again() {
        let cut = told(&play(include_str!("../../tests/codex/cut.jsonl"), true));
        let errors: Vec<&String> = cut.iter().filter(|line| line.starts_with("error")).collect();
        assert_eq!(errors, ["error Some(ProviderUnavailable) true", "error Some(ProviderUnavailable) false"]);
        let auth = told(&play(include_str!("../../tests/codex/failed-401.jsonl"), true));
        assert_eq!(auth.last().unwrap(), "error Some(ProviderAuthFailed) false");
    }

    #[test]
    fn b10_a_notification_without_a_required_field_is_invalid() {
        let mut translation = Translation::new(Workspace::new(Path::new("/checkout")), Before::NOTHING);
        let error =
            translation.notification("item/agentMessage/delta", &json!({ "delta": "x" })).unwrap_err();
        assert_eq!(error.failure_kind, FailureKind::BackendResponseInvalid);
        assert!(translation.notification("something/new", &json!(null)).unwrap().is_empty());
    }
}
