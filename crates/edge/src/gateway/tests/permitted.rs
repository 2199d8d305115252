//! What a request may ask of a provider.

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use runyard_domain::Wire;
use serde_json::{Value, json};

use super::harness::*;
use crate::gateway::permitted::{Form, Unpermitted, permitted as permitted_in};
use crate::gateway::{Gateway, Used};

fn permitted(body: &[u8]) -> Result<(), Unpermitted> {
    permitted_in(body, Form::Responses)
}

fn refused(body: &Value) -> String {
    refused_in(body, Form::Responses)
}

fn refused_in(body: &Value, form: Form) -> String {
    match permitted_in(body.to_string().as_bytes(), form) {
        Ok(()) => "nothing".to_owned(),
        Err(why) => why.to_string(),
    }
}

fn codex_requests(below: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../llm/tests/codex-requests").join(below);
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let files = paths.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

#[test]
fn what_codex_asks_for_is_permitted_unless_it_offers_a_search_of_the_web() {
    let (fine, searching) = (codex_requests(""), codex_requests("refused"));
    assert!(fine.len() >= 8 && searching.len() >= 2);
    for (path, body) in fine {
        assert_eq!(permitted(&body), Ok(()), "{}", path.display());
    }
    for (path, body) in searching {
        let expected = Err(Unpermitted::Tool("web_search".to_owned()));
        assert_eq!(permitted(&body), expected, "{}", path.display());
    }
}

#[test]
fn c11_whatever_makes_a_provider_reach_others_or_keep_something_is_refused_by_name() {
    let image = |url: Value| json!({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": url}]}]});
    let tool = |kind: &str| json!({"tools": [{"type": kind, "server_url": "https://evil"}]});
    #[rustfmt::skip]
    let table = [
        (json!({"background": true}), "background"),
        (json!({"background": 1}), "background"),
        (json!({"BackGround": true}), "background"),
        (json!({"bac\u{212a}ground": true}), "background"),
        (json!({"store": true}), "store"),
        (json!({"store": "false"}), "store"),
        (json!({"previous_response_id": "resp_1"}), "previous_response_id"),
        (json!({"conversation": {"id": "conv_1"}}), "conversation"),
        (json!({"conversation": false}), "conversation"),
        (json!({"prompt": {"id": "pmpt_1"}}), "prompt"),
        (tool("mcp"), "mcp"),
        (tool("web_search"), "web_search"),
        (tool("web_search_preview"), "web_search_preview"),
        (tool("code_interpreter"), "code_interpreter"),
        (tool("file_search"), "file_search"),
        (tool("image_generation"), "image_generation"),
        (tool("Function"), "Function"),
        (tool("shell"), "shell"),
        (json!({"tools": [{"type": "shell", "environment": {"type": "container_auto"}}]}), "type"),
        (json!({"tools": [{"type": "shell", "environment": {}}]}), "environment"),
        (json!({"tools": [{"type": "shell", "environment": null}]}), "shell"),
        (json!({"tools": [{"name": "x"}]}), "untyped"),
        (json!({"tools": [{"type": ["mcp"]}]}), "type"),
        (json!({"tools": ["mcp"]}), "tools"),
        (json!({"tools": {"type": "mcp"}}), "tools"),
        (json!({"tools": [{"type": "namespace", "tools": [{"type": "namespace", "tools": [{"type": "mcp"}]}]}]}), "mcp"),
        (json!({"input": [{"type": "tool_search_output", "tools": [{"type": "mcp"}]}]}), "mcp"),
        (image(json!("https://evil/?x")), "image_url"),
        (image(json!(" data:image/png;base64,AA")), "image_url"),
        (image(json!("file:///etc/passwd")), "image_url"),
        (image(json!({"url": "https://evil"})), "`url`"),
        (image(json!(["https://evil"])), "image_url"),
        (json!({"input": [{"type": "message", "content": [{"type": "input_file", "file_url": "http://evil"}]}]}), "file_url"),
        (json!({"input": [{"type": "function_call_output", "output": [{"image_url": "http://evil"}]}]}), "image_url"),
        (json!({"instructions": [{"type": "message", "content": [{"image_url": "http://evil"}]}]}), "image_url"),
        (json!({"input": [{"type": "message", "content": [{"type": "input_file", "file_id": "file-1"}]}]}), "file_id"),
        (json!({"input": [{"type": "item_reference", "id": "msg_1"}]}), "item_reference"),
        (json!({"input": [{"id": "msg_1"}]}), "item_reference"),
        (json!({"input": [{"id": "msg_1", "type": null}]}), "item_reference"),
    ];
    for (body, named) in table {
        let said = refused(&body);
        assert!(said.contains(&format!("`{}`", named.trim_matches('`'))), "{body}: {said}");
    }
    let long = refused(&tool(&"x".repeat(1000)));
    assert!(long.len() < 300, "{long}");
}

#[test]
fn what_an_agent_does_itself_is_permitted() {
    #[rustfmt::skip]
    let table = [
        json!({}),
        json!({"background": false, "store": null, "previous_response_id": null, "conversation": null, "prompt": null, "tools": null}),
        json!({"input": "see https://example.com", "metadata": {"image_url": "https://x"}, "text": {"format": {"schema": {"file_id": {}}}}}),
        json!({"tools": [{"type": "function", "name": "f", "parameters": {"properties": {"image_url": {"type": "mcp"}, "A": 1, "a": 2}}},
            {"type": "custom"}, {"type": "local_shell"}, {"type": "apply_patch"}, {"type": "tool_search", "execution": "client"},
            {"type": "shell", "environment": {"type": "local"}}, {"type": "namespace", "tools": [{"type": "function"}]}]}),
        json!({"input": [{"role": "user", "content": "hi"}, {"type": "message", "content": [
            {"type": "input_image", "image_url": "data:image/png;base64,AA"},
            {"type": "input_image", "image_url": {"url": "data:,", "detail": "low"}, "file_id": null}]},
            {"type": "tool_search_call", "arguments": {"file_id": "x"}},
            {"type": "function_call", "arguments": "{\"image_url\":\"https://x\"}"}]}),
    ];
    for body in table {
        assert_eq!(refused(&body), "nothing", "{body}");
    }
}

#[test]
fn c11_what_makes_other_providers_reach_others_is_refused_by_name_and_the_rest_is_not() {
    let block = |block: Value| json!({"messages": [{"role": "user", "content": [block]}]});
    let image = |source: Value| json!({"type": "image", "source": source});
    let remote = json!({"type": "url", "url": "https://evil/?x"});
    #[rustfmt::skip]
    let table = [
        (json!({"mcp_servers": [{"type": "url", "url": "https://evil"}]}), "mcp_servers"),
        (json!({"MCP_Servers": []}), "mcp_servers"),
        (json!({"container": "container_1"}), "container"),
        (json!({"plugins": [{"id": "web"}]}), "plugins"),
        (json!({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}), "web_search_20250305"),
        (json!({"tools": [{"type": "web_fetch_20250910"}]}), "web_fetch_20250910"),
        (json!({"tools": [{"type": "code_execution_20250825"}]}), "code_execution_20250825"),
        (json!({"tools": [{"type": ["custom"]}]}), "type"),
        (json!({"tools": {"type": "custom"}}), "tools"),
        (json!({"tools": [null]}), "tools"),
        (block(image(remote.clone())), "url"),
        (block(json!({"type": "document", "source": remote.clone()})), "url"),
        (block(image(json!({"type": "file", "file_id": "file_1"}))), "file_id"),
        (block(json!({"type": "container_upload", "file_id": "file_1"})), "file_id"),
        (block(json!({"type": "tool_result", "content": [image(remote.clone())]})), "url"),
        (json!({"system": [image(remote)]}), "url"),
    ];
    for (body, named) in table {
        let said = refused_in(&body, Form::Messages);
        assert!(said.contains(&format!("`{named}`")), "{body}: {said}");
    }
    let chat = |part: Value| json!({"messages": [{"role": "user", "content": [part]}]});
    #[rustfmt::skip]
    let table = [
        (json!({"web_search_options": {}}), "web_search_options"),
        (json!({"plugins": [{"id": "web"}]}), "plugins"),
        (json!({"store": true}), "store"),
        (json!({"tools": [{"type": "mcp", "server_url": "https://evil"}]}), "mcp"),
        (json!({"tools": [{"type": "openrouter:web_search"}]}), "openrouter:web_search"),
        (chat(json!({"type": "image_url", "image_url": {"url": "https://evil/?x"}})), "url"),
        (chat(json!({"type": "image_url", "image_url": "https://evil/?x"})), "image_url"),
        (chat(json!({"type": "document_url", "document_url": "https://evil"})), "document_url"),
        (chat(json!({"type": "file", "file": {"file_data": "https://evil"}})), "file_data"),
        (json!({"search_parameters": {"mode": "on"}}), "search_parameters"),
        (json!({"enable_search": true}), "enable_search"),
        (json!({"model": "m:Online"}), "model"),
        (chat(json!({"type": "file", "file": {"file_id": "file-1"}})), "file_id"),
    ];
    for (body, named) in table {
        let said = refused_in(&body, Form::Chat);
        assert!(said.contains(&format!("`{named}`")), "{body}: {said}");
    }
    let call = json!({"id": "1", "type": "function", "function": {"name": "f", "arguments": "{\"url\":\"https://x\"}"}});
    for body in [
        json!({"model": "m", "stream": true, "store": false, "tools": [{"type": "function", "function": {"name": "f",
            "parameters": {"properties": {"url": {}, "file_id": {}}}}}]}),
        json!({"messages": [{"role": "assistant", "content": null, "tool_calls": [call]}, {"role": "tool", "content": "https://x"}]}),
        chat(json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}})),
    ] {
        assert_eq!(refused_in(&body, Form::Chat), "nothing", "{body}");
    }
    #[rustfmt::skip]
    let fine = [
        json!({"model": "m", "max_tokens": 5, "stream": true, "messages": [{"role": "user", "content": "see https://x"}]}),
        json!({"tools": [{"name": "f", "input_schema": {"properties": {"url": {"type": "string"}}}}, {"type": "custom", "name": "g"}],
            "tool_choice": {"type": "tool", "name": "f"}, "thinking": {"type": "adaptive"}, "mcp_servers": null}),
        block(json!({"type": "tool_use", "id": "1", "name": "f", "input": {"url": "https://x", "file_id": "y"}})),
        block(json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}})),
        block(json!({"type": "thinking", "thinking": "", "signature": "s"})),
    ];
    for body in fine {
        assert_eq!(refused_in(&body, Form::Messages), "nothing", "{body}");
    }
    for body in ["null", "[]", "{", "\"{}\""] {
        assert_eq!(permitted_in(body.as_bytes(), Form::Messages), Err(Unpermitted::Malformed), "{body}");
    }
    let twice = br#"{"messages":[{"role":"user","content":[{"type":"image","source":{"url":"data:,","url":"https://evil"}}]}]}"#;
    assert_eq!(permitted_in(twice, Form::Messages), Err(Unpermitted::Twice("url".to_owned())));
}

