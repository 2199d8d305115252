//! A run that was derived from its log again, in lines.

use serde_json::Value;

use super::{fields, items, text};

pub(super) fn replayed(replay: &Value) -> Value {
    let mut lines = vec![format!("{} derived from its log again", text(&replay["runId"]))];
    for entered in items(replay, "states") {
        let [sequence, at, state] = [&entered["sequence"], &entered["at"], &entered["state"]].map(text);
        lines.push(format!("  {at}  #{sequence:<6} {state}"));
    }
    if let Some(more @ 1..) = replay["statesLeftOut"].as_u64() {
        lines.push(format!("  … and {more} more"));
    }
    lines.push(counted(replay));
    let differences = items(replay, "differences").count() as u64;
    let left_out = replay["differencesLeftOut"].as_u64().unwrap_or_default();
    lines.push(match differences + left_out {
        0 => "nothing differs".to_owned(),
        1 => "1 difference:".to_owned(),
        count => format!("{count} differences:"),
    });
    for difference in items(replay, "differences") {
        lines.push(format!("  {}", text(&difference["field"])));
        for (name, value) in [("the log says", "derived"), ("is stored   ", "stored")] {
            lines.push(format!("    {name}  {}", shown(&difference[value])));
        }
    }
    if left_out > 0 {
        lines.push(format!("  … and {left_out} more"));
    }
    lines.join("\n").into()
}

/// What was counted, and what two replays can be compared by.
fn counted(replay: &Value) -> String {
    let derived = &replay["derived"];
    let tokens =
        match (derived["metrics"]["inputTokens"].as_u64(), derived["metrics"]["outputTokens"].as_u64()) {
            (None, None) => String::new(),
            (input, output) => {
                format!("{} in, {} out", input.unwrap_or_default(), output.unwrap_or_default())
            }
        };
    let thread = &replay["thread"];
    let conversation = match thread.is_object() {
        false => String::new(),
        true => {
            let [messages, before, runs] =
                [&thread["messages"], &thread["messagesBefore"], &thread["runsBefore"]].map(text);
            let [calls, open] = [&thread["calls"], &thread["callsOpen"]].map(text);
            format!(
                "{messages} messages, {before} of them from {runs} runs before; {calls} calls, {open} of this run without a result"
            )
        }
    };
    fields(&[
        ("events", text(&replay["events"])),
        ("head", text(&replay["head"])),
        ("state", text(&derived["state"])),
        ("waits for", items(derived, "openApprovals").map(text).collect::<Vec<_>>().join("\n")),
        ("tokens", tokens),
        ("digest", text(&replay["digest"])),
        ("conversation", conversation),
        ("its digest", text(&thread["digest"])),
    ])
}

/// A value in a line; what is not there is said so.
fn shown(value: &Value) -> String {
    if value.is_null() { "nothing".to_owned() } else { text(value) }
}
