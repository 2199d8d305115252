//! Bodies of requests, and what becomes of them.
#![allow(clippy::unwrap_used, dead_code, missing_docs, unreachable_pub)]

use runyard_llm::translate::to_chat;
use serde_json::{Value, json};

/// A smallest request, with these fields.
pub fn request(fields: Value) -> Value {
    let mut request = json!({"model": "m", "stream": true, "input": []});
    for (name, value) in fields.as_object().unwrap() {
        request[name] = value.clone();
    }
    request
}

pub fn chat(fields: Value) -> Value {
    serde_json::to_value(to_chat(request(fields)).unwrap().request).unwrap()
}

#[track_caller]
pub fn messages(input: Value, expected: Value) {
    assert_eq!(chat(json!({"input": input}))["messages"], expected);
}

/// The rest of the request is what every request has.
#[track_caller]
pub fn says(fields: Value, expected: Value) {
    let mut chat = chat(fields);
    let object = chat.as_object_mut().unwrap();
    for (name, value) in
        [("model", json!("m")), ("stream", json!(true)), ("stream_options", json!({"include_usage": true}))]
    {
        assert_eq!(object.remove(name), Some(value));
    }
    object.retain(|_, value| *value != json!([]));
    assert_eq!(chat, expected);
}

#[track_caller]
pub fn refused(fields: Value, message: &str) {
    assert_eq!(to_chat(request(fields)).unwrap_err().to_string(), message);
}

pub fn no_place(what: &str, name: &str, path: &str) -> String {
    format!("chat completions has no place for the {what} `{name}` at `{path}`")
}

pub fn function(name: &str) -> Value {
    json!({"type": "function", "name": name, "parameters": {"type": "object"}})
}

pub fn call(id: &str) -> Value {
    json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"})
}

pub fn result(id: &str, output: &str) -> Value {
    json!({"type": "function_call_output", "call_id": id, "output": output})
}

pub fn made(id: &str) -> Value {
    json!({"type": "function", "id": id, "function": {"name": "f", "arguments": "{}"}})
}

pub fn user(text: &str) -> Value {
    json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
}
