//! A model's tool call, in its provider's own shape, with what the program says beside it.

use runyard_actions::{ActionError, InvocationOptions, Issue, PathSegment};
use runyard_domain::Code;
use serde_json::{Map, Value};

use super::{ApprovalAnswer, Format, Tool, WRAPPED, restore};
use crate::json_text::json_reason;

/// A text of arguments may be so long; the input in it is limited further by the runtime.
pub const ARGUMENTS_BYTES_MAX: usize = 2 * 1024 * 1024;

/// One tool call, to be executed.
#[derive(Clone, Debug)]
pub struct ToolRequest {
    /// Whose shape it has.
    pub format: Format,
    /// What the program says beside the call; the model never does.
    pub options: InvocationOptions,
    /// What its person said, where they were asked.
    pub approval: Option<ApprovalAnswer>,
    /// How long the entry point lets it take at most.
    pub within_ms: Option<u64>,
    pub(super) id: String,
    pub(super) name: String,
    arguments: Value,
}

impl ToolRequest {
    /// A call as the provider gives it:
    ///
    /// - OpenAI Chat `{id, function: {name, arguments}}`, an item of `tool_calls`
    /// - OpenAI Responses `{type: "function_call", call_id, name, arguments}`, an item of `output`
    /// - Anthropic `{type: "tool_use", id, name, input}`, a block of `content`
    /// - AI SDK `{toolCallId, toolName, input}`
    ///
    /// Arguments may be a text or JSON itself; none are `{}`.
    pub fn new(format: Format, mut call: Value) -> Result<Self, ActionError> {
        let [id, name, arguments] = match format {
            Format::OpenaiChat => ["/id", "/function/name", "/function/arguments"],
            Format::OpenaiResponses => ["/call_id", "/name", "/arguments"],
            Format::Anthropic => ["/id", "/name", "/input"],
            Format::AiSdk => ["/toolCallId", "/toolName", "/input"],
        };
        let text = |pointer: &str| match call.pointer(pointer) {
            Some(Value::String(text)) => Ok(text.clone()),
            Some(_) => Err(issue(pointer, "Expected string.")),
            None => Err(issue(pointer, "Required value is missing.")),
        };
        let (id, name) = match (text(id), text(name)) {
            (Ok(id), Ok(name)) => (id, name),
            (id, name) => {
                return Err(invalid([id.err(), name.err()].into_iter().flatten().collect()));
            }
        };
        let arguments = call.pointer_mut(arguments).map_or_else(|| Value::Object(Map::new()), Value::take);
        let options = InvocationOptions::default();
        Ok(ToolRequest { format, options, approval: None, within_ms: None, id, name, arguments })
    }

    /// A call with what stands beside it: `{format, call, approval?: {approvalId, approved, reason?}, confirm?, …}`. What means
    /// nothing there is reported with the input's own issues. Without `format` it is this one.
    pub fn from_payload(mut payload: Map<String, Value>, usual: Option<Format>) -> Result<Self, ActionError> {
        let at = |field: &str, message: String| invalid(vec![Issue::at(field, message)]);
        let missing = |field: &str| at(field, "Required value is missing.".to_owned());
        let format = match payload.shift_remove("format") {
            Some(Value::String(word)) => {
                word.parse().map_err(|error: super::UnknownFormat| at("format", error.to_string()))?
            }
            Some(_) => return Err(at("format", super::UnknownFormat.to_string())),
            None => usual.ok_or_else(|| missing("format"))?,
        };
        let call = payload.shift_remove("call").ok_or_else(|| missing("call"))?;
        let mut request = ToolRequest::new(format, call)?;
        request.approval = match payload.shift_remove("approval") {
            None | Some(Value::Null) => None,
            Some(answer) => Some(ApprovalAnswer::read(&answer).ok_or_else(|| {
                at("approval", "Expected {approvalId, approved: true or false, reason?}.".to_owned())
            })?),
        };
        request.options = InvocationOptions::take_from(&mut payload);
        for key in payload.keys() {
            request.options.refuse(Issue::at(key, format!("Unexpected property \"{key}\".")));
        }
        Ok(request)
    }

    /// The input that the arguments stand for. An unknown tool's go on as they are, for the runtime to say so.
    pub(super) fn take_input(&mut self, tool: Option<&Tool>) -> Result<Value, Issue> {
        let mut arguments = match self.arguments.take() {
            Value::String(text) => parse(&text)?,
            other => other,
        };
        let Some(tool) = tool else { return Ok(arguments) };
        if tool.strict.is_some() {
            restore::restore(&mut arguments, &tool.parameters);
        }
        if tool.wrapped { self.unwrap(arguments) } else { Ok(arguments) }
    }

    fn unwrap(&mut self, arguments: Value) -> Result<Value, Issue> {
        let Value::Object(mut fields) = arguments else { return Err(Issue::root("Expected object.")) };
        let input = fields.shift_remove(WRAPPED);
        for key in fields.keys() {
            self.options.refuse(Issue::at(key, format!("Unexpected property \"{key}\".")));
        }
        input.ok_or_else(|| Issue::at(WRAPPED, "Required value is missing."))
    }
}

/// Models and their providers write no arguments as no text at all.
fn parse(text: &str) -> Result<Value, Issue> {
    if text.len() > ARGUMENTS_BYTES_MAX {
        return Err(Issue::root(format!("The arguments are larger than {ARGUMENTS_BYTES_MAX} bytes.")));
    }
    if text.trim().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    serde_json::from_str(text)
        .map_err(|error| Issue::root(format!("The arguments are not valid JSON: {}.", json_reason(&error))))
}

fn issue(pointer: &str, message: &str) -> Issue {
    let path = format!("call{pointer}").split('/').map(|key| PathSegment::Key(key.to_owned())).collect();
    Issue { path, message: message.to_owned() }
}

fn invalid(issues: Vec<Issue>) -> ActionError {
    ActionError::new(Code::ValidationError, "Invalid tool call.").with_issues(issues)
}
