//! What the binary is made of: the only place that names concrete parts.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use runyard::{Runtime, RuntimeBuilder};
use runyard_adapters::ActionBackend;
use runyard_adapters::codex::CodexBackend;
use runyard_adapters::native::NativeBackend;
use runyard_backend::{Backend, BackendInfo, Probe, ScriptedBackend, Scripts};
use runyard_domain::gate::{AgentPreset, Preset};
use runyard_domain::{AgentProfile, BackendProfile};
use runyard_edge::sandbox::Confinement;
use runyard_edge::{Supervision, Supervisors};
use runyard_engine::{BasePolicy, Catalog, Engine};
use runyard_example_tasks as tasks;
use runyard_redact::Redactor;
use runyard_store::Store;

use crate::builtin;
use crate::configuration::{Configuration, ConfigurationProblems};
use crate::home::Home;
use crate::kept_results::KeptResults;

/// What a command line can call: the control plane too, which runs on a hub.
pub(crate) fn command_runtime(home: &Home, configuration: &Configuration) -> anyhow::Result<Runtime> {
    actions(home, configuration)
        .actions(runyard_control::actions())
        .build()
        .context("the actions are not well defined")
}

/// The actions that run without a hub: idempotency keys last as long as the process.
pub(crate) fn runtime(home: &Home, configuration: &Configuration) -> anyhow::Result<Runtime> {
    actions(home, configuration).build().context("the actions are not well defined")
}

/// The actions of a hub: the control plane too, and what idempotency keys stand for is in its store.
pub(crate) fn hub_runtime(
    home: &Home,
    configuration: &Configuration,
    store: Arc<dyn Store>,
    redactor: Redactor,
    engine: Engine,
) -> anyhow::Result<Runtime> {
    let results = KeptResults::new(store, redactor);
    let actions = runyard_control::install(actions(home, configuration).idempotency(results), engine);
    actions.build().context("the actions are not well defined")
}

/// The backends, by kind.
pub(crate) type Backends = BTreeMap<String, Arc<dyn Backend>>;

/// Every adapter has its line here.
pub(crate) fn backends(home: &Home, configuration: &Configuration) -> anyhow::Result<Backends> {
    let scripts = Scripts::embedded().context("a script that is built in is wrong")?;
    let all: [Arc<dyn Backend>; 4] = [
        Arc::new(ScriptedBackend::new(scripts)),
        Arc::new(ActionBackend::new(runtime(home, configuration)?)),
        Arc::new(CodexBackend::new()),
        Arc::new(NativeBackend::new()),
    ];
    Ok(all.into_iter().map(|backend| (backend.info().backend_kind.to_owned(), backend)).collect())
}

/// Refuses what no backend here knows.
pub(crate) fn check_kinds(
    configuration: &Configuration,
    backends: &Backends,
) -> Result<(), ConfigurationProblems> {
    let kinds: Vec<BackendInfo> = backends.values().map(|backend| backend.info()).collect();
    let kinds: Vec<_> = kinds.iter().map(|info| (info.backend_kind, info.settings)).collect();
    configuration.check_kinds(&kinds)
}

/// How a command that is no hub asks a program for its version: under custody, as a hub would.
pub(crate) fn probe() -> Probe {
    Probe {
        directory: "/".into(),
        environment: std::env::var("PATH").map(|path| ("PATH".to_owned(), path)).into_iter().collect(),
        // Nobody asks later whether something of it is left.
        processes: Supervisors::new().under(Path::new("/dev/null"), Confinement::None),
    }
}

/// What runs can choose from.
pub(crate) fn catalog(configuration: &Configuration, backends: &Backends) -> Catalog {
    let kinds: BTreeMap<String, BackendInfo> =
        backends.iter().map(|(kind, backend)| (kind.clone(), backend.info())).collect();
    let whole = |(name, profile): (&String, &BackendProfile)| {
        let profile = profile.clone();
        let whole = match kinds.get(&profile.backend_kind) {
            Some(info) => completed(profile, info, configuration.names_secrets(name)),
            None => profile,
        };
        (name.clone(), whole)
    };
    Catalog {
        agents: configuration.agents().clone(),
        backends: configuration.backends().iter().map(whole).collect(),
        kinds,
    }
}

/// What the hub's own configuration says of the policy.
pub(crate) fn base_policy(configuration: &Configuration) -> BasePolicy {
    let stricter = configuration.agents().values().filter(|agent| agent.preset != Preset::Default);
    let preset =
        |agent: &AgentProfile| AgentPreset { agent: agent.id.clone(), workspace: None, preset: agent.preset };
    BasePolicy {
        preset: configuration.preset(),
        presets: stricter.map(preset).collect(),
        own_runs: configuration.hub().own_runs,
        rules: configuration.rules(),
    }
}

/// A backend profile with what only its kind knows: which secrets it has, and whether it can be pointed at the gateway.
fn completed(mut profile: BackendProfile, info: &BackendInfo, names_secrets: bool) -> BackendProfile {
    let keys = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect::<Vec<String>>();
    if !names_secrets {
        profile.required_secret_keys = keys(info.secret_keys.required);
    }
    // Whoever says that it needs none means that it is given none.
    if !profile.required_secret_keys.is_empty() {
        profile.optional_secret_keys = keys(info.secret_keys.optional);
        profile.optional_secret_keys.retain(|key| !profile.required_secret_keys.contains(key));
    }
    profile.gateway &= info.gateway;
    profile
}

/// The built-in actions, the example's, and those that the configuration declares.
fn actions(home: &Home, configuration: &Configuration) -> RuntimeBuilder {
    Runtime::builder()
        .actions(builtin::actions())
        .service(tasks::Tasks::in_file(home.tasks()))
        .actions(tasks::actions())
        .actions(configuration.actions())
        .exposure(tasks::exposure())
}
