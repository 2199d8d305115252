//! A model's circuit breaker, as a turn lives with it.

use std::sync::Arc;
use std::time::Duration;

use runyard_llm::inference::{
    AtEnd, BreakerPolicy, Inference, InferenceExecutionError, RetryPolicy, Script, ScriptedAnswer,
    ScriptedModel, Standing,
};
use tokio_util::sync::CancellationToken;

use crate::support::{inference, invalid, limited, model, provider, question, reset, says, see, stop, text};

fn strict() -> BreakerPolicy {
    BreakerPolicy { failures_max: 3, open_ms: 20, probes_max: 1, ..BreakerPolicy::default() }
}

fn standing(inference: &Inference) -> Standing {
    inference.pool().members()[0].breaker().standing()
}

async fn let_time_pass(ms: u64) {
    tokio::time::advance(Duration::from_millis(ms)).await;
}

fn failing(times: usize) -> Vec<ScriptedAnswer> {
    vec![ScriptedAnswer::failing(provider()); times]
}

// The original's breaker stays shut for ever after a probe that ends in an error that does not count.
// clause: D07
#[tokio::test(start_paused = true)]
async fn d07_a_probe_that_says_nothing_about_health_does_not_wedge_the_breaker() {
    let mut answers = failing(3);
    answers.push(ScriptedAnswer::failing(invalid()));
    answers.push(ScriptedAnswer::text("well"));
    let one = model("one", answers);
    let inference = inference(&[&one], RetryPolicy::never(), strict());
    for _ in 0..3 {
        see(&inference).await;
    }
    assert!(matches!(standing(&inference), Standing::Open { .. }));
    let_time_pass(40).await;
    assert!(matches!(see(&inference).await.error(), InferenceExecutionError::InvalidRequest(_)));
    assert_eq!(standing(&inference), Standing::HalfOpen { probes: 0 });
    assert_eq!(see(&inference).await.text(), "well");
    assert_eq!(standing(&inference), Standing::Closed { failures: 0 });
}

// clause: D07
#[tokio::test(start_paused = true)]
async fn d07_a_probe_that_is_dropped_gives_its_place_back_wherever_it_is() {
    for stalls_in in ["open", "stream"] {
        let mut answers = failing(3);
        let mut hanging = ScriptedAnswer::steps([text("so"), runyard_llm::inference::Step::Stall]);
        if stalls_in == "open" {
            hanging.opens = runyard_llm::inference::Opens::Never;
        }
        answers.push(hanging);
        answers.push(ScriptedAnswer::text("well"));
        let one = model("one", answers);
        let inference = inference(&[&one], RetryPolicy::never(), strict());
        for _ in 0..3 {
            see(&inference).await;
        }
        let_time_pass(40).await;
        let mut turn = inference.start(question(), CancellationToken::new());
        let hanging = async { while let Ok(Some(_)) = turn.next().await {} };
        let still = tokio::time::timeout(Duration::from_secs(1), hanging).await;
        assert!(still.is_err(), "it hangs in {stalls_in}");
        assert_eq!(standing(&inference), Standing::HalfOpen { probes: 1 });
        assert_eq!(*see(&inference).await.error(), InferenceExecutionError::AllModelsUnavailable);
        drop(turn);
        assert_eq!(standing(&inference), Standing::HalfOpen { probes: 0 });
        assert_eq!(see(&inference).await.text(), "well");
        assert_eq!(standing(&inference), Standing::Closed { failures: 0 });
    }
}

// The original counts a success when the stream opens, so that what breaks in the middle never opens the breaker.
// clause: D07
#[tokio::test(start_paused = true)]
async fn d07_a_success_counts_at_the_end_of_the_stream() {
    let answers = vec![says([text("half an answer"), reset()]); 3];
    let one = model("one", answers);
    let inference = inference(&[&one], RetryPolicy::never(), strict());
    for failures in 1..3 {
        see(&inference).await;
        assert_eq!(standing(&inference), Standing::Closed { failures });
    }
    see(&inference).await;
    assert_eq!(standing(&inference), Standing::Open { left: Duration::from_millis(20) });
}

