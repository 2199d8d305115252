//! What holds for every request and every answer.
#![allow(clippy::unwrap_used, missing_docs)]

mod answer;

use answer::{chunk, done, finish, is_last, last, said, tools, translated};
use proptest::prelude::*;
use runyard_llm::{
    translate::{Stream, to_chat},
    usage::{Told, of_body},
};
use serde_json::{Map, Value, json};

/// Words that mean something in a request, so that arbitrary JSON gets further than its first field.
fn word() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "type",
        "message",
        "role",
        "user",
        "assistant",
        "content",
        "text",
        "input_text",
        "model",
        "stream",
        "input",
        "tools",
        "function",
        "custom",
        "namespace",
        "name",
        "call_id",
        "function_call",
        "function_call_output",
        "arguments",
        "output",
        "reasoning",
        "summary",
        "summary_text",
        "tool_choice",
        "auto",
        "format",
        "json_schema",
        "schema",
        "choices",
        "delta",
        "index",
        "tool_calls",
        "id",
        "finish_reason",
        "stop",
        "usage",
        "prompt_tokens",
        "error",
        "response",
        "input_tokens",
    ])
    .prop_map(str::to_owned)
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        word().prop_map(Value::from),
        word().prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((word(), inner), 0..6)
                .prop_map(|fields| Value::from(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn fields() -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::vec((word(), json_value()), 0..5).prop_map(|fields| fields.into_iter().collect())
}

/// One step of a model's answer.
#[derive(Debug, Clone)]
enum Step {
    Think(String),
    Say(String),
    /// A piece of the call at this place.
    Call(usize, String),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        ".{0,5}".prop_map(Step::Think),
        ".{0,5}".prop_map(Step::Say),
        (0_usize..4, "[a-z]{0,3}").prop_map(|(place, text)| Step::Call(place, text)),
    ];
    prop::collection::vec(step, 0..24)
}

fn chunks(steps: &[Step]) -> Vec<String> {
    let mut begun = [false; 4];
    let step = |step: &Step| match step {
        Step::Think(text) => chunk(json!({"reasoning_content": text})),
        Step::Say(text) => said(text),
        Step::Call(place, text) => {
            let is_first = !std::mem::replace(&mut begun[*place], true);
            let id = is_first.then(|| format!("c{place}"));
            let name = is_first.then_some("f");
            answer::piece(json!({"index": place, "id": id, "function": {"name": name, "arguments": text}}))
        }
    };
    steps.iter().map(step).collect()
}

fn joined(events: &[Value], name: &str) -> String {
    events
        .iter()
        .filter(|event| event["type"] == name)
        .map(|event| event["delta"].as_str().unwrap())
        .collect()
}

proptest! {
    #[test]
    fn no_json_makes_a_request_panic(value in json_value(), fields in fields()) {
        let _ = to_chat(value);
        let mut request = json!({"model": "m", "stream": true});
        request.as_object_mut().unwrap().extend(fields);
        let _ = to_chat(request);
    }

    #[test]
    fn no_bytes_make_a_stream_or_a_meter_panic(values in prop::collection::vec(json_value(), 0..6), end in any::<bool>()) {
        let (mut stream, mut meter) = (Stream::new("r", "m", tools()), Told::default());
        let mut out = Vec::new();
        for value in values {
            let data = format!("data: {value}\n\n");
            meter.take(&value.to_string());
            let _ = of_body(value.to_string().as_bytes());
            match stream.push(data.as_bytes()) {
                Ok(bytes) => out.extend(bytes),
                Err(_) => break,
            }
        }
        if end {
            out.extend(stream.finish());
        }
        let lasts = answer::read(&out).iter().filter(|event| is_last(event)).count();
        prop_assert!(lasts <= 1);
    }

    #[test]
    fn what_goes_in_comes_out(steps in steps()) {
        let mut chunks = chunks(&steps);
        chunks.extend([finish("stop"), done()]);
        let events = translated(&chunks);
        prop_assert_eq!(events.iter().filter(|event| is_last(event)).count(), 1);
        prop_assert_eq!(&last(&events)["type"], "response.completed");

        let text = |wanted: fn(&Step) -> Option<&String>| steps.iter().filter_map(wanted).cloned().collect::<String>();
        let said = text(|step| if let Step::Say(text) = step { Some(text) } else { None });
        let thought = text(|step| if let Step::Think(text) = step { Some(text) } else { None });
        prop_assert_eq!(joined(&events, "response.output_text.delta"), said);
        prop_assert_eq!(joined(&events, "response.reasoning_summary_text.delta"), thought);

        let output = last(&events)["response"]["output"].as_array().unwrap();
        for place in 0..4 {
            let pieces: Vec<&str> = steps
                .iter()
                .filter_map(|step| match step {
                    Step::Call(at, text) if *at == place => Some(text.as_str()),
                    _ => None,
                })
                .collect();
            let id = format!("c{place}");
            let calls: Vec<&Value> = output.iter().filter(|item| item["call_id"] == id.as_str()).collect();
            prop_assert_eq!(calls.len(), usize::from(!pieces.is_empty()));
            if let Some(call) = calls.first() {
                prop_assert_eq!(&call["arguments"], &json!(pieces.concat()));
            }
        }
    }

    #[test]
    fn every_item_begins_and_ends_once_at_a_place_of_its_own(steps in steps()) {
        let mut chunks = chunks(&steps);
        chunks.extend([finish("stop"), done()]);
        let events = translated(&chunks);
        let places = |name: &str| -> Vec<u64> {
            let mut places: Vec<u64> = events
                .iter()
                .filter(|event| event["type"] == name)
                .map(|event| event["output_index"].as_u64().unwrap())
                .collect();
            places.sort_unstable();
            places
        };
        let output = last(&events)["response"]["output"].as_array().unwrap();
        let all: Vec<u64> = (0..output.len() as u64).collect();
        prop_assert_eq!(&places("response.output_item.added"), &all);
        prop_assert_eq!(&places("response.output_item.done"), &all);
        for event in events.iter().filter(|event| event["type"] == "response.output_item.done") {
            let place = usize::try_from(event["output_index"].as_u64().unwrap()).unwrap();
            prop_assert_eq!(&output[place], &event["item"]);
        }
    }

    #[test]
    fn any_cutting_of_the_chunks_gives_the_same_answer(steps in steps(), size in 1_usize..40) {
        let mut chunks = chunks(&steps);
        chunks.extend([finish("stop"), done()]);
        let bytes: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
        let mut stream = Stream::new("r", "m", tools());
        let mut out = Vec::new();
        for piece in bytes.as_bytes().chunks(size) {
            out.extend(stream.push(piece).unwrap());
        }
        prop_assert_eq!(answer::read(&out), translated(&chunks));
    }
}
