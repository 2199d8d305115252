//! Whatever fails, wherever, and whatever else fails with it: the run ends once, leaves a record, has all its calls answered
//! and gives the thread to the next one. Here is the loop; `going_on` has runs that go on, `driven` the runtime around it.
//!
//! All pairs of faults are gone through, and of the triples of each of them as many as `RUNYARD_PROOF` says (`quick`, `sample`, `soak`:
//! all).

mod driven;
mod going_on;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use runyard_agent::phase::{Phase, StateCommand, TerminationReason};
use runyard_agent::run::{Decision, Limits, RunEnd, RunStatus};
use runyard_agent::state::StateError;
use runyard_agent::tool::{ToolError, ToolResult};
use runyard_domain::{Code, RunId};
use runyard_llm::inference::{
    AtEnd, InferenceExecutionError, InterruptCause, Script, ScriptedAnswer, ScriptedError, ScriptedFault,
    ScriptedModel, Step,
};
use runyard_store::{ThreadRunStore, ThreadStore};

use crate::support::flaky::{Failure, Flaky, Operation, Plan};
use crate::support::parts::{Effects, tool};
use crate::support::{Seen, World, assert_paired, calls, run_id, says};

/// What goes wrong with the model.
#[derive(Debug, Clone)]
enum Ask {
    Fine,
    /// It refuses, from this question on.
    Refuses(u32, ScriptedError),
    /// It says something first, and then this at every attempt.
    Breaks(u32, ScriptedFault),
    /// It refuses once.
    Hesitates(ScriptedError),
}

/// What goes wrong in a phase.
#[derive(Debug, Clone)]
enum Fail {
    Nothing,
    Hook(Phase, How),
    Gate(How),
    Tool(Option<ToolError>),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum How {
    Error,
    State,
    Panic,
    Hang,
}

fn errors() -> Vec<ScriptedError> {
    let message = String::new;
    vec![
        ScriptedError::Provider { message: message() },
        ScriptedError::RateLimited { message: message(), retry_after_ms: Some(10) },
        ScriptedError::Overloaded { message: message(), retry_after_ms: None },
        ScriptedError::Timeout { message: message() },
        ScriptedError::StreamInterrupted { cause: InterruptCause::GoAway },
        ScriptedError::ContextOverflow { message: message() },
        ScriptedError::InvalidRequest { message: message() },
        ScriptedError::Unauthorized { message: message() },
        ScriptedError::ModelNotFound { message: message() },
        ScriptedError::ContentFiltered { message: message() },
        ScriptedError::AllModelsUnavailable,
        ScriptedError::Cancelled,
    ]
}

fn asks() -> Vec<Ask> {
    let mut all = vec![Ask::Fine];
    for error in errors() {
        if InferenceExecutionError::from(error.clone()).is_retryable() {
            all.push(Ask::Hesitates(error.clone()));
        }
        for question in [1, 2] {
            all.push(Ask::Refuses(question, error.clone()));
            all.push(Ask::Breaks(question, ScriptedFault::Failed(error.clone())));
        }
    }
    let causes = [
        InterruptCause::ConnectionReset,
        InterruptCause::IdleStall,
        InterruptCause::GoAway,
        InterruptCause::Provider5xxMidStream(502),
    ];
    all.extend(causes.map(|cause| Ask::Breaks(1, ScriptedFault::Interrupted(cause))));
    all
}

fn fails() -> Vec<Fail> {
    let mut all = vec![Fail::Nothing];
    for how in [How::Error, How::State, How::Panic, How::Hang] {
        all.extend(Phase::ALL.map(|phase| Fail::Hook(phase, how)));
        all.push(Fail::Gate(how));
    }
    let why = || "why".to_owned();
    all.extend(
        [
            ToolError::InvalidArguments(why()),
            ToolError::ExecutionFailed(why()),
            ToolError::Denied(why()),
            ToolError::NotFound(why()),
            ToolError::Internal(why()),
            ToolError::Cancelled(why()),
        ]
        .map(|error| Fail::Tool(Some(error))),
    );
    all.push(Fail::Tool(None));
    all
}

/// Every operation of the store, failing once or always. Those that a new run does not ask for are listed, with the reason, in
/// `unreached`; the same for runs that go on is `a_run_that_goes_on_in_a_store_that_fails`.
pub(super) fn plans() -> Vec<Option<Plan>> {
    let mut all = vec![None];
    for operation in Operation::ALL.into_iter().filter(|operation| *operation != Operation::Commit) {
        let asked = if operation == Operation::Claim { 2 } else { 1 };
        for from in 1..=asked {
            for (failure, times) in [(Failure::Io, 1), (Failure::Unheard, 1), (Failure::Io, u32::MAX)] {
                all.push(Some(Plan { operation, from, times, failure }));
            }
        }
    }
    let operation = Operation::Commit;
    for from in 1..=4 {
        for failure in [Failure::Io, Failure::Unheard, Failure::Hangs, Failure::Refused, Failure::Stale] {
            for times in [1, u32::MAX] {
                all.push(Some(Plan { operation, from, times, failure }));
            }
        }
        for failure in [Failure::Conflict, Failure::Missing, Failure::Exists, Failure::Unreadable] {
            all.push(Some(Plan { operation, from, times: 1, failure }));
        }
    }
    all
}

/// Why the loop alone never meets some faults; `driven` has them, in new runs and in those that go on.
const OF_RUNTIME: &str = "only the runtime around the loop asks for it";

/// Why an operation that was to fail was not asked for.
fn unreached(plan: Plan) -> &'static str {
    match plan.operation {
        Operation::Messages => "a new thread has no messages to be read",
        Operation::AgentRun | Operation::RunValues | Operation::ToolCalls => {
            "only a run that goes on reads what is stored of it"
        }
        Operation::UnfinishedRun | Operation::RenewClaim => OF_RUNTIME,
        Operation::ReleaseClaim => "only a run whose end cannot be recorded gives its claim up",
        Operation::Commit => "the run ended with fewer steps",
        Operation::CreateThread | Operation::ThreadValues | Operation::Claim => {
            panic!("every new run asks for {plan:?}")
        }
    }
}

