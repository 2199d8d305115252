//! The conversation with one codex process, without any input or output: what it says and what it is told go in, signals and
//! messages come out.
//!
//! Whoever drives it records the signals first and sends the messages then, so nothing is done before what justifies it is
//! durable. There is one thread and at most one turn at a time.

use std::collections::BTreeMap;
use std::time::Duration;

use runyard_backend::{BackendError, Command, Ending, Signal};
use runyard_domain::CommandId;
use runyard_domain::run::{FailureKind, TurnOutcome};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::requests::{Asks, Verdict};
use super::tokens::Before;
use super::translate::Translation;
use super::wire::{Refusal, Status, ThreadOpened, Turn, TurnNotice, read};

/// How long codex may take to answer a request.
const ANSWER_WAIT: Duration = Duration::from_secs(60);
/// How long a turn may go on after it was interrupted.
const INTERRUPT_WAIT: Duration = Duration::from_secs(15);
/// The most requests that wait for an answer.
const CALLS_MAX: usize = 64;

/// What an agent is told whose turn goes on after its process died. It knows its call only as aborted.
pub(super) const CONTINUE: &str = "Continue where you were. The pause was not a refusal; if you were waiting for permission, ask \
                                   again for exactly the same step.";

/// How it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Opening {
    /// The thread to go on with.
    pub(super) thread: Option<String>,
    /// What happens first.
    pub(super) first: First,
}

/// What happens first in a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum First {
    /// The run's first turn. It is announced, unless it was before.
    Task { text: String, announced: bool },
    /// The turn that was running goes on. Codex keeps no thread in which no turn began; then it is begun anew with the task,
    /// unless there is reason to think that the thread was lost.
    Continue { task: String, lost: bool },
    /// Nothing, until a turn is asked for.
    Wait,
}

/// What confines codex: see the module's page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Confinement {
    /// Whoever started the process; codex asks before each step.
    Outside,
    /// No step at all is allowed.
    NoStep,
}

impl Confinement {
    const fn sandbox(self) -> (&'static str, &'static str) {
        match self {
            Confinement::Outside => ("danger-full-access", "dangerFullAccess"),
            Confinement::NoStep => ("read-only", "readOnly"),
        }
    }
}

/// The conversation with one codex process.
pub(super) struct Conversation {
    opening: Opening,
    directory: String,
    confinement: Confinement,
    stage: Stage,
    thread: String,
    /// Requests that wait for their answer.
    calls: BTreeMap<u64, (Call, Instant)>,
    calls_made: u64,
    asks: Asks,
    translation: Translation,
    signals: Vec<Signal>,
    messages: Vec<Value>,
}

enum Stage {
    /// The thread is not open yet.
    Opening,
    /// No turn runs.
    Idle,
    /// A turn runs, or was asked for.
    Turn { id: Option<String>, must_end: Option<Instant> },
    /// A turn is over, and the commands that it left are being stopped.
    Cleaning { outcome: TurnOutcome },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Initialize,
    ThreadStart,
    ThreadResume,
    TurnStart,
    Steer,
    Clean,
}

impl Conversation {
    pub(super) fn new(
        opening: Opening,
        directory: String,
        confinement: Confinement,
        translation: Translation,
    ) -> Self {
        let mut conversation = Conversation {
            opening,
            directory,
            confinement,
            stage: Stage::Opening,
            thread: String::new(),
            calls: BTreeMap::new(),
            calls_made: 0,
            asks: Asks::default(),
            translation,
            signals: Vec::new(),
            messages: Vec::new(),
        };
        conversation.signals.push(status("starting"));
        let client = json!({ "name": "runyard", "title": "Runyard", "version": env!("CARGO_PKG_VERSION") });
        conversation.call(
            Call::Initialize,
            "initialize",
            json!({ "clientInfo": client, "capabilities": { "experimentalApi": true } }),
        );
        conversation
    }

    /// What the thread had used before this run, as far as it is known by now.
    pub(super) fn before(&self) -> Before {
        self.translation.before
    }

    /// The signals to record, and then the messages to send.
    pub(super) fn take(&mut self) -> (Vec<Signal>, Vec<Value>) {
        (std::mem::take(&mut self.signals), std::mem::take(&mut self.messages))
    }

    /// Whether what waits is to be recorded before anything else is heard: it is enough, or something is to be answered.
    pub(super) fn batch_is_whole(&self, signals_max: usize) -> bool {
        self.signals.len() >= signals_max
            || !self.messages.is_empty()
            || matches!(self.signals.last(), Some(Signal::Ask { .. }))
    }

