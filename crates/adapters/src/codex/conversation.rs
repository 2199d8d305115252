//! The conversation with one codex process, without any input or output: what it says and what it is told go in, signals and
//! messages come out.
//!
//! Whoever drives it records the signals first and sends the messages then, so nothing is done before what justifies it is
//! durable. There is one thread and at most one turn at a time; `opening` holds how it begins, `turns` what becomes of a turn.

mod opening;
mod turns;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use runyard_backend::{BackendError, Command, Ending, Signal};
use runyard_domain::CommandId;
use runyard_domain::run::{FailureKind, TurnOutcome};
use serde_json::{Value, json};
use tokio::time::Instant;

pub(super) use self::opening::{Confinement, First, Opening, Terms};
use self::turns::shown_input;
use super::requests::{Asks, Verdict};
use super::tokens::Before;
use super::translate::Translation;
use super::wire::{Refusal, TurnNotice, read};

/// What codex says of a thread that is not in its home.
const LOST: &str = "no rollout found";
/// How long codex may take to answer a request.
const ANSWER_WAIT: Duration = Duration::from_secs(60);
/// The most requests that wait for an answer.
const CALLS_MAX: usize = 64;
/// How much of a method and of a refusal is repeated, in bytes.
const METHOD_BYTES_MAX: usize = 120;
const MESSAGE_BYTES_MAX: usize = 2 * 1024;
/// The code with which codex says that it has too much to do.
const OVERLOADED: i64 = -32001;

/// The conversation with one codex process.
pub(super) struct Conversation {
    opening: Opening,
    terms: Terms,
    stage: Stage,
    thread: String,
    /// Requests that wait for their answer.
    calls: BTreeMap<u64, Pending>,
    calls_made: u64,
    /// What is asked once more after a pause.
    again: Option<Again>,
    /// How many pauses were made for what is being tried.
    pauses_made: usize,
    asks: Asks,
    /// What was said into the turn, until codex shows it on its thread.
    words: VecDeque<(CommandId, String)>,
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
    Turn(Running),
    /// A turn is over, and the commands that it left are being stopped.
    Cleaning { outcome: TurnOutcome },
}

/// A turn that runs.
struct Running {
    /// Codex's id of it, once it is known.
    id: Option<String>,
    /// What was asked for.
    params: Value,
    /// Whether codex showed anything of it: then what it was told is on its thread.
    taken: bool,
    /// When it must be over, once it was interrupted.
    must_end: Option<Instant>,
}

/// A request that waits for its answer.
struct Pending {
    call: Call,
    params: Value,
    until: Instant,
}

/// A request that is made once more.
struct Again {
    at: Instant,
    call: Call,
    params: Value,
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

impl Call {
    const fn method(self) -> &'static str {
        match self {
            Call::Initialize => "initialize",
            Call::ThreadStart => "thread/start",
            Call::ThreadResume => "thread/resume",
            Call::TurnStart => "turn/start",
            Call::Steer => "turn/steer",
            Call::Clean => "thread/backgroundTerminals/clean",
        }
    }
}

