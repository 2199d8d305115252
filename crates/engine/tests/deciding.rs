//! Decisions that reach further, decisions that wait, and who may decide.
//!
//! clause: C11
//! clause: C12
//! clause: C13

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::sync::Arc;

use runyard_backend::Answer;
use runyard_backend::link::{Report, ToEdge};
use runyard_domain::gate::{
    Effect, OwnRuns, Question, Request, Rule, RuleKind, RuleText, Scope, SideEffects, mark,
};
use runyard_domain::run::{DecisionScope, Resolution, RunState, Who};
use runyard_domain::{Actor, Approval, Code, RunId, WantedExecution};
use runyard_engine::{
    AgentCall, ApprovalRecord, BasePolicy, Decision, Engine, EngineError, NewRun, Resolve, SNOOZE_MS_MAX,
};
use runyard_store::{Clock, ManualClock, MemoryStore};

use support::*;

const HOUR_MS: u64 = 60 * 60 * 1000;

/// A run that asks for this command.
async fn asking(engine: &Engine, edge: &mut PlayedEdge, command: &str) -> (RunId, ApprovalRecord) {
    let run = engine.create_run(new_run("x"), &person()).await.unwrap().standing.run.id;
    let open = edge.start().await;
    edge.recorded(&open, 4, vec![asked("a1", command)]).await;
    let mut waiting = engine.open_approvals(Some(run), None, 10, true).await.unwrap();
    (run, waiting.remove(0))
}

fn yes(record: &ApprovalRecord, scope: DecisionScope) -> Resolve {
    Resolve { scope, ..Resolve::new(Decision::Approve, &record.asked.digest) }
}

/// Nobody was there to keep the timer: what was asked a week ago is a rejection all the same.
#[tokio::test]
async fn c12_an_answer_after_the_expiry_counts_for_nothing_also_where_no_timer_was_kept() {
    let clock = Arc::new(ManualClock::at(1_700_000_000_000));
    let shared: Arc<dyn Clock> = Arc::<ManualClock>::clone(&clock);
    let store = Arc::new(MemoryStore::with_clock(Arc::clone(&shared)));
    let world = World { store, clock: shared, ..World::default() };
    for snoozes in [false, true] {
        let (engine, mut edge) = world.hub_and_edge().await;
        let (run, record) = asking(&engine, &mut edge, "ls").await;
        let id = record.asked.approval_id;
        engine.stop();
        drop((engine, edge));
        clock.advance_ms(record.asked.expires_at.unix_ms() - clock.now().unix_ms());
        // A hub that only answers this call.
        let engine = world.hub().await;
        let refused = match snoozes {
            true => engine.snooze(id, HOUR_MS, None, &person()).await,
            false => engine.resolve(id, yes(&record, DecisionScope::Once), &person()).await,
        };
        let refused = refused.unwrap_err();
        assert!(matches!(&refused, EngineError::Decided { resolution: "expired", .. }), "{refused}");
        let ended = engine.run(run).await.unwrap().run;
        let RunState::Cancelled { cancelled } = &ended.state else { panic!("{ended:?}") };
        assert_eq!(cancelled.code, Some(Code::ApprovalRejected));
    }
}

/// An agent wrote the schema: what would keep the hub busy for ever is not run, also where it was recorded before.
#[tokio::test]
async fn c12_a_question_whose_schema_has_no_end_is_rejected_or_left_and_never_answered() {
    let (engine, mut edge) = World::default().hub_and_edge().await;
    engine.create_run(new_run("x"), &person()).await.unwrap();
    let open = edge.start().await;
    let mut defs = serde_json::Map::from_iter([("d0".to_owned(), serde_json::json!({"type": "integer"}))]);
    for number in 1..=26 {
        let before = serde_json::json!({"$ref": format!("#/$defs/d{}", number - 1)});
        defs.insert(format!("d{number}"), serde_json::json!({"allOf": [before, before]}));
    }
    let answer_schema = serde_json::json!({"$defs": defs, "$ref": "#/$defs/d26"});
    let question = Question { prompt: "How many?".into(), answer_schema };
    let Report::Asked { key, redacted, digest, risk, reason, notes, .. } = asked("q", "ls") else { panic!() };
    let request = Request::Question(question);
    edge.recorded(&open, 4, vec![Report::Asked { key, request, redacted, digest, risk, reason, notes }])
        .await;
    let record = engine.open_approvals(None, None, 10, true).await.unwrap().remove(0);
    let answered = Resolve { answer: Some("many".into()), ..yes(&record, DecisionScope::Once) };
    let refused = engine.resolve(record.asked.approval_id, answered, &person()).await.unwrap_err();
    assert!(matches!(&refused, EngineError::Invalid { path: "answer", .. }), "{refused}");
    let no = Resolve::new(Decision::Reject, &record.asked.digest);
    engine.resolve(record.asked.approval_id, no, &person()).await.unwrap();
}

