//! HTTP errors: the same on both wires of OpenAI, streamed or not.

use runyard_demo_provider::DemoProvider;
use serde_json::{Value, json};

use crate::client::{Reply, ask_whole, complete, respond, user};

async fn play(provider: &DemoProvider, key: &str, text: &str) -> [Reply; 3] {
    let address = provider.address();
    [
        respond(address, key, json!([user(text)])).await,
        complete(address, key, json!([{"role": "user", "content": text}])).await,
        ask_whole(address, "/v1/chat/completions", key, text).await,
    ]
}

#[tokio::test]
async fn each_refusal_has_its_status_and_the_shape_of_the_api() {
    let provider = DemoProvider::start().await.unwrap();
    for (scenario, status, code, retry_after) in [
        ("http-400", 400, json!(null), None),
        ("http-401", 401, json!("invalid_api_key"), None),
        ("http-402", 402, json!("insufficient_balance"), None),
        ("http-403", 403, json!(null), None),
        ("http-404", 404, json!("model_not_found"), None),
        ("http-408", 408, json!(null), None),
        ("http-413", 413, json!("request_too_large"), None),
        ("http-429", 429, json!("rate_limit_exceeded"), Some("retry-after: 1\r\n")),
        ("http-429-ms", 429, json!("rate_limit_exceeded"), Some("retry-after-ms: 1250\r\n")),
        (
            "http-429-date",
            429,
            json!("rate_limit_exceeded"),
            Some("retry-after: tue, 31 dec 2999 23:59:59 gmt\r\n"),
        ),
        ("http-503-wait", 503, json!(null), Some("retry-after: 7\r\n")),
        ("http-504", 504, json!(null), None),
        ("http-content-filter", 400, json!("content_filter"), None),
        ("http-context-length", 400, json!("context_length_exceeded"), None),
        ("quota", 429, json!("insufficient_quota"), None),
        ("http-500", 500, json!(null), None),
        ("http-503", 503, json!(null), None),
        ("http-529", 529, json!(null), None),
    ] {
        for reply in play(&provider, "k", &format!("[[scenario:{scenario}]]")).await {
            let error = &reply.json()["error"];
            assert_eq!((reply.status, &error["code"]), (status, &code), "{scenario}");
            assert!(error["message"].is_string() && error["type"].is_string(), "{error}");
            assert_eq!(reply.head.contains("retry-after"), retry_after.is_some(), "{scenario}");
            assert!(reply.head.contains(retry_after.unwrap_or_default()));
        }
        assert_eq!(provider.requests().last().unwrap().status, Some(status));
    }
}

#[tokio::test]
async fn a_flaky_provider_refuses_each_caller_twice_and_then_answers() {
    let provider = DemoProvider::start().await.unwrap();
    let ask = async |key: &str, text: &str| respond(provider.address(), key, json!(text)).await.status;
    for (key, text) in
        [("k", "[[scenario:flaky]]"), ("l", "[[scenario:flaky]]"), ("k", "[[scenario:flaky again]]")]
    {
        let mut statuses = Vec::new();
        for _ in 0..4 {
            statuses.push(ask(key, text).await);
        }
        assert_eq!(statuses, [503, 503, 200, 200], "{key} {text}");
    }
    // What was asked on one wire counts on the other.
    for reply in play(&provider, "m", "[[scenario:flaky]]").await.iter().zip([503, 503, 200]) {
        assert_eq!(reply.0.status, reply.1);
    }
}

#[tokio::test]
async fn a_wrong_key_is_told_by_its_tail_alone() {
    let provider = DemoProvider::start().await.unwrap();
    let text = "[[scenario:key sk-right-0123456789]]";
    for reply in play(&provider, "sk-wrong-0123456789-tail", text).await {
        let error = reply.json()["error"].clone();
        assert_eq!((reply.status, &error["code"]), (401, &json!("invalid_api_key")));
        assert_eq!(error["message"], "Incorrect API key provided: ****tail.");
    }
    for reply in play(&provider, "short", text).await {
        assert_eq!(reply.json()["error"]["message"], "Incorrect API key provided: ****.");
    }
    for reply in play(&provider, "sk-right-0123456789", text).await {
        assert_eq!(reply.status, 200);
    }
}

#[tokio::test]
async fn what_is_no_json_object_is_a_bad_request() {
    let provider = DemoProvider::start().await.unwrap();
    for path in ["/v1/responses", "/v1/chat/completions"] {
        for body in ["", "not JSON", "[]", "1"] {
            let reply = crate::client::request(provider.address(), "POST", path, "k", body).await;
            let kind: Value = reply.json()["error"]["type"].clone();
            assert_eq!((reply.status, kind), (400, json!("invalid_request_error")), "{body}");
        }
    }
}
