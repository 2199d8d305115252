//! Providers that are not there, are late, break off, or say what cannot be passed on.

use runyard_domain::Wire;
use tokio::net::TcpListener;

use super::harness::*;
use crate::gateway::{Gateway, Used};

const EVENT: &str = "data: {\"type\":\"response.output_text.delta\",\"delta\":\"eight by\"}\n\n";

#[tokio::test]
async fn a_provider_that_is_not_there_is_502_and_costs_nothing() {
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    for url in [
        format!("http://{nobody}/v1"),
        format!("https://{nobody}/v1"),
        "http://no-such-host.invalid/v1".to_owned(),
    ] {
        let lease = lease(&url).await;
        let reply = ask(&lease, "{}").await;
        assert_eq!(reply.code(), (502, "provider_unreachable".to_owned()), "{url}");
        assert!(reply.json()["error"]["message"].as_str().unwrap().starts_with("provider unreachable"));
        assert_eq!(*lease.used().borrow(), Used { requests: 1, ..Used::default() });
    }
}

#[tokio::test]
async fn what_is_no_http_answer_is_502() {
    for answer in [
        "",
        "HTTP/1.1 200",
        "no HTTP\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\n\r\n{}",
    ] {
        let provider = Provider::playing(vec![sent(answer)]).await;
        let lease = lease(&provider.base_url()).await;
        assert_eq!(ask(&lease, "{}").await.code(), (502, "provider_unreachable".to_owned()), "{answer}");
    }
}

#[tokio::test]
async fn a_provider_that_does_not_answer_is_504_and_is_left() {
    let provider = Provider::playing(vec![Step::UntilGone]).await;
    let lease = impatient().open(pass(&provider.base_url(), Wire::Responses)).await.unwrap();
    let reply = ask(&lease, "{}").await;
    assert_eq!(reply.code(), (504, "provider_unreachable".to_owned()));
    provider.left_by(1).await;
}

#[tokio::test]
async fn a_stream_that_the_provider_cuts_is_cut_and_not_ended() {
    let endings: [&[Step]; 3] = [&[], &[sent("5\r\nda")], &[sent("zz\r\n")]];
    for ending in endings {
        let mut steps = vec![stream_head(), sent(&chunks(&[EVENT]))];
        steps.extend(ending.iter().cloned());
        let provider = Provider::playing(steps).await;
        let lease = lease(&provider.base_url()).await;
        let reply = ask(&lease, "{\"x\":1}").await;
        assert_eq!((reply.status, reply.whole), (200, false));
        assert!(reply.body.starts_with(EVENT), "{}", reply.body);
        // Nothing was told, so it is estimated: seven bytes asked, eight said.
        let used = used_when(&lease, |used| used.input_tokens > 0).await;
        assert_eq!((used.input_tokens, used.output_tokens), (2, 2));
    }
}

#[tokio::test]
async fn a_stream_that_stalls_is_cut_and_its_provider_left() {
    let provider = Provider::playing(vec![stream_head(), sent(&chunks(&[EVENT])), Step::UntilGone]).await;
    for wire in [Wire::Responses, Wire::Chat] {
        let lease = impatient().open(pass(&provider.base_url(), wire)).await.unwrap();
        let reply = ask(&lease, "{\"model\":\"m\",\"input\":\"hi\",\"stream\":true}").await;
        assert_eq!((reply.status, reply.whole), (200, false), "{wire:?}");
    }
    provider.left_by(2).await;
}

#[tokio::test]
async fn an_answer_that_ends_without_completion_ends_as_it_did() {
    let provider = Provider::streaming(&[EVENT]).await;
    let reply = ask(&lease(&provider.base_url()).await, "{}").await;
    assert_eq!((reply.body.as_str(), reply.whole), (EVENT, true));
}

#[tokio::test]
async fn b11_a_provider_that_cannot_be_used_is_refused_when_it_is_opened() {
    let refused = async |base_url: &str, key: &str| {
        let mut pass = pass(base_url, Wire::Responses);
        pass.upstream.key = crate::Secret::new(key.into());
        let error = Gateway::new().open(pass).await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
        error.to_string()
    };
    assert!(refused("https://user:pw-Sorrel@h/v1", KEY).await.contains("user name or a password"));
    assert!(refused("not a url", KEY).await.contains("base_url"));
    for key in ["", "two words", "line\nbreak-Sorrel", "caf\u{e9}-Sorrel", &"k".repeat(8193)] {
        let said = refused("https://h/v1", key).await;
        assert!(said.contains("key") && !said.contains("Sorrel"), "{said}");
    }
}
