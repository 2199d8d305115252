//! Providers that speak chat completions only. The demo provider shares no types with what translates.

use runyard_demo_provider::{DemoProvider, Options};
use runyard_domain::Wire;
use serde_json::{Value, json};

use super::harness::*;
use crate::gateway::{Gateway, Lease, Pass};

async fn chat_lease(base_url: &str) -> Lease {
    Gateway::new().open(pass(base_url, Wire::Chat)).await.unwrap()
}

async fn demo() -> DemoProvider {
    DemoProvider::start_with(Options { keys: vec![KEY.to_owned()], ..Options::default() }).await.unwrap()
}

/// A request as codex makes one, as far as it matters here.
fn asking(text: &str) -> Value {
    json!({
        "model": "m-1", "stream": true, "store": false, "instructions": "Be brief.",
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}],
        "tools": [
            {"type": "function", "name": "exec_command", "description": "runs it", "strict": false,
                "parameters": {"type": "object", "properties": {"cmd": {"type": "string"}}}},
            {"type": "custom", "name": "apply_patch", "description": "applies it"},
        ],
    })
}

/// The items of the answer, and what it cost by the last event.
fn completed(reply: &Reply) -> (Vec<Value>, Value) {
    assert_eq!((reply.status, reply.whole), (200, true), "{}", reply.body);
    assert!(reply.head.contains("content-type: text/event-stream\r\n"), "{}", reply.head);
    let events = reply.events();
    assert_eq!(events[0]["type"], "response.created");
    let last = &events[events.len() - 1];
    assert_eq!(last["type"], "response.completed", "{last}");
    (last["response"]["output"].as_array().unwrap().clone(), last["response"]["usage"].clone())
}

#[tokio::test]
async fn a_chat_provider_answers_a_responses_request_with_text_and_what_it_cost() {
    let provider = demo().await;
    let lease = chat_lease(&provider.url()).await;
    let reply = ask(&lease, &asking("[[scenario:text]]").to_string()).await;
    let (items, usage) = completed(&reply);
    assert_eq!(items.len(), 1);
    assert_eq!(items[0]["content"][0]["text"], "Hello from the demo provider.");
    let deltas = reply.events().into_iter().filter(|event| event["type"] == "response.output_text.delta");
    assert!(deltas.count() > 1, "streamed");
    let used = *lease.used().borrow();
    assert!(used.input_tokens > 0 && used.output_tokens > 0);
    assert_eq!(
        (json!(used.input_tokens), json!(used.output_tokens)),
        (usage["input_tokens"].clone(), usage["output_tokens"].clone())
    );
    let requests = provider.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!((requests[0].path.as_str(), requests[0].bearer()), ("/v1/chat/completions", Some(KEY)));
    let sent: Value = requests[0].json();
    assert_eq!(sent["messages"][0]["content"], "Be brief.");
    assert_eq!(
        sent["tools"][1]["function"]["parameters"]["required"],
        json!(["input"]),
        "a custom tool is a function with one text"
    );
}

#[tokio::test]
async fn reasoning_tool_calls_and_custom_tools_come_back_as_what_they_were() {
    let provider = demo().await;
    let lease = chat_lease(&provider.url()).await;
    let (items, _) = completed(&ask(&lease, &asking("[[scenario:reasoning]]").to_string()).await);
    assert_eq!(items[0]["type"], "reasoning");
    assert_eq!(items[0]["summary"][0]["text"], "The person says hello; I say hello too.");
    assert_eq!(items[1]["content"][0]["text"], "Hello, after some thought.");

    let mut conversation = asking("[[scenario:shell echo 1]]");
    let (items, _) = completed(&ask(&lease, &conversation.to_string()).await);
    assert_eq!((&items[0]["type"], &items[0]["name"]), (&json!("function_call"), &json!("exec_command")));
    let arguments: Value = serde_json::from_str(items[0]["arguments"].as_str().unwrap()).unwrap();
    assert_eq!(arguments, json!({"cmd": "echo 1"}));
    let output = json!({"type": "function_call_output", "call_id": items[0]["call_id"], "output": "1"});
    conversation["input"].as_array_mut().unwrap().extend([items[0].clone(), output]);
    let (items, _) = completed(&ask(&lease, &conversation.to_string()).await);
    assert_eq!(items[0]["content"][0]["text"], "The command has run.");

    let (items, _) = completed(&ask(&lease, &asking("[[scenario:patch new.txt]]").to_string()).await);
    assert_eq!((&items[0]["type"], &items[0]["name"]), (&json!("custom_tool_call"), &json!("apply_patch")));
    assert!(items[0]["input"].as_str().unwrap().contains("*** Add File: new.txt"), "{}", items[0]);
}

