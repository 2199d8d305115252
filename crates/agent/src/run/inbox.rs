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

#[derive(Debug)]
struct Waiting {
    words: VecDeque<Message>,
    /// So many bytes have those that the run keeps with its state until its model reads them.
    kept_bytes: usize,
    /// So many have all together: they are stored as one.
    bytes_max: usize,
    closed: bool,
}

impl Default for Waiting {
    fn default() -> Self {
        Waiting {
            words: VecDeque::new(),
            kept_bytes: 0,
            bytes_max: together(MESSAGE_BYTES_MAX),
            closed: false,
        }
    }
}

impl Waiting {
    /// Whether a word may stand beside so many bytes of others. One alone may be as large as any message.
    fn fits(&self, word: &Message, others: usize) -> bool {
        others == 0 || others + weighing::message(word) <= self.bytes_max
    }
}

/// So much of what a store takes at once is for words. The rest is for what stands beside them, and for what redaction adds.
fn together(bytes_max: usize) -> usize {
    bytes_max - bytes_max / 8
}

impl Inbox {
    /// Says something. Gives it back where too much waits already to be read ([`INBOX_MAX`] words, or about 900 KiB), or the run
    /// has ended or waits: then it is for the next one; and where it has more than [`MESSAGE_BYTES_MAX`] bytes as JSON, which no store takes: then it is to be made shorter.
    pub fn say(&self, message: Message) -> Result<(), Message> {
        if weighing::message(&message) > MESSAGE_BYTES_MAX {
            return Err(message);
        }
        let mut waiting = self.waiting();
        let others = waiting.kept_bytes + waiting.words.iter().map(weighing::message).sum::<usize>();
        if waiting.closed || waiting.words.len() >= INBOX_MAX || !waiting.fits(&message, others) {
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

    /// A run begins whose steps take messages of so many bytes, and which keeps so many bytes of words already.
    pub(super) fn begin(&self, message_bytes_max: usize, kept_bytes: usize) {
        let mut waiting = self.waiting();
        waiting.bytes_max = together(message_bytes_max.min(MESSAGE_BYTES_MAX));
        waiting.kept_bytes = kept_bytes;
    }

    /// These come before what waits.
    pub(super) fn put_first(&self, words: Vec<Message>) {
        let mut waiting = self.waiting();
        words.into_iter().rev().for_each(|word| waiting.words.push_front(word));
    }

    /// Takes as much as can be kept beside what is kept already.
    pub(super) fn keep(&self) -> Vec<Message> {
        let (mut waiting, mut words) = (self.waiting(), Vec::new());
        while let Some(word) = waiting.words.pop_front() {
            if !waiting.fits(&word, waiting.kept_bytes) {
                waiting.words.push_front(word);
                break;
            }
            waiting.kept_bytes += weighing::message(&word);
            words.push(word);
        }
        words
    }

    /// Takes all of it. What was kept is read with it.
    pub(super) fn take(&self) -> VecDeque<Message> {
        let mut waiting = self.waiting();
        waiting.kept_bytes = 0;
        std::mem::take(&mut waiting.words)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_taken_as_far_as_they_can_be_stored_together_and_read_or_given_back_in_their_order() {
        let word = |letter: &str| Message::user(letter.repeat(2_000));
        let inbox = Inbox::default();
        inbox.say(word("a")).unwrap();
        inbox.say(word("b")).unwrap();
        // A run whose steps take less than both, and which keeps one already.
        inbox.begin(7_000, weighing::message(&word("z")));
        assert_eq!(inbox.say(word("c")), Err(word("c")));
        assert_eq!((inbox.keep(), inbox.keep()), (vec![word("a")], Vec::new()));
        inbox.put_first(vec![word("y")]);
        assert_eq!(inbox.take(), [word("y"), word("b")]);
        // All of it is read, and one alone may be of any size that a store takes.
        inbox.say(Message::user("d".repeat(10_000))).unwrap();
        assert_eq!(inbox.say(Message::user("e")), Err(Message::user("e")));
        assert_eq!(inbox.keep().len(), 1);
        assert_eq!(inbox.say(Message::user("e")), Err(Message::user("e")));
    }
}
