//! Random runs that die at random moments, again and again: each effect happened exactly once or a person was asked, and what
//! the model said is what is stored.

use std::collections::BTreeMap;
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
use runyard_agent::run::{Begin, Decision, RunOutcome, run};
use runyard_agent::tool::{ResumeMode, SuspendTicket, Tool, ToolError, ToolResult};
use runyard_domain::RunId;
use runyard_llm::inference::{
    InferenceRequest, Message, Model, ModelStream, Refusal, Role, ScriptedAnswer, ScriptedCall,
    ScriptedModel, Step, StopReason,
};
use runyard_store::{StorageError, ThreadRunStore};
use serde_json::json;

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

#[derive(Debug, Clone)]
struct Plot {
    turns: Vec<Turn>,
    last: Vec<String>,
    order: CallOrder,
    /// After so many moments it dies.
    deaths: Vec<u32>,
    /// What the person answers when a call is to be repeated, in turn.
    repeats: Vec<bool>,
}

fn plots() -> impl Strategy<Value = Plot> {
    let text = || prop::collection::vec("[ -~äß→😀\\n]{0,12}", 0..3);
    let kind = prop::sample::select(vec![Kind::Pay, Kind::Look, Kind::Confirmed, Kind::Fails, Kind::Asks]);
    let turn = (text(), prop::collection::vec(kind, 1..4)).prop_map(|(text, calls)| Turn { text, calls });
    let order = prop::sample::select(vec![CallOrder::OneByOne, CallOrder::Parallel]);
    let deaths = prop::collection::vec(prop_oneof![1_u32..12, 1_u32..60, 1_u32..200], 0..10);
    let last = text().prop_map(|mut text| {
        text.push("The end.".to_owned());
        text
    });
    let repeats = prop::collection::vec(any::<bool>(), 8);
    (prop::collection::vec(turn, 0..4), last, order, deaths, repeats)
        .prop_map(|(turns, last, order, deaths, repeats)| Plot { turns, last, order, deaths, repeats })
}

/// Answers by how much it said before: the same question has the same answer.
struct ByPlace(Vec<ScriptedAnswer>);

#[async_trait]
impl Model for ByPlace {
    fn name(&self) -> &str {
        "by place"
    }

    async fn open(&self, request: &InferenceRequest) -> Result<ModelStream, Refusal> {
        let said = request.messages.iter().filter(|message| message.role == Role::Assistant).count();
        tokio::task::yield_now().await;
        ScriptedModel::of("one", [self.0[said].clone()]).open(request).await
    }
}

fn answers(plot: &Plot) -> Vec<ScriptedAnswer> {
    let text = |pieces: &[String]| -> Vec<Step> {
        pieces.iter().flat_map(|piece| [Step::Text(piece.clone()), Step::DelayMs(1)]).collect()
    };
    let mut answers = Vec::new();
    for (n, turn) in plot.turns.iter().enumerate() {
        let mut steps = text(&turn.text);
        for (index, kind) in turn.calls.iter().enumerate() {
            let (id, name) = (format!("c{n}.{index}"), kind.tool().to_owned());
            steps.push(Step::Call(ScriptedCall { id, name, arguments: json!({ "n": n }) }));
        }
        steps.push(Step::Stop(StopReason::ToolUse));
        answers.push(ScriptedAnswer::steps(steps));
    }
    let mut steps = text(&plot.last);
    steps.push(Step::Stop(StopReason::EndTurn));
    answers.push(ScriptedAnswer::steps(steps));
    answers
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
    world.instead = Some(Arc::new(ByPlace(answers(&plot))));
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
    let results: BTreeMap<String, (String, bool)> =
        results(&stored).into_iter().map(|(id, said, is_error)| (id, (said, is_error))).collect();
    let mut message = 2;
    let happened = effects.all();
    for (n, turn) in plot.turns.iter().enumerate() {
        for (index, kind) in turn.calls.iter().enumerate() {
            let (id, place) = (format!("c{n}.{index}"), format!("{message}.{index}"));
            let effect = format!("{id} {run}:{place}");
            let of_call: Vec<&String> =
                happened.iter().filter(|one| one.starts_with(&format!("{id} "))).collect();
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
        message += 1 + turn.calls.len() as u64;
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
