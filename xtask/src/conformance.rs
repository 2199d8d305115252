//! `docs/conformance.md` against the tests: one row per clause, and nothing called proven that no test names.

use std::collections::BTreeMap;

use crate::clauses;
use crate::evidence::Evidence;
use crate::finding::Finding;
use crate::tree::File;

pub(crate) const PATH: &str = "docs/conformance.md";

/// What the document says of a clause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Proven,
    Partly,
    Open,
}

#[derive(Debug, PartialEq, Eq)]
struct Row<'a> {
    line: usize,
    id: &'a str,
    status: &'a str,
    /// What stands in backticks after the status.
    tests: Vec<&'a str>,
}

/// The findings, and how many clauses are called proven.
pub(crate) fn check(file: &File, evidence: &Evidence) -> (Vec<Finding>, usize) {
    let mut findings = Vec::new();
    let mut first_lines: BTreeMap<&str, usize> = BTreeMap::new();
    let mut proven = 0;
    for row in file.lines().filter_map(|(line, text)| parse_row(line, text)) {
        let mut find = |message: String| findings.push(Finding::new(&file.path, row.line, message));
        if !clauses::is_known(row.id) {
            find(format!("there is no clause {}", row.id));
            continue;
        }
        if let Some(first) = first_lines.get(row.id) {
            find(format!("{} already has a row, at line {first}", row.id));
        }
        first_lines.entry(row.id).or_insert(row.line);
        let status = parse_status(row.status);
        if status.is_none() {
            find(format!(
                "{}: `{}` is not `proven`, `partly (what is missing)` or `open`",
                row.id, row.status
            ));
        }
        if status == Some(Status::Proven) {
            proven += 1;
            if row.tests.is_empty() {
                find(format!("{} is called proven, but its row lists no test", row.id));
            }
            if !evidence.clauses.contains(row.id) {
                find(format!("{} is called proven, but no test names it", row.id));
            }
        }
        for test in row.tests.iter().filter(|test| !exists(test, evidence)) {
            find(format!("{}: there is no test `{test}`", row.id));
        }
    }
    let missing = clauses::all().filter(|id| !first_lines.contains_key(id.as_str()));
    findings.extend(missing.map(|id| Finding::new(&file.path, 1, format!("{id} has no row"))));
    (findings, proven)
}

/// A row is a table line whose first cell is a clause id; other lines are not ours.
fn parse_row(line: usize, text: &str) -> Option<Row<'_>> {
    let (first, rest) = text.trim().strip_prefix('|')?.split_once('|')?;
    let id = first.trim().trim_matches(['`', '*']);
    if !clauses::looks_like_id(id) {
        return None;
    }
    let (status, tests) = rest.split_once('|').unwrap_or((rest, ""));
    let tests = tests.split('`').skip(1).step_by(2).collect();
    Some(Row { line, id, status: status.trim(), tests })
}

fn parse_status(text: &str) -> Option<Status> {
    match text {
        "proven" => Some(Status::Proven),
        "open" => Some(Status::Open),
        _ => {
            let missing = text.strip_prefix("partly (")?.strip_suffix(')')?;
            (!missing.trim().is_empty()).then_some(Status::Partly)
        }
    }
}

/// A test is named by its function, with or without its modules, or by the path of a file.
fn exists(test: &str, evidence: &Evidence) -> bool {
    if test.contains('/') {
        return evidence.paths.contains(test);
    }
    let name = test.rsplit_once("::").map_or(test, |(_, name)| name);
    evidence.functions.contains(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence;
    use crate::tree::Tree;

    const TESTS: &str = "fn a01_resolves() {}\nfn a02_refuses() {}\nfn plain() {}\n";

    /// A document with an open row for each clause, but for those that the rows speak of.
    fn document(rows: &str) -> String {
        let open =
            clauses::all().filter(|id| !rows.contains(id.as_str())).map(|id| format!("| {id} | open | |\n"));
        format!("| clause | status | tests |\n|---|---|---|\n{rows}{}", open.collect::<String>())
    }

    fn check_text(text: &str) -> (Vec<String>, usize) {
        let tree = Tree::of(&[("crates/actions/tests/runtime.rs", TESTS), (PATH, text)]);
        let (evidence, _) = evidence::gather(&tree.files);
        let (findings, proven) = check(tree.find(PATH).unwrap(), &evidence);
        (findings.iter().map(ToString::to_string).collect(), proven)
    }

    #[track_caller]
    fn check_rows(rows: &str, expected: &[&str]) {
        assert_eq!(check_text(&document(rows)).0, expected, "{rows}");
    }

    #[test]
    fn a_complete_document_is_clean_and_its_proven_clauses_are_counted() {
        let rows = "| A01 | proven | `a01_resolves`, `runtime::plain` |\n\
                    | A02 | partly (the `http` half) | `a02_refuses` |\n\
                    | A03 | open | |\n\
                    | A04 | open |\n\
                    | `A05` | open | `crates/actions/tests/runtime.rs` |\n";
        assert_eq!(check_text(&document(rows)), (Vec::new(), 1));
    }

    #[test]
    fn a_proof_that_no_test_names_is_found() {
        let expected = ["docs/conformance.md:3: A03 is called proven, but no test names it"];
        check_rows("| A03 | proven | `plain` |\n", &expected);
        let expected = ["docs/conformance.md:3: A01 is called proven, but its row lists no test"];
        check_rows("| A01 | proven | see the tests |\n", &expected);
    }

    #[test]
    fn a_test_that_does_not_exist_is_found_in_any_row() {
        check_rows("| A03 | open | `gone` |\n", &["docs/conformance.md:3: A03: there is no test `gone`"]);
        let expected = ["docs/conformance.md:3: A01: there is no test `tests/gone.sh`"];
        check_rows("| A01 | proven | `a01_resolves`, `tests/gone.sh` |\n", &expected);
    }

    #[test]
    fn any_other_status_is_found() {
        for status in
            ["done", "Proven", "partly", "partly ()", "partly ( )", "proven (mostly)", "~~open~~", ""]
        {
            let expected = format!(
                "docs/conformance.md:3: A01: `{status}` is not `proven`, `partly (what is missing)` or `open`"
            );
            check_rows(&format!("| A01 | {status} | |\n"), &[&expected]);
        }
    }

    #[test]
    fn each_clause_has_exactly_one_row() {
        let rows = "| A01 | open | |\n| A01 | open | |\n| A23 | open | |\n";
        let expected = [
            "docs/conformance.md:4: A01 already has a row, at line 3",
            "docs/conformance.md:5: there is no clause A23",
        ];
        check_rows(rows, &expected);
        let without = document("").replace("| J07 | open | |\n", "");
        assert_eq!(check_text(&without).0, ["docs/conformance.md:1: J07 has no row"]);
    }
}
