//! Requests: judged here, asked about, decided, used once.

use runyard_backend::link::{Report, ToEdge};
use runyard_backend::{Answer, Command, Ending, Signal};
use runyard_domain::gate::{
    Effect, Policy, Preset, Question, Request, Risk, Rule, RuleKind, RuleText, Scope, mark,
};
use runyard_domain::run::FailureKind;
use runyard_domain::{Approval, ApprovalId, Network, Sandbox};

use crate::harness::{Hub, Place, Puppet, delta, read, shell, write, yes};

fn answered(key: &str, answer: Answer) -> Option<Command> {
    Some(Command::Answer { key: key.to_owned(), answer })
}

/// Asks, records the judgement, and gives what was said about it.
async fn judged(hub: &mut Hub, puppet: &mut Puppet, key: &str, request: Request) -> (bool, String) {
    let asking = puppet.ask(key, request);
    let (allowed, reason) = match hub.report().await {
        Report::Judged { key: of, allowed, reason, .. } if of == key => (allowed, reason),
        other => panic!("not judged: {other:?}"),
    };
    asking.await.unwrap().unwrap();
    let said = (!allowed).then(|| reason.clone());
    let answer = Answer { approved: allowed, reason: said, answer: None };
    assert_eq!(puppet.command().await, answered(key, answer));
    (allowed, reason)
}

/// Asks for what a person must decide, records it, and gives its digest.
async fn asked(hub: &mut Hub, puppet: &mut Puppet, key: &str, request: Request) -> String {
    let asking = puppet.ask(key, request);
    let Report::Asked { key: of, digest, .. } = hub.report().await else { panic!("it was not asked about") };
    assert_eq!(of, key);
    asking.await.unwrap().unwrap();
    digest
}

fn approval(number: u8) -> ApprovalId {
    ApprovalId::from_parts(1, &[number; 10])
}

#[tokio::test(start_paused = true)]
async fn c11_what_the_gate_allows_is_answered_only_when_that_is_durable() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    let mut puppet = hub.start(place.open(1)).await;
    let asking = puppet.ask("r", read("src/main.rs"));
    let batch = hub.batch().await;
    let Report::Judged { key, request, allowed: true, rule_used: None, .. } = &batch.reports[0] else {
        panic!("{batch:?}")
    };
    assert_eq!((key.as_str(), request), ("r", &read("src/main.rs")));
    puppet.hears_nothing().await;
    assert!(!asking.is_finished(), "record waits as well");
    hub.recorded(&batch).await;
    assert_eq!(asking.await.unwrap(), Ok(()));
    assert_eq!(puppet.command().await, answered("r", yes()));
}

#[tokio::test(start_paused = true)]
async fn c11_a_denied_request_is_recorded_and_told_with_its_reason_and_the_run_goes_on() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    let mut puppet = hub.start(place.open(1)).await;
    let (allowed, reason) = judged(&mut hub, &mut puppet, "r", read("/etc/shadow")).await;
    assert!(!allowed && reason.starts_with("permission_denied: "), "{reason}");
    let (allowed, _) = judged(&mut hub, &mut puppet, "s", Request::Secret { name: "key".to_owned() }).await;
    assert!(!allowed);
    let (allowed, _) = judged(&mut hub, &mut puppet, "w", write("new", "text")).await;
    assert!(allowed, "a write in the checkout is a proposal");
}

