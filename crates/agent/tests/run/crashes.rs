//! A process that dies in the middle of a run: what another one makes of what is left.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use runyard_agent::CallOrder;
use runyard_agent::checkpoint::{CallPlace, NoCheckpoint, OpenError, Opened, StoreCheckpoint};
use runyard_agent::phase::{GateDecision, Moment, Phase, StateCommand, TerminationReason};
use runyard_agent::run::{AgentEvent, Begin, Decision, Observer, RunRecord, RunStatus, repeat_ticket, run};
use runyard_agent::tool::{SuspendTicket, Tool, ToolError, ToolOutput, ToolResult};
use runyard_domain::{Code, RunId};
use runyard_llm::inference::{AnswerFormat, Message, Opens, Part, Role, ScriptedAnswer};
use serde_json::json;

use crate::support::parts::{Bad, Effects, FnTool, Tally, answers, effect, tool};
use crate::support::{THREAD, World, assert_paired, call, calls, results, run_id, says, shape};

/// Runs until it can do nothing but wait, and dies there.
async fn dies(world: &World, run: RunId, input: &[&str], decisions: Vec<Decision>) {
    let died = tokio::time::timeout(Duration::from_secs(1), world.go(run, input, decisions)).await;
    assert!(died.is_err(), "it ended instead");
}

/// A tool with an effect after which it hangs, once.
fn pays_and_hangs(effects: &Effects) -> FnTool {
    let effects = effects.clone();
    tool("pay", move |_, context| {
        let first = effects.all().is_empty();
        effects.happened(context.idempotency_key);
        async move {
            if first {
                std::future::pending::<()>().await;
            }
            Ok(ToolResult::success("done").into())
        }
    })
}

fn never() -> ScriptedAnswer {
    ScriptedAnswer { opens: Opens::Never, ..ScriptedAnswer::default() }
}

// clause: J05
#[tokio::test(start_paused = true)]
async fn j05_a_call_of_unknown_outcome_is_asked_about_and_made_again_only_when_a_person_says_so() {
    for answer in [Some(true), Some(false)] {
        let effects = Effects::default();
        let mut world = World::new([calls("a", "pay")]).tool(pays_and_hangs(&effects).done());
        let run = run_id();
        dies(&world, run, &["Pay."], Vec::new()).await;
        assert_eq!(effects.all().len(), 1);

        world.again([]);
        let seen = world.go(run, &[], Vec::new()).await;
        assert_eq!(seen.reason(), &TerminationReason::Suspended);
        let (place, ticket) = &seen.outcome.waiting[0];
        assert_eq!((place.to_string().as_str(), ticket.action.as_str()), ("2.0", "repeat"));
        assert_eq!(ticket.parameters, json!({ "tool": "pay", "arguments": { "n": 1 } }));
        assert_eq!(effects.all().len(), 1, "nobody was asked yet");

        // The question outlives another death.
        world.again([]);
        let seen = world.go(run, &[], Vec::new()).await;
        assert_eq!(seen.reason(), &TerminationReason::Suspended);

        world.again([says("Well.")]);
        let id = seen.outcome.waiting[0].1.id.clone();
        let decision = match answer {
            Some(true) => Decision::resume(id),
            _ => Decision::cancel(id, "it was paid"),
        };
        let seen = world.go(run, &[], vec![decision]).await;
        assert_eq!(seen.reason(), &TerminationReason::NaturalEnd);
        let key = format!("{run}:2.0");
        let (made, said) = match answer {
            Some(true) => (vec![key.clone(), key], "done"),
            _ => (vec![key], "it was paid"),
        };
        assert_eq!(effects.all(), made, "under the same key");
        assert!(results(&world.messages().await)[0].1.contains(said));
        let journal = world.journal(run).await;
        assert_eq!((journal.len(), journal[0].result.is_some()), (1, true));
        assert!(world.is_free().await);
    }
}

