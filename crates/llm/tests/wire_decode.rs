//! What each wire's lines become: as providers send them, and as some send them otherwise.
//!
//! Any cutting of the bytes gives the same events. `RUNYARD_PROOF=soak` tries many more cuttings.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod recorded;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use runyard_llm::inference::{
    Fault, InferenceExecutionError as Error, InterruptCause, ModelEvent, StopReason,
};
use runyard_llm::usage::Usage;
use runyard_llm::wire::{CALLS_MAX, Wire};
use serde_json::{Value, json};

use self::recorded::{
    all, anthropic, anthropic_events, calls, chat, chat_events, chunk, responses, responses_events, stream,
};

type Given = Vec<Result<ModelEvent, Fault>>;

fn decode(wire: &Wire, pieces: &[&[u8]]) -> Given {
    let mut decoder = wire.decoder("p", "m");
    let mut given: Given = pieces.iter().flat_map(|piece| decoder.push(piece)).collect();
    given.extend(decoder.end(InterruptCause::ConnectionReset));
    assert!(decoder.is_over());
    assert!(decoder.push(b"data: {}\n\n").is_empty() && decoder.end(InterruptCause::GoAway).is_empty());
    given
}

#[track_caller]
fn check(wire: &Wire, events: &[Value], expected: Given) {
    assert_eq!(decode(wire, &[stream(events).as_bytes()]), expected);
}

fn text(text: &str) -> Result<ModelEvent, Fault> {
    Ok(ModelEvent::Text(text.into()))
}

fn thought(text: &str) -> Result<ModelEvent, Fault> {
    Ok(ModelEvent::Reasoning(text.into()))
}

fn started(index: u32, id: &str, name: &str) -> Result<ModelEvent, Fault> {
    Ok(ModelEvent::ToolCallStarted { index, id: id.into(), name: name.into() })
}

fn arguments(index: u32, text: &str) -> Result<ModelEvent, Fault> {
    Ok(ModelEvent::ToolCallArguments { index, text: text.into() })
}

fn ended(index: u32) -> Result<ModelEvent, Fault> {
    Ok(ModelEvent::ToolCallEnded { index })
}

fn stopped(reason: StopReason) -> Result<ModelEvent, Fault> {
    Ok(ModelEvent::Stopped(reason))
}

fn sealed(item: Value) -> Result<ModelEvent, Fault> {
    Ok(ModelEvent::ReasoningEnded { sealed: Some(json!({"provider": "p", "model": "m", "item": item})) })
}

fn used(input: u64, output: u64, cached: u64, reasoning: u64) -> Result<ModelEvent, Fault> {
    Ok(ModelEvent::Usage(Usage {
        input_tokens: input,
        output_tokens: output,
        cached_tokens: cached,
        reasoning_tokens: reasoning,
    }))
}

fn reset() -> Result<ModelEvent, Fault> {
    Err(Fault::Interrupted(InterruptCause::ConnectionReset))
}

