//! Chat completions: the request, and the chunks of a streamed answer.
//!
//! Only what this side sends and reads. Chunks are read openly: providers add fields of their own.

mod chunk;
mod request;

pub use chunk::{
    Choice, Chunk, CompletionDetails, Delta, Failure, FunctionDelta, PromptDetails, ToolCallDelta, Usage,
};
pub use request::{
    Content, Function, FunctionCall, ImageUrl, JsonSchema, Message, NamedTool, Part, Request, ResponseFormat,
    StreamOptions, Tool, ToolCall, ToolChoice,
};
