//! The API in a browser session: the surface `react`, where the page asks for confirmation, and who is kept out of it.
//!
//! clause: A22
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a failed expectation fails the test"
)]

mod dev_browser;
mod support;

use dev_browser::Browser;
use serde_json::json;
use support::app::{Seen, app};
use support::client::Request;
use support::server::{ADA, BOT, Server};
use support::until;

/// Some routes of every kind: the list, a call, one that is followed, a declared route, one that is not there, who is logged in.
fn every_route(browser: &Browser) -> Vec<Request> {
    vec![
        browser.get("/api/v1/actions"),
        browser.get("/api/v1/openapi.json"),
        browser.get("/api/v1/session"),
        browser.call("count", json!({})),
        browser.call("count", json!({})).followed(),
        browser.call("wipe", json!({})),
        browser.post("/api/v1/tasks", &json!({ "title": "x" })),
        browser.get("/api/v1/nowhere"),
    ]
}

/// What each route says to a request that was changed; nothing behind it must run, and the session must live on.
async fn check_refused(status: u16, code: &str, change: impl Fn(Request, &Server) -> Request) {
    let seen = Seen::default();
    let server = Server::start(app(&seen)).await;
    let browser = Browser::of(&server, ADA).await;
    for request in every_route(&browser) {
        let changed = change(request, &server);
        assert_eq!(server.send(changed.clone()).await.outcome(), (status, code.to_owned()), "{changed:?}");
    }
    assert_eq!((seen.started(), seen.ended().len()), (0, 0), "nothing ran");
    assert_eq!(server.send(browser.get("/api/v1/session")).await.status, 200, "the session lives on");
}

