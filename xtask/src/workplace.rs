//! The project speaks only of itself: no file names the machine that it was written on.

use crate::finding::Finding;
use crate::tree::File;

// Each is put together so that this file does not find itself.
const WORDS: [&str; 3] = [concat!("/work", "/main"), concat!("../", "shared"), concat!("/work", "/shared")];

pub(crate) fn check(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, text) in file.lines() {
        for word in WORDS.iter().filter(|word| text.contains(**word)) {
            findings.push(Finding::new(&file.path, line, format!("names the workplace: `{word}`")));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> usize {
        check(&File { path: "README.md".to_owned(), text: text.to_owned() }).len()
    }

    #[test]
    fn a_path_of_the_workplace_is_found() {
        for word in WORDS {
            assert_eq!(found(&format!("see {word}/notes")), 1, "{word}");
        }
    }

    #[test]
    fn other_paths_are_clean() {
        assert_eq!(found("workspace/main, ./shared/x and /work/other"), 0);
    }
}
