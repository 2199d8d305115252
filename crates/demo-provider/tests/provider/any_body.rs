//! Whatever a request says, the provider answers it and goes on.

use proptest::{collection, prelude::*, sample::select, test_runner::TestRunner};
use runyard_demo_provider::{DemoProvider, Options, Requests};
use serde_json::{Map, Value};

use crate::client::request;

const CASES: u32 = 400;

/// What the provider looks at, and what it does not.
const FIELDS: [&str; 13] = [
    "input",
    "messages",
    "model",
    "stream",
    "stream_options",
    "include_usage",
    "type",
    "role",
    "content",
    "text",
    "output",
    "tools",
    "other",
];
const TEXTS: [&str; 14] = [
    "user",
    "tool",
    "message",
    "function_call_output",
    "tool_result",
    "aborted",
    "",
    "[[scenario:",
    "]]",
    "[[scenario:]]",
    "[[scenario:shells]]",
    "[[scenario:tool]]",
    "[[scenario:tool {key} {}]]",
    "[[scenario:cut é]]",
];

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        select(&TEXTS[..]).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        let fields = collection::vec((select(&FIELDS[..]), inner.clone()), 0..6);
        prop_oneof![
            collection::vec(inner, 0..6).prop_map(Value::from),
            fields.prop_map(|fields| {
                fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>().into()
            }),
        ]
    })
}

/// A conversation as an agent would send it, if not for what is in it.
fn any_conversation() -> impl Strategy<Value = Value> {
    let item = (select(&TEXTS[..4]), select(&TEXTS[..4]), any_json(), select(&TEXTS[..])).prop_map(
        |(kind, role, any, text)| {
            serde_json::json!({"type": kind, "role": role, "content": [any, {"text": text}], "output": any})
        },
    );
    (collection::vec(item, 0..5), any::<bool>(), any_json()).prop_map(|(items, stream, any)| {
        serde_json::json!({"input": items, "messages": items, "stream": stream, "stream_options": any, "model": any})
    })
}

#[test]
fn any_json_gets_an_answer_on_each_wire() {
    let options = Options { requests: Requests::Any, ..Options::default() };
    let executor = tokio::runtime::Runtime::new().unwrap();
    let provider = executor.block_on(DemoProvider::start_with(options)).unwrap();
    let mut runner =
        TestRunner::new(ProptestConfig { cases: CASES, failure_persistence: None, ..Default::default() });
    let path = select(&["/v1/chat/completions", "/v1/responses", "/v1/messages"][..]);
    let asked = (prop_oneof![any_json(), any_conversation()], path);
    let done = runner.run(&asked, |(body, path)| {
        let reply = executor.block_on(request(provider.address(), "POST", path, "k", &body.to_string()));
        let expected = if body.is_object() { 200 } else { 400 };
        prop_assert_eq!(reply.status, expected);
        Ok(())
    });
    done.unwrap();
}

#[test]
fn whatever_is_no_real_request_is_refused_and_nothing_else_happens() {
    let executor = tokio::runtime::Runtime::new().unwrap();
    let provider = executor.block_on(DemoProvider::start()).unwrap();
    let mut runner =
        TestRunner::new(ProptestConfig { cases: CASES, failure_persistence: None, ..Default::default() });
    let path = select(&["/v1/chat/completions", "/v1/responses", "/v1/messages"][..]);
    let done = runner.run(&(any_conversation(), path), |(mut body, path)| {
        body["model"] = "m-1".into();
        body["max_tokens"] = 100.into();
        let reply = executor.block_on(request(provider.address(), "POST", path, "k", &body.to_string()));
        prop_assert!([200, 400].contains(&reply.status), "{}", reply.status);
        Ok(())
    });
    done.unwrap();
}