#[tokio::test]
async fn what_cannot_be_translated_is_refused_by_name_and_sent_nowhere() {
    let provider = Provider::streaming(&[]).await;
    let lease = chat_lease(&provider.base_url()).await;
    let with = |key: &str, value: Value| {
        let mut asking = asking("hi");
        asking[key] = value;
        asking.to_string()
    };
    for (body, named) in [
        (with("previous_response_id", json!("resp_1")), "previous_response_id"),
        (with("tools", json!([{"type": "web_search"}])), "web_search"),
        (with("stream", json!(false)), "stream"),
        (with("background", json!(true)), "background"),
        (with("unheard_of", json!({})), "unheard_of"),
    ] {
        let reply = ask(&lease, &body).await;
        assert_eq!(reply.code(), (400, "unsupported".to_owned()), "{named}");
        assert!(reply.json()["error"]["message"].as_str().unwrap().contains(named), "{}", reply.body);
    }
    for body in ["", "{", "[]", "{\"model\":1}"] {
        assert_eq!(ask(&lease, body).await.code(), (400, "malformed_request".to_owned()), "{body}");
    }
    assert_eq!(provider.seen(), []);
    assert_eq!(*lease.used().borrow(), crate::gateway::Used::default());
}

#[tokio::test]
async fn a_chat_stream_that_breaks_never_looks_complete() {
    let chunk = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"half\"}}]}\n\n";
    for (rest, whole) in [
        // Cut by the provider.
        (String::new(), false),
        // Ended by the provider, but nothing said that the answer is complete.
        ("0\r\n\r\n".to_owned(), true),
        // No chunk of a chat completion.
        (chunks(&["data: <html>\n\n"]) + "0\r\n\r\n", false),
    ] {
        let provider = Provider::playing(vec![stream_head(), sent(&chunks(&[chunk])), sent(&rest)]).await;
        let lease = chat_lease(&provider.base_url()).await;
        let reply = ask(&lease, &asking("hi").to_string()).await;
        assert_eq!((reply.status, reply.whole), (200, whole), "{rest}");
        assert!(!reply.body.contains("response.completed"), "{rest}");
        let used = used_when(&lease, |used| used.input_tokens > 0).await;
        assert_eq!(used.output_tokens, 1, "four bytes were said");
    }
}

#[tokio::test]
async fn an_answer_is_over_when_the_model_is_done_and_not_when_its_provider_hangs_up() {
    let stream = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"all\"},\"finish_reason\":\"stop\"}]}\n\n\
        data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":1}}\n\ndata: [DONE]\n\n";
    let provider = Provider::playing(vec![stream_head(), sent(&chunks(&[stream])), Step::UntilGone]).await;
    let lease = chat_lease(&provider.base_url()).await;
    completed(&ask(&lease, &asking("hi").to_string()).await);
    provider.left_by(1).await;
    assert_eq!(lease.used().borrow().input_tokens, 9);
}

#[tokio::test]
async fn b11_the_key_never_comes_back_in_what_was_translated() {
    let provider = demo().await;
    let lease = chat_lease(&provider.url()).await;
    for scenario in ["secret-echo", "secret-error"] {
        let reply = ask(&lease, &asking(&format!("[[scenario:{scenario}]]")).to_string()).await;
        assert!(!reply.body.contains(KEY), "{}", reply.body);
        assert!(reply.body.contains(&"*".repeat(KEY.len())), "{}", reply.body);
    }
}

#[tokio::test]
async fn no_two_answers_have_the_same_id() {
    let provider = demo().await;
    let gateway = Gateway::new();
    let mut ids = std::collections::BTreeSet::new();
    for _ in 0..2 {
        let lease = gateway.open(pass(&provider.url(), Wire::Chat)).await.unwrap();
        for _ in 0..2 {
            let reply = ask(&lease, &asking("[[scenario:text]]").to_string()).await;
            ids.insert(reply.events()[0]["response"]["id"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(ids.len(), 4);
}

/// What an agent speaks decides its one route: what is translated for it is looked at more closely than what passes.
#[tokio::test]
async fn b12_an_agent_on_a_chat_provider_has_the_route_of_what_it_speaks_and_no_other() {
    let provider = Provider::answering("200 OK", "", "{}").await;
    let chat = |lease: &Lease| request(lease, "{}").replace("/v1/responses", "/v1/chat/completions");
    let translated = chat_lease(&provider.base_url()).await;
    let refused = ask_raw(&translated, chat(&translated).as_bytes()).await;
    assert_eq!(refused.code(), (404, "no_such_route".to_owned()));
    let own = Pass { spoken: Wire::Chat, ..pass(&provider.base_url(), Wire::Chat) };
    let own = Gateway::new().open(own).await.unwrap();
    assert_eq!(ask(&own, "{}").await.code(), (404, "no_such_route".to_owned()));
    assert_eq!(provider.seen(), [], "neither reached the provider");
    assert_eq!(ask_raw(&own, chat(&own).as_bytes()).await.status, 200);
    assert!(provider.seen()[0].head.starts_with("post /v1/chat/completions http/1.1\r\n"));
}
