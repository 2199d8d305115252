//! Actions that are read as resources.

use runyard::{Action, Context};
use serde_json::{Value, json};

use super::shows::show;
use super::{Defined, IMAGE};

pub(super) fn actions() -> Vec<Defined> {
    vec![
        Action::define("static_text", "A text that never changes.")
            .resource("test://static-text")
            .handler(|_, _| async { Ok(json!("This is the content of the static text resource.")) }),
        Action::define("static_binary", "An image that never changes.")
            .resource("test://static-binary")
            .handler(|_, ctx: Context| async move {
                show(&ctx, "image/png", IMAGE, None);
                Ok(Value::Null)
            }),
        Action::define("template_data", "What belongs to an id.")
            .resource("test://template/{id}/data")
            .input_schema(
                json!({"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}),
            )
            .handler(|input, _| async move {
                let id = input["id"].as_str().unwrap_or_default();
                Ok(json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")}))
            }),
        Action::define("watched_resource", "A text that may change.")
            .resource("test://watched-resource")
            .handler(|_, _| async { Ok(json!("This is watched.")) }),
    ]
}
