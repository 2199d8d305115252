//! Limits on the length of files. Says nothing about functions: clippy and reviewers do.

use crate::finding::Finding;
use crate::tree::File;

const SOURCE_LINES_MAX: usize = 600;
const TEST_LINES_MAX: usize = 1000;

pub(crate) fn check(file: &File) -> Option<Finding> {
    let is_script = matches!(file.extension(), Some("ts" | "tsx" | "mjs")) && !file.is_under("generated");
    if !file.is_rust() && !is_script {
        return None;
    }
    let is_test = ["tests", "test", "benches", "browser"].into_iter().any(|folder| file.is_under(folder));
    over(file, if is_test { TEST_LINES_MAX } else { SOURCE_LINES_MAX })
}

/// A finding at the first line past the limit.
pub(crate) fn over(file: &File, lines_max: usize) -> Option<Finding> {
    let lines = file.text.lines().count();
    (lines > lines_max)
        .then(|| Finding::new(&file.path, lines_max + 1, format!("{lines} lines, at most {lines_max}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_lines(path: &str, lines: usize, expected: Option<&str>) {
        let file = File { path: path.to_owned(), text: "x\n".repeat(lines) };
        assert_eq!(check(&file).map(|finding| finding.to_string()).as_deref(), expected);
    }

    #[test]
    fn a_file_at_its_limit_is_clean() {
        check_lines("crates/actions/src/retry.rs", 600, None);
        check_lines("crates/actions/tests/retry.rs", 1000, None);
        check_lines("crates/actions/benches/retry.rs", 1000, None);
        check_lines("web/packages/client/src/reduce.ts", 600, None);
        check_lines("web/browser/live.spec.ts", 1000, None);
        check_lines("web/packages/client/src/generated/events.ts", 5000, None);
        check_lines("docs/long.md", 5000, None);
    }

    #[test]
    fn a_file_past_its_limit_is_found() {
        let source = "crates/actions/src/retry.rs:601: 601 lines, at most 600";
        check_lines("crates/actions/src/retry.rs", 601, Some(source));
        let script = "web/packages/client/src/reduce.ts:601: 601 lines, at most 600";
        check_lines("web/packages/client/src/reduce.ts", 601, Some(script));
        let test = "crates/actions/tests/retry.rs:1001: 1001 lines, at most 1000";
        check_lines("crates/actions/tests/retry.rs", 1001, Some(test));
    }
}
