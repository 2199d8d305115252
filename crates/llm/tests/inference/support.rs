//! What the tests share: a question, a turn that is looked at to its end, and short names for steps.

use std::sync::Arc;
use std::time::Duration;

use proptest::test_runner::Config;
use runyard_llm::inference::{
    Answer, BreakerPolicy, Breakers, FixedJitter, Inference, InferenceExecutionError, InferenceRequest,
    InterruptCause, Message, Model, Part, Pool, RetryPolicy, ScriptedAnswer, ScriptedError, ScriptedFault,
    ScriptedModel, Step, StopReason, SystemClock, ToolCall, Turn, Update,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// A turn that was looked at to its end.
#[derive(Debug)]
pub(crate) struct Seen {
    pub updates: Vec<Update>,
    pub outcome: Result<Answer, InferenceExecutionError>,
    pub turn_partial: String,
    pub last_error: Option<InferenceExecutionError>,
}

impl Seen {
    /// What a client shows at the end.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for update in &self.updates {
            match update {
                Update::Text(piece) => text.push_str(piece),
                Update::Reset => text.clear(),
                _ => {}
            }
        }
        text
    }

    pub(crate) fn answer(&self) -> &Answer {
        self.outcome.as_ref().expect("an answer")
    }

    pub(crate) fn error(&self) -> &InferenceExecutionError {
        self.outcome.as_ref().expect_err("an error")
    }

    pub(crate) fn resets(&self) -> usize {
        self.updates.iter().filter(|update| **update == Update::Reset).count()
    }

    pub(crate) fn waits(&self) -> Vec<Duration> {
        let waits = self.updates.iter().filter_map(|update| match update {
            Update::Retrying { wait, .. } => Some(*wait),
            _ => None,
        });
        waits.collect()
    }

    pub(crate) fn ready(&self) -> Vec<ToolCall> {
        let ready = self.updates.iter().filter_map(|update| match update {
            Update::ToolCallReady(call) => Some(call.clone()),
            _ => None,
        });
        ready.collect()
    }

    pub(crate) fn cancelled(&self) -> Vec<&str> {
        let cancelled = self.updates.iter().filter_map(|update| match update {
            Update::ToolCallCancelled { id, .. } => Some(id.as_str()),
            _ => None,
        });
        cancelled.collect()
    }
}

pub(crate) async fn look(mut turn: Turn) -> Seen {
    let mut updates = Vec::new();
    while let Ok(Some(update)) = turn.next().await {
        updates.push(update);
    }
    let turn_partial = turn.partial().message.said();
    let last_error = turn.last_error().cloned();
    Seen { updates, outcome: turn.into_answer(), turn_partial, last_error }
}

pub(crate) fn question() -> InferenceRequest {
    InferenceRequest { messages: vec![Arc::new(Message::user("Go."))].into(), ..InferenceRequest::default() }
}

/// A closed breaker that takes part in nothing, for tests of something else.
pub(crate) fn patient() -> BreakerPolicy {
    BreakerPolicy { failures_max: 1_000, ..BreakerPolicy::default() }
}

/// The models asked as `policy` says, with the shortest waits that it allows.
pub(crate) fn inference(
    models: &[&Arc<ScriptedModel>],
    policy: RetryPolicy,
    breaker: BreakerPolicy,
) -> Inference {
    let models = models.iter().map(|model| Arc::clone(model) as Arc<dyn Model>);
    let breakers = Breakers::new(breaker, Arc::new(SystemClock::new()));
    Inference::with_jitter(Pool::new(models, &breakers), policy, Arc::new(FixedJitter(0)))
}

/// One model that gives these answers, asked as usual.
pub(crate) async fn ask(answers: impl IntoIterator<Item = ScriptedAnswer>) -> (Seen, Arc<ScriptedModel>) {
    ask_with(RetryPolicy::default(), answers).await
}

pub(crate) async fn ask_with(
    policy: RetryPolicy,
    answers: impl IntoIterator<Item = ScriptedAnswer>,
) -> (Seen, Arc<ScriptedModel>) {
    let model = model("one", answers);
    let seen =
        look(inference(&[&model], policy, patient()).start(question(), CancellationToken::new())).await;
    (seen, model)
}

pub(crate) async fn see(inference: &Inference) -> Seen {
    look(inference.start(question(), CancellationToken::new())).await
}

pub(crate) fn model(name: &str, answers: impl IntoIterator<Item = ScriptedAnswer>) -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::of(name, answers))
}

pub(crate) fn text(piece: &str) -> Step {
    Step::Text(piece.to_owned())
}

pub(crate) fn think(piece: &str) -> Step {
    Step::Reasoning(piece.to_owned())
}

pub(crate) fn started(index: u32, id: &str) -> Step {
    Step::CallStarted { index, id: id.to_owned(), name: format!("tool-{id}") }
}

pub(crate) fn arguments(index: u32, piece: &str) -> Step {
    Step::CallArguments { index, text: piece.to_owned() }
}

pub(crate) fn ended(index: u32) -> Step {
    Step::CallEnded { index }
}

pub(crate) fn stop() -> Step {
    Step::Stop(StopReason::EndTurn)
}

pub(crate) fn cut(cause: InterruptCause) -> Step {
    Step::Fault(ScriptedFault::Interrupted(cause))
}

pub(crate) fn reset() -> Step {
    cut(InterruptCause::ConnectionReset)
}

pub(crate) fn failed(error: ScriptedError) -> Step {
    Step::Fault(ScriptedFault::Failed(error))
}

pub(crate) fn says(steps: impl IntoIterator<Item = Step>) -> ScriptedAnswer {
    ScriptedAnswer::steps(steps)
}

pub(crate) fn provider() -> ScriptedError {
    ScriptedError::Provider { message: "500".to_owned() }
}

pub(crate) fn limited(retry_after_ms: u64) -> ScriptedError {
    ScriptedError::RateLimited { message: "slow".to_owned(), retry_after_ms: Some(retry_after_ms) }
}

pub(crate) fn invalid() -> ScriptedError {
    ScriptedError::InvalidRequest { message: "no".to_owned() }
}

pub(crate) fn call(id: &str, arguments: Value) -> ToolCall {
    ToolCall { id: id.to_owned(), name: format!("tool-{id}"), arguments }
}

pub(crate) fn no_arguments() -> Value {
    json!({})
}

pub(crate) fn thoughts(answer: &Answer) -> Vec<&str> {
    let thoughts = answer.message.content.iter().filter_map(|part| match part {
        Part::Reasoning(thought) => Some(thought.text.as_str()),
        _ => None,
    });
    thoughts.collect()
}

pub(crate) fn cases() -> Config {
    let cases = match std::env::var("RUNYARD_PROOF").as_deref() {
        Ok("quick") => 64,
        Ok("soak") => 20_000,
        _ => 256,
    };
    Config { cases, failure_persistence: None, ..Config::default() }
}
