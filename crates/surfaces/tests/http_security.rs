//! Who is kept out, in the default configuration, on every route: the incidents of our peers, one test each.
//!
//! Of the table in the security notes, MCP's own are in `mcp_security.rs` and the dev page's in `dev_security.rs`; these say
//! nothing about this surface. Adapters and their children: opencode 14407,
//! CVE-2025-61260, GHSA-w5fx-fh39-j5rw, CVE-2025-59536, CVE-2026-21852, CVE-2025-54135, Claude Code deeplink, "CBSE". Files
//! and workspaces: CVE-2025-54794, CVE-2025-54795, CVE-2026-25724, CVE-2026-39861, CVE-2026-25725, CVE-2026-46406,
//! CVE-2025-53109, CVE-2025-53110, CVE-2025-68143, CVE-2025-68144, CVE-2025-68145. Nothing here evaluates expressions: CVE-2026-26030.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a failed expectation fails the test"
)]

mod support;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use runyard_actions::{Action, Runtime, command_actions};
use runyard_domain::Actor;
use runyard_surfaces::http::{BearerTokens, Guard, Launch, LaunchError, TokenDigest};
use runyard_surfaces::mcp::McpApi;
use serde_json::{Value, json};
use support::app::{Seen, app, echoing, open};
use support::client::{Client, Request};
use support::server::{ADA, BOB, Server, TOKENS};
use tokio_util::sync::CancellationToken;

/// One request for every kind of route, followed and unknown ones included.
fn every_route(server: &Server) -> Vec<Request> {
    vec![
        server.get("/api/v1/actions"),
        server.get("/api/v1/openapi.json"),
        server.invoke("count", json!({})),
        server.invoke("count", json!({})).followed(),
        server.post("/api/v1/counts", &json!({})),
        server.get("/api/v1/tasks/1"),
        server.request("DELETE", "/api/v1/tasks/1").with("Runyard-Confirm", "true"),
        server.post("/api/v1/private", &json!({})),
        server.request("OPTIONS", "/api/v1/actions"),
        server.request("PUT", "/api/v1/actions"),
        server.get("/nowhere"),
        server.get("/favicon.ico"),
    ]
}

/// What each route says to a request that was changed; the action behind it must not run.
async fn check_refused(status: u16, code: &str, change: impl Fn(Request, &Server) -> Request) {
    let seen = Seen::default();
    let server = Server::start(app(&seen)).await;
    for request in every_route(&server) {
        let changed = change(request, &server);
        let answer = server.send(changed.clone()).await;
        assert_eq!(answer.outcome(), (status, code.to_owned()), "{changed:?}");
    }
    assert_eq!((seen.started(), seen.ended().len()), (0, 0), "nothing ran");
}

async fn check_host(host: &str) {
    check_refused(421, "HOST_NOT_ALLOWED", |request, server| {
        request.with("Host", &host.replace("PORT", &server.address.port().to_string()))
    })
    .await;
}

async fn check_origin(origin: &str) {
    check_refused(403, "ORIGIN_NOT_ALLOWED", |request, server| {
        request.with("Origin", &origin.replace("PORT", &server.address.port().to_string()))
    })
    .await;
}

// CVE-2026-42559 (GHSA-89vp-x53w-74fx, RUSTSEC-2026-0189), CVE-2025-66414, CVE-2025-66416: DNS rebinding.
#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_host_is_refused_on_every_route_by_default() {
    for host in [
        "evil.example",
        "evil.example:PORT",
        "localhost.evil.example:PORT",
        "127.0.0.1.nip.io:PORT",
        "localhost",
        "127.0.0.1",
        "127.0.0.1:1",
        "localhost.:PORT",
        "0.0.0.0:PORT",
        "ada@127.0.0.1:PORT",
        "127.1:PORT",
        "2130706433:PORT",
        "",
    ] {
        check_host(host).await;
    }
    check_refused(421, "HOST_NOT_ALLOWED", |request, _| request.without("Host")).await;
}

