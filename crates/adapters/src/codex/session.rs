//! One session: carries what codex and the commands say into the conversation, and what comes out of it to the journal and back.
//!
//! Signals are recorded before messages are sent. Closing is heard at every moment, also while a batch waits to become durable.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use runyard_backend::{BackendError, COMMANDS_MAX, Command, Ending, Journal, Signal};
use runyard_domain::run::FailureKind;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::bounds;
use super::conversation::Conversation;
use super::raw::Raw;
use super::tokens::Ledger;
use crate::process::Speaker;

/// How many signals become durable together, about.
const BATCH_SIGNALS_MAX: usize = 64;

/// How long a process that takes nothing any more may live on.
const DEAF_WAIT: Duration = Duration::from_secs(5);

/// One session.
pub(super) struct Session {
    pub(super) codex: Speaker,
    pub(super) conversation: Conversation,
    /// Which tokens of the thread are the run's own.
    pub(super) ledger: Ledger,
    pub(super) journal: Arc<dyn Journal>,
    pub(super) inbox: Inbox,
    /// The lines as they are, where the profile keeps them.
    pub(super) raw: Option<Raw>,
    /// When a process that takes nothing any more must be gone.
    pub(super) deaf_until: Option<Instant>,
}

/// Why a session stops.
enum Stop {
    /// It was closed, or nothing more is recorded.
    Closed,
    /// Codex said or did something that ends it.
    Failed(BackendError),
    /// The output of codex ended.
    Gone,
    /// It came to its end.
    Ended(Ending),
}

impl From<BackendError> for Stop {
    fn from(error: BackendError) -> Self {
        Stop::Failed(error)
    }
}

impl Session {
    /// Runs until nothing of it is left.
    pub(super) async fn run(mut self) {
        let stop = self.drive().await;
        let how = self.codex.stop().await;
        let ending = match stop {
            Stop::Closed => return,
            Stop::Ended(ending) => ending,
            Stop::Gone => {
                let message = format!("codex is gone: {how}");
                if self.conversation.has_thread() {
                    // Its conversation is in its home, so it can be opened again.
                    Ending::Died { message }
                } else {
                    Ending::failed(FailureKind::BackendFailed, message)
                }
            }
            Stop::Failed(BackendError { failure_kind, message }) => Ending::failed(failure_kind, message),
        };
        let (mut signals, _unsent) = self.conversation.take();
        signals.push(Signal::Ended { ending });
        let last = signals.last().cloned();
        let signals = self.with_raw(signals, &[]);
        // What cannot be told does not hide how it ended.
        let batches = bounds::batches(signals).unwrap_or_else(|_| vec![last.into_iter().collect()]);
        for batch in batches {
            // If it cannot be recorded there is nobody left to tell.
            let Some(Ok(())) = self.inbox.during(self.journal.record(batch)).await else { return };
        }
    }

    async fn drive(&mut self) -> Stop {
        loop {
            if let Err(stop) = self.flush().await {
                return stop;
            }
            if let Err(stop) = self.step().await {
                return stop;
            }
        }
    }

    async fn step(&mut self) -> Result<(), Stop> {
        let listens = self.conversation.listens();
        let deadline = self.conversation.deadline().into_iter().chain(self.deaf_until).min();
        tokio::select! {
            biased;
            command = self.inbox.next(listens) => self.conversation.told(command.ok_or(Stop::Closed)?),
            said = self.codex.lines.next() => {
                let mut said = Some(said?.ok_or(Stop::Gone)?);
                while let Some(message) = said {
                    self.conversation.heard(&message)?;
                    let whole = self.conversation.batch_is_whole(BATCH_SIGNALS_MAX);
                    said = if whole { None } else { self.codex.lines.ready()? };
                }
            }
            () = until(deadline) => {
                let now = Instant::now();
                if self.deaf_until.is_some_and(|until| until <= now) {
                    return Err(Stop::Gone);
                }
                self.conversation.late(now).map_err(Stop::Ended)?;
            }
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), Stop> {
        self.ledger.keep(self.conversation.before())?;
        let (signals, messages) = self.conversation.take();
        let signals = self.with_raw(signals, &messages);
        for batch in bounds::batches(signals)? {
            let recorded = self.inbox.during(self.journal.record(batch)).await;
            recorded.and_then(Result::ok).ok_or(Stop::Closed)?;
        }
        for message in messages {
            let said = self.inbox.during(self.codex.say(&message)).await.ok_or(Stop::Closed)?;
            if said.is_err() {
                // It is about to end; what it said before that may say why.
                self.deaf_until.get_or_insert_with(|| Instant::now() + DEAF_WAIT);
            }
        }
        Ok(())
    }
}

impl Session {
    /// The signals with the lines that they come from and that are about to be said, where the profile keeps them.
    fn with_raw(&mut self, signals: Vec<Signal>, messages: &[Value]) -> Vec<Signal> {
        let Some(raw) = &mut self.raw else { return signals };
        let heard = self.codex.lines.take_kept();
        let mut all: Vec<Signal> = heard.iter().filter_map(|line| raw.line(false, line)).collect();
        let told: Vec<Signal> =
            messages.iter().filter_map(|message| raw.line(true, &message.to_string())).collect();
        let last = |signal: &Signal| matches!(signal, Signal::TurnEnded { .. } | Signal::Ended { .. });
        if signals.iter().any(last) {
            all.extend(raw.left_out());
        }
        all.extend(signals);
        all.extend(told);
        all
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// The commands of a session, kept in order while it cannot take them.
pub(super) struct Inbox {
    commands: mpsc::Receiver<Command>,
    kept: VecDeque<Command>,
}

impl Inbox {
    pub(super) fn new(commands: mpsc::Receiver<Command>) -> Self {
        Inbox { commands, kept: VecDeque::new() }
    }

    /// The next command; where they cannot be taken they are only kept. None once it is closed.
    async fn next(&mut self, listens: bool) -> Option<Command> {
        loop {
            if listens && let Some(command) = self.kept.pop_front() {
                return Some(command);
            }
            if self.kept.len() >= COMMANDS_MAX {
                return std::future::pending().await;
            }
            self.kept.push_back(self.commands.recv().await?);
        }
    }

    /// Does `work` to its end; none if the session is closed first.
    async fn during<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = std::pin::pin!(work);
        tokio::select! {
            biased;
            _ = self.next(false) => None,
            done = &mut work => Some(done),
        }
    }
}
