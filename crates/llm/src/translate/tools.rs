//! Tools become functions, and a call of such a function becomes a call of the tool that it was.
//!
//! A custom tool is a function with one text; a tool of a group has the group's name before its own.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{
    LlmError, chat,
    responses::{Call, Kind, Payload, Tool},
};

/// The one parameter of a function that was a custom tool.
pub(super) const INPUT: &str = "input";

/// What each function was called before it became one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tools(BTreeMap<String, Origin>);

/// The tool that a function was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) name: String,
    pub(super) namespace: Option<String>,
    pub(super) is_custom: bool,
}

impl Tools {
    pub(super) fn of(tools: &[Tool]) -> Result<Self, LlmError> {
        let mut names = BTreeMap::new();
        for tool in tools {
            let namespace = tool.namespace.as_ref().map(|group| group.name.clone());
            let name = function_name(namespace.as_deref(), &tool.name);
            let is_custom = matches!(tool.kind, Kind::Custom { .. });
            let origin = Origin { name: tool.name.clone(), namespace, is_custom };
            if names.insert(name.clone(), origin).is_some() {
                return Err(LlmError::SameName { path: tool.path.clone(), name });
            }
        }
        Ok(Self(names))
    }

    /// The tool that a function was. One that was never offered is passed on by its name: the client answers that.
    pub(super) fn origin(&self, function: &str) -> Origin {
        self.0.get(function).cloned().unwrap_or_else(|| Origin {
            name: function.to_owned(),
            namespace: None,
            is_custom: false,
        })
    }

    pub(super) fn has(&self, function: &str) -> bool {
        self.0.contains_key(function)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn function_name(namespace: Option<&str>, name: &str) -> String {
    match namespace {
        Some(namespace) => format!("{}{name}", prefix(namespace)),
        None => name.to_owned(),
    }
}

fn prefix(namespace: &str) -> String {
    format!("{namespace}__")
}

/// What the groups' descriptions say, once for each: a function has no place for what it shares with others.
pub(super) fn groups(tools: &[Tool]) -> Option<String> {
    let described: BTreeMap<&str, &str> = tools
        .iter()
        .filter_map(|tool| tool.namespace.as_ref())
        .filter_map(|group| Some((group.name.as_str(), group.description.as_deref()?)))
        .collect();
    let lines: Vec<String> = described
        .into_iter()
        .map(|(name, description)| format!("Tools whose names begin with `{}`: {description}", prefix(name)))
        .collect();
    (!lines.is_empty()).then(|| lines.join("\n\n"))
}

pub(super) fn offered(tool: Tool) -> chat::Tool {
    let name = function_name(tool.namespace.as_ref().map(|group| group.name.as_str()), &tool.name);
    let function = match tool.kind {
        Kind::Function { parameters, strict } => {
            chat::Function { name, description: tool.description, parameters, strict }
        }
        Kind::Custom { grammar } => {
            let rule = grammar.map(|(syntax, definition)| {
                format!("`{INPUT}` must fit this {syntax} grammar:\n{definition}")
            });
            let parts: Vec<String> = tool.description.into_iter().chain(rule).collect();
            let description = (!parts.is_empty()).then(|| parts.join("\n\n"));
            chat::Function { name, description, parameters: one_text(), strict: None }
        }
    };
    chat::Tool::Function { function }
}

fn one_text() -> Value {
    json!({
        "type": "object",
        "properties": {INPUT: {"type": "string", "description": "The tool's whole input, as it is."}},
        "required": [INPUT],
        "additionalProperties": false,
    })
}

/// A call of the conversation, as it would have been made.
pub(super) fn called(call: Call) -> chat::ToolCall {
    let name = function_name(call.namespace.as_deref(), &call.name);
    let arguments = match call.payload {
        Payload::Function { arguments } => arguments,
        Payload::Custom { input } => json!({INPUT: input}).to_string(),
    };
    chat::ToolCall::Function { id: call.call_id, function: chat::FunctionCall { name, arguments } }
}
