//! The same through a runtime: its slot and its claim, and runs that the store keeps from beginning.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use runyard_agent::checkpoint::CLAIM_TERM;
use runyard_agent::phase::{Phase, StateCommand, TerminationReason};
use runyard_agent::run::{AgentEvent, Decision, Observer, RunEnd, RunOutcome, RunRecord, RunStatus};
use runyard_agent::spec::AgentSpec;
use runyard_agent::{AgentRuntime, AgentRuntimeBuilder, ResumeRequest, RunRequest};
use runyard_llm::inference::{InferenceRequest, Message, Model, ModelStream, Refusal, ScriptedModel};
use runyard_store::{PAGE_MAX, RunStore, ThreadId, ThreadRow, ThreadRunStore, ThreadStore};

use super::{
    Ask, Case, Fail, Listed, asks, expected, fails, going_on, lost, plans, triples, without_message,
};
use crate::support::flaky::{Failure, Flaky, Operation, Plan};
use crate::support::{Heard, assert_paired, calls, says};

/// Asks whatever model is in it.
struct Switch(Mutex<Arc<dyn Model>>);

#[async_trait]
impl Model for Switch {
    fn name(&self) -> &str {
        "switch"
    }

    async fn open(&self, request: &InferenceRequest) -> Result<ModelStream, Refusal> {
        let model = Arc::clone(&self.0.lock().unwrap());
        model.open(request).await
    }
}

/// A case whose runs are driven by one runtime, over a store with the clock of the tests.
struct Driven {
    case: Case,
    runtime: AgentRuntime,
    flaky: Arc<Flaky>,
    model: Arc<Switch>,
}

impl Driven {
    async fn new(ask: &Ask, fail: &Fail) -> Self {
        let mut case = Case::new(ask, fail, None);
        // Long enough for a claim to be renewed, and to be lost.
        let (is_armed, slept) = (Arc::clone(&case.armed), Arc::new(AtomicBool::new(false)));
        case.world.bits.hook(Phase::BeforeToolExecute, move |_| {
            let sleeps = is_armed.load(Ordering::SeqCst) && !slept.swap(true, Ordering::SeqCst);
            async move {
                if sleeps {
                    tokio::time::sleep(CLAIM_TERM + Duration::from_secs(10)).await;
                }
                Ok(StateCommand::none())
            }
        });
        let model = Arc::new(Switch(Mutex::new(Arc::clone(&case.world.model) as Arc<dyn Model>)));
        let flaky = Flaky::timed();
        let (limits, retry) = (case.world.limits.clone(), case.world.retry.clone());
        let mut builder = AgentRuntimeBuilder::new()
            .model("m", Arc::clone(&model) as Arc<dyn Model>)
            .plugin(std::mem::take(&mut case.world.bits))
            .agent(AgentSpec { limits, retry, plugins: vec!["bits".into()], ..AgentSpec::new("a", "m") })
            .store(Arc::clone(&flaky) as Arc<dyn ThreadRunStore>);
        for tool in &case.world.tools {
            builder = builder.tool(Arc::clone(tool));
        }
        builder = builder.tool(crate::suspension::asks("ask"));
        let runtime = builder.build().await.unwrap();
        Driven { case, runtime, flaky, model }
    }

    async fn row(&self) -> Option<ThreadRow> {
        self.flaky.thread(&thread()).await.unwrap()
    }

    /// What is recorded of the last run, if anything is.
    async fn record(&self) -> Option<RunRecord> {
        self.row().await?;
        let row = self.flaky.agent_runs(&thread(), None, 1).await.unwrap().pop()?;
        Some(serde_json::from_slice(&row.payload).unwrap())
    }

    fn heals(&self) {
        self.case.armed.store(false, Ordering::SeqCst);
        let fine = ScriptedModel::of("fine", (0..4).flat_map(|_| [calls("z", "pay"), says("Paid.")]));
        *self.model.0.lock().unwrap() = Arc::new(fine);
    }

