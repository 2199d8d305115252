//! The events of the Responses API as those of a model.
//!
//! An item is whole when the provider says that it is done; a call that it calls incomplete never is.

use std::collections::BTreeMap;

use serde_json::Value;

use super::REASONING;
use crate::inference::{ModelEvent, StopReason};
use crate::sse;
use crate::usage;
use crate::wire::decoder::{BLOCKS_MAX, Broken, Read, next_call, say, warn_of};
use crate::wire::failure::Said;
use crate::wire::sealed::Maker;

/// What divides the parts of a summary.
const BETWEEN: &str = "\n\n";
/// What some servers end a stream with.
const DONE: &str = "[DONE]";

/// Reads one answer.
pub(in crate::wire) struct Reader {
    maker: Maker,
    /// The items so far, by their place.
    items: BTreeMap<u64, Item>,
    calls: usize,
}

enum Item {
    /// Text, and whether any of it came piece by piece.
    Said {
        in_pieces: bool,
    },
    Thought {
        in_pieces: bool,
    },
    Call(Call),
    /// It is whole, or of no interest.
    Done,
}

struct Call {
    id: String,
    number: u32,
    arguments: String,
}

impl Reader {
    pub(in crate::wire) fn new(maker: Maker) -> Self {
        Reader { maker, items: BTreeMap::new(), calls: 0 }
    }

    pub(in crate::wire) fn take(&mut self, event: &sse::Event, out: &mut Vec<ModelEvent>) -> Read {
        if event.data.trim() == DONE {
            return Ok(());
        }
        let wrong = |_| Broken::Wrong("its answer holds what is no event of a response");
        let data: Value = serde_json::from_str(&event.data).map_err(wrong)?;
        let at = data["output_index"].as_u64().unwrap_or_default();
        let (item, response) = (&data["item"], &data["response"]);
        let delta = || data["delta"].as_str().map(str::to_owned);
        match data["type"].as_str().unwrap_or(&event.name) {
            "response.output_item.added" => self.begin(at, item, out),
            "response.output_text.delta" | "response.refusal.delta" => {
                self.item(at, Item::Said { in_pieces: true })?;
                say(delta(), ModelEvent::Text, out);
                Ok(())
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.item(at, Item::Thought { in_pieces: true })?;
                say(delta(), ModelEvent::Reasoning, out);
                Ok(())
            }
            "response.reasoning_summary_part.added" if data["summary_index"].as_u64() > Some(0) => {
                out.push(ModelEvent::Reasoning(BETWEEN.to_owned()));
                Ok(())
            }
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                self.add_arguments(at, delta().unwrap_or_default(), out);
                Ok(())
            }
            "response.output_item.done" => self.end(at, item, out),
            "response.completed" => self.completed(response, &event.data, out),
            "response.incomplete" => incomplete(response, &event.data, out),
            "response.failed" => Err(Broken::Said(Box::new(Said::of(response)))),
            "response.cancelled" => Err(Broken::Wrong("it cancelled its answer")),
            "error" => Err(Broken::Said(Box::new(Said::of(&data)))),
            _ => Ok(()),
        }
    }

    /// Keeps what an item is, in place of what was known of it.
    fn item(&mut self, at: u64, item: Item) -> Read {
        if self.items.len() >= BLOCKS_MAX && !self.items.contains_key(&at) {
            return Err(Broken::Endless("its answer holds too many items"));
        }
        self.items.insert(at, item);
        Ok(())
    }

    fn begin(&mut self, at: u64, item: &Value, out: &mut Vec<ModelEvent>) -> Read {
        match item["type"].as_str() {
            Some("message") => self.item(at, Item::Said { in_pieces: false }),
            Some(REASONING) => self.item(at, Item::Thought { in_pieces: false }),
            Some("function_call" | "custom_tool_call") => self.begin_call(at, item, out),
            _ => self.item(at, Item::Done),
        }
    }

    fn begin_call(&mut self, at: u64, item: &Value, out: &mut Vec<ModelEvent>) -> Read {
        let number = next_call(self.calls)?;
        let text = |name: &str| item[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let (Some(id), Some(name)) = (text("call_id").or_else(|| text("id")), text("name")) else {
            return Err(Broken::Wrong("a tool call of its answer has no id or no name"));
        };
        self.item(at, Item::Call(Call { id: id.clone(), number, arguments: String::new() }))?;
        self.calls += 1;
        out.push(ModelEvent::ToolCallStarted { index: number, id, name });
        Ok(())
    }

    fn add_arguments(&mut self, at: u64, text: String, out: &mut Vec<ModelEvent>) {
        if let Some(Item::Call(call)) = self.items.get_mut(&at) {
            call.arguments.push_str(&text);
            let index = call.number;
            say(Some(text), |text| ModelEvent::ToolCallArguments { index, text }, out);
        }
    }

    /// An item is done, and is all here.
    fn end(&mut self, at: u64, item: &Value, out: &mut Vec<ModelEvent>) -> Read {
        if !self.items.contains_key(&at) {
            self.begin(at, item, out)?;
        }
        match self.items.get(&at) {
            Some(Item::Call(_)) if item["status"] == "incomplete" => return Ok(()),
            Some(Item::Call(call)) => {
                let whole = item["arguments"].as_str().or(item["input"].as_str()).unwrap_or_default();
                // Some servers send the arguments only now.
                let rest = whole.strip_prefix(call.arguments.as_str()).unwrap_or_default().to_owned();
                let index = call.number;
                say(Some(rest), |text| ModelEvent::ToolCallArguments { index, text }, out);
                out.push(ModelEvent::ToolCallEnded { index });
            }
            Some(Item::Said { in_pieces: false }) => {
                let texts = texts(&item["content"]);
                texts.for_each(|text| say(Some(text.to_owned()), ModelEvent::Text, out));
            }
            Some(Item::Thought { in_pieces }) => {
                if !in_pieces {
                    let texts: Vec<&str> = texts(&item["summary"]).collect();
                    say(Some(texts.join(BETWEEN)), ModelEvent::Reasoning, out);
                }
                out.push(ModelEvent::ReasoningEnded { sealed: sealed(item, &self.maker) });
            }
            _ => {}
        }
        self.item(at, Item::Done)
    }

    fn completed(&mut self, response: &Value, data: &str, out: &mut Vec<ModelEvent>) -> Read {
        // A call of which the end was not told is whole now.
        let open: Vec<(u64, String)> = self.items.iter().filter_map(open_call).collect();
        for (at, id) in open {
            let is_it = |item: &&Value| item["call_id"] == *id;
            let all = response["output"].as_array().map(Vec::as_slice).unwrap_or_default();
            // An id may be there twice.
            let at_its_place = usize::try_from(at).ok().and_then(|at| all.get(at)).filter(is_it);
            let whole = at_its_place.or_else(|| all.iter().find(is_it));
            self.end(at, whole.unwrap_or(&Value::Null), out)?;
        }
        out.extend(usage::of_body(data.as_bytes()).map(ModelEvent::Usage));
        let reason = if self.calls > 0 { StopReason::ToolUse } else { StopReason::EndTurn };
        out.push(ModelEvent::Stopped(reason));
        Ok(())
    }
}

