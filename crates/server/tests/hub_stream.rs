//! What changes over the whole hub, as it is followed over HTTP, and streams and downloads in a browser session.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a failed expectation fails the test"
)]

mod support;

use runyard_engine::Role;
use serde_json::{Value, json};
use support::engine::asked;
use support::{Messages, Served};

/// Reads on until what is told of a run is this.
async fn until(stream: &mut Messages, run: &str, holds: impl Fn(&Value, u64) -> bool) -> Value {
    loop {
        let changed = stream.changed().await.expect("the stream goes on");
        let open = changed["approvals"].as_u64().unwrap();
        if let Some(told) = changed["runs"].as_array().unwrap().iter().find(|told| told["id"] == run)
            && holds(&told["state"], open)
        {
            return told.clone();
        }
    }
}

// clause: C20
#[tokio::test]
async fn c20_the_hubs_stream_begins_at_once_and_tells_which_runs_changed_and_how_much_is_open() {
    let mut served = Served::start().await;
    let old = served.run().await;
    let open = served.edge.start().await;
    let mut stream = served.owner().follow_hub().await;
    assert_eq!(
        stream.changed().await.unwrap(),
        json!({ "runs": [], "approvals": 0 }),
        "what was before is read"
    );
    served.edge.recorded(&open, 4, vec![asked("a1", "make clean")]).await;
    let told = until(&mut stream, &old, |state, open| state == "needs_approval" && open == 1).await;
    let log = support::log(&served.engine, &old).await;
    assert_eq!(told, json!({ "id": old, "state": "needs_approval", "lastSequence": log.len() }));
    let new = served.run().await;
    until(&mut stream, &new, |_, _| true).await;
    let mut late = served.owner().follow_hub().await;
    assert_eq!(late.changed().await.unwrap(), json!({ "runs": [], "approvals": 1 }));
    served.owner().post(&format!("/runs/{old}/cancel"), json!({})).await.data();
    for mut stream in [stream, late] {
        until(&mut stream, &old, |state, open| state == "cancelled" && open == 0).await;
    }
}

#[tokio::test]
async fn a_snoozed_approval_does_not_count_until_it_comes_back() {
    let mut served = Served::start().await;
    let run = served.run().await;
    let open = served.edge.start().await;
    served.edge.recorded(&open, 4, vec![asked("a1", "make clean")]).await;
    let mut stream = served.owner().follow_hub().await;
    assert_eq!(stream.changed().await.unwrap()["approvals"], 1);
    let list = served.owner().get(&format!("/approvals?state=open&run={run}")).await.data();
    let id = list["approvals"][0]["id"].as_str().unwrap();
    served.owner().post(&format!("/approvals/{id}/snooze"), json!({ "forMs": 60_000 })).await.data();
    until(&mut stream, &run, |_, open| open == 0).await;
}

// clause: J06
#[tokio::test]
async fn j06_an_agent_is_refused_the_hubs_stream_and_the_try_is_recorded() {
    let mut served = Served::start().await;
    served.run().await;
    let open = served.edge.start().await;
    let refused = served.by(&open.run_token).get("/stream").await.refused();
    assert_eq!(refused, (403, "AUTHORIZATION_ERROR".to_owned()));
    let entries = served.owner().get("/audit").await.data()["entries"].take();
    let tried = |entry: &&Value| entry["type"] == "audit.refused" && entry["what"]["action"] == "hub_stream";
    assert_eq!(entries.as_array().unwrap().iter().filter(tried).count(), 1, "{entries}");
    assert_eq!(served.by("nobody").get("/stream").await.refused().0, 401);
}

#[tokio::test]
async fn the_hubs_stream_is_counted_and_ends_with_the_server() {
    let served = Served::start().await;
    let mut stream = served.owner().follow_hub().await;
    stream.changed().await.unwrap();
    let text = String::from_utf8(served.owner().get("/metrics").await.body).unwrap();
    assert!(text.contains("\nrunyard_event_streams 1\n"), "{text}");
    served.stop.cancel();
    while stream.changed().await.is_some() {}
}

