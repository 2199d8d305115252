//! Several models: who is asked next, and when.

use std::time::Duration;

use runyard_domain::Code;
use runyard_llm::inference::{
    BreakerPolicy, CONTINUE, InferenceExecutionError as E, RetryPolicy, ScriptedAnswer, ScriptedError,
    Standing, Update,
};

use crate::support::{
    Seen, inference, invalid, limited, model, patient, provider, reset, says, see, stop, text,
};

fn fallbacks(seen: &Seen) -> Vec<(&str, &str, Option<Code>)> {
    let fallbacks = seen.updates.iter().filter_map(|update| match update {
        Update::Fallback { from, to, code } => Some((from.as_str(), to.as_str(), *code)),
        _ => None,
    });
    fallbacks.collect()
}

// clause: D07
#[tokio::test(start_paused = true)]
async fn d07_the_next_model_is_asked_when_one_has_failed_as_often_as_it_may() {
    let one = model("one", vec![ScriptedAnswer::failing(provider()); 9]);
    let two = model("two", [ScriptedAnswer::text("well")]);
    let seen = see(&inference(&[&one, &two], RetryPolicy::default(), patient())).await;
    assert_eq!((one.asked(), two.asked(), seen.text().as_str()), (3, 1, "well"));
    assert_eq!(fallbacks(&seen), [("one", "two", Some(Code::InferenceProvider))]);
    assert_eq!(seen.answer().model, "two");
}

// clause: D07
#[tokio::test(start_paused = true)]
async fn d07_a_permanent_error_is_not_tried_on_another_model() {
    let one = model("one", [ScriptedAnswer::failing(invalid())]);
    let two = model("two", [ScriptedAnswer::text("well")]);
    let seen = see(&inference(&[&one, &two], RetryPolicy::default(), patient())).await;
    assert_eq!(*seen.error(), invalid().into());
    assert_eq!((one.asked(), two.asked(), seen.updates.len()), (1, 0, 0));
}

// clause: D08
#[tokio::test(start_paused = true)]
async fn d08_a_provider_that_wants_to_be_left_alone_for_long_is_left_for_the_next_at_once() {
    for error in
        [limited(60_000), ScriptedError::Overloaded { message: String::new(), retry_after_ms: Some(60_000) }]
    {
        let one = model("one", [ScriptedAnswer::failing(error.clone())]);
        let two = model("two", [ScriptedAnswer::text("well")]);
        let seen = see(&inference(&[&one, &two], RetryPolicy::default(), patient())).await;
        assert_eq!((one.asked(), seen.waits().len(), seen.text().as_str()), (1, 0, "well"));
        assert_eq!(seen.last_error, Some(error.into()), "it is not lost");
    }
}

// clause: D08
#[tokio::test(start_paused = true)]
async fn d08_the_last_model_is_waited_for_all_the_same() {
    let one = model("one", [ScriptedAnswer::failing(limited(60_000)), ScriptedAnswer::text("well")]);
    let seen = see(&inference(&[&one], RetryPolicy::default(), patient())).await;
    assert_eq!((seen.waits(), seen.text().as_str()), (vec![Duration::from_secs(60)], "well"));
}

// clause: D05
#[tokio::test(start_paused = true)]
async fn d05_when_no_model_is_left_none_is_available_and_the_last_error_is_not_lost() {
    let one = model("one", vec![ScriptedAnswer::failing(provider()); 9]);
    let two = model("two", vec![ScriptedAnswer::failing(limited(5)); 9]);
    let seen = see(&inference(&[&one, &two], RetryPolicy::default(), patient())).await;
    assert_eq!(*seen.error(), E::AllModelsUnavailable);
    assert_eq!((one.asked(), two.asked()), (3, 3));
    assert_eq!(seen.last_error, Some(limited(5).into()));
}

// clause: D05
#[tokio::test(start_paused = true)]
async fn d05_an_empty_pool_has_no_model_available() {
    let seen = see(&inference(&[], RetryPolicy::default(), patient())).await;
    assert_eq!(*seen.error(), E::AllModelsUnavailable);
    assert_eq!(seen.error().to_string(), "no model is available");
}

// clause: D07
#[tokio::test(start_paused = true)]
async fn d07_a_model_that_is_left_alone_is_passed_over() {
    let one = model("one", vec![ScriptedAnswer::failing(provider()); 3]);
    let two = model("two", vec![ScriptedAnswer::text("well"); 3]);
    let strict = BreakerPolicy { failures_max: 3, ..BreakerPolicy::default() };
    let inference = inference(&[&one, &two], RetryPolicy::default(), strict);
    see(&inference).await;
    let seen = see(&inference).await;
    assert_eq!((one.asked(), two.asked(), seen.text().as_str()), (3, 2, "well"));
    assert_eq!(fallbacks(&seen), [("one", "two", None)]);
    assert_eq!(inference.pool().members()[1].breaker().standing(), Standing::Closed { failures: 0 });
}

// clause: D10
#[tokio::test(start_paused = true)]
async fn d10_the_next_model_goes_on_where_the_one_before_broke_off() {
    let one = model("one", vec![says([text("a"), reset()]); 3]);
    let two = model("two", [says([text("b"), stop()])]);
    let seen = see(&inference(&[&one, &two], RetryPolicy::default(), patient())).await;
    assert_eq!((seen.text().as_str(), seen.resets()), ("aaab", 0));
    assert_eq!(seen.answer().message.said(), "aaab");
    let asked = two.requests().remove(0);
    assert_eq!(asked.messages[1].said(), "aaa");
    assert_eq!(asked.messages[2].said(), CONTINUE);
}

// clause: D07
#[tokio::test(start_paused = true)]
async fn d07_agents_that_ask_the_same_model_share_its_breaker() {
    use runyard_llm::inference::{Breakers, Inference, Model, Pool};
    use std::sync::Arc;
    let one = model("one", vec![ScriptedAnswer::failing(provider()); 5]);
    let breakers = Breakers::default();
    let agent = || {
        let pool = Pool::new([Arc::clone(&one) as Arc<dyn Model>], &breakers);
        Inference::new(pool, RetryPolicy::never())
    };
    let (first, second) = (agent(), agent());
    for _ in 0..5 {
        see(&first).await;
    }
    assert_eq!(*see(&second).await.error(), E::AllModelsUnavailable);
    assert_eq!(one.asked(), 5);
}

// clause: D10
#[tokio::test(start_paused = true)]
async fn d10_each_model_has_its_retries_to_itself() {
    let one = model("one", vec![says([text("a"), reset()]); 3]);
    let answers = [
        ScriptedAnswer::failing(provider()),
        says([text("b"), reset()]),
        ScriptedAnswer::failing(provider()),
        ScriptedAnswer::failing(provider()),
        says([text("c"), reset()]),
        says([text("d"), stop()]),
    ];
    let two = model("two", answers);
    let seen = see(&inference(&[&one, &two], RetryPolicy::default(), patient())).await;
    assert_eq!((one.asked(), two.asked(), seen.text().as_str()), (3, 6, "aaabcd"));
}
