//! Cancelled wherever it is, a run ends at once and in order.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use runyard_agent::phase::{EFFECTS_CANCELLED_MAX, GateDecision, Phase, StateCommand, TerminationReason};
use runyard_agent::run::{AgentEvent, OBSERVED_MAX, Observer, RunStatus};
use runyard_agent::tool::ToolResult;
use runyard_llm::inference::{Opens, ScriptedAnswer, ScriptedError, Step};
use serde_json::json;
use tokio::time::Instant;

use crate::support::parts::{Bad, answers, hangs, tool};
use crate::support::{World, assert_paired, call, calls, results, run_id, says};

/// After ten seconds nobody wants it any more.
fn unwanted_soon(world: &World) {
    let cancellation = world.cancellation.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(10)).await;
        cancellation.cancel();
    });
}

/// Ends cancelled, as soon as it is, and leaves all in order.
async fn check(what: &str, world: World) -> Vec<runyard_llm::inference::Message> {
    let mut ends = None;
    let world = world.with(|bits| ends = Some(bits.count(Phase::RunEnd)));
    unwanted_soon(&world);
    let begun = Instant::now();
    let run = run_id();
    let seen = world.go(run, &["Go."], Vec::new()).await;
    assert_eq!(seen.reason(), &TerminationReason::Cancelled, "{what}");
    assert_eq!(begun.elapsed().as_secs(), 10, "{what}");
    assert_eq!(ends.unwrap().load(Ordering::SeqCst), 1, "{what}");
    let stored = world.messages().await;
    assert_paired(&stored);
    let record = world.record(run).await;
    assert_eq!(
        (record.status, record.end.unwrap().reason.as_str()),
        (RunStatus::Done, "cancelled"),
        "{what}"
    );
    assert!(world.is_free().await, "{what}");
    stored
}

#[tokio::test(start_paused = true)]
async fn while_a_model_opens_streams_or_is_waited_for() {
    let opening = ScriptedAnswer { opens: Opens::Never, ..ScriptedAnswer::default() };
    check("opening", World::new([opening])).await;

    let streaming = ScriptedAnswer::steps([Step::Text("Hel".into()), Step::Stall]);
    let stored = check("streaming", World::new([streaming])).await;
    assert_eq!(stored.last().unwrap().said(), "Hel", "what clients saw is stored");

    let later = ScriptedError::RateLimited { message: String::new(), retry_after_ms: Some(60_000) };
    check("backing off", World::new([ScriptedAnswer::failing(later)])).await;

    let mut summarising =
        World::new([calls("a", "look"), ScriptedAnswer { opens: Opens::Never, ..says("") }])
            .tool(answers("look", "x".repeat(4_000)));
    summarising.context.tokens_max = Some(100);
    summarising.context.recent_messages_min = 1;
    check("summarising", summarising).await;
}

#[tokio::test(start_paused = true)]
async fn in_tools() {
    let two = || ScriptedAnswer::calls(["a", "b"].map(|id| call(id, "hang", json!({ "n": 1 }))));
    let stored = check("a tool", World::new([two()]).tool(hangs("hang").done())).await;
    assert_eq!(results(&stored).len(), 2);
    let stored = check("tools", World::new([two()]).tool(hangs("hang").done()).parallel()).await;
    assert!(results(&stored).iter().all(|(_, said, is_error)| *is_error && said.contains("tool.cancelled")));
}

#[tokio::test(start_paused = true)]
async fn in_hooks_and_gates() {
    for phase in Phase::ALL.into_iter().filter(|phase| *phase != Phase::RunEnd) {
        let world = World::new([calls("a", "look"), says("Done.")])
            .tool(answers("look", 1))
            .with(|bits| bits.hook(phase, |_| std::future::pending()));
        check(phase.as_str(), world).await;
    }
    let world = World::new([calls("a", "look"), says("Done.")])
        .tool(answers("look", 1))
        .with(|bits| bits.gate(|_, _| std::future::pending()));
    check("a gate", world).await;
}

