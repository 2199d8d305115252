//! What a run's own token can do: read about its run, and nothing else. Whatever else it tries is refused and recorded, and the
//! token itself is nowhere to be read.
//!
//! clause: J06
//! clause: C07

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::fs::File;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use support::Hub;
use support::api::{Api, Scripted, Yard, left_of};

/// The file in which the agent leaves its token for the test.
const LEFT: &str = "left.txt";

/// From inside the run: it sees itself, prints its token in several ways, and tries to decide what another run asks.
const SCRIPT: &str = r#"
[[turn]]
[[turn.step]]
shell = '''
curl -s -o own.json -w 'own %{http_code}\n' -H "Authorization: Bearer $RUNYARD_RUN_TOKEN" "$RUNYARD_URL/api/v1/runs/$RUNYARD_RUN_ID"
curl -s -w ' %{http_code}\n' -H "Authorization: Bearer $RUNYARD_RUN_TOKEN" -H 'Content-Type: application/json' -d '{"decision":"approve","digest":"x"}' "$RUNYARD_URL/api/v1/approvals/$(cat asked.txt)/resolve" | grep -o 'AUTHORIZATION_ERROR\|[0-9]*$'
echo "token $RUNYARD_RUN_TOKEN"
echo "$RUNYARD_RUN_TOKEN" | base64 -w 0; echo
env | grep RUNYARD_ | sed 's/=.*//' | sort
printf %s "$RUNYARD_RUN_TOKEN" > left.txt
'''
[[turn.step]]
write = "note.md"
content = "a note"
[[turn.step]]
shell = "true"
"#;

const WAITS: &str = "[[turn]]\n[[turn.step]]\nshell = \"true\"\n";

/// What it tries, what comes of it, and what the audit calls it.
struct Try {
    method: &'static str,
    path: String,
    body: Option<Value>,
    answer: (u16, &'static str),
    action: &'static str,
}

fn tries(own: &str, asked: &Value, other: &str, other_asked: &Value) -> Vec<Try> {
    let resolve = |approval: &Value| format!("/approvals/{}/resolve", approval["id"].as_str().unwrap());
    let yes = |approval: &Value| Some(json!({"decision": "approve", "digest": approval["digest"]}));
    let denied = (403, "AUTHORIZATION_ERROR");
    let hidden = (404, "NOT_FOUND");
    let of = |method, path: &str, body, answer, action| Try {
        method,
        path: path.to_owned(),
        body,
        answer,
        action,
    };
    let rule = json!({"effect": "allow", "kind": "any"});
    let more = json!({"task": "more", "agent": "sly", "workspace": "/"});
    let other_approval = format!("/approvals/{}", other_asked["id"].as_str().unwrap());
    vec![
        of("POST", &resolve(asked), yes(asked), denied, "approval_resolve"),
        of("POST", &resolve(other_asked), yes(other_asked), denied, "approval_resolve"),
        of("POST", &format!("{other_approval}/snooze"), Some(json!({"forMs": 1})), denied, "approval_snooze"),
        of("POST", "/policy/rules", Some(rule), denied, "policy_add"),
        of("DELETE", "/policy/rules/rul_1", None, denied, "policy_remove"),
        of("POST", "/tokens", Some(json!({"name": "mine", "role": "admin"})), denied, "token_create"),
        of("GET", "/tokens", None, denied, "token_list"),
        of("DELETE", "/tokens/ada", None, denied, "token_revoke"),
        of("POST", "/workspaces", Some(json!({"path": "/"})), denied, "workspace_add"),
        of("DELETE", "/workspaces/wsp_1", None, denied, "workspace_remove"),
        of("GET", "/policy", None, denied, "policy_show"),
        of("GET", "/audit", None, denied, "audit_list"),
        of("GET", "/audit/verify", None, denied, "audit_verify"),
        of("POST", "/runs", Some(more), denied, "run_create"),
        of("POST", &format!("/runs/{own}/cancel"), Some(json!({})), denied, "run_cancel"),
        of(
            "POST",
            &format!("/runs/{own}/commands"),
            Some(json!({"kind": "interrupt"})),
            denied,
            "run_command",
        ),
        of("GET", "/metrics", None, denied, "metrics"),
        of("GET", &format!("/runs/{other}"), None, hidden, "run_show"),
        of("GET", &format!("/runs/{other}/events"), None, hidden, "run_events"),
        of("GET", &format!("/runs/{other}/replay"), None, hidden, "run_replay"),
        of("GET", &format!("/runs/{other}/stream"), None, hidden, "run_stream"),
        of("GET", &format!("/approvals?run={other}"), None, hidden, "approval_list"),
        of("GET", &other_approval, None, hidden, "approval_show"),
        of("GET", "/secrets", None, hidden, "GET /api/v1/secrets"),
        of("POST", "/trust", Some(json!({"path": "/"})), hidden, "POST /api/v1/trust"),
    ]
}

/// All files beneath a directory that hold these bytes.
fn holding(directory: &Path, text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            found.extend(holding(&path, text));
        } else if kind.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            if bytes.windows(text.len()).any(|window| window == text.as_bytes()) {
                found.push(path);
            }
        }
    }
    found
}

