//! What the tests say about clauses: functions whose name carries an id, and `clause:` comments.
//!
//! It does not run tests, nor judge whether one really proves its clause.

use std::collections::BTreeSet;

use crate::clauses;
use crate::finding::Finding;
use crate::tree::File;

/// The repository's functions, the clauses that they name, and all file paths.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Evidence {
    pub(crate) clauses: BTreeSet<String>,
    pub(crate) functions: BTreeSet<String>,
    pub(crate) paths: BTreeSet<String>,
}

/// How a language spells a comment and a function.
struct Language {
    comment: &'static str,
    function: &'static str,
}

fn language(file: &File) -> Option<Language> {
    match file.extension()? {
        "rs" => Some(Language { comment: "//", function: "fn" }),
        "py" => Some(Language { comment: "#", function: "def" }),
        "ts" | "tsx" => Some(Language { comment: "//", function: "function" }),
        _ => None,
    }
}

/// Gathers the evidence, with a finding for each `clause:` comment that names no known clause.
pub(crate) fn gather(files: &[File]) -> (Evidence, Vec<Finding>) {
    let mut evidence = Evidence::default();
    let mut findings = Vec::new();
    for file in files {
        evidence.paths.insert(file.path.clone());
        // The tests of this tool quote clause ids that they do not prove.
        let Some(language) = language(file).filter(|_| !file.path.starts_with("xtask/src/")) else {
            continue;
        };
        for (number, line) in file.lines() {
            if let Some(list) = clause_comment(line, language.comment) {
                match clause_list(list) {
                    Ok(ids) => evidence.clauses.extend(ids),
                    Err(message) => findings.push(Finding::new(&file.path, number, message)),
                }
            } else if !line.trim_start().starts_with(language.comment) {
                for name in function_names(line, language.function) {
                    evidence.clauses.extend(ids_in_name(name));
                    evidence.functions.insert(name.to_owned());
                }
            }
        }
    }
    (evidence, findings)
}

/// What follows `// clause:` on a line of its own; in the doc of a whole file of tests it is `//! clause:`.
fn clause_comment<'a>(line: &'a str, comment: &str) -> Option<&'a str> {
    let text = line.trim_start().strip_prefix(comment)?;
    text.strip_prefix('!').unwrap_or(text).trim_start().strip_prefix("clause:")
}

/// The ids at the start of a list; words may follow.
fn clause_list(list: &str) -> Result<Vec<String>, String> {
    let words = list.split([',', ' ']).filter(|word| !word.is_empty());
    let ids: Vec<String> =
        words.map_while(|word| clauses::looks_like_id(word).then(|| word.to_owned())).collect();
    if ids.is_empty() {
        return Err("names no clause; write it as `clause: A01, A02`".to_owned());
    }
    match ids.iter().find(|id| !clauses::is_known(id)) {
        Some(unknown) => Err(format!("there is no clause {unknown}")),
        None => Ok(ids),
    }
}

/// The names that a line declares with `keyword name`.
fn function_names<'a>(line: &'a str, keyword: &str) -> Vec<&'a str> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut names = Vec::new();
    for (start, _) in line.match_indices(keyword) {
        let after = &line[start + keyword.len()..];
        if line[..start].ends_with(is_part) || !after.starts_with(' ') {
            continue;
        }
        let name = after.trim_start();
        let name = &name[..name.find(|c| !is_part(c)).unwrap_or(name.len())];
        if !name.is_empty() {
            names.push(name);
        }
    }
    names
}

/// The clauses in a name such as `a01_resolves_by_name` or `test_b12_c03_resume`.
fn ids_in_name(name: &str) -> impl Iterator<Item = String> {
    let is_lower = |part: &&str| part.starts_with(|c: char| c.is_ascii_lowercase());
    name.split('_').filter(is_lower).map(str::to_uppercase).filter(|id| clauses::is_known(id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    #[track_caller]
    fn check_clauses(path: &str, text: &str, expected: &[&str]) {
        let (evidence, findings) = gather(&Tree::of(&[(path, text)]).files);
        assert_eq!(findings, []);
        assert_eq!(evidence.clauses.iter().map(String::as_str).collect::<Vec<_>>(), expected, "{text}");
    }

    #[test]
    fn a_function_name_and_a_comment_name_their_clauses() {
        check_clauses("a.rs", "    async fn a01_resolves_by_name() {", &["A01"]);
        check_clauses("a.rs", "fn both_a01_and_b12_hold() {", &["A01", "B12"]);
        check_clauses("a.rs", "    // clause: A01, A02\n", &["A01", "A02"]);
        check_clauses("a.rs", "// clause: J07 but only the first half, as A01 says\n", &["J07"]);
        check_clauses("a.rs", "//! Kills.\n//!\n//! clause: J05\n", &["J05"]);
        check_clauses("a.py", "def test_c25_resumes():\n    # clause: D16\n", &["C25", "D16"]);
        check_clauses("a.ts", "export function a22_asks() {}\n// clause: A21\n", &["A21", "A22"]);
    }

    #[test]
    fn other_text_names_none() {
        check_clauses(
            "a.rs",
            "// fn a01_was_here() {\n/// fn a04_too() {\n// see A02\nlet x = \"A03\";\nfn a0_1() {}\nfn a99_x() {}\n",
            &[],
        );
        check_clauses("a.rs", "let defn a01_x;\nfn A01_x() {}", &[]);
        check_clauses("a.md", "fn a01_resolves_by_name() {\n// clause: A02", &[]);
        check_clauses("xtask/src/a.rs", "fn a01_resolves_by_name() {\n// clause: A02", &[]);
    }

    #[test]
    fn every_function_is_known_by_name() {
        let (evidence, _) =
            gather(&Tree::of(&[("a.rs", "pub(crate) const fn one<T>() { fn two() {} }")]).files);
        assert_eq!(evidence.functions, BTreeSet::from(["one".to_owned(), "two".to_owned()]));
    }

    #[test]
    fn a_comment_that_names_no_known_clause_is_found() {
        let (_, findings) = gather(&Tree::of(&[("a.rs", "// clause: A99\n// clause: retry\n")]).files);
        let expected =
            ["a.rs:1: there is no clause A99", "a.rs:2: names no clause; write it as `clause: A01, A02`"];
        assert_eq!(findings.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
    }
}
