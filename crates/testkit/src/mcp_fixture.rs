//! The application that MCP's conformance suite and real MCP clients are pointed at, built only on the public `runyard` crate.
//!
//! The suite names its tools, prompts and resources, so their names and answers are the suite's. What it does not look at, and
//! clients do (confirmation, cancellation), stands in `waits`. It decides nothing itself: all that is proven is proven of the
//! surface.

mod asks;
mod prompts;
mod reads;
mod rounds;
mod server;
mod shows;
mod tasks;
mod tells;
mod waits;

use runyard::surfaces::mcp::Changes;
use runyard::{Action, App, DefinitionError, Exposure, Surface};

pub use self::server::{FixtureServer, TOKEN, Tokens};

/// A 1x1 red image.
const IMAGE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8/5+hHgAHggJ/PchI7wAAAABJRU5ErkJggg==";
/// A sound without a sample.
const AUDIO: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";

/// What a definition gives.
type Defined = Result<Action, DefinitionError>;

/// The application; what it tells of changes goes there.
pub fn mcp_fixture(changes: Changes) -> App {
    App::new("mcp-fixture", "The application that MCP clients are tried on.")
        .version(env!("CARGO_PKG_VERSION"))
        .service(changes.clone())
        .changes(changes)
        .service(waits::Hanging::default())
        .exposure(Exposure::new().destructive("erase", [Surface::Http, Surface::Mcp]))
        .actions(shows::actions())
        .actions(tells::actions())
        .actions(asks::actions())
        .actions(rounds::actions())
        .actions(reads::actions())
        .actions(prompts::actions())
        .actions(tasks::actions())
        .actions(waits::actions())
}
