//! HTTP calls per second of an action with input and output schemas, beside a bare axum route in the same run.
//!
//! Client and server share the machine and the same runtime, for both alike.
#![allow(missing_docs, clippy::expect_used, reason = "a benchmark that cannot start has nothing to measure")]

use std::net::SocketAddr;
use std::sync::LazyLock;

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use divan::Bencher;
use divan::counter::ItemsCount;
use runyard_actions::{Action, Runtime};
use runyard_domain::Actor;
use runyard_surfaces::http::{BearerTokens, Guard, HttpApi, Listening, TokenDigest, serve};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
const CALLS: usize = 200;
const CONNECTIONS: [usize; 3] = [1, 16, 64];

static TOKIO: LazyLock<tokio::runtime::Runtime> =
    LazyLock::new(|| tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime"));

/// The allocator of the `runyard` binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    divan::main();
}

#[divan::bench(args = CONNECTIONS, sample_count = 20, sample_size = 1)]
fn bare_axum_route(bencher: Bencher, connections: usize) {
    let answer = r#"{"ok":true,"data":{"id":"t1","title":"Buy milk","state":"open"},"artifacts":[],"logs":[],"meta":{"action":"task","invocationId":"inv_01a1dd9740c97227b2d62a11fbc0cadc","surface":"http","durationMs":0}}"#;
    let route = post(move |_: Bytes| async move { ([("content-type", "application/json")], answer) });
    measure(bencher, connections, Router::new().route("/api/v1/actions/task/invoke", route));
}

#[divan::bench(args = CONNECTIONS, sample_count = 20, sample_size = 1)]
fn action_invoke(bencher: Bencher, connections: usize) {
    measure(bencher, connections, Router::new());
}

/// Serves the bare router, or the action where that is empty.
fn measure(bencher: Bencher, connections: usize, bare: Router) {
    let stop = CancellationToken::new();
    let address = TOKIO.block_on(async {
        let listening = Listening::on("127.0.0.1:0".parse().expect("an address")).await.expect("a socket");
        let address = listening.address;
        let router = if bare.has_routes() { bare } else { action_router(address) };
        tokio::spawn(serve(listening, router, stop.clone()));
        address
    });
    bencher.counter(ItemsCount::new(connections * CALLS)).bench_local(|| {
        TOKIO.block_on(async {
            let clients: Vec<_> = (0..connections).map(|_| tokio::spawn(call_many(address))).collect();
            for client in clients {
                client.await.expect("a client ends well");
            }
        });
    });
    stop.cancel();
}

fn action_router(address: SocketAddr) -> Router {
    let text = json!({"type": "string", "minLength": 1, "maxLength": 200});
    let action = Action::define("task", "Makes a task.")
        .input_schema(json!({
            "type": "object",
            "properties": {
                "title": text,
                "priority": {"type": "string", "enum": ["low", "normal", "high"], "default": "normal"},
                "count": {"type": "integer"},
                "tags": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["title"],
            "additionalProperties": false,
        }))
        .output_schema(json!({
            "type": "object",
            "properties": {"id": text, "title": text, "state": text},
            "required": ["id", "title", "state"],
        }))
        .handler(|input, _| async move { Ok(json!({"id": "t1", "title": input["title"], "state": "open"})) });
    let runtime = Runtime::builder().action(action).build().expect("a runtime");
    let guard = Guard::new(address, BearerTokens::new().with(TokenDigest::of(TOKEN), Actor::owner("bench")));
    HttpApi { name: "bench".into(), version: "0".into(), runtime, guard }.router().expect("a router")
}

async fn call_many(address: SocketAddr) {
    let body = r#"{"input":{"title":"Buy milk","count":3,"tags":["home","shop"]}}"#;
    let request = format!(
        "POST /api/v1/actions/task/invoke HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.set_nodelay(true).expect("an option");
    let mut buffer = vec![0; 16 * 1024];
    for _ in 0..CALLS {
        stream.write_all(request.as_bytes()).await.expect("a request");
        let mut filled = 0;
        loop {
            filled += stream.read(&mut buffer[filled..]).await.expect("an answer");
            if is_whole(&buffer[..filled]) {
                break;
            }
        }
        assert!(buffer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&buffer[..filled]));
    }
}

/// Whether headers and a body of the announced length are there.
fn is_whole(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse::<usize>().ok());
    length.is_some_and(|length| body.len() >= length)
}
