//! Random runs whose answers break off at random places, and that die at random moments, again and again: each effect happened
//! exactly once or a person was asked, what the model said is what is stored, and so is what clients saw of it.

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use async_trait::async_trait;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use runyard_agent::CallOrder;
use runyard_agent::checkpoint::OpenError;
use runyard_agent::phase::{GateDecision, TerminationReason};
use runyard_agent::run::{AgentEvent, Begin, Decision, RunOutcome, run};
use runyard_agent::tool::{ResumeMode, SuspendTicket, Tool, ToolError, ToolResult};
use runyard_domain::RunId;
use runyard_llm::inference::{
    BreakerPolicy, CONTINUE, InferenceRequest, InterruptCause, Message, Model, ModelStream, Refusal,
    RetryPolicy, Role, ScriptedAnswer, ScriptedError, ScriptedFault, ScriptedModel, Step, StopReason, Update,
};
use runyard_store::{StorageError, ThreadRunStore};

use crate::support::flaky::Flaky;
use crate::support::parts::{Effects, tool};
use crate::support::{World, assert_paired, results, run_id};

/// What a call is about.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    /// It has an effect that must not happen twice.
    Pay,
    /// It has one that may.
    Look,
    /// The same as the first, and a person is asked before.
    Confirmed,
    /// It fails after its effect.
    Fails,
    /// It asks a person itself, before its effect.
    Asks,
}

impl Kind {
    const fn tool(self) -> &'static str {
        match self {
            Kind::Pay => "pay",
            Kind::Look => "look",
            Kind::Confirmed => "confirmed",
            Kind::Fails => "fails",
            Kind::Asks => "asks",
        }
    }
}

#[derive(Debug, Clone)]
struct Turn {
    text: Vec<String>,
    calls: Vec<Kind>,
}

/// How an answer breaks off.
#[derive(Debug, Clone)]
struct Break {
    /// Before this step of it, counted round and round.
    at: usize,
    /// Nothing, where it just ends.
    fault: Option<ScriptedFault>,
}

#[derive(Debug, Clone)]
struct Plot {
    turns: Vec<Turn>,
    last: Vec<String>,
    /// Of each answer how it breaks off before it comes whole.
    breaks: Vec<Vec<Break>>,
    order: CallOrder,
    /// After so many moments it dies.
    deaths: Vec<u32>,
    /// What the person answers when a call is to be repeated, in turn.
    repeats: Vec<bool>,
}

fn plots() -> impl Strategy<Value = Plot> {
    // Blanks alone cannot be gone on with: an answer that broke off behind them begins anew.
    let piece = || prop_oneof![3 => "[ -~äß→😀\\n]{0,12}", 1 => "[ \\n]{1,3}"];
    let text = move || prop::collection::vec(piece(), 0..3);
    let kind = prop::sample::select(vec![Kind::Pay, Kind::Look, Kind::Confirmed, Kind::Fails, Kind::Asks]);
    let turn = (text(), prop::collection::vec(kind, 1..4)).prop_map(|(text, calls)| Turn { text, calls });
    let order = prop::sample::select(vec![CallOrder::OneByOne, CallOrder::Parallel]);
    let deaths = prop::collection::vec(prop_oneof![1_u32..12, 1_u32..60, 1_u32..200], 0..10);
    let last = text().prop_map(|mut text| {
        text.push("The end.".to_owned());
        text
    });
    let repeats = prop::collection::vec(any::<bool>(), 8);
    let more = (breaks(), deaths, repeats);
    (prop::collection::vec(turn, 0..4), last, order, more).prop_map(|(turns, last, order, more)| {
        let (breaks, deaths, repeats) = more;
        Plot { turns, last, breaks, order, deaths, repeats }
    })
}

fn breaks() -> impl Strategy<Value = Vec<Vec<Break>>> {
    let faults = [
        ScriptedFault::Interrupted(InterruptCause::ConnectionReset),
        ScriptedFault::Interrupted(InterruptCause::IdleStall),
        ScriptedFault::Interrupted(InterruptCause::GoAway),
        ScriptedFault::Interrupted(InterruptCause::Provider5xxMidStream(502)),
        ScriptedFault::Failed(ScriptedError::Provider { message: "what".to_owned() }),
    ];
    let fault = prop::option::weighted(0.8, prop::sample::select(faults.to_vec()));
    let one = (0_usize..32, fault).prop_map(|(at, fault)| Break { at, fault });
    // No more than a model is asked again for.
    let most = RetryPolicy::default().stream_retries_max as usize;
    let all = prop::collection::vec(prop::collection::vec(one, 0..=most), 4);
    // And no more in all than its circuit breaker takes in a row.
    let taken = BreakerPolicy::default().failures_max as usize - 1;
    all.prop_map(move |mut all| {
        let mut left = taken;
        for breaks in &mut all {
            breaks.truncate(left);
            left -= breaks.len();
        }
        all
    })
}

