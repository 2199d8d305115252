//! How much of a long conversation a model reads. Pure: where to cut, so that no call loses its result.
//!
//! What is left out stays in the thread: a summary stands in its place in what the model reads, and nowhere else.

use std::sync::Arc;

use runyard_llm::inference::{Image, ImageSource, Message, Part, Role};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::state::{Scope, StateKey};

/// So many bytes are taken for a token where nobody says how many there are.
const BYTES_PER_TOKEN: usize = 4;
/// A picture is taken for so many tokens.
const IMAGE_TOKENS: usize = 1_600;

/// How much of a long conversation an agent's model reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct ContextPolicy {
    /// With more tokens than this, as far as they can be estimated, the older part is summarised.
    pub tokens_max: Option<u64>,
    /// So many of the last messages stay as they are, and more where a call needs its result.
    pub recent_messages_min: usize,
    /// What the model is told to make of the older part.
    pub summary_instructions: String,
    /// How long a summary may be, in tokens.
    pub summary_tokens_max: u64,
}

impl Default for ContextPolicy {
    fn default() -> Self {
        ContextPolicy {
            tokens_max: None,
            recent_messages_min: 10,
            summary_instructions: "Summarise the conversation so far for the assistant who goes on with it: the task, \
                what was decided and found out, what was done and changed, and what is still open. Keep names, \
                paths, numbers and quotes exact. Write nothing else."
                .to_owned(),
            summary_tokens_max: 2_048,
        }
    }
}

/// The part of a thread that its model reads as a summary.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// So many of the first messages are left out.
    pub messages: u64,
    /// What stands in their place.
    pub text: String,
}

/// The summary of a thread, as far as there is one.
pub struct Summarised;

impl StateKey for Summarised {
    const KEY: &'static str = "runtime.summary";
    const SCOPE: Scope = Scope::Thread;
    type Value = Summary;
    type Update = Summary;

    fn apply(value: &mut Summary, summary: Summary) {
        *value = summary;
    }
}

/// About how many bytes a message has; a picture that is only named has few.
pub(crate) fn size(message: &Message) -> usize {
    let bytes = message.content.iter().map(|part| match part {
        Part::Text { text } => text.len(),
        Part::Image(Image { source: ImageSource::Data { data, .. } }) => data.len(),
        Part::Image(Image { source: ImageSource::Url { url } }) => url.len(),
        Part::Reasoning(reasoning) => reasoning.text.len() + reasoning.sealed.as_ref().map_or(0, size_of),
        Part::ToolCall(call) => call.name.len() + size_of(&call.arguments),
        Part::ToolOutput(output) => output.content.len(),
    });
    bytes.sum()
}

/// About how many bytes a value has as JSON.
fn size_of(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(|item| size_of(item) + 1).sum::<usize>(),
        Value::Object(fields) => {
            2 + fields.iter().map(|(name, field)| name.len() + 4 + size_of(field)).sum::<usize>()
        }
    }
}

/// About how many tokens a message has.
pub(crate) fn estimate(message: &Message) -> u64 {
    let is_image = |part: &&Part| matches!(part, Part::Image(_));
    let images = message.content.iter().filter(is_image).count();
    let tokens = if images == 0 {
        size(message) / BYTES_PER_TOKEN
    } else {
        let rest = message.content.iter().filter(|part| !is_image(part)).cloned().collect();
        size(&Message { role: message.role, content: rest }) / BYTES_PER_TOKEN + images * IMAGE_TOKENS
    };
    // Roles and marks between the parts are tokens too.
    (tokens + 4) as u64
}

/// Where the older part may end: the largest place that leaves at least `recent_min` messages and parts no call from its
/// result. Before `from` everything is summarised already.
pub(crate) fn cut(messages: &[Arc<Message>], from: usize, recent_min: usize) -> Option<usize> {
    cut_until(messages, from, messages.len().checked_sub(recent_min.max(1))?)
}

/// The same, where it may be at most at `latest`.
pub(crate) fn cut_until(messages: &[Arc<Message>], from: usize, latest: usize) -> Option<usize> {
    // A message of results belongs to the answer before it.
    (from + 1..=latest).rev().find(|at| messages.get(*at).is_some_and(|first| first.role != Role::Tool))
}

/// How much of each result a model reads where all of them are more than it takes, in bytes: less each time.
const RESULT_BYTES: [usize; 5] = [64 * 1024, 16 * 1024, 4 * 1024, 1024, 256];

/// The next less of each result that makes these messages shorter.
pub(crate) fn less(messages: &[Arc<Message>], now: Option<usize>) -> Option<usize> {
    let longest = messages.iter().flat_map(|message| &message.content).filter_map(result_len).max()?;
    RESULT_BYTES.into_iter().find(|bytes| *bytes < now.unwrap_or(usize::MAX) && *bytes < longest)
}

