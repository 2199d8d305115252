//! Actions that give a prompt.

use runyard::{Action, Context};
use serde_json::{Value, json};

use super::rounds::text;
use super::{Defined, IMAGE};

pub(super) fn actions() -> Vec<Defined> {
    let prompt = |name: &str, description: &str| Action::define(name, description).prompt();
    let arguments = json!({
        "type": "object",
        "properties": {
            "arg1": {"type": "string", "description": "First test argument"},
            "arg2": {"type": "string", "description": "Second test argument"},
        },
        "required": ["arg1"],
    });
    vec![
        prompt("test_simple_prompt", "A text.")
            .handler(|_, _| async { Ok(json!("This is a simple prompt for testing.")) }),
        prompt("test_prompt_with_arguments", "A text with what was given.").input_schema(arguments).handler(
            |input, _| async move {
                let given = |name: &str| input[name].as_str().unwrap_or_default().to_owned();
                let (one, other) = (given("arg1"), given("arg2"));
                Ok(json!(format!("Prompt with arguments: arg1='{one}', arg2='{other}'")))
            },
        ),
        prompt("test_prompt_with_embedded_resource", "A text about a resource.")
            .input_schema(json!({"type": "object", "properties": {"resourceUri": {"type": "string"}}}))
            .handler(|input, _| async move {
                let uri = input["resourceUri"].as_str().unwrap_or("test://static-text");
                let resource =
                    json!({"uri": uri, "mimeType": "text/plain", "text": "Embedded resource content."});
                Ok(messages(
                    json!({"type": "resource", "resource": resource}),
                    "Please look at the resource.",
                ))
            }),
        prompt("test_prompt_with_image", "A text about an image.").handler(|_, _| async {
            Ok(messages(
                json!({"type": "image", "data": IMAGE, "mimeType": "image/png"}),
                "Please look at the image.",
            ))
        }),
        prompt("test_input_required_result_prompt", "A text about what a person said.").handler(
            |_, ctx: Context| async move {
                let context =
                    text(&ctx, "user_context", "What context should the prompt use?", "context").await?;
                Ok(json!(format!("Prompt with context: {context}")))
            },
        ),
    ]
}

fn messages(shown: Value, said: &str) -> Value {
    json!({"messages": [{"role": "user", "content": shown}, {"role": "user", "content": said}]})
}
