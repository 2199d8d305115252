//! What a run uses, and that it ends with its budget.

use std::sync::Arc;

use runyard_domain::Wire;
use tokio::io::AsyncReadExt;
use tokio::sync::Notify;

use super::harness::*;
use crate::gateway::{Gateway, Lease, Used};

const COMPLETED: &str = "data: {\"type\":\"response.output_text.delta\",\"delta\":\"hi\"}\n\n\
    data: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":30,\"output_tokens\":12}}}\n\n";

async fn with_budget(provider: &Provider, tokens_left: u64) -> Lease {
    let mut pass = pass(&provider.base_url(), Wire::Responses);
    pass.tokens_left = Some(tokens_left);
    Gateway::new().open(pass).await.unwrap()
}

#[tokio::test]
async fn c16_a_request_past_the_budget_is_refused_with_budget_exceeded_and_sent_nowhere() {
    let provider = Provider::streaming(&[COMPLETED]).await;
    let lease = with_budget(&provider, 43).await;
    let counted = Used { input_tokens: 30, output_tokens: 12, requests: 1, refused_for_budget: false };
    assert_eq!(ask(&lease, "{}").await.status, 200);
    assert_eq!(*lease.used().borrow(), counted, "counted before the agent can ask for more");
    assert_eq!(ask(&lease, "{}").await.status, 200, "one token is left");
    let counted = Used { input_tokens: 60, output_tokens: 24, requests: 2, refused_for_budget: false };
    assert_eq!(*lease.used().borrow(), counted);
    for _ in 0..2 {
        let reply = ask(&lease, "{}").await;
        assert_eq!(reply.code(), (400, "budget_exceeded".to_owned()));
        assert_eq!(reply.json()["error"]["type"], "budget_exceeded");
    }
    assert_eq!(*lease.used().borrow(), Used { refused_for_budget: true, ..counted });
    assert_eq!(provider.seen().len(), 2);
}

#[tokio::test]
async fn c16_a_budget_that_is_used_up_at_the_start_lets_nothing_through() {
    let provider = Provider::streaming(&[COMPLETED]).await;
    let lease = with_budget(&provider, 0).await;
    assert_eq!(ask(&lease, "{}").await.code(), (400, "budget_exceeded".to_owned()));
    assert_eq!((provider.seen().len(), lease.used().borrow().requests), (0, 0));
}

#[tokio::test]
async fn c16_an_answer_that_tells_no_cost_counts_by_an_estimate() {
    let deltas = "data: {\"type\":\"response.output_text.delta\",\"delta\":\"twelve bytes\"}\n\n";
    let provider = Provider::streaming(&[deltas, deltas]).await;
    let lease = with_budget(&provider, 20).await;
    assert_eq!(ask(&lease, &format!("{{{}}}", " ".repeat(55))).await.status, 200);
    let used = *lease.used().borrow();
    assert_eq!((used.input_tokens, used.output_tokens), (15, 6));
    assert_eq!(ask(&lease, "{}").await.status, 400);
}

#[tokio::test]
async fn c16_an_answer_that_is_no_stream_counts_too() {
    let body = "{\"object\":\"response\",\"usage\":{\"input_tokens\":7,\"output_tokens\":8}}";
    let provider = Provider::answering("200 OK", "", body).await;
    let lease = with_budget(&provider, 100).await;
    assert_eq!(ask(&lease, "{}").await.body, body);
    assert_eq!(lease.used().borrow().input_tokens + lease.used().borrow().output_tokens, 15);
}

#[tokio::test]
async fn c16_an_agent_that_goes_away_takes_its_request_with_it_and_pays_for_what_was_said() {
    let deltas = "data: {\"type\":\"response.output_text.delta\",\"delta\":\"twelve bytes\"}\n\n";
    let provider = Provider::playing(vec![stream_head(), sent(&chunks(&[deltas])), Step::UntilGone]).await;
    let lease = with_budget(&provider, 100).await;
    let mut stream = send(&lease, request(&lease, "{\"x\":12}").as_bytes()).await;
    let mut read = Vec::new();
    while !String::from_utf8_lossy(&read).contains("twelve bytes") {
        assert_ne!(stream.read_buf(&mut read).await.unwrap(), 0);
    }
    drop(stream);
    provider.left_by(1).await;
    let used = used_when(&lease, |used| used.input_tokens > 0).await;
    assert_eq!((used.input_tokens, used.output_tokens), (2, 3));
}

#[tokio::test]
async fn c16_an_agent_that_goes_away_before_the_answer_pays_for_what_it_asked() {
    let provider = Provider::playing(vec![Step::UntilGone]).await;
    let lease = with_budget(&provider, 100).await;
    let stream = send(&lease, request(&lease, "{\"x\":12}").as_bytes()).await;
    provider.asked(1).await;
    drop(stream);
    provider.left_by(1).await;
    let used = used_when(&lease, |used| used.input_tokens > 0).await;
    assert_eq!((used.input_tokens, used.output_tokens), (2, 0));
}

#[tokio::test]
async fn c16_of_requests_side_by_side_no_more_are_sent_than_the_budget_may_pay_for() {
    let word = Arc::new(Notify::new());
    let steps =
        vec![stream_head(), Step::Wait(Arc::clone(&word)), sent(&chunks(&[COMPLETED])), sent("0\r\n\r\n")];
    let provider = Provider::playing(steps).await;
    let lease = with_budget(&provider, 1).await;
    let first = send(&lease, request(&lease, "{}").as_bytes()).await;
    provider.asked(1).await;
    let mut others = Vec::new();
    for _ in 0..2 {
        others.push(tokio::spawn(read_reply(send(&lease, request(&lease, "{}").as_bytes()).await)));
    }
    // What comes after them and costs nothing is not held up.
    let token = lease.token();
    let models =
        format!("GET /v1/models HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\r\n");
    let models = send(&lease, models.as_bytes()).await;
    provider.asked(2).await;
    assert_eq!(lease.used().borrow().requests, 1, "the others wait for what the first one costs");
    word.notify_one();
    word.notify_one();
    assert_eq!(read_reply(first).await.unwrap().status, 200);
    for other in others {
        let reply = other.await.unwrap().unwrap();
        assert_eq!(reply.code(), (400, "budget_exceeded".to_owned()));
    }
    drop(models);
    let used = Used { input_tokens: 30, output_tokens: 12, requests: 1, refused_for_budget: true };
    assert_eq!(*lease.used().borrow(), used);
}

#[tokio::test]
async fn c16_a_request_that_waited_goes_on_when_the_one_before_it_left_enough() {
    let word = Arc::new(Notify::new());
    let steps =
        vec![stream_head(), Step::Wait(Arc::clone(&word)), sent(&chunks(&[COMPLETED])), sent("0\r\n\r\n")];
    let provider = Provider::playing(steps).await;
    let lease = with_budget(&provider, 50).await;
    // By its size it may cost all that is left; it costs 42.
    let large = format!("{{{}}}", " ".repeat(300));
    let first = send(&lease, request(&lease, &large).as_bytes()).await;
    provider.asked(1).await;
    let second = send(&lease, request(&lease, "{}").as_bytes()).await;
    word.notify_one();
    assert_eq!(read_reply(first).await.unwrap().status, 200);
    provider.asked(2).await;
    word.notify_one();
    assert_eq!(read_reply(second).await.unwrap().status, 200);
    assert!(!lease.used().borrow().refused_for_budget);
}
