//! A turn that goes well: what is told while it goes on, and the answer.

use runyard_llm::inference::{
    Answer, Inference, InferenceExecutionError as E, Message, Part, Role, ScriptedAnswer, ScriptedUsage,
    Step, StopReason, Update,
};
use runyard_llm::usage::Usage;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::{
    arguments, ask, call, ended, model, no_arguments, provider, question, reset, says, started, stop, text,
    think,
};

fn usage(input_tokens: u64, output_tokens: u64) -> Step {
    Step::Usage(ScriptedUsage { input_tokens, output_tokens, cached_tokens: 1, reasoning_tokens: 2 })
}

#[tokio::test]
async fn all_that_comes_is_told_and_is_the_answer() {
    let (seen, _) = ask([says([
        think("Hm."),
        Step::ReasoningEnded(json!("seal")),
        text("I look "),
        text("it up."),
        started(0, "a"),
        arguments(0, "{\"q\":"),
        arguments(0, "1}"),
        ended(0),
        usage(10, 5),
        Step::Stop(StopReason::ToolUse),
    ])])
    .await;
    let spent = Usage { input_tokens: 10, output_tokens: 5, cached_tokens: 1, reasoning_tokens: 2 };
    let looked = call("a", json!({"q": 1}));
    assert_eq!(
        seen.updates,
        [
            Update::Reasoning("Hm.".to_owned()),
            Update::Text("I look ".to_owned()),
            Update::Text("it up.".to_owned()),
            Update::ToolCallStarted { index: 0, id: "a".to_owned(), name: "tool-a".to_owned() },
            Update::ToolCallArguments { index: 0, text: "{\"q\":".to_owned() },
            Update::ToolCallArguments { index: 0, text: "1}".to_owned() },
            Update::ToolCallReady(looked.clone()),
            Update::Usage(spent),
        ]
    );
    let thought =
        serde_json::from_value(json!({"type": "reasoning", "text": "Hm.", "sealed": "seal"})).unwrap();
    let content = vec![thought, Part::Text { text: "I look it up.".to_owned() }, Part::ToolCall(looked)];
    let expected = Answer {
        message: Message { role: Role::Assistant, content },
        stop: StopReason::ToolUse,
        usage: spent,
        model: "one".to_owned(),
    };
    assert_eq!(*seen.answer(), expected);
}

#[tokio::test(start_paused = true)]
async fn what_it_cost_is_the_sum_over_attempts_and_the_last_word_in_each() {
    let (seen, _) = ask([
        says([usage(10, 0), text("a"), usage(10, 3), reset()]),
        ScriptedAnswer::failing(provider()),
        says([usage(20, 0), text("b"), usage(20, 4), stop()]),
    ])
    .await;
    let sum = Usage { input_tokens: 30, output_tokens: 7, cached_tokens: 2, reasoning_tokens: 4 };
    assert_eq!(seen.answer().usage, sum);
    let told = seen.updates.iter().filter_map(|update| match update {
        Update::Usage(usage) => Some(usage.input_tokens + usage.output_tokens),
        _ => None,
    });
    assert_eq!(told.collect::<Vec<_>>(), [10, 13, 33, 37]);
}

#[tokio::test]
async fn why_it_ended_agrees_with_what_it_calls() {
    for (told, calls, expected) in [
        (StopReason::EndTurn, 1, StopReason::ToolUse),
        (StopReason::ToolUse, 0, StopReason::EndTurn),
        (StopReason::MaxTokens, 1, StopReason::MaxTokens),
    ] {
        let steps = [started(0, "a"), ended(0)].into_iter().take(calls * 2).chain([Step::Stop(told)]);
        let (seen, _) = ask([says(steps)]).await;
        assert_eq!(seen.answer().stop, expected);
        assert_eq!(seen.ready(), vec![call("a", no_arguments()); calls]);
    }
}

// clause: J05
#[tokio::test]
async fn j05_calls_of_one_answer_have_an_id_each_on_every_wire_whatever_the_model_gives_them() {
    let long = "x".repeat(64);
    for (given, expected) in [
        (vec!["a", "b"], vec!["a", "b"]),
        (vec!["a", "a", "a"], vec!["a", "a-2", "a-3"]),
        (vec!["a", "a", "a-2"], vec!["a", "a-2", "a-2-2"]),
        (vec!["", ""], vec!["", "-2"]),
        // Not every wire takes a dot, or more than so many letters.
        (vec!["f.1", "f_1"], vec!["f.1", "f_1-2"]),
        (vec![&long, &long], vec![&long, &format!("{}-2", &long[..60])]),
    ] {
        let steps = given.iter().zip(0..).flat_map(|(id, index)| [started(index, id), ended(index)]);
        let (seen, _) = ask([says(steps.chain([stop()]))]).await;
        let begun = seen.updates.iter().filter_map(|update| match update {
            Update::ToolCallStarted { id, .. } => Some(id.as_str()),
            _ => None,
        });
        assert_eq!(begun.collect::<Vec<_>>(), expected);
        assert_eq!(seen.ready().iter().map(|call| call.id.as_str()).collect::<Vec<_>>(), expected);
        let answered = seen.answer().message.tool_calls().map(|call| call.id.as_str());
        assert_eq!(answered.collect::<Vec<_>>(), expected);
    }
}

#[tokio::test]
async fn arguments_that_are_no_json_stay_the_text_that_they_are() {
    let (seen, _) = ask([says([started(0, "a"), arguments(0, "{oops"), ended(0), stop()])]).await;
    assert_eq!(seen.ready(), [call("a", json!("{oops"))]);
}

#[tokio::test]
async fn an_answer_that_says_nothing_is_an_answer() {
    let (seen, _) = ask([says([text(""), stop()])]).await;
    assert_eq!((seen.answer().message.content.len(), seen.updates.len()), (0, 0));
}

#[tokio::test]
async fn a_turn_can_be_finished_without_looking_and_needs_nothing_but_a_model() {
    let inference = Inference::of(model("one", [ScriptedAnswer::text("done")]));
    let answer = inference.start(question(), CancellationToken::new()).finish().await.unwrap();
    assert_eq!(answer.message.said(), "done");
    let unfinished = inference.start(question(), CancellationToken::new());
    assert_eq!(unfinished.into_answer().unwrap_err(), E::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn what_is_tried_again_is_told_with_model_attempt_wait_and_code() {
    let (seen, _) =
        ask([ScriptedAnswer::failing(provider()), says([text("a"), reset()]), says([text("b"), stop()])])
            .await;
    let told = seen.updates.iter().filter_map(|update| match update {
        Update::Retrying { model, attempt, wait, code } => {
            Some((model.as_str(), *attempt, wait.as_millis(), code.as_str()))
        }
        _ => None,
    });
    let expected = [("one", 2, 500, "inference.provider"), ("one", 3, 500, "inference.stream_interrupted")];
    assert_eq!(told.collect::<Vec<_>>(), expected);
}

#[test]
fn turns_can_be_moved_between_threads() {
    fn moves<T: Send + 'static>() {}
    moves::<runyard_llm::inference::Turn>();
    moves::<Inference>();
}
