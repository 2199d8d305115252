//! Runtimes on stores that are really there: a SQLite file and a PostgreSQL server, in one process, in several, and in one that
//! is killed.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a failed expectation fails the test, and a child says how far it is"
)]

#[path = "../runtime/kit.rs"]
#[allow(dead_code, reason = "it is shared, and here some of it is used")]
mod kit;
mod place;

use std::sync::Arc;
use std::time::Duration;

use runyard_agent::checkpoint::CLAIM_TERM;
use runyard_agent::phase::TerminationReason;
use runyard_agent::run::{Decision, RunRecord, RunStatus};
use runyard_agent::{AgentRuntime, AgentRuntimeBuilder, ResumeRequest, RunRequest, RuntimeError};
use runyard_llm::inference::{Message, Role, ScriptedAnswer};
use runyard_store::{PAGE_MAX, StorageError, ThreadRunStore};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::kit::{Does, Plain, call, one_agent, saying, scripted, thread};
use crate::place::{Child, Place};

fn hi() -> RunRequest {
    RunRequest::new("a", "t", "hi")
}

fn busy() -> RuntimeError {
    RuntimeError::ThreadAlreadyRunning { thread_id: "t".into() }
}

async fn on(store: &Arc<dyn ThreadRunStore>, builder: AgentRuntimeBuilder) -> AgentRuntime {
    builder.store(Arc::clone(store)).build().await.unwrap()
}

async fn roles(store: &Arc<dyn ThreadRunStore>) -> Vec<Role> {
    let page = store.messages(&thread("t"), 0, PAGE_MAX).await.unwrap();
    page.iter().map(|stored| serde_json::from_slice::<Message>(&stored.body).unwrap().role).collect()
}

async fn is_free(store: &Arc<dyn ThreadRunStore>) -> bool {
    let row = store.thread(&thread("t")).await.unwrap().unwrap();
    row.holder.is_none() && row.unfinished.is_none()
}

async fn waits_and_goes_on(place: Place) {
    let tool = Plain::new("ask", Does::Wait);
    let store = place.open().await;
    let one = on(&store, one_agent(scripted([call("ask")])).tool(tool.clone())).await;
    let outcome = one.run(hi()).await.unwrap();
    assert_eq!(outcome.reason, TerminationReason::Suspended);
    assert_eq!(one.run(hi()).await.unwrap_err(), busy());
    drop((one, store));

    let store = place.open().await;
    let other = on(&store, one_agent(saying(["went on", "next"])).tool(tool.clone())).await;
    assert!(other.recover(ResumeRequest::new("t")).await.unwrap().is_none(), "its process did not die");
    let request = ResumeRequest::new("t").decision(Decision::resume("t1"));
    let outcome = other.resume(request).await.unwrap().unwrap();
    assert_eq!((outcome.text().as_str(), &outcome.reason), ("went on", &TerminationReason::NaturalEnd));
    assert_eq!(tool.called(), 2);
    assert_eq!(roles(&store).await, [Role::User, Role::Assistant, Role::Tool, Role::Assistant]);
    assert_eq!(other.run(hi()).await.unwrap().text(), "next");
    let runs = store.agent_runs(&thread("t"), None, 10).await.unwrap();
    let record: RunRecord = serde_json::from_slice(&runs[1].payload).unwrap();
    assert_eq!((runs.len(), record.status, record.rounds, record.steps), (2, RunStatus::Done, 2, 3));
    assert!(is_free(&store).await);
}

// clause: D04, D12
#[tokio::test]
async fn d12_a_run_waits_in_a_file_and_goes_on_when_it_is_opened_again() {
    waits_and_goes_on(Place::sqlite()).await;
}

// clause: D04, D12
#[tokio::test]
async fn d12_a_run_waits_on_a_server_and_goes_on_over_another_connection() {
    waits_and_goes_on(Place::postgres()).await;
}

