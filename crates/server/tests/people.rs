//! Who may do what over HTTP, and what is recorded of it.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a failed expectation fails the test"
)]

mod support;

use runyard_domain::RunId;
use runyard_engine::Role;
use serde_json::{Value, json};
use support::engine::asked;
use support::{Client, Served};

async fn open_approval(client: &Client) -> (String, String) {
    let open = client.get("/approvals?state=open").await.data();
    let text = |field: &str| open["approvals"][0][field].as_str().unwrap().to_owned();
    (text("id"), text("digest"))
}

/// The entries of the audit of one type.
async fn audited(served: &Served, kind: &str) -> Vec<Value> {
    let entries = served.owner().get("/audit").await.data()["entries"].take();
    entries.as_array().unwrap().iter().filter(|entry| entry["type"] == kind).cloned().collect()
}

fn denied() -> (u16, String) {
    (403, "AUTHORIZATION_ERROR".to_owned())
}

fn missing() -> (u16, String) {
    (404, "NOT_FOUND".to_owned())
}

#[tokio::test]
async fn j06_a_runs_own_token_changes_nothing_and_every_try_is_recorded() {
    let mut served = Served::start().await;
    let run = served.run().await;
    let open = served.edge.start().await;
    served.edge.recorded(&open, 4, vec![asked("a1", "make clean")]).await;
    let agent = served.by(&open.run_token);
    let (approval, digest) = open_approval(&agent).await;
    let yes = json!({ "decision": "approve", "digest": digest });
    let rule = json!({ "effect": "allow", "kind": "any" });
    let token = json!({ "name": "mine", "role": "admin" });
    assert_eq!(agent.post(&format!("/approvals/{approval}/resolve"), yes.clone()).await.refused(), denied());
    let by_name =
        json!({ "input": { "id": approval, "decision": "approve", "digest": digest }, "confirm": true });
    assert_eq!(agent.post("/actions/approval_resolve/invoke", by_name).await.refused(), denied());
    assert_eq!(agent.post("/policy/rules", rule).await.refused(), denied());
    assert_eq!(agent.post("/tokens", token).await.refused(), denied());
    assert_eq!(agent.get("/tokens").await.refused(), denied());
    assert_eq!(agent.post("/workspaces", json!({ "path": "/" })).await.refused(), denied());
    assert_eq!(agent.post(&format!("/runs/{run}/cancel"), json!({})).await.refused(), denied());
    assert_eq!(agent.get("/audit").await.refused(), denied());
    assert_eq!(agent.get("/metrics").await.refused(), denied());
    assert_eq!(agent.get("/secrets/OPENAI_API_KEY").await.refused(), missing());
    let by_name = agent.post("/actions/secret_show/invoke", json!({ "input": {} })).await;
    assert_eq!(by_name.refused(), (404, "ACTION_NOT_FOUND".to_owned()));

    let refused = audited(&served, "audit.refused").await;
    let tried: Vec<&str> = refused.iter().map(|entry| entry["what"]["action"].as_str().unwrap()).collect();
    #[rustfmt::skip]
    assert_eq!(tried, [
        "approval_resolve", "policy_add", "token_create", "token_list", "workspace_add", "run_cancel", "audit_list",
        "metrics", "GET /api/v1/secrets/OPENAI_API_KEY", "POST /api/v1/actions/secret_show/invoke",
    ]);
    for entry in &refused {
        assert_eq!(entry["by"], json!({ "id": "demo", "kind": "agent", "runId": run }));
        assert_eq!(entry["what"]["runId"], json!(run));
    }
    let again = served.by(&open.run_token).get("/tokens").await.refused();
    assert_eq!(
        (again, audited(&served, "audit.refused").await.len()),
        (denied(), refused.len()),
        "counted, not repeated"
    );
    let still = served.owner().get(&format!("/approvals/{approval}")).await.data();
    assert_eq!(still["approval"]["state"], "open");
    assert_eq!(served.owner().get("/policy").await.data()["policy"]["stored"], json!([]));
    assert_eq!(served.owner().get("/tokens").await.data()["tokens"], json!([]));
}

