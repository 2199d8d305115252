//! Promises about the journal: durable before done, nothing after a refusal, and waiting is waiting.

use super::stage::{ended, turns_over};
use super::{Bench, Decide, Kept, Recorder, Scene, Stage, Summary, What, When};
use crate::{Answer, Command, JournalError, Signal, Stream};

/// How many batches a scene has at most.
pub(super) const BATCHES_MAX: usize = 200;

pub async fn j05_nothing_is_done_before_its_call_is_durable(bench: &dyn Bench) {
    let stage = Stage::new(bench);
    let call = When::Has(|signal| matches!(signal, Signal::ToolCall { .. }));
    let recorder = Recorder::with(call, What::Hold(Kept::No));
    let mut live = stage.fresh(bench, &bench.part(Scene::Act, &stage), &recorder).await;
    assert!(live.held(Decide::Approve).await, "a step is begun: {:#?}", recorder.signals());
    assert_eq!(stage.marks_after_a_while().await, 0, "the step was done before its call was durable");
    live.close().await;
    assert_eq!(stage.marks(), 0, "the step was done though its call never became durable");
}

pub async fn j05_nothing_is_done_before_its_request_is_durable(bench: &dyn Bench) {
    let stage = Stage::new(bench);
    let ask = When::Has(|signal| matches!(signal, Signal::Ask { .. }));
    let recorder = Recorder::with(ask, What::Hold(Kept::Yes));
    let mut live = stage.fresh(bench, &bench.part(Scene::Act, &stage), &recorder).await;
    assert!(live.held(Decide::Wait).await, "something is asked");
    let signals = recorder.signals();
    let Some(Signal::Ask { key, .. }) = signals.last() else { panic!("the request is last in its batch") };
    let answer = Answer { approved: true, reason: None, answer: None };
    live.send(Command::Answer { key: key.clone(), answer }).await;
    assert_eq!(stage.marks_after_a_while().await, 0, "the step was done before its request was durable");
    assert_eq!(recorder.signals(), signals, "nothing else is recorded meanwhile");
    recorder.release();
    live.turn_over(Decide::Approve, 1).await;
    live.close().await;
    assert_eq!(stage.marks(), 1);
}

pub async fn j05_a_refused_batch_ends_the_session_and_nothing_is_done_after(bench: &dyn Bench) {
    for refusal in [JournalError::Fenced, JournalError::Stopped] {
        for batch in 0..BATCHES_MAX {
            let stage = Stage::new(bench);
            let recorder = Recorder::with(When::Batch(batch), What::Refuse(refusal));
            let mut live = stage.fresh(bench, &bench.part(Scene::Act, &stage), &recorder).await;
            live.until(Decide::Approve, "a batch is refused, or all are recorded", |signals, recorder| {
                recorder.has_refused() || turns_over(signals) > 0 || ended(signals)
            })
            .await;
            if !recorder.has_refused() {
                assert!(batch > 0, "something is recorded");
                live.close().await;
                break;
            }
            live.over().await;
            let begun = Summary::of(&recorder.signals()).steps.len();
            assert!(stage.marks() <= begun, "a step was done whose call is not durable (batch {batch})");
            stage.is_empty().await;
        }
    }
}

pub async fn c08_while_a_batch_waits_nothing_goes_on_and_then_nothing_is_missing(bench: &dyn Bench) {
    let stage = Stage::new(bench);
    let recorder = Recorder::new();
    let mut live = stage.fresh(bench, &bench.part(Scene::Chatter, &stage), &recorder).await;
    live.turn_over(Decide::Approve, 1).await;
    live.close().await;
    let all = chattered(&recorder.signals());
    for batch in [0, 2, 5] {
        let stage = Stage::new(bench);
        let recorder = Recorder::with(When::Batch(batch), What::Hold(Kept::No));
        let mut live = stage.fresh(bench, &bench.part(Scene::Chatter, &stage), &recorder).await;
        assert!(live.held(Decide::Approve).await, "the scene has more than {batch} batches");
        let before = recorder.signals();
        stage.marks_after_a_while().await;
        assert_eq!(recorder.signals(), before, "nothing is recorded while a batch waits");
        recorder.release();
        live.turn_over(Decide::Approve, 1).await;
        live.close().await;
        let told = chattered(&recorder.signals());
        let bytes = |texts: &[String; 3]| texts.each_ref().map(String::len);
        assert!(told == all, "nothing is missing: {:?} of {:?} bytes", bytes(&told), bytes(&all));
    }
}

/// All that was said, and all that was printed to each stream.
fn chattered(signals: &[Signal]) -> [String; 3] {
    let mut texts = [const { String::new() }; 3];
    for signal in signals {
        match signal {
            Signal::Delta { text, .. } => texts[0].push_str(text),
            Signal::ToolOutput { stream: Stream::Stdout, text, .. } => texts[1].push_str(text),
            Signal::ToolOutput { stream: Stream::Stderr, text, .. } => texts[2].push_str(text),
            _ => {}
        }
    }
    texts
}
