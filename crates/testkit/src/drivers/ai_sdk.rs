//! Tool calls of language models: executed in this process, as a program around a model does.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, ensure};
use runyard::surfaces::llm_tools::{ARGUMENTS_BYTES_MAX, Format, LlmTools, ToolRequest};
use runyard::{Actor, App, Surface};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::{Answer, Driver, Status};
use crate::process::eventually;
use crate::{Call, Input};

/// Makes tool calls in the shape of one provider.
pub struct AiSdkDriver {
    tools: LlmTools,
    format: Format,
    tokio: tokio::runtime::Runtime,
}

impl AiSdkDriver {
    /// Drives this application.
    pub fn new(app: App, format: Format) -> Result<Self> {
        let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let runtime = app.runtime()?;
        let tools = tokio.block_on(async { LlmTools::new(runtime) });
        Ok(AiSdkDriver { tools, format, tokio })
    }

    fn request(&self, call: &Call) -> Result<ToolRequest> {
        let mut payload = Map::new();
        payload.insert("format".to_owned(), json!(self.format));
        payload.insert(
            "call".to_owned(),
            provider_call(self.format, &call.action, arguments(self.format, call)),
        );
        payload.extend(call.options.clone());
        ToolRequest::from_payload(payload, None).map_err(|error| anyhow!("{}", error.message()))
    }

    fn execute(&self, call: &Call, cancel: CancellationToken) -> Result<Answer> {
        let request = self.request(call)?;
        let actor = Arc::new(Actor::owner("tester"));
        let reply = self.tokio.block_on(self.tools.execute(actor, request, cancel));
        let envelope = serde_json::to_value(&reply.envelope)?;
        ensure!(answers(self.format, &reply.message), "the message answers another call: {}", reply.message);
        Ok(Answer { envelope, status: Status::Silent })
    }
}

/// OpenAI gives arguments as text, the others as JSON; what is no JSON, or too much of it, can only be a text.
fn arguments(format: Format, call: &Call) -> Option<Value> {
    let text = match &call.input {
        Input::Missing => return None,
        Input::Json(value) => value.to_string(),
        // There is no payload around a tool call's arguments: they stand in its place.
        Input::Raw(text) | Input::RawPayload(text) => text.clone(),
    };
    let as_text = matches!(format, Format::OpenaiChat | Format::OpenaiResponses);
    match serde_json::from_str(&text) {
        Ok(value) if !as_text && text.len() <= ARGUMENTS_BYTES_MAX => Some(value),
        _ => Some(Value::String(text)),
    }
}

fn provider_call(format: Format, name: &str, arguments: Option<Value>) -> Value {
    let mut call = match format {
        Format::OpenaiChat => json!({"id": "call_1", "type": "function", "function": {"name": name}}),
        Format::OpenaiResponses => json!({"type": "function_call", "call_id": "call_1", "name": name}),
        Format::Anthropic => json!({"type": "tool_use", "id": "call_1", "name": name}),
        Format::AiSdk => json!({"type": "tool-call", "toolCallId": "call_1", "toolName": name}),
    };
    if let Some(arguments) = arguments {
        match format {
            Format::OpenaiChat => call["function"]["arguments"] = arguments,
            Format::OpenaiResponses => call["arguments"] = arguments,
            Format::Anthropic | Format::AiSdk => call["input"] = arguments,
        }
    }
    call
}

/// Whether a message names the call that it answers.
fn answers(format: Format, message: &Value) -> bool {
    let field = match format {
        Format::OpenaiChat => "tool_call_id",
        Format::OpenaiResponses => "call_id",
        Format::Anthropic => "tool_use_id",
        Format::AiSdk => "toolCallId",
    };
    message[field] == "call_1"
}

impl Driver for AiSdkDriver {
    fn surface(&self) -> Surface {
        Surface::AiSdk
    }

    fn call(&self, calls: &[Call]) -> Result<Answer> {
        let (last, before) = calls.split_last().context("there is no call")?;
        for call in before {
            self.execute(call, CancellationToken::new())?;
        }
        self.execute(last, CancellationToken::new())
    }

    fn cancel(&self, call: &Call, marker: &Path) -> Result<Answer> {
        let cancel = CancellationToken::new();
        let (marker, cancelled) = (marker.to_owned(), cancel.clone());
        let waiting = std::thread::spawn(move || {
            let made = eventually(|| marker.exists());
            cancelled.cancel();
            made
        });
        let answer = self.execute(call, cancel);
        let made = waiting.join().map_err(|_| anyhow!("the wait for the marker panicked"))?;
        ensure!(made, "the marker was not made");
        answer
    }
}
