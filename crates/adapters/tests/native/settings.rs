//! What a backend profile says of the agent, as the model's provider and the run find it.

use runyard_backend::conformance::{Decide, Recorder, Stage};
use runyard_backend::{Ending, Signal};
use runyard_domain::run::TurnOutcome;
use runyard_domain::{Code, Wire};
use serde_json::{Value, json};

use super::bench::{Native, errors};

const WIRES: [Wire; 3] = [Wire::Responses, Wire::Chat, Wire::Messages];

/// What is recorded of a run of the scenario of one's own, with these settings, until its turn is over.
async fn played(native: &Native, settings: &[(&str, &str)]) -> Vec<Signal> {
    played_over(native, Wire::Responses, settings).await
}

async fn played_over(native: &Native, wire: Wire, settings: &[(&str, &str)]) -> Vec<Signal> {
    let stage = Stage::new(native);
    let mut part = native.part_of("[[scenario:own]]");
    part.profile.wire = wire;
    let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    part.profile.settings = settings.collect();
    let recorder = Recorder::new();
    let mut live = stage.fresh(native, &part, &recorder).await;
    live.turn_over(Decide::Approve, 1).await;
    live.close().await;
    recorder.signals()
}

fn calls(signals: &[Signal]) -> usize {
    signals.iter().filter(|signal| matches!(signal, Signal::ToolCall { .. })).count()
}

/// A scenario of so many answers, each with one of these calls in its turn, and a text behind them.
fn calling(tools: &[&str], times: usize) -> String {
    let calls = tools.iter().cycle().take(times);
    let step = |call: &&str| format!("[[step]]\nanswer.call = [{{ {call} }}]\n");
    calls.map(step).collect::<String>() + "[[step]]\nanswer.say = [\"Done.\"]\n"
}