/// Why the end of a run is not recorded, where it is not: the store failed it, and will go on to, or says that it is not ours.
fn lost(plan: Option<Plan>, flaky: &Flaky) -> Option<&'static str> {
    let plan = plan.filter(|plan| plan.operation == Operation::Commit && flaky.failed() > 0)?;
    if plan.times == u32::MAX {
        return Some("the store takes nothing any more: the run is left to whoever recovers it");
    }
    let is_last = plan.from == flaky.asked(Operation::Commit);
    let is_taken = matches!(plan.failure, Failure::Stale | Failure::Conflict | Failure::Exists);
    (is_last && is_taken).then_some("another one writes to the thread, and so the end is theirs to record")
}

/// When in a run each of them comes, if nothing came before. Nothing, where it does not end a run.
fn place(fail: &Fail) -> Option<u32> {
    Some(match fail {
        Fail::Nothing | Fail::Tool(_) => return None,
        Fail::Hook(Phase::RunStart, _) => 0,
        Fail::Hook(Phase::StepStart, _) => 1,
        Fail::Hook(Phase::BeforeInference, _) => 2,
        // The first question is 3.
        Fail::Hook(Phase::AfterInference, _) => 4,
        Fail::Hook(Phase::ToolGate, _) => 5,
        Fail::Gate(_) => 6,
        Fail::Hook(Phase::BeforeToolExecute, _) => 7,
        // The tool itself is 8.
        Fail::Hook(Phase::AfterToolExecute, _) => 9,
        Fail::Hook(Phase::StepEnd, _) => 10,
        // The second question is 11.
        Fail::Hook(Phase::RunEnd, _) => 12,
    })
}

