//! A person in control of the real codex: a question answered, a word into the turn, a patch of which one hunk is applied, a
//! budget that the gateway keeps, a policy that only narrows.
//!
//! clause: B07
//! clause: C11
//! clause: C12
//! clause: C16
//! clause: C24

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use serde_json::{Value, json};

use support::codex::{Bench, kinds, nothing_left};
use support::eventually;

const POEM: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\neleven\ntwelve\n";

/// Changes both ends of a file, in one patch.
const PATCH_TWICE: &str = r#"
about = "A patch of two hunks, then a text."

[[step]]
[[step.answer.call]]
tool = "apply_patch"
input = """
*** Begin Patch
*** Update File: poem.txt
@@
-one
+ONE
 two
@@
 eleven
-twelve
+TWELVE
*** End Patch
"""

[[step]]
answer.say = ["Both ends ", "are louder."]
"#;

#[test]
fn c12_a_patch_of_codex_is_approved_and_one_hunk_of_it_reaches_the_persons_file() {
    let scenarios = tempfile::tempdir().unwrap();
    std::fs::write(scenarios.path().join("twice.toml"), PATCH_TWICE).unwrap();
    let bench = Bench::with("", Some(scenarios.path()));
    for agent in ["codex", "deepseek"] {
        let poem = bench.yard.workspace.path().join("poem.txt");
        std::fs::write(&poem, POEM).unwrap();
        let (hub, api) = bench.yard.up();
        let run = bench.start(&api, agent, "[[scenario:twice]]");
        let patch = api.asked(&run, &[]);
        if patch["request"]["kind"] == "patch" {
            api.approve(&patch);
        }
        let apply = eventually("its changes are asked about", || {
            let open = api.get(&format!("/approvals?run={run}"));
            open["approvals"]
                .as_array()
                .unwrap()
                .iter()
                .find(|one| one["request"]["kind"] == "apply")
                .cloned()
        });
        assert_eq!(
            std::fs::read_to_string(&poem).unwrap(),
            POEM,
            "nothing reaches the file before it is applied"
        );
        let diff = api.get(&format!("/runs/{run}/diff"));
        let file = &diff["files"][0];
        let selection = json!([{"file": file["id"], "hunks": [2]}]);
        let path = format!("/approvals/{}/resolve", apply["id"].as_str().unwrap());
        api.post(&path, &json!({"decision": "approve", "digest": apply["digest"], "selection": selection}));
        api.until(&run, "completed");
        assert_eq!(std::fs::read_to_string(&poem).unwrap(), POEM.replace("twelve", "TWELVE"), "{agent}");
        nothing_left(&run);
        drop(hub);
    }
}

#[test]
fn c24_a_word_into_the_turn_reaches_the_model_before_the_turn_ends() {
    let bench = Bench::new();
    let (_hub, api) = bench.yard.up();
    let run = bench.start(&api, "codex", "[[scenario:slow]]");
    eventually("it speaks", || kinds(&api.events(&run)).contains(&"run.message.delta").then_some(()));
    let word = "[[scenario:text]] in Latin, please";
    api.post(&format!("/runs/{run}/commands"), &json!({"kind": "steer", "text": word}));
    let done = api.until(&run, "completed");
    assert_eq!(done["response"], "Hello from the demo provider.");
    let events = api.events(&run);
    assert_eq!(
        kinds(&events).iter().filter(|kind| **kind == "run.turn.started").count(),
        1,
        "it is the same turn"
    );
    let heard = |request: &runyard_demo_provider::Recorded| request.body.contains("in Latin, please");
    assert!(bench.responses.requests().iter().any(heard), "the model hears it");
}

#[test]
fn c16_the_gateway_counts_and_a_run_ends_at_its_budget() {
    let bench = Bench::new();
    let (_hub, api) = bench.yard.up();
    for agent in ["codex", "deepseek"] {
        let policy = json!({"executionPolicy": {"budget": {"tokens": 100}}});
        let run = bench.start_with(&api, agent, "[[scenario:shell echo hello]]", &policy);
        let ended = eventually("it is over", || {
            let found = api.run(&run);
            if found["state"] == "needs_approval" {
                let open = api.get(&format!("/approvals?run={run}"));
                open["approvals"].as_array().unwrap().iter().for_each(|one| {
                    let path = format!("/approvals/{}/resolve", one["id"].as_str().unwrap());
                    api.send("POST", &path, Some(&json!({"decision": "approve", "digest": one["digest"]})));
                });
            }
            (found["state"] == "failed").then_some(found)
        });
        assert_eq!(ended["code"], "budget_exceeded", "{agent}: {ended}");
        let last = api.events(&run).pop().unwrap();
        assert!(last["payload"]["exceeded"]["used"].as_u64().unwrap() > 100, "{last}");
        nothing_left(&run);
        let policy = json!({"executionPolicy": {"budget": {"tokens": 10_000_000}}});
        let run = bench.start_with(&api, agent, "[[scenario:text]]", &policy);
        let done = api.until(&run, "completed");
        assert_eq!(done["response"], "Hello from the demo provider.");
    }
}

