//! A run that is kept open for further turns: until when, what ends that, and how its row says it.
//!
//! clause: C22

use runyard_domain::run::{Run, RunEvent, Work};
use runyard_domain::{ExecutionPolicy, RunId, Timestamp};
use serde_json::{Value, json};

const KEEP_OPEN_MS: u64 = 900_000;

fn after(run: Option<Run>, at_ms: i64, events: &[(&str, Value)]) -> Run {
    let id = RunId::from_parts(1, &[7; 10]);
    let fold = |run, (kind, payload): &(&str, Value)| {
        let event = RunEvent::read(kind, payload).unwrap_or_else(|error| panic!("{error}: {kind} {payload}"));
        let folded = Run::fold(run, id, Timestamp::from_unix_ms(at_ms), &event);
        Some(folded.unwrap_or_else(|error| panic!("{error}: {kind}")))
    };
    events.iter().fold(run, fold).unwrap()
}

/// A run that has just started, under this execution policy.
fn started(policy: Value, carries: Option<Value>) -> Run {
    let mut created = json!({
        "task": {"kind": "text", "text": "Tidy up.", "redacted": false},
        "actor": {"id": "ada", "kind": "person"},
        "workspace": {"id": "wsp_018bcfe5680077078707070707070707", "label": "shop"},
        "agentId": "demo", "backendProfile": "demo", "sessionId": "ses_018bcfe5680077078707070707070707",
        "executionPolicy": policy, "onReject": "cancel",
    });
    if let Some(carries) = carries {
        created["carries"] = carries;
    }
    let gate = json!({"preset": "default", "version": 1});
    let planned = json!({"edgeId": "e", "workspacePolicy": "allowlist", "runtimeProfile": "demo", "approvalPolicy": gate});
    let checks = json!({"workspace": "fine"});
    let started = json!({"backendKind": "k", "protocol": "p", "checks": checks});
    let events = [
        ("run.created", created),
        ("run.planned", planned),
        ("run.accepted", json!({"edgeId": "e"})),
        ("run.preparing", json!({"checks": ["workspace"]})),
        ("run.started", started),
    ];
    after(None, 1, &events)
}

fn kept() -> Value {
    json!({"keepOpenMs": KEEP_OPEN_MS})
}

fn begins() -> (&'static str, Value) {
    ("run.turn.started", json!({}))
}

fn ends() -> (&'static str, Value) {
    ("run.turn.ended", json!({"outcome": "completed"}))
}

fn told(command: &str) -> (&'static str, Value) {
    let (id, actor) = ("cmd_018bcfe5680077078707070707070707", json!({"id": "ada", "kind": "person"}));
    let text = (command == "turn").then_some("more");
    ("run.command.received", json!({"commandId": id, "command": command, "text": text, "actor": actor}))
}

fn until(run: &Run) -> Option<i64> {
    run.kept_open_until().map(Timestamp::unix_ms)
}

#[test]
fn c22_a_kept_open_run_waits_for_a_turn_from_the_end_of_each_and_is_looked_at_when_it_is_let_go() {
    let fresh = started(kept(), None);
    let at_work = after(Some(fresh.clone()), 100, &[begins()]);
    assert_eq!((until(&fresh), until(&at_work)), (None, None), "nothing has ended yet");
    let idle = after(Some(at_work), 200, &[ends()]);
    assert_eq!((until(&idle), idle.is_idle()), (Some(900_200), true));
    assert_eq!((idle.work(true), idle.work(false)), (Work::Agent, Work::Agent));
    let queued = after(Some(idle.clone()), 300, &[told("turn")]);
    assert_eq!((until(&queued), queued.is_idle(), queued.work(true)), (None, false, Work::Agent));
    let command = json!({"commandId": "cmd_018bcfe5680077078707070707070707"});
    let again = after(Some(queued), 400, &[("run.turn.started", command), ends()]);
    assert_eq!(until(&again), Some(900_400), "it counts from the last turn");
    let let_go = after(Some(again.clone()), 500, &[told("finish")]);
    assert_eq!((until(&let_go), let_go.work(true)), (None, Work::Review));
    let ended = after(
        Some(again),
        500,
        &[(
            "run.failed",
            json!({"code": "run_timeout", "retryable": true, "message": "m", "recovery": "r", "terminalStatus": "failed", "metrics": {"wallMs": 1, "activeMs": 1}}),
        )],
    );
    assert_eq!(until(&ended), None);
}

#[test]
fn c22_a_finish_before_the_end_of_the_turn_holds_after_it() {
    let at_work = after(Some(started(kept(), None)), 100, &[begins(), told("finish")]);
    assert_eq!(at_work.work(true), Work::Agent);
    let done = after(Some(at_work), 200, &[ends()]);
    assert_eq!((until(&done), done.work(true)), (None, Work::Review));
}

#[test]
fn c22_only_a_run_with_an_agent_and_a_limit_is_kept_open() {
    let turn = [begins(), ends()];
    let usual = after(Some(started(json!({}), None)), 200, &turn);
    assert_eq!((until(&usual), usual.idle_since, usual.work(true)), (None, None, Work::Review));
    let carries = json!({"of": "run_018bcfe5680077078707070707070707", "undo": true});
    let carrying = after(Some(started(kept(), Some(carries))), 200, &turn);
    assert_eq!((until(&carrying), carrying.work(true)), (None, Work::Review));
}

#[test]
fn c22_the_row_says_since_when_it_is_idle_and_that_it_was_let_go_and_nothing_of_a_usual_run() {
    let row = |run: &Run| {
        let row = serde_json::to_value(run).unwrap();
        assert_eq!(serde_json::from_value::<Run>(row.clone()).unwrap(), *run);
        (row.get("idleSince").cloned(), row.get("finishing").cloned())
    };
    let usual = after(Some(started(json!({}), None)), 200, &[begins(), ends()]);
    assert_eq!(row(&usual), (None, None));
    let idle = after(Some(started(kept(), None)), 200, &[begins(), ends()]);
    assert_eq!(row(&idle), (Some(json!("1970-01-01T00:00:00.200Z")), None));
    let let_go = after(Some(idle), 300, &[told("finish")]);
    assert_eq!(row(&let_go).1, Some(json!(true)));
    let at_work = after(Some(let_go), 400, &[begins()]);
    assert_eq!(row(&at_work), (None, Some(json!(true))));
}

#[test]
fn c22_of_two_keep_open_limits_the_smaller_counts_and_of_one_that_one() {
    let policy = |keep_open_ms| ExecutionPolicy { keep_open_ms, ..ExecutionPolicy::default() };
    let both = |one, other| policy(one).narrowed_by(&policy(other)).keep_open_ms;
    assert_eq!((both(Some(1), Some(2)), both(Some(2), Some(1))), (Some(1), Some(1)));
    assert_eq!((both(Some(1), None), both(None, Some(1)), both(None, None)), (Some(1), Some(1), None));
    assert!(serde_json::to_value(policy(None)).unwrap().get("keepOpenMs").is_none());
    assert_eq!(serde_json::to_value(policy(Some(5))).unwrap()["keepOpenMs"], 5);
}
