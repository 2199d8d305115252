//! Plain routes beside actions, and tokens that come and go: both behind the one guard.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a failed expectation fails the test"
)]

mod support;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::extract::{Extension, Path, Request as AxumRequest};
use axum::http::header;
use axum::middleware::{Next, from_fn};
use axum::routing::get;
use runyard_actions::{Action, Runtime};
use runyard_surfaces::http::{
    Actor, BearerTokens, Guard, HttpApi, Listening, PlainRoute, RouteError, TokenHolders, serve,
};
use serde_json::json;
use support::app::{Seen, app, echoing};
use support::client::{Client, Request};
use support::server::{ADA, BOT};
use tokio_util::sync::CancellationToken;

/// Tokens that a test gives and takes.
#[derive(Clone, Default)]
struct Given(Arc<Mutex<HashMap<String, Arc<Actor>>>>);

impl TokenHolders for Given {
    fn holder(&self, token: &str) -> Option<Arc<Actor>> {
        self.0.lock().unwrap().get(token).cloned()
    }

    fn changes(&self) -> Option<tokio::sync::watch::Receiver<u64>> {
        None
    }
}

impl Given {
    fn give(&self, token: &str, actor: Actor) {
        self.0.lock().unwrap().insert(token.to_owned(), Arc::new(actor));
    }

    fn take_back(&self, token: &str) {
        self.0.lock().unwrap().remove(token);
    }
}

/// The routes of the tests' application, and one that says who calls what.
async fn start(tokens: Given, seen_inside: Arc<Mutex<Vec<String>>>) -> SocketAddr {
    let listening = Listening::on(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let address = listening.address;
    let runtime = app(&Seen::default()).build().unwrap();
    let guard = Guard::new(address, tokens);
    let api = HttpApi { name: "x".into(), version: "1".into(), runtime, guard };
    let who = |Extension(actor): Extension<Arc<Actor>>, Path(name): Path<String>| async move {
        let text = json!({ "actor": actor.id, "name": name }).to_string();
        ([(header::CONTENT_TYPE, "application/json")], text)
    };
    let plain = vec![PlainRoute { path: "/plain/{name}", methods: get(who) }];
    let inside = from_fn(move |request: AxumRequest, next: Next| {
        let actor = request.extensions().get::<Arc<Actor>>().map_or("?".to_owned(), |actor| actor.id.clone());
        seen_inside.lock().unwrap().push(format!("{actor} {}", request.uri().path()));
        next.run(request)
    });
    let router = api.router_with(plain, |routes| routes.layer(inside)).unwrap();
    tokio::spawn(serve(listening, router, CancellationToken::new()));
    address
}

fn request(address: SocketAddr, target: &str, token: &str) -> Request {
    Request::new("GET", target).and("Host", &address.to_string()).by(token)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plain_route_stands_behind_the_guard_and_knows_who_calls() {
    let (tokens, inside) = (Given::default(), Arc::default());
    tokens.give(ADA, Actor::owner("ada"));
    let address = start(tokens, Arc::clone(&inside)).await;
    let send = |request: Request| async move { Client::connect(address).await.send(&request).await };
    let answer = send(request(address, "/plain/tea", ADA)).await;
    assert_eq!((answer.status, answer.json()), (200, json!({ "actor": "ada", "name": "tea" })));
    assert_eq!(answer.header("x-content-type-options"), "nosniff");
    assert_eq!(send(request(address, "/plain/tea", BOT)).await.status, 401);
    let elsewhere = request(address, "/plain/tea", ADA).with("Host", "evil.example");
    assert_eq!(send(elsewhere).await.status, 421);
    let posted = send(Request::new("POST", "/plain/tea").and("Host", &address.to_string()).by(ADA)).await;
    assert_eq!((posted.status, posted.code()), (405, "METHOD_NOT_ALLOWED".to_owned()));
    assert_eq!(send(request(address, "/nowhere", ADA)).await.code(), "NOT_FOUND");
    assert_eq!(send(request(address, "/api/v1/actions", ADA)).await.code(), "OK");
    let inside = inside.lock().unwrap().clone();
    assert_eq!(
        inside,
        ["ada /plain/tea", "ada /plain/tea", "ada /nowhere", "ada /api/v1/actions"],
        "a layer inside sees who was let in, and nobody else"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_lets_in_as_long_as_somebody_holds_it() {
    let tokens = Given::default();
    let address = start(tokens.clone(), Arc::default()).await;
    let actions = request(address, "/api/v1/actions", ADA);
    let status = || async { Client::connect(address).await.send(&actions).await.status };
    assert_eq!(status().await, 401);
    tokens.give(ADA, Actor::owner("ada"));
    assert_eq!(status().await, 200);
    tokens.take_back(ADA);
    assert_eq!(status().await, 401);
}

#[track_caller]
fn check_collides(plain: &[&'static str], action: &str) {
    let schema = json!({ "type": "object", "properties": { "id": {} } });
    let action = echoing(Action::define("one", "Does something.").input_schema(schema).http(action));
    let runtime = Runtime::builder().action(action).build().unwrap();
    let guard = Guard::new(SocketAddr::from(([127, 0, 0, 1], 1)), BearerTokens::new());
    let api = HttpApi { name: "x".into(), version: "1".into(), runtime, guard };
    let plain = plain.iter().map(|path| PlainRoute { path, methods: get(|| async { "" }) }).collect();
    match api.router_with(plain, |routes| routes) {
        Err(RouteError::Plain { .. } | RouteError::Taken { .. }) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_plain_route_where_another_stands_is_refused_at_start() {
    check_collides(&["/a", "/a"], "GET /b");
    check_collides(&["/a"], "GET /a");
    check_collides(&["/a/{id}/x"], "GET /a/{id}/x");
    check_collides(&["/a/{other}/x"], "GET /a/{id}/x");
    check_collides(&["/api/v1/actions"], "GET /b");
}
