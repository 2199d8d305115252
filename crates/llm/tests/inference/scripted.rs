//! Scripts as data files.

use std::sync::Arc;

use runyard_llm::inference::{
    AtEnd, InferenceExecutionError as E, InferenceRequest, InterruptCause, Message, Opens, REQUESTS_KEPT_MAX,
    RetryPolicy, Role, Script, ScriptedAnswer, ScriptedCall, ScriptedError, ScriptedFault, ScriptedModel,
    ScriptedUsage, Step, StopReason, ToolOutput, When,
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::{inference, look, patient, question, see};

#[test]
fn a_script_is_data() {
    let data = json!({
        "name": "demo",
        "at_end": "repeat",
        "answers": [
            {"when": {"contains": "weather", "role": "user", "times_max": 1}, "steps": [{"text": "Sunny."}, {"stop": "end_turn"}]},
            {"opens": {"failing": {"error": "rate_limited", "message": "slow", "retry_after_ms": 1000}}},
            {"opens": {"failing": {"error": "cancelled"}}},
            {"opens": {"after_ms": 5}},
            {"opens": "never"},
            {"steps": [
                {"reasoning": "Hm."},
                {"reasoning_ended": {"signature": "s"}},
                {"call": {"id": "c", "name": "now"}},
                {"call": {"id": "d", "name": "at", "arguments": {"n": 1}}},
                {"call_started": {"index": 2, "id": "e", "name": "f"}},
                {"call_arguments": {"index": 2, "text": "{}"}},
                {"call_ended": {"index": 2}},
                {"usage": {"input_tokens": 3}},
                {"delay_ms": 20},
                "stall",
                {"fault": {"interrupted": "go_away"}},
                {"fault": {"interrupted": {"provider5xx_mid_stream": 503}}},
                {"fault": {"failed": {"error": "content_filtered"}}},
                {"stop": "tool_use"}
            ]}
        ]
    });
    let script: Script = serde_json::from_value(data).unwrap();
    let named = |id: &str, name: &str| ScriptedCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: json!(null),
    };
    let opening = |opens| ScriptedAnswer { opens, ..ScriptedAnswer::default() };
    let when = When { contains: Some("weather".to_owned()), role: Some(Role::User), times_max: Some(1) };
    let limited = ScriptedError::RateLimited { message: "slow".to_owned(), retry_after_ms: Some(1000) };
    let expected = Script {
        name: "demo".to_owned(),
        at_end: AtEnd::Repeat,
        answers: vec![
            ScriptedAnswer { when: Some(when), ..ScriptedAnswer::text("Sunny.") },
            ScriptedAnswer::failing(limited),
            ScriptedAnswer::failing(ScriptedError::Cancelled),
            opening(Opens::AfterMs(5)),
            opening(Opens::Never),
            ScriptedAnswer::steps([
                Step::Reasoning("Hm.".to_owned()),
                Step::ReasoningEnded(json!({"signature": "s"})),
                Step::Call(named("c", "now")),
                Step::Call(ScriptedCall { arguments: json!({"n": 1}), ..named("d", "at") }),
                Step::CallStarted { index: 2, id: "e".to_owned(), name: "f".to_owned() },
                Step::CallArguments { index: 2, text: "{}".to_owned() },
                Step::CallEnded { index: 2 },
                Step::Usage(ScriptedUsage { input_tokens: 3, ..ScriptedUsage::default() }),
                Step::DelayMs(20),
                Step::Stall,
                Step::Fault(ScriptedFault::Interrupted(InterruptCause::GoAway)),
                Step::Fault(ScriptedFault::Interrupted(InterruptCause::Provider5xxMidStream(503))),
                Step::Fault(ScriptedFault::Failed(ScriptedError::ContentFiltered { message: String::new() })),
                Step::Stop(StopReason::ToolUse),
            ]),
        ],
    };
    assert_eq!(script, expected);
    let again: Script = serde_json::from_value(serde_json::to_value(&script).unwrap()).unwrap();
    assert_eq!(again, expected);
    assert!(serde_json::from_value::<Script>(json!({"answers": [{"say": "x"}]})).is_err());
}

async fn answers(at_end: AtEnd, times: usize) -> Vec<Result<String, E>> {
    let answers = vec![ScriptedAnswer::text("a"), ScriptedAnswer::text("b")];
    let model = Arc::new(ScriptedModel::new(Script { name: "s".to_owned(), at_end, answers }));
    let inference = inference(&[&model], RetryPolicy::default(), patient());
    let mut said = Vec::new();
    for _ in 0..times {
        said.push(see(&inference).await.outcome.map(|answer| answer.message.said()));
    }
    said
}

#[tokio::test]
async fn answers_come_in_order_and_then_as_the_script_says() {
    let said = |text: &str| Ok(text.to_owned());
    let over = || Err(E::InvalidRequest("the script is over".to_owned()));
    assert_eq!(answers(AtEnd::Fail, 4).await, [said("a"), said("b"), over(), over()]);
    assert_eq!(answers(AtEnd::Repeat, 4).await, [said("a"), said("b"), said("a"), said("b")]);
    assert_eq!(answers(AtEnd::Last, 4).await, [said("a"), said("b"), said("b"), said("b")]);
}

#[tokio::test]
async fn an_answer_is_chosen_by_the_last_message() {
    let model = Arc::new(ScriptedModel::of(
        "s",
        [
            ScriptedAnswer::text("first"),
            ScriptedAnswer::text("It is sunny.").when_contains("weather"),
            ScriptedAnswer::text("So it is 7.").when_contains("seven"),
            ScriptedAnswer::text("second"),
        ],
    ));
    let inference = inference(&[&model], RetryPolicy::default(), patient());
    let result = ToolOutput { call_id: "c".to_owned(), content: "seven".to_owned(), is_error: false };
    let mut said = Vec::new();
    for message in [
        Message::user("Hi"),
        Message::user("How is the weather?"),
        Message::tool(result),
        Message::user("The weather?"),
        Message::user("Bye"),
    ] {
        let request = InferenceRequest { messages: vec![Arc::new(message)].into(), ..question() };
        said.push(look(inference.start(request, CancellationToken::new())).await.text());
    }
    assert_eq!(said, ["first", "It is sunny.", "So it is 7.", "It is sunny.", "second"]);
}

#[tokio::test]
async fn requests_are_kept_up_to_a_limit_or_not_at_all() {
    let script =
        || Script { name: "s".to_owned(), at_end: AtEnd::Last, answers: vec![ScriptedAnswer::text("a")] };
    let keeping = Arc::new(ScriptedModel::new(script()));
    let forgetful = Arc::new(ScriptedModel::new(script()).forgetful());
    for model in [&keeping, &forgetful] {
        let inference = inference(&[model], RetryPolicy::default(), patient());
        for _ in 0..=REQUESTS_KEPT_MAX {
            see(&inference).await;
        }
        assert_eq!(model.asked() as usize, REQUESTS_KEPT_MAX + 1);
    }
    assert_eq!((keeping.requests().len(), forgetful.requests().len()), (REQUESTS_KEPT_MAX, 0));
}
