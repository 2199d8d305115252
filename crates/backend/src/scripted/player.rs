//! Plays a script: one session of a scripted agent.
//!
//! The place in the script becomes durable in the batch of the step's result, so a session that is opened again goes on exactly
//! after the last step that was recorded. Whether an open step may be repeated is not decided here.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use runyard_domain::gate::Request;
use runyard_domain::run::{TurnOutcome, Usage};
use runyard_domain::{CommandId, RunId};

use super::position::Position;
use super::script::{OnDenied, Script, Step, TEXT_BYTES_MAX};
use crate::{Answer, Ending, Heard, Hearing, Journal, Processes, Signal, Steer, Stop};

/// One session of a scripted agent.
pub(super) struct Player {
    pub(super) run: RunId,
    pub(super) task: String,
    pub(super) script: Arc<Script>,
    pub(super) position: Position,
    pub(super) journal: Arc<dyn Journal>,
    pub(super) hearing: Hearing,
    pub(super) processes: Arc<dyn Processes>,
    pub(super) directory: PathBuf,
    pub(super) environment: BTreeMap<String, String>,
    /// What is to be said of the step that an interrupt ends.
    pub(super) last_words: Vec<Signal>,
}

/// How a session begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// With a turn.
    Turn,
    /// In the middle of one.
    Resumed,
    /// Between two.
    Idle,
}

/// What came of a step.
pub(super) struct Done {
    pub(super) signals: Vec<Signal>,
    pub(super) turn: Turn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    GoesOn,
    IsOver,
}

impl Done {
    pub(super) fn with(signals: Vec<Signal>) -> Self {
        Done { signals, turn: Turn::GoesOn }
    }
}

/// Why a turn does not come to its own end.
pub(super) enum Broken {
    Stop(Stop),
    Ended(Ending),
}

impl From<Stop> for Broken {
    fn from(stop: Stop) -> Self {
        Broken::Stop(stop)
    }
}

impl Player {
    /// Plays until the session is closed, nothing more is recorded, or the script comes to an end by itself.
    pub(super) async fn play(mut self, opening: Opening) {
        // However it stops, there is nobody left to tell.
        let (Ok(()) | Err(_)) = self.session(opening).await;
    }

    async fn session(&mut self, opening: Opening) -> Result<(), Stop> {
        match opening {
            Opening::Turn => self.begin_turn(None).await?,
            Opening::Resumed | Opening::Idle => self.record(vec![self.status("resumed")]).await?,
        }
        let mut playing = opening != Opening::Idle;
        loop {
            if playing {
                match self.turn().await {
                    Ok(()) => {}
                    Err(Broken::Stop(Stop::Interrupted)) => {
                        let mut batch = std::mem::take(&mut self.last_words);
                        batch.push(Signal::TurnEnded { outcome: TurnOutcome::Interrupted });
                        self.record(batch).await?;
                    }
                    Err(Broken::Stop(stop)) => return Err(stop),
                    Err(Broken::Ended(ending)) => return self.record(vec![Signal::Ended { ending }]).await,
                }
            }
            let (command, _text) = self.hearing.next_turn().await?;
            self.position.next_turn();
            self.begin_turn(Some(command)).await?;
            playing = true;
        }
    }

    async fn begin_turn(&mut self, command: Option<CommandId>) -> Result<(), Stop> {
        let batch = vec![self.status("ready"), Signal::TurnStarted { command }];
        self.record(batch).await
    }

    /// What is left of the turn.
    async fn turn(&mut self) -> Result<(), Broken> {
        let script = Arc::clone(&self.script);
        let steps = script.turn(self.position.turn);
        let over = Signal::TurnEnded { outcome: TurnOutcome::Completed };
        while let Some(step) = steps.get(self.position.done) {
            self.between_steps().await?;
            let Done { signals: mut batch, turn } = self.step(step).await?;
            self.position.done += 1;
            batch.push(self.status("working"));
            let last = turn == Turn::IsOver || self.position.done >= steps.len();
            if last {
                // What was said into the turn until now was said to nobody else.
                batch.extend(std::iter::from_fn(|| self.hearing.steer()).flat_map(heard));
                batch.push(over.clone());
            }
            self.record(batch).await?;
            if last {
                return Ok(());
            }
        }
        Ok(self.record(vec![over]).await?)
    }

    async fn between_steps(&mut self) -> Result<(), Stop> {
        self.hearing.check()?;
        while let Some(steer) = self.hearing.steer() {
            self.acknowledge(steer).await?;
        }
        match self.hearing.take_missed() {
            0 => Ok(()),
            missed => {
                let message = format!("{missed} words came too fast and were not heard");
                self.record(vec![Signal::Error { failure_kind: None, message, retrying: false }]).await
            }
        }
    }

