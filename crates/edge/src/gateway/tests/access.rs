//! Who gets through, and with what.

use runyard_domain::Wire;

use super::harness::*;
use crate::Secret;
use crate::gateway::runs::REQUESTS_MAX;
use crate::gateway::{Gateway, routes};

#[tokio::test]
async fn b13_a_token_opens_its_own_runs_provider_and_no_other_until_its_lease_is_dropped() {
    let (one, two) =
        (Provider::answering("200 OK", "", "1").await, Provider::answering("200 OK", "", "2").await);
    let gateway = Gateway::new();
    let first = gateway.open(pass(&one.base_url(), Wire::Responses)).await.unwrap();
    let mut other = pass(&two.base_url(), Wire::Responses);
    other.upstream.key = Secret::new(b"another-key-64".to_vec());
    let second = gateway.open(other).await.unwrap();
    assert_eq!(first.base_url(), second.base_url());
    assert_ne!(first.token(), second.token());
    assert_eq!(
        (ask(&first, "{}").await.body, ask(&second, "{}").await.body),
        ("1".to_owned(), "2".to_owned())
    );
    assert!(
        one.seen()[0].head.contains(&KEY.to_lowercase()) && !one.seen()[0].head.contains("another-key-64")
    );
    assert!(
        two.seen()[0].head.contains("another-key-64") && !two.seen()[0].head.contains(&KEY.to_lowercase())
    );

    let closed = request(&first, "{}");
    drop(first);
    assert_eq!(ask_raw(&second, closed.as_bytes()).await.code(), (401, "invalid_api_key".to_owned()));
    assert_eq!((one.seen().len(), ask(&second, "{}").await.status), (1, 200));
}

#[tokio::test]
async fn b12_without_the_runs_token_nothing_passes() {
    let provider = Provider::answering("200 OK", "", "{}").await;
    let lease = lease(&provider.base_url()).await;
    let good = format!("Bearer {}", lease.token());
    let (shorter, longer) = (good[..good.len() - 1].to_owned(), format!("{good}0"));
    for header in [
        String::new(),
        "authorization: \r\n".to_owned(),
        "authorization: Bearer \r\n".to_owned(),
        format!("authorization: Bearer {KEY}\r\n"),
        format!("authorization: {shorter}\r\n"),
        format!("authorization: {longer}\r\n"),
        format!("authorization: Basic {}\r\n", lease.token()),
        format!("authorization: {}\r\n", lease.token()),
        format!("authorization: {good}\r\nauthorization: {good}\r\n"),
        format!("x-api-key: {}\r\n", lease.token()),
    ] {
        let request = request(&lease, "{}").replace(&format!("authorization: {good}\r\n"), &header);
        let reply = ask_raw(&lease, request.as_bytes()).await;
        assert_eq!(reply.code(), (401, "invalid_api_key".to_owned()), "{header}");
    }
    assert_eq!(provider.seen(), []);
}

