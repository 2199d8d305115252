//! Runs that wait for an answer, and runs whose process died.

use std::sync::Arc;

use runyard_agent::checkpoint::{CLAIM_TERM, CallNote, CallPlace, Checkpoint, StepCommit, StoreCheckpoint};
use runyard_agent::phase::TerminationReason;
use runyard_agent::run::{Decision, RunRecord, RunStatus};
use runyard_agent::spec::AgentSpec;
use runyard_agent::{AgentRuntime, AgentRuntimeBuilder, ResumeRequest, RunRequest, RuntimeError};
use runyard_domain::{Code, RunId};
use runyard_llm::inference::{Message, Part, Role, ScriptedAnswer, ToolCall};
use runyard_store::{RunStore, ThreadRunStore, ThreadStore};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::flaky::{Failure, Flaky, Operation, Plan};
use crate::heard::Heard;
use crate::kit::{Does, Plain, call, one_agent, saying, scripted, thread};

fn hi() -> RunRequest {
    RunRequest::new("a", "t", "hi")
}

async fn on(store: &Arc<Flaky>, builder: AgentRuntimeBuilder) -> AgentRuntime {
    builder.store(Arc::clone(store) as Arc<dyn ThreadRunStore>).build().await.unwrap()
}

fn asking() -> (AgentRuntimeBuilder, Arc<Plain>) {
    let tool = Plain::new("ask", Does::Wait);
    let model = scripted([call("ask"), ScriptedAnswer::text("went on"), ScriptedAnswer::text("next")]);
    (one_agent(model).tool(tool.clone()), tool)
}

fn yes() -> ResumeRequest {
    ResumeRequest::new("t").decision(Decision::resume("t1"))
}

#[tokio::test]
async fn a_run_waits_as_a_row_and_goes_on_with_its_answer_in_another_process() {
    let store = Flaky::timed();
    let (builder, tool) = asking();
    let runtime = on(&store, builder).await;
    let outcome = runtime.run(hi()).await.unwrap();
    assert_eq!(outcome.reason, TerminationReason::Suspended);
    assert_eq!(outcome.waiting[0].1.id, "t1");
    // The thread is taken by the run that waits, wherever one looks.
    let busy = RuntimeError::ThreadAlreadyRunning { thread_id: "t".into() };
    assert_eq!(runtime.run(hi()).await.unwrap_err(), busy);
    assert!(runtime.recover(ResumeRequest::new("t")).await.unwrap().is_none(), "its process did not die");

    let other = on(&store, one_agent(saying(["went on"])).tool(tool.clone())).await;
    let still = other.resume(ResumeRequest::new("t")).await.unwrap().unwrap();
    assert_eq!(still.reason, TerminationReason::Suspended, "without its answer it waits on");
    let done = other.resume(yes()).await.unwrap().unwrap();
    assert_eq!((done.text().as_str(), done.reason), ("went on", TerminationReason::NaturalEnd));
    assert_eq!(tool.called(), 2);
    assert!(other.resume(yes()).await.unwrap().is_none(), "nothing waits any more");
    assert!(store.unfinished_run(&thread("t")).await.unwrap().is_none());
}

#[tokio::test]
async fn a_run_that_is_not_wanted_any_more_is_ended_by_resuming_it_cancelled() {
    let store = Flaky::timed();
    let (builder, tool) = asking();
    let runtime = on(&store, builder).await;
    let _ = runtime.run(hi()).await.unwrap();
    let token = CancellationToken::new();
    token.cancel();
    let heard = Heard::default();
    let request = ResumeRequest::new("t").cancellation(token).observer(heard.clone());
    let outcome = runtime.resume(request).await.unwrap().unwrap();
    assert_eq!(outcome.reason, TerminationReason::Cancelled);
    assert_eq!((heard.ends(), tool.called()), (1, 1));
    assert_eq!(runtime.run(hi()).await.unwrap().text(), "went on");
}

#[tokio::test]
async fn without_a_store_nothing_can_go_on() {
    let (builder, _) = asking();
    let runtime = builder.build().await.unwrap();
    assert_eq!(runtime.run(hi()).await.unwrap().reason, TerminationReason::Suspended);
    assert!(runtime.resume(yes()).await.unwrap().is_none());
    assert_eq!(runtime.run(hi()).await.unwrap().text(), "went on", "the thread is free");
}

#[tokio::test]
async fn d04_a_run_whose_agent_is_gone_cannot_go_on_and_waits_as_before() {
    let store = Flaky::timed();
    let (builder, _) = asking();
    let _ = on(&store, builder).await.run(hi()).await.unwrap();
    let model = saying(["x"]);
    let other =
        on(&store, AgentRuntimeBuilder::new().model("m", model).agent(AgentSpec::new("b", "m"))).await;
    let error = other.resume(yes()).await.unwrap_err();
    assert_eq!(error, RuntimeError::AgentNotFound { agent_id: "a".into() });
    assert_eq!(store.unfinished_run(&thread("t")).await.unwrap().unwrap().status, "waiting");
}

