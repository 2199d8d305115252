//! Long conversations: the model reads a summary, and the thread keeps everything.

use runyard_agent::phase::TerminationReason;
use runyard_domain::Code;
use runyard_llm::inference::{
    InferenceRequest, Message, Role, ScriptedAnswer, ScriptedError, ScriptedUsage, Step, StopReason,
    ToolChoice,
};

use crate::support::parts::answers;
use crate::support::{World, assert_paired, calls, says, shape};

fn overflow() -> ScriptedAnswer {
    ScriptedAnswer::failing(ScriptedError::ContextOverflow { message: "too long".into() })
}

fn read(request: &InferenceRequest) -> Vec<Message> {
    request.messages.iter().map(|message| Message::clone(message)).collect()
}

fn is_summary_request(request: &InferenceRequest) -> bool {
    request.messages.last().unwrap().said().starts_with("Summarise")
}

/// Six calls in a row, each with a long result.
fn long_script() -> Vec<ScriptedAnswer> {
    (0..6).map(|n| calls(&format!("c{n}"), "look")).collect()
}

#[tokio::test]
async fn a_long_conversation_is_summarised_with_its_calls_and_results_together() {
    let mut script = long_script();
    script.push(says("SUMMARY OF IT").when_contains("Summarise"));
    script.push(says("Done."));
    let mut world = World::new(script).tool(answers("look", "x".repeat(400)));
    world.context.tokens_max = Some(400);
    world.context.recent_messages_min = 3;
    let seen = world.ask("Look six times.").await;
    assert_eq!(seen.reason(), &TerminationReason::NaturalEnd);
    assert!(seen.words().iter().any(|word| word.starts_with("summarised")));
    let requests = world.model.requests();
    let summaries: Vec<_> = requests.iter().filter(|request| is_summary_request(request)).collect();
    assert!(!summaries.is_empty());
    for request in &summaries {
        assert_eq!(request.tool_choice, ToolChoice::None);
        assert!(!request.tools.is_empty());
        assert_paired(&read(request));
    }
    for request in &requests {
        assert_paired(&read(request));
    }
    let last = read(requests.last().unwrap());
    assert!(last[0].said().contains("SUMMARY OF IT"), "{:?}", shape(&last));
    assert!(last.len() < 14);
    // The second summary stands on the first one.
    if let Some(second) = summaries.get(1) {
        assert!(second.messages[0].said().contains("SUMMARY OF IT"));
    }
    // The thread has all of it, and nothing of the summary.
    let stored = world.messages().await;
    assert_eq!(stored.len(), 14);
    assert_paired(&stored);
    assert!(!format!("{stored:?}").contains("SUMMARY"));
}

#[tokio::test]
async fn a_summary_belongs_to_the_thread() {
    let mut script = long_script();
    script.push(says("SUMMARY OF IT").when_contains("Summarise"));
    script.push(says("Done."));
    let mut world = World::new(script).tool(answers("look", "x".repeat(400)));
    world.context.tokens_max = Some(400);
    world.context.recent_messages_min = 3;
    world.ask("Look six times.").await;
    world.again([says("Six.")]);
    world.context.tokens_max = Some(100_000);
    world.ask("How often?").await;
    let request = world.model.requests().remove(0);
    assert!(request.messages[0].said().contains("SUMMARY OF IT"));
    assert!(request.messages.len() < 15);
}

#[tokio::test(start_paused = true)]
async fn a_conversation_longer_than_the_model_takes_is_summarised_and_asked_again() {
    let mut script = long_script();
    script.push(overflow());
    script.push(says("SUMMARY OF IT").when_contains("Summarise"));
    script.push(says("Done."));
    let world = World::new(script).tool(answers("look", "x".repeat(40)));
    let seen = world.ask("Look six times.").await;
    assert_eq!(seen.reason(), &TerminationReason::NaturalEnd);
    let last = read(world.model.requests().last().unwrap());
    assert!(last[0].said().contains("SUMMARY OF IT"));
    assert_paired(&last);
    assert_eq!(world.messages().await.len(), 14);
}

