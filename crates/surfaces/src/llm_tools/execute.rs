//! Executing a tool call: its input, the person's answer if there is one, the runtime, and the answer for the model.

use std::future::Future;
use std::sync::Arc;

use jiff::Timestamp;
use runyard_actions::{Action, ActionError, Envelope, Invocation, Runtime};
use runyard_domain::{Actor, Code, Surface};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::approval::{Approvals, Bound, Refused, reason};
use super::reply::Called;
use super::{APPROVAL_TIME_MAX, ApprovalRequest, Tool, ToolReply, ToolRequest};

/// Executes tool calls. Cloning is cheap, and clones know the same approvals.
#[derive(Clone)]
pub struct LlmTools {
    runtime: Runtime,
    approvals: Option<Arc<Approvals>>,
}

impl LlmTools {
    /// On this runtime. Approval ids that it gives are good for it and its clones only.
    pub fn new(runtime: Runtime) -> Self {
        LlmTools { runtime, approvals: Some(Arc::new(Approvals::new())) }
    }

    /// For a program that cannot come back with an answer: a call that needs a confirmation simply fails without one.
    pub fn without_approvals(runtime: Runtime) -> Self {
        LlmTools { runtime, approvals: None }
    }

    /// Executes one call for `actor`, on surface `ai-sdk`. Cancelling `cancel` ends it with `CANCELLED`, and so does dropping
    /// the future.
    pub async fn execute(
        &self,
        actor: Arc<Actor>,
        request: ToolRequest,
        cancel: CancellationToken,
    ) -> ToolReply {
        let runtime = self.runtime.clone();
        let invoke = |_, invocation| async move { runtime.invoke(invocation).await };
        self.execute_by(invoke, actor, request, cancel).await
    }

    /// The same, where something else may make the invocation. It is told the action if the actor has it as a tool.
    pub(crate) async fn execute_by<F: Future<Output = Envelope>>(
        &self,
        invoke: impl FnOnce(Option<Action>, Invocation) -> F,
        actor: Arc<Actor>,
        mut request: ToolRequest,
        cancel: CancellationToken,
    ) -> ToolReply {
        let named = |action: &&Action| action.name() == request.name;
        let action = self.runtime.listed(Surface::AiSdk, &actor).find(named).cloned();
        let tool = action.as_ref().map(|action| Tool::of(action, request.format));
        let taken = request.take_input(tool.as_ref());
        let ToolRequest { format, options, approval, within_ms, id, name, .. } = request;
        let mut called = Called { format, id, name, input: Value::Null };
        called.input = match taken {
            Ok(input) => input,
            Err(issue) => return called.refused(ActionError::invalid_input(vec![issue])),
        };
        let mut invocation =
            Invocation::new(called.name.as_str(), called.input.clone(), Surface::AiSdk, Arc::clone(&actor))
                .options(options)
                .cancel_with(cancel);
        invocation.within_ms = within_ms;
        let bound = Bound { actor: &actor, action: &called.name, input: &called.input };
        let mut not_counted = None;
        // An agent's answer counts as little as its confirmation.
        if let Some(answer) = approval.filter(|_| !actor.is_agent()) {
            let spent = self.spend(&answer.approval_id, bound);
            if !answer.approved {
                return called.refused(rejected(answer.reason.as_deref()));
            }
            invocation.options.confirm = spent.is_ok();
            not_counted = spent.err();
        }
        let mut envelope = invoke(action.clone(), invocation).await;
        let mut asked = None;
        if let (Err(failure), Some(action)) = (&mut envelope.outcome, &action)
            && failure.code == Code::ConfirmationRequired
            && action.asks_to_confirm(Surface::AiSdk)
        {
            if let Some(refused) = not_counted {
                failure.message = format!("{} {}", failure.message, reason(refused));
            }
            asked = self.ask(action, &called.id, bound);
        }
        called.answered(envelope, asked)
    }

    fn spend(&self, approval_id: &str, bound: Bound<'_>) -> Result<(), Refused> {
        self.approvals.as_ref().ok_or(Refused::NotForThis)?.spend(approval_id, bound, Timestamp::now())
    }

    /// What a person is asked. An agent has nobody to ask: inside a run the gate does.
    fn ask(&self, action: &Action, tool_call_id: &str, bound: Bound<'_>) -> Option<ApprovalRequest> {
        let approvals = self.approvals.as_ref().filter(|_| !bound.actor.is_agent())?;
        Some(ApprovalRequest {
            approval_id: approvals.issue(bound, Timestamp::now())?,
            tool_call_id: tool_call_id.to_owned(),
            action: action.name().to_owned(),
            title: action.spec().title.clone(),
            side_effects: action.spec().side_effects,
            input: bound.input.clone(),
            expires_in_ms: u64::try_from(APPROVAL_TIME_MAX.as_millis()).unwrap_or(u64::MAX),
        })
    }
}

fn rejected(reason: Option<&str>) -> ActionError {
    let message = match reason.map(str::trim).filter(|reason| !reason.is_empty()) {
        Some(reason) => format!("A person was asked and said no: {reason}"),
        None => "A person was asked and said no.".to_owned(),
    };
    ActionError::new(Code::ApprovalRejected, message)
}
