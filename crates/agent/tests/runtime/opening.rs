//! A store that does not answer while a thread is being opened: nobody waits for it for ever.

use std::sync::Arc;
use std::time::Duration;

use runyard_agent::checkpoint::CLAIM_TERM;
use runyard_agent::phase::TerminationReason;
use runyard_agent::run::RunOutcome;
use runyard_agent::{AgentRuntime, ResumeRequest, RunRequest, RuntimeError};
use runyard_domain::Code;
use runyard_llm::inference::{Image, ImageSource, Message, Part, Role, ScriptedAnswer};
use runyard_store::{MESSAGE_BYTES_MAX, ThreadRunStore};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::flaky::{Failure, Flaky, Operation, Plan};
use crate::heard::Heard;
use crate::kit::{Does, Plain, call, one_agent, saying, scripted};

/// What is asked of a store before a run begins, and before one goes on.
const TO_BEGIN: [Operation; 3] = [Operation::Claim, Operation::Messages, Operation::ThreadValues];
const TO_GO_ON: [Operation; 7] = [
    Operation::UnfinishedRun,
    Operation::Claim,
    Operation::Messages,
    Operation::ThreadValues,
    Operation::AgentRun,
    Operation::RunValues,
    Operation::ToolCalls,
];

async fn runtime(store: &Arc<Flaky>) -> AgentRuntime {
    let model = scripted([ScriptedAnswer::text("hello"), ScriptedAnswer::text("hello")]);
    let store = Arc::clone(store) as Arc<dyn ThreadRunStore>;
    one_agent(model).tool(Plain::new("ask", Does::Wait)).store(store).build().await.unwrap()
}

/// A store with a thread on which a run has ended, or waits.
async fn with_thread(waits: bool) -> Arc<Flaky> {
    let store = Flaky::timed();
    let model = if waits { scripted([call("ask")]) } else { saying(["hello"]) };
    let runtime = one_agent(model)
        .tool(Plain::new("ask", Does::Wait))
        .store(Arc::clone(&store) as Arc<dyn ThreadRunStore>)
        .build()
        .await
        .unwrap();
    let _ = runtime.run(RunRequest::new("a", "t", "hi")).await.unwrap();
    store
}

enum Ends {
    Cancelled,
    Late,
}

/// Lets an operation hang, asks for something, and says what came of it and after how long.
async fn hangs(
    store: &Arc<Flaky>,
    operation: Operation,
    ends: &Ends,
    asked: impl AsyncFnOnce(AgentRuntime, CancellationToken, Heard) -> RunOutcome,
) {
    let runtime = runtime(store).await;
    store.fails(Some(Plan::always(operation, Failure::Hangs)));
    let (token, heard, began) = (CancellationToken::new(), Heard::default(), Instant::now());
    if let Ends::Cancelled = ends {
        let token = token.clone();
        tokio::spawn(async move {
            sleep(Duration::from_secs(1)).await;
            token.cancel();
        });
    }
    let outcome = asked(runtime.clone(), token, heard.clone()).await;
    assert_eq!(heard.ends(), 1, "{operation:?}");
    match ends {
        Ends::Cancelled => {
            assert_eq!(outcome.reason, TerminationReason::Cancelled, "{operation:?}");
            assert!(began.elapsed() < Duration::from_secs(10), "{operation:?}: {:?}", began.elapsed());
        }
        Ends::Late => {
            let code = match outcome.reason {
                TerminationReason::Failed { code, .. } => code,
                other => panic!("{operation:?}: {other:?}"),
            };
            assert_eq!(code, Code::StorageIo, "{operation:?}");
            assert!(began.elapsed() <= CLAIM_TERM * 2, "{operation:?}: {:?}", began.elapsed());
        }
    }
    // What may have been taken is free again by itself, and the process goes on.
    store.fails(None);
    sleep(CLAIM_TERM).await;
    let request = RunRequest::new("a", "u", "hi");
    assert_eq!(runtime.run(request).await.unwrap().reason, TerminationReason::NaturalEnd);
    let again = runtime.run(RunRequest::new("a", "t", "hi")).await;
    let waits = RuntimeError::ThreadAlreadyRunning { thread_id: "t".into() };
    assert!(
        matches!(&again, Ok(outcome) if outcome.reason == TerminationReason::NaturalEnd)
            || again.unwrap_err() == waits
    );
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_thread_does_not_open_can_be_cancelled_and_does_not_wait_for_ever() {
    for operation in TO_BEGIN {
        for ends in [Ends::Cancelled, Ends::Late] {
            let store = with_thread(false).await;
            let asked = async |runtime: AgentRuntime, token, heard| {
                let mut request = RunRequest::new("a", "t", "hi").cancellation(token).observer(heard);
                request.input.push(Message::user("there"));
                let inbox = Arc::clone(&request.inbox);
                inbox.say(Message::user("words")).unwrap();
                let outcome = runtime.run(request).await.unwrap();
                assert_eq!(inbox.unread(), [Message::user("words")], "they are given back");
                outcome
            };
            hangs(&store, operation, &ends, asked).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_thread_does_not_open_again_can_be_cancelled_and_does_not_wait_for_ever() {
    for operation in TO_GO_ON {
        for ends in [Ends::Cancelled, Ends::Late] {
            let store = with_thread(true).await;
            let asked = async |runtime: AgentRuntime, token, heard| {
                let request = ResumeRequest::new("t").cancellation(token).observer(heard);
                runtime.resume(request).await.unwrap().unwrap()
            };
            hangs(&store, operation, &ends, asked).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_thread_that_cannot_be_given_back_does_not_hold_up_whoever_is_refused_it() {
    let store = with_thread(true).await;
    let runtime = runtime(&store).await;
    store.fails(Some(Plan::always(Operation::ReleaseClaim, Failure::Hangs)));
    let began = Instant::now();
    let refused = runtime.run(RunRequest::new("a", "t", "hi")).await.unwrap_err();
    assert_eq!(refused, RuntimeError::ThreadAlreadyRunning { thread_id: "t".into() });
    assert!(began.elapsed() <= Duration::from_secs(10), "{:?}", began.elapsed());
}

#[tokio::test]
async fn what_is_said_that_is_larger_than_can_be_stored_is_refused_at_once_with_the_limit() {
    let picture = |bytes: usize| Message {
        role: Role::User,
        content: vec![Part::Image(Image {
            source: ImageSource::Data { media_type: "image/png".into(), data: "A".repeat(bytes) },
        })],
    };
    let store = Flaky::timed();
    let durable = runtime(&store).await;
    let fleeting = one_agent(saying(["hello"])).build().await.unwrap();
    for runtime in [durable, fleeting] {
        let mut request = RunRequest::new("a", "t", "hi");
        request.input.push(picture(MESSAGE_BYTES_MAX));
        let error = runtime.run(request.clone()).await.unwrap_err();
        assert!(
            matches!(error, RuntimeError::InputTooLarge { message: 2, bytes, bytes_max: MESSAGE_BYTES_MAX } if bytes > MESSAGE_BYTES_MAX)
        );
        assert_eq!(error.code(), Code::StorageValidation);
        assert!(error.to_string().contains("1048576"), "{error}");
        assert_eq!(store.asked(Operation::Claim), 0, "nothing was begun");
        request.input[1] = picture(MESSAGE_BYTES_MAX - 1_000);
        assert_eq!(runtime.run(request).await.unwrap().reason, TerminationReason::NaturalEnd);
        store.fails(None);
    }
}
