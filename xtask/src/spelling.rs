//! Documents and texts of the program against the vocabulary: no word that is never to be used, and no state, event type or code
//! that is none.
//!
//! Names in code are not looked at, nor are tests: a word of the source is for whoever reads the source.

use std::collections::{BTreeMap, BTreeSet};

use crate::documents::VOCABULARY;
use crate::failpoints;
use crate::finding::Finding;
use crate::literals::{self, Literal};
use crate::tree::{File, Tree};
use crate::vocabulary::{OTHERWISE, Vocabulary, WORDS};

/// The crates whose texts people see.
const SPOKEN: [&str; 10] =
    ["actions", "adapters", "backend", "cli", "control", "domain", "edge", "engine", "server", "surfaces"];
/// The texts of the console.
const CONSOLE: &str = "web/apps/console/src/i18n/en/";
/// In this crate the doc comments are texts too: descriptions of actions and fields.
const DESCRIBED: &str = "crates/control/src/";
/// What an event type begins with.
const FAMILIES: [&str; 5] = ["run", "runtime", "schema", "installation", "audit"];
/// What looks like an event type and is the name of a file.
const EXTENSIONS: [&str; 9] = ["rs", "md", "toml", "json", "jsonl", "py", "sh", "txt", "log"];

pub(crate) fn check(tree: &Tree, vocabulary: &Vocabulary) -> Vec<Finding> {
    let failpoints = failpoints::names(tree);
    let known = Known::of(vocabulary, &failpoints);
    let mut findings = Vec::new();
    for file in &tree.files {
        let texts = if is_document(file) {
            file.lines().map(|(line, text)| Literal { line, text: text.to_owned() }).collect()
        } else if is_spoken(file) {
            spoken(file)
        } else {
            continue;
        };
        for text in &texts {
            let found = never_used(&text.text).into_iter().chain(known.unknown_types(&text.text));
            let found = found.chain(known.misspelt(&text.text, is_document(file)));
            findings.extend(found.map(|message| Finding::new(&file.path, text.line, message)));
        }
        for (index, line) in literals::without_tests(&file.text).lines().enumerate() {
            let found = known.unknown_values(line);
            findings.extend(found.into_iter().map(|message| Finding::new(&file.path, index + 1, message)));
        }
    }
    findings
}

/// Documents, and the scripts and built-in configuration that people see.
fn is_document(file: &File) -> bool {
    match file.extension() {
        Some("md") => file.path != VOCABULARY,
        Some("toml") => is_of_spoken(file) && !file.path.ends_with("Cargo.toml") && !file.is_under("tests"),
        _ => false,
    }
}

fn is_spoken(file: &File) -> bool {
    file.path.starts_with(CONSOLE) || file.is_rust() && is_of_spoken(file) && file.is_under("src")
}

fn is_of_spoken(file: &File) -> bool {
    let mut folders = file.path.split('/');
    folders.next() == Some("crates") && folders.next().is_some_and(|name| SPOKEN.contains(&name))
}

fn spoken(file: &File) -> Vec<Literal> {
    let mut texts = literals::literals(file);
    if file.path.starts_with(DESCRIBED) {
        let docs =
            file.lines().filter_map(|(line, text)| Some((line, text.trim_start().strip_prefix("///")?)));
        texts.extend(docs.map(|(line, text)| Literal { line, text: text.to_owned() }));
    }
    texts
}

/// Words of which the vocabulary says that they are never used.
fn never_used(text: &str) -> Vec<String> {
    let mut plain = text.to_lowercase();
    for phrase in OTHERWISE {
        plain = plain.replace(phrase, "");
    }
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let has = |never: &str| {
        plain.match_indices(never).any(|(start, _)| {
            !plain[..start].ends_with(is_part) && !plain[start + never.len()..].starts_with(is_part)
        })
    };
    let found = WORDS.iter().flat_map(|word| word.never.iter().map(move |never| (word.word, *never)));
    found
        .filter(|(_, never)| has(never))
        .map(|(word, never)| format!("say *{word}*, not “{never}”"))
        .collect()
}

struct Known<'a> {
    types: BTreeSet<&'a str>,
    /// What else is written with dots: permissions and failpoints.
    dotted: BTreeSet<&'a str>,
    states: BTreeSet<&'a str>,
    codes: BTreeSet<&'a str>,
    failure_kinds: BTreeSet<&'a str>,
    exact: BTreeSet<&'a str>,
    /// Words of several parts, by what is left without case and separators.
    squashed: BTreeMap<String, &'a str>,
}