/// A message with at most so many bytes of each result, and a word about what is left out.
pub(crate) fn clipped(message: &Arc<Message>, bytes_max: usize) -> Arc<Message> {
    if message.content.iter().filter_map(result_len).all(|bytes| bytes <= bytes_max) {
        return Arc::clone(message);
    }
    let mut message = Message::clone(message);
    for part in &mut message.content {
        if let Part::ToolOutput(output) = part
            && output.content.len() > bytes_max
        {
            let end = output.content.floor_char_boundary(bytes_max);
            let rest = output.content.len() - end;
            output.content.truncate(end);
            output.content.push_str(&format!(
                "\n[{rest} more bytes of this result are left out here: the conversation was longer than you can read]"
            ));
        }
    }
    Arc::new(message)
}

fn result_len(part: &Part) -> Option<usize> {
    match part {
        Part::ToolOutput(output) => Some(output.content.len()),
        _ => None,
    }
}

/// What stands before the rest of a conversation whose beginning is summarised.
pub(crate) fn standing_in(summary: &str) -> Message {
    Message::user(format!("<conversation-summary>\n{summary}\n</conversation-summary>"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use runyard_llm::inference::{ToolCall, ToolOutput};
    use serde_json::json;

    fn answer(calls: usize) -> Message {
        let call =
            |n: usize| Part::ToolCall(ToolCall { id: n.to_string(), name: "t".into(), arguments: json!({}) });
        Message { role: Role::Assistant, content: (0..calls).map(call).collect() }
    }

    fn result(n: usize) -> Message {
        Message::tool(ToolOutput { call_id: n.to_string(), content: "r".into(), is_error: false })
    }

    fn conversation(turns: &[usize]) -> Vec<Arc<Message>> {
        let turn = |calls: &usize| {
            let mut messages = vec![Message::user("u")];
            if *calls > 0 {
                messages.push(answer(*calls));
                messages.extend((0..*calls).map(result));
            }
            messages.push(Message::assistant("a"));
            messages
        };
        turns.iter().flat_map(turn).map(Arc::new).collect()
    }

    proptest! {
        #[test]
        fn a_cut_parts_no_call_from_its_result(turns in prop::collection::vec(0_usize..4, 1..12), recent_min in 0_usize..20) {
            let messages = conversation(&turns);
            if let Some(at) = cut(&messages, 0, recent_min) {
                prop_assert!(at > 0 && messages.len() - at >= recent_min.max(1));
                prop_assert_ne!(messages[at].role, Role::Tool);
                let calls: usize = messages[at..].iter().map(|message| message.tool_calls().count()).sum();
                let results = messages[at..].iter().filter(|message| message.role == Role::Tool).count();
                prop_assert_eq!(calls, results);
            }
        }
    }

    #[test]
    fn of_a_long_result_its_beginning_is_read_and_less_each_time() {
        let long = |bytes: usize| {
            let content = "é".repeat(bytes / 2);
            Arc::new(Message::tool(ToolOutput { call_id: "c".into(), content, is_error: false }))
        };
        let messages = [long(10), long(5_000)];
        assert_eq!(less(&messages, None), Some(4 * 1024));
        assert_eq!(less(&messages, Some(4 * 1024)), Some(1024));
        assert_eq!(less(&messages, Some(256)), None);
        assert_eq!(less(&messages[..1], None), None);
        assert_eq!(less(&[Arc::new(Message::user("x".repeat(100_000)))], None), None);
        assert!(Arc::ptr_eq(&clipped(&messages[0], 10), &messages[0]));
        let [Part::ToolOutput(output)] = &clipped(&messages[1], 1_025).content[..] else { panic!() };
        let (said, word) = output.content.split_once('\n').unwrap();
        assert_eq!(said, "é".repeat(512));
        assert!(word.starts_with("[3976 more bytes"), "{word}");
    }

    #[test]
    fn nothing_is_cut_where_there_is_no_place_for_it() {
        // One question and one answer with three calls, whose results stay with it.
        assert_eq!(cut(&conversation(&[3]), 0, 1), Some(5));
        assert_eq!(cut(&conversation(&[3]), 0, 2), Some(1));
        assert_eq!(cut(&conversation(&[3]), 1, 2), None);
        assert_eq!(cut(&conversation(&[0, 0]), 0, 2), Some(2));
        assert_eq!(cut(&conversation(&[0, 0]), 2, 2), None);
        assert_eq!(cut(&[], 0, 0), None);
    }

    #[test]
    fn an_estimate_grows_with_what_is_said() {
        assert_eq!(estimate(&Message::user("")), 4);
        assert_eq!(estimate(&Message::user("x".repeat(400))), 104);
        assert!(estimate(&answer(2)) > estimate(&answer(1)));
    }
}