// clause: D07
#[tokio::test(start_paused = true)]
async fn d07_a_single_model_that_is_left_alone_is_not_asked_and_not_retried() {
    let one = model("one", failing(3).into_iter().chain([ScriptedAnswer::text("well")]));
    let inference = inference(&[&one], RetryPolicy { retries_max: 2, ..RetryPolicy::default() }, strict());
    assert!(matches!(see(&inference).await.error(), InferenceExecutionError::Provider(_)));
    assert_eq!(one.asked(), 3);
    let refused = see(&inference).await;
    assert_eq!(*refused.error(), InferenceExecutionError::AllModelsUnavailable);
    assert!(refused.updates.is_empty(), "it neither waits nor retries: {:?}", refused.updates);
    assert_eq!(one.asked(), 3);
    let_time_pass(20).await;
    assert_eq!(see(&inference).await.text(), "well");
}

// clause: D07
#[tokio::test(start_paused = true)]
async fn d07_a_turn_waits_for_the_breaker_as_long_as_its_policy_says() {
    let one = model("one", failing(3).into_iter().chain([ScriptedAnswer::text("well")]));
    let policy = RetryPolicy { breaker_wait_max_ms: 60_000, ..RetryPolicy::default() };
    let slow = BreakerPolicy { open_ms: 30_000, ..strict() };
    let inference = inference(&[&one], policy, slow);
    assert!(matches!(see(&inference).await.error(), InferenceExecutionError::Provider(_)));
    let began = tokio::time::Instant::now();
    let seen = see(&inference).await;
    assert_eq!(seen.text(), "well");
    assert_eq!(began.elapsed().as_secs(), 30);
}

// clause: D07
#[tokio::test(start_paused = true)]
async fn d07_a_breaker_that_opens_within_a_turn_ends_it_with_the_model_s_own_error() {
    let one = model("one", failing(10));
    let policy = RetryPolicy { retries_max: 9, ..RetryPolicy::default() };
    let slow = BreakerPolicy { open_ms: 30_000, ..strict() };
    let inference = inference(&[&one], policy, slow);
    let seen = see(&inference).await;
    assert!(matches!(seen.error(), InferenceExecutionError::Provider(_)));
    assert_eq!((one.asked(), seen.waits().len()), (3, 2));
}

// clause: D07
#[tokio::test(start_paused = true)]
async fn d07_permanent_errors_do_not_count() {
    let answers = vec![ScriptedAnswer::failing(invalid()); 10];
    let one = model("one", answers);
    let inference = inference(&[&one], RetryPolicy::default(), strict());
    for asked in 1..=10 {
        assert!(matches!(see(&inference).await.error(), InferenceExecutionError::InvalidRequest(_)));
        assert_eq!(one.asked(), asked);
        assert_eq!(standing(&inference), Standing::Closed { failures: 0 });
    }
}

// clause: D07
#[tokio::test(start_paused = true)]
async fn d07_a_success_forgets_the_failures_before_it() {
    let pattern =
        [ScriptedAnswer::failing(provider()), ScriptedAnswer::failing(limited(1)), says([text("a"), stop()])];
    let script = Script { name: "one".to_owned(), at_end: AtEnd::Repeat, answers: pattern.to_vec() };
    let one = Arc::new(ScriptedModel::new(script));
    let inference = inference(&[&one], RetryPolicy::default(), strict());
    for _ in 0..5 {
        assert_eq!(see(&inference).await.text(), "a");
        assert_eq!(standing(&inference), Standing::Closed { failures: 0 });
    }
}

// clause: D07
#[tokio::test(start_paused = true)]
async fn d07_an_error_that_does_not_count_leaves_the_failures_before_it() {
    let answers = [provider(), provider(), invalid(), provider()].map(ScriptedAnswer::failing);
    let inference = inference(&[&model("one", answers)], RetryPolicy::never(), strict());
    for failures in [1, 2, 2] {
        see(&inference).await;
        assert_eq!(standing(&inference), Standing::Closed { failures });
    }
    see(&inference).await;
    assert!(matches!(standing(&inference), Standing::Open { .. }));
}