#[test]
fn the_events_of_the_responses_api() {
    let item = json!({"type": "reasoning", "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "One.\n\nTwo."}], "encrypted_content": "e"});
    let expected = vec![
        thought("One."),
        thought("\n\n"),
        thought("Two."),
        sealed(item),
        text("Hé"),
        text("llo\r\n🦀"),
        started(0, "c1", "look"),
        started(1, "c2", "hear"),
        arguments(1, "{\"b\":"),
        arguments(0, "{\"a\":1}"),
        arguments(1, "2}"),
        ended(1),
        ended(0),
        used(90, 20, 60, 10),
        stopped(StopReason::ToolUse),
    ];
    check(&responses(), &responses_events(), expected);
}

#[test]
fn the_responses_api_as_others_speak_it() {
    // Items that come whole, an answer that refuses, calls of which the end is told with the answer's.
    let completed = |output: Value| json!({"type": "response.completed", "response": {"output": output}});
    check(
        &responses(),
        &[
            json!({"type": "response.output_item.done", "output_index": 0,
                "item": {"type": "reasoning", "summary": [{"text": "One."}, {"text": "Two."}]}}),
            json!({"type": "response.output_item.done", "output_index": 1,
                "item": {"type": "message", "content": [{"type": "output_text", "text": "Hello."}]}}),
            json!({"type": "response.refusal.delta", "output_index": 2, "delta": "I will not."}),
            json!({"type": "response.output_item.done", "output_index": 3,
                "item": {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}}),
            json!({"type": "response.output_item.added", "output_index": 4,
                "item": {"type": "function_call", "call_id": "c2", "name": "hear"}}),
            completed(json!([{"type": "function_call", "call_id": "c2", "arguments": "{\"b\":2}"}])),
        ],
        vec![
            thought("One.\n\nTwo."),
            Ok(ModelEvent::ReasoningEnded { sealed: None }),
            text("Hello."),
            text("I will not."),
            started(0, "c1", "look"),
            arguments(0, "{}"),
            ended(0),
            started(1, "c2", "hear"),
            arguments(1, "{\"b\":2}"),
            ended(1),
            stopped(StopReason::ToolUse),
        ],
    );
    // Calls that have one id, told whole with the answer's end.
    let call = |n: u8| json!({"type": "function_call", "call_id": "c", "name": "look", "arguments": format!("{{\"n\":{n}}}")});
    let begins = |at: u8| {
        let item = json!({"type": "function_call", "call_id": "c", "name": "look"});
        json!({"type": "response.output_item.added", "output_index": at, "item": item})
    };
    check(
        &responses(),
        &[begins(0), begins(1), completed(json!([call(1), call(2)]))],
        vec![
            started(0, "c", "look"),
            started(1, "c", "look"),
            arguments(0, "{\"n\":1}"),
            ended(0),
            arguments(1, "{\"n\":2}"),
            ended(1),
            stopped(StopReason::ToolUse),
        ],
    );
    // A free-form call is one whose arguments are text.
    check(
        &responses(),
        &[
            json!({"type": "response.output_item.added", "output_index": 0,
                "item": {"type": "custom_tool_call", "call_id": "c1", "name": "patch", "input": ""}}),
            json!({"type": "response.custom_tool_call_input.delta", "output_index": 0, "delta": "*** "}),
            json!({"type": "response.output_item.done", "output_index": 0,
                "item": {"type": "custom_tool_call", "call_id": "c1", "input": "*** End"}}),
            completed(json!([])),
        ],
        vec![
            started(0, "c1", "patch"),
            arguments(0, "*** "),
            arguments(0, "End"),
            ended(0),
            stopped(StopReason::ToolUse),
        ],
    );
    let failed = |error: Error| vec![Err(Fault::Failed(error))];
    check(
        &responses(),
        &[
            json!({"type": "response.failed", "response": {"error": {"code": "server_error", "message": "m"}}}),
        ],
        vec![Err(Fault::Interrupted(InterruptCause::Provider5xxMidStream(500)))],
    );
    check(
        &responses(),
        &[json!({"type": "error", "code": "rate_limit_exceeded", "message": "slow"})],
        failed(Error::rate_limited("slow")),
    );
    check(
        &responses(),
        &[json!({"type": "error", "status": 404, "error": {"code": "model_not_found", "message": "m"}})],
        failed(Error::ModelNotFound("m".into())),
    );
}

#[test]
fn the_chunks_of_chat_completions() {
    let expected = vec![
        thought("Hm, "),
        thought("ä."),
        sealed(json!({"type": "reasoning_content"})),
        text("Hello"),
        started(0, "c1", "look"),
        started(1, "c2", "hear"),
        arguments(1, "{\"b\""),
        arguments(0, "{\"a\":1}"),
        arguments(1, ":2}"),
        used(90, 20, 60, 10),
        ended(0),
        ended(1),
        stopped(StopReason::ToolUse),
    ];
    let mut bytes = stream(&chat_events());
    assert_eq!(decode(&chat(), &[bytes.as_bytes()]), expected, "without [DONE]");
    bytes.push_str("data: [DONE]\n\n");
    assert_eq!(decode(&chat(), &[bytes.as_bytes()]), expected);
}

#[test]
fn chat_completions_as_others_speak_them() {
    let end = || chunk(json!({}), Some("stop"));
    // Calls that come whole, without index or id; the same index for another call; a name that comes again.
    check(
        &chat(),
        &[calls(json!([{"function": {"name": "look", "arguments": "{}"}}])), end()],
        vec![started(0, "call_a1_0", "look"), arguments(0, "{}"), ended(0), stopped(StopReason::ToolUse)],
    );
    check(
        &chat(),
        &[
            calls(json!([{"index": 0, "id": "c1", "function": {"name": "look", "arguments": "{}"}}])),
            calls(json!([{"index": 0, "id": "c2", "function": {"name": "hear", "arguments": "{\"b\":"}}])),
            calls(json!([{"index": 0, "id": "c2", "function": {"name": "hear", "arguments": "2}"}}])),
            end(),
        ],
        vec![
            started(0, "c1", "look"),
            arguments(0, "{}"),
            ended(0),
            started(1, "c2", "hear"),
            arguments(1, "{\"b\":"),
            arguments(1, "2}"),
            ended(1),
            stopped(StopReason::ToolUse),
        ],
    );
    // Pieces without an index belong to the call that they name, or else to the last one.
    check(
        &chat(),
        &[
            calls(json!([{"id": "c1", "function": {"name": "look", "arguments": "{\"a\":"}}])),
            calls(json!([{"function": {"arguments": "1}"}}])),
            calls(json!([{"id": "c2", "function": {"name": "hear", "arguments": ""}}])),
            calls(json!([{"id": "c2", "function": {"arguments": "{}"}}])),
            end(),
        ],
        vec![
            started(0, "c1", "look"),
            arguments(0, "{\"a\":"),
            arguments(0, "1}"),
            ended(0),
            started(1, "c2", "hear"),
            arguments(1, "{}"),
            ended(1),
            stopped(StopReason::ToolUse),
        ],
    );
    // What came under another name is not wanted back.
    check(
        &chat(),
        &[chunk(json!({"reasoning": "Hm."}), None), chunk(json!({"refusal": "No."}), None), end()],
        vec![
            thought("Hm."),
            Ok(ModelEvent::ReasoningEnded { sealed: None }),
            text("No."),
            stopped(StopReason::EndTurn),
        ],
    );
    let failed = |error: Error| vec![Err(Fault::Failed(error))];
    check(
        &chat(),
        &[chunk(json!({}), Some("content_filter"))],
        failed(Error::ContentFiltered("the answer ended with content_filter".into())),
    );
    check(
        &chat(),
        &[chunk(json!({}), Some("insufficient_system_resource"))],
        vec![Err(Fault::Interrupted(InterruptCause::Provider5xxMidStream(503)))],
    );
    check(
        &chat(),
        &[chunk(json!({}), Some("error"))],
        failed(Error::Provider("the answer ended with an error".into())),
    );
    check(
        &chat(),
        &[calls(json!([{"index": 0, "id": "c1"}])), end()],
        failed(Error::Provider("a tool call of its answer has no name".into())),
    );
    check(
        &chat(),
        &[json!({"error": {"code": 502, "message": "m"}, "choices": [chunk(json!({}), Some("error"))]})],
        vec![Err(Fault::Interrupted(InterruptCause::Provider5xxMidStream(502)))],
    );
}

#[test]
fn the_events_of_anthropic() {
    let expected = vec![
        used(90, 1, 60, 0),
        thought("Hm, ä."),
        sealed(json!({"type": "thinking", "thinking": "Hm, ä.", "signature": "sig"})),
        sealed(json!({"type": "redacted_thinking", "data": "xyz"})),
        text("Hello 🦀"),
        started(0, "c1", "look"),
        started(1, "c2", "hear"),
        arguments(1, "{\"b\":"),
        arguments(1, "2}"),
        ended(1),
        used(90, 20, 60, 10),
        ended(0),
        stopped(StopReason::ToolUse),
    ];
    check(&anthropic(), &anthropic_events(), expected);
}

#[test]
fn a_call_that_was_cut_at_the_most_that_may_be_said_is_never_whole() {
    let cut = |reason: &str| {
        [
            json!({"type": "content_block_start", "index": 0,
                "content_block": {"type": "tool_use", "id": "c1", "name": "look", "input": {}}}),
            json!({"type": "content_block_delta", "index": 0,
                "delta": {"type": "input_json_delta", "partial_json": "{\"a\""}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": reason}}),
            json!({"type": "message_stop"}),
        ]
    };
    let begun = [started(0, "c1", "look"), arguments(0, "{\"a\"")];
    let with = |more: Given| begun.iter().cloned().chain(more).collect::<Given>();
    check(&anthropic(), &cut("max_tokens"), with(vec![stopped(StopReason::MaxTokens)]));
    check(&anthropic(), &cut("model_context_window_exceeded"), with(vec![stopped(StopReason::MaxTokens)]));
    check(&anthropic(), &cut("tool_use"), with(vec![ended(0), stopped(StopReason::ToolUse)]));
    let refused = Err(Fault::Failed(Error::ContentFiltered("the answer ended with refusal".into())));
    check(&anthropic(), &cut("refusal"), with(vec![refused]));
    check(&anthropic(), &cut("tool_use")[..3], with(vec![reset()]));

    check(
        &chat(),
        &[
            calls(json!([{"index": 0, "id": "c1", "function": {"name": "look", "arguments": "{\"a\""}}])),
            chunk(json!({}), Some("length")),
        ],
        with(vec![stopped(StopReason::MaxTokens)]),
    );
}

// clause: D09
#[test]
fn d09_calls_that_nothing_but_their_names_tells_apart_are_several() {
    let two = |one: Value, other: Value, expected: [(&str, &str, &str); 2]| {
        let begun: Given = expected
            .iter()
            .zip(0..)
            .flat_map(|((id, name, text), at)| {
                let text = (!text.is_empty()).then(|| arguments(at, text));
                [started(at, id, name)].into_iter().chain(text).chain([ended(at)])
            })
            .chain([stopped(StopReason::ToolUse)])
            .collect();
        let end = || chunk(json!({}), Some("tool_calls"));
        check(&chat(), &[calls(json!([one, other])), end()], begun.clone());
        check(&chat(), &[calls(json!([one])), calls(json!([other])), end()], begun);
    };
    let call = |name: &str, arguments: &str| json!({"function": {"name": name, "arguments": arguments}});
    let at_0 = |id: &str, name: &str, arguments: &str| json!({"index": 0, "id": id, "function": {"name": name, "arguments": arguments}});
    let both = [("call_a1_0", "look", "{\"a\":1}"), ("call_a1_1", "hear", "{}")];
    two(call("look", "{\"a\":1}"), call("hear", "{}"), both);
    two(at_0("", "look", "{\"a\":1}"), at_0("", "hear", "{}"), both);
    let twice = [("call_a1_0", "look", "{\"a\":1}"), ("call_a1_1", "look", "{\"a\":2}")];
    two(call("look", "{\"a\":1}"), call("look", "{\"a\":2}"), twice);
    let bare = [("call_a1_0", "look", ""), ("call_a1_1", "hear", "")];
    two(call("look", ""), call("hear", ""), bare);
    let named = [("c1", "look", "{}"), ("call_a1_1", "hear", "{}")];
    two(at_0("c1", "look", "{}"), at_0("", "hear", "{}"), named);

    // A name that comes again with the rest, or with nothing, is no other call.
    check(
        &chat(),
        &[
            calls(json!([at_0("", "look", "{\"a\":")])),
            calls(json!([at_0("", "look", "1}")])),
            calls(json!([at_0("", "look", "")])),
            chunk(json!({}), Some("tool_calls")),
        ],
        vec![
            started(0, "call_a1_0", "look"),
            arguments(0, "{\"a\":1}"),
            ended(0),
            stopped(StopReason::ToolUse),
        ],
    );
}

// clause: D09
#[test]
fn d09_an_answer_that_ended_for_a_reason_that_is_not_known_is_whole() {
    for reason in ["eos_token", "stop_sequence", "unheard_of"] {
        let said = chunk(json!({"content": "So."}), Some(reason));
        check(&chat(), &[said], vec![text("So."), stopped(StopReason::EndTurn)]);
        let called = calls(json!([{"index": 0, "id": "c1", "function": {"name": "look", "arguments": ""}}]));
        let called = [called, chunk(json!({}), Some(reason))];
        check(&chat(), &called, vec![started(0, "c1", "look"), ended(0), stopped(StopReason::ToolUse)]);
    }
    check(&chat(), &[chunk(json!({}), Some("model_length"))], vec![stopped(StopReason::MaxTokens)]);
    let said = [
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "So."}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "unheard_of"}}),
        json!({"type": "message_stop"}),
    ];
    check(&anthropic(), &said, vec![text("So."), stopped(StopReason::EndTurn)]);
    let incomplete =
        json!({"type": "response.incomplete", "response": {"incomplete_details": {"reason": "unheard_of"}}});
    check(&responses(), &[incomplete], vec![stopped(StopReason::MaxTokens)]);
}

