//! What is durable before what, how much each step writes, and steps that do not come through.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use runyard_agent::CallOrder;
use runyard_agent::checkpoint::{CallNote, Checkpoint, CheckpointError, StepCommit, StepLimits};
use runyard_agent::phase::{Phase, StateCommand, TerminationReason};
use runyard_agent::run::{AgentEvent, Begin, Observer, RunStatus, run};
use runyard_agent::state::StateChanges;
use runyard_agent::tool::ToolResult;
use runyard_domain::Code;
use runyard_llm::inference::{
    Image, ImageSource, InferenceRequest, Message, Model, ModelStream, Part, Refusal, Role, ScriptedAnswer,
    ScriptedCall, ScriptedError, ScriptedFault, ScriptedModel, Step, StopReason,
};
use runyard_store::{COMMIT_ROWS_MAX, PAGE_MAX, ThreadRunStore};
use serde_json::json;

use crate::support::flaky::{Failure, Flaky, Operation, Plan};
use crate::support::parts::{Effects, Label, Memory, answers, effect, tool};
use crate::support::{World, assert_paired, call, calls, results, run_id, says, shape};

/// Compares what it is asked with what is stored at that moment.
struct Compares {
    model: ScriptedModel,
    world: Mutex<Option<Arc<dyn ThreadRunStore>>>,
}

#[async_trait]
impl Model for Compares {
    fn name(&self) -> &str {
        "compares"
    }

    async fn open(&self, request: &InferenceRequest) -> Result<ModelStream, Refusal> {
        let store = self.world.lock().unwrap().clone().unwrap();
        let thread = runyard_store::ThreadId::new("thread".into()).unwrap();
        let stored = store.messages(&thread, 0, PAGE_MAX).await.unwrap();
        let stored: Vec<Message> =
            stored.iter().map(|stored| serde_json::from_slice(&stored.body).unwrap()).collect();
        let asked: Vec<Message> = request.messages.iter().map(|message| Message::clone(message)).collect();
        assert_eq!(asked, stored);
        self.model.open(request).await
    }
}

#[tokio::test]
async fn the_model_reads_what_is_stored_and_nothing_else() {
    let three = ScriptedAnswer::calls(["a", "b", "c"].map(|id| call(id, "look", json!({ "n": 1 }))));
    let answers_given = [calls("x", "look"), three, says("Done.")];
    let mut world = World::new([]).tool(answers("look", "blue"));
    let model = Compares {
        model: ScriptedModel::of("m", answers_given),
        world: Mutex::new(Some(Arc::clone(&world.store))),
    };
    world.instead = Some(Arc::new(model));
    let seen = world.ask("Go.").await;
    assert_eq!(seen.reason(), &TerminationReason::NaturalEnd);
}

#[tokio::test]
async fn an_intent_is_durable_before_its_call_is_made() {
    let mut world = World::new([calls("a", "pay"), says("Paid.")]);
    let run = run_id();
    let name = world.run_name(run);
    let (store, looked) = (Arc::clone(&world.store), Arc::new(Mutex::new(Vec::new())));
    let found = Arc::clone(&looked);
    let pay = tool("pay", move |_, context| {
        let (store, found, name) = (Arc::clone(&store), Arc::clone(&found), name.clone());
        async move {
            let journal = store.tool_calls(&name, 0, PAGE_MAX).await.unwrap();
            let row = journal.last().unwrap();
            assert_eq!((row.call.as_str(), row.result.as_ref()), ("2.0", None));
            assert_eq!(row.key, runyard_store::KeyDigest::of(&[&context.idempotency_key]));
            found.lock().unwrap().push(context.idempotency_key);
            Ok(ToolResult::success("ok").into())
        }
    });
    world = world.tool(pay.done());
    let seen = world.go(run, &["Pay."], Vec::new()).await;
    assert_eq!(seen.reason(), &TerminationReason::NaturalEnd);
    assert_eq!(*looked.lock().unwrap(), [format!("{run}:2.0")]);
    let journal = world.journal(run).await;
    assert_eq!(journal.len(), 1);
    assert!(String::from_utf8_lossy(journal[0].result.as_ref().unwrap()).contains("\"ok\":true"));
}

