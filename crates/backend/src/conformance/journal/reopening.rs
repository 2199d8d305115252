//! Promises about what outlives a session: what was acknowledged, and decisions that nobody was there to hear.

use super::desk::{Desk, approval, ask, asked, facts, marked, marks, names, risky, until, used};
use super::{JournalBench, Lever};
use crate::JournalError;

pub async fn j07_a_parked_session_stops_and_its_grant_answers_the_same_request_once(
    bench: &dyn JournalBench,
) {
    let mut parked = Desk::begun(bench).await;
    parked.recorded(ask("first", risky("make tidy"))).await;
    let id = approval(&facts(bench).await, "first");
    bench.pull(Lever::Park).await;
    parked.is_closed().await;
    parked.refuses_for_ever(JournalError::Stopped).await;

    bench.pull(Lever::Answer { approval: id, approved: true }).await;
    let mut desk = Desk::next(bench).await;
    desk.hears_nothing("a session that has not asked is answered nothing").await;
    assert_eq!(used(&facts(bench).await), [], "a decision is held for whoever asks the same");
    desk.recorded(ask("again", risky("make tidy"))).await;
    assert!(desk.answer("again").await.approved, "the decision answers the same request");
    assert_eq!(used(&facts(bench).await), [id], "handed on before that was durable");
    assert_eq!(asked(&facts(bench).await).len(), 1, "nobody is asked what is decided");

    desk.recorded(ask("once more", risky("make tidy"))).await;
    let anew = approval(&facts(bench).await, "once more");
    desk.hears_nothing("a decision is not used twice").await;
    bench.pull(Lever::Answer { approval: anew, approved: true }).await;
    assert!(desk.answer("once more").await.approved);
    assert_eq!(used(&facts(bench).await), [id, anew]);
}

pub async fn j07_a_grant_answers_nothing_but_the_same_request(bench: &dyn JournalBench) {
    let mut parked = Desk::begun(bench).await;
    parked.recorded(ask("first", risky("make tidy"))).await;
    let id = approval(&facts(bench).await, "first");
    bench.pull(Lever::Park).await;
    parked.is_closed().await;
    bench.pull(Lever::Answer { approval: id, approved: true }).await;

    let mut desk = Desk::next(bench).await;
    // The key is the backend's own word and counts for nothing.
    desk.recorded(ask("first", risky("make mess"))).await;
    let other = asked(&facts(bench).await).pop().expect("something is asked").0;
    assert_ne!(other, id, "another request is asked anew");
    desk.hears_nothing("a decision answers what it was made about").await;
    desk.recorded(ask("same", risky("make tidy"))).await;
    assert!(desk.answer("same").await.approved, "the decision still answers the same request");
    bench.pull(Lever::Answer { approval: other, approved: false }).await;
    assert!(!desk.answer("first").await.approved, "and the other has its own answer");
    assert_eq!(used(&facts(bench).await), [id, other]);
}

pub async fn j07_a_decision_that_a_killed_session_never_heard_answers_the_next_one_once(
    bench: &dyn JournalBench,
) {
    let desk = Desk::begun(bench).await;
    desk.recorded(ask("first", risky("make tidy"))).await;
    let id = approval(&facts(bench).await, "first");
    bench.pull(Lever::HoldAnswers).await;
    bench.pull(Lever::Answer { approval: id, approved: true }).await;
    bench.pull(Lever::Kill).await;
    drop(desk);
    assert_eq!(used(&facts(bench).await), []);

    bench.pull(Lever::Reopen).await;
    let mut desk = Desk::next(bench).await;
    desk.recorded(ask("again", risky("make tidy"))).await;
    assert!(desk.answer("again").await.approved, "the decision answers the same request");
    desk.recorded(ask("once more", risky("make tidy"))).await;
    desk.hears_nothing("a decision is not used twice").await;
    assert_eq!((used(&facts(bench).await), asked(&facts(bench).await).len()), (vec![id], 2));
}

pub async fn j05_what_was_acknowledged_survives_a_kill_and_the_next_session_goes_on_after_it(
    bench: &dyn JournalBench,
) {
    let mut expected = Vec::new();
    let mut desk = Desk::begun(bench).await;
    for life in 0..3 {
        for batch in 0..3 {
            let name = format!("life{life}.{batch}");
            desk.recorded(marks(&name, 2)).await;
            expected.extend(names(&name, 2));
        }
        bench.pull(Lever::Kill).await;
        desk.is_closed().await;
        assert_eq!(marked(&facts(bench).await), expected, "what was acknowledged is there");
        bench.pull(Lever::Reopen).await;
        desk = Desk::next(bench).await;
    }
    desk.recorded(marks("last", 1)).await;
    expected.extend(names("last", 1));
    assert_eq!(marked(&facts(bench).await), expected, "a new session goes on after what is there");
}

pub async fn j05_what_a_kill_left_unacknowledged_is_there_whole_or_not_at_all(bench: &dyn JournalBench) {
    let mut expected = Vec::new();
    let mut desk = Desk::begun(bench).await;
    for (name, hold) in [("unheard", Lever::HoldWords), ("unanswered", Lever::HoldAnswers)] {
        bench.pull(hold).await;
        let mut recording = desk.recording(marks(name, 4));
        if hold == Lever::HoldAnswers {
            expected.extend(names(name, 4));
            until(bench, "the batch is durable", |facts| marked(facts).len() >= 4).await;
        }
        recording.waits("nobody has said that it is durable").await;
        bench.pull(Lever::Kill).await;
        recording.give_up();
        assert_eq!(marked(&facts(bench).await), expected, "whole or not at all ({name})");
        bench.pull(Lever::Reopen).await;
        desk = Desk::next(bench).await;
        let after = format!("after-{name}");
        desk.recorded(marks(&after, 1)).await;
        expected.extend(names(&after, 1));
        assert_eq!(marked(&facts(bench).await), expected, "a new session goes on after what is there");
    }
}
