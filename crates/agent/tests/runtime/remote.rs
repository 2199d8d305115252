//! Agents behind a plain HTTP endpoint, against a small server of our own.

use std::sync::{Arc, Mutex};

use runyard_agent::phase::TerminationReason;
use runyard_agent::remote::HttpBackend;
use runyard_agent::run::{AgentEvent, RunRecord};
use runyard_agent::spec::{AgentSpec, EndpointSpec};
use runyard_agent::{AgentRuntime, AgentRuntimeBuilder, ResumeRequest, RunRequest, RuntimeError};
use runyard_domain::Code;
use runyard_llm::inference::Update;
use runyard_store::{RunStore, ThreadRunStore, ThreadStore};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::flaky::Flaky;
use crate::heard::Heard;
use crate::kit::thread;

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Came {
    pub(crate) target: String,
    pub(crate) head: String,
    pub(crate) body: Value,
}

/// What a server does with a request.
pub(crate) enum Reply {
    /// Sends these bytes and closes.
    Bytes(Vec<u8>),
    /// Sends nothing, and tells when the other side has gone.
    Hang(mpsc::UnboundedSender<()>),
}

/// A server on the loopback.
pub(crate) struct Loopback {
    base: String,
    came: Arc<Mutex<Vec<Came>>>,
}

impl Loopback {
    pub(crate) async fn start(reply: impl Fn(&Came, &str) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let came = Arc::new(Mutex::new(Vec::new()));
        let (seen, here, reply) = (Arc::clone(&came), base.clone(), Arc::new(reply));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (seen, here, reply) = (Arc::clone(&seen), here.clone(), Arc::clone(&reply));
                tokio::spawn(async move {
                    let (request, stream) = read(stream).await;
                    seen.lock().unwrap().push(request.clone());
                    answer(stream, reply(&request, &here)).await;
                });
            }
        });
        Loopback { base, came }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    pub(crate) fn came(&self) -> Vec<Came> {
        self.came.lock().unwrap().clone()
    }

    pub(crate) fn json(body: &str) -> Reply {
        Self::body("application/json", body)
    }

    pub(crate) fn events(body: &str) -> Reply {
        Self::body("text/event-stream; charset=utf-8", body)
    }

    pub(crate) fn status(status: u16) -> Reply {
        let head = format!("HTTP/1.1 {status} No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        Reply::Bytes(head.into_bytes())
    }

    fn body(kind: &str, body: &str) -> Reply {
        let length = body.len();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n");
        Reply::Bytes(format!("{head}{body}").into_bytes())
    }
}

async fn read(mut stream: TcpStream) -> (Came, TcpStream) {
    let mut bytes = Vec::new();
    loop {
        let mut piece = [0; 4096];
        let read = stream.read(&mut piece).await.unwrap();
        bytes.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let head = head.to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if body.len() < length.map_or(0, |length| length.parse().unwrap()) {
            continue;
        }
        let target = text.split(' ').nth(1).unwrap().to_owned();
        let body = serde_json::from_str(body).unwrap_or(Value::Null);
        return (Came { target, head, body }, stream);
    }
}

async fn answer(mut stream: TcpStream, reply: Reply) {
    match reply {
        Reply::Bytes(bytes) => {
            let _ = stream.write_all(&bytes).await;
        }
        Reply::Hang(gone) => {
            let mut rest = [0; 16];
            while matches!(stream.read(&mut rest).await, Ok(read) if read > 0) {}
            let _ = gone.send(());
        }
    }
}

fn builder(url: String) -> AgentRuntimeBuilder {
    let endpoint = EndpointSpec { backend: "http".into(), url, ..EndpointSpec::default() };
    AgentRuntimeBuilder::new().agent(AgentSpec::remote("far", endpoint))
}

async fn runtime(url: String) -> AgentRuntime {
    builder(url).backend(HttpBackend::default()).build().await.unwrap()
}

fn hi() -> RunRequest {
    RunRequest::new("far", "t", "hi")
}

fn failed_with(reason: &TerminationReason) -> Option<Code> {
    match reason {
        TerminationReason::Failed { code, .. } => Some(*code),
        _ => None,
    }
}

