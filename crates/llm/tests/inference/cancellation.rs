//! Whoever asked does not want it any more: seen in every wait, at once, and nothing of it is left.

use std::sync::Arc;
use std::time::Duration;

use runyard_llm::inference::{
    BreakerPolicy, Inference, InferenceExecutionError as E, Opens, RetryPolicy, ScriptedAnswer,
    ScriptedError, ScriptedModel, Standing, Step, Update,
};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::support::{
    inference, limited, model, patient, provider, question, reset, says, see, started, stop, text,
};

/// Cancels five seconds in. Returns what was said by then.
async fn cancelled_while_it_waits(model: &Arc<ScriptedModel>, inference: &Inference) -> String {
    let cancel = CancellationToken::new();
    let mut turn = inference.start(question(), cancel.clone());
    let began = Instant::now();
    // In a task of its own, so that nothing but the cancellation itself wakes the turn.
    tokio::spawn(async move {
        sleep(Duration::from_secs(5)).await;
        cancel.cancel();
    });
    let ended = loop {
        match turn.next().await {
            Ok(Some(_)) => {}
            ended => break ended,
        }
    };
    assert_eq!(ended, Err(E::Cancelled));
    assert_eq!(began.elapsed().as_secs(), 5, "at once");
    assert_eq!(turn.next().await, Err(E::Cancelled), "and for good");
    let said = turn.partial().message.said();
    assert_eq!(Arc::strong_count(model), 2, "neither request nor stream is left");
    said
}

async fn check(answers: impl IntoIterator<Item = ScriptedAnswer>, said: &str) {
    let model = model("one", answers);
    let inference = inference(&[&model], RetryPolicy::default(), patient());
    assert_eq!(cancelled_while_it_waits(&model, &inference).await, said);
    let standing = inference.pool().members()[0].breaker().standing();
    assert!(matches!(standing, Standing::Closed { .. }));
}

// The original does not look while it connects.
// clause: D05
#[tokio::test(start_paused = true)]
async fn d05_cancelled_while_a_model_is_being_asked() {
    check([ScriptedAnswer { opens: Opens::Never, ..ScriptedAnswer::default() }], "").await;
    check([ScriptedAnswer { opens: Opens::AfterMs(60_000), ..ScriptedAnswer::text("late") }], "").await;
}

// The original does not look while it waits to try again.
// clause: D05
#[tokio::test(start_paused = true)]
async fn d05_cancelled_while_it_waits_to_ask_again() {
    check([ScriptedAnswer::failing(limited(100_000)), ScriptedAnswer::text("late")], "").await;
}

// clause: D05
#[tokio::test(start_paused = true)]
async fn d05_cancelled_while_it_waits_to_have_an_answer_continued() {
    let slow = ScriptedError::Overloaded { message: String::new(), retry_after_ms: Some(100_000) };
    check([says([text("So far"), crate::support::failed(slow)]), says([text("late"), stop()])], "So far")
        .await;
}

// clause: D05
#[tokio::test(start_paused = true)]
async fn d05_cancelled_while_an_answer_comes() {
    check([says([text("So "), text("far"), started(0, "a"), Step::Stall])], "So far").await;
    check([says([text("So far"), Step::DelayMs(60_000), text("late"), stop()])], "So far").await;
}

// clause: D05
#[tokio::test(start_paused = true)]
async fn d05_cancelled_while_a_continuation_comes_that_may_be_a_repetition() {
    let said = "All of this has been said before";
    check([says([text(said), reset()]), says([text("All of this"), Step::Stall])], said).await;
}

// clause: D05
#[tokio::test(start_paused = true)]
async fn d05_cancelled_while_it_waits_for_a_circuit_breaker() {
    let model = model("one", [ScriptedAnswer::failing(provider())]);
    let policy = RetryPolicy { breaker_wait_max_ms: 60_000, ..RetryPolicy::never() };
    let strict = BreakerPolicy { failures_max: 1, ..BreakerPolicy::default() };
    let inference = inference(&[&model], policy, strict);
    see(&inference).await;
    assert_eq!(cancelled_while_it_waits(&model, &inference).await, "");
    assert_eq!(model.asked(), 1);
}

// clause: D05
#[tokio::test(start_paused = true)]
async fn d05_cancelled_before_it_began_nobody_is_asked() {
    let model = model("one", [ScriptedAnswer::text("late")]);
    let cancel = CancellationToken::new();
    cancel.cancel();
    let mut turn = inference(&[&model], RetryPolicy::default(), patient()).start(question(), cancel);
    assert_eq!(turn.next().await, Err(E::Cancelled));
    assert_eq!(model.asked(), 0);
}

