//! Every failure of a provider that can be provoked, through the real codex and the gateway, has its stable kind.
//!
//! clause: B10
//! clause: C16

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use serde_json::json;

use support::codex::{Bench, nothing_left};

/// Agent, scenario, failure kind and the run's code.
type Row = (&'static str, &'static str, &'static str, &'static str);

#[track_caller]
fn each_fails_so(table: &[Row]) {
    let bench = Bench::new();
    let (_hub, api) = bench.yard.up();
    let start = |(agent, scenario, ..): &Row| bench.start(&api, agent, &format!("[[scenario:{scenario}]]"));
    let runs: Vec<String> = table.iter().map(start).collect();
    for ((agent, scenario, kind, code), run) in table.iter().zip(&runs) {
        let failed = api.until(run, "failed");
        let found = (&failed["failureKind"], &failed["code"]);
        assert_eq!(found, (&json!(kind), &json!(code)), "{agent} {scenario}: {failed}");
        assert!(failed["recovery"].as_str().is_some_and(|recovery| !recovery.is_empty()), "{failed}");
        nothing_left(run);
    }
}

#[test]
fn b10_what_would_fail_again_fails_at_once_and_by_its_kind_on_both_wires() {
    #[rustfmt::skip]
    each_fails_so(&[
        ("codex",    "http-400",              "backend-failed",        "runtime_unavailable"),
        ("codex",    "http-401",              "provider-auth-failed",  "runtime_unavailable"),
        ("codex",    "http-402",              "provider-rate-limited", "provider_rate_limited"),
        ("codex",    "http-403",              "provider-auth-failed",  "runtime_unavailable"),
        ("codex",    "http-404",              "backend-failed",        "runtime_unavailable"),
        ("codex",    "quota",                 "provider-rate-limited", "provider_rate_limited"),
        ("codex",    "failed-context-length", "backend-failed",        "runtime_unavailable"),
        ("codex",    "failed-quota",          "provider-rate-limited", "provider_rate_limited"),
        ("codex",    "incomplete",            "backend-failed",        "runtime_unavailable"),
        ("deepseek", "http-400",              "backend-failed",        "runtime_unavailable"),
        ("deepseek", "http-401",              "provider-auth-failed",  "runtime_unavailable"),
        ("deepseek", "http-402",              "provider-rate-limited", "provider_rate_limited"),
        ("deepseek", "http-404",              "backend-failed",        "runtime_unavailable"),
        ("deepseek", "quota",                 "provider-rate-limited", "provider_rate_limited"),
    ]);
}

#[test]
fn b10_what_may_pass_is_tried_again_and_then_fails_by_its_kind() {
    #[rustfmt::skip]
    each_fails_so(&[
        ("codex", "http-429",            "provider-rate-limited", "provider_rate_limited"),
        ("codex", "http-500",            "provider-unavailable",  "provider_unavailable"),
        ("codex", "http-503",            "provider-unavailable",  "provider_unavailable"),
        ("codex", "http-529",            "provider-unavailable",  "provider_unavailable"),
        ("codex", "cut",                 "provider-unavailable",  "provider_unavailable"),
        ("codex", "cut-call",            "provider-unavailable",  "provider_unavailable"),
        ("codex", "unfinished",          "provider-unavailable",  "provider_unavailable"),
        ("codex", "malformed",           "provider-unavailable",  "provider_unavailable"),
        ("codex", "html",                "provider-unavailable",  "provider_unavailable"),
        ("codex", "failed-overloaded",   "provider-unavailable",  "provider_unavailable"),
        ("codex", "failed-server-error", "provider-unavailable",  "provider_unavailable"),
        ("codex", "failed-rate-limit",   "provider-rate-limited", "provider_rate_limited"),
    ]);
}