fn ask_place(ask: &Ask) -> Option<u32> {
    match ask {
        Ask::Fine | Ask::Hesitates(_) => None,
        Ask::Refuses(1, _) | Ask::Breaks(1, _) => Some(3),
        Ask::Refuses(..) | Ask::Breaks(..) => Some(11),
    }
}

/// Why both of these cannot happen in one run, where they cannot.
fn impossible(ask: &Ask, fail: &Fail) -> Option<&'static str> {
    let asked = match ask {
        Ask::Fine => return None,
        Ask::Hesitates(_) => 3,
        ask => ask_place(ask)?,
    };
    let failing = match fail {
        Fail::Nothing => return None,
        Fail::Tool(_) => 8,
        fail => place(fail)?,
    };
    if failing == 12 {
        return None;
    }
    if failing < asked && place(fail).is_some() {
        return Some("the phase ends the run before that question is asked");
    }
    if failing > asked && ask_place(ask).is_some() {
        return Some("the question ends the run before that phase comes");
    }
    None
}

/// How a run ends in a store that does not fail.
fn expected(ask: &Ask, fail: &Fail) -> TerminationReason {
    expected_of(ask, fail, place(fail))
}

/// The same where the phase comes at another place.
fn expected_of(ask: &Ask, fail: &Fail, place: Option<u32>) -> TerminationReason {
    let of_ask = match ask {
        Ask::Fine | Ask::Hesitates(_) => None,
        Ask::Refuses(_, error) | Ask::Breaks(_, ScriptedFault::Failed(error)) => {
            Some(InferenceExecutionError::from(error.clone()))
        }
        Ask::Breaks(_, ScriptedFault::Interrupted(cause)) => {
            Some(ScriptedError::StreamInterrupted { cause: *cause }.into())
        }
    };
    let failed = |code| TerminationReason::Failed { code, message: String::new() };
    let of_ask = of_ask.map(|error| match error {
        InferenceExecutionError::Cancelled => TerminationReason::Cancelled,
        error => failed(error.code()),
    });
    let of_fail = match fail {
        Fail::Nothing | Fail::Tool(_) => None,
        Fail::Hook(_, How::Error | How::Panic) | Fail::Gate(How::Error | How::Panic) => {
            Some(failed(Code::InternalError))
        }
        Fail::Hook(_, How::State) | Fail::Gate(How::State) => Some(failed(Code::StateRevisionConflict)),
        // The last phase has a time of its own.
        Fail::Hook(Phase::RunEnd, How::Hang) => Some(failed(Code::StatePhaseRunLoopExceeded)),
        Fail::Hook(_, How::Hang) | Fail::Gate(How::Hang) => Some(TerminationReason::Stopped {
            code: "timeout".to_owned(),
            detail: Some("not done within 60000 ms".to_owned()),
        }),
    };
    match (ask_place(ask).zip(of_ask), place.zip(of_fail)) {
        (None, None) => TerminationReason::NaturalEnd,
        (Some((_, reason)), None) | (None, Some((_, reason))) => reason,
        // Only a failure of the end can come on top, and the first failure counts.
        (Some((asked, TerminationReason::Cancelled)), Some((12, reason))) if asked < 12 => reason,
        (Some((asked, one)), Some((failing, other))) => {
            if asked < failing {
                one
            } else {
                other
            }
        }
    }
}

fn without_message(reason: &TerminationReason) -> TerminationReason {
    match reason {
        TerminationReason::Failed { code, .. } => {
            TerminationReason::Failed { code: *code, message: String::new() }
        }
        reason => reason.clone(),
    }
}

struct Case {
    world: World,
    flaky: Arc<Flaky>,
    effects: Effects,
    /// Whether anything still goes wrong.
    armed: Arc<AtomicBool>,
    /// Whether the phase failed.
    failed: Arc<AtomicBool>,
}

