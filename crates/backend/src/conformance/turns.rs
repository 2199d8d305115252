//! Promises about turns, requests and steps.

use runyard_domain::CommandId;
use runyard_domain::run::{ToolOutcome, TurnOutcome};

use super::stage::ended;
use super::{
    BATCH_BYTES_MAX, Bench, CHATTER_BYTES_MIN, Decide, Recorder, SIGNAL_BYTES_MAX, Scene, Stage, Summary,
};
use crate::{Command, Ending, Signal};

pub async fn b02_a_session_says_its_thread_begins_its_turn_and_ends_it(bench: &dyn Bench) {
    let stage = Stage::new(bench);
    let recorder = Recorder::new();
    let mut live = stage.fresh(bench, &bench.part(Scene::Talk, &stage), &recorder).await;
    live.turn_over(Decide::Approve, 1).await;
    assert!(!live.session.task.is_finished(), "it waits for the next turn, or to be closed");
    live.close().await;
    let signals = recorder.signals();
    let completed = Signal::TurnEnded { outcome: TurnOutcome::Completed };
    assert_eq!(signals.last(), Some(&completed));
    assert!(signals.contains(&Signal::TurnStarted { command: None }), "the task itself is the first turn");
    let said = |signal: &Signal| matches!(signal, Signal::Message { text, .. } if !text.is_empty());
    assert!(signals.iter().any(said), "it says something: {signals:#?}");
    stage.is_empty().await;
}

pub async fn b02_a_further_turn_names_its_command(bench: &dyn Bench) {
    let stage = Stage::new(bench);
    let recorder = Recorder::new();
    let mut live = stage.fresh(bench, &bench.part(Scene::Talk, &stage), &recorder).await;
    live.turn_over(Decide::Approve, 1).await;
    let id = CommandId::from_bytes([3; 16]);
    live.send(Command::Turn { id, text: "And once more.".to_owned() }).await;
    live.turn_over(Decide::Approve, 2).await;
    live.close().await;
    assert!(recorder.signals().contains(&Signal::TurnStarted { command: Some(id) }));
}

pub async fn c11_an_approved_step_is_done_once_and_has_its_result(bench: &dyn Bench) {
    let stage = Stage::new(bench);
    let recorder = Recorder::new();
    let mut live = stage.fresh(bench, &bench.part(Scene::Act, &stage), &recorder).await;
    live.turn_over(Decide::Approve, 1).await;
    live.close().await;
    let signals = recorder.signals();
    let place = |is: fn(&Signal) -> bool| signals.iter().position(is);
    let asked = place(|signal| matches!(signal, Signal::Ask { .. }));
    let begun = place(|signal| matches!(signal, Signal::ToolCall { .. }));
    let result = place(|signal| matches!(signal, Signal::ToolResult { outcome: ToolOutcome::Succeeded, .. }));
    assert!(asked.is_some() && asked < begun && begun < result, "asked, begun, done: {signals:#?}");
    assert_eq!(stage.marks(), 1, "it is done once");
    stage.is_empty().await;
}

pub async fn c11_a_denied_step_is_not_done_and_the_turn_comes_to_its_end(bench: &dyn Bench) {
    let stage = Stage::new(bench);
    let recorder = Recorder::new();
    let mut live = stage.fresh(bench, &bench.part(Scene::Act, &stage), &recorder).await;
    live.turn_over(Decide::Deny, 1).await;
    let signals = recorder.signals();
    if ended(&signals) {
        live.over().await;
        let blocked = |signal: &Signal| matches!(signal, Signal::Ended { ending: Ending::Blocked { .. } });
        assert!(signals.iter().any(blocked), "a no that ends it is said to block it: {signals:#?}");
    } else {
        live.close().await;
    }
    assert_eq!(stage.marks(), 0, "what was denied is not done");
    let done = |signal: &Signal| matches!(signal, Signal::ToolResult { outcome: ToolOutcome::Succeeded, .. });
    assert!(!signals.iter().any(done), "what was denied did not succeed: {signals:#?}");
}