async fn one_at_a_time(first: Arc<dyn ThreadRunStore>, second: Arc<dyn ThreadRunStore>) {
    let hangs = Plain::new("hang", Does::Hang);
    let one = on(&first, one_agent(scripted([call("hang")])).tool(hangs.clone())).await;
    let other = on(&second, one_agent(saying(["mine", "more"]))).await;
    let token = CancellationToken::new();
    let running = tokio::spawn({
        let request = hi().cancellation(token.clone());
        async move { one.run(request).await }
    });
    while hangs.called() == 0 {
        sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(other.run(hi()).await.unwrap_err(), busy());
    assert_eq!(other.recover(ResumeRequest::new("t")).await.unwrap_err(), busy());
    let elsewhere = other.run(RunRequest::new("a", "u", "hi")).await.unwrap();
    assert_eq!(elsewhere.text(), "mine");
    token.cancel();
    assert_eq!(running.await.unwrap().unwrap().reason, TerminationReason::Cancelled);
    assert_eq!(other.run(hi()).await.unwrap().text(), "more");
    assert!(is_free(&second).await);
}

// clause: D04
#[tokio::test]
async fn d04_of_two_runtimes_on_one_file_one_runs_on_a_thread() {
    let store = Place::sqlite().open().await;
    one_at_a_time(Arc::clone(&store), store).await;
}

// clause: D04
#[tokio::test]
async fn d04_of_two_runtimes_on_one_server_one_runs_on_a_thread() {
    let place = Place::postgres();
    one_at_a_time(place.open().await, place.open().await).await;
}

/// Runs on a thread until it is killed in the middle of a call.
#[tokio::test]
async fn child() {
    let Some(place) = Place::of_parent() else { return };
    let store = place.open().await;
    let hangs = Plain::new("pay", Does::Hang);
    let runtime = on(&store, one_agent(scripted([call("pay")])).tool(hangs.clone())).await;
    let running = tokio::spawn(async move { runtime.run(hi()).await });
    while hangs.called() == 0 {
        sleep(Duration::from_millis(5)).await;
    }
    println!("\n{}", place::CALLED);
    panic!("it ended instead: {:?}", running.await);
}

/// What is left of a run whose process was killed in the middle of a call goes on here, as soon as its claim is over.
async fn takes_over(store: Arc<dyn ThreadRunStore>, patience: Duration) {
    let pays = Plain::new("pay", Does::Say("paid"));
    let runtime = on(&store, one_agent(scripted([ScriptedAnswer::text("done")])).tool(pays.clone())).await;
    let began = Instant::now();
    let outcome = loop {
        match runtime.recover(ResumeRequest::new("t")).await {
            Ok(outcome) => break outcome.unwrap(),
            Err(error) => assert_eq!(error, busy()),
        }
        assert!(began.elapsed() < patience, "its claim is never over");
        sleep(Duration::from_millis(250)).await;
    };
    // Whether it paid nobody knows, so nobody pays again before a person says so.
    assert_eq!((outcome.reason, pays.called()), (TerminationReason::Suspended, 0));
    let ticket = &outcome.waiting[0].1;
    assert_eq!(ticket.action, "repeat");
    let again = ResumeRequest::new("t").decision(Decision::resume(ticket.id.clone()));
    let outcome = runtime.resume(again).await.unwrap().unwrap();
    assert_eq!((outcome.text().as_str(), pays.called()), ("done", 1));
    assert_eq!(roles(&store).await, [Role::User, Role::Assistant, Role::Tool, Role::Assistant]);
    assert!(is_free(&store).await);
}

// clause: D04, D12, J05
#[tokio::test]
async fn d04_a_run_on_a_file_whose_process_is_killed_is_taken_over_by_another_process() {
    let place = Place::sqlite();
    let child = Child::start(&place);
    let refused = place.try_open().await.err().unwrap();
    assert!(matches!(refused, StorageError::Locked { .. }), "{refused}");
    child.kill();
    let store = place.open().await;
    let early = on(&store, one_agent(saying([]))).await;
    assert_eq!(early.recover(ResumeRequest::new("t")).await.unwrap_err(), busy(), "its claim is not over");
    drop((early, store));
    takes_over(place.open_later(CLAIM_TERM).await, Duration::from_secs(5)).await;
}

// clause: D04, D12, J05
#[tokio::test]
async fn d04_a_run_on_a_server_whose_process_is_killed_is_taken_over_by_another_process() {
    let place = Place::postgres();
    let child = Child::start(&place);
    let store = place.open().await;
    let other = on(&store, one_agent(saying([]))).await;
    assert_eq!(other.run(hi()).await.unwrap_err(), busy(), "the other process is at it");
    child.kill();
    assert_eq!(other.run(hi()).await.unwrap_err(), busy(), "its claim is not over");
    takes_over(store, CLAIM_TERM * 2).await;
}
