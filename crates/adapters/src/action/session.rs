//! One run that is one action: ask, call, result.

use std::sync::Arc;

use runyard_actions::{
    Action, Envelope, Failure, Idempotency, Invocation, InvocationEvent, InvocationOptions, Runtime,
    SideEffects,
};
use runyard_backend::{Ending, Heard, Hearing, Journal, Signal, Steer, Stop};
use runyard_domain::gate::{self, Request};
use runyard_domain::run::{FailureKind, ToolOutcome, TurnOutcome};
use runyard_domain::{Actor, Code, CommandId, ErrorCode, RunId};
use serde_json::Value;

use super::programs::InCustody;
use super::{AFTER, BEFORE, SURFACE, report};

/// The only request and the only call of such a run.
const KEY: &str = "ask-1";
const CALL: &str = "call-1";

/// One run that is one action.
pub(super) struct ActionSession {
    pub(super) runtime: Runtime,
    pub(super) run: RunId,
    pub(super) actor: Arc<Actor>,
    pub(super) action: Action,
    pub(super) input: Value,
    pub(super) programs: Arc<InCustody>,
    pub(super) journal: Arc<dyn Journal>,
    pub(super) hearing: Hearing,
}

/// How a session begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// With the action.
    Turn,
    /// With the action, whose turn has begun.
    Resumed,
    /// With the action done and its turn still open.
    Done,
    /// Between two turns.
    Idle,
}

/// Why a turn does not come to its own end.
enum Broken {
    Stop(Stop),
    /// The turn was interrupted; this is still to be said.
    Interrupted(Vec<Signal>),
    Ended(Vec<Signal>, Ending),
}

impl From<Stop> for Broken {
    fn from(stop: Stop) -> Self {
        Broken::Stop(stop)
    }
}

impl ActionSession {
    pub(super) async fn run(mut self, opening: Opening) {
        // However it stops, there is nobody left to tell.
        let (Ok(()) | Err(_)) = self.session(opening).await;
    }

    async fn session(&mut self, opening: Opening) -> Result<(), Stop> {
        match opening {
            Opening::Turn => self.record(vec![status("ready", BEFORE), begun(None)]).await?,
            Opening::Resumed => self.record(vec![status("resumed", BEFORE)]).await?,
            Opening::Done => {
                self.record(vec![status("resumed", AFTER), over(TurnOutcome::Completed)]).await?
            }
            Opening::Idle => self.record(vec![resumed()]).await?,
        }
        if matches!(opening, Opening::Turn | Opening::Resumed) {
            match self.turn().await {
                Ok(()) => {}
                Err(Broken::Stop(stop)) => return Err(stop),
                Err(Broken::Interrupted(mut batch)) => {
                    batch.push(over(TurnOutcome::Interrupted));
                    self.record(batch).await?;
                }
                Err(Broken::Ended(mut batch, ending)) => {
                    batch.push(Signal::Ended { ending });
                    return self.record(batch).await;
                }
            }
        }
        loop {
            let (command, _text) = self.hearing.next_turn().await?;
            let text =
                "This run is one action, and that is over. Start another run for another one.".to_owned();
            let said = Signal::Message { item: format!("message-{command}"), text };
            let turn = vec![resumed(), begun(Some(command)), said, over(TurnOutcome::Completed)];
            self.record(turn).await?;
        }
    }

    async fn turn(&mut self) -> Result<(), Broken> {
        // Nobody is asked about what cannot be done anyway.
        if let Err(error) = self.runtime.check(self.invocation()).await {
            return Err(Broken::Ended(Vec::new(), failed(error.code(), error.message())));
        }
        self.ask().await?;
        let call = report::call(CALL, &self.action, &self.input, is_idempotent(&self.action));
        self.record(vec![call]).await?;
        let envelope = match self.invoke().await {
            Ok(envelope) => envelope,
            Err(Stop::Interrupted) => {
                let stopped = result(ToolOutcome::Cancelled, "stopped".to_owned());
                return Err(Broken::Interrupted(vec![stopped]));
            }
            Err(stop) => return Err(stop.into()),
        };
        match &envelope.outcome {
            Ok(data) => {
                let done = result(ToolOutcome::Succeeded, report::took(&envelope));
                let said = Signal::Message { item: "message-1".to_owned(), text: report::data(data) };
                let batch = vec![done, said, status("working", AFTER), over(TurnOutcome::Completed)];
                Ok(self.record(batch).await?)
            }
            Err(Failure { code, message, .. }) => {
                let ending = failed(code, message);
                let said = report::line(&format!("{}: {message}", code.as_str()));
                Err(Broken::Ended(vec![result(ToolOutcome::Failed, said)], ending))
            }
        }
    }

