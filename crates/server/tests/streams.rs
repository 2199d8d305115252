//! A run's events as they are followed over HTTP.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a failed expectation fails the test"
)]

mod support;

use runyard_backend::Signal;
use runyard_backend::link::Report;
use runyard_domain::RunId;
use runyard_engine::Role;
use serde_json::json;
use support::engine::{asked, turn_ended, until};
use support::{Served, log, messages};

/// Brings a run from its beginning to its end, with an approval that is answered over HTTP.
async fn live(served: &mut Served, run: &str) {
    let open = served.edge.start().await;
    served.edge.recorded(&open, 4, vec![asked("a1", "make clean")]).await;
    let list = served.owner().get(&format!("/approvals?state=open&run={run}")).await.data();
    let (id, digest) = (&list["approvals"][0]["id"], &list["approvals"][0]["digest"]);
    let path = format!("/approvals/{}/resolve", id.as_str().unwrap());
    served.owner().post(&path, json!({ "decision": "approve", "digest": digest })).await.data();
    served.edge.hear().await;
    let approval = id.as_str().unwrap().parse().unwrap();
    let said = Report::Signal(Signal::Message {
        item: "m".into(),
        text: "line\nbreak \u{2028} \"type\":\"x\"".into(),
    });
    served.edge.recorded(&open, 5, vec![Report::Used { approval }, said]).await;
    served.edge.recorded(&open, 6, vec![turn_ended()]).await;
    served.edge.closes(open.run).await;
    until(&served.engine, open.run, "completed").await;
}

#[tokio::test]
async fn c08_a_stream_that_begins_at_any_place_equals_the_log_from_there() {
    let mut served = Served::start().await;
    let run = served.run().await;
    live(&mut served, &run).await;
    let log = log(&served.engine, &run).await;
    assert_eq!(log.first().unwrap().event, "run.created");
    assert_eq!(log.last().unwrap().event, "run.completed");
    let client = served.owner();
    let path = format!("/runs/{run}/stream");
    for place in 0..log.len() {
        let by_address = client.get(&format!("{path}?after={place}")).await;
        assert!(by_address.head.contains("text/event-stream"), "{}", by_address.head);
        assert_eq!(messages(&by_address.body), log[place..]);
        let last = place.to_string();
        let headers = [("Last-Event-ID", last.as_str())];
        let by_header = client.send("GET", &format!("{path}?after=0"), None, &headers).await;
        assert_eq!(messages(&by_header.body), log[place..]);
    }
    let at_the_end = client.get(&format!("{path}?after={}", log.len())).await;
    assert_eq!((at_the_end.status, at_the_end.body.len()), (204, 0), "there is nothing more to come");
    let whole = client.get(&path).await;
    assert_eq!(messages(&whole.body), log);
}

#[tokio::test]
async fn c08_two_clients_that_follow_live_see_the_same_as_the_log() {
    let mut served = Served::start().await;
    let run = served.run().await;
    let (mut early, mut late) = (served.owner().follow(&run, 0).await, served.owner().follow(&run, 1).await);
    let mut seen = vec![early.next().await.unwrap()];
    assert_eq!(seen[0].event, "run.created");
    live(&mut served, &run).await;
    seen.extend(early.rest().await);
    let log = log(&served.engine, &run).await;
    assert_eq!(seen, log);
    assert_eq!(late.rest().await, log[1..]);
}

#[tokio::test]
async fn c08_a_long_log_is_replayed_in_pages_without_a_gap() {
    let mut served = Served::start().await;
    let run = served.run().await;
    let open = served.edge.start().await;
    for batch in 0..10_u64 {
        let said =
            |n: u32| Report::Signal(Signal::FileRead { path: format!("{batch}/{n}/{}", "x".repeat(400)) });
        served.edge.recorded(&open, 4 + batch, (0..40).map(said).collect()).await;
    }
    served.owner().post(&format!("/runs/{run}/cancel"), json!({})).await.data();
    let log = log(&served.engine, &run).await;
    assert!(log.len() > 400);
    assert_eq!(messages(&served.owner().get(&format!("/runs/{run}/stream")).await.body), log);
    // The same in pages of the action.
    let (mut events, mut after) = (Vec::new(), 0);
    loop {
        let page = served.owner().get(&format!("/runs/{run}/events?after={after}&limit=64")).await.data();
        events.extend(page["events"].as_array().unwrap().iter().map(ToString::to_string));
        match page["next"].as_u64() {
            Some(next) => after = next,
            None => break,
        }
    }
    assert_eq!(events, log.iter().map(|message| message.data.clone()).collect::<Vec<_>>());
}

