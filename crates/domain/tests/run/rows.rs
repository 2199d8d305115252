//! The row of a run, event by event, byte for byte: what is folded from a log long ago is folded from it today.
//!
//! Each line of `tests/golden/run.jsonl` is an event and what it changes in the row; a field that goes away is null.

use runyard_domain::run::{
    Illegal, OPEN_STEPS_MAX, QUEUED_TURNS_MAX, Resolution, Run, RunEvent, Stopping, UNHEARD_MAX, Work,
};
use runyard_domain::{RunId, Timestamp};
use serde::Deserialize;
use serde_json::{Map, Value, json};

const GOLDEN: &str = include_str!("../golden/run.jsonl");
/// As long as one step of the story takes.
const STEP_MS: i64 = 1000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    #[serde(rename = "type")]
    kind: String,
    payload: Value,
    changes: Value,
}

fn story() -> impl Iterator<Item = Line> {
    GOLDEN.lines().map(|line| serde_json::from_str(line).unwrap())
}

fn read(kind: &str, payload: &Value) -> RunEvent {
    RunEvent::read(kind, payload).unwrap_or_else(|error| panic!("{error}: {payload}"))
}

fn fold(run: Option<Run>, step: i64, event: &RunEvent) -> Result<Run, Illegal> {
    let at = Timestamp::from_unix_ms(1_700_000_000_000 + step * STEP_MS);
    Run::fold(run, RunId::from_parts(1_700_000_000_000, &[7; 10]), at, event)
}

/// The run in the middle of its work, after its fifth event.
fn running() -> Run {
    let first = story().take(5).enumerate();
    let run = first.fold(None, |run, (step, line)| {
        Some(fold(run, step as i64, &read(&line.kind, &line.payload)).unwrap())
    });
    run.unwrap()
}