/// Answers by how much it said before: the same question has the same answer, once that has broken off as often as it should.
struct ByPlace {
    turns: Vec<Turn>,
    breaks: Mutex<Vec<VecDeque<Break>>>,
}

#[async_trait]
impl Model for ByPlace {
    fn name(&self) -> &str {
        "by place"
    }

    async fn open(&self, request: &InferenceRequest) -> Result<ModelStream, Refusal> {
        let mut said: Vec<String> = request
            .messages
            .iter()
            .filter(|message| message.role == Role::Assistant)
            .map(|message| message.said())
            .collect();
        let is_continued = request.messages.last().is_some_and(|message| message.said() == CONTINUE);
        let before = if is_continued { said.pop().unwrap() } else { String::new() };
        tokio::task::yield_now().await;
        let n = said.len();
        let mut steps = steps(n, &self.turns[n], &before);
        let next = self.breaks.lock().unwrap()[n].pop_front();
        if let Some(Break { at, fault }) = next {
            steps.truncate(at % steps.len());
            steps.extend(fault.map(Step::Fault));
        }
        ScriptedModel::of("one", [ScriptedAnswer::steps(steps)]).open(request).await
    }
}

/// What it says in this turn behind what was said of it before.
fn steps(n: usize, turn: &Turn, before: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut before = before;
    for piece in &turn.text {
        let known = before.len().min(piece.len());
        let (again, new) = piece.split_at(known);
        before = before.strip_prefix(again).unwrap();
        steps.extend([Step::Text(new.to_owned()), Step::DelayMs(1)]);
    }
    for (kind, index) in turn.calls.iter().zip(0_u32..) {
        let (id, name) = (format!("c{n}.{index}"), kind.tool().to_owned());
        let arguments = |text: &str| Step::CallArguments { index, text: text.to_owned() };
        steps.push(Step::CallStarted { index, id, name });
        steps.extend([arguments("{\"n\""), arguments(&format!(": {n}}}")), Step::CallEnded { index }]);
    }
    let stop = if turn.calls.is_empty() { StopReason::EndTurn } else { StopReason::ToolUse };
    steps.push(Step::Stop(stop));
    steps
}

fn acts(kind: Kind, effects: &Effects) -> Arc<dyn Tool> {
    let effects = effects.clone();
    let tool = tool(kind.tool(), move |_, context| {
        let effects = effects.clone();
        async move {
            tokio::task::yield_now().await;
            if kind == Kind::Asks && context.decision.is_none() {
                let ticket = SuspendTicket::new(format!("q-{}", context.call_id), "question", "?");
                let ticket = SuspendTicket { resume: ResumeMode::PassDecisionToTool, ..ticket };
                return Ok(ToolResult::suspended(ticket).into());
            }
            effects.happened(format!("{} {}", context.call_id, context.idempotency_key));
            tokio::task::yield_now().await;
            match kind {
                Kind::Fails => Err(ToolError::ExecutionFailed("as it should".to_owned())),
                _ => Ok(ToolResult::success("done").into()),
            }
        }
    });
    if kind == Kind::Look { tool.idempotent().done() } else { tool.done() }
}

/// Polls so often, and then never again.
async fn until_death<T>(moments: u32, living: impl Future<Output = T>) -> Option<T> {
    let mut living = pin!(living);
    let mut left = moments;
    poll_fn(|task| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        living.as_mut().poll(task).map(Some)
    })
    .await
}

/// Lives once. Gives nothing where it had ended, and died before anybody heard of it.
async fn live(world: &World, run_id: RunId, decisions: Vec<Decision>) -> Option<RunOutcome> {
    let (checkpoint, opened) = match world.try_open(run_id).await {
        Err(OpenError::Storage(StorageError::AlreadyExists(..))) => return None,
        opened => opened.unwrap(),
    };
    let resumed = opened.record.is_some();
    let input = if resumed { Vec::new() } else { vec![Message::user("Begin.")] };
    Some(run(world.parts(run_id, Arc::new(checkpoint)), Begin { opened, resumed, input, decisions }).await)
}

