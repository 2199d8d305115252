//! A message that is more than can be stored as one, in pieces that can: what was seen of it is what is stored.

use runyard_llm::inference::{Message, Part, Reasoning};

use super::weighing;
use crate::checkpoint::Checkpoint;

/// So far before its end a piece of text may be cut, so that no word is.
const BACK_MAX: usize = 256;

/// A message as it will be stored: whole, and as it stands in the conversation, one behind the other.
pub(crate) struct Stored {
    pub(crate) whole: Message,
    /// None where that is the message itself.
    pub(crate) pieces: Option<Vec<Message>>,
}

/// The message as it will be stored. Its text and its thoughts come in pieces where they are too long. What it calls does not:
/// results belong to one message, and one that holds too much is refused by whoever stores it.
pub(crate) fn stored(checkpoint: &dyn Checkpoint, message: Message) -> Stored {
    let whole = checkpoint.stored(message);
    let room = checkpoint.limits().message_bytes_max;
    if weighing::message(&whole) <= room {
        return Stored { whole, pieces: None };
    }
    let empty = Message { role: whole.role, content: Vec::new() };
    let room = room.saturating_sub(weighing::message(&empty));
    let (mut pieces, mut piece, mut left) = (Vec::new(), empty.clone(), room);
    let mut next = |piece: &mut Message| {
        if !piece.content.is_empty() {
            pieces.push(checkpoint.stored(std::mem::replace(piece, empty.clone())));
        }
    };
    let (calls, said): (Vec<&Part>, Vec<&Part>) =
        whole.content.iter().partition(|part| matches!(part, Part::ToolCall(_)));
    for part in said {
        for part in parts(part, room) {
            let bytes = weighing::part(&part);
            if bytes > left {
                next(&mut piece);
                left = room;
            }
            left = left.saturating_sub(bytes);
            piece.content.push(part);
        }
    }
    if calls.iter().map(|call| weighing::part(call)).sum::<usize>() > left {
        next(&mut piece);
    }
    piece.content.extend(calls.into_iter().cloned());
    next(&mut piece);
    Stored { whole, pieces: Some(pieces) }
}

/// A part in parts that have room.
fn parts(part: &Part, room: usize) -> Vec<Part> {
    let (text, made): (&str, fn(String) -> Part) = match part {
        Part::Text { text } => (text, |text| Part::Text { text }),
        Part::Reasoning(Reasoning { text, sealed: None }) => {
            (text, |text| Part::Reasoning(Reasoning { text, sealed: None }))
        }
        other => return vec![other.clone()],
    };
    let room = room.saturating_sub(weighing::part(&made(String::new()))).max(weighing::CHARACTER_BYTES_MAX);
    let (mut parts, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let end = weighing::fits(rest, room);
        let back = rest.floor_char_boundary(end.saturating_sub(BACK_MAX));
        let blank = rest[back..end].rfind(char::is_whitespace).map(|blank| back + blank);
        let cut = if end == rest.len() { end } else { blank.filter(|blank| *blank > 0).unwrap_or(end) };
        let (piece, after) = rest.split_at(cut);
        parts.push(made(piece.to_owned()));
        rest = after;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::{CheckpointError, StepCommit, StepLimits};
    use async_trait::async_trait;
    use runyard_llm::inference::{Role, ToolCall};
    use serde_json::json;

    struct Small;

    #[async_trait]
    impl Checkpoint for Small {
        fn stored(&self, message: Message) -> Message {
            message
        }

        fn limits(&self) -> StepLimits {
            StepLimits { message_bytes_max: 1_000, ..StepLimits::STORE }
        }

        async fn commit(&self, _: StepCommit) -> Result<(), CheckpointError> {
            Ok(())
        }

        fn lost(&self) -> Option<CheckpointError> {
            None
        }

        async fn give_up(&self) {}
    }

    #[track_caller]
    fn check(content: Vec<Part>, count: usize) {
        let message = Message { role: Role::Assistant, content };
        let Stored { whole, pieces } = stored(&Small, message.clone());
        assert_eq!(whole, message);
        let pieces = pieces.unwrap_or_else(|| vec![whole]);
        assert_eq!(pieces.len(), count, "{pieces:?}");
        assert_eq!(pieces.iter().map(Message::said).collect::<String>(), message.said());
        let calls = pieces.last().unwrap().tool_calls().cloned().collect::<Vec<_>>();
        assert_eq!(calls, message.tool_calls().cloned().collect::<Vec<_>>(), "all calls are in the last");
        for piece in &pieces {
            let bytes = serde_json::to_string(piece).unwrap().len();
            assert!(bytes <= 1_000 || piece.tool_calls().next().is_some(), "{bytes}");
        }
    }

    #[test]
    fn what_is_too_long_comes_in_pieces_and_its_calls_in_the_last_of_them() {
        let text = |text: String| Part::Text { text };
        let call = |bytes: usize| {
            Part::ToolCall(ToolCall { id: "c".into(), name: "t".into(), arguments: json!("x".repeat(bytes)) })
        };
        check(vec![text("short".into()), call(10)], 1);
        check(vec![text("a word ".repeat(300))], 3);
        check(vec![text("x".repeat(2_000))], 3);
        check(vec![text("\u{1}".repeat(500)), call(10)], 4);
        check(vec![text(" ".repeat(1_500))], 2);
        check(vec![text("x".repeat(600)), call(400), text("y".repeat(50)), call(400)], 2);
        check(vec![call(3_000)], 1);
        let thought = |text: String| Part::Reasoning(Reasoning { text, sealed: None });
        check(vec![thought("z".repeat(900)), text("é".repeat(600)), call(3_000)], 5);
    }

    #[test]
    fn no_word_is_cut_where_there_is_a_blank_before_it() {
        let whole = "a word ".repeat(300);
        for part in parts(&Part::Text { text: whole }, 1_000) {
            let Part::Text { text } = part else { panic!() };
            assert!(text.split_whitespace().all(|word| word == "a" || word == "word"), "{text}");
        }
    }
}
