//! One call of an action over MCP, whatever it was asked as: a tool, a resource or a prompt.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

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
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::callers::{Abilities, RoundCaller, SessionCaller, Unanswered, Wire, input_request, needed};
use super::reports::Reports;
use super::rounds::{About, Answers};
use super::{CONFIRM_KEY, OPTIONS_KEY, Shared};
use crate::cli::json_printable;

/// A call may take so long, retries, waits and questions included.
const CALL_TIME_MAX_MS: u64 = 60 * 60 * 1000;
/// So much of an input a person reads before they confirm; they are told where it goes on.
const SHOWN_CHARS_MAX: usize = 4_000;

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
        let task = self.action(&asked.action).map_or(TaskUse::Never, |action| action.spec().task);
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

    /// The action, if anybody may know of it here.
    fn action(&self, name: &str) -> Option<&Action> {
        let runtime = &self.shared.runtime;
        runtime.actions().find(|action| action.name() == name && runtime.exposes(action, Surface::Mcp))
    }

    /// One round on the newer wire: to the end, or to the next question.
    async fn round(&self, asked: Asked, abilities: Abilities) -> Result<Ended, ErrorData> {
        let caller = Arc::new(RoundCaller::new(abilities, self.answers(&asked)?));
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
                let state = self.shared.rounds.close(&self.about(&asked), &caller.asked(), Timestamp::now());
                Ok(Ended::InputRequired(InputRequiredResult::new(Some(requests), Some(state))))
            }
        }
    }

    fn about<'a>(&'a self, asked: &'a Asked) -> About<'a> {
        About { actor: &self.actor, method: asked.method, name: &asked.name, arguments: &asked.input }
    }

    /// All answers that the request brings.
    fn answers(&self, asked: &Asked) -> Result<Answers, ErrorData> {
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
        let shared = Arc::clone(self.shared);
        tokio::spawn(async move {
            let invoke = |call| shared.runtime.invoke(call);
            let envelope = confirmed(&shared, invocation, &*begun.caller.clone(), invoke).await;
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
        let of_action = self.action(&asked.action).and_then(|action| action.spec().deadline_ms);
        let of_caller = taken.deadline_ms.filter(|ms| *ms > 0);
        let within_ms = [of_action, of_caller].into_iter().flatten().fold(CALL_TIME_MAX_MS, u64::min);
        let (name, input) = (asked.action.clone(), asked.input.clone());
        Invocation::new(name, input, Surface::Mcp, Arc::clone(&self.actor))
            .options(taken)
            .within_ms(within_ms)
            .cancel_with(self.context.ct.clone())
            .asking(caller)
    }

    async fn run(&self, invocation: Invocation, caller: &dyn Caller) -> Envelope {
        confirmed(self.shared, invocation, caller, |call| self.followed(call)).await
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
/// An agent is never asked: inside a run the gate decides. The time that a person takes is the call's, and whoever cancels the
/// call takes the question back.
async fn confirmed<F: Future<Output = Envelope>>(
    shared: &Shared,
    invocation: Invocation,
    caller: &dyn Caller,
    invoke: impl Fn(Invocation) -> F,
) -> Envelope {
    let mut again = invocation.clone();
    let within_ms = invocation.within_ms.unwrap_or(CALL_TIME_MAX_MS);
    let ends = Instant::now() + Duration::from_millis(within_ms);
    let envelope = invoke(invocation).await;
    let missing = envelope.error().is_some_and(|failure| failure.code == Code::ConfirmationRequired);
    if !missing || again.actor.is_agent() || !caller.can_answer(QuestionKind::Form) {
        return envelope;
    }
    let action = envelope.meta.action.as_deref().unwrap_or_default();
    let about = match &shared.describes {
        Some(describes) => describes.describe(&again.actor, action, &again.input).await,
        None => None,
    };
    let question = confirmation(action, about.as_deref(), &again.input);
    let questions = [(CONFIRM_KEY.to_owned(), question)].into();
    let ended = |error| Envelope::refusal(Surface::Mcp, envelope.meta.action.as_deref(), error);
    let answered = tokio::select! {
        biased;
        () = cancelled(again.cancel.as_ref()) => return ended(ActionError::cancelled()),
        () = tokio::time::sleep_until(ends) => return ended(unconfirmed(within_ms)),
        answered = caller.ask(questions) => answered,
    };
    match answered {
        Ok(answers) if answers.get(CONFIRM_KEY).is_some_and(says_yes) => {
            again.options.confirm = true;
            let left = ends.saturating_duration_since(Instant::now());
            again.within_ms = Some(u64::try_from(left.as_millis()).unwrap_or(within_ms));
            invoke(again).await
        }
        // Nobody said yes, so what was missing is missing; a model that reads this should not simply try again.
        _ => {
            let mut envelope = envelope;
            if let Err(failure) = &mut envelope.outcome {
                failure.message.push_str(" A person was asked and did not confirm it.");
            }
            envelope
        }
    }
}

async fn cancelled(token: Option<&CancellationToken>) {
    match token {
        Some(token) => token.cancelled().await,
        None => std::future::pending().await,
    }
}

fn unconfirmed(within_ms: u64) -> ActionError {
    let message = format!("Nobody confirmed within the call's deadline of {within_ms}ms.");
    ActionError::new(Code::Timeout, message).retryable()
}

/// What a person is asked: the action, what the application says of it, and its exact input, in characters that they see.
fn confirmation(action: &str, about: Option<&str>, input: &Value) -> Question {
    let about = about.map(|about| format!("{about}\n\n")).unwrap_or_default();
    let input = shown(json_printable(&format!("{input:#}")));
    let message = format!("Run \"{action}\"? It cannot be taken back.\n\n{about}{input}");
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

/// The beginning of a text that is too long to be read, and how much is left out.
fn shown(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(SHOWN_CHARS_MAX) {
        let more = text[end..].chars().count();
        text.truncate(end);
        text.push_str(&format!("\n\n[{more} more characters are not shown here]"));
    }
    text
}

fn says_yes(answer: &Answer) -> bool {
    answer.filled_in().is_some_and(|content| content.get("confirm") == Some(&Value::Bool(true)))
}

/// Whether the action is offered as a tool.
pub(super) fn is_tool(action: &Action) -> bool {
    !action.spec().prompt
}
