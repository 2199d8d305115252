//! The events of Anthropic Messages as those of a model.
//!
//! A call is whole when its block stops. One whose arguments are no JSON then, or that has none, may have been cut at the most that
//! the model may say, which is known only when something follows: another block, or the reason why it stopped. So it is ended then, or
//! never. One without arguments is taken for whole when the stream breaks off first.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{REDACTED, THINKING};
use crate::inference::{ModelEvent, StopReason};
use crate::sse;
use crate::usage::Usage;
use crate::wire::decoder::{BLOCKS_MAX, Broken, Read, next_call, say, warn_of};
use crate::wire::failure::Said;
use crate::wire::sealed::Maker;

/// The reasons to stop of a model that has said all.
const ENDED: [&str; 4] = ["end_turn", "stop_sequence", "tool_use", "pause_turn"];

/// Reads one answer.
pub(in crate::wire) struct Reader {
    maker: Maker,
    /// The blocks that are open, by their place.
    blocks: BTreeMap<u64, Block>,
    /// Calls that stopped with what is no JSON, or with nothing.
    doubtful: Vec<Doubtful>,
    calls: usize,
    /// What was told of the cost, by field.
    usage: Map<String, Value>,
    stop_reason: Option<String>,
}

struct Doubtful {
    call: u32,
    has_arguments: bool,
}

enum Block {
    Text,
    Thinking { text: String, signature: String },
    Redacted(Value),
    Call { number: u32, arguments: String, input: Value },
    Other,
}

impl Reader {
    pub(in crate::wire) fn new(maker: Maker) -> Self {
        Reader {
            maker,
            blocks: BTreeMap::new(),
            doubtful: Vec::new(),
            calls: 0,
            usage: Map::new(),
            stop_reason: None,
        }
    }

    pub(in crate::wire) fn take(&mut self, event: &sse::Event, out: &mut Vec<ModelEvent>) -> Read {
        let wrong = |_| Broken::Wrong("its answer holds what is no event of a message");
        let data: Value = serde_json::from_str(&event.data).map_err(wrong)?;
        let at = data["index"].as_u64().unwrap_or_default();
        match data["type"].as_str().unwrap_or(&event.name) {
            "message_start" => {
                self.count(&data["message"]["usage"], out);
                Ok(())
            }
            "content_block_start" => self.begin(at, &data["content_block"], out),
            "content_block_delta" => {
                self.delta(at, &data["delta"], out);
                Ok(())
            }
            "content_block_stop" => {
                self.stop(at, out);
                Ok(())
            }
            "message_delta" => {
                let reason = data["delta"]["stop_reason"].as_str().map(str::to_owned);
                self.stop_reason = reason.or(self.stop_reason.take());
                self.count(&data["usage"], out);
                Ok(())
            }
            "message_stop" => self.end(out),
            "error" => {
                self.break_off(out);
                Err(Broken::Said(Box::new(Said::of(&data))))
            }
            _ => Ok(()),
        }
    }

    pub(in crate::wire) fn has_said_its_end(&self) -> bool {
        self.stop_reason.is_some()
    }

    /// The stream ended. It is the answer's end if the model said why it stopped.
    pub(in crate::wire) fn end(&mut self, out: &mut Vec<ModelEvent>) -> Read {
        let Some(reason) = self.stop_reason.take() else {
            self.break_off(out);
            return Ok(());
        };
        let stopped = match reason.as_str() {
            "max_tokens" | "model_context_window_exceeded" => StopReason::MaxTokens,
            "refusal" => return Err(Broken::Filtered("the answer ended with refusal")),
            reason => {
                if !ENDED.contains(&reason) {
                    warn_of(reason);
                }
                let open: Vec<u64> = self.blocks.keys().copied().collect();
                open.into_iter().for_each(|at| self.stop(at, out));
                self.trust(out);
                if self.calls > 0 { StopReason::ToolUse } else { StopReason::EndTurn }
            }
        };
        out.push(ModelEvent::Stopped(stopped));
        Ok(())
    }

    /// Ends what was in doubt: it was not cut.
    fn trust(&mut self, out: &mut Vec<ModelEvent>) {
        out.extend(
            self.doubtful.drain(..).map(|doubtful| ModelEvent::ToolCallEnded { index: doubtful.call }),
        );
    }

    /// The stream breaks off before it is known what cut a call. Of one that has arguments the rest is missing.
    fn break_off(&mut self, out: &mut Vec<ModelEvent>) {
        self.doubtful.retain(|doubtful| !doubtful.has_arguments);
        self.trust(out);
    }

