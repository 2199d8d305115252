//! Each call of the agent as a request of the run's gate.

use std::path::{Component, Path};
use std::sync::Arc;

use async_trait::async_trait;
use runyard_agent::phase::{Fault, GateDecision, PhaseContext, ToolGate};
use runyard_agent::plugin::{InstallError, Plugin, Registrar};
use runyard_domain::gate::{Request, SideEffects};
use runyard_llm::inference::ToolCall;
use serde_json::Value;

use super::ear::Ear;
use super::question::ASK;
use super::workspace::{Edits, patch_text};

/// How much of a call stands in its summary, in bytes.
const SUMMARY_BYTES_MAX: usize = 160;

/// Asks the run's gate about every call.
pub(super) struct Gated(pub(super) Arc<Ear>);

impl Plugin for Gated {
    fn id(&self) -> &str {
        "runyard.gate"
    }

    fn register(&self, registrar: &mut Registrar<'_>) -> Result<(), InstallError> {
        registrar.gate(Asks(Arc::clone(&self.0)));
        Ok(())
    }
}

struct Asks(Arc<Ear>);

#[async_trait]
impl ToolGate for Asks {
    async fn decide(&self, call: &ToolCall, _context: &PhaseContext<'_>) -> Result<GateDecision, Fault> {
        if call.name == ASK {
            // It does nothing but ask a person.
            return Ok(GateDecision::Allow);
        }
        let request = match request(call) {
            Ok(request) => request,
            Err(reason) => return Ok(GateDecision::Deny(reason.to_owned())),
        };
        let Some(answer) = self.0.ask(&call.id, request).await else {
            return Err("the session was closed while a person was asked".into());
        };
        if answer.approved {
            return Ok(GateDecision::Allow);
        }
        let reason = answer.reason.unwrap_or_else(|| "it was not allowed".to_owned());
        Ok(GateDecision::Deny(reason))
    }

    fn waits_for_people(&self) -> bool {
        true
    }
}

/// What a call asks for.
fn request(call: &ToolCall) -> Result<Request, &'static str> {
    let text = |name: &str| call.arguments.get(name).and_then(Value::as_str);
    let path = || text("path").map_or(Ok(".".to_owned()), inside);
    Ok(match call.name.as_str() {
        "read" | "list" | "search" => Request::Read { path: path()? },
        "write" => Request::Write { path: path()?, content: text("content").map(str::to_owned) },
        "patch" => {
            let path = path()?;
            let edits: Edits =
                serde_json::from_value(call.arguments.get("edits").cloned().unwrap_or_default())
                    .map_err(|_| "its edits cannot be read")?;
            Request::Patch { patch: patch_text(&path, &edits), files: vec![path] }
        }
        "shell" => {
            Request::Shell { command: text("command").unwrap_or_default().to_owned(), cwd: ".".to_owned() }
        }
        name => Request::Action {
            action: name.to_owned(),
            side_effects: SideEffects::Destructive,
            input: call.arguments.clone(),
        },
    })
}

/// A path of the workspace, as the gate reads it. An absolute one stays as it is: that it lies outside is the gate's to say.
fn inside(path: &str) -> Result<String, &'static str> {
    let path = Path::new(path);
    if path.is_absolute() {
        return Ok(path.to_string_lossy().into_owned());
    }
    let mut parts = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => parts.push(name.to_string_lossy()),
            Component::CurDir => {}
            _ => return Err("a path may not lead upwards"),
        }
    }
    Ok(if parts.is_empty() { ".".to_owned() } else { parts.join("/") })
}

/// What a call does, in a line.
pub(super) fn summary(call: &ToolCall) -> String {
    let text = |name: &str| call.arguments.get(name).and_then(Value::as_str).unwrap_or_default();
    let line = match call.name.as_str() {
        "shell" => text("command").to_owned(),
        "search" => format!("search {}", text("pattern")),
        ASK => format!("{ASK} {}", text("question")),
        name => format!("{name} {}", text("path")),
    };
    let end = line.floor_char_boundary(SUMMARY_BYTES_MAX);
    line[..end].replace('\n', " ").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(name: &str, arguments: Value) -> ToolCall {
        ToolCall { id: "c".into(), name: name.into(), arguments }
    }

    #[test]
    fn c11_each_tool_asks_for_exactly_what_it_does() {
        let asked = |name: &str, arguments| request(&call(name, arguments));
        assert_eq!(asked("read", json!({"path": "./a/b"})), Ok(Request::Read { path: "a/b".into() }));
        assert_eq!(asked("list", json!({})), Ok(Request::Read { path: ".".into() }));
        assert_eq!(
            asked("read", json!({"path": "/etc/passwd"})),
            Ok(Request::Read { path: "/etc/passwd".into() })
        );
        let write = Request::Write { path: "a".into(), content: Some("c".into()) };
        assert_eq!(asked("write", json!({"path": "a", "content": "c"})), Ok(write));
        let shell = Request::Shell { command: "ls && rm x".into(), cwd: ".".into() };
        assert_eq!(asked("shell", json!({"command": "ls && rm x"})), Ok(shell));
        assert!(asked("read", json!({"path": "a/../../b"})).is_err());
        let patch = asked("patch", json!({"path": "a", "edits": [{"old": "x\n", "new": "y\n"}]})).unwrap();
        let shown = "a\n@@ edit 1 of 1 @@\n-x\n+y\n";
        assert_eq!(patch, Request::Patch { files: vec!["a".into()], patch: shown.into() });
        let Ok(Request::Action { side_effects, .. }) = asked("other", json!({})) else { panic!() };
        assert_eq!(side_effects, SideEffects::Destructive, "what nobody knows is taken for the worst");
    }
}
