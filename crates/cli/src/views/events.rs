//! The events of a run, a line each.

use serde_json::Value;

use super::{items, row, text};

pub(super) fn table(data: &Value) -> Value {
    let rows = items(data, "events").map(|event| {
        let at = text(&event["timestamp"]);
        row([
            ("#", event["sequence"].clone()),
            ("time", at.get(11..19).unwrap_or_default().into()),
            ("type", event["type"].clone()),
            ("what", what(event).into()),
        ])
    });
    let run = items(data, "events").next().map(|event| text(&event["runId"])).unwrap_or_default();
    let more = data["next"].as_u64().map(|next| format!("runyard runs events {run} --after {next}"));
    super::table(rows.collect(), more, "Nothing more has happened.")
}

/// What it says, in a few words.
fn what(event: &Value) -> String {
    let payload = &event["payload"];
    let field = |name: &str| text(&payload[name]);
    match event["type"].as_str().unwrap_or_default() {
        "run.created" => field_or_action(&payload["task"]),
        "run.planned" | "run.accepted" => format!("on edge {}", field("edgeId")),
        "run.started" => format!("on {}", field("backendKind")),
        "run.message.delta" | "run.message.completed" | "run.tool.output" => field("text"),
        "run.tool.call" => field("summary"),
        "run.tool.result" => format!("{}: {}", field("outcome"), field("summary")),
        "run.file.read" => field("path"),
        "run.plan.updated" => format!("{} steps", items(payload, "steps").count()),
        "run.secrets.projected" => {
            let keys: Vec<String> = items(payload, "keys").map(text).collect();
            format!("{} of {} by {}", keys.join(", "), field("profile"), field("how"))
        }
        "run.gate.judged" => format!("{}: {}", field("effect"), field("reason")),
        "run.approval.requested" => {
            let request = &payload["request"];
            let named = ["command", "path", "host", "target", "action", "question", "step", "message"];
            let object = named.iter().map(|name| text(&request[*name])).find(|object| !object.is_empty());
            format!("{} {}", text(&request["kind"]), object.unwrap_or_default())
        }
        "run.approval.resolved" => {
            format!("{} by {}", field("resolution"), text(&payload["decidedBy"]["id"]))
        }
        "run.degraded" => field("reason"),
        "run.completed" => format!("after {} ms", text(&payload["metrics"]["wallMs"])),
        "run.failed" => format!("[{}] {}", field("code"), field("message")),
        "run.cancelled" | "run.cancel.requested" => {
            format!("by {}: {}", text(&payload["by"]["id"]), field("reason"))
        }
        _ => {
            let said = ["message", "reason", "text", "status", "model", "summary", "approvalId", "commandId"];
            said.iter().map(|name| field(name)).find(|said| !said.is_empty()).unwrap_or_default()
        }
    }
}

fn field_or_action(task: &Value) -> String {
    match task["action"].as_str() {
        Some(action) => format!("action {action}"),
        None if task.is_object() => text(&task["text"]),
        None => text(task),
    }
}
