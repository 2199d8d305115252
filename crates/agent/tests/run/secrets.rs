//! A secret that somebody says reaches neither the store nor the next question.

use std::sync::{Arc, Mutex};

use runyard_agent::phase::{GateDecision, Phase, StateCommand, TerminationReason};
use runyard_agent::run::Decision;
use runyard_agent::tool::{SuspendTicket, ToolResult};
use runyard_llm::inference::{Message, Part, Reasoning, ScriptedAnswer, ScriptedCall, Step, StopReason};
use runyard_redact::holds_placeholder;
use serde_json::json;

use crate::support::parts::{Effects, Memory, answers, effect, tool};
use crate::support::{SECRET, World, assert_paired, call, results, run_id, says};

fn speaks_of(secret: &str) -> ScriptedAnswer {
    ScriptedAnswer::steps([
        Step::Reasoning(format!("I think of {secret}")),
        Step::Text(format!("Using {secret}.")),
        Step::Call(ScriptedCall {
            id: "a".into(),
            name: "login".into(),
            arguments: json!({ "n": 1, "text": format!("-p {secret}") }),
        }),
        Step::Stop(StopReason::ToolUse),
    ])
}

#[tokio::test]
async fn whoever_says_it() {
    let used = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&used);
    let login = tool("login", move |args, _| {
        log.lock().unwrap().push(args["text"].as_str().unwrap().to_owned());
        async { Ok(ToolResult::success(json!({ "echo": SECRET })).into()) }
    });
    let world = World::new([speaks_of(SECRET), says(&format!("Done with {SECRET}.")), says("Bye.")])
        .tool(login.done())
        .with(|bits| {
            bits.hook(Phase::StepEnd, |_| async {
                Ok(StateCommand::none().update::<Memory>((SECRET.to_owned(), 1)))
            });
        });
    let inbox = Arc::clone(&world.inbox);
    let world = world.with(|bits| {
        bits.hook(Phase::StepEnd, move |context| {
            if context.at.step == 2 {
                inbox.say(Message::user(format!("Also {SECRET}"))).unwrap();
            }
            async { Ok(StateCommand::none()) }
        });
    });
    let run = run_id();
    let seen = world.go(run, &[&format!("The password is {SECRET}.")], Vec::new()).await;
    assert_eq!(seen.reason(), &TerminationReason::NaturalEnd);
    assert_eq!(*used.lock().unwrap(), [format!("-p {SECRET}")], "the tool itself gets it");
    let everything = world.everything(run).await;
    assert!(!everything.contains(SECRET), "{everything}");
    assert!(holds_placeholder(&everything));
    // Whoever listens hears it raw while it is said, and then as it is stored.
    assert_eq!(seen.text(), format!("Using {SECRET}.Done with {SECRET}.Bye."));
    let answers = seen.words().into_iter().filter(|word| word.starts_with("answered "));
    assert!(answers.inspect(|answer| assert!(!answer.contains(SECRET), "{answer}")).count() == 3);
    let requests = world.model.requests();
    assert_eq!(requests.len(), 3);
    for request in &requests {
        assert!(!format!("{request:?}").contains(SECRET));
    }
    // What the model reads is what is stored, to the last byte.
    let last: Vec<Message> = requests[2].messages.iter().map(|message| Message::clone(message)).collect();
    assert_eq!(last, world.messages().await[..last.len()]);
}

#[tokio::test(start_paused = true)]
async fn in_an_answer_that_broke_off_and_in_a_failure() {
    let breaks = ScriptedAnswer::steps([
        Step::Text(format!("Using {SECRET}")),
        Step::Fault(runyard_llm::inference::ScriptedFault::Failed(
            runyard_llm::inference::ScriptedError::InvalidRequest { message: format!("no {SECRET}") },
        )),
    ]);
    let world = World::new([breaks]);
    let run = run_id();
    world.go(run, &["Go."], Vec::new()).await;
    assert!(!world.everything(run).await.contains(SECRET));
}

#[tokio::test]
async fn in_a_question_to_a_person() {
    let mut world = World::new([speaks_of(SECRET)]).tool(answers("login", 1)).with(|bits| {
        bits.gate(|call, _| {
            let ticket = SuspendTicket {
                parameters: call.arguments.clone(),
                ..SuspendTicket::new("t", "confirm", format!("Use {SECRET}?"))
            };
            async move { Ok(GateDecision::Suspend(Box::new(ticket))) }
        });
    });
    let run = run_id();
    world.go(run, &["Go."], Vec::new()).await;
    assert!(!world.everything(run).await.contains(SECRET));
    // Approved was a call whose arguments are lost: it is not made with what stands in their place.
    let effects = Effects::default();
    world = World { store: Arc::clone(&world.store), ..World::new([says("Again, then.")]) }
        .tool(effect("login", &effects).done());
    let seen = world.go(run, &[], vec![Decision::resume("t")]).await;
    assert_eq!(seen.reason(), &TerminationReason::NaturalEnd);
    assert!(effects.all().is_empty());
    let (_, content, is_error) = results(&world.messages().await).remove(0);
    assert!(is_error && content.contains("make the call again"), "{content}");
    assert_paired(&world.messages().await);
}

