//! Turns over real connections: what the wire and the turn do together, against a provider that is really there.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use futures_core::Stream;
use runyard_demo_provider::DemoProvider;
use runyard_domain::Code;
use runyard_llm::http::{Client, Limits, Roots};
use runyard_llm::inference::{
    Breakers, Fault, FixedJitter, Inference, InferenceExecutionError as E, InferenceRequest, Message, Model,
    ModelEvent, ModelStream, Pool, Refusal, RetryPolicy, StopReason, SystemClock, Turn, Update,
};
use runyard_llm::wire::{AnthropicOptions, ChatOptions, Endpoint, ResponsesOptions, Wire, WireModel};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::support::{Seen, look, patient, question};

fn wires() -> [Wire; 3] {
    [
        Wire::Responses(ResponsesOptions::default()),
        Wire::Chat(ChatOptions::default()),
        Wire::Anthropic(AnthropicOptions::default()),
    ]
}

/// Asks the one model there, without any wait between two attempts.
fn inference(base_url: String, wire: &Wire, limits: Limits, policy: RetryPolicy) -> Inference {
    let key = Some("sk-Sorrel-Dipper-6464".to_owned());
    let endpoint = Endpoint { provider: "demo".into(), base_url, key, model: "m-1".into(), limits };
    let model = WireModel::new(endpoint, wire.clone(), Arc::new(Client::new(Roots::System))).unwrap();
    let breakers = Breakers::new(patient(), Arc::new(SystemClock::new()));
    let pool = Pool::new([Arc::new(model) as Arc<dyn Model>], &breakers);
    let policy =
        RetryPolicy { base_ms: 0, overloaded_base_ms: 0, cap_ms: 0, retry_after_cap_ms: 0, ..policy };
    Inference::with_jitter(pool, policy, Arc::new(FixedJitter(0)))
}

fn playing(scenario: &str) -> InferenceRequest {
    let text = format!("[[scenario:{scenario}]]");
    InferenceRequest { messages: vec![Arc::new(Message::user(text))].into(), ..InferenceRequest::default() }
}

/// Looks at a turn to its end. Once `last` was said nothing more comes, so that only the clock can move.
async fn look_past(mut turn: Turn, last: &str) -> (Seen, Duration) {
    let (mut before, mut said) = (Vec::new(), String::new());
    while said != last {
        let update = turn.next().await.unwrap().unwrap();
        if let Update::Text(piece) = &update {
            said.push_str(piece);
        }
        before.push(update);
    }
    tokio::time::pause();
    let paused = Instant::now();
    let mut seen = look(turn).await;
    let waited = paused.elapsed();
    tokio::time::resume();
    seen.updates.splice(0..0, before);
    (seen, waited)
}

/// How each scenario ends once everything was tried, on every wire; nothing for those that have a test of their own.
fn ends(scenario: &str) -> Option<Result<StopReason, Code>> {
    Some(match scenario {
        "text" | "reasoning" | "long" | "flaky" => Ok(StopReason::EndTurn),
        "shell" | "parallel" | "no-arguments" | "malformed-call" | "cut-calls" => Ok(StopReason::ToolUse),
        "incomplete" | "incomplete-call" => Ok(StopReason::MaxTokens),
        "cut"
        | "cut-call"
        | "unfinished"
        | "goaway"
        | "failed-502"
        | "failed-server-error"
        | "failed-overloaded" => Err(Code::InferenceStreamInterrupted),
        "malformed" | "http-500" | "html" => Err(Code::InferenceProvider),
        "failed-rate-limit"
        | "failed-quota"
        | "failed-rate-limit-wait"
        | "http-402"
        | "quota"
        | "http-429"
        | "http-429-date"
        | "http-429-ms" => Err(Code::InferenceRateLimited),
        "http-503" | "http-529" | "http-503-wait" => Err(Code::InferenceOverloaded),
        "http-408" | "http-504" => Err(Code::InferenceTimeout),
        "failed-context-length" | "http-413" | "http-context-length" => Err(Code::InferenceContextOverflow),
        "failed-content-filter" | "filtered" | "http-content-filter" => Err(Code::InferenceContentFiltered),
        "http-400" | "secret-error" => Err(Code::InferenceInvalidRequest),
        "http-401" | "http-403" => Err(Code::InferenceUnauthorized),
        "http-404" => Err(Code::InferenceModelNotFound),
        _ => return None,
    })
}

