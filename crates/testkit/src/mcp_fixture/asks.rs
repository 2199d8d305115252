//! Tools that ask their caller while they run, as both revisions can.

use runyard::{Action, Context, Question};
use serde_json::{Value, json};

use super::Defined;

pub(super) fn actions() -> Vec<Defined> {
    vec![
        text_input("test_sampling", "Asks the caller's model.", "prompt").handler(|input, ctx: Context| async move {
            let prompt = input["prompt"].as_str().unwrap_or_default();
            let answer = ctx.ask("completion", Question::completion(prompt, 100)).await?;
            Ok(json!(format!("LLM response: {}", written(&answer.0))))
        }),
        text_input("test_elicitation", "Asks a person for a name and an address.", "message").handler(
            |input, ctx: Context| async move {
                let message = input["message"].as_str().unwrap_or_default();
                let schema = json!({
                    "type": "object",
                    "properties": {
                        "username": {"type": "string", "description": "User's response"},
                        "email": {"type": "string", "description": "User's email address"},
                    },
                    "required": ["username", "email"],
                });
                let answer = ctx.ask("person", Question::form(message, schema)).await?;
                Ok(json!(format!("User response: {}", answer.0)))
            },
        ),
        Action::define("test_elicitation_sep1034_defaults", "Asks for values that have defaults.")
            .handler(|_, ctx: Context| async move { filled_in(&ctx, defaults()).await }),
        Action::define("test_elicitation_sep1330_enums", "Asks to choose, in every way there is.")
            .handler(|_, ctx: Context| async move { filled_in(&ctx, choices()).await }),
        Action::define("test_missing_capability", "Needs the caller's model.").handler(|_, ctx: Context| async move {
            let answer = ctx.ask("completion", Question::completion("Say something.", 100)).await?;
            Ok(json!(written(&answer.0)))
        }),
        Action::define("test_streaming_elicitation", "Asks a person for a value.").handler(
            |_, ctx: Context| async move {
                let schema = json!({"type": "object", "properties": {"value": {"type": "string"}}, "required": ["value"]});
                let answer = ctx.ask("streaming_elicitation", Question::form("Provide a value", schema)).await?;
                Ok(answer.0)
            },
        ),
    ]
}

fn text_input(name: &str, description: &str, field: &str) -> runyard::ActionBuilder {
    let schema = json!({"type": "object", "properties": {field: {"type": "string"}}, "required": [field]});
    Action::define(name, description).input_schema(schema)
}

/// What a model wrote; one block or several.
pub(super) fn written(answer: &Value) -> &str {
    let content = &answer["content"];
    let block = content.as_array().and_then(|blocks| blocks.first()).unwrap_or(content);
    block["text"].as_str().unwrap_or_default()
}

async fn filled_in(ctx: &Context, properties: Value) -> Result<Value, runyard::ActionError> {
    let schema = json!({"type": "object", "properties": properties});
    let answer = ctx.ask("values", Question::form("Please provide values", schema)).await?;
    Ok(json!(format!("Elicitation completed: {}", answer.0)))
}

fn defaults() -> Value {
    json!({
        "name": {"type": "string", "description": "User's name", "default": "John Doe"},
        "age": {"type": "integer", "description": "User's age", "default": 30},
        "score": {"type": "number", "description": "User's score", "default": 95.5},
        "status": {
            "type": "string",
            "description": "User's status",
            "enum": ["active", "inactive", "pending"],
            "default": "active",
        },
        "verified": {"type": "boolean", "description": "Whether the user is verified", "default": true},
    })
}

fn choices() -> Value {
    let titled = |words: [&str; 3]| {
        let choice =
            |(number, title): (usize, &str)| json!({"const": format!("value{}", number + 1), "title": title});
        words.into_iter().enumerate().map(choice).collect::<Vec<_>>()
    };
    let options = ["option1", "option2", "option3"];
    json!({
        "untitledSingle": {"type": "string", "enum": options},
        "titledSingle": {"type": "string", "oneOf": titled(["First Option", "Second Option", "Third Option"])},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
        "titledMulti": {
            "type": "array",
            "items": {"anyOf": titled(["First Choice", "Second Choice", "Third Choice"])},
        },
    })
}
