//! A provider that speaks Anthropic Messages: passed on as it is, with the key where that API has it, and counted.

use runyard_domain::Wire;

use super::harness::*;
use crate::gateway::{Gateway, Lease, Used};

const EVENTS: [&str; 4] = [
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":5,\"cache_read_input_tokens\":2,\"output_tokens\":1}}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"te",
    "xt\":\"hello\"}}\n\n",
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":3}}\n\n",
];

async fn lease(base_url: &str) -> Lease {
    Gateway::new().open(pass(base_url, Wire::Messages)).await.unwrap()
}

/// A request as that API's clients make it.
fn request(lease: &Lease, body: &str) -> String {
    let bearer = format!("authorization: Bearer {}\r\n", lease.token());
    let own = format!("x-api-key: {}\r\nanthropic-version: 2023-06-01\r\n", lease.token());
    super::harness::request(lease, body).replace("/v1/responses", "/v1/messages").replace(&bearer, &own)
}

#[tokio::test]
async fn b12_messages_pass_byte_for_byte_with_the_key_in_the_header_of_their_api_and_are_counted() {
    let provider = Provider::streaming(&EVENTS).await;
    let lease = lease(&provider.base_url()).await;
    let body = "{ \"model\":\"m\", \"messages\": [] , \"stop_sequences\": [ \"\\u00e9\" ] }";
    let reply = ask_raw(&lease, request(&lease, body).as_bytes()).await;
    assert_eq!((reply.status, reply.whole, reply.body.as_str()), (200, true, EVENTS.concat().as_str()));
    let seen = &provider.seen()[0];
    assert_eq!(String::from_utf8(seen.body.clone()).unwrap(), body);
    assert!(seen.head.starts_with("post /v1/messages http/1.1\r\n"), "{}", seen.head);
    assert!(seen.head.contains(&format!("x-api-key: {}\r\n", KEY.to_lowercase())), "{}", seen.head);
    assert!(seen.head.contains("anthropic-version: 2023-06-01\r\n"), "{}", seen.head);
    assert!(!seen.head.contains("authorization") && !seen.head.contains(lease.token()), "{}", seen.head);
    let used = used_when(&lease, |used| used.output_tokens > 0).await;
    assert_eq!(used, Used { input_tokens: 7, output_tokens: 3, requests: 1, refused_for_budget: false });
}

#[tokio::test]
async fn b12_such_a_run_has_no_other_route_and_takes_its_token_in_either_header() {
    let provider = Provider::answering("200 OK", "", "{}").await;
    let lease = lease(&provider.base_url()).await;
    let refused = ask(&lease, "{}").await;
    assert_eq!(refused.code(), (404, "no_such_route".to_owned()));
    assert!(refused.body.contains("/v1/messages"), "{}", refused.body);
    let good = request(&lease, "{}");
    assert_eq!(ask_raw(&lease, good.as_bytes()).await.status, 200);
    let bearer = super::harness::request(&lease, "{}").replace("/v1/responses", "/v1/messages");
    assert_eq!(ask_raw(&lease, bearer.as_bytes()).await.status, 200);
    let twice = good.replace("x-api-key:", &format!("x-api-key: {}\r\nx-api-key:", lease.token()));
    let other = good.replace(lease.token(), "ryg_0");
    for wrong in [twice, other] {
        assert_eq!(ask_raw(&lease, wrong.as_bytes()).await.code(), (401, "invalid_api_key".to_owned()));
    }
    let hosted = "{\"tools\":[{\"type\":\"web_search_20250305\",\"name\":\"web_search\"}]}";
    let reply = ask_raw(&lease, request(&lease, hosted).as_bytes()).await;
    assert_eq!(reply.code(), (400, "unsupported".to_owned()));
    assert_eq!(provider.seen().len(), 2);
}

#[tokio::test]
async fn an_answer_in_messages_that_breaks_off_costs_what_was_said() {
    let provider = Provider::playing(vec![stream_head(), sent(&chunks(&EVENTS[..3]))]).await;
    let lease = lease(&provider.base_url()).await;
    let reply = ask_raw(&lease, request(&lease, "{}").as_bytes()).await;
    assert!(!reply.whole);
    let used = used_when(&lease, |used| used.input_tokens > 0).await;
    // Five bytes were said, which is estimated; what was asked was told.
    assert_eq!((used.input_tokens, used.output_tokens), (7, 2));
}
