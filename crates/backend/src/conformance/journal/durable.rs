//! Promises about what `record` returned for: durable, whole, in order, once.

use runyard_domain::run::{RunEvent, ToolOutcome};
use serde_json::json;

use super::desk::{Desk, facts, marked, marks, names, until};
use super::{JournalBench, Lever};
use crate::conformance::{BATCH_BYTES_MAX, SIGNAL_BYTES_MAX};
use crate::{Signal, Stream};

/// Batches of a batch's test.
const BATCHES: usize = 20;
/// So many signals are durable together; a batch of more may be durable in parts, in order, of which a kill leaves the first.
pub const WHOLE_SIGNALS_MAX: usize = 128;

pub async fn j05_what_is_recorded_is_durable_when_record_returns(bench: &dyn JournalBench) {
    let desk = Desk::begun(bench).await;
    let call = |number: usize| format!("call-{number}");
    let mut expected = Vec::new();
    for number in 0..BATCHES {
        let mut batch = marks(&format!("b{number}"), number % 4 + 1);
        expected.extend(names(&format!("b{number}"), number % 4 + 1));
        batch.push(Signal::ToolCall {
            call: call(number),
            tool: "shell".to_owned(),
            summary: "counts".to_owned(),
            arguments: json!({ "number": number }),
            idempotent: false,
        });
        desk.recorded(batch).await;
        let durable = facts(bench).await;
        assert_eq!(marked(&durable), expected, "record returned before its batch was durable");
        let begun = matches!(durable.last(), Some(RunEvent::ToolCall(last)) if last.call == call(number));
        assert!(begun, "a step may begin whose call is not durable: {durable:#?}");
        let (outcome, summary) = (ToolOutcome::Succeeded, "done".to_owned());
        let output =
            Signal::ToolOutput { call: call(number), stream: Stream::Stdout, text: "7\n".to_owned() };
        desk.recorded(vec![output, Signal::ToolResult { call: call(number), outcome, code: None, summary }])
            .await;
        let durable = facts(bench).await;
        let over = matches!(durable.last(), Some(RunEvent::ToolResult(last)) if last.call == call(number));
        assert!(over, "a step's result is not durable: {durable:#?}");
    }
}

pub async fn j05_batches_that_are_recorded_at_once_are_each_whole_and_in_order(bench: &dyn JournalBench) {
    const WRITERS: usize = 4;
    const SIGNALS: usize = 3;
    let desk = Desk::begun(bench).await;
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let journal = desk.journal.clone();
            tokio::spawn(async move {
                for batch in 0..BATCHES {
                    journal.record(marks(&format!("w{writer}.{batch}"), SIGNALS)).await.expect("it is taken");
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.expect("a writer does not panic");
    }
    let found = marked(&facts(bench).await);
    let mut next = [0; WRITERS];
    for batch in found.chunks(SIGNALS) {
        let writer = (0..WRITERS).find(|writer| batch[0].starts_with(&format!("w{writer}.")));
        let writer = writer.expect("a batch is of one of the writers");
        let expected = names(&format!("w{writer}.{}", next[writer]), SIGNALS);
        assert_eq!(batch, expected, "batches are whole, and in the order of whoever recorded them");
        next[writer] += 1;
    }
    assert_eq!(next, [BATCHES; WRITERS], "each batch is there once");
}

pub async fn j05_a_batch_of_many_signals_is_durable_whole_or_not_at_all(bench: &dyn JournalBench) {
    is_whole_after_a_kill(bench, marks("many", WHOLE_SIGNALS_MAX)).await;
}

pub async fn b09_a_batch_of_very_many_signals_is_durable_in_order(bench: &dyn JournalBench) {
    let desk = Desk::begun(bench).await;
    let many = WHOLE_SIGNALS_MAX * 10 + 1;
    desk.recorded(marks("many", many)).await;
    assert_eq!(marked(&facts(bench).await), names("many", many));
    desk.recorded(marks("next", 1)).await;
    assert_eq!(marked(&facts(bench).await).last(), names("next", 1).last(), "and the run goes on");
}

pub async fn j05_a_batch_of_long_signals_is_durable_whole_or_not_at_all(bench: &dyn JournalBench) {
    const LONG_BYTES: usize = 60 * 1024;
    let message = |number: usize, bytes: usize| {
        let (item, text) = (format!("m{number}"), "x".repeat(bytes));
        Signal::Message { item, text }
    };
    let mut batch: Vec<Signal> =
        (0..BATCH_BYTES_MAX / SIGNAL_BYTES_MAX).map(|n| message(n, LONG_BYTES)).collect();
    batch.push(message(batch.len(), 0));
    let rest = BATCH_BYTES_MAX - json_bytes(&batch);
    let last = batch.len() - 1;
    batch[last] = message(last, rest);
    assert_eq!(json_bytes(&batch), BATCH_BYTES_MAX, "as long as a batch may be");
    is_whole_after_a_kill(bench, batch).await;
}

fn json_bytes(batch: &[Signal]) -> usize {
    serde_json::to_string(batch).expect("signals are JSON").len()
}

/// Records it without hearing the hub's answers, so that a journal which makes several of it gets no further than the first,
/// and kills the hub then.
async fn is_whole_after_a_kill(bench: &dyn JournalBench, batch: Vec<Signal>) {
    let desk = Desk::begun(bench).await;
    let before = facts(bench).await.len();
    bench.pull(Lever::HoldAnswers).await;
    let count = batch.len();
    let mut recording = desk.recording(batch);
    until(bench, "some of the batch is durable", |facts| facts.len() > before).await;
    recording.waits("nobody has said that it is durable").await;
    bench.pull(Lever::Kill).await;
    recording.give_up();
    let durable = facts(bench).await.len() - before;
    assert_eq!(durable, count, "a part of the batch is durable, and the rest is lost");
}

pub async fn c18_while_the_hub_is_away_record_waits_and_then_nothing_is_missing(bench: &dyn JournalBench) {
    let desk = Desk::begun(bench).await;
    let mut expected = Vec::new();
    for (name, away) in
        [("words", vec![Lever::HoldWords]), ("both", vec![Lever::HoldWords, Lever::HoldAnswers])]
    {
        for lever in away {
            bench.pull(lever).await;
        }
        let mut recording = desk.recording(marks(name, 3));
        recording.waits("the hub is away").await;
        assert_eq!(marked(&facts(bench).await), expected, "nothing reached the hub");
        bench.pull(Lever::Connect).await;
        assert_eq!(recording.over().await, Ok(()), "the hub is back");
        expected.extend(names(name, 3));
        assert_eq!(marked(&facts(bench).await), expected, "nothing is lost while the hub is away");
    }
}

pub async fn c18_a_batch_whose_answer_comes_late_is_recorded_once(bench: &dyn JournalBench) {
    let desk = Desk::begun(bench).await;
    bench.pull(Lever::HoldAnswers).await;
    let mut recording = desk.recording(marks("late", 3));
    until(bench, "the batch is durable", |facts| marked(facts).len() == 3).await;
    recording.waits("the hub's answer was not heard").await;
    bench.pull(Lever::Connect).await;
    assert_eq!(recording.over().await, Ok(()), "the answer is heard");
    desk.recorded(marks("next", 1)).await;
    let expected = [names("late", 3), names("next", 1)].concat();
    assert_eq!(marked(&facts(bench).await), expected, "each batch is there once");
}
