//! Every condition that stops a run, in a run.

use std::sync::Arc;
use std::time::Duration;

use runyard_agent::CallOrder;
use runyard_agent::checkpoint::{NoCheckpoint, Opened};
use runyard_agent::phase::{ExcludeTool, GateDecision, Phase, StateCommand, TerminationReason};
use runyard_agent::run::{Begin, Cost, Limits, Repetition, RunStatus, run};
use runyard_agent::tool::{SuspendTicket, ToolError, ToolResult};
use runyard_llm::inference::{Message, Opens, ScriptedAnswer, ScriptedCall, ScriptedUsage, Step, StopReason};
use serde_json::json;

use crate::support::parts::{answers, hangs, tool};
use crate::support::{World, assert_paired, call, calls, results, run_id, says};

fn paid(input_tokens: u64, output_tokens: u64) -> ScriptedAnswer {
    let call = ScriptedCall { id: "a".into(), name: "look".into(), arguments: json!({ "n": input_tokens }) };
    ScriptedAnswer::steps([
        Step::Usage(ScriptedUsage { input_tokens, output_tokens, ..ScriptedUsage::default() }),
        Step::Text("Hm.".into()),
        Step::Call(call),
        Step::Stop(StopReason::ToolUse),
    ])
}

/// Stops with this code after so many answers, in order.
async fn check(limits: Limits, answers_given: Vec<ScriptedAnswer>, code: &str, rounds: u32) {
    let mut ends = None;
    let world = World::new(answers_given)
        .tool(answers("look", "blue"))
        .tool(tool("fail", |_, _| async { Err(ToolError::ExecutionFailed("no".into())) }).done())
        .tool(hangs("hang").done())
        .limits(limits)
        .with(|bits| ends = Some(bits.count(Phase::RunEnd)));
    let run = run_id();
    let seen = world.go(run, &["Go."], Vec::new()).await;
    let TerminationReason::Stopped { code: found, detail } = seen.reason() else {
        panic!("{code}: {:?}", seen.reason())
    };
    assert_eq!(found, code);
    assert!(!detail.as_deref().unwrap_or_default().is_empty());
    assert_eq!((seen.outcome.rounds, world.model.asked()), (rounds, rounds));
    assert_eq!(ends.unwrap().load(std::sync::atomic::Ordering::SeqCst), 1);
    assert_paired(&world.messages().await);
    let record = world.record(run).await;
    let end = record.end.unwrap();
    assert_eq!(
        (record.status, end.reason.as_str(), end.code.as_deref()),
        (RunStatus::Done, "stopped", Some(code))
    );
    assert!(world.is_free().await);
}

#[tokio::test]
async fn rounds() {
    let limits = Limits { rounds_max: 3, ..Limits::default() };
    check(limits, (0..5).map(|_| calls("a", "look")).collect(), "max_rounds", 3).await;
}

#[tokio::test]
async fn tokens() {
    let limits = Limits { tokens_max: Some(30), ..Limits::default() };
    check(limits, vec![paid(10, 5), paid(10, 5), paid(10, 5)], "token_budget", 2).await;
}

#[tokio::test]
async fn money() {
    let cost = Cost { dollars_max: 0.5, input_price: 10.0, output_price: 100.0 };
    let limits = Limits { cost_max: Some(cost), ..Limits::default() };
    check(limits, vec![paid(20_000, 1_000), paid(20_000, 1_000), paid(1, 1)], "cost_budget", 2).await;
}

#[tokio::test]
async fn consecutive_errors() {
    let limits = Limits { consecutive_errors_max: Some(2), ..Limits::default() };
    let script =
        vec![calls("a", "fail"), calls("b", "look"), calls("c", "fail"), calls("d", "fail"), says("x")];
    check(limits, script, "consecutive_errors", 4).await;
}

#[tokio::test]
async fn repetition() {
    let limits = Limits { repetition: Some(Repetition { window: 5, times: 3 }), ..Limits::default() };
    let other = ScriptedAnswer::calls([call("o", "look", json!({ "n": 9 }))]);
    let script = vec![calls("a", "look"), other, calls("b", "look"), calls("c", "look"), says("x")];
    check(limits, script, "loop_detection", 4).await;
}