#[tokio::test(start_paused = true)]
async fn c12_what_a_person_must_decide_waits_and_the_decision_is_recorded_as_used_before_it_is_handed_over() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    let open = place.open(1);
    let run = open.run;
    let mut puppet = hub.start(open).await;
    let asking = puppet.ask("a", shell("make"));
    let Report::Asked { key, request, redacted, digest, risk, notes, .. } = hub.report().await else {
        panic!("it was not asked about")
    };
    assert_eq!(notes, ["what `make` does is not looked into; only the sandbox bounds it"]);
    assert_eq!((key.as_str(), &request, redacted, risk), ("a", &shell("make"), false, Risk::Medium));
    assert_eq!(digest.len(), 64);
    assert_eq!(asking.await.unwrap(), Ok(()), "it waits for the answer and not in record");
    puppet.hears_nothing().await;

    let answer = Answer { approved: false, reason: Some("not today".to_owned()), answer: None };
    let decision = |number, key: &str| ToEdge::Decision {
        run,
        generation: 1,
        approval: approval(number),
        key: key.to_owned(),
        digest: digest.clone(),
        answer: answer.clone(),
    };
    hub.send(decision(9, "another")).await;
    hub.send(decision(1, "a")).await;
    let used = hub.batch().await;
    assert_eq!(used.reports, [Report::Used { approval: approval(1) }], "a key that does not wait is no news");
    puppet.hears_nothing().await;
    hub.recorded(&used).await;
    assert_eq!(puppet.command().await, answered("a", answer.clone()));

    hub.send(decision(1, "a")).await;
    hub.hears_nothing().await;
    puppet.hears_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn c12_a_decision_that_was_held_answers_at_once() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    let mut puppet = hub.start(place.open(1)).await;
    let asking = puppet.ask("a", shell("make"));
    let batch = hub.batch().await;
    hub.granted(&batch, vec![("a".to_owned(), yes()), ("other".to_owned(), yes())]).await;
    assert_eq!(asking.await.unwrap(), Ok(()));
    assert_eq!(puppet.command().await, answered("a", yes()));
    puppet.hears_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn c12_a_request_that_is_given_up_takes_no_decision_any_more() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    let open = place.open(1);
    let run = open.run;
    let mut puppet = hub.start(open).await;
    asked(&mut hub, &mut puppet, "a", shell("make")).await;
    let withdrawing = puppet.record(vec![Signal::Withdraw { key: "a".to_owned() }]);
    assert_eq!(hub.report().await, Report::Signal(Signal::Withdraw { key: "a".to_owned() }));
    withdrawing.await.unwrap().unwrap();
    let (key, digest) = ("a".to_owned(), "d".to_owned());
    let decision = ToEdge::Decision { run, generation: 1, approval: approval(1), key, digest, answer: yes() };
    hub.send(decision).await;
    hub.hears_nothing().await;
    puppet.hears_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn j07_a_decision_about_another_content_is_never_handed_over() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    let open = place.open(1);
    let run = open.run;
    let mut puppet = hub.start(open).await;
    asked(&mut hub, &mut puppet, "a", shell("make")).await;
    let (key, digest) = ("a".to_owned(), "0".repeat(64));
    let decision = ToEdge::Decision { run, generation: 1, approval: approval(1), key, digest, answer: yes() };
    hub.send(decision).await;
    let Report::Signal(Signal::Ended { ending: Ending::Failed { failure_kind, .. } }) = hub.report().await
    else {
        panic!("the session goes on")
    };
    assert_eq!(failure_kind, FailureKind::BackendProtocolError);
    assert_eq!(puppet.command().await, None, "the session is closed, and nothing was handed over");
}

#[tokio::test(start_paused = true)]
async fn c13_the_same_request_has_the_same_digest_at_the_next_edge_and_another_has_another() {
    let place = Place::new().await;
    let mut digests = Vec::new();
    for number in 1..=2 {
        let mut hub = place.link().await;
        let mut puppet = hub.start(place.open(number)).await;
        digests.push(asked(&mut hub, &mut puppet, "a", shell("make")).await);
        digests.push(asked(&mut hub, &mut puppet, "b", shell("make all")).await);
        let elsewhere = Request::Shell { command: "make".to_owned(), cwd: "src".to_owned() };
        digests.push(asked(&mut hub, &mut puppet, "c", elsewhere).await);
    }
    assert_eq!(digests[..3], digests[3..]);
    assert!(digests[0] != digests[1] && digests[0] != digests[2] && digests[1] != digests[2], "{digests:?}");
}

#[tokio::test(start_paused = true)]
async fn c13_a_key_that_was_asked_about_cannot_be_used_for_another_request() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    let mut puppet = hub.start(place.open(1)).await;
    asked(&mut hub, &mut puppet, "a", shell("make")).await;
    let asking = puppet.ask("a", shell("make clean"));
    let twice = "the backend used the key of a request twice";
    let ending = Ending::failed(FailureKind::BackendProtocolError, twice);
    assert_eq!(hub.report().await, Report::Signal(Signal::Ended { ending }));
    assert!(asking.await.unwrap().is_err());
    assert_eq!(puppet.command().await, None);
}

