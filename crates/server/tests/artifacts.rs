//! Artifacts over HTTP: who may add and see them, and that nothing of them can harm whoever downloads it.
//!
//! clause: C14
//! clause: C11

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a failed expectation fails the test"
)]

mod support;

use runyard_backend::link::OpenRun;
use runyard_engine::Role;
use serde_json::{Value, json};
use support::engine::{kinds, turn_ended, until};
use support::{Answer, Client, Served};

const KEY: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
/// The beginning of a picture of 1280 by 720.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAABQAAAALQCAYAAAA=";

/// A hub, a run in the middle of its work, and the token of its agent.
async fn working() -> (Served, String, OpenRun) {
    let mut served = Served::start().await;
    let run = served.run().await;
    let open = served.edge.start().await;
    (served, run, open)
}

fn text(name: &str, text: &str) -> Value {
    json!({ "name": name, "facts": { "kind": "file" }, "text": text })
}

fn screenshot(review: &str) -> Value {
    let viewport = json!({ "width": 1280, "height": 720 });
    let facts = json!({ "kind": "screenshot", "viewport": viewport, "route": "/", "theme": "dark",
                        "language": "en", "privacyReview": review });
    json!({ "name": "start.png", "facts": facts, "base64": PNG })
}

async fn add(client: &Client, run: &str, body: Value) -> Answer {
    client.post(&format!("/runs/{run}/artifacts"), body).await
}

async fn added(client: &Client, run: &str, body: Value) -> Value {
    add(client, run, body).await.data()["artifact"].take()
}

/// The address of what an artifact holds.
fn content(artifact: &Value) -> String {
    artifact["contentPath"].as_str().unwrap().strip_prefix("/api/v1").unwrap().to_owned()
}

#[tokio::test]
async fn c14_in_a_session_an_artifact_is_downloaded_whole_as_with_a_token() {
    let (served, run, _open) = working().await;
    let large = "a line of a log\n".repeat(20_000);
    let artifact = added(&served.owner(), &run, text("large.txt", &large)).await;
    let browser = served.browser(&served.owner()).await;
    let path = format!("/api/v1{}", content(&artifact));
    let whole = browser.send("GET", &path, None).await;
    assert_eq!((whole.status, whole.body.len()), (200, large.len()));
    assert_eq!(header(&whole, "content-length"), large.len().to_string());
    assert!(header(&whole, "content-security-policy").ends_with("sandbox"));
    assert_eq!(browser.send("POST", "/logout", Some(json!({}))).await.status, 200);
    assert_eq!(browser.send("GET", &path, None).await.refused().0, 401);
}

fn header<'a>(answer: &'a Answer, name: &str) -> &'a str {
    let lines = answer.head.lines().filter_map(|line| line.split_once(": "));
    let mut found = lines.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value);
    let value = found.next().unwrap_or_default();
    assert_eq!(found.next(), None, "{name} comes once: {}", answer.head);
    value
}

/// What a browser must be told, whatever is downloaded.
#[track_caller]
fn check_safe(answer: &Answer) {
    assert_eq!(header(answer, "x-content-type-options"), "nosniff");
    assert_eq!(header(answer, "content-security-policy"), "default-src 'none'; sandbox");
    assert_eq!(header(answer, "cross-origin-resource-policy"), "same-origin");
    assert_eq!(header(answer, "access-control-allow-origin"), "");
}

