//! Next to the files: workspaces, checkouts, process custody, and the sessions of the backends.
//!
//! An [`Edge`] accepts the runs that the hub hands it over a link, prepares a checkout of its own for each, drives the backend in
//! it, takes secrets and private paths out of what the backend says, and judges by the gate what needs no person. It keeps no
//! record of its own: what is durable is what the hub said is. Each run has one directory, `runs/<run id>` in the edge's home:
//! `checkout`, `base`, `applied`, `home` (with `tmp`), `notes`, `custody.lock`, `owner.json`, and `collected.json` once its checkout is gone.

mod applying;
mod asks;
mod blocking;
mod check;
mod collecting;
pub mod custody;
mod digest;
mod disk;
mod edge;
mod ending;
mod error;
mod gateway;
mod granted;
mod journal;
mod metered;
mod outbox;
mod owner;
mod places;
mod policies;
mod prepare;
mod private;
mod private_files;
mod projection;
mod raw;
mod review;
pub mod sandbox;
mod scribe;
mod secret;
mod secrets;
mod session;
mod session_home;
mod setup;
mod supervision;
mod usage;
mod workspaces;

pub use collecting::{AppliedJournal, CarryOut, Collected, Collecting, Kept, Safe};
pub use edge::{Edge, EdgeOptions, SESSIONS_MAX};
pub use error::EdgeError;
pub use owner::{Gone, Owner};
pub use projection::check_projection;
pub use secret::Secret;
pub use secrets::{BadForm, ProfileSecrets, SECRET_BYTES_MAX, Secrets, SecretsError, Seen, check_form};
pub use supervision::{Supervision, Supervisors};
pub use usage::{Usage, runs, size_of_directory, usage};
pub use workspaces::{AllowList, LABEL_BYTES_MAX, WORKSPACES_MAX};
