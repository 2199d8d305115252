//! The typed section of an agent's definition that a plugin reads.

use runyard_actions::Schema;
use runyard_domain::Code;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::state::StateError;

/// A section of an agent's definition, as a type. Where it is absent, the default counts.
pub trait PluginConfig: DeserializeOwned + JsonSchema + Default {
    /// The section's name.
    const KEY: &'static str;
}

/// A section that a plugin reads.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigSection {
    /// Which plugin.
    pub plugin: String,
    /// The section's name.
    pub key: &'static str,
    /// Its JSON Schema.
    pub schema: Value,
}

/// A section that is there and not as the plugin wants it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the section \"{key}\" of plugin \"{plugin}\" is wrong: {message}")]
pub struct ConfigError {
    /// Which plugin.
    pub plugin: String,
    /// The section's name.
    pub key: String,
    /// What is wrong, and where.
    pub message: String,
}

/// Why a plugin cannot be installed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InstallError {
    /// It collides with what is there.
    #[error(transparent)]
    State(#[from] StateError),
    /// Its section is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

impl InstallError {
    /// Its row in the error table.
    pub const fn code(&self) -> Code {
        match self {
            Self::State(error) => error.code(),
            Self::Config(_) => Code::ResolveInvalidPluginConfig,
        }
    }
}

/// Reads a section: against the schema first, since that finds everything that is wrong and where.
pub(super) fn read<C: PluginConfig>(plugin: &str, section: Option<&Value>) -> Result<C, ConfigError> {
    let Some(section) = section else { return Ok(C::default()) };
    let wrong = |message| ConfigError { plugin: plugin.to_owned(), key: C::KEY.to_owned(), message };
    match Schema::of_input::<C>().issues(section) {
        Ok(issues) if issues.is_empty() => C::deserialize(section).map_err(|error| wrong(error.to_string())),
        Ok(issues) => Err(wrong(issues.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))),
        Err(reason) => Err(wrong(format!("its schema does not compile: {reason}"))),
    }
}
