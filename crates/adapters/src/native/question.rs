//! Asking a person: the tool for it, and the answers to calls that wait.

use std::sync::Arc;

use async_trait::async_trait;
use runyard_agent::run::{Decision, RunOutcome};
use runyard_agent::tool::{
    ResumeMode, SuspendTicket, Tool, ToolContext, ToolDescriptor, ToolError, ToolOutput, ToolResult,
};
use runyard_backend::Answer;
use runyard_domain::gate::{Question, Request};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::ear::Ear;

/// The tool's name.
pub(super) const ASK: &str = "ask";
/// What the answer is called in the form that a person fills in.
const ANSWER: &str = "answer";

/// Asks a person. The call waits, and the answer is its result.
pub(super) struct AskTool(ToolDescriptor);

impl AskTool {
    pub(super) fn new() -> Result<Self, String> {
        let parameters = json!({
            "type": "object",
            "properties": {
                "question": {
                    "type": "string", "minLength": 1, "maxLength": 4000,
                    "description": "What you need to know, with all that is needed to answer it.",
                },
                "choices": {
                    "type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 200},
                    "minItems": 2, "maxItems": 20,
                    "description": "The answers to choose from, where not any text is one.",
                },
            },
            "required": ["question"],
            "additionalProperties": false,
        });
        let about = "Asks the person who follows your work. It may take long: use it only for what you cannot find out.";
        let descriptor = ToolDescriptor::new(ASK, about, parameters).map_err(|error| error.to_string())?;
        // It has no effect but the question, which is asked again where it was not answered.
        Ok(AskTool(ToolDescriptor { idempotent: true, ..descriptor }))
    }
}

#[async_trait]
impl Tool for AskTool {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.0
    }

    async fn execute(&self, args: Value, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let mut answer = json!({"type": "string", "minLength": 1, "maxLength": 20_000});
        if let Some(choices) = args.get("choices") {
            answer = json!({"type": "string", "enum": choices});
        }
        let schema = json!({"type": "object", "properties": {ANSWER: answer}, "required": [ANSWER]});
        let ticket = SuspendTicket {
            response_schema: Some(schema),
            resume: ResumeMode::UseDecisionAsResult,
            ..SuspendTicket::new(
                context.idempotency_key.clone(),
                ASK,
                args["question"].as_str().unwrap_or_default(),
            )
        };
        Ok(ToolResult::Suspended { ticket: Box::new(ticket) }.into())
    }
}

/// Asks for all that the calls of a turn wait for, and waits for the answers. What is interrupted meanwhile is not answered.
pub(super) async fn answers(
    ear: &Arc<Ear>,
    outcome: &RunOutcome,
    interrupted: &CancellationToken,
) -> Vec<Decision> {
    let mut asking = JoinSet::new();
    for (place, ticket) in &outcome.waiting {
        let (ear, name, ticket) = (Arc::clone(ear), place.to_string(), ticket.clone());
        asking.spawn(async move {
            let answer = ear.ask(&name, request(&ticket)).await?;
            Some(decision(&ticket, answer))
        });
    }
    let mut decisions = Vec::new();
    while !asking.is_empty() {
        tokio::select! {
            () = interrupted.cancelled() => break,
            answered = asking.join_next() => {
                decisions.extend(answered.and_then(Result::ok).flatten());
            }
        }
    }
    // Whoever still waits is withdrawn.
    asking.shutdown().await;
    decisions
}

fn request(ticket: &SuspendTicket) -> Request {
    let yes_or_no =
        || json!({"type": "object", "properties": {ANSWER: {"type": "boolean"}}, "required": [ANSWER]});
    let answer_schema = ticket.response_schema.clone().unwrap_or_else(yes_or_no);
    Request::Question(Question { prompt: ticket.message.clone(), answer_schema })
}

fn decision(ticket: &SuspendTicket, answer: Answer) -> Decision {
    let given = answer.answer.unwrap_or_default();
    let said_no = ticket.response_schema.is_none() && given.get(ANSWER) == Some(&json!(false));
    if !answer.approved || said_no {
        let reason = answer.reason.unwrap_or_else(|| "the person did not answer".to_owned());
        return Decision::cancel(&ticket.id, reason);
    }
    // The model reads the answer itself, not the form that it came in.
    let value = match ticket.action.as_str() {
        ASK => given.get(ANSWER).cloned().unwrap_or(given),
        _ => given,
    };
    Decision::answer(&ticket.id, value)
}