// clause: D10
#[test]
fn d10_a_call_that_was_cut_before_its_first_argument_is_never_whole() {
    let start = |index: u64| {
        json!({"type": "content_block_start", "index": index,
            "content_block": {"type": "tool_use", "id": format!("c{index}"), "name": "look", "input": {}}})
    };
    let stop = |index: u64| json!({"type": "content_block_stop", "index": index});
    let end = |reason: &str| json!({"type": "message_delta", "delta": {"stop_reason": reason}});
    let begun = || started(0, "c0", "look");
    check(
        &anthropic(),
        &[start(0), stop(0), end("max_tokens")],
        vec![begun(), stopped(StopReason::MaxTokens)],
    );
    check(
        &anthropic(),
        &[start(0), stop(0), end("tool_use")],
        vec![begun(), ended(0), stopped(StopReason::ToolUse)],
    );
    // What comes after it shows that it was not cut; and nothing says that it was when the connection is.
    check(
        &anthropic(),
        &[start(0), stop(0), start(1), stop(1), end("max_tokens")],
        vec![begun(), ended(0), started(1, "c1", "look"), stopped(StopReason::MaxTokens)],
    );
    check(&anthropic(), &[start(0), stop(0)], vec![begun(), ended(0), reset()]);
    let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "m"}});
    let failed = Err(Fault::Interrupted(InterruptCause::Provider5xxMidStream(529)));
    check(&anthropic(), &[start(0), stop(0), error], vec![begun(), ended(0), failed]);
}