#[tokio::test]
async fn a_call_without_a_secret_is_made_after_a_wait_as_it_was_asked_for() {
    let used = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&used);
    let login = move || {
        let log = Arc::clone(&log);
        tool("login", move |args, _| {
            log.lock().unwrap().push(args);
            async { Ok(ToolResult::success(1).into()) }
        })
        .done()
    };
    let arguments = json!({ "n": 1, "text": "nothing to hide" });
    let mut world = World::new([ScriptedAnswer::calls([call("a", "login", arguments.clone())])])
        .tool(login())
        .with(|bits| {
            bits.gate(|_, _| async {
                Ok(GateDecision::Suspend(Box::new(SuspendTicket::new("t", "confirm", "?"))))
            });
        });
    let run = run_id();
    world.go(run, &["Go."], Vec::new()).await;
    world.again([says("Done.")]);
    world.go(run, &[], vec![Decision::resume("t")]).await;
    assert_eq!(*used.lock().unwrap(), [arguments]);
}

#[tokio::test]
async fn what_a_provider_sealed_is_kept_whole_or_left_out() {
    use runyard_agent::checkpoint::Checkpoint;
    let world = World::new([]);
    let (checkpoint, _) = world.open(run_id()).await;
    let sealed = |sealed: &str| Message {
        role: runyard_llm::inference::Role::Assistant,
        content: vec![
            Part::Reasoning(Reasoning { text: "hm".into(), sealed: Some(json!({ "signature": sealed })) }),
            Part::Text { text: "Hello.".into() },
        ],
    };
    let signature = "EqoBCkgIARABGAIiQL2UoU0b1OHYi+yCHpBY7U6FQW8/FcoLewocJQPa2HnmLM+NECy50y44F/kD4SULFXi57buI9fAvyBwtyjlOiO0SDE3+r3spdg6PLOo9PBoMma2ku5OTAoR46j9VIjDRlvNmBvff7YW4WI9oU8XagaOBSxLPxElrhyuxppEn7m6bfT40dqBSTDrfiw4FYB4qEPETTI6TA6wtjGAAqmFqKTo=";
    assert_eq!(checkpoint.stored(sealed(signature)), sealed(signature));
    let stored = checkpoint.stored(sealed(SECRET));
    assert!(matches!(&stored.content[0], Part::Reasoning(Reasoning { sealed: None, .. })));
}

// clause: D01
#[tokio::test]
async fn d01_state_that_could_not_be_read_again_without_its_secrets_is_refused_and_its_key_is_named() {
    let world = World::new([says("Hi.")]).with(|bits| {
        bits.hook(Phase::StepEnd, |_| async {
            // A number under the name of a secret would be stored as the text that stands for it.
            Ok(StateCommand::none().update::<Memory>(("token".to_owned(), 123_456)))
        });
    });
    let run = run_id();
    let seen = world.go(run, &["Hello."], Vec::new()).await;
    let TerminationReason::Failed { code, message } = seen.reason() else { panic!("{:?}", seen.reason()) };
    assert_eq!(*code, runyard_domain::Code::StateKeyEncode);
    assert!(message.contains("test.memory"), "{message}");
    // The thread is not lost with it, as it would be with a value that never reads back.
    let mut world = World { bits: Default::default(), ..world };
    world.again([says("Hi.")]);
    assert_eq!(world.ask("Again.").await.reason(), &TerminationReason::NaturalEnd);
}

#[tokio::test]
async fn what_a_call_that_waits_was_to_be_made_with_may_hold_anything_under_any_name() {
    let gate = |bits: &mut crate::support::parts::Bits| {
        bits.gate(|call, _| {
            let ticket = SuspendTicket {
                parameters: json!({ "token": 123_456, "password": { "n": call.arguments["n"] } }),
                ..SuspendTicket::new("t", "confirm", "Shall I?")
            };
            async move { Ok(GateDecision::Suspend(Box::new(ticket))) }
        });
    };
    let mut world = World::new([ScriptedAnswer::calls([call("a", "look", json!({ "n": 1 }))])])
        .tool(answers("look", "blue"))
        .with(gate);
    let run = run_id();
    assert_eq!(world.go(run, &["Look."], Vec::new()).await.reason(), &TerminationReason::Suspended);
    world.again([says("Blue.")]);
    let seen = world.go(run, &[], vec![Decision::resume("t")]).await;
    assert_eq!(seen.reason(), &TerminationReason::NaturalEnd);
}
