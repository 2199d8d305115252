//! One call of an action over MCP, whatever it was asked as: a tool, a resource or a prompt.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use rmcp::ErrorData;
use rmcp::RoleServer;
use rmcp::model::{ClientCapabilities, InputRequiredResult, LoggingLevel};
use rmcp::service::RequestContext;
use runyard_actions::{
    Action, ActionError, Answer, Caller, Envelope, Invocation, InvocationEvent, InvocationOptions, Issue,
    Question, QuestionKind, TaskUse,
};
use runyard_domain::{Actor, Code, Surface};
use serde_json::{Map, Value, json};

use super::callers::{Abilities, RoundCaller, SessionCaller, Unanswered, Wire, input_request, needed};
use super::reports::Reports;
use super::rounds::About;
use super::{CONFIRM_KEY, OPTIONS_KEY, Shared};

/// A call may take so long, retries, waits and questions included.
const CALL_TIME_MAX_MS: u64 = 60 * 60 * 1000;

/// What a request asks for.
pub(super) struct Asked {
    pub(super) method: &'static str,
    /// The tool's or prompt's name, or the resource's address.
    pub(super) name: String,
    pub(super) action: String,
    pub(super) input: Value,
    pub(super) state: Option<String>,
    pub(super) answers: Option<BTreeMap<String, Value>>,
}

/// How a call ends.
pub(super) enum Ended {
    /// With an envelope.
    Done(Box<Envelope>),
    /// With questions to the client.
    InputRequired(InputRequiredResult),
    /// As a task that goes on.
    Task(String),
}

/// One request, with all that it brings.
pub(super) struct Request<'a> {
    pub(super) shared: &'a Arc<Shared>,
    pub(super) actor: Arc<Actor>,
    pub(super) context: &'a RequestContext<RoleServer>,
    /// What is logged from this level on is told.
    pub(super) log_level: Option<LoggingLevel>,
}

impl Request<'_> {
    /// Carries it out.
    pub(super) async fn call(&self, asked: Asked) -> Result<Ended, ErrorData> {
        let abilities = Abilities::of(self.context);
        let action = self.shared.runtime.actions().find(|action| action.name() == asked.action).cloned();
        let task = action.as_ref().map_or(TaskUse::Never, |action| action.spec().task);
        if task == TaskUse::Required && !abilities.follows_tasks() {
            let needed = ClientCapabilities::builder().enable_tasks().build();
            return Err(ErrorData::missing_required_client_capability(needed));
        }
        match Wire::of(self.context) {
            Wire::Session => {
                let peer = self.context.peer.clone();
                let caller = Arc::new(SessionCaller { peer, abilities });
                let invocation = self.invocation(&asked, caller.clone());
                Ok(Ended::Done(Box::new(self.run(invocation, &*caller).await)))
            }
            Wire::Rounds if task == TaskUse::Never || !abilities.follows_tasks() => {
                self.round(asked, abilities).await
            }
            Wire::Rounds if task == TaskUse::Answered && asked.state.is_none() => {
                self.round(asked, abilities).await
            }
            Wire::Rounds => match &self.shared.followed {
                Some(followed) if followed.follows(&asked.action) => {
                    let action = asked.action.clone();
                    let ended = self.round(asked, abilities).await?;
                    // What it began lives elsewhere and is recorded there by now.
                    let begun = match &ended {
                        Ended::Done(envelope) => {
                            envelope.data().and_then(|data| followed.begun(&action, data))
                        }
                        _ => None,
                    };
                    Ok(begun.map_or(ended, Ended::Task))
                }
                _ => self.as_task(&asked, abilities),
            },
        }
    }

    /// One round on the newer wire: to the end, or to the next question.
    async fn round(&self, asked: Asked, abilities: Abilities) -> Result<Ended, ErrorData> {
        let answers = self.answers(&asked)?;
        let caller = Arc::new(RoundCaller::new(abilities, answers.clone()));
        let invocation = self.invocation(&asked, caller.clone());
        let unanswered = tokio::select! {
            biased;
            envelope = self.run(invocation, &*caller) => return Ok(Ended::Done(Box::new(envelope))),
            unanswered = caller.unanswered() => unanswered,
        };
        match unanswered {
            Unanswered::Unable(kind) => Err(ErrorData::missing_required_client_capability(needed(kind))),
            Unanswered::Asked(questions) => {
                let requests = questions.iter().map(|(key, asked)| Ok((key.clone(), input_request(asked)?)));
                let requests = requests.collect::<Result<_, ActionError>>();
                let requests =
                    requests.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
                let state = self.shared.rounds.close(&self.about(&asked), &answers, Timestamp::now());
                Ok(Ended::InputRequired(InputRequiredResult::new(Some(requests), Some(state))))
            }
        }
    }

    fn about<'a>(&'a self, asked: &'a Asked) -> About<'a> {
        About { actor: &self.actor, method: asked.method, name: &asked.name, arguments: &asked.input }
    }

    /// All answers that the request brings.
    fn answers(&self, asked: &Asked) -> Result<BTreeMap<String, Answer>, ErrorData> {
        let (state, came) = (asked.state.as_deref(), asked.answers.clone());
        self.shared.rounds.open(&self.about(asked), state, came, Timestamp::now())
    }

    /// Begins a task that goes on after the answer.
    fn as_task(&self, asked: &Asked, abilities: Abilities) -> Result<Ended, ErrorData> {
        let begun = match self.shared.tasks.begin(&self.actor, abilities, self.answers(asked)?) {
            Ok(begun) => begun,
            Err(error) => {
                let refused = Envelope::refusal(Surface::Mcp, Some(&asked.action), error);
                return Ok(Ended::Done(Box::new(refused)));
            }
        };
        let id = begun.id.clone();
        let mut invocation = self.invocation(asked, begun.caller.clone());
        invocation.cancel = Some(begun.cancel.clone());
        let runtime = self.shared.runtime.clone();
        tokio::spawn(async move {
            let envelope = confirmed(invocation, &*begun.caller.clone(), |call| runtime.invoke(call)).await;
            begun.end(envelope);
        });
        Ok(Ended::Task(id))
    }

    fn invocation(&self, asked: &Asked, caller: Arc<dyn Caller>) -> Invocation {
        let mut options = match self.context.meta.get(OPTIONS_KEY) {
            Some(Value::Object(options)) => options.clone(),
            _ => Map::new(),
        };
        let mut taken = InvocationOptions::take_from(&mut options);
        for word in options.keys() {
            taken.refuse(Issue::at(word, format!("Unexpected property \"{word}\".")));
        }
        let (name, input) = (asked.action.clone(), asked.input.clone());
        Invocation::new(name, input, Surface::Mcp, Arc::clone(&self.actor))
            .options(taken)
            .within_ms(CALL_TIME_MAX_MS)
            .cancel_with(self.context.ct.clone())
            .asking(caller)
    }

    async fn run(&self, invocation: Invocation, caller: &dyn Caller) -> Envelope {
        confirmed(invocation, caller, |call| self.followed(call)).await
    }

    /// Invokes, and tells what happens meanwhile.
    async fn followed(&self, invocation: Invocation) -> Envelope {
        let name = match &invocation.action {
            runyard_actions::ActionRef::Name(name) => name.to_string(),
            runyard_actions::ActionRef::Action(action) => action.name().to_owned(),
        };
        let mut reports = Reports::new(self.context, self.log_level, &name);
        if reports.is_silent() {
            return self.shared.runtime.invoke(invocation).await;
        }
        let mut events = self.shared.runtime.stream(invocation);
        while let Some(event) = events.next().await {
            if let InvocationEvent::Result(envelope) = event {
                return *envelope;
            }
            reports.tell(&event).await;
        }
        let ended = ActionError::internal("an invocation ended without its envelope");
        Envelope::refusal(Surface::Mcp, Some(&name), ended)
    }
}