    /// Nothing goes wrong any more: the run is brought to its end, and the next one goes through, in the same process.
    async fn recovers(&self, name: &str) {
        self.heals();
        let mut decisions = Vec::new();
        for _ in 0..3 {
            let Some(row) = self.row().await else { break };
            if row.holder.is_some() {
                // The claim was granted or not given back, and nobody heard of it: it runs out by itself.
                tokio::time::sleep(CLAIM_TERM).await;
            }
            if row.unfinished.is_none() {
                break;
            }
            let request = || ResumeRequest { decisions: decisions.clone(), ..ResumeRequest::new("t") };
            let went_on = match self.runtime.recover(request()).await.unwrap() {
                Some(outcome) => outcome,
                None => self.runtime.resume(request()).await.unwrap().unwrap(),
            };
            let no = |(_, ticket): &(_, runyard_agent::tool::SuspendTicket)| {
                Decision::cancel(ticket.id.clone(), "no")
            };
            decisions = went_on.waiting.iter().map(no).collect();
            self.heals();
        }
        let next = self.runtime.run(RunRequest::new("a", "t", "And now?")).await.unwrap();
        assert_eq!(next.reason, TerminationReason::NaturalEnd, "{name}");
        let row = self.row().await.unwrap();
        assert!(row.holder.is_none() && row.unfinished.is_none(), "{name}");
        let stored = self.flaky.messages(&thread(), 0, PAGE_MAX).await.unwrap();
        let stored: Vec<Message> =
            stored.iter().map(|stored| serde_json::from_slice(&stored.body).unwrap()).collect();
        assert_paired(&stored);
        let mut made = self.case.effects.all();
        let before = made.len();
        made.sort();
        made.dedup();
        assert_eq!(made.len(), before, "{name}: a call was made twice");
    }
}

fn thread() -> ThreadId {
    ThreadId::new("t".into()).unwrap()
}

/// The end is told once and last, and it is the outcome.
#[track_caller]
fn assert_told(heard: &Heard, outcome: &RunOutcome, name: &str) {
    let events = heard.events();
    assert!(matches!(events.first(), Some(AgentEvent::RunStarted { .. })), "{name}");
    let ends = events.iter().filter(|event| matches!(event, AgentEvent::RunEnded { .. })).count();
    let Some(AgentEvent::RunEnded { reason, .. }) = events.last() else { panic!("{name}: {events:?}") };
    assert_eq!((ends, reason), (1, &outcome.reason), "{name}");
}

/// Why an operation that was to fail was not asked for.
fn unreached(plan: Plan) -> &'static str {
    match plan.operation {
        Operation::Messages => "a new thread has no messages to be read",
        Operation::AgentRun | Operation::RunValues | Operation::ToolCalls => {
            "only a run that goes on reads what is stored of it"
        }
        Operation::RenewClaim => "the run ended before its claim had to be renewed",
        Operation::ReleaseClaim => "only a run whose end cannot be recorded gives its claim up",
        Operation::Commit => "the run ended with fewer steps",
        _ => panic!("every run asks for {plan:?}"),
    }
}

async fn check(listed: &mut Listed, ask: &Ask, fail: &Fail, plan: Option<Plan>) {
    let name = format!("{ask:?} × {fail:?} × {plan:?}");
    let driven = Driven::new(ask, fail).await;
    driven.flaky.fails(plan);
    let heard = Arc::new(Heard::default());
    let observer = || Arc::clone(&heard) as Arc<dyn Observer>;
    let request = RunRequest { observer: observer(), ..RunRequest::new("a", "t", "Pay.") };
    let mut outcome = driven.runtime.run(request).await.unwrap();
    assert_told(&heard, &outcome, &name);
    let is_to_go_on = plan.is_some_and(|plan| plan.operation == Operation::UnfinishedRun);
    if is_to_go_on {
        heard.forget();
        let request = ResumeRequest { observer: observer(), ..ResumeRequest::new("t") };
        outcome = driven.runtime.recover(request).await.unwrap().unwrap();
        assert_told(&heard, &outcome, &name);
    }
    if let Some(plan) = plan.filter(|_| driven.flaky.failed() == 0) {
        *listed.entry(unreached(plan)).or_default() += 1;
    }
    if plan.is_none() {
        assert_eq!(without_message(&outcome.reason), expected(ask, fail), "{name}");
    }
    let lost = lost(plan, &driven.flaky);
    // From here on it is the test that asks.
    driven.flaky.fails(None);
    let at_opening = [Operation::CreateThread, Operation::Claim, Operation::ThreadValues];
    match (lost, driven.record().await) {
        (Some(why), _) => *listed.entry(why).or_default() += 1,
        (None, None) => {
            assert!(plan.is_some_and(|plan| at_opening.contains(&plan.operation)), "{name}");
            *listed.entry("a run that the store keeps from beginning has no record").or_default() += 1;
        }
        (None, Some(record)) => {
            assert_eq!(record.status, RunStatus::Done, "{name}");
            let end = Some(RunEnd::from(&outcome.reason));
            assert!(is_to_go_on || record.end == end, "{name}: {:?} {end:?}", record.end);
            let row = driven.row().await.unwrap();
            assert!(row.holder.is_none() && row.unfinished.is_none(), "{name}");
        }
    }
    driven.recovers(&name).await;
}

