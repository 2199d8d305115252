//! Promises about refusals: nothing of the batch is stored, nothing later either, and the journal goes on saying so.

use runyard_domain::run::{RunEvent, TurnOutcome};

use super::desk::{Desk, facts, marked, marks, names, until};
use super::{JournalBench, Lever};
use crate::{JournalError, Signal};

pub async fn c18_a_fenced_journal_stores_nothing_and_says_so_for_ever(bench: &dyn JournalBench) {
    let mut desk = Desk::begun(bench).await;
    desk.recorded(marks("before", 1)).await;
    bench.pull(Lever::Fence).await;
    let before = facts(bench).await;
    assert_eq!(desk.record(marks("fenced", 3)).await, Err(JournalError::Fenced), "another owner has the run");
    desk.refuses_for_ever(JournalError::Fenced).await;
    desk.is_closed().await;
    desk.refuses_for_ever(JournalError::Fenced).await;
    assert_eq!(facts(bench).await, before, "nothing that was fenced off is stored");
}

pub async fn c18_a_batch_that_waits_while_the_run_is_fenced_is_not_stored(bench: &dyn JournalBench) {
    let mut desk = Desk::begun(bench).await;
    bench.pull(Lever::HoldWords).await;
    let mut recording = desk.recording(marks("fenced", 3));
    recording.waits("the hub is away").await;
    bench.pull(Lever::Fence).await;
    let before = facts(bench).await;
    bench.pull(Lever::Connect).await;
    assert_eq!(recording.over().await, Err(JournalError::Fenced), "another owner has the run");
    desk.refuses_for_ever(JournalError::Fenced).await;
    desk.is_closed().await;
    assert_eq!(facts(bench).await, before, "nothing that was fenced off is stored");
}

pub async fn c22_a_cancelled_run_stores_nothing_more_and_its_journal_stops_for_ever(
    bench: &dyn JournalBench,
) {
    let mut desk = Desk::begun(bench).await;
    desk.recorded(marks("before", 1)).await;
    bench.pull(Lever::Cancel).await;
    desk.refuses_for_ever(JournalError::Stopped).await;
    desk.is_closed().await;
    desk.refuses_for_ever(JournalError::Stopped).await;
    let facts = facts(bench).await;
    assert_eq!(marked(&facts), names("before", 1), "nothing is stored after the end");
    assert!(matches!(facts.last(), Some(RunEvent::Cancelled(_))), "the end is last: {facts:#?}");
}

pub async fn c22_a_batch_that_waits_while_the_run_is_cancelled_is_not_stored(bench: &dyn JournalBench) {
    let mut desk = Desk::begun(bench).await;
    bench.pull(Lever::HoldWords).await;
    let mut recording = desk.recording(marks("late", 3));
    recording.waits("the hub is away").await;
    bench.pull(Lever::Cancel).await;
    bench.pull(Lever::Connect).await;
    assert_eq!(recording.over().await, Err(JournalError::Stopped), "the run has ended");
    desk.refuses_for_ever(JournalError::Stopped).await;
    desk.is_closed().await;
    let facts = facts(bench).await;
    assert_eq!(marked(&facts), Vec::<String>::new(), "nothing is stored after the end");
    assert!(matches!(facts.last(), Some(RunEvent::Cancelled(_))), "the end is last: {facts:#?}");
}

pub async fn c22_a_batch_that_was_durable_before_the_run_was_cancelled_is_acknowledged(
    bench: &dyn JournalBench,
) {
    let mut desk = Desk::begun(bench).await;
    bench.pull(Lever::HoldAnswers).await;
    let mut recording = desk.recording(marks("before", 3));
    until(bench, "the batch is durable", |facts| marked(facts).len() == 3).await;
    recording.waits("the hub's answer was not heard").await;
    bench.pull(Lever::Cancel).await;
    bench.pull(Lever::Connect).await;
    assert_eq!(recording.over().await, Ok(()), "who is refused may rely on it that nothing was stored");
    desk.refuses_for_ever(JournalError::Stopped).await;
    desk.is_closed().await;
    assert_eq!(marked(&facts(bench).await), names("before", 3));
}

pub async fn c22_nothing_is_recorded_after_the_run_has_ended(bench: &dyn JournalBench) {
    let mut desk = Desk::begun(bench).await;
    let said = Signal::Message { item: "m".to_owned(), text: "All done.".to_owned() };
    desk.recorded(vec![said, Signal::TurnEnded { outcome: TurnOutcome::Completed }]).await;
    let ended = facts(bench).await;
    assert!(matches!(ended.last(), Some(RunEvent::Completed(_))), "the end is durable: {ended:#?}");
    desk.refuses_for_ever(JournalError::Stopped).await;
    desk.is_closed().await;
    desk.refuses_for_ever(JournalError::Stopped).await;
    assert_eq!(facts(bench).await, ended, "nothing is stored after the end");
}
