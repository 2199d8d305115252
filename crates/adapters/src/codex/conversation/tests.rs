//! A conversation, played with what codex really said.

use std::path::Path;

use runyard_backend::Answer;

use super::super::place::Workspace;
use super::super::tokens::Before;
use super::*;

const DECLINED: &str = include_str!("../../../tests/codex/shell-declined.jsonl");

fn conversation(first: First) -> Conversation {
    let opening = Opening { thread: None, first };
    let translation = Translation::new(Workspace::new(Path::new("/checkout")), Before::NOTHING);
    Conversation::new(opening, "/checkout".to_owned(), Confinement::Outside, translation)
}

fn task() -> First {
    First::Task { text: "do it".to_owned(), announced: false }
}

fn recorded() -> impl Iterator<Item = Value> {
    DECLINED.lines().map(|line| serde_json::from_str(line).unwrap())
}

/// One that waits for the answer to a command, and the key of its request.
fn asking() -> (Conversation, String) {
    let mut conversation = conversation(task());
    conversation.heard(&json!({ "id": 1, "result": {} })).unwrap();
    for message in recorded() {
        conversation.heard(&message).unwrap();
        if let Some(Signal::Ask { key, .. }) = conversation.signals.last() {
            let key = key.clone();
            conversation.take();
            return (conversation, key);
        }
    }
    panic!("the recorded turn asks for something")
}

fn methods(messages: &[Value]) -> Vec<&str> {
    messages.iter().map(|message| message["method"].as_str().unwrap_or("answer")).collect()
}

fn interrupt() -> Command {
    Command::Interrupt { id: CommandId::from_bytes([1; 16]) }
}

#[test]
fn b02_the_thread_and_its_first_turn_become_durable_together_and_before_the_turn_is_asked_for() {
    let mut conversation = conversation(task());
    assert_eq!(methods(&conversation.take().1), ["initialize"]);
    conversation.heard(&json!({ "id": 1, "result": {} })).unwrap();
    assert_eq!(methods(&conversation.take().1), ["initialized", "thread/start"]);
    conversation.heard(&recorded().next().unwrap()).unwrap();
    let (signals, messages) = conversation.take();
    assert!(matches!(
        &signals[..],
        [Signal::Status { thread: Some(_), .. }, Signal::TurnStarted { command: None }]
    ));
    assert_eq!(methods(&messages), ["turn/start"]);
    assert!(!conversation.listens(), "a command waits until the turn has its id");
}

#[test]
fn c11_the_call_is_said_before_the_yes_is_sent_and_an_answer_counts_once() {
    let (mut conversation, key) = asking();
    let yes = Answer { approved: true, reason: None, answer: None };
    conversation.told(Command::Answer { key: key.clone(), answer: yes.clone() });
    let (signals, messages) = conversation.take();
    assert!(matches!(&signals[..], [Signal::ToolCall { .. }]));
    assert_eq!(messages, [json!({ "id": 0, "result": { "decision": "accept" } })]);
    conversation.told(Command::Answer { key, answer: yes });
    assert_eq!(conversation.take(), (Vec::new(), Vec::new()));
}

#[test]
fn b02_an_answer_after_an_interrupt_starts_nothing_and_a_turn_that_does_not_end_is_ended() {
    let (mut conversation, key) = asking();
    conversation.told(interrupt());
    conversation.told(interrupt());
    let (signals, messages) = conversation.take();
    assert_eq!(signals, [Signal::Withdraw { key: key.clone() }]);
    assert_eq!(methods(&messages), ["turn/interrupt"]);
    let answer = Answer { approved: true, reason: None, answer: None };
    conversation.told(Command::Answer { key, answer });
    assert_eq!(conversation.take(), (Vec::new(), Vec::new()));
    let due = conversation.deadline().unwrap();
    assert_eq!(conversation.late(due), Err(Ending::Cancelled));
}

#[test]
fn b10_an_answer_that_never_comes_is_a_breach_of_the_protocol() {
    let mut conversation = conversation(task());
    let due = conversation.deadline().unwrap();
    let Err(Ending::Failed { failure_kind, .. }) = conversation.late(due) else { panic!("it is over") };
    assert_eq!(failure_kind, FailureKind::BackendProtocolError);
}

#[test]
fn b07_what_is_neither_a_command_nor_a_change_is_refused_and_said() {
    let (mut conversation, _) = asking();
    let request = json!({ "id": 7, "method": "item/permissions/requestApproval", "params": {} });
    conversation.heard(&request).unwrap();
    let mut foreign: Value =
        recorded().find(|message| message["method"] == "item/commandExecution/requestApproval").unwrap();
    foreign["params"]["threadId"] = "another".into();
    conversation.heard(&foreign).unwrap();
    let (signals, messages) = conversation.take();
    assert!(signals.iter().all(|signal| matches!(signal, Signal::Error { .. })), "{signals:?}");
    assert_eq!((signals.len(), messages.len()), (2, 2));
    assert!(messages.iter().all(|message| message.get("error").is_some()), "{messages:?}");
}

#[test]
fn b07_a_thread_under_another_policy_is_not_used() {
    let mut opened = recorded().next().unwrap();
    opened["result"]["approvalPolicy"] = "never".into();
    let mut conversation = conversation(task());
    conversation.heard(&json!({ "id": 1, "result": {} })).unwrap();
    let error = conversation.heard(&opened).unwrap_err();
    assert_eq!(error.failure_kind, FailureKind::BackendProtocolError);
}

#[test]
fn a_turn_that_was_begun_and_never_reached_codex_is_begun_anew_unless_the_thread_was_lost() {
    let refusal =
        json!({ "id": 2, "error": { "code": -32600, "message": "no rollout found for thread id x" } });
    for lost in [false, true] {
        let mut conversation = conversation(First::Continue { task: "do it".to_owned(), lost });
        conversation.opening.thread = Some("x".to_owned());
        conversation.heard(&json!({ "id": 1, "result": {} })).unwrap();
        assert_eq!(methods(&conversation.take().1), ["initialize", "initialized", "thread/resume"]);
        let refused = conversation.heard(&refusal);
        assert_eq!(refused.is_err(), lost);
        if !lost {
            assert_eq!(methods(&conversation.take().1), ["thread/start"]);
        }
    }
}

#[test]
fn b09_what_is_too_long_to_be_shown_is_declined() {
    let (mut conversation, _) = asking();
    let mut long =
        recorded().find(|message| message["method"] == "item/commandExecution/requestApproval").unwrap();
    long["params"]["command"] = "x".repeat(100_000).into();
    conversation.heard(&long).unwrap();
    let (signals, messages) = conversation.take();
    assert!(matches!(&signals[..], [Signal::Error { .. }]), "{signals:?}");
    assert_eq!(messages, [json!({ "id": 0, "result": { "decision": "decline" } })]);
}