#[test]
fn what_is_no_event_and_what_has_no_end_is_no_answer() {
    for wire in [responses(), chat(), anthropic()] {
        for nothing in [": here\n\n", "data:\n\n", "event: ping\ndata: \n\n"] {
            assert_eq!(decode(&wire, &[nothing.as_bytes()]), [reset()], "{nothing:?} on {}", wire.path());
        }
        let given = decode(&wire, &[b"data: not JSON\n\n"]);
        assert!(matches!(given[..], [Err(Fault::Failed(Error::Provider(_)))]), "{given:?}");
    }
    let many = |index: usize| {
        calls(json!([{"index": index, "id": index.to_string(), "function": {"name": "look"}}]))
    };
    let many: Vec<Value> = (0..=CALLS_MAX).map(many).collect();
    let given = decode(&chat(), &[stream(&many).as_bytes()]);
    assert_eq!(given.len(), CALLS_MAX + 1);
    assert!(matches!(given.last().unwrap(), Err(Fault::Endless(_))));
}

fn cases() -> Config {
    let cases = match std::env::var("RUNYARD_PROOF").as_deref() {
        Ok("quick") => 64,
        Ok("soak") => 20_000,
        _ => 512,
    };
    Config { cases, failure_persistence: None, ..Config::default() }
}