// clause: J05
#[tokio::test(start_paused = true)]
async fn j05_whoever_asked_about_a_call_of_unknown_outcome_goes_on_with_the_answer() {
    let ticket = repeat_ticket(CallPlace { message: 2, index: 0 });
    for (answer, made, said) in [
        (Decision::resume(ticket.clone()), 2, "done"),
        (Decision::cancel(ticket.clone(), "it was paid"), 1, "it was paid"),
    ] {
        let effects = Effects::default();
        let mut world = World::new([calls("a", "pay")]).tool(pays_and_hangs(&effects).done());
        let run = run_id();
        dies(&world, run, &["Pay."], Vec::new()).await;
        world.again([says("Well.")]);
        let seen = world.go(run, &[], vec![answer]).await;
        assert_eq!(seen.reason(), &TerminationReason::NaturalEnd);
        assert_eq!(effects.all().len(), made);
        assert!(results(&world.messages().await)[0].1.contains(said));
    }
}

// clause: J05
#[tokio::test(start_paused = true)]
async fn j05_a_call_of_unknown_outcome_is_asked_about_also_when_its_tool_is_gone() {
    let effects = Effects::default();
    let world = World::new([calls("a", "pay")]).tool(pays_and_hangs(&effects).done());
    let run = run_id();
    dies(&world, run, &["Pay."], Vec::new()).await;

    let mut world = World { store: Arc::clone(&world.store), ..World::new([]) };
    let seen = world.go(run, &[], Vec::new()).await;
    assert_eq!(seen.reason(), &TerminationReason::Suspended);
    assert_eq!(seen.outcome.waiting[0].1.action, "repeat");
    world.again([says("Well.")]);
    let seen = world.go(run, &[], vec![crate::suspension::yes(&seen)]).await;
    assert_eq!(seen.reason(), &TerminationReason::NaturalEnd);
    assert!(results(&world.messages().await)[0].1.contains("tool.not_found"));
}

// clause: J05
#[tokio::test(start_paused = true)]
async fn j05_a_call_is_of_unknown_outcome_until_it_is_durable_that_it_is_made_again() {
    use crate::support::flaky::{Failure, Flaky, Operation, Plan};
    let (effects, flaky) = (Effects::default(), Flaky::new(None));
    for parallel in [false, true] {
        let mut world = World::new([calls("a", "pay")]).tool(pays_and_hangs(&effects).done());
        world.store = Arc::clone(&flaky) as Arc<dyn runyard_store::ThreadRunStore>;
        if parallel {
            world = world.parallel();
        }
        let run = run_id();
        effects.0.lock().unwrap().clear();
        dies(&world, run, &["Pay."], Vec::new()).await;
        world.again([]);
        let seen = world.go(run, &[], Vec::new()).await;
        assert_eq!(seen.reason(), &TerminationReason::Suspended);
        // Somebody wants it again, and that cannot be stored.
        world.again([]);
        flaky.fails(Some(Plan::once(Operation::Commit, Failure::Refused)));
        let seen = world.go(run, &[], vec![crate::suspension::yes(&seen)]).await;
        let TerminationReason::Failed { code: Code::OutcomeUnknown, message } = seen.reason() else {
            panic!("{:?}", seen.reason());
        };
        assert!(message.contains("pay (") && message.contains("storage.validation"), "{message}");
        assert_eq!(effects.all().len(), 1, "it was not made again");
        flaky.fails(None);
    }
}

#[tokio::test(start_paused = true)]
async fn steps_are_counted_on_in_another_process() {
    let mut world = World::new([calls("a", "look"), calls("b", "look"), never()]).tool(answers("look", 1));
    let run = run_id();
    dies(&world, run, &["Look."], Vec::new()).await;
    world.again([says("Hi.")]);
    let seen = world.go(run, &[], Vec::new()).await;
    // The third had not come so far that anything of it was stored.
    assert_eq!(seen.words(), ["resumed", "step 3", "answered Hi.", "ended"]);
    assert_eq!(world.record(run).await.steps, 3);
}

/// What is told, stored and journalled of a run that ends with the call 2.0 of `pay` unknown.
async fn check_never_known(world: &World, run: RunId, seen: &crate::support::Seen) {
    let TerminationReason::Failed { code: Code::OutcomeUnknown, message } = seen.reason() else {
        panic!("{:?}", seen.reason());
    };
    assert!(message.contains("pay (2.0)") && message.contains("cancelled"), "{message}");
    assert!(seen.words().contains(&"outcome_unknown 2.0".to_owned()), "{:?}", seen.words());
    let record = world.record(run).await;
    let end = record.end.unwrap();
    assert_eq!((record.status, end.failed_with()), (RunStatus::Done, Some(Code::OutcomeUnknown)));
    let (_, said, is_error) = results(&world.messages().await).remove(0);
    assert!(is_error && said.contains("outcome_unknown") && said.contains("nobody knows"), "{said}");
    let result = world.journal(run).await.remove(0).result.unwrap();
    assert!(String::from_utf8_lossy(&result).contains("outcome_unknown"));
    assert!(world.is_free().await);
}

