//! Plugins, their sections, gates, and what can be asked of the next question to the model.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

mod support;

use std::sync::Arc;

use async_trait::async_trait;
use runyard_agent::phase::{
    AddContextMessage, CONTEXT_MESSAGES_MAX, ContextMessage, ExcludeTool, Fault, GateDecision,
    IncludeOnlyTools, InferenceAdjustments, InferenceOverride, Lifetime, Moment, Phase, PhaseContext,
    PhaseReport, Place, Scheduled, SetInferenceOverride, StateCommand, ToolGate,
};
use runyard_agent::plugin::{ConfigError, Environment, InstallError, Plugin, PluginConfig, Registrar};
use runyard_agent::state::{KeyOptions, StateError, StateStore};
use runyard_agent::tool::{SuspendTicket, ToolResult};
use runyard_domain::Code;
use runyard_llm::inference::{Effort, InferenceRequest, Message, ToolCall, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use support::{Ad, Label, Memory, Tally, at, environment, environment_with, hook};
use tokio_util::sync::CancellationToken;

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
struct Limits {
    turns: u32,
    word: String,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { turns: 5, word: "go".to_owned() }
    }
}

impl PluginConfig for Limits {
    const KEY: &'static str = "limits";
}

struct Limiting;

impl Plugin for Limiting {
    fn id(&self) -> &str {
        "limiting"
    }

    fn register(&self, registrar: &mut Registrar<'_>) -> Result<(), InstallError> {
        let limits: Limits = registrar.config()?;
        registrar.key::<Tally>(KeyOptions::DEFAULT)?;
        let turns = i64::from(limits.turns);
        registrar.hook(Phase::RunStart, hook(move |_| Ok(StateCommand::none().update::<Tally>(turns))));
        Ok(())
    }
}

async fn turns(sections: serde_json::Value) -> Result<i64, InstallError> {
    let serde_json::Value::Object(sections) = sections else { panic!("no sections") };
    let mut environment = Environment::new(sections);
    environment.install(&Limiting)?;
    let store = StateStore::new(&environment);
    environment.run_phase(&store, at(Moment::RunStart)).await.unwrap();
    Ok(*store.snapshot().get::<Tally>().unwrap())
}

// clause: D16
#[tokio::test]
async fn d16_a_section_is_read_where_it_is_there_and_its_default_counts_where_it_is_not() {
    assert_eq!(turns(json!({})).await, Ok(5));
    assert_eq!(turns(json!({ "limits": { "turns": 9 } })).await, Ok(9));
}

#[tokio::test]
async fn d16_a_section_that_is_there_and_wrong_is_refused_with_every_place() {
    let error = turns(json!({ "limits": { "turns": -1, "world": 2 } })).await.unwrap_err();
    assert_eq!(error.code(), Code::ResolveInvalidPluginConfig);
    let InstallError::Config(ConfigError { plugin, key, message }) = error else { panic!("{error:?}") };
    assert_eq!((plugin.as_str(), key.as_str()), ("limiting", "limits"));
    assert!(message.contains("turns: ") && message.contains("world"), "{message}");
}

#[test]
fn d16_the_schema_of_a_section_and_sections_that_nobody_reads_are_known() {
    let sections = json!({ "limits": {}, "lmits": {} });
    let mut environment = Environment::new(sections.as_object().unwrap().clone());
    environment.install(&Limiting).unwrap();
    let section = environment.sections().next().unwrap();
    assert_eq!((section.key, section.plugin.as_str()), ("limits", "limiting"));
    assert_eq!(section.schema["properties"]["turns"]["type"], "integer");
    assert_eq!(environment.unread_sections().collect::<Vec<_>>(), ["lmits"]);
    environment.uninstall::<Limiting>().unwrap();
    assert_eq!((environment.sections().count(), environment.plugins().count()), (0, 0));
}

// clause: D16
#[tokio::test]
async fn d16_a_plugin_that_cannot_be_installed_leaves_nothing_behind() {
    let mut environment = environment();
    let failing = Ad {
        id: "failing",
        register: |registrar: &mut Registrar<'_>| {
            registrar
                .hook(Phase::RunStart, hook(|_| Ok(StateCommand::none().update::<Label>("x".to_owned()))));
            registrar.gate(Deciding(GateDecision::Block("no".to_owned())));
            registrar.key::<Hidden>(KeyOptions::DEFAULT)?;
            registrar.tool(runyard_agent::tool::typed(Noop))?;
            Ok(registrar.key::<Memory>(KeyOptions::DEFAULT)?)
        },
    };
    let taken = InstallError::State(StateError::KeyAlreadyRegistered { key: "test.memory".to_owned() });
    assert_eq!(environment.install(&failing).unwrap_err(), taken);
    assert_eq!((environment.plugins().count(), environment.tools().count()), (0, 0));
    let store = StateStore::new(&environment);
    assert_eq!(environment.run_phase(&store, at(Moment::RunStart)).await.unwrap(), PhaseReport::default());
    assert_eq!(environment.decide(&store, &call(), at(Moment::RunStart)).await.unwrap(), GateDecision::Allow);
    assert_eq!(environment.add_key::<Hidden>(KeyOptions::DEFAULT), Ok(()));
    let panicking = Ad { id: "panicking", register: |_: &mut Registrar<'_>| panic!("on the way") };
    assert!(
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| environment.install(&panicking))).is_err()
    );
    assert_eq!(environment.plugins().count(), 0);
}

