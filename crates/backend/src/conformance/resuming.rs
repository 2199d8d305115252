//! Promises about sessions that are opened again: killed at any batch, or parked while they ask.

use super::recording::BATCHES_MAX;
use super::{Bench, Decide, Kept, Part, Recorder, Scene, Stage, Summary, What, When};
use crate::{Signal, Start};

pub async fn j05_a_killed_session_goes_on_after_the_last_recorded_step(bench: &dyn Bench) {
    for kept in [Kept::No, Kept::Yes] {
        for batch in 0..BATCHES_MAX {
            if !killed_at(bench, batch, kept).await {
                assert!(batch > 0, "something is recorded");
                break;
            }
        }
    }
}

/// Kills the session when it waits for this batch, and opens it again. Says whether there was such a batch.
async fn killed_at(bench: &dyn Bench, batch: usize, kept: Kept) -> bool {
    let stage = Stage::new(bench);
    let part = bench.part(Scene::Act, &stage);
    let before = Recorder::with(When::Batch(batch), What::Hold(kept));
    let mut live = stage.fresh(bench, &part, &before).await;
    if !live.held(Decide::Approve).await {
        live.close().await;
        return false;
    }
    live.kill().await;
    let left = Summary::of(&before.signals());
    if left.ended {
        return true;
    }
    let after = Recorder::new();
    let mut live = stage.open(bench, &part, again(&part, &left), &after).await;
    if left.turn_active || !left.turn_begun {
        live.turn_over(Decide::Approve, 1).await;
    } else {
        let told = |signals: &[Signal], _: &Recorder| !signals.is_empty();
        live.until(Decide::Wait, "it is there again", told).await;
    }
    live.close().await;

    let place = format!("killed at batch {batch}, kept: {kept:?}");
    if !left.turn_active && left.turn_begun {
        let turns = |signal: &Signal| matches!(signal, Signal::TurnStarted { .. } | Signal::ToolCall { .. });
        assert!(!after.signals().iter().any(turns), "a turn that is over does not begin again ({place})");
    }
    let whole = [before.signals(), after.signals()].concat();
    for (call, (begun, results)) in Summary::of(&whole).steps {
        if left.open_calls.contains(&call) {
            assert!(begun <= 2 && results <= 1, "{call} was open: {begun} times begun ({place})");
        } else {
            assert_eq!((begun, results), (1, 1), "{call} is begun and ended once ({place}): {whole:#?}");
        }
    }
    let most = if left.open_calls.is_empty() { 1 } else { 2 };
    assert!((1..=most).contains(&stage.marks()), "done {} times ({place}): {whole:#?}", stage.marks());
    stage.is_empty().await;
    true
}

/// How a session is opened again. One whose turn never began is opened afresh.
fn again(part: &Part, left: &Summary) -> Start {
    let task = part.task.clone();
    if !left.turn_begun {
        return Start::Fresh { task, thread: None };
    }
    Start::Resume { task, thread: left.thread.clone(), turn_active: left.turn_active }
}

pub async fn j07_a_parked_session_asks_for_exactly_the_same_again(bench: &dyn Bench) {
    let stage = Stage::new(bench);
    let part = bench.part(Scene::Act, &stage);
    let before = Recorder::new();
    let mut live = stage.fresh(bench, &part, &before).await;
    live.asked().await;
    live.close().await;

    let after = Recorder::new();
    let start = again(&part, &Summary::of(&before.signals()));
    let mut live = stage.open(bench, &part, start, &after).await;
    live.asked().await;
    assert_eq!(requests(&after), requests(&before), "only exactly the same is answered by what was decided");
    live.turn_over(Decide::Approve, 1).await;
    live.close().await;
    assert_eq!(stage.marks(), 1);
}

fn requests(recorder: &Recorder) -> Vec<runyard_domain::gate::Request> {
    let signals = recorder.signals().into_iter();
    let asked = signals.filter_map(|signal| match signal {
        Signal::Ask { request, .. } => Some(request),
        _ => None,
    });
    asked.collect()
}
