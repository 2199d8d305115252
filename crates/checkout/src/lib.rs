//! A run's own copy of a workspace, what changed in it, and bringing chosen parts of that back to a person's files.
//!
//! It knows no run, no hub and no process but `git`: it is given directories and answers with what it found or did. Every file
//! below a root is opened beneath it ([`Root`]), so that no link, no `..` and no swap leads out. What changed is found by looking
//! at the files ([`compare`]), never by what an agent says.

pub mod apply;
mod archive;
mod aside;
mod base;
mod beneath;
mod binary;
mod change;
mod clashes;
mod clone;
pub mod commit;
mod compare;
mod content;
mod contents;
mod copy;
mod dotgit;
mod error;
mod git;
mod ignored;
mod index;
mod lines;
mod made;
mod merge;
mod object;
mod path;
mod renames;
mod repository;
mod retaken;
mod seen;
mod select;
mod similar;
mod unified;
mod walk;

pub use archive::Archived;
pub use aside::put_aside;
pub use base::{Base, Borrowed, Entry, ObjectFormat, Oid, Source, Stamp, borrowed};
pub use beneath::{Found, Kind, New, Read, Root};
pub use change::{
    Change, ChangeKind, Changes, ContentChange, FileMode, Hunk, Line, LineKind, Problem, ProblemKind, Version,
};
pub use clone::{discard, make};
pub use compare::{CompareLimits, FILE_BYTES_MAX, compare};
pub use content::ContentId;
pub use contents::Contents;
pub use error::CheckoutError;
pub use git::{NO_PROGRAM, NOT_LOOKED_AFTER, start_git_through};
pub use lines::{TEXT_BYTES_MAX, TEXT_LINES_MAX, hunks, is_text};
pub use made::{BYTES_MAX, DEPTH_MAX, FILES_MAX, How, Limits, Listed, Made, Options, Why};
pub use merge::{Conflict, Merged, merge};
pub use path::{BadPath, FileId, RelPath};
pub use retaken::{Retaken, retake};
pub use select::take;
pub use unified::unified;
pub use walk::{Descend, WALK_DEPTH_MAX, WALK_ENTRIES_MAX};
