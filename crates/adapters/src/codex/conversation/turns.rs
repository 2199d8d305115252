//! What becomes of a turn: it begins, takes words, is interrupted, ends, or fails and is tried again.
//!
//! A turn that failed for a moment is tried again where that is safe: nothing that it began is still open. Codex keeps what it was
//! told and what it has done on its thread, so it is only told to go on, unless it never showed that it had taken the text.

use std::time::Duration;

use runyard_backend::{BackendError, Signal};
use runyard_domain::CommandId;
use runyard_domain::run::{FailureKind, TurnOutcome};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::super::failure::TurnError;
use super::super::wire::{Status, Turn};
use super::{Call, Conversation, Running, Stage};

/// How long a turn may go on after it was interrupted.
const INTERRUPT_WAIT: Duration = Duration::from_secs(15);

/// What an agent is told whose turn goes on after its provider failed.
pub(in super::super) const GO_ON: &str =
    "Continue where you were. The model provider had failed for a moment.";

impl Conversation {
    pub(super) fn begin_turn(&mut self, command: Option<CommandId>, text: &str) {
        self.signals.push(Signal::TurnStarted { command });
        self.start_turn(text);
    }

    pub(super) fn start_turn(&mut self, text: &str) {
        self.pauses_made = 0;
        let params = self.turn_of(text);
        self.stage = Stage::Turn(Running::new(params.clone()));
        self.call(Call::TurnStart, params);
    }

    fn turn_of(&self, text: &str) -> Value {
        json!({ "threadId": self.thread, "input": [said(text)] })
    }

    pub(super) fn turn_is(&mut self, turn: Turn) {
        if let Stage::Turn(Running { id: id @ None, .. }) = &mut self.stage {
            *id = Some(turn.id);
        }
    }

    pub(super) fn is_of_the_turn(&self, params: &Value) -> bool {
        let turn = params.get("turnId").and_then(Value::as_str);
        matches!(&self.stage, Stage::Turn(running) if running.id.as_deref() == turn)
    }

    pub(super) fn turn_completed(&mut self, turn: Turn) -> Result<(), BackendError> {
        let interrupted = match &self.stage {
            Stage::Turn(running) if self.again.is_none() && running.is(&turn.id) => {
                running.must_end.is_some()
            }
            _ => return Ok(()),
        };
        let tried_again = self.translation.tried_again.take();
        self.withdraw_all();
        // Whatever was asked about the turn is answered by its end.
        self.calls.clear();
        let outcome = match (turn.status, turn.error) {
            (Status::Completed, _) => TurnOutcome::Completed,
            (Status::Interrupted, _) => TurnOutcome::Interrupted,
            (Status::Failed, Some(_)) if interrupted => TurnOutcome::Interrupted,
            (Status::Failed, Some(error)) => return self.turn_failed(&error, tried_again.as_ref()),
            (status, _) => {
                let message = format!("codex ended a turn as {status:?} without saying why");
                return Err(BackendError::new(FailureKind::BackendResponseInvalid, message));
            }
        };
        self.stage = Stage::Cleaning { outcome };
        if self.translation.command_runs() {
            // Neither an interrupt nor the end of a turn stops a command that codex keeps running.
            let params = json!({ "threadId": self.thread });
            self.call(Call::Clean, params);
        } else {
            self.turn_is_over();
        }
        Ok(())
    }

    fn turn_failed(&mut self, error: &TurnError, before: Option<&TurnError>) -> Result<(), BackendError> {
        let safe = error.is_transient(before) && !self.translation.step_runs();
        let (kind, message) = (error.failure_kind(before), error.message());
        self.signals.extend(self.translation.close());
        let params = match &self.stage {
            Stage::Turn(running) if !running.taken => running.params.clone(),
            _ => self.turn_of(GO_ON),
        };
        let pause = if safe { self.try_again(Call::TurnStart, params.clone()) } else { None };
        let Some(pause) = pause else { return Err(BackendError::new(kind, message)) };
        let tries = self.terms.pauses.len();
        let message = format!(
            "{message}; the turn goes on in {} s (try {} of {tries})",
            pause.as_secs(),
            self.pauses_made
        );
        self.signals.push(Signal::Error { failure_kind: Some(kind), message, retrying: true });
        self.stage = Stage::Turn(Running::new(params));
        Ok(())
    }

    pub(super) fn turn_is_over(&mut self) {
        let Stage::Cleaning { outcome } = self.stage else { return };
        self.stage = Stage::Idle;
        self.words.clear();
        self.signals.extend(self.translation.close());
        self.signals.push(Signal::TurnEnded { outcome });
    }

    /// Says something into the turn, or says why it cannot.
    pub(super) fn steer(&mut self, text: &str) -> Result<(), &'static str> {
        let Stage::Turn(running) = &self.stage else {
            return Err("no turn runs that could take the word");
        };
        match (&mut self.again, &running.id) {
            // It is told with what is asked again.
            (Some(again), _) => {
                if let Some(input) = again.params.get_mut("input").and_then(Value::as_array_mut) {
                    input.push(said(text));
                }
            }
            (None, Some(turn)) => {
                let params =
                    json!({ "threadId": self.thread, "expectedTurnId": turn, "input": [said(text)] });
                self.call(Call::Steer, params);
            }
            (None, None) => return Err("the turn that could take the word has not begun"),
        }
        Ok(())
    }

    /// These words are settled: codex has them on its thread, or does not take them.
    pub(super) fn heard_words(&mut self, input: Option<&Value>) {
        let texts = input.and_then(Value::as_array).into_iter().flatten().filter_map(|part| part.get("text"));
        for text in texts {
            let at = self.words.iter().position(|(_, word)| text == word);
            let heard = at.and_then(|at| self.words.remove(at));
            self.signals.extend(heard.map(|(command, _)| Signal::Heard { command }));
        }
    }

    pub(super) fn interrupt(&mut self) {
        let Stage::Turn(running) = &mut self.stage else { return };
        if self.again.take().is_some() {
            // Between two tries nothing runs.
            self.stage = Stage::Cleaning { outcome: TurnOutcome::Interrupted };
            return self.turn_is_over();
        }
        let (Some(turn), None) = (&running.id, running.must_end) else { return };
        let params = json!({ "threadId": self.thread, "turnId": turn });
        running.must_end = Some(Instant::now() + INTERRUPT_WAIT);
        // Not waited for: codex may never answer it. The end of the turn is what counts.
        self.calls_made += 1;
        self.messages.push(json!({ "id": self.calls_made, "method": "turn/interrupt", "params": params }));
        // An answer that comes now must not start anything.
        self.withdraw_all();
    }
}

impl Running {
    fn new(params: Value) -> Self {
        Running { id: None, params, taken: false, must_end: None }
    }

    /// Whether it may be the turn of this id.
    fn is(&self, turn: &str) -> bool {
        self.id.as_deref().is_none_or(|id| id == turn)
    }
}

/// What codex shows of what it was told, once it is on its thread.
pub(super) fn shown_input<'a>(method: &str, params: &'a Value) -> Option<&'a Value> {
    let item = params.get("item").filter(|_| method == "item/completed")?;
    item.get("content").filter(|_| item.get("type").is_some_and(|kind| kind == "userMessage"))
}

fn said(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}
