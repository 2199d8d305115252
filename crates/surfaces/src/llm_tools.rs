//! Tools for language models: the actions as definitions that a provider takes, and a model's tool call as an invocation.
//!
//! A program asks [`definitions`] for its provider's [`Format`], sends them along with its prompt, and hands each tool call
//! that the model makes to [`LlmTools::execute`], in the provider's own shape. What comes back is the message for the model
//! and the whole envelope. Everything goes through the one runtime, on surface `ai-sdk`.
//!
//! - **Strict mode.** OpenAI's definitions are strict wherever the schema can be said in the part of JSON Schema that strict
//!   mode takes (`strict`); where it cannot, the tool has `strict: false` and its own schema. Strict mode knows no optional
//!   property, so the model gives `null` there, and that null is taken out again (`restore`) before the runtime sees the
//!   input. Where the schema itself allows null, null stays: it is a value there, and cannot be told from nothing.
//! - **Inputs that are no object.** Providers take objects only, without alternatives at the top, and Anthropic only certain
//!   names of properties there. Any other input stands as `{"input": …}` in the definition, and is taken out of there.
//! - **Approvals.** A call that needs a confirmation comes back with an approval request: the program shows it to its person
//!   and gives their answer beside the same call. The id is good for one use, for the same actor, action and input, in this
//!   process, for ten minutes. Nothing in a model's arguments can confirm, and an agent's token can neither ask nor answer:
//!   inside a run the gate decides.
//!
//! It does not talk to a model, and it does not decide what the runtime decides.

mod approval;
mod call;
mod execute;
mod limits;
mod nullable;
mod parameters;
mod reply;
mod restore;
mod strict;

use std::fmt;
use std::str::FromStr;

use runyard_actions::{Action, Runtime, SideEffects};
use runyard_domain::{Actor, Surface};
use serde::Serialize;
use serde_json::{Map, Value, json};

pub use self::approval::{APPROVAL_TIME_MAX, ApprovalAnswer, ApprovalRequest};
pub use self::call::{ARGUMENTS_BYTES_MAX, ToolRequest};
pub use self::execute::LlmTools;
pub use self::parameters::WRAPPED;
pub use self::reply::ToolReply;

/// A provider takes descriptions so long.
const DESCRIPTION_LENGTH_MAX: usize = 1024;
/// Of it, what is said of a deprecation may take so much.
const DEPRECATION_LENGTH_MAX: usize = 256;

/// Whose tools: the shape of definitions, calls and results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// OpenAI's Chat Completions.
    OpenaiChat,
    /// OpenAI's Responses.
    OpenaiResponses,
    /// Anthropic's Messages.
    Anthropic,
    /// The AI SDK, where `jsonSchema()` and `tool()` make tools of it.
    AiSdk,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 4] =
        [Format::OpenaiChat, Format::OpenaiResponses, Format::Anthropic, Format::AiSdk];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Format::OpenaiChat => "openai-chat",
            Format::OpenaiResponses => "openai-responses",
            Format::Anthropic => "anthropic",
            Format::AiSdk => "ai-sdk",
        }
    }

    /// Whether its definitions are strict where they can be.
    const fn knows_strict(self) -> bool {
        matches!(self, Format::OpenaiChat | Format::OpenaiResponses)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that names no format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Expected openai-chat, openai-responses, anthropic or ai-sdk.")]
pub struct UnknownFormat;

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(word: &str) -> Result<Self, UnknownFormat> {
        Format::ALL.into_iter().find(|format| format.as_str() == word).ok_or(UnknownFormat)
    }
}

/// The tools that an actor has on surface `ai-sdk`, in the order of names: a list, or for the AI SDK an object by name. It can
/// stand in a request as it is.
pub fn definitions(runtime: &Runtime, actor: &Actor, format: Format) -> Value {
    let listed = runtime.listed(Surface::AiSdk, actor);
    match format {
        Format::AiSdk => {
            let tools = listed.map(|action| (action.name().to_owned(), definition(action, format)));
            Value::Object(tools.collect::<Map<_, _>>())
        }
        _ => listed.map(|action| definition(action, format)).collect(),
    }
}

fn definition(action: &Action, format: Format) -> Value {
    let (name, description) = (action.name(), description(action));
    let tool = Tool::of(action, format);
    let strict = tool.strict.is_some();
    let parameters = tool.strict.unwrap_or(tool.parameters);
    match format {
        Format::OpenaiChat => json!({
            "type": "function",
            "function": {
                "name": name, "description": description, "parameters": parameters, "strict": strict,
            },
        }),
        Format::OpenaiResponses => json!({
            "type": "function",
            "name": name, "description": description, "parameters": parameters, "strict": strict,
        }),
        Format::Anthropic => json!({"name": name, "description": description, "input_schema": parameters}),
        Format::AiSdk => {
            let mut tool = json!({"description": description, "inputSchema": parameters});
            if let Some(output) = &action.spec().output {
                tool["outputSchema"] = output.json().clone();
            }
            tool["needsApproval"] = action.asks_to_confirm(Surface::AiSdk).into();
            tool
        }
    }
}

/// What a model needs to know of an action beside its parameters. What is too long is cut, but never what it does to data and
/// who confirms it.
fn description(action: &Action) -> String {
    let spec = action.spec();
    let mut notes = match spec.side_effects {
        SideEffects::Read => " Only reads.",
        SideEffects::Write => " Changes data.",
        SideEffects::Destructive => " Destructive: what it does cannot be undone.",
    }
    .to_owned();
    if action.asks_to_confirm(Surface::AiSdk) {
        notes.push_str(" A person confirms each call first.");
    }
    if let Some(deprecation) = &spec.deprecation {
        notes.push_str(&cut(&format!(" Deprecated: {}", deprecation.message), DEPRECATION_LENGTH_MAX));
    }
    let rest = DESCRIPTION_LENGTH_MAX.saturating_sub(notes.chars().count());
    cut(spec.description.trim(), rest) + &notes
}

/// The text, with a mark at its end where it had to be shortened.
fn cut(text: &str, length_max: usize) -> String {
    if text.chars().count() <= length_max {
        return text.to_owned();
    }
    text.chars().take(length_max.saturating_sub(1)).chain(['…']).collect()
}

/// An action's input as the parameters of a tool.
struct Tool {
    /// Always a plain object.
    parameters: Value,
    /// Whether the input stands in [`WRAPPED`].
    wrapped: bool,
    /// The parameters as strict mode takes them, where the format has it and they can be said so.
    strict: Option<Value>,
}

impl Tool {
    fn of(action: &Action, format: Format) -> Self {
        let (parameters, wrapped) = parameters::parameters(action.spec().input.json());
        let strict = if format.knows_strict() { strict::strict(&parameters) } else { None };
        Tool { parameters, wrapped, strict }
    }
}
