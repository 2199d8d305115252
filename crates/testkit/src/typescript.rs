//! The types of the TypeScript client, made from the same types and tables that Rust is built on.
//!
//! It writes text and reads nothing but what it is given; the tests that call it compare the text with the files of
//! `web/packages/client/src/generated`, and write them where [`WRITE`] is set.

mod actions;
mod checking;
pub mod emitter;
mod errors;
mod events;
pub mod lifecycle;
mod samples;
pub mod schemas;

use std::path::PathBuf;

pub use actions::actions;
pub use checking::{answer_problems, problems};
pub use errors::errors;
pub use events::{Payloads, events};
pub use samples::stored;

/// The variable of the environment that lets the tests write what they would compare.
pub const WRITE: &str = "RUNYARD_WRITE_GENERATED";

/// What every generated file begins with.
const HEAD: &str = "// Generated from the Rust types: do not edit. Made again by
// RUNYARD_WRITE_GENERATED=1 cargo test -p runyard-testkit -p runyard-cli --test typescript
";

/// A path below `web`.
pub fn web(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../web")).join(path)
}

/// Compares a file with what it should hold, or writes it where that is wanted.
#[track_caller]
pub fn check_generated(path: &str, text: &str) {
    let file = web(path);
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    if found != text && std::env::var_os(WRITE).is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, text).unwrap();
        return;
    }
    let same = found.lines().zip(text.lines()).take_while(|(found, wanted)| found == wanted).count();
    assert!(
        found == text,
        "web/{path} is out of date from line {}: run the test again with {WRITE}=1\n  is:        {:?}\n  should be: {:?}",
        same + 1,
        found.lines().nth(same),
        text.lines().nth(same)
    );
}