#[test]
fn b10_what_may_pass_is_tried_again_also_behind_the_translation() {
    #[rustfmt::skip]
    each_fails_so(&[
        ("deepseek", "http-429",         "provider-rate-limited", "provider_rate_limited"),
        ("deepseek", "http-500",         "provider-unavailable",  "provider_unavailable"),
        ("deepseek", "http-503",         "provider-unavailable",  "provider_unavailable"),
        ("deepseek", "cut",              "provider-unavailable",  "provider_unavailable"),
        ("deepseek", "unfinished",       "provider-unavailable",  "provider_unavailable"),
        ("deepseek", "malformed",        "provider-unavailable",  "provider_unavailable"),
        ("deepseek", "html",             "provider-unavailable",  "provider_unavailable"),
        ("deepseek", "failed-overloaded","provider-unavailable",  "provider_unavailable"),
    ]);
}

#[test]
fn b10_a_provider_that_is_not_there_is_unavailable() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let more = format!(
        "\n[backend.gone]\ncommand = [{:?}]\nbase_url = \"http://{closed}/v1\"\nmodel = \"gpt-5.5\"\n[agent.gone]\nbackend = \"gone\"\n",
        support::codex::program()
    );
    let bench = Bench::with(&more, None);
    bench.secret("gone", "some-key-of-nobody");
    let (_hub, api) = bench.yard.up();
    let run = bench.start(&api, "gone", "hello");
    let failed = api.until(&run, "failed");
    assert_eq!(failed["failureKind"], "provider-unavailable", "{failed}");
    nothing_left(&run);
}

#[test]
fn b10_a_provider_that_fails_for_a_moment_is_no_failure() {
    let bench = Bench::new();
    let (_hub, api) = bench.yard.up();
    for agent in ["codex", "deepseek"] {
        let run = bench.start(&api, agent, "[[scenario:flaky]]");
        assert_eq!(api.until(&run, "completed")["response"], "It works now.");
    }
}

#[test]
fn b10_a_program_that_is_not_there_or_is_none_fails_before_anything_starts() {
    let bench = Bench::with(
        "\n[backend.absent]\ncommand = [\"/nowhere/codex\"]\nrequired_secret_keys = []\n[agent.absent]\nbackend = \"absent\"\n\
         [backend.other]\ncommand = [\"/bin/true\"]\nrequired_secret_keys = []\n[agent.other]\nbackend = \"other\"\n",
        None,
    );
    let (_hub, api) = bench.yard.up();
    for agent in ["absent", "other"] {
        let run = bench.start(&api, agent, "hello");
        let failed = api.until(&run, "failed");
        assert_eq!(failed["failureKind"], "backend-spawn-failed", "{failed}");
    }
}

#[test]
fn b10_a_provider_that_stalls_ends_by_our_own_deadline() {
    let bench = Bench::new();
    let (_hub, api) = bench.yard.up();
    let policy = json!({"executionPolicy": {"timeoutMs": 6000, "idleMs": 1000}});
    for scenario in ["slow", "stall", "no-headers"] {
        let run = bench.start_with(&api, "codex", &format!("[[scenario:{scenario}]]"), &policy);
        let failed = api.until(&run, "failed");
        assert_eq!(
            (&failed["code"], &failed["failureKind"]),
            (&json!("run_timeout"), &json!("backend-timeout")),
            "{failed}"
        );
        let silent = failed["degraded"].to_string().contains("silent for more than 1000 ms");
        assert_eq!(silent, scenario != "slow", "{failed}");
        nothing_left(&run);
    }
}

#[test]
fn b10_a_cancelled_run_is_cancelled_by_whom_and_nothing_is_left() {
    let bench = Bench::new();
    let (_hub, api) = bench.yard.up();
    let run = bench.start(&api, "codex", "[[scenario:slow]]");
    support::eventually("it speaks", || {
        api.events(&run).iter().any(|event| event["type"] == "run.message.delta").then_some(())
    });
    api.post(&format!("/runs/{run}/cancel"), &json!({"reason": "no longer wanted"}));
    api.until(&run, "cancelled");
    let last = api.events(&run).pop().unwrap();
    assert_eq!(last["payload"]["reason"], "no longer wanted");
    nothing_left(&run);
}