const LIST: &str = r#"tool = "list", arguments = {}"#;
const WRITE: &str = r#"tool = "write", arguments = { path = "a.txt", content = "a" }"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d16_work_that_alternates_is_no_repetition_and_the_same_call_again_and_again_is() {
    let native = Native::playing(&calling(&[WRITE, LIST], 70)).await;
    let told = played(&native, &[]).await;
    assert_eq!((calls(&told), errors(&told)), (70, Vec::new()));

    let native = Native::playing(&calling(&[LIST], 70)).await;
    for (settings, made) in
        [(&[][..], 32), (&[("repetitions_max", "3")], 3), (&[("repetitions_max", "64")], 64)]
    {
        let told = played(&native, settings).await;
        assert_eq!((calls(&told), errors(&told).len()), (made, 1), "{settings:?}");
        let said = format!(
            "the agent stopped at its limit loop_detection: list was called {made} times with the same arguments"
        );
        assert_eq!(errors(&told), [said.as_str()]);
    }
    let told = played(&native, &[("repetitions_max", "0")]).await;
    assert_eq!((calls(&told), errors(&told)), (70, Vec::new()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c17_each_setting_of_a_question_reaches_the_provider_in_its_own_words() {
    let native = Native::playing("[[step]]\nanswer.say = [\"Hello.\"]\n").await;
    let (tools, names) = (("tools", "read, ask"), json!(["ask", "read"]));
    #[rustfmt::skip]
    let table = [
        // setting                        responses                 chat                       messages                  as the provider has it
        (("prompt", "Be brief."),        ["/instructions",         "/messages/0/content",     "/system"],               json!("Be brief.")),
        (tools,                          ["/tools/*/name",         "/tools/*/function/name",  "/tools/*/name"],         names),
        (("temperature", "0.5"),         ["/temperature",          "/temperature",            "/temperature"],          json!(0.5)),
        (("effort", "high"),             ["/reasoning/effort",     "/reasoning_effort",       "/output_config/effort"], json!("high")),
        (("output_tokens_max", "2048"),  ["/max_output_tokens",    "/max_tokens",             "/max_tokens"],           json!(2048)),
    ];
    for (setting, places, expected) in table {
        for (wire, place) in WIRES.into_iter().zip(places) {
            let told = played_over(&native, wire, &[setting]).await;
            assert_eq!(errors(&told), Vec::<&str>::new(), "{wire:?} {setting:?}");
            let asked = native.provider.requests().last().unwrap().json();
            assert_eq!(at(&asked, place), expected, "{wire:?} {setting:?}: {asked}");
        }
    }
    played_over(&native, Wire::Messages, &[("effort", "low")]).await;
    let asked = native.provider.requests().last().unwrap().json();
    assert_eq!(asked["thinking"]["type"], "adaptive", "{asked}");
}

/// What stands in this place; behind a star, in each of a list.
fn at(value: &Value, place: &str) -> Value {
    match place.split_once("/*") {
        Some((list, inner)) => {
            let items = value.pointer(list).and_then(Value::as_array).into_iter().flatten();
            items.map(|item| at(item, inner)).collect()
        }
        None => value.pointer(place).cloned().unwrap_or_default(),
    }
}

const CUT: &str =
    "[[step]]\nanswer = { say = [\"And so \"], end = { incomplete = { reason = \"max_output_tokens\" } } }\n";
const STALL: &str = "[[step]]\nanswer = { say = [\"I was \"], end = \"stall\" }\n";
const NONE: &str = r#"tool = "read", arguments = { path = "none.txt" }"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d16_each_limit_ends_the_turn_which_completes_and_names_it() {
    let (lists, fails) = (calling(&[LIST], 5), calling(&[NONE], 5));
    #[rustfmt::skip]
    let table = [
        // setting                          the model        asked  the limit
        (("rounds_max", "2"),               lists.as_str(),  2,     "max_rounds: the model was asked 2 times"),
        (("tokens_max", "1"),               &lists,          1,     "token_budget: "),
        (("consecutive_errors_max", "3"),   &fails,          3,     "consecutive_errors: 3 calls in a row failed"),
        (("continuations_max", "0"),        CUT,             1,     "output_truncated: "),
        (("continuations_max", "3"),        CUT,             4,     "output_truncated: "),
        (("time_max_ms", "300"),            STALL,           1,     "timeout: not done within 300 ms"),
    ];
    for (setting, scenario, asked, said) in table {
        let native = Native::playing(scenario).await;
        for (wire, before) in WIRES.into_iter().zip([0, 1, 2]) {
            let told = played_over(&native, wire, &[setting]).await;
            assert_eq!(native.provider.requests().len(), asked * (before + 1), "{wire:?} {setting:?}");
            let [error] = errors(&told)[..] else { panic!("{wire:?} {setting:?}: {told:#?}") };
            let expected = format!("the agent stopped at its limit {said}");
            assert!(error.starts_with(&expected), "{wire:?} {setting:?}: {error}");
            let completed = Signal::TurnEnded { outcome: TurnOutcome::Completed };
            assert_eq!(told.last(), Some(&completed), "{wire:?} {setting:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d09_c17_an_answer_that_pauses_for_longer_than_idle_ms_is_named_as_such() {
    let native = Native::playing(STALL).await;
    for wire in WIRES {
        let told = played_over(&native, wire, &[("idle_ms", "50"), ("retries_max", "0")]).await;
        let Some(Signal::Ended { ending: Ending::Failed { cause, message, .. } }) = told.last() else {
            panic!("{wire:?}: {told:#?}")
        };
        assert_eq!(*cause, Some(Code::InferenceStreamInterrupted), "{wire:?}");
        assert!(message.contains("nothing came for too long"), "{wire:?}: {message}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d16_beyond_context_tokens_max_the_older_part_is_summarised_for_the_model() {
    let step = |call: &str| format!("[[step]]\nanswer = {{ say = [\"I look.\"], call = [{{ {call} }}] }}\n");
    let native = Native::playing(&(step(LIST).repeat(8) + "[[step]]\nanswer.say = [\"Done.\"]\n")).await;
    for wire in WIRES {
        let told = played_over(&native, wire, &[("context_tokens_max", "1")]).await;
        let summarised = errors(&told);
        let is_said = |said: &&str| said.ends_with("messages are summarised for the model from now on");
        assert!(!summarised.is_empty() && summarised.iter().all(is_said), "{wire:?}: {summarised:?}");
        let told = played_over(&native, wire, &[]).await;
        assert_eq!(errors(&told), Vec::<&str>::new(), "{wire:?}: without it there is no limit");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d16_the_calls_of_an_answer_are_made_together_or_one_by_one() {
    let both = format!("[[step]]\nanswer.call = [{{ {LIST} }}, {{ {WRITE} }}]\n");
    let native = Native::playing(&(both + "[[step]]\nanswer.say = [\"Done.\"]\n")).await;
    for (parallel, order) in
        [("false", ["call", "result"].repeat(2)), ("true", ["call", "call", "result", "result"].to_vec())]
    {
        for wire in WIRES {
            let told = played_over(&native, wire, &[("parallel_calls", parallel)]).await;
            let steps = told.iter().filter_map(|signal| match signal {
                Signal::ToolCall { .. } => Some("call"),
                Signal::ToolResult { .. } => Some("result"),
                _ => None,
            });
            assert_eq!(steps.collect::<Vec<_>>(), order, "{wire:?} {parallel}");
        }
    }
}