/// How often a model is asked: three times for what may pass, once for what will not and for what went well.
fn attempts(scenario: &str, end: Result<StopReason, Code>) -> usize {
    use Code::{
        InferenceOverloaded, InferenceProvider, InferenceRateLimited, InferenceStreamInterrupted,
        InferenceTimeout,
    };
    let transient = [
        InferenceProvider,
        InferenceRateLimited,
        InferenceOverloaded,
        InferenceTimeout,
        InferenceStreamInterrupted,
    ];
    let is_tried_again = scenario == "flaky" || end.is_err_and(|code| transient.contains(&code));
    if is_tried_again { 3 } else { 1 }
}

#[track_caller]
fn what_was_seen_is_what_is_kept(seen: &Seen, case: &str) {
    match &seen.outcome {
        Ok(answer) => {
            assert_eq!(answer.message.said(), seen.text(), "{case}");
            let calls: Vec<_> = answer.message.tool_calls().cloned().collect();
            assert_eq!(calls, seen.ready(), "{case}");
        }
        Err(_) => assert_eq!(seen.turn_partial, seen.text(), "{case}"),
    }
}

// clause: D10
#[tokio::test]
async fn d10_every_scenario_is_tried_as_often_as_it_should_be_and_what_was_seen_is_kept_on_every_wire() {
    let provider = DemoProvider::start().await.unwrap();
    for wire in wires() {
        for listed in provider.scenarios() {
            let Some(expected) = ends(&listed.name) else { continue };
            let case = format!("{} on {}", listed.name, wire.path());
            let asked_before = provider.requests().len();
            let inference = inference(provider.url(), &wire, Limits::default(), RetryPolicy::default());
            // Whoever is flaky counts by what it is asked with.
            let request = playing(&format!("{} {}", listed.name, wire.path()));
            let turn = inference.start(request, CancellationToken::new());
            let seen = look(turn).await;
            let end = seen.outcome.as_ref().map(|answer| answer.stop).map_err(E::code);
            assert_eq!(end, expected, "{case}");
            let asked = provider.requests().len() - asked_before;
            assert_eq!(asked, attempts(&listed.name, expected), "{case}");
            what_was_seen_is_what_is_kept(&seen, &case);
            let said = match listed.name.as_str() {
                "flaky" => "It works now.",
                "cut" => "This is never ",
                "unfinished" => "This is all.",
                "malformed" => "This is still good ",
                "cut-calls" => "Two commands.",
                name if name.starts_with("failed-") || name == "goaway" => "This is as far as ",
                _ => continue,
            };
            assert_eq!(seen.text(), said, "{case}");
        }
    }
}

// clause: D09
#[tokio::test]
async fn d09_an_answer_that_stalls_keeps_what_was_said_on_every_wire() {
    let provider = DemoProvider::start().await.unwrap();
    for wire in wires() {
        let asked_before = provider.requests().len();
        let policy = RetryPolicy { stream_retries_max: 0, ..RetryPolicy::default() };
        let inference = inference(provider.url(), &wire, Limits::default(), policy);
        let turn = inference.start(playing("stall"), CancellationToken::new());
        let (seen, _) = look_past(turn, "I was about to say ").await;
        assert_eq!(seen.error().code(), Code::InferenceStreamInterrupted, "{}", wire.path());
        assert!(seen.error().to_string().contains("nothing came for too long"), "{}", seen.error());
        assert_eq!(provider.requests().len() - asked_before, 1);
        what_was_seen_is_what_is_kept(&seen, wire.path());
        assert_eq!(seen.text(), "I was about to say ");
    }
}

// clause: D05
#[tokio::test]
async fn d05_cancelled_while_a_real_provider_does_not_answer() {
    let provider = DemoProvider::start().await.unwrap();
    for (index, wire) in wires().iter().enumerate() {
        let inference = inference(provider.url(), wire, Limits::default(), RetryPolicy::default());
        let cancel = CancellationToken::new();
        let mut turn = inference.start(playing("no-headers"), cancel.clone());
        let asked = tokio::spawn(async move { turn.next().await });
        provider.wait_for(|request| request.number == index as u64 + 1).await;
        cancel.cancel();
        assert_eq!(asked.await.unwrap(), Err(E::Cancelled), "{}", wire.path());
    }
    assert_eq!(provider.requests().len(), 3, "nobody was asked again");
}