    async fn step(&mut self, step: &Step) -> Result<Done, Broken> {
        match step {
            Step::Say(text) => self.say(text).await,
            Step::Deltas { count, piece } => self.deltas(*count, piece).await,
            Step::Read { path, or_first, then_say, on_denied } => {
                self.read(path, *or_first, then_say.as_deref(), *on_denied).await
            }
            Step::Shell { command, idempotent, on_denied } => {
                self.shell(command, *idempotent, *on_denied).await
            }
            Step::Write { path, content, on_denied } => self.write(path, content, *on_denied).await,
            Step::Ask { prompt, schema, then_say, on_denied } => {
                self.question(prompt, schema, then_say.as_deref(), *on_denied).await
            }
            Step::Status { model, usage } => Ok(Done::with(vec![self.known(model.clone(), *usage)])),
            Step::Error { message, failure_kind, retrying } => Ok(Done::with(vec![Signal::Error {
                failure_kind: *failure_kind,
                message: self.fill(message, &[]),
                retrying: *retrying,
            }])),
            Step::Degraded(reason) => {
                Ok(Done::with(vec![Signal::Degraded { reason: self.fill(reason, &[]) }]))
            }
            Step::Fail { failure_kind, message } => {
                let (failure_kind, message) = (*failure_kind, self.fill(message, &[]));
                Err(Broken::Ended(Ending::failed(failure_kind, message)))
            }
            Step::Block { code, message } => Err(Broken::Ended(Ending::Blocked {
                code: *code,
                message: self.fill(message, &[]),
                step: None,
            })),
            Step::WaitForCommand => loop {
                if let Heard::Steer(steer) = self.hearing.heard().await? {
                    return Ok(Done::with(heard(steer).into()));
                }
            },
        }
    }

    /// Asks, and waits for the answer. A no comes back as what the step then came to.
    pub(super) async fn ask(
        &mut self,
        request: Request,
        what: &str,
        on_denied: OnDenied,
    ) -> Result<Result<Answer, Done>, Stop> {
        let key = self.position.name("ask");
        self.hearing.expect(&key);
        self.record(vec![Signal::Ask { key: key.clone(), request }]).await?;
        let answer = loop {
            match self.hearing.heard().await {
                Ok(Heard::Answer(answer)) => break answer,
                Ok(Heard::Steer(steer)) => self.acknowledge(steer).await?,
                Err(stop) => {
                    self.last_words.push(Signal::Withdraw { key });
                    return Err(stop);
                }
            }
        };
        if answer.approved {
            return Ok(Ok(answer));
        }
        let why = answer.reason.map(|reason| format!(" The reason: {reason}")).unwrap_or_default();
        let text = clip(format!("I was not allowed to {what}, so I did not.{why}"));
        let turn = match on_denied {
            OnDenied::Continue => Turn::GoesOn,
            OnDenied::Stop => Turn::IsOver,
        };
        Ok(Err(Done { signals: vec![self.message(text)], turn }))
    }

    pub(super) async fn acknowledge(&mut self, steer: Steer) -> Result<(), Stop> {
        self.record(heard(steer).into()).await
    }

    pub(super) async fn record(&mut self, batch: Vec<Signal>) -> Result<(), Stop> {
        self.hearing.record(&*self.journal, batch).await
    }

    /// The step's one message.
    pub(super) fn message(&self, text: String) -> Signal {
        Signal::Message { item: self.position.name("message"), text }
    }

    fn status(&self, phase: &str) -> Signal {
        let (phase, thread) = (phase.to_owned(), Some(self.position.to_string()));
        Signal::Status { phase, model: None, version: None, thread, usage: None }
    }

    fn known(&self, model: Option<String>, usage: Option<Usage>) -> Signal {
        Signal::Status { phase: "working".to_owned(), model, version: None, thread: None, usage }
    }

    /// The text with its placeholders filled in. What was filled in is not looked through again.
    pub(super) fn fill(&self, text: &str, values: &[(&str, &str)]) -> String {
        let run = self.run.to_string();
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('{') {
            filled.push_str(&rest[..at]);
            rest = &rest[at..];
            let known = [("{task}", self.task.as_str()), ("{run}", run.as_str())];
            let value = values.iter().chain(&known).find(|(name, _)| rest.starts_with(name));
            let (name, value) = value.copied().unwrap_or(("{", "{"));
            filled.push_str(value);
            rest = &rest[name.len()..];
        }
        filled.push_str(rest);
        clip(filled)
    }
}

fn heard(steer: Steer) -> [Signal; 2] {
    let text = clip(format!("I heard you: {}", steer.text));
    [Signal::Message { item: format!("heard-{}", steer.id), text }, Signal::Heard { command: steer.id }]
}

/// The text within its limit.
pub(super) fn clip(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
    text
}
