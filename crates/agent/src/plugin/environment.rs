//! Everything that an agent's runs have in common, and who owns what of it.

use std::any::{Any, TypeId, type_name};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::{ConfigSection, InstallError, Plugin, Registrar};
use crate::phase::{
    ActionHandler, AddContextMessage, AnyActionHandler, AnyEffectHandler, BuiltIn, ContextMessages,
    EffectHandler, ExcludeTool, FailedActions, IncludeOnlyTools, LastOffer, NextInference, PendingActions,
    Phase, PhaseHook, ScheduledAction, SetInferenceOverride, StateEffect, ToolGate, erase_action,
    erase_effect,
};
use crate::state::{KeyOptions, Keys, Owner, StateError, StateKey};
use crate::tool::Tool;

/// Everything that an agent's runs have in common: keys, hooks, handlers, gates, tools.
///
/// It is put together once and shared. A clone is another environment, which begins the same.
#[derive(Clone)]
pub struct Environment {
    keys: Arc<Keys>,
    sections: Arc<Map<String, Value>>,
    claimed: BTreeMap<&'static str, ConfigSection>,
    plugins: Vec<Installed>,
    hooks: [Vec<Part<dyn PhaseHook>>; Phase::ALL.len()],
    gates: Vec<Part<dyn ToolGate>>,
    actions: HashMap<&'static str, Part<dyn AnyActionHandler>>,
    effects: HashMap<&'static str, Part<dyn AnyEffectHandler>>,
    tools: BTreeMap<String, Part<dyn Tool>>,
}

#[derive(Clone)]
struct Installed {
    id: Arc<str>,
    type_id: TypeId,
}

/// Something that was added, and by whom.
pub(crate) struct Part<T: ?Sized> {
    pub(crate) part: Arc<T>,
    pub(crate) owner: Owner,
}

impl<T: ?Sized> Clone for Part<T> {
    fn clone(&self) -> Self {
        Part { part: Arc::clone(&self.part), owner: self.owner.clone() }
    }
}

impl Default for Environment {
    fn default() -> Self {
        Environment::new(Map::new())
    }
}

impl Environment {
    /// Only what the runtime itself has, with the sections of an agent's definition for the plugins to come.
    pub fn new(sections: Map<String, Value>) -> Self {
        let mut environment = Environment {
            keys: Arc::default(),
            sections: Arc::new(sections),
            claimed: BTreeMap::new(),
            plugins: Vec::new(),
            hooks: Default::default(),
            gates: Vec::new(),
            actions: HashMap::new(),
            effects: HashMap::new(),
            tools: BTreeMap::new(),
        };
        // Nothing is there yet that they could collide with.
        let _ = environment.add_built_in();
        environment
    }

    fn add_built_in(&mut self) -> Result<(), StateError> {
        let stored = KeyOptions::DEFAULT;
        self.register_key::<PendingActions>(stored, Owner::Runtime)?;
        self.register_key::<FailedActions>(stored, Owner::Runtime)?;
        self.register_key::<ContextMessages>(stored, Owner::Runtime)?;
        self.register_key::<NextInference>(stored, Owner::Runtime)?;
        self.register_key::<LastOffer>(stored, Owner::Runtime)?;
        self.register_action::<AddContextMessage>(BuiltIn, Owner::Runtime)?;
        self.register_action::<ExcludeTool>(BuiltIn, Owner::Runtime)?;
        self.register_action::<IncludeOnlyTools>(BuiltIn, Owner::Runtime)?;
        self.register_action::<SetInferenceOverride>(BuiltIn, Owner::Runtime)
    }

    /// Installs a plugin, or leaves everything as it is. There is one of each type and of each id.
    pub fn install(&mut self, plugin: &dyn Plugin) -> Result<(), InstallError> {
        let (id, type_id) = (Arc::<str>::from(plugin.id()), Any::type_id(plugin));
        if self.plugins.iter().any(|present| present.id == id || present.type_id == type_id) {
            return Err(StateError::PluginAlreadyInstalled { name: id.to_string() }.into());
        }
        let mut next = self.clone();
        next.plugins.push(Installed { id: Arc::clone(&id), type_id });
        plugin.register(&mut Registrar { environment: &mut next, plugin: id })?;
        *self = next;
        Ok(())
    }

    /// Takes a plugin out, with all that it owns. Keys that are to be retained stay, without an owner.
    ///
    /// The state of a run follows with [`StateStore::switch_to`](crate::state::StateStore::switch_to).
    pub fn uninstall<P: Plugin>(&mut self) -> Result<(), StateError> {
        let found = self.plugins.iter().position(|present| present.type_id == TypeId::of::<P>());
        let Some(place) = found else {
            return Err(StateError::PluginNotInstalled { type_name: type_name::<P>() });
        };
        let id = self.plugins.remove(place).id;
        self.claimed.retain(|_, section| *section.plugin != *id);
        let owner = Owner::Plugin(id);
        self.keys = Arc::new(self.keys.without(&owner));
        self.hooks.iter_mut().for_each(|hooks| hooks.retain(|hook| hook.owner != owner));
        self.gates.retain(|gate| gate.owner != owner);
        self.actions.retain(|_, handler| handler.owner != owner);
        self.effects.retain(|_, handler| handler.owner != owner);
        self.tools.retain(|_, tool| tool.owner != owner);
        Ok(())
    }