#[tokio::test]
async fn j06_a_runs_own_token_sees_its_run_and_no_other() {
    let mut served = Served::start().await;
    let own = served.run().await;
    let open = served.edge.start().await;
    let other = served.run().await;
    let agent = served.by(&open.run_token);
    assert_eq!(agent.get(&format!("/runs/{own}")).await.data()["run"]["id"], json!(own));
    assert!(!agent.get(&format!("/runs/{own}/events")).await.data()["events"].as_array().unwrap().is_empty());
    assert!(agent.follow(&own, 0).await.next().await.is_some());
    let runs = agent.get("/runs").await.data();
    assert_eq!((runs["runs"].as_array().unwrap().len(), &runs["runs"][0]["id"]), (1, &json!(own)));
    assert_eq!(agent.get("/sessions").await.data()["sessions"].as_array().unwrap().len(), 1);
    for path in [format!("/runs/{other}"), format!("/runs/{other}/events"), format!("/runs/{other}/stream")] {
        assert_eq!(agent.get(&path).await.refused(), missing(), "{path}");
    }
    assert_eq!(agent.get(&format!("/approvals?run={other}")).await.refused(), missing());
    let unknown = RunId::from_parts(1, &[1; 10]);
    let (one, two) =
        (agent.get(&format!("/runs/{other}")).await, agent.get(&format!("/runs/{unknown}")).await);
    let message = |answer: &Value, id: &str| answer["error"]["message"].as_str().unwrap().replace(id, "it");
    assert_eq!(
        message(&one.json(), &other),
        message(&two.json(), &unknown.to_string()),
        "one that is there looks like one that is not"
    );
    let refused = audited(&served, "audit.refused").await;
    let tried: Vec<(&str, &str)> = refused
        .iter()
        .map(|entry| {
            (entry["what"]["action"].as_str().unwrap(), entry["what"]["runId"].as_str().unwrap_or("-"))
        })
        .collect();
    #[rustfmt::skip]
    assert_eq!(tried, [
        ("run_show", &*other), ("run_events", &*other), ("run_stream", &*other), ("approval_list", &*other),
        ("run_show", "-"),
    ]);
}

#[tokio::test]
async fn j06_a_runs_own_token_ends_with_its_session() {
    let mut served = Served::start().await;
    let run = served.run().await;
    let open = served.edge.start().await;
    let agent = served.by(&open.run_token);
    let mut stream = agent.follow(&run, 0).await;
    served.owner().post(&format!("/runs/{run}/cancel"), json!({})).await.data();
    served.edge.closes(open.run).await;
    assert_eq!(stream.rest().await.last().unwrap().event, "run.cancelled");
    let gone = async {
        while agent.get(&format!("/runs/{run}")).await.status != 401 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), gone).await.expect("the token ends");
}

#[tokio::test]
async fn each_role_may_do_exactly_its_part() {
    let mut served = Served::start().await;
    served.run().await;
    let open = served.edge.start().await;
    served.edge.recorded(&open, 4, vec![asked("a1", "make clean")]).await;
    let (approval, digest) = open_approval(&served.owner()).await;
    let (viewer, operator) = (served.with_role(Role::Viewer).await, served.with_role(Role::Operator).await);
    let (approver, admin) = (served.with_role(Role::Approver).await, served.with_role(Role::Admin).await);
    let task = || json!({ "task": "x", "agent": "demo", "workspace": "site" });
    let yes = || json!({ "decision": "approve", "digest": digest });
    let resolve = format!("/approvals/{approval}/resolve");
    let rule = || json!({ "effect": "deny", "kind": "shell", "match": "rm *" });
    for client in [&viewer, &operator, &approver, &admin] {
        client.get("/runs").await.data();
        client.get("/audit").await.data();
        client.get("/health").await.data();
    }
    for client in [&viewer, &approver] {
        assert_eq!(client.post("/runs", task()).await.refused(), denied());
        assert_eq!(client.post("/workspaces", json!({ "path": "/x" })).await.refused(), denied());
    }
    for client in [&viewer, &operator] {
        assert_eq!(client.post(&resolve, yes()).await.refused(), denied());
    }
    for client in [&viewer, &operator, &approver] {
        assert_eq!(client.post("/policy/rules", rule()).await.refused(), denied());
        assert_eq!(client.get("/tokens").await.refused(), denied());
        assert_eq!(client.delete("/tokens/viewer").await.refused(), denied());
    }
    operator.post("/runs", task()).await.data();
    let decided = approver.post(&resolve, yes()).await.data();
    assert_eq!(decided["approval"]["decidedBy"], json!({ "id": "approver", "kind": "person" }));
    admin.post("/policy/rules", rule()).await.data();
    admin.delete("/tokens/viewer").await.data();
    assert_eq!(viewer.get("/runs").await.refused(), (401, "AUTHENTICATION_ERROR".to_owned()));
    assert_eq!(served.by("nonsense").get("/runs").await.status, 401);
}

