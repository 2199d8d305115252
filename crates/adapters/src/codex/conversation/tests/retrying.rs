//! A turn that fails, and is tried again where that is safe.

use super::*;

/// One whose first turn runs; with something of it shown, or not.
fn running(shown: bool) -> Conversation {
    let mut conversation = conversation(task());
    conversation.heard(&json!({ "id": 1, "result": {} })).unwrap();
    conversation.heard(&recorded().next().unwrap()).unwrap();
    turn_begins(&mut conversation, 3, "turn-1");
    if shown {
        show(&mut conversation);
    }
    conversation.take();
    conversation
}

fn turn_begins(conversation: &mut Conversation, call: u64, turn: &str) {
    let answer = json!({ "id": call, "result": { "turn": { "id": turn, "status": "inProgress" } } });
    conversation.heard(&answer).unwrap();
}

fn show(conversation: &mut Conversation) {
    let item = json!({ "type": "userMessage", "id": "u", "content": [] });
    notify(conversation, "item/completed", json!({ "item": item })).unwrap();
}

fn notify(conversation: &mut Conversation, method: &str, mut params: Value) -> Result<(), BackendError> {
    params["threadId"] = conversation.thread.clone().into();
    conversation.heard(&json!({ "method": method, "params": params }))
}

fn fails(conversation: &mut Conversation, turn: &str, info: Value) -> Result<(), BackendError> {
    let error = json!({ "message": "it failed", "codexErrorInfo": info });
    let turn = json!({ "id": turn, "status": "failed", "error": error });
    notify(conversation, "turn/completed", json!({ "turn": turn }))
}

fn unavailable() -> Value {
    json!({ "httpConnectionFailed": { "httpStatusCode": 503 } })
}

/// What is asked for once the pause is over.
fn after_the_pause(conversation: &mut Conversation) -> Value {
    let due = conversation.deadline().unwrap();
    conversation.late(due).unwrap();
    let (signals, mut messages) = conversation.take();
    assert_eq!((signals, messages.len()), (Vec::new(), 1));
    messages.remove(0)
}

#[test]
fn b10_a_turn_that_failed_for_a_moment_goes_on_after_a_growing_pause_and_not_for_ever() {
    let mut conversation = running(true);
    for (turn, seconds) in [("turn-1", 2), ("turn-2", 8)] {
        let before = Instant::now();
        fails(&mut conversation, turn, unavailable()).unwrap();
        let (signals, messages) = conversation.take();
        assert!(
            matches!(
                &signals[..],
                [Signal::Error { failure_kind: Some(FailureKind::ProviderUnavailable), retrying: true, .. }]
            ),
            "{signals:?}"
        );
        assert_eq!(messages, [] as [Value; 0], "it waits");
        assert!(conversation.deadline().unwrap() >= before + Duration::from_secs(seconds));
        let asked = after_the_pause(&mut conversation);
        assert_eq!(
            (&asked["method"], &asked["params"]["input"][0]["text"]),
            (&json!("turn/start"), &json!(GO_ON))
        );
        turn_begins(
            &mut conversation,
            asked["id"].as_u64().unwrap(),
            if turn == "turn-1" { "turn-2" } else { "turn-3" },
        );
        show(&mut conversation);
    }
    let failure = fails(&mut conversation, "turn-3", unavailable()).unwrap_err();
    assert_eq!(
        (failure.failure_kind, failure.message.as_str()),
        (FailureKind::ProviderUnavailable, "it failed")
    );
}

#[test]
fn b10_a_text_that_codex_never_took_is_said_again() {
    let mut conversation = running(false);
    fails(&mut conversation, "turn-1", unavailable()).unwrap();
    conversation.take();
    assert_eq!(after_the_pause(&mut conversation)["params"]["input"][0]["text"], "do it");
}

