//! Putting a runtime together: what is given is gathered, what is to be found is found, and all of it is looked at.
//!
//! [`build`](AgentRuntimeBuilder::build) resolves every agent, so that a runtime that was built can run each of them.
//! Nothing is changed by building: no model is asked and nothing is written.

mod discover;
mod error;

use std::path::PathBuf;
use std::sync::Arc;

use runyard_actions::{IntoAction, Runtime as Actions};
use runyard_domain::Surface;
use runyard_llm::http::{Client, Roots};
use runyard_llm::inference::{Breakers, Model};
use runyard_redact::{Known, Redactor, TagKey};
use runyard_store::ThreadRunStore;

pub use self::discover::{FILE_BYTES_MAX, FOLDER_FILES_MAX};
pub use self::error::{BuildError, DiscoveryError};
use crate::plugin::Plugin;
use crate::registry::{Conflict, ModelEntry, ProviderEntry, ProviderFactory, Registries};
use crate::remote::{BackendFactory, CardError, fetch_card};
use crate::resolve::{AgentResolver, ResolvedRunPlan};
use crate::runtime::{AgentRuntime, CACHE_BYTES_DEFAULT, Durable};
use crate::spec::{AgentSpec, ApiKey, ModelSpec, ProviderSpec, SpecError, check_id};
use crate::tool::{ActionTool, Tool, ToolDescriptor};

/// Puts a runtime together. What cannot be meant so is told by [`build`](Self::build).
#[derive(Default)]
pub struct AgentRuntimeBuilder {
    registries: Registries,
    /// The first thing that went wrong.
    wrong: Option<BuildError>,
    folders: Vec<PathBuf>,
    cards: Vec<String>,
    store: Option<Arc<dyn ThreadRunStore>>,
    redactor: Option<Redactor>,
    breakers: Breakers,
    client: Option<Arc<Client>>,
    cache_bytes: Option<usize>,
}

impl AgentRuntimeBuilder {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an agent.
    #[must_use]
    pub fn agent(mut self, spec: AgentSpec) -> Self {
        let added = self.add_agent(spec);
        self.note(added);
        self
    }