#[test]
fn c11_a_name_that_is_there_twice_hides_nothing() {
    for body in [
        r#"{"background":true,"background":false}"#,
        r#"{"background":false,"back\u0067round":false}"#,
        r#"{"store":false,"Store":false}"#,
        r#"{"tools":[],"tools":[]}"#,
        r#"{"tools":[{"type":"function","type":"function"}]}"#,
        r#"{"tools":[{"type":"function","parameters":{"a":1,"a":1}}]}"#,
        r#"{"input":[{"role":"user","role":"user"}]}"#,
        r#"{"metadata":{"a":{"b":1,"b":2}}}"#,
    ] {
        let why = permitted(body.as_bytes()).unwrap_err();
        let first = matches!(&why, Unpermitted::Field(name) if name == "background");
        assert!(first || matches!(why, Unpermitted::Twice(_)), "{body}: {why}");
    }
}

#[test]
fn what_is_no_request_or_too_much_of_one_is_refused() {
    let deep = format!("{{\"x\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    for body in
        ["", "{", "[]", "1", "null", "\"{}\"", "{} {}", "{}x", "{\"x\":\"\\ud800\"}", "\u{feff}{}", &deep]
    {
        assert_eq!(
            permitted(body.as_bytes()),
            Err(Unpermitted::Malformed),
            "{}",
            &body[..body.len().min(20)]
        );
    }
    assert_eq!(permitted(b"{\"x\":\"\xff\"}"), Err(Unpermitted::Malformed));
    let many = format!("{{\"x\":[{}1]}}", "1,".repeat(300_000));
    assert_eq!(permitted(many.as_bytes()), Err(Unpermitted::TooManyValues));
}

#[tokio::test]
async fn c11_what_is_not_permitted_is_refused_on_both_wires_and_sent_nowhere() {
    let provider = Provider::streaming(&[]).await;
    for wire in [Wire::Responses, Wire::Chat] {
        let lease = Gateway::new().open(pass(&provider.base_url(), wire)).await.unwrap();
        let exfiltrating = json!({"model": "m", "stream": true, "input": [{"type": "message", "role": "user",
            "content": [{"type": "input_image", "image_url": "https://evil/?secret"}]}]});
        for body in [
            exfiltrating.to_string(),
            json!({"background": true, "tools": [{"type": "mcp", "server_url": "https://evil"}]}).to_string(),
            "{\"tools\":[{\"type\":\"mcp\"}],\"tools\":[]}".to_owned(),
        ] {
            let reply = ask(&lease, &body).await;
            assert_eq!(reply.code(), (400, "unsupported".to_owned()), "{wire:?} {body}");
            assert_eq!(reply.json()["error"]["type"], "invalid_request_error");
            assert!(!reply.body.contains("evil"), "{}", reply.body);
        }
        assert_eq!(ask(&lease, "no JSON").await.code(), (400, "malformed_request".to_owned()));
        assert_eq!(*lease.used().borrow(), Used::default());
    }
    assert_eq!(provider.seen(), []);
}

#[tokio::test]
async fn c11_a_provider_is_told_that_it_gets_json_whatever_the_agent_calls_it() {
    let provider = Provider::answering("200 OK", "", "{}").await;
    let lease = lease(&provider.base_url()).await;
    let request = request(&lease, "{}").replace("application/json", "application/json; charset=utf-7");
    assert_eq!(ask_raw(&lease, request.as_bytes()).await.status, 200);
    let head = &provider.seen()[0].head;
    assert!(head.contains("content-type: application/json\r\n"), "{head}");
}

fn any_json() -> impl Strategy<Value = Value> {
    let names =
        prop::sample::select(vec!["type", "tools", "input", "image_url", "environment", "role", "url", "x"]);
    let words = prop::sample::select(vec!["mcp", "function", "namespace", "data:,", "http://evil", "local"]);
    let leaf =
        prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), words.prop_map(Value::from)];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((names.clone(), inner), 0..5).prop_map(|fields| fields
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect()),
        ]
    })
}

