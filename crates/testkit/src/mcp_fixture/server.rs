//! The application on HTTP, with the guard that every server has.

use std::net::{Ipv4Addr, SocketAddr};
use std::thread::JoinHandle;

use anyhow::{Result, anyhow};
use axum::extract::Request;
use axum::http::{HeaderValue, header};
use runyard::Actor;
use runyard::surfaces::http::{BearerTokens, Guard, HttpApi, Listening, TokenDigest, serve};
use runyard::surfaces::mcp::{Changes, McpApi, endpoint};
use tokio_util::sync::CancellationToken;

use super::mcp_fixture;

/// The token that is let in.
pub const TOKEN: &str = "the-token-of-the-mcp-fixture-server";

/// Who shows the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tokens {
    /// Each client its own.
    Shown,
    /// The server itself, for a client that cannot send one. Host and Origin are checked all the same.
    Added,
}

/// A server on a free loopback port; dropping it ends it.
#[derive(Debug)]
pub struct FixtureServer {
    address: SocketAddr,
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl FixtureServer {
    /// Starts it.
    pub fn start(tokens: Tokens) -> Result<Self> {
        let executor = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let listening = executor.block_on(Listening::on((Ipv4Addr::LOCALHOST, 0).into()))?;
        let (address, stop) = (listening.address, CancellationToken::new());
        let changes = Changes::default();
        let runtime = mcp_fixture(changes.clone()).runtime().map_err(|error| anyhow!("{error}"))?;
        let guard =
            Guard::new(address, BearerTokens::new().with(TokenDigest::of(TOKEN), Actor::owner("owner")));
        let mcp = McpApi::new("mcp-fixture", "1.0.0", runtime.clone()).changes(changes);
        let api = HttpApi { name: "mcp-fixture".to_owned(), version: "1.0.0".to_owned(), runtime, guard };
        let mcp = endpoint(&mcp, stop.clone());
        let mut router = api.router_with(Vec::new(), |routes| routes.merge(mcp))?;
        if tokens == Tokens::Added {
            // Around the guard, so that it sees a request with a token.
            router = router.layer(axum::middleware::map_request(add_token));
        }
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || executor.block_on(serve(listening, router, stopped)));
        Ok(FixtureServer { address, stop, thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where MCP clients find it.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }
}

async fn add_token(mut request: Request) -> Request {
    if let Ok(token) = HeaderValue::from_str(&format!("Bearer {TOKEN}")) {
        request.headers_mut().insert(header::AUTHORIZATION, token);
    }
    request
}

impl Drop for FixtureServer {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
