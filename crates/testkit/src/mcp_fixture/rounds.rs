//! Tools that the newer revision calls in rounds: each asks before it answers.

use std::collections::BTreeMap;

use runyard::{Action, ActionError, Answer, Context, Question};
use serde_json::{Value, json};

use super::Defined;
use super::asks::written;

pub(super) fn actions() -> Vec<Defined> {
    let tool = |name: &str, description: &str| {
        Action::define(format!("test_input_required_result_{name}"), description)
    };
    vec![
        tool("elicitation", "Asks for a name.").handler(|_, ctx: Context| async move {
            let name = text(&ctx, "user_name", "What is your name?", "name").await?;
            Ok(json!(format!("Hello, {name}!")))
        }),
        tool("sampling", "Asks the caller's model for a capital.").handler(|_, ctx: Context| async move {
            let question = Question::completion("What is the capital of France?", 100);
            let answer = ctx.ask("capital_question", question).await?;
            Ok(json!(format!("Sampling response: {}", written(&answer.0))))
        }),
        tool("list_roots", "Asks for the caller's folders.").handler(|_, ctx: Context| async move {
            let answer = ctx.ask("client_roots", Question::Folders).await?;
            Ok(json!(format!("Client roots: {}", answer.0["roots"])))
        }),
        tool("request_state", "Asks to confirm.")
            .handler(|_, ctx: Context| async move { confirmed(&ctx).await }),
        tool("tampered_state", "Asks to confirm.")
            .handler(|_, ctx: Context| async move { confirmed(&ctx).await }),
        tool("multiple_inputs", "Asks three things at once.").handler(|_, ctx: Context| async move {
            ctx.ask_all(all_questions()).await?;
            Ok(json!("All inputs received"))
        }),
        tool("multi_round", "Asks one thing after the other.").handler(|_, ctx: Context| async move {
            let name = text(&ctx, "step1", "Step 1: What is your name?", "name").await?;
            let color = text(&ctx, "step2", "Step 2: What is your favorite color?", "color").await?;
            Ok(json!(format!("{name} likes {color}")))
        }),
        tool("capabilities", "Asks what its caller can answer.").handler(|_, ctx: Context| async move {
            let mut questions = all_questions();
            questions.retain(|_, question| ctx.can_ask(question.kind()));
            let answers: BTreeMap<String, Answer> = ctx.ask_all(questions).await?;
            Ok(json!(answers.keys().collect::<Vec<_>>()))
        }),
    ]
}

/// Asks for one text.
pub(super) async fn text(
    ctx: &Context,
    key: &str,
    message: &str,
    field: &str,
) -> Result<String, ActionError> {
    let answer = ctx.ask(key, one_text(message, field)).await?;
    let given = answer.filled_in().and_then(|content| content[field].as_str());
    Ok(given.unwrap_or("nobody").to_owned())
}

/// A form with one field of text.
pub(super) fn one_text(message: &str, field: &str) -> Question {
    let schema = json!({"type": "object", "properties": {field: {"type": "string"}}, "required": [field]});
    Question::form(message, schema)
}

async fn confirmed(ctx: &Context) -> Result<Value, ActionError> {
    let schema = json!({"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]});
    ctx.ask("confirm", Question::form("Please confirm", schema)).await?;
    Ok(json!("Confirmed: state-ok"))
}

fn all_questions() -> BTreeMap<String, Question> {
    let questions = [
        ("user_name", one_text("What is your name?", "name")),
        ("greeting", Question::completion("Generate a greeting", 100)),
        ("client_roots", Question::Folders),
    ];
    questions.map(|(key, question)| (key.to_owned(), question)).into()
}
