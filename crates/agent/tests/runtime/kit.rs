//! Models, tools, plugins and a store to build runtimes of.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use runyard_agent::AgentRuntimeBuilder;
use runyard_agent::plugin::{InstallError, Plugin, PluginConfig, Registrar};
use runyard_agent::spec::AgentSpec;
use runyard_agent::state::{KeyOptions, Scope as StateScope, StateKey};
use runyard_agent::tool::{
    SuspendTicket, Tool, ToolContext, ToolDescriptor, ToolError, ToolOutput, ToolResult,
};
use runyard_llm::inference::{ScriptedAnswer, ScriptedModel, ToolCall};
use runyard_store::ThreadId;
use serde::Deserialize;
use serde_json::{Value, json};

/// A model that says these, one after the other.
pub(crate) fn saying<const N: usize>(texts: [&str; N]) -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::of("scripted", texts.map(ScriptedAnswer::text)))
}

/// A model that gives these answers, one after the other.
pub(crate) fn scripted(answers: impl IntoIterator<Item = ScriptedAnswer>) -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::of("scripted", answers))
}

/// An answer that calls a tool.
pub(crate) fn call(tool: &str) -> ScriptedAnswer {
    ScriptedAnswer::calls([ToolCall { id: "c1".into(), name: tool.into(), arguments: json!({}) }])
}

/// A builder with one agent `a` on the model `m`.
pub(crate) fn one_agent(model: Arc<ScriptedModel>) -> AgentRuntimeBuilder {
    AgentRuntimeBuilder::new().model("m", model).agent(AgentSpec::new("a", "m"))
}

/// What a tool does when it is called.
pub(crate) enum Does {
    /// Says this.
    Say(&'static str),
    /// Takes so long, and says that it is done.
    Take(Duration),
    /// Waits for an answer, once, and then says that it went on.
    Wait,
    /// Never ends.
    Hang,
}

/// A tool without arguments.
pub(crate) struct Plain {
    descriptor: ToolDescriptor,
    does: Does,
    pub(crate) calls: AtomicU32,
}

impl Plain {
    pub(crate) fn new(id: &str, does: Does) -> Arc<Self> {
        Arc::new(Self::bare(id, does))
    }

    pub(crate) fn idempotent(id: &str, does: Does) -> Arc<Self> {
        let mut tool = Self::bare(id, does);
        tool.descriptor.idempotent = true;
        Arc::new(tool)
    }

    fn bare(id: &str, does: Does) -> Self {
        let descriptor = ToolDescriptor::new(id, "A tool.", json!({ "type": "object" })).unwrap();
        Plain { descriptor, does, calls: AtomicU32::new(0) }
    }

    pub(crate) fn called(&self) -> u32 {
        self.calls.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Tool for Plain {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    async fn execute(&self, _args: Value, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        Ok(match self.does {
            Does::Say(text) => ToolResult::success(text),
            Does::Take(time) => {
                tokio::time::sleep(time).await;
                ToolResult::success("done")
            }
            Does::Wait if context.approved => ToolResult::success("went on"),
            Does::Wait => ToolResult::suspended(SuspendTicket::new("t1", "confirm", "Shall I?")),
            Does::Hang => pending().await,
        }
        .into())
    }
}

/// A key that two plugins may both want.
pub(crate) struct Shared;

impl StateKey for Shared {
    const KEY: &'static str = "test.shared";
    const SCOPE: StateScope = StateScope::Thread;
    type Value = u32;
    type Update = u32;

    fn apply(value: &mut u32, update: u32) {
        *value = update;
    }
}

/// What the plugins here are told.
#[derive(Default, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Told {
    #[serde(default)]
    #[expect(dead_code, reason = "only its type counts")]
    pub(crate) level: u8,
}

impl PluginConfig for Told {
    const KEY: &'static str = "told";
}

/// What a plugin brings.
#[derive(Clone)]
pub(crate) enum Brings {
    Nothing,
    TheSharedKey,
    ATool(&'static str),
    TwiceTheTool(&'static str),
    Config,
}

/// Plugins of different types, since there is one of each type in an environment.
pub(crate) struct First(pub(crate) &'static str, pub(crate) Brings);
pub(crate) struct Second(pub(crate) &'static str, pub(crate) Brings);

fn register(brings: &Brings, registrar: &mut Registrar<'_>) -> Result<(), InstallError> {
    match brings {
        Brings::Nothing => {}
        Brings::TheSharedKey => registrar.key::<Shared>(KeyOptions::DEFAULT)?,
        Brings::ATool(id) => registrar.tool(Plain::new(id, Does::Say("from a plugin")))?,
        Brings::TwiceTheTool(id) => {
            registrar.tool(Plain::new(id, Does::Say("one")))?;
            registrar.tool(Plain::new(id, Does::Say("two")))?;
        }
        Brings::Config => {
            registrar.config::<Told>()?;
        }
    }
    Ok(())
}

impl Plugin for First {
    fn id(&self) -> &str {
        self.0
    }

    fn register(&self, registrar: &mut Registrar<'_>) -> Result<(), InstallError> {
        register(&self.1, registrar)
    }
}

impl Plugin for Second {
    fn id(&self) -> &str {
        self.0
    }

    fn register(&self, registrar: &mut Registrar<'_>) -> Result<(), InstallError> {
        register(&self.1, registrar)
    }
}

/// The thread of this name.
pub(crate) fn thread(name: &'static str) -> ThreadId {
    ThreadId::new(name.into()).unwrap()
}