impl<'a> Known<'a> {
    fn of(vocabulary: &'a Vocabulary, failpoints: &'a [String]) -> Self {
        let set = |words: &'a [String]| words.iter().map(String::as_str).collect::<BTreeSet<&str>>();
        let parted = vocabulary.exact().filter(|word| word.contains(is_separator));
        Known {
            types: vocabulary.event_types().collect(),
            dotted: vocabulary.permissions.iter().chain(failpoints).map(String::as_str).collect(),
            states: vocabulary.states().collect(),
            codes: set(&vocabulary.codes),
            failure_kinds: set(&vocabulary.failure_kinds),
            exact: vocabulary.exact().collect(),
            squashed: parted.map(|word| (squash(word), word)).collect(),
        }
    }

    /// What has the form of an event type (`run.started`, `run.tool.*`) and is none.
    fn unknown_types(&self, text: &str) -> Vec<String> {
        let is_part = |c: char| c.is_ascii_lowercase() || matches!(c, '_' | '.');
        let mut findings = Vec::new();
        let mut start = 0;
        while let Some(begin) = text[start..].find(is_part).map(|offset| start + offset) {
            let end = text[begin..].find(|c| !is_part(c)).map_or(text.len(), |length| begin + length);
            start = end;
            // Part of a longer name, or of a path.
            let before = text[..begin].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '/' | '-' | '\\')) {
                continue;
            }
            let (token, is_open) = match text[begin..end].strip_suffix('.') {
                Some(family) => (family, text[end..].starts_with('*')),
                None => (&text[begin..end], false),
            };
            if self.is_unknown_type(token, is_open) {
                findings.push(format!("there is no event type `{token}`"));
            }
        }
        findings
    }

    fn is_unknown_type(&self, token: &str, is_open: bool) -> bool {
        let Some((family, rest)) = token.split_once('.') else { return false };
        let ends_file = rest.rsplit('.').next().is_some_and(|end| EXTENSIONS.contains(&end));
        if !FAMILIES.contains(&family) || ends_file || rest.is_empty() {
            return false;
        }
        let of_family = |known: &&str| known.strip_prefix(token).is_some_and(|more| more.starts_with('.'));
        let is_known = [&self.types, &self.codes, &self.dotted].iter().any(|known| known.contains(token));
        !(is_known || is_open && self.types.iter().any(of_family))
    }

    /// What stands for a state, a code or a failure kind and is none.
    fn unknown_values(&self, line: &str) -> Vec<String> {
        let check = |field: &str, what: &str, known: &BTreeSet<&str>| {
            let unknown = values(line, field).filter(|value| !known.contains(value) && is_word(value));
            unknown.map(|value| format!("there is no {what} `{value}`")).collect::<Vec<_>>()
        };
        let mut found = check("state", "state", &self.states);
        found.extend(check("failureKind", "failure kind", &self.failure_kinds));
        found.extend(check("code", "code", &self.codes));
        found
    }

    /// What is a word of the vocabulary but for case or separators: a whole literal, or what stands in backticks.
    fn misspelt(&self, text: &str, is_document: bool) -> Vec<String> {
        let candidates: Vec<&str> =
            if is_document { text.split('`').skip(1).step_by(2).collect() } else { vec![text] };
        let unknown =
            candidates.into_iter().filter(|word| word.contains(is_separator) && !self.exact.contains(word));
        let meant = unknown.filter_map(|word| Some((word, self.squashed.get(&squash(word))?)));
        meant.map(|(word, meant)| format!("`{word}` is spelt `{meant}`")).collect()
    }
}

fn is_separator(c: char) -> bool {
    matches!(c, '.' | '_' | '-')
}

fn squash(word: &str) -> String {
    word.replace(is_separator, "").to_lowercase()
}

/// An application's codes are upper case, and what is put in has braces: both are not ours to know.
fn is_word(value: &str) -> bool {
    !value.is_empty() && value.chars().all(|c| c.is_ascii_lowercase() || is_separator(c))
}

