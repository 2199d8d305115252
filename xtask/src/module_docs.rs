//! Every module file opens with what it is. Whether the words are good is for the reader to judge.

use crate::finding::Finding;
use crate::tree::File;

pub(crate) fn check(file: &File) -> Option<Finding> {
    if !file.is_rust() || is_compile_case(&file.path) || only_includes(&file.text) {
        return None;
    }
    let first = file.text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    (!first.starts_with("//!")).then(|| Finding::new(&file.path, 1, "does not start with a `//!` module doc"))
}

/// Cases of trybuild: programs to be refused, whose error output names their lines.
fn is_compile_case(path: &str) -> bool {
    path.starts_with("tests/ui/") || path.contains("/tests/ui/")
}

fn only_includes(text: &str) -> bool {
    let mut code = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
    code.next().is_some_and(|line| line.starts_with("include!"))
        && code.all(|line| line.starts_with("include!"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_text(path: &str, text: &str, expected: bool) {
        let file = File { path: path.to_owned(), text: text.to_owned() };
        assert_eq!(check(&file).is_some(), expected, "{path}: {text:?}");
    }

    #[test]
    fn a_module_without_a_doc_is_found() {
        check_text("src/a.rs", "use std::fmt;\n", true);
        check_text("src/a.rs", "// A plain comment.\nuse std::fmt;\n", true);
        check_text("src/a.rs", "/// A doc of the item below.\nfn a() {}\n", true);
        check_text("src/a.rs", "", true);
        check_text("src/a.rs", "include!(\"b.rs\");\nfn a() {}\n", true);
    }

    #[test]
    fn a_documented_module_a_compile_case_and_a_bare_include_are_clean() {
        check_text("src/a.rs", "\n//! What it is.\n", false);
        check_text("crates/actions/tests/ui/bad.rs", "fn main() {}\n", false);
        check_text("src/a.rs", "include!(\"b.rs\");\n", false);
        check_text("docs/a.md", "text", false);
    }
}
