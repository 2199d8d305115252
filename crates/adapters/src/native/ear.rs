//! Commands, sorted while the agent works: answers go to who waits for them, words to the agent, an interrupt to its turn.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use runyard_agent::run::Inbox;
use runyard_backend::{Answer, Command, Journal, JournalError, Signal};
use runyard_domain::CommandId;
use runyard_domain::gate::Request;
use runyard_llm::inference::Message;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// So many further turns wait. The hub sends one only when none runs.
const TURNS_MAX: usize = 8;

/// What the parts of a session share.
pub(super) struct Ear {
    journal: Arc<dyn Journal>,
    pub(super) inbox: Arc<Inbox>,
    heard: Mutex<Heard>,
    /// Cancelled when nothing more is recorded, or the session is closed.
    pub(super) stopped: CancellationToken,
}

#[derive(Default)]
struct Heard {
    waiting: HashMap<String, oneshot::Sender<Answer>>,
    asked: u64,
    turns: VecDeque<(CommandId, String)>,
    /// The turn that runs.
    turn: CancellationToken,
    interrupted: bool,
    /// Requests whose answer nobody waits for any more.
    withdrawn: Vec<String>,
}

impl Ear {
    pub(super) fn new(journal: Arc<dyn Journal>) -> Self {
        Ear { journal, inbox: Arc::default(), heard: Mutex::default(), stopped: CancellationToken::new() }
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes signals durable. When they cannot be, everything stops.
    pub(super) async fn record(&self, batch: Vec<Signal>) -> Result<(), JournalError> {
        if batch.is_empty() {
            return Ok(());
        }
        if self.stopped.is_cancelled() {
            return Err(JournalError::Stopped);
        }
        let recorded = self.journal.record(batch).await;
        if recorded.is_err() {
            self.stopped.cancel();
        }
        recorded
    }

    /// Asks for something, and waits for the answer. None where the session stops first.
    pub(super) async fn ask(&self, name: &str, request: Request) -> Option<Answer> {
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

    /// A turn begins. Gives what is cancelled when it is interrupted.
    pub(super) fn begin_turn(&self) -> CancellationToken {
        let mut heard = self.heard();
        heard.turn = self.stopped.child_token();
        heard.interrupted = false;
        heard.turn.clone()
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
    pub(super) async fn listen(&self, mut commands: mpsc::Receiver<Command>, came: mpsc::Sender<()>) {
        while let Some(command) = commands.recv().await {
            self.hear(command);
            let _ = came.try_send(());
        }
        self.stopped.cancel();
    }

    fn hear(&self, command: Command) {
        match command {
            Command::Turn { id, text } => {
                let mut heard = self.heard();
                if heard.turns.len() < TURNS_MAX {
                    heard.turns.push_back((id, text));
                }
            }
            // More words than an agent takes at once are not worth waiting for.
            Command::Steer { text, .. } => drop(self.inbox.say(Message::user(text))),
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
    }
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
