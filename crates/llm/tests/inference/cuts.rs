//! Recorded answers, cut wherever they can be cut: the turn comes to an end, what clients saw is what is kept, and no call is
//! lost, doubled or invented.

mod teller;

use std::sync::Arc;

use proptest::prelude::*;
use runyard_llm::inference::{
    Breakers, Inference, InterruptCause, Model, Part, Pool, RetryPolicy, SeededJitter, ToolCall, Update,
};
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

use self::teller::{Block, Cut, Ending, Recording, Teller};
use crate::support::{Seen, look, patient, question};

pub(crate) fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

/// Asks a model that tells the recording, with these cuts one after the other, and looks at all that holds.
fn check(runtime: &Runtime, recording: &Recording, cuts: &[Cut]) {
    let teller = Arc::new(Teller::new(recording.clone(), cuts.to_vec()));
    let breakers = Breakers::new(patient(), Arc::new(runyard_llm::inference::ManualClock::default()));
    let pool = Pool::new([Arc::clone(&teller) as Arc<dyn Model>], &breakers);
    let policy = RetryPolicy { retries_max: 8, stream_retries_max: 8, ..RetryPolicy::default() };
    let inference = Inference::with_jitter(pool, policy, Arc::new(SeededJitter::from_seed(1)));
    let seen = runtime.block_on(async { look(inference.start(question(), CancellationToken::new())).await });
    let case = format!("{recording:?}\n{cuts:?}\n{:?}", seen.updates);

    let answer = seen.outcome.as_ref().unwrap_or_else(|error| panic!("{error}: {case}"));
    let told = teller.told();
    let text = &recording.text()[..told.reached];
    assert_eq!(seen.text(), text, "what is seen is what was told: {case}");
    assert_eq!(answer.message.said(), text, "and it is what is kept: {case}");
    let calls: Vec<ToolCall> = answer.message.tool_calls().cloned().collect();
    assert_eq!(calls, told.calls, "the calls that were whole, and no others: {case}");
    let mut ready = seen.ready();
    ready.sort_by_key(|ready| calls.iter().position(|call| call.id == ready.id));
    assert_eq!(ready, calls, "each was ready once: {case}");
    let kept: String = answer.message.content.iter().map(thought).collect();
    assert_eq!(shown_thoughts(&seen), kept, "thoughts: {case}");
    every_call_is_closed(&seen, &case);
}

pub(crate) fn thought(part: &Part) -> &str {
    match part {
        Part::Reasoning(thought) => &thought.text,
        _ => "",
    }
}

pub(crate) fn shown_thoughts(seen: &Seen) -> String {
    let mut shown = String::new();
    for update in &seen.updates {
        match update {
            Update::Reasoning(piece) => shown.push_str(piece),
            Update::Reset => shown.clear(),
            _ => {}
        }
    }
    shown
}

pub(crate) fn every_call_is_closed(seen: &Seen, case: &str) {
    let mut open = Vec::new();
    for update in &seen.updates {
        match update {
            Update::ToolCallStarted { id, .. } => {
                assert!(!open.contains(id), "begun twice: {case}");
                open.push(id.clone());
            }
            Update::ToolCallReady(ToolCall { id, .. }) | Update::ToolCallCancelled { id, .. } => {
                let at = open.iter().position(|one| one == id);
                open.remove(at.unwrap_or_else(|| panic!("never begun, or closed twice: {case}")));
            }
            _ => {}
        }
    }
    assert!(open.is_empty(), "left open: {case}");
}

fn call(id: &str, arguments: &str) -> Block {
    Block::Call { id: id.to_owned(), arguments: arguments.to_owned() }
}

fn recordings() -> Vec<Recording> {
    let said = |text: &str| Block::Text(text.to_owned());
    let blocks = [
        vec![said("Bakide, "), said("limuna. "), said("torive")],
        vec![Block::Thought("Hm, so.".to_owned()), said("Bakide limuna "), call("a", "{\"n\":[1,2]}")],
        vec![said("\n"), call("a", ""), call("b", "{}")],
        vec![said("Bakidé "), call("a", "{\"n\":1}"), said(" limuna "), call("b", "")],
        vec![call("a", "{\"q\":\"}\"}"), call("b", "not json")],
    ];
    blocks
        .into_iter()
        .flat_map(|blocks| [false, true].map(|mixed| Recording::new(&blocks, 2, mixed)))
        .collect()
}

// clause: D10
#[test]
fn d10_an_answer_cut_anywhere_and_cut_anywhere_again_converges() {
    let runtime = runtime();
    let soak = std::env::var("RUNYARD_PROOF").as_deref() == Ok("soak");
    for recording in recordings() {
        let positions = recording.events.len();
        for first in 0..positions {
            check(&runtime, &recording, &[cut(first, 0)]);
            for second in (0..positions).filter(|second| soak || (first + second) % 3 == 0) {
                check(&runtime, &recording, &[cut(first, 0), cut(second, second)]);
            }
        }
    }
}

fn cut(at: usize, repeats: usize) -> Cut {
    Cut { at, ending: Ending::Interrupted(InterruptCause::ConnectionReset), repeats: repeats % 3 }
}

fn block(at: usize) -> impl Strategy<Value = Block> {
    let id = format!("call{at}");
    let arguments =
        prop::sample::select(vec!["", "{}", "{\"a\":1}", "{\"path\":\"a}b\",\"n\":[{}]}", "[1", " "]);
    prop_oneof![
        3 => (0_usize..5, prop::sample::select(vec![" ", ", ", "\n\n", ". ", ""])).prop_map(move |(words, after)| {
            Block::Text((0..words).map(|word| teller::word(at * 8 + word) + after).collect())
        }),
        1 => Just(Block::Thought(format!("thought {at}"))),
        2 => arguments.prop_map(move |arguments| call(&id, arguments)),
    ]
}

fn recording() -> impl Strategy<Value = Recording> {
    let blocks = (1_usize..6).prop_flat_map(|blocks| (0..blocks).map(block).collect::<Vec<_>>());
    (blocks, 1_usize..9, any::<bool>())
        .prop_map(|(blocks, piece, mixed)| Recording::new(&blocks, piece, mixed))
}

fn any_cut() -> impl Strategy<Value = Cut> {
    let ending = prop_oneof![
        Just(Ending::Interrupted(InterruptCause::ConnectionReset)),
        Just(Ending::Interrupted(InterruptCause::GoAway)),
        Just(Ending::Interrupted(InterruptCause::Provider5xxMidStream(502))),
        Just(Ending::Failed),
        Just(Ending::Silence),
        Just(Ending::End),
        Just(Ending::Refused),
    ];
    (0_usize..80, ending, 0_usize..3).prop_map(|(at, ending, repeats)| Cut { at, ending, repeats })
}

proptest! {
    #![proptest_config(crate::support::cases())]

    // clause: D10
    #[test]
    fn d10_what_clients_saw_is_what_is_kept_wherever_and_however_often_an_answer_is_cut(
        recording in recording(),
        cuts in prop::collection::vec(any_cut(), 0..5),
    ) {
        check(&runtime(), &recording, &cuts);
    }
}
