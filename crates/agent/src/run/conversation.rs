//! The conversation of a run, in memory: what was said, what of it is durable, and which calls have no result.

use std::ops::Range;
use std::sync::Arc;

use runyard_llm::inference::{Message, Messages, Part, Role, ToolCall, ToolOutput};

use super::context::estimate;
use super::{GO_ON, weighing};
use crate::checkpoint::{CallPlace, StepLimits};

/// The conversation of a run.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    messages: Messages,
    /// So many of them are durable.
    stored: usize,
    /// Those that are one answer, in pieces.
    pieces: Range<usize>,
    /// The calls of the last answer that have no result.
    unanswered: Vec<(CallPlace, Arc<ToolCall>)>,
    /// Whether those are as they were made, and not as they were stored.
    live: bool,
    /// From this message on tokens are counted.
    counted: usize,
    /// How many tokens the first of those have, and the first two, and so on, as far as anybody asked.
    tokens: Vec<u64>,
}

impl Conversation {
    /// A conversation that is durable.
    pub(crate) fn new(messages: Vec<Arc<Message>>) -> Self {
        let unanswered = left_over(&messages);
        let stored = messages.len();
        Conversation { messages: messages.into(), stored, unanswered, ..Conversation::default() }
    }

    pub(crate) fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// The same to be asked with: it costs nothing, as long as it is gone before the next message comes.
    pub(crate) fn shared(&self) -> Messages {
        self.messages.clone()
    }

    pub(crate) fn into_messages(self) -> Vec<Arc<Message>> {
        self.messages.into()
    }

    /// What the model said last from this message on: of an answer that came in pieces, all of them as one.
    pub(crate) fn last_said(&self, from: usize) -> Option<Arc<Message>> {
        let messages = self.messages.get(from..)?;
        let is_said = |message: &Arc<Message>| message.role == Role::Assistant;
        let last = messages.iter().rposition(is_said)?;
        let mut pieces = vec![&messages[last]];
        let mut first = last;
        while let Some(before) = messages[..first].iter().rposition(is_said) {
            if !goes_on(&messages[before], &messages[before + 1..first]) {
                break;
            }
            pieces.push(&messages[before]);
            first = before;
        }
        if let [whole] = pieces[..] {
            return Some(Arc::clone(whole));
        }
        let mut joined = Message { role: Role::Assistant, content: Vec::new() };
        for part in pieces.into_iter().rev().flat_map(|piece| &piece.content) {
            match (joined.content.last_mut(), part) {
                (Some(Part::Text { text }), Part::Text { text: more }) => text.push_str(more),
                _ => joined.content.push(part.clone()),
            }
        }
        Some(Arc::new(joined))
    }

    /// Whether the model spoke last, and called nothing.
    pub(crate) fn is_answered(&self) -> bool {
        let last = self.messages.last();
        last.is_some_and(|last| last.role == Role::Assistant && last.tool_calls().next().is_none())
    }

    /// The calls that have no result, in their order.
    pub(crate) fn unanswered(&self) -> &[(CallPlace, Arc<ToolCall>)] {
        &self.unanswered
    }

    /// A call as it is stored.
    pub(crate) fn call_at(&self, place: CallPlace) -> Option<&ToolCall> {
        let message = usize::try_from(place.message).ok()?.checked_sub(1)?;
        self.messages.get(message)?.tool_calls().nth(usize::try_from(place.index).ok()?)
    }

    /// A call as it is stored, with its result.
    pub(crate) fn result_at(&self, place: CallPlace) -> Option<(&ToolCall, &ToolOutput)> {
        let call = self.call_at(place)?;
        let behind = self.messages.get(usize::try_from(place.message).ok()?..)?;
        let results = behind.iter().take_while(|message| message.role != Role::Assistant);
        let mut outputs = results.flat_map(|message| &message.content).filter_map(output_of);
        Some((call, outputs.find(|output| output.call_id == call.id)?))
    }

    /// Whether those are as the model made them. After a crash or a wait they are as they were stored.
    pub(crate) fn is_live(&self) -> bool {
        self.live
    }

    pub(crate) fn push(&mut self, message: Message) {
        self.messages.push(Arc::new(message));
    }

    /// Adds an answer as it is stored, with its calls as they were made.
    pub(crate) fn answer(&mut self, message: Arc<Message>, calls: impl IntoIterator<Item = ToolCall>) {
        self.messages.push(message);
        let message = self.messages.len() as u64;
        let calls = calls.into_iter().zip(0..);
        self.unanswered = calls.map(|(call, index)| (CallPlace { message, index }, Arc::new(call))).collect();
        self.live = true;
    }

