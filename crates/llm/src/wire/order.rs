//! The conversation in the order that providers take: what came of a call right behind the turn that made it.
//!
//! It is kept so. One that was recorded otherwise can be gone on with all the same.

use std::sync::Arc;

use crate::inference::{Message, Part, Role};

/// The messages, each as it is, with results moved up to their calls.
pub(super) fn in_order(messages: &[Arc<Message>]) -> Vec<&Message> {
    let mut ordered: Vec<&Message> = Vec::with_capacity(messages.len());
    let mut moved = vec![false; messages.len()];
    for (at, message) in messages.iter().enumerate() {
        if moved[at] {
            continue;
        }
        ordered.push(message);
        let mut open: Vec<&str> = message.tool_calls().map(|call| call.id.as_str()).collect();
        // The next turn may give an id again.
        let until_next = messages.iter().enumerate().skip(at + 1);
        let until_next = until_next.take_while(|(_, later)| later.role != Role::Assistant);
        for (later_at, later) in until_next {
            if open.is_empty() {
                break;
            }
            let before = open.len();
            for id in later.content.iter().filter_map(output_of) {
                if let Some(found) = open.iter().position(|open| *open == id) {
                    open.remove(found);
                }
            }
            if later.role == Role::Tool && open.len() < before {
                moved[later_at] = true;
                ordered.push(later);
            }
        }
    }
    ordered
}

fn output_of(part: &Part) -> Option<&str> {
    match part {
        Part::ToolOutput(output) => Some(&output.call_id),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::inference::{ToolCall, ToolOutput};

    fn calls(ids: &[&str]) -> Arc<Message> {
        let call = |id: &&str| {
            Part::ToolCall(ToolCall { id: (*id).to_owned(), name: "t".to_owned(), arguments: json!({}) })
        };
        Arc::new(Message { role: Role::Assistant, content: ids.iter().map(call).collect() })
    }

    fn result(id: &str, content: &str) -> Arc<Message> {
        let output = ToolOutput { call_id: id.to_owned(), content: content.to_owned(), is_error: false };
        Arc::new(Message::tool(output))
    }

    fn user(text: &str) -> Arc<Message> {
        Arc::new(Message::user(text))
    }

    #[track_caller]
    fn check(messages: &[Arc<Message>], places: &[usize]) {
        let expected: Vec<&Message> = places.iter().map(|at| messages[*at].as_ref()).collect();
        assert_eq!(in_order(messages), expected);
    }

    #[test]
    fn j02_what_came_of_a_call_stands_right_behind_it_wherever_it_was_recorded() {
        check(&[user("u"), calls(&["a"]), result("a", "1"), user("v")], &[0, 1, 2, 3]);
        check(&[user("u"), calls(&["a"]), user("v"), result("a", "1")], &[0, 1, 3, 2]);
        check(&[calls(&["a", "b"]), result("b", "1"), user("v"), result("a", "2")], &[0, 1, 3, 2]);
        // An id that is given again belongs to the turn before its result; what nobody called stays where it is.
        check(&[calls(&["a"]), user("v"), calls(&["a"]), user("w"), result("a", "1")], &[0, 1, 2, 4, 3]);
        check(&[calls(&["a", "a"]), user("v"), result("a", "1"), result("a", "2")], &[0, 2, 3, 1]);
        check(&[user("u"), result("x", "1"), user("v")], &[0, 1, 2]);
    }
}
