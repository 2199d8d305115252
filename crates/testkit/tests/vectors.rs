//! The vector table on every surface: one definition, the same envelope for the same call.

use std::collections::BTreeSet;
use std::path::Path;

use runyard::Surface;
use runyard::surfaces::llm_tools::Format;
use runyard_testkit::drivers::ai_sdk::AiSdkDriver;
use runyard_testkit::drivers::browser::BrowserDriver;
use runyard_testkit::drivers::cli::CliDriver;
use runyard_testkit::drivers::http::HttpDriver;
use runyard_testkit::drivers::json_runner::JsonRunnerDriver;
use runyard_testkit::drivers::mcp::{McpHttpDriver, McpStdioDriver, Revision};
use runyard_testkit::{Driver, Table, Vector, failures, vector_app};
use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_vector-app");
/// A16, with the codes that actions may raise, and A17 as far as a call can lead there.
const CODES: [&str; 15] = [
    "ACTION_NOT_FOUND",
    "UNSUPPORTED_SURFACE",
    "VALIDATION_ERROR",
    "CONFIRMATION_REQUIRED",
    "AUTHORIZATION_ERROR",
    "OUTPUT_SERIALIZATION_ERROR",
    "OUTPUT_VALIDATION_ERROR",
    "TIMEOUT",
    "CANCELLED",
    "INTERNAL_ERROR",
    "CONFLICT",
    "CONCURRENCY_LIMIT",
    "AUTHENTICATION_ERROR",
    "EXTERNAL_SERVICE_ERROR",
    "INVALID_JSON_RUNNER_PAYLOAD",
];

/// Some inputs are nested so deep that cloning them needs more than a test's usual stack.
const STACK_BYTES: usize = 64 * 1024 * 1024;

#[track_caller]
#[allow(clippy::unwrap_used, reason = "a test that cannot start fails")]
fn check<D: Driver>(start: impl FnOnce() -> D + Send + 'static) {
    let deep = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
        let (table, driver) = (Table::load(), start());
        (failures(&table, &driver), table.vectors.len())
    });
    let (failures, all) = deep.unwrap().join().unwrap();
    let wrong = failures.len();
    assert!(failures.is_empty(), "{wrong} differences in {all} vectors:\n{}\n", failures.join("\n"));
}

#[test]
fn a20_every_vector_gives_its_envelope_on_the_command_line() {
    check(|| CliDriver::new(PROGRAM).unwrap());
}

#[test]
fn a20_every_vector_gives_its_envelope_from_the_json_runner() {
    check(|| JsonRunnerDriver::new(PROGRAM).unwrap());
}

#[test]
fn a20_every_vector_gives_its_envelope_over_http() {
    check(|| HttpDriver::start(Path::new(PROGRAM), "vector-app").unwrap());
}

// A04: confirmation is the page's to ask for, and the table says so.
#[test]
fn a20_every_vector_gives_its_envelope_on_the_dev_page() {
    check(|| BrowserDriver::dev(Path::new(PROGRAM), "vector-app").unwrap());
}

// A04, A21: likewise, over the API in a session, as the React package calls.
#[test]
fn a20_every_vector_gives_its_envelope_on_react() {
    check(|| BrowserDriver::react(Path::new(PROGRAM), "vector-app").unwrap());
}

#[test]
fn a20_every_vector_gives_its_envelope_as_a_models_tool_call_of_each_provider() {
    for format in Format::ALL {
        check(move || AiSdkDriver::new(vector_app(), format).unwrap());
    }
}

#[test]
fn a20_every_vector_gives_its_envelope_over_mcp_on_stdio_in_the_older_revision() {
    check(|| McpStdioDriver::new(PROGRAM, Revision::Session));
}

#[test]
fn a20_every_vector_gives_its_envelope_over_mcp_on_stdio_in_the_newer_revision() {
    check(|| McpStdioDriver::new(PROGRAM, Revision::Stateless));
}

#[test]
fn a20_every_vector_gives_its_envelope_over_mcp_on_http_in_the_older_revision() {
    check(|| McpHttpDriver::start(Path::new(PROGRAM), "vector-app", Revision::Session).unwrap());
}

#[test]
fn a20_every_vector_gives_its_envelope_over_mcp_on_http_in_the_newer_revision() {
    check(|| McpHttpDriver::start(Path::new(PROGRAM), "vector-app", Revision::Stateless).unwrap());
}

#[test]
fn the_table_covers_every_code_and_has_at_least_forty_vectors() {
    let vectors = Table::load().vectors;
    assert!(vectors.len() >= 40, "{} vectors", vectors.len());
    let names: BTreeSet<&str> = vectors.iter().map(|vector| vector.name.as_str()).collect();
    assert_eq!(names.len(), vectors.len(), "two vectors have one name");
    let codes: BTreeSet<&str> = vectors.iter().filter_map(|vector| code(&vector.expect)).collect();
    for code in CODES {
        assert!(codes.contains(code), "no vector expects {code}");
    }
    assert!(codes.contains("OUT_OF_STOCK"), "no vector expects a code of its own");
    assert!(vectors.iter().any(|vector| vector.expect["ok"] == true), "no vector succeeds");
}

#[test]
fn every_vector_names_clauses_and_every_difference_says_why() {
    let is_clause = |text: &str| {
        let number =
            text.strip_prefix('A').filter(|number| number.len() == 2).and_then(|number| number.parse().ok());
        number.is_some_and(|number: u8| (1..=22).contains(&number))
    };
    let mut proven = BTreeSet::new();
    for Vector { name, clauses, before, on, .. } in Table::load().vectors {
        assert!(!clauses.is_empty() && clauses.iter().all(|clause| is_clause(clause)), "{name}: {clauses:?}");
        proven.extend(clauses);
        let named: Vec<&str> = on.keys().flat_map(|words| words.split(' ')).collect();
        assert_eq!(BTreeSet::from_iter(&named).len(), named.len(), "{name}: a surface differs twice");
        for (words, different) in &on {
            assert!(words.split(' ').all(|word| word.parse::<Surface>().is_ok()), "{name}: {words}");
            let (clause, reason) = different.because.split_once(": ").unwrap_or_default();
            assert!(is_clause(clause) && !reason.is_empty(), "{name}: {}", different.because);
        }
        let skipped_on_cli = on.get("cli").is_some_and(|different| different.expect.is_none());
        assert!(before.is_empty() || skipped_on_cli, "{name}: a command has no call before it");
    }
    // A20 is the table itself, A22 is about who may name a surface.
    let missing: Vec<String> =
        (1..=21).map(|number| format!("A{number:02}")).filter(|id| !proven.contains(id)).collect();
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn a19_exit_codes_are_those_of_the_clause() {
    let exit = |code: &str| runyard::ErrorCode::parse(code).unwrap().row().exit;
    let own = [
        ("VALIDATION_ERROR", 2),
        ("AUTHENTICATION_ERROR", 3),
        ("AUTHORIZATION_ERROR", 3),
        ("ACTION_NOT_FOUND", 4),
        ("EXTERNAL_SERVICE_ERROR", 5),
        ("TIMEOUT", 124),
        ("CANCELLED", 130),
    ];
    for code in CODES.into_iter().chain(["OUT_OF_STOCK"]) {
        let due = own.iter().find(|(known, _)| *known == code).map_or(1, |(_, exit)| *exit);
        assert_eq!(exit(code), due, "{code}");
    }
}

fn code(expect: &Value) -> Option<&str> {
    expect["error"]["code"].as_str()
}
