//! A session's ear: sorts the commands that come in while the session does something else.
//!
//! Closing is heard at every moment, also while a batch waits to become durable. It decides nothing: what an interrupt or a
//! word means is the session's own matter.

use std::collections::VecDeque;
use std::future::Future;

use runyard_domain::CommandId;
use tokio::sync::mpsc;

use crate::{Answer, Command, Journal, JournalError, Signal};

/// How many words into a turn wait at most; of further ones only the count is kept.
const STEERS_MAX: usize = 64;

/// Why a session stops what it is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It was closed: nobody holds its sender any more.
    Closed,
    /// Nothing more is recorded.
    Journal(JournalError),
    /// The turn was interrupted; the session goes on with the next one.
    Interrupted,
}

/// What a session that waits hears.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    /// The answer to what it asked.
    Answer(Answer),
    /// A word into the turn.
    Steer(Steer),
}

/// A word into the turn that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steer {
    /// The command.
    pub id: CommandId,
    /// What is said.
    pub text: String,
}

/// A session's ear.
pub struct Hearing {
    commands: mpsc::Receiver<Command>,
    awaited: Option<String>,
    answer: Option<Answer>,
    steers: VecDeque<Steer>,
    steers_missed: usize,
    turn: Option<(CommandId, String)>,
    interrupted: bool,
}

impl Hearing {
    /// Listens to these commands.
    pub fn new(commands: mpsc::Receiver<Command>) -> Self {
        Hearing {
            commands,
            awaited: None,
            answer: None,
            steers: VecDeque::new(),
            steers_missed: 0,
            turn: None,
            interrupted: false,
        }
    }

    /// Does `work` to its end unless the session is closed first. What else is heard meanwhile is kept.
    pub async fn during<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Stop> {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                biased;
                heard = self.listen() => heard?,
                done = &mut work => return Ok(done),
            }
        }
    }

    /// Does `work` unless the session is closed or the turn interrupted first; then what is left of it is dropped.
    pub async fn unless_interrupted<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Stop> {
        let mut work = std::pin::pin!(work);
        loop {
            self.check()?;
            tokio::select! {
                biased;
                heard = self.listen() => heard?,
                done = &mut work => return Ok(done),
            }
        }
    }

    /// Makes a batch durable. When it returns well, whatever the batch justifies may be done.
    pub async fn record(&mut self, journal: &dyn Journal, batch: Vec<Signal>) -> Result<(), Stop> {
        self.during(journal.record(batch)).await?.map_err(Stop::Journal)
    }

    /// From now on the answer to this request is listened for; called before the request is recorded.
    pub fn expect(&mut self, key: &str) {
        self.awaited = Some(key.to_owned());
        self.answer = None;
    }

    /// Waits for an answer or a word.
    pub async fn heard(&mut self) -> Result<Heard, Stop> {
        loop {
            self.check()?;
            if let Some(answer) = self.answer.take() {
                self.awaited = None;
                return Ok(Heard::Answer(answer));
            }
            if let Some(steer) = self.steers.pop_front() {
                return Ok(Heard::Steer(steer));
            }
            self.listen().await?;
        }
    }

    /// Says so if the turn was interrupted.
    pub fn check(&self) -> Result<(), Stop> {
        if self.interrupted { Err(Stop::Interrupted) } else { Ok(()) }
    }

    /// The next word into the turn, if one waits.
    pub fn steer(&mut self) -> Option<Steer> {
        self.steers.pop_front()
    }

    /// How many words did not fit since this was asked last.
    pub fn take_missed(&mut self) -> usize {
        std::mem::take(&mut self.steers_missed)
    }

    /// Waits, with no turn running, for the next one. What was meant for the turn that is over is forgotten.
    pub async fn next_turn(&mut self) -> Result<(CommandId, String), Stop> {
        loop {
            (self.awaited, self.answer, self.interrupted) = (None, None, false);
            self.steers.clear();
            self.steers_missed = 0;
            if let Some(turn) = self.turn.take() {
                return Ok(turn);
            }
            self.listen().await?;
        }
    }

    async fn listen(&mut self) -> Result<(), Stop> {
        match self.commands.recv().await.ok_or(Stop::Closed)? {
            Command::Turn { id, text } => self.turn = Some((id, text)),
            Command::Steer { id, text } if self.steers.len() < STEERS_MAX => {
                self.steers.push_back(Steer { id, text });
            }
            Command::Steer { .. } => self.steers_missed += 1,
            Command::Interrupt { .. } => self.interrupted = true,
            Command::Answer { key, answer } => {
                if self.awaited.as_ref() == Some(&key) {
                    self.answer = Some(answer);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    fn id(n: u8) -> CommandId {
        CommandId::from_bytes([n; 16])
    }

    fn steer(n: u8) -> Command {
        Command::Steer { id: id(n), text: format!("word {n}") }
    }

    fn answer(key: &str) -> Command {
        let answer = Answer { approved: true, reason: None, answer: None };
        Command::Answer { key: key.to_owned(), answer }
    }

    #[tokio::test]
    async fn closing_is_heard_while_something_else_never_ends() {
        let (sender, commands) = mpsc::channel(4);
        let mut hearing = Hearing::new(commands);
        drop(sender);
        assert_eq!(hearing.during(pending::<()>()).await, Err(Stop::Closed));
    }

    #[tokio::test]
    async fn an_interrupt_ends_what_may_be_interrupted_and_is_forgotten_with_its_turn() {
        let (sender, commands) = mpsc::channel(4);
        let mut hearing = Hearing::new(commands);
        sender.send(Command::Interrupt { id: id(1) }).await.unwrap();
        assert_eq!(hearing.during(tokio::task::yield_now()).await, Ok(()));
        assert_eq!(hearing.unless_interrupted(pending::<()>()).await, Err(Stop::Interrupted));
        sender.send(Command::Turn { id: id(2), text: "go on".into() }).await.unwrap();
        assert_eq!(hearing.next_turn().await, Ok((id(2), "go on".into())));
        assert_eq!(hearing.check(), Ok(()));
    }

    #[tokio::test]
    async fn only_the_awaited_answer_counts() {
        let (sender, commands) = mpsc::channel(4);
        let mut hearing = Hearing::new(commands);
        hearing.expect("b");
        for command in [answer("a"), steer(1), answer("b")] {
            sender.send(command).await.unwrap();
        }
        assert_eq!(hearing.heard().await, Ok(Heard::Steer(Steer { id: id(1), text: "word 1".into() })));
        assert!(matches!(hearing.heard().await, Ok(Heard::Answer(_))));
    }

    #[tokio::test]
    async fn words_beyond_the_limit_are_counted_and_not_kept() {
        let (sender, commands) = mpsc::channel(STEERS_MAX + 2);
        let mut hearing = Hearing::new(commands);
        for n in 0..STEERS_MAX + 2 {
            sender.send(steer(n as u8)).await.unwrap();
        }
        drop(sender);
        assert_eq!(hearing.during(pending::<()>()).await, Err(Stop::Closed));
        assert_eq!((hearing.steers.len(), hearing.take_missed(), hearing.take_missed()), (STEERS_MAX, 2, 0));
    }
}
