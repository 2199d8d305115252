//! Typed keys: what a value is, how it changes, how long it lives.

use serde::de::DeserializeOwned;
use serde::{Deserialize as _, Serialize};
use serde_json::Value;

/// How two changes of one key meet that were made side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merge {
    /// They do not: one of them has to be made again.
    Exclusive,
    /// Both are applied, in any order.
    Commutative,
}

/// How long a value lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// As long as the run.
    Run,
    /// As long as the thread, through all of its runs.
    Thread,
}

/// A value of the state, named by a type.
///
/// An update copies the value once, so that whoever looks at an earlier revision goes on seeing it: what grows without end
/// belongs elsewhere, or behind an `Arc`.
///
/// ```
/// use runyard_agent::state::{Merge, StateKey};
///
/// struct Tally;
///
/// impl StateKey for Tally {
///     const KEY: &'static str = "shop.tally";
///     const MERGE: Merge = Merge::Commutative;
///     type Value = u64;
///     type Update = u64;
///
///     fn apply(value: &mut u64, more: u64) {
///         *value += more;
///     }
/// }
/// ```
pub trait StateKey: Send + Sync + 'static {
    /// Its name, unique in an environment and the same for ever where the value is stored.
    const KEY: &'static str;
    /// How two changes meet.
    const MERGE: Merge = Merge::Exclusive;
    /// How long the value lives.
    const SCOPE: Scope = Scope::Run;
    /// The value. Before its first change it is not there; the first change begins with the default.
    type Value: Clone + Default + Serialize + DeserializeOwned + Send + Sync + 'static;
    /// A change of it.
    type Update: Send + 'static;

    /// Changes the value. Pure: the same value and change give the same value, whenever and wherever. Of a
    /// [`Merge::Commutative`] key the order of changes must not matter.
    fn apply(value: &mut Self::Value, update: Self::Update);

    /// The value as it is stored.
    fn encode(value: &Self::Value) -> Result<Value, serde_json::Error> {
        serde_json::to_value(value)
    }

    /// The value from what was stored.
    fn decode(stored: &Value) -> Result<Self::Value, serde_json::Error> {
        Self::Value::deserialize(stored)
    }
}

/// What else is said of a key when it is registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyOptions {
    /// Whether the value is part of a checkpoint.
    pub persistent: bool,
    /// Whether the value stays when its plugin goes. The key then stays registered, without an owner, until a plugin
    /// registers the same type again.
    pub retain_on_uninstall: bool,
}

impl KeyOptions {
    /// Stored, and cleared with its plugin.
    pub const DEFAULT: KeyOptions = KeyOptions { persistent: true, retain_on_uninstall: false };

    /// The same, but never stored.
    #[must_use]
    pub const fn transient(self) -> Self {
        KeyOptions { persistent: false, ..self }
    }

    /// The same, but the value stays when its plugin goes.
    #[must_use]
    pub const fn retained(self) -> Self {
        KeyOptions { retain_on_uninstall: true, ..self }
    }
}

impl Default for KeyOptions {
    fn default() -> Self {
        Self::DEFAULT
    }
}
