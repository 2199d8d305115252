//! Documents that must exist in a given form: the generated ones, and the short map of the architecture.

use crate::finding::Finding;
use crate::sizes;
use crate::tree::Tree;

pub(crate) const ERRORS: &str = "docs/errors.md";
pub(crate) const VOCABULARY: &str = "docs/vocabulary.md";
const ARCHITECTURE: &str = "ARCHITECTURE.md";
const ARCHITECTURE_LINES_MAX: usize = 200;

/// A document that is made from the source.
#[derive(Debug)]
pub(crate) struct Generated {
    pub(crate) path: &'static str,
    /// What it is made from.
    pub(crate) source: &'static str,
    /// The command that writes it.
    pub(crate) command: &'static str,
    pub(crate) text: String,
}

impl Generated {
    /// Made from the error table in `runyard-domain`.
    pub(crate) fn errors(text: String) -> Self {
        Generated { path: ERRORS, source: "the error table", command: "errors", text }
    }

    /// Made from the types in `runyard-domain`, and the words of this tool.
    pub(crate) fn vocabulary(text: String) -> Self {
        Generated { path: VOCABULARY, source: "the vocabulary", command: "vocabulary", text }
    }

    pub(crate) fn check(&self, tree: &Tree) -> Option<Finding> {
        let Generated { path, source, command, text } = self;
        let Some(file) = tree.find(path) else {
            return Some(Finding::new(path, 1, format!("is missing; write it with `cargo xtask {command}`")));
        };
        let line = first_difference(&file.text, text)?;
        let message = format!("differs from {source}; write it again with `cargo xtask {command}`");
        Some(Finding::new(path, line, message))
    }
}

pub(crate) fn check(tree: &Tree, generated: &[Generated]) -> Vec<Finding> {
    let architecture = match tree.find(ARCHITECTURE) {
        None => Some(Finding::new(ARCHITECTURE, 1, "is missing")),
        Some(file) => sizes::over(file, ARCHITECTURE_LINES_MAX),
    };
    generated.iter().filter_map(|document| document.check(tree)).chain(architecture).collect()
}

/// The first line, from 1, in which two texts differ.
fn first_difference(left: &str, right: &str) -> Option<usize> {
    if left == right {
        return None;
    }
    let same = left.split('\n').zip(right.split('\n')).take_while(|(left, right)| left == right).count();
    Some(same + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: (&str, &str) = (VOCABULARY, "# Vocabulary\n");

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let generated = [
            Generated::errors("# Errors\n\nTIMEOUT\n".to_owned()),
            Generated::vocabulary("# Vocabulary\n".to_owned()),
        ];
        check(&Tree::of(files), &generated).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn missing_documents_are_found() {
        let expected = [
            "docs/errors.md:1: is missing; write it with `cargo xtask errors`",
            "docs/vocabulary.md:1: is missing; write it with `cargo xtask vocabulary`",
            "ARCHITECTURE.md:1: is missing",
        ];
        assert_eq!(found(&[]), expected);
    }

    #[test]
    fn a_stale_document_is_found_at_its_first_stale_line() {
        let stale =
            "docs/errors.md:3: differs from the error table; write it again with `cargo xtask errors`";
        assert_eq!(found(&[(ERRORS, "# Errors\n\nTIMED_OUT\n"), WORDS, (ARCHITECTURE, "x")]), [stale]);
        let stale =
            "docs/vocabulary.md:2: differs from the vocabulary; write it again with `cargo xtask vocabulary`";
        let errors = (ERRORS, "# Errors\n\nTIMEOUT\n");
        assert_eq!(found(&[errors, (VOCABULARY, "# Vocabulary\nmore\n"), (ARCHITECTURE, "x")]), [stale]);
    }

    #[test]
    fn a_map_that_is_too_long_is_found() {
        let long = "x\n".repeat(201);
        let expected = ["ARCHITECTURE.md:201: 201 lines, at most 200"];
        assert_eq!(found(&[(ERRORS, "# Errors\n\nTIMEOUT\n"), WORDS, (ARCHITECTURE, &long)]), expected);
    }

    #[test]
    fn current_documents_are_clean() {
        let map = "x\n".repeat(200);
        assert_eq!(
            found(&[(ERRORS, "# Errors\n\nTIMEOUT\n"), WORDS, (ARCHITECTURE, &map)]),
            Vec::<String>::new()
        );
    }
}
