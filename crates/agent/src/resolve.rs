//! From an agent's id to an agent that can run: its models, plugins and tools are found and put together.
//!
//! An agent is resolved once and kept; those of one runtime share the circuit breakers of their models. Nothing is asked and no
//! connection is opened here.

mod error;
mod plan;
mod window;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use runyard_llm::http::Client;
use runyard_llm::inference::{Breakers, Inference, Model, Pool};
use runyard_llm::wire::{Endpoint, WireModel};

pub use self::error::ResolveError;
pub use self::plan::{RemoteAgent, ResolvedRunPlan};
use crate::agent::Agent;
use crate::plugin::{Environment, InstallError, Plugin};
use crate::registry::{ModelEntry, ProviderEntry, Registries};
use crate::run::{ContextPolicy, loop_environment};
use crate::spec::{AgentSpec, ModelSpec};
use crate::state::StateError;

/// Finds agents by their ids. Cheap to clone.
#[derive(Clone)]
pub struct AgentResolver(Arc<Parts>);

struct Parts {
    registries: Registries,
    breakers: Breakers,
    client: Arc<Client>,
    models: RwLock<HashMap<String, Arc<dyn Model>>>,
    /// As many as agents are registered, at most.
    resolved: RwLock<HashMap<String, ResolvedRunPlan>>,
}

impl AgentResolver {
    pub(crate) fn new(registries: Registries, breakers: Breakers, client: Arc<Client>) -> Self {
        let (models, resolved) = (RwLock::default(), RwLock::default());
        AgentResolver(Arc::new(Parts { registries, breakers, client, models, resolved }))
    }

    /// An agent that runs here. One that runs elsewhere is [`ResolveError::RemoteAgentNotDirectlyRunnable`].
    pub fn resolve(&self, agent_id: &str) -> Result<Agent, ResolveError> {
        if self.spec(agent_id)?.endpoint.is_some() {
            return Err(ResolveError::RemoteAgentNotDirectlyRunnable(agent_id.to_owned()));
        }
        match self.resolve_run(agent_id)? {
            ResolvedRunPlan::Local(agent) => Ok(*agent),
            ResolvedRunPlan::Remote(_) => {
                Err(ResolveError::RemoteAgentNotDirectlyRunnable(agent_id.to_owned()))
            }
        }
    }

    /// How an agent is run, wherever it does.
    pub fn resolve_run(&self, agent_id: &str) -> Result<ResolvedRunPlan, ResolveError> {
        let known = self.0.resolved.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(plan) = known.get(agent_id) {
            return Ok(plan.clone());
        }
        drop(known);
        // Plugins are asked meanwhile, so no lock is held. Whoever is first counts, and all share that one.
        let plan = self.0.plan(self.spec(agent_id)?)?;
        let mut known = self.0.resolved.write().unwrap_or_else(PoisonError::into_inner);
        Ok(known.entry(agent_id.to_owned()).or_insert(plan).clone())
    }

    /// The agents that are registered, in the order of their ids.
    pub fn agents(&self) -> impl Iterator<Item = &AgentSpec> {
        self.0.registries.agents.iter().map(|(_, spec)| spec)
    }

    /// Whether the application has a tool of this id.
    pub(crate) fn has_tool(&self, id: &str) -> bool {
        self.0.registries.tools.get(id).is_some()
    }

    fn spec(&self, agent_id: &str) -> Result<&AgentSpec, ResolveError> {
        let found = self.0.registries.agents.get(agent_id);
        found.ok_or_else(|| ResolveError::AgentNotFound(agent_id.to_owned()))
    }
}

impl Parts {
    fn plan(&self, spec: &AgentSpec) -> Result<ResolvedRunPlan, ResolveError> {
        let Some(endpoint) = &spec.endpoint else {
            return Ok(ResolvedRunPlan::Local(Box::new(self.local(spec)?)));
        };
        let (agent_id, backend) = (spec.id.clone(), endpoint.backend.clone());
        let Some(factory) = self.registries.backends.get(&backend) else {
            return Err(ResolveError::UnsupportedRemoteBackend { agent_id, backend });
        };
        match factory.connect(&spec.id, endpoint) {
            Ok(remote) => Ok(ResolvedRunPlan::Remote(RemoteAgent {
                id: spec.id.as_str().into(),
                backend: backend.into(),
                remote,
            })),
            Err(refused) => {
                let message = refused.to_string();
                Err(ResolveError::InvalidRemoteEndpointConfig { agent_id, backend, message })
            }
        }
    }

