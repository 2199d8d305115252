//! What all events of a run together say about it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::budget::Usage;
use super::command::{CancelRequested, CommandKind, CommandReceived};
use super::event::RunEvent;
use super::facts::*;
use super::review::Review;
use super::state::{Illegal, RunState};
use crate::{ApprovalId, Artifact, CommandId, RuleId, RunId, Timestamp, is_relative};

/// The most turns that wait in a run.
pub const QUEUED_TURNS_MAX: usize = 64;
/// The most words that are on their way to the agent.
pub const UNHEARD_MAX: usize = 64;
/// The most steps that are known one by one while they are open: more than one answer of a model can call.
pub const OPEN_STEPS_MAX: usize = 256;
/// Stands for all further ones that may not be repeated, until the turn is over. Those that may are left out.
const FURTHER_STEPS: &str = "…";
/// So many bytes all summaries of open steps have together; what is beyond is cut to [`SUMMARY_BYTES_MIN`] each.
const SUMMARIES_BYTES_MAX: usize = 256 * 1024;
/// So many bytes of its summary every open step keeps.
const SUMMARY_BYTES_MIN: usize = 512;
/// How much of the last message is kept beside the log.
const RESPONSE_BYTES_MAX: usize = 16 * 1024;

/// A run, folded from its events. It is what the run's row holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// Where it stands.
    pub state: RunState,
    /// What it began with.
    pub created: Created,
    /// When it was made.
    pub created_at: Timestamp,
    /// The plan, from Planned on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub planned: Option<Planned>,
    /// What was found in Preparing, from Running on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub started: Option<Started>,
    /// What cannot be relied on.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub degraded: Vec<String>,
    /// The backend's conversation, as soon as it is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub thread: Option<String>,
    /// Whether a turn runs.
    pub turn_active: bool,
    /// How many turns have begun.
    pub turns: u32,
    /// How often the backend died since a turn last ended.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub deaths: u32,
    /// Who interrupted the turn that runs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub interrupted_by: Option<Who>,
    /// When its last turn ended, where it is then kept open for another.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub idle_since: Option<Timestamp>,
    /// Whether somebody said that it is not to be kept open any longer.
    #[serde(skip_serializing_if = "is_false", default)]
    pub finishing: bool,
    /// Why what is being applied is to be stopped.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stopping: Option<Stopping>,
    /// What was said into the turn that runs, and is not known to have been heard; in order.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub unheard: Vec<Unheard>,
    /// Turns that wait.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub queued: Vec<QueuedTurn>,
    /// Steps that were begun and have no result, by the backend's name for them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub open_steps: BTreeMap<String, OpenStep>,
    /// Decisions that were made and not handed to the agent yet.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub grants: Vec<Grant>,
    /// The marks of the rules from files that are good for one time in each run, and that this one used up.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub rules_used: Vec<String>,
    /// What the agent said last.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub response: String,
    /// The ids of what was produced.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub artifacts: Vec<String>,
    /// What each of them is.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub produced: Vec<Artifact>,
    /// Tokens and cost so far.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub usage: Option<Usage>,
    /// What the last look at its checkout found.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub review: Option<Review>,
    /// When it entered its state, or was taken up again in it.
    pub entered_at: Timestamp,
    /// How long it was active before that.
    pub active_ms_before: u64,
}

/// A turn that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueuedTurn {
    /// The command that asked for it.
    pub command_id: CommandId,
    /// Its text.
    pub text: String,
}

/// A word into the turn that runs, or its end, on its way to the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Unheard {
    /// The command.
    pub command_id: CommandId,
    /// What is said; nothing where the turn is to end.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub text: Option<String>,
}

/// Why what is being applied is to be stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Stopping {
    /// Somebody ends the run.
    Cancelled(CancelRequested),
    /// It takes longer than it may.
    Late,
}

/// A step that was begun and has no result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenStep {
    /// What it does, in a line.
    pub summary: String,
    /// Whether doing it twice is the same as doing it once.
    pub idempotent: bool,
}

