//! What is sent back: the events of one streamed answer, as far as a client needs them.

use serde::Serialize;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type")]
#[expect(missing_docs, reason = "the fields are the API's own; each event says what it is")]
pub enum Event {
    /// The answer begins.
    #[serde(rename = "response.created")]
    Created { response: Response },
    /// An item begins.
    #[serde(rename = "response.output_item.added")]
    ItemAdded { output_index: usize, item: OutputItem },
    /// An item is whole.
    #[serde(rename = "response.output_item.done")]
    ItemDone { output_index: usize, item: OutputItem },
    /// A message's text begins.
    #[serde(rename = "response.content_part.added")]
    PartAdded { item_id: String, output_index: usize, content_index: usize, part: ContentPart },
    /// A message's text is whole.
    #[serde(rename = "response.content_part.done")]
    PartDone { item_id: String, output_index: usize, content_index: usize, part: ContentPart },
    /// More of a message's text.
    #[serde(rename = "response.output_text.delta")]
    TextDelta { item_id: String, output_index: usize, content_index: usize, delta: String },
    /// The whole of a message's text.
    #[serde(rename = "response.output_text.done")]
    TextDone { item_id: String, output_index: usize, content_index: usize, text: String },
    /// The reasoning's text begins.
    #[serde(rename = "response.reasoning_summary_part.added")]
    SummaryAdded { item_id: String, output_index: usize, summary_index: usize, part: SummaryPart },
    /// The reasoning's text is whole.
    #[serde(rename = "response.reasoning_summary_part.done")]
    SummaryDone { item_id: String, output_index: usize, summary_index: usize, part: SummaryPart },
    /// More of the reasoning's text.
    #[serde(rename = "response.reasoning_summary_text.delta")]
    SummaryTextDelta { item_id: String, output_index: usize, summary_index: usize, delta: String },
    /// The whole of the reasoning's text.
    #[serde(rename = "response.reasoning_summary_text.done")]
    SummaryTextDone { item_id: String, output_index: usize, summary_index: usize, text: String },
    /// More of a function's arguments.
    #[serde(rename = "response.function_call_arguments.delta")]
    ArgumentsDelta { item_id: String, output_index: usize, delta: String },
    /// The whole of a function's arguments.
    #[serde(rename = "response.function_call_arguments.done")]
    ArgumentsDone { item_id: String, output_index: usize, arguments: String },
    /// More of a custom tool's input.
    #[serde(rename = "response.custom_tool_call_input.delta")]
    InputDelta { item_id: String, output_index: usize, delta: String },
    /// The whole of a custom tool's input.
    #[serde(rename = "response.custom_tool_call_input.done")]
    InputDone { item_id: String, output_index: usize, input: String },
    /// The answer is whole.
    #[serde(rename = "response.completed")]
    Completed { response: Response },
    /// The answer was cut short by a limit.
    #[serde(rename = "response.incomplete")]
    Incomplete { response: Response },
    /// The provider failed.
    #[serde(rename = "response.failed")]
    Failed { response: Response },
}

impl Event {
    /// The event's name on the wire, as in its `type`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Created { .. } => "response.created",
            Self::ItemAdded { .. } => "response.output_item.added",
            Self::ItemDone { .. } => "response.output_item.done",
            Self::PartAdded { .. } => "response.content_part.added",
            Self::PartDone { .. } => "response.content_part.done",
            Self::TextDelta { .. } => "response.output_text.delta",
            Self::TextDone { .. } => "response.output_text.done",
            Self::SummaryAdded { .. } => "response.reasoning_summary_part.added",
            Self::SummaryDone { .. } => "response.reasoning_summary_part.done",
            Self::SummaryTextDelta { .. } => "response.reasoning_summary_text.delta",
            Self::SummaryTextDone { .. } => "response.reasoning_summary_text.done",
            Self::ArgumentsDelta { .. } => "response.function_call_arguments.delta",
            Self::ArgumentsDone { .. } => "response.function_call_arguments.done",
            Self::InputDelta { .. } => "response.custom_tool_call_input.delta",
            Self::InputDone { .. } => "response.custom_tool_call_input.done",
            Self::Completed { .. } => "response.completed",
            Self::Incomplete { .. } => "response.incomplete",
            Self::Failed { .. } => "response.failed",
        }
    }

    /// Whether nothing comes after it.
    #[must_use]
    pub fn is_last(&self) -> bool {
        matches!(self, Self::Completed { .. } | Self::Incomplete { .. } | Self::Failed { .. })
    }
}

/// An event with its place in the stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Numbered {
    /// The event.
    #[serde(flatten)]
    pub event: Event,
    /// Counted from 0.
    pub sequence_number: u64,
}

/// The answer as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Response {
    /// Whoever serves it gives it one.
    pub id: String,
    /// Always `response`.
    pub object: &'static str,
    /// How it stands.
    pub status: Status,
    /// The model that was asked.
    pub model: String,
    /// The items that are whole.
    pub output: Vec<OutputItem>,
    /// What it cost, where the provider said so.
    pub usage: Option<Tokens>,
    /// Why it failed.
    pub error: Option<Failure>,
    /// Why it was cut short.
    pub incomplete_details: Option<Reason>,
}

/// How an answer or an item stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// More is to come.
    InProgress,
    /// Whole.
    Completed,
    /// Cut short.
    Incomplete,
    /// Failed.
    Failed,
}

/// Why an answer failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// A word for it.
    pub code: String,
    /// A sentence for it.
    pub message: String,
}

/// Why an answer was cut short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// `max_output_tokens` or `content_filter`.
    pub reason: &'static str,
}

/// What an answer cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the fields are the API's own")]
pub struct Tokens {
    pub input_tokens: u64,
    pub input_tokens_details: InputDetails,
    pub output_tokens: u64,
    pub output_tokens_details: OutputDetails,
    pub total_tokens: u64,
}

/// What of the input was cheaper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct InputDetails {
    /// Known from before.
    pub cached_tokens: u64,
}

/// What of the output is not said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct OutputDetails {
    /// Thought only.
    pub reasoning_tokens: u64,
}

/// An item of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(missing_docs, reason = "the fields are the API's own; each item says what it is")]
pub enum OutputItem {
    /// What the model thought.
    Reasoning { id: String, summary: Vec<SummaryPart> },
    /// What it said.
    Message { id: String, status: Status, role: &'static str, content: Vec<ContentPart> },
    /// A function that it calls.
    FunctionCall {
        id: String,
        status: Status,
        call_id: String,
        name: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        namespace: Option<String>,
        arguments: String,
    },
    /// A custom tool that it calls.
    CustomToolCall {
        id: String,
        status: Status,
        call_id: String,
        name: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        namespace: Option<String>,
        input: String,
    },
}

/// A message's text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentPart {
    /// The text.
    OutputText {
        /// Said so far.
        text: String,
        /// Always empty: chat completions cites nothing.
        annotations: [(); 0],
    },
}

/// The reasoning's text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SummaryPart {
    /// The text.
    SummaryText {
        /// Thought so far.
        text: String,
    },
}