#[tokio::test]
async fn each_step_writes_what_is_new_and_no_more() {
    let flaky = Flaky::new(None);
    let mut world = World::new([]).tool(answers("look", "blue"));
    world.store = Arc::clone(&flaky) as Arc<dyn ThreadRunStore>;
    for turn in 0..20 {
        world.again([calls("a", "look"), says("Done.")]);
        let before = flaky.commits().len();
        world.ask("Go.").await;
        let commits = flaky.commits().split_off(before);
        let shapes: Vec<(usize, usize, usize)> = commits
            .iter()
            .map(|commit| {
                (commit.writes.messages.len(), commit.writes.journal.len(), commit.writes.values.len())
            })
            .collect();
        // The question; the answer with the intent; the result; the last answer with the end.
        assert_eq!(shapes, [(1, 0, 0), (1, 1, 0), (1, 1, 0), (1, 0, 0)]);
        assert_eq!(commits[0].expected, turn * 4);
    }
}

#[tokio::test]
async fn state_is_written_when_it_changed_and_only_what_changed() {
    let flaky = Flaky::new(None);
    let mut world =
        World::new([calls("a", "look"), says("Done.")]).tool(answers("look", "blue")).with(|bits| {
            bits.hook(Phase::AfterToolExecute, |_| async {
                Ok(StateCommand::none().update::<Memory>(("looked".to_owned(), 1)))
            });
        });
    world.store = Arc::clone(&flaky) as Arc<dyn ThreadRunStore>;
    world.ask("Go.").await;
    let values: Vec<usize> = flaky.commits().iter().map(|commit| commit.writes.values.len()).collect();
    // The result is durable before any hook hears of it, and with it that one has to; then what that did, and that it did.
    assert_eq!(values, [0, 0, 1, 2, 0]);
}

async fn with_failing_commits(plan: Plan) -> (World, Arc<Flaky>, Effects) {
    let effects = Effects::default();
    let flaky = Flaky::new(Some(plan));
    let mut world = World::new([calls("a", "pay"), says("Paid.")]).tool(effect("pay", &effects).done());
    world.store = Arc::clone(&flaky) as Arc<dyn ThreadRunStore>;
    (world, flaky, effects)
}

// clause: D11
#[tokio::test(start_paused = true)]
async fn a_store_that_fails_for_a_moment_does_not_end_a_run() {
    for failure in [Failure::Io, Failure::Unheard] {
        for from in 1..=4 {
            for times in 1..=3 {
                let plan = Plan { operation: Operation::Commit, from, times, failure };
                let (world, flaky, effects) = with_failing_commits(plan).await;
                let run = run_id();
                let seen = world.go(run, &["Pay."], Vec::new()).await;
                assert_eq!(seen.reason(), &TerminationReason::NaturalEnd, "{plan:?}");
                assert_eq!(flaky.failed(), times);
                assert_eq!(effects.all().len(), 1);
                let stored = world.messages().await;
                assert_eq!(
                    shape(&stored),
                    ["user: Pay.", "model: pay(a)", "a: done", "model: Paid."],
                    "{plan:?}"
                );
                assert_eq!(world.record(run).await.status, RunStatus::Done);
                let journal = world.journal(run).await;
                assert!(journal.len() == 1 && journal[0].result.is_some(), "{plan:?}: {journal:?}");
                assert!(world.is_free().await);
            }
        }
    }
}

// clause: D11
#[tokio::test(start_paused = true)]
async fn a_step_of_unknown_outcome_comes_again_the_same_before_any_other() {
    // So long that whoever asks until it is known gives up first: eight more attempts each time.
    for times in [9, 10, 18, 27] {
        for from in 1..=4 {
            let plan = Plan { operation: Operation::Commit, from, times, failure: Failure::Unheard };
            let (world, flaky, effects) = with_failing_commits(plan).await;
            let run = run_id();
            let seen = world.go(run, &["Pay."], Vec::new()).await;
            assert_eq!(seen.reason(), &TerminationReason::NaturalEnd, "{plan:?}");
            assert_eq!(effects.all().len(), 1);
            assert_eq!(world.messages().await.len(), 4);
            let mut expected = Vec::new();
            for commit in flaky.commits() {
                if expected.last() != Some(&commit.append) {
                    expected.push(commit.append);
                }
            }
            let mut unique = expected.clone();
            unique.sort();
            unique.dedup();
            assert_eq!(expected.len(), unique.len(), "no step comes again behind another one");
        }
    }
}

