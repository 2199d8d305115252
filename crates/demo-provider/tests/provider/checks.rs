//! What a real provider would refuse is refused here too, in its words.

use runyard_demo_provider::{DemoProvider, Options, Requests};
use serde_json::{Value, json};

use crate::client::request;

const RESPONSES: &str = "/v1/responses";
const CHAT: &str = "/v1/chat/completions";
const ANTHROPIC: &str = "/v1/messages";

async fn ask(provider: &DemoProvider, path: &str, body: &Value) -> (u16, String) {
    let reply = request(provider.address(), "POST", path, "k", &body.to_string()).await;
    let message = serde_json::from_str::<Value>(&reply.body).unwrap_or_default()["error"]["message"].clone();
    (reply.status, message.as_str().unwrap_or_default().to_owned())
}

/// A request that is taken, with these fields instead of its own; one that is null is left out.
fn with(mut body: Value, changes: &Value) -> Value {
    let fields = body.as_object_mut().unwrap();
    for (name, value) in changes.as_object().unwrap() {
        match value {
            Value::Null => _ = fields.remove(name),
            value => _ = fields.insert(name.clone(), value.clone()),
        }
    }
    body
}

async fn check(path: &str, fine: Value, wrong: &[(Value, &str)]) {
    let provider = DemoProvider::start().await.unwrap();
    assert_eq!(ask(&provider, path, &fine).await, (200, String::new()));
    for (changes, said) in wrong {
        let (status, message) = ask(&provider, path, &with(fine.clone(), changes)).await;
        assert!(status == 400 && message.contains(said), "{changes}: {status} {message}");
    }
    let any = Options { requests: Requests::Any, ..Options::default() };
    let provider = DemoProvider::start_with(any).await.unwrap();
    for (changes, _) in wrong {
        assert_eq!(ask(&provider, path, &with(fine.clone(), changes)).await.0, 200, "{changes}");
    }
}

#[tokio::test]
async fn what_the_responses_api_refuses() {
    let user = json!({"role": "user", "content": "hello"});
    let call =
        |name: &str| json!({"type": "function_call", "call_id": "c1", "name": name, "arguments": "{}"});
    let output = json!({"type": "function_call_output", "call_id": "c1", "output": "ok"});
    let thought = json!({"type": "reasoning", "id": "rs_1", "summary": []});
    let tool = |name: &str| json!([{"type": "function", "name": name, "parameters": {}}]);
    let fine = json!({"model": "m", "input": [user, thought, call("look"), output], "max_output_tokens": 16, "tools": tool("look")});
    let wrong = [
        (json!({"input": []}), "empty array"),
        (json!({"max_output_tokens": 15}), ">= 16"),
        (json!({"tools": tool("fs.read")}), "pattern"),
        (json!({"input": [{"role": "tool", "content": "x"}]}), "Supported values"),
        (json!({"input": [user, call("fs.read"), output]}), "pattern"),
        (json!({"input": [user, call("look")]}), "No tool output found for function call c1"),
        (json!({"input": [user, output]}), "No tool call found"),
        (json!({"input": [user, output, call("look")]}), "No tool call found"),
        (json!({"input": [user, thought, user]}), "required following item"),
    ];
    check(RESPONSES, fine, &wrong).await;
}

#[tokio::test]
async fn what_providers_of_chat_completions_refuse() {
    let user = json!({"role": "user", "content": "hello"});
    let called = |name: &str| {
        json!({"role": "assistant", "content": null,
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": name, "arguments": "{}"}}]})
    };
    let result = json!({"role": "tool", "tool_call_id": "c1", "content": "ok"});
    let tool = |name: &str| json!([{"type": "function", "function": {"name": name, "parameters": {}}}]);
    let fine = json!({"model": "m", "messages": [user, called("look"), result], "max_tokens": 1, "tools": tool("look")});
    let wrong = [
        (json!({"messages": null}), "'messages'"),
        (json!({"messages": []}), "empty array"),
        (json!({"max_tokens": 0}), ">= 1"),
        (json!({"max_completion_tokens": 9}), "at the same time"),
        (json!({"tools": tool("fs.read")}), "pattern"),
        (json!({"messages": [{"role": "model", "content": "x"}]}), "Supported values"),
        (json!({"messages": [user, {"role": "assistant", "content": null}]}), "expected a string"),
        (json!({"messages": [user, called("fs.read"), result]}), "pattern"),
        (json!({"messages": [user, called("look")]}), "did not have response messages: c1"),
        (json!({"messages": [user, called("look"), user, result]}), "did not have response messages: c1"),
        (json!({"messages": [user, result]}), "must be a response"),
        (json!({"response_format": {"type": "json_object"}}), "the word 'json'"),
    ];
    check(CHAT, fine, &wrong).await;
}

#[tokio::test]
async fn what_anthropic_refuses() {
    let says = |role: &str, content: Value| json!({"role": role, "content": content});
    let user = says("user", json!("hello"));
    let call = |id: &str, name: &str| json!({"type": "tool_use", "id": id, "name": name, "input": {}});
    let called = |id: &str, name: &str| says("assistant", json!([call(id, name)]));
    let result = json!({"type": "tool_result", "tool_use_id": "c1", "content": "ok"});
    let results = says("user", json!([result, {"type": "text", "text": "And?"}]));
    let late = says("user", json!([{"type": "text", "text": "And?"}, result]));
    let tool = |name: &str, schema: Value| json!([{"name": name, "input_schema": schema}]);
    let object = json!({"type": "object"});
    let fine = json!({
        "model": "m", "max_tokens": 2048, "messages": [user, called("c1", "look"), results],
        "tools": tool("look", object.clone()), "thinking": {"type": "enabled", "budget_tokens": 1024}, "top_p": 0.95,
    });
    let wrong = [
        (json!({"max_tokens": null}), "max_tokens"),
        (json!({"max_tokens": 0}), ">= 1"),
        (json!({"messages": []}), "empty array"),
        (json!({"messages": [called("c1", "look"), results]}), "first message"),
        (json!({"messages": [user, says("system", json!("x"))]}), "Unexpected role"),
        (json!({"messages": [says("user", json!([{"type": "text", "text": " "}]))]}), "non-empty"),
        (json!({"messages": [user, called("c1", "look")]}), "without `tool_result`"),
        (json!({"messages": [user, called("c1", "look"), user, results]}), "without `tool_result`"),
        (json!({"messages": [user, called("c1", "look"), late]}), "unexpected `tool_use_id`"),
        (json!({"messages": [results]}), "unexpected `tool_use_id`"),
        (json!({"messages": [user, called("c1", "fs.read"), results]}), "pattern"),
        (json!({"messages": [user, called("call/1", "look"), results]}), "pattern"),
        (
            json!({"messages": [user, says("assistant", json!([{"type": "thinking", "thinking": "Hm."}]))]}),
            "signature",
        ),
        (json!({"tools": tool("fs.read", object)}), "pattern"),
        (json!({"tools": tool("look", json!({}))}), "'object'"),
        (json!({"tools": tool("look", json!({"type": "object", "anyOf": []}))}), "top level"),
        (json!({"max_tokens": 1024}), "greater than"),
        (json!({"thinking": {"type": "enabled", "budget_tokens": 1023}}), ">= 1024"),
        (json!({"top_p": 0.9}), "0.95"),
        (json!({"temperature": 0.5, "top_p": null}), "set to 1"),
        (json!({"temperature": 1, "thinking": null}), "both"),
        (json!({"tool_choice": {"type": "any"}}), "forces tool use"),
    ];
    check(ANTHROPIC, fine, &wrong).await;
}
