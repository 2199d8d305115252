//! Our own agent loop as a backend, on a loopback model provider: the suite of every backend, and what is its own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod bench;
mod settings;
mod unknown;
mod words;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use runyard_backend::conformance::{Decide, Kept, Live, Recorder, Stage, What, When};
use runyard_backend::{Answer, Command, Ending, SessionSpec, Sight, Signal, Start};
use runyard_domain::gate::Request;
use runyard_domain::run::{FailureKind, ThreadRecorded, ToolOutcome, TurnOutcome};
use runyard_domain::{Code, CommandId, Wire};
use serde_json::json;

use bench::{Native, conversation, ends, errors, resumed};

runyard_backend::backend_conformance_tests!(Native::new);

async fn steer(live: &Live, text: &str) {
    let id = CommandId::from_bytes([3; 16]);
    live.send(Command::Steer { id, text: text.to_owned() }).await;
}

/// A command that waits for a file.
const HELD: &str =
    r#"[[scenario:tool shell {"command": "echo - >> marker; while [ ! -e go ]; do sleep 0.01; done"}]]"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b02_words_reach_every_turn_and_those_that_reach_none_are_told_of() {
    let native = Native::new().await;
    let stage = Stage::new(&native);
    let recorder = Recorder::new();
    let mut live = stage.fresh(&native, &native.part_of("hello"), &recorder).await;
    live.turn_over(Decide::Approve, 1).await;
    steer(&live, "between turns").await;
    live.until(Decide::Approve, "it is told", |signals, _| !errors(signals).is_empty()).await;
    assert_eq!(
        errors(&recorder.signals()),
        ["not said to the agent: no turn runs, or too much waits to be read already"]
    );

    let id = CommandId::from_bytes([4; 16]);
    live.send(Command::Turn { id, text: HELD.to_owned() }).await;
    live.until(Decide::Wait, "it asks", |signals, _| {
        signals.iter().any(|signal| matches!(signal, Signal::Ask { .. }))
    })
    .await;
    let calls = |signal: &Signal| matches!(signal, Signal::ToolCall { .. });
    live.until(Decide::Approve, "it is called", |signals, _| signals.iter().any(calls)).await;
    stage.marked(1).await;
    steer(&live, "into the second turn").await;
    // A turn behind it is heard only after it.
    let id = CommandId::from_bytes([5; 16]);
    live.send(Command::Turn { id, text: "hello".to_owned() }).await;
    while live.session.commands.capacity() < live.session.commands.max_capacity() {
        tokio::task::yield_now().await;
    }
    std::fs::write(stage.directory().join("go"), "").unwrap();
    live.turn_over(Decide::Approve, 3).await;
    let asked = native.provider.requests();
    let second = asked[asked.len() - 2].body.to_string();
    assert!(second.contains("into the second turn"), "{second}");
    assert_eq!(errors(&recorder.signals()).len(), 1);
    live.close().await;
}

/// What stands for an answer that was begun anew.
const ANEW: &str = "[This answer broke off and was begun anew.]";

