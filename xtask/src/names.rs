//! Names that say nothing, for crates, module files, folders and inline modules.

use std::collections::BTreeSet;

use crate::finding::Finding;
use crate::tree::File;

const BANNED: [&str; 8] = ["core", "common", "utils", "util", "helpers", "types", "manager", "service"];

pub(crate) fn check(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut folders = BTreeSet::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let names: Vec<&str> = file.path.split('/').collect();
        let stem = names.last().and_then(|name| name.strip_suffix(".rs")).unwrap_or_default();
        if BANNED.contains(&stem) {
            findings.push(Finding::new(&file.path, 1, format!("a module named `{stem}` says nothing")));
        }
        for (index, name) in names.iter().enumerate().take(names.len() - 1) {
            let is_crate = names[..index] == ["crates"];
            let is_module = names[..index].contains(&"src");
            if BANNED.contains(name) && (is_crate || is_module) {
                folders.insert((names[..=index].join("/"), *name));
            }
        }
        findings.extend(file.lines().filter_map(|(line, text)| {
            let name = inline_module(text).filter(|name| BANNED.contains(name))?;
            Some(Finding::new(&file.path, line, format!("a module named `{name}` says nothing")))
        }));
    }
    let folder = |(path, name): &(String, &str)| {
        Finding::new(path, 1, format!("a folder named `{name}` says nothing"))
    };
    findings.extend(folders.iter().map(folder));
    findings
}

/// The name in `mod name {`, with or without a visibility.
fn inline_module(line: &str) -> Option<&str> {
    let head = line.trim().strip_suffix('{')?.trim_end();
    let (before, name) = head.rsplit_once("mod ")?;
    (before.is_empty() || before.starts_with("pub")).then(|| name.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files).files).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_name_that_says_nothing_is_found_once() {
        let files = [
            ("crates/actions/src/utils.rs", ""),
            ("crates/actions/src/helpers/a.rs", ""),
            ("crates/actions/src/helpers/b.rs", ""),
            ("crates/core/src/lib.rs", ""),
            ("crates/cli/src/main.rs", "fn main() {}\npub(crate) mod types {\n}\n"),
        ];
        let expected = [
            "crates/actions/src/utils.rs:1: a module named `utils` says nothing",
            "crates/cli/src/main.rs:2: a module named `types` says nothing",
            "crates/actions/src/helpers:1: a folder named `helpers` says nothing",
            "crates/core:1: a folder named `core` says nothing",
        ];
        assert_eq!(found(&files), expected);
    }

    #[test]
    fn a_noun_of_the_domain_is_clean() {
        let files = [
            ("crates/actions/src/retry.rs", "mod tests {\n}\nuse tower::util;\n"),
            ("crates/actions/src/services.rs", ""),
            ("docs/types/notes.md", "mod types {"),
        ];
        assert_eq!(found(&files), Vec::<String>::new());
    }
}