#[tokio::test]
async fn c11_a_yes_for_the_session_or_the_project_is_a_rule_of_just_that() {
    for (scope, kept) in [(DecisionScope::Session, Scope::Session), (DecisionScope::Project, Scope::Project)]
    {
        let (engine, mut edge) = World::default().hub_and_edge().await;
        let (run, record) = asking(&engine, &mut edge, "cargo test").await;
        let id = record.asked.approval_id;
        engine.resolve(id, yes(&record, scope), &person()).await.unwrap();
        let again = engine.resolve(id, yes(&record, scope), &person()).await.unwrap();
        assert_eq!(again.resolved.unwrap().scope, Some(scope));
        let rules = engine.installation().stored_rules();
        assert_eq!(rules.len(), 1, "the same answer again adds no second rule");
        let text = rules[0].text();
        assert_eq!((text.effect, text.kind, text.scope), (Effect::Allow, RuleKind::Shell, kept));
        assert_eq!(text.matches.as_deref(), Some("cargo test"));
        assert_eq!((text.agent.as_deref(), text.workspace.as_deref()), (Some("demo"), Some("site")));
        let session = engine.run(run).await.unwrap().run.created.session_id;
        assert_eq!(text.session, (scope == DecisionScope::Session).then_some(session));
        let other = engine.resolve(id, yes(&record, DecisionScope::Once), &person()).await.unwrap_err();
        assert_eq!(other.code(), Code::Conflict, "another reach is another answer");
    }
}

#[tokio::test]
async fn c11_what_no_rule_can_say_is_approved_once_or_for_the_run_only() {
    let (engine, mut edge) = World::default().hub_and_edge().await;
    let (run, record) = asking(&engine, &mut edge, "cargo test && rm *.o").await;
    for scope in [DecisionScope::Session, DecisionScope::Project] {
        let error =
            engine.resolve(record.asked.approval_id, yes(&record, scope), &person()).await.unwrap_err();
        assert!(matches!(error, EngineError::Invalid { path: "scope", .. }), "{error}");
    }
    assert_eq!(engine.run(run).await.unwrap().run.state.name(), "needs_approval", "nothing was decided");
    assert!(engine.installation().stored_rules().is_empty());
    let mut reject = yes(&record, DecisionScope::Project);
    reject.decision = Decision::Reject;
    engine.resolve(record.asked.approval_id, reject, &person()).await.unwrap();
    assert!(engine.installation().stored_rules().is_empty(), "a no makes no rule");
}

#[tokio::test]
async fn c12_a_snoozed_approval_is_left_out_of_the_inbox_for_a_while_and_expires_later_by_as_much() {
    let clock = Arc::new(ManualClock::at(1_700_000_000_000));
    let shared: Arc<dyn Clock> = Arc::<ManualClock>::clone(&clock);
    let store = Arc::new(MemoryStore::with_clock(Arc::clone(&shared)));
    let world = World { store, clock: shared, ..World::default() };
    let (engine, mut edge) = world.hub_and_edge().await;
    let (run, record) = asking(&engine, &mut edge, "cargo test").await;
    let (id, expires) = (record.asked.approval_id, record.asked.expires_at);
    let inbox = |snoozed| engine.open_approvals(None, None, 10, snoozed);

    let until = clock.now().plus_ms(HOUR_MS);
    let snoozed = engine.snooze(id, HOUR_MS, Some("lunch".to_owned()), &person()).await.unwrap();
    assert_eq!(snoozed.snoozed_until, Some(until));
    assert_eq!(snoozed.asked.expires_at, expires.plus_ms(HOUR_MS));
    assert!(inbox(false).await.unwrap().is_empty());
    assert_eq!(inbox(true).await.unwrap().len(), 1);
    assert_eq!(world.store.next_timer().await.unwrap(), Some(expires.plus_ms(HOUR_MS)), "it is not a no");

    // Half of it has passed; sleeping on for an hour adds the half that is new.
    clock.advance_ms(HOUR_MS as i64 / 2);
    let longer = engine.snooze(id, HOUR_MS, None, &person()).await.unwrap();
    assert_eq!(longer.asked.expires_at, expires.plus_ms(HOUR_MS + HOUR_MS / 2));
    // Waking earlier takes back what it has not slept.
    let earlier = engine.snooze(id, 1, None, &person()).await.unwrap();
    assert_eq!(earlier.asked.expires_at, expires.plus_ms(HOUR_MS / 2 + 1));
    clock.advance_ms(1);
    assert_eq!(inbox(false).await.unwrap().len(), 1, "it is back");

    engine.resolve(id, yes(&record, DecisionScope::Once), &person()).await.unwrap();
    let late = engine.snooze(id, HOUR_MS, None, &person()).await.unwrap_err();
    assert!(matches!(late, EngineError::Decided { resolution: "approved", .. }), "{late}");
    let kinds = kinds(&engine, run).await;
    assert_eq!(kinds.iter().filter(|kind| *kind == "run.approval.snoozed").count(), 3);
}