#[test]
fn d16_a_plugin_goes_with_all_that_it_owns_and_another_one_stays() {
    struct Owning;
    impl Plugin for Owning {
        fn id(&self) -> &str {
            "owning"
        }
        fn register(&self, registrar: &mut Registrar<'_>) -> Result<(), InstallError> {
            registrar.gate(Deciding(GateDecision::Block("no".to_owned())));
            Ok(registrar.tool(runyard_agent::tool::typed(Noop))?)
        }
    }
    let mut environment = Environment::default();
    environment.install(&Limiting).unwrap();
    environment.install(&Owning).unwrap();
    assert_eq!(environment.tool_source("noop").unwrap(), "owning");
    environment.uninstall::<Owning>().unwrap();
    assert_eq!(environment.plugins().collect::<Vec<_>>(), ["limiting"]);
    assert!(environment.tool("noop").is_none());
    environment.install(&Owning).unwrap();
    let other_id = Ad { id: "owning", register: |_: &mut Registrar<'_>| Ok(()) };
    let taken = StateError::PluginAlreadyInstalled { name: "owning".to_owned() };
    assert_eq!(environment.install(&other_id).unwrap_err(), InstallError::State(taken));
}

struct Hidden;

impl runyard_agent::state::StateKey for Hidden {
    const KEY: &'static str = "test.hidden";
    type Value = u8;
    type Update = u8;

    fn apply(value: &mut u8, update: u8) {
        *value = update;
    }
}

struct Noop;

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[async_trait]
impl runyard_agent::tool::TypedTool for Noop {
    const ID: &'static str = "noop";
    const DESCRIPTION: &'static str = "Does nothing.";
    type Args = Nothing;

    async fn run(
        &self,
        _: Nothing,
        _: &runyard_agent::tool::ToolContext,
    ) -> Result<runyard_agent::tool::ToolOutput, runyard_agent::tool::ToolError> {
        Ok(ToolResult::success(json!({})).into())
    }
}

// Gates

struct Deciding(GateDecision);

#[async_trait]
impl ToolGate for Deciding {
    async fn decide(&self, _: &ToolCall, _: &PhaseContext<'_>) -> Result<GateDecision, Fault> {
        Ok(self.0.clone())
    }
}

struct Failing(bool);

#[async_trait]
impl ToolGate for Failing {
    async fn decide(&self, _: &ToolCall, _: &PhaseContext<'_>) -> Result<GateDecision, Fault> {
        if self.0 { panic!("broken") } else { Err("broken".into()) }
    }
}

fn call() -> ToolCall {
    ToolCall { id: "call-1".to_owned(), name: "noop".to_owned(), arguments: json!({}) }
}

async fn decided(gates: Vec<GateDecision>) -> GateDecision {
    let environment = environment_with(move |registrar| {
        gates.iter().cloned().for_each(|gate| registrar.gate(Deciding(gate)));
        Ok(())
    });
    environment.decide(&StateStore::new(&environment), &call(), at(Moment::RunStart)).await.unwrap()
}

// clause: D02
#[tokio::test]
async fn d02_the_strongest_decision_counts_and_of_equal_ones_the_first() {
    let suspend = |id: &str| GateDecision::Suspend(Box::new(SuspendTicket::new(id, "confirm", "May it?")));
    let of_strength = [
        GateDecision::Allow,
        GateDecision::SetResult(ToolResult::success(1)),
        suspend("a"),
        GateDecision::Deny("a".to_owned()),
        GateDecision::Block("a".to_owned()),
    ];
    for (weaker, stronger) in of_strength.iter().zip(&of_strength[1..]) {
        assert_eq!(decided(vec![weaker.clone(), stronger.clone()]).await, *stronger);
        assert_eq!(decided(vec![stronger.clone(), weaker.clone()]).await, *stronger);
    }
    let firsts = [
        (GateDecision::SetResult(ToolResult::success(1)), GateDecision::SetResult(ToolResult::success(2))),
        (suspend("a"), suspend("b")),
        (GateDecision::Deny("a".to_owned()), GateDecision::Deny("b".to_owned())),
        (GateDecision::Block("a".to_owned()), GateDecision::Block("b".to_owned())),
    ];
    for (first, second) in firsts {
        assert_eq!(decided(vec![first.clone(), second]).await, first);
    }
    assert_eq!(decided(Vec::new()).await, GateDecision::Allow);
}

#[tokio::test]
async fn d02_a_gate_that_fails_or_panics_lets_nothing_through() {
    for panics in [false, true] {
        let environment = environment_with(move |registrar| {
            registrar.gate(Deciding(GateDecision::Allow));
            registrar.gate(Failing(panics));
            Ok(())
        });
        let store = StateStore::new(&environment);
        let error = environment.decide(&store, &call(), at(Moment::RunStart)).await.unwrap_err();
        assert_eq!(error.code(), Code::InternalError);
    }
}

#[tokio::test]
async fn d02_a_cancelled_run_has_no_decision() {
    let cancel = CancellationToken::new();
    cancel.cancel();
    let environment = environment();
    let occasion = support::at_with(Moment::RunStart, &cancel);
    let error = environment.decide(&StateStore::new(&environment), &call(), occasion).await.unwrap_err();
    assert_eq!(error.code(), Code::StateCancelled);
}

// The next question to the model

fn message(name: Option<&str>, text: &str, place: Place, lifetime: Lifetime) -> Scheduled {
    let name = name.map(str::to_owned);
    let message = ContextMessage { name, message: Message::system(text), place, lifetime };
    Scheduled::new::<AddContextMessage>(&message).unwrap()
}

/// Asks for all of these at once, as one hook of the phase.
async fn asked(environment: &Environment, store: &StateStore, actions: Vec<Scheduled>) -> PhaseReport {
    let command = StateCommand { actions, ..StateCommand::none() };
    environment.submit(store, command, at(Moment::StepEnd)).await.unwrap();
    environment.run_phase(store, at(Moment::BeforeInference)).await.unwrap()
}

fn request() -> InferenceRequest {
    let tool =
        |name: &str| ToolSpec { name: name.to_owned(), description: String::new(), parameters: json!({}) };
    InferenceRequest {
        messages: vec![Arc::new(Message::user("hello"))].into(),
        tools: ["read", "write", "shell"].map(tool).into(),
        temperature: Some(0.5),
        output_tokens_max: Some(100),
        ..InferenceRequest::default()
    }
}

fn said(request: &InferenceRequest) -> Vec<String> {
    request.messages.iter().map(|message| message.said()).collect()
}

fn offered(request: &InferenceRequest) -> Vec<&str> {
    request.tools.iter().map(|tool| tool.name.as_str()).collect()
}

// clause: D16
#[tokio::test]
async fn d16_messages_tools_and_settings_are_asked_of_the_next_question() {
    let environment = environment();
    let store = StateStore::new(&environment);
    let word = |temperature, output_tokens_max, effort| {
        let word = InferenceOverride { temperature, output_tokens_max, effort };
        Scheduled::new::<SetInferenceOverride>(&word).unwrap()
    };
    let actions = vec![
        message(None, "always", Place::Before, Lifetime::Persistent),
        message(None, "once", Place::After, Lifetime::Ephemeral),
        Scheduled::new::<IncludeOnlyTools>(&vec!["read".to_owned()]).unwrap(),
        Scheduled::new::<IncludeOnlyTools>(&vec!["shell".to_owned()]).unwrap(),
        Scheduled::new::<ExcludeTool>(&"shell".to_owned()).unwrap(),
        word(Some(0.1), None, Some(Effort::Low)),
        word(Some(0.2), Some(7), None),
    ];
    assert_eq!(asked(&environment, &store, actions).await.failed_actions.len(), 0);
    let adjustments = InferenceAdjustments::take(&store).await.unwrap();
    let mut first = request();
    adjustments.apply(&mut first);
    assert_eq!(said(&first), ["always", "hello", "once"]);
    assert_eq!(offered(&first), ["read"]);
    assert_eq!(
        (first.temperature, first.output_tokens_max, first.effort),
        (Some(0.2), Some(7), Some(Effort::Low))
    );

    let mut second = request();
    InferenceAdjustments::take(&store).await.unwrap().apply(&mut second);
    assert_eq!(said(&second), ["always", "hello"]);
    let expected = InferenceRequest { messages: second.messages.clone(), ..request() };
    assert_eq!(second, expected, "only what lasts is left");
}

#[tokio::test]
async fn d16_a_message_of_the_same_name_takes_the_place_of_the_earlier_one_and_there_is_an_end() {
    let environment = environment();
    let store = StateStore::new(&environment);
    let lasting = |name: Option<&str>, text: &str| message(name, text, Place::Before, Lifetime::Persistent);
    let actions = vec![lasting(Some("clock"), "one"), lasting(None, "other"), lasting(Some("clock"), "two")];
    asked(&environment, &store, actions).await;
    let adjustments = InferenceAdjustments::take(&store).await.unwrap();
    let texts: Vec<_> = adjustments.messages().map(|message| message.message.said()).collect();
    assert_eq!(texts, ["two", "other"]);
    let fill = (2..CONTEXT_MESSAGES_MAX).map(|_| lasting(None, "more")).collect();
    assert_eq!(asked(&environment, &store, fill).await.failed_actions.len(), 0);
    let more = vec![lasting(None, "too many"), lasting(Some("clock"), "three")];
    assert_eq!(asked(&environment, &store, more).await.failed_actions.len(), 1);
}

#[tokio::test]
async fn d16_where_nothing_was_asked_nothing_is_committed() {
    let store = StateStore::new(&environment());
    assert_eq!(InferenceAdjustments::take(&store).await.unwrap(), InferenceAdjustments::default());
    assert_eq!(store.snapshot().revision(), 0);
}