#[test]
fn b07_an_execution_policy_of_a_run_only_narrows() {
    let bench = Bench::with(
        "\n[agent.codex]\nsandbox = \"read-only\"\nnetwork = \"deny\"\napproval = \"ask\"\ntimeout_ms = 60000\n",
        None,
    );
    let (_hub, api) = bench.yard.up();
    let wanted = json!({"executionPolicy": {"sandbox": "none", "network": "allow", "timeoutMs": 600_000}});
    let run = bench.start_with(&api, "codex", "[[scenario:shell touch made.txt]]", &wanted);
    let policy = api.events(&run).remove(0)["payload"]["executionPolicy"].clone();
    assert_eq!(
        (&policy["sandbox"], &policy["network"], &policy["timeoutMs"]),
        (&json!("read-only"), &json!("deny"), &json!(60_000))
    );
    api.approve(&api.asked(&run, &[]));
    let done = api.until(&run, "completed");
    assert_eq!(bench.file(&run, "made.txt"), None, "{done}");
    let result = api.events(&run).into_iter().find(|event| event["type"] == "run.tool.result").unwrap();
    assert_eq!(result["payload"]["outcome"], "failed", "the sandbox is read-only: {result}");
    let started = api.events(&run).into_iter().find(|event| event["type"] == "run.started").unwrap();
    let sandbox = started["payload"]["checks"]["sandbox"].as_str().unwrap();
    assert!(sandbox.contains("no network but the gateway"), "{sandbox}");
    assert!(!kinds(&api.events(&run)).contains(&"run.degraded"));
}

#[test]
fn c12_a_question_of_codex_is_answered_by_a_person() {
    let bench = Bench::new();
    let (_hub, api) = bench.yard.up();
    let run = bench.start(&api, "codex", "[[scenario:question]]");
    let approval: Value = api.asked(&run, &[]);
    assert_eq!(approval["request"]["kind"], "question", "{approval}");
    let path = format!("/approvals/{}/resolve", approval["id"].as_str().unwrap());
    let answer = json!({"decision": "approve", "digest": approval["digest"], "answer": {"choice": "Blue"}});
    api.post(&path, &answer);
    api.until(&run, "completed");
    let heard = |request: &runyard_demo_provider::Recorded| request.body.contains("Blue");
    assert!(bench.responses.requests().iter().skip(1).any(heard), "the model gets the answer");
}

#[test]
fn b12_a_closed_session_keeps_nothing_of_the_agents_and_everything_of_the_record() {
    let bench = Bench::new();
    let (_hub, api) = bench.yard.up();
    let run = bench.start(&api, "codex", "[[scenario:shell echo hello]]");
    let approval = api.asked(&run, &[]);
    let session = api.run(&run)["sessionId"].as_str().unwrap().to_owned();
    let kept = bench.yard.home.path(&format!("edge/sessions/{session}"));
    let close = || bench.yard.home.run(["sessions", "close", &session, "--output", "json"]);
    let (_, code, message) = close().failure();
    assert_eq!(code, "CONFLICT", "{message}");
    api.approve(&approval);
    api.until(&run, "completed");
    nothing_left(&run);
    assert!(kept.is_dir());
    eventually("it is closed", || (close().exit == 0).then_some(()));
    assert!(!kept.exists());
    assert!(!api.events(&run).is_empty());
    let audited = api.audit("audit.session");
    assert_eq!(audited[0]["what"]["sessionId"], json!(session));
    let next = bench.start_with(&api, "codex", "and now?", &json!({ "continues": run }));
    let failed = api.until(&next, "failed");
    assert!(failed["message"].as_str().unwrap().contains("its session was closed"), "{failed}");
    let (_, code, _) = bench
        .yard
        .home
        .run(["sessions", "close", "ses_018bcfe5680077078707070707070707", "--output", "json"])
        .failure();
    assert_eq!(code, "NOT_FOUND");
}