#[tokio::test]
async fn c12_a_snooze_is_for_people_and_within_bounds() {
    let (engine, mut edge) = World::default().hub_and_edge().await;
    let (run, record) = asking(&engine, &mut edge, "cargo test").await;
    let id = record.asked.approval_id;
    let agent = Actor::agent("demo", run, ["approvals.resolve"]);
    assert!(matches!(engine.snooze(id, 1, None, &agent).await, Err(EngineError::ForPeopleOnly)));
    for wrong in [0, SNOOZE_MS_MAX + 1] {
        let error = engine.snooze(id, wrong, None, &person()).await.unwrap_err();
        assert!(matches!(error, EngineError::Invalid { path: "forMs", .. }), "{error}");
    }
    engine.snooze(id, SNOOZE_MS_MAX, None, &person()).await.unwrap();
}

#[tokio::test]
async fn c12_where_it_is_said_so_nobody_approves_what_their_own_run_asks() {
    let (other, own) = (Actor::owner("bob"), person());
    let world = World { own_runs: OwnRuns::Refuse, ..World::default() };
    let (engine, mut edge) = world.hub_and_edge().await;
    let (rejected, second) = asking(&engine, &mut edge, "cargo test").await;
    let (run, record) = asking(&engine, &mut edge, "cargo test").await;
    let id = record.asked.approval_id;
    let refused = engine.resolve(id, yes(&record, DecisionScope::Once), &own).await.unwrap_err();
    assert!(matches!(refused, EngineError::OwnRun), "{refused}");
    assert_eq!(refused.code(), Code::AuthorizationError);
    assert_eq!(engine.run(run).await.unwrap().run.state.name(), "needs_approval");
    engine.resolve(id, yes(&record, DecisionScope::Once), &other).await.unwrap();
    assert_ne!(engine.run(run).await.unwrap().run.state.name(), "needs_approval");

    let reject = Resolve::new(Decision::Reject, &second.asked.digest);
    engine.resolve(second.asked.approval_id, reject, &own).await.unwrap();
    let RunState::Cancelled { .. } = until(&engine, rejected, "cancelled").await.state else { panic!() };
}

