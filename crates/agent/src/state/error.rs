//! What can be wrong with state, plugins and phases.

use runyard_domain::Code;

use crate::phase::Phase;

/// What is wrong with state, a plugin or a phase.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// The batch was made for another revision than the present one.
    #[error("the state is at revision {actual}, and the batch was made for {expected}")]
    RevisionConflict {
        /// What the batch was made for.
        expected: u64,
        /// The present one.
        actual: u64,
    },
    /// Two batches that were made for different revisions cannot be one.
    #[error("one batch was made for revision {left}, the other for {right}")]
    MutationBaseRevisionMismatch {
        /// What the first was made for.
        left: u64,
        /// What the second was made for.
        right: u64,
    },
    /// A plugin of this type or id is installed already.
    #[error("the plugin \"{name}\" is installed already")]
    PluginAlreadyInstalled {
        /// Its id.
        name: String,
    },
    /// No plugin of this type is installed.
    #[error("no plugin of type {type_name} is installed")]
    PluginNotInstalled {
        /// The Rust type.
        type_name: &'static str,
    },
    /// Two keys have the same name.
    #[error("the state key \"{key}\" is registered already")]
    KeyAlreadyRegistered {
        /// The name.
        key: String,
    },
    /// Nobody registered the key.
    #[error("the state key \"{key}\" is not registered")]
    UnknownKey {
        /// Its name.
        key: String,
    },
    /// A stored value does not read back.
    #[error("the stored value of \"{key}\" does not read back: {message}")]
    KeyDecode {
        /// The key.
        key: String,
        /// Why not.
        message: String,
    },
    /// A value cannot be stored.
    #[error("the value of \"{key}\" cannot be stored: {message}")]
    KeyEncode {
        /// The key, or the scheduled action.
        key: String,
        /// Why not.
        message: String,
    },
    /// Two handlers for one scheduled action.
    #[error("the scheduled action \"{key}\" has a handler already")]
    HandlerAlreadyRegistered {
        /// The action.
        key: String,
    },
    /// Two handlers for one effect.
    #[error("the effect \"{key}\" has a handler already")]
    EffectHandlerAlreadyRegistered {
        /// The effect.
        key: String,
    },
    /// Handling the actions of a phase schedules ever more of them.
    #[error("phase {phase} has not come to rest after {max_rounds} rounds")]
    PhaseRunLoopExceeded {
        /// The phase.
        phase: Phase,
        /// How many rounds it had.
        max_rounds: usize,
    },
    /// Nobody handles the scheduled action.
    #[error("the scheduled action \"{key}\" has no handler")]
    UnknownScheduledActionHandler {
        /// The action.
        key: String,
    },
    /// Nobody handles the effect.
    #[error("the effect \"{key}\" has no handler")]
    UnknownEffectHandler {
        /// The effect.
        key: String,
    },
    /// Two batches that were made side by side change the same exclusive key.
    #[error("two changes side by side meet at the exclusive key \"{key}\"")]
    ParallelMergeConflict {
        /// The key.
        key: String,
    },
    /// Two tools have the same id.
    #[error("the tool \"{tool_id}\" is registered already")]
    ToolAlreadyRegistered {
        /// The id.
        tool_id: String,
    },
    /// Whoever asked does not want it any more.
    #[error("cancelled")]
    Cancelled,
}

impl StateError {
    /// Its row in the error table.
    pub const fn code(&self) -> Code {
        match self {
            Self::RevisionConflict { .. } => Code::StateRevisionConflict,
            Self::MutationBaseRevisionMismatch { .. } => Code::StateMutationBaseRevisionMismatch,
            Self::PluginAlreadyInstalled { .. } => Code::StatePluginAlreadyInstalled,
            Self::PluginNotInstalled { .. } => Code::StatePluginNotInstalled,
            Self::KeyAlreadyRegistered { .. } => Code::StateKeyAlreadyRegistered,
            Self::UnknownKey { .. } => Code::StateUnknownKey,
            Self::KeyDecode { .. } => Code::StateKeyDecode,
            Self::KeyEncode { .. } => Code::StateKeyEncode,
            Self::HandlerAlreadyRegistered { .. } => Code::StateHandlerAlreadyRegistered,
            Self::EffectHandlerAlreadyRegistered { .. } => Code::StateEffectHandlerAlreadyRegistered,
            Self::PhaseRunLoopExceeded { .. } => Code::StatePhaseRunLoopExceeded,
            Self::UnknownScheduledActionHandler { .. } => Code::StateUnknownScheduledActionHandler,
            Self::UnknownEffectHandler { .. } => Code::StateUnknownEffectHandler,
            Self::ParallelMergeConflict { .. } => Code::StateParallelMergeConflict,
            Self::ToolAlreadyRegistered { .. } => Code::StateToolAlreadyRegistered,
            Self::Cancelled => Code::StateCancelled,
        }
    }
}
