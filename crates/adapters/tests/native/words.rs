//! Words into a turn: none is lost with the process that took it, and none is said to be heard before it is kept.

use std::sync::Arc;

use runyard_backend::conformance::{Decide, Kept, Live, Recorder, Stage, What, When};
use runyard_backend::{Answer, Command, Signal};
use runyard_domain::CommandId;
use runyard_domain::run::TurnOutcome;
use serde_json::json;

use crate::bench::{Native, errors, resumed};
use crate::{HELD, TWO};

fn named(number: u8) -> CommandId {
    CommandId::from_bytes([number; 16])
}

/// Says words into the turn that runs, and waits until the session has taken them in.
pub(crate) async fn say(live: &Live, words: impl IntoIterator<Item = (u8, String)>) {
    for (number, text) in words {
        live.send(Command::Steer { id: named(number), text }).await;
    }
    while live.session.commands.capacity() < live.session.commands.max_capacity() {
        tokio::task::yield_now().await;
    }
}

fn heard(signals: &[Signal]) -> Vec<CommandId> {
    let heard = signals.iter().filter_map(|signal| match signal {
        Signal::Heard { command } => Some(*command),
        _ => None,
    });
    heard.collect()
}

/// The words of people in the conversation that the log holds, but for the task.
fn said(signals: &[Signal]) -> Vec<String> {
    let recorded = signals.iter().filter_map(|signal| match signal {
        Signal::Thread(recorded) => Some(&recorded.messages),
        _ => None,
    });
    let words = recorded.flatten().filter(|message| message["role"] == "user");
    words.skip(1).map(|word| word["content"][0]["text"].as_str().unwrap().to_owned()).collect()
}

fn holds(signal: &Signal, is: fn(&str) -> bool) -> bool {
    let Signal::Thread(recorded) = signal else { return false };
    recorded.messages.iter().filter_map(|message| message["content"][0]["text"].as_str()).any(is)
}

/// A session whose agent runs a command that waits for the file `go`.
async fn at_work(native: &Native, stage: &Stage, task: &str, recorder: &Arc<Recorder>) -> Live {
    let mut live = stage.fresh(native, &native.part_of(task), recorder).await;
    let calls = |signal: &Signal| matches!(signal, Signal::ToolCall { .. });
    live.until(Decide::Approve, "it is called", |signals, _| signals.iter().any(calls)).await;
    stage.marked(1).await;
    live
}

