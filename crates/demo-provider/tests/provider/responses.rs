//! What the provider puts on the wire of the Responses API.

use runyard_demo_provider::DemoProvider;
use serde_json::{Value, json};

use crate::client::{Reply, ask_whole, respond, user};

async fn play(text: &str) -> Reply {
    let provider = DemoProvider::start().await.unwrap();
    respond(provider.address(), "k", json!([user(text)])).await
}

fn result(call: &Value, output: &str) -> Value {
    json!({"type": "function_call_output", "call_id": call["call_id"], "output": output})
}

#[tokio::test]
async fn a_text_comes_in_several_deltas_and_ends_completed() {
    let reply = play("hello").await;
    assert_eq!((reply.status, reply.whole), (200, true));
    assert!(reply.head.contains("content-type: text/event-stream"), "{}", reply.head);
    let mut expected = vec!["response.created", "response.output_item.added", "response.content_part.added"];
    expected.extend(["response.output_text.delta"; 6]);
    expected.extend(["response.output_text.done", "response.content_part.done", "response.output_item.done"]);
    expected.push("response.completed");
    assert_eq!(reply.event_types(), expected);

    let events = reply.events();
    let numbers: Vec<_> = events.iter().map(|event| event["sequence_number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..events.len() as u64).collect::<Vec<_>>());
    let text: String = events.iter().filter_map(|event| event["delta"].as_str()).collect();
    assert_eq!(text, "Hello from the demo provider.");
    let response = &reply.response();
    assert_eq!(response["output"][0]["content"][0]["text"], text);
    assert_eq!((&response["status"], &response["model"]), (&json!("completed"), &json!("m-1")));
    assert_eq!(response["usage"]["output_tokens"], text.len().div_ceil(4));
    let item_ids: Vec<_> = events.iter().filter_map(|event| event.get("item_id")).collect();
    assert!(item_ids.iter().all(|id| **id == response["output"][0]["id"]), "{item_ids:?}");
}

#[tokio::test]
async fn a_shell_call_is_made_once_and_its_result_brings_the_text() {
    let provider = DemoProvider::start().await.unwrap();
    let mut input = vec![user("[[scenario:shell touch a.txt]] please")];
    let reply = respond(provider.address(), "k", json!(input)).await;
    assert_eq!(
        reply.event_types(),
        [
            "response.created",
            "response.output_item.added",
            "response.function_call_arguments.delta",
            "response.function_call_arguments.delta",
            "response.function_call_arguments.done",
            "response.output_item.done",
            "response.completed",
        ]
    );
    let call = reply.response()["output"][0].clone();
    assert_eq!((&call["type"], &call["name"]), (&json!("function_call"), &json!("exec_command")));
    assert_eq!(call["arguments"], json!({"cmd": "touch a.txt"}).to_string());
    assert_eq!(reply.events()[5]["item"], call);

    input.extend([call.clone(), result(&call, "ok")]);
    let reply = respond(provider.address(), "k", json!(input)).await;
    assert_eq!(reply.response()["output"][0]["content"][0]["text"], "The command has run.");
    let played: Vec<_> = provider.requests().into_iter().map(|request| request.played.unwrap()).collect();
    assert_eq!(played, [("shell".to_owned(), 0), ("shell".to_owned(), 1)]);
}

#[tokio::test]
async fn a_call_that_died_with_its_agent_is_made_again_with_the_same_arguments_and_a_new_id() {
    let provider = DemoProvider::start().await.unwrap();
    let mut input = vec![user("[[scenario:approval]]")];
    let call_of = |reply: Reply| reply.response()["output"][0].clone();
    let first = call_of(respond(provider.address(), "k", json!(input)).await);
    input.extend([first.clone(), result(&first, "aborted"), user("go on")]);
    let second = call_of(respond(provider.address(), "k", json!(input)).await);
    assert_eq!(first["arguments"], second["arguments"]);
    assert_eq!(
        first["arguments"],
        r#"{"cmd":"touch approved.txt","sandbox_permissions":"require_escalated","justification":"The demo needs it."}"#
    );
    assert_ne!(first["call_id"], second["call_id"]);

    let other = DemoProvider::start().await.unwrap();
    let elsewhere = call_of(respond(other.address(), "k", json!([user("[[scenario:approval]]")])).await);
    assert_ne!(first["call_id"], elsewhere["call_id"]);
}

#[tokio::test]
async fn a_patch_is_a_free_form_call() {
    let reply = play("[[scenario:patch b.txt]]").await;
    let events = reply.events();
    let call = &reply.response()["output"][0];
    assert_eq!((&call["type"], &call["name"]), (&json!("custom_tool_call"), &json!("apply_patch")));
    let patch = "*** Begin Patch\n*** Add File: b.txt\n+one line from the demo provider\n*** End Patch\n";
    assert_eq!(call["input"], patch);
    assert_eq!(events[2]["type"], "response.custom_tool_call_input.delta");
}

#[tokio::test]
async fn two_calls_of_one_answer_wait_for_both_results() {
    let provider = DemoProvider::start().await.unwrap();
    let one = json!({"type": "function_call", "call_id": "c1", "name": "exec_command", "arguments": "{}"});
    let mut input = vec![user("[[scenario:shells]]"), one.clone(), result(&one, "one")];
    let reply = respond(provider.address(), "k", json!(input)).await;
    let calls = reply.response()["output"].as_array().unwrap().clone();
    assert_eq!(calls.len(), 2);
    input.extend(calls.clone());
    input.extend([result(&calls[0], "two"), result(&calls[1], "three")]);
    respond(provider.address(), "k", json!(input)).await;
    assert_eq!(provider.requests().last().unwrap().played, Some(("shells".to_owned(), 2)));
}

#[tokio::test]
async fn reasoning_is_an_item_before_the_text() {
    let reply = play("[[scenario:reasoning]]").await;
    let mut expected =
        vec!["response.created", "response.output_item.added", "response.reasoning_summary_part.added"];
    expected.extend(["response.reasoning_summary_text.delta"; 3]);
    expected.push("response.reasoning_summary_text.done");
    expected.extend(["response.reasoning_summary_part.done", "response.output_item.done"]);
    assert_eq!(reply.event_types()[..expected.len()], expected);
    let response = reply.response();
    let summary = json!([{"type": "summary_text", "text": "The person says hello; I say hello too."}]);
    assert_eq!(
        (&response["output"][0]["type"], &response["output"][0]["summary"]),
        (&json!("reasoning"), &summary)
    );
    assert_eq!(response["output"][1]["content"][0]["text"], "Hello, after some thought.");
    assert_eq!(response["usage"]["output_tokens"], 17);
    assert_eq!(response["usage"]["output_tokens_details"]["reasoning_tokens"], 10);
}

#[tokio::test]
async fn any_tool_is_called_by_its_name_with_arguments_as_they_stand() {
    let call = play(r#"[[scenario:tool update_plan  {"plan": [], "n": 1.0}]]"#).await.response()["output"][0]
        .clone();
    assert_eq!(
        (&call["name"], &call["arguments"]),
        (&json!("update_plan"), &json!(r#"{"plan": [], "n": 1.0}"#))
    );

    let call = play("[[scenario:malformed-call]]").await.response()["output"][0].clone();
    assert!(serde_json::from_str::<Value>(call["arguments"].as_str().unwrap()).is_err());
}

#[tokio::test]
async fn a_question_has_the_fields_that_the_tool_requires() {
    let call = play("[[scenario:question Tea or coffee?]]").await.response()["output"][0].clone();
    assert_eq!(call["name"], "request_user_input");
    let arguments: Value = serde_json::from_str(call["arguments"].as_str().unwrap()).unwrap();
    let question = &arguments["questions"][0];
    assert_eq!(question["question"], "Tea or coffee?");
    assert!(["id", "header"].iter().all(|field| question[field].is_string()), "{question}");
    let options = question["options"].as_array().unwrap();
    let whole = |option: &Value| option["label"].is_string() && option["description"].is_string();
    assert!(options.len() == 2 && options.iter().all(whole), "{question}");
}

#[tokio::test]
async fn a_long_text_comes_whole() {
    let text = play("[[scenario:long]]").await.response()["output"][0]["content"][0]["text"].clone();
    let text = text.as_str().unwrap();
    assert_eq!((text.lines().count(), text.len()), (4000, 4000 * 62));
}

#[tokio::test]
async fn without_a_stream_the_same_is_one_json_body() {
    let provider = DemoProvider::start().await.unwrap();
    let reply = ask_whole(provider.address(), "/v1/responses", "k", "hello").await;
    assert!(reply.head.contains("content-type: application/json"), "{}", reply.head);
    let whole = reply.json();
    assert_eq!((&whole["object"], &whole["status"]), (&json!("response"), &json!("completed")));
    assert_eq!(whole["output"][0]["content"][0]["text"], "Hello from the demo provider.");
    assert_eq!(whole["usage"]["output_tokens"], 8);
    let call = ask_whole(provider.address(), "/v1/responses", "k", "[[scenario:patch]]").await.json();
    assert_eq!(call["output"][0]["type"], "custom_tool_call");
}