#[tokio::test]
async fn c14_an_artifact_is_added_listed_shown_and_downloaded() {
    let (served, run, _open) = working().await;
    let owner = served.owner();
    let artifact = added(&owner, &run, text("report.txt", "all is well")).await;
    let id = artifact["id"].as_str().unwrap();
    assert_eq!(
        [&artifact["kind"], &artifact["mediaType"], &artifact["bytes"], &artifact["redacted"]],
        [&json!("file"), &json!("text/plain"), &json!(11), &json!(false)]
    );
    assert_eq!(artifact["by"], json!({ "id": "owner", "kind": "person" }));
    let listed = owner.get(&format!("/runs/{run}/artifacts")).await.data();
    assert_eq!(listed, json!({ "artifacts": [artifact] }));
    let shown = owner.get(&format!("/runs/{run}/artifacts/{id}")).await.data();
    assert_eq!(shown["preview"], json!({ "text": "all is well", "truncated": false }));
    assert_eq!(shown.get("base64"), None);
    let whole = owner.get(&format!("/runs/{run}/artifacts/{id}?content=true")).await.data();
    assert_eq!(whole["base64"], "YWxsIGlzIHdlbGw=");

    let got = owner.get(&content(&artifact)).await;
    assert_eq!((got.status, got.body.as_slice()), (200, &b"all is well"[..]));
    check_safe(&got);
    assert_eq!(header(&got, "content-type"), "text/plain; charset=utf-8");
    assert_eq!(header(&got, "content-disposition"), "attachment; filename=\"report.txt\"");
    assert_eq!(header(&got, "cache-control"), "private, max-age=31536000, immutable");
    let etag = header(&got, "etag").to_owned();
    assert_eq!(etag, format!("\"{}\"", artifact["digest"].as_str().unwrap()));
    let again = owner.send("GET", &content(&artifact), None, &[("If-None-Match", &etag)]).await;
    assert_eq!((again.status, again.body.len()), (304, 0));
    let part = owner.send("GET", &content(&artifact), None, &[("Range", "bytes=4-5")]).await;
    assert_eq!((part.status, part.body.as_slice()), (206, &b"is"[..]));
    assert_eq!(header(&part, "content-range"), "bytes 4-5/11");
    check_safe(&part);
    let inline = owner.get(&format!("{}?inline", content(&artifact))).await;
    assert_eq!(header(&inline, "content-disposition"), "inline; filename=\"report.txt\"");
    let wrong = owner.get(&format!("{}?inline=1&x=2", content(&artifact))).await;
    assert_eq!(wrong.refused(), (400, "INVALID_REQUEST".to_owned()));
    let none = owner.get(&format!("/runs/{run}/artifacts/art_x/content")).await;
    assert_eq!(none.refused(), (404, "NOT_FOUND".to_owned()));
}

#[tokio::test]
async fn c14_what_a_browser_would_run_is_never_shown_by_it() {
    let (served, run, _open) = working().await;
    let owner = served.owner();
    for (name, body) in [
        ("page.html", "<!doctype html><script>alert(1)</script>"),
        ("picture.png", "<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>"),
        ("notes.txt", "<html><body onload=alert(1)>"),
        ("a.js", "alert(1)"),
        ("data.json", "{}"),
    ] {
        let artifact = added(&owner, &run, text(name, body)).await;
        for address in [content(&artifact), format!("{}?inline", content(&artifact))] {
            let got = owner.get(&address).await;
            assert_eq!((got.status, got.body.as_slice()), (200, body.as_bytes()));
            check_safe(&got);
            assert_eq!(header(&got, "content-type"), "application/octet-stream", "{name}");
            assert!(header(&got, "content-disposition").starts_with("attachment; "), "{name}");
        }
    }
    let name = "für \"Ada\"; x=y.txt";
    let artifact = added(&owner, &run, text(name, "x")).await;
    assert_eq!(
        header(&owner.get(&content(&artifact)).await, "content-disposition"),
        "attachment; filename=\"f_r__Ada___x_y.txt\"; filename*=UTF-8''f%C3%BCr%20%22Ada%22%3B%20x%3Dy.txt"
    );
}

#[tokio::test]
async fn every_download_passes_the_guard_that_every_route_passes() {
    let (served, run, _open) = working().await;
    let artifact = added(&served.owner(), &run, text("a.txt", "a")).await;
    let address = content(&artifact);
    assert_eq!(served.by("nobody").get(&address).await.refused().0, 401);
    let elsewhere = [("Origin", "https://evil.example")];
    let page = served.owner().send("GET", &address, None, &elsewhere).await;
    assert_eq!(page.refused(), (403, "ORIGIN_NOT_ALLOWED".to_owned()));
    let sideways = served.owner().send("GET", &address, None, &[("Sec-Fetch-Site", "cross-site")]).await;
    assert_eq!(sideways.refused().0, 403);
    assert_eq!(served.owner().send("HEAD", &address, None, &[]).await.body, b"");
}

#[tokio::test]
async fn a_viewer_sees_artifacts_and_an_operator_adds_them() {
    let (served, run, _open) = working().await;
    let (viewer, operator) = (served.with_role(Role::Viewer).await, served.with_role(Role::Operator).await);
    let refused = add(&viewer, &run, text("a.txt", "a")).await.refused();
    assert_eq!(refused, (403, "AUTHORIZATION_ERROR".to_owned()));
    let artifact = added(&operator, &run, text("a.txt", "a")).await;
    assert_eq!(viewer.get(&content(&artifact)).await.body, b"a");
    assert_eq!(viewer.get(&format!("/runs/{run}/artifacts")).await.data()["artifacts"][0], artifact);
}