#[test]
fn b10_what_would_fail_again_or_left_a_step_open_is_not_tried_again() {
    for info in [
        json!("usageLimitExceeded"),
        json!("modelNotFound"),
        json!({ "httpConnectionFailed": { "httpStatusCode": 401 } }),
    ] {
        assert!(fails(&mut running(true), "turn-1", info).is_err());
    }
    let mut conversation = running(true);
    let item = json!({ "type": "commandExecution", "id": "c", "command": "make", "cwd": "/checkout", "status": "inProgress" });
    notify(&mut conversation, "item/started", json!({ "item": item })).unwrap();
    notify(&mut conversation, "item/commandExecution/outputDelta", json!({ "itemId": "c", "delta": "x" }))
        .unwrap();
    assert!(fails(&mut conversation, "turn-1", unavailable()).is_err(), "nobody knows what it did");
    let (signals, _) = conversation.take();
    assert!(signals.iter().any(|signal| matches!(signal, Signal::ToolResult { .. })), "{signals:?}");
}

#[test]
fn b02_in_the_pause_an_interrupt_ends_the_turn_and_the_next_one_works() {
    let mut conversation = running(true);
    fails(&mut conversation, "turn-1", unavailable()).unwrap();
    conversation.take();
    assert!(conversation.listens());
    conversation.told(interrupt());
    let ended = Signal::TurnEnded { outcome: TurnOutcome::Interrupted };
    assert_eq!(conversation.take(), (vec![ended], Vec::new()));
    assert_eq!(conversation.deadline(), None);
    conversation.told(Command::Turn { id: CommandId::from_bytes([2; 16]), text: "more".to_owned() });
    let (_, messages) = conversation.take();
    assert_eq!(messages[0]["params"]["input"][0]["text"], "more");
}

#[test]
fn b02_in_the_pause_a_word_waits_for_the_next_try_and_an_old_end_is_no_end() {
    let mut conversation = running(true);
    fails(&mut conversation, "turn-1", unavailable()).unwrap();
    conversation.take();
    fails(&mut conversation, "turn-1", unavailable()).unwrap();
    conversation.told(Command::Steer { id: CommandId::from_bytes([2; 16]), text: "in Latin".to_owned() });
    assert_eq!(conversation.take(), (Vec::new(), Vec::new()));
    let input = &after_the_pause(&mut conversation)["params"]["input"];
    assert_eq!(
        input.as_array().unwrap().iter().map(|said| said["text"].as_str().unwrap()).collect::<Vec<_>>(),
        [GO_ON, "in Latin"]
    );
}

#[test]
fn b02_a_turn_that_fails_after_it_was_interrupted_was_interrupted() {
    let mut conversation = running(true);
    conversation.told(interrupt());
    fails(&mut conversation, "turn-1", unavailable()).unwrap();
    let (signals, _) = conversation.take();
    assert_eq!(signals, [Signal::TurnEnded { outcome: TurnOutcome::Interrupted }]);
}

#[test]
fn trap_a_codex_that_cannot_answer_for_a_moment_is_asked_again_and_not_for_ever() {
    let overloaded = json!({ "code": -32001, "message": "Server overloaded; retry later." });
    let held = json!({ "code": -32600, "message": "thread x already has an active writer" });
    for error in [overloaded, held] {
        let mut conversation = conversation(task());
        conversation.heard(&json!({ "id": 1, "result": {} })).unwrap();
        conversation.take();
        let mut id = 2;
        let refusal = |id: u64| json!({ "id": id, "error": error });
        for _ in 0..2 {
            conversation.heard(&refusal(id)).unwrap();
            let (signals, _) = conversation.take();
            assert!(matches!(&signals[..], [Signal::Error { retrying: true, .. }]), "{signals:?}");
            let asked = after_the_pause(&mut conversation);
            assert_eq!(asked["method"], "thread/start");
            id = asked["id"].as_u64().unwrap();
        }
        let failure = conversation.heard(&refusal(id)).unwrap_err();
        assert_eq!(failure.failure_kind, FailureKind::BackendFailed);
    }
}