/// How often a person was asked about a call, and said yes.
#[derive(Default)]
struct Asked(BTreeMap<String, (u32, u32)>);

async fn check(plot: Plot) -> TestCaseResult {
    let effects = Effects::default();
    let mut world = World::new([]).with(|bits| {
        bits.gate(|call, _| {
            let asks = call.name == Kind::Confirmed.tool();
            let ticket = SuspendTicket::new(format!("ok-{}", call.id), "confirm", "?");
            async move {
                tokio::task::yield_now().await;
                Ok(if asks { GateDecision::Suspend(Box::new(ticket)) } else { GateDecision::Allow })
            }
        });
    });
    for kind in [Kind::Pay, Kind::Look, Kind::Confirmed, Kind::Fails, Kind::Asks] {
        world = world.tool(acts(kind, &effects));
    }
    world.order = plot.order;
    world.store = Flaky::slow() as Arc<dyn ThreadRunStore>;
    let breaks = Mutex::new(plot.breaks.iter().map(|breaks| breaks.iter().cloned().collect()).collect());
    let last = Turn { text: plot.last.clone(), calls: Vec::new() };
    let turns = plot.turns.iter().cloned().chain([last]).collect();
    world.instead = Some(Arc::new(ByPlace { turns, breaks }));
    let run = run_id();
    let (mut deaths, mut repeats) = (plot.deaths.iter().copied(), plot.repeats.iter().cycle());
    let mut asked = Asked::default();
    let mut decisions = Vec::new();
    let mut ended = false;
    for _ in 0..100 {
        let moments = deaths.next().unwrap_or(u32::MAX);
        let lived = until_death(moments, live(&world, run, std::mem::take(&mut decisions))).await;
        let Some(lived) = lived else { continue };
        let Some(lived) = lived.filter(|lived| lived.reason != TerminationReason::NaturalEnd) else {
            ended = true;
            break;
        };
        prop_assert_eq!(&lived.reason, &TerminationReason::Suspended);
        for (place, ticket) in &lived.waiting {
            let yes = ticket.action != "repeat" || *repeats.next().unwrap();
            if ticket.action == "repeat" {
                let (times, agreed) = asked.0.entry(place.to_string()).or_default();
                *times += 1;
                *agreed += u32::from(yes);
            }
            let id = ticket.id.clone();
            decisions.push(if yes { Decision::answer(id, "yes") } else { Decision::cancel(id, "no") });
        }
    }
    prop_assert!(ended);
    prop_assert_eq!(world.record(run).await.end.unwrap().reason, "natural_end");
    judge(&plot, &world, &asked, &effects, run).await
}

async fn judge(plot: &Plot, world: &World, asked: &Asked, effects: &Effects, run: RunId) -> TestCaseResult {
    let stored = world.messages().await;
    assert_paired(&stored);
    prop_assert!(world.is_free().await);
    let said: Vec<String> =
        stored.iter().filter(|message| message.role == Role::Assistant).map(Message::said).collect();
    let script = plot.turns.iter().map(|turn| &turn.text).chain([&plot.last]);
    prop_assert_eq!(said, script.map(|pieces| pieces.concat()).collect::<Vec<_>>());
    assert_seen(plot, &world.heard.events(), &stored)?;
    let results: BTreeMap<String, (String, bool)> =
        results(&stored).into_iter().map(|(id, said, is_error)| (id, (said, is_error))).collect();
    let mut message = 2;
    let happened = effects.all();
    for (n, turn) in plot.turns.iter().enumerate() {
        let mut made = 0;
        for (index, kind) in turn.calls.iter().enumerate() {
            let (id, place) = (format!("c{n}.{index}"), format!("{message}.{index}"));
            let effect = format!("{id} {run}:{place}");
            let of_call: Vec<&String> =
                happened.iter().filter(|one| one.starts_with(&format!("{id} "))).collect();
            if !results.contains_key(&id) {
                let is_broken = !plot.breaks[n].is_empty();
                prop_assert!(is_broken && made > 0, "only an answer that broke off has fewer calls: {}", id);
                prop_assert!(of_call.is_empty(), "{} was made, and nobody asked for it", id);
                continue;
            }
            made += 1;
            prop_assert!(of_call.iter().all(|one| **one == effect), "one key for one call: {:?}", of_call);
            let times = u32::try_from(of_call.len()).unwrap();
            let (said, _) = &results[&id];
            match asked.0.get(&place) {
                None if *kind == Kind::Look => prop_assert!(times >= 1 && said == "done"),
                None => {
                    prop_assert_eq!(times, 1, "{} was made {} times, and nobody was asked", id, times);
                    let good =
                        if *kind == Kind::Fails { said.contains("as it should") } else { said == "done" };
                    prop_assert!(good, "{}", said);
                }
                Some((_, agreed)) => prop_assert!(times <= 1 + agreed, "{} was made {} times", id, times),
            }
        }
        message += 1 + made;
    }
    Ok(())
}

