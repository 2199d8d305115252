//! What a backend profile says of the agent, as the model's provider and the run find it.

use runyard_backend::Signal;
use runyard_backend::conformance::{Decide, Recorder, Stage};

use super::bench::{Native, errors};

/// What is recorded of a run of the scenario of one's own, with these settings, until its turn is over.
async fn played(native: &Native, settings: &[(&str, &str)]) -> Vec<Signal> {
    let stage = Stage::new(native);
    let mut part = native.part_of("[[scenario:own]]");
    let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    part.profile.settings = settings.collect();
    let recorder = Recorder::new();
    let mut live = stage.fresh(native, &part, &recorder).await;
    live.turn_over(Decide::Approve, 1).await;
    live.close().await;
    recorder.signals()
}

fn calls(signals: &[Signal]) -> usize {
    signals.iter().filter(|signal| matches!(signal, Signal::ToolCall { .. })).count()
}

/// A scenario of so many answers, each with one of these calls in its turn, and a text behind them.
fn calling(tools: &[&str], times: usize) -> String {
    let calls = tools.iter().cycle().take(times);
    let step = |call: &&str| format!("[[step]]\nanswer.call = [{{ {call} }}]\n");
    calls.map(step).collect::<String>() + "[[step]]\nanswer.say = [\"Done.\"]\n"
}

const LIST: &str = r#"tool = "list", arguments = {}"#;
const WRITE: &str = r#"tool = "write", arguments = { path = "a.txt", content = "a" }"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d16_work_that_alternates_is_no_repetition_and_the_same_call_again_and_again_is() {
    let native = Native::playing(&calling(&[WRITE, LIST], 70)).await;
    let told = played(&native, &[]).await;
    assert_eq!((calls(&told), errors(&told)), (70, Vec::new()));

    let native = Native::playing(&calling(&[LIST], 70)).await;
    for (settings, made) in
        [(&[][..], 32), (&[("repetitions_max", "3")], 3), (&[("repetitions_max", "64")], 64)]
    {
        let told = played(&native, settings).await;
        assert_eq!((calls(&told), errors(&told).len()), (made, 1), "{settings:?}");
        let said = format!(
            "the agent stopped at its limit loop_detection: list was called {made} times with the same arguments"
        );
        assert_eq!(errors(&told), [said.as_str()]);
    }
    let told = played(&native, &[("repetitions_max", "0")]).await;
    assert_eq!((calls(&told), errors(&told)), (70, Vec::new()));
}
