//! What is said, by whom, and what of it is stored.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use runyard_agent::phase::{GateDecision, Phase, StateCommand, TerminationReason};
use runyard_agent::run::{AgentEvent, Decision, Limits, Observer, RunStatus};
use runyard_domain::Code;
use runyard_llm::inference::{
    AnswerFormat, InferenceExecutionError, InferenceRequest, InterruptCause, Message, Model, ModelStream,
    Opens, Refusal, Role, ScriptedAnswer, ScriptedCall, ScriptedError, ScriptedFault, ScriptedUsage, Step,
    StopReason, Update,
};
use runyard_llm::usage::Usage;
use serde_json::json;

use crate::support::parts::{Bad, Label, answers, tool};
use crate::support::{Seen, World, assert_paired, call, calls, run_id, says, shape};
use runyard_agent::tool::{ToolOutput, ToolResult};

#[tokio::test]
async fn a_run_calls_and_answers_and_all_of_it_is_stored() {
    let world = World::new([calls("a", "look"), says("It is blue.")]).tool(answers("look", "blue"));
    let run = run_id();
    let seen = world.go(run, &["What colour?"], Vec::new()).await;
    assert_eq!(seen.reason(), &TerminationReason::NaturalEnd);
    assert_eq!(seen.outcome.text(), "It is blue.");
    assert_eq!(seen.outcome.rounds, 2);
    assert_eq!(
        seen.words(),
        ["started", "step 1", "answered ", "made 2.0", "ok 2.0", "step 2", "answered It is blue.", "ended"]
    );
    let stored = world.messages().await;
    assert_eq!(shape(&stored), ["user: What colour?", "model: look(a)", "a: blue", "model: It is blue."]);
    let record = world.record(run).await;
    assert_eq!((record.status, record.rounds, record.agent_id.as_str()), (RunStatus::Done, 2, "agent"));
    assert_eq!(record.end.unwrap().reason, "natural_end");
    assert!(world.is_free().await);
    // The next run reads all of it.
    let mut world = world;
    world.again([says("Sure.")]);
    world.ask("Sure?").await;
    let read = world.model.requests().remove(0).messages;
    assert_eq!(read.len(), 5);
    assert_eq!(read[..4].iter().map(|m| Message::clone(m)).collect::<Vec<_>>(), stored);
}

#[tokio::test]
async fn a_run_without_a_store_does_the_same_and_leaves_nothing() {
    let world = World::new([calls("a", "look"), says("Blue.")]).tool(answers("look", "blue"));
    let seen = world.ask_unstored("What colour?").await;
    assert_eq!(seen.reason(), &TerminationReason::NaturalEnd);
    assert_eq!(seen.outcome.text(), "Blue.");
    let read = &world.model.requests()[1].messages;
    let read: Vec<Message> = read.iter().map(|message| Message::clone(message)).collect();
    assert_eq!(shape(&read), ["user: What colour?", "model: look(a)", "a: blue"]);
}

#[tokio::test]
async fn all_nine_phases_come_in_their_order() {
    let order = Arc::new(std::sync::Mutex::new(Vec::new()));
    let world = World::new([calls("a", "look"), says("Blue.")]).tool(answers("look", "blue")).with(|bits| {
        for phase in Phase::ALL {
            let order = Arc::clone(&order);
            bits.hook(phase, move |context| {
                order.lock().unwrap().push((context.at.step, phase.as_str()));
                async { Ok(StateCommand::none()) }
            });
        }
    });
    world.ask("What colour?").await;
    assert_eq!(
        *order.lock().unwrap(),
        [
            (0, "run_start"),
            (1, "step_start"),
            (1, "before_inference"),
            (1, "after_inference"),
            (1, "tool_gate"),
            (1, "before_tool_execute"),
            (1, "after_tool_execute"),
            (1, "step_end"),
            (2, "step_start"),
            (2, "before_inference"),
            (2, "after_inference"),
            (2, "step_end"),
            (2, "run_end"),
        ]
    );
}