#[tokio::test(start_paused = true)]
async fn j07_what_holds_one_of_our_placeholders_is_never_written_or_run() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    let mut puppet = hub.start(place.open(1)).await;
    let held = "key = [REDACTED:known:0123abcd]";
    let patch = Request::Patch { files: vec!["a".to_owned()], patch: held.to_owned() };
    for (key, request) in [("w", write("a", held)), ("p", patch), ("s", shell(held))] {
        let (allowed, reason) = judged(&mut hub, &mut puppet, key, request).await;
        assert!(!allowed && reason.starts_with("redacted_content: "), "{reason}");
    }
}

#[tokio::test(start_paused = true)]
async fn c12_a_question_whose_schema_refers_to_itself_is_asked_of_nobody() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    let mut puppet = hub.start(place.open(1)).await;
    let question = |answer_schema| Request::Question(Question { prompt: "Which?".into(), answer_schema });
    let endless = question(serde_json::json!({"items": {"$ref": "#"}}));
    let (allowed, reason) = judged(&mut hub, &mut puppet, "q1", endless).await;
    assert!(!allowed && reason.contains("refers to itself"), "{reason}");
    asked(&mut hub, &mut puppet, "q2", question(serde_json::json!({"type": "string"}))).await;
}

#[tokio::test(start_paused = true)]
async fn b07_an_execution_policy_narrows_whatever_the_gate_says() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    let host = || Request::Network { host: "example.com".to_owned(), port: None };
    let allow = |kind| Rule::new(Effect::Allow, kind, None).unwrap();
    let stored = vec![allow(RuleKind::Network), allow(RuleKind::Write)];
    hub.policy(Policy { version: 1, stored, ..Policy::default() }).await;

    let mut puppet = hub.start(place.open(1)).await;
    assert!(judged(&mut hub, &mut puppet, "n", host()).await.0);
    assert!(judged(&mut hub, &mut puppet, "w", write("a", "b")).await.0);

    let mut narrow = place.open(2);
    narrow.execution_policy.network = Network::Deny;
    narrow.execution_policy.sandbox = Sandbox::ReadOnly;
    narrow.execution_policy.approval = Approval::Never;
    let mut puppet = hub.start(narrow).await;
    assert!(!judged(&mut hub, &mut puppet, "n", host()).await.0);
    assert!(!judged(&mut hub, &mut puppet, "w", write("a", "b")).await.0);
    let (allowed, reason) = judged(&mut hub, &mut puppet, "s", shell("make")).await;
    assert!(!allowed && reason.contains("nobody may be asked"), "{reason}");
}

#[tokio::test(start_paused = true)]
async fn c11_a_policy_change_reaches_a_running_run() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    let mut puppet = hub.start(place.open(1)).await;
    asked(&mut hub, &mut puppet, "a", shell("make")).await;
    let allow = Rule::new(Effect::Allow, RuleKind::Shell, Some("make")).unwrap();
    hub.policy(Policy { version: 1, stored: vec![allow], ..Policy::default() }).await;
    assert!(judged(&mut hub, &mut puppet, "b", shell("make")).await.0);
    let deny = Rule::new(Effect::Deny, RuleKind::Shell, Some("make")).unwrap();
    hub.policy(Policy { version: 2, stored: vec![deny], ..Policy::default() }).await;
    assert!(!judged(&mut hub, &mut puppet, "c", shell("make")).await.0);
    hub.policy(Policy { version: 3, preset: Preset::Strict, ..Policy::default() }).await;
    asked(&mut hub, &mut puppet, "d", write("a", "b")).await;
}

#[tokio::test(start_paused = true)]
async fn c11_a_runs_own_preset_holds_and_an_unknown_one_is_taken_for_strict() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    let mut puppets = Vec::new();
    for (number, preset) in [(1, "strict"), (2, "tomorrow")] {
        let mut open = place.open(number);
        open.approval_policy.preset = preset.to_owned();
        let mut puppet = hub.start(open).await;
        asked(&mut hub, &mut puppet, "w", write("a", "b")).await;
        puppets.push(puppet);
    }
}