    /// Adds the agents of a folder: one in each `*.toml` and `*.json`. It is read when the runtime is built.
    #[must_use]
    pub fn agent_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folders.push(folder.into());
        self
    }

    /// Adds an agent that runs elsewhere, by its [card](crate::remote::AgentCard). It is read when the runtime is built.
    #[must_use]
    pub fn agent_card(mut self, url: impl Into<String>) -> Self {
        self.cards.push(url.into());
        self
    }

    /// Adds a model.
    #[must_use]
    pub fn model(mut self, id: impl Into<String>, model: Arc<dyn Model>) -> Self {
        let id = id.into();
        let added = check_id("a model", &id)
            .map_err(BuildError::from)
            .and_then(|()| self.add_model(id, ModelEntry::Given(model)));
        self.note(added);
        self
    }

    /// Adds a model of a provider.
    #[must_use]
    pub fn model_spec(mut self, spec: ModelSpec) -> Self {
        let added = spec
            .check()
            .map_err(BuildError::from)
            .and_then(|()| self.add_model(spec.id.clone(), ModelEntry::Described(spec)));
        self.note(added);
        self
    }

    /// Adds a provider that asks for no key.
    #[must_use]
    pub fn provider(mut self, spec: ProviderSpec) -> Self {
        let added = self.add_provider(spec, None);
        self.note(added);
        self
    }

    /// Adds a provider, with what it knows its customer by.
    #[must_use]
    pub fn provider_with_key(mut self, spec: ProviderSpec, key: impl Into<ApiKey>) -> Self {
        let added = self.add_provider(spec, Some(key.into()));
        self.note(added);
        self
    }

    /// Adds a provider whose models are made by this.
    #[must_use]
    pub fn provider_factory(
        mut self,
        id: impl Into<String>,
        factory: impl ProviderFactory + 'static,
    ) -> Self {
        let id = id.into();
        let added = check_id("a provider", &id).map_err(BuildError::from).and_then(|()| {
            let added = self.registries.providers.add(id, ProviderEntry::Factory(Arc::new(factory)));
            added.map_err(|Conflict(id)| BuildError::ProviderRegistryConflict(id))
        });
        self.note(added);
        self
    }

    /// Adds a tool.
    #[must_use]
    pub fn tool(mut self, tool: Arc<dyn Tool>) -> Self {
        let id = tool.descriptor().id.clone();
        let added = ToolDescriptor::check_name(&id).map_err(BuildError::from).and_then(|()| {
            let added = self.registries.tools.add(id, tool);
            added.map_err(|Conflict(id)| BuildError::ToolRegistryConflict(id))
        });
        self.note(added);
        self
    }

    /// Adds an action as a tool. It has no services and no permissions to check: an action that needs them comes
    /// [from an application](Self::action_of).
    #[must_use]
    pub fn action(mut self, action: impl IntoAction) -> Self {
        match Actions::builder().action(action).build() {
            Ok(actions) => {
                let names: Vec<String> = actions.actions().map(|action| action.name().to_owned()).collect();
                names.iter().fold(self, |builder, name| builder.action_of(&actions, name))
            }
            Err(error) => {
                self.note(Err(BuildError::ValidationFailed(format!("an action: {error}"))));
                self
            }
        }
    }

    /// Adds an action of an application as a tool.
    #[must_use]
    pub fn action_of(mut self, actions: &Actions, name: &str) -> Self {
        match ActionTool::new(actions, name) {
            Ok(tool) => self.tool(Arc::new(tool)),
            Err(error) => {
                self.note(Err(BuildError::ValidationFailed(format!("the action \"{name}\": {error}"))));
                self
            }
        }
    }

    /// Adds every action of an application that language models may see as a tool.
    #[must_use]
    pub fn actions_of(self, actions: &Actions) -> Self {
        let shown = actions.actions().filter(|action| actions.exposes(action, Surface::AiSdk));
        shown.fold(self, |builder, action| builder.action_of(actions, action.name()))
    }

    /// Adds a plugin. It does nothing for an agent that does not name it.
    #[must_use]
    pub fn plugin(mut self, plugin: impl Plugin) -> Self {
        let id = plugin.id().to_owned();
        let added = check_id("a plugin", &id).map_err(BuildError::from).and_then(|()| {
            let added = self.registries.plugins.add(id, Arc::new(plugin));
            added.map_err(|Conflict(id)| BuildError::PluginRegistryConflict(id))
        });
        self.note(added);
        self
    }

    /// Adds a way to agents that run elsewhere.
    #[must_use]
    pub fn backend(mut self, factory: impl BackendFactory + 'static) -> Self {
        let id = factory.backend().to_owned();
        let added = check_id("a backend", &id).map_err(BuildError::from).and_then(|()| {
            let added = self.registries.backends.add(id, Arc::new(factory));
            added.map_err(|Conflict(id)| {
                BuildError::ValidationFailed(format!("there are two backends \"{id}\""))
            })
        });
        self.note(added);
        self
    }

    /// Keeps conversations and runs here. Without a store nothing outlives a run: neither what was said, nor what waits.
    #[must_use]
    pub fn store(mut self, store: Arc<dyn ThreadRunStore>) -> Self {
        self.store = Some(store);
        self
    }

    /// What takes secrets out of what is stored. Where none is given, one that knows the keys of the providers does.
    #[must_use]
    pub fn redactor(mut self, redactor: Redactor) -> Self {
        self.redactor = Some(redactor);
        self
    }

    /// The circuit breakers of the models, which agents share; also those of several runtimes can be the same.
    #[must_use]
    pub fn breakers(mut self, breakers: Breakers) -> Self {
        self.breakers = breakers;
        self
    }

    /// Who opens connections to providers and reads cards.
    #[must_use]
    pub fn client(mut self, client: Arc<Client>) -> Self {
        self.client = Some(client);
        self
    }

    /// So many bytes of conversations are kept in memory for their next run; [`CACHE_BYTES_DEFAULT`] where nobody says.
    #[must_use]
    pub fn cache_bytes(mut self, bytes: usize) -> Self {
        self.cache_bytes = Some(bytes);
        self
    }

    /// Builds the runtime, and looks whether each of its agents can run.
    ///
    /// # Errors
    /// The first thing that is wrong with what was given, found, or named by an agent.
    pub async fn build(self) -> Result<AgentRuntime, BuildError> {
        let runtime = self.build_unresolved().await?;
        let resolver = runtime.resolver();
        for spec in resolver.agents() {
            let plan =
                resolver.resolve_run(&spec.id).map_err(|error| BuildError::unresolved(&spec.id, error))?;
            check_names(spec, &plan, resolver)?;
        }
        Ok(runtime)
    }

    /// The same without looking whether what agents name is there: that is found when one of them is resolved.
    ///
    /// # Errors
    /// The first thing that is wrong with what was given or found.
    pub async fn build_unresolved(mut self) -> Result<AgentRuntime, BuildError> {
        if let Some(wrong) = self.wrong.take() {
            return Err(wrong);
        }
        let client = self.client.take().unwrap_or_else(|| Arc::new(Client::new(Roots::System)));
        self.discover(&client).await?;
        check_options(&self.registries)?;
        let durable = match self.store.take() {
            None => None,
            Some(store) => {
                let redactor = self.redactor.take().map_or_else(|| redactor_of(&self.registries), Ok)?;
                let cache_bytes = self.cache_bytes.unwrap_or(CACHE_BYTES_DEFAULT);
                Some(Durable::new(store, redactor, cache_bytes))
            }
        };
        let resolver = AgentResolver::new(self.registries, self.breakers, client);
        Ok(AgentRuntime::new(resolver, durable))
    }

    async fn discover(&mut self, client: &Client) -> Result<(), BuildError> {
        let folders = std::mem::take(&mut self.folders);
        let read = move || folders.iter().map(|path| discover::folder(path)).collect::<Result<Vec<_>, _>>();
        let found = tokio::task::spawn_blocking(read).await;
        let found = found.map_err(|_| BuildError::ValidationFailed("the process is ending".to_owned()))??;
        for spec in found.into_iter().flatten() {
            self.add_agent(spec)?;
        }
        for url in std::mem::take(&mut self.cards) {
            let spec = match fetch_card(client, &url).await {
                Ok(spec) => spec,
                Err(error) => return Err(card_failed(&url, error).into()),
            };
            if let Err(error) = spec.check() {
                return Err(card_failed(&url, CardError::NoCard(error.to_string())).into());
            }
            self.add_agent(spec)?;
        }
        Ok(())
    }

    fn add_agent(&mut self, spec: AgentSpec) -> Result<(), BuildError> {
        spec.check()?;
        let added = self.registries.agents.add(spec.id.clone(), spec);
        added.map_err(|Conflict(id)| BuildError::AgentRegistryConflict(id))
    }

    fn add_model(&mut self, id: String, entry: ModelEntry) -> Result<(), BuildError> {
        let added = self.registries.models.add(id, entry);
        added.map_err(|Conflict(id)| BuildError::ModelRegistryConflict(id))
    }

    fn add_provider(&mut self, spec: ProviderSpec, key: Option<ApiKey>) -> Result<(), BuildError> {
        spec.check(key.as_ref())?;
        let added = self.registries.providers.add(spec.id.clone(), ProviderEntry::Described(spec, key));
        added.map_err(|Conflict(id)| BuildError::ProviderRegistryConflict(id))
    }

    fn note(&mut self, added: Result<(), BuildError>) {
        if self.wrong.is_none() {
            self.wrong = added.err();
        }
    }
}

