//! The official MCP conformance suite against the fixture application, on both wire revisions.
//!
//! clause: A20

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use runyard_testkit::mcp_fixture::{FixtureServer, Tokens};
use serde_json::Value;

use support::{Programs, lines_of};

const SKIPPED: &str = include_str!("../mcp-skipped.txt");

/// What came of one scenario.
#[derive(Debug, Default)]
struct Scenario {
    passed: usize,
    /// Everything that is neither passed nor mere information.
    not_passed: Vec<String>,
}

impl Scenario {
    fn passes(&self) -> bool {
        self.passed > 0 && self.not_passed.is_empty()
    }
}

#[test]
fn every_scenario_of_2025_11_25_passes() {
    check("2025-11-25", &["server-session-lifecycle", "json-schema-2020-12", "server-sse-polling"]);
}

#[test]
fn every_scenario_of_2026_07_28_passes_with_tasks_and_headers() {
    check(
        "2026-07-28",
        &[
            "tasks-lifecycle",
            "tasks-capability-negotiation",
            "tasks-wire-fields",
            "tasks-request-state-removal",
            "tasks-mrtr-input",
            "tasks-request-headers",
            "tasks-dispatch-and-envelope",
            "tasks-status-notifications",
            "tasks-required-task-error",
            "tasks-mrtr-composition",
            "json-schema-2020-12",
            "http-header-validation",
            "http-custom-header-server-validation",
        ],
    );
}

/// Runs what a revision requires of a server, and what the suite runs beside it without counting it.
#[track_caller]
fn check(revision: &str, not_scored: &[&str]) {
    println!("{SKIPPED}");
    let programs = Programs::find();
    let server = FixtureServer::start(Tokens::Added).unwrap();
    let results = tempfile::tempdir().unwrap();
    let mut suite = programs.conformance();
    suite.args(["server", "--url", &server.url(), "--requirements", revision]);
    let said = lines_of(suite.arg("-o").arg(results.path()));
    let ran = scenarios(results.path());
    let wanted: BTreeSet<String> = programs
        .required(revision)
        .into_iter()
        .chain(not_scored.iter().map(|name| (*name).to_owned()))
        .collect();
    let missing: Vec<_> = wanted.iter().filter(|name| !ran.contains_key(*name)).collect();
    assert!(missing.is_empty(), "the suite did not run {missing:?}:\n{said}");
    let skipped = skipped(revision);
    let failed: Vec<_> =
        ran.iter().filter(|(name, ran)| !ran.passes() && !skipped.contains(name.as_str())).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    let shrunk: Vec<_> =
        skipped.into_iter().filter(|name| ran.get(*name).is_none_or(|ran| ran.passes())).collect();
    assert!(shrunk.is_empty(), "strike these from mcp-skipped.txt, they pass or are gone: {shrunk:?}");
}

/// The names in the list of what is skipped.
fn skipped(revision: &str) -> BTreeSet<&'static str> {
    let entries = SKIPPED.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let entry = |line: &'static str| {
        let (of, reason) = line.split_once(": ").unwrap_or_else(|| panic!("no reason: {line}"));
        assert!(!reason.is_empty(), "no reason: {line}");
        of.split_once(' ').unwrap_or_else(|| panic!("no revision: {line}"))
    };
    entries.map(entry).filter(|(of, _)| *of == revision).map(|(_, name)| name).collect()
}

/// What the suite wrote down: a folder `server-NAME-TIME` for each scenario.
fn scenarios(results: &Path) -> BTreeMap<String, Scenario> {
    const TIME_LENGTH: usize = "-2026-07-28T00-00-00-000Z".len();
    let mut scenarios = BTreeMap::<String, Scenario>::new();
    for folder in std::fs::read_dir(results).unwrap() {
        let folder = folder.unwrap();
        let name = folder.file_name().into_string().unwrap();
        let name = name.strip_prefix("server-").unwrap();
        let scenario = scenarios.entry(name[..name.len() - TIME_LENGTH].to_owned()).or_default();
        let checks = std::fs::read(folder.path().join("checks.json")).unwrap();
        let checks: Vec<Value> = serde_json::from_slice(&checks).unwrap();
        for check in checks {
            match check["status"].as_str().unwrap() {
                "SUCCESS" => scenario.passed += 1,
                "INFO" => {}
                status => scenario.not_passed.push(format!(
                    "{status} {}: {}",
                    check["name"].as_str().unwrap_or_default(),
                    check["errorMessage"].as_str().unwrap_or_default()
                )),
            }
        }
    }
    scenarios
}