fn reasons(listed: &Listed) -> Vec<&str> {
    listed.keys().copied().collect()
}

const REASONS: [&str; 8] = [
    "a new thread has no messages to be read",
    "a run that the store keeps from beginning has no record",
    "another one writes to the thread, and so the end is theirs to record",
    "only a run that goes on reads what is stored of it",
    "only a run whose end cannot be recorded gives its claim up",
    "the run ended before its claim had to be renewed",
    "the run ended with fewer steps",
    "the store takes nothing any more: the run is left to whoever recovers it",
];

// clause: D04
#[tokio::test(start_paused = true)]
async fn d04_each_inference_error_in_a_store_that_fails_leaves_the_thread_free() {
    let mut listed = Listed::new();
    for ask in asks() {
        for plan in plans() {
            check(&mut listed, &ask, &Fail::Nothing, plan).await;
        }
    }
    assert_eq!(reasons(&listed), REASONS);
}

// clause: D04
#[tokio::test(start_paused = true)]
async fn d04_each_failing_phase_in_a_store_that_fails_leaves_the_thread_free() {
    let mut listed = Listed::new();
    for fail in fails() {
        for plan in plans() {
            check(&mut listed, &Ask::Fine, &fail, plan).await;
        }
    }
    assert_eq!(reasons(&listed), REASONS);
}

// clause: D04
#[tokio::test(start_paused = true)]
async fn d04_each_inference_error_with_each_failing_phase_leaves_the_thread_free() {
    let mut listed = Listed::new();
    for ask in asks() {
        for fail in fails() {
            check(&mut listed, &ask, &fail, None).await;
        }
    }
    assert_eq!(listed, Listed::new());
}

// clause: D04
#[tokio::test(start_paused = true)]
async fn d04_all_three_at_once_leave_the_thread_free() {
    let mut listed = Listed::new();
    let all = triples(plans(), async |ask, fail, plan| check(&mut listed, ask, fail, plan).await).await;
    assert_eq!(all, 250_560, "with RUNYARD_PROOF=soak all of these are tried");
    assert_eq!(reasons(&listed), REASONS);
}

/// Why an operation that was to fail was not asked for by a run that goes on.
fn unreached_going_on(plan: Plan) -> &'static str {
    match plan.operation {
        Operation::CreateThread => "the thread of a run that goes on is there",
        Operation::RenewClaim => "the run ended before its claim had to be renewed",
        Operation::ReleaseClaim => "only a run whose end cannot be recorded gives its claim up",
        Operation::Commit => "the run ended with fewer steps",
        Operation::Messages => "what the process remembers is not read",
        _ => {
            assert_eq!(plan.from, 2, "every run that goes on asks for {plan:?}");
            "so little is there that once is enough"
        }
    }
}