/// The address of a card may hold a token behind its question mark.
fn card_failed(url: &str, error: CardError) -> DiscoveryError {
    let url = url.split(['?', '#']).next().filter(|url| !url.contains('@')).unwrap_or("<address>").to_owned();
    match error {
        CardError::Unread(message) => DiscoveryError::CardUnreachable { url, message },
        CardError::NoCard(message) => DiscoveryError::InvalidCard { url, message },
    }
}

/// Whether each model's options mean something to its provider, where that is there.
fn check_options(registries: &Registries) -> Result<(), BuildError> {
    for (id, entry) in registries.models.iter() {
        let ModelEntry::Described(model) = entry else { continue };
        let Some(ProviderEntry::Described(provider, _)) = registries.providers.get(&model.provider) else {
            continue;
        };
        if model.options.on(provider.wire).is_none() {
            let what = format!("options of model \"{id}\"");
            return Err(SpecError::new(what, "one of them means nothing to what its provider speaks").into());
        }
    }
    Ok(())
}

/// Whether every name in an agent's definition stands for something. A misspelt one would silently do nothing, and what was
/// to be kept from a model would be offered to it.
fn check_names(spec: &AgentSpec, plan: &ResolvedRunPlan, resolver: &AgentResolver) -> Result<(), BuildError> {
    let ResolvedRunPlan::Local(agent) = plan else { return Ok(()) };
    let wrong = |field: &str, message: String| {
        let what = format!("{field} of agent \"{}\"", spec.id);
        Err(SpecError::new(what, message).into())
    };
    if let Some(section) = agent.environment.unread_sections().next() {
        return wrong("sections", format!("none of its plugins reads \"{section}\""));
    }
    // Those of plugins are known only now.
    for tool in agent.tools.iter() {
        ToolDescriptor::check_name(&tool.name)?;
    }
    let is_known = |id: &str| resolver.has_tool(id) || agent.environment.tool(id).is_some();
    if let Some(name) = spec.tools.plain_names().find(|name| !is_known(name)) {
        return wrong("tools", format!("there is no tool \"{name}\""));
    }
    let is_offered = |name: &&String| agent.tools.iter().any(|tool| tool.name == **name);
    if let Some(name) = spec.limits.stop_on_tools.iter().find(|name| !is_offered(name)) {
        return wrong("limits.stopOnTools", format!("it is offered no tool \"{name}\""));
    }
    Ok(())
}

/// A redactor that knows the keys of the providers.
fn redactor_of(registries: &Registries) -> Result<Redactor, BuildError> {
    let keys = registries.providers.iter().filter_map(|(id, entry)| match entry {
        ProviderEntry::Described(_, Some(key)) => Some(Known::named(id, key.expose())),
        ProviderEntry::Described(_, None) | ProviderEntry::Factory(_) => None,
    });
    let built = Redactor::builder(TagKey::for_this_process()).known(keys).build();
    built.map_err(|error| BuildError::ValidationFailed(format!("the keys of the providers: {error}")))
}
