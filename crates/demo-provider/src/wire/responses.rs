//! A speech as events of the Responses API, or as the response that they add up to.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Context, waiting, with};
use crate::{
    reply::Piece,
    scenario::Ending,
    speech::{Beat, Kind, Part, Said, Speech},
};

/// What stands for a thought that only its maker can read.
const SEALED: &str = "sealed-by-the-demo-provider";

/// The events in order, the last of which says how the response ended, if anything does.
pub(super) fn stream(context: &Context<'_>, speech: &Speech<'_>) -> Vec<Piece> {
    let mut events = Events { context, pieces: Vec::new(), output: Vec::new() };
    let created = response(context, speech, "in_progress", &[]);
    events.push(json!({"type": "response.created", "response": created}));
    events.say(speech);
    if let Ending::Failed { code, message, status: Some(status), retry_after_s } = speech.end {
        // One that does not come from the response itself.
        let error =
            json!({"type": "error", "code": code, "message": message, "param": null, "status": status});
        events.push(waiting(error, *retry_after_s));
    } else if let Some(status) = status(speech.end) {
        let response = response(context, speech, status, &events.output);
        events.push(json!({"type": format!("response.{status}"), "response": response}));
    }
    events.pieces
}

/// The response of which the events tell. One that never ends is told as completed: only half of it is sent.
pub(super) fn whole(context: &Context<'_>, speech: &Speech<'_>) -> Value {
    let mut events = Events { context, pieces: Vec::new(), output: Vec::new() };
    events.say(speech);
    response(context, speech, status(speech.end).unwrap_or("completed"), &events.output)
}

/// What a response that ends so is said to be; nothing is said in the midst of it.
fn status(end: &Ending) -> Option<&'static str> {
    match end {
        Ending::Completed => Some("completed"),
        Ending::Incomplete { .. } => Some("incomplete"),
        Ending::Failed { .. } => Some("failed"),
        Ending::Cut | Ending::Unfinished | Ending::Malformed | Ending::Stall => None,
    }
}

fn response(context: &Context<'_>, speech: &Speech<'_>, status: &str, output: &[Value]) -> Value {
    let usage = ["completed", "incomplete"].contains(&status).then(|| {
        let (asked, (said, reasoning)) = (context.asked_tokens(), speech.tokens());
        json!({
            "input_tokens": asked,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": said,
            "output_tokens_details": {"reasoning_tokens": reasoning},
            "total_tokens": asked + said,
        })
    });
    let (error, details) = match speech.end {
        Ending::Failed { code, message, retry_after_s, .. } if status == "failed" => {
            (waiting(json!({"code": code, "message": message}), *retry_after_s), Value::Null)
        }
        Ending::Incomplete { reason } if status == "incomplete" => (Value::Null, json!({"reason": reason})),
        _ => (Value::Null, Value::Null),
    };
    json!({
        "id": format!("resp_{}", context.id), "object": "response", "status": status, "model": context.model,
        "output": output, "usage": usage, "error": error, "incomplete_details": details,
    })
}

/// The events so far, and the finished items among them.
struct Events<'a> {
    context: &'a Context<'a>,
    pieces: Vec<Piece>,
    output: Vec<Value>,
}