/// Lets a call be made once, and then stands in its way.
fn stands_in_the_way(world: World, then: GateDecision) -> World {
    let asked = std::sync::atomic::AtomicU32::new(0);
    world.with(|bits| {
        bits.gate(move |_, _| {
            let is_first = asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0;
            let then = if is_first { GateDecision::Allow } else { then.clone() };
            async move { Ok(then) }
        });
    })
}

// clause: J05
#[tokio::test(start_paused = true)]
async fn j05_a_call_that_is_to_be_made_again_is_of_unknown_outcome_while_a_gate_still_asks() {
    for reopened in [false, true] {
        let effects = Effects::default();
        let ticket = || GateDecision::Suspend(Box::new(SuspendTicket::new("t", "confirm", "May I?")));
        let world = World::new([calls("a", "pay")]).tool(pays_and_hangs(&effects).done());
        let mut world = stands_in_the_way(world, ticket());
        let run = run_id();
        dies(&world, run, &["Pay."], Vec::new()).await;
        if reopened {
            world.again([]);
            let seen = world.go(run, &[], Vec::new()).await;
            assert_eq!(seen.outcome.waiting[0].1.action, "repeat");
        }
        world.again([]);
        let again = repeat_ticket(CallPlace { message: 2, index: 0 });
        let seen = world.go(run, &[], vec![Decision::resume(again)]).await;
        assert_eq!(seen.outcome.waiting[0].1.action, "confirm");
        world.again([]);
        world.cancellation.cancel();
        let seen = world.go(run, &[], Vec::new()).await;
        check_never_known(&world, run, &seen).await;
        assert_eq!(effects.all().len(), 1);
    }
}

// clause: J05
#[tokio::test(start_paused = true)]
async fn j05_a_call_that_is_refused_when_it_is_to_be_made_again_may_have_been_made() {
    let deny = GateDecision::Deny("not on Sundays".into());
    let ask = GateDecision::Suspend(Box::new(SuspendTicket::new("t", "confirm", "May I?")));
    let block = GateDecision::Block("not on Sundays".into());
    for (then, ends) in [(deny, true), (ask, true), (block, false)] {
        let effects = Effects::default();
        let world = World::new([calls("a", "pay")]).tool(pays_and_hangs(&effects).done());
        let mut world = stands_in_the_way(world, then);
        let run = run_id();
        dies(&world, run, &["Pay."], Vec::new()).await;
        world.again([says("Well.")]);
        let again = Decision::resume(repeat_ticket(CallPlace { message: 2, index: 0 }));
        let mut seen = world.go(run, &[], vec![again]).await;
        if seen.reason() == &TerminationReason::Suspended {
            world.again([says("Well.")]);
            seen = world.go(run, &[], vec![Decision::cancel("t", "not on Sundays")]).await;
        }
        if ends {
            assert_eq!(seen.reason(), &TerminationReason::NaturalEnd);
        } else {
            let TerminationReason::Failed { code: Code::OutcomeUnknown, message } = seen.reason() else {
                panic!("{:?}", seen.reason());
            };
            assert!(message.contains("pay (2.0)") && message.contains("not on Sundays"), "{message}");
        }
        assert!(seen.words().contains(&"outcome_unknown 2.0".to_owned()), "{:?}", seen.words());
        let (_, said, is_error) = results(&world.messages().await).remove(0);
        assert!(is_error && said.contains("nobody knows") && said.contains("not on Sundays"), "{said}");
        let result = world.journal(run).await.remove(0).result.unwrap();
        assert!(String::from_utf8_lossy(&result).contains("outcome_unknown"));
        assert_eq!(effects.all().len(), 1);
    }
}

