//! MCP clients that others wrote, against the fixture application: the TypeScript client in both modes, and the inspector.
//!
//! clause: A04
//! clause: A20
//! clause: A21

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use runyard_testkit::mcp_fixture::{FixtureServer, TOKEN, Tokens};
use serde_json::Value;

use support::{Programs, lines_of};

const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-fixture");
/// Only over HTTP: a program of the public API has no way yet to tell an MCP client on stdio of changes.
/// What `client.mjs` checks, so that none of it is left out unseen.
const CHECKS: [&str; 17] = [
    "the revision is the one that was asked for",
    "tools are listed in one order, with hints and schemas",
    "a tool is called",
    "a tool is called without arguments",
    "many calls at once get their own answers",
    "a failure is a result to be read",
    "a wrong argument is a result to be read",
    "resources are listed and read",
    "prompts are listed and got",
    "progress arrives, and only grows",
    "logs arrive",
    "cancellation reaches the action",
    "a change of a watched resource is told, and of no other",
    "a person who says yes confirms a destructive action",
    "whatever else a person says does not confirm it",
    "a client that can show no form is told what is missing",
    "an action asks in the middle and goes on with the answer",
];

#[track_caller]
fn check_over_http(mode: &str) {
    let server = FixtureServer::start(Tokens::Shown).unwrap();
    let mut client = Programs::find().own("client.mjs");
    let said = lines_of(client.args([mode, "http", &server.url(), TOKEN]));
    assert_eq!(said.lines().collect::<Vec<_>>(), CHECKS);
}

#[track_caller]
fn check_on_stdio(mode: &str) {
    let said = lines_of(Programs::find().own("client.mjs").args([mode, "stdio", PROGRAM, "mcp"]));
    assert_eq!(said.lines().collect::<Vec<_>>(), CHECKS);
}

#[test]
fn a04_a20_a21_the_typescript_client_works_over_http_on_the_older_wire() {
    check_over_http("legacy");
}

#[test]
fn a04_a20_a21_the_typescript_client_works_over_http_on_the_newer_wire() {
    check_over_http("auto");
}

#[test]
fn a04_a20_a21_the_typescript_client_works_on_stdio_on_the_older_wire() {
    check_on_stdio("legacy");
}

#[test]
fn a04_a20_a21_the_typescript_client_works_on_stdio_on_the_newer_wire() {
    check_on_stdio("auto");
}

/// The inspector with this server, asked for one thing.
fn inspected(server: &[&str], asked: &[&str]) -> Value {
    let said = lines_of(Programs::find().inspector().args(server).args(asked));
    serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"))
}

fn check_inspector(server: &[&str]) {
    let listed = inspected(server, &["--method", "tools/list"]);
    let names: Vec<_> =
        listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(names.is_sorted() && names.contains(&"greet"), "{names:?}");
    let greet = ["--method", "tools/call", "--tool-name", "greet", "--tool-arg", "name=Ada"];
    let called = inspected(server, &greet);
    assert_eq!(called["content"][0]["text"], "Hello, Ada!");
    assert_eq!(called["_meta"]["io.runyard/envelope"]["ok"], true);
}

#[test]
fn a20_the_inspector_lists_and_calls_over_http() {
    let server = FixtureServer::start(Tokens::Shown).unwrap();
    let token = format!("Authorization: Bearer {TOKEN}");
    check_inspector(&[&server.url(), "--transport", "http", "--header", &token]);
}

#[test]
fn a20_the_inspector_lists_and_calls_on_stdio() {
    check_inspector(&[PROGRAM, "mcp"]);
}
