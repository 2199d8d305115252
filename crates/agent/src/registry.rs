//! What a runtime knows by id: agents, models, providers, tools, plugins and backends.
//!
//! Each id is there once. What the entries name among each other is not looked at here.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use runyard_llm::inference::Model;

use crate::plugin::Plugin;
use crate::remote::BackendFactory;
use crate::spec::{AgentSpec, ApiKey, ModelSpec, ProviderSpec};
use crate::tool::Tool;

/// Entries by id, in the order of their ids.
pub(crate) struct Registry<T>(BTreeMap<String, T>);

/// An id that is there already.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Conflict(pub(crate) String);

impl<T> Default for Registry<T> {
    fn default() -> Self {
        Registry(BTreeMap::new())
    }
}

impl<T> Registry<T> {
    /// Adds an entry. What is there stays.
    pub(crate) fn add(&mut self, id: String, entry: T) -> Result<(), Conflict> {
        if self.0.contains_key(&id) {
            return Err(Conflict(id));
        }
        self.0.insert(id, entry);
        Ok(())
    }

    pub(crate) fn get(&self, id: &str) -> Option<&T> {
        self.0.get(id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.0.iter().map(|(id, entry)| (id.as_str(), entry))
    }
}

/// A model, as somebody made it or as it is to be made.
pub(crate) enum ModelEntry {
    Given(Arc<dyn Model>),
    Described(ModelSpec),
}

/// A provider, as it is reached or as whoever makes its models.
pub(crate) enum ProviderEntry {
    Described(ProviderSpec, Option<ApiKey>),
    Factory(Arc<dyn ProviderFactory>),
}

/// Makes the models of a provider that none of the wires reaches.
pub trait ProviderFactory: Send + Sync {
    /// The model of this spec, if the provider has it. It is asked once for each.
    fn model(&self, spec: &ModelSpec) -> Option<Arc<dyn Model>>;
}

impl<F: Fn(&ModelSpec) -> Option<Arc<dyn Model>> + Send + Sync> ProviderFactory for F {
    fn model(&self, spec: &ModelSpec) -> Option<Arc<dyn Model>> {
        self(spec)
    }
}

/// All that a runtime knows by id.
#[derive(Default)]
pub(crate) struct Registries {
    pub(crate) agents: Registry<AgentSpec>,
    pub(crate) models: Registry<ModelEntry>,
    pub(crate) providers: Registry<ProviderEntry>,
    pub(crate) tools: Registry<Arc<dyn Tool>>,
    pub(crate) plugins: Registry<Arc<dyn Plugin>>,
    pub(crate) backends: Registry<Arc<dyn BackendFactory>>,
}

impl fmt::Debug for Registries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn ids<T>(registry: &Registry<T>) -> Vec<&str> {
            registry.iter().map(|(id, _)| id).collect()
        }
        f.debug_struct("Registries")
            .field("agents", &ids(&self.agents))
            .field("models", &ids(&self.models))
            .field("providers", &ids(&self.providers))
            .field("tools", &ids(&self.tools))
            .field("plugins", &ids(&self.plugins))
            .field("backends", &ids(&self.backends))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_there_once_and_what_was_first_stays() {
        let mut registry = Registry::default();
        assert_eq!(registry.add("a".into(), 1), Ok(()));
        assert_eq!(registry.add("a".into(), 2), Err(Conflict("a".into())));
        assert_eq!(registry.get("a"), Some(&1));
        assert_eq!(registry.get("b"), None);
    }
}
