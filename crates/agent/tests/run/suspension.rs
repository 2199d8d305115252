//! Runs that wait for an answer: what is left of them, and how they go on.

use std::sync::{Arc, Mutex};

use runyard_agent::phase::{GateDecision, Phase, StateCommand, TerminationReason};
use runyard_agent::run::{Begin, Decision, RunStatus};
use runyard_agent::tool::{ResumeMode, SuspendTicket, Tool, ToolOutput, ToolResult};
use runyard_llm::inference::{Message, ScriptedAnswer};
use serde_json::{Value, json};

use crate::support::parts::{Effects, Tally, effect, tool};
use crate::support::{Seen, World, assert_paired, call, calls, results, run_id, says, shape};

/// A tool that asks a person before it does anything, and is given the answer.
pub(crate) fn asks(id: &str) -> Arc<dyn Tool> {
    asks_with(id, ResumeMode::PassDecisionToTool)
}

fn asks_with(id: &str, resume: ResumeMode) -> Arc<dyn Tool> {
    tool(id, move |_, context| async move {
        if let Some(answer) = context.decision {
            return Ok(ToolResult::success(json!({ "heard": answer })).into());
        }
        let ticket = SuspendTicket::new(format!("q-{}", context.call_id), "question", "Which one?");
        Ok(ToolResult::suspended(SuspendTicket { resume, ..ticket }).into())
    })
    .done()
}

/// Yes to the first call that waits.
pub(crate) fn yes(seen: &Seen) -> Decision {
    Decision::resume(seen.outcome.waiting[0].1.id.clone())
}

/// Asks for every call.
fn confirm(world: World) -> World {
    world.with(|bits| {
        bits.gate(|call, _| {
            let ticket = SuspendTicket::new(format!("ok-{}", call.id), "confirm", "May I?");
            async move { Ok(GateDecision::Suspend(Box::new(ticket))) }
        });
    })
}

#[tokio::test]
async fn a_call_that_waits_is_made_when_it_is_approved_and_not_before() {
    let effects = Effects::default();
    let mut ends = None;
    let mut world = confirm(World::new([calls("a", "pay")]).tool(effect("pay", &effects).done()))
        .with(|bits| ends = Some(bits.count(Phase::RunEnd)));
    let run = run_id();
    let seen = world.go(run, &["Pay."], Vec::new()).await;
    assert_eq!(seen.reason(), &TerminationReason::Suspended);
    assert_eq!(seen.words().last().unwrap(), "ended");
    assert!(seen.words().contains(&"waits 2.0 for confirm".to_owned()));
    assert!(effects.all().is_empty());
    let record = world.record(run).await;
    assert_eq!((record.status, record.end.unwrap().reason.as_str()), (RunStatus::Waiting, "suspended"));
    assert_eq!(ends.as_ref().unwrap().load(std::sync::atomic::Ordering::SeqCst), 0, "it has not ended");
    // Nobody holds the thread, and no other run can begin on it.
    let row = world.store.thread(&world.thread()).await.unwrap().unwrap();
    assert_eq!((row.holder, row.unfinished), (None, Some(world.run_name(run))));

    // Without an answer it goes on waiting.
    world.again([]);
    let seen = world.go(run, &[], Vec::new()).await;
    assert_eq!(seen.reason(), &TerminationReason::Suspended);
    assert_eq!(seen.words()[0], "resumed");

    world.again([says("Paid.")]);
    let seen = world.go(run, &[], vec![yes(&seen)]).await;
    assert_eq!(seen.reason(), &TerminationReason::NaturalEnd);
    assert_eq!(effects.all(), [format!("{run}:2.0")]);
    assert_eq!(shape(&world.messages().await), ["user: Pay.", "model: pay(a)", "a: done", "model: Paid."]);
    assert_eq!(seen.outcome.rounds, 2, "with those before");
    assert!(seen.outcome.waiting.is_empty());
    assert_eq!(ends.unwrap().load(std::sync::atomic::Ordering::SeqCst), 1);
    assert!(world.is_free().await);
}