    /// Whether commands can be taken now; else they wait.
    pub(super) fn listens(&self) -> bool {
        match &self.stage {
            Stage::Opening | Stage::Cleaning { .. } => false,
            Stage::Idle => true,
            Stage::Turn { id, .. } => id.is_some() && self.calls.len() < CALLS_MAX,
        }
    }

    /// When [`late`](Self::late) is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let must_end = match self.stage {
            Stage::Turn { must_end, .. } => must_end,
            Stage::Opening | Stage::Idle | Stage::Cleaning { .. } => None,
        };
        self.calls.values().map(|(_, until)| *until).chain(must_end).min()
    }

    /// Something did not come in time.
    pub(super) fn late(&mut self, now: Instant) -> Result<(), Ending> {
        if let Stage::Turn { must_end: Some(until), .. } = self.stage
            && until <= now
        {
            return Err(Ending::Cancelled);
        }
        let due: Vec<u64> =
            self.calls.iter().filter(|(_, (_, until))| *until <= now).map(|(id, _)| *id).collect();
        for id in due {
            let Some((call, _)) = self.calls.remove(&id) else { continue };
            let message = format!("codex did not answer {call:?} in time");
            if call != Call::Steer {
                let failure_kind = FailureKind::BackendProtocolError;
                return Err(Ending::Failed { failure_kind, message });
            }
            self.error(message);
        }
        Ok(())
    }

    /// Takes what codex says. An error ends the session; what was said before it still counts.
    pub(super) fn heard(&mut self, message: &Value) -> Result<(), BackendError> {
        let method = message.get("method").and_then(Value::as_str);
        let params = message.get("params").unwrap_or(&Value::Null);
        match (method, message.get("id")) {
            (Some(method), Some(id)) => self.request(method, id, params),
            (Some(method), None) => self.notification(method, params),
            (None, Some(id)) => self.response(id, message),
            (None, None) => {
                let text = "a message of codex is neither request nor answer nor notification";
                Err(BackendError::new(FailureKind::BackendProtocolError, text))
            }
        }
    }

    /// Takes a command.
    pub(super) fn told(&mut self, command: Command) {
        match command {
            Command::Turn { id, text } => match self.stage {
                Stage::Idle => self.begin_turn(Some(id), &text),
                Stage::Opening | Stage::Turn { .. } | Stage::Cleaning { .. } => {
                    self.error("a turn runs already, so no other was begun".to_owned());
                }
            },
            Command::Steer { text, .. } => self.steer(&text),
            Command::Interrupt { .. } => self.interrupt(),
            Command::Answer { key, answer } => {
                let Some(asked) = self.asks.take(&key) else { return };
                let decision = if answer.approved {
                    self.signals.extend(self.translation.begin(&asked.item));
                    "accept"
                } else {
                    "decline"
                };
                self.messages.push(json!({ "id": asked.id, "result": { "decision": decision } }));
                // Codex has no place for a reason in its answer.
                if let (false, Some(reason)) = (answer.approved, answer.reason) {
                    self.steer(&format!("The step was declined: {reason}"));
                }
            }
        }
    }

    fn request(&mut self, method: &str, id: &Value, params: &Value) -> Result<(), BackendError> {
        let foreign = self.is_foreign(params);
        let verdict = match self.confinement {
            _ if foreign => Verdict::Refuse,
            Confinement::NoStep => Verdict::decline(method, "the run is read-only"),
            Confinement::Outside => self.asks.judge(method, id, params, &mut self.translation)?,
        };
        match verdict {
            Verdict::Ask { key, request } => self.signals.push(Signal::Ask { key, request }),
            Verdict::Decline(why) => {
                self.messages.push(json!({ "id": id, "result": { "decision": "decline" } }));
                self.error(format!("{method} of codex was declined without asking anybody: {why}"));
            }
            Verdict::Refuse => {
                let refusal = json!({ "code": -32000, "message": "declined" });
                self.messages.push(json!({ "id": id, "error": refusal }));
                self.error(format!("{method} of codex was refused: nobody can be asked for it"));
            }
        }
        Ok(())
    }

    fn notification(&mut self, method: &str, params: &Value) -> Result<(), BackendError> {
        if self.is_foreign(params) {
            return Ok(());
        }
        match method {
            "turn/started" => {
                let TurnNotice { turn } = read(method, params)?;
                self.turn_is(turn);
            }
            "turn/completed" => {
                let TurnNotice { turn } = read(method, params)?;
                return self.turn_completed(turn);
            }
            "serverRequest/resolved" => {
                let resolved = params.get("requestId").and_then(|id| self.asks.resolved(id));
                self.signals.extend(resolved.map(|key| Signal::Withdraw { key }));
            }
            // A thread that is opened again says first what it used by then.
            "thread/tokenUsage/updated" if !self.is_of_the_turn(params) => {
                self.translation.used_before(params)?;
            }
            _ => {
                let said = self.translation.notification(method, params)?;
                self.signals.extend(said);
            }
        }
        Ok(())
    }

    fn is_of_the_turn(&self, params: &Value) -> bool {
        let turn = params.get("turnId").and_then(Value::as_str);
        matches!(&self.stage, Stage::Turn { id, .. } if id.as_deref() == turn)
    }

    fn response(&mut self, id: &Value, message: &Value) -> Result<(), BackendError> {
        let Some((call, _)) = id.as_u64().and_then(|id| self.calls.remove(&id)) else { return Ok(()) };
        if let Some(error) = message.get("error") {
            return self.refused(call, &read("an error", error)?);
        }
        let result = message.get("result").unwrap_or(&Value::Null);
        match call {
            Call::Initialize => {
                self.messages.push(json!({ "method": "initialized" }));
                self.open_thread(self.opening.thread.clone());
                Ok(())
            }
            Call::ThreadStart => self.thread_opened(read("the answer to thread/start", result)?, "ready"),
            Call::ThreadResume => self.thread_opened(read("the answer to thread/resume", result)?, "resumed"),
            Call::TurnStart => {
                let TurnNotice { turn } = read("the answer to turn/start", result)?;
                self.turn_is(turn);
                Ok(())
            }
            Call::Steer => Ok(()),
            Call::Clean => {
                self.turn_is_over();
                Ok(())
            }
        }
    }

    fn refused(&mut self, call: Call, refusal: &Refusal) -> Result<(), BackendError> {
        let Refusal { code, message } = refusal;
        match (call, &self.opening.first) {
            (Call::Steer, _) => {
                self.error(format!("codex did not take the word: {message}"));
                Ok(())
            }
            (Call::Clean, _) => {
                let reason = format!("a command of codex may run on after its turn: {message}");
                self.signals.push(Signal::Degraded { reason });
                self.turn_is_over();
                Ok(())
            }
            (Call::ThreadResume, First::Continue { task, lost: false })
                if message.contains("no rollout found") =>
            {
                self.opening.first = First::Task { text: task.clone(), announced: true };
                self.open_thread(None);
                Ok(())
            }
            (call, _) => {
                let message = format!("codex refused {call:?} ({code}): {message}");
                Err(BackendError::new(FailureKind::BackendFailed, message))
            }
        }
    }

    /// Whether codex has opened the thread: from then on it is in codex's home.
    pub(super) fn has_thread(&self) -> bool {
        !self.thread.is_empty()
    }

    fn open_thread(&mut self, thread: Option<String>) {
        let (sandbox, _) = self.confinement.sandbox();
        let mut params = json!({ "cwd": self.directory, "approvalPolicy": "untrusted", "sandbox": sandbox });
        match thread {
            None => self.call(Call::ThreadStart, "thread/start", params),
            Some(thread) => {
                params["threadId"] = thread.into();
                params["excludeTurns"] = true.into();
                self.call(Call::ThreadResume, "thread/resume", params);
            }
        }
    }

    fn thread_opened(&mut self, opened: ThreadOpened, phase: &str) -> Result<(), BackendError> {
        let (_, sandbox) = self.confinement.sandbox();
        if opened.approval_policy != "untrusted" || opened.sandbox.kind != sandbox {
            let text = "codex opened the thread under another policy than it was told";
            return Err(BackendError::new(FailureKind::BackendProtocolError, text));
        }
        self.thread = opened.thread.id;
        self.stage = Stage::Idle;
        let mut known = status(phase);
        if let Signal::Status { model, version, thread, .. } = &mut known {
            *model = Some(opened.model);
            *version = Some(opened.thread.cli_version);
            *thread = Some(self.thread.clone());
        }
        self.signals.push(known);
        if self.confinement == Confinement::NoStep {
            let reason = "read-only: codex may run no command and change no file, since one that is accepted may run again outside \
                          its own sandbox";
            self.signals.push(Signal::Degraded { reason: reason.to_owned() });
        }
        // The thread and its first turn become durable together: a thread that is known has a turn.
        match std::mem::replace(&mut self.opening.first, First::Wait) {
            First::Task { text, announced: false } => self.begin_turn(None, &text),
            First::Task { text, announced: true } => self.start_turn(&text),
            First::Continue { .. } => self.start_turn(CONTINUE),
            First::Wait => {}
        }
        Ok(())
    }

    fn begin_turn(&mut self, command: Option<CommandId>, text: &str) {
        self.signals.push(Signal::TurnStarted { command });
        self.start_turn(text);
    }

    fn start_turn(&mut self, text: &str) {
        self.stage = Stage::Turn { id: None, must_end: None };
        let params = json!({ "threadId": self.thread, "input": [{ "type": "text", "text": text }] });
        self.call(Call::TurnStart, "turn/start", params);
    }

    fn turn_is(&mut self, turn: Turn) {
        if let Stage::Turn { id: id @ None, .. } = &mut self.stage {
            *id = Some(turn.id);
        }
    }

    fn turn_completed(&mut self, turn: Turn) -> Result<(), BackendError> {
        let ours = match &self.stage {
            Stage::Turn { id, .. } => id.as_ref().is_none_or(|id| *id == turn.id),
            Stage::Opening | Stage::Idle | Stage::Cleaning { .. } => false,
        };
        if !ours {
            return Ok(());
        }
        let tried_again = self.translation.tried_again.take();
        self.withdraw_all();
        // Whatever was asked about the turn is answered by its end.
        self.calls.clear();
        let outcome = match (turn.status, turn.error) {
            (Status::Completed, _) => TurnOutcome::Completed,
            (Status::Interrupted, _) => TurnOutcome::Interrupted,
            (Status::Failed, Some(error)) => {
                self.signals.extend(self.translation.close());
                return Err(error.into_failure(tried_again.as_ref()));
            }
            (status, _) => {
                let message = format!("codex ended a turn as {status:?} without saying why");
                return Err(BackendError::new(FailureKind::BackendResponseInvalid, message));
            }
        };
        self.stage = Stage::Cleaning { outcome };
        if self.translation.command_runs() {
            // Neither an interrupt nor the end of a turn stops a command that codex keeps running.
            let params = json!({ "threadId": self.thread });
            self.call(Call::Clean, "thread/backgroundTerminals/clean", params);
        } else {
            self.turn_is_over();
        }
        Ok(())
    }

    fn turn_is_over(&mut self) {
        let Stage::Cleaning { outcome } = self.stage else { return };
        self.stage = Stage::Idle;
        self.signals.extend(self.translation.close());
        self.signals.push(Signal::TurnEnded { outcome });
    }

    fn steer(&mut self, text: &str) {
        let Stage::Turn { id: Some(turn), .. } = &self.stage else {
            return self.error("no turn runs that could take the word".to_owned());
        };
        let input = json!([{ "type": "text", "text": text }]);
        let params = json!({ "threadId": self.thread, "expectedTurnId": turn, "input": input });
        self.call(Call::Steer, "turn/steer", params);
    }

    fn interrupt(&mut self) {
        let Stage::Turn { id: Some(turn), must_end: must_end @ None } = &mut self.stage else { return };
        *must_end = Some(Instant::now() + INTERRUPT_WAIT);
        let params = json!({ "threadId": self.thread, "turnId": turn });
        // Not waited for: codex may never answer it. The end of the turn is what counts.
        self.calls_made += 1;
        self.messages.push(json!({ "id": self.calls_made, "method": "turn/interrupt", "params": params }));
        // An answer that comes now must not start anything.
        self.withdraw_all();
    }

    fn withdraw_all(&mut self) {
        let keys = self.asks.drain();
        self.signals.extend(keys.into_iter().map(|key| Signal::Withdraw { key }));
    }

    fn call(&mut self, call: Call, method: &str, params: Value) {
        self.calls_made += 1;
        self.calls.insert(self.calls_made, (call, Instant::now() + ANSWER_WAIT));
        self.messages.push(json!({ "id": self.calls_made, "method": method, "params": params }));
    }

    fn error(&mut self, message: String) {
        self.signals.push(Signal::Error { failure_kind: None, message, retrying: false });
    }

    /// Whether it is about another thread than ours.
    fn is_foreign(&self, params: &Value) -> bool {
        params.get("threadId").and_then(Value::as_str).is_some_and(|thread| thread != self.thread)
    }
}

fn status(phase: &str) -> Signal {
    Signal::Status { phase: phase.to_owned(), model: None, version: None, thread: None, usage: None }
}

#[cfg(test)]
mod tests;
