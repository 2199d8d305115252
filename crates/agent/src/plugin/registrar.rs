//! Where a plugin puts what it has.

use std::sync::Arc;

use super::{ConfigError, ConfigSection, Environment, PluginConfig, config};
use crate::phase::{ActionHandler, EffectHandler, Phase, PhaseHook, ScheduledAction, StateEffect, ToolGate};
use crate::state::{KeyOptions, Owner, StateError, StateKey};
use crate::tool::Tool;

/// Takes what a plugin has, and remembers whose it is.
pub struct Registrar<'a> {
    pub(super) environment: &'a mut Environment,
    pub(super) plugin: Arc<str>,
}

impl Registrar<'_> {
    /// The plugin's section of the agent's definition, or its default where there is none.
    pub fn config<C: PluginConfig>(&mut self) -> Result<C, ConfigError> {
        let schema = runyard_actions::Schema::of_input::<C>().json().clone();
        let section = ConfigSection { plugin: self.plugin.to_string(), key: C::KEY, schema };
        let config = config::read(&self.plugin, self.environment.section(C::KEY))?;
        self.environment.claim(section);
        Ok(config)
    }

    /// Adds a key.
    pub fn key<K: StateKey>(&mut self, options: KeyOptions) -> Result<(), StateError> {
        let owner = self.owner();
        self.environment.register_key::<K>(options, owner)
    }

    /// Adds a hook to a phase, after those that are there.
    pub fn hook(&mut self, phase: Phase, hook: impl PhaseHook + 'static) {
        let owner = self.owner();
        self.environment.register_hook(phase, Arc::new(hook), owner);
    }

    /// Adds a gate, after those that are there.
    pub fn gate(&mut self, gate: impl ToolGate + 'static) {
        let owner = self.owner();
        self.environment.register_gate(Arc::new(gate), owner);
    }

    /// Handles a kind of scheduled action.
    pub fn action<A: ScheduledAction>(&mut self, handler: impl ActionHandler<A>) -> Result<(), StateError> {
        let owner = self.owner();
        self.environment.register_action::<A>(handler, owner)
    }

    /// Handles a kind of effect.
    pub fn effect<E: StateEffect>(&mut self, handler: impl EffectHandler<E>) -> Result<(), StateError> {
        let owner = self.owner();
        self.environment.register_effect::<E>(handler, owner)
    }

    /// Adds a tool.
    pub fn tool(&mut self, tool: Arc<dyn Tool>) -> Result<(), StateError> {
        let owner = self.owner();
        self.environment.register_tool(tool, owner)
    }

    fn owner(&self) -> Owner {
        Owner::Plugin(Arc::clone(&self.plugin))
    }
}
