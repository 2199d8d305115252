//! Agents elsewhere that break off, hang or are called off, and who hears of it.

use std::future::pending;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use runyard_agent::phase::TerminationReason;
use runyard_agent::remote::{
    BackendFactory, EndpointRefused, Remote, RemoteAnswer, RemoteError, RemoteRequest,
};
use runyard_agent::run::{AgentEvent, Inbox, Observer, RunOutcome, RunRecord};
use runyard_agent::spec::{AgentSpec, EndpointSpec};
use runyard_agent::{AgentRuntime, AgentRuntimeBuilder, ResumeRequest, RunRequest};
use runyard_domain::Code;
use runyard_llm::inference::{Message, Update};
use runyard_store::{RunStore, ThreadRunStore, ThreadStore};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::flaky::{Failure, Flaky, Operation, Plan};
use crate::heard::Heard;
use crate::kit::{one_agent, saying, thread};

/// What an agent elsewhere does when it has told its words.
#[derive(Clone)]
enum Then {
    Breaks,
    Hangs,
    Answers(&'static str),
}

/// An agent elsewhere that tells words one by one.
#[derive(Clone)]
struct Talks {
    then: Then,
    asked: Arc<Mutex<Vec<RemoteRequest>>>,
}

impl BackendFactory for Talks {
    fn backend(&self) -> &str {
        "talks"
    }

    fn connect(&self, _agent_id: &str, _endpoint: &EndpointSpec) -> Result<Arc<dyn Remote>, EndpointRefused> {
        Ok(Arc::new(self.clone()))
    }
}

#[async_trait]
impl Remote for Talks {
    async fn run(
        &self,
        request: &RemoteRequest,
        observer: &dyn Observer,
    ) -> Result<RemoteAnswer, RemoteError> {
        self.asked.lock().unwrap().push(request.clone());
        for word in ["One, ", "two, ", "three"] {
            observer.observe(AgentEvent::Inference(Update::Text(word.to_owned()))).await;
        }
        match self.then {
            Then::Breaks => {
                let message = "it broke off".to_owned();
                Err(RemoteError { code: Code::InferenceStreamInterrupted, message })
            }
            Then::Hangs => pending().await,
            Then::Answers(text) => Ok(RemoteAnswer::text(text)),
        }
    }
}

struct Far {
    runtime: AgentRuntime,
    store: Arc<Flaky>,
    asked: Arc<Mutex<Vec<RemoteRequest>>>,
}

async fn far(then: Then) -> Far {
    let (store, asked) = (Flaky::timed(), Arc::default());
    let endpoint = EndpointSpec { backend: "talks".into(), url: "x".into(), ..EndpointSpec::default() };
    let runtime = AgentRuntimeBuilder::new()
        .backend(Talks { then, asked: Arc::clone(&asked) })
        .agent(AgentSpec::remote("far", endpoint))
        .store(Arc::clone(&store) as Arc<dyn ThreadRunStore>)
        .build()
        .await
        .unwrap();
    Far { runtime, store, asked }
}

fn hi() -> RunRequest {
    RunRequest::new("far", "t", "hi")
}

fn failed_with(reason: &TerminationReason) -> Option<Code> {
    match reason {
        TerminationReason::Failed { code, .. } => Some(*code),
        _ => None,
    }
}

/// What clients saw.
fn seen(heard: &Heard) -> String {
    let mut text = String::new();
    for event in heard.events() {
        match event {
            AgentEvent::Inference(Update::Text(piece)) => text.push_str(&piece),
            AgentEvent::Inference(Update::Reset) => text.clear(),
            _ => {}
        }
    }
    text
}

impl Far {
    async fn stored(&self) -> Vec<String> {
        let said = |body: &[u8]| serde_json::from_slice::<Message>(body).unwrap().said();
        let mut all = Vec::new();
        loop {
            let page = self.store.messages(&thread("t"), all.len() as u64, 10).await.unwrap();
            if page.is_empty() {
                return all;
            }
            all.extend(page.iter().map(|message| said(&message.body)));
        }
    }

