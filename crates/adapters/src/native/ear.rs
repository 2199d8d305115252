//! Commands, sorted while the agent works: answers go to who waits for them, words to the agent, an interrupt to its turn.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use runyard_agent::checkpoint::StepCommit;
use runyard_agent::run::Inbox;
use runyard_agent::state::PersistedState;
use runyard_backend::{Answer, Command, Journal, JournalError, Redaction, Signal};
use runyard_domain::CommandId;
use runyard_domain::gate::Request;
use tokio::sync::{OwnedMutexGuard, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::words::Words;

/// So many further turns wait. The hub sends one only when none runs.
const TURNS_MAX: usize = 8;

/// Signals on their way into the journal.
pub(super) type Recording = JoinHandle<Result<(), JournalError>>;

/// What the parts of a session share.
pub(super) struct Ear {
    journal: Arc<dyn Journal>,
    /// Held by who records: one batch after the other.
    pen: Arc<tokio::sync::Mutex<()>>,
    heard: Mutex<Heard>,
    /// Cancelled when nothing more is recorded, or the session is closed.
    pub(super) stopped: CancellationToken,
}

#[derive(Default)]
struct Heard {
    waiting: HashMap<String, oneshot::Sender<Answer>>,
    asked: u64,
    turns: VecDeque<(CommandId, String)>,
    /// The turn that runs, and what is said into it.
    turn: CancellationToken,
    words: Words,
    interrupted: bool,
    /// Requests whose answer nobody waits for any more.
    withdrawn: Vec<String>,
}

impl Ear {
    pub(super) fn new(journal: Arc<dyn Journal>) -> Self {
        Ear { journal, pen: Arc::default(), heard: Mutex::default(), stopped: CancellationToken::new() }
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes signals durable. When they cannot be, everything stops.
    pub(super) async fn record(self: &Arc<Self>, batch: Vec<Signal>) -> Result<(), JournalError> {
        if batch.is_empty() {
            return Ok(());
        }
        let pen = self.pen().await;
        self.write(pen, batch).await.unwrap_or(Err(JournalError::Stopped))
    }

    /// Waits until nobody else records.
    pub(super) async fn pen(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.pen).lock_owned().await
    }

    /// Sends signals on to become durable. They do, whether anybody waits for it or not: what was sent cannot be taken back.
    pub(super) fn write(self: &Arc<Self>, pen: OwnedMutexGuard<()>, batch: Vec<Signal>) -> Recording {
        let ear = Arc::clone(self);
        tokio::spawn(async move {
            let _pen = pen;
            if ear.stopped.is_cancelled() {
                return Err(JournalError::Stopped);
            }
            let recorded = ear.journal.record(batch).await;
            if recorded.is_err() {
                ear.stopped.cancel();
            }
            recorded
        })
    }

    /// Asks for something, and waits for the answer. None where the session stops first.
    pub(super) async fn ask(self: &Arc<Self>, name: &str, request: Request) -> Option<Answer> {
        let (sender, answer) = oneshot::channel();
        let key = {
            let mut heard = self.heard();
            heard.asked += 1;
            let key = format!("{name}#{}", heard.asked);
            heard.waiting.insert(key.clone(), sender);
            key
        };
        let _waits = Waits { ear: self, key: &key };
        self.record(vec![Signal::Ask { key: key.clone(), request }]).await.ok()?;
        answer.await.ok()
    }

    /// A turn begins, or goes on from what is recorded of it: what is heard from now on is for it. Nobody may know of the turn before.
    pub(super) fn begin_turn(&self, recorded: &PersistedState) {
        let mut heard = self.heard();
        heard.turn = self.stopped.child_token();
        heard.words.begin(recorded);
        heard.interrupted = false;
    }

    /// The turn has waited, and goes on.
    pub(super) fn listen_on(&self) {
        self.heard().words.go_on();
    }

    /// The turn is over: what is said now is for none, and what came too late for it is told.
    pub(super) fn end_turn(&self) -> Vec<Signal> {
        let late = self.heard().words.end();
        let settled = late.iter().map(|command| Signal::Heard { command: *command });
        let told = (!late.is_empty()).then(|| not_said("its turn was over first"));
        told.into_iter().chain(settled).collect()
    }

    /// The words that a step holds.
    pub(super) fn heard_in(&self, step: &StepCommit, redaction: &dyn Redaction) -> Vec<Signal> {
        let heard = self.heard().words.heard_in(step, redaction);
        heard.into_iter().map(|command| Signal::Heard { command }).collect()
    }

    /// What is cancelled when the turn is interrupted, and what is said into it.
    pub(super) fn turn(&self) -> (CancellationToken, Arc<Inbox>) {
        let heard = self.heard();
        (heard.turn.clone(), heard.words.inbox())
    }

    /// Whether the turn that ran was interrupted.
    pub(super) fn was_interrupted(&self) -> bool {
        self.heard().interrupted
    }

    /// What was asked and is not any more, to be said so.
    pub(super) fn withdrawn(&self) -> Vec<Signal> {
        let withdrawn = std::mem::take(&mut self.heard().withdrawn);
        withdrawn.into_iter().map(|key| Signal::Withdraw { key }).collect()
    }

    /// The next turn, if one waits.
    pub(super) fn next_turn(&self) -> Option<(CommandId, String)> {
        self.heard().turns.pop_front()
    }

    /// Listens until the session is closed. Says with `heard` that something came.
    pub(super) async fn listen(
        self: &Arc<Self>,
        mut commands: mpsc::Receiver<Command>,
        came: mpsc::Sender<()>,
    ) {
        while let Some(command) = commands.recv().await {
            let of = match &command {
                Command::Turn { id, .. } | Command::Steer { id, .. } => Some(*id),
                Command::Interrupt { .. } | Command::Answer { .. } => None,
            };
            if let Err(unheard) = self.hear(command) {
                let told = not_said(unheard);
                let settled = of.map(|command| Signal::Heard { command });
                // The next command may be urgent. Who cannot record it has stopped everything.
                let ear = Arc::clone(self);
                tokio::spawn(async move { ear.record([told].into_iter().chain(settled).collect()).await });
            }
            let _ = came.try_send(());
        }
        self.stopped.cancel();
    }

    /// Takes a command in, or says why its words go nowhere.
    fn hear(&self, command: Command) -> Result<(), &'static str> {
        match command {
            Command::Turn { id, text } => {
                let mut heard = self.heard();
                if heard.turns.len() >= TURNS_MAX {
                    return Err("too many turns wait already");
                }
                heard.turns.push_back((id, text));
            }
            Command::Steer { id, text } => self.heard().words.say(id, text)?,
            Command::Interrupt { .. } => {
                let mut heard = self.heard();
                heard.interrupted = true;
                heard.turn.cancel();
            }
            Command::Answer { key, answer } => {
                if let Some(waiting) = self.heard().waiting.remove(&key) {
                    let _ = waiting.send(answer);
                }
            }
        }
        Ok(())
    }
}

fn not_said(why: &str) -> Signal {
    let message = format!("not said to the agent: {why}");
    Signal::Error { failure_kind: None, message, retrying: false }
}

/// Whoever goes away while it waits is forgotten.
struct Waits<'a> {
    ear: &'a Ear,
    key: &'a str,
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        let mut heard = self.ear.heard();
        if heard.waiting.remove(self.key).is_some() {
            heard.withdrawn.push(self.key.to_owned());
        }
    }
}
