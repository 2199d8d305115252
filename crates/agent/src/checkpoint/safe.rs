//! What a store may be given of messages, calls and records: everything in them without secrets.

use runyard_llm::inference::{Image, ImageSource, Message, Part, Reasoning, Role, ToolCall, ToolOutput};
use runyard_redact::{RedactError, Redactor, Safe};
use serde_json::Value;

use crate::run::{RecordedUsage, RunRecord, weighing};

/// A message without secrets. Texts are content, where names of keys mean nothing; arguments are not.
pub(super) fn safe(redactor: &Redactor, message: &Message) -> Safe<Value> {
    let role: Safe<Value> = match message.role {
        Role::System => "system".into(),
        Role::User => "user".into(),
        Role::Assistant => "assistant".into(),
        Role::Tool => "tool".into(),
    };
    let content = message.content.iter().map(|part| safe_part(redactor, part));
    Safe::<Value>::object([("role", role), ("content", Safe::array(content))])
}

/// How many bytes a message has as it is stored.
pub(crate) fn bytes_stored(redactor: &Redactor, message: &Message) -> usize {
    weighing::json(&*safe(redactor, message))
}

fn safe_part(redactor: &Redactor, part: &Part) -> Safe<Value> {
    let text = |text: &str| -> Safe<Value> { redactor.content(text).into() };
    let kind = |kind: &'static str| -> (&'static str, Safe<Value>) { ("type", kind.into()) };
    match part {
        Part::Text { text: said } => Safe::<Value>::object([kind("text"), ("text", text(said))]),
        Part::Image(Image { source }) => {
            let source = match source {
                ImageSource::Data { media_type, data } => Safe::<Value>::object([
                    ("source", "data".into()),
                    ("mediaType", text(media_type)),
                    ("data", text(data)),
                ]),
                ImageSource::Url { url } => {
                    Safe::<Value>::object([("source", "url".into()), ("url", text(url))])
                }
            };
            Safe::<Value>::object([kind("image"), ("source", source)])
        }
        Part::Reasoning(Reasoning { text: thought, sealed }) => {
            // What a provider sealed is taken back whole or not at all.
            let sealed = sealed.as_ref().map(|sealed| (sealed, redactor.json(sealed.clone())));
            let sealed =
                sealed.filter(|(sealed, safe)| **sealed == **safe).map_or(Safe::NULL, |(_, safe)| safe);
            Safe::<Value>::object([kind("reasoning"), ("text", text(thought)), ("sealed", sealed)])
        }
        Part::ToolCall(call) => {
            let [id, name, arguments] = fields(redactor, call);
            Safe::<Value>::object([kind("tool_call"), id, name, arguments])
        }
        Part::ToolOutput(ToolOutput { call_id, content, is_error }) => Safe::<Value>::object([
            kind("tool_output"),
            ("callId", text(call_id)),
            ("content", text(content)),
            ("isError", (*is_error).into()),
        ]),
    }
}