/// The texts in which a token could be found again.
fn forms(token: &str) -> Vec<String> {
    let hex = token.strip_prefix("ryr_").unwrap();
    vec![token.to_owned(), hex.to_owned(), hex[8..40].to_owned(), token.chars().rev().collect()]
}

#[test]
fn j06_a_runs_own_token_reads_its_run_and_nothing_else_and_is_nowhere_to_be_read() {
    let agents = [
        Scripted { name: "sly", profile: "", script: SCRIPT },
        Scripted { name: "waits", profile: "", script: WAITS },
    ];
    let yard = Yard::new("", &agents);
    let logs = tempfile::tempdir().unwrap();
    let log = File::create(logs.path().join("hub.log")).unwrap();
    let hub = Hub::of(yard.home.command_up().stderr(log).spawn().unwrap()).unwrap();
    let owner = Api::owner(&yard.home, &hub);
    owner.add_workspace(yard.workspace.path());

    let other = owner.start("waits", yard.place());
    let other_asked = owner.asked(&other, &[]);
    std::fs::write(yard.workspace.path().join("asked.txt"), other_asked["id"].as_str().unwrap()).unwrap();
    let own = owner.start("sly", yard.place());
    let first = owner.asked(&own, &[]);
    owner.approve(&first);
    // The first command is through, and the second waits: the token is alive.
    let asked = owner.asked(&own, &[first["id"].as_str().unwrap()]);
    let left = yard.home.path("edge").join("runs").join(&own).join("checkout").join(LEFT);
    let token = std::fs::read_to_string(&left).unwrap();
    let agent = owner.with_token(&token);
    check_inside(&owner, &own);
    assert_eq!(agent.run(&own)["id"], own.as_str(), "its own run it sees");
    let listed = agent.get("/runs");
    assert_eq!(listed["runs"].as_array().unwrap().len(), 1, "{listed}");
    check_tries(&owner, &agent, &own, &tries(&own, &asked, &other, &other_asked));

    assert_eq!(owner.run(&own)["state"], "needs_approval", "nothing of it had an effect");
    assert_eq!(owner.run(&other)["state"], "needs_approval");
    assert!(owner.get("/policy")["policy"]["stored"].as_array().unwrap().is_empty());
    owner.approve(&asked);
    owner.until(&own, "completed");
    support::eventually("the token dies with the run", || {
        let (status, _) = agent.send("GET", &format!("/runs/{own}"), None);
        (status == 401).then_some(())
    });
    assert!(left_of(&own).is_empty());
    let everything = format!("{:?} {:?}", owner.events(&own), owner.audit("audit.refused"));
    drop(hub);
    for form in forms(&token) {
        assert!(!everything.contains(&form), "an event holds {form}");
        let files = holding(&yard.home.path(""), &form).into_iter().chain(holding(logs.path(), &form));
        // What the agent wrote was approved, so it is where applying it keeps what can be taken back.
        let applied = left.parent().unwrap().parent().unwrap().join("applied");
        let files: Vec<PathBuf> = files.filter(|file| *file != left && !file.starts_with(&applied)).collect();
        assert!(files.is_empty(), "{form} is in {files:?}");
    }
}

/// What the agent saw from inside.
#[track_caller]
fn check_inside(owner: &Api, own: &str) {
    let events = owner.events(own);
    let printed = events.iter().filter(|event| event["type"] == "run.tool.output");
    let printed: String = printed.map(|event| event["payload"]["text"].as_str().unwrap()).collect();
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines[..3], ["own 200", "AUTHORIZATION_ERROR", "403"], "{printed}");
    assert!(lines[3].starts_with("token ") && !lines[3].contains("ryr_"), "{printed}");
    assert_eq!(lines[5..], ["RUNYARD_RUN_ID", "RUNYARD_RUN_TOKEN", "RUNYARD_URL"], "{printed}");
}

#[track_caller]
fn check_tries(owner: &Api, agent: &Api, own: &str, tries: &[Try]) {
    for Try { method, path, body, answer, .. } in tries {
        let (status, text) = agent.send(method, path, body.as_ref());
        let envelope: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{path}: {text}"));
        let code = envelope["error"]["code"].as_str().unwrap_or_default();
        assert_eq!((status, code), *answer, "{method} {path}: {envelope}");
    }
    let refused = owner.audit("audit.refused");
    for Try { action, .. } in tries {
        let found = refused.iter().filter(|entry| entry["what"]["action"] == *action);
        let found: Vec<&Value> = found.collect();
        assert!(!found.is_empty(), "{action} is not in the audit: {refused:?}");
        for entry in found {
            let by = &entry["by"];
            assert_eq!(
                (&by["id"], &by["kind"], &by["runId"]),
                (&json!("sly"), &json!("agent"), &json!(own)),
                "{entry}"
            );
        }
    }
}
