//! The logs of `web/fixtures`: legal, stored as a hub stores them, and folded into what stands beside them. The TypeScript client
//! folds the same files, so both languages say the same about a run.
//!
//! clause: C03
//! clause: C07
//! clause: C08
//! clause: C10
//! clause: C16

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed expectation fails the test"
)]

use std::collections::BTreeSet;

use runyard_domain::run::{FailureKind, RunEvent, RunState};
use runyard_domain::{Event, Timestamp};
use runyard_testkit::fixtures::{self, Log};
use runyard_testkit::typescript::{check_generated, problems};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap() + "\n"
}

fn check_log(log: &Log) {
    check_generated(&log.path(), &(log.lines.join("\n") + "\n"));
}

#[test]
fn c03_c08_rust_folds_every_fixture_into_the_view_beside_it() {
    fixtures::legal().iter().for_each(check_log);
    let logs = fixtures::stored("fixtures");
    assert!(logs.len() >= 30, "the fixtures are there");
    for log in logs {
        check_generated(&log.view_path(), &pretty(&fixtures::view(&log.events())));
    }
}

#[test]
fn c03_c08_rust_refuses_every_illegal_fixture_at_the_place_beside_it() {
    let made = fixtures::illegal();
    made.iter().for_each(|(log, _)| check_log(log));
    let logs = fixtures::stored("fixtures/illegal");
    for log in &logs {
        let place = fixtures::first_illegal(&log.events()).expect(&log.name);
        check_generated(&log.view_path(), &pretty(&json!({ "illegalAt": place })));
    }
    for (log, place) in &made {
        assert_eq!(fixtures::first_illegal(&log.events()), Some(*place), "{}", log.name);
        assert!(logs.contains(log), "{} is stored", log.name);
    }
}

#[test]
fn c10_c16_the_fixtures_have_every_event_every_state_every_failure_kind_a_cause_and_every_answer() {
    let logs = fixtures::stored("fixtures");
    let events: Vec<Event> = logs.iter().flat_map(Log::events).collect();
    let words = |of: &str, field: &str| -> BTreeSet<String> {
        let found =
            events.iter().filter(|event| event.kind == of).filter_map(|event| event.payload.pointer(field));
        found.map(|word| word.as_str().unwrap().to_owned()).collect()
    };
    let types: BTreeSet<&str> = events.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(types, RunEvent::KINDS.iter().copied().collect());
    let kinds = FailureKind::ALL.map(|kind| kind.code().as_str().to_owned());
    assert_eq!(words("run.failed", "/failureKind"), kinds.into_iter().collect());
    assert_eq!(words("run.failed", "/cause"), ["inference.rate_limited".to_owned()].into());
    let answers = ["approved", "rejected", "expired", "withdrawn"].map(str::to_owned);
    assert_eq!(words("run.approval.resolved", "/resolution"), answers.into_iter().collect());

    let passed: BTreeSet<String> = logs.iter().flat_map(states_passed).collect();
    assert_eq!(passed, RunState::NAMES.map(str::to_owned).into_iter().collect());
}

fn states_passed(log: &Log) -> BTreeSet<String> {
    let events = log.events();
    let views = (1..=events.len()).map(|end| fixtures::view(&events[..end]));
    views.map(|view| view["state"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn c07_every_fixture_is_a_chain_of_stored_bytes_in_order() {
    for log in fixtures::stored("fixtures").into_iter().chain(fixtures::stored("fixtures/illegal")) {
        let (mut before, mut last): (Option<&String>, Option<Timestamp>) = (None, None);
        for (place, (line, event)) in (1..).zip(log.lines.iter().zip(log.events())) {
            assert_eq!(event.sequence, place, "{}", log.name);
            let hash = before
                .map(|before| Sha256::digest(before).iter().map(|byte| format!("{byte:02x}")).collect());
            assert_eq!(event.prev_hash, hash, "{} {place}", log.name);
            assert!(last <= Some(event.timestamp), "{} {place}", log.name);
            (before, last) = (Some(line), Some(event.timestamp));
        }
    }
}

#[test]
fn c10_every_event_of_a_fixture_has_the_generated_type() {
    for log in fixtures::stored("fixtures") {
        for line in &log.lines {
            let event: Value = serde_json::from_str(line).unwrap();
            assert_eq!(problems("Event", &event), [""; 0], "{}: {line}", log.name);
            let kind = event["type"].as_str().unwrap();
            assert_eq!(problems(kind, &event["payload"]), [""; 0], "{}: {line}", log.name);
        }
    }
}
