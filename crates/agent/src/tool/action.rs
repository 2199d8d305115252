//! Tools that are actions: the same definition, checks, permissions and envelope as on every other surface.

use async_trait::async_trait;
use runyard_actions::{
    Envelope, Failure, Idempotency, Invocation, InvocationEvent, InvocationOptions, Runtime, Schema,
    SideEffects,
};
use runyard_domain::{Code, ErrorCode, Surface};
use serde_json::Value;

use super::{Report, Tool, ToolContext, ToolDescriptor, ToolError, ToolOutput, ToolResult};

/// An action as a tool. It is invoked on surface `ai-sdk`, by the context's actor, under the call's idempotency key.
///
/// The action's own timeout, deadline and retries count, so the tool has no deadline.
pub struct ActionTool {
    runtime: Runtime,
    descriptor: ToolDescriptor,
}

impl ActionTool {
    /// The action of this name. One that language models may not see is not found.
    pub fn new(runtime: &Runtime, action: &str) -> Result<Self, ToolError> {
        let found = runtime.actions().find(|found| found.name() == action);
        let found = found.filter(|found| runtime.exposes(found, Surface::AiSdk));
        let spec = found.ok_or_else(|| ToolError::NotFound(action.to_owned()))?.spec();
        let broken = |error: runyard_actions::DefinitionError| ToolError::Internal(error.to_string());
        let parameters = Schema::new(spec.input.json().clone()).map_err(broken)?;
        let mut descriptor =
            ToolDescriptor::with_schema(spec.name.to_string(), spec.description.clone(), parameters);
        descriptor.idempotent =
            spec.side_effects == SideEffects::Read || spec.idempotency == Idempotency::Idempotent;
        Ok(ActionTool { runtime: runtime.clone(), descriptor })
    }

    /// Invokes the action. What it reports goes on as it comes, where anybody listens.
    async fn invoke(&self, invocation: Invocation, context: &ToolContext) -> Option<Envelope> {
        if !context.reporter.is_heard() {
            return Some(self.runtime.invoke(invocation).await);
        }
        let mut events = self.runtime.stream(invocation);
        while let Some(event) = events.next().await {
            let report = match event {
                InvocationEvent::Log(entry) => Report::Log(entry),
                InvocationEvent::Progress(entry) => Report::Progress {
                    percent: entry.fields.get("percent").and_then(Value::as_f64),
                    message: entry.message,
                },
                InvocationEvent::Artifact(artifact) => Report::Artifact(artifact),
                InvocationEvent::Result(envelope) => return Some(*envelope),
            };
            context.reporter.say(report).await;
        }
        None
    }
}

#[async_trait]
impl Tool for ActionTool {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    async fn execute(&self, args: Value, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let options = InvocationOptions {
            idempotency_key: Some(context.idempotency_key.clone()),
            ..InvocationOptions::default()
        };
        let name = self.descriptor.id.as_str();
        let mut invocation = Invocation::new(name, args, Surface::AiSdk, context.actor.clone())
            .options(options)
            .cancel_with(context.cancellation.clone());
        invocation.approved = context.approved;
        match self.invoke(invocation, context).await.map(|envelope| envelope.outcome) {
            Some(Ok(data)) => Ok(ToolResult::success(data).into()),
            Some(Err(failure)) => Err(error_of(&failure)),
            None => Err(ToolError::Internal("the action ended without a result".to_owned())),
        }
    }
}

/// An action's failure as a tool's error.
pub fn error_of(failure: &Failure) -> ToolError {
    let mut said = failure.message.clone();
    for issue in &failure.issues {
        said.push_str(&format!(" {issue}"));
    }
    let ErrorCode::Known(code) = &failure.code else { return ToolError::ExecutionFailed(said) };
    match code {
        Code::ValidationError => ToolError::InvalidArguments(said),
        Code::ActionNotFound => ToolError::NotFound(said),
        Code::AuthorizationError
        | Code::ConfirmationRequired
        | Code::UnsupportedSurface
        | Code::PermissionDenied
        | Code::ApprovalRejected => ToolError::Denied(said),
        Code::Timeout | Code::Cancelled => ToolError::Cancelled(said),
        Code::OutputSerializationError | Code::OutputValidationError | Code::InternalError => {
            ToolError::Internal(said)
        }
        _ => ToolError::ExecutionFailed(said),
    }
}