// clause: D05
#[tokio::test(start_paused = true)]
async fn d05_cancelled_after_the_end_it_is_still_the_answer() {
    let model = model("one", [ScriptedAnswer::text("done")]);
    let cancel = CancellationToken::new();
    let mut turn = inference(&[&model], RetryPolicy::default(), patient()).start(question(), cancel.clone());
    while turn.next().await.unwrap().is_some() {}
    cancel.cancel();
    assert_eq!(turn.next().await, Ok(None));
    assert_eq!(turn.into_answer().unwrap().message.said(), "done");
}

// clause: D05
#[tokio::test(start_paused = true)]
async fn d05_a_stream_that_never_pauses_is_cancelled_too() {
    let pieces = (0..1_000).map(|_| text("x"));
    let model = model("one", [says(pieces)]);
    let cancel = CancellationToken::new();
    let mut turn = inference(&[&model], RetryPolicy::default(), patient()).start(question(), cancel.clone());
    assert_eq!(turn.next().await, Ok(Some(Update::Text("x".to_owned()))));
    cancel.cancel();
    assert_eq!(turn.next().await, Err(E::Cancelled));
    assert_eq!(turn.partial().message.said(), "x", "what was kept is what was seen");
}

#[tokio::test(start_paused = true)]
async fn what_is_next_can_be_given_up_and_asked_for_again_and_nothing_is_lost() {
    let mut slow = says([text("a"), Step::DelayMs(50), text("b"), Step::DelayMs(50), stop()]);
    slow.opens = Opens::AfterMs(50);
    let model = model("one", [slow]);
    let mut turn =
        inference(&[&model], RetryPolicy::default(), patient()).start(question(), CancellationToken::new());
    let (mut seen, mut given_up) = (String::new(), 0);
    loop {
        match timeout(Duration::from_millis(20), turn.next()).await {
            Err(_) => given_up += 1,
            Ok(Ok(Some(Update::Text(piece)))) => seen.push_str(&piece),
            Ok(Ok(Some(_))) => {}
            Ok(Ok(None)) => break,
            Ok(Err(error)) => panic!("{error}"),
        }
    }
    assert_eq!((seen.as_str(), model.asked()), ("ab", 1));
    assert!(given_up >= 6, "{given_up}");
}

// clause: D07
#[tokio::test(start_paused = true)]
async fn d07_a_probe_that_is_cancelled_gives_its_place_back_though_its_turn_is_kept() {
    let model = model("one", [ScriptedAnswer::failing(provider()), says([text("a"), Step::Stall])]);
    let strict = BreakerPolicy { failures_max: 1, open_ms: 10, probes_max: 1, ..BreakerPolicy::default() };
    let inference = inference(&[&model], RetryPolicy::never(), strict);
    see(&inference).await;
    tokio::time::advance(Duration::from_millis(10)).await;
    let cancel = CancellationToken::new();
    let mut turn = inference.start(question(), cancel.clone());
    assert_eq!(turn.next().await, Ok(Some(Update::Text("a".to_owned()))));
    let breaker = inference.pool().members()[0].breaker();
    assert_eq!(breaker.standing(), Standing::HalfOpen { probes: 1 });
    cancel.cancel();
    assert_eq!(turn.next().await, Err(E::Cancelled));
    assert_eq!(breaker.standing(), Standing::HalfOpen { probes: 0 });
}

// A turn that nobody asks for more cannot give anything back by itself.
// clause: D07
#[tokio::test(start_paused = true)]
async fn d07_a_probe_whose_turn_nobody_looks_at_does_not_keep_the_others_out() {
    let answers =
        [ScriptedAnswer::failing(provider()), says([text("a"), Step::Stall]), ScriptedAnswer::text("b")];
    let model = model("one", answers);
    let strict = BreakerPolicy { failures_max: 1, open_ms: 10, probes_max: 1, ..BreakerPolicy::default() };
    let inference = inference(&[&model], RetryPolicy::never(), strict.clone());
    see(&inference).await;
    tokio::time::advance(Duration::from_millis(10)).await;
    let mut forgotten = inference.start(question(), CancellationToken::new());
    assert_eq!(forgotten.next().await, Ok(Some(Update::Text("a".to_owned()))));
    assert_eq!(see(&inference).await.error().code(), runyard_domain::Code::InferenceAllModelsUnavailable);
    tokio::time::advance(Duration::from_millis(strict.probe_ms)).await;
    assert_eq!(see(&inference).await.text(), "b");
    drop(forgotten);
}