// The same, where a request names its host in more than one way.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_names_two_hosts_is_refused() {
    check_refused(421, "HOST_NOT_ALLOWED", |request, _| request.and("Host", "evil.example")).await;
    check_refused(421, "HOST_NOT_ALLOWED", |request, server| {
        request.and("Host", &server.address.to_string())
    })
    .await;
    let server = Server::start(app(&Seen::default())).await;
    let ours = server.address.to_string();
    let absolute = |authority: &str| server.get(&format!("http://{authority}/api/v1/actions"));
    for request in [
        absolute("evil.example"),
        absolute(&ours).with("Host", "evil.example"),
        absolute(&ours).and("Host", &ours),
        absolute(&ours).without("Host"),
        absolute(&format!("ada@{ours}")),
    ] {
        assert_eq!(server.send(request.clone()).await.code(), "HOST_NOT_ALLOWED", "{request:?}");
    }
    assert_eq!(server.send(absolute(&ours)).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_names_of_this_machine_are_ours_with_the_port() {
    let server = Server::start(app(&Seen::default())).await;
    let port = server.address.port();
    for name in ["127.0.0.1", "localhost", "LocalHost", "[::1]"] {
        let host = format!("{name}:{port}");
        assert_eq!(
            server.send(server.get("/api/v1/actions").with("Host", &host)).await.status,
            200,
            "{host}"
        );
        let from_own_page = server.get("/api/v1/actions").with("Origin", &format!("http://{host}"));
        assert_eq!(server.send(from_own_page).await.status, 200, "{host}");
    }
}

// Pages of other sites, and AutoJack: pages of another port of this machine.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_is_not_ours_is_refused_on_every_route_whatever_token_it_has() {
    for origin in [
        "https://evil.example",
        "http://evil.example:PORT",
        "null",
        "",
        "http://localhost",
        "http://localhost:1",
        "http://127.0.0.1:8080",
        "http://localhost.evil.example:PORT",
        "http://127.0.0.1:PORT.evil.example",
        "http://127.0.0.1:PORT/",
        "ws://127.0.0.1:PORT",
        "file://",
        "127.0.0.1:PORT",
        "http://https://127.0.0.1:PORT",
    ] {
        check_origin(origin).await;
    }
    check_refused(403, "ORIGIN_NOT_ALLOWED", |request, server| {
        request.and("Origin", &format!("http://{}", server.address)).and("Origin", "https://evil.example")
    })
    .await;
}

// The browser's own word on where a request comes from, also for those that carry no Origin.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_a_browser_calls_foreign_is_refused_on_every_route() {
    for site in ["cross-site", "same-site", "Same-Origin", "", "anything"] {
        check_refused(403, "ORIGIN_NOT_ALLOWED", |request, _| request.with("Sec-Fetch-Site", site)).await;
    }
    check_refused(403, "ORIGIN_NOT_ALLOWED", |request, _| {
        request.and("Sec-Fetch-Site", "same-origin").and("Sec-Fetch-Site", "cross-site")
    })
    .await;
    let server = Server::start(app(&Seen::default())).await;
    for site in ["same-origin", "none"] {
        assert_eq!(server.send(server.get("/api/v1/actions").with("Sec-Fetch-Site", site)).await.status, 200);
    }
}

// CVE-2026-22812 (GHSA-vxw4-wv6m-9hhh): no authentication and CORS `*`. That there is no CORS header at all is checked on
// every answer of every test.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_token_there_is_nothing_but_401_on_this_machine_too() {
    check_refused(401, "AUTHENTICATION_ERROR", |request, _| request.without("Authorization")).await;
}

