//! What codex tells, as signals: items of a turn, messages, usage, errors. Pure, and tested on recorded lines.
//!
//! A step is said to begin when it may begin: codex starts an item before it asks for it, so the call of an item is held back
//! until it is approved, or until something shows that it runs without having been asked for, which is then said. `item/completed`
//! counts, whatever pieces came before. Turns and requests are not looked at here.

use std::collections::BTreeMap;

use runyard_backend::{BackendError, Signal};
use runyard_domain::gate::Request;
use runyard_domain::run::{FailureKind, PlanStatus, PlanStep, ToolOutcome};
use serde_json::{Value, json};

use super::failure::TurnError;
use super::place::Workspace;
use super::tokens::Before;
use super::wire::{
    CommandAction, DeltaNotice, ErrorNotice, Execution, FileChange, Item, ItemNotice, PlanNotice, Status,
    TypedNotice, UsageNotice, read,
};
use super::{bounds, patch, wire};
use crate::cut::clip;

/// The most items that are open at a time.
const OPEN_ITEMS_MAX: usize = 256;
/// The most steps of a plan.
const PLAN_STEPS_MAX: usize = 32;
/// How much of a step of a plan is told, in bytes.
const PLAN_STEP_BYTES_MAX: usize = 240;
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
            "turn/plan/updated" => {
                let PlanNotice { plan } = read(method, params)?;
                Ok(vec![planned(plan.into_iter().map(|planned| (planned.step, planned.status)))])
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
            "warning" | "configWarning" | "guardianWarning" => Ok(vec![warned(method, params)]),
            _ => Ok(Vec::new()),
        }
    }

    /// What a command approval asks for.
    pub(super) fn shell(&mut self, item: &str, command: String, cwd: &str) -> Request {
        let cwd = self.workspace.place(cwd, "");
        // Codex shows the item first; that it always does is not promised.
        let step = Step::Command { command: command.clone(), cwd: cwd.clone() };
        self.known(item, step);
        if let Some(open) = self.open.get_mut(item) {
            open.asked = true;
        }
        Request::Shell { command, cwd }
    }

    /// What an approval of a change asks for, if the change was shown.
    pub(super) fn patch(&mut self, item: &str) -> Option<Request> {
        let open = self.open.get_mut(item)?;
        open.asked = true;
        match &open.step {
            Step::Change(change) => patch::request(change, &self.workspace),
            Step::Command { .. } | Step::Tool { .. } => None,
        }
    }

    /// The same for a change that is shown only as it is asked for.
    pub(super) fn shown(&mut self, change: FileChange) -> Option<Request> {
        let id = change.id.clone();
        self.known(&id, Step::Change(change));
        self.patch(&id)
    }

    /// Keeps an item that is not known yet, within the limit.
    fn known(&mut self, id: &str, step: Step) {
        if self.open.len() < OPEN_ITEMS_MAX {
            self.open.entry(id.to_owned()).or_insert_with(|| Open::new(step));
        }
    }

    /// A path that codex gave, as requests name it.
    pub(super) fn place(&self, cwd: &str, path: &str) -> String {
        self.workspace.place(cwd, path)
    }

    /// The call of an item that may begin now.
    pub(super) fn begin(&mut self, item: &str) -> Option<Signal> {
        let open = self.open.get_mut(item).filter(|open| !open.begun)?;
        open.begun = true;
        Some(call(item, &open.step, &self.workspace))
    }

    /// Whether a step was begun and has not ended.
    pub(super) fn step_runs(&self) -> bool {
        self.open.values().any(|open| open.begun)
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
            Signal::ToolResult { call, outcome: ToolOutcome::Cancelled, code: None, summary }
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
            Item::CollabAgentToolCall { id, tool, prompt, .. } => {
                let tool = format!("agent.{}", tool.as_str().unwrap_or("unknown"));
                (id, Step::Tool { tool, arguments: json!({ "prompt": prompt }) })
            }
            Item::WebSearch { id, query } => {
                (id, Step::Tool { tool: "web_search".to_owned(), arguments: json!({ "query": query }) })
            }
            Item::ImageGeneration { id, .. } => {
                (id, Step::Tool { tool: "image_generation".to_owned(), arguments: Value::Null })
            }
            Item::AgentMessage { .. }
            | Item::Reasoning { .. }
            | Item::Plan { .. }
            | Item::ContextCompaction {}
            | Item::ImageView { .. }
            | Item::Other => return Ok(self.release().collect()),
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
            Item::AgentMessage { id: item, text } => {
                vec![Signal::Message { item, text: bounds::message(text) }]
            }
            Item::CommandExecution(done) => self.command_done(done),
            Item::FileChange(done) => self.change_done(&done),
            Item::McpToolCall { id, status, .. }
            | Item::DynamicToolCall { id, status, .. }
            | Item::CollabAgentToolCall { id, status, .. }
            | Item::ImageGeneration { id, status } => self.tool_done(id, status),
            Item::WebSearch { id, .. } => self.tool_done(id, Status::Completed),
            Item::ImageView { path } => {
                self.workspace.inside("", &path).map(|path| Signal::FileRead { path }).into_iter().collect()
            }
            Item::Reasoning { id: item, summary, content } => {
                let told = if summary.is_empty() { content } else { summary };
                let text = bounds::message(told.join("\n\n"));
                if text.is_empty() { Vec::new() } else { vec![Signal::Reasoning { item, text }] }
            }
            Item::Plan { text } => {
                let lines = text.lines().map(|line| line.trim_start_matches([' ', '-', '*', '#']));
                let steps = lines.filter(|line| !line.is_empty());
                vec![planned(steps.map(|line| (line.to_owned(), Status::Unknown)))]
            }
            Item::ContextCompaction {} => {
                let phase = "compacted".to_owned();
                vec![Signal::Status { phase, model: None, version: None, thread: None, usage: None }]
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
        self.results.push(Signal::ToolResult {
            call: done.id,
            outcome: outcome(done.status),
            code: None,
            summary,
        });
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
        self.results.push(Signal::ToolResult { call: done.id.clone(), outcome, code: None, summary });
        signals
    }

    fn tool_done(&mut self, id: String, status: Status) -> Vec<Signal> {
        let signals = self.late_call(&id, true);
        if self.open.remove(&id).is_some() {
            let summary = format!("{status:?}").to_lowercase();
            self.results.push(Signal::ToolResult { call: id, outcome: outcome(status), code: None, summary });
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
        let unasked = self.open.get(item).filter(|open| !open.asked).map(|open| unasked(&open.step));
        let Some(call) = self.begin(item) else { return Vec::new() };
        std::iter::once(call).chain(unasked).collect()
    }
}

/// A step that codex took without asking. What it does to files is seen by looking at them.
fn unasked(step: &Step) -> Signal {
    match step {
        Step::Command { command, cwd } => {
            Signal::Unasked { request: Request::Shell { command: command.clone(), cwd: cwd.clone() } }
        }
        Step::Change(_) | Step::Tool { .. } => {
            Signal::Degraded { reason: "codex did something for which it had not asked".to_owned() }
        }
    }
}

/// What codex means to do, bounded.
fn planned(steps: impl IntoIterator<Item = (String, Status)>) -> Signal {
    let step = |(text, status): (String, Status)| {
        let status = match status {
            Status::Completed => PlanStatus::Completed,
            Status::InProgress => PlanStatus::InProgress,
            _ => PlanStatus::Pending,
        };
        PlanStep { text: clip(&text, PLAN_STEP_BYTES_MAX), status }
    };
    Signal::Plan { steps: steps.into_iter().take(PLAN_STEPS_MAX).map(step).collect() }
}

fn warned(method: &str, params: &Value) -> Signal {
    let said = |key| params.get(key).and_then(Value::as_str);
    let message = clip(said("message").or(said("summary")).unwrap_or(method), SUMMARY_BYTES_MAX);
    Signal::Error { failure_kind: None, message, retrying: false }
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
mod tests;