/// Invokes; where a confirmation is missing, and there is a person to be asked, asks and invokes again.
///
/// An agent is never asked: inside a run the gate decides.
async fn confirmed<F: Future<Output = Envelope>>(
    invocation: Invocation,
    caller: &dyn Caller,
    invoke: impl Fn(Invocation) -> F,
) -> Envelope {
    let mut again = invocation.clone();
    let envelope = invoke(invocation).await;
    let missing = envelope.error().is_some_and(|failure| failure.code == Code::ConfirmationRequired);
    if !missing || again.actor.is_agent() || !caller.can_answer(QuestionKind::Form) {
        return envelope;
    }
    let questions = [(CONFIRM_KEY.to_owned(), confirmation(&envelope, &again.input))].into();
    match caller.ask(questions).await {
        Ok(answers) if answers.get(CONFIRM_KEY).is_some_and(says_yes) => {
            again.options.confirm = true;
            invoke(again).await
        }
        // Nobody said yes, so what was missing is missing.
        _ => envelope,
    }
}

/// What a person is asked: the action and its exact input.
fn confirmation(envelope: &Envelope, input: &Value) -> Question {
    let action = envelope.meta.action.as_deref().unwrap_or_default();
    let input = serde_json::to_string_pretty(input).unwrap_or_default();
    let message = format!("Run \"{action}\"? It cannot be taken back.\n\n{input}");
    let schema = json!({
        "type": "object",
        "properties": {
            "confirm": {
                "type": "boolean",
                "title": format!("Yes, run {action}"),
                "description": "Only if this is exactly what you want.",
                "default": false,
            }
        },
        "required": ["confirm"],
    });
    Question::form(message, schema)
}

fn says_yes(answer: &Answer) -> bool {
    answer.filled_in().is_some_and(|content| content.get("confirm") == Some(&Value::Bool(true)))
}

/// Whether the action is offered as a tool.
pub(super) fn is_tool(action: &Action) -> bool {
    !action.spec().prompt
}
