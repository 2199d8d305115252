//! Conversations longer than the model takes: whatever can be left out of what it reads is, and the thread keeps all of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use runyard_agent::phase::TerminationReason;
use runyard_agent::run::AgentEvent;
use runyard_llm::inference::{
    InferenceExecutionError, InferenceRequest, Message, Model, ModelStream, Part, Refusal, ScriptedAnswer,
    ScriptedError, ScriptedFault, ScriptedModel, Step, StopReason, ToolCall, Update,
};
use serde_json::json;

use crate::support::parts::answers;
use crate::support::{World, assert_paired, calls, results, says};

fn overflow() -> ScriptedAnswer {
    ScriptedAnswer::failing(ScriptedError::ContextOverflow { message: "too long".into() })
}

fn summary(text: &str) -> ScriptedAnswer {
    says(text).when_contains("Summarise")
}

fn looks(times: u32) -> Vec<ScriptedAnswer> {
    (0..times).map(|n| calls(&format!("c{n}"), "look")).collect()
}

/// A model that takes so many bytes of a conversation.
struct Window {
    inner: Arc<ScriptedModel>,
    bytes: usize,
    refused: AtomicU32,
}

impl Window {
    fn around(world: &mut World, bytes: usize) -> Arc<Self> {
        let window = Window { inner: Arc::clone(&world.model), bytes, refused: AtomicU32::new(0) };
        let window = Arc::new(window);
        world.instead = Some(Arc::clone(&window) as Arc<dyn Model>);
        window
    }

    fn refused(&self) -> u32 {
        self.refused.swap(0, Ordering::SeqCst)
    }
}

#[async_trait]
impl Model for Window {
    fn name(&self) -> &str {
        "window"
    }

    async fn open(&self, request: &InferenceRequest) -> Result<ModelStream, Refusal> {
        if request.messages.iter().map(|message| bytes_of(message)).sum::<usize>() > self.bytes {
            self.refused.fetch_add(1, Ordering::SeqCst);
            return Err(InferenceExecutionError::ContextOverflow("too long".into()).into());
        }
        self.inner.open(request).await
    }
}

fn bytes_of(message: &Message) -> usize {
    let parts = message.content.iter().map(|part| match part {
        Part::Text { text } => text.len(),
        Part::ToolOutput(output) => output.content.len(),
        _ => 0,
    });
    parts.sum()
}

fn summaries(world: &World) -> Vec<InferenceRequest> {
    let mut requests = world.model.requests();
    requests.retain(|request| request.messages.last().unwrap().said().starts_with("Summarise"));
    requests
}