fn fields(redactor: &Redactor, call: &ToolCall) -> [(&'static str, Safe<Value>); 3] {
    [
        ("id", redactor.content(&call.id).into()),
        ("name", redactor.content(&call.name).into()),
        ("arguments", redactor.json(call.arguments.clone())),
    ]
}

/// A call without secrets.
pub(super) fn safe_call(redactor: &Redactor, call: &ToolCall) -> Safe<Value> {
    Safe::<Value>::object(fields(redactor, call))
}

/// A record without secrets. Numbers and our own words have none, and it is written with each step.
pub(super) fn safe_record(redactor: &Redactor, record: &RunRecord) -> Result<Safe<Value>, RedactError> {
    let RunRecord { agent_id, status, rounds, steps, usage, elapsed_ms, before, incomplete, end } = record;
    let RecordedUsage { input_tokens, output_tokens, cached_tokens, reasoning_tokens } = *usage;
    let usage = Safe::<Value>::object([
        ("inputTokens", input_tokens.into()),
        ("outputTokens", output_tokens.into()),
        ("cachedTokens", cached_tokens.into()),
        ("reasoningTokens", reasoning_tokens.into()),
    ]);
    let end = end.as_ref().map_or(Ok(Safe::NULL), |end| redactor.serialize(end))?;
    Ok(Safe::<Value>::object([
        ("agentId", redactor.content(agent_id).into()),
        ("status", status.as_str().into()),
        ("rounds", u64::from(*rounds).into()),
        ("steps", u64::from(*steps).into()),
        ("usage", usage),
        ("elapsedMs", (*elapsed_ms).into()),
        ("before", (*before).into()),
        ("incomplete", (*incomplete).into()),
        ("end", end),
    ]))
}

/// Whether a message is the same as what a store may be given of it: then it holds no secret.
pub(super) fn is_of(value: &Value, message: &Message) -> bool {
    let role = match message.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    let Some(parts) = value["content"].as_array() else { return false };
    value["role"] == role
        && parts.len() == message.content.len()
        && parts.iter().zip(&message.content).all(|(value, part)| is_part_of(value, part))
}

fn is_part_of(value: &Value, part: &Part) -> bool {
    match part {
        Part::Text { text } => value["type"] == "text" && value["text"] == text.as_str(),
        Part::Image(Image { source: ImageSource::Data { media_type, data } }) => {
            value["source"]["mediaType"] == media_type.as_str() && value["source"]["data"] == data.as_str()
        }
        Part::Image(Image { source: ImageSource::Url { url } }) => value["source"]["url"] == url.as_str(),
        Part::Reasoning(Reasoning { text, sealed }) => {
            value["type"] == "reasoning"
                && value["text"] == text.as_str()
                && value["sealed"] == *sealed.as_ref().unwrap_or(&Value::Null)
        }
        Part::ToolCall(ToolCall { id, name, arguments }) => {
            value["type"] == "tool_call"
                && value["id"] == id.as_str()
                && value["name"] == name.as_str()
                && value["arguments"] == *arguments
        }
        Part::ToolOutput(ToolOutput { call_id, content, is_error }) => {
            value["callId"] == call_id.as_str()
                && value["content"] == content.as_str()
                && value["isError"] == *is_error
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{RunEnd, RunStatus};
    use runyard_redact::{Known, TagKey};
    use serde_json::json;

    fn redactor() -> Redactor {
        Redactor::builder(TagKey::from_bytes([1; 32]))
            .known([Known::value("a-well-kept-secret")])
            .build()
            .unwrap()
    }

    fn everything(said: &str) -> Vec<Message> {
        let text = said.to_owned();
        let image = |source| Part::Image(Image { source });
        let content = vec![
            Part::Text { text: text.clone() },
            image(ImageSource::Data { media_type: "image/png".into(), data: "AAAA".into() }),
            image(ImageSource::Url { url: format!("https://example.org/{said}") }),
            Part::Reasoning(Reasoning { text: text.clone(), sealed: None }),
            Part::Reasoning(Reasoning { text: String::new(), sealed: Some(json!({ "seal": 1 })) }),
            Part::ToolCall(ToolCall { id: "c".into(), name: "t".into(), arguments: json!({ "said": said }) }),
            Part::ToolOutput(ToolOutput { call_id: "c".into(), content: text.clone(), is_error: true }),
            Part::ToolOutput(ToolOutput { call_id: "c".into(), content: text, is_error: false }),
        ];
        let roles = [Role::System, Role::User, Role::Assistant, Role::Tool];
        roles.into_iter().map(|role| Message { role, content: content.clone() }).collect()
    }

    #[test]
    fn a_message_reads_back_as_it_was_and_one_with_a_secret_does_not() {
        let redactor = redactor();
        for message in everything("hello") {
            let value = safe(&redactor, &message);
            assert!(is_of(&value, &message));
            assert_eq!(serde_json::from_value::<Message>(value.into_inner()).unwrap(), message);
        }
        for message in everything("a-well-kept-secret") {
            let value = safe(&redactor, &message);
            assert!(!is_of(&value, &message) && !value.to_string().contains("well-kept"));
            let stored: Message = serde_json::from_value((*value).clone()).unwrap();
            assert!(is_of(&value, &stored));
            // Any one part tells them apart.
            for at in 0..message.content.len() {
                let mut mixed = stored.clone();
                mixed.content[at] = message.content[at].clone();
                assert_eq!(is_of(&value, &mixed), mixed == stored, "{:?}", mixed.content[at]);
            }
        }
    }

    #[test]
    fn a_record_reads_back_as_it_was_without_its_secrets() {
        let usage =
            RecordedUsage { input_tokens: 1, output_tokens: 2, cached_tokens: 3, reasoning_tokens: 4 };
        let end = |detail: &str| {
            Some(RunEnd {
                reason: "failed".into(),
                code: Some("storage.io".into()),
                detail: Some(detail.into()),
            })
        };
        for end in [None, end("no"), end("no a-well-kept-secret")] {
            let status = RunStatus::Waiting;
            let (rounds, steps, elapsed_ms, before, incomplete) = (5, 7, 6, 8, true);
            let agent_id = "a".into();
            let record =
                RunRecord { agent_id, status, rounds, steps, usage, elapsed_ms, before, incomplete, end };
            let value = safe_record(&redactor(), &record).unwrap();
            assert!(!value.to_string().contains("well-kept"));
            let read: RunRecord = serde_json::from_value(value.into_inner()).unwrap();
            let has_secret = format!("{record:?}").contains("well-kept");
            assert_eq!(read == record, !has_secret);
            assert_eq!((read.usage, read.elapsed_ms, read.steps, read.status), (usage, 6, 7, status));
            assert_eq!((read.before, read.incomplete), (8, true));
        }
    }
}
