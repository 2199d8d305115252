//! The timeline of a run is one and the same for whoever looks, wherever they begin and however often they come back.
//!
//! clause: C06
//! clause: C07
//! clause: C08

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use serde_json::Value;

use support::api::{Api, Message, Scripted, Stream, Yard};

const SCRIPT: &str = r#"
[[turn]]
[[turn.step]]
say = "First I say something that is long enough to come in several pieces, one after the other."
[[turn.step]]
read = "README.md"
[[turn.step]]
shell = "echo one; echo two"
[[turn.step]]
write = "note.md"
content = "with \"quotes\", a \\ and a line break\n"
[[turn.step]]
say = "And it goes on: äöü \u2028 <b>&amp;</b> data: id: 7"
[[turn.step]]
shell = "true"
"#;

/// The whole timeline, as one who never leaves sees it. The run must be live.
struct Watched {
    messages: Vec<Message>,
}

impl Watched {
    /// The messages after a place.
    fn after(&self, place: usize) -> &[Message] {
        &self.messages[place..]
    }
}

/// What a client sees that reads so many messages from a place on and then goes away.
#[track_caller]
fn some(api: &Api, run: &str, after: u64, count: usize) -> Vec<Message> {
    let mut stream = api.stream(run, Some(after));
    (0..count).map(|_| stream.next().expect("the run has more")).collect()
}

/// A page after a place holds exactly the bytes that the stream holds.
#[track_caller]
fn check_page(api: &Api, run: &str, after: usize, limit: usize, watched: &Watched) -> usize {
    let (status, body) = api.send("GET", &format!("/runs/{run}/events?after={after}&limit={limit}"), None);
    assert_eq!(status, 200, "{body}");
    let expected: Vec<&str> = watched.after(after).iter().take(limit).map(|message| &*message.data).collect();
    let events = body.split_once("\"events\":[").expect("events").1;
    assert!(events.starts_with(&expected.join(",")), "after {after}, at most {limit}: {events}");
    let last = after + expected.len();
    if last < watched.messages.len() {
        let answer: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(answer["data"]["next"], last, "there is more");
    }
    last
}

/// Whoever comes back at any place, by stream or by page, sees what `watched` has from there on.
#[track_caller]
fn check_everywhere(api: &Api, run: &str, watched: &Watched) {
    let known = watched.messages.len();
    for place in 0..=known {
        let seen = some(api, run, place as u64, known - place);
        assert_eq!(seen, watched.after(place), "from {place} on");
    }
    for limit in 1..=known + 1 {
        let mut after = 0;
        while after < known {
            after = check_page(api, run, after, limit, watched);
        }
    }
}

/// Reads on until the run waits for its next approval or is at its end.
fn watch(stream: &mut Stream, watched: &mut Watched) -> bool {
    loop {
        let Some(message) = stream.next() else { return false };
        let (id, asks) = (message.id, message.event == "run.approval.requested");
        assert_eq!(id, watched.messages.len() as u64 + 1, "gapless");
        let event: Value = serde_json::from_str(&message.data).unwrap();
        assert_eq!(
            (&event["sequence"], &event["type"]),
            (&Value::from(id), &Value::from(message.event.clone()))
        );
        watched.messages.push(message);
        if asks {
            return true;
        }
    }
}

/// The same of a run that is at its end: its stream ends where it does, and behind its last event there is nothing to wait for.
#[track_caller]
fn check_ended(api: &Api, run: &str, watched: &Watched) {
    check_everywhere(api, run, watched);
    let known = watched.messages.len();
    for place in 0..known {
        let rest = api.stream(run, Some(place as u64)).rest();
        assert_eq!(rest, watched.after(place), "from {place} to the end");
    }
    assert_eq!(api.stream(run, Some(known as u64)).status, 204);
    assert_eq!(api.stream(run, Some(known as u64 + 1)).status, 409, "that is no place of this log");
    let everything = api.stream(run, None).rest();
    assert_eq!(everything, watched.messages);
}

#[test]
fn c08_whoever_comes_back_at_any_place_sees_the_identical_timeline() {
    let yard = Yard::new("", &[Scripted { name: "teller", profile: "", script: SCRIPT }]);
    let mut watched = Watched { messages: Vec::new() };
    let (hub, api) = yard.up();
    let run = api.start("teller", yard.place());
    let mut stream = api.stream(&run, None);
    assert!(watch(&mut stream, &mut watched), "it asks a first time");
    check_everywhere(&api, &run, &watched);
    // While it waits the hub dies, and the next one goes on.
    drop((stream, hub));
    let hub = yard.home.up();
    let api = Api::owner(&yard.home, &hub);
    check_everywhere(&api, &run, &watched);
    let mut stream = api.stream(&run, Some(watched.messages.len() as u64));
    api.approve(&api.asked(&run, &[]));
    assert!(watch(&mut stream, &mut watched), "it asks a second time");
    check_everywhere(&api, &run, &watched);
    api.approve(&api.asked(&run, &[]));
    assert!(watch(&mut stream, &mut watched), "it asks to apply what it changed");
    check_everywhere(&api, &run, &watched);
    api.approve(&api.asked(&run, &[]));
    assert!(!watch(&mut stream, &mut watched), "it comes to its end");
    assert_eq!(watched.messages.last().unwrap().event, "run.completed");
    check_ended(&api, &run, &watched);
    drop(hub);
    let hub = yard.home.up();
    check_ended(&Api::owner(&yard.home, &hub), &run, &watched);
}

#[test]
fn c08_one_who_leaves_after_every_event_of_a_busy_run_misses_and_doubles_none() {
    let script = "[[turn]]\n[[turn.step]]\nwait_for_command = true\n[[turn.step]]\nsay = \"On and on.\"\nrepeat = 60\n";
    let yard = Yard::new("", &[Scripted { name: "talker", profile: "", script }]);
    let (_hub, api) = yard.up();
    let run = api.start("talker", yard.place());
    let stays = api.stream(&run, None);
    let (hopper, of_hopper) = (api.clone(), run.clone());
    let leaves = std::thread::spawn(move || {
        let mut seen: Vec<Message> = Vec::new();
        loop {
            let Some(next) = hopper.stream(&of_hopper, Some(seen.len() as u64)).next() else { return seen };
            seen.push(next);
        }
    });
    api.until(&run, "running");
    // A word that comes before it listens is only heard; so it is said until it goes on.
    support::eventually("it goes on to its end", || {
        let word = serde_json::json!({"kind": "steer", "text": "go"});
        api.send("POST", &format!("/runs/{run}/commands"), Some(&word));
        (api.run(&run)["state"] != "running").then_some(())
    });
    let (stays, leaves) = (stays.rest(), leaves.join().unwrap());
    assert!(stays.len() > 60, "it had something to say: {}", stays.len());
    assert_eq!(stays, leaves);
}
