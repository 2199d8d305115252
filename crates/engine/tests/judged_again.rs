//! A rule that denies wins, also over a question that is already open, and every edge hears of it.
//!
//! clause: C11
//! clause: C12

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use runyard_backend::link::ToEdge;
use runyard_domain::gate::{Effect, Preset, Rule, RuleKind};
use runyard_domain::run::{DecisionScope, Who};
use runyard_domain::{Actor, Code};
use runyard_engine::{ApprovalRecord, ApprovalState, BasePolicy, Decision, Engine, EngineError, Resolve};

use support::*;

async fn only_open(engine: &Engine) -> ApprovalRecord {
    let mut open = engine.open_approvals(None, None, 10, false).await.unwrap();
    assert_eq!(open.len(), 1);
    open.remove(0)
}

async fn resolve(
    engine: &Engine,
    record: &ApprovalRecord,
    decision: Decision,
) -> Result<ApprovalRecord, EngineError> {
    let answer = Resolve {
        decision,
        digest: record.asked.digest.clone(),
        reason: None,
        scope: DecisionScope::Once,
        answer: None,
        selection: None,
        comments: Vec::new(),
        revise: false,
    };
    engine.resolve(record.asked.approval_id, answer, &person()).await
}

#[tokio::test]
async fn c11_what_a_rule_denies_by_now_cannot_be_approved_and_the_rule_is_named() {
    let (engine, mut edge) = World::default().hub_and_edge().await;
    let run = engine.create_run(new_run("x"), &person()).await.unwrap().standing.run.id;
    let open = edge.start().await;
    edge.recorded(&open, 4, vec![asked("a1", "npm publish")]).await;
    let record = only_open(&engine).await;
    assert_eq!(engine.denied_by_now(&record), None);
    let by = Who::from(&Actor::owner("ada"));
    let rules = engine.installation();
    let other = Rule::new(Effect::Deny, RuleKind::Shell, Some("rm *")).unwrap();
    rules.add_rule(other, &by).await.unwrap();
    assert_eq!(engine.denied_by_now(&record), None, "a rule about something else says nothing");
    let rule = Rule::new(Effect::Deny, RuleKind::Shell, Some("npm *")).unwrap();
    let rule = rules.add_rule(rule, &by).await.unwrap();
    let error = resolve(&engine, &record, Decision::Approve).await.unwrap_err();
    assert_eq!(error.code(), Code::PermissionDenied);
    assert!(error.to_string().contains(&rule.id.to_string()), "{error}");
    assert!(engine.denied_by_now(&record).is_some_and(|why| why.contains(&rule.id.to_string())));
    assert_eq!(engine.run(run).await.unwrap().run.state.name(), "needs_approval", "nothing was written");
    rules.remove_rule(&rule.id.to_string(), &by).await.unwrap();
    let approved = resolve(&engine, &record, Decision::Approve).await.unwrap();
    assert_eq!(approved.state().as_str(), "approved", "without the rule it is the person's again");
    assert_eq!(engine.denied_by_now(&approved), None);
}

#[tokio::test]
async fn c12_what_a_rule_denies_by_now_can_be_rejected() {
    let (engine, mut edge) = World::default().hub_and_edge().await;
    let run = engine.create_run(new_run("x"), &person()).await.unwrap().standing.run.id;
    let open = edge.start().await;
    edge.recorded(&open, 4, vec![asked("a1", "npm publish")]).await;
    let record = only_open(&engine).await;
    let rule = Rule::new(Effect::Deny, RuleKind::Shell, None).unwrap();
    engine.installation().add_rule(rule, &Who::from(&person())).await.unwrap();
    let rejected = resolve(&engine, &record, Decision::Reject).await.unwrap();
    assert_ne!(rejected.state(), ApprovalState::Open);
    until(&engine, run, "cancelled").await;
}

/// How many rules are added at once.
const RULES: usize = 200;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c11_what_an_edge_is_told_of_the_policy_is_never_older_than_what_it_was_told_before() {
    let (engine, mut edge) = World::default().hub_and_edge().await;
    let add = |number: usize| {
        let engine = engine.clone();
        tokio::spawn(async move {
            let command = format!("never-{number} *");
            let rule = Rule::new(Effect::Deny, RuleKind::Shell, Some(&command)).unwrap();
            engine.installation().add_rule(rule, &Who::from(&person())).await.unwrap();
            engine.policy_changed().await;
        })
    };
    for adding in (0..RULES).map(add).collect::<Vec<_>>() {
        adding.await.unwrap();
    }
    engine.rebase(BasePolicy { preset: Preset::Strict, ..BasePolicy::default() }).await;
    let mut before = 0;
    loop {
        let ToEdge::Policy(policy) = edge.hear().await else { panic!("expected a policy") };
        assert!(policy.version >= before, "version {} after {before}", policy.version);
        before = policy.version;
        if policy.preset == Preset::Strict {
            assert_eq!(policy.stored.len(), RULES);
            break;
        }
    }
}

#[tokio::test]
async fn c11_a_rule_that_another_hub_adds_while_this_one_begins_reaches_its_edge() {
    let world = World::default();
    let engine = world.hub().await;
    let mut edge = PlayedEdge::attach(&engine).await;
    let rule = Rule::new(Effect::Deny, RuleKind::Shell, Some("rm *")).unwrap();
    let other = world.hub_of(&[]).await;
    other.installation().add_rule(rule, &Who::from(&person())).await.unwrap();
    let known = async {
        while engine.installation().stored_rules().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), known).await.unwrap();
    engine.go().await.unwrap();
    let ToEdge::Policy(policy) = edge.hear().await else { panic!("expected a policy") };
    assert_eq!(policy.stored.len(), 1);
}
