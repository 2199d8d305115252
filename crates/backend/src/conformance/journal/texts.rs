//! Promises about what becomes of texts: no secret in them, few pieces, and nothing missing.

use runyard_domain::gate::Request;
use runyard_domain::run::{RunEvent, ToolOutcome, TurnOutcome};
use serde_json::json;

use super::JournalBench;
use super::desk::{Desk, approval, ask, facts, risky};
use crate::{Signal, Stream};

/// Pieces of a text.
const PIECES: usize = 300;

pub async fn b11_no_secret_is_stored_whatever_signal_holds_it(bench: &dyn JournalBench) {
    let mut desk = Desk::begun(bench).await;
    let secrets = bench.secrets();
    assert!(!secrets.is_empty(), "there is something to hide");
    for (number, secret) in secrets.iter().enumerate() {
        desk.recorded(with_secret(number, secret)).await;
        // Cut by the pieces of a text, and by the batches that they come in.
        for cut in [1, secret.len() / 2, secret.len() - 1] {
            let item = format!("cut-{number}-{cut}");
            let (one, other) = secret.split_at(cut);
            let piece = |text: String| Signal::Delta { item: item.clone(), text };
            desk.recorded(vec![piece(format!("it is {one}"))]).await;
            desk.recorded(vec![piece(format!("{other}, see"))]).await;
            let text = format!("it is {secret}, see");
            desk.recorded(vec![Signal::Message { item: item.clone(), text }]).await;
        }
        let key = format!("ask-{number}");
        desk.recorded(ask(&key, risky(&format!("curl -u me:{secret} example.org")))).await;
        approval(&facts(bench).await, &key);
        let inside = Request::Read { path: format!("notes/{secret}") };
        desk.recorded(ask(&format!("read-{number}"), inside)).await;
        desk.answer(&format!("read-{number}")).await;
    }
    let durable = bench.durable().await;
    let stored = serde_json::to_string(&durable.events).expect("events are JSON");
    assert!(stored.contains("it is "), "what holds a secret is stored without it");
    for secret in secrets {
        assert!(!stored.contains(&secret), "an event holds a secret: {stored}");
        assert!(!durable.rows.contains(&secret), "a row holds a secret: {}", durable.rows);
    }
}

/// One of each signal that carries text.
fn with_secret(number: usize, secret: &str) -> Vec<Signal> {
    let text = || format!("the word is {secret} today");
    let call = format!("call-{number}");
    vec![
        Signal::Status {
            phase: text(),
            model: Some(text()),
            version: Some(text()),
            thread: None,
            usage: None,
        },
        Signal::Message { item: format!("m-{number}"), text: text() },
        Signal::ToolCall {
            call: call.clone(),
            tool: "shell".to_owned(),
            summary: text(),
            arguments: json!({ "command": text(), "deep": [{ "er": secret }] }),
            idempotent: true,
        },
        Signal::ToolOutput { call: call.clone(), stream: Stream::Stdout, text: text() },
        Signal::ToolOutput { call: call.clone(), stream: Stream::Stderr, text: text() },
        Signal::ToolResult { call, outcome: ToolOutcome::Succeeded, code: None, summary: text() },
        Signal::FileRead { path: format!("notes/{secret}") },
        Signal::Patch { files: vec![format!("notes/{secret}")], summary: text() },
        Signal::Degraded { reason: text() },
        Signal::Error { failure_kind: None, message: text(), retrying: true },
    ]
}

pub async fn b09_pieces_of_text_are_put_together_and_nothing_of_the_text_is_missing(
    bench: &dyn JournalBench,
) {
    let desk = Desk::begun(bench).await;
    let pieces: Vec<String> = (0..PIECES).map(|number| format!("wörd {number} ")).collect();
    let (item, call) = ("m".to_owned(), "c".to_owned());
    let delta = |text: &String| Signal::Delta { item: item.clone(), text: text.clone() };
    let output =
        |text: &String| Signal::ToolOutput { call: call.clone(), stream: Stream::Stdout, text: text.clone() };
    let text = pieces.concat();

    desk.recorded(pieces.iter().map(delta).collect()).await;
    desk.recorded(vec![Signal::Message { item: item.clone(), text: text.clone() }]).await;
    desk.recorded(vec![Signal::ToolCall {
        call: call.clone(),
        tool: "shell".to_owned(),
        summary: "talks".to_owned(),
        arguments: json!({}),
        idempotent: true,
    }])
    .await;
    desk.recorded(pieces.iter().map(output).collect()).await;
    let (outcome, summary) = (ToolOutcome::Succeeded, "done".to_owned());
    desk.recorded(vec![Signal::ToolResult { call: call.clone(), outcome, code: None, summary }]).await;

    let durable = facts(bench).await;
    let said = said(&durable, &item);
    check_pieces(&said, &text);
    let printed: Vec<(u64, String)> = durable
        .iter()
        .filter_map(|fact| match fact {
            RunEvent::ToolOutput(output) => Some((output.offset, output.text.clone())),
            _ => None,
        })
        .collect();
    check_pieces(&printed, &text);
}

pub async fn b09_text_that_waits_is_durable_before_what_comes_after_it(bench: &dyn JournalBench) {
    let desk = Desk::begun(bench).await;
    let delta = |item: &str| Signal::Delta { item: item.to_owned(), text: format!("about {item} \n") };
    // A further signal, a request and the end of the turn.
    desk.recorded(vec![delta("one")]).await;
    desk.recorded(vec![Signal::FileRead { path: "notes.txt".to_owned() }]).await;
    assert_eq!(said(&facts(bench).await, "one"), [(0, "about one \n".to_owned())]);
    desk.recorded(vec![delta("two")]).await;
    desk.recorded(ask("ask", risky("make tidy"))).await;
    assert_eq!(said(&facts(bench).await, "two"), [(0, "about two \n".to_owned())]);
    desk.recorded(vec![delta("three"), Signal::TurnEnded { outcome: TurnOutcome::Completed }]).await;
    assert_eq!(said(&facts(bench).await, "three"), [(0, "about three \n".to_owned())]);
}

/// The pieces of a message, each with its place.
fn said(facts: &[RunEvent], item: &str) -> Vec<(u64, String)> {
    let said = facts.iter().filter_map(|fact| match fact {
        RunEvent::MessageDelta(delta) if delta.item == item => Some((delta.offset, delta.text.clone())),
        _ => None,
    });
    said.collect()
}

#[track_caller]
fn check_pieces(pieces: &[(u64, String)], text: &str) {
    let mut whole = String::new();
    for (offset, piece) in pieces {
        assert_eq!(*offset, whole.len() as u64, "each piece begins where the one before ended");
        whole.push_str(piece);
    }
    assert_eq!(whole, text, "nothing of the text is missing");
    assert!(pieces.len() < PIECES / 10, "small pieces are put together: {}", pieces.len());
}
