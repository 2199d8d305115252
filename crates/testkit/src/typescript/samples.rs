//! Every event as it is stored, from the golden file of `runyard-domain`.

use runyard_domain::run::RunEvent;
use serde_json::Value;

const GOLDEN: &str = include_str!("../../../domain/tests/golden/events.jsonl");

/// The type of each stored event, its payload as it was stored, and as it is written today.
pub fn stored() -> Vec<(String, Value, Value)> {
    let lines = GOLDEN.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines
        .map(|line| {
            let now = line.get("now").unwrap_or(&line["payload"]).clone();
            (line["type"].as_str().unwrap().to_owned(), line["payload"].clone(), now)
        })
        .collect()
}

/// The same as events.
pub(super) fn samples() -> Vec<RunEvent> {
    stored().iter().map(|(kind, payload, _)| RunEvent::read(kind, payload).unwrap()).collect()
}
