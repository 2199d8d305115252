//! What can go wrong before the provider serves. Once it serves, its failures are scenarios.

use std::{io, net::SocketAddr, path::PathBuf};

/// Why a provider did not start.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// The address could be reached by others, and the log of requests holds keys.
    #[error("{address} is not a loopback address")]
    NotLoopback {
        /// The address that was asked for.
        address: SocketAddr,
    },
    /// The address could not be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address that was asked for.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The threads that serve could not be started.
    #[error("cannot start the provider's runtime")]
    Runtime {
        /// What the system said.
        source: io::Error,
    },
    /// A scenario file or the directory of scenarios could not be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A scenario is not what a scenario looks like.
    #[error("the scenario `{name}` does not parse")]
    Parse {
        /// The scenario's name, which is its file's.
        name: String,
        /// What the parser said.
        source: Box<toml::de::Error>,
    },
    /// A scenario has no step.
    #[error("the scenario `{name}` has no step")]
    NoStep {
        /// The scenario's name.
        name: String,
    },
    /// A directory holds more scenarios than one may.
    #[error("{} holds more than {max} scenarios", path.display())]
    TooMany {
        /// The directory.
        path: PathBuf,
        /// How many it may hold.
        max: usize,
    },
    /// A scenario has more steps than one may have.
    #[error("the scenario `{name}` has {steps} steps; {max} are allowed")]
    TooManySteps {
        /// The scenario's name.
        name: String,
        /// How many steps it has.
        steps: usize,
        /// How many it may have.
        max: usize,
    },
    /// A step without a tool call is followed by another, which could never be reached.
    #[error("step {step} of the scenario `{name}` calls no tool, so what follows it is never reached")]
    Unreachable {
        /// The scenario's name.
        name: String,
        /// The step that calls no tool, from 1.
        step: usize,
    },
    /// A step has more deltas than one answer may have.
    #[error("step {step} of the scenario `{name}` has {deltas} deltas; {max} are allowed")]
    TooLong {
        /// The scenario's name.
        name: String,
        /// The step, from 1.
        step: usize,
        /// How many deltas it would send.
        deltas: usize,
        /// How many it may send.
        max: usize,
    },
    /// A step refuses with a status that is no refusal.
    #[error("step {step} of the scenario `{name}` refuses with {status}; 400 to 599 are refusals")]
    NoRefusal {
        /// The scenario's name.
        name: String,
        /// The step, from 1.
        step: usize,
        /// The status it names.
        status: u16,
    },
}
