//! State as it is stored: all of a scope, or what changed in it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The stored values of one scope.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PersistedState {
    /// The revision that they are of.
    pub revision: u64,
    /// Each value by its key's name.
    pub values: BTreeMap<String, Value>,
}

/// What changed in one scope between two revisions, as it is stored.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StateChanges {
    /// The later revision.
    pub revision: u64,
    /// Each value that was set since, by its key's name.
    pub set: BTreeMap<String, Value>,
    /// The names of the keys whose value is gone since.
    pub cleared: BTreeSet<String>,
}

/// What to do with a stored value whose key nobody registered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UnknownKeyPolicy {
    /// Refuse all of it.
    #[default]
    Error,
    /// Leave that value out.
    Skip,
}

impl PersistedState {
    /// Brings it to a later revision.
    pub fn apply(&mut self, changes: StateChanges) {
        self.revision = changes.revision;
        for key in &changes.cleared {
            self.values.remove(key);
        }
        self.values.extend(changes.set);
    }
}

impl StateChanges {
    /// Whether nothing changed that is stored.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty() && self.cleared.is_empty()
    }
}