// clause: A22
#[tokio::test(flavor = "multi_thread")]
async fn only_a_known_token_in_the_one_right_place_counts() {
    let almost = &ADA[..ADA.len() - 1];
    for header in [
        String::new(),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        ADA.to_owned(),
        format!("Basic {ADA}"),
        format!("Token {ADA}"),
        format!("Bearer {almost}"),
        format!("Bearer {ADA}x"),
        format!("Bearer {}", ADA.to_uppercase()),
        format!("Bearer {ADA} {ADA}"),
        format!("Bearer {ADA}, Bearer {BOB}"),
        "Bearer *".to_owned(),
    ] {
        check_refused(401, "AUTHENTICATION_ERROR", |request, _| request.with("Authorization", &header)).await;
    }
    check_refused(401, "AUTHENTICATION_ERROR", |request, _| {
        request.and("Authorization", &format!("Bearer {ADA}"))
    })
    .await;
    check_refused(401, "AUTHENTICATION_ERROR", |request, _| {
        request.without("Authorization").with("Cookie", &format!("token={ADA}")).with("X-Api-Key", ADA)
    })
    .await;
    let server = Server::start(app(&Seen::default())).await;
    let in_query =
        server.get(&format!("/api/v1/actions?token={ADA}&access_token={ADA}")).without("Authorization");
    assert_eq!(server.send(in_query).await.status, 401);
    let any_case = server.get("/api/v1/actions").with("Authorization", &format!("bEARER {ADA}"));
    assert_eq!(server.send(any_case).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_tokens_lets_nobody_in() {
    let guard = Guard::new(SocketAddr::from(([127, 0, 0, 1], 1)), BearerTokens::new());
    let runtime = Runtime::builder().action(echoing(open("echo"))).build().unwrap();
    let api = runyard_surfaces::http::HttpApi { name: "x".into(), version: "1".into(), runtime, guard };
    let listening =
        runyard_surfaces::http::Listening::on(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let address = listening.address;
    tokio::spawn(runyard_surfaces::http::serve(listening, api.router().unwrap(), CancellationToken::new()));
    let request = Request::new("GET", "/api/v1/actions").and("Host", "127.0.0.1:1");
    for token in ["", " ", "x", ADA] {
        let answer = Client::connect(address).await.send(&request.clone().by(token)).await;
        assert_eq!(answer.status, 401);
    }
}

fn launch(listen: &str, folder: &tempfile::TempDir) -> Launch {
    let token_file: PathBuf = folder.path().join("home/token");
    let listen = listen.parse().unwrap();
    Launch { listen, allow_plaintext: false, known_as: Vec::new(), origins: Vec::new(), token_file }
}

fn runtime() -> Runtime {
    Runtime::builder().action(echoing(open("echo"))).build().unwrap()
}

// CVE-2026-22812 and the campaign that followed: `--hostname 0.0.0.0`.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_other_machines_could_reach_in_plain_text_does_not_start() {
    for address in
        ["0.0.0.0:0", "[::]:0", "192.0.2.1:0", "10.0.0.1:80", "[2001:db8::1]:0", "[::ffff:127.0.0.1]:0"]
    {
        let folder = tempfile::tempdir().unwrap();
        let launch = launch(address, &folder);
        let token_file = launch.token_file.clone();
        let ready = |url: &str| panic!("it is ready on {url}");
        let refused =
            launch.run(&McpApi::new("x", "1", runtime()), CancellationToken::new(), ready).await.unwrap_err();
        assert!(matches!(refused, LaunchError::Plaintext(at) if at == address.parse().unwrap()), "{refused}");
        assert!(!token_file.exists(), "and no token is made");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_behind_a_proxy_answers_to_the_proxys_name_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mut launch = launch("0.0.0.0:0", &folder);
    launch.allow_plaintext = true;
    launch.known_as = vec!["Runyard.Example".to_owned()];
    let (stop, token_file) = (CancellationToken::new(), launch.token_file.clone());
    let (ready, told) = tokio::sync::oneshot::channel();
    let stopped = stop.clone();
    let running = tokio::spawn(async move {
        launch
            .run(&McpApi::new("x", "1", runtime()), stopped, |url| ready.send(url.to_owned()).unwrap())
            .await
    });
    let url = told.await.unwrap();
    let port: u16 = url.rsplit(':').next().unwrap().parse().unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let token = std::fs::read_to_string(token_file).unwrap();
    let request = Request::new("GET", "/api/v1/actions").by(token.trim());
    for (host, status) in [
        ("runyard.example".to_owned(), 200),
        ("runyard.example:443".to_owned(), 421),
        (format!("localhost:{port}"), 421),
        (format!("127.0.0.1:{port}"), 421),
    ] {
        let answer = Client::connect(address).await.send(&request.clone().with("Host", &host)).await;
        assert_eq!(answer.status, status, "{host}");
    }
    let from_its_page = request.with("Host", "runyard.example").with("Origin", "https://runyard.example");
    assert_eq!(Client::connect(address).await.send(&from_its_page).await.status, 200);
    stop.cancel();
    running.await.unwrap().unwrap();
}

// CVE-2026-52870: what one caller did is not another's to see.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_does_not_see_the_idempotent_results_of_another() {
    let seen = Seen::default();
    let server = Server::start(app(&seen)).await;
    let call = || server.invoke("count", json!({"same": true})).with("Idempotency-Key", "same");
    assert_eq!(server.send(call().by(ADA)).await.data(), 1);
    let other = server.send(call().by(BOB)).await;
    assert_eq!(
        (other.data(), other.json()["meta"].get("idempotent").cloned()),
        (json!(2), None),
        "it ran anew"
    );
    // Nor can it tell by a conflict that the other has used the key.
    let different = server.invoke("count", json!({"same": false})).with("Idempotency-Key", "ada-only");
    assert_eq!(server.send(different.by(ADA)).await.data(), 3);
    let probing = server.invoke("count", json!({"same": true})).with("Idempotency-Key", "ada-only");
    assert_eq!(server.send(probing.by(BOB)).await.data(), 4);
    assert_eq!(server.send(call().by(ADA)).await.data(), 1);
    assert_eq!(seen.started(), 4);
}

// CVE-2026-25536 (GHSA-345p-7cg4-v4c7): answers of one client delivered to another.
#[tokio::test(flavor = "multi_thread")]
async fn two_clients_who_follow_with_equal_ids_at_once_each_get_their_own_events() {
    let gate = Arc::new(tokio::sync::Barrier::new(2));
    let action = open("say").handler(move |input: Value, context| {
        let gate = Arc::clone(&gate);
        async move {
            for step in 0..20 {
                gate.wait().await;
                let fields = runyard_actions::fields! { step: step, who: context.actor().id };
                context.logger().info(input["word"].as_str().unwrap_or_default(), fields);
                tokio::task::yield_now().await;
            }
            Ok(input)
        }
    });
    let server = Server::start(Runtime::builder().action(action)).await;
    let follow = |token: &'static str, word: &'static str| {
        let request = server.invoke("say", json!({ "word": word })).by(token).followed();
        let request = request.with("Idempotency-Key", "1").with("X-Request-Id", "1");
        let address = server.address;
        tokio::spawn(async move {
            let mut client = Client::connect(address).await;
            client.follow(&request).await;
            client.events().await
        })
    };
    let (ada, bob) = (follow(ADA, "red"), follow(BOB, "blue"));
    for (events, who, word) in [(ada.await.unwrap(), "ada", "red"), (bob.await.unwrap(), "bob", "blue")] {
        assert_eq!(events.len(), 21);
        for (step, event) in events[..20].iter().enumerate() {
            assert_eq!(
                (&event.data["message"], &event.data["fields"]),
                (&json!(word), &json!({"step": step, "who": who}))
            );
        }
        assert_eq!(events[20].data["envelope"]["data"], json!({ "word": word }));
    }
}

// CVE-2026-0621: patterns and addresses that keep a backtracking matcher busy for ever. That the test ends is the proof.
#[tokio::test(flavor = "multi_thread")]
async fn pathological_patterns_and_addresses_are_answered() {
    let text = json!({"type": "string", "pattern": "^(a+)+$"});
    let schema = json!({"type": "object", "properties": {"text": text}});
    let matching =
        Action::define("match_text", "Matches.").input_schema(schema).http("GET /api/v1/match/{text}");
    let server = Server::start(Runtime::builder().action(echoing(matching))).await;
    let long = format!("{}!", "a".repeat(100_000));
    let answer = server.send(server.invoke("match_text", json!({ "text": long }))).await;
    assert_eq!(answer.outcome(), (400, "VALIDATION_ERROR".to_owned()));
    assert!(answer.body.len() < 2000, "the value is not repeated");
    let long = &long[60_000..];
    for target in [
        format!("/api/v1/match/{long}"),
        format!("/api/v1/match/x?text={long}"),
        format!("/api/v1/match/{}", "%25".repeat(18_000)),
        format!("/api/v1/match/{}", "%2F".repeat(18_000)),
        format!("/api/v1/match/x?{}", "%".repeat(50_000)),
        format!("/api/v1/match/x?{}", "a[".repeat(25_000)),
        format!("/api/v1/match/x?{}", "a=1&".repeat(12_000)),
    ] {
        let answer = server.send(server.get(&target)).await;
        assert_eq!(answer.status, 400, "{}", &target[..40]);
    }
    for target in
        ["/".repeat(60_000), "/{a}".repeat(15_000), format!("/api/v1/actions{}", "/..".repeat(15_000))]
    {
        assert_eq!(server.send(server.get(&target)).await.status, 404, "{}", &target[..20]);
    }
}

// CVE-2026-30352, CVE-2026-0755: a parameter that becomes a command.
#[tokio::test(flavor = "multi_thread")]
async fn no_input_reaches_a_shell_or_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("made");
    let toml = r#"
        [actions.repeat]
        description = "Gives its input back."
        command = ["cat"]
        input = { type = "object", properties = { text = { type = "string" } }, additionalProperties = false }
    "#;
    let server =
        Server::start(Runtime::builder().actions(command_actions(toml, folder.path()).unwrap())).await;
    let touch = format!("touch {}", mark.display());
    for text in [
        format!("; {touch}"),
        format!("$({touch})"),
        format!("`{touch}`"),
        format!("\n{touch}\n"),
        format!("' ; {touch} #"),
        format!("\" && {touch} #"),
        format!("--output={}", mark.display()),
    ] {
        let answer = server.send(server.invoke("repeat", json!({ "text": text }))).await;
        assert_eq!(answer.data()["text"], text, "it is data from end to end");
    }
    for key in ["command", "cmd", "args", "cwd", "env", "shell", "program"] {
        let answer = server.send(server.invoke("repeat", json!({ key: touch }))).await;
        assert_eq!(answer.status, 400, "{key}");
        let mut call = json!({"input": {}});
        call[key] = json!(touch);
        assert_eq!(
            server.send(server.post("/api/v1/actions/repeat/invoke", &call)).await.status,
            400,
            "{key}"
        );
    }
    for path in ["/devserver/start", "/api/v1/exec", "/api/v1/shell", "/api/v1/command", "/session/1/shell"] {
        assert_eq!(server.send(server.post(path, &json!({ "command": touch }))).await.status, 404, "{path}");
    }
    assert!(!mark.exists());
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// In one thread, so that all of the server's log lands here.
#[tokio::test]
async fn no_log_line_holds_a_token() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    let _logging = tracing_subscriber::util::SubscriberInitExt::set_default(subscriber);
    let server = Server::start(app(&Seen::default())).await;
    for token in TOKENS {
        for request in every_route(&server) {
            server.send(request.clone().by(token)).await;
            server.send(request.clone().by(token).and("Authorization", &format!("Bearer {token}"))).await;
            server.send(request.by(&format!("{token}x"))).await;
        }
        server.send(server.invoke("fail", json!({"code": "INTERNAL_ERROR"})).by(token)).await;
    }
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(text.contains("internal error"), "the log is there: {text}");
    assert!(!TOKENS.iter().any(|token| text.contains(token)), "{text}");
}

#[test]
fn a_guard_does_not_tell_its_tokens() {
    let tokens = BearerTokens::new().with(TokenDigest::of(ADA), Actor::owner("ada"));
    let guard = Guard::new(SocketAddr::from(([127, 0, 0, 1], 1)), tokens);
    assert!(!format!("{guard:?}").contains(ADA));
}