#[tokio::test(start_paused = true)]
async fn a_conversation_of_few_messages_that_is_too_long_is_summarised_too() {
    // Nine messages: fewer than stay as they are, as long as the model takes them.
    let mut script = looks(4);
    script.extend([overflow(), summary("SUMMARY"), says("Done.")]);
    let world = World::new(script).tool(answers("look", "x".repeat(40)));
    let seen = world.ask("Look.").await;
    assert_eq!(seen.reason(), &TerminationReason::NaturalEnd);
    assert_eq!(summaries(&world).len(), 1);
    let requests = world.model.requests();
    let last = &requests.last().unwrap().messages;
    assert!(last[0].said().contains("SUMMARY"));
    assert!(last.len() >= 5, "half of those that stay otherwise: {}", last.len());
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_too_long_although_it_was_just_summarised_is_made_shorter_still() {
    let mut script = looks(6);
    // What was summarised is all that there is before those that stay.
    script.extend([overflow(), overflow(), summary("SUMMARY"), says("Done.")]);
    let mut world = World::new(script).tool(answers("look", "x".repeat(400)));
    world.context.tokens_max = Some(550);
    let seen = world.ask("Look.").await;
    assert_eq!(seen.reason(), &TerminationReason::NaturalEnd, "{:#?}", seen.words());
    let summarised: Vec<String> =
        seen.words().into_iter().filter(|word| word.starts_with("summarised")).collect();
    // The first two before it was too long, the others since it was, with five and with two that stay.
    assert_eq!(summarised, ["summarised 1", "summarised 3", "summarised 7", "summarised 11"]);
}

#[tokio::test(start_paused = true)]
async fn a_result_longer_than_the_model_takes_ends_neither_its_run_nor_the_next() {
    let long = "y".repeat(100_000);
    let mut world = World::new([calls("a", "look"), summary("SUMMARY"), says("Much.")])
        .tool(answers("look", long.clone()));
    let window = Window::around(&mut world, 20_000);
    let seen = world.ask("Look.").await;
    assert_eq!(seen.reason(), &TerminationReason::NaturalEnd);
    assert!(window.refused() > 0);
    let read = world.model.requests().pop().unwrap().messages;
    let read: Vec<Message> = read.iter().map(|message| Message::clone(message)).collect();
    assert_paired(&read);
    let (_, said, _) = results(&read).remove(0);
    assert!(said.starts_with(&"y".repeat(16 * 1024)) && said.contains("[83616 more bytes of this result"));
    // The thread has all of it.
    assert_eq!(results(&world.messages().await)[0].1, long);

    // It is asked for a summary of it in time, and can read what it is to summarise.
    for _ in 0..3 {
        world.again([summary("SUMMARY"), says("Yes.")]);
        Window::around(&mut world, 20_000);
        assert_eq!(world.ask("Sure?").await.reason(), &TerminationReason::NaturalEnd);
    }
    assert_eq!(results(&world.messages().await)[0].1, long);
}

#[tokio::test(start_paused = true)]
async fn an_answer_with_more_results_than_the_model_takes_is_gone_on_with() {
    let wide =
        (0..8).map(|n| ToolCall { id: format!("c{n}"), name: "look".into(), arguments: json!({ "n": n }) });
    let mut world =
        World::new([ScriptedAnswer::calls(wide.collect::<Vec<_>>()), summary("SUMMARY"), says("Much.")])
            .tool(answers("look", "y".repeat(30_000)));
    Window::around(&mut world, 10_000);
    let seen = world.ask("Look.").await;
    assert_eq!(seen.reason(), &TerminationReason::NaturalEnd);
    let read = world.model.requests().pop().unwrap().messages;
    let read: Vec<Message> = read.iter().map(|message| Message::clone(message)).collect();
    assert_paired(&read);
    assert!(results(&read).iter().all(|(_, said, _)| said.len() < 1_200), "a little of each");
    assert!(results(&world.messages().await).iter().all(|(_, said, _)| said.len() == 30_000));
}

// clause: D10
#[tokio::test(start_paused = true)]
async fn d10_clients_hear_that_what_was_seen_before_it_was_too_long_is_void() {
    let broken = ScriptedAnswer::steps([
        Step::Reasoning("Hm.".into()),
        Step::CallStarted { index: 0, id: "whole".into(), name: "look".into() },
        Step::CallArguments { index: 0, text: "{}".into() },
        Step::CallEnded { index: 0 },
        Step::CallStarted { index: 1, id: "open".into(), name: "look".into() },
        Step::Fault(ScriptedFault::Failed(ScriptedError::ContextOverflow { message: "too long".into() })),
    ]);
    let whole = ScriptedAnswer::steps([
        Step::Reasoning("So.".into()),
        Step::Text("Done.".into()),
        Step::Stop(StopReason::EndTurn),
    ]);
    let mut script = looks(6);
    script.extend([broken, summary("SUMMARY"), whole]);
    let world = World::new(script).tool(answers("look", "x".repeat(40)));
    let seen = world.ask("Look.").await;
    assert_eq!(seen.reason(), &TerminationReason::NaturalEnd);
    let (mut thoughts, mut open, mut cancelled) = (String::new(), Vec::new(), Vec::new());
    for event in &seen.events {
        match event {
            AgentEvent::Inference(Update::Reasoning(piece)) => thoughts.push_str(piece),
            AgentEvent::Inference(Update::Reset) => {
                assert!(open.is_empty(), "{open:?}");
                thoughts.clear();
            }
            AgentEvent::Inference(Update::ToolCallStarted { id, .. }) => open.push(id.clone()),
            AgentEvent::Inference(Update::ToolCallReady(ToolCall { id, .. })) => {
                open.retain(|open| open != id);
            }
            AgentEvent::Inference(Update::ToolCallCancelled { id, .. }) => {
                open.retain(|open| open != id);
                cancelled.push(id.clone());
            }
            _ => {}
        }
    }
    assert_eq!((thoughts.as_str(), open.len()), ("So.", 0));
    assert_eq!(cancelled, ["open"]);
    assert_eq!(seen.outcome.text(), "Done.");
}

#[tokio::test(start_paused = true)]
async fn a_summary_that_was_cut_is_asked_for_with_more_room() {
    let cut = |text: &str| {
        let steps = [Step::Text(text.to_owned()), Step::Stop(StopReason::MaxTokens)];
        let mut answer = ScriptedAnswer::steps(steps).when_contains("Summarise");
        answer.when.as_mut().unwrap().times_max = Some(1);
        answer
    };
    let mut script = looks(6);
    // The first room is used up by thinking.
    script.extend([overflow(), cut(""), cut("Half a su"), summary("A SUMMARY"), says("Done.")]);
    let world = World::new(script).tool(answers("look", "x".repeat(40)));
    let seen = world.ask("Look.").await;
    assert_eq!(seen.reason(), &TerminationReason::NaturalEnd);
    let room: Vec<_> = summaries(&world).iter().map(|request| request.output_tokens_max).collect();
    assert_eq!(room, [Some(2_048), Some(8_192), None]);
    let read = &world.model.requests().pop().unwrap().messages[0];
    assert!(read.said().contains("A SUMMARY") && !read.said().contains("Half"), "{}", read.said());
}

#[tokio::test(start_paused = true)]
async fn a_summary_that_is_cut_whatever_room_it_has_says_so() {
    let steps = [Step::Text("Half a su".to_owned()), Step::Stop(StopReason::MaxTokens)];
    let mut script = looks(6);
    script.extend([overflow(), ScriptedAnswer::steps(steps).when_contains("Summarise"), says("Done.")]);
    let world = World::new(script).tool(answers("look", "x".repeat(40)));
    assert_eq!(world.ask("Look.").await.reason(), &TerminationReason::NaturalEnd);
    let read = &world.model.requests().pop().unwrap().messages[0];
    assert!(read.said().contains("Half a su\n[the summary was cut here]"), "{}", read.said());
}

#[tokio::test(start_paused = true)]
async fn a_model_that_summarises_nothing_is_asked_to_once_in_a_run() {
    let nothing = ScriptedAnswer::steps([Step::Stop(StopReason::EndTurn)]).when_contains("Summarise");
    let mut script = looks(6);
    script.extend([nothing, says("Done.")]);
    let mut world = World::new(script).tool(answers("look", "x".repeat(400)));
    world.context.tokens_max = Some(200);
    world.context.recent_messages_min = 2;
    assert_eq!(world.ask("Look.").await.reason(), &TerminationReason::NaturalEnd);
    assert_eq!(summaries(&world).len(), 1);
}
