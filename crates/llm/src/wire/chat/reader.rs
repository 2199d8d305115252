//! The chunks of a chat completion as the events of a model.
//!
//! Nothing says that a call is whole before the answer is, so that a call ends with the answer; or earlier, when another call
//! begins and its arguments are a whole object already, to which nothing can be added.

use serde_json::{Map, Value, json};

use super::REASONING_CONTENT;
use crate::chat::{Chunk, Delta, FunctionDelta, ToolCallDelta};
use crate::inference::{ModelEvent, StopReason};
use crate::sse;
use crate::wire::decoder::{Broken, Read, next_call, say, warn_of};
use crate::wire::failure::Said;
use crate::wire::sealed::Maker;

/// What ends a stream.
const DONE: &str = "[DONE]";
/// The reasons to stop of a model that has said all; the last two are those of servers of open models.
const ENDED: [&str; 5] = ["stop", "tool_calls", "function_call", "eos_token", "stop_sequence"];

/// Reads one answer.
pub(in crate::wire) struct Reader {
    maker: Maker,
    /// The answer's id, if it has one.
    id: String,
    thought: Option<Thought>,
    calls: Vec<Call>,
    finish_reason: Option<String>,
}

/// A thought that is not whole, by the field that it came in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Thought {
    /// The one that providers want back.
    ReasoningContent,
    Reasoning,
}

#[derive(Default)]
struct Call {
    index: Option<u32>,
    id: String,
    name: String,
    arguments: String,
    state: State,
}

/// What is known of a call to whoever listens.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Unknown,
    Begun(u32),
    Ended,
}

impl Reader {
    pub(in crate::wire) fn new(maker: Maker) -> Self {
        let (id, calls) = (String::new(), Vec::new());
        Reader { maker, id, thought: None, calls, finish_reason: None }
    }

    pub(in crate::wire) fn take(&mut self, event: &sse::Event, out: &mut Vec<ModelEvent>) -> Read {
        if event.data.trim() == DONE {
            return self.end(out);
        }
        let wrong = |_| Broken::Wrong("its answer holds what is no chunk of a chat completion");
        let chunk: Chunk = serde_json::from_str(&event.data).map_err(wrong)?;
        if event.name == "error" || chunk.error.is_some_and(|error| !error.is_null()) {
            let said: Value = serde_json::from_str(&event.data).map_err(wrong)?;
            return Err(Broken::Said(Box::new(Said::of(&said))));
        }
        if let Some(id) = chunk.id.filter(|_| self.id.is_empty()) {
            self.id = id;
        }
        for choice in chunk.choices.unwrap_or_default() {
            if choice.index != 0 {
                return Err(Broken::Wrong("it gives several answers where one was asked for"));
            }
            self.delta(choice.delta.unwrap_or_default(), out)?;
            let reason = choice.finish_reason.filter(|reason| !reason.is_empty());
            self.finish_reason = reason.or(self.finish_reason.take());
        }
        out.extend(chunk.usage.map(|usage| ModelEvent::Usage(usage.into())));
        Ok(())
    }

    pub(in crate::wire) fn has_said_its_end(&self) -> bool {
        self.finish_reason.is_some()
    }

    /// The stream ended. It is the answer's end if the model said why it stopped.
    pub(in crate::wire) fn end(&mut self, out: &mut Vec<ModelEvent>) -> Read {
        let Some(reason) = self.finish_reason.take() else { return Ok(()) };
        self.end_thought(out);
        match reason.as_str() {
            // A call may be cut in the middle; none is ended for it. The other word is Mistral's.
            "length" | "model_length" => {
                out.push(ModelEvent::Stopped(StopReason::MaxTokens));
                Ok(())
            }
            "content_filter" => Err(Broken::Filtered("the answer ended with content_filter")),
            "insufficient_system_resource" => {
                Err(Broken::Said(Box::new(Said::word(&reason, "it ran out of resources while it answered"))))
            }
            // It is known to have failed, and not why.
            "error" | "abort" => Err(Broken::Wrong("the answer ended with an error")),
            known => {
                if !ENDED.contains(&known) {
                    warn_of(known);
                }
                self.end_calls(out)?;
                let calls = !self.calls.is_empty();
                out.push(ModelEvent::Stopped(if calls { StopReason::ToolUse } else { StopReason::EndTurn }));
                Ok(())
            }
        }
    }

    fn delta(&mut self, delta: Delta, out: &mut Vec<ModelEvent>) -> Read {
        let is_some = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
        if is_some(&delta.reasoning_content) {
            self.thought = Some(Thought::ReasoningContent);
            say(delta.reasoning_content, ModelEvent::Reasoning, out);
        } else if is_some(&delta.reasoning) {
            self.thought = self.thought.or(Some(Thought::Reasoning));
            say(delta.reasoning, ModelEvent::Reasoning, out);
        }
        let calls = delta.tool_calls.unwrap_or_default();
        if is_some(&delta.content) || is_some(&delta.refusal) || !calls.is_empty() {
            self.end_thought(out);
        }
        say(delta.content, ModelEvent::Text, out);
        // It is all that the model says then.
        say(delta.refusal, ModelEvent::Text, out);
        calls.into_iter().try_for_each(|call| self.call(call, out))
    }