// clause: J05
// clause: D02
#[tokio::test(start_paused = true)]
async fn j05_a_run_that_ends_with_a_call_of_unknown_outcome_says_so_and_names_it() {
    for asked in [false, true] {
        let effects = Effects::default();
        let mut world = World::new([calls("a", "pay")]).tool(pays_and_hangs(&effects).done());
        let run = run_id();
        dies(&world, run, &["Pay."], Vec::new()).await;
        if asked {
            // Nobody answered, so it is as unknown as before.
            world.again([]);
            world.go(run, &[], Vec::new()).await;
        }
        world.again([]);
        world.cancellation.cancel();
        let seen = world.go(run, &[], Vec::new()).await;
        check_never_known(&world, run, &seen).await;
    }
}

// clause: J05
#[tokio::test]
async fn j05_a_run_whose_state_cannot_be_read_names_its_calls_of_unknown_outcome_too() {
    let effects = Effects::default();
    let world = World::new([]).tool(effect("pay", &effects).done());
    let pay = call("a", "pay", json!({ "n": 1 }));
    let answer = Message { role: Role::Assistant, content: vec![Part::ToolCall(pay)] };
    let mut opened = Opened { messages: vec![Arc::new(answer)], ..Opened::default() };
    opened.unknown.insert(CallPlace { message: 1, index: 0 });
    opened.run_state.values.insert("test.nobody".to_owned(), json!(1));
    let begin = Begin { opened, resumed: true, ..Begin::default() };
    let outcome = run(world.parts(run_id(), Arc::new(NoCheckpoint)), begin).await;
    let TerminationReason::Failed { code: Code::OutcomeUnknown, message } = &outcome.reason else {
        panic!("{:?}", outcome.reason);
    };
    assert!(message.contains("pay (1.0)") && message.contains("state.unknown_key"), "{message}");
}

// clause: J05
#[tokio::test(start_paused = true)]
async fn j05_a_call_that_may_be_repeated_is_under_the_same_key() {
    let effects = Effects::default();
    let mut world = World::new([calls("a", "pay")]).tool(pays_and_hangs(&effects).idempotent().done());
    let run = run_id();
    dies(&world, run, &["Pay."], Vec::new()).await;
    world.again([says("Paid.")]);
    let seen = world.go(run, &[], Vec::new()).await;
    assert_eq!(seen.reason(), &TerminationReason::NaturalEnd);
    assert_eq!(effects.all(), [format!("{run}:2.0"), format!("{run}:2.0")]);
    assert_eq!(world.journal(run).await.len(), 1);
    assert_paired(&world.messages().await);
}

// clause: J05
#[tokio::test(start_paused = true)]
async fn j05_a_known_result_is_used_again() {
    let effects = Effects::default();
    let mut world = World::new([calls("a", "pay"), never()]).tool(effect("pay", &effects).done());
    let run = run_id();
    dies(&world, run, &["Pay."], Vec::new()).await;
    world.again([says("Paid.")]);
    let seen = world.go(run, &[], Vec::new()).await;
    assert_eq!(seen.reason(), &TerminationReason::NaturalEnd);
    assert_eq!(effects.all().len(), 1);
    assert_eq!(shape(&world.messages().await), ["user: Pay.", "model: pay(a)", "a: done", "model: Paid."]);
    assert_eq!(world.record(run).await.rounds, 2);
}

#[tokio::test(start_paused = true)]
async fn a_death_while_the_model_is_asked_loses_no_words() {
    let mut world = World::new([never()]);
    let run = run_id();
    dies(&world, run, &["Hello."], Vec::new()).await;
    world.again([says("Hi.")]);
    let seen = world.go(run, &[], Vec::new()).await;
    assert_eq!(seen.words()[0], "resumed");
    assert_eq!(shape(&world.messages().await), ["user: Hello.", "model: Hi."]);
}

