//! How much of requests is in memory at once.

use std::sync::Arc;

use runyard_domain::Wire;

use super::harness::*;
use crate::gateway::Gateway;
use crate::gateway::listening::BODIES_BYTES_MAX;

#[tokio::test]
async fn a_request_for_which_there_is_no_room_in_time_is_told_to_come_again() {
    let provider = Provider::answering("200 OK", "", "{}").await;
    let gateway = impatient();
    let lease = gateway.open(pass(&provider.base_url(), Wire::Responses)).await.unwrap();
    let bodies = Arc::clone(&gateway.0.server.bodies);
    let all = u32::try_from(BODIES_BYTES_MAX).unwrap();
    let taken = bodies.acquire_many(all).await.unwrap();
    assert_eq!(ask(&lease, "{}").await.code(), (503, "gateway_full".to_owned()));
    assert_eq!(provider.seen(), []);
    drop(taken);
    assert_eq!(ask(&lease, "{}").await.status, 200);
}

#[tokio::test]
async fn a_request_waits_for_room_and_gives_it_back_when_its_answer_begins() {
    let provider = Provider::playing(vec![stream_head(), Step::UntilGone]).await;
    let gateway = Gateway::new();
    let lease = gateway.open(pass(&provider.base_url(), Wire::Responses)).await.unwrap();
    let bodies = Arc::clone(&gateway.0.server.bodies);
    let all = u32::try_from(BODIES_BYTES_MAX).unwrap();
    let taken = bodies.acquire_many(all).await.unwrap();
    let mut stream = send(&lease, request(&lease, "{}").as_bytes()).await;
    lease.open.pending().wait_for(|pending| pending.requests == 1).await.unwrap();
    assert_eq!(provider.seen(), [], "it waits");
    drop(taken);
    tokio::io::AsyncReadExt::read_exact(&mut stream, &mut [0; 8]).await.unwrap();
    assert_eq!(bodies.available_permits(), BODIES_BYTES_MAX, "though the answer is still on its way");
}

#[tokio::test]
async fn a_request_takes_room_as_it_comes_in() {
    let provider = Provider::playing(vec![Step::UntilGone]).await;
    let gateway = Gateway::new();
    let lease = gateway.open(pass(&provider.base_url(), Wire::Responses)).await.unwrap();
    let bodies = Arc::clone(&gateway.0.server.bodies);
    let body = format!("{{{}}}", " ".repeat(3 * 1024 * 1024));
    let stream = send(&lease, request(&lease, &body).as_bytes()).await;
    provider.asked(1).await;
    let taken = BODIES_BYTES_MAX - bodies.available_permits();
    assert!((body.len()..2 * body.len()).contains(&taken), "{taken}");
    drop((stream, lease));
    drop(bodies.acquire_many(u32::try_from(BODIES_BYTES_MAX).unwrap()).await.unwrap());
}