#[tokio::test]
async fn c11_an_agent_adds_to_its_own_run_without_asking_and_to_no_other() {
    let (mut served, run, open) = working().await;
    let agent = served.by(&open.run_token);
    let before = kinds(&served.engine, run.parse().unwrap()).await;
    let artifact = added(&agent, &run, text("note.md", "a note that is told once")).await;
    assert_eq!(artifact["by"]["runId"], run.as_str());
    let after = kinds(&served.engine, run.parse().unwrap()).await;
    assert_eq!(after[before.len()..], ["run.artifact.ready"], "nobody is asked, and nothing else is written");
    assert_eq!(agent.get(&content(&artifact)).await.body, b"a note that is told once");

    let other = served.run().await;
    let _other = served.edge.start().await;
    let hidden = added(&served.owner(), &other, text("a.txt", "not yours")).await;
    let missing = (404, "NOT_FOUND".to_owned());
    assert_eq!(add(&agent, &other, text("a.txt", "a")).await.refused(), missing);
    assert_eq!(agent.get(&format!("/runs/{other}/artifacts")).await.refused(), missing);
    assert_eq!(agent.get(&content(&hidden)).await.refused(), missing);
    let audit = served.owner().get("/audit").await.data()["entries"].take();
    let tried = audit.as_array().unwrap().iter().filter(|entry| entry["type"] == "audit.refused");
    let tried: Vec<&str> = tried.map(|entry| entry["what"]["action"].as_str().unwrap()).collect();
    assert_eq!(tried, ["artifact_add", "artifact_list", "artifact_content"]);
}

#[tokio::test]
async fn c11_a_deny_rule_holds_for_artifacts_too_and_the_record_has_no_content_of_it() {
    let (served, run, open) = working().await;
    let agent = served.by(&open.run_token);
    let rule = json!({ "effect": "deny", "kind": "action", "match": "artifact_*" });
    served.owner().post("/policy/rules", rule).await.data();
    let refused = add(&agent, &run, text("a.txt", "what nobody wants to keep")).await;
    assert_eq!(refused.refused(), (403, "permission_denied".to_owned()));
    let log = support::log(&served.engine, &run).await;
    let judged = log.last().unwrap();
    assert_eq!(judged.event, "run.gate.judged");
    assert!(judged.data.contains("sha256:") && !judged.data.contains("nobody wants"), "{}", judged.data);
}

#[tokio::test]
async fn c14_a_screenshot_that_no_person_has_passed_is_for_people() {
    let (served, run, open) = working().await;
    let (owner, agent) = (served.owner(), served.by(&open.run_token));
    let pending = added(&owner, &run, screenshot("pending")).await;
    let passed = added(&owner, &run, screenshot("passed")).await;
    let own = added(&agent, &run, screenshot("pending")).await;
    assert_eq!(
        [&pending["peopleOnly"], &passed["peopleOnly"], &own["peopleOnly"]],
        [&json!(true), &json!(false), &json!(true)]
    );
    let denied = (403, "AUTHORIZATION_ERROR".to_owned());
    assert_eq!(agent.get(&content(&pending)).await.refused(), denied);
    let shown = format!("/runs/{run}/artifacts/{}", pending["id"].as_str().unwrap());
    assert_eq!(agent.get(&shown).await.data().get("preview"), None);
    assert_eq!(agent.get(&format!("{shown}?content=true")).await.refused(), denied);
    assert_eq!(
        owner.get(&shown).await.data()["preview"],
        json!({ "truncated": false, "width": 1280, "height": 720 })
    );
    for (client, artifact) in [(&owner, &pending), (&owner, &own), (&agent, &own), (&agent, &passed)] {
        let got = client.get(&format!("{}?inline", content(artifact))).await;
        assert_eq!((got.status, header(&got, "content-type")), (200, "image/png"));
        assert!(header(&got, "content-disposition").starts_with("inline; "));
    }
    assert_eq!(header(&owner.get(&content(&pending)).await, "cache-control"), "private, no-store");
    let claimed = add(&agent, &run, screenshot("passed")).await.issue();
    assert_eq!(claimed.0, "facts.privacyReview");
}