/// A run that waited for a person goes on: what a runtime asks of the store for that, and while it is under way, fails too.
async fn check_going_on(listed: &mut Listed, ask: &Ask, fail: &Fail, plan: Plan) {
    let name = format!("{ask:?} × {fail:?} × {plan:?}");
    let driven = Driven::new(ask, fail).await;
    let later = std::mem::replace(
        &mut *driven.model.0.lock().unwrap(),
        Arc::new(ScriptedModel::of("asks", [calls("a", "ask")])),
    );
    driven.case.armed.store(false, Ordering::SeqCst);
    let waits = driven.runtime.run(RunRequest::new("a", "t", "Go.")).await.unwrap();
    assert_eq!(waits.reason, TerminationReason::Suspended, "{name}");
    let yes = Decision::resume(waits.waiting[0].1.id.clone());
    *driven.model.0.lock().unwrap() = later;
    driven.case.armed.store(true, Ordering::SeqCst);
    driven.flaky.fails(Some(plan));
    let heard = Arc::new(Heard::default());
    let observer = Arc::clone(&heard) as Arc<dyn Observer>;
    let request = ResumeRequest { decisions: vec![yes], observer, ..ResumeRequest::new("t") };
    let outcome = driven.runtime.resume(request).await.unwrap().unwrap();
    assert_told(&heard, &outcome, &name);
    assert_ne!(outcome.reason, TerminationReason::Suspended, "{name}");
    if driven.flaky.failed() == 0 {
        *listed.entry(unreached_going_on(plan)).or_default() += 1;
        assert_eq!(without_message(&outcome.reason), going_on::expected(ask, fail), "{name}");
    }
    let lost = lost(Some(plan), &driven.flaky);
    // From here on it is the test that asks.
    driven.flaky.fails(None);
    let record = driven.record().await.unwrap();
    let is_begun = heard.events().iter().any(|event| matches!(event, AgentEvent::StepStarted { .. }));
    match lost {
        Some(why) => *listed.entry(why).or_default() += 1,
        None if record.status == RunStatus::Waiting => {
            assert!(!is_begun && plan.operation != Operation::Commit, "{name}");
            *listed.entry("a run that the store keeps from going on waits as before").or_default() += 1;
        }
        None => {
            assert_eq!(
                (record.status, record.end),
                (RunStatus::Done, Some(RunEnd::from(&outcome.reason))),
                "{name}"
            );
            let row = driven.row().await.unwrap();
            assert!(row.holder.is_none() && row.unfinished.is_none(), "{name}");
        }
    }
    driven.recovers(&name).await;
}

// clause: D04
#[tokio::test(start_paused = true)]
async fn d04_a_run_that_goes_on_with_all_three_at_once_leaves_the_thread_free() {
    let mut listed = Listed::new();
    let check = async |ask: &Ask, fail: &Fail, plan| check_going_on(&mut listed, ask, fail, plan).await;
    assert_eq!(
        triples(going_on::plans(), check).await,
        208_800,
        "with RUNYARD_PROOF=soak all of these are tried"
    );
    assert_eq!(
        reasons(&listed),
        [
            "a run that the store keeps from going on waits as before",
            "only a run whose end cannot be recorded gives its claim up",
            "so little is there that once is enough",
            "the run ended before its claim had to be renewed",
            "the run ended with fewer steps",
            "the store takes nothing any more: the run is left to whoever recovers it",
            "the thread of a run that goes on is there",
            "what the process remembers is not read",
        ]
    );
}

/// The store takes neither the end nor the claim back.
#[tokio::test(start_paused = true)]
async fn d04_a_claim_that_cannot_be_given_back_runs_out_by_itself() {
    for ask in asks() {
        for release in [Failure::Io, Failure::Hangs] {
            let driven = Driven::new(&ask, &Fail::Nothing).await;
            let heard = Arc::new(Heard::default());
            driven.flaky.fails(Some(Plan::always(Operation::Commit, Failure::Io)));
            driven.flaky.fails_too(Plan::always(Operation::ReleaseClaim, release));
            let observer = Arc::clone(&heard) as Arc<dyn Observer>;
            let request = RunRequest { observer, ..RunRequest::new("a", "t", "Pay.") };
            let outcome = driven.runtime.run(request).await.unwrap();
            let name = format!("{ask:?} × {release:?}");
            assert_told(&heard, &outcome, &name);
            assert!(driven.row().await.unwrap().holder.is_some(), "{name}");
            driven.flaky.fails(None);
            driven.recovers(&name).await;
        }
    }
}