// clause: D10
#[tokio::test(start_paused = true)]
async fn a_partial_answer_is_stored_as_clients_saw_it() {
    let breaks = |text: &str| {
        ScriptedAnswer::steps([
            Step::Text(text.to_owned()),
            Step::Fault(ScriptedFault::Interrupted(InterruptCause::ConnectionReset)),
        ])
    };
    let mut world = World::new([breaks("One, "), breaks("two, "), breaks("three"), says("never")]);
    let run = run_id();
    let seen = world.go(run, &["Count."], Vec::new()).await;
    let TerminationReason::Failed { code, .. } = seen.reason() else { panic!("{:?}", seen.reason()) };
    assert_eq!(*code, Code::InferenceStreamInterrupted);
    let stored = world.messages().await;
    assert_eq!(stored.last().unwrap().said(), seen.text());
    assert_eq!(seen.text(), "One, two, three");
    assert!(world.is_free().await);
    // The next run goes on from there.
    world.again([says("Four.")]);
    assert_eq!(world.ask("And?").await.reason(), &TerminationReason::NaturalEnd);
}

// clause: D10
#[tokio::test(start_paused = true)]
async fn d10_clients_hear_that_a_call_is_not_made_and_that_an_answer_is_begun_anew() {
    let broken = |steps: Vec<Step>| {
        let fault = Step::Fault(ScriptedFault::Interrupted(InterruptCause::ConnectionReset));
        ScriptedAnswer::steps(steps.into_iter().chain([fault]))
    };
    let begun = Step::CallStarted { index: 0, id: "a".into(), name: "look".into() };
    let cut = broken(vec![Step::Text("Now.".into()), begun]);
    let world = World::new([cut, says(" Then.")]).tool(answers("look", "blue"));
    let seen = world.ask("Go.").await;
    let cancelled = Update::ToolCallCancelled { id: "a".into(), name: "look".into() };
    let told = |seen: &Seen, wanted: &Update| {
        seen.events.iter().any(|event| matches!(event, AgentEvent::Inference(told) if told == wanted))
    };
    assert!(told(&seen, &cancelled) && !told(&seen, &Update::Reset), "{:#?}", seen.events);
    assert_eq!((seen.text(), seen.outcome.text()), ("Now. Then.".to_owned(), "Now. Then.".to_owned()));
    assert!(!seen.words().iter().any(|word| word.starts_with("made")));

    // What has a form is not gone on with.
    let mut world = World::new([broken(vec![Step::Text("{ \"half\": ".into())]), says("{}")]);
    let schema = serde_json::json!({ "type": "object" });
    world.settings.format = Some(AnswerFormat { name: "f".into(), schema });
    let seen = world.ask("Go.").await;
    assert!(told(&seen, &Update::Reset) && !told(&seen, &cancelled), "{:#?}", seen.events);
    assert_eq!((seen.text(), seen.outcome.text()), ("{}".to_owned(), "{}".to_owned()));
    assert_eq!(shape(&world.messages().await), ["user: Go.", "model: {}"]);
}

#[tokio::test(start_paused = true)]
async fn a_permanent_error_at_the_first_question_loses_neither_the_words_nor_the_record() {
    for error in [
        ScriptedError::Unauthorized { message: "no".into() },
        ScriptedError::InvalidRequest { message: "no".into() },
        ScriptedError::ContentFiltered { message: "no".into() },
    ] {
        let code = InferenceExecutionError::from(error.clone()).code();
        let mut ends = None;
        let world =
            World::new([ScriptedAnswer::failing(error)]).with(|bits| ends = Some(bits.count(Phase::RunEnd)));
        let run = run_id();
        let seen = world.go(run, &["Hello."], Vec::new()).await;
        assert_eq!(ends.unwrap().load(Ordering::SeqCst), 1);
        assert!(matches!(seen.reason(), TerminationReason::Failed { code: c, .. } if *c == code));
        assert_eq!(shape(&world.messages().await), ["user: Hello."]);
        assert_eq!(world.record(run).await.end.unwrap().failed_with(), Some(code));
        assert!(world.is_free().await);
    }
}

