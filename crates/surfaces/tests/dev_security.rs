//! Who is kept out of the dev page, where confirmation is not enforced: the incidents of dev consoles, one test each.
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

use dev_browser::{Browser, from_page};
use serde_json::json;
use support::app::{Seen, app};
use support::client::Request;
use support::server::{ADA, BOT, Server};

/// Every route that a session alone may use; the last is none.
fn every_route(browser: &Browser) -> Vec<Request> {
    vec![
        browser.get("/dev/api/actions"),
        browser.invoke("count", json!({})),
        browser.invoke("count", json!({})).followed(),
        browser.invoke("wipe", json!({})),
        browser.post("/logout", &json!({})),
        browser.get("/dev/api/nowhere"),
    ]
}

/// What each route says to a request that was changed; the action behind it must not run, and the session must live on.
async fn check_refused(status: u16, code: &str, change: impl Fn(Request, &Server) -> Request) {
    let seen = Seen::default();
    let server = Server::start(app(&seen)).await;
    let browser = Browser::of(&server, ADA).await;
    for request in every_route(&browser) {
        let changed = change(request, &server);
        let answer = server.send(changed.clone()).await;
        assert_eq!(answer.outcome(), (status, code.to_owned()), "{changed:?}");
        assert_eq!(answer.json()["meta"]["surface"], "dev", "{changed:?}");
    }
    assert_eq!((seen.started(), seen.ended().len()), (0, 0), "nothing ran");
    assert_eq!(server.send(browser.get("/dev/api/actions")).await.status, 200, "the session lives on");
}

// CVE-2025-49596: an inspector whose proxy ran what anybody asked it to.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2025_49596_without_a_session_the_dev_page_runs_nothing() {
    check_refused(401, "AUTHENTICATION_ERROR", |request, _| {
        request.without("Cookie").without("X-Runyard-Page")
    })
    .await;
}

