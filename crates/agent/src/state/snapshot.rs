//! One frozen revision of the state.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::keys::{Held, Keys, Registered};
use super::shelf::Shelf;
use super::{PersistedState, Scope, StateChanges, StateError, StateKey};

/// One frozen revision. Cloning costs nothing, and nothing that is committed later is seen in it.
#[derive(Clone)]
pub struct Snapshot(pub(super) Arc<Revision>);

pub(super) struct Revision {
    pub(super) revision: u64,
    pub(super) keys: Arc<Keys>,
    /// A place without a value was cleared.
    pub(super) shelf: Shelf<Option<Held>>,
    /// The stored values whose key went, so that it is known of a checkpoint what is to go from it.
    pub(super) gone: Arc<BTreeMap<&'static str, Gone>>,
}

/// A stored value whose key went.
#[derive(Clone, Copy)]
pub(super) struct Gone {
    pub(super) revision: u64,
    pub(super) scope: Scope,
}

impl Snapshot {
    /// Which revision it is. Every commit that changes something makes the next one.
    pub fn revision(&self) -> u64 {
        self.0.revision
    }

    /// The value of a key; none where it was never set, was cleared, or nobody registered the key.
    pub fn get<K: StateKey>(&self) -> Option<&K::Value> {
        let slot = self.0.keys.slot(TypeId::of::<K>())?;
        self.0.shelf.get(slot)?.as_ref()?.downcast_ref()
    }

    /// All stored values of a scope. Keys that are not persistent are left out.
    pub fn export(&self, scope: Scope) -> Result<PersistedState, StateError> {
        let StateChanges { revision, set, .. } = self.export_changes(scope, 0)?;
        Ok(PersistedState { revision, values: set })
    }

    /// What changed in a scope after a revision, at the cost of what changed.
    pub fn export_changes(&self, scope: Scope, since: u64) -> Result<StateChanges, StateError> {
        let mut changes = StateChanges { revision: self.0.revision, ..StateChanges::default() };
        let later = |gone: &Gone| gone.scope == scope && gone.revision > since;
        let gone = self.0.gone.iter().filter(|(_, gone)| later(gone));
        changes.cleared.extend(gone.map(|(name, _)| (*name).to_owned()));
        let mut failed = None;
        self.0.shelf.since(since, &mut |slot, placed| {
            let stored = |key: &&Registered| key.scope == scope && key.options.persistent;
            let Some(key) = self.0.keys.at(slot).filter(stored).filter(|_| failed.is_none()) else { return };
            match placed.value.as_ref().map(|held| key.encode(held)) {
                Some(Ok(value)) => drop(changes.set.insert(key.name.to_owned(), value)),
                Some(Err(error)) => failed = Some(error),
                None => drop(changes.cleared.insert(key.name.to_owned())),
            }
        });
        failed.map_or(Ok(changes), Err)
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Snapshot(revision {})", self.0.revision)
    }
}