// clause: D05
#[tokio::test]
async fn d05_cancelled_while_it_waits_to_ask_a_real_provider_again() {
    let provider = DemoProvider::start().await.unwrap();
    for wire in wires() {
        let inference = inference(provider.url(), &wire, Limits::default(), RetryPolicy::default());
        // As long as the provider says, so that only the cancellation can end it in time.
        let policy = RetryPolicy { retry_after_cap_ms: 3_600_000, ..inference.policy().clone() };
        let inference = Inference::with_jitter(inference.pool().clone(), policy, Arc::new(FixedJitter(0)));
        let cancel = CancellationToken::new();
        let mut turn = inference.start(playing("http-503-wait"), cancel.clone());
        let waits = turn.next().await.unwrap();
        let wait = Duration::from_secs(7);
        assert!(matches!(waits, Some(Update::Retrying { wait: waits, .. }) if waits == wait), "{waits:?}");
        cancel.cancel();
        assert_eq!(turn.next().await, Err(E::Cancelled), "{}", wire.path());
    }
    assert_eq!(provider.requests().len(), 3, "nobody was asked again");
}

/// A provider that refuses whatever it is asked with this status, and says when to come back.
async fn refusing(status: u16) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let head = format!("HTTP/1.1 {status} No\r\nretry-after: 5\r\ncontent-length: 0\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        std::future::pending::<()>().await;
    });
    url
}

// clause: D08
#[tokio::test]
async fn d08_whatever_a_provider_refuses_with_it_is_asked_again_when_it_says() {
    let five = Duration::from_secs(5);
    for status in [408, 409, 425, 429, 500, 502, 503, 504, 520, 529] {
        for wire in wires() {
            let case = format!("{status} on {}", wire.path());
            let inference =
                inference(refusing(status).await, &wire, Limits::default(), RetryPolicy::default());
            let policy = RetryPolicy { retry_after_cap_ms: 120_000, ..inference.policy().clone() };
            let inference =
                Inference::with_jitter(inference.pool().clone(), policy, Arc::new(FixedJitter(0)));
            let mut turn = inference.start(question(), CancellationToken::new());
            let update = turn.next().await.unwrap();
            assert!(
                matches!(update, Some(Update::Retrying { wait, .. }) if wait == five),
                "{case}: {update:?}"
            );
        }
    }
}

/// A provider that sends a piece whenever it is told to, and then nothing, for as long as it is listened to.
async fn sending(pieces: Vec<String>) -> (String, Arc<Notify>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let next = Arc::new(Notify::new());
    let told = Arc::clone(&next);
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n").await.unwrap();
        for piece in pieces {
            told.notified().await;
            stream.write_all(piece.as_bytes()).await.unwrap();
        }
        std::future::pending::<()>().await;
    });
    (url, next)
}

fn data(lines: &[&str]) -> String {
    lines.iter().map(|line| format!("data: {line}\n\n")).collect()
}

/// What a provider sends of an answer, a piece at a time: one in which there is text, and signs of life.
fn alive(wire: &Wire) -> Vec<String> {
    let lines = match wire {
        Wire::Responses(_) => [
            r#"{"type":"response.output_text.delta","output_index":0,"delta":"So far."}"#,
            r#"{"type":"response.in_progress"}"#,
            r#"{"type":"response.completed","response":{}}"#,
        ],
        Wire::Chat(_) => [
            r#"{"choices":[{"index":0,"delta":{"content":"So far."}}]}"#,
            r#"{"choices":[]}"#,
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
        ],
        Wire::Anthropic(_) => [
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"So far."}}"#,
            r#"{"type":"ping"}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#,
        ],
    };
    let [text, ping, stop] = lines.map(|line| data(&[line]));
    let last = match wire {
        Wire::Responses(_) => stop,
        Wire::Chat(_) => stop + &data(&["[DONE]"]),
        Wire::Anthropic(_) => stop + &data(&[r#"{"type":"message_stop"}"#]),
    };
    vec![text, ": keep-alive\n\n".to_owned(), ping, "data: ".to_owned(), "\n\n".to_owned(), last]
}

/// A model that gives what another gave, with a pause before each.
struct Slow {
    events: Vec<ModelEvent>,
    pause: Duration,
}

#[async_trait]
impl Model for Slow {
    fn name(&self) -> &str {
        "slow"
    }

    async fn open(&self, _: &InferenceRequest) -> Result<ModelStream, Refusal> {
        let (sender, receiver) = mpsc::channel(1);
        let (events, pause) = (self.events.clone(), self.pause);
        tokio::spawn(async move {
            for event in events {
                tokio::time::sleep(pause).await;
                let _ = sender.send(Ok(event)).await;
            }
        });
        Ok(Box::pin(Received(receiver)))
    }
}

struct Received(mpsc::Receiver<Result<ModelEvent, Fault>>);

impl Stream for Received {
    type Item = Result<ModelEvent, Fault>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context)
    }
}

