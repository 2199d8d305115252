//! The TypeScript client's types of the actions are those of the OpenAPI document that a hub serves, and a hub's answers have them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use serde_json::{Value, json};

use runyard_testkit::typescript::{actions, answer_problems, check_generated};
use support::api::{Api, Scripted, Yard};

const WRITES: Scripted<'_> = Scripted {
    name: "writes",
    profile: "",
    script: r#"
[[turn]]
[[turn.step]]
status = { model = "scripted", input_tokens = 12, output_tokens = 3, cost_usd = 0.01 }
[[turn.step]]
write = "notes.md"
content = "One line.\n"
[[turn.step]]
say = "I wrote a line."
"#,
};

fn document(api: &Api) -> Value {
    let (status, text) = api.send("GET", "/openapi.json", None);
    assert_eq!(status, 200, "{text}");
    serde_json::from_str(&text).unwrap()
}

/// The actions of the example, which an installation need not have.
fn of_the_example() -> Vec<String> {
    runyard_example_tasks::actions().into_iter().map(|action| action.unwrap().name().to_owned()).collect()
}

#[test]
fn the_generated_actions_are_those_of_the_document_that_the_hub_serves() {
    let yard = Yard::new("", &[]);
    let (_hub, api) = yard.up();
    let text = actions(&document(&api), &of_the_example());
    check_generated("packages/client/src/generated/actions.ts", &text);
    assert!(
        text.contains("run_create:") && text.contains("approval_resolve:"),
        "what only people may do is there"
    );
    assert!(!text.contains("task_create"), "what only the example has is not");
}

#[test]
fn what_actions_answer_has_the_generated_types() {
    let yard = Yard::new("", &[WRITES]);
    let (_hub, api) = yard.up();
    let document = document(&api);
    let call = |action: &str, input: Value| {
        let data =
            api.post(&format!("/actions/{action}/invoke"), &json!({ "input": input, "confirm": true }));
        assert_eq!(answer_problems(&document, action, &data), [""; 0], "{action}: {data}");
        data
    };
    let wrong = json!({ "runs": [{ "id": null }] });
    assert_ne!(answer_problems(&document, "run_list", &wrong), [""; 0], "another shape is found");

    let new = json!({ "task": "Write a line.", "agent": "writes", "workspace": yard.place() });
    let made = call("run_create", new);
    let run = made["run"]["id"].as_str().unwrap();
    let approval = api.asked(run, &[]);
    call("approval_list", json!({}));
    call("approval_show", json!({ "id": approval["id"] }));
    call("approval_snooze", json!({ "id": approval["id"], "forMs": 60_000 }));
    let file = call("run_diff", json!({ "id": run }))["files"][0]["id"].clone();
    call("run_diff_file", json!({ "id": run, "file": file }));
    call(
        "approval_resolve",
        json!({ "id": approval["id"], "digest": approval["digest"], "decision": "approve" }),
    );
    api.until(run, "completed");

    let about_the_run = ["run_show", "run_events", "run_replay", "artifact_list"];
    about_the_run.iter().for_each(|action| drop(call(action, json!({ "id": run }))));
    call("artifact_get", json!({ "id": run, "artifact": "patch" }));
    call("run_undo", json!({ "id": run }));
    call("token_create", json!({ "name": "ci", "role": "viewer" }));
    call("backend_show", json!({ "profile": "writes" }));
    call("error_explain", json!({ "code": "TIMEOUT" }));
    call("policy_add", json!({ "effect": "deny", "kind": "shell", "match": "rm *" }));
    call("policy_test", json!({ "agent": "writes", "workspace": yard.place(), "command": "rm -rf ." }));
    call("review_run", json!({ "run": run }));
    for action in [
        "agent_list",
        "audit_list",
        "audit_verify",
        "backend_list",
        "edge_list",
        "error_list",
        "health",
        "policy_show",
        "run_list",
        "session_list",
        "summarise_failures",
        "token_list",
        "version_show",
        "workspace_list",
    ] {
        call(action, json!({}));
    }
}