// clause: C24
#[tokio::test]
async fn c24_streams_end_when_their_token_is_revoked() {
    let served = Served::start().await;
    let viewer = served.with_role(Role::Viewer).await;
    let mut stream = viewer.follow_hub().await;
    stream.changed().await.unwrap();
    assert_eq!(served.owner().delete("/tokens/viewer").await.status, 200);
    let text = stream.rest_as_text().await;
    assert!(text.ends_with(": the token is not valid any more\n\n"), "{text:?}");
    assert_eq!(viewer.get("/stream").await.refused().0, 401);
}

// clause: C24
#[tokio::test]
async fn c24_streams_of_a_session_end_when_the_session_is_ended_or_its_token_is_revoked() {
    let served = Served::start().await;
    let run = served.run().await;
    let (viewer, operator) = (served.with_role(Role::Viewer).await, served.with_role(Role::Operator).await);
    let (one, other) = (served.browser(&viewer).await, served.browser(&operator).await);
    let again = served.browser(&operator).await;
    let mut streams = Vec::new();
    for browser in [&one, &other, &again] {
        let mut of_run = browser.follow(&format!("/api/v1/runs/{run}/stream")).await;
        assert_eq!(of_run.next().await.unwrap().event, "run.created");
        let mut of_hub = browser.follow("/api/v1/stream").await;
        of_hub.changed().await.unwrap();
        streams.push((of_run, of_hub));
    }
    let (mut of_run, mut of_hub) = streams.pop().unwrap();
    // One logs out, the other's token is revoked.
    assert_eq!(other.send("POST", "/logout", Some(json!({}))).await.status, 200);
    assert_eq!(served.owner().delete("/tokens/viewer").await.status, 200);
    for (of_run, of_hub) in streams {
        for stream in [of_run, of_hub] {
            let text = stream.rest_as_text().await;
            assert!(text.ends_with(": the browser session is over\n\n"), "{text:?}");
        }
    }
    assert_eq!(one.send("GET", "/api/v1/stream", None).await.refused().0, 401);
    // Another session of the same person goes on.
    served.owner().post(&format!("/runs/{run}/cancel"), json!({})).await.data();
    until(&mut of_hub, &run, |state, _| state == "cancelled").await;
    assert_eq!(of_run.rest().await.last().unwrap().event, "run.cancelled");
}

#[tokio::test]
async fn a_session_reads_runs_streams_and_metrics_with_the_rights_of_its_token() {
    let served = Served::start().await;
    let run = served.run().await;
    let browser = served.browser(&served.with_role(Role::Viewer).await).await;
    let session = browser.send("GET", "/api/v1/session", None).await.data();
    assert_eq!(
        (&session["actor"], &session["hub"]),
        (&json!({ "id": "viewer", "kind": "person" }), &json!(true))
    );
    assert!(session["permissions"].as_array().unwrap().contains(&json!("runs.read")), "{session}");
    assert_eq!(browser.send("GET", &format!("/api/v1/runs/{run}"), None).await.status, 200);
    let metrics = browser.send("GET", "/api/v1/metrics", None).await;
    assert_eq!(metrics.status, 200);
    let refused = browser.send("POST", &format!("/api/v1/runs/{run}/cancel"), Some(json!({}))).await;
    assert_eq!(
        refused.refused(),
        (403, "AUTHORIZATION_ERROR".to_owned()),
        "a viewer's session is a viewer's"
    );
    assert_eq!(refused.json()["meta"]["surface"], "react");
    let unknown = browser.send("GET", "/api/v1/runs/nonsense/stream", None).await;
    assert_eq!((unknown.status, &unknown.json()["meta"]["surface"]), (400, &json!("react")));
}
