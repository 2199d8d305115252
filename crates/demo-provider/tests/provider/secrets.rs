//! The scenarios in which a provider says the key back, for tests that look for leaks.

use runyard_demo_provider::{DemoProvider, Options};
use serde_json::json;

use crate::client::{ask_whole, complete, respond, user};

const KEY: &str = "sk-demo-0123456789abcdef";

#[tokio::test]
async fn the_key_comes_back_in_a_text_in_pieces_in_a_command_and_in_an_error() {
    let provider = DemoProvider::start().await.unwrap();
    let play = async |scenario: &str| {
        respond(provider.address(), KEY, json!([user(&format!("[[scenario:{scenario}]]"))])).await
    };
    let text = format!("Your key is {KEY}; keep it.");
    let echo = play("secret-echo").await;
    assert_eq!(echo.response()["output"][0]["content"][0]["text"], text);
    assert!(echo.events().iter().any(|event| event["delta"] == KEY));

    let pieces = play("secret-pieces").await;
    assert_eq!(pieces.response()["output"][0]["content"][0]["text"], text);
    let deltas: Vec<_> =
        pieces.events().iter().filter_map(|event| event["delta"].as_str().map(str::to_owned)).collect();
    assert!(deltas.iter().all(|delta| delta.len() <= 3) && deltas.concat() == text, "{deltas:?}");

    let shell = play("secret-shell").await.response()["output"][0]["arguments"].clone();
    assert_eq!(shell, json!({"cmd": format!("echo {KEY}")}).to_string());

    let error = play("secret-error").await;
    assert_eq!(error.status, 400);
    assert_eq!(error.json()["error"]["message"], format!("The key {KEY} may not do this."));
}

#[tokio::test]
async fn chat_completions_say_it_back_too() {
    let provider = DemoProvider::start().await.unwrap();
    let messages = json!([{"role": "user", "content": "[[scenario:secret-echo]]"}]);
    assert!(complete(provider.address(), KEY, messages).await.body.contains(KEY));
    let whole = ask_whole(provider.address(), "/v1/chat/completions", KEY, "[[scenario:secret-error]]").await;
    assert!(whole.body.contains(KEY));
}

#[test]
fn options_do_not_print_their_keys() {
    let options = Options { keys: vec![KEY.into()], ..Options::default() };
    assert!(!format!("{options:?}").contains(KEY));
}
