//! A conversation, played with what codex really said.

use std::path::Path;

use runyard_backend::Answer;
use runyard_domain::CommandId;
use runyard_domain::gate::{Question, Request};

use super::super::place::Workspace;
use super::super::tokens::Before;
use super::turns::GO_ON;
use super::*;

mod arbitrary;
mod retrying;

const DECLINED: &str = include_str!("../../../tests/codex/shell-declined.jsonl");

fn conversation(first: First) -> Conversation {
    confined(first, Confinement::Outside)
}

fn confined(first: First, confinement: Confinement) -> Conversation {
    let opening = Opening { thread: None, first };
    let translation = Translation::new(Workspace::new(Path::new("/checkout")), Before::NOTHING);
    let terms = Terms { directory: "/checkout".to_owned(), confinement, pauses: super::super::PAUSES };
    Conversation::new(opening, terms, translation)
}

fn task() -> First {
    First::Task { text: "do it".to_owned(), announced: false }
}

fn recorded() -> impl Iterator<Item = Value> {
    DECLINED.lines().map(|line| serde_json::from_str(line).unwrap())
}

/// One that waits for the answer to a command, and the key of its request.
fn asking() -> (Conversation, String) {
    asking_in(Confinement::Outside)
}

fn asking_in(confinement: Confinement) -> (Conversation, String) {
    let mut conversation = confined(task(), confinement);
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
fn b07_what_nobody_can_be_asked_for_is_refused_and_said() {
    let (mut conversation, _) = asking();
    let request = json!({ "id": 7, "method": "item/tool/call", "params": {} });
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
    for (what, other) in [("approvalPolicy", "never"), ("approvalsReviewer", "auto_review")] {
        let mut opened = recorded().next().unwrap();
        assert!(opened["result"][what].is_string(), "{what}");
        opened["result"][what] = other.into();
        let mut conversation = conversation(task());
        conversation.heard(&json!({ "id": 1, "result": {} })).unwrap();
        let error = conversation.heard(&opened).unwrap_err();
        assert_eq!(error.failure_kind, FailureKind::BackendProtocolError);
    }
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

/// What becomes of a request of codex.
fn requested(
    conversation: &mut Conversation,
    id: u64,
    method: &str,
    mut params: Value,
) -> (Vec<Signal>, Vec<Value>) {
    let thread = if params.get("callId").is_some() { "conversationId" } else { "threadId" };
    params[thread] = conversation.thread.clone().into();
    conversation.heard(&json!({ "id": id, "method": method, "params": params })).unwrap();
    conversation.take()
}

fn answer(approved: bool, answer: Option<Value>) -> Answer {
    Answer { approved, reason: None, answer }
}

/// What codex says, what is asked, what a person answers to it, and our yes and no in codex's words.
type Case = (&'static str, Value, Request, Option<Value>, Value, Value);

/// Each request that is asked.
fn every_request() -> Vec<Case> {
    let patch = "--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1,1 @@\n+hello\n".to_owned();
    let schema = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    let question = json!({ "id": "q", "header": "Q", "question": "?", "options": [{ "label": "x" }] });
    let asked_question = Question {
        prompt: "Q: ?\n- x".to_owned(),
        answer_schema: json!({ "type": "object", "required": ["q"], "additionalProperties": false,
            "properties": { "q": { "type": "string", "title": "Q", "description": "?", "enum": ["x"] } } }),
    };
    let form = Question { prompt: "s asks: fill in".to_owned(), answer_schema: schema.clone() };
    let denied = json!({ "decision": { "denied": { "rejection": "declined" } } });
    let network = json!({ "network": { "enabled": true } });
    vec![
        (
            "item/commandExecution/requestApproval",
            json!({ "itemId": "c", "command": "ls", "cwd": "/checkout/src" }),
            Request::Shell { command: "ls".to_owned(), cwd: "src".to_owned() },
            None,
            json!({ "decision": "accept" }),
            json!({ "decision": "decline" }),
        ),
        (
            "execCommandApproval",
            json!({ "callId": "c", "command": ["rm", "a b"], "cwd": "/checkout", "parsedCmd": [] }),
            Request::Shell { command: "rm 'a b'".to_owned(), cwd: ".".to_owned() },
            None,
            json!({ "decision": "approved" }),
            denied.clone(),
        ),
        (
            "applyPatchApproval",
            json!({ "callId": "c", "fileChanges": { "/checkout/new.txt": { "type": "add", "content": "hello\n" } } }),
            Request::Patch { files: vec!["new.txt".to_owned()], patch },
            None,
            json!({ "decision": "approved" }),
            denied,
        ),
        (
            "item/permissions/requestApproval",
            json!({ "itemId": "c", "cwd": "/checkout", "permissions": network }),
            Request::Network { host: "*".to_owned(), port: None },
            None,
            json!({ "permissions": network, "scope": "turn" }),
            json!({ "permissions": {}, "scope": "turn" }),
        ),
        (
            "item/tool/requestUserInput",
            json!({ "itemId": "c", "isBlocking": true, "questions": [question] }),
            Request::Question(asked_question),
            Some(json!({ "q": "x" })),
            json!({ "answers": { "q": { "answers": ["x"] } } }),
            json!({ "answers": {} }),
        ),
        (
            "mcpServer/elicitation/request",
            json!({ "mode": "form", "serverName": "s", "message": "fill in", "requestedSchema": schema }),
            Request::Question(form),
            Some(json!({ "a": "b" })),
            json!({ "action": "accept", "content": { "a": "b" } }),
            json!({ "action": "decline" }),
        ),
    ]
}

#[test]
fn c11_every_request_of_codex_is_asked_and_answered_once_in_its_own_words() {
    for (method, params, request, given, yes, no) in every_request() {
        for approved in [true, false] {
            let (mut conversation, _) = asking();
            let (signals, messages) = requested(&mut conversation, 7, method, params.clone());
            let [Signal::Ask { key, request: asked }] = &signals[..] else { panic!("{method}: {signals:?}") };
            assert_eq!((asked, messages.len()), (&request, 0), "{method}");
            let command = Command::Answer { key: key.clone(), answer: answer(approved, given.clone()) };
            conversation.told(command.clone());
            let said = if approved { &yes } else { &no };
            assert_eq!(conversation.take().1, [json!({ "id": 7, "result": said })], "{method}");
            conversation.told(command);
            assert_eq!(conversation.take(), (Vec::new(), Vec::new()), "{method}: once");
        }
    }
}

#[test]
fn c11_what_waits_is_withdrawn_when_its_turn_ends_and_an_answer_comes_too_late() {
    for (method, params, _, given, _, _) in every_request() {
        let (mut conversation, _) = asking();
        let (signals, _) = requested(&mut conversation, 7, method, params);
        let Some(Signal::Ask { key, .. }) = signals.first() else { panic!("{method}") };
        let over = recorded().find(|message| message["method"] == "turn/completed").unwrap();
        conversation.heard(&over).unwrap();
        let (signals, messages) = conversation.take();
        assert!(signals.contains(&Signal::Withdraw { key: key.clone() }), "{method}: {signals:?}");
        assert!(messages.iter().all(|message| message["method"] != "answer"));
        conversation.told(Command::Answer { key: key.clone(), answer: answer(true, given) });
        assert_eq!(conversation.take(), (Vec::new(), Vec::new()), "{method}");
    }
}

#[test]
fn c11_a_connection_and_what_is_typed_are_asked_for_as_what_they_are() {
    let method = "item/commandExecution/requestApproval";
    let connection = json!({ "itemId": "c", "networkApprovalContext": { "host": "a", "protocol": "https" } });
    let typed = json!({ "itemId": "c", "kind": "writeStdin", "command": "y", "cwd": "/" });
    for (params, kind, text) in [(connection, "network", "\"a\""), (typed, "question", "that runs: y")] {
        for (approved, decision) in [(true, "accept"), (false, "decline")] {
            let (mut conversation, _) = asking();
            let (signals, messages) = requested(&mut conversation, 7, method, params.clone());
            let Some(Signal::Ask { key, request }) = signals.first() else { panic!("{signals:?}") };
            let request = serde_json::to_value(request).unwrap();
            assert!(request["kind"] == kind && request.to_string().contains(text), "{request}");
            assert_eq!(messages, [] as [Value; 0]);
            conversation.told(Command::Answer { key: key.clone(), answer: answer(approved, None) });
            let (_, messages) = conversation.take();
            assert_eq!(messages[0], json!({ "id": 7, "result": { "decision": decision } }));
        }
    }
}

#[test]
fn b07_what_would_widen_the_policy_or_enter_the_record_is_declined_without_asking() {
    let decline = || json!({ "decision": "decline" });
    let secret = json!([{ "id": "k", "header": "K", "question": "?", "isSecret": true }]);
    let both = json!({ "network": { "enabled": true }, "fileSystem": { "write": ["/"] } });
    for (method, params, no) in [
        (
            "item/commandExecution/requestApproval",
            json!({ "itemId": "c", "kind": "ofTomorrow", "command": "y", "cwd": "/" }),
            decline(),
        ),
        ("item/fileChange/requestApproval", json!({ "itemId": "never shown" }), decline()),
        (
            "item/tool/requestUserInput",
            json!({ "itemId": "c", "questions": secret }),
            json!({ "answers": {} }),
        ),
        (
            "mcpServer/elicitation/request",
            json!({ "mode": "url", "message": "m", "url": "https://x" }),
            json!({ "action": "decline" }),
        ),
        (
            "item/permissions/requestApproval",
            json!({ "itemId": "c", "cwd": "/", "permissions": both }),
            json!({ "permissions": {}, "scope": "turn" }),
        ),
    ] {
        let (mut conversation, _) = asking();
        let (signals, messages) = requested(&mut conversation, 7, method, params);
        assert!(
            matches!(&signals[..], [Signal::Error { message, .. }] if message.contains("declined")),
            "{signals:?}"
        );
        assert_eq!(messages, [json!({ "id": 7, "result": no })], "{method}");
    }
}

#[test]
fn b07_what_codex_wants_of_us_beyond_that_is_refused() {
    for method in [
        "item/tool/call",
        "account/chatgptAuthTokens/refresh",
        "attestation/generate",
        "currentTime/read",
        "of/tomorrow",
    ] {
        let (mut conversation, _) = asking();
        let (signals, messages) =
            requested(&mut conversation, 7, method, json!({ "reason": "unauthorized" }));
        assert!(matches!(&signals[..], [Signal::Error { .. }]), "{method}: {signals:?}");
        assert!(
            messages.len() == 1 && messages[0]["id"] == 7 && messages[0].get("error").is_some(),
            "{messages:?}"
        );
    }
}

#[test]
fn b07_a_read_only_run_in_a_sandbox_may_run_commands_and_change_nothing() {
    let (mut conversation, _) = asking_in(Confinement::Reading);
    for (method, params, request, ..) in every_request() {
        let (signals, messages) = requested(&mut conversation, 7, method, params);
        let asked = matches!(&signals[..], [Signal::Ask { .. }]);
        assert_eq!(asked, !matches!(request, Request::Patch { .. }), "{method}: {signals:?} {messages:?}");
    }
    let mut opened = confined(task(), Confinement::Reading);
    opened.heard(&json!({ "id": 1, "result": {} })).unwrap();
    opened.heard(&recorded().next().unwrap()).unwrap();
    assert!(!opened.take().0.iter().any(|signal| matches!(signal, Signal::Degraded { .. })));
}

#[test]
fn b07_a_read_only_run_without_a_sandbox_may_ask_questions_alone() {
    let mut opened = confined(task(), Confinement::NoStep);
    opened.heard(&json!({ "id": 1, "result": {} })).unwrap();
    let mut thread = recorded().next().unwrap();
    thread["result"]["sandbox"]["type"] = "readOnly".into();
    opened.heard(&thread).unwrap();
    opened.heard(&recorded().nth(1).unwrap()).unwrap();
    assert!(opened.take().0.iter().any(|signal| matches!(signal, Signal::Degraded { .. })));
    for (method, params, request, ..) in every_request() {
        let (signals, _) = requested(&mut opened, 7, method, params);
        let asked = matches!(&signals[..], [Signal::Ask { .. }]);
        assert_eq!(asked, matches!(request, Request::Question(_)), "{method}: {signals:?}");
    }
}

#[test]
fn c11_the_reason_of_a_no_is_said_where_the_answer_has_no_place_for_it() {
    for (method, params, ..) in every_request() {
        let (mut conversation, _) = asking();
        let (signals, _) = requested(&mut conversation, 7, method, params);
        let Some(Signal::Ask { key, .. }) = signals.first() else { panic!("{method}") };
        let no = Answer { approved: false, reason: Some("not today".to_owned()), answer: None };
        conversation.told(Command::Answer { key: key.clone(), answer: no });
        let (_, messages) = conversation.take();
        assert!(
            messages.iter().any(|message| message.to_string().contains("not today")),
            "{method}: {messages:?}"
        );
    }
}

#[test]
fn trap_the_ids_of_codex_are_its_own_and_never_answer_a_request_of_ours() {
    let mut conversation = conversation(task());
    conversation.take();
    let same = json!({ "id": 1, "method": "of/tomorrow", "params": {} });
    conversation.heard(&same).unwrap();
    assert_eq!(methods(&conversation.take().1), ["answer"], "it was refused, and nothing was opened");
    conversation.heard(&json!({ "id": "1", "result": {} })).unwrap();
    conversation.heard(&json!({ "id": 99, "result": {} })).unwrap();
    assert_eq!(conversation.take().1, [] as [Value; 0]);
    conversation.heard(&json!({ "id": 1, "result": {} })).unwrap();
    assert_eq!(methods(&conversation.take().1), ["initialized", "thread/start"]);
}

#[test]
fn trap_codex_resolves_what_it_asked_after_an_interrupted_turn_and_it_is_withdrawn_once() {
    let (mut conversation, key) = asking();
    let mut over = recorded().find(|message| message["method"] == "turn/completed").unwrap();
    over["params"]["turn"]["status"] = "interrupted".into();
    conversation.heard(&over).unwrap();
    let resolved = json!({ "method": "serverRequest/resolved", "params": { "threadId": conversation.thread, "requestId": 0 } });
    conversation.heard(&resolved).unwrap();
    let (signals, _) = conversation.take();
    let ended = Signal::TurnEnded { outcome: TurnOutcome::Interrupted };
    assert_eq!(signals, [Signal::Withdraw { key }, ended]);
}

#[test]
fn trap_a_second_turn_on_a_busy_thread_would_steer_so_it_is_not_begun() {
    let (mut conversation, _) = asking();
    conversation.told(Command::Turn { id: CommandId::from_bytes([2; 16]), text: "more".to_owned() });
    let (signals, messages) = conversation.take();
    assert!(matches!(&signals[..], [Signal::Error { .. }]), "{signals:?}");
    assert_eq!(messages, [] as [Value; 0]);
}

#[test]
fn trap_an_interrupt_may_never_be_answered_so_nobody_waits_for_it() {
    let (mut conversation, _) = asking();
    conversation.told(interrupt());
    assert_eq!(conversation.calls.len(), 0);
    let mut over = recorded().find(|message| message["method"] == "turn/completed").unwrap();
    over["params"]["turn"]["status"] = "interrupted".into();
    conversation.heard(&over).unwrap();
    conversation.take();
    assert_eq!(conversation.deadline(), None);
    conversation.told(interrupt());
    assert_eq!(conversation.take(), (Vec::new(), Vec::new()), "with no turn there is nothing to interrupt");
}

#[test]
fn trap_what_a_turn_left_behind_may_speak_after_its_end_and_says_nothing() {
    let (mut conversation, _) = asking();
    for message in recorded().skip_while(|message| message["method"] != "serverRequest/resolved") {
        conversation.heard(&message).unwrap();
    }
    let (signals, _) = conversation.take();
    assert_eq!(signals.last(), Some(&Signal::TurnEnded { outcome: TurnOutcome::Completed }));
    for message in recorded()
        .filter(|message| message["method"].as_str().is_some_and(|method| method.starts_with("item/")))
    {
        conversation.heard(&message).unwrap();
    }
    let (signals, messages) = conversation.take();
    assert!(
        signals.iter().all(|signal| matches!(signal, Signal::Error { .. })),
        "only that it was refused: {signals:?}"
    );
    assert!(messages.iter().all(|message| message.get("error").is_some()), "{messages:?}");
}

#[test]
fn b08_unknown_notifications_and_fields_are_none_of_our_business() {
    let (mut conversation, _) = asking();
    for message in [
        json!({ "method": "of/tomorrow", "params": { "threadId": conversation.thread, "x": [1] }, "emittedAtMs": 1 }),
        json!({ "method": "of/tomorrow" }),
        json!({ "method": "item/of/tomorrow", "params": null, "jsonrpc": "2.0" }),
        json!({ "method": "item/agentMessage/delta", "params": { "threadId": "another", "delta": 5 } }),
    ] {
        conversation.heard(&message).unwrap();
    }
    assert_eq!(conversation.take(), (Vec::new(), Vec::new()));
}
