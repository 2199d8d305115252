//! A run that nothing goes on with, because its hub was killed and no other runs: whoever answers it, talks to it or looks at it is told.
//!
//! clause: J05

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use support::api::{Scripted, Yard};

const SCRIPT: &str = r#"
[[turn]]
[[turn.step]]
shell = "true"
[[turn.step]]
shell = "true"
"#;

const SAID: &str = "No hub is running, so nothing goes on with this run: start one with \"runyard up\".\n";

#[test]
fn j05_whoever_answers_or_looks_at_a_run_that_no_hub_goes_on_with_is_told_how_it_does() {
    let yard = Yard::new("", &[Scripted { name: "solo", profile: "", script: SCRIPT }]);
    let (hub, api) = yard.up();
    let run = api.start("solo", yard.place());
    let asked = api.asked(&run, &[]);
    let id = asked["id"].as_str().unwrap();
    let shown = yard.home.run(["runs", "show", &run, "--output", "text"]);
    assert_eq!((shown.exit, shown.stderr.as_str()), (0, ""), "a hub runs");
    // It is killed.
    drop(hub);

    let answered = yard.home.run(["approvals", "approve", id, "--confirm", "--output", "text"]);
    assert_eq!((answered.exit, answered.stderr.as_str()), (0, SAID), "{}", answered.stdout);
    for arguments in [&["runs", "show", &run][..], &["runs", "steer", &run, "Hurry."]] {
        let told = yard.home.run(arguments.iter().chain(&["--output", "text"]));
        assert_eq!((told.exit, told.stderr.as_str()), (0, SAID), "{arguments:?} {}", told.stdout);
        let told = yard.home.run(arguments.iter().chain(&["--output", "json"]));
        assert_eq!(told.data()["ok"].as_bool(), None, "{arguments:?}");
    }

    let (hub, api) = yard.up();
    let asked = api.asked(&run, &[id]);
    api.approve(&asked);
    api.until(&run, "completed");
    drop(hub);
    let over = yard.home.run(["runs", "show", &run, "--output", "text"]);
    assert_eq!((over.exit, over.stderr.as_str()), (0, ""), "it is at its end");
}