#[tokio::test(start_paused = true)]
async fn where_it_is_still_too_long_less_counts_as_recent() {
    let mut script = long_script();
    script.extend([overflow(), overflow(), overflow()]);
    script.push(says("SUMMARY").when_contains("Summarise"));
    script.push(says("Done."));
    let mut world = World::new(script).tool(answers("look", "x".repeat(40)));
    world.context.recent_messages_min = 8;
    let seen = world.ask("Look six times.").await;
    assert_eq!(seen.reason(), &TerminationReason::NaturalEnd);
    let summarised: Vec<String> =
        seen.words().into_iter().filter(|word| word.starts_with("summarised")).collect();
    assert_eq!(summarised.len(), 3, "{summarised:?}");
    assert_paired(&read(world.model.requests().last().unwrap()));
}

#[tokio::test(start_paused = true)]
async fn an_older_part_that_is_itself_too_long_is_summarised_piece_by_piece() {
    let mut script = long_script();
    let mut too_long = overflow().when_contains("Summarise");
    too_long.when.as_mut().unwrap().times_max = Some(1);
    script.push(overflow());
    script.push(too_long);
    script.push(says("SUMMARY").when_contains("Summarise"));
    script.push(says("Done."));
    let mut world = World::new(script).tool(answers("look", "x".repeat(40)));
    world.context.recent_messages_min = 2;
    let seen = world.ask("Look six times.").await;
    assert_eq!(seen.reason(), &TerminationReason::NaturalEnd);
    let asked: Vec<usize> = world
        .model
        .requests()
        .iter()
        .filter(|request| is_summary_request(request))
        .map(|request| request.messages.len())
        .collect();
    assert_eq!(asked.len(), 2);
    assert!(asked[1] < asked[0], "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn where_nothing_can_be_left_out_the_error_stands() {
    let world = World::new([overflow()]);
    let seen = world.ask("x").await;
    assert!(matches!(seen.reason(), TerminationReason::Failed { code: Code::InferenceContextOverflow, .. }));
    assert!(world.is_free().await);

    // A model that has nothing to say about it does not make it forget.
    let mut script = long_script();
    script.push(overflow());
    script.push(ScriptedAnswer::steps([Step::Stop(StopReason::EndTurn)]).when_contains("Summarise"));
    let mut world = World::new(script).tool(answers("look", "x".repeat(40)));
    world.context.recent_messages_min = 2;
    let seen = world.ask("Look six times.").await;
    assert!(matches!(seen.reason(), TerminationReason::Failed { code: Code::InferenceContextOverflow, .. }));
    assert_eq!(world.messages().await.len(), 13);
}

#[tokio::test(start_paused = true)]
async fn a_run_goes_on_without_a_summary_that_is_refused_and_what_it_cost_counts() {
    let usage = |tokens| {
        Step::Usage(ScriptedUsage { input_tokens: tokens, output_tokens: 0, ..ScriptedUsage::default() })
    };
    let fails = ScriptedAnswer::steps([
        usage(7),
        Step::Fault(runyard_llm::inference::ScriptedFault::Failed(ScriptedError::ContentFiltered {
            message: "no".into(),
        })),
    ]);
    let filtered = || fails.clone().when_contains("Summarise");
    let mut script = long_script();
    script.extend([filtered(), says("Done.")]);
    let mut world = World::new(script).tool(answers("look", "x".repeat(400)));
    world.context.tokens_max = Some(400);
    world.context.recent_messages_min = 2;
    let seen = world.ask("Look.").await;
    // The model took all of it.
    assert_eq!((seen.reason(), seen.outcome.text().as_str()), (&TerminationReason::NaturalEnd, "Done."));
    assert_eq!(seen.outcome.usage.input_tokens, 7, "it was asked for once");
    assert!(world.messages().await.iter().all(|message| message.role != Role::System));

    // Only where it takes no more is it a failure.
    let mut script = long_script();
    script.extend([filtered(), overflow()]);
    let mut world = World::new(script).tool(answers("look", "x".repeat(40)));
    world.context.tokens_max = Some(100);
    let seen = world.ask("Look.").await;
    assert!(matches!(seen.reason(), TerminationReason::Failed { code: Code::InferenceContextOverflow, .. }));
}