/// What clients show of each message, in the order in which they began: its pieces, or the whole of it where that came.
fn shown(signals: &[Signal]) -> Vec<String> {
    let mut shown: Vec<(String, String)> = Vec::new();
    for signal in signals {
        let (of, piece, is_whole) = match signal {
            Signal::Delta { item, text } => (item, text, false),
            Signal::Message { item, text } | Signal::BrokeOff { item, text } => (item, text, true),
            _ => continue,
        };
        match shown.iter_mut().find(|(item, _)| item == of) {
            Some((_, text)) if is_whole => text.clone_from(piece),
            Some((_, text)) => text.push_str(piece),
            None => shown.push((of.clone(), piece.clone())),
        }
    }
    shown.into_iter().map(|(_, text)| text).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d10_an_answer_that_a_death_cut_off_is_shown_as_that_and_is_there_once_when_it_comes_again() {
    let native = Native::new().await;
    let stage = Stage::new(&native);
    let part = native.part_of("[[scenario:stall]]");
    let speaks = |signal: &Signal| matches!(signal, Signal::Delta { text, .. } if text == "to say ");
    let mut all = Vec::new();
    for deaths in 0..3 {
        let recorder = Recorder::new();
        let mut live = match deaths {
            0 => stage.fresh(&native, &part, &recorder).await,
            _ => stage.open(&native, &part, resumed(&part, true), &recorder).await,
        };
        live.until(Decide::Wait, "it speaks", |signals, _| signals.iter().any(speaks)).await;
        if deaths < 2 {
            live.kill().await;
        } else {
            live.interrupt().await;
            live.turn_over(Decide::Wait, 1).await;
            live.close().await;
        }
        all.extend(recorder.signals());
    }
    assert_eq!(shown(&all), [ANEW, ANEW, "I was about to say "]);
    assert_eq!(broken_off(&all).len(), 2, "the agent did not say that");
    let last = all.iter().rev().find_map(|signal| match signal {
        Signal::Thread(recorded) => recorded.messages.last(),
        _ => None,
    });
    assert_eq!(last.unwrap()["content"][0]["text"], "I was about to say ", "what is shown is what is stored");
    assert_eq!(conversation(&all), ["user", "assistant"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d10_where_nothing_was_told_of_an_answer_a_death_leaves_nothing_to_be_told() {
    let native = Native::playing("[[step]]\nanswer.say = [\"Hello.\"]\n").await;
    let stage = Stage::new(&native);
    let part = native.part_of("[[scenario:own]]");
    let says = |signal: &Signal| matches!(signal, Signal::Thread(_));
    let recorder = Recorder::with(When::Has(says), What::Hold(Kept::Yes));
    let mut live = stage.fresh(&native, &part, &recorder).await;
    assert!(live.held(Decide::Wait).await);
    live.kill().await;
    let next = Recorder::new();
    let mut live = stage.open(&native, &part, resumed(&part, true), &next).await;
    live.turn_over(Decide::Wait, 1).await;
    live.close().await;
    assert_eq!(shown(&[recorder.signals(), next.signals()].concat()), ["Hello."]);
}

/// Messages that were told not to be completed, by name.
fn broken_off(signals: &[Signal]) -> Vec<&str> {
    let broken = signals.iter().filter_map(|signal| match signal {
        Signal::BrokeOff { item, .. } => Some(item.as_str()),
        _ => None,
    });
    broken.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d10_an_answer_of_which_only_thoughts_were_told_leaves_nothing_to_be_told_when_it_begins_anew() {
    let native = Native::playing("[[step]]\nanswer = { reasoning = [\"Well.\"], end = \"cut\" }\n").await;
    let stage = Stage::new(&native);
    let mut part = native.part_of("[[scenario:own]]");
    part.profile.settings = BTreeMap::from([("retries_max".to_owned(), "1".to_owned())]);
    let recorder = Recorder::new();
    let mut live = stage.fresh(&native, &part, &recorder).await;
    live.turn_over(Decide::Wait, 1).await;
    live.close().await;
    assert_eq!(native.provider.requests().len(), 2, "it begins anew");
    assert_eq!(shown(&recorder.signals()), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d10_an_answer_that_begins_anew_is_said_once_to_have_broken_off_whenever_its_process_dies() {
    // Blanks are told, and cannot be gone on with.
    let native = Native::playing("[[step]]\nanswer = { say = [\"  \"], end = \"cut\" }\n").await;
    let stage = Stage::new(&native);
    let mut part = native.part_of("[[scenario:own]]");
    part.profile.settings = BTreeMap::from([("retries_max".to_owned(), "1".to_owned())]);
    let begins_anew = |signal: &Signal| matches!(signal, Signal::BrokeOff { .. });
    let recorder = Recorder::with(When::Has(begins_anew), What::Hold(Kept::Yes));
    let mut live = stage.fresh(&native, &part, &recorder).await;
    assert!(live.held(Decide::Wait).await);
    live.kill().await;
    let first = recorder.signals();
    assert_eq!((broken_off(&first).len(), shown(&first)), (1, vec![ANEW.to_owned()]));
    let next = Recorder::new();
    let mut live = stage.open(&native, &part, resumed(&part, true), &next).await;
    live.turn_over(Decide::Wait, 1).await;
    live.close().await;
    let second = next.signals();
    assert!(!broken_off(&second).contains(&broken_off(&first)[0]), "not again: {second:#?}");
    assert_eq!(
        conversation(&[first, second].concat()),
        ["user", "assistant"],
        "what was seen last is stored"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn j05_a_turn_whose_answer_is_recorded_is_over_and_the_model_is_not_asked_again() {
    let native = Native::new().await;
    let stage = Stage::new(&native);
    let part = native.part_of("hello");
    let is_end = |signal: &Signal| matches!(signal, Signal::TurnEnded { .. });
    let recorder = Recorder::with(When::Has(is_end), What::Hold(Kept::No));
    let mut live = stage.fresh(&native, &part, &recorder).await;
    assert!(live.held(Decide::Approve).await);
    live.kill().await;
    let answered: Vec<Signal> = recorder.signals();
    assert_eq!((conversation(&answered), ends(&answered)), (vec!["user".into(), "assistant".into()], 0));
    let asked = native.provider.requests().len();
    let next = Recorder::new();
    let mut live = stage.open(&native, &part, resumed(&part, true), &next).await;
    live.turn_over(Decide::Approve, 1).await;
    assert_eq!(native.provider.requests().len(), asked, "nobody asks again for an answer that is there");
    assert_eq!(conversation(&next.signals()), Vec::<String>::new());
    live.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d16_what_a_turn_has_used_of_its_limits_outlives_its_process() {
    let native = Native::new().await;
    let stage = Stage::new(&native);
    let mut part = native.part_of(r#"[[scenario:tool shell {"command": "echo - >> marker"}]]"#);
    part.profile.settings = BTreeMap::from([("rounds_max".to_owned(), "1".to_owned())]);
    let recorder = Recorder::new();
    let mut live = stage.fresh(&native, &part, &recorder).await;
    live.asked().await;
    live.kill().await;
    let next = Recorder::new();
    let mut live = stage.open(&native, &part, resumed(&part, true), &next).await;
    live.turn_over(Decide::Approve, 1).await;
    let told = next.signals();
    assert_eq!(errors(&told).len(), 1, "{told:#?}");
    assert!(errors(&told)[0].contains("max_rounds"), "{told:#?}");
    let used = told.iter().rev().find_map(|signal| match signal {
        Signal::Status { usage: Some(usage), .. } => usage.input_tokens,
        _ => None,
    });
    assert!(used.is_some_and(|used| used > 0), "what it cost before its process died counts: {used:?}");
    let stands = |signals: &[Signal]| {
        let recorded = signals.iter().rev().find_map(|signal| match signal {
            Signal::Thread(recorded) => recorded.state.get("loop/record"),
            _ => None,
        });
        recorded.and_then(|recorded| recorded["steps"].as_u64())
    };
    // The second process asks nothing: it makes the call that the first one left.
    assert_eq!((stands(&recorder.signals()), stands(&told)), (Some(1), Some(2)), "steps are counted on");
    live.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn j05_an_interrupt_while_the_hub_is_slow_records_no_step_twice() {
    let native = Native::new().await;
    let stage = Stage::new(&native);
    let part = native.part_of(r#"[[scenario:tool shell {"command": "echo - >> marker"}]]"#);
    let is_result = |signal: &Signal| matches!(signal, Signal::ToolResult { .. });
    let recorder = Recorder::with(When::Has(is_result), What::Hold(Kept::Yes));
    let mut live = stage.fresh(&native, &part, &recorder).await;
    assert!(live.held(Decide::Approve).await);
    live.interrupt().await;
    // Longer than a cancelled run waits for a step.
    tokio::time::sleep(Duration::from_secs(6)).await;
    recorder.release();
    live.turn_over(Decide::Approve, 1).await;
    let told = recorder.signals();
    assert_eq!(conversation(&told), ["user", "assistant", "tool"]);
    assert!(
        matches!(told.last(), Some(Signal::TurnEnded { outcome: TurnOutcome::Interrupted })),
        "{told:#?}"
    );
    let id = CommandId::from_bytes([4; 16]);
    live.send(Command::Turn { id, text: "hello".to_owned() }).await;
    live.turn_over(Decide::Approve, 2).await;
    assert_eq!(conversation(&recorder.signals()), ["user", "assistant", "tool", "user", "assistant"]);
    live.close().await;
}

#[tokio::test]
async fn j05_an_interrupt_while_the_hub_records_nothing_stops_the_session_and_fails_no_run() {
    let native = Native::new().await;
    let stage = Stage::new(&native);
    let part = native.part_of(r#"[[scenario:tool shell {"command": "echo - >> marker"}]]"#);
    let is_result = |signal: &Signal| matches!(signal, Signal::ToolResult { .. });
    let recorder = Recorder::with(When::Has(is_result), What::Hold(Kept::Yes));
    let mut live = stage.fresh(&native, &part, &recorder).await;
    assert!(live.held(Decide::Approve).await);
    live.interrupt().await;
    // From here on nothing happens but that time passes: all that the session has for a step that does not become durable.
    tokio::time::pause();
    (&mut live.session.task).await.unwrap();
    tokio::time::resume();
    recorder.release();
    let told = recorder.signals();
    let over = |signal: &Signal| matches!(signal, Signal::Ended { .. } | Signal::TurnEnded { .. });
    assert!(!told.iter().any(over), "what became of it is not known: {told:#?}");

    // The hub opens it again, and says again what was not heard.
    let next = Recorder::new();
    let mut live = stage.open(&native, &part, resumed(&part, true), &next).await;
    live.interrupt().await;
    live.turn_over(Decide::Wait, 1).await;
    let told = next.signals();
    assert!(
        matches!(told.last(), Some(Signal::TurnEnded { outcome: TurnOutcome::Interrupted })),
        "{told:#?}"
    );
    live.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn j01_a_question_of_the_agent_waits_for_its_answer_also_over_the_death_of_its_process() {
    let native = Native::new().await;
    let stage = Stage::new(&native);
    let part =
        native.part_of(r#"[[scenario:tool ask {"question": "Which one?", "choices": ["red", "blue"]}]]"#);
    let recorder = Recorder::new();
    let mut live = stage.fresh(&native, &part, &recorder).await;
    live.asked().await;
    let question = |signals: &[Signal]| {
        signals.iter().find_map(|signal| match signal {
            Signal::Ask { key, request: Request::Question(question) } => {
                Some((key.clone(), question.clone()))
            }
            _ => None,
        })
    };
    let (_, first) = question(&recorder.signals()).expect("a question");
    assert_eq!(first.prompt, "Which one?");
    assert_eq!(first.answer_schema["properties"]["answer"]["enum"], json!(["red", "blue"]));
    live.kill().await;
    let next = Recorder::new();
    let mut live = stage.open(&native, &part, resumed(&part, true), &next).await;
    live.asked().await;
    let (key, second) = question(&next.signals()).expect("the question again");
    assert_eq!(first, second, "so that a decision made meanwhile fits it");
    let answer = Answer { approved: true, reason: None, answer: Some(json!({"answer": "blue"})) };
    live.send(Command::Answer { key, answer }).await;
    live.turn_over(Decide::Wait, 1).await;
    assert!(native.last_asked().contains("blue"), "{}", native.last_asked());
    live.close().await;

    let recorder = Recorder::new();
    let stage = Stage::new(&native);
    let mut live = stage.fresh(&native, &part, &recorder).await;
    live.turn_over(Decide::Deny, 1).await;
    assert!(native.last_asked().contains("the suite says no"), "{}", native.last_asked());
    live.close().await;

    let recorder = Recorder::new();
    let stage = Stage::new(&native);
    let mut live = stage.fresh(&native, &part, &recorder).await;
    live.asked().await;
    live.interrupt().await;
    live.turn_over(Decide::Wait, 1).await;
    let told = recorder.signals();
    assert!(told.iter().any(|signal| matches!(signal, Signal::Withdraw { .. })), "{told:#?}");
    assert!(
        matches!(told.last(), Some(Signal::TurnEnded { outcome: TurnOutcome::Interrupted })),
        "{told:#?}"
    );
    live.close().await;
}

const TWO: &str = r#"
about = "Two commands in one answer, then a text."

[[step]]
answer.call = [
    { tool = "shell", arguments = { command = "echo - >> marker; while [ ! -e go ]; do sleep 0.01; done" } },
    { tool = "shell", arguments = { command = "echo second" } },
]

[[step]]
answer.say = ["Both are done."]
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b02_words_that_came_before_a_person_is_asked_outlive_the_process_that_heard_them() {
    let native = Native::playing(TWO).await;
    let stage = Stage::new(&native);
    let part = native.part_of("[[scenario:own]]");
    let recorder = Recorder::new();
    let mut live = stage.fresh(&native, &part, &recorder).await;
    let count =
        |signals: &[Signal], is: fn(&Signal) -> bool| signals.iter().filter(|signal| is(signal)).count();
    let calls = |signal: &Signal| matches!(signal, Signal::ToolCall { .. });
    live.until(Decide::Approve, "it is called", |signals, _| count(signals, calls) > 0).await;
    stage.marked(1).await;
    steer(&live, "mind the gap").await;
    while live.session.commands.capacity() < live.session.commands.max_capacity() {
        tokio::task::yield_now().await;
    }
    std::fs::write(stage.directory().join("go"), "").unwrap();
    let asks = |signal: &Signal| matches!(signal, Signal::Ask { .. });
    live.until(Decide::Wait, "the second is asked about", |signals, _| count(signals, asks) > 1).await;
    live.kill().await;
    let next = Recorder::new();
    let mut live = stage.open(&native, &part, resumed(&part, true), &next).await;
    live.turn_over(Decide::Approve, 1).await;
    let asked = native.last_asked();
    assert!(asked.contains("mind the gap") && asked.contains("second"), "{asked}");
    live.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b02_what_is_said_before_a_resumed_session_is_under_way_counts() {
    let native = Native::new().await;
    for _ in 0..8 {
        let stage = Stage::new(&native);
        let part = native.part_of(r#"[[scenario:tool shell {"command": "echo - >> marker"}]]"#);
        let recorder = Recorder::new();
        let mut live = stage.fresh(&native, &part, &recorder).await;
        live.asked().await;
        live.kill().await;
        let next = Recorder::new();
        let mut live = stage.open(&native, &part, resumed(&part, true), &next).await;
        live.interrupt().await;
        live.turn_over(Decide::Wait, 1).await;
        let told = next.signals();
        let outcome = told.iter().rev().find_map(|signal| match signal {
            Signal::TurnEnded { outcome } => Some(*outcome),
            _ => None,
        });
        assert_eq!(outcome, Some(TurnOutcome::Interrupted), "{told:#?}");
        live.close().await;
    }
}

/// As it was once recorded: what was said next came between a call and its result.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn j02_a_conversation_with_a_result_behind_what_was_said_next_is_gone_on_with_on_every_wire() {
    let native = Native::new().await;
    let call = json!({"type": "tool_call", "id": "c1", "name": "shell", "arguments": {"command": "ls"}});
    let messages = vec![
        json!({"role": "user", "content": [{"type": "text", "text": "look"}]}),
        json!({"role": "assistant", "content": [call]}),
        json!({"role": "user", "content": [{"type": "text", "text": "go on"}]}),
        json!({"role": "tool", "content": [{"type": "tool_output", "callId": "c1", "content": "no"}]}),
    ];
    let thread = "thread-1".to_owned();
    let recorded = ThreadRecorded { thread: thread.clone(), after: 0, messages, state: BTreeMap::new() };
    for wire in [Wire::Responses, Wire::Chat, Wire::Messages] {
        let stage = Stage::new(&native);
        let mut part = native.part_of("hello");
        part.profile.wire = wire;
        let start = Start::Fresh { task: part.task.clone(), thread: Some(thread.clone()) };
        let spec = SessionSpec { history: vec![recorded.clone()], ..stage.spec(&part, start) };
        let recorder = Recorder::new();
        let mut live = stage.play(&native, spec, &recorder).await;
        live.turn_over(Decide::Approve, 1).await;
        let said = |signal: &Signal| matches!(signal, Signal::Message { .. });
        assert!(recorder.signals().iter().any(said), "{wire:?}: {:#?}", recorder.signals());
        live.close().await;
    }
}

/// Sees nothing below one directory.
struct Blind;

impl Sight for Blind {
    fn may_read(&self, path: &str) -> bool {
        !path.starts_with("private/")
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c11_a_search_looks_into_no_file_that_may_not_be_read_without_asking() {
    let native = Native::new().await;
    let stage = Stage::new(&native);
    for (name, text) in [("open/a.txt", "needle here"), ("private/b.txt", "needle there")] {
        let path = stage.directory().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let part = native.part_of(r#"[[scenario:tool search {"pattern": "needle"}]]"#);
    let recorder = Recorder::new();
    let start = Start::Fresh { task: part.task.clone(), thread: None };
    let spec = SessionSpec { sight: Arc::new(Blind), ..stage.spec(&part, start) };
    let mut live = stage.play(&native, spec, &recorder).await;
    live.turn_over(Decide::Approve, 1).await;
    let asked = native.last_asked();
    assert!(asked.contains("open/a.txt:1: needle here") && !asked.contains("needle there"), "{asked}");
    assert!(asked.contains("left_out"), "{asked}");
    live.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d02_a_file_that_is_too_large_to_be_edited_stays_whole() {
    let native = Native::new().await;
    let stage = Stage::new(&native);
    let large = format!("first\n{}last\n", "filler line\n".repeat(500_000));
    std::fs::write(stage.directory().join("large.txt"), &large).unwrap();
    let task = r#"[[scenario:tool patch {"path": "large.txt", "edits": [{"old": "first", "new": "1st"}]}]]"#;
    let recorder = Recorder::new();
    let mut live = stage.fresh(&native, &native.part_of(task), &recorder).await;
    live.turn_over(Decide::Approve, 1).await;
    assert!(
        std::fs::read_to_string(stage.directory().join("large.txt")).unwrap() == large,
        "nothing is lost"
    );
    let result = recorder.signals().into_iter().find_map(|signal| match signal {
        Signal::ToolResult { outcome, summary, .. } => Some((outcome, summary)),
        _ => None,
    });
    let (outcome, summary) = result.expect("a result");
    assert_eq!(outcome, ToolOutcome::Failed);
    assert!(summary.contains("larger than 4194304 bytes"), "{summary}");
    live.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b09_all_that_a_command_prints_is_told() {
    let native = Native::new().await;
    let signals = native.played(r#"[[scenario:tool shell {"command": "seq 1 40000"}]]"#).await;
    let printed = signals.iter().filter_map(|signal| match signal {
        Signal::ToolOutput { text, .. } => Some(text.as_str()),
        _ => None,
    });
    let all: String = (1..=40_000).map(|n| format!("{n}\n")).collect();
    assert!(printed.collect::<String>() == all, "nothing of {} bytes is missing", all.len());
}

/// A result keeps which error it was, and a call that was refused before it ran is told with its result like any other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d02_the_event_of_a_result_keeps_the_variant_of_its_error() {
    let native = Native::new().await;
    let (failed, denied) = (ToolOutcome::Failed, ToolOutcome::Denied);
    for (call, decide, outcome, code) in [
        ("list {}", Decide::Approve, ToolOutcome::Succeeded, None),
        (r#"read {"path": "none.txt"}"#, Decide::Approve, failed, Some(Code::ToolExecutionFailed)),
        (r#"read {"path": 3}"#, Decide::Approve, failed, Some(Code::ToolInvalidArguments)),
        (r#"ask {"question": 3}"#, Decide::Approve, failed, Some(Code::ToolInvalidArguments)),
        (r#"fly {"to": "moon"}"#, Decide::Approve, failed, Some(Code::ToolNotFound)),
        (r#"read {"path": "../a"}"#, Decide::Approve, denied, Some(Code::ToolDenied)),
        (r#"shell {"command": "ls"}"#, Decide::Deny, denied, Some(Code::ToolDenied)),
    ] {
        let stage = Stage::new(&native);
        let recorder = Recorder::new();
        let part = native.part_of(&format!("[[scenario:tool {call}]]"));
        let mut live = stage.fresh(&native, &part, &recorder).await;
        live.turn_over(decide, 1).await;
        live.close().await;
        let told = recorder.signals().into_iter().filter_map(|signal| match signal {
            Signal::ToolCall { call, tool, .. } => Some((call, Err(tool))),
            Signal::ToolResult { call, outcome, code, .. } => Some((call, Ok((outcome, code)))),
            _ => None,
        });
        let (tool, of) = (call.split(' ').next().unwrap().to_owned(), "2.0".to_owned());
        let expected = [(of.clone(), Err(tool)), (of, Ok((outcome, code)))];
        assert_eq!(told.collect::<Vec<_>>(), expected, "{call}");
    }
}

/// What the model read of the last call, as JSON.
async fn read_of(native: &Native, stage: &Stage, task: &str) -> serde_json::Value {
    let recorder = Recorder::new();
    let mut live = stage.fresh(native, &native.part_of(task), &recorder).await;
    live.turn_over(Decide::Approve, 1).await;
    live.close().await;
    let read = recorder.signals().into_iter().filter_map(|signal| match signal {
        Signal::Thread(recorded) => Some(recorded.messages),
        _ => None,
    });
    let tool = read.flatten().find(|message| message["role"] == "tool").expect("a result");
    serde_json::from_str(tool["content"][0]["content"].as_str().unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b09_a_list_or_a_search_that_is_not_all_of_it_says_so() {
    let native = Native::new().await;
    let stage = Stage::new(&native);
    let many = stage.directory().join("many");
    std::fs::create_dir(&many).unwrap();
    for n in 0..1_001 {
        std::fs::write(many.join(format!("{:04}", n * 8 % 1_001)), "").unwrap();
    }
    let list = r#"[[scenario:tool list {"path": "many"}]]"#;
    let listed = read_of(&native, &stage, list).await;
    let names: Vec<String> = (0..1_000).map(|n| format!("{n:04}")).collect();
    assert!(listed == json!({"entries": names, "more": true}), "{}", listed["more"]);
    std::fs::remove_file(many.join("1000")).unwrap();
    let listed = read_of(&native, &stage, list).await;
    assert!(listed == json!({"entries": names, "more": false}), "{}", listed["more"]);

    let search = r#"[[scenario:tool search {"pattern": "needle"}]]"#;
    std::fs::write(stage.directory().join("small.txt"), "a needle\n").unwrap();
    let found = read_of(&native, &stage, search).await;
    assert_eq!(found, json!({"matches": ["small.txt:1: a needle"], "more": false}));
    let large = format!("{}needle\n", "filler line\n".repeat(400_000));
    std::fs::write(stage.directory().join("large.txt"), large).unwrap();
    let found = read_of(&native, &stage, search).await;
    assert_eq!(found, json!({"matches": ["small.txt:1: a needle"], "more": true}));
}

/// Where nothing is found in what was looked into, the model has to know what was not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b09_a_search_says_what_it_did_not_look_into() {
    let native = Native::new().await;
    let stage = Stage::new(&native);
    let root = stage.directory();
    for folder in ["web/node_modules/a", "target/debug", "src"].into_iter().map(|name| root.join(name)) {
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("x.txt"), "a needle\n").unwrap();
    }
    std::fs::write(root.join("src/picture"), b"needle\0").unwrap();
    std::fs::write(root.join("src/hidden.txt"), "needle").unwrap();
    std::os::unix::fs::symlink("x.txt", root.join("src/link.txt")).unwrap();
    let search = r#"[[scenario:tool search {"pattern": "needle"}]]"#;
    let found = read_of(&native, &stage, search).await;
    let directories = json!(["target", "web/node_modules"]);
    let not_searched = json!({"directories": 2, "named": directories, "links": 1, "binary": 1});
    assert_eq!(found["not_searched"], not_searched);
    assert_eq!(found["matches"], json!(["src/hidden.txt:1: needle", "src/x.txt:1: a needle"]));

    let named = r#"[[scenario:tool search {"pattern": "needle", "path": "web/node_modules"}]]"#;
    let found = read_of(&native, &stage, named).await;
    assert_eq!(found, json!({"matches": ["web/node_modules/a/x.txt:1: a needle"], "more": false}));
    let asked = native.last_asked();
    let about = "Directories called `.git`, `node_modules` and `target` are searched only where `path` leads into one.";
    assert!(asked.contains(about), "the model is told before it searches: {asked}");

    for n in 0..30 {
        std::fs::create_dir_all(root.join(format!("many/{n:02}/target"))).unwrap();
    }
    let found = read_of(&native, &stage, search).await;
    let not_searched = &found["not_searched"];
    assert_eq!(not_searched["directories"], 32);
    assert_eq!(not_searched["named"].as_array().map(Vec::len), Some(20), "the others are only counted");
}

/// What failed in one run is known to the next: five failures in a row, and the model is given a rest.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d07_a_model_that_keeps_failing_rests_for_every_run() {
    let native = Native::new().await;
    let cause = async |task: &str| {
        let stage = Stage::new(&native);
        let mut part = native.part_of(task);
        part.profile.settings = BTreeMap::from([("retries_max".to_owned(), "0".to_owned())]);
        let recorder = Recorder::new();
        let mut live = stage.fresh(&native, &part, &recorder).await;
        live.turn_over(Decide::Approve, 1).await;
        live.close().await;
        match recorder.signals().pop() {
            Some(Signal::Ended { ending: Ending::Failed { cause, .. } }) => cause,
            _ => None,
        }
    };
    for _ in 0..5 {
        assert_eq!(cause("[[scenario:http-500]]").await, Some(Code::InferenceProvider));
    }
    let asked = native.provider.requests().len();
    assert_eq!(cause("hello").await, Some(Code::InferenceAllModelsUnavailable));
    assert_eq!(native.provider.requests().len(), asked, "it is not asked while it rests");
}

/// How each failure of a provider ends a run: its kind, and as cause the code of our own loop's error.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c16_d05_a_providers_failure_ends_the_run_with_its_kind_and_the_loops_own_cause() {
    let native = Native::new().await;
    for (scenario, kind, cause) in [
        ("http-401", FailureKind::ProviderAuthFailed, Code::InferenceUnauthorized),
        ("http-404", FailureKind::BackendFailed, Code::InferenceModelNotFound),
        ("http-400", FailureKind::BackendFailed, Code::InferenceInvalidRequest),
    ] {
        let signals = native.played(&format!("[[scenario:{scenario}]]")).await;
        let Some(Signal::Ended { ending: Ending::Failed { failure_kind, cause: found, .. } }) =
            signals.last()
        else {
            panic!("{scenario}: {signals:#?}");
        };
        assert_eq!((*failure_kind, *found), (kind, Some(cause)), "{scenario}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn j02_what_the_agent_did_is_told_and_its_conversation_is_in_the_log() {
    let native = Native::new().await;
    let signals = native.played(r#"[[scenario:tool shell {"command": "echo hello"}]]"#).await;
    let recorded: Vec<_> = signals
        .iter()
        .filter_map(|signal| match signal {
            Signal::Thread(recorded) => Some(recorded),
            _ => None,
        })
        .collect();
    let mut after = 0;
    for record in &recorded {
        assert_eq!(record.after, after, "nothing is missing and nothing doubled");
        after += record.messages.len() as u64;
    }
    let roles: Vec<&str> = recorded
        .iter()
        .flat_map(|record| &record.messages)
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant"]);
    let printed: String = signals
        .iter()
        .filter_map(|signal| match signal {
            Signal::ToolOutput { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(printed, "hello\n");
}
