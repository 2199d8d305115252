//! What cargo-mutants found against the list of survivors that are accepted, each with its reason.
//!
//! It runs nothing: `./test --soak` does. A new survivor is a failure, and so is an accepted one that is killed by now. The list may
//! only shrink: [`ACCEPTED_MAX`] is its length, and goes down with it.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;

use crate::finding::Finding;
use crate::tree::{File, Tree};

pub(crate) const ACCEPTED: &str = "xtask/mutants-accepted.txt";
/// How many survivors are accepted. It is only ever lowered.
const ACCEPTED_MAX: usize = 0;
/// What stands between a mutant and the reason for which it may survive.
const BECAUSE: &str = " -- ";

/// The list itself: every entry has a reason, and there are as many as there may be.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    tree.find(ACCEPTED).map(|file| check_list(file, ACCEPTED_MAX)).unwrap_or_default()
}

fn check_list(file: &File, entries_max: usize) -> Vec<Finding> {
    let unreasoned =
        entries(file).filter(|(_, text)| accepted(text).is_none_or(|(_, reason)| reason.is_empty()));
    let message = format!("says no reason: write `mutant{BECAUSE}why`");
    let mut findings: Vec<Finding> =
        unreasoned.map(|(line, _)| Finding::new(ACCEPTED, line, message.as_str())).collect();
    let count = entries(file).count();
    let wrong = match count.cmp(&entries_max) {
        Ordering::Greater => format!("at most {entries_max}: kill the new one with a test"),
        Ordering::Less => "so lower ACCEPTED_MAX in xtask/src/mutants.rs to that".to_owned(),
        Ordering::Equal => return findings,
    };
    findings.push(Finding::new(ACCEPTED, 1, format!("{count} survivors are accepted, {wrong}")));
    findings
}

/// What a run of cargo-mutants found: its `mutants.out`.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Nothing failed with it.
    missed: Vec<String>,
    /// A test failed or hung with it.
    killed: Vec<String>,
}

impl Outcome {
    pub(crate) fn read(folder: &Path) -> anyhow::Result<Self> {
        let read = |name: &str| -> anyhow::Result<Vec<String>> {
            let path = folder.join(name);
            let text =
                std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            Ok(text.lines().filter_map(without_place).collect())
        };
        let (missed, mut killed) = (read("missed.txt")?, read("caught.txt")?);
        killed.extend(read("timeout.txt")?);
        // What an earlier, narrower pass killed was not tried again.
        if folder.join("previously_caught.txt").exists() {
            killed.extend(read("previously_caught.txt")?);
        }
        Ok(Outcome { missed, killed })
    }

    /// How many mutants were tried.
    pub(crate) fn tried(&self) -> usize {
        self.missed.len() + self.killed.len()
    }

    /// The findings: survivors that are not accepted, and accepted ones that were tried and did not survive.
    pub(crate) fn compare(&self, list: Option<&File>) -> Vec<Finding> {
        let missed = count(self.missed.iter().map(String::as_str));
        let killed = count(self.killed.iter().map(String::as_str));
        let entries = list.into_iter().flat_map(entries).filter_map(|(_, text)| accepted(text));
        let accepted = count(entries.map(|(mutant, _)| mutant));
        let mut findings = Vec::new();
        for (mutant, survivors) in &missed {
            let accepted = accepted.get(mutant).copied().unwrap_or_default();
            if *survivors > accepted {
                let (path, change) = mutant.split_once(": ").unwrap_or((ACCEPTED, mutant));
                let message =
                    format!("no test fails with this change: {change} ({survivors}, accepted {accepted})");
                findings.push(Finding::new(path, 1, message));
            }
        }
        for (mutant, accepted) in &accepted {
            let survivors = missed.get(mutant).copied().unwrap_or_default();
            let was_tried = survivors > 0 || killed.contains_key(mutant);
            if was_tried && survivors < *accepted {
                findings.push(Finding::new(
                    ACCEPTED,
                    1,
                    format!("is killed by now, so take it off the list: {mutant}"),
                ));
            }
        }
        findings
    }
}

