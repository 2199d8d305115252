//! What the dev page asks for: its list, and calls on its surface. The page itself is in `pages.rs`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a failed expectation fails the test"
)]

mod dev_browser;
mod support;

use dev_browser::Browser;
use runyard_actions::{Action, Runtime};
use runyard_surfaces::http::{Guard, HttpApi, RouteError};
use serde_json::json;
use support::app::{Seen, app, echoing};
use support::server::{ADA, Server};
use support::until;

#[tokio::test(flavor = "multi_thread")]
async fn the_page_lists_what_its_surface_shows_with_who_is_logged_in() {
    let server = Server::start(app(&Seen::default())).await;
    let browser = Browser::of(&server, ADA).await;
    let answer = server.send(browser.get("/dev/api/actions")).await;
    assert_eq!(answer.json()["meta"]["surface"], "dev");
    let data = answer.data();
    assert_eq!(
        (&data["app"], &data["actor"]["id"]),
        (&json!({"name": "tasks", "version": "1.2.3"}), &json!("ada"))
    );
    let actions = data["actions"].as_array().unwrap();
    let found = |name: &str| actions.iter().find(|action| action["name"] == name);
    assert_eq!(found("wipe").unwrap()["requiresConfirmation"], true);
    assert_eq!(
        (&found("wipe").unwrap()["onHttp"], &found("echo").unwrap()["onHttp"]),
        (&json!(false), &json!(true))
    );
    assert!(found("local_thing").is_some(), "what is local to this machine is here");
    assert!(found("private_thing").is_none() && found("cli_only").is_none());
}

// clause: A04
#[tokio::test(flavor = "multi_thread")]
async fn a04_the_page_asks_so_the_surface_does_not() {
    let server = Server::start(app(&Seen::default())).await;
    let browser = Browser::of(&server, ADA).await;
    let answer = server.send(browser.invoke("wipe", json!({}))).await.data();
    assert_eq!((&answer["surface"], &answer["actor"]), (&json!("dev"), &json!("ada")));
    // The surface is the entry point's, whatever a request says.
    for surface in ["http", "cli", "nonsense"] {
        let named = browser.invoke("echo", json!({})).with("Runyard-Surface", surface);
        assert_eq!(server.send(named).await.data()["surface"], "dev");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_followed_as_it_runs() {
    let server = Server::start(app(&Seen::default())).await;
    let browser = Browser::of(&server, ADA).await;
    let mut client = server.connect().await;
    client.follow(&browser.invoke("follow", json!({})).followed()).await;
    let events = client.events().await;
    let kinds: Vec<&str> = events.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds, ["log", "progress", "artifact", "log", "result"]);
    assert_eq!(events[4].data["envelope"]["meta"]["surface"], "dev");
}

// clause: A21
#[tokio::test(flavor = "multi_thread")]
async fn a21_a_page_that_goes_away_ends_its_call() {
    let seen = Seen::default();
    let server = Server::start(app(&seen)).await;
    let browser = Browser::of(&server, ADA).await;
    for (number, request) in [browser.invoke("hang", json!({})), browser.invoke("hang", json!({})).followed()]
        .into_iter()
        .enumerate()
    {
        let mut client = server.connect().await;
        client.write(&request.bytes()).await;
        until("the action runs", || seen.started() == number + 1).await;
        drop(client);
        until("the action is over", || seen.dropped() == number + 1).await;
    }
    until("both ended", || seen.ended() == ["CANCELLED", "CANCELLED"]).await;
}

// clause: A17
#[tokio::test(flavor = "multi_thread")]
async fn a17_what_is_not_there_is_not_found_on_this_surface() {
    let server = Server::start(app(&Seen::default())).await;
    let browser = Browser::of(&server, ADA).await;
    for request in [
        browser.get("/dev/api"),
        browser.get("/dev/api/"),
        browser.get("/dev/api/nowhere"),
        browser.get("/dev/api/actions/count"),
        browser.post("/dev/api/invoke", &json!({})),
        browser.post("/dev/nowhere", &json!({})),
    ] {
        let answer = server.send(request.clone()).await;
        assert_eq!(answer.outcome(), (404, "NOT_FOUND".to_owned()), "{request:?}");
        assert_eq!(answer.json()["meta"]["surface"], "dev", "{request:?}");
    }
    let wrong = server.send(browser.get("/dev/api/actions/count/invoke")).await;
    assert_eq!((wrong.outcome(), wrong.header("allow")), ((405, "METHOD_NOT_ALLOWED".to_owned()), "POST"));
    let unknown = server.send(browser.invoke("nothing", json!({}))).await;
    assert_eq!(unknown.outcome(), (404, "ACTION_NOT_FOUND".to_owned()));
}

/// A body that is wrong is its sender's mistake, never the server's: the original answered some of these with 500.
#[tokio::test(flavor = "multi_thread")]
async fn a17_a_body_that_is_no_call_is_refused_as_the_senders_mistake() {
    let server = Server::start(app(&Seen::default())).await;
    let browser = Browser::of(&server, ADA).await;
    let post = |body: &str| browser.post("/dev/api/actions/count/invoke", &json!({})).body(body);
    for (body, code) in [
        ("null", "VALIDATION_ERROR"),
        ("[]", "VALIDATION_ERROR"),
        ("\"text\"", "VALIDATION_ERROR"),
        ("{\"input\": 1}", "VALIDATION_ERROR"),
        ("{\"user\": \"eve\"}", "VALIDATION_ERROR"),
        ("", "INVALID_JSON_BODY"),
        ("{", "INVALID_JSON_BODY"),
    ] {
        let answer = server.send(post(body)).await;
        assert_eq!(answer.outcome(), (400, code.to_owned()), "{body}");
        assert_eq!(answer.json()["meta"]["surface"], "dev", "{body}");
    }
    let escape = browser.post("/dev/api/actions/%ff/invoke", &json!({}));
    assert_eq!(server.send(escape).await.outcome(), (400, "INVALID_REQUEST".to_owned()));
}

#[test]
fn an_actions_route_cannot_stand_where_the_page_does() {
    for route in [
        "GET /dev",
        "GET /dev/task",
        "GET /assets/x",
        "POST /dev/api/actions",
        "GET /dev/x",
        "POST /login",
        "POST /api/v1/logins",
        "GET /api/v1/session",
    ] {
        let action = echoing(Action::define("sly", "Stands in the way.").http(route));
        let Ok(runtime) = Runtime::builder().action(action).build() else { continue };
        let guard = Guard::new("127.0.0.1:1".parse().unwrap(), runyard_surfaces::http::BearerTokens::new());
        let api = HttpApi { name: "x".into(), version: "1".into(), runtime, guard };
        assert!(matches!(api.router(), Err(RouteError::Taken { .. })), "{route}");
    }
}