#[tokio::test]
async fn the_three_ways_to_go_on() {
    let cases: [(ResumeMode, Value); 3] = [
        // The tool asks again, since it is made as if nothing had been.
        (ResumeMode::ReplayToolCall, Value::Null),
        (ResumeMode::UseDecisionAsResult, json!("the red one")),
        (ResumeMode::PassDecisionToTool, json!({ "heard": "the red one" })),
    ];
    for (resume, expected) in cases {
        let mut world = World::new([calls("a", "ask")]).tool(asks_with("ask", resume));
        let run = run_id();
        let seen = world.go(run, &["Go."], Vec::new()).await;
        assert_eq!(seen.reason(), &TerminationReason::Suspended);
        world.again([says("Done.")]);
        let answer = Decision::answer(seen.outcome.waiting[0].1.id.clone(), "the red one");
        let seen = world.go(run, &[], vec![answer]).await;
        if resume == ResumeMode::ReplayToolCall {
            assert_eq!(seen.reason(), &TerminationReason::Suspended);
            continue;
        }
        assert_eq!(seen.reason(), &TerminationReason::NaturalEnd);
        let (_, content, is_error) = results(&world.messages().await).remove(0);
        let content = serde_json::from_str(&content).unwrap_or(Value::String(content));
        assert_eq!((content, is_error), (expected, false), "{resume:?}");
    }
}

#[tokio::test]
async fn a_call_that_is_called_off_is_told_to_the_model() {
    let effects = Effects::default();
    let mut world = confirm(World::new([calls("a", "pay")]).tool(effect("pay", &effects).done()));
    let run = run_id();
    let seen = world.go(run, &["Pay."], Vec::new()).await;
    world.again([says("As you like.")]);
    let no = Decision::cancel(seen.outcome.waiting[0].1.id.clone(), "too dear");
    let seen = world.go(run, &[], vec![no]).await;
    assert_eq!(seen.reason(), &TerminationReason::NaturalEnd);
    let (_, content, is_error) = results(&world.messages().await).remove(0);
    assert!(is_error && content.contains("too dear") && content.contains("tool.cancelled"), "{content}");
    assert!(effects.all().is_empty());
}