/// A decision that is held for the one request it was made for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Grant {
    /// The approval.
    pub approval_id: ApprovalId,
    /// The backend's own name for the request, within the session that asked.
    pub key: String,
    /// Stands for the raw content: only exactly this is answered by it.
    pub digest: String,
    /// Whether it is a yes.
    pub approved: bool,
    /// Whether it answers the same request again, as often as it comes in this run.
    #[serde(skip_serializing_if = "is_false", default)]
    pub for_the_run: bool,
    /// Whether it has answered a request.
    #[serde(skip_serializing_if = "is_false", default)]
    pub used: bool,
    /// The reason that was given.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
    /// The answer to a question.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub answer: Option<Value>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn is_false(truth: &bool) -> bool {
    !truth
}

/// Time, tokens and cost, where known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Metrics {
    /// From creation to end.
    pub wall_ms: u64,
    /// The same without the time in which it waited for people.
    pub active_ms: u64,
    /// Tokens and cost.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub usage: Option<Usage>,
}

impl Run {
    /// The run after one more event: the only thing that makes or changes one.
    pub fn fold(run: Option<Run>, id: RunId, at: Timestamp, event: &RunEvent) -> Result<Run, Illegal> {
        event.check_evidence()?;
        match (run, event) {
            (None, RunEvent::Created(created)) => Ok(Run::begin(id, at, created.clone())),
            (None, event) => Err(Illegal::Transition { state: "not there", event: event.kind() }),
            (Some(run), event) => run.apply(at, event),
        }
    }

    fn begin(id: RunId, at: Timestamp, created: Created) -> Run {
        Run {
            id,
            state: RunState::Created,
            thread: created.thread.clone(),
            created,
            created_at: at,
            planned: None,
            started: None,
            degraded: Vec::new(),
            turn_active: false,
            turns: 0,
            deaths: 0,
            interrupted_by: None,
            idle_since: None,
            finishing: false,
            stopping: None,
            unheard: Vec::new(),
            queued: Vec::new(),
            open_steps: BTreeMap::new(),
            grants: Vec::new(),
            rules_used: Vec::new(),
            response: String::new(),
            artifacts: Vec::new(),
            produced: Vec::new(),
            usage: None,
            review: None,
            entered_at: at,
            active_ms_before: 0,
        }
    }

    fn apply(mut self, at: Timestamp, event: &RunEvent) -> Result<Run, Illegal> {
        let next = self.state.apply(event)?;
        self.note(event)?;
        self.note_idle(at, event);
        self.note_review(event);
        self.note_artifact(at, event);
        let away_ms = match event {
            RunEvent::RuntimeStatus(status) => status.away_ms,
            _ => None,
        };
        if next.name() != self.state.name() || away_ms.is_some() {
            let active_ms = self.active_ms(at).saturating_sub(away_ms.unwrap_or_default());
            self.active_ms_before = self.active_ms_before.max(active_ms);
            self.entered_at = at;
        }
        if next.is_terminal() {
            (self.turn_active, self.queued, self.grants) = (false, Vec::new(), Vec::new());
            (self.stopping, self.unheard, self.rules_used) = (None, Vec::new(), Vec::new());
        }
        self.state = next;
        Ok(self)
    }

    /// How long it has been active by `now`, not counting the time in which it waited for a place or for people, or in which
    /// no hub looked after it.
    pub fn active_ms(&self, now: Timestamp) -> u64 {
        match self.state {
            RunState::Accepted | RunState::Preparing | RunState::Running | RunState::Applying { .. } => {
                self.active_ms_before.saturating_add(now.ms_since(self.entered_at))
            }
            RunState::Created
            | RunState::Planned
            | RunState::NeedsApproval { .. }
            | RunState::Completed
            | RunState::Failed { .. }
            | RunState::Cancelled { .. } => self.active_ms_before,
        }
    }

    /// Whether its agent has worked, and neither works nor is about to.
    pub fn is_idle(&self) -> bool {
        self.turns > 0 && !self.turn_active && self.queued.is_empty()
    }

    /// Until when it waits for a further turn, though nothing else is left to do.
    pub fn kept_open_until(&self) -> Option<Timestamp> {
        let keep_open_ms = self.created.execution_policy.keep_open_ms?;
        let waits = self.state == RunState::Running && self.is_idle();
        let kept_open = waits && !self.finishing && self.created.carries.is_none();
        self.idle_since.filter(|_| kept_open).map(|since| since.plus_ms(keep_open_ms))
    }

    fn note_idle(&mut self, at: Timestamp, event: &RunEvent) {
        match event {
            RunEvent::TurnStarted(_) => self.idle_since = None,
            RunEvent::TurnEnded(_) => {
                self.idle_since = self.created.execution_policy.keep_open_ms.map(|_| at);
            }
            _ => {}
        }
    }