    /// Returns when the gate said yes.
    async fn ask(&mut self) -> Result<(), Broken> {
        let request = Request::Action {
            action: self.action.name().to_owned(),
            side_effects: side_effects(&self.action),
            input: self.input.clone(),
        };
        self.hearing.expect(KEY);
        self.record(vec![Signal::Ask { key: KEY.to_owned(), request }]).await?;
        let answer = loop {
            match self.hearing.heard().await {
                Ok(Heard::Answer(answer)) => break answer,
                Ok(Heard::Steer(steer)) => self.refuse_steer(steer).await?,
                Err(Stop::Interrupted) => {
                    return Err(Broken::Interrupted(vec![Signal::Withdraw { key: KEY.to_owned() }]));
                }
                Err(stop) => return Err(stop.into()),
            }
        };
        if answer.approved {
            return match self.hearing.check() {
                Ok(()) => Ok(()),
                Err(_) => Err(Broken::Interrupted(Vec::new())),
            };
        }
        let why = answer.reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        let message = report::line(&format!("{} was not allowed{why}", self.action.name()));
        Err(Broken::Ended(Vec::new(), Ending::Blocked { code: Code::PermissionDenied, message, step: None }))
    }

    fn invocation(&self) -> Invocation {
        let options = InvocationOptions {
            idempotency_key: Some(format!("{}:{CALL}", self.run)),
            ..InvocationOptions::default()
        };
        Invocation::new(self.action.name(), self.input.clone(), SURFACE, Arc::clone(&self.actor))
            .options(options)
            .starting(Arc::<InCustody>::clone(&self.programs))
    }

    /// Follows the action to its end. Given up, it is cancelled.
    async fn invoke(&mut self) -> Result<Envelope, Stop> {
        // The gate's yes is the confirmation.
        let mut events = self.runtime.stream(self.invocation().approved());
        loop {
            let event = tokio::select! {
                biased;
                heard = self.hearing.heard() => {
                    if let Heard::Steer(steer) = heard? {
                        self.refuse_steer(steer).await?;
                    }
                    continue;
                }
                event = events.next() => event,
            };
            match event {
                Some(InvocationEvent::Result(envelope)) => return Ok(*envelope),
                Some(event) => self.record(report::output(CALL, &event)).await?,
                // A stream ends with its result, so this cannot be; waiting for ever would be worse than stopping.
                None => return Err(Stop::Interrupted),
            }
        }
    }

    async fn refuse_steer(&mut self, steer: Steer) -> Result<(), Stop> {
        let message = "a run that is one action takes no words".to_owned();
        let refused = Signal::Error { failure_kind: None, message, retrying: false };
        self.record(vec![refused, Signal::Heard { command: steer.id }]).await
    }

    async fn record(&mut self, batch: Vec<Signal>) -> Result<(), Stop> {
        self.hearing.record(&*self.journal, batch).await
    }
}

/// The end of a run whose action failed, or cannot be called as it is.
fn failed(code: &ErrorCode, message: &str) -> Ending {
    let message = report::line(&format!("{}: {message}", code.as_str()));
    // A code of the application's own is told in words.
    let cause = match code {
        ErrorCode::Known(code) => Some(*code),
        ErrorCode::Application(_) => None,
    };
    Ending::Failed { failure_kind: FailureKind::BackendFailed, message, cause }
}

fn status(phase: &str, thread: &str) -> Signal {
    let (phase, thread) = (phase.to_owned(), Some(thread.to_owned()));
    Signal::Status { phase, model: None, version: None, thread, usage: None }
}

/// Between two turns the action is over, whatever came of it.
fn resumed() -> Signal {
    status("resumed", AFTER)
}

fn begun(command: Option<CommandId>) -> Signal {
    Signal::TurnStarted { command }
}

fn over(outcome: TurnOutcome) -> Signal {
    Signal::TurnEnded { outcome }
}

fn result(outcome: ToolOutcome, summary: String) -> Signal {
    Signal::ToolResult { call: CALL.to_owned(), outcome, code: None, summary }
}

/// Whether doing it twice is the same as doing it once: as declared, and for what only looks.
fn is_idempotent(action: &Action) -> bool {
    let spec = action.spec();
    spec.idempotency == Idempotency::Idempotent || spec.side_effects == SideEffects::Read
}

fn side_effects(action: &Action) -> gate::SideEffects {
    match action.spec().side_effects {
        SideEffects::Read => gate::SideEffects::Read,
        SideEffects::Write => gate::SideEffects::Write,
        SideEffects::Destructive => gate::SideEffects::Destructive,
    }
}
