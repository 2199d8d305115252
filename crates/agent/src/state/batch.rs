//! Changes that are applied together.

use std::any::TypeId;
use std::collections::HashSet;
use std::sync::Arc;

use super::keys::Held;
use super::{Merge, StateError, StateKey};

/// Changes that are applied together, whole or not at all.
///
/// One that was made for a revision is refused at any other. One that was not is applied to whatever is there.
#[derive(Default)]
pub struct MutationBatch {
    base_revision: Option<u64>,
    changes: Vec<Change>,
}

/// A change of one key.
pub(super) struct Change {
    pub(super) key: &'static str,
    pub(super) type_id: TypeId,
    merge: Merge,
    pub(super) update: Box<dyn AnyUpdate>,
}

/// A change of a value whose type is not known here.
pub(super) trait AnyUpdate: Send {
    fn apply(self: Box<Self>, held: Option<Held>) -> Held;
}

struct Update<K: StateKey>(K::Update);

impl<K: StateKey> AnyUpdate for Update<K> {
    fn apply(self: Box<Self>, held: Option<Held>) -> Held {
        let held = held.and_then(|held| held.downcast::<K::Value>().ok());
        let mut value = held.unwrap_or_default();
        // Copies the value where somebody else holds it: the present revision does, until this one is whole.
        K::apply(Arc::make_mut(&mut value), self.0);
        value
    }
}

impl MutationBatch {
    /// No change yet, for whatever revision there is.
    pub fn new() -> Self {
        MutationBatch::default()
    }

    /// No change yet, for this revision alone.
    pub fn based_on(revision: u64) -> Self {
        MutationBatch { base_revision: Some(revision), changes: Vec::new() }
    }

    /// Adds a change.
    pub fn update<K: StateKey>(&mut self, update: K::Update) {
        self.changes.push(Change {
            key: K::KEY,
            type_id: TypeId::of::<K>(),
            merge: K::MERGE,
            update: Box::new(Update::<K>(update)),
        });
    }

    /// The same batch and one more change.
    #[must_use]
    pub fn with<K: StateKey>(mut self, update: K::Update) -> Self {
        self.update::<K>(update);
        self
    }

    /// The revision that it was made for.
    pub fn base_revision(&self) -> Option<u64> {
        self.base_revision
    }

    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// The names of the keys that it changes, each once, in the order of their first change.
    pub fn touched_keys(&self) -> Vec<&'static str> {
        let mut seen = HashSet::new();
        self.changes.iter().map(|change| change.key).filter(|key| seen.insert(*key)).collect()
    }

    /// This batch, then the other one, as one.
    pub fn merge(mut self, other: MutationBatch) -> Result<MutationBatch, StateError> {
        self.base_revision = common_base(self.base_revision, other.base_revision)?;
        self.changes.extend(other.changes);
        Ok(self)
    }

    /// Two batches that were made side by side, as one: refused where both change the same exclusive key.
    pub fn merge_parallel(self, other: MutationBatch) -> Result<MutationBatch, StateError> {
        common_base(self.base_revision, other.base_revision)?;
        match self.conflict(&other) {
            Some(key) => Err(StateError::ParallelMergeConflict { key: key.to_owned() }),
            None => self.merge(other),
        }
    }

    /// The first exclusive key that both change.
    pub(crate) fn conflict(&self, other: &MutationBatch) -> Option<&'static str> {
        if self.is_empty() || other.is_empty() {
            return None;
        }
        let mine: HashSet<TypeId> = self.exclusive().map(|(key, _)| key).collect();
        other.exclusive().find(|(key, _)| mine.contains(key)).map(|(_, name)| name)
    }

    /// The exclusive keys that it changes, and their names.
    pub(crate) fn exclusive(&self) -> impl Iterator<Item = (TypeId, &'static str)> {
        let exclusive = self.changes.iter().filter(|change| change.merge == Merge::Exclusive);
        exclusive.map(|change| (change.type_id, change.key))
    }

    /// The same for whatever revision there is, where it was made for this one.
    #[must_use]
    pub(crate) fn not_only_for(mut self, revision: u64) -> Self {
        self.base_revision = self.base_revision.filter(|base| *base != revision);
        self
    }

    pub(super) fn changes(&self) -> &[Change] {
        &self.changes
    }

    pub(super) fn into_changes(self) -> Vec<Change> {
        self.changes
    }
}

fn common_base(left: Option<u64>, right: Option<u64>) -> Result<Option<u64>, StateError> {
    match (left, right) {
        (Some(left), Some(right)) if left != right => {
            Err(StateError::MutationBaseRevisionMismatch { left, right })
        }
        (left, right) => Ok(left.or(right)),
    }
}

impl std::fmt::Debug for MutationBatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MutationBatch")
            .field("base_revision", &self.base_revision)
            .field("touched_keys", &self.touched_keys())
            .finish()
    }
}