impl Conversation {
    pub(super) fn new(opening: Opening, terms: Terms, translation: Translation) -> Self {
        let mut conversation = Conversation {
            opening,
            terms,
            stage: Stage::Opening,
            thread: String::new(),
            calls: BTreeMap::new(),
            calls_made: 0,
            again: None,
            pauses_made: 0,
            asks: Asks::default(),
            words: VecDeque::new(),
            translation,
            signals: Vec::new(),
            messages: Vec::new(),
        };
        conversation.signals.push(status("starting"));
        let client = json!({ "name": "runyard", "title": "Runyard", "version": env!("CARGO_PKG_VERSION") });
        let capabilities = json!({ "experimentalApi": true });
        conversation.call(Call::Initialize, json!({ "clientInfo": client, "capabilities": capabilities }));
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
            Stage::Turn(turn) => (turn.id.is_some() || self.again.is_some()) && self.calls.len() < CALLS_MAX,
        }
    }

    /// When [`late`](Self::late) is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let must_end = match &self.stage {
            Stage::Turn(turn) => turn.must_end,
            Stage::Opening | Stage::Idle | Stage::Cleaning { .. } => None,
        };
        let again = self.again.as_ref().map(|again| again.at);
        self.calls.values().map(|pending| pending.until).chain(must_end).chain(again).min()
    }

    /// A pause is over, or something did not come in time.
    pub(super) fn late(&mut self, now: Instant) -> Result<(), Ending> {
        if let Stage::Turn(Running { must_end: Some(until), .. }) = self.stage
            && until <= now
        {
            return Err(Ending::Cancelled);
        }
        if let Some(Again { call, params, .. }) = self.again.take_if(|again| again.at <= now) {
            self.call(call, params);
        }
        let due: Vec<u64> =
            self.calls.iter().filter(|(_, pending)| pending.until <= now).map(|(id, _)| *id).collect();
        for id in due {
            let Some(Pending { call, params, .. }) = self.calls.remove(&id) else { continue };
            let message = format!("codex did not answer {} in time", call.method());
            if call != Call::Steer {
                let failure_kind = FailureKind::BackendProtocolError;
                return Err(Ending::failed(failure_kind, message));
            }
            self.error(message);
            self.heard_words(params.get("input"));
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
                Stage::Opening | Stage::Turn(_) | Stage::Cleaning { .. } => {
                    self.error("a turn runs already, so no other was begun".to_owned());
                }
            },
            Command::Steer { id, text } => match self.steer(&text) {
                Ok(()) => self.words.push_back((id, text)),
                Err(why) => {
                    self.error(why.to_owned());
                    self.signals.push(Signal::Heard { command: id });
                }
            },
            Command::Interrupt { .. } => self.interrupt(),
            Command::Answer { key, answer } => {
                let Some(asked) = self.asks.take(&key) else { return };
                if answer.approved {
                    self.signals.extend(self.translation.begin(&asked.item));
                }
                self.messages.push(json!({ "id": asked.id, "result": asked.form.answer(&answer) }));
                if let (false, Some(reason), Some(declined)) =
                    (answer.approved, answer.reason, asked.form.declined())
                {
                    let steered = self.steer(&format!("{declined}: {reason}"));
                    if let Err(why) = steered {
                        self.error(why.to_owned());
                    }
                }
            }
        }
    }

    fn request(&mut self, method: &str, id: &Value, params: &Value) -> Result<(), BackendError> {
        // Outside a turn, and once it was interrupted, nothing may begin.
        let may = self.again.is_none() && matches!(&self.stage, Stage::Turn(turn) if turn.must_end.is_none());
        let verdict = if self.is_foreign(params) || !may {
            Verdict::Refuse
        } else {
            self.asks.judge(method, id, params, self.terms.confinement, &mut self.translation)?
        };
        match verdict {
            Verdict::Ask { key, request } => self.signals.push(Signal::Ask { key, request }),
            Verdict::Decline { result, why } => {
                self.messages.push(json!({ "id": id, "result": result }));
                self.error(format!("{method} of codex was declined without asking anybody: {why}"));
            }
            Verdict::Refuse => {
                let refusal = json!({ "code": -32000, "message": "declined" });
                self.messages.push(json!({ "id": id, "error": refusal }));
                let method = crate::cut::clip(method, METHOD_BYTES_MAX);
                self.error(format!("{method} of codex was refused: nobody can be asked for it"));
            }
        }
        Ok(())
    }

    fn notification(&mut self, method: &str, params: &Value) -> Result<(), BackendError> {
        if self.is_foreign(params) {
            return Ok(());
        }
        if let Stage::Turn(turn) = &mut self.stage
            && method.starts_with("item/")
        {
            turn.taken = true;
        }
        let no_turn = matches!(self.stage, Stage::Opening | Stage::Idle);
        match method {
            // What a turn left behind may still speak.
            _ if no_turn && (method.starts_with("item/") || method.starts_with("turn/")) => {}
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
                if let Some(shown) = shown_input(method, params) {
                    self.heard_words(Some(shown));
                }
                let said = self.translation.notification(method, params)?;
                self.signals.extend(said);
            }
        }
        Ok(())
    }

    fn response(&mut self, id: &Value, message: &Value) -> Result<(), BackendError> {
        let Some(pending) = id.as_u64().and_then(|id| self.calls.remove(&id)) else { return Ok(()) };
        if let Some(error) = message.get("error") {
            return self.refused(pending, &read("an error", error)?);
        }
        let result = message.get("result").unwrap_or(&Value::Null);
        match pending.call {
            Call::Initialize => {
                self.messages.push(json!({ "method": "initialized" }));
                self.open_thread(self.opening.thread.clone());
            }
            Call::ThreadStart => self.thread_opened(read("the answer to thread/start", result)?, "ready")?,
            Call::ThreadResume => {
                self.thread_opened(read("the answer to thread/resume", result)?, "resumed")?
            }
            Call::TurnStart => {
                let TurnNotice { turn } = read("the answer to turn/start", result)?;
                self.turn_is(turn);
            }
            Call::Steer => {}
            Call::Clean => self.turn_is_over(),
        }
        Ok(())
    }

    fn refused(&mut self, pending: Pending, refusal: &Refusal) -> Result<(), BackendError> {
        let (Pending { call, params, .. }, Refusal { code, message }) = (pending, refusal);
        let message = crate::cut::clip(message, MESSAGE_BYTES_MAX);
        match (call, &self.opening.first) {
            (Call::Steer, _) => {
                self.error(format!("codex did not take the word: {message}"));
                self.heard_words(params.get("input"));
                Ok(())
            }
            (Call::Clean, _) => {
                let reason = format!("a command of codex may run on after its turn: {message}");
                self.signals.push(Signal::Degraded { reason });
                self.turn_is_over();
                Ok(())
            }
            (Call::ThreadResume, First::Continue { task, lost: false }) if message.contains(LOST) => {
                self.opening.first = First::Task { text: task.clone(), announced: true };
                self.open_thread(None);
                Ok(())
            }
            _ => {
                let mut said = format!("codex refused {} ({code}): {message}", call.method());
                if message.contains(LOST) {
                    said.push_str("; if its session was closed, start a run that continues no other");
                }
                // A process that is about to be gone may hold the thread for a moment.
                let passes = *code == OVERLOADED || message.contains("has an active writer");
                let pause = if passes { self.try_again(call, params) } else { None };
                let Some(pause) = pause else {
                    return Err(BackendError::new(FailureKind::BackendFailed, said));
                };
                let message = format!("{said}; it is asked again in {} s", pause.as_secs());
                self.signals.push(Signal::Error { failure_kind: None, message, retrying: true });
                Ok(())
            }
        }
    }

    /// Asks once more after a pause, if there is one left.
    fn try_again(&mut self, call: Call, params: Value) -> Option<Duration> {
        let pause = *self.terms.pauses.get(self.pauses_made)?;
        self.pauses_made += 1;
        self.again = Some(Again { at: Instant::now() + pause, call, params });
        Some(pause)
    }

    fn withdraw_all(&mut self) {
        let keys = self.asks.drain();
        self.signals.extend(keys.into_iter().map(|key| Signal::Withdraw { key }));
    }

    fn call(&mut self, call: Call, params: Value) {
        self.calls_made += 1;
        self.messages.push(json!({ "id": self.calls_made, "method": call.method(), "params": params }));
        let until = Instant::now() + ANSWER_WAIT;
        self.calls.insert(self.calls_made, Pending { call, params, until });
    }

    /// Says something that went wrong, after which codex goes on.
    pub(super) fn error(&mut self, message: String) {
        self.signals.push(Signal::Error { failure_kind: None, message, retrying: false });
    }

    /// Whether it is about another thread than ours, which older versions call a conversation.
    fn is_foreign(&self, params: &Value) -> bool {
        let named = params.get("threadId").or_else(|| params.get("conversationId"));
        named.and_then(Value::as_str).is_some_and(|thread| thread != self.thread)
    }
}

fn status(phase: &str) -> Signal {
    Signal::Status { phase: phase.to_owned(), model: None, version: None, thread: None, usage: None }
}

#[cfg(test)]
mod tests;
