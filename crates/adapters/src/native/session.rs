//! One session of the agent: turns, words into them, interrupts, and how it ends.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use runyard_agent::Agent;
use runyard_agent::checkpoint::{Checkpoint, Opened};
use runyard_agent::phase::{RunIdentity, TerminationReason};
use runyard_agent::plugin::Environment;
use runyard_agent::run::{self, Begin, Decision, RecordedUsage, RunOutcome, RunParts, RunRecord};
use runyard_agent::state::{PersistedState, UnknownKeyPolicy};
use runyard_agent::tool::{ActionTool, Tool};
use runyard_backend::{Command, Ending, Journal, JournalError, SessionSpec, Signal, Start};
use runyard_domain::run::{FailureKind, Task, ThreadRecorded, TurnOutcome};
use runyard_domain::{Actor, Code, CommandId};
use runyard_llm::inference::Message;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use super::Models;
use super::ear::Ear;
use super::gate::Gated;
use super::left;
use super::log::{LogCheckpoint, Names, begins_turn, broke_off, cleared, opened, redacted, sum};
use super::profile::Profile;
use super::question::{ASK, AskTool, answers};
use super::told::Told;
use super::workspace::{Workspace, runtime};

/// One session.
pub(super) struct NativeSession {
    agent: Agent,
    actor: Arc<Actor>,
    spec: SessionSpec,
    ear: Arc<Ear>,
    commands: mpsc::Receiver<Command>,
    thread: String,
    model: String,
    opened: Opened,
    /// What the turns cost before the last one that is opened.
    before: RecordedUsage,
    /// What the calls of the last turn did that were over with it, and of which nobody knows, in a line.
    unknown: Option<String>,
    turn: Turn,
}

/// How a turn goes on.
enum Go {
    /// From its beginning.
    Fresh,
    /// From what is recorded of it, with answers to what it waits for.
    On(Vec<Decision>),
}

/// How the session begins.
enum Turn {
    /// With the task.
    Task(String),
    /// In the middle of a turn.
    GoesOn,
    /// Between two turns.
    Idle,
}

impl NativeSession {
    /// A session that has not begun, or why it cannot.
    pub(super) fn new(
        profile: Profile,
        spec: SessionSpec,
        journal: Arc<dyn Journal>,
        commands: mpsc::Receiver<Command>,
        models: &Models,
    ) -> Result<Self, String> {
        let ear = Arc::new(Ear::new(journal));
        let actor = Arc::new(Actor::agent(&spec.profile.profile, spec.run, std::iter::empty::<String>()));
        let agent = agent(&profile, &spec, &ear, models)?;
        let (turn, resumed, task_text, thread) = match &spec.start {
            Start::Fresh { task, thread } => (None, false, text(task)?, thread.clone()),
            Start::Resume { task, thread, turn_active } => {
                (Some(*turn_active), true, text(task)?, thread.clone())
            }
        };
        let (opened, before) = opened(&spec.history, resumed)?;
        let turn = match turn {
            // What died before it recorded anything begins anew.
            None => Turn::Task(task_text),
            Some(true) if opened.messages.is_empty() => Turn::Task(task_text),
            Some(true) => Turn::GoesOn,
            Some(false) => Turn::Idle,
        };
        let thread = thread.unwrap_or_else(|| format!("thread-{}", spec.run));
        let model = profile.model;
        let unknown = None;
        Ok(NativeSession { agent, actor, ear, commands, thread, model, opened, before, unknown, turn, spec })
    }

    /// Runs it until it is closed or over.
    pub(super) async fn run(mut self) {
        let (came, mut something) = mpsc::channel(1);
        let commands = std::mem::replace(&mut self.commands, mpsc::channel(1).1);
        let ear = Arc::clone(&self.ear);
        let listening = ear.listen(commands, came);
        let stopped = self.ear.stopped.clone();
        let turns = self.turns(&mut something);
        tokio::pin!(listening, turns);
        // However it stops, there is nobody left to tell. A turn that is under way is dropped with all that it started.
        tokio::select! {
            // A turn that goes on is there before what is said to it is heard.
            biased;
            _ = &mut turns => {}
            () = &mut listening => {}
            () = stopped.cancelled() => {}
        }
    }