    /// Runs it and calls it off when it hangs. It ends, however little others do for it.
    async fn called_off(&self, request: RunRequest) -> RunOutcome {
        let token = CancellationToken::new();
        let calling_off = async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            token.cancel();
            pending::<()>().await;
        };
        let running = self.runtime.run(request.cancellation(token.clone()));
        tokio::select! {
            outcome = tokio::time::timeout(Duration::from_secs(3600), running) => outcome.unwrap().unwrap(),
            () = calling_off => unreachable!(),
        }
    }
}

// clause: D10
#[tokio::test(start_paused = true)]
async fn d10_what_a_remote_agent_said_is_stored_as_it_was_seen_however_it_ends() {
    for (then, text) in [
        (Then::Breaks, "One, two, three"),
        (Then::Hangs, "One, two, three"),
        (Then::Answers(""), "One, two, three"),
        (Then::Answers("Three words."), "Three words."),
    ] {
        let (far, heard) = (far(then.clone()).await, Heard::default());
        let outcome = far.called_off(hi().observer(heard.clone())).await;
        match then {
            Then::Breaks => {
                assert_eq!(failed_with(&outcome.reason), Some(Code::InferenceStreamInterrupted));
            }
            Then::Hangs => assert_eq!(outcome.reason, TerminationReason::Cancelled),
            Then::Answers(_) => assert_eq!(outcome.reason, TerminationReason::NaturalEnd),
        }
        assert_eq!((seen(&heard).as_str(), outcome.text().as_str()), (text, text));
        assert_eq!(far.stored().await, ["hi", text]);
        assert_eq!(heard.ends(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_remote_run_that_is_called_off_ends_though_nobody_listens() {
    let far = far(Then::Hangs).await;
    let (sender, _unread) = mpsc::channel(1);
    let outcome = far.called_off(hi().observer(sender)).await;
    assert_eq!(outcome.reason, TerminationReason::Cancelled);
    assert!(far.store.unfinished_run(&thread("t")).await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_remote_run_that_is_called_off_ends_though_the_store_hangs_and_goes_on_when_it_does_not() {
    let far = far(Then::Answers("Here.")).await;
    far.store.fails(Some(Plan::always(Operation::Commit, Failure::Hangs)));
    let outcome = far.called_off(hi()).await;
    assert_eq!(failed_with(&outcome.reason), Some(Code::StorageCommitUnknown));
    assert!(far.asked.lock().unwrap().is_empty(), "it is not asked before that is durable");
    far.store.fails(None);
    // The step was durable after all, and nobody heard of it: the run goes on from there.
    let outcome = far.runtime.recover(ResumeRequest::new("t")).await.unwrap().unwrap();
    assert_eq!((outcome.text().as_str(), far.stored().await.len()), ("Here.", 2));
    assert_eq!(far.runtime.run(hi()).await.unwrap().text(), "Here.", "the thread is free");
}

/// A store that cannot take the answer takes the end.
#[tokio::test(start_paused = true)]
async fn a_remote_answer_that_cannot_be_stored_ends_the_run_all_the_same() {
    let far = far(Then::Answers("Here.")).await;
    far.store.fails(Some(Plan {
        operation: Operation::Commit,
        from: 2,
        times: 1,
        failure: Failure::Refused,
    }));
    let outcome = far.runtime.run(hi()).await.unwrap();
    assert_eq!(failed_with(&outcome.reason), Some(Code::StorageValidation));
    let run = far.store.agent_runs(&thread("t"), None, 1).await.unwrap().remove(0);
    let record: RunRecord = serde_json::from_slice(&run.payload).unwrap();
    assert!(run.finished);
    assert_eq!(record.end.unwrap().failed_with(), Some(Code::StorageValidation));
}

/// More than a message may have, ten times.
static LONG: LazyLock<String> = LazyLock::new(|| "on and on ".repeat(1_000_000).trim().to_owned());

// clause: D10
#[tokio::test(start_paused = true)]
async fn d10_a_remote_answer_of_which_only_the_beginning_is_stored_is_asked_for_again() {
    let far = far(Then::Answers(&LONG)).await;
    let plan = Plan { operation: Operation::Commit, from: 3, times: u32::MAX, failure: Failure::Io };
    far.store.fails(Some(plan));
    let outcome = far.runtime.run(hi()).await.unwrap();
    assert_eq!(failed_with(&outcome.reason), Some(Code::StorageIo));
    far.store.fails(None);
    let beginning = far.stored().await;
    assert!(beginning.len() > 1 && beginning[1..].concat().len() < LONG.len());

    let outcome = far.runtime.recover(ResumeRequest::new("t")).await.unwrap().unwrap();
    assert_eq!((outcome.reason.clone(), outcome.text() == *LONG), (TerminationReason::NaturalEnd, true));
    let asked = far.asked.lock().unwrap();
    let said = |at: usize| asked[at].input.iter().map(|word| word.said()).collect::<Vec<_>>();
    assert_eq!((said(0), said(1)), (vec!["hi".to_owned()], vec!["hi".to_owned()]));
}

// clause: D10
#[tokio::test(start_paused = true)]
async fn d10_a_remote_answer_longer_than_a_message_may_be_is_stored_as_it_was_seen() {
    let far = far(Then::Answers(&LONG)).await;
    let outcome = far.runtime.run(hi()).await.unwrap();
    assert_eq!((outcome.reason.clone(), outcome.text() == *LONG), (TerminationReason::NaturalEnd, true));
    let stored = far.stored().await;
    assert!(stored.len() > 10 && stored[1..].concat() == *LONG, "{}", stored.len());
    assert_eq!(far.runtime.run(hi()).await.unwrap().reason, TerminationReason::NaturalEnd, "it is free");
}

#[tokio::test(start_paused = true)]
async fn words_to_a_remote_run_are_part_of_its_question_or_not_taken() {
    let far = far(Then::Hangs).await;
    let request = hi();
    let inbox: Arc<Inbox> = Arc::clone(&request.inbox);
    inbox.say(Message::user("and this")).unwrap();
    let late = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(inbox.say(Message::user("too late")).is_err(), "nothing can be said to it any more");
    };
    let (outcome, ()) = tokio::join!(far.called_off(request), late);
    assert_eq!(outcome.reason, TerminationReason::Cancelled);
    let asked = far.asked.lock().unwrap()[0].input.iter().map(|message| message.said()).collect::<Vec<_>>();
    assert_eq!(asked, ["hi", "and this"]);
    assert_eq!(far.stored().await, ["hi", "and this", "One, two, three"]);
}

#[tokio::test(start_paused = true)]
async fn words_to_a_run_that_cannot_begin_are_given_back_and_its_end_waits_for_nobody() {
    let store = Flaky::timed();
    let builder = one_agent(saying(["hello"])).store(Arc::clone(&store) as Arc<dyn ThreadRunStore>);
    let runtime = builder.build().await.unwrap();
    store.fails(Some(Plan::always(Operation::Claim, Failure::Io)));
    let (sender, _unread) = mpsc::channel(1);
    let token = CancellationToken::new();
    token.cancel();
    let request = RunRequest::new("a", "t", "hi").observer(sender).cancellation(token);
    let inbox = Arc::clone(&request.inbox);
    inbox.say(Message::user("hear me")).unwrap();
    let running = tokio::time::timeout(Duration::from_secs(3600), runtime.run(request));
    assert_eq!(failed_with(&running.await.unwrap().unwrap().reason), Some(Code::StorageIo));
    assert!(inbox.say(Message::user("and me")).is_err());
    assert_eq!(inbox.unread(), [Message::user("hear me")]);
    assert_eq!(inbox.unread(), []);
}
