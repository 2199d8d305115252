//! The logs of `web/fixtures`, which Rust and TypeScript both fold, and what Rust says about them.

mod made;
mod view;

use std::collections::BTreeMap;
use std::path::PathBuf;

use runyard_domain::Event;

pub use made::{illegal, legal};
pub use view::{first_illegal, view};

use crate::typescript::web;

/// A log: its file, and its lines as they are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// The file's name below `web`, without its ending.
    pub name: String,
    /// One event a line.
    pub lines: Vec<String>,
}

impl Log {
    /// The events.
    pub fn events(&self) -> Vec<Event> {
        self.lines
            .iter()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{}: {error}", self.name)))
            .collect()
    }

    /// The file that holds it.
    pub fn path(&self) -> String {
        format!("{}.ndjson", self.name)
    }

    /// The file that holds what Rust says about it.
    pub fn view_path(&self) -> String {
        format!("{}.view.json", self.name)
    }
}

/// The logs in a folder below `web`, by name.
pub fn stored(folder: &str) -> Vec<Log> {
    let entries = std::fs::read_dir(web(folder)).unwrap();
    let paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    let mut found: BTreeMap<String, Log> = BTreeMap::new();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|ending| ending == "ndjson")) {
        let name = format!("{folder}/{}", path.file_stem().unwrap().to_str().unwrap());
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.ends_with('\n'), "{name} ends with a line");
        found.insert(name.clone(), Log { name, lines: text.lines().map(str::to_owned).collect() });
    }
    found.into_values().collect()
}
