//! Logging in with a browser: the link, the cookie, the session, and their ends.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a failed expectation fails the test"
)]

mod dev_browser;
mod support;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dev_browser::{Browser, code_by, from_page, login};
use runyard_domain::RunId;
use runyard_surfaces::http::{
    Actor, BearerTokens, Guard, HttpApi, Listening, TokenDigest, TokenHolders, serve,
};
use serde_json::json;
use support::app::{Seen, app};
use support::client::Request;
use support::server::{ADA, BOB, BOT, Server};
use tokio_util::sync::CancellationToken;

/// Longer than a link or an idle session lasts, as the documentation says.
const LINK: Duration = Duration::from_secs(120);
const IDLE: Duration = Duration::from_secs(2 * 60 * 60);
const WHOLE: Duration = Duration::from_secs(12 * 60 * 60);

fn denied(code: &str) -> (u16, String) {
    (if code == "AUTHENTICATION_ERROR" { 401 } else { 403 }, code.to_owned())
}

async fn start() -> Server {
    Server::start(app(&Seen::default())).await
}

/// Lets time go by at once. Between requests nothing of the server waits for it.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

#[tokio::test]
async fn a_persons_link_logs_a_browser_in_once() {
    let server = start().await;
    let code = code_by(&server, ADA).await;
    let answer = server.send(login(&server, &code)).await;
    let port = server.address.port();
    let (cookie, rest) = answer.header("set-cookie").split_once("; ").unwrap();
    assert!(cookie.starts_with(&format!("runyard_session_{port}=")) && cookie.len() > 64, "{cookie}");
    assert_eq!(rest, "Max-Age=43200; Path=/; HttpOnly; SameSite=Strict");
    let browser = Browser::from(&server, &answer);
    assert!(!cookie.contains(&browser.page_key), "two keys, one for the cookie and one for the page");
    let found = server.send(browser.get("/dev/api/actions")).await.data();
    assert_eq!(found["actor"]["id"], "ada");

    let again = server.send(login(&server, &code)).await;
    assert_eq!(again.outcome(), denied("AUTHENTICATION_ERROR"), "a link works once");
    assert!(again.all("set-cookie").is_empty());
    assert_eq!(
        server.send(browser.get("/dev/api/actions")).await.status,
        200,
        "and the first stays logged in"
    );
}

#[tokio::test]
async fn a_code_that_is_none_or_no_text_starts_no_session() {
    let server = start().await;
    let code = code_by(&server, ADA).await;
    for wrong in ["", "x", ADA, &code[..63], &format!("{code}0"), &code.to_uppercase().replace('0', "1")] {
        assert_eq!(
            server.send(login(&server, wrong)).await.outcome(),
            denied("AUTHENTICATION_ERROR"),
            "{wrong}"
        );
    }
    for body in
        [json!(null), json!([code]), json!({}), json!({"code": 1}), json!({"code": null}), json!(code)]
    {
        let answer = server.send(login(&server, "").json(&body)).await;
        assert_eq!(answer.outcome(), (400, "VALIDATION_ERROR".to_owned()), "{body}");
        assert_eq!(answer.json()["meta"]["surface"], "dev");
    }
    assert_eq!(server.send(login(&server, &code)).await.status, 200, "none of these used it up");
}

#[tokio::test]
async fn a_link_is_too_old_after_two_minutes() {
    let server = start().await;
    let code = code_by(&server, ADA).await;
    pass(LINK).await;
    assert_eq!(server.send(login(&server, &code)).await.outcome(), denied("AUTHENTICATION_ERROR"));
}

#[tokio::test]
async fn a_session_ends_when_nobody_uses_it_and_at_last_in_any_case() {
    let server = start().await;
    let (used, left) = (Browser::of(&server, ADA).await, Browser::of(&server, ADA).await);
    let hour = Duration::from_secs(60 * 60);
    for _ in 1..12 {
        pass(hour).await;
        assert_eq!(server.send(used.get("/dev/api/actions")).await.status, 200, "it is used");
    }
    assert!(hour * 11 > IDLE && hour * 12 >= WHOLE);
    assert_eq!(server.send(left.get("/dev/api/actions")).await.outcome(), denied("AUTHENTICATION_ERROR"));
    pass(hour).await;
    assert_eq!(server.send(used.get("/dev/api/actions")).await.outcome(), denied("AUTHENTICATION_ERROR"));
}

