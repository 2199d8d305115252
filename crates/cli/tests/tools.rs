//! `runyard tools`: definitions for every provider, and a model's tool calls executed.
//!
//! clause: A04
//! clause: A20

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use serde_json::{Value, json};
use support::{Home, Ran};

fn call(home: &Home, flags: &[&str], calls: &[Value]) -> (i32, Vec<Value>) {
    let input: String = calls.iter().map(|call| format!("{call}\n")).collect();
    let ran = home.run_with(["tools", "call"].iter().chain(flags), input.as_bytes());
    (ran.exit, ran.stdout.lines().map(|line| serde_json::from_str(line).expect(line)).collect())
}

fn responses(name: &str, arguments: &Value) -> Value {
    json!({"type": "function_call", "call_id": name, "name": name, "arguments": arguments.to_string()})
}

fn json(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).expect(&ran.stdout)
}

#[test]
fn every_provider_gets_the_actions_of_the_home_and_of_the_control_plane() {
    let home = Home::new();
    let names = |format: &str| {
        let tools = json(&home.run(["tools", "--format", format]));
        let name = |tool: &Value| {
            tool.pointer("/function/name").unwrap_or(&tool["name"]).as_str().unwrap().to_owned()
        };
        match &tools {
            Value::Object(tools) => tools.keys().cloned().collect::<Vec<_>>(),
            tools => tools.as_array().unwrap().iter().map(name).collect(),
        }
    };
    let chat = names("openai-chat");
    assert!(
        ["run_create", "task_delete", "version_show"].iter().all(|name| chat.contains(&(*name).to_owned()))
    );
    for format in ["openai-responses", "anthropic", "ai-sdk"] {
        assert_eq!(names(format), chat, "{format}");
    }
    let explain = &json(&home.run(["tools", "--format=openai-responses", "--output", "json"]));
    let explain = explain.as_array().unwrap().iter().find(|tool| tool["name"] == "error_explain").unwrap();
    assert_eq!(explain["strict"], true);
    assert!(
        explain["parameters"]["properties"]["code"]["description"]
            .as_str()
            .unwrap()
            .ends_with("(1 to 64 characters)")
    );
}

#[test]
fn calls_are_executed_one_after_the_other_and_the_first_failure_is_the_exit_code() {
    let home = Home::new();
    let made = responses("task_create", &json!({"title": "x", "priority": null, "tags": null}));
    let listed = responses("task_list", &json!({"done": null, "tag": null, "limit": null}));
    let (exit, replies) = call(&home, &["--format", "openai-responses"], &[made, listed]);
    assert_eq!((exit, replies.len()), (0, 2));
    let output: Value = serde_json::from_str(replies[1]["message"]["output"].as_str().unwrap()).unwrap();
    assert_eq!((&output["total"], &replies[1]["message"]["call_id"]), (&json!(1), &json!("task_list")));
    assert_eq!(replies[0]["envelope"]["meta"]["surface"], "ai-sdk");

    let delete = json!({"type": "tool_use", "id": "t", "name": "task_delete", "input": {"id": "t1"}});
    let (exit, replies) = call(&home, &["--format", "anthropic"], std::slice::from_ref(&delete));
    assert_eq!((exit, &replies[0]["message"]["is_error"]), (1, &json!(true)));
    assert_eq!(replies[0]["envelope"]["error"]["code"], "CONFIRMATION_REQUIRED");
    assert_eq!(replies[0].get("approval"), None, "nobody could come back with an answer");
    let (exit, replies) = call(&home, &["--format", "anthropic", "--confirm"], &[json!([delete])]);
    assert_eq!((exit, &replies[0]["envelope"]["ok"]), (0, &json!(true)));
}

#[test]
fn the_control_planes_tools_run_on_the_hub() {
    let home = Home::new();
    let list = json!({"toolCallId": "c", "toolName": "run_list", "input": {}});
    let (exit, replies) = call(&home, &["--format", "ai-sdk"], &[list]);
    assert_eq!(exit, 0, "{replies:?}");
    assert_eq!(replies[0]["message"]["type"], "tool-result");
    assert_eq!(replies[0]["message"]["output"]["runs"], json!([]));
    assert_eq!(replies[0]["envelope"]["meta"]["surface"], "ai-sdk");
}

// A model does not become a person by being called from a terminal.
#[test]
fn a04_j06_what_only_people_may_do_is_not_done_for_a_model_unless_the_person_confirms() {
    let home = Home::new();
    let token =
        json!({"toolCallId": "c", "toolName": "token_create", "input": {"name": "mine", "role": "admin"}});
    let rule = json!({"effect": "allow", "kind": "shell"});
    let rule = json!({"toolCallId": "c", "toolName": "policy_add", "input": rule});
    for deed in [token, rule] {
        let (exit, replies) = call(&home, &["--format", "ai-sdk"], std::slice::from_ref(&deed));
        assert_eq!(
            (exit, &replies[0]["envelope"]["error"]["code"]),
            (1, &json!("CONFIRMATION_REQUIRED")),
            "{deed}"
        );
        assert_eq!(replies[0]["envelope"]["meta"]["surface"], "ai-sdk");
        let (exit, replies) = call(&home, &["--format", "ai-sdk", "--confirm"], &[deed]);
        assert_eq!((exit, &replies[0]["envelope"]["ok"]), (0, &json!(true)), "{replies:?}");
    }
}

#[test]
fn what_is_no_call_is_refused_before_anything_is_done() {
    let home = Home::new();
    let made = json!({"toolCallId": "c", "toolName": "task_create", "input": {"title": "x"}});
    for input in [format!("{made}\n{{\"toolName\": 1}}"), format!("{made}\nnope"), String::new()] {
        let ran = home.run_with(["tools", "call", "--format", "ai-sdk"], input.as_bytes());
        assert_eq!(ran.failure().1, "VALIDATION_ERROR", "{input}");
    }
    assert_eq!(home.run(["call", "task-list"]).data()["total"], 0);
    assert_eq!(home.run(["tools"]).failure().0, 2);
    assert_eq!(home.run(["tools", "--format", "openai"]).failure().0, 2);
    let help = home.run(["tools", "--help"]).stdout;
    assert!(help.contains("openai-chat, openai-responses, anthropic, ai-sdk"), "{help}");
}
