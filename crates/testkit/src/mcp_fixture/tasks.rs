//! Tools that are followed as tasks, and one that is not.

use std::time::Duration;

use runyard::{Action, ActionError, Context, Question, TaskUse};
use serde_json::json;

use super::Defined;
use super::rounds::{one_text, text};

/// The longest time that a caller may ask for.
const SECONDS_MAX: f64 = 60.0;
const MOMENT: Duration = Duration::from_millis(200);

pub(super) fn actions() -> Vec<Defined> {
    let object = |properties: serde_json::Value| json!({"type": "object", "properties": properties});
    vec![
        Action::define("greet", "Greets at once.")
            .input_schema(object(json!({"name": {"type": "string"}})))
            .handler(|input, _| async move { Ok(json!(format!("Hello, {}!", input["name"].as_str().unwrap_or("friend")))) }),
        Action::define("slow_compute", "Takes as long as it is told.")
            .task(TaskUse::Possible)
            .input_schema(object(json!({"seconds": {"type": "number"}, "label": {"type": "string"}})))
            .handler(|input, _| async move {
                let seconds = input["seconds"].as_f64().unwrap_or(1.0).clamp(0.0, SECONDS_MAX);
                tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
                Ok(json!(format!("{} done after {seconds}s", input["label"].as_str().unwrap_or("compute"))))
            }),
        Action::define("failing_job", "Fails after a moment.").task(TaskUse::Required).handler(|_, _| async {
            tokio::time::sleep(MOMENT).await;
            Err(ActionError::application("JOB_FAILED", "The job fails, as it should."))
        }),
        Action::define("protocol_error_job", "Breaks after a moment.").task(TaskUse::Possible).handler(
            |_, _| async {
                tokio::time::sleep(MOMENT).await;
                Err(ActionError::internal("the job breaks, as it should"))
            },
        ),
        Action::define("confirm_delete", "Asks before it goes on.")
            .task(TaskUse::Required)
            .input_schema(object(json!({"filename": {"type": "string"}})))
            .handler(|input, ctx: Context| async move {
                let file = input["filename"].as_str().unwrap_or("file.txt");
                let schema = json!({"type": "object", "properties": {"confirm": {"type": "boolean"}}, "required": ["confirm"]});
                let answer = ctx.ask("confirm", Question::form(format!("Delete {file}?"), schema)).await?;
                let confirmed = answer.filled_in().is_some_and(|content| content["confirm"] == true);
                Ok(json!(format!("confirm_delete({file}): confirmed = {confirmed}")))
            }),
        Action::define("multi_input", "Asks two things at once.").task(TaskUse::Required).handler(
            |_, ctx: Context| async move {
                let questions = [
                    ("input-a".to_owned(), one_text("Provide value A", "name")),
                    ("input-b".to_owned(), one_text("Provide value B", "name")),
                ];
                let answers = ctx.ask_all(questions.into()).await?;
                let given = answers.values().map(|answer| answer.filled_in().cloned().unwrap_or_default());
                Ok(json!(format!("multi_input: {}", json!(given.collect::<Vec<_>>()))))
            },
        ),
        Action::define("test_tool_with_task", "Asks for a name, then takes a moment.")
            .task(TaskUse::Answered)
            .handler(|_, ctx: Context| async move {
                let name = text(&ctx, "user_name", "What is your name?", "name").await?;
                tokio::time::sleep(MOMENT).await;
                Ok(json!(format!("Hello, {name}!")))
            }),
    ]
}
