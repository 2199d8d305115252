//! Why a phase did not come to its end.

use std::error::Error;

use runyard_domain::Code;

use super::Phase;
use crate::state::StateError;

/// Why a hook, a handler or a gate failed: any error of its own.
pub type Fault = Box<dyn Error + Send + Sync>;

/// Why a phase did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum PhaseError {
    /// The state, or the rules of phases, do not allow it.
    #[error(transparent)]
    State(#[from] StateError),
    /// A hook or a gate failed. What it answers is not known, so nothing goes on as if it had agreed.
    #[error("\"{plugin}\" failed at {phase}")]
    Failed {
        /// Who registered it.
        plugin: String,
        /// When.
        phase: Phase,
        /// Why.
        #[source]
        fault: Fault,
    },
    /// A hook, a gate or a key's own code panicked.
    #[error("\"{plugin}\" {message} at {phase}")]
    Panicked {
        /// Who registered it.
        plugin: String,
        /// When.
        phase: Phase,
        /// What the panic said.
        message: String,
    },
}

impl PhaseError {
    /// Its row in the error table: the state error's own, else that of a fault of the program.
    pub const fn code(&self) -> Code {
        match self {
            Self::State(error) => error.code(),
            Self::Failed { .. } | Self::Panicked { .. } => Code::InternalError,
        }
    }

    /// What a hook or gate of `plugin` failed with; a state error stays one.
    pub(super) fn of(plugin: String, phase: Phase, fault: Fault) -> Self {
        match fault.downcast::<StateError>() {
            Ok(error) => PhaseError::State(*error),
            Err(fault) => PhaseError::Failed { plugin, phase, fault },
        }
    }
}