    /// What was added from this message on is one answer.
    pub(crate) fn is_one_from(&mut self, from: usize) {
        self.pieces = from..self.messages.len();
    }

    /// Whether so many messages end within an answer.
    pub(crate) fn breaks_off_at(&self, messages: usize) -> bool {
        self.pieces.start < messages && messages < self.pieces.end
    }

    /// Adds the result of a call.
    pub(crate) fn result(&mut self, place: CallPlace, output: Message) {
        self.unanswered.retain(|(unanswered, _)| *unanswered != place);
        self.push(output);
    }

    /// About how many tokens the messages from this one on have. What is before the first that anybody asked about is not
    /// looked at: in a long thread that is most of it.
    pub(crate) fn tokens_from(&mut self, from: usize) -> u64 {
        if self.tokens.is_empty() || from < self.counted {
            (self.counted, self.tokens) = (from, Vec::new());
        }
        let mut total = self.tokens.last().copied().unwrap_or_default();
        for message in &self.messages[self.counted + self.tokens.len()..] {
            total = total.saturating_add(estimate(message));
            self.tokens.push(total);
        }
        let before = (from - self.counted).checked_sub(1).and_then(|last| self.tokens.get(last)).copied();
        total.saturating_sub(before.unwrap_or_default())
    }

    /// So many messages are durable.
    pub(crate) fn stored(&self) -> usize {
        self.stored
    }

    /// What is not durable.
    pub(crate) fn not_stored(&self) -> &[Arc<Message>] {
        &self.messages[self.stored..]
    }

    /// So many messages are durable after the next step, and so many bytes those that come with it take.
    pub(super) fn next_stored(&self, limits: &StepLimits) -> (usize, usize) {
        let (mut count, mut bytes) = (0, 0);
        for message in self.not_stored() {
            let own = weighing::message(message);
            let with = bytes + own;
            // One that may not be stored at all keeps none of the others from being.
            let is_alone = own > limits.message_bytes_max || with > limits.bytes_max;
            if count > 0 && (count == limits.messages_max || is_alone) {
                break;
            }
            (count, bytes) = (count + 1, with);
        }
        (self.stored + count, bytes)
    }

    pub(crate) fn stored_until(&mut self, messages: usize) {
        self.stored = messages;
    }
}

/// Whether what the model said after these words goes on with what it said before them.
fn goes_on(before: &Message, words: &[Arc<Message>]) -> bool {
    before.tool_calls().next().is_none() && (words.is_empty() || words.iter().any(asks_for_more))
}

fn asks_for_more(word: &Arc<Message>) -> bool {
    word.role == Role::User && word.said() == GO_ON
}

/// The calls of the last answer without a result. An id that is there twice stands for its calls in their order.
pub fn left_over(messages: &[Arc<Message>]) -> Vec<(CallPlace, Arc<ToolCall>)> {
    let Some(at) = messages.iter().rposition(|message| message.role == Role::Assistant) else {
        return Vec::new();
    };
    let mut answered: Vec<&str> = messages[at + 1..]
        .iter()
        .flat_map(|message| &message.content)
        .filter_map(output_of)
        .map(|output| output.call_id.as_str())
        .collect();
    let mut left = Vec::new();
    for (call, index) in messages[at].tool_calls().zip(0..) {
        match answered.iter().position(|id| *id == call.id) {
            Some(found) => drop(answered.remove(found)),
            None => left.push((CallPlace { message: at as u64 + 1, index }, Arc::new(call.clone()))),
        }
    }
    left
}

