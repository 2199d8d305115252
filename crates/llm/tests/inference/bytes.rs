//! Recorded bytes of every wire, cut at every byte, through the decoder and the turn that are really used: the turn comes to an
//! end, what clients saw is what is kept, and no call is lost, doubled or invented.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use futures_core::Stream;
use runyard_llm::inference::{
    Breakers, CONTINUE, Fault, FixedJitter, Inference, InferenceRequest, InterruptCause, ManualClock, Model,
    ModelEvent, ModelStream, Pool, Refusal, RetryPolicy, ToolCall,
};
use runyard_llm::wire::Wire;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use crate::cuts::{every_call_is_closed, runtime, shown_thoughts, thought};
use crate::recorded::{all, chunk, stream};
use crate::support::{Seen, look, patient, question};

/// A model of which the bytes are cut after so many of each answer; what comes after the last cut is whole.
struct Bytes {
    wire: Wire,
    recording: Vec<Value>,
    text: &'static str,
    cuts: Mutex<VecDeque<usize>>,
}

impl Bytes {
    /// What it says to whoever asks: all of it, or what is left of it.
    fn answer(&self, request: &InferenceRequest) -> String {
        let said = match request.messages.as_slice() {
            [.., said, go_on] if go_on.said() == CONTINUE => said.said(),
            _ => return stream(&self.recording),
        };
        let rest = self.text.strip_prefix(&said).expect("asked to go on after what it said");
        let mut events = if rest.is_empty() { Vec::new() } else { saying(&self.wire, rest) };
        events.extend(calling(&self.wire, &self.recording));
        stream(&events)
    }
}

fn saying(wire: &Wire, text: &str) -> Vec<Value> {
    match wire {
        Wire::Responses(_) => {
            vec![json!({"type": "response.output_text.delta", "output_index": 1, "delta": text})]
        }
        Wire::Chat(_) => vec![chunk(json!({"content": text}), None)],
        Wire::Anthropic(_) => vec![
            json!({"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": text}}),
            json!({"type": "content_block_stop", "index": 2}),
        ],
    }
}

/// The calls of a recording and its end, without what was thought and said before.
fn calling(wire: &Wire, recording: &[Value]) -> Vec<Value> {
    let is_call = |event: &Value| match wire {
        Wire::Responses(_) => event["item"]["type"] == "function_call",
        Wire::Chat(_) => event["choices"][0]["delta"]["tool_calls"].is_array(),
        Wire::Anthropic(_) => event["content_block"]["type"] == "tool_use",
    };
    let first = recording.iter().position(is_call).expect("a recording has calls");
    recording[first..].to_vec()
}

#[async_trait]
impl Model for Bytes {
    fn name(&self) -> &str {
        "bytes"
    }

    async fn open(&self, request: &InferenceRequest) -> Result<ModelStream, Refusal> {
        let mut bytes = self.answer(request).into_bytes();
        if let Some(cut) = self.cuts.lock().unwrap().pop_front() {
            bytes.truncate(cut);
        }
        Ok(Box::pin(Decoded(decoded(&self.wire, &bytes))))
    }
}

fn decoded(wire: &Wire, bytes: &[u8]) -> VecDeque<Result<ModelEvent, Fault>> {
    let mut decoder = wire.decoder("p", "m");
    let mut given: VecDeque<_> = decoder.push(bytes).into();
    given.extend(decoder.end(InterruptCause::ConnectionReset));
    given
}

struct Decoded(VecDeque<Result<ModelEvent, Fault>>);

impl Stream for Decoded {
    type Item = Result<ModelEvent, Fault>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.pop_front())
    }
}

fn asked(runtime: &Runtime, model: Arc<dyn Model>) -> Seen {
    let breakers = Breakers::new(patient(), Arc::new(ManualClock::default()));
    let policy = RetryPolicy { stream_retries_max: 8, ..RetryPolicy::default() };
    let inference = Inference::with_jitter(Pool::new([model], &breakers), policy, Arc::new(FixedJitter(0)));
    runtime.block_on(async { look(inference.start(question(), CancellationToken::new())).await })
}