fn entries(file: &File) -> impl Iterator<Item = (usize, &str)> {
    file.lines().filter(|(_, text)| !text.is_empty() && !text.starts_with('#'))
}

fn accepted(text: &str) -> Option<(&str, &str)> {
    text.split_once(BECAUSE).map(|(mutant, reason)| (mutant.trim(), reason.trim()))
}

fn count<'a>(mutants: impl Iterator<Item = &'a str>) -> BTreeMap<&'a str, usize> {
    let mut counts = BTreeMap::new();
    for mutant in mutants {
        *counts.entry(mutant).or_default() += 1;
    }
    counts
}

/// `src/a.rs:3:9: replace a with b` without line and column, which move with every edit.
fn without_place(line: &str) -> Option<String> {
    let (place, change) = line.split_once(": ")?;
    let path = place.split(':').next()?;
    Some(format!("{path}: {change}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str = "src/a.rs: replace < with <= in f -- both say the same";

    fn list(text: &str) -> File {
        File { path: ACCEPTED.to_owned(), text: text.to_owned() }
    }

    fn outcome(missed: &[&str], killed: &[&str]) -> Outcome {
        let of = |lines: &[&str]| lines.iter().filter_map(|line| without_place(line)).collect();
        Outcome { missed: of(missed), killed: of(killed) }
    }

    #[track_caller]
    fn check_outcome(outcome: &Outcome, list: &File, expected: &[&str]) {
        let found: Vec<String> = outcome.compare(Some(list)).iter().map(ToString::to_string).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn an_accepted_survivor_is_clean_wherever_it_moved() {
        let found =
            outcome(&["src/a.rs:30:9: replace < with <= in f"], &["src/a.rs:31:9: replace < with > in f"]);
        check_outcome(&found, &list(&format!("# Why.\n\n{ENTRY}\n")), &[]);
        assert_eq!(found.tried(), 2);
    }

    #[test]
    fn a_new_survivor_is_found_also_beside_an_accepted_one_of_the_same_name() {
        let new = "src/b.rs:1:2: replace g -> bool with true";
        let expected =
            "src/b.rs:1: no test fails with this change: replace g -> bool with true (1, accepted 0)";
        check_outcome(&outcome(&[new], &[]), &list(""), &[expected]);
        let both = ["src/a.rs:3:9: replace < with <= in f", "src/a.rs:4:9: replace < with <= in f"];
        let expected = "src/a.rs:1: no test fails with this change: replace < with <= in f (2, accepted 1)";
        check_outcome(&outcome(&both, &[]), &list(ENTRY), &[expected]);
    }

    #[test]
    fn an_accepted_one_that_is_killed_by_now_is_found_but_not_one_that_was_not_tried() {
        let expected = "xtask/mutants-accepted.txt:1: is killed by now, so take it off the list: src/a.rs: replace < with <= in f";
        check_outcome(&outcome(&[], &["src/a.rs:3:9: replace < with <= in f"]), &list(ENTRY), &[expected]);
        check_outcome(&outcome(&[], &["src/c.rs:3:9: replace < with <= in f"]), &list(ENTRY), &[]);
    }

    #[test]
    fn the_list_may_not_grow_and_every_entry_has_a_reason() {
        let found = |text: &str| {
            check_list(&list(text), 1).into_iter().map(|finding| finding.message).collect::<Vec<_>>()
        };
        assert_eq!(found(&format!("# Why.\n{ENTRY}\n")), Vec::<String>::new());
        let grown = format!("{ENTRY}\n{ENTRY}\n");
        assert_eq!(found(&grown), ["2 survivors are accepted, at most 1: kill the new one with a test"]);
        let shrunk = "0 survivors are accepted, so lower ACCEPTED_MAX in xtask/src/mutants.rs to that";
        assert_eq!(found("# Why.\n"), [shrunk]);
        assert_eq!(found("src/a.rs: replace a with b -- \n"), ["says no reason: write `mutant -- why`"]);
    }
}
