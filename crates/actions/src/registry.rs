//! The actions of a runtime, and which of them each surface may see.

use std::collections::{BTreeMap, BTreeSet};

use runyard_domain::{Actor, Surface};

use crate::{Action, ActionSpec, DefinitionError, SideEffects, Visibility};

/// Which destructive actions are offered over HTTP, MCP and to language models; by default none.
#[derive(Clone, Debug, Default)]
pub struct Exposure(BTreeSet<(Surface, String)>);

impl Exposure {
    /// Nothing destructive.
    pub fn new() -> Self {
        Exposure::default()
    }

    /// Offers this destructive action on these surfaces.
    #[must_use]
    pub fn destructive(mut self, action: &str, surfaces: impl IntoIterator<Item = Surface>) -> Self {
        self.0.extend(surfaces.into_iter().map(|surface| (surface, action.to_owned())));
        self
    }

    fn names(&self, action: &str, surface: Surface) -> bool {
        self.0.iter().any(|(at, name)| *at == surface && name == action)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Registry {
    actions: BTreeMap<String, Action>,
    exposure: Exposure,
}

impl Registry {
    pub(crate) fn new(actions: Vec<Action>, exposure: Exposure) -> Result<Self, DefinitionError> {
        let mut registry = Registry { actions: BTreeMap::new(), exposure };
        for action in actions {
            let name = action.name().to_owned();
            if registry.actions.insert(name.clone(), action).is_some() {
                return Err(DefinitionError::Duplicate { name });
            }
        }
        match registry.exposure.0.iter().find(|(_, name)| !registry.actions.contains_key(name)) {
            Some((_, name)) => Err(DefinitionError::UnknownExposed { name: name.clone() }),
            None => Ok(registry),
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Action> {
        self.actions.get(name)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Action> {
        self.actions.values()
    }

    /// What an actor may see on a surface, in the order of names.
    pub(crate) fn listed<'a>(
        &'a self,
        surface: Surface,
        actor: &'a Actor,
    ) -> impl Iterator<Item = &'a Action> {
        self.all().filter(move |action| {
            let spec = action.spec();
            self.exposes(spec, surface) && supports(spec, surface) && !(spec.people_only && actor.is_agent())
        })
    }

    /// Whether an action exists at all as far as a surface can tell.
    pub(crate) fn exposes(&self, spec: &ActionSpec, surface: Surface) -> bool {
        let visible = match spec.visibility {
            Visibility::Public => true,
            Visibility::Local => {
                matches!(surface, Surface::Cli | Surface::Json | Surface::Dev | Surface::Code)
            }
            Visibility::Private => surface == Surface::Code,
        };
        let guarded = matches!(surface, Surface::Http | Surface::Mcp | Surface::AiSdk);
        let destructive = spec.side_effects == SideEffects::Destructive;
        visible && !(destructive && guarded && !self.exposure.names(&spec.name, surface))
    }
}

/// Whether an action can be called from a surface; Rust code can call every one.
pub(crate) fn supports(spec: &ActionSpec, surface: Surface) -> bool {
    surface == Surface::Code || spec.surfaces.contains(&surface)
}
