//! A question in the words of Anthropic Messages.

use serde_json::{Map, Value, json};

use super::turns::turns;
use super::{AnthropicOptions, REDACTED, THINKING, THINKING_TOKENS_MIN, Thinking};
use crate::inference::{Effort, InferenceRequest, Role, ToolChoice, ToolSpec};
use crate::wire::order::in_order;
use crate::wire::responses::word;
use crate::wire::sealed::Maker;
use crate::wire::{put, schema};

/// With less than this a model does not think.
const TOP_P_MIN: f64 = 0.95;
/// What divides texts that become one.
const BETWEEN: &str = "\n\n";

pub(in crate::wire) fn encode(
    options: &AnthropicOptions,
    maker: &Maker,
    request: &InferenceRequest,
) -> Value {
    let first = request.messages.iter().take_while(|message| message.role == Role::System).count();
    let (system, conversation) = request.messages.split_at(first);
    let system =
        std::iter::once(request.instructions.clone()).chain(system.iter().map(|message| message.said()));
    let form = request.format.as_ref().map(|format| (format, schema::closed(&format.schema)));
    // A form that cannot be demanded is asked for.
    let words =
        form.as_ref().filter(|(_, closed)| closed.is_none()).map(|(format, _)| schema::in_words(format));
    let system: Vec<String> = system.chain(words).filter(|text| !text.trim().is_empty()).collect();
    let messages = turns(in_order(conversation).into_iter(), maker);
    let thinking = thinking(options, request, &messages);
    let mut body = Map::new();
    body.insert("model".to_owned(), maker.model.clone().into());
    body.insert("max_tokens".to_owned(), tokens_max(options, request).into());
    put(&mut body, "system", (!system.is_empty()).then(|| system.join(BETWEEN)));
    body.insert("messages".to_owned(), messages.into());
    if !request.tools.is_empty() {
        body.insert("tools".to_owned(), request.tools.iter().map(tool).collect());
        body.insert("tool_choice".to_owned(), choice(request));
    }
    put(&mut body, "thinking", thinking.map(Asked::json));
    put(&mut body, "output_config", output(options, request, form.and_then(|(_, closed)| closed)));
    put(&mut body, "temperature", request.temperature);
    // Newer models refuse both.
    put(&mut body, "top_p", request.top_p.filter(|_| request.temperature.is_none()));
    body.insert("stream".to_owned(), true.into());
    body.into()
}

/// How long the answer may be, with what is thought.
fn tokens_max(options: &AnthropicOptions, request: &InferenceRequest) -> u64 {
    request.output_tokens_max.unwrap_or(options.output_tokens_default)
}

/// How thinking is asked for.
#[derive(Debug, Clone, Copy)]
enum Asked {
    Adaptive,
    Budget(u64),
}

impl Asked {
    fn json(self) -> Value {
        match self {
            // Some models do not show what they think unless they are asked to.
            Asked::Adaptive => json!({"type": "adaptive", "display": "summarized"}),
            Asked::Budget(tokens) => json!({"type": "enabled", "budget_tokens": tokens}),
        }
    }
}

/// Thinking goes neither with a tool that has to be called, nor with a temperature, nor with less than nearly all of what is likely to
/// choose from. Those were asked for as they are, and this only where it can be said.
fn thinking(options: &AnthropicOptions, request: &InferenceRequest, turns: &[Value]) -> Option<Asked> {
    let effort = request.effort?;
    let has_tools = !request.tools.is_empty();
    let is_forced = matches!(request.tool_choice, ToolChoice::Required | ToolChoice::Named(_));
    let is_steered = request.temperature.is_some() || request.top_p.is_some_and(|top_p| top_p < TOP_P_MIN);
    if has_tools && is_forced || is_steered {
        return None;
    }
    match options.thinking {
        Thinking::Adaptive => Some(Asked::Adaptive),
        Thinking::Budget if began_without(turns) => None,
        Thinking::Budget => {
            let wanted = match effort {
                Effort::Low => 2 * THINKING_TOKENS_MIN,
                Effort::Medium => 8 * THINKING_TOKENS_MIN,
                Effort::High => 24 * THINKING_TOKENS_MIN,
            };
            let tokens = wanted.min(tokens_max(options, request) / 2);
            (tokens >= THINKING_TOKENS_MIN).then_some(Asked::Budget(tokens))
        }
    }
}

/// Whether the model is in the midst of a turn that it began without thinking, so that it may not begin to think now.
fn began_without(turns: &[Value]) -> bool {
    let [.., turn, results] = turns else { return false };
    let is_thought = |block: &Value| block["type"] == THINKING || block["type"] == REDACTED;
    let is_called = results["content"].as_array().is_some_and(|blocks| blocks[0]["type"] == "tool_result");
    is_called
        && turn["content"]
            .as_array()
            .and_then(|blocks| blocks.first())
            .is_some_and(|block| !is_thought(block))
}

fn output(options: &AnthropicOptions, request: &InferenceRequest, form: Option<Value>) -> Option<Value> {
    let mut output = Map::new();
    let effort = request.effort.filter(|_| options.thinking == Thinking::Adaptive);
    put(&mut output, "effort", effort.map(word));
    put(&mut output, "format", form.map(|schema| json!({"type": "json_schema", "schema": schema})));
    (!output.is_empty()).then(|| output.into())
}

fn tool(tool: &ToolSpec) -> Value {
    let mut fields = Map::new();
    fields.insert("name".to_owned(), tool.name.clone().into());
    put(&mut fields, "description", (!tool.description.is_empty()).then(|| tool.description.clone()));
    fields.insert("input_schema".to_owned(), schema::parameters(&tool.parameters));
    fields.into()
}

fn choice(request: &InferenceRequest) -> Value {
    let mut choice = match &request.tool_choice {
        ToolChoice::None => return json!({"type": "none"}),
        ToolChoice::Auto => json!({"type": "auto"}),
        ToolChoice::Required => json!({"type": "any"}),
        ToolChoice::Named(name) => json!({"type": "tool", "name": name}),
    };
    if !request.parallel_tool_calls {
        choice["disable_parallel_tool_use"] = true.into();
    }
    choice
}