#[tokio::test]
async fn a_tool() {
    let limits = Limits { stop_on_tools: ["look".to_owned()].into(), ..Limits::default() };
    check(limits, vec![calls("b", "fail"), calls("a", "look"), says("x")], "stop_on_tool", 2).await;
}

#[tokio::test]
async fn content() {
    let limits = Limits { stop_on_content: Some("^Hm".into()), ..Limits::default() };
    check(limits, vec![calls("b", "fail"), paid(1, 1), says("x")], "content_match", 2).await;
}

#[tokio::test]
async fn truncation() {
    let limits = Limits { continuations_max: 0, ..Limits::default() };
    let cut = ScriptedAnswer::steps([Step::Text("x".into()), Step::Stop(StopReason::MaxTokens)]);
    check(limits, vec![cut, says("x")], "output_truncated", 1).await;
}

#[tokio::test(start_paused = true)]
async fn time_while_a_tool_hangs() {
    let limits = Limits { time_max_ms: Some(5_000), ..Limits::default() };
    let begun = tokio::time::Instant::now();
    check(limits, vec![calls("a", "hang"), says("x")], "timeout", 1).await;
    assert_eq!(begun.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn time_while_a_model_hangs_or_is_waited_for() {
    use runyard_llm::inference::{Opens, ScriptedError};
    let hanging = [
        ScriptedAnswer { opens: Opens::Never, ..ScriptedAnswer::default() },
        ScriptedAnswer::steps([Step::Text("He".into()), Step::Stall]),
        ScriptedAnswer::failing(ScriptedError::Overloaded {
            message: String::new(),
            retry_after_ms: Some(100_000),
        }),
    ];
    for answer in hanging {
        let limits = Limits { time_max_ms: Some(5_000), ..Limits::default() };
        let world = World::new([answer, says("x")]).limits(limits);
        let begun = tokio::time::Instant::now();
        let seen = world.ask("Go.").await;
        assert!(matches!(seen.reason(), TerminationReason::Stopped { code, .. } if code == "timeout"));
        assert_eq!(begun.elapsed().as_secs(), 5);
        assert!(world.is_free().await);
    }
}

#[tokio::test(start_paused = true)]
async fn time_while_a_hook_or_a_gate_hangs() {
    for phase in Phase::ALL.into_iter().filter(|phase| *phase != Phase::RunEnd) {
        let limits = Limits { time_max_ms: Some(5_000), ..Limits::default() };
        let world = World::new([calls("a", "look"), says("x")])
            .tool(answers("look", 1))
            .limits(limits)
            .with(|bits| bits.hook(phase, |_| std::future::pending()));
        let seen = world.ask("Go.").await;
        assert!(
            matches!(seen.reason(), TerminationReason::Stopped { code, .. } if code == "timeout"),
            "{phase}"
        );
        assert_paired(&world.messages().await);
        assert!(world.is_free().await);
    }
    let limits = Limits { time_max_ms: Some(5_000), ..Limits::default() };
    let world = World::new([calls("a", "look"), says("x")])
        .tool(answers("look", 1))
        .limits(limits)
        .with(|bits| bits.gate(|_, _| std::future::pending()));
    let seen = world.ask("Go.").await;
    assert!(matches!(seen.reason(), TerminationReason::Stopped { code, .. } if code == "timeout"));
}

#[tokio::test(start_paused = true)]
async fn the_time_that_a_run_waits_for_people_does_not_count_and_the_rest_is_summed() {
    let slow = || {
        tool("slow", |_, _| async {
            tokio::time::sleep(Duration::from_secs(3)).await;
            Ok(runyard_agent::tool::ToolResult::success(1).into())
        })
        .done()
    };
    let limits = Limits { time_max_ms: Some(5_000), ..Limits::default() };
    let mut world = World::new([calls("a", "slow"), calls("b", "ask")])
        .tool(slow())
        .tool(crate::suspension::asks("ask"))
        .limits(limits);
    let run = run_id();
    let seen = world.go(run, &["Go."], Vec::new()).await;
    assert_eq!(seen.reason(), &TerminationReason::Suspended);
    tokio::time::sleep(Duration::from_secs(3600)).await;
    world.again([calls("c", "slow"), says("x")]);
    let begun = tokio::time::Instant::now();
    let seen = world.go(run, &[], vec![crate::suspension::yes(&seen)]).await;
    assert!(matches!(seen.reason(), TerminationReason::Stopped { code, .. } if code == "timeout"));
    assert_eq!(begun.elapsed().as_secs(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_time_that_a_gate_waits_for_people_does_not_count_either() {
    let limits = Limits { time_max_ms: Some(5_000), ..Limits::default() };
    let slow = tool("slow", |_, _| async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        Ok(runyard_agent::tool::ToolResult::success(1).into())
    });
    let world = World::new([calls("a", "slow"), calls("b", "slow"), says("x")])
        .tool(slow.done())
        .limits(limits)
        .with(|bits| {
            bits.asks_people = true;
            bits.gate(|_, _| async {
                tokio::time::sleep(Duration::from_secs(3600)).await;
                Ok(Default::default())
            });
        });
    let (run, begun) = (run_id(), tokio::time::Instant::now());
    let seen = world.go(run, &["Go."], Vec::new()).await;
    // The first call goes through, whose answer came after an hour, and the second is stopped in its own time.
    assert!(matches!(seen.reason(), TerminationReason::Stopped { code, .. } if code == "timeout"));
    assert_eq!(begun.elapsed().as_secs(), 2 * 3600 + 5);
    assert_eq!(world.record(run).await.elapsed_ms, 5_000);
    assert_paired(&world.messages().await);
}

/// Goes on with a run that waits in every round, in another process each time. Gives how it stops, and after how many waits.
async fn waits_until_it_stops(limits: Limits, round: impl Fn(u32) -> ScriptedAnswer) -> (String, u32) {
    let world = World::new([round(0)])
        .tool(answers("look", "blue"))
        .tool(tool("fail", |_, _| async { Err(ToolError::ExecutionFailed("no".into())) }).done())
        .limits(limits)
        .parallel();
    let mut world = world.with(|bits| {
        bits.gate(|call, _| {
            let ticket = SuspendTicket::new(format!("ok-{}", call.id), "confirm", "May I?");
            let waits = call.id != "now";
            async move {
                Ok(if waits { GateDecision::Suspend(Box::new(ticket)) } else { GateDecision::Allow })
            }
        });
    });
    let run = run_id();
    let mut seen = world.go(run, &["Go."], Vec::new()).await;
    for waits in 1..10 {
        match seen.reason() {
            TerminationReason::Stopped { code, .. } => return (code.clone(), waits - 1),
            reason => assert_eq!(reason, &TerminationReason::Suspended),
        }
        world.again([round(waits)]);
        seen = world.go(run, &[], vec![crate::suspension::yes(&seen)]).await;
    }
    panic!("it never stops");
}

#[tokio::test]
async fn what_is_counted_is_counted_over_waits() {
    let errors = Limits { consecutive_errors_max: Some(3), ..Limits::default() };
    let stopped = waits_until_it_stops(errors, |n| calls(&format!("c{n}"), "fail")).await;
    assert_eq!(stopped, ("consecutive_errors".to_owned(), 3));

    // The same call, with a secret in it that is not stored.
    let again = Limits { repetition: Some(Repetition { window: 4, times: 3 }), ..Limits::default() };
    let said = json!({ "n": 1, "text": crate::support::SECRET });
    let repeated = |n| ScriptedAnswer::calls([call(&format!("c{n}"), "look", said.clone())]);
    let stopped = waits_until_it_stops(again, repeated).await;
    assert_eq!(stopped, ("loop_detection".to_owned(), 3));

    // One call stops the run while another one waits.
    let tools = Limits { stop_on_tools: ["look".to_owned()].into(), ..Limits::default() };
    let both = |_| {
        ScriptedAnswer::calls([
            call("now", "look", json!({ "n": 1 })),
            call("later", "fail", json!({ "n": 1 })),
        ])
    };
    assert_eq!(waits_until_it_stops(tools, both).await, ("stop_on_tool".to_owned(), 1));
}

/// Dies when the results of all that its model called are durable, and before anything follows from that. Goes on with a model that
/// would say something, and gives how that ends, and how often it was asked.
async fn dies_behind_the_results(
    limits: &Limits,
    order: CallOrder,
    script: Vec<ScriptedAnswer>,
) -> (TerminationReason, u32) {
    let last = script.len() as u32;
    let world = |model: Vec<ScriptedAnswer>| {
        let mut world = World::new(model)
            .tool(answers("look", "blue"))
            .tool(tool("fail", |_, _| async { Err(ToolError::ExecutionFailed("no".into())) }).done())
            .limits(limits.clone());
        world.order = order;
        world
    };
    let dying = world(script).with(|bits| {
        bits.hook(Phase::AfterToolExecute, move |context| {
            let is_last = context.at.step == last;
            async move {
                if is_last {
                    std::future::pending::<()>().await;
                }
                Ok(StateCommand::none())
            }
        });
    });
    let run = run_id();
    let died = tokio::time::timeout(Duration::from_secs(60), dying.go(run, &["Go."], Vec::new())).await;
    assert!(died.is_err(), "it ended instead");
    assert_eq!(dying.model.asked(), last);
    let mut world = world(vec![says("One too many.")]);
    world.store = Arc::clone(&dying.store);
    let seen = world.go(run, &[], Vec::new()).await;
    assert!(world.is_free().await);
    (seen.reason().clone(), world.model.asked())
}

#[tokio::test(start_paused = true)]
async fn d16_a_limit_that_a_durable_result_has_met_stops_the_run_after_a_death_too() {
    let cost = Cost { dollars_max: 0.5, input_price: 10.0, output_price: 100.0 };
    let many = |tool: &str| vec![calls("a", tool), calls("b", tool), calls("c", tool)];
    let cases = [
        (Limits { rounds_max: 3, ..Limits::default() }, many("look"), "max_rounds"),
        (Limits { tokens_max: Some(30), ..Limits::default() }, vec![paid(20, 10)], "token_budget"),
        (Limits { cost_max: Some(cost), ..Limits::default() }, vec![paid(50_000, 0)], "cost_budget"),
        (Limits { consecutive_errors_max: Some(3), ..Limits::default() }, many("fail"), "consecutive_errors"),
        (
            Limits { repetition: Some(Repetition { window: 3, times: 3 }), ..Limits::default() },
            many("look"),
            "loop_detection",
        ),
        (
            Limits { stop_on_tools: ["look".to_owned()].into(), ..Limits::default() },
            vec![calls("a", "look")],
            "stop_on_tool",
        ),
        (
            Limits { stop_on_content: Some("^Hm".into()), ..Limits::default() },
            vec![paid(1, 1)],
            "content_match",
        ),
    ];
    for (limits, script, code) in cases {
        for order in [CallOrder::OneByOne, CallOrder::Parallel] {
            let (reason, asked) = dies_behind_the_results(&limits, order, script.clone()).await;
            let found = match &reason {
                TerminationReason::Stopped { code, .. } => code.as_str(),
                other => panic!("{code}: {other:?}"),
            };
            assert_eq!((found, asked), (code, 0), "{order:?}");
        }
    }
    // One that no limit stops goes on.
    let (reason, asked) =
        dies_behind_the_results(&Limits::default(), CallOrder::OneByOne, many("look")).await;
    assert_eq!((reason, asked), (TerminationReason::NaturalEnd, 1));
}

#[tokio::test(start_paused = true)]
async fn d16_a_call_that_is_done_counts_though_its_process_died_over_another_one() {
    let both =
        ScriptedAnswer::calls([call("a", "finish", json!({ "n": 1 })), call("b", "slow", json!({ "n": 1 }))]);
    let limits = Limits { stop_on_tools: ["finish".to_owned()].into(), ..Limits::default() };
    let dying = World::new([both])
        .tool(answers("finish", "done"))
        .tool(hangs("slow").idempotent().done())
        .limits(limits.clone())
        .parallel();
    let run = run_id();
    let died = tokio::time::timeout(Duration::from_secs(1), dying.go(run, &["Go."], Vec::new())).await;
    assert!(died.is_err(), "it ended instead");
    let mut world = World::new([says("One too many.")])
        .tool(answers("finish", "done"))
        .tool(tool("slow", |_, _| async { Ok(ToolResult::success("at last").into()) }).idempotent().done())
        .limits(limits);
    world.store = Arc::clone(&dying.store);
    let seen = world.go(run, &[], Vec::new()).await;
    assert!(matches!(seen.reason(), TerminationReason::Stopped { code, .. } if code == "stop_on_tool"));
    assert_eq!(world.model.asked(), 0);
    assert_paired(&world.messages().await);
}

#[tokio::test(start_paused = true)]
async fn d16_an_answer_that_is_cut_is_gone_on_with_no_more_often_over_deaths() {
    let limits = Limits { continuations_max: 2, ..Limits::default() };
    let cut = || ScriptedAnswer::steps([Step::Text("x".into()), Step::Stop(StopReason::MaxTokens)]);
    let never = || ScriptedAnswer { opens: Opens::Never, ..ScriptedAnswer::default() };
    let mut world = World::new([cut(), never()]).limits(limits);
    let run = run_id();
    for input in [&["Go."][..], &[]] {
        let died = tokio::time::timeout(Duration::from_secs(1), world.go(run, input, Vec::new())).await;
        assert!(died.is_err(), "it ended instead");
        world.again([cut(), never()]);
    }
    let seen = world.go(run, &[], Vec::new()).await;
    assert!(matches!(seen.reason(), TerminationReason::Stopped { code, .. } if code == "output_truncated"));
    assert_eq!((seen.outcome.text().as_str(), world.model.asked()), ("xxx", 1));
}

/// A journal keeps the turns of a session under one name, and a turn that goes on finds what those before it left.
#[tokio::test]
async fn what_one_run_counted_and_was_offered_stops_no_other_one() {
    let limits = Limits { stop_on_tools: ["look".to_owned()].into(), ..Limits::default() };
    let mut world = World::new([calls("a", "look")]).tool(answers("look", 1)).tool(answers("pay", 1));
    world = world.limits(limits).with(|bits| {
        bits.hook(Phase::RunStart, |_| async {
            Ok(StateCommand::none().schedule::<ExcludeTool>(&"pay".to_owned())?)
        });
    });
    let seen = world.ask_unstored("Go.").await;
    assert!(matches!(seen.reason(), TerminationReason::Stopped { code, .. } if code == "stop_on_tool"));
    let thread = seen.outcome.thread;
    let pay = runyard_llm::inference::Part::ToolCall(call("b", "pay", json!({ "n": 1 })));
    let role = runyard_llm::inference::Role::Assistant;
    let mut messages = thread.messages.clone();
    messages.push(Arc::new(Message { role, content: vec![pay] }));
    world.again([says("Paid.")]);
    let begin = Begin { opened: Opened { messages, ..thread }, resumed: true, ..Begin::default() };
    let outcome = run(world.parts(run_id(), Arc::new(NoCheckpoint)), begin).await;
    assert_eq!((outcome.text().as_str(), &outcome.reason), ("Paid.", &TerminationReason::NaturalEnd));
    let last = results(&outcome.thread.messages.iter().map(|one| Message::clone(one)).collect::<Vec<_>>());
    assert_eq!(last.last().unwrap(), &("b".to_owned(), "1".to_owned(), false));
}

#[tokio::test(start_paused = true)]
async fn a_last_phase_that_hangs_is_left() {
    let world =
        World::new([says("Hello.")]).with(|bits| bits.hook(Phase::RunEnd, |_| std::future::pending()));
    let run = run_id();
    let seen = world.go(run, &["Go."], Vec::new()).await;
    assert!(matches!(seen.reason(), TerminationReason::Failed { .. }));
    assert_eq!(world.record(run).await.status, RunStatus::Done);
    assert!(world.is_free().await);
}