/// Something with a type, as tools and items are.
fn any_typed() -> impl Strategy<Value = Value> {
    let kinds = prop::sample::select(vec!["function", "namespace", "mcp", "message"]);
    let names = prop::sample::select(vec!["tools", "image_url", "content", "x"]);
    let values = prop_oneof![any_json(), Just(json!("http://evil"))];
    (kinds, names, values).prop_map(|(kind, name, value)| json!({"type": kind, name: value}))
}

/// Whether a tool that the provider runs, or an image that it fetches, is anywhere that it would look for one.
fn reaches_out(value: &Value) -> bool {
    let tools = value["tools"].as_array().into_iter().flatten();
    tools.clone().any(|tool| tool["type"] == "mcp" || reaches_out(&json!({"tools": tool["tools"]})))
        || value["input"].as_array().into_iter().flatten().any(|item| item["image_url"] == "http://evil")
}

proptest! {
    #[test]
    fn any_bytes_are_looked_at_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), text in ".{0,200}") {
        let _ = permitted(&bytes);
        let _ = permitted(text.as_bytes());
    }

    #[test]
    fn c11_nothing_that_is_permitted_reaches_out(
        tools in prop::collection::vec(any_typed(), 0..3),
        input in prop::collection::vec(any_typed(), 0..3),
    ) {
        let request = json!({"tools": tools, "input": input});
        let text = request.to_string();
        prop_assert!(permitted(text.as_bytes()).is_err() || !reaches_out(&request), "{text}");
        prop_assert!(permitted(&text.as_bytes()[..text.len() / 2]).is_err(), "cut, it is no request at all");
    }

    #[test]
    fn c11_of_two_equal_names_neither_is_believed(first in any_json(), second in any_json()) {
        for name in ["tools", "background", "store"] {
            let body = format!("{{\"{name}\":{first},\"{name}\":{second}}}");
            prop_assert!(permitted(body.as_bytes()).is_err());
        }
    }
}