fn script(ask: &Ask) -> Arc<ScriptedModel> {
    let fine = [calls("a", "pay"), says("Paid.")];
    let broken = match ask {
        Ask::Fine => None,
        Ask::Refuses(_, error) | Ask::Hesitates(error) => Some(ScriptedAnswer::failing(error.clone())),
        Ask::Breaks(_, fault) => {
            Some(ScriptedAnswer::steps([Step::Text("Hm".into()), Step::Fault(fault.clone())]))
        }
    };
    let answers = match (ask, broken) {
        (Ask::Refuses(2, _) | Ask::Breaks(2, _), Some(broken)) => vec![calls("a", "pay"), broken],
        (Ask::Hesitates(_), Some(broken)) => [vec![broken], fine.to_vec()].concat(),
        (_, Some(broken)) => vec![broken],
        (_, None) => fine.to_vec(),
    };
    Arc::new(ScriptedModel::new(Script { name: "model".into(), at_end: AtEnd::Last, answers }))
}

async fn go_wrong<T>(failed: &AtomicBool, how: How) -> Result<T, runyard_agent::phase::Fault> {
    failed.store(true, Ordering::SeqCst);
    match how {
        How::Error => Err("it went wrong".into()),
        How::State => Err(StateError::RevisionConflict { expected: 1, actual: 2 }.into()),
        How::Hang => std::future::pending().await,
        How::Panic => panic!("it went very wrong"),
    }
}

impl Case {
    fn new(ask: &Ask, fail: &Fail, plan: Option<Plan>) -> Self {
        let (armed, failed) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicBool::new(false)));
        let (effects, flaky) = (Effects::default(), Flaky::new(plan));
        let mut world = World::new([]).limits(Limits { time_max_ms: Some(60_000), ..Limits::default() });
        world.model = script(ask);
        world.store = Arc::clone(&flaky) as Arc<dyn ThreadRunStore>;
        let (fail, is_armed, has_failed) = (fail.clone(), Arc::clone(&armed), Arc::clone(&failed));
        let paid = effects.clone();
        let outcome = match &fail {
            Fail::Tool(error) => Some(error.clone()),
            _ => None,
        };
        world = world.tool(
            tool("pay", move |_, context| {
                paid.happened(context.idempotency_key);
                let outcome = outcome.clone().filter(|_| is_armed.load(Ordering::SeqCst));
                if outcome.is_some() {
                    has_failed.store(true, Ordering::SeqCst);
                }
                async move {
                    match outcome {
                        None => Ok(ToolResult::success("done").into()),
                        Some(Some(error)) => Err(error),
                        Some(None) => panic!("the tool went wrong"),
                    }
                }
            })
            .done(),
        );
        let (is_armed, has_failed) = (Arc::clone(&armed), Arc::clone(&failed));
        world = world.with(|bits| match fail {
            Fail::Hook(phase, how) => bits.hook(phase, move |_| {
                let (is_armed, has_failed) = (Arc::clone(&is_armed), Arc::clone(&has_failed));
                async move {
                    match is_armed.load(Ordering::SeqCst) {
                        true => go_wrong(&has_failed, how).await,
                        false => Ok(StateCommand::none()),
                    }
                }
            }),
            Fail::Gate(how) => bits.gate(move |_, _| {
                let (is_armed, has_failed) = (Arc::clone(&is_armed), Arc::clone(&has_failed));
                async move {
                    match is_armed.load(Ordering::SeqCst) {
                        true => go_wrong(&has_failed, how).await,
                        false => Ok(Default::default()),
                    }
                }
            }),
            Fail::Nothing | Fail::Tool(_) => {}
        });
        Case { world, flaky, effects, armed, failed }
    }

    /// Nothing goes wrong any more: the run is brought to its end, and the next one goes through.
    async fn recovers(&mut self, run: RunId, name: &str) {
        self.armed.store(false, Ordering::SeqCst);
        self.flaky.fails(None);
        let mut decisions = Vec::new();
        for _ in 0..3 {
            let row = self.flaky.thread(&self.world.thread()).await.unwrap();
            let Some(row) = row.filter(|row| row.unfinished.is_some() || row.holder.is_some()) else { break };
            if row.unfinished.is_none() {
                // The claim was granted, and nobody heard of it.
                assert_eq!(row.holder.unwrap().run, self.world.run_name(run), "{name}");
            }
            self.world.again([calls("z", "pay"), says("Paid."), says("Paid.")]);
            let seen = self.world.go(run, &[], std::mem::take(&mut decisions)).await;
            let cancel = |(_, ticket): &(_, runyard_agent::tool::SuspendTicket)| {
                assert_eq!(ticket.action, "repeat", "{name}");
                Decision::cancel(ticket.id.clone(), "no")
            };
            decisions = seen.outcome.waiting.iter().map(cancel).collect();
        }
        self.world.again([calls("y", "pay"), says("Paid.")]);
        let seen = self.world.ask("And now?").await;
        assert_eq!(seen.reason(), &TerminationReason::NaturalEnd, "{name}");
        assert_paired(&self.world.messages().await);
        assert!(self.world.is_free().await, "{name}");
        let mut made = self.effects.all();
        made.sort();
        let before = made.len();
        made.dedup();
        assert_eq!(made.len(), before, "{name}: a call was made twice");
    }
}

