//! Two people answer the same approval at the same instant, again and again: one of them decides, and both are told the truth.
//!
//! clause: C12
//! clause: J01

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::collections::BTreeMap;
use std::sync::Barrier;

use serde_json::{Value, json};

use support::api::{Api, Scripted, Yard, times};
use support::eventually;

/// What the two say, in turns.
const ANSWERS: [[Option<&str>; 2]; 5] = [
    [Some("left"), Some("right")],
    [Some("yes"), None],
    [None, Some("yes")],
    [Some("yes"), Some("yes")],
    [None, None],
];

fn body(approval: &Value, answer: Option<&str>) -> Value {
    match answer {
        Some(answer) => json!({"decision": "approve", "digest": approval["digest"], "answer": answer}),
        None => json!({"decision": "reject", "digest": approval["digest"]}),
    }
}

/// Whether what an approval came to is this answer.
fn is(approval: &Value, answer: Option<&str>) -> bool {
    let state = if answer.is_some() { "approved" } else { "rejected" };
    approval["state"] == state && approval["answer"].as_str() == answer
}

/// Both answer at once. Gives the approval as it was decided.
#[track_caller]
fn race(people: &[Api; 2], approval: &Value, answers: [Option<&str>; 2]) -> Value {
    let id = approval["id"].as_str().unwrap();
    let path = format!("/approvals/{id}/resolve");
    let ready = Barrier::new(2);
    let told = std::thread::scope(|scope| {
        let say = |at: usize| {
            let (person, path, ready) = (&people[at], &path, &ready);
            let body = body(approval, answers[at]);
            scope.spawn(move || person.post_together(path, &body, ready))
        };
        let told = [say(0), say(1)];
        told.map(|thread| thread.join().unwrap())
    });
    let decided = people[0].get(&format!("/approvals/{id}"))["approval"].clone();
    let by = decided["decidedBy"]["id"].as_str().unwrap();
    let winner = ["ada", "grace"].iter().position(|name| *name == by).unwrap();
    assert!(is(&decided, answers[winner]), "{decided} is not what {by} said");
    let (status, envelope) = &told[winner];
    assert_eq!((*status, &envelope["data"]["approval"]), (200, &decided), "who decides is told so");
    let (status, envelope) = &told[1 - winner];
    if answers[0] == answers[1] {
        assert_eq!((*status, &envelope["data"]["approval"]), (200, &decided), "the same again is fine");
    } else {
        let message = envelope["error"]["message"].as_str().unwrap_or_default();
        assert_eq!((*status, &envelope["error"]["code"]), (409, &json!("CONFLICT")), "{envelope}");
        assert!(message.contains(by), "who decided is told: {message}");
        assert!(message.contains(decided["state"].as_str().unwrap()), "and what: {message}");
    }
    decided
}

#[test]
fn c12_of_two_answers_at_the_same_instant_one_decides_and_both_are_told_the_truth() {
    let rounds = times(100, 1_000, 5_000);
    let script = format!(
        "[[turn]]\n[[turn.step]]\nask = \"Where to?\"\nschema = {{ type = \"string\" }}\nthen_say = \"I go {{answer}}.\"\nrepeat = {rounds}\n"
    );
    let yard =
        Yard::new("", &[Scripted { name: "asker", profile: "on_reject = \"continue\"", script: &script }]);
    let (_hub, owner) = yard.up();
    let people = ["ada", "grace"].map(|name| owner.person(name, "approver"));
    let run = owner.start("asker", yard.place());
    let mut decided = BTreeMap::new();
    let mut wins = BTreeMap::<String, u32>::new();
    let mut last = String::new();
    for round in 0..rounds {
        let approval = owner.asked(&run, &[&last]);
        last = approval["id"].as_str().unwrap().to_owned();
        let end = race(&people, &approval, ANSWERS[round % ANSWERS.len()]);
        *wins.entry(end["decidedBy"]["id"].as_str().unwrap().to_owned()).or_default() += 1;
        decided.insert(last.clone(), end);
    }
    owner.until(&run, "completed");
    assert_eq!(decided.len(), rounds);
    check_record(&owner, &run, &decided);
    // Whoever were always first would have had no race to win.
    assert!(wins.len() == people.len() && wins.values().all(|won| *won as usize >= rounds / 50), "{wins:?}");
    println!("{rounds} approvals, decided by: {wins:?}");
}

/// The log and the audit have each decision once, as both were told.
fn check_record(owner: &Api, run: &str, decided: &BTreeMap<String, Value>) {
    let events = owner.events(run);
    let mut resolved = BTreeMap::new();
    for event in events.iter().filter(|event| event["type"] == "run.approval.resolved") {
        let payload = &event["payload"];
        let id = payload["approvalId"].as_str().unwrap().to_owned();
        assert_eq!(payload["decidedBy"]["id"], decided[&id]["decidedBy"]["id"]);
        assert_eq!(payload["resolution"], decided[&id]["state"]);
        assert!(resolved.insert(id, ()).is_none(), "resolved twice: {event}");
    }
    assert_eq!(resolved.len(), decided.len());
    // What the agent heard is what was decided.
    let said = |word: &str| {
        let text = format!("I go {word}.");
        let of_it = events.iter().filter(|event| event["type"] == "run.message.completed");
        of_it.filter(|event| event["payload"]["text"] == text).count()
    };
    for word in ["left", "right", "yes"] {
        let of_it = decided.values().filter(|approval| approval["answer"] == word).count();
        assert_eq!(said(word), of_it, "the agent heard {word}");
    }
    let audited = eventually("every decision is in the audit", || {
        let found = owner.audit("audit.decision");
        (found.len() >= decided.len()).then_some(found)
    });
    assert_eq!(audited.len(), decided.len());
}