    fn begin(&mut self, at: u64, block: &Value, out: &mut Vec<ModelEvent>) -> Read {
        self.trust(out);
        if self.blocks.len() >= BLOCKS_MAX {
            return Err(Broken::Endless("its answer holds too many blocks"));
        }
        let text = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
        let block = match block["type"].as_str() {
            Some("text") => {
                say(Some(text("text")), ModelEvent::Text, out);
                Block::Text
            }
            Some(THINKING) => {
                say(Some(text(THINKING)), ModelEvent::Reasoning, out);
                Block::Thinking { text: text(THINKING), signature: text("signature") }
            }
            Some(REDACTED) => Block::Redacted(block.clone()),
            Some("tool_use") => {
                let (index, id, name) = (next_call(self.calls)?, text("id"), text("name"));
                if id.is_empty() || name.is_empty() {
                    return Err(Broken::Wrong("a tool call of its answer has no id or no name"));
                }
                self.calls += 1;
                out.push(ModelEvent::ToolCallStarted { index, id, name });
                Block::Call { number: index, arguments: String::new(), input: block["input"].clone() }
            }
            _ => Block::Other,
        };
        self.blocks.insert(at, block);
        Ok(())
    }

    fn delta(&mut self, at: u64, delta: &Value, out: &mut Vec<ModelEvent>) {
        let piece = |name: &str| delta[name].as_str().unwrap_or_default().to_owned();
        match (self.blocks.get_mut(&at), delta["type"].as_str()) {
            (Some(Block::Text), Some("text_delta")) => say(Some(piece("text")), ModelEvent::Text, out),
            (Some(Block::Thinking { text, .. }), Some("thinking_delta")) => {
                text.push_str(&piece(THINKING));
                say(Some(piece(THINKING)), ModelEvent::Reasoning, out);
            }
            (Some(Block::Thinking { signature, .. }), Some("signature_delta")) => {
                signature.push_str(&piece("signature"));
            }
            (Some(Block::Call { number, arguments, .. }), Some("input_json_delta")) => {
                let (index, text) = (*number, piece("partial_json"));
                arguments.push_str(&text);
                say(Some(text), |text| ModelEvent::ToolCallArguments { index, text }, out);
            }
            _ => {}
        }
    }

    fn stop(&mut self, at: u64, out: &mut Vec<ModelEvent>) {
        match self.blocks.remove(&at) {
            Some(Block::Thinking { text, signature }) => {
                let item = json!({"type": THINKING, "thinking": text, "signature": signature});
                let sealed = (!signature.is_empty()).then(|| self.maker.seal(item));
                out.push(ModelEvent::ReasoningEnded { sealed });
            }
            Some(Block::Redacted(block)) => {
                out.push(ModelEvent::ReasoningEnded { sealed: Some(self.maker.seal(block)) });
            }
            Some(Block::Call { number: index, arguments, input }) => {
                let has_input = input.as_object().is_some_and(|fields| !fields.is_empty());
                if arguments.is_empty() && has_input {
                    // Some servers send the arguments at once.
                    out.push(ModelEvent::ToolCallArguments { index, text: input.to_string() });
                } else if serde_json::from_str::<Value>(&arguments).is_err() {
                    self.doubtful.push(Doubtful { call: index, has_arguments: !arguments.is_empty() });
                    return;
                }
                out.push(ModelEvent::ToolCallEnded { index });
            }
            Some(Block::Text | Block::Other) | None => {}
        }
    }

    /// What was told before holds for what is not told again.
    fn count(&mut self, told: &Value, out: &mut Vec<ModelEvent>) {
        let Some(told) = told.as_object() else { return };
        let told = told.iter().filter(|(_, value)| !value.is_null());
        self.usage.extend(told.map(|(name, value)| (name.clone(), value.clone())));
        let count = |name: &str| self.usage.get(name).and_then(Value::as_u64).unwrap_or_default();
        let details = self.usage.get("output_tokens_details");
        let thought = details.and_then(|details| details["thinking_tokens"].as_u64());
        let cached = count("cache_read_input_tokens");
        let kept = count("cache_creation_input_tokens");
        out.push(ModelEvent::Usage(Usage {
            input_tokens: count("input_tokens").saturating_add(cached).saturating_add(kept),
            output_tokens: count("output_tokens"),
            cached_tokens: cached,
            reasoning_tokens: thought.unwrap_or_default(),
        }));
    }
}
