//! An action registry on the command line, as a JSON runner, over HTTP and as a page; knows no run.
//!
//! Each surface turns what it is given into an `Invocation`, hands it to the one runtime, and shows the envelope. None of
//! them decides anything that the runtime decides.

pub mod action_docs;
pub mod cli;
mod dev;
pub mod http;
mod input_fields;
pub mod json_runner;
mod json_text;
pub mod lint;
pub mod llm_tools;
pub mod manifest;
pub mod manifest_diff;
pub mod mcp;
mod pages;
mod seal;
mod voucher;

pub use input_fields::{FieldKind, InputField, input_fields, set_field};