// clause: A04
// clause: A20
#[tokio::test(flavor = "multi_thread")]
async fn a04_a20_in_a_session_the_api_is_the_surface_react_and_the_page_asks() {
    let server = Server::start(app(&Seen::default())).await;
    let browser = Browser::of(&server, ADA).await;
    let answer = server.send(browser.call("wipe", json!({}))).await.data();
    assert_eq!((&answer["surface"], &answer["actor"]), (&json!("react"), &json!("ada")));
    let routed = server.send(browser.post("/api/v1/tasks", &json!({ "title": "x" }))).await;
    assert_eq!(
        (&routed.json()["meta"]["surface"], &routed.data()["surface"]),
        (&json!("react"), &json!("react"))
    );
    let list = server.send(browser.get("/api/v1/actions")).await;
    assert_eq!(list.json()["meta"]["surface"], "react");
    let unknown = server.send(browser.get("/api/v1/nowhere")).await;
    assert_eq!((unknown.status, &unknown.json()["meta"]["surface"]), (404, &json!("react")));
    let mut client = server.connect().await;
    client.follow(&browser.call("follow", json!({})).followed()).await;
    let events = client.events().await;
    assert_eq!(events.last().unwrap().data["envelope"]["meta"]["surface"], "react");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_names_no_other_surface_but_a_models() {
    let server = Server::start(app(&Seen::default())).await;
    let browser = Browser::of(&server, ADA).await;
    for surface in ["http", "dev", "cli", "mcp", "React", ""] {
        let named = browser.call("echo", json!({})).with("Runyard-Surface", surface);
        assert_eq!(server.send(named).await.outcome(), (403, "UNSUPPORTED_SURFACE".to_owned()), "{surface}");
    }
    for surface in ["react", "ai-sdk"] {
        let named = browser.call("echo", json!({})).with("Runyard-Surface", surface);
        assert_eq!(server.send(named).await.data()["surface"], surface);
    }
    // Where a model wrote the call, nobody has asked the person: what is not for models is not there.
    let by_a_model = browser.call("wipe", json!({})).with("Runyard-Surface", "ai-sdk");
    assert_eq!(server.send(by_a_model).await.code(), "ACTION_NOT_FOUND");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_logged_in_is_told_to_their_page_alone() {
    let server = Server::start(app(&Seen::default())).await;
    let browser = Browser::of(&server, ADA).await;
    let answer = server.send(browser.get("/api/v1/session")).await;
    assert_eq!(answer.json()["meta"]["surface"], "react");
    let expected = json!({
        "actor": { "id": "ada", "kind": "person" },
        "permissions": ["*"],
        "name": "tasks",
        "version": "1.2.3",
        "hub": false,
    });
    assert_eq!(answer.data(), expected);
    for token in [ADA, BOT] {
        let by_token = server.send(server.get("/api/v1/session").by(token)).await;
        assert_eq!(by_token.outcome(), (401, "AUTHENTICATION_ERROR".to_owned()));
    }
    let posted = server.send(browser.post("/api/v1/session", &json!({}))).await;
    assert_eq!(posted.outcome(), (405, "METHOD_NOT_ALLOWED".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cookie_without_the_pages_key_and_a_key_without_its_cookie_count_for_nothing() {
    check_refused(401, "AUTHENTICATION_ERROR", |request, _| request.without("X-Runyard-Page")).await;
    check_refused(401, "AUTHENTICATION_ERROR", |request, _| request.without("Cookie")).await;
    for wrong in ["", "x", &"0".repeat(64)] {
        check_refused(401, "AUTHENTICATION_ERROR", |request, _| request.with("X-Runyard-Page", wrong)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_and_a_session_together_are_neither() {
    for token in [ADA, BOT, "nonsense"] {
        check_refused(401, "AUTHENTICATION_ERROR", |request, _| request.by(token)).await;
        // Not even a page's key beside a token, whoever holds it.
        check_refused(401, "AUTHENTICATION_ERROR", |request, _| request.without("Cookie").by(token)).await;
    }
}

// AutoJack: a console that trusted every page of this machine, whatever its port.
#[tokio::test(flavor = "multi_thread")]
async fn autojack_a_foreign_page_is_refused_with_the_right_keys() {
    for origin in ["http://localhost:8080", "http://localhost:PORT", "https://evil.example", "null", ""] {
        check_refused(403, "ORIGIN_NOT_ALLOWED", |request, server| {
            request.with("Origin", &origin.replace("PORT", &server.address.port().to_string()))
        })
        .await;
    }
    for site in ["cross-site", "same-site", "none"] {
        check_refused(403, "ORIGIN_NOT_ALLOWED", |request, _| request.with("Sec-Fetch-Site", site)).await;
    }
    check_refused(403, "ORIGIN_NOT_ALLOWED", |request, _| {
        request.without("Origin").without("Sec-Fetch-Site")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rebound_name_reaches_no_session() {
    check_refused(421, "HOST_NOT_ALLOWED", |request, _| {
        request.with("Host", "evil.example").with("Origin", "http://evil.example")
    })
    .await;
}

// A form of another site posts text, which needs no preflight.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2025_49596_a_simple_request_runs_nothing() {
    let seen = Seen::default();
    let server = Server::start(app(&seen)).await;
    let browser = Browser::of(&server, ADA).await;
    for media_type in ["text/plain", "application/x-www-form-urlencoded", ""] {
        let own = browser.call("count", json!({})).with("Content-Type", media_type);
        assert_eq!(server.send(own).await.outcome(), (415, "UNSUPPORTED_MEDIA_TYPE".to_owned()));
    }
    assert_eq!(seen.started(), 0);
}

// clause: A21
#[tokio::test(flavor = "multi_thread")]
async fn a21_a_page_that_goes_away_ends_its_call() {
    let seen = Seen::default();
    let server = Server::start(app(&seen)).await;
    let browser = Browser::of(&server, ADA).await;
    let calls = [browser.call("hang", json!({})), browser.call("hang", json!({})).followed()];
    for (number, request) in calls.into_iter().enumerate() {
        let mut client = server.connect().await;
        client.write(&request.bytes()).await;
        until("the action runs", || seen.started() == number + 1).await;
        drop(client);
        until("the action is over", || seen.dropped() == number + 1).await;
    }
    until("both ended", || seen.ended() == ["CANCELLED", "CANCELLED"]).await;
}