#[test]
fn d10_any_cutting_of_the_bytes_gives_the_same_events() {
    let answers: Vec<(Wire, String, Given)> = all()
        .into_iter()
        .map(|(wire, events)| {
            let bytes = stream(&events);
            let whole = decode(&wire, &[bytes.as_bytes()]);
            (wire, bytes, whole)
        })
        .collect();
    let asked = (0..answers.len(), prop::collection::vec(any::<prop::sample::Index>(), 0..40));
    let done = TestRunner::new(cases()).run(&asked, |(which, cuts)| {
        let (wire, bytes, whole) = &answers[which];
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|two| &bytes.as_bytes()[two[0]..two[1]]).collect();
        prop_assert_eq!(&decode(wire, &pieces), whole);
        Ok(())
    });
    done.unwrap();
}

#[test]
fn d10_an_answer_that_breaks_off_anywhere_is_a_beginning_of_the_whole_one_and_is_never_taken_for_it() {
    for (wire, events) in all() {
        let bytes = stream(&events);
        let whole = decode(&wire, &[bytes.as_bytes()]);
        for at in 0..bytes.len() {
            let case = format!("{} at {at}", wire.path());
            let mut given = decode(&wire, &[&bytes.as_bytes()[..at]]);
            let end = given.pop().unwrap();
            if end == stopped(StopReason::ToolUse) {
                // Its end was said, and only what it cost may be missing.
                let said = ["\"finish_reason\":\"tool_calls\"", "\"stop_reason\":\"tool_use\""];
                assert!(
                    said.iter().any(|said| bytes.as_bytes()[..at]
                        .windows(said.len())
                        .any(|part| part == said.as_bytes())),
                    "{case}"
                );
                let unpriced = |given: &Given| -> Given {
                    given.iter().filter(|event| !matches!(event, Ok(ModelEvent::Usage(_)))).cloned().collect()
                };
                assert_eq!(unpriced(&given), unpriced(&whole)[..unpriced(&whole).len() - 1], "{case}");
                continue;
            }
            assert_eq!(end, reset(), "{case}");
            // A call without arguments is ended where nothing comes any more that could show what cut it.
            if given.last() == Some(&ended(0)) && whole[given.len() - 1] != ended(0) {
                given.pop();
            }
            assert_eq!(given, whole[..given.len()], "{case}");
        }
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn whatever_a_provider_sends_there_is_an_end_and_calls_are_told_in_order(
        which in 0..3_usize,
        lines in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..30),
    ) {
        // Events of an answer in any order, again and again, and now and then one of another wire.
        let all = all();
        let bytes: String = lines.iter().map(|(from, event)| {
            let (_, events) = &all[if from.index(8) == 0 { from.index(3) } else { which }];
            stream(&[events[event.index(events.len())].clone()])
        }).collect();
        let given = decode(&all[which].0, &[bytes.as_bytes()]);
        let ends = given.iter().filter(|given| matches!(given, Err(_) | Ok(ModelEvent::Stopped(_)))).count();
        prop_assert_eq!(ends, 1);
        let mut open: Vec<bool> = Vec::new();
        for event in given.into_iter().flatten() {
            match event {
                ModelEvent::ToolCallStarted { index, .. } => {
                    prop_assert_eq!(index as usize, open.len());
                    open.push(true);
                }
                ModelEvent::ToolCallArguments { index, .. } => prop_assert!(open[index as usize]),
                ModelEvent::ToolCallEnded { index } => {
                    prop_assert!(std::mem::replace(&mut open[index as usize], false));
                }
                _ => {}
            }
        }
    }
}
