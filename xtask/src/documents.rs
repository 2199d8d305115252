//! Documents that must exist in a given form: the generated error table, and the short map of the architecture.

use crate::finding::Finding;
use crate::sizes;
use crate::tree::Tree;

/// Generated from the error table in `runyard-domain`.
pub(crate) const ERRORS: &str = "docs/errors.md";
const ARCHITECTURE: &str = "ARCHITECTURE.md";
const ARCHITECTURE_LINES_MAX: usize = 200;

pub(crate) fn check(tree: &Tree, errors_markdown: &str) -> Vec<Finding> {
    let errors = match tree.find(ERRORS) {
        None => Some(Finding::new(ERRORS, 1, "is missing; write it with `cargo xtask errors`")),
        Some(file) => first_difference(&file.text, errors_markdown).map(|line| {
            Finding::new(
                ERRORS,
                line,
                "differs from the error table; write it again with `cargo xtask errors`",
            )
        }),
    };
    let architecture = match tree.find(ARCHITECTURE) {
        None => Some(Finding::new(ARCHITECTURE, 1, "is missing")),
        Some(file) => sizes::over(file, ARCHITECTURE_LINES_MAX),
    };
    errors.into_iter().chain(architecture).collect()
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

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files), "# Errors\n\nTIMEOUT\n").iter().map(ToString::to_string).collect()
    }

    #[test]
    fn missing_documents_are_found() {
        let expected = [
            "docs/errors.md:1: is missing; write it with `cargo xtask errors`",
            "ARCHITECTURE.md:1: is missing",
        ];
        assert_eq!(found(&[]), expected);
    }

    #[test]
    fn a_stale_error_table_is_found_at_its_first_stale_line() {
        let stale =
            "docs/errors.md:3: differs from the error table; write it again with `cargo xtask errors`";
        assert_eq!(found(&[(ERRORS, "# Errors\n\nTIMED_OUT\n"), (ARCHITECTURE, "x")]), [stale]);
    }

    #[test]
    fn a_map_that_is_too_long_is_found() {
        let long = "x\n".repeat(201);
        let expected = ["ARCHITECTURE.md:201: 201 lines, at most 200"];
        assert_eq!(found(&[(ERRORS, "# Errors\n\nTIMEOUT\n"), (ARCHITECTURE, &long)]), expected);
    }

    #[test]
    fn current_documents_are_clean() {
        let map = "x\n".repeat(200);
        assert_eq!(found(&[(ERRORS, "# Errors\n\nTIMEOUT\n"), (ARCHITECTURE, &map)]), Vec::<String>::new());
    }
}
