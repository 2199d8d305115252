//! Artifacts in a run: what is recorded of them, and what is refused.

use runyard_domain::run::{Run, RunEvent};
use runyard_domain::{ARTIFACTS_MAX, Actor, RunId, Timestamp};
use serde_json::{Value, json};

const GOLDEN: &str = include_str!("../golden/run.jsonl");
const EVENTS: &str = include_str!("../golden/events.jsonl");

fn at(ms: i64) -> Timestamp {
    Timestamp::from_unix_ms(1_700_000_000_000 + ms)
}

fn run_id() -> RunId {
    RunId::from_parts(1_700_000_000_000, &[7; 10])
}

fn lines(text: &'static str) -> impl Iterator<Item = Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap())
}

fn event(line: &Value) -> RunEvent {
    RunEvent::read(line["type"].as_str().unwrap(), &line["payload"]).unwrap()
}

/// A run in the middle of its work.
fn running() -> Run {
    let first = lines(GOLDEN)
        .take(5)
        .fold(None, |run, line| Some(Run::fold(run, run_id(), at(0), &event(&line)).unwrap()));
    first.unwrap()
}

/// Every artifact with facts that stands in the golden file.
fn recorded() -> Vec<Value> {
    lines(EVENTS).filter(|line| line["payload"]["facts"].is_object()).collect()
}

fn refused(line: &Value) -> String {
    Run::fold(Some(running()), run_id(), at(1), &event(line)).unwrap_err().to_string()
}

// clause: C14
#[test]
fn c14_an_artifact_is_noted_with_all_that_it_says_and_moves_nothing() {
    let before = running();
    let mut run = before.clone();
    for line in recorded() {
        run = Run::fold(Some(run), run_id(), at(1), &event(&line)).unwrap();
        let artifact = run.produced.last().unwrap();
        assert_eq!(serde_json::to_value(&artifact.ready).unwrap(), line["payload"]);
        assert_eq!(artifact.at, at(1));
        assert_eq!(run.artifacts.last(), Some(&artifact.ready.artifact_id), "the end of the run lists it");
    }
    assert_eq!((run.artifacts.len(), run.produced.len()), (recorded().len(), recorded().len()));
    assert_eq!(run.artifact_bytes(), 42 * recorded().len() as u64);
    let row = serde_json::to_value(&run).unwrap();
    assert_eq!(serde_json::from_value::<Run>(row).unwrap(), run, "a row is read back whole");
    (run.artifacts, run.produced) = (Vec::new(), Vec::new());
    assert_eq!(run, before, "nothing else of the run is changed by it");
}

// clause: C14
#[test]
fn c14_no_artifact_is_recorded_without_what_it_must_say() {
    for line in recorded() {
        for field in ["artifactId", "kind", "summary", "name", "content", "by", "facts"] {
            let mut lacking = line.clone();
            let fields = lacking["payload"].as_object_mut().unwrap();
            let needed = ["artifactId", "kind", "summary"].contains(&field);
            if needed {
                fields.insert(field.to_owned(), json!(" "));
            } else {
                fields.remove(field);
            }
            // Logs of long ago have things of no kind without facts.
            if field == "facts" && line["payload"]["kind"] == "file" {
                continue;
            }
            assert_eq!(
                refused(&lacking),
                format!("run.artifact.ready says nothing in \"{field}\""),
                "{line}"
            );
        }
        let mut other = line.clone();
        other["payload"]["kind"] = json!("something");
        assert_eq!(refused(&other), "run.artifact.ready says nothing in \"kind\"");
        let mut named = line.clone();
        named["payload"]["name"] = json!("../../etc/passwd");
        assert_eq!(refused(&named), "run.artifact.ready says nothing in \"name\"");
    }
}

// clause: C15
#[test]
fn c15_no_absolute_path_is_recorded_in_an_artifact_or_a_preview() {
    for place in ["/facts/path", "/facts/paths/0", "/facts/files/0", "/path"] {
        let mut checked = 0;
        let telling =
            |line: &Value| line["payload"]["facts"].is_object() || line["type"] == "run.preview.ready";
        for mut line in lines(EVENTS).filter(telling) {
            let Some(path) = line["payload"].pointer_mut(place) else { continue };
            *path = json!("/home/ada/site/index.html");
            let field = place.split('/').find(|part| part.starts_with("path") || part.starts_with("file"));
            let kind = line["type"].as_str().unwrap();
            assert_eq!(refused(&line), format!("{kind} says nothing in \"{}\"", field.unwrap()));
            checked += 1;
        }
        assert!(checked > 0, "{place}");
    }
}

#[test]
fn a_row_holds_only_so_many_artifacts() {
    let line = recorded().remove(0);
    let run = (0..ARTIFACTS_MAX + 3)
        .fold(running(), |run, _| Run::fold(Some(run), run_id(), at(1), &event(&line)).unwrap());
    assert_eq!(run.produced.len(), ARTIFACTS_MAX);
}

#[test]
fn what_may_be_private_is_for_people_and_for_the_agent_that_gave_it() {
    let screenshots: Vec<Value> =
        recorded().into_iter().filter(|line| line["payload"]["kind"] == "screenshot").collect();
    assert_eq!(screenshots.len(), 3);
    let giver = Actor::agent("codex", run_id(), ["runs.read"]);
    let other = Actor::agent("codex", RunId::from_parts(1, &[1; 10]), ["runs.read"]);
    let everyone = [Actor::owner("ada"), Actor::service("ci", ["runs.read"]), giver, other];
    for line in screenshots {
        let RunEvent::ArtifactReady(artifact) = event(&line) else { panic!("{line}") };
        let may = everyone.each_ref().map(|actor| artifact.is_for(actor));
        let expected = match line["payload"]["facts"]["privacyReview"].as_str().unwrap() {
            "passed" => [true; 4],
            // The golden one was given by the agent of this run.
            "pending" => [true, false, true, false],
            _ => [true, false, false, false],
        };
        assert_eq!(may, expected, "{line}");
    }
}
