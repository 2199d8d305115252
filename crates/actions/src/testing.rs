//! Helpers for the tests of an application: call its actions, say what is expected, put a stub in an action's place.
//!
//! ```
//! # use runyard_actions::{Action, Runtime, testing::TestApp};
//! # use serde_json::json;
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let greet = Action::define("greet", "Greets.").handler(|_, _| async { Ok(json!("hello")) });
//! let app = TestApp::new(Runtime::builder().action(greet));
//! assert_eq!(app.call("greet", json!({})).await.expect_ok(), json!("hello"));
//! # }
//! ```
#![allow(
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "a failed expectation is a panic, as in any test"
)]

use std::sync::Arc;

use runyard_domain::{Actor, Surface};
use serde_json::Value;

use crate::handler;
use crate::{
    Action, ActionError, Context, Envelope, Failure, Invocation, InvocationOptions, Runtime, RuntimeBuilder,
};

/// An application under test. Calls come from the JSON surface, by the owner, confirmed, unless said otherwise.
pub struct TestApp {
    runtime: Runtime,
    surface: Surface,
    actor: Arc<Actor>,
    options: InvocationOptions,
}

impl TestApp {
    /// Builds the runtime; a wrong definition fails the test.
    #[track_caller]
    pub fn new(builder: RuntimeBuilder) -> Self {
        match builder.build() {
            Ok(runtime) => TestApp::of(runtime),
            Err(error) => panic!("the application does not build: {error}"),
        }
    }

    /// Tests a runtime that is built already.
    pub fn of(runtime: Runtime) -> Self {
        let options = InvocationOptions { confirm: true, ..InvocationOptions::default() };
        TestApp { runtime, surface: Surface::Json, actor: Arc::new(Actor::owner("test")), options }
    }

    /// Calls come from this surface.
    #[must_use]
    pub fn on(mut self, surface: Surface) -> Self {
        self.surface = surface;
        self
    }

    /// Calls come from this actor.
    #[must_use]
    pub fn by(mut self, actor: Actor) -> Self {
        self.actor = Arc::new(actor);
        self
    }

    /// Calls carry these options.
    #[must_use]
    pub fn with(mut self, options: InvocationOptions) -> Self {
        self.options = options;
        self
    }

    /// The runtime under test.
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// The call as an invocation, to be changed or streamed.
    pub fn invocation(&self, action: &str, input: Value) -> Invocation {
        Invocation::new(action, input, self.surface, Arc::clone(&self.actor)).options(self.options.clone())
    }

    /// Calls an action.
    pub async fn call(&self, action: &str, input: Value) -> Called {
        Called(self.runtime.invoke(self.invocation(action, input)).await)
    }
}

impl RuntimeBuilder {
    /// Puts a stub in the place of an action: same definition, same checks, but this handler.
    #[must_use]
    #[track_caller]
    pub fn stub<F>(self, action: &str, answer: F) -> Self
    where
        F: Fn(Value, Context) -> Result<Value, ActionError> + Send + Sync + 'static,
    {
        let answer = Arc::new(answer);
        let stub = handler::dynamic(move |input, context| {
            let answer = Arc::clone(&answer);
            async move { answer(input, context) }
        });
        let Some(stubbed) = self.find(action).map(|action| action.with_handler(stub)) else {
            panic!("there is no action \"{action}\" to stub");
        };
        self.replace(stubbed)
    }
}

/// What a call returned, with the usual expectations.
#[derive(Clone, Debug)]
pub struct Called(pub Envelope);

impl Called {
    /// Expects success and gives the data.
    #[track_caller]
    pub fn expect_ok(&self) -> Value {
        match &self.0.outcome {
            Ok(data) => data.clone(),
            Err(failure) => panic!("expected success, got {failure:?}"),
        }
    }

    /// Expects a failure with this code and gives it.
    #[track_caller]
    pub fn expect_error(&self, code: &str) -> Failure {
        match &self.0.outcome {
            Err(failure) if failure.code.as_str() == code => failure.clone(),
            other => panic!("expected {code}, got {other:?}"),
        }
    }

    /// Expects a log entry whose message contains this text.
    #[track_caller]
    pub fn expect_log(&self, text: &str) -> &Self {
        let messages: Vec<_> = self.0.logs.iter().map(|log| log.message.as_str()).collect();
        assert!(
            messages.iter().any(|message| message.contains(text)),
            "no log entry with {text:?} among {messages:?}"
        );
        self
    }
}

/// Defines an action from a closure that cannot fail to be defined, for tests.
#[track_caller]
pub fn defined(action: Result<Action, crate::DefinitionError>) -> Action {
    match action {
        Ok(action) => action,
        Err(error) => panic!("the action is not well defined: {error}"),
    }
}
