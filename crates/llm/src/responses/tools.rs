//! The tools of a request, and which of them the model should use.

use serde_json::{Value, json};

use super::fields::{At, Fields};
use crate::{LlmError, What};

/// What the model may call.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// Where in the request it stands.
    pub path: String,
    /// Its name in its group.
    pub name: String,
    /// Its group, where it has one.
    pub namespace: Option<Namespace>,
    /// What it does.
    pub description: Option<String>,
    /// How it is called.
    pub kind: Kind,
}

/// A group of tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace {
    /// Its name.
    pub name: String,
    /// What its tools have in common.
    pub description: Option<String>,
}

/// How a tool is called.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// With arguments that a schema describes.
    Function {
        /// The schema.
        parameters: Value,
        /// Whether the arguments have to fit it exactly.
        strict: Option<bool>,
    },
    /// With a free text.
    Custom {
        /// The grammar's language and the grammar, where the text has one.
        grammar: Option<(String, String)>,
    },
}

/// What the model should call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// What it likes.
    Auto,
    /// Nothing.
    None,
    /// Something.
    Required,
    /// This tool.
    Named {
        /// Where in the request it says so.
        path: String,
        /// The tool.
        name: String,
    },
}

pub(super) fn read(list: Vec<At>) -> Result<Vec<Tool>, LlmError> {
    let mut tools = Vec::new();
    for at in list {
        let mut fields = at.into_fields()?;
        let kind = fields.required_text("type")?;
        if kind == "namespace" {
            namespace(fields, &mut tools)?;
        } else {
            tools.push(tool(fields, &kind, None)?);
        }
    }
    Ok(tools)
}

fn namespace(mut fields: Fields, tools: &mut Vec<Tool>) -> Result<(), LlmError> {
    let group = Namespace { name: fields.required_text("name")?, description: fields.text("description")? };
    for at in fields.list("tools")? {
        let mut member = at.into_fields()?;
        let kind = member.required_text("type")?;
        tools.push(tool(member, &kind, Some(group.clone()))?);
    }
    fields.end()
}

fn tool(mut fields: Fields, kind: &str, namespace: Option<Namespace>) -> Result<Tool, LlmError> {
    let path = fields.path().to_owned();
    let kind = match kind {
        "function" => Kind::Function {
            parameters: fields.take("parameters").map_or_else(no_parameters, |at| at.value),
            strict: fields.flag("strict")?,
        },
        "custom" => Kind::Custom { grammar: fields.fields("format")?.map(grammar).transpose()?.flatten() },
        _ => return Err(LlmError::untranslatable(path, What::Tool, kind)),
    };
    let (name, description) = (fields.required_text("name")?, fields.text("description")?);
    fields.must_be("defer_loading", false)?;
    fields.end()?;
    Ok(Tool { path, name, namespace, description, kind })
}

fn no_parameters() -> Value {
    json!({"type": "object", "properties": {}})
}

fn grammar(mut fields: Fields) -> Result<Option<(String, String)>, LlmError> {
    let kind = fields.required_text("type")?;
    let grammar = match kind.as_str() {
        "text" => None,
        "grammar" => Some((fields.required_text("syntax")?, fields.required_text("definition")?)),
        _ => return Err(LlmError::untranslatable(fields.path(), What::Format, &kind)),
    };
    fields.end()?;
    Ok(grammar)
}

pub(super) fn choice(at: At) -> Result<Choice, LlmError> {
    let path = at.path.clone();
    if let Value::String(word) = &at.value {
        return match word.as_str() {
            "auto" => Ok(Choice::Auto),
            "none" => Ok(Choice::None),
            "required" => Ok(Choice::Required),
            _ => Err(LlmError::untranslatable(path, What::ToolChoice, word)),
        };
    }
    let mut fields = at.into_fields()?;
    let kind = fields.required_text("type")?;
    if !matches!(kind.as_str(), "function" | "custom") {
        return Err(LlmError::untranslatable(path, What::ToolChoice, &kind));
    }
    let name = fields.required_text("name")?;
    fields.end()?;
    Ok(Choice::Named { path, name })
}
