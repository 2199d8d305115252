//! The repository's own files, read once. Knows nothing about what is checked in them.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

/// Folders that hold no source, for a checkout without git.
const SKIPPED_FOLDERS: [&str; 4] = [".git", ".venv", "node_modules", "target"];

/// A file of the repository; bytes that are not UTF-8 are replaced.
#[derive(Debug, Clone)]
pub(crate) struct File {
    /// Relative to the root, with `/` between folders.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    pub(crate) fn is_rust(&self) -> bool {
        self.extension() == Some("rs")
    }

    pub(crate) fn extension(&self) -> Option<&str> {
        self.path.rsplit_once('.').map(|(_, extension)| extension)
    }

    /// The lines with their numbers, from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    /// Whether one of the folders on the way to the file has this name.
    pub(crate) fn is_under(&self, folder: &str) -> bool {
        self.path.rsplit_once('/').is_some_and(|(folders, _)| folders.split('/').any(|name| name == folder))
    }
}

/// What git tracks, and what it would track if it were added.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) files: Vec<File>,
}

impl Tree {
    pub(crate) fn read(root: &Path) -> anyhow::Result<Self> {
        let mut paths = listed_by_git(root).or_else(|_| listed_by_walking(root))?;
        paths.sort();
        paths.dedup();
        let mut files = Vec::with_capacity(paths.len());
        for path in paths {
            let full = root.join(&path);
            // A file that was deleted but not staged is still listed, and a link may point to a folder.
            if full.is_file() {
                let bytes = std::fs::read(&full).with_context(|| format!("cannot read {path}"))?;
                files.push(File { path, text: String::from_utf8_lossy(&bytes).into_owned() });
            }
        }
        Ok(Self { files })
    }

    pub(crate) fn find(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    pub(crate) fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.is_rust())
    }

    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|&(path, text)| File { path: path.to_owned(), text: text.to_owned() });
        Self { files: files.collect() }
    }
}

fn listed_by_git(root: &Path) -> anyhow::Result<Vec<String>> {
    let output = Command::new("git")
        // In a container the checkout may belong to another user.
        .args(["-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .context("cannot run git")?;
    if !output.status.success() {
        bail!("git ls-files failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let listed = String::from_utf8_lossy(&output.stdout);
    Ok(listed.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect())
}

fn listed_by_walking(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    let mut waiting = vec![String::new()];
    while let Some(folder) = waiting.pop() {
        let full = root.join(&folder);
        for entry in std::fs::read_dir(&full).with_context(|| format!("cannot list {}", full.display()))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            let kind = entry.file_type()?;
            if kind.is_file() {
                found.push(path);
            } else if kind.is_dir() && !SKIPPED_FOLDERS.contains(&name.as_str()) {
                waiting.push(path);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_matched_by_its_whole_name() {
        let tree = Tree::of(&[("crates/actions/tests/retry.rs", ""), ("crates/contests/src/tests.rs", "")]);
        let under: Vec<bool> = tree.files.iter().map(|file| file.is_under("tests")).collect();
        assert_eq!(under, [true, false]);
    }

    #[test]
    fn walking_finds_this_file_and_no_build_output() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let found = listed_by_walking(root).unwrap();
        assert!(found.contains(&"src/tree.rs".to_owned()), "{found:?}");
        assert!(!found.iter().any(|path| path.starts_with("target/")), "{found:?}");
    }
}