// clause: J06
#[tokio::test]
async fn j06_neither_an_agent_nor_a_service_gets_a_link() {
    let server = start().await;
    for token in [BOT, BOB] {
        let answer = server.send(server.post("/api/v1/logins", &json!({})).by(token)).await;
        assert_eq!(answer.outcome(), denied("AUTHORIZATION_ERROR"));
        assert!(!String::from_utf8_lossy(&answer.body).contains("/login#"));
    }
    let nobody = server.send(server.post("/api/v1/logins", &json!({})).without("Authorization")).await;
    assert_eq!(nobody.outcome(), denied("AUTHENTICATION_ERROR"));
    let browser = Browser::of(&server, ADA).await;
    let by_session = browser.post("/api/v1/logins", &json!({}));
    assert_eq!(
        server.send(by_session).await.outcome(),
        denied("AUTHENTICATION_ERROR"),
        "a session makes no session"
    );
}

#[tokio::test]
async fn logging_out_ends_this_session_and_no_other() {
    let server = start().await;
    let (here, there) = (Browser::of(&server, ADA).await, Browser::of(&server, ADA).await);
    let out = server.send(here.post("/logout", &json!({}))).await;
    assert_eq!(out.outcome(), (200, "OK".to_owned()));
    assert!(out.header("set-cookie").contains("=; Max-Age=0;"), "{}", out.header("set-cookie"));
    assert_eq!(server.send(here.get("/dev/api/actions")).await.outcome(), denied("AUTHENTICATION_ERROR"));
    assert_eq!(server.send(there.get("/dev/api/actions")).await.status, 200);
}

#[tokio::test]
async fn logging_in_anew_ends_the_session_that_the_browser_had() {
    let server = start().await;
    let before = Browser::of(&server, ADA).await;
    let code = code_by(&server, ADA).await;
    let answer = server.send(login(&server, &code).with("Cookie", &before.cookie)).await;
    let after = Browser::from(&server, &answer);
    assert_eq!(server.send(after.get("/dev/api/actions")).await.status, 200);
    assert_eq!(server.send(before.get("/dev/api/actions")).await.status, 401);
}

/// Tokens that a test gives and takes.
#[derive(Clone, Default)]
struct Given(Arc<Mutex<HashMap<String, Arc<Actor>>>>);

impl TokenHolders for Given {
    fn holder(&self, token: &str) -> Option<Arc<Actor>> {
        self.0.lock().unwrap().get(token).cloned()
    }

    fn changes(&self) -> Option<tokio::sync::watch::Receiver<u64>> {
        None
    }
}

impl Given {
    fn give(&self, token: &str, actor: Actor) {
        self.0.lock().unwrap().insert(token.to_owned(), Arc::new(actor));
    }
}