    /// The steps that were begun, have no result, and may not be done twice, in a line.
    pub fn unknown_steps(&self) -> Option<String> {
        let unknown = self.open_steps.values().filter(|step| !step.idempotent);
        let unknown: Vec<&str> = unknown.map(|step| step.summary.as_str()).collect();
        (!unknown.is_empty()).then(|| unknown.join("; "))
    }

    /// What it took, were it to end now.
    pub fn metrics(&self, now: Timestamp) -> Metrics {
        Metrics { wall_ms: now.ms_since(self.created_at), active_ms: self.active_ms(now), usage: self.usage }
    }

    /// A step is open. One that may not be repeated is never forgotten for want of room.
    fn begin_step(&mut self, name: String, mut step: OpenStep) {
        let known: usize = self.open_steps.values().map(|open| open.summary.len()).sum();
        if known + step.summary.len() > SUMMARIES_BYTES_MAX {
            step.summary.truncate(step.summary.floor_char_boundary(SUMMARY_BYTES_MIN));
        }
        if self.open_steps.len() < OPEN_STEPS_MAX || self.open_steps.contains_key(&name) {
            self.open_steps.insert(name, step);
            return;
        }
        if step.idempotent {
            return;
        }
        match self.open_steps.iter().find(|(_, open)| open.idempotent).map(|(spare, _)| spare.clone()) {
            Some(spare) => {
                self.open_steps.remove(&spare);
                self.open_steps.insert(name, step);
            }
            None => {
                let further = OpenStep { summary: "further steps".to_owned(), idempotent: false };
                self.open_steps.insert(FURTHER_STEPS.to_owned(), further);
            }
        }
    }

    /// Takes in what an event says beside the state.
    fn note(&mut self, event: &RunEvent) -> Result<(), Illegal> {
        use RunEvent as E;
        match event {
            E::Planned(planned) => self.planned = Some(planned.clone()),
            E::Started(started) => self.started = Some(started.clone()),
            E::Degraded(degraded) if !self.degraded.contains(&degraded.reason) => {
                self.degraded.push(degraded.reason.clone());
            }
            E::CommandReceived(command) => self.queue(command),
            E::CommandHeard(heard) => self.unheard.retain(|word| word.command_id != heard.command_id),
            E::CancelRequested(requested) => self.stopping = Some(Stopping::Cancelled(requested.clone())),
            E::RuntimeTimeout(_) if matches!(self.state, RunState::Applying { .. }) => {
                self.stopping.get_or_insert(Stopping::Late);
            }
            E::Applied(_) => self.stopping = self.stopping.take().filter(|why| *why != Stopping::Late),
            E::TurnStarted(started) => {
                (self.turn_active, self.interrupted_by) = (true, None);
                self.unheard.clear();
                self.turns = self.turns.saturating_add(1);
                self.queued.retain(|turn| Some(turn.command_id) != started.command_id);
            }
            E::TurnEnded(_) => {
                (self.turn_active, self.deaths) = (false, 0);
                self.open_steps.clear();
                self.unheard.clear();
            }
            E::MessageCompleted(message) if !message.broke_off => {
                let end = message.text.floor_char_boundary(RESPONSE_BYTES_MAX);
                message.text[..end].clone_into(&mut self.response);
            }
            E::ToolCall(call) => {
                let step = OpenStep { summary: call.summary.clone(), idempotent: call.idempotent };
                self.begin_step(call.call.clone(), step);
            }
            E::ToolResult(result) => {
                self.open_steps.remove(&result.call);
            }
            E::ApprovalResolved(resolved) => self.hold(resolved),
            E::ApprovalUsed(used) => {
                let held = self.grants.iter().position(|grant| grant.approval_id == used.approval_id);
                let missing = Illegal::Approval { event: event.kind(), approval: used.approval_id };
                let held = held.ok_or(missing)?;
                if self.grants[held].for_the_run {
                    self.grants[held].used = true;
                } else {
                    self.grants.remove(held);
                }
            }
            // What people added is gone from the policy when it is used up, for every run.
            E::GateJudged(GateJudged { rule_used: Some(rule), .. }) if rule.parse::<RuleId>().is_err() => {
                self.rules_used.push(rule.clone());
            }
            E::RuntimeDied(_) => self.deaths = self.deaths.saturating_add(1),
            E::ArtifactReady(artifact) => self.artifacts.push(artifact.artifact_id.clone()),
            E::RuntimeStatus(status) => {
                self.thread = status.thread.clone().or(self.thread.take());
                let used = self.usage.into_iter().chain(status.usage);
                self.usage = used.reduce(Usage::then);
            }
            _ => {}
        }
        Ok(())
    }

