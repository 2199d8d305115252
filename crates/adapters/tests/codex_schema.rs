//! The protocol as the installed codex itself describes it still has what is read and said here.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "these are tests")]

#[path = "support/program.rs"]
mod program;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// The description that the program makes of its own protocol.
struct Schema {
    place: tempfile::TempDir,
    all: Value,
}

impl Schema {
    fn made() -> Self {
        let place = tempfile::tempdir().unwrap();
        let made = Command::new(program::program())
            .args(["app-server", "generate-json-schema", "--experimental", "--out"])
            .arg(place.path())
            .env("CODEX_HOME", place.path())
            .status()
            .unwrap();
        assert!(made.success());
        let all = read(&place.path().join("codex_app_server_protocol.v2.schemas.json"));
        Schema { place, all }
    }

    /// One that has a file of its own.
    fn file(&self, name: &str) -> Value {
        read(&self.place.path().join(format!("{name}.json")))
    }

    /// The methods of a union of messages.
    fn methods(&self, name: &str) -> BTreeSet<String> {
        let union = self.file(name);
        let methods = union["oneOf"].as_array().unwrap().iter();
        methods
            .map(|message| message["properties"]["method"]["enum"][0].as_str().unwrap().to_owned())
            .collect()
    }

    fn definition(&self, name: &str) -> Value {
        let found = self.all["definitions"][name].clone();
        if found.is_object() { found } else { self.file(name) }
    }
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn has(schema: &Value, what: &str, required: &[&str], known: &[&str]) {
    let must: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for field in required {
        assert!(must.contains(field), "{what} no longer always has {field}: {must:?}");
    }
    for field in known {
        assert!(schema["properties"].get(*field).is_some(), "{what} no longer knows {field}");
    }
}

#[test]
fn b08_the_methods_that_are_said_and_heard_are_there() {
    let schema = Schema::made();
    let contains = |union: &str, wanted: &[&str]| {
        let methods = schema.methods(union);
        for method in wanted {
            assert!(methods.contains(*method), "{union} has no {method}: {methods:?}");
        }
    };
    contains(
        "ClientRequest",
        &[
            "initialize",
            "thread/start",
            "thread/resume",
            "turn/start",
            "turn/steer",
            "turn/interrupt",
            "thread/backgroundTerminals/clean",
        ],
    );
    contains("ClientNotification", &["initialized"]);
    contains(
        "ServerNotification",
        &[
            "error",
            "warning",
            "configWarning",
            "turn/started",
            "turn/completed",
            "turn/plan/updated",
            "turn/diff/updated",
            "item/started",
            "item/completed",
            "item/agentMessage/delta",
            "item/commandExecution/outputDelta",
            "item/commandExecution/terminalInteraction",
            "item/reasoning/summaryTextDelta",
            "item/reasoning/textDelta",
            "thread/tokenUsage/updated",
            "serverRequest/resolved",
        ],
    );
    let requests = schema.methods("ServerRequest");
    let known = [
        "account/chatgptAuthTokens/refresh",
        "applyPatchApproval",
        "attestation/generate",
        "currentTime/read",
        "execCommandApproval",
        "item/commandExecution/requestApproval",
        "item/fileChange/requestApproval",
        "item/permissions/requestApproval",
        "item/tool/call",
        "item/tool/requestUserInput",
        "mcpServer/elicitation/request",
    ];
    assert_eq!(
        requests,
        known.map(str::to_owned).into(),
        "a new request is looked at before it is only refused"
    );
}

#[test]
fn b08_the_fields_that_are_read_and_said_are_there() {
    let schema = Schema::made();
    #[rustfmt::skip]
    let table: &[(&str, &[&str], &[&str])] = &[
        ("ThreadStartParams",                     &[],                                    &["cwd", "approvalPolicy", "approvalsReviewer", "sandbox"]),
        ("ThreadResumeParams",                    &["threadId"],                          &["cwd", "approvalPolicy", "approvalsReviewer", "sandbox", "excludeTurns"]),
        ("ThreadStartResponse",                   &["thread", "model", "approvalPolicy", "approvalsReviewer", "sandbox"], &[]),
        ("ThreadResumeResponse",                  &["thread", "model", "approvalPolicy", "approvalsReviewer", "sandbox"], &[]),
        ("Thread",                                &["id", "cliVersion"],                  &[]),
        ("TurnStartParams",                       &["input", "threadId"],                 &[]),
        ("TurnStartResponse",                     &["turn"],                              &[]),
        ("TurnSteerParams",                       &["expectedTurnId", "input", "threadId"], &[]),
        ("TurnInterruptParams",                   &["threadId", "turnId"],                &[]),
        ("Turn",                                  &["id", "status"],                      &["error"]),
        ("TurnError",                             &["message"],                           &["codexErrorInfo", "additionalDetails"]),
        ("TurnCompletedNotification",             &["threadId", "turn"],                  &[]),
        ("ItemStartedNotification",               &["item", "threadId", "turnId"],        &[]),
        ("ItemCompletedNotification",             &["item", "threadId", "turnId"],        &[]),
        ("AgentMessageDeltaNotification",         &["itemId", "delta"],                   &[]),
        ("CommandExecutionOutputDeltaNotification", &["itemId", "delta"],                 &[]),
        ("TerminalInteractionNotification",       &["stdin"],                             &[]),
        ("TurnPlanUpdatedNotification",           &["plan"],                              &[]),
        ("TurnPlanStep",                          &["step", "status"],                    &[]),
        ("ThreadTokenUsageUpdatedNotification",   &["tokenUsage", "turnId"],              &[]),
        ("ThreadTokenUsage",                      &["total", "last"],                     &[]),
        ("TokenUsageBreakdown",                   &["inputTokens", "outputTokens"],       &[]),
        ("ErrorNotification",                     &["error", "willRetry"],                &[]),
        ("ServerRequestResolvedNotification",     &["requestId", "threadId"],             &[]),
        ("CommandExecutionRequestApprovalParams", &["itemId", "threadId"],                &["kind", "command", "cwd", "networkApprovalContext"]),
        ("FileChangeRequestApprovalParams",       &["itemId", "threadId"],                &["grantRoot"]),
        ("PermissionsRequestApprovalParams",      &["itemId", "cwd", "permissions"],      &[]),
        ("PermissionsRequestApprovalResponse",    &["permissions"],                       &["scope"]),
        ("ToolRequestUserInputParams",            &["itemId", "questions"],               &[]),
        ("ToolRequestUserInputResponse",          &["answers"],                           &[]),
        ("McpServerElicitationRequestResponse",   &["action"],                            &["content"]),
        ("ExecCommandApprovalParams",             &["callId", "command", "cwd", "conversationId"], &[]),
        ("ApplyPatchApprovalParams",              &["callId", "fileChanges", "conversationId"], &["grantRoot"]),
    ];
    for (name, required, known) in table {
        has(&schema.definition(name), name, required, known);
    }
    let questions = schema.file("ToolRequestUserInputParams");
    let question = &questions["definitions"]["ToolRequestUserInputQuestion"];
    has(question, "a question", &["id", "header", "question"], &["isOther", "isSecret", "options"]);
}

#[test]
fn b08_the_items_that_are_read_have_their_fields() {
    let schema = Schema::made();
    let items = schema.definition("ThreadItem");
    let items: Vec<&Value> = items["oneOf"].as_array().unwrap().iter().collect();
    #[rustfmt::skip]
    let table: &[(&str, &[&str], &[&str])] = &[
        ("agentMessage",        &["id", "text"],                                        &[]),
        ("reasoning",           &["id"],                                                &["summary", "content"]),
        ("plan",                &["id", "text"],                                        &[]),
        ("commandExecution",    &["id", "command", "cwd", "status"],                    &["commandActions", "aggregatedOutput", "exitCode"]),
        ("fileChange",          &["id", "changes", "status"],                           &[]),
        ("mcpToolCall",         &["id", "server", "tool", "arguments", "status"],       &[]),
        ("dynamicToolCall",     &["id", "tool", "arguments", "status"],                 &[]),
        ("collabAgentToolCall", &["id", "tool", "status"],                              &["prompt"]),
        ("webSearch",           &["id", "query"],                                       &[]),
        ("imageGeneration",     &["id", "status"],                                      &[]),
        ("imageView",           &["id", "path"],                                        &[]),
        ("contextCompaction",   &["id"],                                                &[]),
    ];
    for (kind, required, known) in table {
        let item = items.iter().find(|item| item["properties"]["type"]["enum"][0] == *kind);
        has(item.unwrap_or_else(|| panic!("there is no item {kind}")), kind, required, known);
    }
    for (name, words) in [
        ("TurnStatus", &["completed", "interrupted", "failed", "inProgress"][..]),
        ("CommandExecutionStatus", &["inProgress", "completed", "failed", "declined"]),
        ("PatchApplyStatus", &["inProgress", "completed", "failed", "declined"]),
        ("TurnPlanStepStatus", &["pending", "inProgress", "completed"]),
    ] {
        let known = schema.definition(name)["enum"].clone();
        assert_eq!(known, serde_json::json!(words), "{name}");
    }
}
