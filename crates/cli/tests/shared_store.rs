//! Runs on PostgreSQL: one that outlives its hub, and two hubs on one database.
//!
//! clause: C18
//! clause: J05

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use runyard_testkit_postgres::Postgres;
use rustix::process::Signal;
use serde_json::{Value, json};

use support::Hub;
use support::api::{Api, Yard};

fn up(yard: &Yard, database: &str) -> (Hub, Api) {
    let hub = Hub::of(yard.home.command_up().env("RUNYARD_DATABASE_URL", database).spawn().unwrap());
    let hub = hub.expect("the hub starts");
    let api = Api::owner(&yard.home, &hub);
    api.add_workspace(yard.workspace.path());
    (hub, api)
}

#[test]
fn j05_a_run_on_postgresql_outlives_its_hub() {
    let database = Postgres::shared().unwrap().database().unwrap();
    let yard = Yard::new("", &[]);
    let (hub, api) = up(&yard, &database);
    let run = api.start("demo", yard.place());
    let approval = api.asked(&run, &[]);
    hub.signal(Signal::KILL);
    hub.ended();
    let (_hub, api) = up(&yard, &database);
    api.approve(&approval);
    api.until(&run, "completed");
}

#[test]
fn c18_of_two_hubs_on_one_database_each_drives_its_own_runs_and_both_can_answer() {
    let database = Postgres::shared().unwrap().database().unwrap();
    let (one, other) = (Yard::new("", &[]), Yard::new("", &[]));
    let (_one_hub, one_api) = up(&one, &database);
    let (_other_hub, other_api) = up(&other, &database);
    let mut told = other_api.hub_stream();
    assert_eq!(told.changed(), json!({ "runs": [], "approvals": 0 }));
    let run = one_api.start("demo", one.place());
    let approval = one_api.asked(&run, &[]);
    // Who follows the second hub is told of what happens at the first.
    let tells = |changed: Value, state: &str, open: u64| {
        let runs = changed["runs"].as_array().unwrap().clone();
        changed["approvals"] == open && runs.iter().any(|told| told["id"] == *run && told["state"] == state)
    };
    while !tells(told.changed(), "needs_approval", 1) {}
    // The second hub knows the run by the database, and has no part of it but the answer.
    assert_eq!(other_api.run(&run)["state"], "needs_approval");
    other_api.approve(&approval);
    let done = one_api.until(&run, "completed");
    while !tells(told.changed(), "completed", 0) {}
    let theirs = other_api.start("demo", other.place());
    other_api.approve(&one_api.asked(&theirs, &[]));
    let done_there = one_api.until(&theirs, "completed");
    assert_ne!(done["edgeId"], done_there["edgeId"]);
}
