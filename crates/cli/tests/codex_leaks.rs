//! A secret that an agent is made to say, print, or fail with is in nothing that is written or shown, nor in the agent's process.
//!
//! clause: B06
//! clause: B11
//! clause: B17
//! clause: C09
//! clause: C15

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::path::PathBuf;

use support::codex::{Bench, CODEX_KEY, codex_of, nothing_left};

/// Whether a key is in some bytes, plainly or in one of the usual wrappings.
fn holds(bytes: &[u8], key: &str) -> bool {
    use std::fmt::Write as _;
    let hex = key.bytes().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    [key.to_owned(), hex].iter().any(|form| bytes.windows(form.len()).any(|window| window == form.as_bytes()))
}

#[track_caller]
fn nowhere(files: &[PathBuf]) {
    assert!(files.len() > 10);
    for file in files {
        let bytes = std::fs::read(file).unwrap_or_default();
        assert!(!holds(&bytes, CODEX_KEY), "the key is in {}", file.display());
    }
}

#[test]
fn b11_b12_the_key_is_in_no_process_of_the_agent_and_in_nothing_written_or_answered() {
    let bench = Bench::with("debug_raw = true", None);
    let (hub, api) = bench.yard.up();
    let mut runs = Vec::new();
    for scenario in ["secret-echo", "secret-pieces", "secret-error", "http-401"] {
        let run = bench.start(&api, "codex", &format!("[[scenario:{scenario}]]"));
        runs.push(run);
    }
    let shell = bench.start(&api, "codex", "[[scenario:secret-shell]]");
    let approval = api.asked(&shell, &[]);
    let processes = codex_of(&shell);
    assert!(!processes.is_empty());
    for pid in processes {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
        let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap();
        assert!(
            !holds(&environ, CODEX_KEY) && !holds(&arguments, CODEX_KEY),
            "the key never enters the agent's process"
        );
    }
    nowhere(&bench.written());
    api.approve(&approval);
    runs.push(shell);
    for run in &runs {
        support::eventually("it is over", || {
            let found = api.run(run);
            let state = found["state"].as_str().unwrap();
            if state == "needs_approval" {
                api.until(run, "completed");
            }
            ["completed", "failed", "cancelled"].contains(&state).then_some(())
        });
        nothing_left(run);
        let (_, events) = api.send("GET", &format!("/runs/{run}/events?limit=500"), None);
        let (_, shown) = api.send("GET", &format!("/runs/{run}"), None);
        assert!(!holds(events.as_bytes(), CODEX_KEY) && !holds(shown.as_bytes(), CODEX_KEY));
    }
    let debug: Vec<_> = api
        .events(&runs[0])
        .into_iter()
        .filter(|event| event["type"] == "run.artifact.ready" && event["payload"]["kind"] == "debug")
        .collect();
    assert_eq!(debug.len(), 1, "the raw lines are kept where the profile says so");
    for path in ["/backends", "/health", "/audit", "/agents", "/edges"] {
        let (_, body) = api.send("GET", path, None);
        assert!(!holds(body.as_bytes(), CODEX_KEY), "{path}");
    }
    drop(hub);
    nowhere(&bench.written());
}

#[test]
fn c09_raw_lines_are_kept_only_where_the_profile_says_so() {
    let bench = Bench::new();
    let (_hub, api) = bench.yard.up();
    let run = bench.start(&api, "codex", "[[scenario:text]]");
    api.until(&run, "completed");
    let artifacts = api.events(&run).into_iter().filter(|event| event["type"] == "run.artifact.ready");
    assert_eq!(artifacts.count(), 0);
}