fn after(run: Run, events: impl IntoIterator<Item = (&'static str, Value)>) -> Run {
    events.into_iter().fold(run, |run, (kind, payload)| fold(Some(run), 5, &read(kind, &payload)).unwrap())
}

/// The fields in which two rows differ, as they are in the second.
fn changes(before: &Map<String, Value>, after: &Map<String, Value>) -> Value {
    let mut changed: Map<String, Value> = Map::new();
    for (field, value) in after.iter().filter(|(field, value)| before.get(*field) != Some(*value)) {
        changed.insert(field.clone(), value.clone());
    }
    for field in before.keys().filter(|field| !after.contains_key(*field)) {
        changed.insert(field.clone(), Value::Null);
    }
    Value::Object(changed)
}

// clause: C02, C03
#[test]
fn a_run_is_folded_into_the_same_row_event_by_event_and_its_row_is_read_back_whole() {
    let mut run: Option<Run> = None;
    let mut before = Map::new();
    for (step, line) in story().enumerate() {
        let event = read(&line.kind, &line.payload);
        let next = fold(run, step as i64, &event).unwrap();
        let row = serde_json::to_value(&next).unwrap();
        assert_eq!(serde_json::from_value::<Run>(row.clone()).unwrap(), next, "{}", line.kind);
        let row = row.as_object().unwrap().clone();
        let found = changes(&before, &row).to_string();
        assert_eq!(found, line.changes.to_string(), "event {} of the story: {}", step + 1, line.kind);
        assert_eq!(event.is_note(), line.changes.get("state").is_none(), "{}", line.kind);
        (run, before) = (Some(next), row);
    }
}

// clause: C05
#[test]
fn an_event_that_says_nothing_where_it_must_is_refused() {
    let asked = story().find(|line| line.kind == "run.approval.requested").unwrap().payload;
    let approval = &asked["approvalId"];
    let person = json!({"id": "ada", "kind": "person"});
    let resolved = json!({"approvalId": approval, "resolution": "approved", "decidedBy": person});
    let applying = json!({"approvalId": approval, "digest": "d1"});
    for (kind, payload, field, place) in [
        ("run.approval.requested", &asked, "digest", "/digest"),
        ("run.approval.requested", &asked, "actor", "/actor/id"),
        ("run.approval.resolved", &resolved, "decidedBy", "/decidedBy/id"),
        ("run.applying", &applying, "digest", "/digest"),
        ("run.degraded", &json!({"reason": "x"}), "reason", "/reason"),
        ("run.cancel.requested", &json!({"by": person, "reason": "x"}), "by", "/by/id"),
        ("run.cancel.requested", &json!({"by": person, "reason": "x"}), "reason", "/reason"),
    ] {
        let mut payload = payload.clone();
        *payload.pointer_mut(place).unwrap() = json!(" ");
        let refused = fold(Some(running()), 6, &read(kind, &payload)).unwrap_err();
        assert_eq!(refused.to_string(), format!("{kind} says nothing in \"{field}\""));
    }
}

#[test]
fn c21_a_run_begins_only_with_a_known_actor_and_a_workspace() {
    let created = story().next().unwrap().payload;
    for (field, place) in [("actor", "/actor/id"), ("workspace", "/workspace/label")] {
        let mut payload = created.clone();
        *payload.pointer_mut(place).unwrap() = json!("");
        let refused = fold(None, 0, &read("run.created", &payload)).unwrap_err();
        assert_eq!(refused.to_string(), format!("run.created says nothing in \"{field}\""));
        let mut payload = created.clone();
        payload.as_object_mut().unwrap().remove(field).unwrap();
        assert!(RunEvent::read("run.created", &payload).is_err(), "{field}");
    }
}

#[test]
fn what_a_row_holds_is_bounded() {
    let turn = |number: usize| {
        let id = format!("cmd_{number:032x}");
        let actor = json!({"id": "ada", "kind": "person"});
        ("run.command.received", json!({"commandId": id, "command": "turn", "text": "more", "actor": actor}))
    };
    let run = after(running(), (0..QUEUED_TURNS_MAX + 5).map(turn));
    assert_eq!(run.queued.len(), QUEUED_TURNS_MAX);

    let word = |number: usize| {
        let ("run.command.received", mut payload) = turn(number) else { unreachable!() };
        (payload["command"], payload["untilHeard"]) = (json!("steer"), json!(true));
        ("run.command.received", payload)
    };
    let run = after(running(), (0..UNHEARD_MAX + 5).map(word));
    assert_eq!(run.unheard.len(), UNHEARD_MAX);

    let call = |number: usize, idempotent: bool| {
        let (name, summary) = (format!("call-{number:03}"), format!("step {number}"));
        (
            "run.tool.call",
            json!({"call": name, "tool": "shell", "summary": summary, "idempotent": idempotent}),
        )
    };
    let many = OPEN_STEPS_MAX + 5;
    assert_eq!(after(running(), (0..many).map(|number| call(number, true))).open_steps.len(), OPEN_STEPS_MAX);
    // What may not be repeated is not forgotten for what may.
    let run = after(running(), (0..many).map(|number| call(number, number != many - 2)));
    assert_eq!(
        (run.open_steps.len(), run.unknown_steps()),
        (OPEN_STEPS_MAX, Some(format!("step {}", many - 2)))
    );
    // Nor for others like it: of those without a place of their own it is known that there are some, until the turn is over.
    let result = |number: usize| {
        let payload = json!({"call": format!("call-{number:03}"), "outcome": "succeeded", "summary": "done"});
        ("run.tool.result", payload)
    };
    let run = after(running(), (0..many).map(|number| call(number, false)));
    assert_eq!(run.open_steps.len(), OPEN_STEPS_MAX + 1);
    let run = after(run, (0..many).map(result));
    assert_eq!(run.unknown_steps(), Some("further steps".to_owned()));
    let over = after(run, [("run.turn.ended", json!({"outcome": "completed"}))]);
    assert_eq!(over.unknown_steps(), None);

    // A row is one value of a store.
    let long = |number: usize| {
        let (name, summary) = (format!("call-{number:03}"), format!("{number} {}", "x".repeat(4_000)));
        ("run.tool.call", json!({"call": name, "tool": "shell", "summary": summary, "idempotent": false}))
    };
    let run = after(running(), (0..OPEN_STEPS_MAX).map(long));
    assert!(serde_json::to_vec(&run).unwrap().len() < 512 * 1024);
    let named = run.unknown_steps().unwrap();
    assert!((0..OPEN_STEPS_MAX).all(|number| named.contains(&format!("{number} xxx"))), "all are named");
    assert_eq!(run.open_steps["call-063"].summary.len(), 4_003, "as many as can be are whole");

    let said = |text: &str, broke_off: bool| {
        ("run.message.completed", json!({"item": "m1", "text": text, "brokeOff": broke_off}))
    };
    let run = after(running(), [said("I looked.", false), said("[It broke off.]", true)]);
    assert_eq!(run.response, "I looked.", "what stands for a message is nothing that the agent said");

    let long = "é".repeat(16 * 1024);
    let run = after(running(), [("run.message.completed", json!({"item": "m1", "text": long}))]);
    assert_eq!((run.response.len(), run.response.chars().count()), (16 * 1024, 8 * 1024));

    let whole = |number: usize| {
        let (name, summary) = (format!("call-{number:03}"), "x".repeat(4 * 1024));
        ("run.tool.call", json!({"call": name, "tool": "shell", "summary": summary, "idempotent": false}))
    };
    let run = after(running(), (0..64).map(whole));
    assert!(run.open_steps.values().all(|step| step.summary.len() == 4 * 1024), "exactly so many bytes");
}

/// What is said into a turn is on its way until the agent has it, or the turn is over. Logs of before that hold none of it.
#[test]
fn c22_a_word_is_on_its_way_until_it_is_heard_or_its_turn_is_over() {
    let id = |number: u32| format!("cmd_{number:032x}");
    let actor = json!({"id": "ada", "kind": "person"});
    let said = |number: u32, text: Option<&str>, until_heard: bool| {
        let command = if text.is_some() { "steer" } else { "interrupt" };
        let payload = json!({"commandId": id(number), "command": command, "text": text, "untilHeard": until_heard,
            "actor": actor});
        ("run.command.received", payload)
    };
    let unheard = |run: &Run| -> Vec<(String, Option<String>)> {
        run.unheard.iter().map(|word| (word.command_id.to_string(), word.text.clone())).collect()
    };
    let told = [said(1, Some("Before."), false), said(2, Some("Be brief."), true), said(3, None, true)];
    let run = after(running(), told);
    assert_eq!(unheard(&run), [(id(2), Some("Be brief.".to_owned())), (id(3), None)]);
    let heard = after(run.clone(), [("run.command.heard", json!({"commandId": id(2)}))]);
    assert_eq!(unheard(&heard), [(id(3), None)]);
    for end in [
        ("run.turn.ended", json!({"outcome": "interrupted"})),
        ("run.turn.started", json!({})),
        ("run.cancelled", json!({"by": actor, "reason": "r", "metrics": {"wallMs": 1, "activeMs": 1}})),
    ] {
        assert_eq!(unheard(&after(run.clone(), [end])), []);
    }
}

/// What is being applied is stopped by a person or by its deadline; a person's word counts, and what is in place counts for both.
// clause: C02
#[test]
fn c02_an_apply_that_is_to_stop_is_taken_back_and_nothing_else_is_to_be_done_for_the_run() {
    let approval =
        story().find(|line| line.kind == "run.approval.requested").unwrap().payload["approvalId"].clone();
    let by = json!({"id": "ada", "kind": "person"});
    let applying = || ("run.applying", json!({"approvalId": approval, "digest": "d"}));
    let applied = || ("run.applied", json!({"approvalId": approval, "digest": "d"}));
    let requested = || ("run.cancel.requested", json!({"by": by, "reason": "No."}));
    let late = || ("runtime.timeout", json!({"message": "late", "retrying": false}));
    let person = |run: &Run| matches!(&run.stopping, Some(Stopping::Cancelled(told)) if told.reason == "No.");

    let run = after(running(), [applying()]);
    assert!(matches!(run.work(true), Work::Apply(_)));
    let timed_out = after(run.clone(), [late()]);
    assert_eq!((&timed_out.stopping, timed_out.work(true)), (&Some(Stopping::Late), Work::TakeBack));
    let both = [after(run.clone(), [late(), requested()]), after(run.clone(), [requested(), late()])];
    assert!(both.iter().all(|run| person(run) && run.work(true) == Work::TakeBack));
    // It was in place first: a deadline is forgotten, a person's word is not.
    assert_eq!(after(timed_out, [applied()]).stopping, None);
    assert!(person(&after(run, [requested(), applied()])));
    // Elsewhere a backend's timeout stops nothing that is applied.
    assert_eq!(after(running(), [late()]).stopping, None);
}

#[test]
fn a_resolution_is_called_the_same_in_texts_and_in_payloads() {
    for (resolution, word) in [
        (Resolution::Approved, "approved"),
        (Resolution::Rejected, "rejected"),
        (Resolution::Expired, "expired"),
        (Resolution::Withdrawn, "withdrawn"),
    ] {
        assert_eq!((resolution.as_str(), serde_json::to_value(resolution).unwrap()), (word, json!(word)));
    }
}
