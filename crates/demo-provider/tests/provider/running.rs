//! The running provider: where it listens, whom it lets in, what it keeps.

use std::{fs, net::SocketAddr};

use runyard_demo_provider::{DemoProvider, Options, ProviderError, scenarios};
use serde_json::json;
use tokio::{io::AsyncReadExt, net::TcpStream};

use crate::client::{request, respond, send, user};

#[tokio::test]
async fn a_wrong_key_is_refused_where_a_key_is_demanded() {
    let provider = DemoProvider::start().await.unwrap();
    let input = json!([user("[[scenario:key right]]")]);
    assert_eq!(respond(provider.address(), "wrong", input.clone()).await.status, 401);
    assert_eq!(respond(provider.address(), "right", input).await.status, 200);

    let strict =
        DemoProvider::start_with(Options { keys: vec!["K".into(), "M".into()], ..Options::default() })
            .await
            .unwrap();
    for (key, status) in [("L", 401), ("K", 200), ("M", 200)] {
        assert_eq!(respond(strict.address(), key, json!("hi")).await.status, status);
        assert_eq!(request(strict.address(), "GET", "/v1/models", key, "").await.status, status);
    }
    let keys: Vec<_> = strict.requests().iter().map(|request| request.bearer().unwrap().to_owned()).collect();
    assert_eq!(keys, ["L", "L", "K", "K", "M", "M"]);
}

#[tokio::test]
async fn every_request_is_kept_with_its_body_also_one_for_nothing() {
    let provider = DemoProvider::start().await.unwrap();
    let reply = request(provider.address(), "POST", "/v1/other?x=1", "k", "not JSON").await;
    assert_eq!((reply.status, reply.json()["error"]["type"].as_str()), (404, Some("invalid_request_error")));
    let reply = request(provider.address(), "POST", "/v1/responses", "k", r#"{"input":"hi"}"#).await;
    assert_eq!(reply.status, 200);
    let models = request(provider.address(), "GET", "/v1/models", "k", "").await.json();
    assert_eq!(models["data"][0]["id"], "demo");

    let kept: Vec<_> = provider
        .requests()
        .into_iter()
        .map(|request| format!("{} {} {} {}", request.number, request.method, request.path, request.body))
        .collect();
    let responses = r#"2 POST /v1/responses {"input":"hi"}"#;
    assert_eq!(kept, ["1 POST /v1/other?x=1 not JSON", responses, "3 GET /v1/models "]);
    assert_eq!(provider.requests()[1].json(), json!({"input": "hi"}));
}

#[tokio::test]
async fn a_request_can_be_waited_for_before_and_after_it_comes() {
    let provider = DemoProvider::start().await.unwrap();
    let later = provider.wait_for(|request| request.body.contains("second"));
    let asked = async {
        respond(provider.address(), "k", json!("first")).await;
        respond(provider.address(), "k", json!("second")).await;
    };
    let (found, ()) = tokio::join!(later, asked);
    assert_eq!(found.number, 2);
    assert_eq!(provider.wait_for(|request| request.body.contains("first")).await.number, 1);
}

#[tokio::test]
async fn a_dropped_provider_closes_its_port_and_its_open_streams() {
    let provider = DemoProvider::start().await.unwrap();
    let address = provider.address();
    let body = json!({"model": "m-1", "stream": true, "input": "[[scenario:stall]]"}).to_string();
    let mut stream = send(address, "POST", "/v1/responses", "k", &body).await;
    let mut read = String::new();
    while !read.contains("to say ") {
        let mut part = [0; 512];
        let count = stream.read(&mut part).await.unwrap();
        assert_ne!(count, 0, "ended early: {read}");
        read.push_str(&String::from_utf8_lossy(&part[..count]));
    }
    drop(provider);
    // Ends at all, properly or not: a stream left open would wait here for ever.
    let _ = stream.read_to_end(&mut Vec::new()).await;
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_unknown_scenario_is_the_plain_text_and_a_directory_adds_its_own() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(
        directory.path().join("mine.toml"),
        "about = 'Mine.'\n[[step]]\nanswer.say = ['it is ', '{argument}']",
    )
    .unwrap();
    fs::write(directory.path().join("notes.md"), "not a scenario").unwrap();
    let options = Options { scenarios: Some(directory.path().to_owned()), ..Options::default() };
    let provider = DemoProvider::start_with(options).await.unwrap();
    let reply = respond(provider.address(), "k", json!("[[scenario:mine a {b}]]")).await;
    assert_eq!(reply.response()["output"][0]["content"][0]["text"], "it is a {b}");
    respond(provider.address(), "k", json!("[[scenario:nowhere]]")).await;
    assert_eq!(provider.requests()[1].played, Some(("text".to_owned(), 0)));

    let listed = provider.scenarios();
    assert!(listed.iter().any(|listed| (listed.name.as_str(), listed.about.as_str()) == ("mine", "Mine.")));
    assert!(listed.iter().any(|listed| listed.name == "text"), "{listed:?}");
    assert_eq!(scenarios(Some(directory.path())).unwrap(), listed);
}

#[tokio::test]
async fn a_provider_does_not_start_where_others_reach_it_nor_with_a_broken_scenario() {
    let listen: SocketAddr = "0.0.0.0:0".parse().unwrap();
    let refused = DemoProvider::start_with(Options { listen, ..Options::default() }).await;
    assert!(matches!(refused.err(), Some(ProviderError::NotLoopback { address }) if address == listen));

    let running = DemoProvider::start().await.unwrap();
    let taken = DemoProvider::start_with(Options { listen: running.address(), ..Options::default() }).await;
    assert!(
        matches!(taken.err(), Some(ProviderError::Listen { address, .. }) if address == running.address())
    );

    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("broken.toml"), "[[step]]\nwait = 1").unwrap();
    let options = Options { scenarios: Some(directory.path().to_owned()), ..Options::default() };
    let broken = DemoProvider::start_with(options).await;
    assert!(matches!(broken.err(), Some(ProviderError::Parse { name, .. }) if name == "broken"));
}

#[tokio::test]
async fn a_file_of_many_shell_steps_is_played_to_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let step = |number: usize| {
        format!("[[step]]\nanswer.call = [{{ tool = 'sh', arguments = {{ n = {number} }} }}]\n")
    };
    let steps: String = (0..200).map(step).collect();
    fs::write(directory.path().join("many.toml"), steps + "[[step]]\nanswer.say = ['all done']").unwrap();
    let options = Options { scenarios: Some(directory.path().to_owned()), ..Options::default() };
    let provider = DemoProvider::start_with(options).await.unwrap();
    let mut input = vec![user("[[scenario:many]]")];
    for number in 0..200 {
        let call = respond(provider.address(), "k", json!(input)).await.response()["output"][0].clone();
        assert_eq!(call["arguments"], json!({"n": number}).to_string());
        let result = json!({"type": "function_call_output", "call_id": call["call_id"], "output": "ok"});
        input.extend([call, result]);
    }
    let last = respond(provider.address(), "k", json!(input)).await.response();
    assert_eq!(last["output"][0]["content"][0]["text"], "all done");
}
