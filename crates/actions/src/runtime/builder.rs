//! Putting a runtime together.

use std::any::Any;
use std::sync::Arc;

use super::{Inner, Runtime};
use crate::context::Services;
use crate::registry::Registry;
use crate::{
    Action, CallGate, DefinitionError, Exposure, Hook, IdempotencyStore, MemoryIdempotency, Middleware,
    PermissionChecker,
};

/// What is wrong with the definitions given to a runtime; all of it, not only the first.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct BuildError(pub Vec<DefinitionError>);

/// An action, or what is wrong with its definition: both can be handed to a builder, which reports it at the end.
pub trait IntoAction {
    /// The action or its error.
    fn into_action(self) -> Result<Action, DefinitionError>;
}

impl IntoAction for Action {
    fn into_action(self) -> Result<Action, DefinitionError> {
        Ok(self)
    }
}

impl IntoAction for &Action {
    fn into_action(self) -> Result<Action, DefinitionError> {
        Ok(self.clone())
    }
}

impl IntoAction for Result<Action, DefinitionError> {
    fn into_action(self) -> Result<Action, DefinitionError> {
        self
    }
}

/// A runtime in the making.
#[derive(Default)]
pub struct RuntimeBuilder {
    actions: Vec<Action>,
    errors: Vec<DefinitionError>,
    exposure: Exposure,
    services: Services,
    checker: Option<Arc<dyn PermissionChecker>>,
    gate: Option<Arc<dyn CallGate>>,
    middleware: Vec<Arc<dyn Middleware>>,
    hooks: Vec<Arc<dyn Hook>>,
    idempotency: Option<Arc<dyn IdempotencyStore>>,
}

impl RuntimeBuilder {
    /// Adds an action.
    #[must_use]
    pub fn action(mut self, action: impl IntoAction) -> Self {
        match action.into_action() {
            Ok(action) => self.actions.push(action),
            Err(error) => self.errors.push(error),
        }
        self
    }

    /// Adds several actions.
    #[must_use]
    pub fn actions<A: IntoAction>(self, actions: impl IntoIterator<Item = A>) -> Self {
        actions.into_iter().fold(self, RuntimeBuilder::action)
    }

    /// Puts another action in the place of the one of the same name.
    #[must_use]
    pub(crate) fn replace(mut self, action: Action) -> Self {
        self.actions.retain(|present| present.name() != action.name());
        self.action(action)
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Action> {
        self.actions.iter().find(|action| action.name() == name)
    }

    /// Which destructive actions are offered on the guarded surfaces.
    #[must_use]
    pub fn exposure(mut self, exposure: Exposure) -> Self {
        self.exposure = exposure;
        self
    }

    /// Adds a service that handlers get with `ctx.service::<T>()`.
    #[must_use]
    pub fn service<T: Any + Send + Sync>(mut self, service: T) -> Self {
        self.services.insert(Arc::new(service));
        self
    }

    /// Asks this checker; the default one wants every permission that the action declares.
    #[must_use]
    pub fn permission_checker(mut self, checker: impl PermissionChecker + 'static) -> Self {
        self.checker = Some(Arc::new(checker));
        self
    }

    /// Lets this gate decide on the calls of agents, in place of a confirmation.
    #[must_use]
    pub fn call_gate(mut self, gate: impl CallGate + 'static) -> Self {
        self.gate = Some(Arc::new(gate));
        self
    }

    /// Adds a middleware inside those added before.
    #[must_use]
    pub fn middleware(mut self, middleware: impl Middleware + 'static) -> Self {
        self.middleware.push(Arc::new(middleware));
        self
    }

    /// Adds a hook.
    #[must_use]
    pub fn hook(mut self, hook: impl Hook + 'static) -> Self {
        self.hooks.push(Arc::new(hook));
        self
    }

    /// Keeps idempotency keys there; by default in memory.
    #[must_use]
    pub fn idempotency(mut self, store: impl IdempotencyStore + 'static) -> Self {
        self.idempotency = Some(Arc::new(store));
        self
    }

    /// Checks everything and makes the runtime.
    pub fn build(mut self) -> Result<Runtime, BuildError> {
        let registry = Registry::new(self.actions, self.exposure);
        match registry {
            Ok(registry) if self.errors.is_empty() => Ok(Runtime(Arc::new(Inner {
                registry,
                services: Arc::new(self.services),
                checker: self.checker,
                gate: self.gate,
                middleware: self.middleware,
                hooks: self.hooks,
                idempotency: self.idempotency.unwrap_or_else(|| Arc::new(MemoryIdempotency::default())),
            }))),
            registry => {
                self.errors.extend(registry.err());
                Err(BuildError(self.errors))
            }
        }
    }
}
