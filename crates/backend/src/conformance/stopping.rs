//! Promises about being closed.

use super::{Bench, Decide, Kept, Recorder, Scene, Stage, What, When};
use crate::Signal;

pub async fn c17_closing_between_turns_leaves_nothing(bench: &dyn Bench) {
    let stage = Stage::new(bench);
    let recorder = Recorder::new();
    let mut live = stage.fresh(bench, &bench.part(Scene::Talk, &stage), &recorder).await;
    live.turn_over(Decide::Approve, 1).await;
    let before = recorder.signals();
    live.close().await;
    assert_eq!(recorder.signals(), before, "closing says nothing");
    stage.is_empty().await;
}

pub async fn c17_closing_while_it_asks_leaves_the_request_open(bench: &dyn Bench) {
    let stage = Stage::new(bench);
    let recorder = Recorder::new();
    let mut live = stage.fresh(bench, &bench.part(Scene::Act, &stage), &recorder).await;
    live.asked().await;
    live.close().await;
    let withdrawn = |signal: &Signal| matches!(signal, Signal::Withdraw { .. } | Signal::TurnEnded { .. });
    assert!(!recorder.signals().iter().any(withdrawn), "who is closed may be opened again, and asks still");
    assert_eq!(stage.marks(), 0);
    stage.is_empty().await;
}

pub async fn c17_closing_stops_the_step_that_runs(bench: &dyn Bench) {
    let stage = Stage::new(bench);
    let recorder = Recorder::new();
    let mut live = stage.fresh(bench, &bench.part(Scene::Linger, &stage), &recorder).await;
    let begun = |signal: &Signal| matches!(signal, Signal::ToolCall { .. });
    live.until(Decide::Approve, "the step begins", |signals, _| signals.iter().any(begun)).await;
    stage.marked(1).await;
    live.close().await;
    stage.is_empty().await;
}

pub async fn c17_closing_does_not_wait_for_a_batch(bench: &dyn Bench) {
    for kept in [Kept::No, Kept::Yes] {
        let stage = Stage::new(bench);
        let recorder = Recorder::with(When::Batch(1), What::Hold(kept));
        let mut live = stage.fresh(bench, &bench.part(Scene::Act, &stage), &recorder).await;
        assert!(live.held(Decide::Approve).await, "the scene has more than one batch");
        live.close().await;
        stage.is_empty().await;
    }
}