    async fn turns(mut self, something: &mut mpsc::Receiver<()>) -> Result<(), JournalError> {
        let names = Arc::new(Names::new());
        let status = |phase: &str, this: &Self| Signal::Status {
            phase: phase.to_owned(),
            model: Some(this.model.clone()),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            thread: Some(this.thread.clone()),
            usage: None,
        };
        let mut next = match std::mem::replace(&mut self.turn, Turn::Idle) {
            Turn::Task(text) => {
                let ready = vec![status("ready", &self), Signal::TurnStarted { command: None }];
                self.say(text, ready, cleared(&self.spec.history)).await?;
                Some(Go::Fresh)
            }
            Turn::GoesOn => {
                self.ear.begin_turn(&self.opened.run_state);
                let messages = self.opened.messages.len() as u64;
                let mut resumed = vec![status("resumed", &self)];
                resumed.extend(broke_off(&self.spec.history, &self.thread, messages));
                self.ear.record(resumed).await?;
                self.opened.unknown = left::begun(&self.opened.messages, self.spec.left.as_ref());
                Some(Go::On(left::made_again(&self.opened.unknown)))
            }
            Turn::Idle => {
                self.ear.record(vec![status("resumed", &self)]).await?;
                None
            }
        };
        loop {
            while let Some(go) = next.take() {
                let outcome = self.turn(go, &names).await;
                if outcome.reason == TerminationReason::Suspended {
                    let (interrupted, _) = self.ear.turn();
                    self.ear.listen_on();
                    next = Some(Go::On(answers(&self.ear, &outcome, &interrupted).await));
                } else if self.over(outcome).await? {
                    return Ok(());
                }
            }
            let (command, text) = loop {
                match self.ear.next_turn() {
                    Some(turn) => break turn,
                    None => {
                        if something.recv().await.is_none() {
                            return Ok(());
                        }
                    }
                }
            };
            self.say(text, vec![begun(command)], Default::default()).await?;
            next = Some(Go::Fresh);
        }
    }

    /// Records what is said to the agent, with the turn that it begins: neither is there without the other. Calls that were left
    /// without a result get one first: nothing may come between a call and what came of it.
    async fn say(
        &mut self,
        text: String,
        mut batch: Vec<Signal>,
        mut state: BTreeMap<String, Value>,
    ) -> Result<(), JournalError> {
        self.ear.begin_turn(&PersistedState::default());
        let last = self.opened.record.replace(RunRecord::default()).unwrap_or_default();
        self.before = sum(self.before, last.usage);
        state.extend([begins_turn(self.before)]);
        let results = left::results(&self.opened.messages, self.spec.left.as_ref(), &self.agent);
        let said = results.into_iter().chain([Message::user(text)]);
        let said: Vec<Message> =
            said.map(|message| redacted(self.spec.redaction.as_ref(), message)).collect();
        let recorded = ThreadRecorded {
            thread: self.thread.clone(),
            after: self.opened.messages.len() as u64,
            messages: said.iter().filter_map(|message| serde_json::to_value(message).ok()).collect(),
            state,
        };
        batch.push(Signal::Thread(recorded));
        self.ear.record(batch).await?;
        self.opened.messages.extend(said.into_iter().map(Arc::new));
        Ok(())
    }

    async fn turn(&mut self, go: Go, names: &Arc<Names>) -> RunOutcome {
        let (cancellation, inbox) = self.ear.turn();
        let written = left::written(&self.opened.messages, self.spec.left.as_ref());
        let checkpoint = Arc::new(LogCheckpoint {
            ear: Arc::clone(&self.ear),
            redaction: Arc::clone(&self.spec.redaction),
            tools: Arc::clone(&self.agent.environment),
            thread: self.thread.clone(),
            before: self.before,
            names: Arc::clone(names),
            written: Mutex::new(written),
            sent: tokio::sync::Mutex::default(),
            unsettled: AtomicBool::new(false),
        });
        let parts = RunParts {
            agent: self.agent.clone(),
            identity: RunIdentity {
                run_id: self.spec.run,
                thread_id: self.thread.as_str().into(),
                agent_id: Arc::clone(&self.agent.id),
            },
            actor: Arc::clone(&self.actor),
            inbox,
            observer: Arc::new(Told { ear: Arc::clone(&self.ear), log: Arc::clone(&checkpoint) }),
            checkpoint: Arc::clone(&checkpoint) as Arc<dyn Checkpoint>,
            cancellation,
        };
        let (resumed, decisions) = match go {
            Go::Fresh => (false, Vec::new()),
            Go::On(decisions) => (true, decisions),
        };
        let mut opened = std::mem::take(&mut self.opened);
        opened.record = Some(opened.record.unwrap_or_default());
        let mut outcome = run::run(parts, Begin { opened, resumed, decisions, ..Begin::default() }).await;
        self.unknown = checkpoint.unknown();
        if checkpoint.unsettled.load(Ordering::SeqCst) {
            // However it ended: what goes on from here would not go on from what is recorded.
            let message = "whether the turn's last step is recorded is not known".to_owned();
            outcome.reason = TerminationReason::Failed { code: Code::StorageCommitUnknown, message };
        }
        self.opened = outcome.thread.clone();
        // A turn that is over leaves what it cost; one that waits goes on with all that is known of it.
        let cost = || RunRecord { usage: outcome.usage.into(), ..RunRecord::default() };
        self.opened.record.get_or_insert_with(cost);
        outcome
    }