#[tokio::test(start_paused = true)]
async fn a_death_at_a_gate_asks_the_gate_again_and_makes_the_call_once() {
    let effects = Effects::default();
    let asked = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let count = Arc::clone(&asked);
    let mut world = World::new([calls("a", "pay")]).tool(effect("pay", &effects).done()).with(|bits| {
        bits.gate(move |_, _| {
            let first = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0;
            async move {
                if first {
                    std::future::pending::<()>().await;
                }
                Ok(GateDecision::Allow)
            }
        });
    });
    let run = run_id();
    dies(&world, run, &["Pay."], Vec::new()).await;
    assert_eq!(world.messages().await.len(), 2, "what a gate is asked about is durable");
    world.again([says("Paid.")]);
    let seen = world.go(run, &[], Vec::new()).await;
    assert_eq!(seen.reason(), &TerminationReason::NaturalEnd);
    assert_eq!(effects.all().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_death_after_an_approval_asks_about_the_call_and_not_about_the_approval() {
    let effects = Effects::default();
    let mut world = World::new([calls("a", "pay")]).tool(pays_and_hangs(&effects).done()).with(|bits| {
        bits.gate(|_, _| async {
            Ok(GateDecision::Suspend(Box::new(SuspendTicket::new("t", "confirm", "May I?"))))
        });
    });
    let run = run_id();
    world.go(run, &["Pay."], Vec::new()).await;
    world.again([]);
    dies(&world, run, &[], vec![Decision::resume("t")]).await;
    assert_eq!(effects.all().len(), 1);
    world.again([]);
    let seen = world.go(run, &[], Vec::new()).await;
    assert_eq!(seen.outcome.waiting[0].1.action, "repeat");
    world.again([says("Paid.")]);
    let seen = world.go(run, &[], vec![crate::suspension::yes(&seen)]).await;
    assert_eq!(seen.reason(), &TerminationReason::NaturalEnd);
    assert_eq!(effects.all().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn calls_side_by_side_are_each_asked_about_or_repeated() {
    let effects = Effects::default();
    let hanging: Arc<dyn Tool> = {
        let effects = effects.clone();
        tool("pay", move |_, context| {
            effects.happened(context.idempotency_key);
            std::future::pending()
        })
        .done()
    };
    let all = ScriptedAnswer::calls([
        call("a", "pay", json!({ "n": 1 })),
        call("b", "look", json!({ "n": 1 })),
        call("c", "pay", json!({ "n": 2 })),
    ]);
    let look = || tool("look", |_, _| async { Ok(ToolResult::success("blue").into()) }).idempotent().done();
    let world = World::new([all]).tool(hanging).tool(look()).parallel();
    let run = run_id();
    dies(&world, run, &["Go."], Vec::new()).await;
    let mut world = World { store: Arc::clone(&world.store), ..World::new([]) }
        .tool(effect("pay", &effects).done())
        .tool(look())
        .parallel();
    let seen = world.go(run, &[], Vec::new()).await;
    assert_eq!(seen.reason(), &TerminationReason::Suspended);
    let waiting: Vec<String> = seen.outcome.waiting.iter().map(|(_, ticket)| ticket.id.clone()).collect();
    assert_eq!(waiting, ["repeat-2.0", "repeat-2.2"]);
    world.again([says("Done.")]);
    let decisions = vec![Decision::resume("repeat-2.0"), Decision::cancel("repeat-2.2", "no")];
    let seen = world.go(run, &[], decisions).await;
    assert_eq!(seen.reason(), &TerminationReason::NaturalEnd);
    assert_eq!(effects.all().len(), 3);
    assert_paired(&world.messages().await);
}

// clause: J05
#[tokio::test(start_paused = true)]
async fn j05_of_calls_side_by_side_none_has_begun_while_one_is_still_decided_on() {
    let effects = Effects::default();
    let both =
        ScriptedAnswer::calls([call("a", "pay", json!({ "n": 1 })), call("b", "pay", json!({ "n": 2 }))]);
    let world = World::new([both]).tool(effect("pay", &effects).done()).parallel().with(|bits| {
        bits.gate(|call, _| {
            let asks_for_days = call.id == "b";
            async move {
                if asks_for_days {
                    std::future::pending::<()>().await;
                }
                Ok(GateDecision::Allow)
            }
        });
    });
    let run = run_id();
    dies(&world, run, &["Go."], Vec::new()).await;
    assert!(world.journal(run).await.is_empty() && effects.all().is_empty());

    let mut world = World { store: Arc::clone(&world.store), ..World::new([]) }
        .tool(effect("pay", &effects).done())
        .parallel();
    world.again([says("Done.")]);
    let seen = world.go(run, &[], Vec::new()).await;
    assert_eq!(seen.reason(), &TerminationReason::NaturalEnd, "nothing is to be asked");
    assert_eq!(effects.all().len(), 2);
}

// clause: J05
#[tokio::test(start_paused = true)]
async fn j05_of_calls_side_by_side_one_that_is_done_is_durable_while_another_hangs() {
    let effects = Effects::default();
    let pays: Arc<dyn Tool> = {
        let effects = effects.clone();
        tool("pay", move |args, context| {
            effects.happened(context.idempotency_key);
            async move {
                if args["n"] == 2 {
                    std::future::pending::<()>().await;
                }
                let paid = StateCommand::none().update::<Tally>(args["n"].as_i64().unwrap());
                Ok(ToolOutput::new(ToolResult::success("paid"), paid))
            }
        })
        .done()
    };
    let both = ScriptedAnswer::calls([2, 1].map(|n| call(&n.to_string(), "pay", json!({ "n": n }))));
    let world = World::new([both]).tool(pays).parallel();
    let run = run_id();
    dies(&world, run, &["Pay both."], Vec::new()).await;
    assert_eq!(effects.all().len(), 2);
    assert!(world.everything(run).await.contains("test.tally 1"), "what it changed is there with its result");

    let mut world = World { store: Arc::clone(&world.store), ..World::new([]) }
        .tool(effect("pay", &effects).done())
        .parallel();
    let seen = world.go(run, &[], Vec::new()).await;
    let waiting: Vec<String> = seen.outcome.waiting.iter().map(|(_, ticket)| ticket.id.clone()).collect();
    assert_eq!(waiting, ["repeat-2.0"], "nobody asks about what is known");
    world.again([says("Done.")]);
    let seen = world.go(run, &[], vec![Decision::cancel("repeat-2.0", "no")]).await;
    assert_eq!(seen.reason(), &TerminationReason::NaturalEnd);
    assert_eq!(effects.all().len(), 2, "and nothing is made again");
    assert_paired(&world.messages().await);
    assert!(results(&world.messages().await).contains(&("1".to_owned(), "paid".to_owned(), false)));
}

// clause: J05
#[tokio::test(start_paused = true)]
async fn j05_results_of_calls_that_a_model_gave_one_id_stay_with_their_calls() {
    let pays = tool("pay", |args, _| async move {
        if args["n"] == 1 {
            std::future::pending::<()>().await;
        }
        Ok(ToolResult::success(args["n"].clone()).into())
    });
    let all = [("a", 1), ("a", 2), ("b", 3)].map(|(id, n)| call(id, "pay", json!({ "n": n })));
    let world = World::new([ScriptedAnswer::calls(all)]).tool(pays.done()).parallel();
    let run = run_id();
    dies(&world, run, &["Pay."], Vec::new()).await;
    let done = [("a-2", "2"), ("b", "3")].map(|(id, said)| (id.to_owned(), said.to_owned(), false));
    assert_eq!(results(&world.messages().await), done);
}

/// Hears nothing from when a tool has reported something.
struct Deafened;

#[async_trait]
impl Observer for Deafened {
    async fn observe(&self, event: AgentEvent) {
        if matches!(event, AgentEvent::ToolReported { .. } | AgentEvent::ToolEnded { .. }) {
            std::future::pending::<()>().await;
        }
    }
}

// clause: J05
#[tokio::test(start_paused = true)]
async fn j05_a_result_is_durable_before_anything_that_follows_it() {
    for parallel in [false, true] {
        for what in ["a hook", "an effect", "a listener"] {
            let effects = Effects::default();
            let paid = effects.clone();
            let pays = tool("pay", move |_, context| {
                paid.happened(context.idempotency_key);
                context.reporter.output("paying");
                let command = match what {
                    "an effect" => StateCommand::none().emit::<Bad>(None),
                    _ => StateCommand::none(),
                };
                async { Ok(ToolOutput::new(ToolResult::success("paid"), command)) }
            });
            let mut world = World::new([calls("a", "pay")]).tool(pays.done()).with(|bits| {
                if what == "a hook" {
                    bits.hook(Phase::AfterToolExecute, |_| std::future::pending());
                }
            });
            if what == "a listener" {
                world.observer = Some(Arc::new(Deafened));
            }
            if parallel {
                world = world.parallel();
            }
            let run = run_id();
            dies(&world, run, &["Pay."], Vec::new()).await;
            let world = World { store: Arc::clone(&world.store), ..World::new([says("Paid.")]) }
                .tool(effect("pay", &effects).done());
            let seen = world.go(run, &[], Vec::new()).await;
            assert_eq!(seen.reason(), &TerminationReason::NaturalEnd, "{what}");
            assert_eq!(results(&world.messages().await)[0].1, "paid", "{what}");
            assert_eq!(effects.all().len(), 1, "{what}");
        }
    }
}

/// What the hooks after a call were told, and with which they count the calls.
fn counts_calls(world: World, told: &Effects, hangs_in: Option<Phase>) -> World {
    let told = told.clone();
    world.with(|bits| {
        bits.hook(Phase::AfterToolExecute, move |context| {
            let Moment::AfterToolExecute { call, outcome } = context.at.moment else { panic!() };
            told.happened(format!("{} {outcome:?}", call.id));
            async { Ok(StateCommand::none().update::<Tally>(1)) }
        });
        if let Some(phase) = hangs_in {
            bits.hook(phase, |_| std::future::pending());
        }
    })
}

// clause: D16
// clause: J05
#[tokio::test(start_paused = true)]
async fn d16_j05_hooks_hear_of_a_result_over_a_death_and_what_they_change_counts_once() {
    let one = |id: &str, tool: &str| call(id, tool, json!({ "n": 1 }));
    let (a, b) =
        ("a Ok(Success { data: String(\"blue\"), text: None })", "b Err(ExecutionFailed(\"it broke\"))");
    let after = Some(Phase::AfterToolExecute);
    for (order, hangs_in, first, second) in [
        (CallOrder::OneByOne, after, vec![a], vec![a, b]),
        // With the intent of the second call it is durable what the first one's hooks did.
        (CallOrder::OneByOne, Some(Phase::StepEnd), vec![a, b], vec![b]),
        (CallOrder::Parallel, after, vec![a], vec![a, b]),
        (CallOrder::Parallel, Some(Phase::StepEnd), vec![a, b], vec![a, b]),
        // When the model is asked again all of it is.
        (CallOrder::OneByOne, None, vec![a, b], vec![]),
        (CallOrder::Parallel, None, vec![a, b], vec![]),
    ] {
        let tools = |world: World| {
            let broke = || async { Err(ToolError::ExecutionFailed("it broke".into())) };
            world.tool(answers("look", "blue")).tool(tool("break", move |_, _| broke()).done())
        };
        let both = ScriptedAnswer::calls([one("a", "look"), one("b", "break")]);
        let (told, told_again) = (Effects::default(), Effects::default());
        let mut world = counts_calls(tools(World::new([both, never()])), &told, hangs_in);
        world.order = order;
        let run = run_id();
        dies(&world, run, &["Look."], Vec::new()).await;
        assert_eq!(told.all(), first, "{order:?} {hangs_in:?}");

        let store = Arc::clone(&world.store);
        let world = World { store, order, ..World::new([says("Done.")]) };
        let world = counts_calls(tools(world), &told_again, None);
        let seen = world.go(run, &[], Vec::new()).await;
        assert_eq!(seen.reason(), &TerminationReason::NaturalEnd);
        assert_eq!(told_again.all(), second, "{order:?} {hangs_in:?}");
        let stored = world.everything(run).await;
        assert!(stored.contains("test.tally 2"), "{order:?} {hangs_in:?}: each call counts once: {stored}");
        assert_paired(&world.messages().await);
    }
}

// clause: D10
#[tokio::test(start_paused = true)]
async fn d10_the_beginning_of_an_answer_is_not_taken_for_the_whole_after_a_death_between_its_pieces() {
    use crate::support::flaky::{Failure, Flaky, Operation, Plan};
    let long = format!("{}, and so on", "on and on ".repeat(600_000));
    for is_in_a_form in [false, true] {
        let plan = Plan { operation: Operation::Commit, from: 3, times: u32::MAX, failure: Failure::Io };
        let flaky = Flaky::new(Some(plan));
        let mut world = World::new([says(&long)]);
        world.store = Arc::clone(&flaky) as Arc<dyn runyard_store::ThreadRunStore>;
        world.settings.format = is_in_a_form.then(|| AnswerFormat { name: "f".into(), schema: json!({}) });
        let run = run_id();
        let seen = world.go(run, &["Talk."], Vec::new()).await;
        assert!(matches!(seen.reason(), TerminationReason::Failed { code: Code::StorageIo, .. }));
        flaky.fails(None);
        let beginning: String = world.messages().await[1..].iter().map(Message::said).collect();
        assert!(!beginning.is_empty() && beginning.len() < long.len());
        assert!(world.record(run).await.incomplete);

        world.again([says("to the end.")]);
        let seen = world.go(run, &[], Vec::new()).await;
        assert_eq!((seen.reason(), world.model.asked()), (&TerminationReason::NaturalEnd, 1));
        // In a form it is asked for anew: half of one is of no use.
        let expected = if is_in_a_form { String::new() } else { beginning };
        assert!(seen.outcome.text() == format!("{expected}to the end."), "{}", seen.outcome.text().len());
        assert!(!world.record(run).await.incomplete);
    }
}

#[tokio::test]
async fn a_run_whose_last_answer_is_durable_has_ended() {
    let world = World::new([says("again?")]);
    let messages = [Message::user("Hello."), Message::assistant("Hi.")].map(Arc::new).to_vec();
    let record = RunRecord { rounds: 1, ..RunRecord::default() };
    let opened = Opened { messages, record: Some(record), ..Opened::default() };
    let begin = Begin { opened, resumed: true, ..Begin::default() };
    let outcome = run(world.parts(run_id(), Arc::new(NoCheckpoint)), begin).await;
    assert_eq!(outcome.reason, TerminationReason::NaturalEnd);
    assert_eq!((outcome.text().as_str(), world.model.asked()), ("Hi.", 0));
}

// clause: D04
#[tokio::test(start_paused = true)]
async fn a_thread_has_one_run_at_a_time() {
    let mut world = World::new([never()]);
    let run = run_id();
    dies(&world, run, &["Hello."], Vec::new()).await;
    // Its claim holds on for a while, against others and other owners of the same run.
    assert!(matches!(world.try_open(run_id()).await, Err(OpenError::Held { .. })));
    let name = run.to_string();
    let elsewhere = (THREAD, name.as_str(), "elsewhere");
    let opened =
        StoreCheckpoint::open(Arc::clone(&world.store), world.redactor.clone(), elsewhere, Vec::new()).await;
    assert!(matches!(opened, Err(OpenError::Held { .. })));
    // Given up, the thread waits for its own run.
    let (checkpoint, _) = world.open(run).await;
    runyard_agent::checkpoint::Checkpoint::give_up(&checkpoint).await;
    assert!(
        matches!(world.try_open(run_id()).await, Err(OpenError::Unfinished { run: found }) if found == name)
    );
    world.again([says("Hi.")]);
    world.go(run, &[], Vec::new()).await;
    assert_eq!(world.record(run).await.status, RunStatus::Done);
    assert!(world.is_free().await);
}

#[tokio::test]
async fn a_thread_that_is_known_is_not_read_again() {
    use crate::support::flaky::{Flaky, Operation};
    let flaky = Flaky::new(None);
    let mut world = World::new([]).tool(answers("look", 1));
    world.store = Arc::clone(&flaky) as Arc<dyn runyard_store::ThreadRunStore>;
    for _ in 0..3 {
        world.again([calls("a", "look"), says("Hi.")]);
        world.ask("Hello.").await;
    }
    let known: Vec<Arc<Message>> = world.messages().await.into_iter().map(Arc::new).collect();
    flaky.fails(None);
    let name = run_id().to_string();
    let names = (THREAD, name.as_str(), "tests");
    let open =
        StoreCheckpoint::open(Arc::clone(&world.store), world.redactor.clone(), names, known.clone()).await;
    let (checkpoint, opened) = open.unwrap();
    assert_eq!(flaky.asked(Operation::Messages), 0);
    assert!(opened.messages.iter().zip(&known).all(|(one, other)| Arc::ptr_eq(one, other)));
    assert_eq!(checkpoint.version(), 12);
}
