//! What is to be done about a call: whether it waits, is refused, or is made.

use std::sync::Arc;

use runyard_llm::inference::ToolCall;
use runyard_redact::holds_placeholder;
use serde_json::{Value, json};

use super::result::{Ended, not_made_again};
use super::waiting::{
    Answered, AnsweredQuestions, AnsweredUpdate, Asker, Suspended, SuspendedCalls, SuspendedUpdate,
};
use super::{Course, Decision, DecisionKind, Halt};
use crate::checkpoint::CallPlace;
use crate::phase::{GateDecision, LastOffer, Moment, strongest};
use crate::state::{MutationBatch, StateError};
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
    Wait(Suspended),
    /// It is over, and so is the run.
    Block(String),
}

pub(super) struct Making {
    pub(super) tool: Arc<dyn Tool>,
    pub(super) context: ToolContext,
}

impl Course {
    /// Decides on a call. One that may have been made in an earlier life is not told as if it had not been.
    pub(super) async fn plan(&mut self, place: CallPlace, call: &ToolCall) -> Result<Plan, Halt> {
        match self.decide(place, call).await? {
            Plan::Over(Err(refusal)) if self.is_unknown(place, call) => {
                Ok(refused(not_made_again(&refusal.model_text())))
            }
            plan => Ok(plan),
        }
    }

    async fn decide(&mut self, place: CallPlace, call: &ToolCall) -> Result<Plan, Halt> {
        let snapshot = self.store.snapshot();
        let waited = snapshot.get::<SuspendedCalls>().and_then(|all| all.get(&place.to_string()));
        if let Some(waited) = waited {
            let Some(decision) = self.take_decision(&waited.ticket.id) else {
                return Ok(Plan::Wait(waited.clone()));
            };
            if let Some(over) = decided(&decision, waited.ticket.resume) {
                self.waits_no_more(place)?;
                if waited.asker == Asker::Runtime {
                    self.unknown.remove(&place);
                }
                return Ok(Plan::Over(over));
            }
            self.answered(place, waited, decision)?;
        }
        let tool = self.offered(&call.name);
        // Before anything else is said about it: also of a tool that is gone, or takes other arguments now, it is not known.
        let is_idempotent = tool.as_ref().is_some_and(|tool| tool.descriptor().idempotent);
        if self.unknown.contains(&place) && waited.is_none() && !is_idempotent {
            let asked = repeat(place, call);
            // Whoever asked before this run went on has the answer already.
            let Some(decision) = self.take_decision(&asked.ticket.id) else {
                return Ok(Plan::Wait(asked));
            };
            if let Some(over) = decided(&decision, asked.ticket.resume) {
                self.unknown.remove(&place);
                return Ok(Plan::Over(over));
            }
        }
        let Some(tool) = tool else {
            return Ok(refused(ToolError::NotFound(call.name.clone())));
        };
        if !self.conversation.is_live() && is_redacted(&call.arguments) {
            let why =
                "a secret in them is not stored, and so they are lost: make the call again with all of them";
            return Ok(refused(ToolError::InvalidArguments(why.to_owned())));
        }
        if let Err(refusal) = check(tool.as_ref(), &call.arguments) {
            return Ok(Plan::Over(Err(refusal)));
        }
        self.gate(place, call, tool).await
    }

    /// The answer to a ticket. It counts once: another call with a ticket of the same id waits for its own.
    fn take_decision(&mut self, ticket: &str) -> Option<Decision> {
        let at = self.decisions.iter().position(|decision| decision.ticket == ticket)?;
        Some(self.decisions.remove(at))
    }

    /// A call waits no more, and what was answered is remembered until it is over.
    fn answered(&mut self, place: CallPlace, waited: &Suspended, decision: Decision) -> Result<(), Halt> {
        let Suspended { asker, ticket } = waited.clone();
        let answered = Answered { asker, ticket: ticket.id, resume: ticket.resume, value: decision.value };
        let answer = AnsweredUpdate::Answer(place, Box::new(answered));
        let waits_no_more = MutationBatch::new().with::<SuspendedCalls>(SuspendedUpdate::Done(place));
        self.store.commit(waits_no_more.with::<AnsweredQuestions>(answer))?;
        Ok(())
    }