    fn local(&self, spec: &AgentSpec) -> Result<Agent, ResolveError> {
        let models = spec.models().map(|id| self.model(id)).collect::<Result<Vec<_>, _>>()?;
        let pool = Pool::new(models, &self.breakers);
        let environment = self.environment(spec)?;
        let tools = environment.tools().map(|tool| tool.descriptor());
        let offered = tools.filter(|tool| spec.tools.admits(&tool.id)).map(|tool| tool.spec());
        Ok(Agent {
            id: spec.id.as_str().into(),
            instructions: spec.instructions.as_str().into(),
            inference: Inference::new(pool, spec.retry.clone()),
            tools: offered.collect(),
            environment: Arc::new(environment),
            settings: spec.settings.clone(),
            calls: spec.calls,
            limits: Arc::new(spec.limits.clone()),
            context: self.context(spec),
            unknown_keys: spec.unknown_keys,
        })
    }

    /// The model of this id: always the same one.
    fn model(&self, id: &str) -> Result<Arc<dyn Model>, ResolveError> {
        let known = self.models.read().unwrap_or_else(PoisonError::into_inner).get(id).cloned();
        if let Some(model) = known {
            return Ok(model);
        }
        let model = match self.registries.models.get(id) {
            None => return Err(ResolveError::ModelNotFound(id.to_owned())),
            Some(ModelEntry::Given(model)) => return Ok(Arc::clone(model)),
            Some(ModelEntry::Described(spec)) => self.made(spec)?,
        };
        let mut known = self.models.write().unwrap_or_else(PoisonError::into_inner);
        Ok(Arc::clone(known.entry(id.to_owned()).or_insert(model)))
    }

    fn made(&self, spec: &ModelSpec) -> Result<Arc<dyn Model>, ResolveError> {
        let not_found = || ResolveError::ModelNotFound(spec.id.clone());
        match self.registries.providers.get(&spec.provider) {
            None => Err(ResolveError::ProviderNotFound(spec.provider.clone())),
            Some(ProviderEntry::Factory(factory)) => factory.model(spec).ok_or_else(not_found),
            Some(ProviderEntry::Described(provider, key)) => {
                let endpoint = Endpoint {
                    provider: provider.id.clone(),
                    base_url: provider.base_url.clone(),
                    key: key.as_ref().map(|key| key.expose().to_owned()),
                    model: spec.upstream().to_owned(),
                    limits: provider.limits(),
                };
                // What cannot be used so was refused when the runtime was built.
                let wire = spec.options.on(provider.wire).ok_or_else(not_found)?;
                let model =
                    WireModel::new(endpoint, wire, Arc::clone(&self.client)).map_err(|_| not_found())?;
                Ok(Arc::new(model))
            }
        }
    }

    /// The application's tools first, so that a plugin's tool of the same id is the second source of a conflict.
    fn environment(&self, spec: &AgentSpec) -> Result<Environment, ResolveError> {
        let mut environment = loop_environment(spec.sections.clone())?;
        for (id, tool) in self.registries.tools.iter() {
            if spec.tools.admits(id) {
                environment.add_tool(Arc::clone(tool))?;
            }
        }
        for id in &spec.plugins {
            let plugin = self.registries.plugins.get(id);
            let plugin = plugin.ok_or_else(|| ResolveError::PluginNotFound(id.clone()))?;
            install(&mut environment, plugin.as_ref())?;
        }
        Ok(environment)
    }

    fn context(&self, spec: &AgentSpec) -> ContextPolicy {
        let mut context = spec.context.clone();
        let windows = spec.models().map(|id| match self.registries.models.get(id) {
            Some(ModelEntry::Described(model)) => model.context_window,
            _ => None,
        });
        if context.tokens_max.is_none() {
            context.tokens_max = window::tokens_max(windows, spec.settings.output_tokens_max);
        }
        context
    }
}

fn install(environment: &mut Environment, plugin: &dyn Plugin) -> Result<(), ResolveError> {
    environment.install(plugin).map_err(|error| match error {
        InstallError::Config(wrong) => {
            ResolveError::InvalidPluginConfig { plugin: wrong.plugin, key: wrong.key, message: wrong.message }
        }
        InstallError::State(StateError::ToolAlreadyRegistered { tool_id }) => {
            match environment.tool_source(&tool_id) {
                Some(source_a) => {
                    ResolveError::ToolIdConflict { tool_id, source_a, source_b: plugin.id().to_owned() }
                }
                // It has two of that id itself.
                None => StateError::ToolAlreadyRegistered { tool_id }.into(),
            }
        }
        InstallError::State(error) => error.into(),
    })
}

impl fmt::Debug for AgentResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AgentResolver").field(&self.0.registries).finish()
    }
}