#[tokio::test]
async fn a_failure_before_the_first_question_loses_no_words_either() {
    let world = World::new([]).with(|bits| {
        bits.hook(Phase::RunStart, |_| async { Err("not today".into()) });
    });
    let seen = world.ask("Hello.").await;
    let TerminationReason::Failed { code: Code::InternalError, message } = seen.reason() else {
        panic!("{:?}", seen.reason())
    };
    assert!(message.contains("bits") && message.contains("not today"), "{message}");
    assert_eq!(shape(&world.messages().await), ["user: Hello."]);
}

#[tokio::test]
async fn an_answer_that_was_cut_is_gone_on_with_so_often() {
    let cut =
        |text: &str| ScriptedAnswer::steps([Step::Text(text.to_owned()), Step::Stop(StopReason::MaxTokens)]);
    let world = World::new([cut("One, "), cut("two, "), says("three.")]);
    let seen = world.ask("Count.").await;
    assert_eq!(seen.reason(), &TerminationReason::NaturalEnd);
    assert_eq!(seen.text(), "One, two, three.");
    let stored = world.messages().await;
    let said: String = stored
        .iter()
        .filter(|m| m.role == runyard_llm::inference::Role::Assistant)
        .map(Message::said)
        .collect();
    assert_eq!(said, "One, two, three.");
    assert_eq!(seen.outcome.text(), "One, two, three.");
    let asked = world.model.requests().pop().unwrap().messages.pop().unwrap().said();
    // A call that was cut is as lost as one that broke off, and asked for in the same words.
    let again = "make any tool call again that you were about to make";
    assert!(asked.contains(again) && runyard_llm::inference::CONTINUE.contains(again), "{asked}");

    let world = World::new([cut("1"), cut("2"), cut("3"), says("never")]);
    let seen = world.ask("Count.").await;
    let TerminationReason::Stopped { code, .. } = seen.reason() else { panic!("{:?}", seen.reason()) };
    assert_eq!(code, "output_truncated");
    assert_eq!(world.model.asked(), 3);
    assert_eq!(seen.outcome.text(), "123");
}

