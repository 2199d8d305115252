//! The end of a lease: at once, and of everything.

use runyard_domain::Wire;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use super::harness::*;
use crate::gateway::Gateway;

const EVENT: &str = "data: {\"type\":\"response.output_text.delta\",\"delta\":\"eight by\"}\n\n";

#[tokio::test]
async fn b12_dropping_the_lease_cuts_a_stream_and_leaves_the_provider() {
    let provider = Provider::playing(vec![stream_head(), sent(&chunks(&[EVENT])), Step::UntilGone]).await;
    let gateway = Gateway::new();
    let lease = gateway.open(pass(&provider.base_url(), Wire::Responses)).await.unwrap();
    let mut used = lease.used();
    let mut stream = send(&lease, request(&lease, "{}").as_bytes()).await;
    let mut read = Vec::new();
    while !String::from_utf8_lossy(&read).contains(EVENT) {
        assert_ne!(stream.read_buf(&mut read).await.unwrap(), 0);
    }
    drop(lease);
    let _ = stream.read_to_end(&mut read).await;
    assert!(!String::from_utf8_lossy(&read).ends_with("0\r\n\r\n"), "cut, not ended");
    provider.left_by(1).await;
    let used = *used.wait_for(|used| used.input_tokens > 0).await.unwrap();
    assert_eq!((used.input_tokens, used.output_tokens), (1, 2));
}

#[tokio::test]
async fn b12_dropping_the_lease_cuts_a_request_that_waits_for_its_answer() {
    let provider = Provider::playing(vec![Step::UntilGone]).await;
    let gateway = Gateway::new();
    let lease = gateway.open(pass(&provider.base_url(), Wire::Responses)).await.unwrap();
    let stream = send(&lease, request(&lease, "{}").as_bytes()).await;
    provider.asked(1).await;
    drop(lease);
    assert!(read_reply(stream).await.is_none());
    provider.left_by(1).await;
}

#[tokio::test]
async fn b12_dropping_the_lease_leaves_an_agent_that_reads_nothing() {
    let much = "x".repeat(1024 * 1024);
    let mut steps = vec![stream_head()];
    steps.extend((0..64).map(|_| sent(&chunks(&[&much]))));
    steps.push(Step::UntilGone);
    let provider = Provider::playing(steps).await;
    let gateway = Gateway::new();
    let lease = gateway.open(pass(&provider.base_url(), Wire::Responses)).await.unwrap();
    let mut stream = send(&lease, request(&lease, "{}").as_bytes()).await;
    stream.read_exact(&mut [0; 64]).await.unwrap();
    drop(lease);
    let mut read = Vec::new();
    let _ = stream.read_to_end(&mut read).await;
    assert!(read.len() < 64 * much.len(), "cut while most of it was unread");
}

#[tokio::test]
async fn an_agent_that_reads_nothing_is_given_up() {
    let much = "x".repeat(1024 * 1024);
    let mut steps = vec![stream_head()];
    steps.extend((0..64).map(|_| sent(&chunks(&[&much]))));
    steps.push(Step::UntilGone);
    let provider = Provider::playing(steps).await;
    let lease = impatient().open(pass(&provider.base_url(), Wire::Responses)).await.unwrap();
    let stream = send(&lease, request(&lease, "{}").as_bytes()).await;
    used_when(&lease, |used| used.input_tokens > 0).await;
    let reply = read_reply(stream).await.unwrap();
    assert!(!reply.whole);
}

#[tokio::test]
async fn nobody_listens_once_the_gateway_and_its_leases_are_gone() {
    let gateway = Gateway::new();
    let lease = gateway.open(pass("http://127.0.0.1:1", Wire::Responses)).await.unwrap();
    let port = lease.port();
    drop(gateway);
    assert_eq!(ask(&lease, "{}").await.status, 502, "a lease keeps it");
    drop(lease);
    // The task that listens ends when it is next looked at.
    while TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn c16_closing_a_lease_counts_what_it_cuts_and_lets_nothing_through_after() {
    let provider = Provider::playing(vec![stream_head(), sent(&chunks(&[EVENT])), Step::UntilGone]).await;
    let silent = Provider::playing(vec![Step::UntilGone]).await;
    let gateway = Gateway::new();
    for (provider, said) in [(&provider, 2), (&silent, 0)] {
        let lease = gateway.open(pass(&provider.base_url(), Wire::Responses)).await.unwrap();
        let other = gateway.open(pass(&provider.base_url(), Wire::Responses)).await.unwrap();
        let mut streams = Vec::new();
        for _ in 0..3 {
            let mut stream = send(&lease, request(&lease, "{}").as_bytes()).await;
            let mut read = Vec::new();
            while said > 0 && !String::from_utf8_lossy(&read).contains(EVENT) {
                assert_ne!(stream.read_buf(&mut read).await.unwrap(), 0);
            }
            streams.push(stream);
        }
        provider.asked(3).await;
        let late = request(&lease, "{}");
        let used = lease.close().await;
        assert_eq!((used.requests, used.input_tokens, used.output_tokens), (3, 3, 3 * said));
        assert_eq!(ask_raw(&other, late.as_bytes()).await.status, 401);
        provider.left_by(3).await;
    }
}

#[tokio::test]
async fn c16_a_request_that_comes_in_while_the_lease_closes_is_not_sent() {
    let provider = Provider::answering("200 OK", "", "{}").await;
    let gateway = Gateway::new();
    let lease = gateway.open(pass(&provider.base_url(), Wire::Responses)).await.unwrap();
    // Its head is read and its place taken; then the lease closes.
    let half = request(&lease, "{}").replace("content-length: 2", "content-length: 3");
    let stream = send(&lease, half.as_bytes()).await;
    lease.open.pending().wait_for(|pending| pending.requests == 1).await.unwrap();
    let used = lease.close().await;
    assert_eq!(used, crate::gateway::Used::default());
    assert!(read_reply(stream).await.is_none());
    assert_eq!(provider.seen(), []);
}
