//! What a request's conversation says about the scenario to play.
//!
//! Only the marker, and how many tool results came after it: nothing is remembered between requests, so a retry
//! gets the same step again and a resumed conversation goes on where it was.

use serde_json::Value;

const MARKER: &str = "[[scenario:";
const MARKER_END: &str = "]]";

/// Where in which scenario a conversation stands.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) scenario: Option<String>,
    pub(crate) argument: Option<String>,
    /// The tool results after the marker.
    pub(crate) results: usize,
}

impl Place {
    /// Reads the `input` of the Responses API: a text, or a list of items.
    pub(crate) fn of_input(input: &Value) -> Self {
        let mut place = Self::default();
        match input {
            Value::String(text) => place.read_text(text),
            Value::Array(items) => items.iter().for_each(|item| place.read_item(item)),
            _ => {}
        }
        place
    }

    /// Reads the `messages` of chat completions.
    pub(crate) fn of_messages(messages: &Value) -> Self {
        let mut place = Self::default();
        for message in messages.as_array().into_iter().flatten() {
            match message["role"].as_str() {
                Some("user") => texts(&message["content"]).for_each(|text| place.read_text(text)),
                Some("tool") => place.read_result(&message["content"]),
                _ => {}
            }
        }
        place
    }

    /// Reads the `messages` of Anthropic Messages, in which results are parts of what the user says.
    pub(crate) fn of_turns(messages: &Value) -> Self {
        let mut place = Self::default();
        let is_user = |message: &&Value| message["role"] == "user";
        for message in messages.as_array().into_iter().flatten().filter(is_user) {
            let content = &message["content"];
            content.as_str().into_iter().for_each(|text| place.read_text(text));
            for block in content.as_array().into_iter().flatten() {
                match block["type"].as_str() {
                    Some("tool_result") => place.read_result(&block["content"]),
                    _ => block["text"].as_str().into_iter().for_each(|text| place.read_text(text)),
                }
            }
        }
        place
    }

    fn read_item(&mut self, item: &Value) {
        let kind = item["type"].as_str().unwrap_or("message");
        if kind == "message" && item["role"] == "user" {
            texts(&item["content"]).for_each(|text| self.read_text(text));
        } else if kind.ends_with("_call_output") {
            self.read_result(&item["output"]);
        }
    }

    fn read_result(&mut self, output: &Value) {
        self.results += usize::from(!texts(output).any(is_aborted));
    }

    /// The last marker of a text wins over all before it.
    fn read_text(&mut self, text: &str) {
        let Some((_, rest)) = text.rsplit_once(MARKER) else { return };
        let Some((marker, _)) = rest.split_once(MARKER_END) else { return };
        let (name, argument) = marker.split_once(char::is_whitespace).unwrap_or((marker, ""));
        let argument = argument.trim();
        *self = Self {
            scenario: Some(name.to_owned()),
            argument: (!argument.is_empty()).then(|| argument.to_owned()),
            results: 0,
        };
    }
}

/// Whether this is how an agent closes a call that has no result: `aborted` when its process was killed, and a longer
/// text when it was told to stop, by a person or by the end of its input. Such a call is made again, as by a model that
/// still wants what it asked for.
fn is_aborted(output: &str) -> bool {
    output == "aborted" || (output.starts_with("Wall time: ") && output.ends_with("\naborted by user"))
}

