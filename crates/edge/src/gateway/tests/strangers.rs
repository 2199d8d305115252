//! Those who have no token, and those who have one and want too much with it.

use std::time::Duration;

use runyard_domain::Wire;
use runyard_llm::http::Roots;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::harness::*;
use crate::gateway::limits::Limits;
use crate::gateway::listening::STRANGERS_MAX;
use crate::gateway::runs::CONNECTIONS_MAX;
use crate::gateway::{Gateway, Lease};

/// What does not come within this does not come at all.
const NEVER: Duration = Duration::from_secs(30);

/// A gateway that waits for its clients longer than a test does.
fn patient() -> Gateway {
    let long = 100 * NEVER;
    let limits = Limits { request_head: long, request_body: long, ..Limits::default() };
    Gateway::with(limits, Roots::System)
}

/// A request of which the body is still to come.
fn announcing(lease: &Lease, length: usize) -> String {
    request(lease, "").replace("content-length: 0", &format!("content-length: {length}"))
}

async fn gone(stream: &mut TcpStream) {
    let read = timeout(NEVER, stream.read(&mut [0; 1])).await.expect("the connection should end");
    assert!(matches!(read, Ok(0) | Err(_)));
}

#[tokio::test]
async fn b12_whoever_has_no_token_is_told_so_without_their_body_being_waited_for() {
    let lease = patient().open(pass("http://127.0.0.1:1", Wire::Responses)).await.unwrap();
    let strange = announcing(&lease, 1_000_000).replace("Bearer ryg_", "Bearer ");
    let reply = timeout(NEVER, ask_raw(&lease, strange.as_bytes())).await.expect("an answer at once");
    assert_eq!(reply.code(), (401, "invalid_api_key".to_owned()));
}

#[tokio::test]
async fn b12_of_a_body_that_comes_without_a_token_little_is_read() {
    let lease = patient().open(pass("http://127.0.0.1:1", Wire::Responses)).await.unwrap();
    let length = 48 * 1024 * 1024;
    let strange = announcing(&lease, length).replace("Bearer ryg_", "Bearer ");
    let mut stream = send(&lease, strange.as_bytes()).await;
    let much = vec![b' '; length];
    let written = timeout(NEVER, stream.write_all(&much)).await.expect("the connection should end");
    assert!(written.is_err(), "all of it was read");
}

#[tokio::test]
async fn b12_strangers_make_room_for_those_who_come_after_them() {
    let provider = Provider::answering("200 OK", "", "{}").await;
    let lease = patient().open(pass(&provider.base_url(), Wire::Responses)).await.unwrap();
    let mut strangers = Vec::new();
    for _ in 0..STRANGERS_MAX {
        strangers.push(send(&lease, b"POST /v1/resp").await);
    }
    assert_eq!(ask(&lease, "{}").await.status, 200);
    gone(&mut strangers[0]).await;
}

#[tokio::test]
async fn a_runs_requests_are_not_taken_for_strangers() {
    let provider = Provider::playing(vec![stream_head(), Step::UntilGone]).await;
    let lease = patient().open(pass(&provider.base_url(), Wire::Responses)).await.unwrap();
    let mut running = send(&lease, request(&lease, "{}").as_bytes()).await;
    running.read_exact(&mut [0; 8]).await.unwrap();
    let mut strangers = Vec::new();
    for _ in 0..=STRANGERS_MAX {
        strangers.push(send(&lease, b"POST /v1/resp").await);
    }
    gone(&mut strangers[0]).await;
    assert_eq!(*lease.used().borrow(), crate::gateway::Used { requests: 1, ..Default::default() });
}

#[tokio::test]
async fn b13_a_run_with_too_many_connections_is_told_and_keeps_no_other_run_out() {
    let provider = Provider::answering("200 OK", "", "{}").await;
    let gateway = patient();
    let greedy = gateway.open(pass(&provider.base_url(), Wire::Responses)).await.unwrap();
    let other = gateway.open(pass(&provider.base_url(), Wire::Responses)).await.unwrap();
    let waiting = announcing(&greedy, 100);
    let mut held = Vec::new();
    for _ in 0..CONNECTIONS_MAX {
        held.push(send(&greedy, waiting.as_bytes()).await);
    }
    // One after the other are they known; once they all are, the next is told although its body never comes.
    let mut told = None;
    while told.is_none() {
        let stream = send(&greedy, waiting.as_bytes()).await;
        told = timeout(NEVER, read_reply(stream)).await.expect("an answer without the body");
    }
    assert_eq!(told.unwrap().code(), (429, "too_many_requests".to_owned()));
    assert_eq!(ask(&other, "{}").await.status, 200);
}