#[tokio::test]
async fn only_the_two_routes_are_served_and_only_to_loopback_hosts() {
    let provider = Provider::answering("200 OK", "", "{}").await;
    let lease = lease(&provider.base_url()).await;
    let good = request(&lease, "{}");
    let check = async |from: &str, to: &str, expected: (u16, &str)| {
        let reply = ask_raw(&lease, good.replace(from, to).as_bytes()).await;
        assert_eq!(reply.code(), (expected.0, expected.1.to_owned()), "{to}");
    };
    for line in [
        "GET /v1/responses",
        "POST /v1/models",
        "POST /v1/responses/",
        "POST /v1/chat/completions",
        "POST /",
        "DELETE /v1/responses",
        "POST /v1/responses/../models",
        "OPTIONS *",
    ] {
        check("POST /v1/responses", line, (404, "no_such_route")).await;
    }
    for host in [
        "example.com",
        "127.0.0.1.example.com",
        "localhost@example.com",
        "x@127.0.0.1",
        "",
        "127.0.0.2",
        "0.0.0.0",
    ] {
        check("host: 127.0.0.1", &format!("host: {host}"), (403, "not_loopback")).await;
    }
    check("host: 127.0.0.1\r\n", "", (403, "not_loopback")).await;
    check("POST /v1", "POST http://example.com/v1", (403, "not_loopback")).await;
    check("HTTP/1.1", "HTTP/1.0", (505, "http_version")).await;
    check("content-type:", "content-encoding: zstd\r\ncontent-type:", (415, "unsupported")).await;
    assert_eq!(provider.seen(), []);
    for host in ["localhost", "LOCALHOST:80", "[::1]:5", "127.0.0.1:65535"] {
        let reply =
            ask_raw(&lease, good.replace("host: 127.0.0.1", &format!("host: {host}")).as_bytes()).await;
        assert_eq!(reply.status, 200, "{host}");
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_413_however_it_is_sent() {
    let provider = Provider::answering("200 OK", "", "{}").await;
    let lease = lease(&provider.base_url()).await;
    let at_the_limit = format!("{{{}}}", " ".repeat(routes::REQUEST_BYTES_MAX - 2));
    assert_eq!(ask(&lease, &at_the_limit).await.status, 200);
    let too_large = at_the_limit + " ";
    assert_eq!(ask(&lease, &too_large).await.code(), (413, "request_too_large".to_owned()));
    let length = too_large.len();
    let chunked = request(&lease, &too_large).replace(
        &format!("content-length: {length}\r\n\r\n"),
        &format!("transfer-encoding: chunked\r\n\r\n{length:x}\r\n"),
    );
    let reply = ask_raw(&lease, format!("{chunked}\r\n0\r\n\r\n").as_bytes()).await;
    assert_eq!(reply.code(), (413, "request_too_large".to_owned()));
    assert_eq!(provider.seen().len(), 1);
}

#[tokio::test]
async fn what_is_no_request_breaks_nothing_and_reaches_no_provider() {
    let provider = Provider::answering("200 OK", "", "{}").await;
    let lease = lease(&provider.base_url()).await;
    let good = request(&lease, "{}");
    let long = "x".repeat(100_000);
    let smuggled =
        "transfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n0\r\n\r\nPOST /v1/responses HTTP/1.1\r\n";
    for bytes in [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\0\0\0\0".to_vec(),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        b"\r\n\r\n\0\0\0\xff\xfe".to_vec(),
        good.replace("content-length: 2", "content-length: 2\r\ncontent-length: 3").into_bytes(),
        good.replace("content-length: 2", "content-length: -2").into_bytes(),
        good.replace("content-length: 2", "content-length: 99999999999999999999").into_bytes(),
        good.replace("content-length: 2", "transfer-encoding: gzip").into_bytes(),
        good.replace("content-length: 2\r\n\r\n{}", "transfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n")
            .into_bytes(),
        good.replace("host:", "host :").into_bytes(),
        good.replace("host:", &format!("x-long: {long}\r\nhost:")).into_bytes(),
        good.replace("/v1/responses", &format!("/{long}")).into_bytes(),
        good.replace("host:", &"x: y\r\n".repeat(1000)).into_bytes(),
        good.replace("Bearer ", "Bearer \u{1f600}").into_bytes(),
        good.replace("POST", "P\0ST").into_bytes(),
    ] {
        let mut stream = send(&lease, &bytes).await;
        let _ = tokio::io::AsyncWriteExt::shutdown(&mut stream).await;
        if let Some(reply) = read_reply(stream).await {
            assert!(
                (400..500).contains(&reply.status),
                "{:?}",
                String::from_utf8_lossy(&bytes[..60.min(bytes.len())])
            );
        }
    }
    assert_eq!(provider.seen(), []);
    // A request in the body of another is never one of its own.
    let _ = read_reply(send(&lease, good.replace("content-length: 2\r\n\r\n{}", smuggled).as_bytes()).await)
        .await;
    assert!(provider.seen().len() <= 1);
    assert_eq!(ask(&lease, "{}").await.status, 200);
}

#[tokio::test]
async fn a_request_that_does_not_arrive_is_given_up() {
    let provider = Provider::answering("200 OK", "", "{}").await;
    let lease = impatient().open(pass(&provider.base_url(), Wire::Responses)).await.unwrap();
    let half = request(&lease, "{}").replace("content-length: 2", "content-length: 3");
    assert_eq!(ask_raw(&lease, half.as_bytes()).await.code(), (408, "request_unread".to_owned()));
    // Not even a head: the connection ends.
    let stream = send(&lease, b"POST /v1/resp").await;
    assert!(read_reply(stream).await.is_none_or(|reply| reply.status == 408));
    assert_eq!(provider.seen(), []);
}

#[tokio::test]
async fn a_run_may_have_so_many_requests_on_their_way_and_the_next_is_told() {
    let word = std::sync::Arc::new(tokio::sync::Notify::new());
    let steps = vec![stream_head(), Step::Wait(std::sync::Arc::clone(&word)), sent("0\r\n\r\n")];
    let provider = Provider::playing(steps).await;
    let lease = lease(&provider.base_url()).await;
    let mut waiting = Vec::new();
    for _ in 0..REQUESTS_MAX {
        waiting.push(send(&lease, request(&lease, "{}").as_bytes()).await);
    }
    used_when(&lease, |used| used.requests == REQUESTS_MAX as u64).await;
    assert_eq!(ask(&lease, "{}").await.code(), (429, "too_many_requests".to_owned()));
    // One that is over leaves its place.
    word.notify_one();
    let mut places = tokio::task::JoinSet::new();
    for stream in waiting {
        places.spawn(read_reply(stream));
    }
    let over = places.join_next().await.unwrap().unwrap().unwrap();
    assert_eq!((over.status, over.whole), (200, true));
    let stream = send(&lease, request(&lease, "{}").as_bytes()).await;
    used_when(&lease, |used| used.requests == REQUESTS_MAX as u64 + 1).await;
    drop(stream);
}

#[tokio::test]
async fn fifty_requests_at_once_are_each_answered_with_their_own() {
    let provider = Provider::streaming(&[
        "data: {\"response\":{\"usage\":{\"input_tokens\":3,\"output_tokens\":1}}}\n\n",
    ])
    .await;
    let gateway = Gateway::new();
    let mut asking = tokio::task::JoinSet::new();
    for number in 0..50 {
        let lease = gateway.open(pass(&provider.base_url(), Wire::Responses)).await.unwrap();
        asking.spawn(async move {
            let reply = ask(&lease, &format!("{{\"number\":{number}}}")).await;
            (number, reply.status, reply.whole, lease.used().borrow().input_tokens)
        });
    }
    let mut done = asking.join_all().await;
    done.sort_unstable();
    assert_eq!(done, (0..50).map(|number| (number, 200, true, 3)).collect::<Vec<_>>());
    let mut bodies: Vec<Vec<u8>> = provider.seen().into_iter().map(|seen| seen.body).collect();
    bodies.sort_unstable();
    bodies.dedup();
    assert_eq!(bodies.len(), 50);
}
