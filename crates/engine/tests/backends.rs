//! Backend profiles at creation and in a check: what a run may be given is settled and recorded, and what an edge finds comes back.
//!
//! clause: B05
//! clause: B07
//! clause: B13

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use runyard_backend::link::{CheckLine, FromEdge, ToEdge};
use runyard_domain::{Code, ExecutionPolicy, ProviderCredential, SecretRef, SecretScope};
use runyard_engine::{EngineError, NewRun, Unscoped};

use support::*;

fn credential(name: &str) -> ProviderCredential {
    let secret_ref = SecretRef { name: name.into(), keys: vec![] };
    ProviderCredential { profile: name.into(), secret_ref }
}

fn with(provider_credentials: Vec<ProviderCredential>) -> NewRun {
    let secret_scope = Some(SecretScope { provider_credentials });
    let policy = ExecutionPolicy { secret_scope, ..ExecutionPolicy::default() };
    NewRun { execution_policy: Some(policy.into()), ..new_run("x") }
}

#[tokio::test]
async fn b05_without_a_reference_to_its_profiles_secrets_no_run_is_stored() {
    let engine = World { secrets: &["auth.json"], ..World::default() }.hub().await;
    for others in [vec![], vec![credential("codex")]] {
        match engine.create_run(with(others), &person()).await {
            Err(error @ EngineError::SecretUnavailable { why: Unscoped::NoReference, .. }) => {
                assert_eq!(error.code(), Code::SecretUnavailable);
                assert!(error.to_string().contains("the backend profile demo"), "{error}");
            }
            made => panic!("{made:?}"),
        }
    }
    assert!(engine.runs(None, None, 10).await.unwrap().0.is_empty());
}

#[tokio::test]
async fn b05_b07_a_run_is_recorded_with_its_own_profiles_secrets_and_no_others() {
    let engine = World { secrets: &["auth.json"], ..World::default() }.hub().await;
    let named = SecretRef { name: "demo".into(), keys: vec!["auth.json".into()] };
    let own = vec![ProviderCredential { profile: "demo".into(), secret_ref: named }];
    for new in [new_run("x"), with(vec![credential("codex"), credential("demo")])] {
        let made = engine.create_run(new, &person()).await.unwrap().standing.run;
        let scope = made.created.execution_policy.secret_scope.unwrap();
        assert_eq!(scope.provider_credentials, own);
    }
    let open = World::default().hub().await;
    let made = open.create_run(new_run("x"), &person()).await.unwrap().standing.run;
    assert_eq!(made.created.execution_policy.secret_scope, Some(SecretScope::default()), "it needs none");
}

#[tokio::test]
async fn what_an_edge_finds_about_a_profile_comes_back_to_whoever_asked() {
    let (engine, mut edge) = World::default().hub_and_edge().await;
    let line = |found: &str| CheckLine { check: "program".into(), ok: true, found: found.into(), next: None };
    let asked = tokio::spawn({
        let engine = engine.clone();
        async move { engine.check_backend("demo").await }
    });
    let ToEdge::Check { id, profile } = edge.hear().await else { panic!("no check") };
    assert_eq!(profile.profile, "demo");
    edge.say(FromEdge::Checked { id: id + 1, found: vec![line("of another question")] }).await;
    edge.say(FromEdge::Checked { id, found: vec![line("1.0")] }).await;
    let (by, found) = asked.await.unwrap().unwrap();
    assert_eq!((by.as_str(), found), ("local", vec![line("1.0")]));
}

#[tokio::test]
async fn whoever_waits_for_an_edge_that_goes_away_is_told_so() {
    let (engine, mut edge) = World::default().hub_and_edge().await;
    let asked = tokio::spawn({
        let engine = engine.clone();
        async move { engine.check_backend("demo").await }
    });
    assert!(matches!(edge.hear().await, ToEdge::Check { .. }));
    drop(edge);
    assert!(matches!(asked.await.unwrap(), Err(EngineError::EdgeSilent)));
    let alone = World::default().hub().await;
    let silent = alone.check_backend("demo").await.unwrap_err();
    assert_eq!(silent.code(), Code::TargetOffline);
    let unknown = alone.check_backend("codx").await.unwrap_err();
    assert!(
        matches!(&unknown, EngineError::Invalid { message, .. } if message.contains("demo")),
        "{unknown}"
    );
}
