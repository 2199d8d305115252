//! Tools, hooks and gates, each made of a function.

#[path = "../../support/keys.rs"]
mod keys;

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use runyard_agent::phase::{
    EffectHandler, Fault, GateDecision, Moment, Phase, PhaseContext, PhaseHook, StateCommand, StateEffect,
    ToolGate,
};
use runyard_agent::plugin::{InstallError, Plugin, Registrar};
use runyard_agent::tool::{Tool, ToolContext, ToolDescriptor, ToolError, ToolOutput, ToolResult};
use runyard_llm::inference::ToolCall;
use serde_json::{Value, json};

pub(crate) use keys::{Label, Memory, Tally};

type Running = Pin<Box<dyn Future<Output = Result<ToolOutput, ToolError>> + Send>>;

/// A tool that is a function.
pub(crate) struct FnTool {
    descriptor: ToolDescriptor,
    run: Box<dyn Fn(Value, ToolContext) -> Running + Send + Sync>,
}

/// A tool that takes one number.
pub(crate) fn tool<F>(id: &str, run: impl Fn(Value, ToolContext) -> F + Send + Sync + 'static) -> FnTool
where
    F: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
{
    let schema = json!({
        "type": "object",
        "properties": { "n": { "type": "integer" }, "text": { "type": "string" } },
        "required": ["n"],
    });
    let descriptor = ToolDescriptor::new(id, "Does something.", schema).unwrap();
    FnTool { descriptor, run: Box::new(move |args, context| Box::pin(run(args, context))) }
}

impl FnTool {
    pub(crate) fn idempotent(mut self) -> Self {
        self.descriptor.idempotent = true;
        self
    }

    pub(crate) fn deadline(mut self, deadline: Duration) -> Self {
        self.descriptor.deadline = Some(deadline);
        self
    }

    pub(crate) fn done(self) -> Arc<dyn Tool> {
        Arc::new(self)
    }
}

#[async_trait]
impl Tool for FnTool {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    async fn execute(&self, args: Value, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        (self.run)(args, context.clone()).await
    }
}

/// A tool that always answers so.
pub(crate) fn answers(id: &str, answer: impl Into<Value>) -> Arc<dyn Tool> {
    let answer = answer.into();
    tool(id, move |_, _| {
        let answer = answer.clone();
        async move { Ok(ToolResult::success(answer).into()) }
    })
    .done()
}

/// A tool that never answers.
pub(crate) fn hangs(id: &str) -> FnTool {
    tool(id, |_, _| std::future::pending())
}

/// What tools did, by idempotency key.
#[derive(Clone, Default)]
pub(crate) struct Effects(pub(crate) Arc<Mutex<Vec<String>>>);

impl Effects {
    pub(crate) fn happened(&self, key: impl Into<String>) {
        self.0.lock().unwrap().push(key.into());
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// A tool with an effect that can be counted.
pub(crate) fn effect(id: &str, effects: &Effects) -> FnTool {
    let effects = effects.clone();
    tool(id, move |_, context| {
        effects.happened(context.idempotency_key);
        async { Ok(ToolResult::success("done").into()) }
    })
}

type Hook = Arc<dyn Fn(&PhaseContext<'_>) -> Waiting<StateCommand> + Send + Sync>;
type Gate = Arc<dyn Fn(&ToolCall, &PhaseContext<'_>) -> Waiting<GateDecision> + Send + Sync>;
type Waiting<T> = Pin<Box<dyn Future<Output = Result<T, Fault>> + Send>>;

/// A plugin of hooks and gates that are functions.
#[derive(Default)]
pub(crate) struct Bits {
    hooks: Vec<(Phase, Hook)>,
    gates: Vec<Gate>,
    /// Whether the gates wait for people.
    pub(crate) asks_people: bool,
    /// What was noted, and when.
    pub(crate) noted: Noted,
}

/// An effect that notes at which phase, and for which call, it is carried out.
#[derive(Clone, Default)]
pub(crate) struct Noted(pub(crate) Arc<Mutex<Vec<String>>>);

impl StateEffect for Noted {
    const KEY: &'static str = "test.noted";
    type Payload = ();
}

#[async_trait]
impl EffectHandler<Noted> for Noted {
    async fn handle(&self, (): (), context: &PhaseContext<'_>) -> Result<(), Fault> {
        let moment = &context.at.moment;
        let call = match moment {
            Moment::AfterToolExecute { call, outcome: Ok(_) } => call.id.as_str(),
            _ => "",
        };
        self.0.lock().unwrap().push(format!("{} {call}", moment.phase()));
        Ok(())
    }
}

/// An effect that hangs, or fails with these words.
pub(crate) struct Bad;

impl StateEffect for Bad {
    const KEY: &'static str = "test.bad";
    type Payload = Option<&'static str>;
}

#[async_trait]
impl EffectHandler<Bad> for Bad {
    async fn handle(&self, words: Option<&'static str>, _: &PhaseContext<'_>) -> Result<(), Fault> {
        match words {
            Some(words) => Err(words.into()),
            None => std::future::pending().await,
        }
    }
}

impl Bits {
    pub(crate) fn hook<F>(
        &mut self,
        phase: Phase,
        run: impl Fn(&PhaseContext<'_>) -> F + Send + Sync + 'static,
    ) where
        F: Future<Output = Result<StateCommand, Fault>> + Send + 'static,
    {
        self.hooks.push((phase, Arc::new(move |context| Box::pin(run(context)))));
    }

    pub(crate) fn gate<F>(
        &mut self,
        decide: impl Fn(&ToolCall, &PhaseContext<'_>) -> F + Send + Sync + 'static,
    ) where
        F: Future<Output = Result<GateDecision, Fault>> + Send + 'static,
    {
        self.gates.push(Arc::new(move |call, context| Box::pin(decide(call, context))));
    }

    /// Counts how often a phase came.
    pub(crate) fn count(&mut self, phase: Phase) -> Arc<AtomicU32> {
        let count = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&count);
        self.hook(phase, move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
            async { Ok(StateCommand::none()) }
        });
        count
    }
}

impl Plugin for Bits {
    fn id(&self) -> &str {
        "bits"
    }

    fn register(&self, registrar: &mut Registrar<'_>) -> Result<(), InstallError> {
        for (phase, hook) in &self.hooks {
            registrar.hook(*phase, FnHook(Arc::clone(hook)));
        }
        registrar.effect::<Noted>(self.noted.clone())?;
        registrar.effect::<Bad>(Bad)?;
        for gate in &self.gates {
            registrar.gate(FnGate(Arc::clone(gate), self.asks_people));
        }
        Ok(())
    }
}

struct FnHook(Hook);

#[async_trait]
impl PhaseHook for FnHook {
    async fn run(&self, context: &PhaseContext<'_>) -> Result<StateCommand, Fault> {
        let run = (self.0)(context);
        run.await
    }
}

struct FnGate(Gate, bool);

#[async_trait]
impl ToolGate for FnGate {
    async fn decide(&self, call: &ToolCall, context: &PhaseContext<'_>) -> Result<GateDecision, Fault> {
        let decide = (self.0)(call, context);
        decide.await
    }

    fn waits_for_people(&self) -> bool {
        self.1
    }
}
