//! What an application developer adds: write a typed function once, and call it from the command line, as JSON, and over
//! HTTP, with the same validation, confirmation, permission, retry, logs and envelope.
//!
//! ```no_run
//! use runyard::{App, Context, action, fields};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Greet {
//!     /// Who is greeted.
//!     #[schemars(length(min = 1, max = 80))]
//!     name: String,
//! }
//!
//! /// Greets somebody by name.
//! #[action]
//! async fn greet(input: Greet, ctx: &Context) -> Result<String, runyard::ActionError> {
//!     ctx.logger().info("greeting", fields! { name: input.name });
//!     Ok(format!("Hello, {}!", input.name))
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     App::new("greeter", "Greets people.").action(greet()).main()
//! }
//! ```
//!
//! It pulls in nothing of the platform: no store, no engine. Agents of one's own, whose tools are actions, come with the
//! feature `agent`.

mod app;
mod logging;

pub use app::App;
pub use logging::start_logging;
pub use runyard_actions::*;
pub use runyard_domain::{Actor, ActorKind, ApplicationCode, Code, ErrorCode, Grants, RunId, Surface};

/// Agents of one's own: a model, instructions, and tools that are actions.
///
/// ```ignore
#[doc = include_str!("../tests/agent/guide.rs.in")]
/// ```
///
/// The model here plays a script. One of a provider is
/// `.provider_with_key(ProviderSpec::new("openai", WireKind::Responses, "https://api.openai.com/v1"), key)` with
/// `.model_spec(ModelSpec::new("demo", "openai"))`.
#[cfg(feature = "agent")]
pub mod agent {
    pub use runyard_agent::*;
}

/// The surfaces, for applications that want to put them together in their own way.
pub mod surfaces {
    pub use runyard_surfaces::*;
}
