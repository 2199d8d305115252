//! The calls of one answer, which come in pieces and may come interleaved.
//!
//! A call is shown when its name and id are known, and is whole only when the answer is: a client carries out what is whole,
//! and an answer that was cut may have been cut in a call.

use serde::Deserialize;

use super::{Tools, tools::Origin};
use crate::{
    chat::ToolCallDelta,
    responses::{Event, Failure, OutputItem, Status},
};

/// How many calls one answer may hold.
pub const CALLS_MAX: usize = 128;

/// The calls so far, in the order in which they began.
#[derive(Debug, Default)]
pub(super) struct Calls(Vec<Pending>);

/// A call that is not whole yet.
#[derive(Debug, Default)]
struct Pending {
    index: Option<u32>,
    id: String,
    name: String,
    arguments: String,
    shown: Option<Shown>,
}

/// What the client knows of a call.
#[derive(Debug)]
struct Shown {
    output_index: usize,
    item_id: String,
    origin: Origin,
}

/// What a custom tool's call looks like as a function's.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OneText {
    input: String,
}

impl Calls {
    /// How many were shown.
    pub(super) fn shown(&self) -> usize {
        self.0.iter().filter(|call| call.shown.is_some()).count()
    }

    /// Adds a piece. `next` is the place of the item that it may begin.
    pub(super) fn add(
        &mut self,
        delta: ToolCallDelta,
        next: usize,
        answer: &str,
        tools: &Tools,
        events: &mut Vec<Event>,
    ) -> Result<(), Failure> {
        let id = delta.id.unwrap_or_default();
        let function = delta.function.unwrap_or_default();
        let call = self.find_or_begin(delta.index, &id)?;
        if call.id.is_empty() {
            call.id = id;
        }
        if let Some(name) = function.name.filter(|_| call.shown.is_none()) {
            // Providers that send the name again send all of it; none is known to send it in pieces.
            call.name = if name.is_empty() { std::mem::take(&mut call.name) } else { name };
        }
        let arguments = function.arguments.unwrap_or_default();
        call.arguments.push_str(&arguments);
        match &call.shown {
            Some(shown) => events.extend(shown.delta(arguments)),
            None if !call.id.is_empty() && !call.name.is_empty() => call.show(next, answer, tools, events),
            None => {}
        }
        Ok(())
    }

    /// The call that a piece belongs to. A new id at a known place is a new call: some providers send every call whole, and
    /// all at the same place.
    fn find_or_begin(&mut self, index: Option<u32>, id: &str) -> Result<&mut Pending, Failure> {
        let is_same = |call: &Pending| match index {
            Some(_) => call.index == index && (id.is_empty() || call.id.is_empty() || call.id == id),
            None => id.is_empty() || call.id == id,
        };
        if let Some(at) = self.0.iter().rposition(is_same) {
            return Ok(&mut self.0[at]);
        }
        if self.0.len() >= CALLS_MAX {
            return Err(failure("too_many_tool_calls", "the answer holds too many tool calls"));
        }
        if !id.is_empty() && self.0.iter().any(|call| call.id == id) {
            return Err(failure("invalid_tool_call", "two tool calls of the answer have one id"));
        }
        let at = self.0.len();
        self.0.push(Pending { index, ..Pending::default() });
        Ok(&mut self.0[at])
    }

    /// Makes every call whole, in order, or says why one cannot be.
    pub(super) fn end(
        self,
        mut next: usize,
        answer: &str,
        tools: &Tools,
        events: &mut Vec<Event>,
    ) -> Result<Vec<(usize, OutputItem)>, Failure> {
        let mut whole = Vec::new();
        // All are looked at before one is given: a client would carry out the first of an answer that then fails.
        let mut made = Vec::new();
        for mut call in self.0 {
            if call.name.is_empty() {
                return Err(failure("invalid_tool_call", "a tool call of the answer has no name"));
            }
            if call.shown.is_none() {
                if call.id.is_empty() {
                    call.id = format!("call_{answer}_{next}");
                }
                call.show(next, answer, tools, events);
                next += 1;
            }
            let Some(shown) = call.shown.take() else { continue };
            whole.push(shown.whole(call.id, call.arguments, &mut made)?);
        }
        events.extend(made);
        Ok(whole)
    }
}

impl Pending {
    fn show(&mut self, output_index: usize, answer: &str, tools: &Tools, events: &mut Vec<Event>) {
        let origin = tools.origin(&self.name);
        let stem = if origin.is_custom { "ctc" } else { "fc" };
        let shown = Shown { output_index, item_id: format!("{stem}_{answer}_{output_index}"), origin };
        let item = shown.item(self.id.clone(), Status::InProgress, String::new());
        events.push(Event::ItemAdded { output_index, item });
        events.extend(shown.delta(self.arguments.clone()));
        self.shown = Some(shown);
    }
}

impl Shown {
    /// A custom tool's text is known only when its arguments are whole.
    fn delta(&self, delta: String) -> Option<Event> {
        let (item_id, output_index) = (self.item_id.clone(), self.output_index);
        (!self.origin.is_custom && !delta.is_empty()).then_some(Event::ArgumentsDelta {
            item_id,
            output_index,
            delta,
        })
    }

    fn whole(
        self,
        call_id: String,
        arguments: String,
        events: &mut Vec<Event>,
    ) -> Result<(usize, OutputItem), Failure> {
        let (item_id, output_index) = (self.item_id.clone(), self.output_index);
        let text = if self.origin.is_custom {
            let OneText { input } = serde_json::from_str(&arguments).map_err(|_| {
                failure(
                    "invalid_custom_tool_input",
                    "the model called a custom tool with something else than its input",
                )
            })?;
            let delta = input.clone();
            events.push(Event::InputDelta { item_id: item_id.clone(), output_index, delta });
            events.push(Event::InputDone { item_id, output_index, input: input.clone() });
            input
        } else {
            events.push(Event::ArgumentsDone { item_id, output_index, arguments: arguments.clone() });
            arguments
        };
        let item = self.item(call_id, Status::Completed, text);
        events.push(Event::ItemDone { output_index, item: item.clone() });
        Ok((output_index, item))
    }

    fn item(&self, call_id: String, status: Status, text: String) -> OutputItem {
        let (id, Origin { name, namespace, is_custom }) = (self.item_id.clone(), self.origin.clone());
        if is_custom {
            OutputItem::CustomToolCall { id, status, call_id, name, namespace, input: text }
        } else {
            OutputItem::FunctionCall { id, status, call_id, name, namespace, arguments: text }
        }
    }
}

fn failure(code: &str, message: &str) -> Failure {
    Failure { code: code.to_owned(), message: message.to_owned() }
}
