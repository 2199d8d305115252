//! Calls: checked, gated, made one by one or side by side, and whatever comes of them told to the model.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use runyard_agent::checkpoint::CallEnd;
use runyard_agent::phase::{GateDecision, Phase, StateCommand, TerminationReason};
use runyard_agent::run::{Decision, Observer};
use runyard_agent::tool::{Report, ToolError, ToolOutput, ToolResult};
use runyard_domain::Code;
use runyard_llm::inference::ScriptedAnswer;
use serde_json::{Value, json};
use tokio::sync::Barrier;

use crate::support::parts::{Effects, Label, Noted, Tally, answers, effect, hangs, tool};
use crate::support::{World, assert_paired, call, calls, results, run_id, says, word};

/// What the model was told about its one call, after which it went on.
async fn told(world: &World) -> (Value, bool) {
    let seen = world.ask("Go.").await;
    assert_eq!(seen.reason(), &TerminationReason::NaturalEnd);
    let stored = world.messages().await;
    assert_paired(&stored);
    let (_, content, is_error) = results(&stored).remove(0);
    (serde_json::from_str(&content).unwrap_or(Value::String(content)), is_error)
}

// clause: D02
#[tokio::test]
async fn d02_arguments_that_break_the_schema_never_reach_the_tool_and_the_model_is_told_where() {
    let effects = Effects::default();
    let wrong = ScriptedAnswer::calls([call("a", "pay", json!({ "n": "one", "text": 5 }))]);
    let world = World::new([wrong, says("Sorry.")]).tool(effect("pay", &effects).done());
    let (content, is_error) = told(&world).await;
    assert!(is_error && effects.all().is_empty());
    assert_eq!(content["error"], Code::ToolInvalidArguments.as_str());
    let paths: Vec<&Value> =
        content["issues"].as_array().unwrap().iter().map(|issue| &issue["path"]).collect();
    assert_eq!(paths.len(), 2, "{content}");
    assert!(content.to_string().contains("text"), "{content}");
}

// clause: D02
#[tokio::test]
async fn d02_every_tool_error_ends_the_call_and_not_the_run() {
    type Make = fn(String) -> ToolError;
    let all: [Make; 6] = [
        ToolError::InvalidArguments,
        ToolError::ExecutionFailed,
        ToolError::Denied,
        ToolError::NotFound,
        ToolError::Internal,
        ToolError::Cancelled,
    ];
    for make in all {
        let error = make("why".to_owned());
        let failing = error.clone();
        let failing = tool("fail", move |_, _| {
            let error = failing.clone();
            async move { Err(error) }
        });
        let world = World::new([calls("a", "fail"), says("Well.")]).tool(failing.done());
        let (content, is_error) = told(&world).await;
        assert!(is_error);
        assert_eq!(content, json!({ "error": error.code().as_str(), "message": error.to_string() }));
        let ended = world.heard.events().into_iter().find_map(|event| match event {
            runyard_agent::run::AgentEvent::ToolEnded { outcome, .. } => Some(outcome),
            _ => None,
        });
        assert_eq!(ended, Some(Err(error)), "the variant is kept");
    }
}

// clause: D02
#[tokio::test]
async fn d02_an_error_that_a_tool_tells_is_a_result() {
    let world = World::new([calls("a", "look"), says("Well.")])
        .tool(tool("look", |_, _| async { Ok(ToolResult::error("nothing to see").into()) }).done());
    assert_eq!(told(&world).await, (json!("nothing to see"), true));
    assert!(world.heard.events().iter().any(|event| matches!(
        event,
        runyard_agent::run::AgentEvent::ToolEnded { outcome: Ok(ToolResult::Error { .. }), .. }
    )));
}