/// The texts that a field has in JSON, TOML or a query.
fn values<'a>(line: &'a str, field: &str) -> impl Iterator<Item = &'a str> {
    line.match_indices(field).filter_map(move |(start, _)| {
        let (before, after) = (&line[..start], &line[start + field.len()..]);
        if before.ends_with(['?', '&']) {
            let value = after.strip_prefix('=')?;
            return Some(&value[..value.find(|c: char| !(c.is_alphanumeric() || is_separator(c)))?]);
        }
        let after = match before.ends_with('"') {
            true => after.strip_prefix('"')?.trim_start_matches('\\').trim_start().strip_prefix(':')?,
            false if before.trim().is_empty() => after.trim_start().strip_prefix('=')?,
            false => return None,
        };
        let value = after.trim_start().trim_start_matches('\\').strip_prefix('"')?;
        value.split_once(['"', '\\']).map(|(value, _)| value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_text(path: &str, text: &str, expected: &[&str]) {
        let tree = Tree::of(&[(path, text)]);
        let found = check(&tree, &Vocabulary::read(&tree));
        let found: Vec<&str> = found.iter().map(|finding| finding.message.as_str()).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn a_word_that_is_never_used_is_found_in_documents_and_texts() {
        let expected = ["say *run*, not “job”"];
        check_text("README.md", "Start a Job.", &expected);
        check_text("crates/cli/src/run.rs", "println!(\"no such job\");", &expected);
        check_text("crates/backend/scripts/demo.toml", "say = \"The job is done.\"", &expected);
        check_text("crates/control/src/runs.rs", "/// The job.\nfn f() {}", &expected);
        check_text(
            "web/apps/console/src/i18n/en/runs.ts",
            "export const runs = { empty: \"No job yet\" };",
            &expected,
        );
        check_text(
            "docs/a.md",
            "A run was killed by the worker.",
            &["say *edge*, not “worker”", "say *cancelled*, not “run was killed”"],
        );
    }

    #[test]
    fn the_same_word_in_code_in_a_test_or_meant_otherwise_is_clean() {
        check_text("README.md", "As a team runs production jobs, with the JSON runner.", &[]);
        check_text("README.md", "`json_runner.rs`, `INVALID_JSON_RUNNER_PAYLOAD`, jobless", &[]);
        check_text(
            "crates/cli/src/run.rs",
            "let job = 1; // job\n#[cfg(test)]\nmod tests {\n\"job\"\n}",
            &[],
        );
        check_text("crates/cli/tests/run.rs", "\"job\"", &[]);
        check_text("crates/cli/Cargo.toml", "description = \"job\"", &[]);
        check_text("crates/store-sqlite/src/ledger.rs", "run(\"SAVEPOINT job\")", &[]);
        check_text("docs/vocabulary.md", "| *run* | “job” |", &[]);
    }

    #[test]
    fn an_event_type_that_is_none_is_found() {
        check_text("docs/a.md", "Then `run.finished` comes.", &["there is no event type `run.finished`"]);
        check_text("docs/a.md", "`run.tools.*`", &["there is no event type `run.tools`"]);
        check_text(
            "crates/cli/src/a.rs",
            "if kind == \"runtime.crashed\" {}",
            &["there is no event type `runtime.crashed`"],
        );
    }

    #[test]
    fn event_types_families_codes_and_files_are_clean() {
        check_text(
            "docs/a.md",
            "`run.started`, `run.tool.*`, `runtime.state`, the run. And `run.rs`, src/run.x",
            &[],
        );
        check_text("crates/cli/src/a.rs", "f(\"run.{kind}\", \"run.tool.call\", \"crates/run.a\")", &[]);
    }

    #[test]
    fn a_state_a_code_or_a_failure_kind_that_is_none_is_found() {
        check_text("README.md", "{\"state\": \"finished\"}", &["there is no state `finished`"]);
        check_text("README.md", "GET /api/v1/approvals?state=pending HTTP", &["there is no state `pending`"]);
        check_text(
            "README.md",
            "{\"code\":\"timed_out\", \"failureKind\":\"crashed\"}",
            &["there is no failure kind `crashed`", "there is no code `timed_out`"],
        );
        check_text(
            "crates/cli/src/a.rs",
            "json!({\"state\": \"waiting\"})",
            &["there is no state `waiting`"],
        );
        check_text(
            "README.md",
            "{\"state\": \"open\"} {\"state\":\"needs_approval\"} {\"code\": \"TASK_GONE\"}",
            &[],
        );
        check_text(
            "crates/cli/src/a.rs",
            "json!({\"state\": state}); format!(\"{{\\\"code\\\": \\\"{code}\\\"}}\")",
            &[],
        );
    }

    #[test]
    fn a_word_that_is_spelt_otherwise_is_found() {
        check_text("README.md", "it is `needs-approval`", &["`needs-approval` is spelt `needs_approval`"]);
        check_text("README.md", "it is `RUN_TIMEOUT`", &["`RUN_TIMEOUT` is spelt `run_timeout`"]);
        check_text(
            "crates/cli/src/a.rs",
            "f(\"outcome-unknown\")",
            &["`outcome-unknown` is spelt `outcome_unknown`"],
        );
        check_text(
            "README.md",
            "`NeedsApproval`, `provider-unavailable`, `provider_unavailable`, `timeout`",
            &[],
        );
    }
}
