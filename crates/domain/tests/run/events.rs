//! Every event of a run as it stands in logs that were written long ago, byte for byte.
//!
//! `tests/golden/events.jsonl` holds one event a line: its type, the version of its payload, and the payload. A line is for ever,
//! since somebody's log holds it. Where an event comes to be written otherwise, the old line stays and gets a `now`: what the same
//! event looks like when it is written today. So has a payload that holds more than its event says, such as the backend's own word.
//!
//! clause: C07
//! clause: C10
//! clause: C25

use std::collections::BTreeSet;
use std::fmt;

use runyard_domain::gate::{Effect, Request, Risk, SideEffects};
use runyard_domain::run::{
    ApplyStatus, CommandKind, DecisionScope, DiffState, FailureKind, OnReject, Resolution, RunEvent, Task,
    ToolOutcome, TurnOutcome,
};
use runyard_domain::{ActorKind, Approval, ArtifactFacts, BuildStatus, Network, PrivacyReview, Sandbox};
use serde::Deserialize;
use serde::de::value::{MapDeserializer, StrDeserializer};
use serde_json::Value;

const GOLDEN: &str = include_str!("../golden/events.jsonl");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    #[serde(rename = "type")]
    kind: String,
    v: u32,
    payload: Value,
    now: Option<Value>,
}

fn lines() -> impl Iterator<Item = (&'static str, Line)> {
    GOLDEN.lines().map(|text| (text, serde_json::from_str(text).unwrap()))
}

#[test]
fn c07_every_stored_payload_is_read_and_written_as_the_same_bytes() {
    for (text, line) in lines() {
        assert_eq!(line.v, 1, "another version needs an upcast, and this test with it: {text}");
        let event =
            RunEvent::read(&line.kind, &line.payload).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(event.kind(), line.kind);
        let written = event.payload().unwrap().to_string();
        match line.now {
            None => assert_eq!(format!(r#"{{"type":"{}","v":1,"payload":{written}}}"#, line.kind), text),
            Some(now) => assert_eq!(written, now.to_string(), "{text}"),
        }
    }
}

#[test]
fn c10_c25_every_type_of_the_contract_is_an_event_and_every_event_is_pinned() {
    let contract = "run.created run.started run.completed run.failed run.cancelled run.message.delta
        run.message.completed run.tool.call run.tool.result run.file.read run.diff.ready run.patch.proposed
        run.artifact.ready run.preview.ready run.approval.requested run.approval.resolved runtime.unavailable
        runtime.timeout schema.validation_failed
        run.planned run.accepted run.preparing run.applying run.applied run.degraded runtime.status
        run.tool.output runtime.error";
    for kind in contract.split_whitespace() {
        assert!(RunEvent::KINDS.contains(&kind), "{kind} is in the contract and no event");
    }
    let pinned: BTreeSet<String> = lines().map(|(_, line)| line.kind).collect();
    let known: BTreeSet<String> = RunEvent::KINDS.iter().map(ToString::to_string).collect();
    assert_eq!(pinned, known, "each type has a line in golden/events.jsonl, and each line a type");
}

/// The words of a type, which serde names when it is given another.
#[derive(Debug)]
struct Words(&'static [&'static str]);

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "one of {:?}", self.0)
    }
}

impl std::error::Error for Words {}

impl serde::de::Error for Words {
    fn custom<T: fmt::Display>(message: T) -> Self {
        panic!("{message}")
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Words(expected)
    }
}

fn words<T: Deserialize<'static>>() -> &'static [&'static str] {
    T::deserialize(StrDeserializer::<Words>::new("?")).err().unwrap().0
}

fn kinds<T: Deserialize<'static>>() -> &'static [&'static str] {
    T::deserialize(MapDeserializer::<_, Words>::new([("kind", "?")].into_iter())).err().unwrap().0
}

#[track_caller]
fn check(words: &[&str], field: &str, of: &[&str]) {
    let mut found = BTreeSet::new();
    for (_, line) in lines().filter(|(_, line)| of.contains(&line.kind.as_str())) {
        found.extend(line.payload.pointer(field).and_then(Value::as_str).map(str::to_owned));
    }
    assert_eq!(found, words.iter().map(ToString::to_string).collect(), "{field} of {of:?}");
}

#[test]
fn every_word_in_a_stored_payload_is_pinned() {
    check(kinds::<Task>(), "/task/kind", &["run.created"]);
    check(kinds::<ActorKind>(), "/actor/kind", &["run.created"]);
    check(words::<OnReject>(), "/onReject", &["run.created"]);
    check(words::<Sandbox>(), "/executionPolicy/sandbox", &["run.created"]);
    check(words::<Network>(), "/executionPolicy/network", &["run.created"]);
    check(words::<Approval>(), "/executionPolicy/approval", &["run.created"]);
    check(kinds::<Request>(), "/request/kind", &["run.approval.requested"]);
    check(words::<SideEffects>(), "/request/sideEffects", &["run.approval.requested"]);
    check(words::<Risk>(), "/risk", &["run.approval.requested"]);
    check(words::<Resolution>(), "/resolution", &["run.approval.resolved"]);
    check(words::<DecisionScope>(), "/scope", &["run.approval.resolved"]);
    check(words::<Effect>(), "/effect", &["run.gate.judged"]);
    check(words::<DiffState>(), "/diff", &["run.completed"]);
    check(words::<FailureKind>(), "/failureKind", &["run.failed"]);
    check(words::<CommandKind>(), "/command", &["run.command.received"]);
    check(words::<TurnOutcome>(), "/outcome", &["run.turn.ended"]);
    check(words::<ToolOutcome>(), "/outcome", &["run.tool.result"]);
    check(kinds::<ArtifactFacts>(), "/facts/kind", &["run.artifact.ready"]);
    check(words::<ApplyStatus>(), "/facts/applyStatus", &["run.artifact.ready"]);
    check(words::<PrivacyReview>(), "/facts/privacyReview", &["run.artifact.ready"]);
    check(words::<BuildStatus>(), "/facts/buildStatus", &["run.artifact.ready"]);
}
