//! Every action that there is, as a tool of OpenAI's in strict mode.
//!
//! clause: A20
#![allow(clippy::unwrap_used, reason = "a failed expectation fails the test")]

#[path = "../../surfaces/tests/llm_support/strict_rules.rs"]
mod strict_rules;

use runyard::surfaces::llm_tools::{Format, definitions};
use runyard::{Action, Actor, DefinitionError, Exposure, Runtime, SideEffects, Surface};
use strict_rules::broken_rules;

/// Every action, destructive ones too, that is not for one surface only.
fn all_of(actions: Vec<Action>) -> Runtime {
    let mut exposure = Exposure::new();
    for action in actions.iter().filter(|action| action.spec().side_effects == SideEffects::Destructive) {
        exposure = exposure.destructive(action.name(), [Surface::AiSdk]);
    }
    Runtime::builder()
        .actions(actions.into_iter().map(Ok::<_, DefinitionError>))
        .exposure(exposure)
        .build()
        .unwrap()
}

#[test]
fn every_definition_of_the_vector_app_the_example_and_the_control_plane_keeps_the_rules() {
    let vectors = runyard_testkit::vector_app().runtime().unwrap();
    let example = runyard_example_tasks::actions().into_iter().map(Result::unwrap).collect();
    let control = runyard_control::actions().into_iter().map(Result::unwrap).collect();
    let (mut strict, mut open) = (0, Vec::new());
    for runtime in [vectors, all_of(example), all_of(control)] {
        for tool in definitions(&runtime, &Actor::owner("ada"), Format::OpenaiResponses).as_array().unwrap() {
            let (name, parameters) = (tool["name"].as_str().unwrap().to_owned(), &tool["parameters"]);
            assert!(
                name.len() <= 64 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            );
            assert!(tool["description"].as_str().unwrap().chars().count() <= 1024);
            if tool["strict"] == true {
                assert_eq!(broken_rules(parameters), Vec::<String>::new(), "{name}: {parameters:#}");
                strict += 1;
            } else {
                open.push(name);
            }
        }
    }
    assert!(strict > 60, "{strict} are strict");
    // What they take cannot be said in strict mode: any JSON.
    assert_eq!(open, ["echo", "approval_resolve", "policy_test", "run_create"]);
}
