//! What agents, models and providers are, as data: what a file, a form or a builder says.
//!
//! A spec is looked at by itself here, without knowing what else is registered ([`SpecError`]). What it names is found when an
//! agent is resolved. No spec holds a secret: a key is given beside it ([`ApiKey`]).

mod agent;
mod check;
mod key;
mod model;
mod pattern;
mod provider;

pub use agent::{AgentSpec, EndpointSpec, ToolFilter};
pub(crate) use check::check_id;
pub use check::{ID_CHARS_MAX, LIST_MAX, SpecError};
pub use key::ApiKey;
pub use model::{ModelSpec, ThinkingForm, WireOptions};
pub use provider::{ProviderSpec, WireKind};
