//! Tools whose result is what they show.

use runyard::{Action, ActionError, Artifact, Context};
use serde_json::{Value, json};

use super::{AUDIO, Defined, IMAGE};

pub(super) fn actions() -> Vec<Defined> {
    vec![
        // Some scenarios call whichever tool is listed first, without arguments.
        Action::define("about", "Says what this is.").handler(|_, _| async { Ok(json!("A fixture.")) }),
        Action::define("test_simple_text", "Returns a text.")
            .handler(|_, _| async { Ok(json!("This is a simple text response for testing.")) }),
        Action::define("test_image_content", "Returns an image.").handler(|_, ctx: Context| async move {
            show(&ctx, "image/png", IMAGE, None);
            Ok(Value::Null)
        }),
        Action::define("test_audio_content", "Returns a sound.").handler(|_, ctx: Context| async move {
            show(&ctx, "audio/wav", AUDIO, None);
            Ok(Value::Null)
        }),
        Action::define("test_embedded_resource", "Returns a resource.").handler(
            |_, ctx: Context| async move {
                show(&ctx, "text/plain", EMBEDDED, Some("test://embedded-resource"));
                Ok(Value::Null)
            },
        ),
        Action::define("test_multiple_content_types", "Returns a text, an image and a resource.").handler(
            |_, ctx: Context| async move {
                show(&ctx, "image/png", IMAGE, None);
                show(&ctx, "application/json", MIXED, Some("test://mixed-content-resource"));
                Ok(json!("Multiple content types test:"))
            },
        ),
        Action::define("test_error_handling", "Always fails.").handler(|_, _| async {
            Err(ActionError::application(
                "TEST_FAILED",
                "This tool intentionally returns an error for testing",
            ))
        }),
        schema_tool(),
        header_tool(),
    ]
}

/// `This is an embedded resource content.`
const EMBEDDED: &str = "VGhpcyBpcyBhbiBlbWJlZGRlZCByZXNvdXJjZSBjb250ZW50Lg==";
/// `{"test":"data","value":123}`
const MIXED: &str = "eyJ0ZXN0IjoiZGF0YSIsInZhbHVlIjoxMjN9";

/// An artifact that holds its bytes.
pub(super) fn show(ctx: &Context, mime_type: &str, base64: &str, uri: Option<&str>) {
    let mut artifact =
        Artifact::named("shown").mime_type(mime_type).uri(format!("data:{mime_type};base64,{base64}"));
    if let Some(uri) = uri {
        artifact.metadata.insert("uri".to_owned(), json!(uri));
    }
    ctx.artifacts().add(artifact);
}

/// Its schema has the keywords that a surface could lose on the way.
fn schema_tool() -> Defined {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "address",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }
        },
        "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
        "allOf": [{"anyOf": [{"required": ["name"]}, {"required": ["address"]}]}],
        "if": {"required": ["address"]},
        "then": {"properties": {"address": {"required": ["street"]}}},
        "else": {"required": ["name"]},
        "additionalProperties": false,
    });
    Action::define("json_schema_2020_12_tool", "Has a schema with many keywords.")
        .input_schema(schema)
        .handler(|input, _| async move { Ok(input) })
}

/// A client repeats the value in a header, where a proxy can see it.
fn header_tool() -> Defined {
    let schema = json!({
        "type": "object",
        "properties": {"value": {"type": "string", "x-mcp-header": "Value"}},
        "required": ["value"],
    });
    Action::define("test_custom_header", "Has an argument that is a header, too.")
        .input_schema(schema)
        .handler(|input, _| async move { Ok(input["value"].clone()) })
}