#[tokio::test(start_paused = true)]
async fn c11_a_rule_for_one_time_allows_one_request_of_all_runs_and_is_reported_as_used() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    let text = RuleText::new(Effect::Allow, RuleKind::Shell, Some("make"));
    let once = RuleText { id: Some("rul_once".to_owned()), scope: Scope::Once, ..text };
    let stored = vec![Rule::try_from(once).unwrap()];
    hub.policy(Policy { version: 1, stored, ..Policy::default() }).await;
    let puppet = hub.start(place.open(1)).await;
    let mut other = hub.start(place.open(2)).await;
    let asking = puppet.ask("a", shell("make"));
    let Report::Judged { allowed: true, rule_used, .. } = hub.report().await else {
        panic!("it was not allowed")
    };
    assert_eq!(rule_used.as_deref(), Some("rul_once"));
    asking.await.unwrap().unwrap();
    asked(&mut hub, &mut other, "a", shell("make")).await;
}

#[tokio::test(start_paused = true)]
async fn c11_a_rule_for_one_time_from_a_file_allows_one_request_in_each_run() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    let text = RuleText::new(Effect::Allow, RuleKind::Shell, Some("make"));
    let once = RuleText { id: Some("make once".to_owned()), scope: Scope::Once, ..text };
    let policy =
        |version| Policy { version, rules: vec![Rule::try_from(once.clone()).unwrap()], ..Policy::default() };
    hub.policy(policy(1)).await;
    // A session that is dropped would report its end.
    let mut puppets = Vec::new();
    for number in [1, 2] {
        let mut puppet = hub.start(place.open(number)).await;
        let asking = puppet.ask("a", shell("make"));
        let Report::Judged { allowed: true, rule_used, .. } = hub.report().await else {
            panic!("it was not allowed")
        };
        assert_eq!(rule_used.as_deref(), Some("make once"));
        asking.await.unwrap().unwrap();
        asked(&mut hub, &mut puppet, "b", shell("make")).await;
        // The file says so still, and it is the run that used it up.
        hub.policy(policy(2)).await;
        asked(&mut hub, &mut puppet, "c", shell("make")).await;
        puppets.push(puppet);
    }
    let mut again = place.open(3);
    again.rules_used = vec![mark("make once")];
    let mut puppet = hub.start(again).await;
    asked(&mut hub, &mut puppet, "a", shell("make")).await;
}

#[tokio::test(start_paused = true)]
async fn c11_what_a_rule_for_one_time_allowed_is_refused_where_the_hub_says_that_another_was_first() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    let text = RuleText::new(Effect::Allow, RuleKind::Shell, Some("make"));
    let once = RuleText { id: Some("rul_once".to_owned()), scope: Scope::Once, ..text };
    let stored = vec![Rule::try_from(once).unwrap()];
    hub.policy(Policy { version: 1, stored, ..Policy::default() }).await;
    let mut puppet = hub.start(place.open(1)).await;
    let asking = puppet.ask("a", shell("make"));
    let batch = hub.batch().await;
    let Report::Judged { key, allowed: true, .. } = &batch.reports[0] else { panic!("{batch:?}") };
    let no = Answer { approved: false, reason: Some("another was first".to_owned()), answer: None };
    hub.granted(&batch, vec![(key.clone(), no.clone())]).await;
    asking.await.unwrap().unwrap();
    assert_eq!(puppet.command().await, answered("a", no));
}