    fn queue(&mut self, command: &CommandReceived) {
        match command.command {
            CommandKind::Interrupt => self.interrupted_by = Some(command.actor.clone()),
            CommandKind::Finish => self.finishing = true,
            CommandKind::Turn | CommandKind::Steer => {}
        }
        if command.until_heard && self.unheard.len() < UNHEARD_MAX {
            self.unheard.push(Unheard { command_id: command.command_id, text: command.text.clone() });
        }
        if let (CommandKind::Turn, Some(text)) = (command.command, &command.text)
            && self.queued.len() < QUEUED_TURNS_MAX
        {
            self.queued.push(QueuedTurn { command_id: command.command_id, text: text.clone() });
        }
    }

    /// Holds a decision for the request it was made for. What the agent gave up needs none.
    fn hold(&mut self, resolved: &ApprovalResolved) {
        let asked = self.state.open().find(|(id, _)| *id == resolved.approval_id);
        if let Some((approval_id, asked)) = asked
            && resolved.resolution != Resolution::Withdrawn
            // What is decided about the changes is not for the agent.
            && self.review_asked(approval_id).is_none()
        {
            let (key, digest) = (asked.key.clone(), asked.digest.clone());
            let approved = RunEvent::approves(resolved.resolution);
            let (reason, answer) = (resolved.reason.clone(), resolved.answer.clone());
            let for_the_run = approved && resolved.scope.is_some_and(|scope| scope != DecisionScope::Once);
            let grant =
                Grant { approval_id, key, digest, approved, for_the_run, used: false, reason, answer };
            self.grants.push(grant);
        }
    }
}

impl RunEvent {
    /// Refuses an event that enters a state without saying what justifies it.
    fn check_evidence(&self) -> Result<(), Illegal> {
        use RunEvent as E;
        let fields: &[(&'static str, &str)] = match self {
            E::Created(created) => {
                let task = match &created.task {
                    Task::Text { text, .. } => text,
                    Task::Action { action, .. } => action,
                };
                &[
                    ("task", task),
                    ("actor", &created.actor.id),
                    ("workspace", &created.workspace.label),
                    ("agentId", &created.agent_id),
                    ("backendProfile", &created.backend_profile),
                ]
            }
            E::Planned(planned) => &[
                ("edgeId", &planned.edge_id),
                ("workspacePolicy", &planned.workspace_policy),
                ("runtimeProfile", &planned.runtime_profile),
                ("approvalPolicy", &planned.approval_policy.preset),
            ],
            E::Accepted(accepted) => &[("edgeId", &accepted.edge_id)],
            E::Preparing(preparing) => &[("checks", preparing.checks.first().map_or("", String::as_str))],
            E::Started(started) => &[
                ("backendKind", &started.backend_kind),
                ("protocol", &started.protocol),
                ("checks", started.checks.keys().next().map_or("", String::as_str)),
            ],
            E::ApprovalRequested(asked) => &[("digest", &asked.digest), ("actor", &asked.actor.id)],
            E::ApprovalResolved(resolved) => &[("decidedBy", &resolved.decided_by.id)],
            E::ApprovalSnoozed(snoozed) => &[("by", &snoozed.by.id)],
            E::Applying(applying) => &[("digest", &applying.digest)],
            E::Failed(failed) => {
                &[("message", &failed.failure.message), ("recovery", &failed.failure.recovery)]
            }
            E::CancelRequested(requested) => &[("by", &requested.by.id), ("reason", &requested.reason)],
            E::Cancelled(cancelled) => &[("by", &cancelled.by.id), ("reason", &cancelled.reason)],
            E::Degraded(degraded) => &[("reason", &degraded.reason)],
            E::ArtifactReady(artifact) => match artifact.lacks() {
                Some(field) => return Err(Illegal::Evidence { event: self.kind(), field }),
                None => &[],
            },
            E::PreviewReady(preview) if !is_relative(&preview.path) => &[("path", "")],
            _ => &[],
        };
        match fields.iter().find(|(_, said)| said.trim().is_empty()) {
            Some((field, _)) => Err(Illegal::Evidence { event: self.kind(), field }),
            None => Ok(()),
        }
    }
}
