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
//! It pulls in nothing of the platform: no store, no engine, no agent.

mod app;
mod logging;

pub use app::App;
pub use logging::start_logging;
pub use runyard_actions::*;
pub use runyard_domain::{Actor, ActorKind, ApplicationCode, Code, ErrorCode, Grants, RunId, Surface};

/// The surfaces, for applications that want to put them together in their own way.
pub mod surfaces {
    pub use runyard_surfaces::*;
}