#[tokio::test]
async fn c11_the_rule_of_a_decision_is_stored_once_however_often_it_is_brought() {
    let world = World::default();
    let (engine, mut edge) = world.hub_and_edge().await;
    let (_, record) = asking(&engine, &mut edge, "cargo test").await;
    engine.resolve(record.asked.approval_id, yes(&record, DecisionScope::Project), &person()).await.unwrap();
    let rule = engine.installation().registry().rules()[0].clone();
    // Delivered to the audit, it is brought once more, and stored once.
    while engine
        .installation()
        .entries(0, 100)
        .await
        .unwrap()
        .iter()
        .all(|entry| entry.kind != "audit.decision")
    {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert_eq!(engine.installation().registry().rules(), std::slice::from_ref(&rule));
    assert_eq!(rule.added_by.id, "ada");
    // Nor does it come back when somebody removed it.
    engine.installation().remove_rule(&rule.id.to_string(), &rule.added_by).await.unwrap();
    engine.resolve(record.asked.approval_id, yes(&record, DecisionScope::Project), &person()).await.unwrap();
    assert!(engine.installation().stored_rules().is_empty());
}

#[tokio::test]
async fn c11_what_a_project_allows_goes_with_its_workspace_and_what_it_denies_stays() {
    let (engine, _edge) = World::default().hub_and_edge().await;
    let rules = engine.installation();
    let by = Who::from(&person());
    for (effect, label) in [(Effect::Allow, "site"), (Effect::Deny, "site"), (Effect::Allow, "other")] {
        let text = RuleText {
            scope: Scope::Project,
            workspace: Some(label.to_owned()),
            ..RuleText::new(effect, RuleKind::Shell, Some("make"))
        };
        rules.add_rule(text.try_into().unwrap(), &by).await.unwrap();
    }
    rules.add_rule(Rule::new(Effect::Allow, RuleKind::Shell, Some("ls")).unwrap(), &by).await.unwrap();
    rules.retire_project("site", &by).await.unwrap();
    let left: Vec<_> =
        rules.stored_rules().iter().map(|rule| (rule.effect(), rule.text().workspace.clone())).collect();
    let expected = [
        (Effect::Deny, Some("site".to_owned())),
        (Effect::Allow, Some("other".to_owned())),
        (Effect::Allow, None),
    ];
    assert_eq!(left, expected);
}

#[tokio::test]
async fn c11_what_agents_asked_for_is_found_in_the_logs_with_what_was_decided() {
    let (engine, mut edge) = World::default().hub_and_edge().await;
    let (first, tested) = asking(&engine, &mut edge, "cargo test").await;
    let (second, published) = asking(&engine, &mut edge, "cargo publish").await;
    let (third, _) = asking(&engine, &mut edge, "ls").await;
    engine.resolve(tested.asked.approval_id, yes(&tested, DecisionScope::Once), &person()).await.unwrap();
    let reject = Resolve::new(Decision::Reject, &published.asked.digest);
    engine.resolve(published.asked.approval_id, reject, &person()).await.unwrap();

    let past = engine.past_requests().await.unwrap();
    let shell = |command: &str| Request::Shell { command: command.to_owned(), cwd: ".".to_owned() };
    let found: Vec<_> = past
        .requests
        .iter()
        .map(|past| (past.run, past.request.clone(), past.effect, past.decided))
        .collect();
    let expected = [
        (third, shell("ls"), Effect::Ask, None),
        (second, shell("cargo publish"), Effect::Ask, Some(Resolution::Rejected)),
        (first, shell("cargo test"), Effect::Ask, Some(Resolution::Approved)),
    ];
    assert_eq!(found, expected, "the newest run first");
    assert_eq!((past.runs, past.more), (3, false));
    assert!(past.requests.iter().all(|past| past.agent == "demo" && past.workspace == "site"));
}

/// A rule that allows this for one time.
async fn once(engine: &Engine, kind: RuleKind, pattern: &str) -> String {
    let text = RuleText { scope: Scope::Once, ..RuleText::new(Effect::Allow, kind, Some(pattern)) };
    let by = Who::from(&person());
    engine.installation().add_rule(text.try_into().unwrap(), &by).await.unwrap().id.to_string()
}

/// The next thing that is no policy.
async fn answered(edge: &mut PlayedEdge) -> ToEdge {
    loop {
        match edge.hear().await {
            ToEdge::Policy(_) => {}
            heard => return heard,
        }
    }
}

#[tokio::test]
async fn c11_what_an_edge_allows_by_a_rule_for_one_time_that_another_used_up_is_refused() {
    let world = World::default();
    let (engine, mut edge) = world.hub_and_edge().await;
    let rule = once(&engine, RuleKind::Shell, "make").await;
    let run = engine.create_run(new_run("x"), &person()).await.unwrap().standing.run.id;
    let open = loop {
        if let ToEdge::Open(open) = answered(&mut edge).await {
            break *open;
        }
    };
    let allowed = |key: &str| Report::Judged {
        key: key.to_owned(),
        request: Request::Shell { command: "make".into(), cwd: ".".into() },
        allowed: true,
        reason: "a rule says so".into(),
        rule_used: Some(rule.clone()),
    };
    edge.recorded(&open, 1, vec![Report::Accepted]).await;
    edge.recorded(&open, 2, vec![preparing()]).await;
    let started = started();
    edge.recorded(&open, 3, vec![started]).await;
    // Another edge asks a moment later than this one, as it sees it.
    edge.report(&open, 4, vec![allowed("first")]).await;
    let ToEdge::Recorded { granted, .. } = answered(&mut edge).await else { panic!("it is recorded") };
    assert_eq!(granted, [], "what the edge said is what counts");
    edge.report(&open, 5, vec![allowed("second")]).await;
    let ToEdge::Recorded { granted, .. } = answered(&mut edge).await else { panic!("it is recorded") };
    let [(key, answer)] = granted.as_slice() else { panic!("it is refused: {granted:?}") };
    assert_eq!((key.as_str(), answer.approved), ("second", false));
    let reason = answer.reason.clone().unwrap();
    assert!(reason.starts_with("permission_denied: ") && reason.contains("used up"), "{reason}");
    let events = engine.events(run, 0, 100).await.unwrap();
    let judged: Vec<serde_json::Value> = events
        .iter()
        .map(|event| serde_json::from_slice::<serde_json::Value>(&event.body).unwrap())
        .filter(|event| event["type"] == "run.gate.judged")
        .map(|event| event["payload"]["effect"].clone())
        .collect();
    assert_eq!(judged, ["allow", "deny"]);
}

#[tokio::test]
async fn c11_a_rule_for_one_time_of_the_base_serves_once_in_each_run_whoever_drives_it() {
    let world = World::default();
    let (engine, mut edge) = world.hub_and_edge().await;
    let text = RuleText::new(Effect::Allow, RuleKind::Shell, Some("make"));
    let once = RuleText { id: Some("make once".to_owned()), scope: Scope::Once, ..text };
    let base = BasePolicy { rules: vec![once.try_into().unwrap()], ..BasePolicy::default() };
    engine.rebase(base).await;
    let allowed = |key: &str| Report::Judged {
        key: key.to_owned(),
        request: Request::Shell { command: "make".into(), cwd: ".".into() },
        allowed: true,
        reason: "a rule says so".into(),
        rule_used: Some("make once".into()),
    };
    for _ in 0..2 {
        let run = engine.create_run(new_run("x"), &person()).await.unwrap().standing.run.id;
        let open = loop {
            if let ToEdge::Open(open) = answered(&mut edge).await {
                break *open;
            }
        };
        assert_eq!(open.rules_used, Vec::<String>::new());
        edge.recorded(&open, 1, vec![Report::Accepted]).await;
        edge.recorded(&open, 2, vec![preparing()]).await;
        edge.recorded(&open, 3, vec![started()]).await;
        // Twice in one batch and once in another: the first alone is what the rule is for.
        edge.report(&open, 4, vec![allowed("first"), allowed("second")]).await;
        let ToEdge::Recorded { granted, .. } = answered(&mut edge).await else { panic!("it is recorded") };
        let refused = |key: &str, granted: &[(String, Answer)]| match granted {
            [(name, answer)] => name == key && !answer.approved,
            _ => false,
        };
        assert!(refused("second", &granted), "{granted:?}");
        edge.report(&open, 5, vec![allowed("third")]).await;
        let ToEdge::Recorded { granted, .. } = answered(&mut edge).await else { panic!("it is recorded") };
        assert!(refused("third", &granted), "{granted:?}");
        assert_eq!(engine.run(run).await.unwrap().run.rules_used, [mark("make once")]);
    }
}

#[tokio::test]
async fn c12_a_call_that_only_a_rule_for_one_time_allows_is_denied_where_nobody_may_be_asked() {
    let world = World::default();
    let (engine, mut edge) = world.hub_and_edge().await;
    once(&engine, RuleKind::Action, "notes_add").await;
    for (approval, denied) in [(Approval::Never, true), (Approval::Ask, false)] {
        let wanted = WantedExecution { approval: Some(approval), ..WantedExecution::default() };
        let new = NewRun { execution_policy: Some(wanted), ..new_run("x") };
        let run = engine.create_run(new, &person()).await.unwrap().standing.run.id;
        edge.start().await;
        let call = AgentCall {
            run,
            call: "c1".into(),
            action: "notes_add".into(),
            side_effects: SideEffects::Write,
            is_of_the_hub: false,
            idempotent: false,
            input: serde_json::json!({"text": "x"}),
        };
        let (caller, made) = (engine.clone(), call.clone());
        let passing = tokio::spawn(async move { caller.pass_call(made).await });
        if denied {
            let refused = tokio::time::timeout(std::time::Duration::from_secs(30), passing).await;
            let refused = refused.expect("nobody is asked").unwrap().unwrap_err();
            let EngineError::Denied { reason } = &refused else { panic!("{refused}") };
            assert!(reason.contains("for one time"), "{reason}");
            assert!(engine.open_approvals(Some(run), None, 10, true).await.unwrap().is_empty());
        } else {
            until(&engine, run, "needs_approval").await;
            let asked = engine.open_approvals(Some(run), None, 10, true).await.unwrap();
            assert!(asked[0].asked.reason.contains("for one time"), "{asked:?}");
            passing.abort();
        }
    }
}