#[tokio::test(start_paused = true)]
async fn before_it_begins_and_between_its_steps() {
    let world = World::new([says("never")]);
    world.cancellation.cancel();
    let run = run_id();
    let seen = world.go(run, &["Go."], Vec::new()).await;
    assert_eq!(seen.reason(), &TerminationReason::Cancelled);
    assert_eq!(world.model.asked(), 0);
    assert_eq!(world.messages().await.len(), 1, "what was said is kept");
    assert!(world.is_free().await);

    let world = World::new([calls("a", "look"), says("never")]).tool(answers("look", 1));
    let cancellation = world.cancellation.clone();
    let world = world.with(|bits| {
        bits.gate(move |_, _| {
            cancellation.cancel();
            async { Ok(GateDecision::Allow) }
        });
    });
    let seen = world.ask("Go.").await;
    assert_eq!(seen.reason(), &TerminationReason::Cancelled);
    assert_eq!(world.model.asked(), 1);
    assert!(!seen.words().iter().any(|word| word.starts_with("made")), "nothing is made any more");
    assert_paired(&world.messages().await);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_cancelled_run_is_still_run() {
    let world =
        World::new([ScriptedAnswer { opens: Opens::Never, ..ScriptedAnswer::default() }]).with(|bits| {
            bits.hook(Phase::RunEnd, |context| {
                let cancelled = context.at.cancellation.is_cancelled();
                async move {
                    assert!(!cancelled);
                    tokio::time::sleep(Duration::from_secs(5)).await;
                    Ok(StateCommand::none().update::<crate::support::parts::Tally>(1))
                }
            });
        });
    unwanted_soon(&world);
    let run = run_id();
    let seen = world.go(run, &["Go."], Vec::new()).await;
    assert_eq!(seen.reason(), &TerminationReason::Cancelled);
    assert!(world.everything(run).await.contains("test.tally 1"), "what it changed is stored");
}

struct Deaf;

#[async_trait]
impl Observer for Deaf {
    async fn observe(&self, _event: AgentEvent) {
        std::future::pending::<()>().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_never_answers_does_not_keep_a_cancelled_run() {
    let mut world = World::new([says("Hello.")]);
    world.observer = Some(Arc::new(Deaf));
    unwanted_soon(&world);
    let begun = Instant::now();
    let run = run_id();
    let outcome = world.go(run, &["Go."], Vec::new()).await.outcome;
    assert_eq!(outcome.reason, TerminationReason::Cancelled);
    assert_eq!(begun.elapsed().as_secs(), 10 + OBSERVED_MAX.as_secs());
    assert_eq!(world.record(run).await.status, RunStatus::Done);
}

/// Hears nothing more once the run is cancelled.
struct DeafOnceCancelled(tokio_util::sync::CancellationToken);

#[async_trait]
impl Observer for DeafOnceCancelled {
    async fn observe(&self, _event: AgentEvent) {
        if self.0.is_cancelled() {
            std::future::pending::<()>().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_run_waits_for_its_listener_once_and_not_for_each_thing_that_it_tells() {
    let fifty = || ScriptedAnswer::calls((0..50).map(|n| call(&n.to_string(), "hang", json!({ "n": n }))));
    for parallel in [false, true] {
        let mut world = World::new([fifty()]).tool(hangs("hang").done());
        if parallel {
            world = world.parallel();
        }
        world.observer = Some(Arc::new(DeafOnceCancelled(world.cancellation.clone())));
        unwanted_soon(&world);
        let begun = Instant::now();
        let outcome = world.go(run_id(), &["Go."], Vec::new()).await.outcome;
        assert_eq!(outcome.reason, TerminationReason::Cancelled);
        assert_eq!((begun.elapsed() - Duration::from_secs(10)).as_secs(), OBSERVED_MAX.as_secs());
        assert_eq!(results(&world.messages().await).len(), 50);
    }
}

#[tokio::test(start_paused = true)]
async fn the_effects_of_a_cancelled_run_have_one_time_for_all_of_them() {
    let fifty = || (0..50).fold(StateCommand::none(), |command, _| command.emit::<Bad>(None));
    let tells = tool("tell", move |_, _| async move {
        Ok(runyard_agent::tool::ToolOutput::new(ToolResult::success("told"), fifty()))
    });
    let world = World::new([calls("a", "tell")])
        .tool(tells.done())
        .with(|bits| bits.hook(Phase::RunEnd, move |_| async move { Ok(fifty()) }));
    unwanted_soon(&world);
    let begun = Instant::now();
    let seen = world.ask("Go.").await;
    assert_eq!(seen.reason(), &TerminationReason::Cancelled);
    assert_eq!((begun.elapsed() - Duration::from_secs(10)).as_secs(), EFFECTS_CANCELLED_MAX.as_secs());
    assert_eq!(results(&world.messages().await), [("a".to_owned(), "told".to_owned(), false)]);
}

// clause: D02
#[tokio::test]
async fn d02_a_result_that_is_there_is_kept_though_the_run_was_cancelled_meanwhile() {
    let world = World::new([calls("a", "pay")]);
    let cancellation = world.cancellation.clone();
    let pay = tool("pay", move |_, _| {
        // Both come before the run looks again.
        let (done, paid) = tokio::sync::oneshot::channel();
        let cancellation = cancellation.clone();
        tokio::spawn(async move {
            cancellation.cancel();
            let _ = done.send("paid");
        });
        async { Ok(ToolResult::success(paid.await.unwrap()).into()) }
    });
    let world = world.tool(pay.done());
    let seen = world.ask("Pay.").await;
    assert_eq!(seen.reason(), &TerminationReason::Cancelled);
    assert_eq!(results(&world.messages().await), [("a".to_owned(), "paid".to_owned(), false)]);
}
