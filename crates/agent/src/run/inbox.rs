//! Words into a run that is under way: the model reads them the next time it is asked.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use runyard_llm::inference::Message;
use runyard_store::MESSAGE_BYTES_MAX;

use super::weighing;
use crate::state::StateKey;

/// So many words wait at most.
pub const INBOX_MAX: usize = 64;

/// Words into a run that is under way.
///
/// What is taken is not lost: the model reads it, it stays in the thread for the run after, or, where a run could not begin or
/// broke down, it is given back ([`Inbox::unread`]).
#[derive(Debug, Default)]
pub struct Inbox(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    words: VecDeque<Message>,
    closed: bool,
}

impl Inbox {
    /// Says something. Gives it back where too much waits already, or the run has ended or waits: then it is for the next one;
    /// and where it has more than [`MESSAGE_BYTES_MAX`] bytes as JSON, which no store takes: then it is to be made shorter.
    pub fn say(&self, message: Message) -> Result<(), Message> {
        if weighing::message(&message) > MESSAGE_BYTES_MAX {
            return Err(message);
        }
        let mut waiting = self.waiting();
        if waiting.closed || waiting.words.len() >= INBOX_MAX {
            return Err(message);
        }
        waiting.words.push_back(message);
        Ok(())
    }

    /// Takes nothing more, and gives back what was said and no run has taken.
    pub fn unread(&self) -> Vec<Message> {
        self.close().into()
    }

    /// Takes nothing more. What waits is given back to whoever asks for it.
    pub(crate) fn refuse(&self) {
        self.waiting().closed = true;
    }

    pub(super) fn take(&self) -> VecDeque<Message> {
        std::mem::take(&mut self.waiting().words)
    }

    /// How many words wait to be taken.
    pub fn len(&self) -> usize {
        self.waiting().words.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.waiting().words.is_empty()
    }

    /// Takes nothing more, unless something waits. Says whether it is closed.
    pub(super) fn close_if_empty(&self) -> bool {
        let mut waiting = self.waiting();
        waiting.closed |= waiting.words.is_empty();
        waiting.closed
    }

    /// Takes nothing more, and gives what waits.
    pub(crate) fn close(&self) -> VecDeque<Message> {
        let mut waiting = self.waiting();
        waiting.closed = true;
        std::mem::take(&mut waiting.words)
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Words that the model reads when the calls before them have their results.
pub struct LaterWords;

/// A change of the words that come later.
#[derive(Debug)]
pub enum LaterUpdate {
    /// More of them.
    Add(Vec<Message>),
    /// They are in the conversation.
    Said,
}

impl StateKey for LaterWords {
    const KEY: &'static str = "runtime.later_words";
    type Value = Vec<Message>;
    type Update = LaterUpdate;

    fn apply(words: &mut Self::Value, update: LaterUpdate) {
        match update {
            LaterUpdate::Add(more) => words.extend(more),
            LaterUpdate::Said => words.clear(),
        }
    }
}
