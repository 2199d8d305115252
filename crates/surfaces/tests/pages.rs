//! The console's pages: what is served where, to whom, and what a browser is told to do with it.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a failed expectation fails the test"
)]

mod dev_browser;
mod support;

use dev_browser::Browser;
use runyard_surfaces::http::Pages;
use serde_json::{Value, json};
use support::app::{Seen, app};
use support::client::{Answer, Request};
use support::server::{ADA, Server};

const CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; font-src 'self'; \
                   connect-src 'self'; frame-src blob:; manifest-src 'self'; base-uri 'none'; form-action 'none'; \
                   frame-ancestors 'none'";
const OF_A_HUB: [&str; 11] = [
    "/",
    "/runs",
    "/runs/",
    "/runs/new",
    "/runs/run_1/artifacts/art_1",
    "/approvals/apr_1",
    "/agents",
    "/edges",
    "/policy",
    "/audit",
    "/settings",
];
const OF_ALL: [&str; 4] = ["/dev", "/dev/task_create", "/login", "/login?next=/runs"];

async fn hub() -> Server {
    Server::start_with(app(&Seen::default()), |guard| guard.with_pages(Pages::Hub)).await
}

async fn application() -> Server {
    Server::start(app(&Seen::default())).await
}

/// As a person's browser asks for a page by its address.
fn visit(server: &Server, path: &str) -> Request {
    Request::new("GET", path)
        .and("Host", &server.address.to_string())
        .and("Sec-Fetch-Site", "none")
        .and("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
}

async fn answer(server: &Server, request: Request) -> Answer {
    let mut client = server.connect().await;
    client.write(&request.bytes()).await;
    client.any_answer().await.unwrap()
}

fn text(answer: &Answer) -> String {
    String::from_utf8(answer.body.clone()).unwrap()
}

/// What the page is told of its server.
fn boot(page: &str) -> Value {
    let (_, rest) = page.split_once("<script type=\"application/json\" id=\"boot\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

#[track_caller]
fn check_page(answer: &Answer) {
    assert_eq!(answer.status, 200);
    for (name, value) in [
        ("content-type", "text/html; charset=utf-8"),
        ("content-security-policy", CSP),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cache-control", "no-cache"),
        ("vary", "Cookie, Accept-Language"),
    ] {
        assert_eq!(answer.header(name), value);
    }
    assert!(answer.header("permissions-policy").contains("camera=()"));
    let text = text(answer);
    for inline in
        ["<script>", "<style", " style=", " onclick=", " onload=", "http://", "https://", "javascript:"]
    {
        assert!(!text.contains(inline), "{inline} stands in the page: {text}");
    }
}

// clause: C20
#[tokio::test(flavor = "multi_thread")]
async fn c20_every_address_of_the_console_is_the_page_with_the_strict_headers() {
    let server = hub().await;
    for path in OF_A_HUB.into_iter().chain(OF_ALL) {
        let page = answer(&server, visit(&server, path)).await;
        check_page(&page);
        let told = boot(&text(&page));
        assert_eq!(
            (&told["name"], &told["version"], &told["hub"]),
            (&json!("tasks"), &json!("1.2.3"), &json!(true))
        );
        assert_eq!(told["instance"].as_str().unwrap().len(), 16);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_has_the_pages_of_its_actions_and_no_other() {
    let server = application().await;
    for path in OF_ALL {
        let page = answer(&server, visit(&server, path)).await;
        check_page(&page);
        assert_eq!(boot(&text(&page))["hub"], false);
    }
    let home = answer(&server, visit(&server, "/")).await;
    assert_eq!((home.status, home.header("location")), (303, "/dev"));
    for path in &OF_A_HUB[1..] {
        assert_eq!(server.send(visit(&server, path)).await.outcome().0, 401, "{path}");
        let with_token = server.send(visit(&server, path).by(ADA)).await;
        assert_eq!(with_token.outcome(), (404, "NOT_FOUND".to_owned()), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_who_is_lost_sees_the_page_and_is_refused_all_the_same() {
    let server = hub().await;
    let lost =
        |path: &str| visit(&server, path).and("Sec-Fetch-Mode", "navigate").and("Sec-Fetch-Dest", "document");
    for path in ["/nowhere", "/tasks/7", "/login/x", "/index.html"] {
        let shown = answer(&server, lost(path)).await;
        assert_eq!(shown.status, 401, "{path}");
        for (name, value) in [
            ("content-type", "text/html; charset=utf-8"),
            ("content-security-policy", CSP),
            ("x-content-type-options", "nosniff"),
            ("cache-control", "no-store"),
        ] {
            assert_eq!(shown.header(name), value, "{path}");
        }
        assert_eq!(boot(&text(&shown))["hub"], true, "{path}");
    }
    let name = format!("localhost:{}", server.address.port());
    for (what, request) in [
        ("what is for programs", lost("/api/v1/runs")),
        ("the agents' way in", lost("/mcp")),
        ("a page's own", lost("/dev/api/actions")),
        ("a frame", lost("/nowhere").with("Sec-Fetch-Dest", "iframe")),
        ("a script's request", lost("/nowhere").with("Sec-Fetch-Mode", "cors")),
        ("a program", lost("/nowhere").with("Accept", "application/json")),
        ("a token that is wrong", lost("/nowhere").and("Authorization", "Bearer wrong")),
        ("another name of this machine", lost("/nowhere").with("Host", &name)),
    ] {
        let refused = answer(&server, request).await;
        assert!([401, 403].contains(&refused.status), "{what}: {refused:?}");
        assert_eq!(refused.header("content-type"), "application/json", "{what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_asks_for_no_page_gets_none() {
    let server = hub().await;
    for accept in ["application/json", "*/*", "text/event-stream", "text/html;q=0", ""] {
        let asked = server.send(visit(&server, "/runs").with("Accept", accept)).await;
        assert_eq!(asked.outcome(), (404, "NOT_FOUND".to_owned()), "{accept}");
    }
    for path in [
        "/api/v1/nowhere",
        "/api",
        "/api/v1",
        "/mcp",
        "/nowhere",
        "/dev/api",
        "/dev/api/actions",
        "/logout",
        "//runs",
    ] {
        let asked = server.send(visit(&server, path)).await;
        assert!([401, 403].contains(&asked.status), "{path}: {asked:?}");
    }
    for path in ["/api/v1/nowhere", "/nowhere"] {
        let asked = server.send(visit(&server, path).by(ADA)).await;
        assert_eq!(asked.outcome(), (404, "NOT_FOUND".to_owned()), "{path}");
    }
    let posted = server.send(server.post("/runs", &json!({}))).await;
    assert_eq!(
        (posted.outcome(), posted.header("allow")),
        ((405, "METHOD_NOT_ALLOWED".to_owned()), "GET,HEAD")
    );
    let posted = server.send(server.post("/runs", &json!({})).without("Authorization")).await;
    assert_eq!(posted.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn c20_language_and_theme_are_those_that_the_person_chose() {
    let server = hub().await;
    let begins = async |cookie: &str, accepted: &str| {
        let asked = visit(&server, "/runs").and("Cookie", cookie).and("Accept-Language", accepted);
        let page = text(&answer(&server, asked).await);
        let (_, rest) = page.split_once("<html ").unwrap();
        rest.split_once('>').unwrap().0.to_owned()
    };
    assert_eq!(begins("", "").await, "lang=\"en\"");
    assert_eq!(begins("", "zh-TW, en;q=0.5").await, "lang=\"zh-CN\"");
    assert_eq!(
        begins("runyard_language=zh; runyard_theme=dark", "en").await,
        "lang=\"zh-CN\" data-theme=\"dark\""
    );
    assert_eq!(begins("runyard_theme=contrast", "en").await, "lang=\"en\" data-theme=\"contrast\"");
}

// Other servers of this machine can set cookies, too.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_a_request_says_gets_into_the_page() {
    let server = hub().await;
    let plain = text(&answer(&server, visit(&server, "/runs")).await);
    for evil in [
        "\"><script>alert(1)</script>",
        "dark\" onload=\"alert(1)",
        "</script><img src=x>",
        "en-US",
        "ZH",
        "..%2f",
    ] {
        let asked = visit(&server, "/runs")
            .and("Cookie", &format!("runyard_language={evil}; runyard_theme={evil}"))
            .and("Accept-Language", evil)
            .and("X-Forwarded-Host", evil)
            .and("User-Agent", evil);
        let page = text(&answer(&server, asked).await);
        let expected =
            if evil == "ZH" { plain.replacen("lang=\"en\"", "lang=\"zh-CN\"", 1) } else { plain.clone() };
        assert_eq!(page, expected, "{evil}");
    }
    let in_path = text(&answer(&server, visit(&server, "/runs/%22%3E%3Cscript%3E?x=%3Cscript%3E")).await);
    assert_eq!(in_path, plain);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_tells_nothing_of_who_is_logged_in() {
    let server = hub().await;
    let browser = Browser::of(&server, ADA).await;
    let without = text(&answer(&server, visit(&server, "/dev")).await);
    let with = text(&answer(&server, visit(&server, "/dev").and("Cookie", &browser.cookie)).await);
    assert_eq!(with, without);
    assert!(!with.contains(&browser.page_key) && !with.contains("\"ada\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_browser_has_already_is_not_sent_again() {
    let server = hub().await;
    let page = answer(&server, visit(&server, "/runs")).await;
    let etag = page.header("etag").to_owned();
    for known in [etag.clone(), format!("W/{etag}"), format!("\"x\", {etag}"), "*".to_owned()] {
        let again = answer(&server, visit(&server, "/approvals").and("If-None-Match", &known)).await;
        assert_eq!((again.status, again.body.len()), (304, 0), "{known}");
        assert_eq!((again.header("etag"), again.header("content-security-policy")), (etag.as_str(), CSP));
    }
    let other = visit(&server, "/runs").and("If-None-Match", &etag).and("Cookie", "runyard_theme=dark");
    let other = answer(&server, other).await;
    assert_eq!(other.status, 200, "another theme is another page");
    assert_ne!(other.header("etag"), etag);
    let mut client = server.connect().await;
    let head = String::from_utf8(visit(&server, "/runs").bytes()).unwrap().replacen("GET", "HEAD", 1);
    client.write(head.as_bytes()).await;
    let head = String::from_utf8(client.line().await.into_bytes()).unwrap();
    assert_eq!(head, "HTTP/1.1 200 OK");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_pages_load_is_served_as_it_was_built() {
    let server = application().await;
    for asset in runyard_ui_assets::assets().iter().filter(|asset| asset.path.starts_with("assets/")) {
        let path = format!("/{}", asset.path);
        let plain = answer(&server, visit(&server, &path).with("Accept", "*/*")).await;
        assert_eq!((plain.status, plain.header("content-type")), (200, asset.media_type), "{path}");
        assert_eq!(plain.body, asset.bytes, "{path}");
        let kept = if asset.immutable { "public, max-age=31536000, immutable" } else { "no-cache" };
        assert_eq!(
            (plain.header("cache-control"), plain.header("x-content-type-options")),
            (kept, "nosniff")
        );
        assert_eq!(plain.header("vary"), "Accept-Encoding");
        let small = answer(&server, visit(&server, &path).and("Accept-Encoding", "br, gzip;q=0.9")).await;
        match asset.gzip() {
            Some(gzip) => {
                assert_eq!(
                    (small.body.as_slice(), small.header("content-encoding")),
                    (gzip, "gzip"),
                    "{path}"
                );
                assert_ne!(small.header("etag"), plain.header("etag"), "other bytes, another name");
            }
            None => assert_eq!(small.body, asset.bytes, "{path}"),
        }
        let known = visit(&server, &path).and("If-None-Match", plain.header("etag"));
        assert_eq!(answer(&server, known).await.status, 304, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn there_is_no_way_from_what_pages_load_to_anything_else() {
    let server = hub().await;
    for path in [
        "/assets/",
        "/assets/index.html",
        "/assets/../index.html",
        "/assets/../../Cargo.toml",
        "/assets/..%2findex.html",
        "/assets/%2e%2e/index.html",
        "/assets/..%5c..%5cx",
        "/assets//etc/passwd",
        "/assets/%00",
        "/assets/x.js",
        "/assets/ui-build.json",
    ] {
        let found = answer(&server, visit(&server, path)).await;
        assert_eq!(found.status, 404, "{path}");
        assert_eq!(found.json()["error"]["code"], "NOT_FOUND", "{path}");
    }
}

// Another program may listen under this name: a browser must keep nothing for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_is_asked_for_by_another_name_of_this_machine_is_at_the_address() {
    let (server, other) = (hub().await, application().await);
    let address = server.address;
    for name in ["localhost", "LocalHost", "[::1]"] {
        let host = format!("{name}:{}", address.port());
        for path in OF_A_HUB.into_iter().chain(OF_ALL).chain(["/assets/x.js", "/runs/%2F?a=//evil.example&b"])
        {
            for asked in [
                visit(&server, path),
                visit(&server, path).with("Accept", "*/*"),
                visit(&server, path).by(ADA),
            ] {
                let led = answer(&server, asked.with("Host", &host)).await;
                assert_eq!((led.status, led.header("location")), (307, &*format!("http://{address}{path}")));
                assert_eq!((led.header("cache-control"), led.body.len()), ("no-store", 0), "{host} {path}");
            }
        }
        let absolute = visit(&server, &format!("http://{host}/runs"));
        assert_eq!(answer(&server, absolute).await.header("location"), format!("http://{address}/runs"));
        for foreign in
            [visit(&server, "/runs").and("Origin", "https://evil.example"), visit(&server, "//evil.example")]
        {
            let refused = answer(&server, foreign.with("Host", &host)).await;
            assert!([401, 403].contains(&refused.status), "{refused:?}");
        }
    }
    let neighbour = visit(&server, "/runs").with("Host", &format!("localhost:{}", other.address.port()));
    assert_eq!(server.send(neighbour).await.outcome(), (421, "HOST_NOT_ALLOWED".to_owned()));
    let named = format!("localhost:{}", address.port());
    let named = Server::start_with(app(&Seen::default()), |guard| guard.known_as(named)).await;
    let asked = visit(&named, "/dev").with("Host", &format!("localhost:{}", address.port()));
    check_page(&answer(&named, asked).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rebound_name_or_a_foreign_page_gets_no_page() {
    let server = hub().await;
    for path in ["/", "/runs", "/login", "/dev", "/assets/x.js"] {
        let rebound = server.send(visit(&server, path).with("Host", "evil.example")).await;
        assert_eq!(rebound.outcome(), (421, "HOST_NOT_ALLOWED".to_owned()), "{path}");
        let foreign = server.send(visit(&server, path).and("Origin", "https://evil.example")).await;
        assert_eq!(foreign.outcome(), (403, "ORIGIN_NOT_ALLOWED".to_owned()), "{path}");
        let framed = server.send(visit(&server, path).with("Sec-Fetch-Site", "cross-site")).await;
        assert_eq!(framed.outcome(), (403, "ORIGIN_NOT_ALLOWED".to_owned()), "{path}");
    }
}