#[tokio::test]
async fn an_answer_in_a_form_that_was_cut_is_asked_for_anew() {
    let cut =
        |text: &str| ScriptedAnswer::steps([Step::Text(text.to_owned()), Step::Stop(StopReason::MaxTokens)]);
    let mut world = World::new([cut(r#"{"colour": "bl"#), says(r#"{"colour": "blue"}"#)]);
    world.settings.format =
        Some(AnswerFormat { name: "colour".into(), schema: serde_json::json!({ "type": "object" }) });
    let seen = world.ask("What colour?").await;
    assert_eq!(seen.reason(), &TerminationReason::NaturalEnd);
    assert_eq!(seen.outcome.text(), r#"{"colour": "blue"}"#);
    let asked = world.model.requests().pop().unwrap().messages.pop().unwrap().said();
    assert!(asked.contains("from its beginning"), "{asked}");
    // What clients saw is stored, also of the half that is of no use.
    let stored = world.messages().await;
    let said = stored.iter().filter(|message| message.role == Role::Assistant).map(Message::said);
    assert_eq!(said.collect::<String>(), seen.text());
}

#[tokio::test]
async fn a_run_that_a_limit_ends_after_a_cut_answer_leaves_no_word_that_nobody_reads() {
    let cut = ScriptedAnswer::steps([Step::Text("One, ".to_owned()), Step::Stop(StopReason::MaxTokens)]);
    let world = World::new([cut]).limits(Limits { rounds_max: 1, ..Limits::default() });
    let seen = world.ask("Count.").await;
    assert!(matches!(seen.reason(), TerminationReason::Stopped { code, .. } if code == "max_rounds"));
    assert_eq!(shape(&world.messages().await), ["user: Count.", "model: One, "]);
}

#[tokio::test]
async fn each_cut_answer_has_its_own_continuations() {
    let cut = || ScriptedAnswer::steps([Step::Text("x".to_owned()), Step::Stop(StopReason::MaxTokens)]);
    let world = World::new([cut(), cut(), calls("a", "look"), cut(), cut(), says("done")])
        .tool(answers("look", "blue"));
    assert_eq!(world.ask("Go.").await.reason(), &TerminationReason::NaturalEnd);
}

#[tokio::test]
async fn an_answer_that_says_nothing_ends_the_run_and_is_not_stored() {
    let nothing = ScriptedAnswer::steps([Step::Stop(StopReason::EndTurn)]);
    let world = World::new([calls("a", "look"), nothing]).tool(answers("look", "blue"));
    let seen = world.ask("Look.").await;
    assert_eq!(seen.reason(), &TerminationReason::NaturalEnd);
    assert_eq!(shape(&world.messages().await), ["user: Look.", "model: look(a)", "a: blue"]);
}

#[tokio::test]
async fn what_is_said_to_a_run_is_read_at_the_next_question_or_after_the_last() {
    let world = World::new([calls("a", "wait"), says("Blue."), says("Green, then.")]);
    let inbox = Arc::clone(&world.inbox);
    let world = world.tool(
        tool("wait", move |_, _| {
            inbox.say(Message::user("Hurry.")).unwrap();
            async { Ok(ToolResult::success("ok").into()) }
        })
        .done(),
    );
    let inbox = Arc::clone(&world.inbox);
    let world = world.with(|bits| {
        bits.hook(Phase::StepEnd, move |context| {
            // Words that come when the model has said its last.
            if context.at.step == 2 {
                inbox.say(Message::user("I meant green.")).unwrap();
            }
            async { Ok(StateCommand::none()) }
        });
    });
    let seen = world.ask("What colour?").await;
    assert_eq!(seen.reason(), &TerminationReason::NaturalEnd);
    assert_eq!(
        shape(&world.messages().await),
        [
            "user: What colour?",
            "model: wait(a)",
            "a: ok",
            "user: Hurry.",
            "model: Blue.",
            "user: I meant green.",
            "model: Green, then.",
        ]
    );
    // Nobody reads it any more, and whoever says something hears of that.
    assert_eq!(world.inbox.say(Message::user("Thanks.")), Err(Message::user("Thanks.")));
}

#[tokio::test]
async fn words_that_a_failing_run_took_stay_in_the_thread() {
    let world = World::new([calls("a", "wait")]);
    let inbox = Arc::clone(&world.inbox);
    let world = world
        .tool(
            tool("wait", move |_, _| {
                inbox.say(Message::user("Hurry.")).unwrap();
                async { Ok(ToolResult::success("ok").into()) }
            })
            .done(),
        )
        .limits(Limits { rounds_max: 1, ..Limits::default() });
    let seen = world.ask("Go.").await;
    assert!(matches!(seen.reason(), TerminationReason::Stopped { code, .. } if code == "max_rounds"));
    let stored = world.messages().await;
    assert_paired(&stored);
    assert_eq!(stored.last().unwrap(), &Message::user("Hurry."));
}

#[tokio::test]
async fn too_many_words_are_given_back() {
    let inbox = runyard_agent::run::Inbox::default();
    for _ in 0..runyard_agent::run::INBOX_MAX {
        inbox.say(Message::user("x")).unwrap();
    }
    assert!(inbox.say(Message::user("x")).is_err());
}

#[tokio::test]
async fn a_word_that_no_store_takes_is_given_back_and_the_run_goes_on() {
    let world = World::new([says("Hi."), says("never")]);
    let long = Message::user("x".repeat(runyard_store::MESSAGE_BYTES_MAX));
    assert_eq!(world.inbox.say(long.clone()), Err(long));
    let longest = Message::user("x".repeat(runyard_store::MESSAGE_BYTES_MAX - 1_024));
    world.inbox.say(longest.clone()).unwrap();
    assert_eq!(world.ask("Hello.").await.reason(), &TerminationReason::NaturalEnd);
    assert_eq!(world.messages().await[1], longest);
}

#[tokio::test]
async fn words_that_together_are_more_than_can_be_stored_are_given_back_and_the_run_goes_on() {
    let word = |letter: &str| Message::user(letter.repeat(600 * 1024));
    let two = |id: &str| {
        ScriptedAnswer::calls([1, 2].map(|n| call(&format!("{id}{n}"), "wait", json!({ "n": n }))))
    };
    let world = World::new([two("a"), two("b"), says("Done.")]);
    let (inbox, taken) = (Arc::clone(&world.inbox), Arc::new(std::sync::Mutex::new(Vec::new())));
    let heard = Arc::clone(&taken);
    let wait = tool("wait", move |_, context| {
        // The first one waits until both calls are over, whatever became of it meanwhile.
        let said = inbox.say(word(&context.call_id[..1])).is_ok();
        heard.lock().unwrap().push((context.call_id, said));
        async { Ok(ToolResult::success("ok").into()) }
    });
    let world = world.tool(wait.done()).with(|bits| bits.gate(|_, _| async { Ok(GateDecision::Allow) }));
    let seen = world.ask("Go.").await;
    assert_eq!(seen.reason(), &TerminationReason::NaturalEnd);
    let expected = [("a1", true), ("a2", false), ("b1", true), ("b2", false)];
    assert_eq!(*taken.lock().unwrap(), expected.map(|(id, said)| (id.to_owned(), said)));
    let mut stored = world.messages().await;
    stored.retain(|message| message.role == Role::User);
    assert!(stored == [Message::user("Go."), word("a"), word("b")]);
}

#[tokio::test]
async fn words_that_a_waiting_run_cannot_keep_are_given_back() {
    let word = |letter: &str| Message::user(letter.repeat(600 * 1024));
    let mut world = World::new([calls("a", "ask")]).tool(crate::suspension::asks("ask"));
    let run = run_id();
    world.go(run, &["Go."], Vec::new()).await;
    for letter in ["a", "b"] {
        world.again([]);
        world.inbox.say(word(letter)).unwrap();
        let seen = world.go(run, &[], Vec::new()).await;
        assert_eq!(seen.reason(), &TerminationReason::Suspended, "{letter}");
    }
    assert!(world.inbox.unread() == [word("b")]);
    world.again([says("Done.")]);
    world.inbox.say(word("b")).unwrap();
    let seen = world.go(run, &[], vec![Decision::answer("q-a", "red")]).await;
    assert_eq!(seen.reason(), &TerminationReason::NaturalEnd);
    let mut stored = world.messages().await;
    stored.retain(|message| message.role == Role::User);
    assert!(stored == [Message::user("Go."), word("a"), word("b")]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_says_nothing_does_not_give_an_earlier_ones_answer_as_its_own() {
    let refused = ScriptedError::InvalidRequest { message: "no".into() };
    let nothing = ScriptedAnswer::steps([Step::Stop(StopReason::EndTurn)]);
    for (second, cancelled) in
        [(nothing, false), (ScriptedAnswer::failing(refused), false), (says("never"), true)]
    {
        let mut world = World::new([says("The first answer.")]);
        assert_eq!(world.ask("One?").await.outcome.text(), "The first answer.");
        world.again([second]);
        if cancelled {
            world.cancellation.cancel();
        }
        let outcome = world.ask("Two?").await.outcome;
        assert_eq!((outcome.text().as_str(), &outcome.message), ("", &None), "{:?}", outcome.reason);
        assert_eq!(world.messages().await.len(), 3);
    }
}

#[tokio::test]
async fn a_run_that_goes_on_gives_what_it_said_before_it_waited_and_nothing_of_an_earlier_one() {
    let mut world = World::new([says("The first answer.")]).tool(crate::suspension::asks("ask"));
    world.ask("One?").await;
    for words in ["I ask.", ""] {
        let call =
            ScriptedCall { id: "a".into(), name: "ask".into(), arguments: serde_json::json!({ "n": 1 }) };
        world.again([ScriptedAnswer::steps([Step::Text(words.into()), Step::Call(call)])]);
        let run = run_id();
        world.go(run, &["Two?"], Vec::new()).await;
        world.again([]);
        world.cancellation.cancel();
        let outcome = world.go(run, &[], Vec::new()).await.outcome;
        assert_eq!((outcome.text().as_str(), outcome.reason), (words, TerminationReason::Cancelled));
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_run_said_before_a_word_into_it_is_not_lost_with_its_process() {
    let mut world = World::new([says("The first answer.")]);
    world.ask("One?").await;
    let call = ScriptedCall { id: "a".into(), name: "look".into(), arguments: serde_json::json!({ "n": 1 }) };
    let found = ScriptedAnswer::steps([Step::Text("Found it.".into()), Step::Call(call)]);
    world.again([found, ScriptedAnswer { opens: Opens::Never, ..ScriptedAnswer::default() }]);
    let inbox = Arc::clone(&world.inbox);
    let look = tool("look", move |_, _| {
        assert!(inbox.say(Message::user("And that one?")).is_ok());
        async { Ok(ToolResult::success("blue").into()) }
    });
    world = world.tool(look.done());
    let run = run_id();
    let died = tokio::time::timeout(Duration::from_secs(1), world.go(run, &["Two?"], Vec::new())).await;
    assert!(died.is_err(), "it ended instead");
    assert_eq!(shape(&world.messages().await).last().unwrap(), "user: And that one?");
    world.again([]);
    world.cancellation.cancel();
    let outcome = world.go(run, &[], Vec::new()).await.outcome;
    assert_eq!((outcome.text().as_str(), outcome.reason), ("Found it.", TerminationReason::Cancelled));
}

#[tokio::test(start_paused = true)]
async fn what_it_cost_is_summed_over_answers_attempts_and_failures() {
    let usage = |input_tokens, output_tokens| {
        Step::Usage(ScriptedUsage { input_tokens, output_tokens, ..ScriptedUsage::default() })
    };
    let first = ScriptedAnswer::steps([
        usage(10, 1),
        Step::Call(runyard_llm::inference::ScriptedCall {
            id: "a".into(),
            name: "look".into(),
            arguments: serde_json::json!({ "n": 1 }),
        }),
        Step::Stop(StopReason::ToolUse),
    ]);
    let breaks = ScriptedAnswer::steps([
        usage(20, 2),
        Step::Text("Half".into()),
        Step::Fault(ScriptedFault::Failed(ScriptedError::ContentFiltered { message: "no".into() })),
    ]);
    let world = World::new([first, breaks]).tool(answers("look", "blue"));
    let run = run_id();
    let seen = world.go(run, &["Go."], Vec::new()).await;
    let expected = Usage { input_tokens: 30, output_tokens: 3, ..Usage::default() };
    assert_eq!(seen.outcome.usage, expected);
    assert_eq!(Usage::from(world.record(run).await.usage), expected);
    assert_eq!(world.messages().await.last().unwrap().said(), "Half");
}

struct Panics;

#[async_trait]
impl Observer for Panics {
    async fn observe(&self, _event: AgentEvent) {
        panic!("no listener");
    }
}

#[async_trait]
impl Model for Panics {
    fn name(&self) -> &str {
        "panics"
    }

    async fn open(&self, _: &InferenceRequest) -> Result<ModelStream, Refusal> {
        panic!("no model");
    }
}

#[tokio::test]
async fn a_listener_that_panics_changes_nothing() {
    let mut world = World::new([says("Hello.")]);
    world.observer = Some(Arc::new(Panics));
    let run = run_id();
    let outcome = world.go(run, &["Hi."], Vec::new()).await.outcome;
    assert_eq!(outcome.reason, TerminationReason::NaturalEnd);
    assert_eq!(world.record(run).await.status, RunStatus::Done);
}

#[tokio::test]
async fn a_model_that_panics_ends_the_run_in_order() {
    let mut world = World::new([]);
    world.instead = Some(Arc::new(Panics));
    let run = run_id();
    let seen = world.go(run, &["Hi."], Vec::new()).await;
    let TerminationReason::Failed { code: Code::InternalError, message } = seen.reason() else {
        panic!("{:?}", seen.reason())
    };
    assert!(message.contains("no model"), "{message}");
    assert_eq!(world.record(run).await.status, RunStatus::Done);
    assert!(world.is_free().await);
}

#[tokio::test]
async fn a_thread_keeps_its_own_state_and_a_run_has_only_its_own() {
    use crate::support::parts::{Label, Memory, Tally};
    let found = Arc::new(std::sync::Mutex::new(Vec::new()));
    let log = Arc::clone(&found);
    let mut world = World::new([says("1")]).with(|bits| {
        bits.hook(Phase::RunStart, move |context| {
            let memory = context.snapshot.get::<Memory>().and_then(|memory| memory.get("runs").copied());
            log.lock().unwrap().push((memory, context.snapshot.get::<Tally>().copied()));
            let runs = memory.unwrap_or_default() + 1;
            let command = StateCommand::none()
                .update::<Memory>(("runs".to_owned(), runs))
                .update::<Tally>(runs.into())
                .update::<Label>("x".to_owned());
            async move { Ok(command) }
        });
    });
    for _ in 0..3 {
        world.again([says("1")]);
        world.ask("Hi.").await;
    }
    assert_eq!(*found.lock().unwrap(), [(None, None), (Some(1), None), (Some(2), None)]);
}

#[tokio::test]
async fn calls_that_an_earlier_run_left_open_are_closed_before_anything_is_said() {
    use runyard_agent::checkpoint::{NoCheckpoint, Opened};
    use runyard_agent::run::{Begin, run};
    use runyard_llm::inference::{Part, Role};
    let effects = crate::support::parts::Effects::default();
    let world = World::new([says("Hello.")]).tool(crate::support::parts::effect("pay", &effects).done());
    let left = Message {
        role: Role::Assistant,
        content: vec![Part::ToolCall(crate::support::call("a", "pay", serde_json::json!({ "n": 1 })))],
    };
    let messages = [Message::user("Pay."), left].map(Arc::new).to_vec();
    let opened = Opened { messages, ..Opened::default() };
    let begin = Begin { opened, input: vec![Message::user("Never mind.")], ..Begin::default() };
    let outcome = run(world.parts(run_id(), Arc::new(NoCheckpoint)), begin).await;
    assert_eq!(outcome.reason, TerminationReason::NaturalEnd);
    let read: Vec<Message> =
        world.model.requests()[0].messages.iter().map(|message| Message::clone(message)).collect();
    assert_paired(&read);
    assert_eq!(read.last(), Some(&Message::user("Never mind.")));
    assert!(effects.all().is_empty(), "and they are not made");
}

// clause: D16
#[tokio::test]
async fn d16_effects_and_scheduled_actions_that_fail_are_told_wherever_they_come_from() {
    use runyard_agent::phase::{ExcludeTool, Scheduled, ScheduledAction};
    let unreadable = || Scheduled {
        key: ExcludeTool::KEY.to_owned(),
        phase: ExcludeTool::PHASE,
        payload: serde_json::json!(7),
    };
    let tells = tool("tell", |_, _| async {
        let command = StateCommand::none().emit::<Bad>(Some("of a tool"));
        Ok(ToolOutput::new(ToolResult::success("told"), command))
    });
    let world = World::new([calls("a", "tell"), says("Done.")]).tool(tells.done()).with(|bits| {
        bits.hook(Phase::RunStart, move |_| {
            let command = StateCommand { actions: vec![unreadable()], ..StateCommand::none() };
            async { Ok(command.emit::<Bad>(Some("of a hook"))) }
        });
        // A phase that fails later has still sent its effects.
        bits.hook(Phase::RunEnd, |_| async { Ok(StateCommand::none().emit::<Bad>(Some("of the end"))) });
        bits.hook(Phase::RunEnd, |_| async { Ok(StateCommand::none().update::<Label>("one".to_owned())) });
        bits.hook(Phase::RunEnd, |context| {
            let again = context.snapshot.get::<Label>().is_some();
            async move {
                match again {
                    true => Err("it went wrong".into()),
                    false => Ok(StateCommand::none().update::<Label>("two".to_owned())),
                }
            }
        });
    });
    let seen = world.ask("Go.").await;
    assert!(matches!(seen.reason(), TerminationReason::Failed { code: Code::InternalError, .. }));
    let told = seen.words().into_iter().filter(|word| word.contains("failed")).collect::<Vec<_>>();
    let unread = "action runtime.exclude_tool failed: invalid type: integer `7`, expected a string";
    let effect = |words| format!("effect test.bad failed: {words}");
    assert_eq!(told, [effect("of a hook"), unread.to_owned(), effect("of a tool"), effect("of the end")]);
}