fn output_of(part: &Part) -> Option<&ToolOutput> {
    match part {
        Part::ToolOutput(output) => Some(output),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(id: &str, n: u64) -> ToolCall {
        ToolCall { id: id.into(), name: "t".into(), arguments: json!({ "n": n }) }
    }

    fn output(id: &str) -> Message {
        Message::tool(ToolOutput { call_id: id.into(), content: "r".into(), is_error: false })
    }

    #[test]
    fn what_has_no_result_is_found_again_also_when_an_id_was_given_twice() {
        let calls = vec![call("a", 1), call("a", 2), call("b", 3)];
        let answer =
            Message { role: Role::Assistant, content: calls.iter().cloned().map(Part::ToolCall).collect() };
        let mut live = Conversation::new(vec![Arc::new(Message::user("u"))]);
        live.answer(Arc::new(answer), calls);
        let places: Vec<CallPlace> = (0..3).map(|index| CallPlace { message: 2, index }).collect();
        assert_eq!(live.unanswered().iter().map(|(place, _)| *place).collect::<Vec<_>>(), places);
        live.result(places[0], output("a"));
        live.result(places[2], output("b"));
        let again = Conversation::new(live.messages().to_vec());
        assert_eq!(again.unanswered(), live.unanswered());
        assert_eq!(again.unanswered(), [(places[1], Arc::new(call("a", 2)))]);
        assert!(live.is_live() && !again.is_live());
        live.result(places[1], output("a"));
        assert_eq!(Conversation::new(live.messages().to_vec()).unanswered(), []);
    }

    #[test]
    fn what_is_stored_is_told_from_what_is_not() {
        let mut conversation = Conversation::new(vec![Arc::new(Message::user("u"))]);
        assert!(conversation.not_stored().is_empty());
        assert!(!conversation.is_answered());
        conversation.push(Message::assistant("a"));
        assert!(conversation.is_answered());
        assert_eq!(conversation.not_stored().len(), 1);
        assert_eq!(conversation.next_stored(&StepLimits::STORE).0, 2);
        conversation.stored_until(2);
        assert!(conversation.not_stored().is_empty());
        assert_eq!(conversation.last_said(0).unwrap().said(), "a");
    }

    #[test]
    fn what_is_too_much_for_one_step_goes_in_several() {
        let limits = StepLimits { messages_max: 3, bytes_max: 10_000, ..StepLimits::STORE };
        let mut conversation = Conversation::default();
        for _ in 0..4 {
            conversation.push(Message::user("u"));
        }
        assert_eq!(conversation.next_stored(&limits).0, 3);
        let mut conversation = Conversation::default();
        // The last ones have few characters, of which each is six bytes of JSON.
        for text in ["x".repeat(20_000), "x".into(), "x".repeat(9_000), "\0".repeat(1_000), "\0".repeat(800)]
        {
            conversation.push(Message::user(text));
        }
        for until in [1, 3, 4, 5] {
            let (found, bytes) = conversation.next_stored(&limits);
            assert_eq!(found, until);
            assert!(bytes <= limits.bytes_max || until == 1, "{bytes}");
            conversation.stored_until(until);
        }
    }

    #[test]
    fn what_was_said_last_is_all_pieces_of_it() {
        let said = |messages: &[Message]| {
            let messages = messages.iter().cloned().map(Arc::new).collect();
            Conversation::new(messages).last_said(0).map(|message| Message::clone(&message))
        };
        let (one, two, go_on) = (Message::assistant("on"), Message::assistant("e"), Message::user(GO_ON));
        let user = Message::user("And?");
        assert_eq!(said(std::slice::from_ref(&user)), None);
        let pieces = [user.clone(), one.clone(), go_on.clone(), user.clone(), two.clone(), go_on.clone()];
        assert_eq!(said(&pieces), Some(Message::assistant("one")));
        assert_eq!(said(&[one.clone(), two.clone(), user.clone()]), Some(Message::assistant("one")));
        assert_eq!(said(&[one.clone(), user.clone(), two.clone()]), Some(two.clone()));
        let called = Message { role: Role::Assistant, content: vec![Part::ToolCall(call("a", 1))] };
        assert_eq!(said(&[called, output("a"), two.clone()]), Some(two.clone()));

        let pieces = [user.clone(), one.clone(), user.clone(), one, go_on, user, two];
        let conversation = Conversation::new(pieces.into_iter().map(Arc::new).collect());
        assert_eq!(conversation.last_said(2).unwrap().said(), "one");
        assert_eq!(conversation.last_said(7), None);
    }

    #[test]
    fn tokens_are_counted_once_and_from_anywhere() {
        let mut conversation = Conversation::default();
        assert_eq!(conversation.tokens_from(0), 0);
        for text in ["a", "bb", "ccc"] {
            conversation.push(Message::user(text.repeat(400)));
        }
        let all: Vec<u64> = (0..=3).map(|from| conversation.tokens_from(from)).collect();
        assert_eq!(all, [104 + 204 + 304, 204 + 304, 304, 0]);
        conversation.push(Message::user(""));
        assert_eq!(conversation.tokens_from(2), 308);

        let mut later = Conversation::new(conversation.into_messages());
        assert_eq!(later.tokens_from(2), 308);
        assert_eq!(later.tokens.len(), 2, "what is before them is not looked at");
        later.push(Message::user("dddd"));
        assert_eq!([later.tokens_from(3), later.tokens_from(1)], [9, 204 + 304 + 9]);
    }
}
