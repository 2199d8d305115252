//! What a tool call comes to: the message for the model, in its provider's shape, and the envelope.

use runyard_actions::{ActionError, Envelope};
use runyard_domain::{Code, Surface};
use serde::Serialize;
use serde_json::{Value, json};

use super::{ApprovalRequest, Format};

/// What a tool call came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolReply {
    /// For the model. Where a person is asked first, the AI SDK's says so; for other providers it is the refusal, for programs
    /// that ask nobody.
    pub message: Value,
    /// The whole envelope, for the program.
    pub envelope: Envelope,
    /// What the person is asked, where the call needs a confirmation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalRequest>,
}

/// A call as its answer names it.
pub(super) struct Called {
    pub(super) format: Format,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) input: Value,
}

impl Called {
    pub(super) fn answered(self, envelope: Envelope, approval: Option<ApprovalRequest>) -> ToolReply {
        ToolReply { message: self.message(&envelope, approval.as_ref()), envelope, approval }
    }

    /// A call that never reached the runtime.
    pub(super) fn refused(self, error: ActionError) -> ToolReply {
        let envelope = Envelope::refusal(Surface::AiSdk, Some(&self.name), error);
        self.answered(envelope, None)
    }

    fn message(&self, envelope: &Envelope, approval: Option<&ApprovalRequest>) -> Value {
        let id = &self.id;
        match self.format {
            Format::OpenaiChat => json!({"role": "tool", "tool_call_id": id, "content": text(envelope)}),
            Format::OpenaiResponses => {
                json!({"type": "function_call_output", "call_id": id, "output": text(envelope)})
            }
            Format::Anthropic => json!({
                "type": "tool_result", "tool_use_id": id, "content": text(envelope), "is_error": !envelope.is_ok(),
            }),
            Format::AiSdk => self.part(envelope, approval),
        }
    }

    /// A part of the AI SDK's stream.
    fn part(&self, envelope: &Envelope, approval: Option<&ApprovalRequest>) -> Value {
        let Called { id, name, input, .. } = self;
        match (&envelope.outcome, approval) {
            (Ok(data), _) => {
                json!({"type": "tool-result", "toolCallId": id, "toolName": name, "input": input, "output": data})
            }
            (Err(failure), Some(approval)) => json!({
                "type": "tool-approval-request",
                "approvalId": approval.approval_id,
                "toolCallId": id,
                "toolCall": {"type": "tool-call", "toolCallId": id, "toolName": name, "input": input},
                "reason": failure.message,
            }),
            (Err(failure), None) if failure.code == Code::ApprovalRejected => json!({
                "type": "tool-output-denied", "toolCallId": id, "toolName": name, "reason": failure.message,
            }),
            (Err(failure), None) => {
                json!({"type": "tool-error", "toolCallId": id, "toolName": name, "input": input, "error": failure})
            }
        }
    }
}

/// The data as JSON, or what went wrong.
fn text(envelope: &Envelope) -> String {
    match &envelope.outcome {
        Ok(data) => data.to_string(),
        Err(failure) => json!({ "error": failure }).to_string(),
    }
}
