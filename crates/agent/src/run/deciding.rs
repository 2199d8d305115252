//! What is to be done about a call: whether it waits, is refused, or is made.

use std::sync::Arc;

use runyard_llm::inference::ToolCall;
use runyard_redact::holds_placeholder;
use serde_json::{Value, json};

use super::result::Ended;
use super::waiting::{SuspendedCalls, SuspendedUpdate};
use super::{Course, Decision, DecisionKind, Halt};
use crate::checkpoint::CallPlace;
use crate::phase::{GateDecision, Moment};
use crate::state::MutationBatch;
use crate::tool::{ResumeMode, SuspendTicket, Tool, ToolContext, ToolError, ToolResult, check};

/// What a call whose outcome nobody knows waits for.
const REPEAT: &str = "repeat";

/// What is to be done about a call.
pub(super) enum Plan {
    /// It is made.
    Make(Box<Making>),
    /// It is over without being made.
    Over(Ended),
    /// It waits.
    Wait(SuspendTicket),
    /// It is over, and so is the run.
    Block(String),
}

pub(super) struct Making {
    pub(super) tool: Arc<dyn Tool>,
    pub(super) context: ToolContext,
}

/// The answer to a call that waited.
struct Answer {
    decision: Decision,
    resume: ResumeMode,
}

impl Course {
    /// Decides on a call.
    pub(super) async fn plan(&mut self, place: CallPlace, call: &ToolCall) -> Result<Plan, Halt> {
        let snapshot = self.store.snapshot();
        let waited = snapshot.get::<SuspendedCalls>().and_then(|all| all.get(&place.to_string()));
        let answer = match waited {
            None => None,
            Some(ticket) => {
                let found = self.decisions.iter().find(|decision| decision.ticket == ticket.id);
                let Some(decision) = found.cloned() else { return Ok(Plan::Wait(ticket.clone())) };
                self.waits_no_more(place)?;
                if let Some(over) = decided(&decision, ticket.resume) {
                    return Ok(Plan::Over(over));
                }
                Some(Answer { decision, resume: ticket.resume })
            }
        };
        let Some(tool) = self.offered(&call.name) else {
            return Ok(refused(ToolError::NotFound(call.name.clone())));
        };
        if self.unknown.remove(&place) && answer.is_none() && !tool.descriptor().idempotent {
            return Ok(Plan::Wait(repeat(place, call)));
        }
        if !self.conversation.is_live() && is_redacted(&call.arguments) {
            let why =
                "a secret in them is not stored, and so they are lost: make the call again with all of them";
            return Ok(refused(ToolError::InvalidArguments(why.to_owned())));
        }
        if let Err(refusal) = check(tool.as_ref(), &call.arguments) {
            return Ok(Plan::Over(Err(refusal)));
        }
        self.gate(place, call, tool, answer).await
    }

    /// A call waits no more.
    pub(super) fn waits_no_more(&mut self, place: CallPlace) -> Result<(), Halt> {
        self.store.commit(MutationBatch::new().with::<SuspendedCalls>(SuspendedUpdate::Done(place)))?;
        Ok(())
    }

    /// A tool that the model is offered.
    fn offered(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let agent = &self.parts.agent;
        agent.tools.iter().find(|tool| tool.name == name)?;
        agent.environment.tool(name).cloned()
    }

    async fn gate(
        &mut self,
        place: CallPlace,
        call: &ToolCall,
        tool: Arc<dyn Tool>,
        answer: Option<Answer>,
    ) -> Result<Plan, Halt> {
        // A gate may take long, and what is not durable might be lost meanwhile.
        if self.parts.agent.environment.has_gates() {
            self.flush().await?;
        }
        self.phase(Moment::ToolGate { call }).await?;
        let occasion = self.occasion(Moment::ToolGate { call });
        let decided = self.parts.agent.environment.decide(&self.store, call, occasion).await?;
        let approved = match decided {
            GateDecision::Block(reason) => return Ok(Plan::Block(reason)),
            GateDecision::Deny(reason) => return Ok(refused(ToolError::Denied(reason))),
            GateDecision::Suspend(ticket) | GateDecision::SetResult(ToolResult::Suspended { ticket })
                if answer.is_none() =>
            {
                return Ok(Plan::Wait(*ticket));
            }
            // It waited, and this is the answer.
            GateDecision::Suspend(_) | GateDecision::SetResult(ToolResult::Suspended { .. }) => true,
            GateDecision::SetResult(result) => return Ok(Plan::Over(Ok(result))),
            GateDecision::Allow => answer.is_some(),
        };
        self.phase(Moment::BeforeToolExecute { call }).await?;
        let context = ToolContext {
            cancellation: self.cancellation.clone(),
            approved,
            decision: answer
                .filter(|answer| answer.resume == ResumeMode::PassDecisionToTool)
                .map(|answer| answer.decision.value),
            ..ToolContext::new(
                self.parts.identity.clone(),
                call.id.clone(),
                format!("{}:{place}", self.parts.identity.run_id),
                Arc::clone(&self.parts.actor),
                self.store.snapshot(),
            )
        };
        Ok(Plan::Make(Box::new(Making { tool, context })))
    }
}

/// How a call is over by the answer alone, where it is.
fn decided(decision: &Decision, resume: ResumeMode) -> Option<Ended> {
    if decision.kind == DecisionKind::Cancel {
        let why = decision.reason.clone().unwrap_or_else(|| "it was called off".to_owned());
        return Some(Err(ToolError::Cancelled(why).into()));
    }
    (resume == ResumeMode::UseDecisionAsResult).then(|| Ok(ToolResult::success(decision.value.clone())))
}

fn refused(error: ToolError) -> Plan {
    Plan::Over(Err(error.into()))
}

/// Whether a secret was taken out of a value when it was stored.
fn is_redacted(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
        Value::String(text) => holds_placeholder(text),
        Value::Array(items) => items.iter().any(is_redacted),
        Value::Object(fields) => {
            fields.iter().any(|(name, field)| holds_placeholder(name) || is_redacted(field))
        }
    }
}

/// Asks whether a call is to be made again of which nobody knows whether it was.
fn repeat(place: CallPlace, call: &ToolCall) -> SuspendTicket {
    let message = format!("{} was about to be called when the process died. Call it again?", call.name);
    SuspendTicket {
        parameters: json!({ "tool": call.name, "arguments": call.arguments }),
        ..SuspendTicket::new(format!("{REPEAT}-{place}"), REPEAT, message)
    }
}
