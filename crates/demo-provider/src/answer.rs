//! A scenario's step as the events of the Responses API.
//!
//! Pure: it makes the events; `http` sends them. Token counts are a quarter of the characters, so that the same
//! conversation always costs the same.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::scenario::{Answer, Call, Ending};

const CHARS_PER_TOKEN: usize = 4;

/// One event, and how long to wait before it.
pub(crate) struct Frame {
    pub(crate) pause: Duration,
    pub(crate) event: Value,
}

/// What the events of one response have in common.
pub(crate) struct Reply<'a> {
    /// Unique among all responses, also those of another provider.
    pub(crate) id: &'a str,
    pub(crate) model: &'a str,
    pub(crate) argument: &'a str,
    /// The length of what was asked.
    pub(crate) asked_chars: usize,
}

impl Reply<'_> {
    /// The events of an answer, in order; the last is `response.completed` if it ends so.
    pub(crate) fn frames(&self, answer: &Answer) -> Vec<Frame> {
        let mut events = Events::default();
        events.push(json!({"type": "response.created", "response": self.response("in_progress", &[])}));
        if !answer.say.is_empty() {
            self.say(&mut events, answer);
        }
        // Any other end is in the middle of the text, so nothing comes after that.
        if answer.end == Ending::Completed {
            for call in &answer.call {
                self.call(&mut events, call);
            }
            let response = self.response("completed", &events.output);
            events.push(json!({"type": "response.completed", "response": response}));
        }
        events.frames
    }

    /// Puts the marker's argument into a text of the scenario.
    pub(crate) fn fill(&self, text: &str) -> String {
        text.replace("{argument}", self.argument)
    }

    fn fill_all(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.fill(text).into(),
            Value::Array(values) => values.iter().map(|value| self.fill_all(value)).collect(),
            Value::Object(fields) => fields
                .iter()
                .map(|(name, value)| (name.clone(), self.fill_all(value)))
                .collect::<Map<_, _>>()
                .into(),
            other => other.clone(),
        }
    }

    fn response(&self, status: &str, output: &[Value]) -> Value {
        let said: usize = output.iter().map(said_chars).sum();
        let (asked, said) = (self.asked_chars.div_ceil(CHARS_PER_TOKEN), said.div_ceil(CHARS_PER_TOKEN));
        let usage = (status == "completed").then(|| {
            json!({
                "input_tokens": asked,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": said,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": asked + said,
            })
        });
        json!({
            "id": format!("resp_{}", self.id), "object": "response", "status": status, "model": self.model,
            "output": output, "usage": usage, "error": null, "incomplete_details": null,
        })
    }

    fn say(&self, events: &mut Events, answer: &Answer) {
        let index = events.output.len();
        let id = format!("msg_{}_{index}", self.id);
        let message = |status: &str, content: &[Value]| {
            let role = "assistant";
            json!({"id": id, "type": "message", "status": status, "role": role, "content": content})
        };
        let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": []});
        let place =
            |kind: &str| json!({"type": kind, "item_id": id, "output_index": index, "content_index": 0});

        events.item("response.output_item.added", index, &message("in_progress", &[]));
        events.push(with(place("response.content_part.added"), "part", part("")));
        let mut text = String::new();
        for delta in answer.say.iter().cycle().take(answer.say.len() * answer.repeat) {
            let delta = self.fill(delta);
            text.push_str(&delta);
            let event = with(place("response.output_text.delta"), "delta", delta.into());
            events.push_after(Duration::from_millis(answer.pause_ms), event);
        }
        if answer.end == Ending::Completed {
            events.push(with(place("response.output_text.done"), "text", text.as_str().into()));
            events.push(with(place("response.content_part.done"), "part", part(&text)));
            events.done(index, message("completed", &[part(&text)]));
        }
    }

    fn call(&self, events: &mut Events, call: &Call) {
        let index = events.output.len();
        let (kind, tool, field, stem, value) = match call {
            Call::Function { tool, arguments } => {
                let arguments = self.fill_all(arguments).to_string();
                ("function_call", tool, "arguments", "response.function_call_arguments", arguments)
            }
            Call::Custom { tool, input } => {
                ("custom_tool_call", tool, "input", "response.custom_tool_call_input", self.fill(input))
            }
        };
        let id = format!("item_{}_{index}", self.id);
        let call_id = format!("call_{}_{index}", self.id);
        let item = |status: &str, value: &str| {
            let of_every_kind =
                json!({"id": id, "type": kind, "status": status, "call_id": call_id, "name": tool});
            with(of_every_kind, field, value.into())
        };
        let place =
            |suffix: &str| json!({"type": format!("{stem}.{suffix}"), "item_id": id, "output_index": index});

        events.item("response.output_item.added", index, &item("in_progress", ""));
        events.push(with(place("delta"), "delta", value.as_str().into()));
        events.push(with(place("done"), field, value.as_str().into()));
        events.done(index, item("completed", &value));
    }
}

/// The events so far, and the finished items among them.
#[derive(Default)]
struct Events {
    frames: Vec<Frame>,
    output: Vec<Value>,
}

impl Events {
    fn push(&mut self, event: Value) {
        self.push_after(Duration::ZERO, event);
    }

    fn push_after(&mut self, pause: Duration, event: Value) {
        let event = with(event, "sequence_number", self.frames.len().into());
        self.frames.push(Frame { pause, event });
    }

    fn item(&mut self, kind: &str, index: usize, item: &Value) {
        self.push(json!({"type": kind, "output_index": index, "item": item}));
    }

    fn done(&mut self, index: usize, item: Value) {
        self.item("response.output_item.done", index, &item);
        self.output.push(item);
    }
}

fn with(mut object: Value, name: &str, value: Value) -> Value {
    object[name] = value;
    object
}

/// How many characters of an item the model made.
fn said_chars(item: &Value) -> usize {
    [&item["content"][0]["text"], &item["arguments"], &item["input"]]
        .into_iter()
        .filter_map(Value::as_str)
        .map(|text| text.chars().count())
        .sum()
}
