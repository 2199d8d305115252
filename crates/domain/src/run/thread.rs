//! What our own agent keeps of its conversation. Other agents keep theirs themselves, and the log has only what they tell of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `run.thread.recorded`: the agent's conversation goes on. All these events of a thread's runs, in order, are the conversation:
/// there is no other record of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadRecorded {
    /// The thread.
    pub thread: String,
    /// How many messages it had before.
    pub after: u64,
    /// What comes behind them.
    pub messages: Vec<Value>,
    /// What the agent keeps beside them from now on, by key; what it no longer keeps is `null`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub state: BTreeMap<String, Value>,
}
