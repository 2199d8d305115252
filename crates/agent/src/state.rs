//! Typed state of a run: keys, snapshots, batches that are applied whole or not at all, and what of it is stored.
//!
//! A [`StateKey`] is a type that names a value, how it changes and how two changes of it meet. A [`Snapshot`] is one frozen
//! revision; cloning it costs nothing. A [`MutationBatch`] is what somebody wants to change. A [`StateStore`] holds the
//! present revision of one run and takes batches.
//!
//! A commit costs what it touches: of other keys neither values nor places are copied. It deliberately knows no phase, no
//! plugin and no disk: a run's checkpoints are made from what is exported here.

mod batch;
mod error;
mod key;
mod keys;
mod persisted;
mod shelf;
mod snapshot;
mod store;

pub use batch::MutationBatch;
pub use error::StateError;
pub use key::{KeyOptions, Merge, Scope, StateKey};
pub(crate) use keys::{Keys, Owner};
pub use persisted::{PersistedState, StateChanges, UnknownKeyPolicy};
pub use snapshot::Snapshot;
pub use store::StateStore;