/// What did not come about, and why, and how often.
type Listed = BTreeMap<&'static str, u32>;

async fn check(listed: &mut Listed, ask: &Ask, fail: &Fail, plan: Option<Plan>) {
    let name = format!("{ask:?} × {fail:?} × {plan:?}");
    let mut case = Case::new(ask, fail, plan);
    let run = run_id();
    match case.world.try_go(run, &["Pay."], Vec::new()).await {
        Err(error) => {
            let plan = plan.unwrap();
            assert_ne!(plan.operation, Operation::Commit, "{name}: {error}");
            assert!(case.world.heard.events().is_empty(), "{name}: it never began");
            let row = case.flaky.thread(&case.world.thread()).await.unwrap();
            if plan.operation == Operation::ThreadValues {
                assert!(row.unwrap().holder.is_none(), "{name}: what cannot be read is given back");
            }
        }
        Ok(seen) => case.ended(listed, &name, (ask, fail, plan), run, &seen).await,
    }
    case.recovers(run, &name).await;
}

impl Case {
    async fn ended(
        &self,
        listed: &mut Listed,
        name: &str,
        (ask, fail, plan): (&Ask, &Fail, Option<Plan>),
        run: RunId,
        seen: &Seen,
    ) {
        let reason = without_message(seen.reason());
        let is_spared = self.flaky.failed() == 0;
        if is_spared {
            assert_eq!(reason, expected(ask, fail), "{name}");
            let questions = match ask {
                Ask::Fine => 0,
                Ask::Hesitates(_) => 1,
                ask => {
                    if ask_place(ask) == Some(3) {
                        1
                    } else {
                        2
                    }
                }
            };
            let asked = self.world.model.asked() >= questions;
            let failed = self.failed.load(Ordering::SeqCst) || matches!(fail, Fail::Nothing);
            assert_eq!(asked && failed, impossible(ask, fail).is_none(), "{name}");
        }
        assert_ne!(reason, TerminationReason::Suspended, "{name}");
        let row = self.flaky.thread(&self.world.thread()).await.unwrap().unwrap();
        assert!(row.holder.is_none(), "{name}: the claim is given back or given up");
        if let Some(plan) = plan.filter(|_| is_spared) {
            *listed.entry(unreached(plan)).or_default() += 1;
        }
        let lost = lost(plan, &self.flaky);
        // From here on it is the test that asks.
        self.flaky.fails(None);
        match lost {
            Some(why) => *listed.entry(why).or_default() += 1,
            None => {
                let record = self.world.record(run).await;
                let end = RunEnd::from(&seen.outcome.reason);
                assert_eq!((record.status, record.end), (RunStatus::Done, Some(end)), "{name}");
                assert!(row.unfinished.is_none(), "{name}");
                assert_paired(&self.world.messages().await);
            }
        }
        // Whoever watched heard the end of everything that began.
        let words = seen.words();
        let began = words.iter().filter(|word| word.starts_with("made ")).count();
        let ended = words.iter().filter(|word| word.contains("2.0") && !word.starts_with("made ")).count();
        assert!(ended >= began, "{name}: {words:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_inference_error_with_each_failing_phase() {
    let (mut listed, mut nothing) = (Listed::new(), Listed::new());
    for ask in asks() {
        for fail in fails() {
            check(&mut nothing, &ask, &fail, None).await;
            if let Some(why) = impossible(&ask, &fail) {
                *listed.entry(why).or_default() += 1;
            }
        }
    }
    assert_eq!(nothing, Listed::new());
    // What cannot happen together, and why. Each phase fails in four ways, and the tool in seven. Before the first question
    // come 3 phases, between both questions 6, and at the end one, which always comes.
    let (first, second, hesitating) = (12 * 2 + 4, 12 * 2, 5);
    let ended_before = (first + hesitating) * 3 * 4 + second * (3 + 6) * 4;
    let never_came = first * (6 * 4 + 7);
    assert_eq!(
        listed.into_iter().collect::<Vec<_>>(),
        [
            ("the phase ends the run before that question is asked", ended_before),
            ("the question ends the run before that phase comes", never_came),
        ]
    );
}

/// Each of these was met, and nothing else kept anything from coming about.
#[track_caller]
fn assert_listed(listed: &Listed) {
    let reasons: Vec<&str> = listed.keys().copied().collect();
    assert_eq!(
        reasons,
        [
            "a new thread has no messages to be read",
            "another one writes to the thread, and so the end is theirs to record",
            "only a run that goes on reads what is stored of it",
            "only a run whose end cannot be recorded gives its claim up",
            OF_RUNTIME,
            "the run ended with fewer steps",
            "the store takes nothing any more: the run is left to whoever recovers it",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn each_inference_error_in_a_store_that_fails() {
    let mut listed = Listed::new();
    for ask in asks() {
        for plan in plans() {
            check(&mut listed, &ask, &Fail::Nothing, plan).await;
        }
    }
    assert_listed(&listed);
}

#[tokio::test(start_paused = true)]
async fn each_failing_phase_in_a_store_that_fails() {
    let mut listed = Listed::new();
    for fail in fails() {
        for plan in plans() {
            check(&mut listed, &Ask::Fine, &fail, plan).await;
        }
    }
    assert_listed(&listed);
}

/// Every model error with every failing phase and each of these failing stores, or as many of them as are to be tried. Says how many there are.
async fn triples<P: Copy>(plans: Vec<P>, mut check: impl AsyncFnMut(&Ask, &Fail, P)) -> usize {
    let part = match std::env::var("RUNYARD_PROOF").as_deref() {
        Ok("soak") => 1,
        Ok("quick") => 997,
        _ => 61,
    };
    let mut number = 0_usize;
    for ask in asks() {
        for fail in fails() {
            for plan in &plans {
                number += 1;
                if number.is_multiple_of(part) {
                    check(&ask, &fail, *plan).await;
                }
            }
        }
    }
    number
}

#[tokio::test(start_paused = true)]
async fn all_three_at_once() {
    let mut listed = Listed::new();
    let all = triples(plans(), async |ask, fail, plan| check(&mut listed, ask, fail, plan).await).await;
    assert_eq!(all, 250_560, "with RUNYARD_PROOF=soak all of these are tried");
    assert_listed(&listed);
}