async fn serving(guard: impl FnOnce(SocketAddr) -> Guard) -> Server {
    let listening = Listening::on(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let address = listening.address;
    let runtime = app(&Seen::default()).build().unwrap();
    let api = HttpApi { name: "x".into(), version: "1".into(), runtime, guard: guard(address) };
    let stop = CancellationToken::new();
    let running = tokio::spawn(serve(listening, api.router().unwrap(), stop.clone()));
    Server { address, stop, serving: running }
}

// clause: A22
#[tokio::test]
async fn a_token_that_is_revoked_ends_its_sessions_at_once() {
    let tokens = Given::default();
    tokens.give(ADA, Actor::owner("ada"));
    let server = serving(|address| Guard::new(address, tokens.clone())).await;
    let (browser, code) = (Browser::of(&server, ADA).await, code_by(&server, ADA).await);
    assert_eq!(server.send(browser.get("/dev/api/actions")).await.status, 200);
    tokens.0.lock().unwrap().clear();
    assert_eq!(server.send(browser.get("/dev/api/actions")).await.outcome(), denied("AUTHENTICATION_ERROR"));
    let late = server.send(login(&server, &code)).await;
    assert_eq!(late.outcome(), denied("AUTHENTICATION_ERROR"), "an open link goes, too");
    tokens.give(ADA, Actor::owner("ada"));
    let again = server.send(browser.get("/dev/api/actions")).await;
    assert_eq!(again.outcome(), denied("AUTHENTICATION_ERROR"), "it does not come back");
}

// clause: J01
#[tokio::test]
async fn j01_a_session_has_the_rights_that_its_token_has_now_and_is_never_an_agents() {
    let tokens = Given::default();
    tokens.give(ADA, Actor::owner("ada"));
    let server = serving(|address| Guard::new(address, tokens.clone())).await;
    let browser = Browser::of(&server, ADA).await;
    let mut narrow = Actor::owner("ada");
    narrow.grants = runyard_domain::Grants::only(["tasks.read"]);
    tokens.give(ADA, narrow);
    let found = server.send(browser.get("/dev/api/actions")).await.data();
    assert_eq!(found["actor"]["grants"], json!({ "only": ["tasks.read"] }));
    tokens.give(ADA, Actor::agent("bot", RunId::from_parts(1, &[2; 10]), ["tasks.read"]));
    let refused = server.send(browser.invoke("count", json!({}))).await;
    assert_eq!(refused.outcome(), denied("AUTHENTICATION_ERROR"));
}

#[tokio::test]
async fn behind_a_proxy_the_link_is_the_proxys_and_the_cookie_goes_only_over_tls() {
    let tokens = BearerTokens::new().with(TokenDigest::of(ADA), Actor::owner("ada"));
    let public = SocketAddr::from(([192, 0, 2, 1], 4710));
    let server = serving(|_| Guard::new(public, tokens).known_as("Runyard.Example")).await;
    let ask = Request::new("POST", "/api/v1/logins").and("Host", "runyard.example").by(ADA).json(&json!({}));
    let url = server.send(ask).await.data()["url"].as_str().unwrap().to_owned();
    let code = url.strip_prefix("https://runyard.example/login#").unwrap();
    let request =
        login(&server, code).with("Host", "runyard.example").with("Origin", "https://runyard.example");
    let answer = server.send(request).await;
    assert!(answer.header("set-cookie").ends_with("; HttpOnly; SameSite=Strict; Secure"), "{answer:?}");
}

#[tokio::test]
async fn a_login_that_another_page_sends_is_refused() {
    let server = start().await;
    let code = code_by(&server, ADA).await;
    let request = || login(&server, &code);
    for foreign in [
        request().with("Origin", "https://evil.example"),
        request().with("Origin", "null"),
        request().without("Origin"),
        request().without("Origin").without("Sec-Fetch-Site"),
        request().with("Sec-Fetch-Site", "cross-site"),
        request().with("Sec-Fetch-Site", "none"),
        // A page of this machine under another of its names is another page.
        request().with("Origin", &format!("http://localhost:{}", server.address.port())),
    ] {
        let answer = server.send(foreign.clone()).await;
        assert_eq!(answer.outcome(), denied("ORIGIN_NOT_ALLOWED"), "{foreign:?}");
        assert!(answer.all("set-cookie").is_empty());
    }
    let form = request().with("Content-Type", "text/plain");
    assert_eq!(server.send(form).await.outcome(), (415, "UNSUPPORTED_MEDIA_TYPE".to_owned()));
    let out = from_page(&server, Request::new("POST", "/logout")).json(&json!({}));
    assert_eq!(server.send(out).await.status, 401, "nobody is logged out by a stranger");
    assert_eq!(server.send(request()).await.status, 200);
}

#[tokio::test]
async fn a_link_leads_to_a_page_of_this_server_and_nowhere_else() {
    let server = start().await;
    let ask = |body: serde_json::Value| server.send(server.post("/api/v1/logins", &body));
    let link = ask(json!({ "next": "/runs/run_01k/diff" })).await.data();
    let expected = format!("http://{}/login?next=/runs/run_01k/diff#", server.address);
    assert!(link["url"].as_str().unwrap().starts_with(&expected), "{link}");
    for next in [
        "runs",
        "//evil.example",
        "/\\evil.example",
        "https://evil.example",
        "javascript:alert(1)",
        "/runs/../../x",
        "/.",
        "/a?b",
        "/a#b",
        "/a b",
        "/%2f",
        "/\n",
        "",
    ] {
        let refused = ask(json!({ "next": next })).await;
        assert_eq!(refused.outcome(), (400, "VALIDATION_ERROR".to_owned()), "{next}");
    }
    let long = ask(json!({ "next": format!("/{}", "x".repeat(200)) })).await;
    assert_eq!(long.status, 400);
    for body in
        [json!([]), json!({"nxt": "/"}), json!({"next": 1}), json!({"origin": 1}), json!({"origin": "*"})]
    {
        assert_eq!(ask(body.clone()).await.status, 400, "{body}");
    }
    assert_eq!(
        server.send(server.request("POST", "/api/v1/logins")).await.status,
        200,
        "without a body it leads to the login"
    );
}

// Whoever listens at the other loopback address under our port is what `localhost` may lead a browser to.
// clause: A22
#[tokio::test]
async fn a22_under_another_name_of_this_machine_nobody_logs_in_and_no_session_counts() {
    let server = start().await;
    let (address, browser) = (server.address, Browser::of(&server, ADA).await);
    for name in ["localhost", "LocalHost", "[::1]"] {
        let host = format!("{name}:{}", address.port());
        let there = |request: Request| request.with("Host", &host).with("Origin", &format!("http://{host}"));
        let code = code_by(&server, ADA).await;
        for request in [
            there(login(&server, &code)),
            there(browser.call("count", json!({}))),
            there(browser.invoke("count", json!({}))),
            there(browser.get("/api/v1/session")),
            there(browser.get("/api/v1/session")).without("Origin"),
            there(browser.get("/dev/api/actions")).without("Origin"),
            there(browser.post("/logout", &json!({}))),
        ] {
            let refused = server.send(request.clone()).await;
            assert_eq!(refused.outcome(), (421, "HOST_NOT_ALLOWED".to_owned()), "{request:?}");
            let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
            assert!(message.contains(&format!("http://{address}")), "{message}");
            assert!(refused.all("set-cookie").is_empty());
        }
        assert_eq!(server.send(login(&server, &code)).await.status, 200, "none of these used it up");
        // A program with a token may call it so, and a link that it asks for leads to the address.
        assert_eq!(server.send(server.get("/api/v1/actions").with("Host", &host)).await.status, 200);
        let link = server.send(server.post("/api/v1/logins", &json!({})).with("Host", &host)).await.data();
        assert!(link["url"].as_str().unwrap().starts_with(&format!("http://{address}/login#")), "{link}");
    }
    assert_eq!(server.send(browser.get("/api/v1/session")).await.status, 200, "the session lives on");
}

#[tokio::test]
async fn a_session_counts_under_the_name_where_it_was_started() {
    let tokens = BearerTokens::new().with(TokenDigest::of(ADA), Actor::owner("ada"));
    let server = serving(|address| Guard::new(address, tokens).known_as("runyard.example")).await;
    let by_proxy =
        |request: Request| request.with("Host", "runyard.example").with("Origin", "https://runyard.example");
    let here = Browser::of(&server, ADA).await;
    let code = code_by(&server, ADA).await;
    let there = Browser::from(&server, &server.send(by_proxy(login(&server, &code))).await);
    for (request, status) in [
        (here.call("echo", json!({})), 200),
        (here.get("/api/v1/session"), 200),
        (by_proxy(there.call("echo", json!({}))), 200),
        (by_proxy(there.get("/api/v1/session")).without("Origin"), 200),
        (by_proxy(here.call("echo", json!({}))), 401),
        (by_proxy(here.get("/api/v1/session")).without("Origin"), 401),
        (there.call("echo", json!({})), 401),
        (there.get("/api/v1/session"), 401),
        (by_proxy(there.call("echo", json!({}))).with("Origin", "http://runyard.example"), 401),
    ] {
        assert_eq!(server.send(request.clone()).await.status, status, "{request:?}");
    }
}

/// As a page of a development server asks, whose requests are passed on.
fn passed_on(request: Request) -> Request {
    request.with("Origin", "http://localhost:5173").with("Sec-Fetch-Site", "same-origin")
}

// clause: A22
#[tokio::test]
async fn a22_a_further_origin_that_is_named_logs_in_and_asks_as_our_own_pages_do() {
    let tokens = BearerTokens::new().with(TokenDigest::of(ADA), Actor::owner("ada"));
    let named = |guard: Guard| guard.origin("http://localhost:5173".parse().unwrap());
    let server = serving(|address| named(Guard::new(address, tokens))).await;
    let ask = |origin: &str| server.post("/api/v1/logins", &json!({ "origin": origin, "next": "/tasks" }));
    let url = server.send(ask("http://localhost:5173")).await.data()["url"].as_str().unwrap().to_owned();
    let code = url.strip_prefix("http://localhost:5173/login?next=/tasks#").unwrap();
    let other = server.send(ask("http://localhost:5174")).await;
    assert_eq!(other.outcome(), (400, "VALIDATION_ERROR".to_owned()));
    let browser = Browser::from(&server, &server.send(passed_on(login(&server, code))).await);
    let called = server.send(passed_on(browser.call("echo", json!({})))).await;
    assert_eq!(called.data()["surface"], "react");
    assert_eq!(
        server.send(browser.get("/api/v1/session")).await.status,
        200,
        "what only reads says no Origin"
    );
    // It counts there and not at our own pages, nor the other way round.
    let own = Browser::of(&server, ADA).await;
    for elsewhere in [
        browser.call("echo", json!({})),
        browser.post("/logout", &json!({})),
        browser.get("/api/v1/session").with("Origin", &format!("http://{}", server.address)),
        passed_on(own.call("echo", json!({}))),
        passed_on(own.post("/logout", &json!({}))),
        passed_on(own.get("/api/v1/session")),
    ] {
        assert_eq!(
            server.send(elsewhere.clone()).await.outcome(),
            denied("AUTHENTICATION_ERROR"),
            "{elsewhere:?}"
        );
    }
    assert_eq!(server.send(own.call("echo", json!({}))).await.status, 200, "none of these ended it");
    // Only exactly this page, and never one that the browser itself calls another site's.
    for origin in [
        "http://localhost:5174",
        "https://localhost:5173",
        "http://localhost",
        "http://localhost:5173.evil.example",
    ] {
        let foreign = passed_on(browser.call("echo", json!({}))).with("Origin", origin);
        assert_eq!(server.send(foreign).await.outcome(), denied("ORIGIN_NOT_ALLOWED"), "{origin}");
    }
    for site in ["cross-site", "same-site", "none"] {
        let foreign = passed_on(browser.call("echo", json!({}))).with("Sec-Fetch-Site", site);
        assert_eq!(server.send(foreign).await.outcome(), denied("ORIGIN_NOT_ALLOWED"), "{site}");
    }
    // A page of it without the keys, and a preflight, get nothing; the client looks at every answer for a word to other origins.
    let stranger = passed_on(browser.call("echo", json!({}))).without("X-Runyard-Page").without("Cookie");
    assert_eq!(server.send(stranger).await.outcome(), denied("AUTHENTICATION_ERROR"));
    let preflight =
        passed_on(Request::new("OPTIONS", "/api/v1/actions/echo/invoke").and("Host", &browser.host))
            .and("Access-Control-Request-Method", "POST");
    assert_eq!(server.send(preflight).await.outcome(), denied("AUTHENTICATION_ERROR"));
}
