//! Who gets a link to log in with at a hub, and what is recorded of who does not.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a failed expectation fails the test"
)]

mod support;

use runyard_engine::Role;
use serde_json::json;
use support::Served;

#[tokio::test]
async fn people_of_every_role_get_a_link_and_nobody_without_a_token() {
    let served = Served::start().await;
    for role in [Role::Viewer, Role::Admin] {
        let person = served.with_role(role).await;
        let link = person.post("/logins", json!({})).await.data();
        assert!(link["url"].as_str().unwrap().starts_with(&format!("http://{}/login#", served.address)));
    }
    assert_eq!(served.by("nobody").post("/logins", json!({})).await.refused().0, 401);
}

// clause: J06
#[tokio::test]
async fn j06_a_runs_token_gets_no_link_and_the_try_is_recorded() {
    let mut served = Served::start().await;
    let run = served.run().await;
    let open = served.edge.start().await;
    let agent = served.by(&open.run_token);
    let refused = agent.post("/logins", json!({})).await.refused();
    assert_eq!(refused, (403, "AUTHORIZATION_ERROR".to_owned()));
    let entries = served.owner().get("/audit").await.data()["entries"].take();
    let refused: Vec<_> =
        entries.as_array().unwrap().iter().filter(|entry| entry["type"] == "audit.refused").collect();
    assert_eq!(refused.len(), 1, "{entries}");
    assert_eq!(refused[0]["what"]["action"], "POST /api/v1/logins");
    assert_eq!(refused[0]["by"], json!({ "id": "demo", "kind": "agent", "runId": run }));
}