impl Events<'_> {
    fn push(&mut self, event: Value) {
        self.push_after(Duration::ZERO, event);
    }

    fn push_after(&mut self, pause: Duration, event: Value) {
        let event = with(event, "sequence_number", self.pieces.len());
        let kind = event["type"].as_str().unwrap_or_default();
        self.pieces.push(Piece { pause, text: format!("event: {kind}\ndata: {event}\n\n") });
    }

    fn say(&mut self, speech: &Speech<'_>) {
        for beat in speech.beats() {
            let (Beat::Open(at) | Beat::Delta(at, _) | Beat::Close(at)) = beat;
            let part = &speech.parts[at];
            let item = Item { kind: &part.kind, context: self.context, index: at };
            match beat {
                Beat::Open(_) => {
                    self.item("added", &item, item.json("in_progress", None));
                    if let Some(opened) = item.part_event("added", "") {
                        self.push(opened);
                    }
                }
                Beat::Delta(_, delta) => {
                    let delta = part.deltas[delta].as_str();
                    self.push_after(part.pause, with(item.event("delta"), "delta", delta));
                }
                Beat::Close(_) => self.close(part, &item),
            }
        }
    }

    fn close(&mut self, part: &Part, item: &Item<'_>) {
        let status = if part.said == Said::Whole { "completed" } else { "incomplete" };
        let text = part.text();
        self.push(with(item.event("done"), item.field(), text.as_str()));
        if let Some(closed) = item.part_event("done", &text) {
            self.push(closed);
        }
        let done = item.json(status, Some(&text));
        self.item("done", item, done.clone());
        self.output.push(done);
    }

    fn item(&mut self, what: &str, item: &Item<'_>, value: Value) {
        let kind = format!("response.output_item.{what}");
        self.push(json!({"type": kind, "output_index": item.index, "item": value}));
    }
}

/// One item of the output.
struct Item<'a> {
    kind: &'a Kind,
    context: &'a Context<'a>,
    index: usize,
}

impl Item<'_> {
    fn id(&self) -> String {
        let prefix = match self.kind {
            Kind::Reasoning => "rs",
            Kind::Text => "msg",
            Kind::Function { .. } | Kind::FreeForm { .. } => "item",
        };
        format!("{prefix}_{}_{}", self.context.id, self.index)
    }

    /// The item as it stands once this is said; nothing, before it begins.
    fn json(&self, status: &str, said: Option<&str>) -> Value {
        let item = |kind: &str| json!({"id": self.id(), "type": kind, "status": status});
        let parts: Vec<Value> = said.map(|text| self.part(text)).into_iter().collect();
        let call = |kind: &str, tool: &str| {
            let call = with(item(kind), "call_id", format!("call_{}_{}", self.context.id, self.index));
            with(with(call, "name", tool), self.field(), said.unwrap_or_default())
        };
        match self.kind {
            Kind::Reasoning if said.is_some() && self.context.include_sealed => {
                with(with(item("reasoning"), "summary", parts), "encrypted_content", SEALED)
            }
            Kind::Reasoning => with(item("reasoning"), "summary", parts),
            Kind::Text => with(with(item("message"), "role", "assistant"), "content", parts),
            Kind::Function { tool } => call("function_call", tool),
            Kind::FreeForm { tool } => call("custom_tool_call", tool),
        }
    }

    /// What its text is called.
    fn field(&self) -> &'static str {
        match self.kind {
            Kind::Reasoning | Kind::Text => "text",
            Kind::Function { .. } => "arguments",
            Kind::FreeForm { .. } => "input",
        }
    }

    fn part(&self, text: &str) -> Value {
        match self.kind {
            Kind::Reasoning => json!({"type": "summary_text", "text": text}),
            _ => json!({"type": "output_text", "text": text, "annotations": []}),
        }
    }

    fn event(&self, what: &str) -> Value {
        let stem = match self.kind {
            Kind::Reasoning => "reasoning_summary_text",
            Kind::Text => "output_text",
            Kind::Function { .. } => "function_call_arguments",
            Kind::FreeForm { .. } => "custom_tool_call_input",
        };
        self.place(json!({"type": format!("response.{stem}.{what}")}))
    }

    /// Where the text stands in a part of its own, that part's beginning or end.
    fn part_event(&self, what: &str, text: &str) -> Option<Value> {
        let stem = match self.kind {
            Kind::Reasoning => "reasoning_summary_part",
            Kind::Text => "content_part",
            Kind::Function { .. } | Kind::FreeForm { .. } => return None,
        };
        let event = self.place(json!({"type": format!("response.{stem}.{what}")}));
        Some(with(event, "part", self.part(text)))
    }

    fn place(&self, event: Value) -> Value {
        let event = with(with(event, "item_id", self.id()), "output_index", self.index);
        match self.kind {
            Kind::Reasoning => with(event, "summary_index", 0),
            Kind::Text => with(event, "content_index", 0),
            Kind::Function { .. } | Kind::FreeForm { .. } => event,
        }
    }
}