/// What each recording says and calls.
fn told(wire: &Wire) -> (&'static str, [ToolCall; 2]) {
    let call = |id: &str, name: &str, arguments| ToolCall { id: id.into(), name: name.into(), arguments };
    let hear = call("c2", "hear", json!({"b": 2}));
    match wire {
        Wire::Responses(_) => ("Héllo\r\n🦀", [call("c1", "look", json!({"a": 1})), hear]),
        Wire::Chat(_) => ("Hello", [call("c1", "look", json!({"a": 1})), hear]),
        Wire::Anthropic(_) => ("Hello 🦀", [call("c1", "look", json!({})), hear]),
    }
}

fn check(runtime: &Runtime, wire: &Wire, recording: &[Value], cuts: &[usize]) {
    let (text, whole) = told(wire);
    let cuts_left = Mutex::new(cuts.to_vec().into());
    let model = Bytes { wire: wire.clone(), recording: recording.to_vec(), text, cuts: cuts_left };
    let seen = asked(runtime, Arc::new(model));
    let case = format!("{} cut at {cuts:?}: {:?}", wire.path(), seen.updates);

    let answer = seen.outcome.as_ref().unwrap_or_else(|error| panic!("{error}: {case}"));
    assert_eq!(seen.text(), text, "what is seen is what was told: {case}");
    assert_eq!(answer.message.said(), text, "and it is what is kept: {case}");
    let calls: Vec<ToolCall> = answer.message.tool_calls().cloned().collect();
    assert!(!calls.is_empty() && calls.iter().all(|call| whole.contains(call)), "{calls:?}: {case}");
    let mut ready = seen.ready();
    ready.sort_by_key(|ready| calls.iter().position(|call| call.id == ready.id));
    assert_eq!(ready, calls, "each was ready once: {case}");
    let kept: String = answer.message.content.iter().map(thought).collect();
    assert_eq!(shown_thoughts(&seen), kept, "thoughts: {case}");
    every_call_is_closed(&seen, &case);
}

// clause: D10
#[test]
fn d10_recorded_bytes_of_every_wire_cut_anywhere_and_cut_anywhere_again_converge() {
    let runtime = runtime();
    // Two cuts make millions of cases; a prime spreads those that are tried over all of them.
    let every = if std::env::var("RUNYARD_PROOF").as_deref() == Ok("soak") { 11 } else { 1_009 };
    for (wire, recording) in all() {
        let bytes = stream(&recording).len();
        for first in 0..=bytes {
            check(&runtime, &wire, &recording, &[first]);
            for second in (0..=bytes).filter(|second| (first * 31 + second) % every == 0) {
                check(&runtime, &wire, &recording, &[first, second]);
            }
        }
    }
}

/// Answers that come one after the other.
struct Answers {
    wire: Wire,
    answers: Mutex<VecDeque<String>>,
}

#[async_trait]
impl Model for Answers {
    fn name(&self) -> &str {
        "answers"
    }

    async fn open(&self, _: &InferenceRequest) -> Result<ModelStream, Refusal> {
        let answer = self.answers.lock().unwrap().pop_front().expect("no more is asked");
        Ok(Box::pin(Decoded(decoded(&self.wire, answer.as_bytes()))))
    }
}

// clause: D08
#[test]
fn d08_a_provider_that_fails_in_the_middle_is_asked_again_when_it_says() {
    let runtime = runtime();
    for (wire, _) in all() {
        let failed = |error: Value| match wire {
            Wire::Chat(_) => json!({"error": error}),
            _ => json!({"type": "error", "error": error}),
        };
        for (error, wait_s) in [
            (json!({"type": "overloaded_error", "message": "m", "retry_after": 7}), 7),
            (json!({"type": "overloaded_error", "message": "m"}), 2),
        ] {
            let mut breaks = saying(&wire, "So ");
            breaks.push(failed(error));
            let ends = match wire {
                Wire::Responses(_) => json!({"type": "response.completed", "response": {}}),
                Wire::Chat(_) => chunk(json!({}), Some("stop")),
                Wire::Anthropic(_) => {
                    json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}})
                }
            };
            let mut goes_on = saying(&wire, "far.");
            goes_on.push(ends);
            let answers = Mutex::new([stream(&breaks), stream(&goes_on)].into());
            let seen = asked(&runtime, Arc::new(Answers { wire: wire.clone(), answers }));
            assert_eq!(seen.answer().message.said(), "So far.", "{}", wire.path());
            assert_eq!(seen.waits(), [Duration::from_secs(wait_s)], "{}", wire.path());
        }
    }
}
