//! What a script does, step by step.

use std::sync::Arc;

use runyard_backend::conformance::{
    Bench, Decide, Kept, Live, Part, Recorder, Scene, Stage, What, When, check_order,
};
use runyard_backend::{Answer, Backend, Command, Ending, ScriptedBackend, Scripts, Signal, Start, Stream};
use runyard_domain::gate::{Question, Request};
use runyard_domain::run::{FailureKind, ToolOutcome, TurnOutcome, Usage};
use runyard_domain::{Code, CommandId};
use serde_json::json;

use crate::bench::{ScriptedBench, part};

/// A bench whose one script is the test's own.
struct Own(Scripts);

impl Bench for Own {
    fn backend(&self) -> Arc<dyn Backend> {
        Arc::new(ScriptedBackend::new(self.0.clone()))
    }

    fn part(&self, _: Scene, _: &Stage) -> Part {
        part("own")
    }
}

struct Show {
    bench: Own,
    stage: Stage,
    recorder: Arc<Recorder>,
}

impl Show {
    fn of(steps: &str) -> Self {
        let bench = Own(Scripts::embedded().unwrap().with("own", &format!("[[turn]]\n{steps}")).unwrap());
        Show { bench, stage: Stage::new(&ScriptedBench), recorder: Recorder::new() }
    }

    async fn open(&self, start: Start) -> Live {
        self.stage.open(&self.bench, &part("own"), start, &self.recorder).await
    }

    async fn fresh(&self) -> Live {
        self.open(Start::Fresh { task: part("own").task, thread: None }).await
    }

    /// Plays one turn; what it says without its statuses.
    async fn play(&self, decide: Decide) -> Vec<Signal> {
        let mut live = self.fresh().await;
        live.turn_over(decide, 1).await;
        let signals = self.recorder.signals();
        if matches!(signals.last(), Some(Signal::Ended { .. })) {
            live.over().await
        } else {
            live.close().await
        }
        check_order(&signals, false);
        told(&signals)
    }
}

/// Without the place in the script, which every step says.
fn told(signals: &[Signal]) -> Vec<Signal> {
    let places = |signal: &&Signal| !matches!(signal, Signal::Status { thread: Some(_), .. });
    signals.iter().filter(places).cloned().collect()
}

fn begun() -> Signal {
    Signal::TurnStarted { command: None }
}

fn over() -> Signal {
    Signal::TurnEnded { outcome: TurnOutcome::Completed }
}

fn message(item: &str, text: &str) -> Signal {
    Signal::Message { item: item.to_owned(), text: text.to_owned() }
}

fn threads(signals: &[Signal]) -> Vec<String> {
    let thread = |signal: &Signal| match signal {
        Signal::Status { thread, .. } => thread.clone(),
        _ => None,
    };
    signals.iter().filter_map(thread).collect()
}