fn open_call((at, item): (&u64, &Item)) -> Option<(u64, String)> {
    match item {
        Item::Call(call) => Some((*at, call.id.clone())),
        _ => None,
    }
}

fn incomplete(response: &Value, data: &str, out: &mut Vec<ModelEvent>) -> Read {
    out.extend(usage::of_body(data.as_bytes()).map(ModelEvent::Usage));
    match response["incomplete_details"]["reason"].as_str() {
        Some("content_filter") => Err(Broken::Filtered("the answer ended with content_filter")),
        reason => {
            // Whatever the reason is, there was more to say.
            if reason != Some("max_output_tokens") {
                warn_of(reason.unwrap_or_default());
            }
            out.push(ModelEvent::Stopped(StopReason::MaxTokens));
            Ok(())
        }
    }
}

/// The thought as the provider takes it back: as it was given, if it can be read without having been stored.
fn sealed(item: &Value, maker: &Maker) -> Option<Value> {
    item["encrypted_content"].as_str()?;
    let mut item = item.clone();
    if let Some(fields) = item.as_object_mut() {
        fields.remove("status");
    }
    Some(maker.seal(item))
}

/// The texts of a list of parts.
fn texts(parts: &Value) -> impl Iterator<Item = &str> {
    let parts = parts.as_array().into_iter().flatten();
    parts.filter_map(|part| part["text"].as_str().or(part["refusal"].as_str()))
}
