//! Runyard's words as types.
//!
//! What a run, an action, a surface and an error *are*, and nothing that does anything: no async, no I/O, no clock.
//! Every other crate speaks in these types.

mod actor;
mod errors;
mod ids;
mod surface;

pub use actor::{Actor, ActorKind, Grants};
pub use errors::{ApplicationCode, Class, Code, ErrorCode, InvalidCode, Retry, Row, errors_markdown};
pub use ids::{ArtifactId, InvalidId, InvocationId, RunId};
pub use surface::{Surface, UnknownSurface};