#[tokio::test]
async fn c14_c15_what_is_wrong_is_named_and_a_secret_does_not_get_in() {
    let (served, run, _open) = working().await;
    let owner = served.owner();
    let wrong = async |body: Value| add(&owner, &run, body).await.issue().0;
    for name in ["../../etc/passwd", "/etc/passwd", "a\\b", "..", "a\r\nSet-Cookie: x"] {
        assert_eq!(wrong(text(name, "x")).await, "name", "{name:?}");
    }
    let preview =
        |path: &str| json!({ "kind": "file_preview", "path": path, "readAt": "2026-11-15T12:00:00.000Z" });
    for path in ["/home/ada/site/a.md", "a/../../b"] {
        assert_eq!(wrong(json!({ "name": "a", "facts": preview(path), "text": "x" })).await, "facts.path");
    }
    let unproven = json!({ "kind": "patch", "files": ["a"], "applyStatus": "applied" });
    assert_eq!(wrong(json!({ "name": "a", "facts": unproven, "text": "x" })).await, "facts.approvalId");
    assert_eq!(wrong(json!({ "name": "a", "facts": { "kind": "file" } })).await, "text");
    assert_eq!(wrong(json!({ "name": "a", "facts": { "kind": "file" }, "base64": "?" })).await, "base64");
    assert_eq!(wrong(text("a", &"x".repeat(700 * 1024 + 1))).await, "text");
    let huge = add(&owner, &run, text("a", &"x".repeat(3 * 1024 * 1024))).await.refused();
    assert_eq!(huge, (413, "PAYLOAD_TOO_LARGE".to_owned()));

    let artifact = added(&owner, &run, text("env.txt", &format!("key = {KEY}"))).await;
    assert_eq!(artifact["redacted"], true);
    let kept = String::from_utf8(owner.get(&content(&artifact)).await.body).unwrap();
    assert!(kept.starts_with("key = [REDACTED:") && !kept.contains(KEY), "{kept}");
    // A picture with the same key among its bytes: the first 33 are as above.
    let picture =
        "iVBORw0KGgoAAAANSUhEUgAABQAAAALQCAYAAAAgZ2hwXzE2QzdlNDJGMjkyYzY5MTJFNzcxMGM4MzgzNDdBZTE3OEI0YSA=";
    let picture = json!({ "name": "a.png", "facts": { "kind": "file" }, "base64": picture });
    assert_eq!(add(&owner, &run, picture).await.refused(), (400, "redacted_content".to_owned()));
    let log = support::log(&served.engine, &run).await;
    assert!(log.iter().all(|event| !event.data.contains(KEY)));
}

#[tokio::test]
async fn the_same_key_adds_once_and_after_the_end_nothing_is_added() {
    let (mut served, run, open) = working().await;
    let owner = served.owner();
    let keyed = async |body: Value| {
        let path = format!("/runs/{run}/artifacts");
        owner.send("POST", &path, Some(body), &[("Idempotency-Key", "k1")]).await
    };
    let first = keyed(text("a.txt", "once")).await.data();
    assert_eq!(keyed(text("a.txt", "once")).await.data(), first);
    assert_eq!(keyed(text("a.txt", "twice")).await.refused(), (409, "CONFLICT".to_owned()));
    served.edge.recorded(&open, 4, vec![turn_ended()]).await;
    let done = until(&served.engine, run.parse().unwrap(), "completed").await;
    assert_eq!(done.artifacts, [first["artifact"]["id"].as_str().unwrap()]);
    assert_eq!(add(&owner, &run, text("late.txt", "late")).await.refused(), (409, "CONFLICT".to_owned()));
    assert_eq!(owner.get(&content(&first["artifact"])).await.body, b"once", "it stays readable");
}

#[tokio::test]
async fn a_long_text_is_shown_from_its_beginning_and_says_so() {
    let (served, run, _open) = working().await;
    let artifact = added(&served.owner(), &run, text("long.txt", &"é".repeat(20_000))).await;
    let shown = format!("/runs/{run}/artifacts/{}", artifact["id"].as_str().unwrap());
    let preview = served.owner().get(&shown).await.data()["preview"].take();
    assert_eq!(preview["truncated"], true);
    assert_eq!(preview["text"].as_str().unwrap(), "é".repeat(8 * 1024));
}