// clause: D09
#[tokio::test]
async fn d09_whatever_comes_of_a_provider_keeps_its_answer_from_counting_as_stalled() {
    for wire in wires() {
        let pieces = alive(&wire);
        let count = pieces.len();
        let (url, next) = sending(pieces).await;
        let inference = inference(url, &wire, Limits::default(), RetryPolicy::default());
        let mut stream = inference.pool().members()[0].model().open(&question()).await.unwrap();
        let mut events = Vec::new();
        for _ in 0..count {
            next.notify_one();
            events.push(poll_fn(|context| stream.as_mut().poll_next(context)).await.unwrap().unwrap());
        }
        assert_eq!(events.iter().filter(|event| **event == ModelEvent::Alive).count(), 4, "{events:?}");

        // The same at a pace at which only the signs of life keep it going.
        tokio::time::pause();
        let slow = Arc::new(Slow { events, pause: Duration::from_secs(50) });
        let breakers = Breakers::new(patient(), Arc::new(SystemClock::new()));
        let policy = RetryPolicy { idle_limit_ms: 60_000, ..RetryPolicy::default() };
        let inference = Inference::new(Pool::new([slow as Arc<dyn Model>], &breakers), policy);
        let seen = look(inference.start(question(), CancellationToken::new())).await;
        tokio::time::resume();
        assert_eq!(seen.answer().message.said(), "So far.", "{}", wire.path());
        assert_eq!(seen.waits(), [], "{}", wire.path());
    }
}

// clause: D09
#[tokio::test]
async fn d09_the_less_patient_of_provider_and_agent_says_when_an_answer_has_stalled() {
    let provider = DemoProvider::start().await.unwrap();
    let usual = RetryPolicy::never();
    let hasty = RetryPolicy { idle_limit_ms: 60_000, ..RetryPolicy::never() };
    for wire in wires() {
        for (policy, expected_s) in [(&usual, 1_200), (&hasty, 60)] {
            let limits = Limits { idle: Duration::from_secs(1_200), ..Limits::default() };
            let inference = inference(provider.url(), &wire, limits, policy.clone());
            let turn = inference.start(playing("stall"), CancellationToken::new());
            let (seen, waited) = look_past(turn, "I was about to say ").await;
            assert_eq!(seen.error().code(), Code::InferenceStreamInterrupted);
            // Not what the wall says: the clock stood still but for what was waited for.
            assert_eq!(waited.as_secs(), expected_s, "{}", wire.path());
        }
    }
}

// clause: D09
#[tokio::test]
async fn d09_an_answer_whose_end_was_said_is_whole_though_nothing_ends_its_stream() {
    let [_, chat, anthropic] = wires();
    let stop = r#"{"choices":[{"index":0,"delta":{"content":"So far."},"finish_reason":"stop"}]}"#;
    let said = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"So far."}}"#;
    let ends = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}"#;
    for (wire, lines) in [(chat, &[stop][..]), (anthropic, &[said, ends])] {
        let (url, next) = sending(vec![data(lines)]).await;
        next.notify_one();
        let policy = RetryPolicy { idle_limit_ms: 10_000, ..RetryPolicy::default() };
        let inference = inference(url, &wire, Limits::default(), policy);
        let mut turn = inference.start(question(), CancellationToken::new());
        for _ in lines {
            turn.next().await.unwrap().unwrap();
        }
        tokio::time::pause();
        let seen = look(turn).await;
        tokio::time::resume();
        assert_eq!(seen.answer().message.said(), "So far.", "{}", wire.path());
        assert_eq!(seen.waits(), [], "{}", wire.path());
    }
}
