//! What a person says into a turn, on its way to the agent: each word is said to be heard with the step that holds it.

use std::collections::VecDeque;
use std::sync::Arc;

use runyard_agent::checkpoint::StepCommit;
use runyard_agent::run::{Inbox, LaterWords};
use runyard_agent::state::{PersistedState, StateKey};
use runyard_backend::Redaction;
use runyard_domain::CommandId;
use runyard_llm::inference::{Message, Role};
use serde_json::Value;

/// So many words wait until the agent takes some.
const WAITING_MAX: usize = 64;
/// So many bytes of JSON have all words that the agent was given and its conversation does not hold: until it does, they may have
/// to be recorded as one.
const GIVEN_BYTES_MAX: usize = 512 * 1024;

/// The words of a turn, in the order in which they were said.
#[derive(Default)]
pub(super) struct Words {
    /// Whether a turn is under way. It may wait, and then it goes on.
    under_way: bool,
    inbox: Arc<Inbox>,
    /// Those that the agent was given, as long as its conversation does not hold them.
    given: VecDeque<Word>,
    /// Those that come behind, as soon as it takes more.
    waiting: VecDeque<Word>,
}

struct Word {
    /// None where it was said to be heard: a record holds it beside the conversation.
    command: Option<CommandId>,
    text: String,
    bytes: usize,
}

impl Word {
    fn new(command: Option<CommandId>, text: String) -> Self {
        let bytes = serde_json::to_vec(&text).map_or(usize::MAX, |json| json.len());
        Word { command, text, bytes }
    }
}

impl Words {
    /// A turn begins, or goes on with words that are recorded of it.
    pub(super) fn begin(&mut self, recorded: &PersistedState) {
        let later = recorded.values.get(LaterWords::KEY).cloned().unwrap_or_default();
        let later: Vec<Message> = serde_json::from_value(later).unwrap_or_default();
        let given = later.iter().map(|word| Word::new(None, word.said())).collect();
        *self = Words { under_way: true, given, ..Words::default() };
    }

    /// The turn has waited: what was said meanwhile is for now.
    pub(super) fn go_on(&mut self) {
        self.inbox = Arc::default();
        self.give();
    }

    /// The turn is over. Gives what reached it too late to be heard.
    pub(super) fn end(&mut self) -> Vec<CommandId> {
        let Words { given, waiting, .. } = std::mem::take(self);
        given.into_iter().chain(waiting).filter_map(|word| word.command).collect()
    }

    pub(super) fn inbox(&self) -> Arc<Inbox> {
        Arc::clone(&self.inbox)
    }

    /// Takes a word in, or says why it goes nowhere.
    pub(super) fn say(&mut self, command: CommandId, text: String) -> Result<(), &'static str> {
        let word = Word::new(Some(command), text);
        if !self.under_way || self.waiting.len() >= WAITING_MAX || word.bytes > GIVEN_BYTES_MAX {
            return Err("no turn runs, or too much waits to be read already");
        }
        self.waiting.push_back(word);
        self.give();
        Ok(())
    }

    /// The words that a step makes durable and that are to be said to be heard with it.
    pub(super) fn heard_in(&mut self, step: &StepCommit, redaction: &dyn Redaction) -> Vec<CommandId> {
        let mut heard = Vec::new();
        for message in step.messages.iter().filter(|message| message.role == Role::User) {
            // The loop has words of its own for its model.
            let same = |word: &Word| redaction.content(&word.text) == redaction.content(&message.said());
            if self.given.front().is_some_and(same) {
                heard.extend(self.given.pop_front().and_then(|word| word.command));
            }
        }
        let later = step.run_state.set.get(LaterWords::KEY).and_then(Value::as_array).map_or(0, Vec::len);
        heard.extend(self.given.iter_mut().take(later).filter_map(|word| word.command.take()));
        self.give();
        heard
    }

    /// Gives the agent what it takes.
    fn give(&mut self) {
        while let Some(next) = self.waiting.front() {
            let given: usize = self.given.iter().map(|word| word.bytes).sum();
            if given + next.bytes > GIVEN_BYTES_MAX
                || self.inbox.say(Message::user(next.text.as_str())).is_err()
            {
                return;
            }
            self.given.extend(self.waiting.pop_front());
        }
    }
}
