//! Every error there is, reached from outside, with its row of the error table.

use runyard_domain::Code;
use runyard_llm::inference::{
    InferenceExecutionError as E, InterruptCause, Opens, RetryPolicy, ScriptedAnswer, ScriptedError, Step,
};

use crate::support::{ask, ask_with, cut, failed, inference, patient, provider, says, see, text};

fn message() -> String {
    "m".to_owned()
}

fn scripted() -> [(ScriptedError, Code, bool); 12] {
    use ScriptedError as S;
    let cause = InterruptCause::GoAway;
    [
        (S::Provider { message: message() }, Code::InferenceProvider, true),
        (S::RateLimited { message: message(), retry_after_ms: Some(9) }, Code::InferenceRateLimited, true),
        (S::Overloaded { message: message(), retry_after_ms: None }, Code::InferenceOverloaded, true),
        (S::Timeout { message: message() }, Code::InferenceTimeout, true),
        (S::StreamInterrupted { cause }, Code::InferenceStreamInterrupted, true),
        (S::ContextOverflow { message: message() }, Code::InferenceContextOverflow, false),
        (S::InvalidRequest { message: message() }, Code::InferenceInvalidRequest, false),
        (S::Unauthorized { message: message() }, Code::InferenceUnauthorized, false),
        (S::ModelNotFound { message: message() }, Code::InferenceModelNotFound, false),
        (S::ContentFiltered { message: message() }, Code::InferenceContentFiltered, false),
        (S::AllModelsUnavailable, Code::InferenceAllModelsUnavailable, false),
        (S::Cancelled, Code::InferenceCancelled, false),
    ]
}

// clause: D05, D06
#[tokio::test(start_paused = true)]
async fn d05_every_error_of_a_model_reaches_whoever_asked_as_it_is() {
    for (error, code, retryable) in scripted() {
        let expected: E = error.clone().into();
        assert_eq!((expected.code(), expected.is_retryable()), (code, retryable));
        assert_eq!(expected.counts_toward_circuit_breaker(), retryable);
        let (seen, model) = ask(vec![ScriptedAnswer::failing(error.clone()); 9]).await;
        assert_eq!(*seen.error(), expected, "when it is asked");
        assert_eq!(model.asked(), if retryable { 3 } else { 1 });
        let (seen, model) = ask(vec![says([failed(error.clone())]); 9]).await;
        assert_eq!(*seen.error(), expected, "in the middle");
        assert_eq!(model.asked(), if retryable { 3 } else { 1 });
    }
}

// clause: D05
#[tokio::test(start_paused = true)]
async fn d05_errors_of_our_own_making() {
    let never = || ScriptedAnswer { opens: Opens::Never, ..ScriptedAnswer::default() };
    let (seen, model) = ask(vec![never(); 9]).await;
    assert!(matches!(seen.error(), E::Timeout(_)));
    assert_eq!(model.asked(), 3);

    let (seen, _) = ask_with(RetryPolicy::never(), [says([text("a"), Step::Stall])]).await;
    assert!(matches!(seen.error(), E::StreamInterrupted { cause: InterruptCause::IdleStall, .. }));

    let (seen, _) = ask_with(RetryPolicy::never(), [says([text("a")])]).await;
    let end = InterruptCause::ConnectionReset;
    assert!(matches!(seen.error(), E::StreamInterrupted { cause, .. } if *cause == end));

    let (seen, _) =
        ask_with(RetryPolicy::never(), [says([cut(InterruptCause::Provider5xxMidStream(502))])]).await;
    assert_eq!(seen.error().to_string(), "the answer broke off: the provider failed with 502");

    let (seen, _) = ask([]).await;
    assert_eq!(*seen.error(), E::InvalidRequest("the script is over".to_owned()));

    let (one, two) = (crate::support::model("one", []), crate::support::model("two", []));
    assert!(matches!(
        see(&inference(&[&one, &two], RetryPolicy::never(), patient())).await.error(),
        E::InvalidRequest(_)
    ));
    let failing = || vec![ScriptedAnswer::failing(provider())];
    let (one, two) = (crate::support::model("one", failing()), crate::support::model("two", failing()));
    let seen = see(&inference(&[&one, &two], RetryPolicy::never(), patient())).await;
    assert_eq!(*seen.error(), E::AllModelsUnavailable);
}

// clause: D05
#[tokio::test(start_paused = true)]
async fn d05_an_error_is_the_same_each_time_it_is_asked_for() {
    let model = crate::support::model("one", [ScriptedAnswer::failing(provider())]);
    let inference = inference(&[&model], RetryPolicy::never(), patient());
    let mut turn = inference.start(crate::support::question(), tokio_util::sync::CancellationToken::new());
    let first = turn.next().await;
    assert_eq!(first, Err(provider().into()));
    assert_eq!(turn.next().await, first);
    assert_eq!(turn.answer(), None);
    assert_eq!(turn.into_answer().unwrap_err(), provider().into());
}

// clause: D09
#[tokio::test(start_paused = true)]
async fn d09_an_interruption_that_the_provider_s_client_names_itself_has_the_snapshot_too() {
    let cause = InterruptCause::GoAway;
    let named = failed(ScriptedError::StreamInterrupted { cause });
    let (seen, _) = ask_with(RetryPolicy::never(), [says([text("a"), named])]).await;
    let E::StreamInterrupted { snapshot, .. } = seen.error() else { panic!("{:?}", seen.outcome) };
    assert_eq!(snapshot.text.as_deref(), Some("a"));
}
