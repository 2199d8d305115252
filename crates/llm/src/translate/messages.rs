//! The conversation: items become messages.
//!
//! What the model thought, said and called in one go is one message, and the results of its calls follow it at once: the
//! one order that chat completions knows. So a person's words that fell between a call and its result come after the result.

use std::collections::{HashMap, VecDeque};

use super::tools;
use crate::{
    LlmError, What,
    chat::{self, Content, ImageUrl, ToolCall},
    responses::{Item, Message, Output, Part, Role},
};

/// What divides texts that become one.
const BETWEEN: &str = "\n\n";
/// What divides the parts of a tool's output, which are often lines.
const BETWEEN_LINES: &str = "\n";

pub(super) fn of(
    instructions: Option<String>,
    groups: Option<String>,
    mut items: Vec<Item>,
) -> Result<Vec<chat::Message>, LlmError> {
    let mut outputs = Outputs::of(&mut items)?;
    let mut messages: Vec<_> =
        instructions.into_iter().map(|content| chat::Message::System { content }).collect();
    let mut turn = Turn::default();
    for (index, item) in items.into_iter().enumerate() {
        match item {
            Item::Reasoning { text } => turn.thought.push(text),
            Item::Message(Message { role: Role::Assistant, content }) => {
                turn.said.push(text_of(content, &content_path(index), BETWEEN)?);
            }
            Item::Call(call) => {
                let output = outputs.take(&call.call_id, index).ok_or_else(|| alone(index, What::Call))?;
                let tool_call_id = call.call_id.clone();
                turn.called.push(tools::called(call));
                turn.results.push(chat::Message::Tool { tool_call_id, content: output });
            }
            Item::Output(output) => {
                turn.end(&mut messages);
                if outputs.is_unclaimed(&output.call_id, index) {
                    return Err(alone(index, What::Output));
                }
            }
            Item::Message(Message { role, content }) => {
                turn.end(&mut messages);
                messages.push(other(role, content, index)?);
            }
        }
    }
    turn.end(&mut messages);
    // Behind what the application says first, which is who the model is.
    let first = messages.iter().take_while(|message| matches!(message, chat::Message::System { .. })).count();
    messages.splice(first..first, groups.map(|content| chat::Message::System { content }));
    Ok(messages)
}

fn alone(index: usize, what: What) -> LlmError {
    LlmError::Unpaired { path: format!("input[{index}]"), what }
}

fn content_path(index: usize) -> String {
    format!("input[{index}].content")
}

/// What others than the model say.
fn other(role: Role, content: Vec<Part>, index: usize) -> Result<chat::Message, LlmError> {
    let is_text = content.iter().all(|part| matches!(part, Part::Text(_)));
    if role == Role::User && !is_text {
        return Ok(chat::Message::User { content: Content::Parts(content.into_iter().map(part).collect()) });
    }
    let text = text_of(content, &content_path(index), BETWEEN)?;
    Ok(match role {
        Role::User => chat::Message::User { content: Content::Text(text) },
        Role::System | Role::Assistant => chat::Message::System { content: text },
    })
}

/// The one text of parts. Only what a person says may hold a picture in chat completions.
fn text_of(content: Vec<Part>, path: &str, between: &str) -> Result<String, LlmError> {
    let mut texts = Vec::new();
    for (index, part) in content.into_iter().enumerate() {
        match part {
            Part::Text(text) => texts.push(text),
            Part::Image { .. } => {
                return Err(LlmError::untranslatable(format!("{path}[{index}]"), What::Part, "input_image"));
            }
        }
    }
    Ok(texts.join(between))
}

fn part(part: Part) -> chat::Part {
    match part {
        Part::Text(text) => chat::Part::Text { text },
        Part::Image { url, detail } => chat::Part::ImageUrl { image_url: ImageUrl { url, detail } },
    }
}

/// What the model did in one go.
#[derive(Default)]
struct Turn {
    thought: Vec<String>,
    said: Vec<String>,
    called: Vec<ToolCall>,
    results: Vec<chat::Message>,
}

impl Turn {
    /// Adds the message and the results of its calls, if there is anything.
    fn end(&mut self, messages: &mut Vec<chat::Message>) {
        let Turn { thought, said, called, results } = std::mem::take(self);
        let reasoning_content = joined(thought);
        let content = joined(said);
        if reasoning_content.is_none() && content.is_none() && called.is_empty() {
            return;
        }
        // A message without calls has to say something, if only nothing.
        let content = content.or_else(|| called.is_empty().then(String::new));
        messages.push(chat::Message::Assistant { content, reasoning_content, tool_calls: called });
        messages.extend(results);
    }
}

fn joined(texts: Vec<String>) -> Option<String> {
    let texts: Vec<String> = texts.into_iter().filter(|text| !text.is_empty()).collect();
    (!texts.is_empty()).then(|| texts.join(BETWEEN))
}

/// The results that no call has claimed yet, by the call's id and in their order. An id may come again in a later turn: some
/// providers count their calls anew in each answer.
struct Outputs(HashMap<String, VecDeque<(usize, String)>>);

impl Outputs {
    /// Takes the results' content out of the items.
    fn of(items: &mut [Item]) -> Result<Self, LlmError> {
        let mut outputs: HashMap<String, VecDeque<(usize, String)>> = HashMap::new();
        for (index, item) in items.iter_mut().enumerate() {
            if let Item::Output(Output { call_id, content }) = item {
                let path = format!("input[{index}].output");
                let text = text_of(std::mem::take(content), &path, BETWEEN_LINES)?;
                outputs.entry(call_id.clone()).or_default().push_back((index, text));
            }
        }
        Ok(Self(outputs))
    }

    /// The first result with this id, if it comes after the call.
    fn take(&mut self, call_id: &str, call: usize) -> Option<String> {
        let waiting = self.0.get_mut(call_id)?;
        if waiting.front()?.0 < call {
            return None;
        }
        waiting.pop_front().map(|(_, output)| output)
    }

    fn is_unclaimed(&self, call_id: &str, index: usize) -> bool {
        self.0.get(call_id).and_then(VecDeque::front).is_some_and(|(first, _)| *first == index)
    }
}