    /// The ids of the installed plugins, in the order of installation.
    pub fn plugins(&self) -> impl Iterator<Item = &str> {
        self.plugins.iter().map(|installed| &*installed.id)
    }

    /// The sections that installed plugins read.
    pub fn sections(&self) -> impl Iterator<Item = &ConfigSection> {
        self.claimed.values()
    }

    /// The names of the sections that are there and that no installed plugin reads.
    pub fn unread_sections(&self) -> impl Iterator<Item = &str> {
        self.sections.keys().map(String::as_str).filter(|key| !self.claimed.contains_key(key))
    }

    /// Adds a key that no plugin owns.
    pub fn add_key<K: StateKey>(&mut self, options: KeyOptions) -> Result<(), StateError> {
        self.register_key::<K>(options, Owner::Application)
    }

    /// Adds a tool that no plugin owns.
    pub fn add_tool(&mut self, tool: Arc<dyn Tool>) -> Result<(), StateError> {
        self.register_tool(tool, Owner::Application)
    }

    /// Whether anything decides on calls.
    pub(crate) fn has_gates(&self) -> bool {
        !self.gates.is_empty()
    }

    /// Whether anything that decides on calls waits for people meanwhile.
    pub(crate) fn waits_for_people(&self) -> bool {
        self.gates.iter().any(|gate| gate.part.waits_for_people())
    }

    /// A tool by its id.
    pub fn tool(&self, id: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.get(id).map(|tool| &tool.part)
    }

    /// All tools, in the order of their ids.
    pub fn tools(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.tools.values().map(|tool| &tool.part)
    }

    /// Who added a tool: a plugin's id, or `application`.
    pub fn tool_source(&self, id: &str) -> Option<String> {
        self.tools.get(id).map(|tool| tool.owner.to_string())
    }

    pub(crate) fn keys(&self) -> &Arc<Keys> {
        &self.keys
    }

    pub(crate) fn hooks(&self, phase: Phase) -> &[Part<dyn PhaseHook>] {
        &self.hooks[phase as usize]
    }

    pub(crate) fn gates(&self) -> &[Part<dyn ToolGate>] {
        &self.gates
    }

    pub(crate) fn action_handler(&self, key: &str) -> Option<&Arc<dyn AnyActionHandler>> {
        self.actions.get(key).map(|handler| &handler.part)
    }

    pub(crate) fn effect_handler(&self, key: &str) -> Option<&Arc<dyn AnyEffectHandler>> {
        self.effects.get(key).map(|handler| &handler.part)
    }

    pub(super) fn section(&self, key: &str) -> Option<&Value> {
        self.sections.get(key)
    }

    pub(super) fn claim(&mut self, section: ConfigSection) {
        self.claimed.insert(section.key, section);
    }

    pub(super) fn register_key<K: StateKey>(
        &mut self,
        options: KeyOptions,
        owner: Owner,
    ) -> Result<(), StateError> {
        Arc::make_mut(&mut self.keys).register::<K>(options, owner)
    }

    pub(super) fn register_hook(&mut self, phase: Phase, part: Arc<dyn PhaseHook>, owner: Owner) {
        self.hooks[phase as usize].push(Part { part, owner });
    }

    pub(super) fn register_gate(&mut self, part: Arc<dyn ToolGate>, owner: Owner) {
        self.gates.push(Part { part, owner });
    }

    pub(super) fn register_action<A: ScheduledAction>(
        &mut self,
        handler: impl ActionHandler<A>,
        owner: Owner,
    ) -> Result<(), StateError> {
        if self.actions.contains_key(A::KEY) {
            return Err(StateError::HandlerAlreadyRegistered { key: A::KEY.to_owned() });
        }
        self.actions.insert(A::KEY, Part { part: erase_action::<A>(handler), owner });
        Ok(())
    }

    pub(super) fn register_effect<E: StateEffect>(
        &mut self,
        handler: impl EffectHandler<E>,
        owner: Owner,
    ) -> Result<(), StateError> {
        if self.effects.contains_key(E::KEY) {
            return Err(StateError::EffectHandlerAlreadyRegistered { key: E::KEY.to_owned() });
        }
        self.effects.insert(E::KEY, Part { part: erase_effect::<E>(handler), owner });
        Ok(())
    }

    pub(super) fn register_tool(&mut self, part: Arc<dyn Tool>, owner: Owner) -> Result<(), StateError> {
        let tool_id = part.descriptor().id.clone();
        if self.tools.contains_key(&tool_id) {
            return Err(StateError::ToolAlreadyRegistered { tool_id });
        }
        self.tools.insert(tool_id, Part { part, owner });
        Ok(())
    }
}

impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Environment")
            .field("plugins", &self.plugins().collect::<Vec<_>>())
            .field("tools", &self.tools.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}