#[tokio::test(start_paused = true)]
async fn c11_what_an_agent_did_unasked_degrades_its_run_with_the_rule_that_denies_it() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    let text = RuleText::new(Effect::Deny, RuleKind::Shell, Some("cat *"));
    let deny = RuleText { id: Some("rul_cat".to_owned()), ..text };
    let stored = vec![Rule::try_from(deny).unwrap()];
    hub.policy(Policy { version: 1, stored, ..Policy::default() }).await;
    let puppet = hub.start(place.open(1)).await;
    for (command, said) in [
        ("ls", "the agent did something for which it had not asked"),
        (
            "cat a",
            "the agent did something for which it had not asked, and which is denied: the rule `rul_cat` says so",
        ),
    ] {
        let told = puppet.record(vec![Signal::Unasked { request: shell(command) }]);
        assert_eq!(hub.report().await, Report::Signal(Signal::Degraded { reason: said.to_owned() }));
        told.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn c11_a_rule_for_one_time_allows_one_command_that_does_what_it_says() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    let text = RuleText::new(Effect::Allow, RuleKind::Write, Some("out.txt"));
    let once = RuleText { id: Some("rul_once".to_owned()), scope: Scope::Once, ..text };
    let echo = Rule::new(Effect::Allow, RuleKind::Shell, Some("echo *")).unwrap();
    let stored = vec![echo, Rule::try_from(once).unwrap()];
    hub.policy(Policy { version: 1, stored, ..Policy::default() }).await;
    let mut puppet = hub.start(place.open(1)).await;
    let asking = puppet.ask("a", shell("echo x > out.txt"));
    let Report::Judged { allowed: true, rule_used, .. } = hub.report().await else {
        panic!("it was not allowed")
    };
    assert_eq!(rule_used.as_deref(), Some("rul_once"));
    asking.await.unwrap().unwrap();
    asked(&mut hub, &mut puppet, "b", shell("echo x > out.txt")).await;
}

#[tokio::test(start_paused = true)]
async fn b07_c11_an_execution_policy_that_allows_the_network_leaves_only_rules_to_ask_about_it() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    let ask = Rule::new(Effect::Ask, RuleKind::Network, Some("*.internal")).unwrap();
    hub.policy(Policy { version: 1, stored: vec![ask], ..Policy::default() }).await;
    let connect = |host: &str| Request::Network { host: host.to_owned(), port: None };
    // A session that is dropped would report its end.
    let mut puppets = Vec::new();
    for (number, network, allowed) in [(1, Network::Allow, true), (2, Network::Deny, false)] {
        let mut open = place.open(number);
        open.execution_policy.network = network;
        let mut puppet = hub.start(open).await;
        let (found, reason) = judged(&mut hub, &mut puppet, "a", connect("example.com")).await;
        assert!(found == allowed && reason.contains("the run's execution policy"), "{reason}");
        if allowed {
            asked(&mut hub, &mut puppet, "b", connect("a.internal")).await;
        }
        puppets.push(puppet);
    }
    let mut puppet = hub.start(place.open(3)).await;
    asked(&mut hub, &mut puppet, "a", connect("example.com")).await;
}

#[tokio::test(start_paused = true)]
async fn c11_no_more_notes_go_with_a_request_than_a_person_reads() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    let puppet = hub.start(place.open(1)).await;
    let line = |scripts: usize| (0..scripts).map(|number| format!("./{number}.sh;")).collect::<String>();
    for (key, scripts, expected) in [("a", 16, 16), ("b", 20, 17)] {
        let _asking = puppet.ask(key, shell(&line(scripts)));
        let Report::Asked { notes, .. } = hub.report().await else { panic!("it was not asked about") };
        assert_eq!(notes.len(), expected);
        let more = notes.iter().any(|note| note == "there is as much to say about 4 more of its commands");
        assert_eq!(more, scripts == 20, "{notes:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn c12_what_is_too_long_to_be_shown_is_not_asked_about() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    let mut puppet = hub.start(place.open(1)).await;
    let long = "x".repeat(300 * 1024);
    let (allowed, reason) = judged(&mut hub, &mut puppet, "s", shell(&long)).await;
    assert!(!allowed && reason.contains("too long"), "{reason}");
    let asking = puppet.ask("w", write("big", &long));
    let Report::Judged { request, allowed: true, .. } = hub.report().await else {
        panic!("it was not allowed")
    };
    assert_eq!(request, Request::Write { path: "big".to_owned(), content: None });
    asking.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn c08_what_was_said_before_a_request_is_recorded_before_it() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    let puppet = hub.start(place.open(1)).await;
    let ask = Signal::Ask { key: "r".to_owned(), request: read("a") };
    let _recording = puppet.record(vec![delta("let me see. "), ask, delta("and\n")]);
    let reports = hub.reports().await;
    assert!(matches!(&reports[0], Report::Delta { text, .. } if text == "let me see."), "{reports:?}");
    assert!(matches!(&reports[1], Report::Judged { .. }), "{reports:?}");
}
