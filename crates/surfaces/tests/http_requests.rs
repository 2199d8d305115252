//! Requests as they should not be: malformed, too large, too deep, too slow, of the wrong kind; and several on one line.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a failed expectation fails the test"
)]

mod support;

use runyard_surfaces::http::BODY_BYTES_MAX;
use serde_json::json;
use support::app::{Seen, app};
use support::client::{Answer, Client, Request};
use support::server::Server;
use support::until;

const ECHO: &str = "/api/v1/actions/echo/invoke";
const COUNT: &str = "/api/v1/actions/count/invoke";

async fn server() -> Server {
    Server::start(app(&Seen::default())).await
}

#[track_caller]
fn check(answer: &Answer, status: u16, code: &str) {
    assert_eq!(answer.outcome(), (status, code.to_owned()), "{}", answer.json());
}

/// An input of about this many bytes, as a call.
fn call_of(bytes: usize) -> String {
    json!({"input": {"text": "x".repeat(bytes)}}).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_not_called_json_is_415_and_the_action_does_not_run() {
    let seen = Seen::default();
    let server = Server::start(app(&seen)).await;
    // The first three are what a page of another site can send without asking (a simple request).
    for content_type in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "text/json",
        "application/json-patch+json",
        "application/problem+json",
        "application/jsonx",
        "text/plain; application/json",
        "*/*",
        "",
        ";",
    ] {
        for path in [COUNT, "/api/v1/counts"] {
            let request = server.request("POST", path).with("Content-Type", content_type).body("{}");
            check(&server.send(request).await, 415, "UNSUPPORTED_MEDIA_TYPE");
        }
    }
    for path in [COUNT, "/api/v1/counts"] {
        check(&server.send(server.request("POST", path).body("{}")).await, 415, "UNSUPPORTED_MEDIA_TYPE");
        let twice = server.post(path, &json!({})).and("Content-Type", "text/plain");
        check(&server.send(twice).await, 415, "UNSUPPORTED_MEDIA_TYPE");
    }
    assert_eq!(seen.started(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_charset_and_the_case_of_the_content_type_do_not_matter() {
    let server = server().await;
    for content_type in
        ["application/json; charset=utf-8", "Application/JSON", "application/json ;charset=UTF-8"]
    {
        let request = server.request("POST", ECHO).with("Content-Type", content_type).body("{}");
        check(&server.send(request).await, 200, "OK");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_no_json_is_400_and_says_where() {
    let server = server().await;
    for body in [
        &b"{"[..],
        b"{} {}",
        b"{\"input\": }",
        b"{'input': 1}",
        b"{\"a\": NaN}",
        b"\xef\xbb\xbf{}",
        b"{\"input\": {\"a\": \"\xff\"}}",
        b"{\"input\": {\"a\": \"\\ud800\"}}",
        b"\0",
    ] {
        for path in [ECHO, "/api/v1/tasks"] {
            let request = server.request("POST", path).with("Content-Type", "application/json").body(body);
            let answer = server.send(request).await;
            check(&answer, 400, "INVALID_JSON_BODY");
            let message = answer.json()["error"]["message"].as_str().unwrap().to_owned();
            assert!(message.contains("at line 1, column "), "{message}");
        }
    }
    let empty = server.request("POST", ECHO).with("Content-Type", "application/json").body(b"");
    check(&server.send(empty).await, 400, "INVALID_JSON_BODY");
}

// clause: A03
#[tokio::test(flavor = "multi_thread")]
async fn nesting_has_a_limit() {
    let server = server().await;
    let nested =
        |depth: usize| format!("{{\"input\": {{\"a\": {}{}}}}}", "[".repeat(depth), "]".repeat(depth));
    let post =
        |depth| server.request("POST", ECHO).with("Content-Type", "application/json").body(nested(depth));
    check(&server.send(post(90)).await, 200, "OK");
    check(&server.send(post(110)).await, 400, "VALIDATION_ERROR");
    check(&server.send(post(200)).await, 400, "INVALID_JSON_BODY");
    check(&server.send(post(500_000)).await, 400, "INVALID_JSON_BODY");
}

// clause: A03
#[tokio::test(flavor = "multi_thread")]
async fn an_input_over_its_own_limit_is_a_validation_error() {
    let server = server().await;
    let request = server.request("POST", ECHO).with("Content-Type", "application/json");
    check(&server.send(request.clone().body(call_of(1024 * 1024 - 100))).await, 200, "OK");
    check(&server.send(request.body(call_of(1024 * 1024 + 100))).await, 400, "VALIDATION_ERROR");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_over_the_limit_is_413_and_the_whole_answer_arrives() {
    let server = server().await;
    for path in [ECHO, "/api/v1/tasks"] {
        let request = server.request("POST", path).with("Content-Type", "application/json");
        for body in [call_of(BODY_BYTES_MAX), call_of(3 * BODY_BYTES_MAX)] {
            check(&server.send(request.clone().body(body.clone())).await, 413, "PAYLOAD_TOO_LARGE");
            let chunked = request.clone().chunked(body.as_bytes(), 60_000);
            check(&server.send(chunked).await, 413, "PAYLOAD_TOO_LARGE");
        }
    }
    let without_type =
        server.request("POST", "/api/v1/tasks").chunked(&vec![b'x'; BODY_BYTES_MAX + 1], 60_000);
    check(&server.send(without_type).await, 413, "PAYLOAD_TOO_LARGE");
    let where_none_is_taken = server.get("/api/v1/tasks").body(vec![b'x'; BODY_BYTES_MAX + 1]);
    check(&server.send(where_none_is_taken).await, 413, "PAYLOAD_TOO_LARGE");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_asks_first_is_refused_before_it_sends_a_large_body() {
    let server = server().await;
    let request = server.request("POST", ECHO).with("Content-Type", "application/json");
    let request =
        request.with("Content-Length", &(BODY_BYTES_MAX + 1).to_string()).with("Expect", "100-continue");
    check(&server.send(request).await, 413, "PAYLOAD_TOO_LARGE");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_body_does_not_keep_a_client_from_reading_why_it_was_refused() {
    let server = server().await;
    let large = || vec![b'x'; 3 * 1024 * 1024];
    let refused = server.request("POST", ECHO).with("Content-Type", "text/plain").body(large());
    check(&server.send(refused).await, 415, "UNSUPPORTED_MEDIA_TYPE");
    let stranger = server.request("POST", ECHO).without("Authorization").body(large());
    check(&server.send(stranger).await, 401, "AUTHENTICATION_ERROR");
    check(&server.send(server.request("PUT", ECHO).body(large())).await, 405, "METHOD_NOT_ALLOWED");
    check(&server.send(server.request("POST", "/nowhere").body(large())).await, 404, "NOT_FOUND");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_stops_in_the_middle_runs_nothing() {
    let seen = Seen::default();
    let server = Server::start(app(&seen)).await;
    for partial in [
        server.request("POST", COUNT).with("Content-Type", "application/json").with("Content-Length", "100"),
        server
            .request("POST", "/api/v1/counts")
            .with("Content-Type", "application/json")
            .with("Content-Length", "3"),
    ] {
        let mut client = server.connect().await;
        client.write(&[&partial.bytes()[..], b"{}"].concat()).await;
        client.end_writing().await;
        if let Some(answer) = client.any_answer().await {
            check(&answer, 400, "INVALID_REQUEST");
        }
    }
    let broken_chunk = server.request("POST", COUNT).with("Content-Type", "application/json");
    let broken_chunk = broken_chunk.with("Transfer-Encoding", "chunked");
    let mut client = server.connect().await;
    client.write(&[&broken_chunk.bytes()[..], b"2\r\n{}\r\nzz\r\n"].concat()).await;
    if let Some(answer) = client.any_answer().await {
        check(&answer, 400, "INVALID_REQUEST");
    }
    // The server is alive, and nothing of the above ran.
    check(&server.send(server.invoke("echo", json!({}))).await, 200, "OK");
    assert_eq!(seen.started(), 0);
}

/// Time stands still but where everybody waits, so the limit is reached at once; real time until the server waits.
#[tokio::test]
async fn a_body_that_does_not_arrive_in_time_is_408() {
    let server = server().await;
    let mut client = server.connect().await;
    let slow = server.request("POST", ECHO).with("Content-Type", "application/json");
    client.write(&slow.with("Content-Length", "100").with("Expect", "100-continue").bytes()).await;
    // The server says this when it begins to wait for the body.
    assert_eq!((client.line().await.as_str(), client.line().await.as_str()), ("HTTP/1.1 100 Continue", ""));
    client.write(b"{\"input\"").await;
    tokio::time::pause();
    check(&client.answer().await, 408, "REQUEST_TIMEOUT");
}

#[tokio::test]
async fn a_client_that_never_ends_its_headers_is_cut_off() {
    let server = server().await;
    let mut client = server.connect().await;
    client.write(b"GET /api/v1/actions HTTP/1.1\r\nHost: ").await;
    tokio::time::pause();
    match client.any_answer().await {
        None => {}
        Some(answer) => assert_eq!(answer.status, 408),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn absurd_headers_and_addresses_are_refused_and_the_connection_ends() {
    let server = server().await;
    let long = "x".repeat(100 * 1024);
    let many = (0..200)
        .fold(server.get("/api/v1/actions"), |request, number| request.and(&format!("X-{number}"), "x"));
    let address = server.get(&format!("/api/v1/tasks?title={long}"));
    for request in [server.get("/api/v1/actions").and("X-Long", &long), many, address] {
        let mut client = server.connect().await;
        // The server may close before all of it is written.
        let _ = client.try_write(&request.bytes()).await;
        if let Some(answer) = client.any_answer().await {
            assert!([400, 414, 431].contains(&answer.status), "{answer:?}");
            assert!(client.is_at_end().await);
        }
    }
    check(&server.send(server.get("/api/v1/actions")).await, 200, "OK");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_http_gets_no_more_than_400_and_breaks_nothing() {
    let server = server().await;
    let host = server.address;
    for bytes in [
        b"\0\0\0\0\r\n\r\n".to_vec(),
        b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n".to_vec(),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        b"GET\r\n\r\n".to_vec(),
        b"GET / HTTP/9.9\r\n\r\n".to_vec(),
        format!("GET /\x01 HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes(),
        format!("GET / HTTP/1.1\r\nHost : {host}\r\n\r\n").into_bytes(),
        format!("GET / HTTP/1.1\r\nHost: {host}\r\nX: a\r\n b\r\n\r\n").into_bytes(),
        format!("POST / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx")
            .into_bytes(),
        format!("POST / HTTP/1.1\r\nHost: {host}\r\nContent-Length: -1\r\n\r\n").into_bytes(),
    ] {
        let mut client = server.connect().await;
        client.write(&bytes).await;
        if let Some(answer) = client.any_answer().await {
            assert!([400, 401, 421, 505].contains(&answer.status), "{bytes:?}: {answer:?}");
        }
    }
    check(&server.send(server.get("/api/v1/actions")).await, 200, "OK");
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_targets_are_answered_and_never_500() {
    let server = server().await;
    for target in [
        "/",
        "//",
        "/%",
        "/..",
        "/../../etc/passwd",
        "/api/v1/actions/",
        "/API/v1/actions",
        "/api/v1/x?%zz",
        "*",
    ] {
        check(&server.send(server.get(target)).await, 404, "NOT_FOUND");
    }
    // A proxy's form of the same request.
    let absolute = format!("http://{}/api/v1/actions", server.address);
    check(&server.send(server.get(&absolute)).await, 200, "OK");
    let mut client = server.connect().await;
    let raw =
        [b"GET /\xff\xfe HTTP/1.1\r\nHost: ", server.address.to_string().as_bytes(), b"\r\n\r\n"].concat();
    client.write(&raw).await;
    if let Some(answer) = client.any_answer().await {
        assert!([400, 401].contains(&answer.status), "{answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_method_is_405_with_the_right_ones_in_allow() {
    let server = server().await;
    for (method, target, allowed) in [
        ("POST", "/api/v1/actions", "GET,HEAD"),
        ("DELETE", "/api/v1/actions", "GET,HEAD"),
        ("POST", "/api/v1/openapi.json", "GET,HEAD"),
        ("GET", ECHO, "POST"),
        ("PUT", ECHO, "POST"),
        ("PATCH", "/api/v1/counts", "POST"),
        ("OPTIONS", ECHO, "POST"),
        ("TRACE", ECHO, "POST"),
        ("BREW", ECHO, "POST"),
    ] {
        let answer = server.send(server.request(method, target)).await;
        check(&answer, 405, "METHOD_NOT_ALLOWED");
        assert_eq!(answer.header("allow"), allowed, "{method} {target}");
    }
    let long = server.send(server.request(&"M".repeat(5000), ECHO)).await;
    check(&long, 405, "METHOD_NOT_ALLOWED");
    assert!(long.body.len() < 1000, "the method is not repeated at length");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_that_asks_for_leave_beforehand_gets_none() {
    let server = server().await;
    for target in [ECHO, "/api/v1/actions", "/api/v1/tasks", "/api/v1/openapi.json"] {
        let preflight = server
            .request("OPTIONS", target)
            .with("Access-Control-Request-Method", "POST")
            .with("Access-Control-Request-Headers", "authorization");
        check(&server.send(preflight.clone()).await, 405, "METHOD_NOT_ALLOWED");
        // A real one comes without a token and from elsewhere. That no answer has a CORS header is checked on all of them.
        check(&server.send(preflight.clone().without("Authorization")).await, 401, "AUTHENTICATION_ERROR");
        check(
            &server.send(preflight.with("Origin", "https://evil.example")).await,
            403,
            "ORIGIN_NOT_ALLOWED",
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn head_answers_as_get_does_but_without_a_body() {
    let server = server().await;
    for target in ["/api/v1/actions", "/api/v1/openapi.json", "/api/v1/tasks/1", "/nowhere"] {
        let mut client = server.connect().await;
        let head = client.send(&server.request("HEAD", target)).await;
        // The next answer on the same line can be read, so no body came with the one before.
        let get = client.send(&server.get(target)).await;
        assert_eq!(head.status, get.status, "{target}");
        assert_eq!(head.header("content-type"), get.header("content-type"));
        assert!(head.body.is_empty() && !get.body.is_empty());
    }
    let stranger = server.send(server.request("HEAD", "/api/v1/actions").without("Authorization")).await;
    assert_eq!(stranger.status, 401);
    assert_eq!(server.send(server.request("HEAD", ECHO)).await.status, 405);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_connection_serves_many_requests_and_each_is_checked_on_its_own() {
    let server = server().await;
    let mut client = server.connect().await;
    for turn in 0..50 {
        let answer = client.send(&server.invoke("echo", json!({ "turn": turn }))).await;
        assert_eq!(answer.data()["input"], json!({ "turn": turn }));
        let stranger = client.send(&server.invoke("echo", json!({})).without("Authorization")).await;
        check(&stranger, 401, "AUTHENTICATION_ERROR");
        check(&client.send(&server.get("/nowhere")).await, 404, "NOT_FOUND");
        let bad = server.request("POST", ECHO).with("Content-Type", "application/json").body("{");
        check(&client.send(&bad).await, 400, "INVALID_JSON_BODY");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_sent_at_once_are_answered_in_their_order() {
    let server = server().await;
    let mut client = server.connect().await;
    let delayed = server.invoke("wait", json!({"ms": 30}));
    let requests: Vec<Request> = (0..20).map(|turn| server.invoke("echo", json!({ "turn": turn }))).collect();
    let bytes: Vec<u8> = std::iter::once(&delayed).chain(&requests).flat_map(Request::bytes).collect();
    client.write(&bytes).await;
    assert_eq!(client.answer().await.data(), "waited");
    for turn in 0..20 {
        assert_eq!(client.answer().await.data()["input"], json!({ "turn": turn }));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_does_not_become_the_next_request() {
    let server = server().await;
    let hidden = String::from_utf8(server.get("/api/v1/openapi.json").bytes()).unwrap();
    // A length and chunks that disagree.
    let request = server.request("POST", ECHO).with("Content-Type", "application/json").chunked(b"{}", 2);
    let request = request.with("Content-Length", &(hidden.len() + 12).to_string());
    let mut client = server.connect().await;
    client.write(&[request.bytes(), server.get("/nowhere").bytes()].concat()).await;
    let first = client.any_answer().await.map(|answer| answer.status);
    assert!(matches!(first, None | Some(200 | 400)), "{first:?}");
    if let Some(second) = client.any_answer().await {
        assert_eq!(second.status, 404);
    }
    // A body on a request that is refused unread.
    let mut client = server.connect().await;
    client.write(&server.request("PUT", ECHO).body(hidden).bytes()).await;
    check(&client.answer().await, 405, "METHOD_NOT_ALLOWED");
    client.end_writing().await;
    assert!(client.is_at_end().await, "one request, one answer");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_request_does_not_hold_up_the_others() {
    let seen = Seen::default();
    let server = Server::start(app(&seen)).await;
    let mut slow: Vec<Client> = Vec::new();
    for _ in 0..8 {
        let mut client = server.connect().await;
        client.write(&server.invoke("hang", json!({})).bytes()).await;
        slow.push(client);
    }
    until("all hang", || seen.started() == 8).await;
    check(&server.send(server.invoke("echo", json!({}))).await, 200, "OK");
    drop(slow);
    until("all are ended", || seen.dropped() == 8).await;
}
