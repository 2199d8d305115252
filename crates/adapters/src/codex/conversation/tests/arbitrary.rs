//! Whatever codex says, the conversation neither panics nor hangs, what it tells stays in order, and a failure has one of three
//! kinds.

use proptest::prelude::*;
use proptest::sample::Index;
use runyard_backend::conformance::check_order;

use super::*;

const RECORDED: &[&str] = &[
    include_str!("../../../../tests/codex/text.jsonl"),
    include_str!("../../../../tests/codex/shell.jsonl"),
    include_str!("../../../../tests/codex/shell-declined.jsonl"),
    include_str!("../../../../tests/codex/shell-slow.jsonl"),
    include_str!("../../../../tests/codex/patch.jsonl"),
    include_str!("../../../../tests/codex/question.jsonl"),
    include_str!("../../../../tests/codex/plan.jsonl"),
    include_str!("../../../../tests/codex/reasoning.jsonl"),
];

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-zA-Z]{0,8}", inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

/// The places of a value, deepest last.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(object) => object.iter().for_each(|(key, inner)| {
            let at = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
            found.push(at.clone());
            places(inner, &at, found);
        }),
        Value::Array(list) => list.iter().enumerate().for_each(|(index, inner)| {
            let at = format!("{at}/{index}");
            found.push(at.clone());
            places(inner, &at, found);
        }),
        _ => {}
    }
}

/// Replaces or removes something in a message.
fn change(message: &mut Value, place: Index, with: Option<Value>) {
    let mut found = Vec::new();
    places(message, "", &mut found);
    let Some(at) = (!found.is_empty()).then(|| place.get(&found).clone()) else { return };
    match with {
        Some(value) => {
            if let Some(place) = message.pointer_mut(&at) {
                *place = value;
            }
        }
        None => {
            let (parent, key) = at.rsplit_once('/').unwrap();
            if let Some(Value::Object(object)) = message.pointer_mut(parent) {
                object.remove(&key.replace("~1", "/").replace("~0", "~"));
            }
        }
    }
}

/// Drives a conversation as a session does, and answers what it asks. Keeps what is told.
fn drive(
    conversation: &mut Conversation,
    message: &Value,
    told: &mut Vec<Signal>,
) -> Result<(), BackendError> {
    let heard = conversation.heard(message);
    let (signals, _) = conversation.take();
    let asked = signals.iter().filter_map(|signal| match signal {
        Signal::Ask { key, .. } => Some(key.clone()),
        _ => None,
    });
    for key in asked.collect::<Vec<_>>() {
        let answer = answer(true, Some(json!({ "colour": "blue" })));
        conversation.told(Command::Answer { key, answer });
    }
    told.extend(signals);
    told.extend(conversation.take().0);
    heard
}

fn is_expected(error: &BackendError) -> bool {
    matches!(error.failure_kind, FailureKind::BackendResponseInvalid | FailureKind::BackendProtocolError)
}

proptest! {
    #[test]
    fn b10_a_recorded_turn_with_any_change_never_panics_and_fails_by_kind(
        which in any::<Index>(),
        line in any::<Index>(),
        place in any::<Index>(),
        with in prop::option::of(json_value()),
    ) {
        let lines: Vec<&str> = which.get(RECORDED).lines().collect();
        let changed = line.index(lines.len());
        let mut conversation = conversation(task());
        conversation.heard(&json!({ "id": 1, "result": {} })).unwrap();
        let (mut told, _) = conversation.take();
        for (index, line) in lines.iter().enumerate() {
            let mut message: Value = serde_json::from_str(line).unwrap();
            if index == changed {
                change(&mut message, place, with.clone());
            }
            if let Err(error) = drive(&mut conversation, &message, &mut told) {
                prop_assert!(is_expected(&error), "{error:?}");
                break;
            }
        }
        check_order(&told, false);
    }

    #[test]
    fn b10_any_message_never_panics_and_fails_by_kind(
        method in prop::option::of(prop_oneof![
            prop::sample::select(&[
                "turn/started", "turn/completed", "item/started", "item/completed", "item/agentMessage/delta", "error",
                "item/commandExecution/outputDelta", "thread/tokenUsage/updated", "turn/plan/updated", "warning",
                "item/commandExecution/requestApproval", "item/fileChange/requestApproval", "item/tool/requestUserInput",
                "mcpServer/elicitation/request", "item/permissions/requestApproval", "applyPatchApproval",
                "execCommandApproval", "serverRequest/resolved",
            ][..]).prop_map(str::to_owned),
            ".{0,20}",
        ]),
        id in prop::option::of(json_value()),
        params in json_value(),
        whole in json_value(),
    ) {
        let (mut conversation, _) = asking();
        let mut message = json!({ "params": params });
        message["method"] = json!(method);
        if method.is_none() {
            message.as_object_mut().unwrap().remove("method");
        }
        if let Some(id) = id {
            message["id"] = id;
        }
        for message in [message, whole] {
            if let Err(error) = drive(&mut conversation, &message, &mut Vec::new()) {
                prop_assert!(is_expected(&error), "{error:?}");
            }
        }
    }

    #[test]
    fn b10_a_line_that_was_cut_is_no_json(which in any::<Index>(), line in any::<Index>(), cut in any::<Index>()) {
        let lines: Vec<&str> = which.get(RECORDED).lines().collect();
        let line = line.get(&lines).as_bytes();
        let cut = 1 + cut.index(line.len() - 1);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let read = runtime.block_on(crate::jsonl::JsonLines::new(&line[..cut]).next());
        prop_assert_eq!(read.unwrap_err().failure_kind, FailureKind::BackendJsonParseError);
    }

    #[test]
    fn b10_arbitrary_bytes_are_values_or_fail_by_kind(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut lines = crate::jsonl::JsonLines::new(&bytes[..]);
        for _ in 0..=bytes.len() {
            match runtime.block_on(lines.next()) {
                Ok(Some(_)) => {}
                Ok(None) => return Ok(()),
                Err(error) => {
                    prop_assert_eq!(error.failure_kind, FailureKind::BackendJsonParseError);
                    return Ok(());
                }
            }
        }
        prop_assert!(false, "it ends");
    }
}
