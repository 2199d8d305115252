//! Runyard's words as types.
//!
//! What a run, an action, a surface and an error *are*, and nothing that does anything: no async, no I/O, no clock.
//! Every other crate speaks in these types.

mod actor;
mod blob;
mod errors;
mod event;
mod ids;
mod surface;
mod time;

pub use actor::{Actor, ActorKind, Grants};
pub use blob::{BlobId, InvalidBlobId};
pub use errors::{ApplicationCode, Class, Code, ErrorCode, InvalidCode, Retry, Row, errors_markdown};
pub use event::Event;
pub use ids::{AppendId, ApprovalId, ArtifactId, EventId, InvalidId, InvocationId, RunId, SessionId};
pub use surface::{Surface, UnknownSurface};
pub use time::{InvalidTimestamp, Timestamp};
