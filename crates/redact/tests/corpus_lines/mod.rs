//! The labelled lines of `corpus`, as the tests read them.

use std::path::{Path, PathBuf};

use runyard_redact::{Kind, Known, Redactor, TagKey};
use serde::Deserialize;

#[derive(Deserialize)]
pub(crate) struct Line {
    pub(crate) label: Label,
    pub(crate) text: String,
    /// What must not be there afterwards.
    pub(crate) secrets: Vec<String>,
    /// What must be.
    #[allow(dead_code, reason = "not every test asks for it")]
    pub(crate) keep: Vec<String>,
    /// Values that are known to be secret.
    #[serde(default)]
    pub(crate) known: Vec<String>,
    pub(crate) note: String,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Label {
    Secret,
    Ordinary,
}

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

pub(crate) fn read(folder: &Path, kind: Kind) -> Vec<Line> {
    let file = folder.join(kind.word()).with_extension("jsonl");
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub(crate) fn redactor(known: &[String]) -> Redactor {
    let known = known.iter().map(|value| Known::value(value.as_str()));
    Redactor::builder(TagKey::from_bytes([7; 32])).known(known).build().unwrap()
}