#[tokio::test]
async fn a_text_is_said_in_pieces_that_make_up_the_message() {
    let show = Show::of("[[turn.step]]\nsay = \"Your task is to {task}, and {nothing} else, in {run}.\"\n");
    let signals = show.play(Decide::Wait).await;
    let text = format!("Your task is to count the files, and {{nothing}} else, in {}.", show.stage.run);
    let pieces: String = signals
        .iter()
        .filter_map(|signal| match signal {
            Signal::Delta { item, text } if item == "message-1.1" => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(pieces, text);
    assert!(signals.contains(&message("message-1.1", &text)));
}

#[tokio::test]
async fn a_command_is_asked_for_run_and_its_output_and_end_are_told() {
    let show = Show::of("[[turn.step]]\nshell = \"printf 'größe'; exec >&2; echo oh; exit 3\"\n");
    let signals = show.play(Decide::Approve).await;
    let command = "printf 'größe'; exec >&2; echo oh; exit 3".to_owned();
    assert_eq!(
        signals[..3],
        [
            begun(),
            Signal::Ask {
                key: "ask-1.1".into(),
                request: Request::Shell { command: command.clone(), cwd: ".".into() }
            },
            Signal::ToolCall {
                call: "call-1.1".into(),
                tool: "shell".into(),
                summary: command.clone(),
                arguments: json!({ "command": command }),
                idempotent: false,
            },
        ]
    );
    let printed = |wanted: Stream| {
        let text = |signal: &Signal| match signal {
            Signal::ToolOutput { stream, text, .. } if *stream == wanted => Some(text.clone()),
            _ => None,
        };
        signals.iter().filter_map(text).collect::<String>()
    };
    assert_eq!((printed(Stream::Stdout).as_str(), printed(Stream::Stderr).as_str()), ("größe", "oh\n"));
    let (call, summary) = ("call-1.1".into(), "exit code 3".into());
    let result = Signal::ToolResult { call, outcome: ToolOutcome::Failed, code: None, summary };
    assert_eq!(signals[signals.len() - 2..], [result, over()]);
}

#[tokio::test]
async fn what_a_command_leaves_running_ends_with_its_step() {
    let show = Show::of("[[turn.step]]\nshell = \"sleep 3600 & echo $! >> marker\"\n");
    show.play(Decide::Approve).await;
    assert_eq!(show.stage.marks(), 1);
    show.stage.is_empty().await;
}

#[tokio::test]
async fn c11_a_no_is_told_and_the_script_goes_on_or_stops() {
    let steps = "[[turn.step]]\nshell = \"touch marker\"\n[[turn.step]]\nwrite = \"a\"\ncontent = \"b\"\non_denied = \"stop\"\n[[turn.step]]\nsay = \"never\"\n";
    let show = Show::of(steps);
    let signals = show.play(Decide::Deny).await;
    let write = Request::Write { path: "a".into(), content: Some("b".into()) };
    let no = "so I did not. The reason: the suite says no";
    assert_eq!(
        signals[2..],
        [
            message("message-1.1", &format!("I was not allowed to run `touch marker`, {no}")),
            Signal::Ask { key: "ask-1.2".into(), request: write },
            message("message-1.2", &format!("I was not allowed to write a, {no}")),
            over(),
        ]
    );
    assert_eq!(std::fs::read_dir(show.stage.directory()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_file_is_written_beneath_the_directory_and_told_as_a_patch() {
    let show = Show::of("[[turn.step]]\nwrite = \"a/b.md\"\ncontent = \"{task}\"\n");
    let signals = show.play(Decide::Approve).await;
    assert_eq!(std::fs::read_to_string(show.stage.directory().join("a/b.md")).unwrap(), "count the files");
    let (call, summary) = ("call-1.1".to_owned(), "15 bytes".into());
    assert_eq!(
        signals[signals.len() - 3..],
        [
            Signal::Patch { files: vec!["a/b.md".into()], summary: "wrote a/b.md".into() },
            Signal::ToolResult { call, outcome: ToolOutcome::Succeeded, code: None, summary },
            over(),
        ]
    );
}

#[tokio::test]
async fn c11_a_path_that_leads_outside_by_a_link_is_not_followed() {
    let show =
        Show::of("[[turn.step]]\nwrite = \"out/x\"\ncontent = \"\"\n[[turn.step]]\nread = \"/etc/passwd\"\n");
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), show.stage.directory().join("out")).unwrap();
    let signals = show.play(Decide::Approve).await;
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    let failed = |signal: &Signal| matches!(signal, Signal::ToolResult { outcome: ToolOutcome::Failed, .. });
    assert!(signals.iter().any(failed), "{signals:#?}");
    assert!(!signals.iter().any(|signal| matches!(signal, Signal::FileRead { .. })), "{signals:#?}");
    let request = Request::Read { path: "/etc/passwd".into() };
    assert!(
        signals.contains(&Signal::Ask { key: "ask-1.2".into(), request }),
        "the gate is asked all the same"
    );
}

#[tokio::test]
async fn a_question_gets_its_answer() {
    let steps = "[[turn.step]]\nask = \"Which colour?\"\nschema = { type = \"string\" }\nthen_say = \"{answer} it is\"\n";
    let show = Show::of(steps);
    let mut live = show.fresh().await;
    live.asked().await;
    let question = Question { prompt: "Which colour?".into(), answer_schema: json!({ "type": "string" }) };
    let ask = Signal::Ask { key: "ask-1.1".into(), request: Request::Question(question) };
    assert_eq!(told(&show.recorder.signals()), [begun(), ask]);
    let answer = Answer { approved: true, reason: None, answer: Some(json!("green")) };
    live.send(Command::Answer { key: "ask-1.1".into(), answer }).await;
    live.turn_over(Decide::Wait, 1).await;
    live.close().await;
    assert!(show.recorder.signals().contains(&message("message-1.1", "green it is")));
}

#[tokio::test]
async fn what_it_says_about_itself_is_said_as_it_is() {
    let steps = "
[[turn.step]]\nstatus = { model = \"m\", output_tokens = 7 }
[[turn.step]]\ndegraded = \"a\"
[[turn.step]]\nerror = \"b\"\nfailure_kind = \"provider-unavailable\"\nretrying = true
[[turn.step]]\nfail = \"provider-auth-failed\"\nmessage = \"c\"
[[turn.step]]\nsay = \"never\"\n";
    let usage = Some(Usage { output_tokens: Some(7), ..Usage::default() });
    let (model, failure_kind) = (Some("m".into()), FailureKind::ProviderAuthFailed);
    assert_eq!(
        Show::of(steps).play(Decide::Wait).await,
        [
            begun(),
            Signal::Status { phase: "working".into(), model, version: None, thread: None, usage },
            Signal::Degraded { reason: "a".into() },
            Signal::Error {
                failure_kind: Some(FailureKind::ProviderUnavailable),
                message: "b".into(),
                retrying: true
            },
            Signal::Ended { ending: Ending::failed(failure_kind, "c") },
        ]
    );
}

#[tokio::test]
async fn b08_what_cannot_go_on_is_blocked() {
    let show = Show::of("[[turn.step]]\nblock = \"permission_denied\"\nmessage = \"a\"\n");
    let ending = Ending::Blocked { code: Code::PermissionDenied, message: "a".into(), step: None };
    assert_eq!(show.play(Decide::Wait).await, [begun(), Signal::Ended { ending }]);
}

#[tokio::test]
async fn a_word_into_the_turn_is_heard_wherever_the_turn_is() {
    for steps in [
        "[[turn.step]]\nwait_for_command = true\n",
        "[[turn.step]]\nshell = \"true\"\n",
        "[[turn.step]]\nshell = \"echo $$ >> marker; exec sleep 3600\"\n",
    ] {
        let show = Show::of(steps);
        let mut live = show.fresh().await;
        live.until(Decide::Wait, "it begins", |signals, _| signals.contains(&begun())).await;
        if steps.contains("sleep") {
            let call = |signal: &Signal| matches!(signal, Signal::ToolCall { .. });
            live.until(Decide::Approve, "it runs", |signals, _| signals.iter().any(call)).await;
        }
        let id = CommandId::from_bytes([5; 16]);
        live.send(Command::Steer { id, text: "go left".to_owned() }).await;
        let heard = message(&format!("heard-{id}"), "I heard you: go left");
        live.until(Decide::Wait, "it heard", |signals, _| signals.contains(&heard)).await;
        live.close().await;
        show.stage.is_empty().await;
    }
}

#[tokio::test]
async fn a_word_into_the_last_step_is_heard_before_the_turn_ends() {
    let mut show = Show::of("[[turn.step]]\nsay = \"a text that is long enough for a batch of its own\"\n");
    let pieces = When::Has(|signal| matches!(signal, Signal::Delta { .. }));
    show.recorder = Recorder::with(pieces, What::Hold(Kept::No));
    let mut live = show.fresh().await;
    assert!(live.held(Decide::Wait).await);
    let id = CommandId::from_bytes([6; 16]);
    live.send(Command::Steer { id, text: "wait".to_owned() }).await;
    show.recorder.release();
    live.turn_over(Decide::Wait, 1).await;
    live.close().await;
    let heard = message(&format!("heard-{id}"), "I heard you: wait");
    let signals = show.recorder.signals();
    assert_eq!(signals[signals.len() - 3..], [heard, Signal::Heard { command: id }, over()]);
}

#[tokio::test]
async fn j05_the_place_is_recorded_with_each_result_and_turns_go_on_counting() {
    let steps = "[[turn.step]]\nsay = \"one\"\nrepeat = 2\n[[turn]]\n[[turn.step]]\nsay = \"again\"\n";
    let show = Show::of(steps);
    let mut live = show.fresh().await;
    for turn in 1..=3 {
        live.turn_over(Decide::Wait, turn).await;
        let id = CommandId::from_bytes([turn as u8; 16]);
        live.send(Command::Turn { id, text: "more".into() }).await;
    }
    live.turn_over(Decide::Wait, 4).await;
    live.close().await;
    let signals = show.recorder.signals();
    let expected =
        ["own@1.0", "own@1.1", "own@1.2", "own@2.0", "own@2.1", "own@3.0", "own@3.1", "own@4.0", "own@4.1"];
    assert_eq!(threads(&signals), expected);
    assert!(
        signals.contains(&message("message-4.1", "again")),
        "past the last turn it is the last one again"
    );
    for batch in show.recorder.batches() {
        let messages = batch.iter().filter(|signal| matches!(signal, Signal::Message { .. })).count();
        assert!(messages == 0 || threads(&batch).len() == 1, "{batch:?}");
    }
}

#[tokio::test]
async fn j05_a_session_begins_where_its_start_says() {
    let steps = "[[turn.step]]\nsay = \"one\"\n[[turn.step]]\nsay = \"two\"\n[[turn]]\n[[turn.step]]\nsay = \"three\"\n";
    let task = part("own").task;
    let fresh = |thread: Option<&str>| Start::Fresh { task: task.clone(), thread: thread.map(str::to_owned) };
    let resume = |thread: Option<&str>, turn_active| Start::Resume {
        task: task.clone(),
        thread: thread.map(str::to_owned),
        turn_active,
    };
    let (one, two, three) =
        (message("message-1.1", "one"), message("message-1.2", "two"), message("message-2.1", "three"));
    for (start, expected) in [
        (fresh(None), vec![begun(), one.clone(), two.clone(), over()]),
        (fresh(Some("own@1.1")), vec![begun(), three.clone(), over()]),
        (resume(None, false), vec![begun(), one.clone(), two.clone(), over()]),
        (resume(None, true), vec![one, two.clone(), over()]),
        (resume(Some("own@1.1"), true), vec![two, over()]),
        (resume(Some("own@1.2"), true), vec![over()]),
        (resume(Some("own@2.0"), true), vec![three, over()]),
        (resume(Some("own@1.2"), false), vec![]),
    ] {
        let show = Show::of(steps);
        let mut live = show.open(start.clone()).await;
        let enough = expected.len();
        live.until(Decide::Wait, "it played", |signals, _| {
            told(signals).len() >= enough && !signals.is_empty()
        })
        .await;
        live.close().await;
        assert_eq!(told(&show.recorder.signals()), expected, "{start:?}");
    }
}

#[tokio::test]
async fn a_thread_of_another_script_is_refused() {
    let show = Show::of("[[turn.step]]\nsay = \"one\"\n");
    let start = Start::Resume { task: part("own").task, thread: Some("demo@1.1".into()), turn_active: true };
    let spec = show.stage.spec(&part("own"), start);
    let Err(error) = show.bench.backend().open(spec, show.recorder.clone()).await else {
        panic!("it opens");
    };
    assert_eq!(error.failure_kind, FailureKind::BackendProtocolError);
    assert_eq!(show.recorder.signals(), []);
}
