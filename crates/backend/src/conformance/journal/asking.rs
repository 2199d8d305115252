//! Promises about requests: durable before anything waits, answered once, by whom it may be.

use runyard_domain::gate::{Effect, Request};
use runyard_domain::run::RunEvent;

use super::desk::{Desk, approval, ask, asked, facts, risky, used};
use super::{JournalBench, Lever};
use crate::Answer;

pub async fn c12_a_request_is_durable_before_it_waits_and_is_answered_once(bench: &dyn JournalBench) {
    let mut desk = Desk::begun(bench).await;
    for number in 0..3 {
        let key = format!("ask-{number}");
        desk.recorded(ask(&key, risky(&format!("make {number}")))).await;
        let id = approval(&facts(bench).await, &key);
        desk.hears_nothing("nobody has answered yet").await;
        let answer = Lever::Answer { approval: id, approved: true };
        bench.pull(answer).await;
        let heard = desk.answer(&key).await;
        assert_eq!(heard, Answer { approved: true, reason: None, answer: None });
        let used = used(&facts(bench).await);
        assert_eq!(used.iter().filter(|used| **used == id).count(), 1, "handed on before that was durable");
        bench.pull(answer).await;
        desk.hears_nothing("an answer is handed on once").await;
    }
    let facts = facts(bench).await;
    assert_eq!((asked(&facts).len(), used(&facts).len()), (3, 3), "each is asked and handed on once");
}

pub async fn c12_a_rejection_is_handed_on_once(bench: &dyn JournalBench) {
    let mut desk = Desk::begun(bench).await;
    let both = [ask("no", risky("make mess")), ask("yes", risky("make tidy"))].concat();
    desk.recorded(both).await;
    let (no, yes) = (approval(&facts(bench).await, "no"), approval(&facts(bench).await, "yes"));
    bench.pull(Lever::Answer { approval: no, approved: false }).await;
    assert!(!desk.answer("no").await.approved, "a no is a no");
    desk.hears_nothing("the other one is still open").await;
    bench.pull(Lever::Answer { approval: yes, approved: true }).await;
    assert!(desk.answer("yes").await.approved, "a yes is a yes");
    desk.hears_nothing("an answer is handed on once").await;
    assert_eq!(used(&facts(bench).await), [no, yes]);
}

pub async fn c12_an_answer_is_handed_on_only_when_that_is_durable(bench: &dyn JournalBench) {
    let mut desk = Desk::begun(bench).await;
    desk.recorded(ask("ask", risky("make tidy"))).await;
    let id = approval(&facts(bench).await, "ask");
    bench.pull(Lever::HoldWords).await;
    bench.pull(Lever::Answer { approval: id, approved: true }).await;
    desk.hears_nothing("that it is handed on is not durable yet").await;
    assert_eq!(used(&facts(bench).await), []);
    bench.pull(Lever::Connect).await;
    assert!(desk.answer("ask").await.approved);
    assert_eq!(used(&facts(bench).await), [id], "handed on before that was durable");
}

pub async fn c11_what_the_gate_decides_is_answered_only_when_that_is_durable(bench: &dyn JournalBench) {
    let mut desk = Desk::begun(bench).await;
    let read = |path: &str| Request::Read { path: path.to_owned() };
    let cases = [("inside", "notes.txt", Effect::Allow), ("outside", "/etc/hostname", Effect::Deny)];
    for (hold, round) in [(Lever::HoldWords, "1"), (Lever::HoldAnswers, "2")] {
        for (name, path, effect) in cases {
            let key = format!("{name}-{round}");
            bench.pull(hold).await;
            let mut recording = desk.recording(ask(&key, read(path)));
            recording.waits("nobody has said that it is durable").await;
            desk.hears_nothing("it was answered before that was durable").await;
            bench.pull(Lever::Connect).await;
            assert_eq!(desk.answer(&key).await.approved, effect == Effect::Allow, "{key}");
            assert_eq!(
                judged(&facts(bench).await, &key),
                [effect],
                "it was answered before that was durable"
            );
            assert_eq!(recording.over().await, Ok(()));
            desk.hears_nothing("a request is answered once").await;
        }
    }
    assert_eq!(asked(&facts(bench).await), [], "nobody is asked about what the gate decides");
}

/// What the gate decided about this request.
fn judged(facts: &[RunEvent], key: &str) -> Vec<Effect> {
    let judged = facts.iter().filter_map(|fact| match fact {
        RunEvent::GateJudged(judged) if judged.key == key => Some(judged.effect),
        _ => None,
    });
    judged.collect()
}
