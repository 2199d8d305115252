//! What prepares a run's checkout: planned on the record, and executed as the configuration says it, never as the record does.
//!
//! clause: C05
//! clause: C09

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use runyard_domain::gate::{AgentPreset, Rule};
use runyard_domain::{AgentProfile, Preparation, Workspace};
use runyard_engine::{Engine, EngineError, NewRun, Projects};

use support::{PlayedEdge, World, new_run, person};

/// How many runs of the agent `demo` may be active in the workspace.
const RUNS_MAX: usize = 2;

/// The configuration of the one workspace: what it says each time it is asked, the last for ever.
struct Configured(Mutex<VecDeque<Preparation>>);

#[async_trait]
impl Projects for Configured {
    async fn agent(&self, _: &Workspace, agent: &AgentProfile) -> Result<AgentProfile, EngineError> {
        Ok(agent.clone())
    }

    fn presets(&self) -> Vec<AgentPreset> {
        Vec::new()
    }

    fn rules(&self) -> Vec<Rule> {
        Vec::new()
    }

    fn preparation(&self, _: &Workspace) -> Preparation {
        let mut said = self.0.lock().unwrap();
        if said.len() > 1 { said.pop_front().unwrap() } else { said[0].clone() }
    }

    fn runs_max(&self, _: &str, agent: &str) -> Option<usize> {
        (agent == "demo").then_some(RUNS_MAX)
    }
}

fn setup(step: &str) -> Preparation {
    Preparation { copy: vec!["modules".into()], setup: vec![vec!["sh".into(), "-c".into(), step.into()]] }
}

async fn hub(checkout: bool, said: impl IntoIterator<Item = Preparation>) -> (Engine, PlayedEdge) {
    let world = World { checkout, ..World::default() };
    let engine = world.hub().await;
    engine.set_projects(Arc::new(Configured(Mutex::new(said.into_iter().collect()))));
    let edge = PlayedEdge::attach(&engine).await;
    engine.go().await.unwrap();
    (engine, edge)
}

#[tokio::test]
async fn c09_what_prepares_a_checkout_is_recorded_without_secrets_and_handed_out_as_it_is() {
    let secret = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    let (engine, mut edge) = hub(true, [setup(&format!("curl -H {secret}"))]).await;
    let made = engine.create_run(new_run("look"), &person()).await.unwrap();
    let planned = made.standing.run.planned.unwrap().preparation;
    assert_eq!(planned.copy, ["modules"]);
    assert!(!format!("{planned:?}").contains(&secret), "{planned:?}");
    let open = edge.start().await;
    assert_eq!(open.preparation, setup(&format!("curl -H {secret}")));
}

#[tokio::test]
async fn c05_what_works_on_no_files_is_not_prepared() {
    let (engine, _edge) = hub(false, [setup("make")]).await;
    let made = engine.create_run(new_run("look"), &person()).await.unwrap();
    assert_eq!(made.standing.run.planned.unwrap().preparation, Preparation::default());
}

#[tokio::test]
async fn c05_a_preparation_that_changed_after_it_was_planned_ends_the_run() {
    let (engine, _edge) = hub(true, [setup("make"), Preparation::default()]).await;
    let made = engine.create_run(new_run("look"), &person()).await.unwrap();
    let run = support::until(&engine, made.standing.run.id, "failed").await;
    let failure = format!("{:?}", run.state);
    assert!(failure.contains("changed after the run was planned"), "{failure}");
}

#[tokio::test]
async fn runs_beyond_what_their_project_wants_at_a_time_wait_and_those_of_another_agent_do_not() {
    let (engine, mut edge) = hub(false, [Preparation::default()]).await;
    for _ in 0..=RUNS_MAX {
        engine.create_run(new_run("look"), &person()).await.unwrap();
    }
    let other = NewRun { agent: "patient".into(), ..new_run("look") };
    engine.create_run(other, &person()).await.unwrap();
    let mut opened = Vec::new();
    for _ in 0..=RUNS_MAX {
        opened.push(edge.opened().await.agent_id);
    }
    assert_eq!(opened.iter().filter(|agent| *agent == "demo").count(), RUNS_MAX);
    assert_eq!(engine.figures().runs_waiting, 1);
}