/// What there is of an answer: its text and its calls.
type Shown = (String, Vec<String>);

/// Whoever listened saw of each answer what is stored of it, and nothing that is not.
fn assert_seen(plot: &Plot, events: &[AgentEvent], stored: &[Message]) -> TestCaseResult {
    let shown = |message: &Message| -> Shown {
        (message.said(), message.tool_calls().map(|call| call.id.clone()).collect())
    };
    let (mut seen, mut answer): (Vec<Shown>, Shown) = Default::default();
    for event in events {
        match event {
            // What was shown of an answer in whose middle the process died is void.
            AgentEvent::RunStarted { .. } | AgentEvent::Inference(Update::Reset) => answer = Shown::default(),
            AgentEvent::Inference(Update::Text(piece)) => answer.0.push_str(piece),
            AgentEvent::Inference(Update::ToolCallStarted { id, .. }) => answer.1.push(id.clone()),
            AgentEvent::Inference(Update::ToolCallCancelled { id, .. }) => answer.1.retain(|one| one != id),
            AgentEvent::Answered { message, .. } => {
                prop_assert_eq!(&answer, &shown(message));
                seen.push(std::mem::take(&mut answer));
            }
            _ => {}
        }
    }
    let answers = stored.iter().filter(|message| message.role == Role::Assistant).map(shown);
    if plot.deaths.is_empty() {
        prop_assert_eq!(&seen, &answers.collect::<Vec<_>>());
        return Ok(());
    }
    // An answer that was whole when the process died, and not stored, is asked for and shown once more.
    let mut seen = seen.iter();
    for answer in answers {
        prop_assert!(seen.any(|one| *one == answer), "nobody saw {:?}", answer);
    }
    Ok(())
}

fn config() -> ProptestConfig {
    let cases = match std::env::var("RUNYARD_PROOF").as_deref() {
        Ok("soak") => 50_000,
        Ok("quick") => 64,
        _ => 512,
    };
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    // clause: J05
    #[test]
    fn j05_whenever_it_dies_each_effect_happens_once_or_a_person_is_asked(plot in plots()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(check(plot))?;
    }

    // clause: D10
    #[test]
    fn d10_what_clients_saw_of_answers_that_broke_off_is_what_is_stored(plot in plots()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(check(Plot { deaths: Vec::new(), ..plot }))?;
    }
}

/// Every moment of one run at which it can die, one after the other, and then twice.
#[test]
fn it_may_die_at_each_moment_of_a_run_with_three_calls() {
    let plot = |deaths: Vec<u32>, order| Plot {
        turns: vec![
            Turn { text: vec!["Let me see.".into()], calls: vec![Kind::Pay, Kind::Look] },
            Turn { text: Vec::new(), calls: vec![Kind::Confirmed] },
        ],
        last: vec!["Done.".into()],
        breaks: vec![Vec::new(); 3],
        order,
        deaths,
        repeats: vec![true, false],
    };
    let failures = Mutex::new(Vec::new());
    for order in [CallOrder::OneByOne, CallOrder::Parallel] {
        for moment in 1..=120 {
            for again in [None, Some(3), Some(17), Some(41)] {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .start_paused(true)
                    .build()
                    .unwrap();
                let deaths = [moment].into_iter().chain(again).collect();
                if let Err(error) = runtime.block_on(check(plot(deaths, order))) {
                    failures.lock().unwrap().push((moment, again, error.to_string()));
                }
            }
        }
    }
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{failures:#?}");
}