#[tokio::test]
async fn c08_a_cursor_that_leads_nowhere_is_refused_with_an_envelope() {
    let served = Served::start().await;
    let run = served.run().await;
    let client = served.owner();
    let refused = |path: String| {
        let client = client.clone();
        async move { client.get(&path).await.refused() }
    };
    let code = |status, code: &str| (status, code.to_owned());
    assert_eq!(refused(format!("/runs/{run}/stream?after=99")).await, code(409, "CONFLICT"));
    assert_eq!(refused(format!("/runs/{run}/events?after=99")).await, code(409, "CONFLICT"));
    assert_eq!(refused(format!("/runs/{run}/stream?after=x")).await, code(400, "VALIDATION_ERROR"));
    assert_eq!(refused(format!("/runs/{run}/stream?since=1")).await, code(400, "INVALID_REQUEST"));
    let unknown = RunId::from_parts(1, &[1; 10]);
    assert_eq!(refused(format!("/runs/{unknown}/stream")).await, code(404, "NOT_FOUND"));
    assert_eq!(refused("/runs/nonsense/stream".to_owned()).await, code(400, "VALIDATION_ERROR"));
    let installation = runyard_engine::INSTALLATION;
    assert_eq!(refused(format!("/runs/{installation}/stream")).await, code(404, "NOT_FOUND"));
    assert_eq!(refused(format!("/runs/{installation}/events")).await, code(404, "NOT_FOUND"));
    let posted = client.post(&format!("/runs/{run}/stream"), json!({})).await;
    assert_eq!(posted.refused(), code(405, "METHOD_NOT_ALLOWED"));
}

#[tokio::test]
async fn an_open_stream_is_counted_and_ends_with_the_server() {
    let served = Served::start().await;
    let run = served.run().await;
    let mut stream = served.owner().follow(&run, 0).await;
    stream.next().await.unwrap();
    let metrics = served.owner().get("/metrics").await;
    assert!(metrics.head.contains("text/plain; version=0.0.4"), "{}", metrics.head);
    let text = String::from_utf8(metrics.body).unwrap();
    assert!(text.contains("\nrunyard_event_streams 1\n"), "{text}");
    assert!(text.contains("\nrunyard_edges_connected 1\n"), "{text}");
    assert!(text.contains("\nprocess_resident_memory_bytes "), "{text}");
    served.stop.cancel();
    while stream.next().await.is_some() {}
}

#[tokio::test]
async fn c24_a_stream_ends_when_its_token_is_revoked_and_others_go_on() {
    let served = Served::start().await;
    let run = served.run().await;
    let (viewer, other) = (served.with_role(Role::Viewer).await, served.with_role(Role::Operator).await);
    let mut streams = Vec::new();
    for client in [&viewer, &other, &served.owner()] {
        let mut stream = client.follow(&run, 0).await;
        stream.next().await.unwrap();
        streams.push(stream);
    }
    let revoked = served.owner().delete("/tokens/viewer").await;
    assert_eq!(revoked.status, 200, "{revoked:?}");
    let text = streams.remove(0).rest_as_text().await;
    assert!(text.ends_with(": the token is not valid any more\n\n"), "it says why it ends: {text:?}");
    assert_eq!(viewer.get(&format!("/runs/{run}/stream")).await.refused().0, 401);
    served.owner().post(&format!("/runs/{run}/cancel"), json!({})).await.data();
    let log = log(&served.engine, &run).await;
    for mut stream in streams {
        assert_eq!(stream.rest().await, log[1..], "whose token is valid sees all of it");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c08_a_thousand_clients_follow_one_run_and_each_sees_the_whole_log() {
    const CLIENTS: usize = 1_000;
    runyard_server::raise_open_files();
    let mut served = Served::start().await;
    let run = served.run().await;
    let mut streams = Vec::new();
    for number in 0..CLIENTS {
        // Some come at the beginning of the log, some at its end.
        streams.push((number % 3, served.owner().follow(&run, (number % 3) as u64).await));
    }
    let metrics = String::from_utf8(served.owner().get("/metrics").await.body).unwrap();
    assert!(metrics.contains(&format!("\nrunyard_event_streams {CLIENTS}\n")), "{metrics}");
    live(&mut served, &run).await;
    let log = log(&served.engine, &run).await;
    for (place, mut stream) in streams {
        assert_eq!(stream.rest().await, log[place..]);
    }
}