// clause: D14
#[tokio::test]
async fn an_agent_behind_an_endpoint_is_asked_and_answers() {
    let server = Loopback::start(|_, _| {
        Loopback::json(r#"{ "text": "hello from afar", "usage": { "inputTokens": 7 }, "rounds": 2 }"#)
    })
    .await;
    let heard = Heard::default();
    let runtime = runtime(server.url("/run?v=2")).await;
    let outcome = runtime.run(hi().observer(heard.clone())).await.unwrap();
    assert_eq!(outcome.reason, TerminationReason::NaturalEnd);
    assert_eq!((outcome.text().as_str(), outcome.rounds), ("hello from afar", 2));
    assert_eq!(outcome.usage.input_tokens, 7);
    assert_eq!(heard.ends(), 1);
    let came = server.came();
    assert_eq!((came.len(), came[0].target.as_str()), (1, "/run?v=2"));
    assert!(came[0].head.starts_with("post ") && came[0].head.contains("content-type: application/json"));
    let body = &came[0].body;
    assert_eq!((&body["agentId"], &body["threadId"]), (&json!("far"), &json!("t")));
    assert!(body["runId"].as_str().unwrap().starts_with("run_"));
    assert_eq!(body["input"][0]["content"][0]["text"], "hi");
}

#[tokio::test]
async fn a_stream_of_events_is_heard_as_it_comes_and_ends_with_the_answer() {
    let events = "event: text\ndata: {\"text\": \"hello \"}\n\nevent: ping\ndata: {}\n\n\
                  event: text\ndata: {\"text\": \"you\"}\n\nevent: answer\ndata: {\"text\": \"hello you\"}\n\n";
    let server = Loopback::start(move |_, _| Loopback::events(events)).await;
    let heard = Heard::default();
    let outcome = runtime(server.url("/")).await.run(hi().observer(heard.clone())).await.unwrap();
    assert_eq!(outcome.text(), "hello you");
    let said: String = heard
        .events()
        .into_iter()
        .filter_map(|event| match event {
            AgentEvent::Inference(Update::Text(text)) => Some(text),
            _ => None,
        })
        .collect();
    assert_eq!(said, "hello you");
}

#[tokio::test]
async fn what_goes_wrong_elsewhere_keeps_its_code() {
    for (status, code) in [
        (400, Code::InferenceInvalidRequest),
        (401, Code::InferenceUnauthorized),
        (404, Code::RuntimeAgentNotFound),
        (409, Code::RuntimeThreadAlreadyRunning),
        (429, Code::InferenceRateLimited),
        (500, Code::InferenceProvider),
        (503, Code::InferenceOverloaded),
        (504, Code::InferenceTimeout),
    ] {
        let server = Loopback::start(move |_, _| Loopback::status(status)).await;
        let outcome = runtime(server.url("/")).await.run(hi()).await.unwrap();
        assert_eq!(failed_with(&outcome.reason), Some(code), "{status}");
    }
    for (body, code) in [
        (r#"{ "end": { "reason": "failed", "code": "inference.timeout" } }"#, Code::InferenceTimeout),
        (r#"{ "end": { "reason": "failed", "code": "of its own" } }"#, Code::InferenceProvider),
        (r#"{ "end": { "reason": "suspended" } }"#, Code::InferenceProvider),
        ("no JSON", Code::InferenceProvider),
    ] {
        let server = Loopback::start(move |_, _| Loopback::json(body)).await;
        let outcome = runtime(server.url("/")).await.run(hi()).await.unwrap();
        assert_eq!(failed_with(&outcome.reason), Some(code), "{body}");
    }
    let server = Loopback::start(|_, _| Loopback::events("event: text\ndata: {\"text\": \"a\"}\n\n")).await;
    let outcome = runtime(server.url("/")).await.run(hi()).await.unwrap();
    assert_eq!(failed_with(&outcome.reason), Some(Code::InferenceStreamInterrupted));
    let outcome = runtime("http://127.0.0.1:1/".into()).await.run(hi()).await.unwrap();
    assert_eq!(failed_with(&outcome.reason), Some(Code::InferenceProvider));
}

#[tokio::test]
async fn a_cancelled_run_drops_its_request_and_frees_its_thread() {
    let (gone, mut was_gone) = mpsc::unbounded_channel();
    let server = Loopback::start(move |_, _| Reply::Hang(gone.clone())).await;
    let runtime = runtime(server.url("/")).await;
    let token = CancellationToken::new();
    let running = tokio::spawn({
        let (runtime, request) = (runtime.clone(), hi().cancellation(token.clone()));
        async move { runtime.run(request).await }
    });
    while server.came().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        runtime.run(hi()).await.unwrap_err(),
        RuntimeError::ThreadAlreadyRunning { thread_id: "t".into() }
    );
    token.cancel();
    assert_eq!(running.await.unwrap().unwrap().reason, TerminationReason::Cancelled);
    was_gone.recv().await.unwrap();
    let again = runtime.run(hi().cancellation(token)).await.unwrap();
    assert_eq!(again.reason, TerminationReason::Cancelled);
}

// clause: D05
#[tokio::test]
async fn d05_a_remote_refusal_whose_body_cannot_be_read_is_what_its_status_says() {
    for (status, code) in [
        (401, Code::InferenceUnauthorized),
        (429, Code::InferenceRateLimited),
        (200, Code::InferenceProvider),
    ] {
        let server = Loopback::start(move |_, _| {
            let headers = "content-encoding: gzip\r\ncontent-length: 2\r\nconnection: close";
            Reply::Bytes(format!("HTTP/1.1 {status} X\r\n{headers}\r\n\r\n\u{1f}\u{1}").into_bytes())
        })
        .await;
        let outcome = runtime(server.url("/run")).await.run(hi()).await.unwrap();
        assert_eq!(failed_with(&outcome.reason), Some(code), "{status}");
    }
}

#[tokio::test]
async fn a_key_goes_to_the_place_that_it_is_for_and_nowhere_else() {
    let server = Loopback::start(|_, _| Loopback::json("{}")).await;
    let here = HttpBackend::default().with_key(&server.url("/any"), "Sorrel64").unwrap();
    let _ = builder(server.url("/run")).backend(here).build().await.unwrap().run(hi()).await.unwrap();
    assert!(server.came()[0].head.contains("authorization: bearer sorrel64"));
    let elsewhere = HttpBackend::default().with_key("http://127.0.0.1:1/", "Sorrel64").unwrap();
    let _ = builder(server.url("/run")).backend(elsewhere).build().await.unwrap().run(hi()).await.unwrap();
    assert!(!server.came()[1].head.contains("sorrel64"));
    assert!(HttpBackend::default().with_key("h", "Sorrel64").is_err());
    assert!(HttpBackend::default().with_key("http://h", "").is_err());
}

#[tokio::test]
async fn what_was_said_to_a_remote_agent_and_its_answer_are_kept() {
    let store = Flaky::timed();
    let server = Loopback::start(|_, _| Loopback::json(r#"{ "text": "hello" }"#)).await;
    let durable = builder(server.url("/"))
        .backend(HttpBackend::default())
        .store(Arc::clone(&store) as Arc<dyn ThreadRunStore>)
        .build()
        .await
        .unwrap();
    for _ in 0..2 {
        assert_eq!(durable.run(hi()).await.unwrap().text(), "hello");
    }
    let messages = store.messages(&thread("t"), 0, 10).await.unwrap();
    let roles: Vec<Value> =
        messages.iter().map(|message| message.payload().unwrap()["role"].clone()).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant"]);
    let runs = store.agent_runs(&thread("t"), None, 10).await.unwrap();
    assert!(runs.len() == 2 && runs.iter().all(|run| run.finished));
    let record: RunRecord = serde_json::from_slice(&runs[0].payload).unwrap();
    assert_eq!(record.end.unwrap().reason, "natural_end");
}

#[tokio::test]
async fn after_a_crash_the_same_run_is_asked_for_again_under_its_id() {
    let store = Flaky::timed();
    let (gone, mut was_gone) = mpsc::unbounded_channel();
    let dead = Loopback::start(move |_, _| Reply::Hang(gone.clone())).await;
    let busy = Loopback::start(|_, _| Loopback::status(503)).await;
    let durable = |url: String| {
        let store = Arc::clone(&store) as Arc<dyn ThreadRunStore>;
        builder(url).backend(HttpBackend::default()).store(store).build()
    };
    // What an earlier run was asked, and nobody answered, is not asked again with this one.
    let earlier = durable(busy.url("/")).await.unwrap();
    let outcome = earlier.run(RunRequest::new("far", "t", "before")).await.unwrap();
    assert_eq!(failed_with(&outcome.reason), Some(Code::InferenceOverloaded));
    // The process dies: all of its tasks with it, and nothing is told to anybody.
    let dying = durable(dead.url("/")).await.unwrap();
    let (kill, killed) = tokio::sync::oneshot::channel::<()>();
    let process = std::thread::spawn(move || {
        let process = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        process.block_on(async {
            tokio::select! {
                ended = dying.run(hi()) => panic!("{ended:?}"),
                _ = killed => {}
            }
        });
        process.shutdown_background();
    });
    while dead.came().is_empty() {
        tokio::task::yield_now().await;
    }
    kill.send(()).unwrap();
    was_gone.recv().await.unwrap();
    process.join().unwrap();
    let first = dead.came()[0].body.clone();

    let alive = Loopback::start(|_, _| Loopback::json(r#"{ "text": "here I am" }"#)).await;
    let runtime = durable(alive.url("/")).await.unwrap();
    let run = store.unfinished_run(&thread("t")).await.unwrap().unwrap();
    let generation = store.thread(&thread("t")).await.unwrap().unwrap().generation;
    store.release_claim(&thread("t"), generation).await.unwrap();
    let outcome = runtime.recover(ResumeRequest::new("t")).await.unwrap().unwrap();
    assert_eq!(outcome.text(), "here I am");
    let again = alive.came()[0].body.clone();
    assert_eq!((&again, again["runId"].as_str()), (&first, Some(run.id.as_str())));
    assert_eq!(again["input"].as_array().map(Vec::len), Some(1), "{again}");
}