// Cookies go to every port of a host: a server that an agent started on this machine is sent ours, and must not be able to use it.
#[tokio::test(flavor = "multi_thread")]
async fn a_cookie_alone_counts_for_nothing() {
    check_refused(401, "AUTHENTICATION_ERROR", |request, _| request.without("X-Runyard-Page")).await;
    for wrong in ["", "x", &"0".repeat(64)] {
        check_refused(401, "AUTHENTICATION_ERROR", |request, _| request.with("X-Runyard-Page", wrong)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_key_alone_counts_for_nothing() {
    check_refused(401, "AUTHENTICATION_ERROR", |request, _| request.without("Cookie")).await;
    check_refused(401, "AUTHENTICATION_ERROR", |request, server| {
        request.with("Cookie", &format!("runyard_session_{}={}", server.address.port(), "0".repeat(64)))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_keys_of_two_sessions_do_not_fit_together() {
    let server = Server::start(app(&Seen::default())).await;
    let (one, other) = (Browser::of(&server, ADA).await, Browser::of(&server, ADA).await);
    let mixed = one.get("/dev/api/actions").with("X-Runyard-Page", &other.page_key);
    assert_eq!(server.send(mixed).await.status, 401);
    let twice = one.get("/dev/api/actions").and("X-Runyard-Page", &one.page_key);
    assert_eq!(server.send(twice).await.status, 401, "a header that is there twice is none");
    // Another server of this machine may set cookies of our name; they change nothing.
    let name = one.cookie.split('=').next().unwrap();
    for cookies in
        [format!("{name}=x; {}", one.cookie), format!("a=b; {}; {name}={}", one.cookie, "0".repeat(64))]
    {
        let tossed = one.get("/dev/api/actions").with("Cookie", &cookies);
        assert_eq!(server.send(tossed).await.status, 200, "{cookies}");
    }
    // A browser sends ours last: it has the shortest path.
    let tossed: String = (0..63).map(|number| format!("{name}={number:064x}; ")).collect();
    let crowded = one.get("/dev/api/actions").with("Cookie", &format!("{tossed}{}", one.cookie));
    assert_eq!(server.send(crowded).await.status, 200);
    let others_name =
        one.get("/dev/api/actions").with("Cookie", &one.cookie.replace("session_", "session_1"));
    assert_eq!(server.send(others_name).await.status, 401);
}

// AutoJack: a console that trusted every page of this machine, whatever its port.
#[tokio::test(flavor = "multi_thread")]
async fn autojack_a_page_of_another_port_or_name_of_this_machine_is_refused_with_the_right_keys() {
    for origin in [
        "http://localhost",
        "http://127.0.0.1",
        "http://127.0.0.1:1",
        "http://localhost:8080",
        "http://[::1]:PORT",
        "http://localhost:PORT",
        "https://evil.example",
        "http://127.0.0.1:PORT.evil.example",
        "null",
        "",
        "file://",
    ] {
        check_refused(403, "ORIGIN_NOT_ALLOWED", |request, server| {
            request.with("Origin", &origin.replace("PORT", &server.address.port().to_string()))
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_browser_calls_foreign_or_typed_is_refused_with_the_right_keys() {
    for site in ["cross-site", "same-site", "none", "", "Same-Origin"] {
        check_refused(403, "ORIGIN_NOT_ALLOWED", |request, _| request.with("Sec-Fetch-Site", site)).await;
    }
    check_refused(403, "ORIGIN_NOT_ALLOWED", |request, _| {
        request.without("Origin").without("Sec-Fetch-Site")
    })
    .await;
    let server = Server::start(app(&Seen::default())).await;
    let browser = Browser::of(&server, ADA).await;
    let blind = browser.invoke("count", json!({})).without("Origin");
    assert_eq!(
        server.send(blind).await.code(),
        "ORIGIN_NOT_ALLOWED",
        "what changes something names its page"
    );
    let old = browser.invoke("count", json!({})).without("Sec-Fetch-Site");
    assert_eq!(server.send(old).await.status, 200, "a browser that knows only Origin works");
}

// Mistake 9 of the original, and CVE-2025-49596: a form of another site posts text, which needs no preflight.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2025_49596_a_simple_request_of_another_site_runs_no_destructive_action() {
    let seen = Seen::default();
    let server = Server::start(app(&seen)).await;
    let browser = Browser::of(&server, ADA).await;
    let body = json!({"input": {}, "confirm": true}).to_string();
    for media_type in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""] {
        for action in ["wipe", "count"] {
            let target = format!("/dev/api/actions/{action}/invoke");
            let simple = Request::new("POST", &target).and("Content-Type", media_type).body(body.clone());
            let foreign = simple.clone().and("Host", &browser.host).and("Origin", "https://evil.example");
            let with_cookie =
                foreign.clone().and("Cookie", &browser.cookie).and("Sec-Fetch-Site", "cross-site");
            for request in [foreign, with_cookie] {
                assert_eq!(server.send(request).await.code(), "ORIGIN_NOT_ALLOWED");
            }
            let own = browser.post(&target, &json!({})).with("Content-Type", media_type).body(body.clone());
            assert_eq!(server.send(own).await.outcome(), (415, "UNSUPPORTED_MEDIA_TYPE".to_owned()));
        }
    }
    assert_eq!((seen.started(), seen.ended().len()), (0, 0), "nothing ran");
}

// CVE-2026-42559 and its like, on this surface.
#[tokio::test(flavor = "multi_thread")]
async fn a_rebound_name_reaches_no_page_and_no_session() {
    for host in ["evil.example", "evil.example:PORT", "localhost", "127.0.0.1:1"] {
        check_refused(421, "HOST_NOT_ALLOWED", |request, server| {
            let host = host.replace("PORT", &server.address.port().to_string());
            request.with("Host", &host).with("Origin", &format!("http://{host}"))
        })
        .await;
    }
    let server = Server::start(app(&Seen::default())).await;
    for path in ["/login", "/dev", "/dev/task", "/assets/x.js", "/"] {
        let rebound = Request::new("GET", path).and("Host", "evil.example");
        assert_eq!(server.send(rebound).await.code(), "HOST_NOT_ALLOWED", "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_does_not_count_on_the_dev_page_whoever_holds_it() {
    for token in [ADA, BOT] {
        check_refused(401, "AUTHENTICATION_ERROR", |request, _| {
            request.without("Cookie").without("X-Runyard-Page").by(token)
        })
        .await;
        check_refused(401, "AUTHENTICATION_ERROR", |request, _| request.by(token)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_does_not_count_where_only_a_token_does() {
    let seen = Seen::default();
    let server = Server::start(app(&seen)).await;
    let browser = Browser::of(&server, ADA).await;
    for request in [
        browser.post("/api/v1/logins", &json!({})),
        browser.post("/mcp", &json!({})),
        browser.get("/mcp"),
        browser.get("/nowhere"),
    ] {
        let answer = server.send(request.clone()).await;
        assert_eq!(answer.outcome(), (401, "AUTHENTICATION_ERROR".to_owned()), "{request:?}");
    }
    assert_eq!(seen.started(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_header_makes_another_surface_the_dev_page() {
    let server = Server::start(app(&Seen::default())).await;
    for surface in ["dev", "react", "Dev"] {
        let request = server.invoke("delete_task", json!({"id": 1})).with("Runyard-Surface", surface);
        assert_eq!(server.send(request).await.code(), "UNSUPPORTED_SURFACE");
    }
    let asks = server.invoke("delete_task", json!({"id": 1}));
    assert_eq!(server.send(asks).await.code(), "CONFIRMATION_REQUIRED");
    let stranger = from_page(&server, Request::new("POST", "/dev/api/actions/delete_task/invoke"));
    assert_eq!(server.send(stranger.json(&json!({"input": {"id": 1}}))).await.status, 401);
}