#[tokio::test]
async fn c24_logins_and_changes_are_recorded_with_who_made_them() {
    let served = Served::start().await;
    let admin = served.with_role(Role::Admin).await;
    for _ in 0..3 {
        admin.get("/runs").await.data();
    }
    served.owner().post("/workspaces", json!({ "path": "/srv/site" })).await.data();
    let made = admin.post("/tokens", json!({ "name": "bob", "role": "viewer" })).await.data();
    assert!(made["text"].as_str().unwrap().starts_with("ryd_"), "it is shown once");
    assert!(!served.owner().get("/tokens").await.data().to_string().contains(made["text"].as_str().unwrap()));
    let twice = admin.post("/tokens", json!({ "name": "bob", "role": "viewer" })).await;
    assert_eq!(twice.refused(), (409, "CONFLICT".to_owned()));

    let wrong = |token: Value| {
        let admin = admin.clone();
        async move { admin.post("/tokens", token).await.issue().0 }
    };
    assert_eq!(wrong(json!({ "name": "ryd_x", "role": "viewer" })).await, "name");
    assert_eq!(wrong(json!({ "name": "x", "role": "king" })).await, "role");
    let past = json!({ "name": "x", "role": "viewer", "expires": "2001-01-01T00:00:00Z" });
    assert_eq!(wrong(past).await, "expires");

    let by = |entries: &[Value]| {
        entries.iter().map(|entry| entry["by"]["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        by(&audited(&served, "audit.login").await),
        ["admin", "owner"],
        "once each, not at every request"
    );
    // Each session that a browser begins is an entry of its own, also within the hour.
    for sessions in 1..=2 {
        served.browser(&served.owner()).await;
        let logins = audited(&served, "audit.login").await;
        let browsers = logins.iter().filter(|entry| entry["what"]["how"] == "browser");
        assert_eq!(browsers.map(|entry| &entry["by"]["id"]).collect::<Vec<_>>(), vec!["owner"; sessions]);
    }
    let workspaces = audited(&served, "audit.workspace").await;
    assert_eq!(
        (by(&workspaces), &workspaces[0]["what"]["change"]),
        (vec!["owner".to_owned()], &json!("added"))
    );
    assert_eq!(by(&audited(&served, "installation.token.created").await), ["ada", "admin"]);
    let verified = served.owner().get("/audit/verify").await.data();
    let entries = served.owner().get("/audit?limit=499").await.data()["entries"].take();
    assert_eq!(verified["entries"], entries.as_array().unwrap().len());
    assert_eq!(verified["head"], entries.as_array().unwrap().last().unwrap()["hash"]);
    let page = served.owner().get("/audit?limit=2").await.data();
    assert_eq!((page["entries"].as_array().unwrap().len(), page["next"].as_u64()), (2, Some(2)));
}

/// A hub with one action more, which wipes the site.
async fn with_wiping(ran: &std::sync::Arc<std::sync::atomic::AtomicBool>) -> Served {
    use runyard_actions::{Action, Runtime, SideEffects};
    let ran = std::sync::Arc::clone(ran);
    let wipe = Action::define("site_wipe", "Removes everything.")
        .side_effects(SideEffects::Write)
        .requires_confirmation(true)
        .input_schema(json!({"type": "object", "properties": {"deep": {"type": "boolean"}}}))
        .handler(move |input: Value, _| {
            ran.store(true, std::sync::atomic::Ordering::SeqCst);
            async move { Ok(json!({"wiped": input["deep"]})) }
        });
    Served::start_with(Runtime::builder().action(wipe)).await
}

#[tokio::test]
async fn j01_j02_an_agents_call_is_asked_about_as_an_approval_of_its_run_and_stands_in_its_log() {
    let ran = std::sync::Arc::default();
    let mut served = with_wiping(&ran).await;
    let run: RunId = served.run().await.parse().unwrap();
    let open = served.edge.start().await;
    let agent = served.by(&open.run_token);
    let calling = tokio::spawn(async move {
        // Its own confirmation counts for nothing.
        agent.post("/actions/site_wipe/invoke", json!({"input": {"deep": true}, "confirm": true})).await
    });
    support::engine::until(&served.engine, run, "needs_approval").await;
    let approval = served.owner().get("/approvals?state=open").await.data()["approvals"][0].take();
    assert_eq!(approval["request"]["input"], json!({"deep": true}), "{approval}");
    assert!(!calling.is_finished() && !ran.load(std::sync::atomic::Ordering::SeqCst), "it waits");
    let path = format!("/approvals/{}/resolve", approval["id"].as_str().unwrap());
    served.owner().post(&path, json!({"decision": "approve", "digest": approval["digest"]})).await.data();
    assert_eq!(calling.await.unwrap().data()["wiped"], json!(true));
    let kinds = support::engine::kinds(&served.engine, run).await;
    #[rustfmt::skip]
    assert_eq!(kinds[kinds.len() - 5..], [
        "run.approval.requested", "run.approval.resolved", "run.approval.used", "run.tool.call", "run.tool.result",
    ]);
}

#[tokio::test]
async fn j02_an_agents_call_that_only_reads_stands_in_its_log_unless_it_reads_the_record_itself() {
    use runyard_actions::{Action, ActionError, Runtime, SideEffects};
    use runyard_domain::Code;
    let look = Action::define("site_look", "Looks at a page.")
        .side_effects(SideEffects::Read)
        .input_schema(json!({"type": "object", "properties": {"page": {"type": "string"}}}))
        .handler(|input: Value, _| async move {
            match input["page"].as_str() {
                Some(page) => Ok(json!({"page": page})),
                None => Err(ActionError::new(Code::NotFound, "There is no such page.")),
            }
        });
    let mut served = Served::start_with(Runtime::builder().action(look)).await;
    let run: RunId = served.run().await.parse().unwrap();
    let open = served.edge.start().await;
    let agent = served.by(&open.run_token);
    let before = support::engine::kinds(&served.engine, run).await.len();
    agent.get(&format!("/runs/{run}")).await.data();
    agent.get(&format!("/runs/{run}/events")).await.data();
    assert_eq!(
        support::engine::kinds(&served.engine, run).await.len(),
        before,
        "its own record is only shown"
    );
    let invoke = "/actions/site_look/invoke";
    assert_eq!(agent.post(invoke, json!({"input": {"page": "home"}})).await.data()["page"], "home");
    assert_eq!(agent.post(invoke, json!({"input": {}})).await.refused(), missing());
    let events = served.owner().get(&format!("/runs/{run}/events?limit=100")).await.data()["events"].take();
    let told = events.as_array().unwrap()[before..].iter();
    let told: Vec<_> =
        told.map(|event| (event["type"].as_str().unwrap(), event["payload"]["outcome"].clone())).collect();
    let (call, result) = ("run.tool.call", "run.tool.result");
    let judged = ("run.gate.judged", Value::Null);
    #[rustfmt::skip]
    assert_eq!(told, [
        judged.clone(), (call, Value::Null), (result, json!("succeeded")),
        judged, (call, Value::Null), (result, json!("failed")),
    ]);
}

#[tokio::test]
async fn c12_a_call_that_its_agent_gives_up_is_withdrawn() {
    let ran = std::sync::Arc::default();
    let mut served = with_wiping(&ran).await;
    let run: RunId = served.run().await.parse().unwrap();
    let open = served.edge.start().await;
    let agent = served.by(&open.run_token);
    let calling =
        tokio::spawn(async move { agent.post("/actions/site_wipe/invoke", json!({"input": {}})).await });
    support::engine::until(&served.engine, run, "needs_approval").await;
    let (id, _) = open_approval(&served.owner()).await;
    calling.abort();
    support::engine::until(&served.engine, run, "running").await;
    let approval = served.owner().get(&format!("/approvals/{id}")).await.data()["approval"].take();
    assert_eq!(approval["state"], "withdrawn");
    assert!(!ran.load(std::sync::atomic::Ordering::SeqCst));
}

#[tokio::test]
async fn j01_an_agents_call_that_a_rule_denies_or_a_person_rejects_does_not_run() {
    let ran = std::sync::Arc::default();
    let mut served = with_wiping(&ran).await;
    let run: RunId = served.run().await.parse().unwrap();
    let open = served.edge.start().await;
    let agent = served.by(&open.run_token);
    let calling = {
        let agent = agent.clone();
        tokio::spawn(async move { agent.post("/actions/site_wipe/invoke", json!({"input": {}})).await })
    };
    support::engine::until(&served.engine, run, "needs_approval").await;
    let (id, digest) = open_approval(&served.owner()).await;
    let no = json!({"decision": "reject", "digest": digest});
    served.owner().post(&format!("/approvals/{id}/resolve"), no).await.data();
    assert_eq!(calling.await.unwrap().refused(), (403, "permission_denied".to_owned()));

    let second: RunId = served.run().await.parse().unwrap();
    assert!(served.edge.closes(run).await, "the rejection ended the first run");
    let open = served.edge.start().await;
    let rule = json!({"effect": "deny", "kind": "action", "match": "site_*"});
    served.owner().post("/policy/rules", rule).await.data();
    let agent = served.by(&open.run_token);
    let refused = agent.post("/actions/site_wipe/invoke", json!({"input": {}})).await.refused();
    assert_eq!(refused, (403, "permission_denied".to_owned()));
    assert_eq!(support::engine::kinds(&served.engine, second).await.last().unwrap(), "run.gate.judged");
    assert!(!ran.load(std::sync::atomic::Ordering::SeqCst));
}
