//! What the tests of tools for language models share: the rules of strict mode, written down a second time, and calls.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "each test file uses a part; a failed expectation fails the test"
)]

pub(crate) mod strict_rules;

use std::sync::Arc;

use runyard_domain::Actor;
use runyard_surfaces::llm_tools::{Format, LlmTools, ToolReply, ToolRequest};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

pub(crate) fn ada() -> Arc<Actor> {
    Arc::new(Actor::owner("ada"))
}

/// A call in a provider's shape, with the arguments as that provider gives them.
pub(crate) fn call(format: Format, name: &str, arguments: &Value) -> Value {
    match format {
        Format::OpenaiChat => json!({
            "id": "c1", "type": "function", "function": {"name": name, "arguments": arguments.to_string()},
        }),
        Format::OpenaiResponses => json!({
            "type": "function_call", "id": "fc_1", "call_id": "c1", "name": name, "arguments": arguments.to_string(),
        }),
        Format::Anthropic => json!({"type": "tool_use", "id": "c1", "name": name, "input": arguments}),
        Format::AiSdk => {
            json!({"type": "tool-call", "toolCallId": "c1", "toolName": name, "input": arguments})
        }
    }
}

/// Executes a call of Ada's with this beside it.
pub(crate) async fn execute(tools: &LlmTools, format: Format, call: Value, beside: Value) -> ToolReply {
    execute_as(ada(), tools, format, call, beside).await
}

pub(crate) async fn execute_as(
    actor: Arc<Actor>,
    tools: &LlmTools,
    format: Format,
    call: Value,
    beside: Value,
) -> ToolReply {
    let mut payload = beside.as_object().expect("an object").clone();
    payload.insert("format".to_owned(), json!(format));
    payload.insert("call".to_owned(), call);
    let request = ToolRequest::from_payload(payload, None).unwrap();
    tools.execute(actor, request, CancellationToken::new()).await
}