// clause: D02
#[tokio::test]
async fn d02_a_panic_a_missing_tool_and_a_passed_deadline_are_told_too() {
    #[expect(unreachable_code, reason = "it panics")]
    let panics = tool("panic", |_, _| async {
        panic!("at the disco");
        Ok(ToolResult::success(1).into())
    });
    let world = World::new([calls("a", "panic"), says("Well.")]).tool(panics.done());
    let (content, _) = told(&world).await;
    assert_eq!(content["error"], Code::ToolInternal.as_str());
    assert!(content["message"].as_str().unwrap().contains("at the disco"));

    let world = World::new([calls("a", "nothing"), says("Well.")]);
    assert_eq!(told(&world).await.0["error"], Code::ToolNotFound.as_str());
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_hangs_ends_at_its_deadline() {
    let world = World::new([calls("a", "hang"), says("Well.")])
        .tool(hangs("hang").deadline(Duration::from_secs(3)).done());
    let (content, _) = told(&world).await;
    assert_eq!(content["error"], Code::ToolCancelled.as_str());
    assert!(content["message"].as_str().unwrap().contains("3000 ms"));
}

#[tokio::test]
async fn a_tool_that_the_agent_does_not_offer_is_not_there() {
    let effects = Effects::default();
    let world = World::new([calls("a", "pay"), says("Well.")]).tool(effect("pay", &effects).done());
    let run = run_id();
    let mut parts = world.parts(run, Arc::new(runyard_agent::checkpoint::NoCheckpoint));
    parts.agent.tools = Arc::from([]);
    let begin = runyard_agent::run::Begin::default();
    let outcome = runyard_agent::run::run(parts, begin).await;
    assert_eq!(outcome.reason, TerminationReason::NaturalEnd);
    assert!(effects.all().is_empty());
}

#[tokio::test]
async fn a_denied_call_is_told_to_the_model_and_the_run_goes_on() {
    let effects = Effects::default();
    let world =
        World::new([calls("a", "pay"), says("A pity.")]).tool(effect("pay", &effects).done()).with(|bits| {
            bits.gate(|_, _| async { Ok(GateDecision::Deny("not on Sundays".into())) });
        });
    let (content, is_error) = told(&world).await;
    assert!(is_error && effects.all().is_empty());
    assert_eq!(content, json!({ "error": "tool.denied", "message": "denied: not on Sundays" }));
}

#[tokio::test]
async fn a_block_ends_the_run_with_all_its_calls_answered() {
    for order in [runyard_agent::CallOrder::OneByOne, runyard_agent::CallOrder::Parallel] {
        let effects = Effects::default();
        let three = ScriptedAnswer::calls(["a", "b", "c"].map(|id| call(id, "pay", json!({ "n": 1 }))));
        let mut world =
            World::new([three, says("never")]).tool(effect("pay", &effects).done()).with(|bits| {
                bits.gate(|call, _| {
                    let block = call.id == "b";
                    async move {
                        Ok(if block { GateDecision::Block("enough".into()) } else { GateDecision::Allow })
                    }
                });
            });
        world.order = order;
        let run = run_id();
        let seen = world.go(run, &["Go."], Vec::new()).await;
        assert_eq!(seen.reason(), &TerminationReason::Blocked { reason: "enough".into() });
        let stored = world.messages().await;
        assert_paired(&stored);
        assert_eq!(results(&stored).len(), 3);
        assert_eq!(world.record(run).await.end.unwrap().reason, "blocked");
        let made = effects.all().len();
        assert_eq!(made, if order == runyard_agent::CallOrder::OneByOne { 1 } else { 0 });
        assert_eq!(world.model.asked(), 1);
        // Whoever watches hears of each of them.
        let ends =
            seen.words().iter().filter(|word| word.ends_with(['0', '1', '2']) && word.contains("2.")).count();
        assert_eq!(ends, 3 + made, "{:?}", seen.words());
    }
}

#[tokio::test]
async fn a_gate_can_give_the_result_itself() {
    let effects = Effects::default();
    let world =
        World::new([calls("a", "pay"), says("Fine.")]).tool(effect("pay", &effects).done()).with(|bits| {
            bits.gate(|_, _| async { Ok(GateDecision::SetResult(ToolResult::success("a known answer"))) });
        });
    assert_eq!(told(&world).await, (json!("a known answer"), false));
    assert!(effects.all().is_empty());
}

#[tokio::test]
async fn a_gate_that_fails_lets_nothing_through() {
    let effects = Effects::default();
    let world = World::new([calls("a", "pay")]).tool(effect("pay", &effects).done()).with(|bits| {
        bits.gate(|_, _| async { Err("the policy is gone".into()) });
    });
    let seen = world.ask("Go.").await;
    assert!(matches!(seen.reason(), TerminationReason::Failed { code: Code::InternalError, .. }));
    assert!(effects.all().is_empty());
    assert_paired(&world.messages().await);
}

#[tokio::test]
async fn a_result_that_is_too_long_to_be_stored_is_cut_and_says_so() {
    let world =
        World::new([calls("a", "look"), says("Long.")]).tool(answers("look", "\u{1}".repeat(1024 * 1024)));
    let seen = world.ask("Go.").await;
    assert_eq!(seen.reason(), &TerminationReason::NaturalEnd);
    let (_, content, _) = results(&world.messages().await).remove(0);
    assert!(content.len() < 200 * 1024);
    assert!(content.ends_with("more bytes are left out]"));
}

#[tokio::test]
async fn what_a_tool_reports_is_told_while_it_runs() {
    let talks = tool("talk", |_, context| async move {
        for n in 0..3 {
            context.reporter.progress(f64::from(n), "on it");
            tokio::task::yield_now().await;
        }
        context.reporter.output("last words");
        Ok(ToolResult::success("ok").into())
    });
    let world = World::new([calls("a", "talk"), says("Fine.")]).tool(talks.done());
    let seen = world.ask("Go.").await;
    let reports = seen.words().iter().filter(|word| *word == "reported 2.0").count();
    assert_eq!(reports, 4);
}

#[tokio::test]
async fn what_a_tool_reports_at_once_is_told_or_counted_and_what_it_says_in_turn_is_told() {
    for in_turn in [false, true] {
        let talks = tool("talk", move |_, context| async move {
            for n in 0..1_000 {
                let report = Report::Output(n.to_string());
                match in_turn {
                    true => context.reporter.say(report).await,
                    false => context.reporter.report(report),
                }
            }
            Ok(ToolResult::success("ok").into())
        });
        let world = World::new([calls("a", "talk"), says("Fine.")]).tool(talks.done());
        let words = world.ask("Go.").await.words();
        let told = words.iter().filter(|word| *word == "reported 2.0").count();
        let lost: Vec<&str> = words.iter().filter_map(|word| word.strip_prefix("lost ")).collect();
        match in_turn {
            true => assert_eq!((told, lost.len()), (1_000, 0)),
            false => {
                assert_eq!(lost, [format!("{} 2.0", 1_000 - told)]);
                let place = |word: &str| words.iter().position(|found| found.starts_with(word)).unwrap();
                assert!(told > 0 && place("lost") < place("ok"), "{words:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_over_does_not_keep_a_slow_listener_from_the_others() {
    let talks = tool("talk", |args, context| async move {
        for n in 0..args["n"].as_u64().unwrap() {
            context.reporter.say(Report::Output(n.to_string())).await;
        }
        // It is over while what it said last is on its way.
        tokio::time::sleep(Duration::from_millis(1)).await;
        Ok(ToolResult::success("ok").into())
    });
    let both = ScriptedAnswer::calls([1, 200].map(|n| call(&n.to_string(), "talk", json!({ "n": n }))));
    let mut world = World::new([both, says("Fine.")]).tool(talks.done()).parallel();
    let (tells, mut told) = tokio::sync::mpsc::channel(1);
    world.observer = Some(Arc::new(tells));
    let heard = Arc::clone(&world.heard);
    tokio::spawn(async move {
        while let Some(event) = told.recv().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
            heard.observe(event).await;
        }
    });
    let asked = tokio::time::timeout(Duration::from_secs(3_600), world.ask("Go.")).await;
    asked.expect("the run ends");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let words: Vec<String> = world.heard.events().iter().filter_map(word).collect();
    for (place, count) in [("2.0", 1), ("2.1", 200)] {
        let of = |kind: &str| words.iter().filter(|word| **word == format!("{kind} {place}")).count();
        assert_eq!((of("made"), of("reported"), of("ok")), (1, count, 1), "{words:?}");
        let last = |kind: &str| words.iter().rposition(|word| *word == format!("{kind} {place}"));
        assert!(last("reported") < last("ok"), "{words:?}");
    }
}

#[tokio::test]
async fn calls_one_by_one_see_what_those_before_them_changed() {
    let found = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&found);
    let add = tool("add", move |_, context| {
        log.lock().unwrap().push(context.snapshot.get::<Tally>().copied().unwrap_or_default());
        async { Ok(ToolOutput::new(ToolResult::success(1), StateCommand::none().update::<Tally>(1))) }
    });
    let three = ScriptedAnswer::calls(["a", "b", "c"].map(|id| call(id, "add", json!({ "n": 1 }))));
    let mut world = World::new([three, says("Done.")]).tool(add.done());
    world.ask("Go.").await;
    assert_eq!(*found.lock().unwrap(), [0, 1, 2]);
    found.lock().unwrap().clear();
    let three = ScriptedAnswer::calls(["a", "b", "c"].map(|id| call(id, "add", json!({ "n": 1 }))));
    world.again([three, says("Done.")]);
    let world = world.parallel();
    world.ask("Go.").await;
    assert_eq!(*found.lock().unwrap(), [0, 0, 0], "side by side they see one revision");
}

#[tokio::test]
async fn calls_side_by_side_run_at_the_same_time_and_their_results_keep_their_order() {
    let barrier = Arc::new(Barrier::new(3));
    let meets = tool("meet", move |args, _| {
        let barrier = Arc::clone(&barrier);
        async move {
            barrier.wait().await;
            Ok(ToolResult::success(args["n"].clone()).into())
        }
    });
    let three = ScriptedAnswer::calls([1, 2, 3].map(|n| call(&n.to_string(), "meet", json!({ "n": n }))));
    let world = World::new([three, says("Met.")]).tool(meets.done()).parallel();
    let run = run_id();
    let seen = world.go(run, &["Go."], Vec::new()).await;
    assert_eq!(seen.reason(), &TerminationReason::NaturalEnd);
    let stored = world.messages().await;
    assert_paired(&stored);
    let ids: Vec<String> =
        results(&stored).into_iter().map(|(id, content, _)| format!("{id}={content}")).collect();
    assert_eq!(ids, ["1=1", "2=2", "3=3"]);
    assert_eq!(world.journal(run).await.iter().filter(|row| row.result.is_some()).count(), 3);
}

// clause: D16
#[tokio::test]
async fn d16_calls_side_by_side_that_meet_at_an_exclusive_key_are_told_which() {
    let label = tool("label", |args, _| async move {
        let command = StateCommand::none().update::<Label>(args["n"].to_string()).update::<Tally>(1);
        Ok(ToolOutput::new(ToolResult::success("labelled"), command))
    });
    let three = ScriptedAnswer::calls([1, 2, 3].map(|n| call(&n.to_string(), "label", json!({ "n": n }))));
    let last = Arc::new(Mutex::new((None, None)));
    let found = Arc::clone(&last);
    let world = World::new([three, says("Done.")]).tool(label.done()).parallel().with(|bits| {
        bits.hook(Phase::RunEnd, move |context| {
            *found.lock().unwrap() =
                (context.snapshot.get::<Label>().cloned(), context.snapshot.get::<Tally>().copied());
            async { Ok(StateCommand::none()) }
        });
    });
    let run = run_id();
    world.go(run, &["Go."], Vec::new()).await;
    let results = results(&world.messages().await);
    assert_eq!(results[0].1, "labelled");
    for (_, content, is_error) in &results[1..] {
        assert!(!is_error, "it was made, and gave what it gave");
        let conflict = Code::StateParallelMergeConflict.as_str();
        assert!(content.contains("test.label") && content.contains(conflict), "{content}");
        assert!(content.ends_with("\nlabelled"), "{content}");
    }
    let journal = world.journal(run).await;
    let ends = journal.iter().map(|row| serde_json::from_slice(row.result.as_ref().unwrap()).unwrap());
    assert!(ends.into_iter().all(|end: CallEnd| end.ok && end.code.is_none()));
    assert_eq!(*last.lock().unwrap(), (Some("1".to_owned()), Some(1)), "whole or not at all");
}

// clause: D16
#[tokio::test]
async fn d16_one_call_that_wants_the_impossible_does_not_spoil_the_others() {
    struct Nobody;
    impl runyard_agent::state::StateKey for Nobody {
        const KEY: &'static str = "test.nobody";
        type Value = u64;
        type Update = u64;
        fn apply(value: &mut u64, update: u64) {
            *value = update;
        }
    }
    let sets = tool("set", |args, context| async move {
        let command = match args["n"].as_u64() {
            Some(2) => StateCommand::none().update::<Nobody>(1),
            _ => StateCommand {
                batch: runyard_agent::state::MutationBatch::based_on(context.snapshot.revision())
                    .with::<Tally>(1),
                ..StateCommand::none()
            },
        };
        Ok(ToolOutput::new(ToolResult::success("set"), command))
    });
    let three = ScriptedAnswer::calls([1, 2, 3].map(|n| call(&n.to_string(), "set", json!({ "n": n }))));
    let total = Arc::new(AtomicU32::new(0));
    let found = Arc::clone(&total);
    let world = World::new([three, says("Done.")]).tool(sets.done()).parallel().with(|bits| {
        bits.hook(Phase::RunEnd, move |context| {
            found.store(
                context.snapshot.get::<Tally>().map_or(0, |n| u32::try_from(*n).unwrap()),
                Ordering::SeqCst,
            );
            async { Ok(StateCommand::none()) }
        });
    });
    world.ask("Go.").await;
    let results = results(&world.messages().await);
    let errors: Vec<bool> = results.iter().map(|(_, _, is_error)| *is_error).collect();
    assert_eq!(errors, [false, true, false]);
    assert!(results[1].1.contains("test.nobody"));
    assert_eq!(total.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn results_of_calls_side_by_side_are_kept_when_a_hook_fails_or_the_run_is_cancelled() {
    for cancel in [true, false] {
        let effects = Effects::default();
        let three = ScriptedAnswer::calls(["a", "b", "c"].map(|id| call(id, "pay", json!({ "n": 1 }))));
        let mut world = World::new([three]).tool(effect("pay", &effects).done()).parallel();
        let cancellation = world.cancellation.clone();
        world = world.with(|bits| {
            bits.hook(Phase::AfterToolExecute, move |_| {
                if cancel {
                    cancellation.cancel();
                }
                async { Err("no".into()) }
            });
        });
        let run = run_id();
        let seen = world.go(run, &["Go."], Vec::new()).await;
        assert!(matches!(seen.reason(), TerminationReason::Failed { .. } | TerminationReason::Cancelled));
        let stored = world.messages().await;
        assert_paired(&stored);
        let said: Vec<String> = results(&stored).into_iter().map(|(_, content, _)| content).collect();
        assert_eq!(said, ["done", "done", "done"], "they were made");
        assert_eq!(effects.all().len(), 3);
        assert!(world.journal(run).await.iter().all(|row| row.result.is_some()));
        assert_eq!(seen.words().iter().filter(|word| word.starts_with("ok ")).count(), 3);
    }
}

#[tokio::test]
async fn two_calls_of_one_id_are_two_calls() {
    let effects = Effects::default();
    let world = World::new([calls("a", "pay"), calls("a", "pay"), says("Paid.")])
        .tool(effect("pay", &effects).done());
    let run = run_id();
    let seen = world.go(run, &["Go."], Vec::new()).await;
    assert_eq!(seen.reason(), &TerminationReason::NaturalEnd);
    assert_eq!(effects.all(), [format!("{run}:2.0"), format!("{run}:4.0")]);
    assert_eq!(world.journal(run).await.len(), 2);
    assert_paired(&world.messages().await);
}

#[tokio::test]
async fn what_a_hook_asks_of_the_next_question_is_done() {
    use runyard_agent::phase::{
        AddContextMessage, ContextMessage, ExcludeTool, InferenceOverride, Lifetime, Place,
        SetInferenceOverride,
    };
    use runyard_llm::inference::Message;
    let world = World::new([says("Fine.")]).tool(answers("look", 1)).tool(answers("pay", 1)).with(|bits| {
        bits.hook(Phase::RunStart, |_| async {
            let note = |text: &str, place| ContextMessage {
                name: None,
                message: Message::user(text),
                place,
                lifetime: Lifetime::Ephemeral,
            };
            Ok(StateCommand::none()
                .schedule::<AddContextMessage>(&note(crate::support::SECRET, Place::Before))?
                .schedule::<AddContextMessage>(&note("after", Place::After))?
                .schedule::<ExcludeTool>(&"pay".to_owned())?
                .schedule::<SetInferenceOverride>(&InferenceOverride {
                    output_tokens_max: Some(5),
                    ..InferenceOverride::default()
                })?)
        });
    });
    world.ask("Go.").await;
    let request = world.model.requests().remove(0);
    let said: Vec<String> = request.messages.iter().map(|message| message.said()).collect();
    assert_eq!(said.len(), 3);
    assert!(runyard_redact::holds_placeholder(&said[0]) && !said[0].contains(crate::support::SECRET));
    assert_eq!(said[1..], ["Go.", "after"]);
    assert_eq!(request.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["look"]);
    assert_eq!(request.output_tokens_max, Some(5));
}

// clause: D02
#[tokio::test(start_paused = true)]
async fn d02_a_tool_that_the_question_did_not_offer_is_not_found_also_after_a_crash() {
    use runyard_agent::phase::{ExcludeTool, IncludeOnlyTools};
    for include_only in [false, true] {
        for dies in [false, true] {
            let effects = Effects::default();
            let two = ScriptedAnswer::calls(["look", "pay"].map(|tool| call(tool, tool, json!({ "n": 1 }))));
            let look = tool("look", move |_, _| async move {
                if dies {
                    std::future::pending::<()>().await;
                }
                Ok(ToolResult::success("blue").into())
            });
            let mut world = World::new([two, calls("later", "pay"), says("Fine.")])
                .tool(look.idempotent().done())
                .tool(effect("pay", &effects).done())
                .with(|bits| {
                    bits.hook(Phase::RunStart, move |_| async move {
                        let none = StateCommand::none();
                        Ok(match include_only {
                            true => none.schedule::<IncludeOnlyTools>(&vec!["look".to_owned()])?,
                            false => none.schedule::<ExcludeTool>(&"pay".to_owned())?,
                        })
                    });
                });
            let run = run_id();
            if dies {
                let died =
                    tokio::time::timeout(Duration::from_secs(1), world.go(run, &["Go."], vec![])).await;
                assert!(died.is_err());
                world.tools[0] = answers("look", "blue");
                world.again([calls("later", "pay"), says("Fine.")]);
                let seen = world.go(run, &[], Vec::new()).await;
                // The call of `look` was under way.
                let again =
                    seen.outcome.waiting.iter().map(|(_, ticket)| Decision::resume(ticket.id.clone()));
                let again = again.collect();
                world.again([calls("later", "pay"), says("Fine.")]);
                world.go(run, &[], again).await;
            } else {
                world.go(run, &["Go."], Vec::new()).await;
            }
            let results = results(&world.messages().await);
            let said: Vec<&str> = results.iter().map(|(_, content, _)| content.as_str()).collect();
            assert_eq!(said[0], "blue");
            assert!(said[1].contains(Code::ToolNotFound.as_str()), "{said:?}");
            assert_eq!(said[2], "done", "the next question offers it again");
            assert_eq!(effects.all().len(), 1);
        }
    }
}

// clause: D16
#[tokio::test]
async fn d16_an_effect_of_a_tool_goes_out_after_its_call_and_knows_which() {
    for order in [runyard_agent::CallOrder::OneByOne, runyard_agent::CallOrder::Parallel] {
        let notes = tool("note", |_, _| async {
            let command = StateCommand::none().update::<Tally>(1).emit::<Noted>(());
            Ok(ToolOutput::new(ToolResult::success("noted"), command))
        });
        let three = ScriptedAnswer::calls(["a", "b", "c"].map(|id| call(id, "note", json!({ "n": 1 }))));
        let mut world = World::new([three, says("Done.")]).tool(notes.done());
        world.order = order;
        world.ask("Go.").await;
        let expected = ["a", "b", "c"].map(|id| format!("after_tool_execute {id}"));
        assert_eq!(*world.bits.noted.0.lock().unwrap(), expected, "{order:?}");
    }
}

#[tokio::test]
async fn calls_that_a_model_gave_one_id_are_made_each_and_have_each_their_result() {
    let effects = Effects::default();
    let twice = [call("a", "pay", json!({ "n": 1 })), call("a", "pay", json!({ "n": 2 }))];
    let world =
        World::new([ScriptedAnswer::calls(twice), says("Done.")]).tool(effect("pay", &effects).done());
    let run = run_id();
    let seen = world.go(run, &["Pay twice."], Vec::new()).await;
    assert_eq!(seen.reason(), &TerminationReason::NaturalEnd);
    assert_eq!(effects.all(), [format!("{run}:2.0"), format!("{run}:2.1")]);
    assert_paired(&world.messages().await);
}