// clause: J05
#[tokio::test]
async fn j05_a_call_that_waits_and_one_that_is_made_are_told_apart_where_a_model_gives_both_one_id() {
    let effects = Effects::default();
    for parallel in [false, true] {
        effects.0.lock().unwrap().clear();
        let both =
            ScriptedAnswer::calls([call("x", "ask", json!({ "n": 1 })), call("x", "pay", json!({ "n": 2 }))]);
        let mut world = World::new([both]).tool(effect("pay", &effects).done()).tool(asks("ask"));
        if parallel {
            world = world.parallel();
        }
        let run = run_id();
        let seen = world.go(run, &["Go."], Vec::new()).await;
        assert_eq!(seen.reason(), &TerminationReason::Suspended);
        world.again([says("Done.")]);
        let seen =
            world.go(run, &[], vec![Decision::answer(seen.outcome.waiting[0].1.id.clone(), "red")]).await;
        assert_eq!(seen.reason(), &TerminationReason::NaturalEnd);
        assert_eq!(effects.all(), [format!("{run}:2.1")], "it is made once");
        let mut results = results(&world.messages().await);
        results.sort();
        let said: Vec<_> = results.iter().map(|(id, said, _)| (id.as_str(), said.as_str())).collect();
        assert_eq!(said, [("x", r#"{"heard":"red"}"#), ("x-2", "done")]);
        assert_paired(&world.messages().await);
    }
}

#[tokio::test]
async fn side_by_side_some_wait_while_the_others_are_made() {
    let effects = Effects::default();
    let all = ScriptedAnswer::calls([
        call("a", "pay", json!({ "n": 1 })),
        call("b", "ask", json!({ "n": 1 })),
        call("c", "pay", json!({ "n": 2 })),
        call("d", "ask", json!({ "n": 2 })),
    ]);
    let mut world = World::new([all]).tool(effect("pay", &effects).done()).tool(asks("ask")).parallel();
    let run = run_id();
    let seen = world.go(run, &["Go."], Vec::new()).await;
    assert_eq!(seen.reason(), &TerminationReason::Suspended);
    assert_eq!(effects.all().len(), 2);
    let waiting: Vec<String> = seen.outcome.waiting.iter().map(|(place, _)| place.to_string()).collect();
    assert_eq!(waiting, ["2.1", "2.3"]);

    // One answer at a time.
    world.again([]);
    let seen = world.go(run, &[], vec![Decision::answer("q-d", 4)]).await;
    assert_eq!(seen.reason(), &TerminationReason::Suspended);
    assert_eq!(seen.outcome.waiting.len(), 1);
    world.again([says("Done.")]);
    let seen = world.go(run, &[], vec![Decision::answer("q-b", 2)]).await;
    assert_eq!(seen.reason(), &TerminationReason::NaturalEnd);
    assert_eq!(effects.all().len(), 2, "nothing is made twice");
    let stored = world.messages().await;
    assert_paired(&stored);
    let ids: Vec<String> = results(&stored).into_iter().map(|(id, _, _)| id).collect();
    assert_eq!(ids, ["a", "c", "d", "b"]);
}

#[tokio::test]
async fn one_by_one_the_first_that_waits_holds_up_the_rest() {
    let effects = Effects::default();
    let all =
        ScriptedAnswer::calls([call("a", "ask", json!({ "n": 1 })), call("b", "pay", json!({ "n": 1 }))]);
    let mut world = World::new([all]).tool(effect("pay", &effects).done()).tool(asks("ask"));
    let run = run_id();
    let seen = world.go(run, &["Go."], Vec::new()).await;
    assert_eq!(seen.reason(), &TerminationReason::Suspended);
    assert!(effects.all().is_empty());
    world.again([says("Done.")]);
    world.go(run, &[], vec![yes(&seen)]).await;
    assert_eq!(effects.all().len(), 1);
    assert_paired(&world.messages().await);
}

#[tokio::test]
async fn words_come_behind_the_results_that_are_waited_for() {
    let mut world = World::new([calls("a", "ask")]).tool(asks("ask"));
    world.inbox.say(Message::user("First.")).unwrap();
    let run = run_id();
    let inbox = Arc::clone(&world.inbox);
    world = world.with(|bits| {
        bits.hook(Phase::BeforeToolExecute, move |_| {
            let _ = inbox.say(Message::user("While it asks."));
            async { Ok(StateCommand::none()) }
        });
    });
    let seen = world.go(run, &["Go."], Vec::new()).await;
    assert_eq!(seen.reason(), &TerminationReason::Suspended);
    assert!(world.inbox.say(Message::user("Too late.")).is_err());

    // Words with which it goes on, before there is an answer.
    world.again([]);
    let seen = world.go(run, &["Still there?"], Vec::new()).await;
    assert_eq!(seen.reason(), &TerminationReason::Suspended);

    world.again([says("Done.")]);
    world.go(run, &["The red one."], vec![yes(&seen)]).await;
    assert_eq!(
        shape(&world.messages().await),
        [
            "user: Go.",
            "user: First.",
            "model: ask(a)",
            "a: {\"heard\":null}",
            "user: While it asks.",
            "user: Still there?",
            "user: The red one.",
            "model: Done.",
        ]
    );
    assert_paired(&world.messages().await);
}

#[tokio::test]
async fn a_run_that_waits_can_be_cancelled() {
    let mut world = World::new([calls("a", "ask")]).tool(asks("ask"));
    let run = run_id();
    world.go(run, &["Go."], Vec::new()).await;
    world.again([]);
    world.cancellation.cancel();
    let seen = world.go(run, &[], Vec::new()).await;
    assert_eq!(seen.reason(), &TerminationReason::Cancelled);
    assert!(seen.outcome.waiting.is_empty(), "nothing waits any more");
    assert_paired(&world.messages().await);
    assert_eq!(world.record(run).await.status, RunStatus::Done);
    assert!(world.is_free().await);
    world.again([says("Hello.")]);
    assert_eq!(world.ask("Hi.").await.reason(), &TerminationReason::NaturalEnd);
}

#[tokio::test]
async fn what_a_waiting_call_changed_in_the_state_is_there_when_it_goes_on() {
    let found = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&found);
    let counts = tool("count", move |_, context| {
        log.lock().unwrap().push(context.snapshot.get::<Tally>().copied());
        let result = match context.decision {
            Some(_) => ToolResult::success("done"),
            None => ToolResult::suspended(SuspendTicket {
                resume: ResumeMode::PassDecisionToTool,
                ..SuspendTicket::new("t", "question", "Well?")
            }),
        };
        async { Ok(ToolOutput::new(result, StateCommand::none().update::<Tally>(5))) }
    });
    let mut world = World::new([calls("a", "count")]).tool(counts.done());
    let run = run_id();
    world.go(run, &["Go."], Vec::new()).await;
    world.again([says("Done.")]);
    world.go(run, &[], vec![Decision::resume("t")]).await;
    assert_eq!(*found.lock().unwrap(), [None, Some(5)]);
    assert!(world.everything(run).await.contains("test.tally 10"));
}

#[tokio::test]
async fn an_approval_is_for_the_call_that_was_asked_about_and_no_other() {
    let effects = Effects::default();
    let two = ScriptedAnswer::calls(["a", "b"].map(|id| call(id, "pay", json!({ "n": 1 }))));
    let mut world = confirm(World::new([two]).tool(effect("pay", &effects).done())).parallel();
    let run = run_id();
    let seen = world.go(run, &["Pay."], Vec::new()).await;
    assert_eq!(seen.outcome.waiting.len(), 2);
    world.again([]);
    let seen = world.go(run, &[], vec![Decision::resume("ok-b"), Decision::resume("ok-nothing")]).await;
    assert_eq!(effects.all(), [format!("{run}:2.1")]);
    assert_eq!(seen.reason(), &TerminationReason::Suspended);
    // An answer counts once: asked about again, it is answered again.
    world.again([ScriptedAnswer::calls([call("b", "pay", json!({ "n": 1 }))])]);
    let seen = world.go(run, &[], vec![Decision::cancel("ok-a", "no")]).await;
    assert_eq!(seen.reason(), &TerminationReason::Suspended);
    assert_eq!(effects.all().len(), 1);
}

#[tokio::test]
async fn a_tool_knows_whether_exactly_its_call_was_approved() {
    let found = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&found);
    let pay = tool("pay", move |_, context| {
        log.lock().unwrap().push((context.approved, context.decision));
        async { Ok(ToolResult::success(1).into()) }
    });
    let mut world = confirm(World::new([calls("a", "pay")]).tool(pay.done()));
    let run = run_id();
    let seen = world.go(run, &["Go."], Vec::new()).await;
    world.again([says("Done.")]);
    world.go(run, &[], vec![yes(&seen)]).await;
    assert_eq!(*found.lock().unwrap(), [(true, None)], "made as if nothing had been");
}

/// A gate that asks this of every call.
fn asking(world: World, ticket: &'static str) -> World {
    world.with(|bits| {
        bits.gate(move |_, _| async move {
            Ok(GateDecision::Suspend(Box::new(SuspendTicket::new(ticket, "confirm", "May I?"))))
        });
    })
}

// clause: J01
#[tokio::test]
async fn j01_an_answer_to_one_gate_is_none_to_another_one() {
    // Also where both give their tickets the same id.
    for [first, second] in [["one", "two"], ["same", "same"]] {
        let effects = Effects::default();
        let mut world = World::new([calls("a", "pay")]).tool(effect("pay", &effects).done());
        world = asking(asking(world, first), second);
        let run = run_id();
        let seen = world.go(run, &["Pay."], Vec::new()).await;
        assert_eq!(seen.outcome.waiting[0].1.id, first);

        world.again([]);
        let seen = world.go(run, &[], vec![Decision::resume(first)]).await;
        assert_eq!(seen.reason(), &TerminationReason::Suspended, "the other one asks too");
        assert_eq!(seen.outcome.waiting[0].1.id, second);
        assert!(effects.all().is_empty());

        world.again([says("Paid.")]);
        let seen = world.go(run, &[], vec![Decision::resume(second)]).await;
        assert_eq!(seen.reason(), &TerminationReason::NaturalEnd, "the first answer still counts");
        assert_eq!(effects.all().len(), 1);
        assert!(!world.everything(run).await.contains("\"2.0\""), "no answer outlives its call");
    }
}

// clause: J01
#[tokio::test]
async fn j01_an_answer_to_a_tools_question_is_no_approval() {
    let found = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&found);
    let ask = tool("ask", move |_, context| {
        log.lock().unwrap().push((context.approved, context.decision.clone()));
        let result = match context.decision {
            Some(answer) => ToolResult::success(answer),
            None => ToolResult::suspended(SuspendTicket {
                resume: ResumeMode::PassDecisionToTool,
                ..SuspendTicket::new("which", "question", "Which one?")
            }),
        };
        async { Ok(result.into()) }
    });
    let strict = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let is_strict = Arc::clone(&strict);
    let mut world = World::new([calls("a", "ask")]).tool(ask.done()).with(|bits| {
        bits.gate(move |_, _| {
            let ticket = SuspendTicket::new("policy", "confirm", "May I?");
            let strict = is_strict.load(std::sync::atomic::Ordering::SeqCst);
            async move {
                Ok(if strict { GateDecision::Suspend(Box::new(ticket)) } else { GateDecision::Allow })
            }
        });
    });
    let run = run_id();
    world.go(run, &["Go."], Vec::new()).await;

    // While it waits for the tool's answer, the policy becomes strict.
    strict.store(true, std::sync::atomic::Ordering::SeqCst);
    world.again([]);
    let seen = world.go(run, &[], vec![Decision::answer("which", "the red one")]).await;
    assert_eq!(seen.outcome.waiting[0].1.id, "policy");
    world.again([says("Done.")]);
    let seen = world.go(run, &[], vec![Decision::resume("policy")]).await;
    assert_eq!(seen.reason(), &TerminationReason::NaturalEnd);
    let red = Some(json!("the red one"));
    assert_eq!(*found.lock().unwrap(), [(false, None), (true, red)], "the tool's answer waited with it");
}