// clause: D11
#[tokio::test(start_paused = true)]
async fn a_step_of_unknown_outcome_stays_unknown_when_the_store_then_fails_otherwise() {
    for failure in [Failure::Io, Failure::DiskFull, Failure::Locked] {
        for from in 1..=4 {
            let unheard = Plan { operation: Operation::Commit, from, times: 10, failure: Failure::Unheard };
            let (world, flaky, effects) = with_failing_commits(unheard).await;
            flaky.fails_too(Plan { failure, from: from + 10, times: 3, ..unheard });
            let run = run_id();
            let seen = world.go(run, &["Pay."], Vec::new()).await;
            assert_eq!(flaky.failed(), 13);
            let code = Code::StorageCommitUnknown;
            assert!(
                matches!(seen.reason(), TerminationReason::Failed { code: found, .. } if *found == code),
                "{failure:?} {from}: {:?}",
                seen.reason()
            );
            assert!(effects.all().len() <= 1);
            assert_paired(&world.messages().await);
            let record = world.record(run).await;
            // The fourth step is the end itself, which was durable all the while.
            let end = if from == 4 { None } else { Some(code) };
            assert_eq!((record.status, record.end.unwrap().failed_with()), (RunStatus::Done, end));
            assert!(world.is_free().await, "{failure:?} {from}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_holds_up_a_run_and_not_its_end() {
    let plan = Plan { operation: Operation::Commit, from: 2, times: 1, failure: Failure::Hangs };
    let (world, _, effects) = with_failing_commits(plan).await;
    let run = run_id();
    let cancellation = world.cancellation.clone();
    tokio::spawn(async move {
        tokio::time::sleep(std::time::Duration::from_secs(60)).await;
        cancellation.cancel();
    });
    let seen = world.go(run, &["Pay."], Vec::new()).await;
    assert_eq!(seen.reason(), &TerminationReason::Cancelled);
    assert!(effects.all().is_empty(), "its intent was not known to be durable");
    let stored = world.messages().await;
    assert_paired(&stored);
    assert_eq!(stored.len(), 3);
    assert_eq!(world.record(run).await.status, RunStatus::Done);
    assert!(world.is_free().await);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_lost_its_thread_stops_and_writes_nothing_more() {
    let plan = Plan { operation: Operation::Commit, from: 2, times: 1, failure: Failure::Stale };
    let (world, flaky, effects) = with_failing_commits(plan).await;
    let seen = world.ask("Pay.").await;
    assert!(matches!(seen.reason(), TerminationReason::Failed { code: Code::StorageStaleGeneration, .. }));
    assert!(effects.all().is_empty());
    // The step that was refused, and the end, which the store itself refuses when it knows better.
    assert_eq!(flaky.asked(Operation::Commit), 3);
}

// clause: D01
#[tokio::test(start_paused = true)]
async fn state_that_cannot_be_stored_fails_the_run_and_keeps_the_rest() {
    let world = World::new([calls("a", "look"), says("Done.")]).tool(answers("look", "blue")).with(|bits| {
        bits.hook(Phase::AfterToolExecute, |_| async {
            Ok(StateCommand::none().update::<Memory>(("!".to_owned(), 1)))
        });
    });
    let run = run_id();
    let seen = world.go(run, &["Go."], Vec::new()).await;
    assert!(matches!(seen.reason(), TerminationReason::Failed { code: Code::StateKeyEncode, .. }));
    let record = world.record(run).await;
    assert_eq!(record.end.unwrap().failed_with(), Some(Code::StateKeyEncode));
    assert_eq!(shape(&world.messages().await), ["user: Go.", "model: look(a)", "a: blue"]);
    assert!(world.is_free().await);
}

#[tokio::test]
async fn state_of_too_many_keys_is_refused_with_what_to_do() {
    let world = World::new([]);
    let (checkpoint, _) = world.open(run_id()).await;
    let changing = |keys: usize| {
        let set = (0..keys).map(|n| (format!("test.{n}"), json!(n))).collect();
        let run_state = StateChanges { set, ..StateChanges::default() };
        checkpoint.commit(StepCommit { run_state, ..StepCommit::default() })
    };
    let error = changing(COMMIT_ROWS_MAX + 1).await.unwrap_err();
    assert_eq!(error.code, Code::StorageValidation);
    assert!(error.message.contains("257 keys") && error.message.contains("in one key"), "{error}");
    changing(COMMIT_ROWS_MAX).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_message_that_cannot_be_stored_fails_the_run_and_the_end_is_recorded_all_the_same() {
    // A call of more than a message may have, which cannot come in pieces.
    let long = ScriptedAnswer::steps([
        Step::Text("Look here.".into()),
        Step::Call(ScriptedCall {
            id: "a".into(),
            name: "look".into(),
            arguments: json!({ "n": 1, "text": "x".repeat(2 * 1024 * 1024) }),
        }),
        Step::Stop(StopReason::ToolUse),
    ]);
    let mut world = World::new([long]).tool(answers("look", "blue"));
    let run = run_id();
    let seen = world.go(run, &["Talk."], Vec::new()).await;
    assert!(matches!(seen.reason(), TerminationReason::Failed { code: Code::StorageValidation, .. }));
    assert_eq!(world.record(run).await.end.unwrap().failed_with(), Some(Code::StorageValidation));
    // What clients saw is stored.
    assert_eq!(shape(&world.messages().await), ["user: Talk.", "model: Look here."]);
    assert!(world.is_free().await);
    world.again([says("Hello.")]);
    assert_eq!(world.ask("Shorter.").await.reason(), &TerminationReason::NaturalEnd);
}

// clause: D10
#[tokio::test]
async fn d10_an_answer_longer_than_a_message_may_be_is_stored_as_clients_saw_it() {
    let long = format!("{}, and so on", "on and on ".repeat(250_000));
    let broken = ScriptedAnswer::steps([
        Step::Text(long.clone()),
        Step::Fault(ScriptedFault::Failed(ScriptedError::ContentFiltered { message: "no".into() })),
    ]);
    for answer in [says(&long), broken] {
        let mut world = World::new([answer]);
        let run = run_id();
        let seen = world.go(run, &["Talk."], Vec::new()).await;
        let stored = world.messages().await;
        assert!(stored.len() > 3, "in pieces");
        assert_eq!(stored[1..].iter().map(Message::said).collect::<String>(), long);
        assert_eq!((seen.text(), seen.outcome.text()), (long.clone(), long.clone()));
        assert!(world.is_free().await);
        // The model reads all of it.
        world.again([says("Enough.")]);
        assert_eq!(world.ask("And?").await.reason(), &TerminationReason::NaturalEnd);
        let read = world.model.requests().remove(0).messages;
        let said = read[1..read.len() - 1].iter().map(|message| message.said()).collect::<String>();
        assert!(said == long, "{} of {}", said.len(), long.len());
    }
}

#[tokio::test]
async fn a_picture_is_said_stored_and_read_again() {
    let picture = Message {
        role: Role::User,
        content: vec![
            Part::Text { text: "What is this?".into() },
            Part::Image(Image {
                source: ImageSource::Data {
                    media_type: "image/png".into(),
                    data: "iVBORw0KGgo".repeat(30_000),
                },
            }),
        ],
    };
    let mut world = World::new([says("A duck.")]);
    let (checkpoint, opened) = world.open(run_id()).await;
    let begin = Begin { opened, input: vec![picture.clone()], ..Begin::default() };
    let outcome = run(world.parts(run_id(), Arc::new(checkpoint)), begin).await;
    assert_eq!(outcome.text(), "A duck.");
    assert_eq!(*world.model.requests()[0].messages[0], picture);
    assert_eq!(world.messages().await[0], picture);
    // The next question, in another process, still has it.
    world.again([says("Sure.")]);
    world.ask("Sure?").await;
    assert_eq!(*world.model.requests()[0].messages[0], picture);
}

#[tokio::test]
async fn much_is_stored_in_several_steps() {
    let many = ScriptedAnswer::calls((0..200).map(|n| call(&n.to_string(), "look", json!({ "n": n }))));
    let text = "x".repeat(100 * 1024);
    let world = World::new([many, says("Done.")]).tool(answers("look", text)).parallel();
    let run = run_id();
    let seen = world.go(run, &["Go."], Vec::new()).await;
    assert_eq!(seen.reason(), &TerminationReason::NaturalEnd, "20 MB of results");
    let stored = world.messages().await;
    assert_paired(&stored);
    assert_eq!(stored.len(), 203);
    assert!(world.journal(run).await.iter().all(|row| row.result.is_some()));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_cannot_be_stored_as_waiting_has_failed_with_its_end() {
    let mut ends = None;
    let mut world = World::new([calls("a", "ask")]).tool(crate::suspension::asks("ask")).with(|bits| {
        ends = Some(bits.count(Phase::RunEnd));
    });
    let flaky =
        Flaky::new(Some(Plan { operation: Operation::Commit, from: 3, times: 1, failure: Failure::Refused }));
    world.store = Arc::clone(&flaky) as Arc<dyn ThreadRunStore>;
    let run = run_id();
    let seen = world.go(run, &["Go."], Vec::new()).await;
    assert!(matches!(seen.reason(), TerminationReason::Failed { code: Code::StorageValidation, .. }));
    assert_eq!(ends.unwrap().load(std::sync::atomic::Ordering::SeqCst), 1);
    assert!(seen.outcome.waiting.is_empty());
    assert_paired(&world.messages().await);
    assert_eq!(world.record(run).await.status, RunStatus::Done);
    assert!(world.is_free().await);
}

/// Takes little at once, and remembers what it was given.
struct Narrow {
    limits: StepLimits,
    steps: Mutex<Vec<StepCommit>>,
}

#[async_trait]
impl Checkpoint for Narrow {
    fn stored(&self, message: Message) -> Message {
        message
    }

    fn limits(&self) -> StepLimits {
        self.limits
    }

    async fn commit(&self, step: StepCommit) -> Result<(), CheckpointError> {
        self.steps.lock().unwrap().push(step);
        Ok(())
    }

    fn lost(&self) -> Option<CheckpointError> {
        None
    }

    async fn give_up(&self) {}
}

impl Narrow {
    /// Every step is within the limits, but for its framing. Gives how many there were.
    #[track_caller]
    fn check(&self) -> usize {
        let steps = self.steps.lock().unwrap();
        for step in steps.iter() {
            assert!(step.messages.len() <= self.limits.messages_max);
            assert!(step.calls.len() <= self.limits.calls_max);
            let messages = step.messages.iter().map(|message| serde_json::to_vec(&**message).unwrap().len());
            let state = serde_json::to_vec(&step.state()).unwrap().len();
            let bytes = messages.sum::<usize>() + state;
            assert!(bytes <= self.limits.bytes_max, "{bytes}");
        }
        let ends: Vec<bool> = steps.iter().map(|step| step.record.end.is_some()).collect();
        assert_eq!(ends.iter().position(|is_end| *is_end), Some(ends.len() - 1), "the end comes last");
        steps.len()
    }
}

#[tokio::test]
async fn what_is_too_much_for_a_checkpoint_at_once_comes_in_several_steps_each_within_its_limits() {
    let limits =
        StepLimits { messages_max: 9, calls_max: 5, bytes_max: 768 * 1024, message_bytes_max: 768 * 1024 };
    // Twelve results of 64 KiB; of newlines, which are twice as many bytes of JSON; and each longer than all that is taken.
    for (result, kept) in [("x".repeat(64 * 1024), 64 * 1024), ("\n".repeat(64 * 1024), 64 * 1024)]
        .into_iter()
        .chain([("x".repeat(1024 * 1024), 384 * 1024)])
    {
        let ids: Vec<String> = (0..12).map(|n| n.to_string()).collect();
        let twelve = ScriptedAnswer::calls(ids.iter().map(|id| call(id, "look", json!({ "n": 1 }))));
        let label = "s".repeat(500 * 1024);
        let world =
            World::new([twelve, says("Long.")]).tool(answers("look", result)).parallel().with(|bits| {
                bits.hook(Phase::AfterToolExecute, move |_| {
                    let label = StateCommand::none().update::<Label>(label.clone());
                    async { Ok(label) }
                });
            });
        let narrow = Arc::new(Narrow { limits, steps: Mutex::default() });
        let begin = Begin { input: vec![Message::user("Go.")], ..Begin::default() };
        let checkpoint = Arc::clone(&narrow) as Arc<dyn Checkpoint>;
        let outcome = run(world.parts(run_id(), checkpoint), begin).await;
        assert_eq!(outcome.reason, TerminationReason::NaturalEnd);
        assert!(narrow.check() > 5);
        let steps = narrow.steps.lock().unwrap();
        let messages: Vec<Message> =
            steps.iter().flat_map(|step| &step.messages).map(|message| Message::clone(message)).collect();
        assert_paired(&messages);
        assert_eq!(steps.iter().map(|step| step.calls.len()).sum::<usize>(), 24);
        for (_, content, _) in results(&messages) {
            let is_cut = content.ends_with("more bytes are left out]");
            let said = if is_cut { content.split("\n[").next().unwrap() } else { content.as_str() };
            assert_eq!((said.len(), is_cut), (kept, kept > 64 * 1024));
        }
    }
}

#[tokio::test]
async fn an_answer_with_as_many_calls_as_there_may_be_loses_none() {
    for order in [CallOrder::OneByOne, CallOrder::Parallel] {
        let effects = Effects::default();
        let ids: Vec<String> = (0..256).map(|n| n.to_string()).collect();
        let many = ScriptedAnswer::calls(ids.iter().map(|id| call(id, "pay", json!({ "n": 1 }))));
        let mut world = World::new([many, says("Paid.")]).tool(effect("pay", &effects).done());
        world.order = order;
        let run = run_id();
        let seen = world.go(run, &["Pay."], Vec::new()).await;
        assert_eq!(seen.reason(), &TerminationReason::NaturalEnd);
        let stored = world.messages().await;
        assert_paired(&stored);
        assert_eq!((stored.len(), effects.all().len()), (259, 256));
        let mut open = 0;
        let mut place = 0;
        loop {
            let page = world.store.tool_calls(&world.run_name(run), place, PAGE_MAX).await.unwrap();
            let Some(last) = page.last() else { break };
            place = last.place;
            open += page.iter().filter(|row| row.result.is_none()).count();
        }
        assert_eq!((place, open), (256, 0));
    }
}

/// A log of what is told and of calls that are over.
#[derive(Default)]
struct OneLog(Mutex<Vec<&'static str>>);

#[async_trait]
impl Checkpoint for OneLog {
    fn stored(&self, message: Message) -> Message {
        message
    }

    fn limits(&self) -> StepLimits {
        StepLimits::STORE
    }

    async fn commit(&self, step: StepCommit) -> Result<(), CheckpointError> {
        let ends = step.calls.iter().filter(|note| matches!(note, CallNote::Ended { .. }));
        self.0.lock().unwrap().extend(ends.map(|_| "result"));
        Ok(())
    }

    fn lost(&self) -> Option<CheckpointError> {
        None
    }

    async fn give_up(&self) {}
}

#[async_trait]
impl Observer for OneLog {
    async fn observe(&self, event: AgentEvent) {
        if matches!(event, AgentEvent::ToolReported { .. }) {
            tokio::task::yield_now().await;
            self.0.lock().unwrap().push("report");
        }
    }
}

#[tokio::test]
async fn what_a_tool_says_comes_before_its_result_where_both_stand_in_one_log() {
    let talks = || {
        tool("talk", |_, context| async move {
            context.reporter.output("one");
            context.reporter.output("two");
            Ok(ToolResult::success("ok").into())
        })
    };
    for parallel in [false, true] {
        let log = Arc::new(OneLog::default());
        let mut world = World::new([calls("a", "talk"), says("Fine.")]).tool(talks().done());
        world.observer = Some(Arc::clone(&log) as Arc<dyn Observer>);
        if parallel {
            world = world.parallel();
        }
        let parts = world.parts(run_id(), Arc::clone(&log) as Arc<dyn Checkpoint>);
        run(parts, Begin { input: vec![Message::user("Go.")], ..Begin::default() }).await;
        assert_eq!(*log.0.lock().unwrap(), ["report", "report", "result"], "{parallel}");
    }
}
