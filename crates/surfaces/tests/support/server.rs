//! The real server on a free port of this machine, in the test's own process.

use std::net::SocketAddr;

use runyard_actions::RuntimeBuilder;
use runyard_domain::{Actor, RunId};
use runyard_surfaces::http::{BearerTokens, Guard, HttpApi, Listening, TokenDigest, serve};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::client::{Answer, Client, Request};

/// The token of a person who may do everything.
pub(crate) const ADA: &str = "ada-0123456789abcdef0123456789abcdef";
/// The token of a service with one permission.
pub(crate) const BOB: &str = "bob-0123456789abcdef0123456789abcdef";
/// The token of an agent.
pub(crate) const BOT: &str = "bot-0123456789abcdef0123456789abcdef";
/// All of them; no answer ever repeats one.
pub(crate) const TOKENS: [&str; 3] = [ADA, BOB, BOT];

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) stop: CancellationToken,
    pub(crate) serving: JoinHandle<()>,
}

impl Server {
    /// An application on a free port, in the default configuration.
    pub(crate) async fn start(app: RuntimeBuilder) -> Server {
        Server::start_with(app, |guard| guard).await
    }

    /// The same with a guard that is changed first.
    pub(crate) async fn start_with(app: RuntimeBuilder, change: impl FnOnce(Guard) -> Guard) -> Server {
        let listening = Listening::on(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
        let address = listening.address;
        let tokens = BearerTokens::new()
            .with(TokenDigest::of(ADA), Actor::owner("ada"))
            .with(TokenDigest::of(BOB), Actor::service("bob", ["tasks.read"]))
            .with(TokenDigest::of(BOT), Actor::agent("bot", RunId::from_parts(1, &[2; 10]), ["tasks.read"]));
        let api = HttpApi {
            name: "tasks".to_owned(),
            version: "1.2.3".to_owned(),
            runtime: app.build().unwrap(),
            guard: change(Guard::new(address, tokens)),
        };
        let stop = CancellationToken::new();
        let serving = tokio::spawn(serve(listening, api.router().unwrap(), stop.clone()));
        Server { address, stop, serving }
    }

    /// A request to this server, with Ada's token.
    pub(crate) fn request(&self, method: &str, target: &str) -> Request {
        Request::new(method, target).and("Host", &self.address.to_string()).by(ADA)
    }

    pub(crate) fn get(&self, target: &str) -> Request {
        self.request("GET", target)
    }

    pub(crate) fn post(&self, target: &str, body: &Value) -> Request {
        self.request("POST", target).json(body)
    }

    /// `POST …/invoke` with an input alone.
    pub(crate) fn invoke(&self, action: &str, input: Value) -> Request {
        self.post(&format!("/api/v1/actions/{action}/invoke"), &json!({ "input": input }))
    }

    pub(crate) async fn connect(&self) -> Client {
        Client::connect(self.address).await
    }

    /// Sends one request on a connection of its own.
    pub(crate) async fn send(&self, request: Request) -> Answer {
        self.connect().await.send(&request).await
    }
}
