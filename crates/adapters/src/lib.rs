//! The adapters: one folder for each kind of backend.

mod action;
pub mod codex;
mod cut;
mod jsonl;
pub mod native;
mod process;

pub use action::ActionBackend;
pub use process::version;