    fn end_thought(&mut self, out: &mut Vec<ModelEvent>) {
        if let Some(thought) = self.thought.take() {
            let is_wanted_back = thought == Thought::ReasoningContent;
            let sealed = is_wanted_back.then(|| self.maker.seal(json!({"type": REASONING_CONTENT})));
            out.push(ModelEvent::ReasoningEnded { sealed });
        }
    }

    fn call(&mut self, delta: ToolCallDelta, out: &mut Vec<ModelEvent>) -> Read {
        let id = delta.id.unwrap_or_default();
        let function = delta.function.unwrap_or_default();
        let found = self.find(delta.index, &id);
        let at = match found.filter(|at| !id.is_empty() || !self.calls[*at].is_followed_by(&function)) {
            Some(at) => at,
            None => {
                next_call(self.calls.len())?;
                self.end_whole_calls(out);
                self.calls.push(Call { index: delta.index, ..Call::default() });
                self.calls.len() - 1
            }
        };
        let begun = self.calls.iter().filter(|call| call.state != State::Unknown).count();
        let number = next_call(begun);
        let call = &mut self.calls[at];
        if call.id.is_empty() {
            call.id = id;
        }
        // Providers that send the name again send all of it; none is known to send it in pieces.
        if let Some(name) = function.name.filter(|name| !name.is_empty() && call.state == State::Unknown) {
            call.name = name;
        }
        let text = function.arguments.unwrap_or_default();
        match call.state {
            State::Ended if text.trim().is_empty() => Ok(()),
            State::Ended => Err(Broken::Wrong("a tool call of its answer goes on after its end")),
            State::Begun(index) => {
                call.arguments.push_str(&text);
                say(Some(text), |text| ModelEvent::ToolCallArguments { index, text }, out);
                Ok(())
            }
            State::Unknown => {
                call.arguments.push_str(&text);
                if !call.name.is_empty() && !call.id.is_empty() {
                    call.begin(number?, out);
                }
                Ok(())
            }
        }
    }

    /// Which call this is a piece of: by its index, by its id, or else the last one.
    fn find(&self, index: Option<u32>, id: &str) -> Option<usize> {
        self.calls.iter().rposition(|call| match index {
            Some(_) => call.index == index && (id.is_empty() || call.id.is_empty() || call.id == id),
            None => id.is_empty() || call.id == id,
        })
    }

    /// Ends the calls to which nothing can be added.
    fn end_whole_calls(&mut self, out: &mut Vec<ModelEvent>) {
        for call in &mut self.calls {
            if let State::Begun(index) = call.state
                && call.is_whole()
            {
                call.end(index, out);
            }
        }
    }

    /// Ends every call: the answer is whole.
    fn end_calls(&mut self, out: &mut Vec<ModelEvent>) -> Read {
        let mut next = self.calls.iter().filter(|call| call.state != State::Unknown).count();
        for call in &mut self.calls {
            if call.state == State::Unknown {
                if call.name.is_empty() {
                    return Err(Broken::Wrong("a tool call of its answer has no name"));
                }
                let number = next_call(next)?;
                if call.id.is_empty() {
                    call.id = format!("call_{}_{number}", self.id);
                }
                call.begin(number, out);
                next += 1;
            }
            if let State::Begun(index) = call.state {
                call.end(index, out);
            }
        }
        Ok(())
    }
}

impl Call {
    /// Whether what came next, under no id of its own, is another call: it has a name, and nothing can be added to this one.
    fn is_followed_by(&self, next: &FunctionDelta) -> bool {
        let (Some(name), text) = (next.name.as_deref(), next.arguments.as_deref().unwrap_or_default()) else {
            return false;
        };
        if name.is_empty() || self.name.is_empty() {
            return false;
        }
        // Providers that send the name again do so with more of the arguments, or at the very end with nothing.
        let is_another = name != self.name || !text.trim().is_empty();
        is_another && (self.is_whole() || self.arguments.is_empty() && name != self.name)
    }

    /// Whether nothing can be added to its arguments.
    fn is_whole(&self) -> bool {
        serde_json::from_str::<Map<String, Value>>(&self.arguments).is_ok()
    }

    /// Says that it begins, with what is known of its arguments already.
    fn begin(&mut self, index: u32, out: &mut Vec<ModelEvent>) {
        self.state = State::Begun(index);
        out.push(ModelEvent::ToolCallStarted { index, id: self.id.clone(), name: self.name.clone() });
        say(Some(self.arguments.clone()), |text| ModelEvent::ToolCallArguments { index, text }, out);
    }

    fn end(&mut self, index: u32, out: &mut Vec<ModelEvent>) {
        self.state = State::Ended;
        out.push(ModelEvent::ToolCallEnded { index });
    }
}
