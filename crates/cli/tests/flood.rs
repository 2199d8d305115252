//! A busy run to which many people talk at once: it comes to its end, and no event of it is lost.
//!
//! clause: C08
//! clause: J05

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use support::api::{Scripted, Yard, times};

/// How many people talk at the same time.
const PEOPLE: usize = 160;
/// How often the run says something.
const SAID: usize = 400;

#[test]
fn j05_a_busy_run_to_which_everybody_talks_at_once_comes_to_its_end() {
    let words = times(2, 5, 50);
    let script = format!("[[turn]]\n[[turn.step]]\nsay = \"On and on.\"\nrepeat = {SAID}\n");
    let yard = Yard::new("", &[Scripted { name: "talker", profile: "", script: &script }]);
    let (_hub, api) = yard.up();
    let run = api.start("talker", yard.place());
    api.until(&run, "running");
    let path = format!("/runs/{run}/commands");
    let taken = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..PEOPLE {
            scope.spawn(|| {
                for _ in 0..words {
                    let word = json!({"kind": "steer", "text": "hurry"});
                    let (status, body) = api.send("POST", &path, Some(&word));
                    match status {
                        200 => drop(taken.fetch_add(1, Ordering::Relaxed)),
                        // It cannot hear everybody at once, and at its end it hears nobody any more.
                        status => assert!([409, 429].contains(&status), "{body}"),
                    }
                }
            });
        }
    });
    api.until(&run, "completed");
    let events = api.events(&run);
    let count = |wanted: &str| events.iter().filter(|event| event["type"] == wanted).count();
    assert_eq!(count("run.command.received"), taken.into_inner(), "every word that was taken is recorded");
    let said = events.iter().filter(|event| event["payload"]["text"] == "On and on.");
    assert_eq!(said.filter(|event| event["type"] == "run.message.completed").count(), SAID);
}
