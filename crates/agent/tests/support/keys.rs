//! Keys that all tests share: one of each merge mode and each scope.
#![allow(dead_code, reason = "each test uses some of it")]

use std::collections::BTreeMap;

use runyard_agent::state::{Merge, Scope, StateKey};
use serde_json::Value;

/// A sum: any order of additions is the same.
pub(crate) struct Tally;

impl StateKey for Tally {
    const KEY: &'static str = "test.tally";
    const MERGE: Merge = Merge::Commutative;
    type Value = i64;
    type Update = i64;

    fn apply(value: &mut i64, more: i64) {
        *value = value.wrapping_add(more);
    }
}

/// The last word counts, so two words side by side do not go together.
pub(crate) struct Label;

impl StateKey for Label {
    const KEY: &'static str = "test.label";
    type Value = String;
    type Update = String;

    fn apply(value: &mut String, word: String) {
        *value = word;
    }
}

/// What a thread remembers. A word that starts with a bang cannot be stored.
pub(crate) struct Memory;

impl StateKey for Memory {
    const KEY: &'static str = "test.memory";
    const MERGE: Merge = Merge::Commutative;
    const SCOPE: Scope = Scope::Thread;
    type Value = BTreeMap<String, u32>;
    type Update = (String, u32);

    fn apply(value: &mut Self::Value, (word, count): (String, u32)) {
        let known = value.entry(word).or_default();
        *known = (*known).max(count);
    }

    fn encode(value: &Self::Value) -> Result<Value, serde_json::Error> {
        match value.keys().any(|word| word.starts_with('!')) {
            true => Err(serde::ser::Error::custom("it cannot be stored")),
            false => serde_json::to_value(value),
        }
    }
}