// clause: J01
#[tokio::test]
async fn j01_one_answer_is_for_one_call_also_where_two_tickets_have_one_id() {
    let effects = Effects::default();
    let two = ScriptedAnswer::calls(["a", "b"].map(|id| call(id, "pay", json!({ "n": 1 }))));
    let world = World::new([two]).tool(effect("pay", &effects).done()).parallel();
    let mut world = asking(world, "same");
    let run = run_id();
    let seen = world.go(run, &["Pay."], Vec::new()).await;
    assert_eq!(seen.outcome.waiting.len(), 2);
    world.again([]);
    let seen = world.go(run, &[], vec![Decision::resume("same")]).await;
    assert_eq!(seen.reason(), &TerminationReason::Suspended);
    assert_eq!((effects.all().len(), seen.outcome.waiting.len()), (1, 1));
    world.again([says("Paid.")]);
    world.go(run, &[], vec![Decision::resume("same")]).await;
    assert_eq!(effects.all().len(), 2);
}

/// A run that waits is a row: no task, no part of the agent, of the conversation or of the state is left in memory.
#[tokio::test]
async fn nothing_of_a_waiting_run_is_left_in_memory() {
    let marker = Arc::new(());
    let held = Arc::clone(&marker);
    let pay = tool("pay", move |_, _| {
        let _held = Arc::clone(&held);
        async { Ok(ToolResult::success(1).into()) }
    });
    let world = confirm(World::new([calls("a", "pay")]).tool(pay.done()));
    let run = run_id();
    let (checkpoint, opened) = world.open(run).await;
    let checkpoint = Arc::new(checkpoint);
    let parts = world.parts(run, checkpoint.clone());
    let environment = Arc::downgrade(&parts.agent.environment);
    let actor = Arc::downgrade(&parts.actor);
    let kept = Arc::downgrade(&checkpoint);
    drop(checkpoint);
    let inbox = Arc::strong_count(&world.inbox);
    let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let begin = Begin { opened, input: vec![Message::user("Pay.")], ..Begin::default() };
    let outcome = runyard_agent::run::run(parts, begin).await;
    assert_eq!(outcome.reason, TerminationReason::Suspended);
    drop(outcome);
    assert_eq!(environment.strong_count(), 0);
    assert_eq!(actor.strong_count(), 0);
    assert_eq!(kept.strong_count(), 0);
    assert_eq!(Arc::strong_count(&world.inbox), inbox - 1);
    assert_eq!(Arc::strong_count(&marker), 2, "the test's own, and the tool's");
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), tasks);
}