    /// Says how a turn ended. True where the session is over with it.
    async fn over(&mut self, outcome: RunOutcome) -> Result<bool, JournalError> {
        let ended = |outcome| Signal::TurnEnded { outcome };
        let said = |message: String| Signal::Error { failure_kind: None, message, retrying: false };
        let (batch, over) = match outcome.reason {
            TerminationReason::NaturalEnd => (vec![ended(TurnOutcome::Completed)], false),
            TerminationReason::Stopped { code, detail } => {
                let message =
                    format!("the agent stopped at its limit {code}: {}", detail.unwrap_or_default());
                (vec![said(message), ended(TurnOutcome::Completed)], false)
            }
            TerminationReason::Cancelled if self.ear.was_interrupted() => {
                (vec![ended(TurnOutcome::Interrupted)], false)
            }
            TerminationReason::Cancelled => return Ok(true),
            // It goes on when it is answered.
            TerminationReason::Suspended => return Ok(false),
            TerminationReason::Blocked { reason } => {
                let ending = Ending::Blocked { code: Code::PermissionDenied, message: reason, step: None };
                (vec![Signal::Ended { ending }], true)
            }
            // A call of which nobody knows is over with its turn where a person ended that. Its result says so, to the model too.
            TerminationReason::Failed { code: Code::OutcomeUnknown, message }
                if self.ear.was_interrupted() =>
            {
                (vec![said(message), ended(TurnOutcome::Interrupted)], false)
            }
            // What nobody knows of is the run's own end, and not a failure of its agent: somebody has to look after it.
            TerminationReason::Failed { code: code @ Code::OutcomeUnknown, message } => {
                let step = self.unknown.take();
                (vec![Signal::Ended { ending: Ending::Blocked { code, message, step } }], true)
            }
            // Whether the last step is durable is the journal's to say, and the log's to whoever goes on from it.
            TerminationReason::Failed { code: Code::StorageCommitUnknown, .. } => return Ok(true),
            TerminationReason::Failed { code, message } => {
                let ending = Ending::Failed { failure_kind: kind(code), message, cause: Some(code) };
                (vec![Signal::Ended { ending }], true)
            }
        };
        self.ear.record([self.ear.withdrawn(), self.ear.end_turn(), batch].concat()).await?;
        Ok(over)
    }
}

fn begun(command: CommandId) -> Signal {
    Signal::TurnStarted { command: Some(command) }
}

fn text(task: &Task) -> Result<String, String> {
    match task {
        Task::Text { text, .. } => Ok(text.clone()),
        Task::Action { .. } => Err("a run of this backend is a text, and the task is an action".to_owned()),
    }
}

/// The agent of a profile, in this run.
fn agent(profile: &Profile, spec: &SessionSpec, ear: &Arc<Ear>, models: &Models) -> Result<Agent, String> {
    let workspace = Workspace {
        root: spec.directory.clone(),
        sight: Arc::clone(&spec.sight),
        processes: Arc::clone(&spec.processes),
        environment: spec.environment.clone(),
    };
    let runtime = runtime(workspace)?;
    let mut environment: Environment =
        run::loop_environment(Map::new()).map_err(|error| error.to_string())?;
    environment.install(&Gated(Arc::clone(ear))).map_err(|error| error.to_string())?;
    for name in &profile.tools {
        let tool: Arc<dyn Tool> = match name.as_str() {
            ASK => Arc::new(AskTool::new()?),
            name => Arc::new(ActionTool::new(&runtime, name).map_err(|error| error.to_string())?),
        };
        environment.add_tool(tool).map_err(|error| error.to_string())?;
    }
    let tools = environment.tools().map(|tool| tool.descriptor().spec()).collect::<Vec<_>>().into();
    Ok(Agent {
        id: spec.profile.profile.as_str().into(),
        instructions: profile.prompt.as_str().into(),
        inference: profile.inference(&spec.access, models)?,
        environment: Arc::new(environment),
        tools,
        settings: profile.settings.clone(),
        calls: profile.calls,
        limits: Arc::new(profile.limits.clone()),
        context: profile.context.clone(),
        // An earlier version's state that this one has no use for stops no run.
        unknown_keys: UnknownKeyPolicy::Skip,
    })
}

/// The failure kind of what our own loop failed with.
fn kind(cause: Code) -> FailureKind {
    match cause {
        Code::InferenceUnauthorized => FailureKind::ProviderAuthFailed,
        Code::InferenceRateLimited => FailureKind::ProviderRateLimited,
        Code::InferenceProvider
        | Code::InferenceOverloaded
        | Code::InferenceTimeout
        | Code::InferenceStreamInterrupted
        | Code::InferenceAllModelsUnavailable => FailureKind::ProviderUnavailable,
        Code::InferenceCancelled | Code::StateCancelled | Code::ToolCancelled => FailureKind::Cancelled,
        _ => FailureKind::BackendFailed,
    }
}
