//! What our own agent asks of people, through the hub: a question and its answer, and a person's no to a call.
//!
//! clause: J01
//! clause: J05

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use rustix::process::Signal;
use serde_json::{Value, json};

use support::api::Api;
use support::native::{Native, messages, of_type, reject, results, roles};

const QUESTION: &str =
    r#"[[scenario:tool ask {"question": "Which colour shall it have?", "choices": ["red", "blue"]}]]"#;
const SHELL: &str = r#"[[scenario:tool shell {"command": "echo made > made.txt"}]]"#;

/// Answers a question over HTTP, and gives the status.
fn answer(api: &Api, approval: &Value, answer: &str) -> u16 {
    let path = format!("/approvals/{}/resolve", approval["id"].as_str().unwrap());
    let body = json!({"decision": "approve", "digest": approval["digest"], "answer": {"answer": answer}});
    api.send("POST", &path, Some(&body)).0
}

#[track_caller]
fn asked(api: &Api, run: &str) -> Value {
    let approval = api.asked(run, &[]);
    let request = &approval["request"];
    assert_eq!(request["kind"], "question", "{approval}");
    assert_eq!(request["prompt"], "Which colour shall it have?", "{approval}");
    assert_eq!(request["answerSchema"]["properties"]["answer"]["enum"], json!(["red", "blue"]), "{approval}");
    approval
}

/// The run has completed, and its model has read the one answer.
#[track_caller]
fn answered(native: &Native, api: &Api, run: &str) {
    let done = api.until(run, "completed");
    assert_eq!(done["response"], "The tool was called.", "{done}");
    let events = api.events(run);
    let messages = messages(&events, 0);
    assert_eq!(roles(&messages), ["user", "assistant", "tool", "assistant"]);
    assert_eq!(results(&messages), ["blue"], "the model reads the answer itself");
    assert_eq!(of_type(&events, "run.approval.requested").len(), 1, "it is asked once");
    let replay = native.yard.home.run(["replay", run]).data()["replay"].clone();
    assert_eq!((&replay["same"], &replay["differences"]), (&json!(true), &json!([])), "{replay}");
}

#[test]
fn j01_a_question_of_the_agent_is_answered_over_http_and_only_with_one_of_its_choices() {
    let native = Native::new("");
    let (_hub, api) = native.yard.up();
    let run = native.start(&api, QUESTION, &json!({}));
    let approval = asked(&api, &run);
    assert_eq!(answer(&api, &approval, "green"), 400, "it is none of the choices");
    assert_eq!(api.run(&run)["state"], "needs_approval");
    assert_eq!(answer(&api, &approval, "blue"), 200);
    answered(&native, &api, &run);
}

#[test]
fn j01_j05_a_question_outlives_the_hub_that_asked_it_and_is_asked_once() {
    let native = Native::new("");
    let (hub, api) = native.yard.up();
    let run = native.start(&api, QUESTION, &json!({}));
    let before = asked(&api, &run);
    hub.signal(Signal::KILL);
    hub.ended();
    let (_hub, api) = native.yard.up();
    let approval = asked(&api, &run);
    assert_eq!((&approval["id"], &approval["digest"]), (&before["id"], &before["digest"]));
    assert_eq!(answer(&api, &approval, "blue"), 200);
    answered(&native, &api, &run);
}

#[test]
fn j01_what_a_person_rejects_is_told_to_the_model_which_goes_on_where_its_agent_says_so() {
    let native = Native::new("on_reject = \"continue\"");
    let (_hub, api) = native.yard.up();
    for (task, error, told_codes) in
        [(SHELL, "tool.denied", vec![json!("tool.denied")]), (QUESTION, "tool.cancelled", vec![])]
    {
        let run = native.start(&api, task, &json!({}));
        reject(&api, &api.asked(&run, &[]), "ask me on Monday");
        let done = api.until(&run, "completed");
        assert_eq!(done["response"], "The tool was called.", "the run goes on: {done}");
        let events = api.events(&run);
        let [told] = results(&messages(&events, 0)).try_into().unwrap();
        assert!(told.contains(error) && told.contains("ask me on Monday"), "{told}");
        assert_eq!(of_type(&events, "run.approval.resolved")[0]["resolution"], "rejected");
        let codes: Vec<&Value> =
            of_type(&events, "run.tool.result").iter().map(|result| &result["code"]).collect();
        assert_eq!(codes, told_codes.iter().collect::<Vec<_>>(), "a question is no step");
        assert_eq!(native.file(&run, "made.txt"), None);
    }
}

#[test]
fn j01_what_a_person_rejects_ends_the_run_unless_its_agent_says_otherwise() {
    let native = Native::new("");
    let (_hub, api) = native.yard.up();
    for task in [SHELL, QUESTION] {
        let run = native.start(&api, task, &json!({}));
        reject(&api, &api.asked(&run, &[]), "ask me on Monday");
        let ended = api.until(&run, "cancelled");
        let events = api.events(&run);
        let last = &events.last().unwrap()["payload"];
        let why = (&last["code"], &last["reason"]);
        assert_eq!(why, (&json!("approval_rejected"), &json!("ask me on Monday")), "{ended}");
        assert_eq!(of_type(&events, "run.tool.call").len(), 0, "it was never made");
        assert_eq!(native.file(&run, "made.txt"), None);
    }
    assert_eq!(native.provider.requests().len(), 2, "the model is not asked again");
}
