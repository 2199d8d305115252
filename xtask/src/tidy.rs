//! All checks on one tree. Pure: what is read and printed is decided in `main`.

use std::fmt;

use crate::finding::Finding;
use crate::tree::Tree;
use crate::{arrows, conformance, documents, evidence, marks, module_docs, names, sizes};

/// What tidy found, in order, and how much it looked at.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) findings: Vec<Finding>,
    files: usize,
    crates: usize,
    clauses_proven: usize,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { findings, files, crates, clauses_proven } = self;
        write!(f, "tidy: {files} files, {crates} crates, {clauses_proven} clauses proven: ")?;
        match findings.len() {
            0 => write!(f, "clean"),
            1 => write!(f, "1 finding"),
            many => write!(f, "{many} findings"),
        }
    }
}

pub(crate) fn check(tree: &Tree, errors_markdown: &str) -> Report {
    let mut findings = Vec::new();
    for file in tree.rust() {
        findings.extend(sizes::check(file));
        findings.extend(module_docs::check(file));
        findings.extend(marks::check(file));
    }
    findings.extend(names::check(&tree.files));
    findings.extend(documents::check(tree, errors_markdown));
    let (arrow_findings, crates) = arrows::check(&tree.files);
    findings.extend(arrow_findings);
    let (evidence, comment_findings) = evidence::gather(&tree.files);
    findings.extend(comment_findings);
    let clauses_proven = match tree.find(conformance::PATH) {
        None => {
            findings.push(Finding::new(conformance::PATH, 1, "is missing"));
            0
        }
        Some(file) => {
            let (row_findings, proven) = conformance::check(file, &evidence);
            findings.extend(row_findings);
            proven
        }
    };
    findings.sort();
    Report { findings, files: tree.files.len(), crates, clauses_proven }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clauses;

    fn rows() -> String {
        clauses::all().map(|id| format!("| {id} | open | |\n")).collect()
    }

    #[test]
    fn a_clean_tree_is_one_line() {
        let rows = rows().replace("A01 | open | |", "A01 | proven | `a01_resolves` |");
        let tree = Tree::of(&[
            ("ARCHITECTURE.md", "The map.\n"),
            ("crates/domain/Cargo.toml", "[package]\nname = \"runyard-domain\"\n"),
            ("crates/domain/src/lib.rs", "//! Words.\nfn a01_resolves() {}\n"),
            ("docs/conformance.md", &rows),
            ("docs/errors.md", "table"),
        ]);
        let report = check(&tree, "table");
        assert_eq!(report.findings, []);
        assert_eq!(report.to_string(), "tidy: 5 files, 1 crates, 1 clauses proven: clean");
    }

    #[test]
    fn every_check_takes_part_and_findings_come_in_order() {
        let long = "x\n".repeat(601);
        let clause = concat!("//! A.\n// cla", "use: A99\n");
        let tree = Tree::of(&[
            ("ARCHITECTURE.md", "The map.\n"),
            ("crates/shelf/Cargo.toml", "[package]\nname = \"runyard-shelf\"\n"),
            ("crates/shelf/src/lib.rs", &long),
            ("crates/shelf/src/types.rs", concat!("//! A.\n// TO", "DO\n")),
            ("crates/shelf/tests/a.rs", clause),
            ("docs/errors.md", "stale"),
        ]);
        let report = check(&tree, "table");
        let places: Vec<String> =
            report.findings.iter().map(|found| format!("{}:{}", found.path, found.line)).collect();
        let expected = [
            "crates/shelf/Cargo.toml:1",
            "crates/shelf/src/lib.rs:1",
            "crates/shelf/src/lib.rs:601",
            "crates/shelf/src/types.rs:1",
            "crates/shelf/src/types.rs:2",
            "crates/shelf/tests/a.rs:2",
            "docs/conformance.md:1",
            "docs/errors.md:1",
        ];
        assert_eq!(places, expected);
        assert_eq!(report.to_string(), "tidy: 6 files, 1 crates, 0 clauses proven: 8 findings");
    }

    #[test]
    fn a_missing_conformance_document_is_found() {
        let findings = check(&Tree::default(), "").findings;
        assert!(findings.contains(&Finding::new("docs/conformance.md", 1, "is missing")), "{findings:?}");
    }
}
