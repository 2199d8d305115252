//! The shapes of the wire, as clients rely on them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a failed expectation fails the test"
)]

mod support;

use runyard_backend::Signal;
use runyard_backend::link::Report;
use serde_json::{Value, json};
use support::engine::{asked, turn_ended, until};
use support::{Answer, Served};

/// The value with what differs from time to time replaced by what it is.
fn plain(mut value: Value) -> Value {
    fn walk(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.iter_mut().for_each(|(key, value)| match (key.as_str(), &value) {
                    ("wallMs" | "activeMs", Value::Number(_)) => *value = json!(0),
                    _ => walk(value),
                })
            }
            Value::Array(items) => items.iter_mut().for_each(walk),
            Value::String(text) => {
                let id =
                    ["run_", "ses_", "apr_", "cmd_", "evt_"].into_iter().find(|kind| text.starts_with(kind));
                if let Some(kind) = id.filter(|_| text.len() == 36) {
                    *text = format!("{kind}…");
                } else if text.len() == 24 && text.ends_with('Z') {
                    *text = "time".to_owned();
                }
            }
            _ => {}
        }
    }
    walk(&mut value);
    value
}

fn conflict(answer: &Answer) -> String {
    assert_eq!(answer.refused(), (409, "CONFLICT".to_owned()));
    answer.json()["error"]["message"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_run_and_an_approval_look_like_this() {
    let mut served = Served::start().await;
    let run = served.run().await;
    let open = served.edge.start().await;
    served.edge.recorded(&open, 4, vec![asked("a1", "make clean")]).await;
    let waiting = served.owner().get(&format!("/runs/{run}")).await.data();
    assert_eq!(
        plain(waiting),
        json!({ "run": {
            "id": "run_…",
            "state": "needs_approval",
            "lastSequence": 7,
            "lastEventAt": "time",
            "agentId": "demo",
            "backendProfile": "demo",
            "backend": { "kind": "scripted", "found": "fine" },
            "sessionId": "ses_…",
            "workspace": { "id": support::engine::workspace().id, "label": "site" },
            "edgeId": "local",
            "task": "Tidy up",
            "createdAt": "time",
            "openApprovals": ["apr_…"],
            "metrics": { "wallMs": 0, "activeMs": 0 },
        }})
    );
    let asked = served.owner().get("/approvals?state=open").await.data();
    let id = asked["approvals"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(
        plain(asked),
        json!({ "approvals": [{
            "id": "apr_…",
            "runId": "run_…",
            "state": "open",
            "title": "Run `make clean` in site (once)",
            "request": { "kind": "shell", "command": "make clean", "cwd": "." },
            "redacted": false,
            "digest": "digest of make clean",
            "risk": "low",
            "reason": "shell commands are asked about",
            "notes": ["only the sandbox bounds it"],
            "workspace": { "id": support::engine::workspace().id, "label": "site" },
            "agentId": "demo",
            "expiresAt": "time",
        }]})
    );
    let no = json!({ "decision": "reject", "digest": "digest of make clean", "reason": "Not now." });
    let decided =
        served.owner().post(&format!("/approvals/{id}/resolve"), no).await.data()["approval"].take();
    assert_eq!(
        [&decided["state"], &decided["decidedBy"], &decided["decisionReason"], &decided["scope"]],
        [&json!("rejected"), &json!({ "id": "owner", "kind": "person" }), &json!("Not now."), &json!("once")]
    );
    let ended = served.owner().get(&format!("/runs/{run}")).await.data()["run"].take();
    assert_eq!(
        [&ended["state"], &ended["code"], &ended["message"]],
        [&json!("cancelled"), &json!("approval_rejected"), &json!("Not now.")]
    );
    assert!(ended["recovery"].is_string() && ended.get("failureKind").is_none());
}

#[tokio::test]
async fn c12_of_two_answers_the_first_wins_and_the_other_is_told_who() {
    let mut served = Served::start().await;
    served.run().await;
    let open = served.edge.start().await;
    served.edge.recorded(&open, 4, vec![asked("a1", "make clean")]).await;
    let list = served.owner().get("/approvals").await.data();
    let path = format!("/approvals/{}/resolve", list["approvals"][0]["id"].as_str().unwrap());
    let answer = |decision: &str, digest: &str| json!({ "decision": decision, "digest": digest });
    let digest = "digest of make clean";
    let stale = served.owner().post(&path, answer("approve", "another")).await;
    assert!(conflict(&stale).contains("look at it again") && !conflict(&stale).contains(digest));
    served.owner().post(&path, answer("approve", digest)).await.data();
    served.owner().post(&path, answer("approve", digest)).await.data();
    let other = served.owner().post(&path, answer("reject", digest)).await;
    assert!(conflict(&other).contains("approved by owner"), "{}", conflict(&other));
    let issue = served.owner().post(&path, answer("maybe", digest)).await.issue();
    assert_eq!(issue.0, "decision");
}

#[tokio::test]
async fn c22_an_ended_run_takes_no_command_and_names_its_state() {
    let mut served = Served::start().await;
    let run = served.run().await;
    let open = served.edge.start().await;
    let commands = format!("/runs/{run}/commands");
    let turn = json!({ "kind": "turn", "text": "And then this.", "idempotencyKey": "k1" });
    let first = served.owner().post(&commands, turn.clone()).await.data();
    assert_eq!(
        plain(first.clone()),
        json!({ "command": { "id": "cmd_…", "runId": "run_…", "kind": "turn" }, "redacted": false })
    );
    assert_eq!(served.owner().post(&commands, turn).await.data(), first, "the same key is the same command");
    let other = json!({ "kind": "turn", "text": "Something else.", "idempotencyKey": "k1" });
    conflict(&served.owner().post(&commands, other).await);
    let empty = served.owner().post(&commands, json!({ "kind": "turn" })).await.issue();
    assert_eq!(empty.0, "text");
    let enough = json!({ "reason": "Enough.", "idempotencyKey": "k2" });
    let cancel = format!("/runs/{run}/cancel");
    let ended = served.owner().post(&cancel, enough.clone()).await.data();
    assert_eq!(served.owner().post(&cancel, enough).await.data(), ended, "the same key ends it once");
    conflict(&served.owner().post(&cancel, json!({ "reason": "Other.", "idempotencyKey": "k2" })).await);
    assert_eq!([&ended["run"]["state"], &ended["run"]["message"]], [&json!("cancelled"), &json!("Enough.")]);
    for (path, body) in
        [(commands, json!({ "kind": "interrupt" })), (format!("/runs/{run}/cancel"), json!({}))]
    {
        let refused = conflict(&served.owner().post(&path, body).await);
        assert!(refused.contains("cancelled"), "{refused}");
    }
    drop(open);
}

#[tokio::test]
async fn b05_a_run_that_cannot_be_is_refused_at_its_field_and_nothing_is_stored() {
    let served = Served::start().await;
    let create = |change: Value| {
        let mut body = json!({ "task": "x", "agent": "demo", "workspace": "site" });
        change.as_object().unwrap().iter().for_each(|(key, value)| body[key] = value.clone());
        let owner = served.owner();
        async move { owner.post("/runs", body).await }
    };
    let (path, message) = create(json!({ "backendProfile": "nope" })).await.issue();
    assert_eq!((path.as_str(), message.contains("demo")), ("backendProfile", true), "{message}");
    let (path, message) = create(json!({ "agent": "nope" })).await.issue();
    assert_eq!((path.as_str(), message.contains("demo, patient")), ("agent", true), "{message}");
    let outside = create(json!({ "workspace": "/etc" })).await;
    assert_eq!(outside.refused(), (403, "workspace_outside_allowlist".to_owned()));
    assert_eq!(create(json!({ "task": " " })).await.issue().0, "task");
    assert_eq!(create(json!({ "session": "x" })).await.issue().0, "session");
    assert_eq!(create(json!({ "colour": "red" })).await.issue().0, "colour");
    let policy = create(json!({ "executionPolicy": { "timeoutMs": 0 } })).await.issue();
    assert_eq!(policy.0, "executionPolicy.timeoutMs");
    let policy = create(json!({ "executionPolicy": { "sandbox": "off" } })).await.issue();
    assert_eq!(policy.0, "executionPolicy.sandbox");
    assert_eq!(served.owner().get("/runs").await.data(), json!({ "runs": [] }));

    let secret = format!("sk-proj-{}", "Ab3".repeat(20));
    let made = create(json!({ "task": format!("Use {secret}"), "idempotencyKey": "k" })).await.data();
    assert_eq!((&made["redacted"], &made["run"]["taskRedacted"]), (&json!(true), &json!(true)), "{made}");
    assert!(!made.to_string().contains(&secret));
    let again = create(json!({ "task": format!("Use {secret}"), "idempotencyKey": "k" })).await.data();
    assert_eq!(again["run"]["id"], made["run"]["id"]);
    conflict(&create(json!({ "task": "Another", "idempotencyKey": "k" })).await);
}

#[tokio::test]
async fn lists_come_in_pages_and_filters_are_checked() {
    let served = Served::start().await;
    let mut runs = Vec::new();
    for _ in 0..3 {
        runs.push(served.run().await);
    }
    runs.reverse();
    let ids = |page: &Value| -> Vec<String> {
        page["runs"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap().to_owned()).collect()
    };
    let first = served.owner().get("/runs?limit=2").await.data();
    assert_eq!((ids(&first), first["next"].as_str()), (runs[..2].to_vec(), Some(runs[1].as_str())));
    let second = served.owner().get(&format!("/runs?limit=2&before={}", runs[1])).await.data();
    assert_eq!(ids(&second), runs[2..]);
    let none = served.owner().get("/runs?state=failed").await.data();
    assert_eq!(none, json!({ "runs": [] }));
    let (path, message) = served.owner().get("/runs?state=dancing").await.issue();
    assert_eq!(path, "state");
    for state in runyard_domain::run::RunState::NAMES {
        assert!(message.contains(state), "{message}");
    }
    assert_eq!(served.owner().get("/runs?limit=501").await.issue().0, "limit");
    assert_eq!(served.owner().get("/approvals?state=approved").await.issue().0, "state");
    let sessions = served.owner().get("/sessions").await.data();
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 3);
    let last_of = |page: &Value| -> Vec<String> {
        let sessions = page["sessions"].as_array().unwrap().iter();
        sessions.map(|session| session["lastRunId"].as_str().unwrap().to_owned()).collect()
    };
    let first = served.owner().get("/sessions?limit=2").await.data();
    assert_eq!((last_of(&first), first["next"].as_str()), (runs[..2].to_vec(), Some(runs[1].as_str())));
    let second = served.owner().get(&format!("/sessions?limit=2&before={}", runs[1])).await.data();
    assert_eq!((last_of(&second), &second["next"]), (runs[2..].to_vec(), &Value::Null));
    served.owner().post(&format!("/runs/{}/cancel", runs[0]), json!({})).await.data();
    let going_on = json!({ "task": "more", "agent": "demo", "workspace": "site", "continues": runs[0] });
    let next = served.owner().post("/runs", going_on).await.data()["run"].take();
    assert_eq!(next["parentRunId"], json!(runs[0]));
    let sessions = served.owner().get("/sessions").await.data();
    assert_eq!(
        (&sessions["sessions"][0]["runs"], &sessions["sessions"][0]["lastRunId"]),
        (&json!(2), &next["id"])
    );
    // A session stands where its latest run does, and comes once.
    let older =
        served.owner().get(&format!("/sessions?before={}", next["id"].as_str().unwrap())).await.data();
    assert_eq!(last_of(&older), runs[1..]);
}

#[tokio::test]
async fn c20_a_failed_run_shows_code_kind_message_and_next_step() {
    let mut served = Served::start().await;
    let run = served.run().await;
    let open = served.edge.start().await;
    let degraded = Report::Signal(Signal::Degraded { reason: "no sandbox".into() });
    let spawn_failed = runyard_domain::run::FailureKind::BackendSpawnFailed;
    let ending = runyard_backend::Ending::failed(spawn_failed, "It does not start.");
    let said = Report::Signal(Signal::Message { item: "m".into(), text: "I try.".into() });
    served.edge.recorded(&open, 4, vec![degraded, said, Report::Signal(Signal::Ended { ending })]).await;
    until(&served.engine, open.run, "failed").await;
    let failed = served.owner().get(&format!("/runs/{run}")).await.data()["run"].take();
    assert_eq!(
        ["state", "code", "failureKind", "message", "response"].map(|field| failed[field].as_str().unwrap()),
        ["failed", "runtime_unavailable", "backend-spawn-failed", "It does not start.", "I try."]
    );
    assert_eq!(failed["degraded"], json!({ "reason": "no sandbox" }));
    assert!(failed["recovery"].is_string());
}

#[tokio::test]
async fn b04_what_there_is_to_choose_from_names_no_secret_and_no_setting() {
    let mut served = Served::start().await;
    assert_eq!(
        served.owner().get("/backends").await.data(),
        json!({ "backends": [{
            "profile": "demo",
            "backendKind": "scripted",
            "protocol": "runyard-script",
            "transport": "in-process",
            "command": [],
            "requiredSecretKeys": [],
            "optionalSecretKeys": [],
            "isolation": {
                "home": "session-and-profile",
                "credentials": "none",
                "sandbox": "none",
                "network": "as the execution policy says",
            },
            "capabilities": { "resumes": "steps", "asks": true, "tellsSteps": true, "checkout": false, "gateway": false },
            "gateway": false,
            "debugRaw": false,
        }]})
    );
    let agents = served.owner().get("/agents").await.data()["agents"].take();
    assert_eq!([&agents[0]["id"], &agents[1]["onReject"]], [&json!("demo"), &json!("continue")]);
    let edges = served.owner().get("/edges").await.data();
    assert_eq!(
        edges,
        json!({ "edges": [
            { "id": "local", "version": "test", "sandbox": "none", "connected": true, "activeRuns": 0 }
        ]})
    );
    let health = served.owner().get("/health").await.data();
    assert_eq!(
        [&health["status"], &health["database"], &health["edges"]],
        [&json!("ok"), &json!({ "ok": true }), &json!({ "connected": 1, "known": 1 })]
    );
    let workspace = support::engine::workspace();
    let listed = json!({ "id": workspace.id, "label": "site", "project": "site", "edgeId": "local" });
    assert_eq!(served.owner().get("/workspaces").await.data(), json!({ "workspaces": [listed] }));
    served.owner().delete(&format!("/workspaces/{}", workspace.id)).await.data();
    served.run().await;
    let open = served.edge.start().await;
    served.edge.recorded(&open, 4, vec![turn_ended()]).await;
    served.edge.closes(open.run).await;
}

#[tokio::test]
async fn a_rule_is_added_judged_by_sent_to_the_edge_and_removed() {
    let mut served = Served::start().await;
    let client = served.owner();
    let judged = |command: &str| {
        let (owner, body) =
            (client.clone(), json!({ "agent": "demo", "workspace": "site", "command": command }));
        async move { owner.post("/policy/test", body).await.data() }
    };
    assert_eq!(judged("make clean").await["effect"], "ask");
    let rule = json!({ "effect": "deny", "kind": "shell", "match": "rm *", "workspace": "site" });
    let added = served.owner().post("/policy/rules", rule).await.data();
    let id = added["rule"]["id"].as_str().unwrap().to_owned();
    assert_eq!(added["rule"]["addedBy"]["id"], "owner");
    for line in ["rm -r x", "true && rm x", "sh -c 'rm x'", "env A=B rm x", "/bin/rm x"] {
        let said = judged(line).await;
        assert_eq!(said["effect"], "deny", "{line}: {said}");
        assert!(said["reason"].as_str().unwrap().contains(&id), "{said}");
    }
    let shown = served.owner().get("/policy").await.data()["policy"].take();
    assert_eq!([&shown["preset"], &shown["stored"][0]], [&json!("default"), &added["rule"]]);
    match served.edge.hear().await {
        runyard_backend::link::ToEdge::Policy(policy) => assert_eq!(policy.stored.len(), 1),
        other => panic!("expected the policy, not {other:?}"),
    }
    served.owner().delete(&format!("/policy/rules/{id}")).await.data();
    assert_eq!(served.owner().delete(&format!("/policy/rules/{id}")).await.refused().0, 404);
    assert_eq!(judged("rm -r x").await["effect"], "ask");
    let wrong = |rule: Value| {
        let owner = client.clone();
        async move { owner.post("/policy/rules", rule).await.issue().0 }
    };
    assert_eq!(wrong(json!({ "effect": "allow", "kind": "secret" })).await, "effect");
    assert_eq!(wrong(json!({ "effect": "allow", "kind": "any", "match": "x" })).await, "match");
    assert_eq!(wrong(json!({ "effect": "deny", "kind": "any", "workspace": "nope" })).await, "workspace");
    assert_eq!(wrong(json!({ "effect": "deny", "kind": "any", "expires": "soon" })).await, "expires");
    assert_eq!(wrong(json!({ "effect": "deny", "kind": "any", "scope": "run" })).await, "run");
}

#[tokio::test]
async fn a20_the_document_names_every_action_of_the_control_plane() {
    let served = Served::start().await;
    let document = served.owner().get("/openapi.json").await.json();
    for action in runyard_control::actions() {
        let action = action.unwrap();
        let route = action.spec().http.as_ref().unwrap();
        let described = &document["paths"][&route.path][route.method.to_ascii_lowercase()];
        assert_eq!(described["operationId"], json!(action.name()), "{route}");
    }
}
