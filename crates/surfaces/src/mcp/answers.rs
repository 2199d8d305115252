//! Envelopes as results: what a person or a model reads, the data as it is, and the whole envelope beside it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::ErrorData;
use rmcp::model::{
    CallToolResult, ContentBlock, ErrorCode, GetPromptResult, MetaObject, PromptMessage, ReadResourceResult,
    Resource, ResourceContents, Role,
};
use runyard_actions::{Artifact, Envelope};
use runyard_domain::Code;
use serde::Deserialize;
use serde_json::{Value, json};

use super::ENVELOPE_KEY;
use super::callers::Wire;

/// The envelope of a tool's call.
pub(super) fn tool_result(envelope: &Envelope, wire: Wire) -> CallToolResult {
    let mut result = match &envelope.outcome {
        Ok(data) => {
            let shown = envelope.artifacts.iter().filter_map(content_of).collect::<Vec<_>>();
            // An action whose result is what it shows has no data.
            let text = (!data.is_null() || shown.is_empty()).then(|| ContentBlock::text(text_of(data)));
            let mut result = CallToolResult::success(text.into_iter().chain(shown).collect());
            // The older wire knows only objects there; the envelope beside it holds any data.
            result.structured_content = (wire == Wire::Rounds || data.is_object()).then(|| data.clone());
            result
        }
        Err(_) => {
            let text = serde_json::to_string(envelope).unwrap_or_default();
            CallToolResult::error(vec![ContentBlock::text(text)])
        }
    };
    result.meta = Some(meta(envelope));
    result
}

fn meta(envelope: &Envelope) -> MetaObject {
    let mut meta = MetaObject::new();
    meta.insert(ENVELOPE_KEY.to_owned(), json!(envelope));
    meta
}

/// A text is shown as it is, anything else as JSON.
fn text_of(data: &Value) -> String {
    data.as_str().map_or_else(|| data.to_string(), str::to_owned)
}

/// An artifact as content: what it holds, where its address is its data, else a link to it.
fn content_of(artifact: &Artifact) -> Option<ContentBlock> {
    let uri = artifact.uri.as_deref()?;
    let Some(inline) = Inline::of(uri) else {
        let mut link = Resource::new(uri, artifact.name.clone().unwrap_or_else(|| artifact.id.clone()));
        link.mime_type.clone_from(&artifact.mime_type);
        link.size = artifact.size_bytes;
        return Some(ContentBlock::resource_link(link));
    };
    Some(match inline.mime_type.split('/').next() {
        Some("image") => ContentBlock::image(inline.base64, inline.mime_type),
        Some("audio") => ContentBlock::audio(inline.base64, inline.mime_type),
        _ => {
            let named = artifact.metadata.get("uri").and_then(Value::as_str);
            let uri = named.map_or_else(|| format!("artifact://{}", artifact.id), str::to_owned);
            ContentBlock::resource(inline.contents(&uri))
        }
    })
}

/// What a `data:` address holds.
struct Inline {
    mime_type: String,
    base64: String,
}

impl Inline {
    fn of(uri: &str) -> Option<Inline> {
        let (mime_type, base64) = uri.strip_prefix("data:")?.split_once(";base64,")?;
        Some(Inline { mime_type: mime_type.to_owned(), base64: base64.to_owned() })
    }

    /// As text where it is one.
    fn contents(self, uri: &str) -> ResourceContents {
        let is_text = self.mime_type.starts_with("text/") || self.mime_type == "application/json";
        let text = STANDARD.decode(&self.base64).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        match text.filter(|_| is_text) {
            Some(text) => ResourceContents::text(text, uri).with_mime_type(self.mime_type),
            None => ResourceContents::blob(self.base64, uri).with_mime_type(self.mime_type),
        }
    }
}

/// The envelope of a resource's reading.
pub(super) fn resource_result(envelope: &Envelope, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let data = envelope.data().ok_or_else(|| reading_failed(envelope, uri))?;
    let inline = envelope.artifacts.iter().filter_map(|artifact| Inline::of(artifact.uri.as_deref()?));
    let mut contents: Vec<_> = inline.map(|inline| inline.contents(uri)).collect();
    if contents.is_empty() {
        let mime_type = if data.is_string() { "text/plain" } else { "application/json" };
        contents.push(ResourceContents::text(text_of(data), uri).with_mime_type(mime_type));
    }
    let mut result = ReadResourceResult::new(contents);
    result.ttl_ms = Some(0);
    result.cache_scope = Some(rmcp::model::CacheScope::Private);
    Ok(result)
}

/// What one may not see is not there.
fn reading_failed(envelope: &Envelope, uri: &str) -> ErrorData {
    let status = envelope.http_status();
    if status == 404 || status == 403 {
        return not_found(uri);
    }
    failed(envelope)
}

/// There is no such resource.
pub(super) fn not_found(uri: &str) -> ErrorData {
    let uri: String = uri.chars().take(200).collect();
    ErrorData::new(ErrorCode::RESOURCE_NOT_FOUND, "There is no such resource.", Some(json!({ "uri": uri })))
}

/// A failure where the protocol has no place for an envelope: its code of the error table, the envelope as data.
pub(super) fn failed(envelope: &Envelope) -> ErrorData {
    let Some(failure) = envelope.error() else {
        return ErrorData::internal_error("There is no result.", None);
    };
    // A name that is not there is a wrong parameter: the method itself exists.
    let code = if failure.code == Code::ActionNotFound {
        ErrorCode::INVALID_PARAMS
    } else {
        ErrorCode(failure.code.row().json_rpc)
    };
    ErrorData::new(code, failure.message.clone(), Some(json!({ ENVELOPE_KEY: envelope })))
}

/// The envelope of a prompt: a text, or messages.
pub(super) fn prompt_result(envelope: &Envelope, description: &str) -> Result<GetPromptResult, ErrorData> {
    #[derive(Deserialize)]
    struct Messages {
        messages: Vec<Message>,
    }
    #[derive(Deserialize)]
    struct Message {
        role: Role,
        content: Content,
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Content {
        Text(String),
        Block(Box<ContentBlock>),
    }
    let data = envelope.data().ok_or_else(|| failed(envelope))?;
    let messages = match data {
        Value::String(text) => vec![PromptMessage::new_text(Role::User, text)],
        _ => {
            let unfit = |_| ErrorData::internal_error("The prompt gives neither a text nor messages.", None);
            let Messages { messages } = Messages::deserialize(data).map_err(unfit)?;
            let message = |Message { role, content }| match content {
                Content::Text(text) => PromptMessage::new_text(role, text),
                Content::Block(block) => PromptMessage::new(role, *block),
            };
            messages.into_iter().map(message).collect()
        }
    };
    Ok(GetPromptResult::new(messages).with_description(description))
}