fn let_go(stage: &Stage) {
    std::fs::write(stage.directory().join("go"), "").unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b02_words_that_come_in_several_steps_are_all_there_when_a_death_comes_between_these() {
    let native = Native::new().await;
    let stage = Stage::new(&native);
    let words: Vec<(u8, String)> = (1..=20).map(|n| (n, format!("word {n}"))).collect();
    let last = |signal: &Signal| holds(signal, |text| text == "word 20");
    let recorder = Recorder::with(When::Has(last), What::Hold(Kept::No));
    let mut live = at_work(&native, &stage, HELD, &recorder).await;
    say(&live, words.clone()).await;
    let_go(&stage);
    assert!(live.held(Decide::Approve).await);
    live.kill().await;
    let (first, kept) = (recorder.signals(), said(&recorder.signals()).len());
    assert!((1..20).contains(&kept), "the death came between two steps: {kept}");
    assert_eq!(heard(&first).len(), kept, "who has no record of it has not heard it");

    let next = Recorder::with(When::Batch(0), What::Hold(Kept::Yes));
    let part = native.part_of(HELD);
    let mut live = stage.open(&native, &part, resumed(&part, true), &next).await;
    assert!(live.held(Decide::Wait).await);
    let unheard = words.iter().filter(|(number, _)| !heard(&first).contains(&named(*number)));
    say(&live, unheard.cloned()).await;
    next.release();
    live.turn_over(Decide::Approve, 1).await;
    live.close().await;
    let all = [first, next.signals()].concat();
    let expected: Vec<String> = words.into_iter().map(|(_, text)| text).collect();
    assert_eq!(said(&all), expected, "each is there once");
    assert_eq!(heard(&all).len(), 20);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b02_a_word_that_is_kept_beside_the_conversation_is_heard_once_and_said_once() {
    let native = Native::playing(TWO).await;
    let stage = Stage::new(&native);
    let recorder = Recorder::new();
    let mut live = at_work(&native, &stage, "[[scenario:own]]", &recorder).await;
    say(&live, [(1, "mind the gap".to_owned())]).await;
    let_go(&stage);
    let asks = |signal: &&Signal| matches!(signal, Signal::Ask { .. });
    live.until(Decide::Wait, "the second is asked about", |signals, _| {
        signals.iter().filter(asks).count() > 1
    })
    .await;
    assert_eq!((heard(&recorder.signals()), said(&recorder.signals())), (vec![named(1)], Vec::new()));
    live.kill().await;

    // The same words, said again: they are other ones.
    let next = Recorder::new();
    let part = native.part_of("[[scenario:own]]");
    let mut live = stage.open(&native, &part, resumed(&part, true), &next).await;
    live.asked().await;
    say(&live, [(2, "mind the gap".to_owned())]).await;
    live.turn_over(Decide::Approve, 1).await;
    live.close().await;
    assert_eq!(heard(&next.signals()), [named(2)]);
    let all = [recorder.signals(), next.signals()].concat();
    assert_eq!(said(&all), ["mind the gap", "mind the gap"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b02_a_word_is_heard_once_whichever_batch_of_a_turn_that_comes_to_wait_is_being_recorded() {
    let native = Native::new().await;
    let part = native.part_of(r#"[[scenario:tool ask {"question": "Which one?"}]]"#);
    let asks = |signal: &Signal| matches!(signal, Signal::Ask { .. });
    let mut at = 0;
    loop {
        let stage = Stage::new(&native);
        let recorder = Recorder::with(When::Batch(at), What::Hold(Kept::Yes));
        let mut live = stage.fresh(&native, &part, &recorder).await;
        assert!(live.held(Decide::Wait).await);
        let waits = recorder.signals().iter().any(asks);
        say(&live, [(1, "mind the gap".to_owned())]).await;
        recorder.release();
        live.asked().await;
        let key = recorder.signals().into_iter().find_map(|signal| match signal {
            Signal::Ask { key, .. } => Some(key),
            _ => None,
        });
        let answer = Answer { approved: true, reason: None, answer: Some(json!({"answer": "blue"})) };
        live.send(Command::Answer { key: key.unwrap(), answer }).await;
        live.turn_over(Decide::Wait, 1).await;
        live.close().await;
        let asked = native.last_asked();
        assert!(asked.contains("mind the gap") && asked.contains("blue"), "{at}: {asked}");
        let told = recorder.signals();
        assert_eq!((errors(&told), heard(&told)), (Vec::new(), vec![named(1)]), "{at}");
        if waits {
            break;
        }
        at += 1;
    }
    assert!(at > 3, "it comes to wait after some steps: {at}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b02_a_word_that_comes_too_late_for_its_turn_is_told_of_before_the_turn_ends() {
    let native = Native::new().await;
    let stage = Stage::new(&native);
    let answered = |signal: &Signal| matches!(signal, Signal::Message { .. });
    let recorder = Recorder::with(When::Has(answered), What::Hold(Kept::Yes));
    let mut live = stage.fresh(&native, &native.part_of("hello"), &recorder).await;
    assert!(live.held(Decide::Wait).await);
    say(&live, [(1, "mind the gap".to_owned())]).await;
    recorder.release();
    live.turn_over(Decide::Wait, 1).await;
    live.close().await;
    let told = recorder.signals();
    assert_eq!(heard(&told), [named(1)]);
    assert_eq!(errors(&told), ["not said to the agent: its turn was over first"]);
    assert!(matches!(told.last(), Some(Signal::TurnEnded { .. })), "{told:#?}");
}

/// Each of them may be said, and all of them together are more than one record holds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b02_words_that_are_too_much_at_once_come_one_behind_the_other() {
    let native = Native::playing(TWO).await;
    let stage = Stage::new(&native);
    let recorder = Recorder::new();
    let mut live = at_work(&native, &stage, "[[scenario:own]]", &recorder).await;
    let words: Vec<String> = ["a", "b", "c", "d"].map(|letter| letter.repeat(255 * 1024)).to_vec();
    say(&live, (1..).zip(words.clone())).await;
    let_go(&stage);
    live.turn_over(Decide::Approve, 1).await;
    live.close().await;
    let told = recorder.signals();
    assert!(said(&told) == words, "all are there, in their order");
    assert_eq!(heard(&told), [1, 2, 3, 4].map(named));
    assert_eq!(told.last(), Some(&Signal::TurnEnded { outcome: TurnOutcome::Completed }));
}
