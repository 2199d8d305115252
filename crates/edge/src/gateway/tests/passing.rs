//! What passes: requests and answers as they are, and never the key.

use runyard_domain::Wire;

use super::harness::*;
use crate::gateway::Gateway;

const EVENTS: [&str; 4] = [
    "event: response.created\r\ndata: {\"type\":\"response.created\"}\r\n\r\n",
    ": a comment, an odd line\n\ndata: not JSON \u{1f600}\n",
    "data: {\"type\":\"response.output_text.delta\",\"delta\":\"h",
    "i\"}\n\nid: 7\ndata: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":5,\"output_tokens\":2}}}\n\n",
];

#[tokio::test]
async fn b12_requests_and_answers_pass_byte_for_byte_and_the_key_stays_here() {
    let provider = Provider::streaming(&EVENTS).await;
    let lease = lease(&provider.base_url()).await;
    let body = "{ \"model\":\"m\",\n \"input\": \"\\u00e9 \u{e9}\", \"new field\": [1.0e3] }";
    let reply = ask(&lease, body).await;
    assert_eq!((reply.status, reply.whole), (200, true));
    assert_eq!(reply.body, EVENTS.concat());
    assert!(reply.head.contains("content-type: text/event-stream\r\n"), "{}", reply.head);
    let seen = provider.seen();
    assert_eq!(seen.len(), 1);
    assert_eq!(String::from_utf8(seen[0].body.clone()).unwrap(), body);
    assert!(seen[0].head.starts_with("post /v1/responses http/1.1\r\n"), "{}", seen[0].head);
    assert!(seen[0].head.contains(&format!("authorization: bearer {}\r\n", KEY.to_lowercase())));
    assert!(seen[0].head.contains(&format!("host: {}\r\n", provider.address)));
    assert!(!seen[0].head.contains(lease.token()));
    assert!(!format!("{} {} {lease:?}", reply.head, reply.body).contains(KEY));
}

#[tokio::test]
async fn only_headers_that_are_named_pass() {
    let headers = "retry-after: 2\r\nx-request-id: r-1\r\nset-cookie: a=b\r\nserver: s\r\nlocation: /x\r\n";
    let provider = Provider::answering("200 OK", headers, "{}").await;
    let lease = lease(&provider.base_url()).await;
    let request = request(&lease, "{}")
        .replace("host:", "openai-beta: b\r\nsession_id: s-1\r\ncookie: c=d\r\nx-api-key: other\r\nhost:");
    let reply = ask_raw(&lease, request.as_bytes()).await;
    let sent = &provider.seen()[0].head;
    assert!(sent.contains("openai-beta: b\r\n") && sent.contains("session_id: s-1\r\n"), "{sent}");
    assert!(!sent.contains("cookie") && !sent.contains("x-api-key"), "{sent}");
    assert!(sent.contains("accept-encoding: identity\r\n"), "{sent}");
    assert!(reply.head.contains("retry-after: 2\r\n") && reply.head.contains("x-request-id: r-1\r\n"));
    for absent in ["set-cookie", "server:", "location"] {
        assert!(!reply.head.contains(absent), "{}", reply.head);
    }
}

#[tokio::test]
async fn a_providers_refusals_pass_as_they_are_and_no_redirect_is_followed() {
    for status in [
        "302 Found",
        "400 Bad Request",
        "401 Unauthorized",
        "403 Forbidden",
        "404 Not Found",
        "429 Too Many Requests",
        "500 Internal Server Error",
        "503 Service Unavailable",
        "529 Overloaded",
    ] {
        let body = format!("{{\"error\":{{\"message\":\"it was {status}\",\"code\":\"c\"}}}}");
        let provider =
            Provider::answering(status, "retry-after: 3\r\nlocation: http://127.0.0.1:1/\r\n", &body).await;
        for wire in [Wire::Responses, Wire::Chat] {
            let lease = Gateway::new().open(pass(&provider.base_url(), wire)).await.unwrap();
            let reply = ask(&lease, "{\"model\":\"m\",\"input\":\"hi\",\"stream\":true}").await;
            assert_eq!(
                (reply.status.to_string(), reply.body),
                (status[..3].to_owned(), body.clone()),
                "{wire:?}"
            );
            assert!(reply.head.contains("retry-after: 3\r\n"), "{wire:?}: {}", reply.head);
            assert_eq!(lease.used().borrow().input_tokens, 0);
        }
        assert_eq!(provider.seen().len(), 2);
    }
}

