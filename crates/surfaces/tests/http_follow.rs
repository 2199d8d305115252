//! Following an invocation live, ending it by going away, and stopping the server while something runs.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a failed expectation fails the test"
)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use runyard_actions::{Action, Context, DefinitionError, Runtime, fields};
use serde_json::{Value, json};
use support::app::{Seen, app, open};
use support::client::{Client, Event};
use support::server::{BOB, Server};
use support::until;

async fn server() -> Server {
    Server::start(app(&Seen::default())).await
}

fn kinds(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.kind.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_followed_invocation_gives_its_events_in_order_and_then_one_result() {
    let server = server().await;
    let mut client = server.connect().await;
    client.follow(&server.invoke("follow", json!({})).followed()).await;
    let events = client.events().await;
    assert_eq!(kinds(&events), ["log", "progress", "artifact", "log", "result"]);
    for event in &events {
        assert_eq!(event.data["type"], event.kind.as_str());
    }
    let [begins, half, report, ends, result] = &events[..] else { panic!("{events:?}") };
    assert_eq!((&begins.data["level"], &begins.data["message"]), (&json!("info"), &json!("begins")));
    assert_eq!(begins.data["fields"], json!({"step": 1, "text": "two\nlines"}));
    assert_eq!((&half.data["message"], &half.data["percent"]), (&json!("half"), &json!(50)));
    assert_eq!(report.data["artifact"]["name"], "report.txt");
    assert_eq!((&ends.data["level"], &ends.data["message"]), (&json!("warn"), &json!("ends")));
    let envelope = &result.data["envelope"];
    assert_eq!((&envelope["ok"], &envelope["data"]), (&json!(true), &json!("done")));
    assert_eq!(envelope["logs"].as_array().unwrap().len(), 3, "progress stands among the logs");
    assert_eq!(envelope["artifacts"][0], report.data["artifact"]);
}

// clause: A20
#[tokio::test(flavor = "multi_thread")]
async fn the_result_of_a_followed_invocation_is_the_envelope_of_the_plain_one() {
    let server = server().await;
    let same = |mut envelope: Value| {
        envelope["meta"].as_object_mut().unwrap().retain(|key, _| key == "action" || key == "surface");
        for log in envelope["logs"].as_array_mut().unwrap() {
            log["time"] = json!("");
        }
        for artifact in envelope["artifacts"].as_array_mut().unwrap() {
            artifact["id"] = json!("");
        }
        envelope
    };
    for input in [json!({}), json!({"fail": true}), json!([])] {
        let plain = server.send(server.invoke("follow", input.clone())).await.json();
        let mut client = server.connect().await;
        client.follow(&server.invoke("follow", input).followed()).await;
        let events = client.events().await;
        assert_eq!(kinds(&events).iter().filter(|kind| **kind == "result").count(), 1);
        let result = events.last().unwrap();
        assert_eq!(result.kind, "result");
        assert_eq!(same(result.data["envelope"].clone()), same(plain));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_action_that_cannot_be_found_is_followed_to_its_one_result() {
    let server = server().await;
    for (action, code) in [("private_thing", "ACTION_NOT_FOUND"), ("cli_only", "UNSUPPORTED_SURFACE")] {
        let mut client = server.connect().await;
        client.follow(&server.invoke(action, json!({})).followed()).await;
        let events = client.events().await;
        assert_eq!(kinds(&events), ["result"]);
        assert_eq!(events[0].data["envelope"]["error"]["code"], code);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_reaches_no_action_is_answered_plainly_also_when_it_would_be_followed() {
    let server = server().await;
    for (request, status, code) in [
        (server.invoke("follow", json!({})).without("Authorization"), 401, "AUTHENTICATION_ERROR"),
        (server.invoke("follow", json!({})).with("Host", "evil.example"), 421, "HOST_NOT_ALLOWED"),
        (server.invoke("follow", json!({})).with("Runyard-Surface", "dev"), 403, "UNSUPPORTED_SURFACE"),
        (
            server.invoke("follow", json!({})).with("Content-Type", "text/plain"),
            415,
            "UNSUPPORTED_MEDIA_TYPE",
        ),
        (server.get("/nowhere"), 404, "NOT_FOUND"),
    ] {
        let answer = server.send(request.followed()).await;
        assert_eq!(answer.outcome(), (status, code.to_owned()));
        assert_eq!(answer.header("content-type"), "application/json");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_way_of_accepting_an_event_stream_is_understood() {
    let server = server().await;
    for accept in ["text/event-stream", "TEXT/Event-Stream;q=0.9", "application/json, text/event-stream"] {
        let mut client = server.connect().await;
        client.follow(&server.invoke("echo", json!({})).with("Accept", accept)).await;
        assert_eq!(kinds(&client.events().await), ["result"]);
    }
    for accept in ["*/*", "text/*", "application/json", "text/event-streams"] {
        let answer = server.send(server.invoke("echo", json!({})).with("Accept", accept)).await;
        assert_eq!(answer.header("content-type"), "application/json");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_comes_when_it_happens_and_not_at_the_end() {
    let gate = Arc::new(tokio::sync::Notify::new());
    let opened = Arc::clone(&gate);
    let action = open("gated").handler(move |_, context: Context| {
        let gate = Arc::clone(&gate);
        async move {
            context.logger().info("waiting", fields! {});
            gate.notified().await;
            Ok(json!("opened"))
        }
    });
    let server = Server::start(Runtime::builder().action(action)).await;
    let mut client = server.connect().await;
    client.follow(&server.invoke("gated", json!({})).followed()).await;
    assert_eq!(client.event().await.unwrap().data["message"], "waiting");
    // Only what was read lets the action go on.
    opened.notify_one();
    assert_eq!(client.event().await.unwrap().data["envelope"]["data"], "opened");
    assert_eq!(client.event().await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_connection_serves_on_after_a_followed_invocation() {
    let server = server().await;
    let mut client = server.connect().await;
    client.follow(&server.invoke("follow", json!({})).followed()).await;
    assert_eq!(client.events().await.len(), 5);
    assert_eq!(client.send(&server.invoke("echo", json!({})).by(BOB)).await.data()["actor"], "bob");
}

#[tokio::test(flavor = "multi_thread")]
async fn a21_a_client_that_goes_away_ends_its_action() {
    let seen = Seen::default();
    let server = Server::start(app(&seen)).await;
    let mut client = server.connect().await;
    client.write(&server.invoke("hang", json!({})).bytes()).await;
    until("the action runs", || seen.started() == 1).await;
    assert_eq!(seen.dropped(), 0);
    drop(client);
    until("its future is dropped", || seen.dropped() == 1).await;
    until("the hook sees why", || seen.ended() == ["CANCELLED"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a21_a_client_that_stops_following_ends_its_action() {
    let seen = Seen::default();
    let server = Server::start(app(&seen)).await;
    let mut client = server.connect().await;
    client.follow(&server.invoke("hang", json!({})).followed()).await;
    until("the action runs", || seen.started() == 1).await;
    drop(client);
    until("its future is dropped", || seen.dropped() == 1).await;
    until("the hook sees why", || seen.ended() == ["CANCELLED"]).await;
}

// clause: A21
#[tokio::test(flavor = "multi_thread")]
async fn one_client_that_goes_away_does_not_end_the_action_of_another() {
    let seen = Seen::default();
    let server = Server::start(app(&seen)).await;
    let (mut goes, mut stays) = (server.connect().await, server.connect().await);
    goes.write(&server.invoke("hang", json!({})).bytes()).await;
    let limited = json!({"input": {}, "timeoutMs": 60_000});
    stays.write(&server.post("/api/v1/actions/hang/invoke", &limited).bytes()).await;
    until("both run", || seen.started() == 2).await;
    drop(goes);
    until("one is ended", || seen.ended() == ["CANCELLED"]).await;
    assert_eq!(seen.dropped(), 1);
    drop(stays);
    until("now the other is, too", || seen.ended() == ["CANCELLED", "CANCELLED"]).await;
}

const CHATTER_ENTRIES: usize = 100;

/// Logs 32 KiB at a time, counting how far it came; all of it is less than what an invocation may log.
fn chatty(reported: Arc<AtomicUsize>) -> Result<Action, DefinitionError> {
    open("chatty").handler(move |_, context: Context| {
        let reported = Arc::clone(&reported);
        async move {
            for _ in 0..CHATTER_ENTRIES {
                context.logger().info("chatter", fields! { text: "x".repeat(32 * 1024) });
                reported.fetch_add(1, Ordering::SeqCst);
                tokio::task::yield_now().await;
            }
            Ok(json!("said"))
        }
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_reader_slows_the_action_down_and_nothing_piles_up() {
    let reported = Arc::new(AtomicUsize::new(0));
    let server = Server::start(Runtime::builder().action(chatty(Arc::clone(&reported)))).await;
    let mut client = Client::narrow(server.address).await;
    client.write(&server.invoke("chatty", json!({})).followed().bytes()).await;
    // Until the sockets are full: nothing more is reported for a while.
    let mut before = usize::MAX;
    let mut quiet = 0;
    while quiet < 20 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let now = reported.load(Ordering::SeqCst);
        quiet = if now == before && now > 0 { quiet + 1 } else { 0 };
        before = now;
    }
    assert!(before < CHATTER_ENTRIES, "the action waits for its reader");
    // Somebody who reads gets everything.
    assert_eq!(client.head_only().await.status, 200);
    let events = client.events().await;
    assert_eq!(events.len(), CHATTER_ENTRIES + 1);
    assert_eq!(events.last().unwrap().data["envelope"]["data"], "said");
    assert_eq!(reported.load(Ordering::SeqCst), CHATTER_ENTRIES);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopping_server_lets_a_running_request_finish() {
    let seen = Seen::default();
    let server = Server::start(app(&seen)).await;
    let (mut plain, mut followed) = (server.connect().await, server.connect().await);
    let mut idle = server.connect().await;
    assert_eq!(idle.send(&server.get("/api/v1/actions")).await.status, 200);
    plain.write(&server.invoke("wait", json!({"ms": 200})).bytes()).await;
    followed.follow(&server.invoke("wait", json!({"ms": 200})).followed()).await;
    until("both run", || seen.started() == 2).await;
    server.stop.cancel();
    assert_eq!(plain.answer().await.data(), "waited");
    assert_eq!(followed.events().await.last().unwrap().data["envelope"]["data"], "waited");
    server.serving.await.unwrap();
    assert!(plain.is_at_end().await && followed.is_at_end().await && idle.is_at_end().await);
    assert!(tokio::net::TcpStream::connect(server.address).await.is_err(), "nobody listens any more");
    assert_eq!(seen.ended(), ["OK", "OK"]);
}

/// Time stands still but where everybody waits, so the drain time is over at once; real time until the actions run.
#[tokio::test]
async fn a_stopping_server_drops_what_does_not_end_in_time() {
    let seen = Seen::default();
    let server = Server::start(app(&seen)).await;
    let (mut plain, mut followed) = (server.connect().await, server.connect().await);
    plain.write(&server.invoke("hang", json!({})).bytes()).await;
    followed.write(&server.invoke("hang", json!({})).followed().bytes()).await;
    until("both run", || seen.started() == 2).await;
    assert_eq!(seen.dropped(), 0);
    tokio::time::pause();
    server.stop.cancel();
    server.serving.await.unwrap();
    assert_eq!(seen.dropped(), 2, "when it has stopped, they are gone");
    until("the hook sees why", || seen.ended() == ["CANCELLED", "CANCELLED"]).await;
    assert!(plain.any_answer().await.is_none(), "there is no answer to a request that was dropped");
}

/// Both ends of a thousand connections are in this process, more than many shells allow by default.
fn raise_the_limit_on_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
}

#[tokio::test]
async fn a_server_with_all_its_places_taken_stops_all_the_same() {
    raise_the_limit_on_open_files();
    let seen = Seen::default();
    let server = Server::start(app(&seen)).await;
    // One more than are served at once; the last waits in the socket's queue.
    let mut clients = Vec::new();
    for _ in 0..2049 {
        let mut client = server.connect().await;
        client.write(&server.invoke("hang", json!({})).bytes()).await;
        clients.push(client);
    }
    until("all places are taken", || seen.started() == 2048).await;
    tokio::time::pause();
    server.stop.cancel();
    server.serving.await.unwrap();
    assert_eq!((seen.started(), seen.dropped()), (2048, 2048));
}
