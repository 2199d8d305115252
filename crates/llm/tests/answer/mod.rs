//! Chunks of a chat completion, and what a stream makes of them.
#![allow(clippy::unwrap_used, dead_code, missing_docs, unreachable_pub)]

use runyard_llm::{
    sse::Decoder,
    translate::{Stream, Tools, to_chat},
};
use serde_json::{Value, json};

/// A function `f`, a custom tool `apply_patch`, and `ping` in a group.
pub fn tools() -> Tools {
    let group =
        json!({"type": "namespace", "name": "mcp__demo", "tools": [{"type": "function", "name": "ping"}]});
    let tools = json!([{"type": "function", "name": "f"}, {"type": "custom", "name": "apply_patch"}, group]);
    to_chat(json!({"model": "m", "stream": true, "input": "hi", "tools": tools})).unwrap().tools
}

pub fn chunk(delta: Value) -> String {
    json!({"id": "x", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
        .to_string()
}

pub fn said(text: &str) -> String {
    chunk(json!({"content": text}))
}

pub fn piece(call: Value) -> String {
    chunk(json!({"tool_calls": [call]}))
}

pub fn finish(reason: &str) -> String {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": null}).to_string()
}

pub fn done() -> String {
    "[DONE]".to_owned()
}

/// Sends the chunks as bytes and reads the bytes that come out. The name of each event is its type, and they are counted.
pub fn translated(chunks: &[String]) -> Vec<Value> {
    let mut stream = Stream::new("r", "m", tools());
    let mut out = Vec::new();
    for chunk in chunks {
        out.extend(stream.push(format!("data: {chunk}\n\n").as_bytes()).unwrap());
    }
    out.extend(stream.finish());
    read(&out)
}

pub fn read(bytes: &[u8]) -> Vec<Value> {
    let events = Decoder::new().push(bytes).unwrap();
    let read = |(index, event): (usize, runyard_llm::sse::Event)| {
        let value: Value = serde_json::from_str(&event.data).unwrap();
        assert_eq!(value["type"], json!(event.name));
        assert_eq!(value["sequence_number"], json!(index));
        value
    };
    events.into_iter().enumerate().map(read).collect()
}

pub fn last(events: &[Value]) -> &Value {
    events.last().unwrap()
}

pub fn is_last(event: &Value) -> bool {
    let name = event["type"].as_str().unwrap();
    ["response.completed", "response.incomplete", "response.failed"].contains(&name)
}