#[tokio::test]
async fn a_store_that_cannot_be_read_ends_nothing() {
    let store = Flaky::timed();
    let (builder, _) = asking();
    let runtime = on(&store, builder).await;
    let _ = runtime.run(hi()).await.unwrap();
    store.fails(Some(Plan::always(Operation::UnfinishedRun, Failure::Io)));
    let heard = Heard::default();
    let outcome = runtime.resume(yes().observer(heard.clone())).await.unwrap().unwrap();
    assert!(matches!(outcome.reason, TerminationReason::Failed { code: Code::StorageIo, .. }));
    assert_eq!(heard.ends(), 1);
    store.fails(None);
    assert_eq!(runtime.resume(yes()).await.unwrap().unwrap().text(), "went on");
}

/// A process that died when a call's intent was durable and its result was not.
async fn died_in_the_middle(store: &Arc<Flaky>, tool: &str) -> RunId {
    let run_id = RunId::from_parts(5, &[7; 10]);
    let shared = Arc::clone(store) as Arc<dyn ThreadRunStore>;
    let redactor = runyard_redact::process::forms_only();
    let names = ("t", &*run_id.to_string(), "the dead");
    let (checkpoint, _) = StoreCheckpoint::open(shared, redactor, names, Vec::new()).await.unwrap();
    let call = ToolCall { id: "c1".into(), name: tool.into(), arguments: json!({}) };
    let answer = Message { role: Role::Assistant, content: vec![Part::ToolCall(call.clone())] };
    let commit = StepCommit {
        messages: vec![Arc::new(Message::user("hi")), Arc::new(answer)],
        calls: vec![CallNote::Intent {
            place: CallPlace { message: 2, index: 0 },
            call,
            idempotency_key: "k".into(),
            idempotent: false,
        }],
        record: RunRecord {
            agent_id: "a".into(),
            status: RunStatus::Running,
            rounds: 1,
            ..RunRecord::default()
        },
        ..StepCommit::default()
    };
    checkpoint.commit(commit).await.unwrap();
    run_id
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_process_died_goes_on_when_its_claim_is_over_and_not_before() {
    let store = Flaky::timed();
    let run_id = died_in_the_middle(&store, "count").await;
    let tool = Plain::idempotent("count", Does::Say("one"));
    let runtime = on(&store, one_agent(saying(["counted"])).tool(tool.clone())).await;
    let busy = RuntimeError::ThreadAlreadyRunning { thread_id: "t".into() };
    assert_eq!(runtime.recover(ResumeRequest::new("t")).await.unwrap_err(), busy);
    assert!(runtime.resume(ResumeRequest::new("t")).await.unwrap().is_none(), "it does not wait");
    tokio::time::sleep(CLAIM_TERM).await;
    assert_eq!(runtime.run(hi()).await.unwrap_err(), busy, "what it left comes first");
    let outcome = runtime.recover(ResumeRequest::new("t")).await.unwrap().unwrap();
    assert_eq!((outcome.text().as_str(), outcome.rounds, tool.called()), ("counted", 2, 1));
    let run = store.agent_runs(&thread("t"), None, 1).await.unwrap().remove(0);
    assert_eq!((run.id.as_str(), run.finished), (run_id.to_string().as_str(), true));
    assert_eq!(store.messages(&thread("t"), 0, 10).await.unwrap().len(), 4);
    assert!(runtime.recover(ResumeRequest::new("t")).await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_call_of_which_nobody_knows_whether_it_was_made_is_asked_about() {
    let store = Flaky::timed();
    died_in_the_middle(&store, "pay").await;
    let tool = Plain::new("pay", Does::Say("paid"));
    let runtime = on(&store, one_agent(saying(["done"])).tool(tool.clone())).await;
    tokio::time::sleep(CLAIM_TERM).await;
    let outcome = runtime.recover(ResumeRequest::new("t")).await.unwrap().unwrap();
    assert_eq!((outcome.reason, tool.called()), (TerminationReason::Suspended, 0));
    let ticket = outcome.waiting[0].1.id.clone();
    let answer = ResumeRequest::new("t").decision(Decision::resume(ticket));
    let outcome = runtime.resume(answer).await.unwrap().unwrap();
    assert_eq!((outcome.text().as_str(), tool.called()), ("done", 1));
}

#[tokio::test]
async fn a_run_that_another_process_brought_to_its_end_meanwhile_did_not_fail() {
    let store = Flaky::timed();
    let (builder, _) = asking();
    let runtime = on(&store, builder).await;
    let _ = runtime.run(hi()).await.unwrap();
    // It was found unfinished, and is finished when the thread is claimed.
    store.fails(Some(Plan::once(Operation::Claim, Failure::Exists)));
    let heard = Heard::default();
    assert!(runtime.resume(yes().observer(heard.clone())).await.unwrap().is_none());
    assert!(heard.events().is_empty(), "nothing is told of a run that is not gone on with");
    assert_eq!(runtime.resume(yes()).await.unwrap().unwrap().text(), "went on");
}
