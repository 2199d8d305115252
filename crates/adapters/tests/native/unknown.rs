//! A session that goes on where nobody knows what became of a call, or of its own last step.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use runyard_backend::conformance::{Decide, Kept, Part, Recorder, Stage, What, When};
use runyard_backend::{Ending, LeftOver, SessionSpec, Signal};
use runyard_domain::Code;
use runyard_domain::run::ThreadRecorded;
use serde_json::json;

use crate::HELD;
use crate::bench::{Native, conversation, resumed};
use crate::words::say;

/// What a session is given whose earlier process died over its call.
async fn left_open(native: &Native, stage: &Stage, part: &Part) -> SessionSpec {
    let recorder = Recorder::new();
    let mut live = stage.fresh(native, part, &recorder).await;
    let calls = |signal: &Signal| matches!(signal, Signal::ToolCall { .. });
    live.until(Decide::Approve, "it is called", |signals, _| signals.iter().any(calls)).await;
    stage.marked(1).await;
    live.kill().await;
    std::fs::write(stage.directory().join("go"), "").unwrap();
    let history: Vec<ThreadRecorded> = recorder
        .signals()
        .into_iter()
        .filter_map(|signal| match signal {
            Signal::Thread(recorded) => Some(recorded),
            _ => None,
        })
        .collect();
    let left = LeftOver { begun: BTreeSet::from(["2.0".to_owned()]), rejected: None };
    SessionSpec { history, left: Some(left), ..stage.spec(part, resumed(part, true)) }
}

#[tokio::test]
async fn j05_a_call_that_is_over_though_nobody_knows_of_it_is_named_with_the_runs_end() {
    let native = Native::new().await;
    let stage = Stage::new(&native);
    let mut part = native.part_of(HELD);
    part.profile.settings = BTreeMap::from([("time_max_ms".to_owned(), "60000".to_owned())]);
    let mut spec = left_open(&native, &stage, &part).await;
    // Its time is up while a word is recorded, before anybody is asked.
    let stood = spec.history.iter_mut().rev().find_map(|recorded| recorded.state.get_mut("loop/record"));
    stood.unwrap()["elapsedMs"] = json!(60_000);
    let keeps_it = |signal: &Signal| matches!(signal, Signal::Heard { .. });
    let recorder = Recorder::with(When::Has(keeps_it), What::Hold(Kept::Yes));
    let mut live = stage.play(&native, spec, &recorder).await;
    say(&live, [(1, "mind the gap".to_owned())]).await;
    assert!(live.held(Decide::Wait).await);
    // Behind the timer of the turn.
    tokio::time::sleep(Duration::from_millis(10)).await;
    recorder.release();
    live.turn_over(Decide::Wait, 1).await;
    // It ends a step that an earlier session began.
    (&mut live.session.task).await.unwrap();
    let told = recorder.signals();
    let Some(Signal::Ended { ending: Ending::Blocked { code, step, .. } }) = told.last() else {
        panic!("{told:#?}");
    };
    let held = "echo - >> marker; while [ ! -e go ]; do sleep 0.01; done";
    assert_eq!((*code, step.as_deref()), (Code::OutcomeUnknown, Some(held)));
    let results = told
        .iter()
        .filter(|signal| matches!(signal, Signal::ToolResult { code: Some(Code::OutcomeUnknown), .. }));
    assert_eq!(results.count(), 1, "it is over: {told:#?}");
}

#[tokio::test]
async fn j05_a_turn_whose_last_step_nobody_knows_of_stops_the_session_also_with_a_call_of_unknown_outcome() {
    let native = Native::new().await;
    let stage = Stage::new(&native);
    let part = native.part_of(HELD);
    let spec = left_open(&native, &stage, &part).await;
    let is_result = |signal: &Signal| matches!(signal, Signal::ToolResult { .. });
    let recorder = Recorder::with(When::Has(is_result), What::Hold(Kept::No));
    let mut live = stage.play(&native, spec, &recorder).await;
    live.asked().await;
    live.interrupt().await;
    assert!(live.held(Decide::Wait).await);
    // From here on nothing happens but that time passes.
    tokio::time::pause();
    let stopped = tokio::time::timeout(Duration::from_secs(600), &mut live.session.task).await;
    tokio::time::resume();
    stopped.expect("it stops").unwrap();
    recorder.release();
    let told = recorder.signals();
    let over = |signal: &Signal| matches!(signal, Signal::Ended { .. } | Signal::TurnEnded { .. });
    assert!(!told.iter().any(over), "what became of it is not known: {told:#?}");
}

/// An answer that is longer than one record may be.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d10_the_beginning_of_an_answer_that_our_own_agent_recorded_is_never_taken_for_the_whole() {
    let words = "word ".repeat(180 * 1024);
    let native = Native::playing(&format!("[[step]]\nanswer.say = [\"{words}\"]\n")).await;
    let stage = Stage::new(&native);
    let part = native.part_of("[[scenario:own]]");
    let rest = |signal: &Signal| matches!(signal, Signal::Thread(recorded) if recorded.after == 2);
    let recorder = Recorder::with(When::Has(rest), What::Hold(Kept::No));
    let mut live = stage.fresh(&native, &part, &recorder).await;
    assert!(live.held(Decide::Wait).await);
    live.kill().await;
    assert_eq!(conversation(&recorder.signals()), ["user", "assistant"], "the rest is not recorded");
    let asked = native.provider.requests().len();
    let next = Recorder::new();
    let mut live = stage.open(&native, &part, resumed(&part, true), &next).await;
    live.turn_over(Decide::Wait, 1).await;
    live.close().await;
    assert_eq!(native.provider.requests().len(), asked + 1, "it is asked for the rest");
    let all = [recorder.signals(), next.signals()].concat();
    assert_eq!(conversation(&all), ["user", "assistant", "user", "assistant", "assistant"]);
}