#[tokio::test]
async fn b11_the_key_never_comes_back_in_an_error_or_in_a_header() {
    let body = format!("{{\"error\":{{\"message\":\"Incorrect API key provided: {KEY}\"}}}}");
    let provider =
        Provider::answering("401 Unauthorized", &format!("x-request-id: for {KEY}\r\n"), &body).await;
    let lease = lease(&provider.base_url()).await;
    let reply = ask(&lease, "{}").await;
    assert_eq!(reply.status, 401);
    assert_eq!(reply.body, body.replace(KEY, &"*".repeat(KEY.len())));
    assert!(!reply.head.contains("x-request-id"));
}

#[tokio::test]
async fn b11_the_key_never_comes_back_in_a_stream_whatever_its_pieces_are() {
    let text =
        format!("data: {{\"delta\":\"say {KEY}, {}\"}}\n\ndata: sk-Sorrel\n\n", KEY.replace('/', "\\/"));
    let stars = |key: &str| "*".repeat(key.len());
    let slashed = KEY.replace('/', "\\/");
    let expected = text.replace(KEY, &stars(KEY)).replace(&slashed, &stars(&slashed));
    let bytes: Vec<String> = text.chars().map(String::from).collect();
    let every_byte: Vec<&str> = bytes.iter().map(String::as_str).collect();
    // Each chunk in a write of its own, so that they also arrive apart.
    let mut steps = vec![stream_head()];
    steps.extend(every_byte.iter().map(|byte| sent(&chunks(&[byte]))));
    steps.push(sent("0\r\n\r\n"));
    for provider in [Provider::playing(steps).await, Provider::streaming(&[&text]).await] {
        let lease = lease(&provider.base_url()).await;
        let reply = ask(&lease, "{}").await;
        assert_eq!((reply.body, reply.whole), (expected.clone(), true));
    }
}

#[tokio::test]
async fn an_event_reaches_the_agent_before_the_next_one_is_sent() {
    use tokio::io::AsyncReadExt;
    let word = std::sync::Arc::new(tokio::sync::Notify::new());
    let (first, second) = ("data: {\"n\":1}\n\n", "data: {\"n\":2}\n\n");
    let wait = Step::Wait(std::sync::Arc::clone(&word));
    let steps =
        vec![stream_head(), sent(&chunks(&[first])), wait, sent(&chunks(&[second])), sent("0\r\n\r\n")];
    let provider = Provider::playing(steps).await;
    let lease = lease(&provider.base_url()).await;
    let mut stream = send(&lease, request(&lease, "{}").as_bytes()).await;
    let mut read = Vec::new();
    while !String::from_utf8_lossy(&read).contains(first) {
        assert_ne!(stream.read_buf(&mut read).await.unwrap(), 0, "closed before the first event");
    }
    word.notify_one();
    stream.read_to_end(&mut read).await.unwrap();
    assert!(String::from_utf8(read).unwrap().contains(second));
}

#[tokio::test]
async fn the_list_of_models_passes_with_the_key_and_costs_nothing() {
    let provider = Provider::answering("200 OK", "", "{\"data\":[{\"id\":\"m\"}]}").await;
    let lease = lease(&format!("{}/?v=2", provider.base_url())).await;
    let token = lease.token();
    let request = format!(
        "GET /v1/models?client=x HTTP/1.1\r\nhost: localhost:1\r\nauthorization: bearer {token}\r\n\r\n"
    );
    let reply = ask_raw(&lease, request.as_bytes()).await;
    assert_eq!((reply.status, reply.body.as_str()), (200, "{\"data\":[{\"id\":\"m\"}]}"));
    let seen = provider.seen();
    assert!(seen[0].head.starts_with("get /v1/models?v=2 http/1.1\r\n"), "{}", seen[0].head);
    assert!(seen[0].head.contains(&KEY.to_lowercase()));
    assert_eq!(*lease.used().borrow(), crate::gateway::Used::default());
}
