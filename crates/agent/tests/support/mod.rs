//! Keys, plugins and occasions that the tests share.
#![allow(dead_code, reason = "each test uses some of it")]

mod keys;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use runyard_agent::phase::{Fault, Moment, Occasion, PhaseContext, PhaseHook, RunIdentity, StateCommand};
use runyard_agent::plugin::{Environment, InstallError, Plugin, Registrar};
use runyard_agent::state::{KeyOptions, Merge, Scope, Snapshot, StateKey, StateStore};
use runyard_agent::tool::ToolContext;
use runyard_domain::{Actor, RunId};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub(crate) use keys::{Label, Memory, Tally};

/// Every order shows: what was written, one after the other.
pub(crate) struct Journal;

impl StateKey for Journal {
    const KEY: &'static str = "test.journal";
    const MERGE: Merge = Merge::Commutative;
    type Value = Vec<String>;
    type Update = String;

    fn apply(value: &mut Vec<String>, line: String) {
        value.push(line);
    }
}

/// Never stored.
pub(crate) struct Scratch;

impl StateKey for Scratch {
    const KEY: &'static str = "test.scratch";
    type Value = String;
    type Update = String;

    fn apply(value: &mut String, word: String) {
        *value = word;
    }
}

/// Panics when it is changed to nought.
pub(crate) struct Touchy;

impl StateKey for Touchy {
    const KEY: &'static str = "test.touchy";
    type Value = u32;
    type Update = u32;

    fn apply(value: &mut u32, update: u32) {
        assert!(update != 0, "nought");
        *value = update;
    }
}

/// An environment with all of these keys.
pub(crate) fn environment() -> Environment {
    let mut environment = Environment::default();
    environment.add_key::<Tally>(KeyOptions::DEFAULT).unwrap();
    environment.add_key::<Label>(KeyOptions::DEFAULT).unwrap();
    environment.add_key::<Memory>(KeyOptions::DEFAULT).unwrap();
    environment.add_key::<Journal>(KeyOptions::DEFAULT).unwrap();
    environment.add_key::<Scratch>(KeyOptions::DEFAULT.transient()).unwrap();
    environment.add_key::<Touchy>(KeyOptions::DEFAULT).unwrap();
    environment
}

/// The same, with a plugin that registers what the function says.
pub(crate) fn environment_with<R>(register: R) -> Environment
where
    R: Fn(&mut Registrar<'_>) -> Result<(), InstallError> + Send + Sync + 'static,
{
    let mut environment = environment();
    environment.install(&Ad { id: "ad-hoc", register }).unwrap();
    environment
}

/// A plugin that registers what a function says.
pub(crate) struct Ad<R> {
    pub(crate) id: &'static str,
    pub(crate) register: R,
}

impl<R> Plugin for Ad<R>
where
    R: Fn(&mut Registrar<'_>) -> Result<(), InstallError> + Send + Sync + 'static,
{
    fn id(&self) -> &str {
        self.id
    }

    fn register(&self, registrar: &mut Registrar<'_>) -> Result<(), InstallError> {
        (self.register)(registrar)
    }
}

/// A hook that answers at once.
pub(crate) struct Answering<F>(pub(crate) F);

#[async_trait]
impl<F> PhaseHook for Answering<F>
where
    F: Fn(&PhaseContext<'_>) -> Result<StateCommand, Fault> + Send + Sync,
{
    async fn run(&self, context: &PhaseContext<'_>) -> Result<StateCommand, Fault> {
        (self.0)(context)
    }
}

/// Gives a closure the type that a hook needs.
pub(crate) fn hook<F>(answer: F) -> Answering<F>
where
    F: Fn(&PhaseContext<'_>) -> Result<StateCommand, Fault> + Send + Sync,
{
    Answering(answer)
}

pub(crate) fn run() -> &'static RunIdentity {
    static RUN: LazyLock<RunIdentity> = LazyLock::new(|| RunIdentity {
        run_id: RunId::from_parts(1, &[7; 10]),
        thread_id: "thread-1".into(),
        agent_id: "agent-1".into(),
    });
    &RUN
}

/// A phase that nobody cancels.
pub(crate) fn at(moment: Moment<'static>) -> Occasion<'static> {
    static NEVER: LazyLock<CancellationToken> = LazyLock::new(CancellationToken::new);
    at_with(moment, &NEVER)
}

pub(crate) fn at_with<'a>(moment: Moment<'a>, cancellation: &'a CancellationToken) -> Occasion<'a> {
    Occasion { run: run(), step: 1, moment, messages: &[], cancellation }
}

pub(crate) fn tool_context(store: &StateStore) -> ToolContext {
    let actor = Arc::new(Actor::agent("agent-1", run().run_id, ["*"]));
    ToolContext::new(run().clone(), "call-1", "key-1", actor, store.snapshot())
}

/// All that is stored of a snapshot.
pub(crate) fn stored(snapshot: &Snapshot) -> BTreeMap<String, Value> {
    let mut values = snapshot.export(Scope::Run).unwrap().values;
    values.extend(snapshot.export(Scope::Thread).unwrap().values);
    values
}

/// How many cases a property has: few in a quick proof, many in a long one.
pub(crate) fn cases(sample: u32) -> proptest::test_runner::Config {
    let cases = match std::env::var("RUNYARD_PROOF").as_deref() {
        Ok("soak") => sample * 40,
        Ok("quick") => sample / 4,
        _ => sample,
    };
    proptest::test_runner::Config { cases, failure_persistence: None, ..Default::default() }
}
