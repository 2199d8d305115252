//! An answer that broke off: the four ways to save it, and that clients see what is kept.

use std::sync::Arc;

use runyard_llm::inference::{
    ANSWER_BYTES_MAX, AnswerFormat, CALLS_MAX, CONTINUE, InferenceExecutionError as E, InferenceRequest,
    InterruptCause, InterruptSnapshot, Message, OpenToolCall, Part, Reasoning, Recovery, RetryPolicy, Role,
    ScriptedError, Step, StopReason, Update,
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::{
    Seen, arguments, ask, ask_with, call, cut, ended, failed, inference, look, model, no_arguments, patient,
    question, reset, says, started, stop, text, think, thoughts,
};

fn asked_to_go_on_after(request: &InferenceRequest) -> Option<String> {
    let [.., said, go_on] = request.messages.as_slice() else { return None };
    (said.role == Role::Assistant && go_on.said() == CONTINUE).then(|| said.said())
}

#[track_caller]
fn is_one(seen: &Seen) {
    let answer = seen.answer();
    assert_eq!(answer.message.said(), seen.text(), "what is kept is what was seen");
    let calls: Vec<_> = answer.message.tool_calls().cloned().collect();
    assert_eq!(calls, seen.ready(), "what is called is what was ready");
}

// The original keeps only the last attempt's text, " the second half.".
// clause: D10
#[tokio::test(start_paused = true)]
async fn d10_text_that_broke_off_is_continued_and_all_of_it_is_kept() {
    let (seen, model) = ask([
        says([text("Hello, "), text("this is"), reset()]),
        says([text(" the second"), text(" half."), stop()]),
    ])
    .await;
    is_one(&seen);
    assert_eq!(seen.text(), "Hello, this is the second half.");
    assert_eq!(seen.answer().message.content.len(), 1, "one text: {:?}", seen.answer().message);
    assert_eq!(seen.resets(), 0);
    let requests = model.requests();
    assert_eq!(asked_to_go_on_after(&requests[0]), None);
    assert_eq!(asked_to_go_on_after(&requests[1]).as_deref(), Some("Hello, this is"));
    assert_eq!(requests[1].messages[..1], requests[0].messages[..]);
}

// The original keeps "C" of two interruptions.
// clause: D10
#[tokio::test(start_paused = true)]
async fn d10_text_that_broke_off_twice_is_whole() {
    let (seen, model) =
        ask([says([text("A"), reset()]), says([text("B"), reset()]), says([text("C"), stop()])]).await;
    is_one(&seen);
    assert_eq!(seen.text(), "ABC");
    assert_eq!(asked_to_go_on_after(&model.requests()[2]).as_deref(), Some("AB"));
}

// clause: D10
#[tokio::test(start_paused = true)]
async fn d10_what_the_model_repeats_at_the_seam_is_neither_seen_nor_kept() {
    let (seen, _) = ask([
        says([text("One, two, three. The fourth "), text("thing is"), reset()]),
        says([text("The "), text("fourth thing is"), text(" this."), stop()]),
    ])
    .await;
    is_one(&seen);
    assert_eq!(seen.text(), "One, two, three. The fourth thing is this.");
}

// clause: D10
#[tokio::test(start_paused = true)]
async fn d10_a_repetition_that_breaks_off_itself_leaves_no_trace() {
    let (seen, model) = ask([
        says([text("One, two, three. The fourth thing is"), reset()]),
        says([text("The fourth th"), reset()]),
        says([text(" this."), stop()]),
    ])
    .await;
    is_one(&seen);
    assert_eq!(seen.text(), "One, two, three. The fourth thing is this.");
    let again = asked_to_go_on_after(&model.requests()[2]);
    assert_eq!(again.as_deref(), Some("One, two, three. The fourth thing is"));
}

// clause: D10
#[tokio::test(start_paused = true)]
async fn d10_completed_calls_are_used_without_asking_again() {
    let (seen, model) = ask([says([
        text("Let me look."),
        started(0, "a"),
        arguments(0, "{\"x\":"),
        started(1, "b"),
        arguments(1, "{\"y\""),
        arguments(0, "1}"),
        ended(0),
        reset(),
    ])])
    .await;
    is_one(&seen);
    assert_eq!(model.asked(), 1);
    assert_eq!(seen.answer().stop, StopReason::ToolUse);
    assert_eq!(seen.ready(), [call("a", json!({"x": 1}))]);
    assert_eq!(seen.cancelled(), ["b"]);
    assert_eq!(seen.text(), "Let me look.");
}

// The original cancels it, runs nothing, and loses the text before it.
// clause: D10
#[tokio::test(start_paused = true)]
async fn d10_a_call_without_arguments_whose_end_came_is_complete() {
    let (seen, _) = ask([says([text("Now."), started(0, "a"), ended(0), reset()])]).await;
    is_one(&seen);
    assert_eq!(seen.ready(), [call("a", no_arguments())]);
    assert!(seen.cancelled().is_empty());
    assert_eq!(seen.text(), "Now.");
}

// clause: D10
#[tokio::test(start_paused = true)]
async fn d10_a_call_without_arguments_whose_end_did_not_come_is_not_complete() {
    let (seen, _) = ask([
        says([text("Now."), started(0, "a"), text(" Then"), reset()]),
        says([text(" nothing."), stop()]),
    ])
    .await;
    is_one(&seen);
    assert_eq!((seen.cancelled(), seen.ready().len()), (vec!["a"], 0));
    assert_eq!(seen.text(), "Now. Then nothing.");
    assert_eq!(seen.answer().stop, StopReason::EndTurn);
}

// clause: D10
#[tokio::test(start_paused = true)]
async fn d10_a_call_is_complete_when_the_message_stopped() {
    let (seen, _) = ask([says([started(0, "a"), started(1, "b"), arguments(1, "{\"n\":2}"), stop()])]).await;
    is_one(&seen);
    assert_eq!(seen.ready(), [call("a", no_arguments()), call("b", json!({"n": 2}))]);
    assert_eq!(seen.answer().stop, StopReason::ToolUse);
}

// clause: D10
#[tokio::test(start_paused = true)]
async fn d10_arguments_that_are_a_closed_object_are_complete_though_the_end_did_not_come() {
    let (seen, model) = ask([says([started(0, "a"), arguments(0, "{\"n\":2}"), reset()])]).await;
    is_one(&seen);
    assert_eq!((seen.ready(), model.asked()), (vec![call("a", json!({"n": 2}))], 1));
}

// clause: D10
#[tokio::test(start_paused = true)]
async fn d10_text_before_an_unfinished_call_is_kept_and_the_call_is_cancelled() {
    let (seen, model) = ask([
        says([text("I will look it up. "), started(0, "a"), arguments(0, "{\"q\":\"ru"), reset()]),
        says([started(0, "a"), arguments(0, "{\"q\":\"rust\"}"), ended(0), Step::Stop(StopReason::ToolUse)]),
    ])
    .await;
    is_one(&seen);
    assert_eq!(seen.cancelled(), ["a"]);
    assert_eq!(seen.ready(), [call("a", json!({"q": "rust"}))]);
    assert_eq!(seen.text(), "I will look it up. ");
    assert_eq!(asked_to_go_on_after(&model.requests()[1]).as_deref(), Some("I will look it up. "));
}

// The original's last open call wins, and the others are never heard of again.
// clause: D09
#[tokio::test(start_paused = true)]
async fn d09_every_open_call_is_in_the_snapshot_and_is_cancelled() {
    let steps =
        [text("So. "), started(0, "a"), started(1, "b"), arguments(0, "{\"x"), arguments(1, "{\"y"), reset()];
    let (seen, _) = ask_with(RetryPolicy::never(), [says(steps.clone())]).await;
    let expected = InterruptSnapshot {
        text: Some("So. ".to_owned()),
        completed_tool_calls: Vec::new(),
        in_flight_tools: vec![open("a", "{\"x"), open("b", "{\"y")],
    };
    let cause = InterruptCause::ConnectionReset;
    assert_eq!(*seen.error(), E::StreamInterrupted { cause, snapshot: Box::new(expected) });
    let (seen, _) = ask([says(steps), says([text("Done."), stop()])]).await;
    is_one(&seen);
    assert_eq!((seen.cancelled(), seen.text().as_str()), (vec!["a", "b"], "So. Done."));
}

fn open(id: &str, partial_arguments: &str) -> OpenToolCall {
    let (id, name) = (id.to_owned(), format!("tool-{id}"));
    OpenToolCall { id, name, partial_arguments: partial_arguments.to_owned() }
}

// clause: D10
#[tokio::test(start_paused = true)]
async fn d10_nothing_usable_restarts_and_clients_are_told() {
    for (lost, resets) in [
        (vec![think("Hm"), reset()], 1),
        (vec![started(0, "a"), arguments(0, "{"), reset()], 1),
        (vec![text("\n\n"), reset()], 1),
        (vec![reset()], 0),
    ] {
        let (seen, model) = ask([says(lost.clone()), says([think("Ah"), text("Yes."), stop()])]).await;
        is_one(&seen);
        assert_eq!((seen.text().as_str(), seen.resets()), ("Yes.", resets), "{lost:?}");
        assert_eq!(thoughts(seen.answer()), ["Ah"]);
        assert_eq!(model.requests()[1], question(), "the question as it was");
    }
}

// A form that the provider forces begins anew each time: half a document and a whole one would be neither.
// clause: D10
#[tokio::test(start_paused = true)]
async fn d10_an_answer_in_a_form_is_not_continued() {
    let model = model("one", [says([text("{\"a\":"), reset()]), says([text("{\"a\":1}"), stop()])]);
    let format = Some(AnswerFormat { name: "a".to_owned(), schema: json!({}) });
    let request = InferenceRequest { format, ..question() };
    let inference = inference(&[&model], RetryPolicy::default(), patient());
    let seen = look(inference.start(request, CancellationToken::new())).await;
    is_one(&seen);
    assert_eq!((seen.text().as_str(), seen.resets()), ("{\"a\":1}", 1));
}

// clause: D10
#[tokio::test(start_paused = true)]
async fn d10_what_was_thought_is_kept_over_attempts() {
    let sealed = json!({"signature": "s"});
    let (seen, _) = ask([
        says([think("First "), think("thought."), text("Half"), reset()]),
        says([think("Second."), Step::ReasoningEnded(sealed.clone()), text(" and half."), stop()]),
    ])
    .await;
    is_one(&seen);
    let thought = |text: &str, sealed| Part::Reasoning(Reasoning { text: text.to_owned(), sealed });
    let expected = vec![
        thought("First thought.", None),
        thought("Second.", Some(sealed)),
        Part::Text { text: "Half and half.".to_owned() },
    ];
    assert_eq!(seen.answer().message, Message { role: Role::Assistant, content: expected });
}

// Providers refuse what came of a thought without the thought.
// clause: D10
#[tokio::test(start_paused = true)]
async fn d10_a_model_that_is_asked_to_go_on_gets_its_thoughts_back() {
    let sealed = json!({"signature": "s"});
    let thinks = [think("Hm."), Step::ReasoningEnded(sealed.clone()), text("Half"), reset()];
    let (seen, model) = ask([says(thinks), says([text(" and half."), stop()])]).await;
    is_one(&seen);
    let thought = Part::Reasoning(Reasoning { text: "Hm.".to_owned(), sealed: Some(sealed) });
    let content = vec![thought, Part::Text { text: "Half".to_owned() }];
    assert_eq!(*model.requests()[1].messages[1], Message { role: Role::Assistant, content });
}

// clause: D09
#[tokio::test(start_paused = true)]
async fn d09_every_cause_is_recovered_from_and_surfaces_exactly_when_it_goes_on() {
    for cause in [
        InterruptCause::ConnectionReset,
        InterruptCause::IdleStall,
        InterruptCause::GoAway,
        InterruptCause::Provider5xxMidStream(503),
        InterruptCause::Provider5xxMidStream(529),
    ] {
        let (seen, _) = ask([says([text("a"), cut(cause)]), says([text("b"), stop()])]).await;
        assert_eq!(seen.text(), "ab");
        let (seen, model) = ask(vec![says([text("a"), cut(cause)]); 9]).await;
        let snapshot = InterruptSnapshot { text: Some("aaa".to_owned()), ..InterruptSnapshot::default() };
        assert_eq!(*seen.error(), E::StreamInterrupted { cause, snapshot: Box::new(snapshot) });
        assert_eq!((model.asked(), seen.text(), seen.turn_partial), (3, "aaa".to_owned(), "aaa".to_owned()));
    }
}

// clause: D09
#[tokio::test(start_paused = true)]
async fn d09_an_answer_that_pauses_for_too_long_is_an_idle_stall() {
    let (seen, _) = ask([says([text("a"), Step::Stall]), says([text("b"), stop()])]).await;
    assert_eq!(seen.text(), "ab");
    let cause = seen.last_error.clone();
    assert!(
        matches!(cause, Some(E::StreamInterrupted { cause: InterruptCause::IdleStall, .. })),
        "{cause:?}"
    );
    let policy = RetryPolicy { idle_limit_ms: 120_000, ..RetryPolicy::default() };
    let slow = [text("a"), Step::DelayMs(119_000), text("b"), Step::DelayMs(119_000), text("c"), stop()];
    let (seen, model) = ask_with(policy, [says(slow)]).await;
    assert_eq!((seen.text().as_str(), model.asked()), ("abc", 1), "each piece has the whole time");
}

// The original ignores both settings of an agent.
// clause: D10
#[tokio::test(start_paused = true)]
async fn d10_an_agent_s_own_limits_hold() {
    let policy = RetryPolicy { stream_retries_max: 5, idle_limit_ms: 50, ..RetryPolicy::default() };
    let answers = vec![says([text("a"), Step::DelayMs(51), text("never")]); 9];
    let (seen, model) = ask_with(policy, answers).await;
    assert!(matches!(seen.error(), E::StreamInterrupted { cause: InterruptCause::IdleStall, .. }));
    assert_eq!((model.asked(), seen.text().as_str()), (6, "aaaaaa"));
}

// The original loses when to come back, and the class.
// clause: D08
#[tokio::test(start_paused = true)]
async fn d08_an_error_in_the_middle_keeps_its_class_and_when_to_come_back() {
    let limited = ScriptedError::RateLimited { message: "slow".to_owned(), retry_after_ms: Some(7_000) };
    let (seen, _) = ask([says([text("a"), failed(limited.clone())]), says([text("b"), stop()])]).await;
    assert_eq!((seen.text().as_str(), seen.waits()), ("ab", vec![std::time::Duration::from_secs(7)]));
    let (seen, _) = ask(vec![says([text("a"), failed(limited.clone())]); 3]).await;
    assert_eq!(*seen.error(), limited.into());
    assert_eq!(seen.turn_partial, "aaa");
}

// clause: D07
#[tokio::test(start_paused = true)]
async fn d07_a_permanent_error_in_the_middle_ends_the_turn_and_what_was_said_remains() {
    let filtered = ScriptedError::ContentFiltered { message: "no".to_owned() };
    let (seen, model) = ask([says([text("a"), failed(filtered.clone())]), says([text("b"), stop()])]).await;
    assert_eq!(*seen.error(), filtered.into());
    assert_eq!((model.asked(), seen.turn_partial.as_str(), seen.resets()), (1, "a", 0));
}

// clause: D10
#[tokio::test(start_paused = true)]
async fn d10_a_call_that_was_cut_at_the_length_limit_is_not_made() {
    let cut = Step::Stop(StopReason::MaxTokens);
    let (seen, _) = ask([says([text("a"), started(0, "x"), arguments(0, "{\"y"), cut])]).await;
    is_one(&seen);
    assert_eq!((seen.cancelled(), seen.answer().stop), (vec!["x"], StopReason::MaxTokens));
}

// clause: D10
#[tokio::test(start_paused = true)]
async fn d10_a_call_that_was_just_whole_at_the_length_limit_is_made() {
    let cut = Step::Stop(StopReason::MaxTokens);
    let (seen, _) = ask([says([started(0, "x"), arguments(0, "{\"y\":1}"), started(1, "z"), cut])]).await;
    is_one(&seen);
    assert_eq!((seen.ready(), seen.cancelled()), (vec![call("x", json!({"y": 1}))], vec!["z"]));
}

// clause: D10
#[tokio::test(start_paused = true)]
async fn d10_what_only_began_like_a_repetition_is_kept_when_something_else_comes() {
    let before = "All of this has been said before.";
    let kept = format!("{before}All of this");
    let calls = |end| vec![started(0, "x"), ended(0), end];
    for after in [calls(Step::Stop(StopReason::ToolUse)), calls(reset()), vec![stop()]] {
        let continued = [text("All of"), text(" this")].into_iter().chain(after);
        let (seen, _) = ask([says([text(before), reset()]), says(continued)]).await;
        is_one(&seen);
        assert_eq!(seen.answer().message.content[0], Part::Text { text: kept.clone() });
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_end_is_the_provider_s_error() {
    let piece = "x".repeat(ANSWER_BYTES_MAX / 16);
    let (seen, _) = ask_with(RetryPolicy::never(), [says(vec![text(&piece); 17])]).await;
    assert!(matches!(seen.error(), E::Provider(_)));
    assert_eq!(seen.turn_partial.len(), ANSWER_BYTES_MAX);
    let (seen, _) =
        ask_with(RetryPolicy::never(), [says(vec![text(&piece); 16].into_iter().chain([stop()]))]).await;
    assert_eq!(seen.answer().message.said().len(), ANSWER_BYTES_MAX);

    let calls = |calls: usize| (0..calls).map(|at| started(u32::try_from(at).unwrap(), &format!("c{at}")));
    let (seen, _) = ask_with(RetryPolicy::never(), [says(calls(CALLS_MAX + 1).chain([stop()]))]).await;
    assert!(matches!(seen.error(), E::Provider(_)));
    let (seen, _) = ask_with(RetryPolicy::never(), [says(calls(CALLS_MAX).chain([stop()]))]).await;
    assert_eq!(seen.ready().len(), CALLS_MAX);

    let sealed = Step::ReasoningEnded(json!({"item": "x".repeat(ANSWER_BYTES_MAX)}));
    let (seen, _) = ask_with(RetryPolicy::never(), [says([sealed, stop()])]).await;
    assert!(matches!(seen.error(), E::Provider(_)), "what is sealed counts too");
}

// clause: D10
#[tokio::test(start_paused = true)]
async fn d10_of_an_answer_over_a_limit_no_call_is_made_though_it_is_whole() {
    let index = |at: usize| u32::try_from(at).unwrap();
    let whole = |at: usize| [started(index(at), &format!("c{at}")), ended(index(at))];
    let endless = || says((0..=CALLS_MAX).flat_map(whole).chain([stop()]));
    let (seen, _) = ask_with(RetryPolicy::never(), [endless()]).await;
    assert!(matches!(seen.error(), E::Provider(_)), "{:?}", seen.outcome);
    let (seen, model) = ask([endless(), says([text("Better."), stop()])]).await;
    is_one_after_reset(&seen);
    assert_eq!((seen.text().as_str(), seen.resets(), model.asked()), ("Better.", 1, 2));
}

#[track_caller]
fn is_one_after_reset(seen: &Seen) {
    let answer = seen.answer();
    assert_eq!(answer.message.said(), seen.text(), "what is kept is what was seen");
    assert_eq!(answer.message.tool_calls().count(), 0, "what was called before is void");
}

// clause: D10
#[tokio::test(start_paused = true)]
async fn d10_a_repetition_that_is_too_short_to_be_told_from_chance_is_kept_as_it_was_seen() {
    let (seen, _) =
        ask([says([text("Four, five, six"), reset()]), says([text("six"), text(" seven."), stop()])]).await;
    is_one(&seen);
    assert_eq!(seen.text(), "Four, five, sixsix seven.");
}

// clause: D09
#[tokio::test(start_paused = true)]
async fn d09_what_fits_no_answer_is_the_provider_s_error_and_invents_no_call() {
    for nonsense in [
        vec![arguments(3, "{}")],
        vec![ended(3)],
        vec![started(0, "a"), started(0, "b")],
        vec![started(0, "a"), ended(0), arguments(0, "{}")],
    ] {
        let has_whole_call = nonsense.contains(&ended(0));
        let (seen, _) = ask_with(RetryPolicy::never(), [says(nonsense.clone())]).await;
        match has_whole_call {
            true => assert_eq!(seen.ready(), [call("a", no_arguments())]),
            false => assert!(matches!(seen.error(), E::Provider(_)), "{nonsense:?}"),
        }
    }
}

// clause: D09
#[tokio::test(start_paused = true)]
async fn d09_calls_that_a_model_gave_one_id_are_several() {
    let both = [started(0, "a"), started(1, "a"), ended(0), arguments(1, r#"{"n":2}"#), ended(1), stop()];
    let (seen, model) = ask([says(both)]).await;
    let mut second = call("a", json!({ "n": 2 }));
    second.id = "a-2".to_owned();
    assert_eq!(seen.ready(), [call("a", no_arguments()), second]);
    assert_eq!((seen.answer().message.tool_calls().count(), model.asked()), (2, 1));
}

// clause: D10
#[test]
fn d10_the_recovery_is_chosen_from_the_snapshot() {
    let whole = vec![call("a", no_arguments())];
    let begun = vec![open("b", "{")];
    let snapshot = |text: Option<&str>, whole: &[_], begun: &[_]| InterruptSnapshot {
        text: text.map(str::to_owned),
        completed_tool_calls: whole.to_vec(),
        in_flight_tools: begun.to_vec(),
    };
    let choose = |snapshot| Recovery::choose(&snapshot, &question());
    #[rustfmt::skip]
    let table = [
        // nothing called                          a call begun                            a call whole
        [choose(snapshot(None, &[], &[])),        choose(snapshot(None, &[], &begun)),        choose(snapshot(None, &whole, &begun))],
        [choose(snapshot(Some(" "), &[], &[])),   choose(snapshot(Some(" "), &[], &begun)),   choose(snapshot(Some(" "), &whole, &begun))],
        [choose(snapshot(Some("hi"), &[], &[])),  choose(snapshot(Some("hi"), &[], &begun)),  choose(snapshot(Some("hi"), &whole, &begun))],
    ];
    use Recovery as R;
    assert_eq!(
        table,
        [
            [R::Restart, R::Restart, R::UseCalls],
            [R::Restart, R::Restart, R::UseCalls],
            [R::ContinueText, R::ContinueWithoutCall, R::UseCalls],
        ]
    );
}

// clause: D10
#[tokio::test(start_paused = true)]
async fn d10_what_was_said_stands_until_the_model_really_begins_anew() {
    let model = model("one", [says([think("Hm"), reset()]), says([text("Yes."), stop()])]);
    let inference = inference(&[&model], RetryPolicy::default(), patient());
    let mut turn = inference.start(question(), CancellationToken::new());
    let mut updates = Vec::new();
    while let Ok(Some(update)) = turn.next().await {
        if matches!(update, Update::Retrying { .. }) {
            assert_eq!(turn.partial().message.content.len(), 1, "the thought is still there");
        }
        updates.push(update);
    }
    let at = |wanted: fn(&Update) -> bool| updates.iter().position(wanted);
    assert!(at(|update| matches!(update, Update::Retrying { .. })) < at(|update| *update == Update::Reset));
    assert_eq!(Arc::strong_count(&model), 2, "nothing of the request is left but the pool's");
}