/// The texts of a content: a text itself, or a list of parts that have one.
fn texts(content: &Value) -> impl Iterator<Item = &str> {
    let parts = content.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str());
    content.as_str().into_iter().chain(parts)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn user(text: &str) -> Value {
        json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
    }

    fn result(output: Value) -> Value {
        json!({"type": "function_call_output", "call_id": "c", "output": output})
    }

    #[track_caller]
    fn check(input: Value, scenario: Option<&str>, argument: Option<&str>, results: usize) {
        let expected =
            Place { scenario: scenario.map(Into::into), argument: argument.map(Into::into), results };
        assert_eq!(Place::of_input(&input), expected);
    }

    #[test]
    fn the_last_marker_of_the_user_counts_with_its_argument() {
        check(json!("say [[scenario:slow]] please"), Some("slow"), None, 0);
        check(json!([user("[[scenario:shell  touch a b ]]")]), Some("shell"), Some("touch a b"), 0);
        check(json!([user("[[scenario:a]] [[scenario:b]]"), user("and on")]), Some("b"), None, 0);
        check(json!([user("[[scenario:a]]"), user("[[scenario:b x]]")]), Some("b"), Some("x"), 0);
        check(json!([user("[[scenario:open")]), None, None, 0);
        check(json!(null), None, None, 0);
    }

    #[test]
    fn a_marker_that_the_user_did_not_write_is_no_marker() {
        let theirs = json!([
            user("[[scenario:shell]]"),
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "[[scenario:a]]"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "[[scenario:b]]"}]},
            result(json!("[[scenario:c]]")),
        ]);
        check(theirs, Some("shell"), None, 1);
    }

    #[test]
    fn results_are_counted_from_the_last_marker_on() {
        let parts = json!([{"type": "input_text", "text": "one"}, {"type": "input_text", "text": "two"}]);
        let custom = json!({"type": "custom_tool_call_output", "call_id": "c", "output": "ok"});
        let input = json!([
            user("[[scenario:a]]"),
            result(json!("ok")),
            user("[[scenario:b]]"),
            custom,
            result(parts)
        ]);
        check(input, Some("b"), None, 2);
    }

    #[test]
    fn a_call_that_was_aborted_is_made_again() {
        let killed =
            json!([user("[[scenario:a]]"), result(json!("ok")), result(json!("aborted")), user("go on")]);
        check(killed, Some("a"), None, 1);
        let stopped = result(json!("Wall time: 0.1 seconds\naborted by user"));
        check(json!([user("[[scenario:a]]"), stopped, user("go on")]), Some("a"), None, 0);
        let printed = result(json!("Chunk ID: 1\nOutput:\naborted by user"));
        check(json!([user("[[scenario:a]]"), printed, user("go on")]), Some("a"), None, 1);
    }

    #[test]
    fn messages_say_the_same_as_items() {
        let messages = json!([
            {"role": "system", "content": "[[scenario:system]]"},
            {"role": "user", "content": "[[scenario:a]]"},
            {"role": "tool", "tool_call_id": "c1", "content": "ok"},
            {"role": "user", "content": [{"type": "text", "text": "[[scenario:b x]]"}]},
            {"role": "assistant", "content": "[[scenario:theirs]]", "tool_calls": []},
            {"role": "tool", "tool_call_id": "c2", "content": "ok"},
            {"role": "tool", "tool_call_id": "c3", "content": [{"type": "text", "text": "[[scenario:c]]"}]},
            {"role": "tool", "tool_call_id": "c4", "content": "aborted"},
        ]);
        let expected = Place { scenario: Some("b".into()), argument: Some("x".into()), results: 2 };
        assert_eq!(Place::of_messages(&messages), expected);
        assert_eq!(Place::of_messages(&json!("[[scenario:a]]")), Place::default());

        let turns = json!([
            {"role": "user", "content": "[[scenario:a]]"},
            {"role": "assistant", "content": [{"type": "text", "text": "[[scenario:theirs]]"}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "ok"},
                {"type": "text", "text": "[[scenario:b x]]"},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c2", "content": "[[scenario:c]]"},
                {"type": "tool_result", "tool_use_id": "c3", "content": [{"type": "text", "text": "ok"}]},
                {"type": "tool_result", "tool_use_id": "c4", "content": "aborted"},
            ]},
        ]);
        assert_eq!(Place::of_turns(&turns), expected);
        assert_eq!(Place::of_turns(&json!("[[scenario:a]]")), Place::default());
    }
}
