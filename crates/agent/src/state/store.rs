//! The present revision of one run's state, and the only way to the next one.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::keys::Held;
use super::shelf::{Placed, Shelf};
use super::snapshot::{Gone, Revision};
use super::{MutationBatch, PersistedState, Scope, Snapshot, StateError, UnknownKeyPolicy};
use crate::budget::Budget;
use crate::plugin::Environment;

/// The state of one run, in memory. Cloning gives another handle to the same state.
#[derive(Clone)]
pub struct StateStore(Arc<Inner>);

struct Inner {
    current: Mutex<Snapshot>,
    /// Held by the phase that is under way.
    phase: tokio::sync::Mutex<()>,
    /// How long its effects may take when the run is cancelled, where there is a run.
    effects: OnceLock<Budget>,
}

impl StateStore {
    /// No value yet, with the keys of an environment.
    pub fn new(environment: &Environment) -> Self {
        let keys = Arc::clone(environment.keys());
        let empty =
            Snapshot(Arc::new(Revision { revision: 0, keys, shelf: Shelf::default(), gone: Arc::default() }));
        let (current, phase) = (Mutex::new(empty), tokio::sync::Mutex::new(()));
        StateStore(Arc::new(Inner { current, phase, effects: OnceLock::new() }))
    }

    /// The present revision.
    pub fn snapshot(&self) -> Snapshot {
        self.current().clone()
    }

    /// A look at the present revision that does not keep it.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Snapshot) -> T) -> T {
        look(&self.current())
    }

    /// Applies a batch whole, or refuses it and changes nothing. Gives the revision that it made; a batch without a change
    /// makes none.
    ///
    /// A panic of a key's [`apply`](super::StateKey::apply) comes out of here, and changes nothing either.
    pub fn commit(&self, batch: MutationBatch) -> Result<Snapshot, StateError> {
        let mut current = self.current();
        let revision = &current.0;
        check(revision, &batch)?;
        if batch.is_empty() {
            return Ok(current.clone());
        }
        let next = revision.revision + 1;
        let mut shelf = revision.shelf.clone();
        for change in batch.into_changes() {
            // Checked above.
            let Some(slot) = revision.keys.slot(change.type_id) else { continue };
            let place = shelf.place_mut(slot, next);
            let held = place.take().and_then(|placed| placed.value);
            *place = Some(Placed { revision: next, value: Some(change.update.apply(held)) });
        }
        Ok(replace(&mut current, next, shelf))
    }

    /// Whether a batch would be taken at this revision.
    pub(crate) fn check(&self, batch: &MutationBatch) -> Result<(), StateError> {
        check(&self.current().0, batch)
    }

    /// Puts stored values in place, all of them or none. Other keys stay as they are.
    ///
    /// A value whose key is registered and not persistent any more is left out. The revision goes on from the stored one, if
    /// that is later.
    pub fn restore(&self, stored: &PersistedState, policy: UnknownKeyPolicy) -> Result<Snapshot, StateError> {
        let mut current = self.current();
        let revision = &current.0;
        let mut values: Vec<(u32, Held)> = Vec::with_capacity(stored.values.len());
        for (name, value) in &stored.values {
            let found = revision.keys.slot_named(name);
            match found.and_then(|slot| Some((slot, revision.keys.at(slot)?))) {
                Some((slot, key)) if key.options.persistent => values.push((slot, key.decode(value)?)),
                Some(_) => {}
                None if policy == UnknownKeyPolicy::Skip => {}
                None => return Err(StateError::UnknownKey { key: name.clone() }),
            }
        }
        let later = if values.is_empty() { revision.revision } else { revision.revision + 1 };
        let next = later.max(stored.revision);
        if next == revision.revision {
            return Ok(current.clone());
        }
        let mut shelf = revision.shelf.clone();
        for (slot, held) in values {
            *shelf.place_mut(slot, next) = Some(Placed { revision: next, value: Some(held) });
        }
        Ok(replace(&mut current, next, shelf))
    }

    /// Clears what lives as long as a run, so that the next run of the thread begins without it.
    pub fn clear_run_scope(&self) -> Snapshot {
        let mut current = self.current();
        let revision = &current.0;
        let mut slots = Vec::new();
        revision.shelf.since(0, &mut |slot, placed| {
            let of_run = revision.keys.at(slot).is_some_and(|key| key.scope == Scope::Run);
            if of_run && placed.value.is_some() {
                slots.push(slot);
            }
        });
        if slots.is_empty() {
            return current.clone();
        }
        let next = revision.revision + 1;
        let mut shelf = revision.shelf.clone();
        for slot in slots {
            *shelf.place_mut(slot, next) = Some(Placed { revision: next, value: None });
        }
        replace(&mut current, next, shelf)
    }

    /// Goes on with the keys of another environment, or of the same one after a plugin came or went. Values whose key it
    /// does not have are gone.
    pub fn switch_to(&self, environment: &Environment) -> Snapshot {
        let mut current = self.current();
        let revision = &current.0;
        let keys = environment.keys();
        if Arc::ptr_eq(&revision.keys, keys) {
            return current.clone();
        }
        let next = revision.revision + 1;
        let mut shelf = Shelf::default();
        let mut gone = revision.gone.as_ref().clone();
        revision.shelf.since(0, &mut |slot, placed| match revision.keys.slot_in(slot, keys) {
            Some(slot) => *shelf.place_mut(slot, placed.revision) = Some(placed.clone()),
            None => {
                if let Some(key) = revision.keys.at(slot).filter(|key| key.options.persistent) {
                    gone.insert(key.name, Gone { revision: next, scope: key.scope });
                }
            }
        });
        // A key that is back has its own place to say that its value went.
        gone.retain(|name, gone| match keys.slot_named(name) {
            Some(slot) => {
                let empty = Placed { revision: gone.revision, value: None };
                shelf.place_mut(slot, gone.revision).get_or_insert(empty);
                false
            }
            None => true,
        });
        let (keys, gone) = (Arc::clone(keys), Arc::new(gone));
        *current = Snapshot(Arc::new(Revision { revision: next, keys, shelf, gone }));
        current.clone()
    }

    /// One phase at a time.
    pub(crate) async fn phase(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.0.phase.lock().await
    }

    /// Effects have so much time in all, from when their run is cancelled. Said once.
    pub(crate) fn bound_effects(&self, budget: Budget) {
        let _ = self.0.effects.set(budget);
    }

    /// What was said about that.
    pub(crate) fn effects(&self) -> Option<&Budget> {
        self.0.effects.get()
    }

    fn current(&self) -> MutexGuard<'_, Snapshot> {
        // Nothing is changed before it is whole, so a panic under the lock leaves the revision before it.
        self.0.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn check(revision: &Revision, batch: &MutationBatch) -> Result<(), StateError> {
    let actual = revision.revision;
    if let Some(expected) = batch.base_revision().filter(|base| *base != actual) {
        return Err(StateError::RevisionConflict { expected, actual });
    }
    let unknown = batch.changes().iter().find(|change| revision.keys.slot(change.type_id).is_none());
    match unknown {
        Some(change) => Err(StateError::UnknownKey { key: change.key.to_owned() }),
        None => Ok(()),
    }
}

fn replace(current: &mut Snapshot, revision: u64, shelf: Shelf<Option<Held>>) -> Snapshot {
    let (keys, gone) = (Arc::clone(&current.0.keys), Arc::clone(&current.0.gone));
    *current = Snapshot(Arc::new(Revision { revision, keys, shelf, gone }));
    current.clone()
}

impl std::fmt::Debug for StateStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StateStore(revision {})", self.current().revision())
    }
}
