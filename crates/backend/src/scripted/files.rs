//! What scripts do with the files of a run's directory.

use std::io;
use std::path::Path;

use crate::beneath;

/// How much of a file is read.
const READ_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// How many entries of a directory are looked at for its first file.
const ENTRIES_MAX: usize = 10_000;

/// Counts the lines of a file.
pub(super) fn count_lines(root: &Path, path: &str) -> io::Result<usize> {
    let bytes = beneath::read(root, path, READ_BYTES_MAX)?;
    let unfinished = bytes.last().is_some_and(|last| *last != b'\n');
    Ok(bytes.iter().filter(|byte| **byte == b'\n').count() + usize::from(unfinished))
}

/// Writes a file whole, with the folders on the way to it.
pub(super) fn write(root: &Path, path: &str, content: &str) -> io::Result<()> {
    beneath::write(root, path, content.as_bytes())
}

/// The file if it is there; else, where that will do, the first file of the directory by name.
pub(super) fn choose(root: &Path, path: &str, or_first: bool) -> io::Result<Option<String>> {
    match count_lines(root, path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        _ => return Ok(Some(path.to_owned())),
    }
    if !or_first {
        return Ok(None);
    }
    let entries = beneath::entries(root, ".", ENTRIES_MAX)?;
    let first = entries
        .entries
        .into_iter()
        .find(|entry| entry.kind == beneath::EntryKind::File && !entry.name.starts_with('.'));
    Ok(first.map(|entry| entry.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_file_stands_in_for_a_missing_one_where_that_will_do() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("in")).unwrap();
        assert_eq!(choose(root.path(), "README.md", true).unwrap(), None);
        for name in ["b.txt", "a.txt", ".hidden"] {
            std::fs::write(root.path().join(name), "").unwrap();
        }
        assert_eq!(choose(root.path(), "README.md", true).unwrap().as_deref(), Some("a.txt"));
        assert_eq!(choose(root.path(), "README.md", false).unwrap(), None);
        assert_eq!(choose(root.path(), "b.txt", true).unwrap().as_deref(), Some("b.txt"));
    }

    #[test]
    fn lines_are_counted_also_the_last_one_without_its_end() {
        let root = tempfile::tempdir().unwrap();
        for (content, lines) in [("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2)] {
            write(root.path(), "f", content).unwrap();
            assert_eq!(count_lines(root.path(), "f").unwrap(), lines, "{content:?}");
        }
    }
}
