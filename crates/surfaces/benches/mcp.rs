//! `tools/call` per second of an action with input and output schemas, beside a tool on rmcp's bare transport in the same run:
//! on stdio, where this program starts itself as the server, and over HTTP.
//!
//! Client and server share the machine, for both alike. The client is the same few lines for both: it does not read an answer
//! further than to its end.
#![allow(
    missing_docs,
    clippy::expect_used,
    clippy::panic,
    reason = "a benchmark that cannot start has nothing to measure"
)]

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, LazyLock, Mutex};

use axum::Router;
use divan::Bencher;
use divan::counter::ItemsCount;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use runyard_actions::{Action, Runtime};
use runyard_domain::Actor;
use runyard_surfaces::http::{BearerTokens, Guard, HttpApi, Listening, TokenDigest, serve};
use runyard_surfaces::mcp::{McpApi, endpoint, serve_stdio};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
const CALLS: usize = 512;
/// So many requests are under way at a time.
const DEPTHS: [usize; 2] = [1, 32];
const SERVE: &str = "RUNYARD_BENCH_SERVE";
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// The allocator of the `runyard` binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

static TOKIO: LazyLock<tokio::runtime::Runtime> =
    LazyLock::new(|| tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime"));

fn main() {
    match std::env::var(SERVE).as_deref() {
        Ok("bare") => TOKIO.block_on(async {
            let server = Bare.serve(rmcp::transport::io::stdio_pipes()).await.expect("a server");
            server.waiting().await.expect("an end");
        }),
        Ok(_) => TOKIO.block_on(async {
            let actor = Arc::new(Actor::owner("bench"));
            serve_stdio(&api(), actor, CancellationToken::new()).await.expect("an end");
        }),
        Err(_) => divan::main(),
    }
}

/// A tool that says what the action says, with nothing around it.
#[derive(Clone)]
struct Bare;

impl ServerHandler for Bare {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let title = request.arguments.as_ref().and_then(|input| input.get("title")).cloned();
        let data = json!({"id": "t1", "title": title, "state": "open"});
        let mut result = CallToolResult::success(vec![ContentBlock::text(data.to_string())]);
        result.structured_content = Some(data);
        Ok(result.into())
    }
}

fn api() -> McpApi {
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
    McpApi::new("bench", "0", Runtime::builder().action(action).build().expect("a runtime"))
}

fn call(id: usize) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"task","arguments":{{"title":"Buy milk","count":3,"tags":["home","shop"]}},{META}}}}}"#
    )
}

#[divan::bench(args = DEPTHS, sample_count = 20, sample_size = 1)]
fn stdio_bare_rmcp(bencher: Bencher, depth: usize) {
    on_stdio(bencher, depth, "bare");
}

#[divan::bench(args = DEPTHS, sample_count = 20, sample_size = 1)]
fn stdio_action(bencher: Bencher, depth: usize) {
    on_stdio(bencher, depth, "action");
}

struct Server(Child, ChildStdin, BufReader<ChildStdout>);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn on_stdio(bencher: Bencher, depth: usize, what: &str) {
    let program = std::env::current_exe().expect("this program");
    let mut child = Command::new(program)
        .env(SERVE, what)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a server");
    let (stdin, stdout) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
    let server = Mutex::new(Server(child, stdin, BufReader::new(stdout)));
    bencher.counter(ItemsCount::new(CALLS)).bench_local(|| {
        let Server(_, stdin, stdout) = &mut *server.lock().expect("the server");
        let (mut sent, mut answered, mut line) = (0, 0, String::new());
        while answered < CALLS {
            while sent < CALLS && sent - answered < depth {
                stdin.write_all(format!("{}\n", call(sent)).as_bytes()).expect("a request");
                sent += 1;
            }
            line.clear();
            stdout.read_line(&mut line).expect("an answer");
            assert!(line.contains("Buy milk"), "{line}");
            answered += 1;
        }
    });
}

#[divan::bench(args = DEPTHS, sample_count = 20, sample_size = 1)]
fn http_bare_rmcp(bencher: Bencher, connections: usize) {
    let config = StreamableHttpServerConfig::default().with_json_response(true);
    let service = StreamableHttpService::new(|| Ok(Bare), Arc::new(LocalSessionManager::default()), config);
    over_http(bencher, connections, |_| Router::new().route_service("/mcp", service));
}

#[divan::bench(args = DEPTHS, sample_count = 20, sample_size = 1)]
fn http_action(bencher: Bencher, connections: usize) {
    over_http(bencher, connections, |address| {
        let tokens = BearerTokens::new().with(TokenDigest::of(TOKEN), Actor::owner("bench"));
        let guard = Guard::new(address, tokens);
        let runtime = Runtime::builder().build().expect("a runtime");
        let http = HttpApi { name: "bench".into(), version: "0".into(), runtime, guard };
        http.router_with(Vec::new(), |routes| routes.merge(endpoint(&api(), CancellationToken::new())))
            .expect("a router")
    });
}

fn over_http(bencher: Bencher, connections: usize, router: impl FnOnce(SocketAddr) -> Router) {
    let stop = CancellationToken::new();
    let address = TOKIO.block_on(async {
        let listening = Listening::on("127.0.0.1:0".parse().expect("an address")).await.expect("a socket");
        let address = listening.address;
        tokio::spawn(serve(listening, router(address), stop.clone()));
        address
    });
    let calls = CALLS / connections;
    bencher.counter(ItemsCount::new(connections * calls)).bench_local(|| {
        TOKIO.block_on(async {
            let clients: Vec<_> = (0..connections).map(|_| tokio::spawn(call_many(address, calls))).collect();
            for client in clients {
                client.await.expect("a client ends well");
            }
        });
    });
    stop.cancel();
}

async fn call_many(address: SocketAddr, calls: usize) {
    let body = call(1);
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n\
         Mcp-Name: task\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.set_nodelay(true).expect("an option");
    let mut buffer = vec![0; 16 * 1024];
    for _ in 0..calls {
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

/// Whether headers and a body of the announced length are there, or a body in chunks with its last one.
fn is_whole(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let head = head.to_ascii_lowercase();
    if head.contains("transfer-encoding: chunked") {
        return body.ends_with("0\r\n\r\n");
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
    length.is_some_and(|length| body.len() >= length)
}
