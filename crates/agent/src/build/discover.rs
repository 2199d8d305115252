//! Agents that are found: a folder with a definition in each file.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::DiscoveryError;
use crate::spec::AgentSpec;

/// The most files of one folder that are looked at.
pub const FOLDER_FILES_MAX: usize = 4_096;
/// The most bytes of one definition.
pub const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The agents of a folder: one in each `*.toml` and `*.json`, in the order of the files' names. Other files, and hidden ones,
/// are none.
pub(super) fn folder(folder: &Path) -> Result<Vec<AgentSpec>, DiscoveryError> {
    let unreadable = |source| DiscoveryError::Unreadable { path: folder.to_owned(), source };
    let mut paths = Vec::new();
    for (entry, number) in fs::read_dir(folder).map_err(unreadable)?.zip(0..) {
        if number >= FOLDER_FILES_MAX {
            let what = format!("it has more than {FOLDER_FILES_MAX} files");
            return Err(unreadable(io::Error::other(what)));
        }
        let path = entry.map_err(unreadable)?.path();
        let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if !is_hidden && format_of(&path).is_some() {
            paths.push(path);
        }
    }
    paths.sort();
    paths.into_iter().map(file).collect()
}

#[derive(Clone, Copy)]
enum Format {
    Toml,
    Json,
}

fn format_of(path: &Path) -> Option<Format> {
    match path.extension().and_then(OsStr::to_str) {
        Some("toml") => Some(Format::Toml),
        Some("json") => Some(Format::Json),
        _ => None,
    }
}

fn file(path: PathBuf) -> Result<AgentSpec, DiscoveryError> {
    let text = match text(&path) {
        Ok(text) => text,
        Err(source) => return Err(DiscoveryError::Unreadable { path, source }),
    };
    let read = match format_of(&path) {
        Some(Format::Json) => serde_json::from_str(&text).map_err(|error| error.to_string()),
        Some(Format::Toml) | None => toml::from_str(&text).map_err(|error| error.to_string()),
    };
    let spec: Result<AgentSpec, String> =
        read.and_then(|spec: AgentSpec| spec.check().map(|()| spec).map_err(|error| error.to_string()));
    spec.map_err(|message| DiscoveryError::InvalidFile { path, message })
}

fn text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    fs::File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(io::Error::other(format!("it has more than {FILE_BYTES_MAX} bytes")));
    }
    Ok(text)
}
