//! Plugins, and the environment that they are installed on.
//!
//! An [`Environment`] is everything that an agent's runs have in common: keys, hooks, handlers, gates and tools. It holds no
//! state, so any number of runs share one. A [`Plugin`] adds to it and owns what it added.
//!
//! It deliberately loads nothing: a plugin is Rust code that the program was built with.

mod config;
mod environment;
mod registrar;

pub use config::{ConfigError, ConfigSection, InstallError, PluginConfig};
pub use environment::Environment;
pub(crate) use environment::Part;
pub use registrar::Registrar;

use std::any::Any;

/// Something that adds keys, hooks, handlers, gates and tools.
pub trait Plugin: Any + Send + Sync {
    /// Its name, unique in an environment.
    fn id(&self) -> &str;

    /// Adds what it has. When it fails, nothing of it stays.
    fn register(&self, registrar: &mut Registrar<'_>) -> Result<(), InstallError>;
}
