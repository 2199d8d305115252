//! What a hook, a handler or a tool wants: changes, scheduled actions, effects.

use super::{Emitted, Scheduled, ScheduledAction, StateEffect};
use crate::state::{MutationBatch, StateError, StateKey};

/// What a hook, a handler or a tool wants. All of it is committed together, or none.
#[derive(Debug, Default)]
pub struct StateCommand {
    /// What is changed.
    pub batch: MutationBatch,
    /// What is to be done in its phase.
    pub actions: Vec<Scheduled>,
    /// What goes out after the commit.
    pub effects: Vec<Emitted>,
}

impl StateCommand {
    /// Nothing.
    pub fn none() -> Self {
        StateCommand::default()
    }

    /// Also changes a key.
    #[must_use]
    pub fn update<K: StateKey>(mut self, update: K::Update) -> Self {
        self.batch.update::<K>(update);
        self
    }

    /// Also schedules an action. Its payload has to outlive the process, so it must be storable.
    pub fn schedule<A: ScheduledAction>(mut self, payload: &A::Payload) -> Result<Self, StateError> {
        self.actions.push(Scheduled::new::<A>(payload)?);
        Ok(self)
    }

    /// Also sends an effect.
    #[must_use]
    pub fn emit<E: StateEffect>(mut self, payload: E::Payload) -> Self {
        self.effects.push(Emitted::new::<E>(payload));
        self
    }

    /// Whether it wants nothing.
    pub fn is_empty(&self) -> bool {
        self.batch.is_empty() && self.actions.is_empty() && self.effects.is_empty()
    }

    /// Two commands that were made side by side, as one: refused where both change the same exclusive key.
    pub fn merge_parallel(self, other: StateCommand) -> Result<StateCommand, StateError> {
        let StateCommand { batch, mut actions, mut effects } = self;
        let batch = batch.merge_parallel(other.batch)?;
        actions.extend(other.actions);
        effects.extend(other.effects);
        Ok(StateCommand { batch, actions, effects })
    }
}