pub async fn b02_an_interrupt_withdraws_what_was_asked_and_ends_the_turn(bench: &dyn Bench) {
    let stage = Stage::new(bench);
    let recorder = Recorder::new();
    let mut live = stage.fresh(bench, &bench.part(Scene::Act, &stage), &recorder).await;
    live.asked().await;
    live.interrupt().await;
    live.turn_over(Decide::Wait, 1).await;
    live.close().await;
    let signals = recorder.signals();
    let asked = signals.iter().find_map(|signal| match signal {
        Signal::Ask { key, .. } => Some(key.clone()),
        _ => None,
    });
    let withdrawn = Signal::Withdraw { key: asked.expect("something was asked") };
    assert!(signals.contains(&withdrawn), "it no longer asks: {signals:#?}");
    assert_eq!(signals.last(), Some(&Signal::TurnEnded { outcome: TurnOutcome::Interrupted }));
    assert_eq!(stage.marks(), 0);
}

pub async fn b02_an_interrupt_stops_the_step_that_runs(bench: &dyn Bench) {
    let stage = Stage::new(bench);
    let recorder = Recorder::new();
    let mut live = stage.fresh(bench, &bench.part(Scene::Linger, &stage), &recorder).await;
    let begun = |signal: &Signal| matches!(signal, Signal::ToolCall { .. });
    live.until(Decide::Approve, "the step begins", |signals, _| signals.iter().any(begun)).await;
    stage.marked(1).await;
    live.interrupt().await;
    live.turn_over(Decide::Wait, 1).await;
    stage.steps_are_gone().await;
    let signals = recorder.signals();
    assert_eq!(signals.last(), Some(&Signal::TurnEnded { outcome: TurnOutcome::Interrupted }));
    assert!(Summary::of(&signals).open_calls.is_empty(), "the step has a result: {signals:#?}");
    let id = CommandId::from_bytes([4; 16]);
    live.send(Command::Turn { id, text: "Never mind.".to_owned() }).await;
    let started = Signal::TurnStarted { command: Some(id) };
    live.until(Decide::Wait, "a further turn begins", |signals, _| signals.contains(&started)).await;
    live.close().await;
    stage.is_empty().await;
}

pub async fn b02_a_word_into_the_turn_is_said_to_be_heard_before_the_turn_ends(bench: &dyn Bench) {
    let stage = Stage::new(bench);
    let recorder = Recorder::new();
    let mut live = stage.fresh(bench, &bench.part(Scene::Act, &stage), &recorder).await;
    live.asked().await;
    let id = CommandId::from_bytes([6; 16]);
    live.send(Command::Steer { id, text: "Mind the gap.".to_owned() }).await;
    while live.session.commands.capacity() < live.session.commands.max_capacity() {
        tokio::task::yield_now().await;
    }
    live.turn_over(Decide::Approve, 1).await;
    live.close().await;
    let signals = recorder.signals();
    let heard = signals.iter().filter(|signal| **signal == Signal::Heard { command: id }).count();
    assert_eq!(heard, 1, "it has the word, or says why not: {signals:#?}");
    let over = signals.iter().position(|signal| matches!(signal, Signal::TurnEnded { .. }));
    let at = signals.iter().position(|signal| *signal == Signal::Heard { command: id });
    assert!(at < over, "in time for its turn: {signals:#?}");
}

pub async fn b09_every_signal_and_every_batch_is_bounded(bench: &dyn Bench) {
    let stage = Stage::new(bench);
    let recorder = Recorder::new();
    let mut live = stage.fresh(bench, &bench.part(Scene::Chatter, &stage), &recorder).await;
    live.turn_over(Decide::Approve, 1).await;
    live.close().await;
    assert!(chatter_bytes(&recorder.signals()) >= CHATTER_BYTES_MIN, "the scene says or prints enough");
    for batch in recorder.batches() {
        let sizes = batch.iter().map(|signal| serde_json::to_string(signal).expect("a signal is JSON").len());
        let sizes: Vec<usize> = sizes.collect();
        assert!(sizes.iter().all(|size| *size <= SIGNAL_BYTES_MAX), "a signal is too long: {sizes:?}");
        assert!(sizes.iter().sum::<usize>() <= BATCH_BYTES_MAX, "a batch is too long: {sizes:?}");
    }
}

fn chatter_bytes(signals: &[Signal]) -> usize {
    let said = signals.iter().map(|signal| match signal {
        Signal::Delta { text, .. } | Signal::ToolOutput { text, .. } => text.len(),
        _ => 0,
    });
    said.sum()
}
