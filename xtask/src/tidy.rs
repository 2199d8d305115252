//! All checks on one tree. Pure: what is read and printed is decided in `main`.

use std::fmt;

use crate::documents::Generated;
use crate::finding::Finding;
use crate::tree::Tree;
use crate::vocabulary::Vocabulary;
use crate::{
    arrows, conformance, documents, evidence, failpoints, marks, module_docs, mutants, names, sizes, spelling,
};

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

pub(crate) fn check(tree: &Tree, vocabulary: &Vocabulary, generated: &[Generated]) -> Report {
    let mut findings = Vec::new();
    findings.extend(tree.files.iter().filter_map(sizes::check));
    for file in tree.rust() {
        findings.extend(module_docs::check(file));
        findings.extend(marks::check(file));
    }
    findings.extend(names::check(&tree.files));
    findings.extend(documents::check(tree, generated));
    findings.extend(failpoints::check(tree));
    findings.extend(mutants::check(tree));
    findings.extend(spelling::check(tree, vocabulary));
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

    fn report(tree: &Tree) -> Report {
        check(tree, &Vocabulary::read(tree), &[Generated::errors("table".to_owned())])
    }

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
        let report = report(&tree);
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
            ("crates/engine/src/lib.rs", "//! A.\nfn f() { failpoint::reach(\"a\") }\n"),
            ("docs/errors.md", "stale"),
            ("docs/notes.md", "A job.\n"),
            ("xtask/mutants-accepted.txt", "crates/domain/src/a.rs: replace a with b\n"),
        ]);
        let report = report(&tree);
        let mut places: Vec<String> =
            report.findings.iter().map(|found| format!("{}:{}", found.path, found.line)).collect();
        let expected = [
            "crates/engine/src/lib.rs:2",
            "crates/shelf/Cargo.toml:1",
            "crates/shelf/src/lib.rs:1",
            "crates/shelf/src/lib.rs:601",
            "crates/shelf/src/types.rs:1",
            "crates/shelf/src/types.rs:2",
            "crates/shelf/tests/a.rs:2",
            "docs/conformance.md:1",
            "docs/errors.md:1",
            "docs/notes.md:1",
            "xtask/mutants-accepted.txt:1",
        ];
        places.dedup();
        assert_eq!(places, expected);
        assert_eq!(report.to_string(), "tidy: 9 files, 1 crates, 0 clauses proven: 12 findings");
    }

    #[test]
    fn a_missing_conformance_document_is_found() {
        let findings = report(&Tree::default()).findings;
        assert!(findings.contains(&Finding::new("docs/conformance.md", 1, "is missing")), "{findings:?}");
    }
}