    /// A call waits no more.
    pub(super) fn waits_no_more(&mut self, place: CallPlace) -> Result<(), Halt> {
        self.store.commit(MutationBatch::new().with::<SuspendedCalls>(SuspendedUpdate::Done(place)))?;
        Ok(())
    }

    /// A call is over: what was answered about it has been of use.
    pub(super) fn forget_answers(&mut self, place: CallPlace) -> Result<(), StateError> {
        let key = place.to_string();
        let is_kept =
            self.store.look(|now| now.get::<AnsweredQuestions>().is_some_and(|all| all.contains_key(&key)));
        if is_kept {
            let over = AnsweredUpdate::Over(place);
            self.store.commit(MutationBatch::new().with::<AnsweredQuestions>(over))?;
        }
        Ok(())
    }

    /// A tool that the model was offered with the question whose answer calls it.
    fn offered(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let agent = &self.parts.agent;
        agent.tools.iter().find(|tool| tool.name == name)?;
        if self.store.look(|now| now.get::<LastOffer>().is_some_and(|offer| !offer.has(name))) {
            return None;
        }
        agent.environment.tool(name).cloned()
    }

    async fn gate(&mut self, place: CallPlace, call: &ToolCall, tool: Arc<dyn Tool>) -> Result<Plan, Halt> {
        // A gate may take long, and what is not durable might be lost meanwhile.
        if self.parts.agent.environment.has_gates() {
            self.keep_words()?;
            self.flush().await?;
        }
        self.phase(Moment::ToolGate { call }).await?;
        let decisions = {
            let environment = &self.parts.agent.environment;
            let _pause = environment.waits_for_people().then(|| self.clock.pause());
            environment.decide_each(&self.store, call, self.occasion(Moment::ToolGate { call })).await?
        };
        let snapshot = self.store.snapshot();
        let answers = snapshot.get::<AnsweredQuestions>().and_then(|all| all.get(&place.to_string()));
        let answers = answers.map(Vec::as_slice).unwrap_or_default();
        let open = decisions.into_iter().filter(|(gate, decision)| !is_answered(answers, gate, decision));
        match strongest(open) {
            None | Some((_, GateDecision::Allow)) => {}
            Some((_, GateDecision::Block(reason))) => return Ok(Plan::Block(reason)),
            Some((_, GateDecision::Deny(reason))) => return Ok(refused(ToolError::Denied(reason))),
            Some((
                gate,
                GateDecision::Suspend(ticket) | GateDecision::SetResult(ToolResult::Suspended { ticket }),
            )) => return Ok(Plan::Wait(Suspended { asker: Asker::Gate(gate), ticket: *ticket })),
            Some((_, GateDecision::SetResult(result))) => return Ok(Plan::Over(Ok(result))),
        }
        self.phase(Moment::BeforeToolExecute { call }).await?;
        let told = answers.iter().rev().find(|answer| answer.resume == ResumeMode::PassDecisionToTool);
        let context = ToolContext {
            cancellation: self.cancellation.clone(),
            approved: answers.iter().any(Answered::approves),
            decision: told.map(|answer| answer.value.clone()),
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

/// Whether a gate asks what was answered already. Another gate's answer, or one to another question, is none.
fn is_answered(answers: &[Answered], gate: &str, decision: &GateDecision) -> bool {
    let (GateDecision::Suspend(ticket) | GateDecision::SetResult(ToolResult::Suspended { ticket })) =
        decision
    else {
        return false;
    };
    let asked_by = |asker: &Asker| matches!(asker, Asker::Gate(name) if name == gate);
    answers.iter().any(|answer| asked_by(&answer.asker) && answer.ticket == ticket.id)
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

/// The ticket of the question whether a call is to be made again of which nobody knows whether it was. Whoever asked that before the
/// run goes on gives the decision under it.
pub fn repeat_ticket(place: CallPlace) -> String {
    format!("{REPEAT}-{place}")
}

fn repeat(place: CallPlace, call: &ToolCall) -> Suspended {
    let message = format!("{} was about to be called when the process died. Call it again?", call.name);
    let ticket = SuspendTicket {
        parameters: json!({ "tool": call.name, "arguments": call.arguments }),
        ..SuspendTicket::new(repeat_ticket(place), REPEAT, message)
    };
    Suspended { asker: Asker::Runtime, ticket }
}
