//! The demo: the first thing that a new user sees.

use runyard_backend::Signal;
use runyard_backend::conformance::{Decide, Recorder, Stage};

use crate::bench::{ScriptedBench, part};

/// Plays a script in a directory with these files, and tells what it did in short lines.
async fn play(script: &str, files: &[(&str, &str)], decide: Decide) -> (Stage, Vec<String>) {
    let stage = Stage::new(&ScriptedBench);
    for (name, content) in files {
        std::fs::write(stage.directory().join(name), content).unwrap();
    }
    let recorder = Recorder::new();
    let mut live = stage.fresh(&ScriptedBench, &part(script), &recorder).await;
    live.turn_over(decide, 1).await;
    live.close().await;
    let lines = recorder.signals().iter().filter_map(line).collect();
    (stage, lines)
}

fn line(signal: &Signal) -> Option<String> {
    let first = |text: &str| text.lines().next().unwrap_or_default().to_owned();
    Some(match signal {
        Signal::Message { text, .. } => format!("says: {}", first(text)),
        Signal::Ask { request, .. } => format!("asks: {}", request.kind()),
        Signal::FileRead { path } => format!("read: {path}"),
        Signal::ToolCall { summary, idempotent, .. } => format!("does: {summary} ({idempotent})"),
        Signal::ToolResult { outcome, .. } => format!("result: {outcome:?}"),
        Signal::Patch { files, .. } => format!("changed: {}", files.join(", ")),
        Signal::TurnEnded { outcome } => format!("turn: {outcome:?}"),
        _ => return None,
    })
}

const HELLO: &str = "says: Hello! I am the demo agent. I follow a script, so I need no key and no model; everything else about this run is real.";
const NEXT: &str = "says: Next I would like to list the files. Running a command needs your approval, so now it is your turn.";
const END: &str = "says: That is all.";

#[tokio::test]
async fn the_demo_reads_says_asks_for_a_command_and_writes_a_file() {
    let (stage, lines) = play("demo", &[("README.md", "# Mine\n\nText.\n")], Decide::Approve).await;
    let read = "says: I read README.md (3 lines). Reading inside the workspace needs no approval, and it is recorded.";
    assert_eq!(
        lines[..lines.len() - 2],
        [
            HELLO,
            "asks: read",
            "read: README.md",
            read,
            NEXT,
            "asks: shell",
            "does: ls -la (true)",
            "result: Succeeded",
            "asks: write",
            "does: write runyard-demo.md (true)",
            "changed: runyard-demo.md",
            "result: Succeeded",
        ]
    );
    assert!(lines[lines.len() - 2].starts_with(END), "{lines:?}");
    let note = std::fs::read_to_string(stage.directory().join("runyard-demo.md")).unwrap();
    assert!(note.contains("Task: count the files\n") && note.contains(&stage.run.to_string()), "{note}");
}

#[tokio::test]
async fn the_demo_works_in_an_empty_directory_and_when_everything_is_denied() {
    let (_, lines) = play("demo", &[], Decide::Approve).await;
    assert!(lines.contains(&"says: There was no file to read.".to_owned()), "{lines:?}");
    assert_eq!(lines.last().unwrap(), "turn: Completed");

    let (stage, lines) = play("demo", &[("a.txt", "")], Decide::Deny).await;
    assert_eq!(
        lines.iter().filter(|line| line.starts_with("says: I was not allowed to")).count(),
        3,
        "{lines:?}"
    );
    assert!(!lines.iter().any(|line| line.starts_with("does:")), "{lines:?}");
    assert_eq!(lines.last().unwrap(), "turn: Completed");
    assert!(!stage.directory().join("runyard-demo.md").exists());
}

#[tokio::test]
async fn the_shortest_script_says_one_word_in_two_batches() {
    let stage = Stage::new(&ScriptedBench);
    let recorder = Recorder::new();
    let mut live = stage.fresh(&ScriptedBench, &part("shortest"), &recorder).await;
    live.turn_over(Decide::Wait, 1).await;
    live.close().await;
    assert_eq!(recorder.batches().iter().map(Vec::len).collect::<Vec<_>>(), [2, 3]);
}
