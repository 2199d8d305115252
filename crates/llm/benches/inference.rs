//! What asking costs apart from the model: a scripted one calls a tool, is given the result and ends with a text.
#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark that cannot start has nothing to measure")]

use std::sync::Arc;

use divan::{Bencher, black_box};
use runyard_llm::inference::{
    AtEnd, Inference, InferenceRequest, Message, Script, ScriptedAnswer, ScriptedModel, Step, StopReason,
    ToolCall, ToolOutput,
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

fn main() {
    divan::main();
}

fn inference(last: ScriptedAnswer) -> Inference {
    let call =
        ToolCall { id: "call_1".to_owned(), name: "look_up".to_owned(), arguments: json!({"key": "answer"}) };
    let script = Script {
        name: "scripted".to_owned(),
        at_end: AtEnd::Repeat,
        answers: vec![ScriptedAnswer::calls([call]), last],
    };
    Inference::of(Arc::new(ScriptedModel::new(script).forgetful()))
}

async fn two_turns(inference: &Inference, first: &InferenceRequest) {
    let called = inference.start(first.clone(), CancellationToken::new()).finish().await.unwrap();
    let output = ToolOutput { call_id: "call_1".to_owned(), content: "42".to_owned(), is_error: false };
    let mut second = first.clone();
    second.messages.extend([Arc::new(called.message), Arc::new(Message::tool(output))]);
    black_box(inference.start(second, CancellationToken::new()).finish().await.unwrap());
}

fn bench(bencher: Bencher<'_, '_>, last: ScriptedAnswer) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let inference = inference(last);
    let first = InferenceRequest {
        messages: vec![Arc::new(Message::user("What is it?"))].into(),
        ..InferenceRequest::default()
    };
    bencher.bench_local(|| {
        runtime.block_on(async {
            for _ in 0..100 {
                two_turns(&inference, &first).await;
            }
        });
    });
}

/// A call, then a text of one piece. A hundred times.
#[divan::bench]
fn a_hundred_runs_of_two_turns(bencher: Bencher<'_, '_>) {
    bench(bencher, ScriptedAnswer::text("It is 42."));
}

/// A call, then a text of two hundred pieces. A hundred times.
#[divan::bench]
fn a_hundred_runs_with_a_long_text(bencher: Bencher<'_, '_>) {
    let pieces = (0..200).map(|_| Step::Text("piece".to_owned()));
    bench(bencher, ScriptedAnswer::steps(pieces.chain([Step::Stop(StopReason::EndTurn)])));
}
