//! Who must say that they mean it, and asking whoever called.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use runyard_actions::testing::TestApp;
use runyard_actions::{
    Action, ActionError, Answer, Caller, Context, Invocation, InvocationOptions, QUESTIONS_MAX, Question,
    QuestionKind, Runtime, SideEffects,
};
use runyard_domain::{Actor, Surface};
use serde_json::{Value, json};

// A person's own token does not tell whether the person or their model wrote the call.
#[tokio::test]
async fn j06_what_only_people_may_do_is_confirmed_where_a_model_may_write_the_call() {
    use SideEffects::{Read, Write};
    for (side_effects, people_only) in [(Read, true), (Write, false), (Write, true)] {
        let define = || Action::define("act", "Acts.").side_effects(side_effects);
        let define = if people_only { define().people_only() } else { define() };
        let action = define.handler(|_, _| async { Ok(json!(null)) }).unwrap();
        let runtime = Runtime::builder().action(action.clone()).build().unwrap();
        for surface in Surface::DEFAULT {
            let by_model = matches!(surface, Surface::Mcp | Surface::AiSdk);
            let asks = people_only && side_effects == Write && by_model;
            assert_eq!(action.asks_to_confirm(surface), asks, "{side_effects:?} {people_only} on {surface}");
            let app = || TestApp::of(runtime.clone()).on(surface);
            let called = app().with(InvocationOptions::default()).call("act", json!({})).await;
            match asks {
                true => drop(called.expect_error("CONFIRMATION_REQUIRED")),
                false => drop(called.expect_ok()),
            }
            let confirmed = InvocationOptions { confirm: true, ..InvocationOptions::default() };
            app().with(confirmed).call("act", json!({})).await.expect_ok();
        }
    }
}

/// Answers every question with what it was made with, and remembers it.
struct Person(Value, Mutex<Vec<String>>);

#[async_trait]
impl Caller for Person {
    fn can_answer(&self, kind: QuestionKind) -> bool {
        kind == QuestionKind::Form
    }

    async fn ask(
        &self,
        questions: BTreeMap<String, Question>,
    ) -> Result<BTreeMap<String, Answer>, ActionError> {
        self.1.lock().unwrap().extend(questions.keys().cloned());
        Ok(questions.into_keys().map(|key| (key, Answer(self.0.clone()))).collect())
    }
}

fn asking() -> Runtime {
    let name = || {
        Question::form("Your name?", json!({"type": "object", "properties": {"name": {"type": "string"}}}))
    };
    let action = Action::define("greet", "Greets.").handler(move |_, ctx: Context| async move {
        if !ctx.can_ask(QuestionKind::Form) {
            return Ok(json!("Hello, whoever you are."));
        }
        let answer = ctx.ask("name", name()).await?;
        Ok(json!(format!("Hello, {}.", answer.filled_in().map_or("stranger", |_| "friend"))))
    });
    let pushy = Action::define("pushy", "Asks without looking.").handler(move |_, ctx: Context| async move {
        let many = (0..=QUESTIONS_MAX).map(|number| (number.to_string(), name())).collect();
        ctx.ask_all(many).await?;
        Ok(json!(null))
    });
    let blunt = Action::define("blunt", "Asks whoever called.").handler(move |_, ctx: Context| async move {
        ctx.ask("name", name()).await?;
        Ok(json!(null))
    });
    Runtime::builder().action(action).action(pushy).action(blunt).build().unwrap()
}

fn call(action: &str) -> Invocation {
    Invocation::new(action, json!({}), Surface::Mcp, Arc::new(Actor::owner("ada")))
}

#[tokio::test]
async fn an_action_asks_whoever_called_and_says_so_where_nobody_can_answer() {
    let runtime = asking();
    for (said, greeting) in [
        (json!({"action": "accept", "content": {"name": "Ada"}}), "Hello, friend."),
        (json!({"action": "decline"}), "Hello, stranger."),
    ] {
        let person = Arc::new(Person(said, Mutex::default()));
        let envelope = runtime.invoke(call("greet").asking(person.clone())).await;
        assert_eq!(envelope.data().unwrap(), greeting);
        assert_eq!(*person.1.lock().unwrap(), ["name"]);
        let envelope = runtime.invoke(call("pushy").asking(person)).await;
        assert_eq!(envelope.error().unwrap().code.as_str(), "INTERNAL_ERROR", "too many at once");
    }
    assert_eq!(runtime.invoke(call("greet")).await.data().unwrap(), "Hello, whoever you are.");
    let envelope = runtime.invoke(call("blunt")).await;
    assert_eq!(envelope.error().unwrap().code.as_str(), "UNSUPPORTED_SURFACE");
}

#[test]
fn only_what_was_asked_for_is_an_answer() {
    let form = Question::form(
        "How many?",
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}),
    );
    let completion = Question::completion("Say hello.", 10);
    for (question, answer, takes) in [
        (&form, json!({"action": "accept", "content": {"n": 3}}), true),
        (&form, json!({"action": "accept", "content": {"n": "three"}}), false),
        (&form, json!({"action": "accept"}), false),
        (&form, json!({"action": "decline"}), true),
        (&form, json!({"action": "cancel"}), true),
        (&form, json!({"action": "perhaps"}), false),
        (&form, json!({}), false),
        (&form, json!("yes"), false),
        (&completion, json!({"role": "assistant", "content": {"type": "text", "text": "Hello"}}), true),
        (&completion, json!({"role": "assistant"}), false),
        (&Question::Folders, json!({"roots": []}), true),
        (&Question::Folders, json!({"roots": "all"}), false),
    ] {
        assert_eq!(question.takes(&Answer(answer.clone())), takes, "{question:?} {answer}");
    }
    let declined = Answer(json!({"action": "decline", "content": {"n": 3}}));
    assert_eq!(declined.filled_in(), None, "what is declined says nothing");
}
