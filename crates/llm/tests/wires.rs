//! Every scenario on every wire, against a provider that is really there.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::future::poll_fn;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use runyard_demo_provider::{DemoProvider, Options};
use runyard_llm::http::{Client, Limits, Roots, Unusable};
use runyard_llm::inference::{
    Effort, Fault, InferenceExecutionError as Error, InferenceRequest, InterruptCause, Message, Model,
    ModelEvent, ModelStream, Part, Reasoning, StopReason, ToolCall, ToolOutput,
};
use runyard_llm::wire::{
    AnthropicOptions, ChatOptions, Endpoint, MESSAGE_CHARS_MAX, ResponsesOptions, Wire, WireModel,
};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const KEY: &str = "sk-Sorrel-Dipper-6464";

fn wires() -> [Wire; 3] {
    [
        Wire::Responses(ResponsesOptions::default()),
        Wire::Chat(ChatOptions::default()),
        Wire::Anthropic(AnthropicOptions::default()),
    ]
}

/// A minute and a half before the end of the year 2999, when the demo provider's limit ends.
fn just_before() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(32_503_679_999 - 90)
}

fn endpoint(base_url: String) -> Endpoint {
    let key = Some(KEY.to_owned());
    Endpoint { provider: "demo".into(), base_url, key, model: "m-1".into(), limits: Limits::default() }
}

fn model(provider: &DemoProvider, wire: Wire) -> WireModel {
    let client = Arc::new(Client::new(Roots::System));
    WireModel::new(endpoint(provider.url()), wire, client).unwrap().with_clock(just_before)
}

fn asking(text: &str) -> InferenceRequest {
    InferenceRequest { messages: vec![Arc::new(Message::user(text))].into(), ..InferenceRequest::default() }
}

async fn next(stream: &mut ModelStream) -> Option<Result<ModelEvent, Fault>> {
    poll_fn(|context| stream.as_mut().poll_next(context)).await
}

/// What came of a question.
#[derive(Debug, Default, PartialEq)]
struct Came {
    text: String,
    thought: String,
    sealed: Vec<Option<Value>>,
    calls: Vec<Call>,
    has_usage: bool,
    end: Option<End>,
}

#[derive(Debug, Clone, PartialEq)]
struct Call {
    id: String,
    name: String,
    arguments: String,
    is_whole: bool,
}

#[derive(Debug, PartialEq)]
enum End {
    Stopped(StopReason),
    Fault(Fault),
    Refused(Error),
}

impl Came {
    fn take(&mut self, event: ModelEvent) {
        assert_eq!(self.end, None, "nothing comes after the end");
        match event {
            ModelEvent::Text(text) => self.text.push_str(&text),
            ModelEvent::Reasoning(text) => self.thought.push_str(&text),
            ModelEvent::ReasoningEnded { sealed } => self.sealed.push(sealed),
            ModelEvent::ToolCallStarted { index, id, name } => {
                assert_eq!(index as usize, self.calls.len(), "calls are counted in order");
                self.calls.push(Call { id, name, arguments: String::new(), is_whole: false });
            }
            ModelEvent::ToolCallArguments { index, text } => {
                assert!(!self.calls[index as usize].is_whole, "nothing is added to what is whole");
                self.calls[index as usize].arguments.push_str(&text);
            }
            ModelEvent::ToolCallEnded { index } => self.calls[index as usize].is_whole = true,
            ModelEvent::Usage(usage) => {
                assert!(usage.input_tokens > 0);
                self.has_usage = true;
            }
            ModelEvent::Alive => {}
            ModelEvent::Stopped(reason) => self.end = Some(End::Stopped(reason)),
        }
    }

    fn called(&self) -> Vec<(&str, &str, bool)> {
        self.calls.iter().map(|call| (call.name.as_str(), call.arguments.as_str(), call.is_whole)).collect()
    }
}

async fn ask(model: &WireModel, request: &InferenceRequest) -> Came {
    let mut came = Came::default();
    let mut stream = match model.open(request).await {
        Ok(stream) => stream,
        Err(refusal) => return Came { end: Some(End::Refused(refusal.error)), ..came },
    };
    while let Some(event) = next(&mut stream).await {
        match event {
            Ok(event) => came.take(event),
            Err(fault) => came.end = Some(End::Fault(fault)),
        }
    }
    assert!(came.end.is_some(), "a stream ends with a reason or a fault");
    came
}

/// How a scenario ends on each wire: the Responses API, chat completions, Anthropic Messages.
fn ends(scenario: &str) -> [End; 3] {
    use InterruptCause::{ConnectionReset, GoAway, Provider5xxMidStream};
    let stopped = |reason| std::array::from_fn(|_| End::Stopped(reason));
    let cut = |cause| End::Fault(Fault::Interrupted(cause));
    let failed = |error| End::Fault(Fault::Failed(error));
    let said = || "it said".to_owned();
    let limited = |retry_after| Error::RateLimited { message: said(), retry_after };
    let overloaded = |retry_after| Error::Overloaded { message: said(), retry_after };
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    match scenario {
        "text" | "reasoning" | "long" | "key" => stopped(StopReason::EndTurn),
        "shell" | "parallel" | "no-arguments" | "malformed-call" => stopped(StopReason::ToolUse),
        "incomplete" | "incomplete-call" => stopped(StopReason::MaxTokens),
        "cut" | "cut-call" | "cut-calls" | "unfinished" => std::array::from_fn(|_| cut(ConnectionReset)),
        "malformed" => std::array::from_fn(|_| failed(Error::Provider(said()))),
        "goaway" => std::array::from_fn(|_| cut(GoAway)),
        "failed-502" => std::array::from_fn(|_| cut(Provider5xxMidStream(502))),
        "failed-server-error" => std::array::from_fn(|_| cut(Provider5xxMidStream(500))),
        "failed-overloaded" => [503, 503, 529].map(|status| cut(Provider5xxMidStream(status))),
        "failed-rate-limit" | "failed-quota" => std::array::from_fn(|_| failed(limited(None))),
        "failed-rate-limit-wait" => std::array::from_fn(|_| failed(limited(seconds(7)))),
        "failed-context-length" => std::array::from_fn(|_| failed(Error::ContextOverflow(said()))),
        "failed-content-filter" | "filtered" => {
            std::array::from_fn(|_| failed(Error::ContentFiltered(said())))
        }
        "http-400" | "secret-error" => std::array::from_fn(|_| End::Refused(Error::InvalidRequest(said()))),
        "http-401" | "http-403" => std::array::from_fn(|_| End::Refused(Error::Unauthorized(said()))),
        "http-402" | "quota" => std::array::from_fn(|_| End::Refused(limited(None))),
        "http-404" => std::array::from_fn(|_| End::Refused(Error::ModelNotFound(said()))),
        "http-408" | "http-504" => std::array::from_fn(|_| End::Refused(Error::Timeout(said()))),
        "http-413" | "http-context-length" => {
            std::array::from_fn(|_| End::Refused(Error::ContextOverflow(said())))
        }
        "http-429" => std::array::from_fn(|_| End::Refused(limited(seconds(1)))),
        "http-429-date" => std::array::from_fn(|_| End::Refused(limited(seconds(90)))),
        "http-429-ms" => std::array::from_fn(|_| End::Refused(limited(Some(Duration::from_millis(1250))))),
        "http-500" | "html" => std::array::from_fn(|_| End::Refused(Error::Provider(said()))),
        "http-503" | "http-529" => std::array::from_fn(|_| End::Refused(overloaded(None))),
        "http-503-wait" => std::array::from_fn(|_| End::Refused(overloaded(seconds(7)))),
        "http-content-filter" => std::array::from_fn(|_| End::Refused(Error::ContentFiltered(said()))),
        other => panic!("what does {other} end with?"),
    }
}

/// Whatever the provider said, as one text: what is compared is which error it is.
fn unsaid(end: End) -> End {
    let unsaid = |error| {
        let said = "it said".to_owned();
        match error {
            Error::Provider(_) => Error::Provider(said),
            Error::RateLimited { retry_after, .. } => Error::RateLimited { message: said, retry_after },
            Error::Overloaded { retry_after, .. } => Error::Overloaded { message: said, retry_after },
            Error::Timeout(_) => Error::Timeout(said),
            Error::ContextOverflow(_) => Error::ContextOverflow(said),
            Error::InvalidRequest(_) => Error::InvalidRequest(said),
            Error::Unauthorized(_) => Error::Unauthorized(said),
            Error::ModelNotFound(_) => Error::ModelNotFound(said),
            Error::ContentFiltered(_) => Error::ContentFiltered(said),
            other => other,
        }
    };
    match end {
        End::Refused(error) => End::Refused(unsaid(error)),
        End::Fault(Fault::Failed(error)) => End::Fault(Fault::Failed(unsaid(error))),
        other => other,
    }
}

/// What is played otherwise, or needs more than one answer; each has a test of its own here or among those who use it.
const ELSEWHERE: [&str; 12] = [
    "approval",
    "flaky",
    "no-headers",
    "patch",
    "question",
    "secret-echo",
    "secret-pieces",
    "secret-shell",
    "shells",
    "slow",
    "stall",
    "tool",
];

// clause: D05
#[tokio::test]
async fn d05_every_scenario_ends_as_it_should_on_every_wire() {
    let provider = DemoProvider::start().await.unwrap();
    for listed in provider.scenarios() {
        let name = listed.name;
        if ELSEWHERE.contains(&name.as_str()) {
            continue;
        }
        let text =
            if name == "key" { format!("[[scenario:key {KEY}]]") } else { format!("[[scenario:{name}]]") };
        for (wire, expected) in wires().into_iter().zip(ends(&name)) {
            let came = ask(&model(&provider, wire.clone()), &asking(&text)).await;
            if let Some(End::Fault(Fault::Failed(error)) | End::Refused(error)) = &came.end {
                assert!(!format!("{error:?} {error}").contains(KEY), "{name}: {error}");
            }
            assert_eq!(unsaid(came.end.unwrap()), expected, "{name} on {}", wire.path());
        }
    }
}

#[tokio::test]
async fn d09_what_came_before_the_end_was_given_on_every_wire() {
    let provider = DemoProvider::start().await.unwrap();
    for wire in wires() {
        let model = model(&provider, wire.clone());
        let play = async |scenario: &str| ask(&model, &asking(&format!("[[scenario:{scenario}]]"))).await;
        let path = wire.path();

        let text = play("text").await;
        assert_eq!((text.text.as_str(), text.has_usage), ("Hello from the demo provider.", true), "{path}");
        assert_eq!(play("long").await.text.len(), 4000 * 62, "{path}");
        assert_eq!(play("cut").await.text, "This is never ", "{path}");
        assert_eq!(play("unfinished").await.text, "This is all.", "{path}");
        assert_eq!(play("failed-502").await.text, "This is as far as ", "{path}");
        assert!(play("incomplete").await.has_usage, "{path}");

        let thought = play("reasoning").await;
        assert_eq!(thought.thought, "The person says hello; I say hello too.", "{path}");
        assert_eq!(
            (thought.text.as_str(), thought.sealed.len()),
            ("Hello, after some thought.", 1),
            "{path}"
        );

        let echo = |word: &str| format!(r#"{{"cmd":"echo {word}"}}"#);
        let parallel = play("parallel").await;
        let (left, right) = (echo("left"), echo("right"));
        let both = vec![("exec_command", left.as_str(), true), ("exec_command", right.as_str(), true)];
        assert_eq!(parallel.called(), both, "{path}");
        assert_ne!(parallel.calls[0].id, parallel.calls[1].id);
        assert_eq!(play("no-arguments").await.called(), [("list_files", "", true)], "{path}");
        assert_eq!(
            play("malformed-call").await.called(),
            [("exec_command", r#"{"cmd": "touch never"#, true)]
        );
        assert_eq!(play("cut-call").await.called(), [("exec_command", r#"{"cmd":"touch"#, false)], "{path}");
        assert_eq!(
            play("incomplete-call").await.called(),
            [("exec_command", r#"{"cmd":"touch"#, false)],
            "{path}"
        );
        let cut = play("cut-calls").await;
        let one = echo("one");
        let whole_and_not =
            [("exec_command", one.as_str(), true), ("exec_command", r#"{"cmd":"touch"#, false)];
        assert_eq!((cut.text.as_str(), cut.called()), ("Two commands.", whole_and_not.to_vec()), "{path}");
    }
}

#[tokio::test]
async fn a_call_and_a_thought_go_back_with_the_result_and_the_answer_goes_on() {
    let provider = DemoProvider::start().await.unwrap();
    for wire in wires() {
        let model = model(&provider, wire.clone());
        let mut request = asking("[[scenario:shell touch a.txt]]");
        let Call { id, name, arguments, .. } = ask(&model, &request).await.calls[0].clone();
        request.effort = Some(Effort::Low);
        let thinking = InferenceRequest { effort: request.effort, ..asking("[[scenario:reasoning]]") };
        let thought = ask(&model, &thinking).await;
        let call = ToolCall { id: id.clone(), name, arguments: ToolCall::arguments_of(&arguments) };
        let reasoning = Reasoning { text: thought.thought, sealed: thought.sealed[0].clone() };
        let content = vec![Part::Reasoning(reasoning), Part::ToolCall(call)];
        request.messages.push(Arc::new(Message { role: runyard_llm::inference::Role::Assistant, content }));
        let output = ToolOutput { call_id: id.clone(), content: "done".into(), is_error: false };
        request.messages.push(Arc::new(Message::tool(output)));
        assert_eq!(ask(&model, &request).await.text, "The command has run.", "{}", wire.path());

        let sent = provider.requests().pop().unwrap();
        assert_eq!((sent.path.as_str(), sent.key()), (format!("/v1/{}", wire.path()).as_str(), Some(KEY)));
        let sent = sent.json();
        let back = match wire {
            Wire::Responses(_) => {
                assert_eq!(sent["store"], false);
                sent["input"][1]["encrypted_content"].clone()
            }
            Wire::Chat(_) => sent["messages"][1]["reasoning_content"].clone(),
            Wire::Anthropic(_) => sent["messages"][1]["content"][0]["signature"].clone(),
        };
        let expected = match wire {
            Wire::Responses(_) => "sealed-by-the-demo-provider",
            Wire::Chat(_) => "The person says hello; I say hello too.",
            Wire::Anthropic(_) => "signed-by-the-demo-provider",
        };
        assert_eq!(back, expected);
        // Another provider would not know what to do with it, nor would another model.
        for (provider, model) in [("another", "m-1"), ("demo", "m-2")] {
            let other = wire.encode(provider, model, &request).to_string();
            assert!(!other.contains(expected), "{other}");
        }
    }
}

#[tokio::test]
async fn d09_nothing_for_the_idle_limit_is_a_stall() {
    let provider = DemoProvider::start().await.unwrap();
    for wire in wires() {
        let mut stream = model(&provider, wire).open(&asking("[[scenario:stall]]")).await.unwrap();
        let mut came = Came::default();
        while came.text != "I was about to say " {
            came.take(next(&mut stream).await.unwrap().unwrap());
        }
        // From here on only the clock can move.
        tokio::time::pause();
        let fault = next(&mut stream).await.unwrap().unwrap_err();
        assert_eq!(fault, Fault::Interrupted(InterruptCause::IdleStall));
        assert!(next(&mut stream).await.is_none());
        tokio::time::resume();
    }
}

#[tokio::test]
async fn d05_no_head_in_time_is_a_timeout() {
    let provider = DemoProvider::start().await.unwrap();
    for (index, wire) in wires().into_iter().enumerate() {
        let model = model(&provider, wire);
        let asked = tokio::spawn(async move { model.open(&asking("[[scenario:no-headers]]")).await.err() });
        provider.wait_for(|request| request.number == index as u64 + 1).await;
        tokio::time::pause();
        assert!(matches!(asked.await.unwrap().unwrap().error, Error::Timeout(_)));
        tokio::time::resume();
    }
}

#[tokio::test]
async fn d05_a_provider_that_is_not_there_is_a_provider_that_failed() {
    let gone = DemoProvider::start().await.unwrap();
    let url = gone.url();
    drop(gone);
    for wire in wires() {
        let model =
            WireModel::new(endpoint(url.clone()), wire, Arc::new(Client::new(Roots::System))).unwrap();
        // The port may still be open for a moment, and then gives no answer.
        let error = model.open(&asking("hello")).await.err().unwrap().error;
        assert!(matches!(error, Error::Provider(_)), "{error:?}");
        assert_eq!(model.name(), "demo/m-1");
    }
}

#[tokio::test]
async fn a_wrong_key_is_unauthorized_and_never_repeated() {
    let options = Options { keys: vec!["another-key".into()], ..Options::default() };
    let provider = DemoProvider::start_with(options).await.unwrap();
    for wire in wires() {
        let model = model(&provider, wire);
        let End::Refused(error) = ask(&model, &asking("hello")).await.end.unwrap() else { panic!() };
        assert!(matches!(error, Error::Unauthorized(_)), "{error:?}");
        assert!(!format!("{error:?} {model:?}").contains(KEY));
    }
    let provider = DemoProvider::start().await.unwrap();
    for wire in wires() {
        let came = ask(&model(&provider, wire), &asking("[[scenario:secret-error]]")).await;
        let End::Refused(Error::InvalidRequest(message)) = came.end.unwrap() else { panic!() };
        assert_eq!(message, "The key *** may not do this.");
    }
}

/// Plays a stream of events to whoever asks, and ends when the other side is gone.
async fn playing(body: String) -> (String, tokio::task::JoinHandle<()>) {
    replying(format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n{body}")).await
}

/// The same with the head of the answer.
async fn replying(answer: String) -> (String, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let provider = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(answer.as_bytes()).await.unwrap();
        // Returns when the other side is gone, whether it said so or not.
        let _ = stream.read_to_end(&mut Vec::new()).await;
    });
    (url, provider)
}

#[tokio::test]
async fn a_key_in_the_middle_of_an_answer_is_not_repeated_in_its_error() {
    for wire in wires() {
        // So long that a key that was cut first would be there by half.
        let long = "x".repeat(MESSAGE_CHARS_MAX - 5);
        let error =
            format!(r#"{{"type": "error", "error": {{"code": "unheard_of", "message": "{long}{KEY}"}}}}"#);
        let (url, _provider) = playing(format!("data: {error}\n\n")).await;
        let model = WireModel::new(endpoint(url), wire, Arc::new(Client::new(Roots::System))).unwrap();
        let Some(End::Fault(Fault::Failed(Error::Provider(message)))) =
            ask(&model, &asking("hello")).await.end
        else {
            panic!()
        };
        assert_eq!(message, format!("{long}***"));
    }
}

// clause: D05, D08
#[tokio::test]
async fn d05_a_refusal_whose_body_cannot_be_read_is_what_its_status_and_its_headers_say() {
    let table = [
        (401, End::Refused(Error::Unauthorized("status 401".into()))),
        (403, End::Refused(Error::Unauthorized("status 403".into()))),
        (
            429,
            End::Refused(Error::RateLimited {
                message: "status 429".into(),
                retry_after: Some(Duration::from_secs(7)),
            }),
        ),
        (400, End::Refused(Error::InvalidRequest("status 400".into()))),
    ];
    for (status, expected) in table {
        let headers = "content-type: application/json\r\ncontent-encoding: gzip\r\nretry-after: 7";
        let (url, _provider) =
            replying(format!("HTTP/1.1 {status} No\r\n{headers}\r\ncontent-length: 2\r\n\r\n\u{1f}\u{1}"))
                .await;
        let [wire, ..] = wires();
        let model = WireModel::new(endpoint(url), wire, Arc::new(Client::new(Roots::System))).unwrap();
        assert_eq!(ask(&model, &asking("hello")).await.end, Some(expected));
    }
    let (url, _provider) = replying("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n".into()).await;
    let [wire, ..] = wires();
    let model = WireModel::new(endpoint(url), wire, Arc::new(Client::new(Roots::System))).unwrap();
    let end = ask(&model, &asking("hello")).await.end;
    assert!(matches!(end, Some(End::Refused(Error::Provider(_)))), "{end:?}");
}

#[tokio::test]
async fn an_answer_is_whole_when_its_end_was_said_though_the_connection_is_not_ended() {
    let finish = r#"{"choices": [{"index": 0, "delta": {"content": "Hello."}, "finish_reason": "stop"}]}"#;
    let (url, _provider) = playing(format!("data: {finish}\n\n")).await;
    let [_, wire, _] = wires();
    let model = WireModel::new(endpoint(url), wire, Arc::new(Client::new(Roots::System))).unwrap();
    let mut stream = model.open(&asking("hello")).await.unwrap();
    assert_eq!(next(&mut stream).await, Some(Ok(ModelEvent::Text("Hello.".into()))));
    tokio::time::pause();
    assert_eq!(next(&mut stream).await, Some(Ok(ModelEvent::Stopped(StopReason::EndTurn))));
}

#[test]
fn an_endpoint_that_cannot_be_used_is_refused_at_once() {
    let made = |change: fn(&mut Endpoint)| {
        let mut endpoint = endpoint("https://api.example.com/v1".into());
        change(&mut endpoint);
        let [wire, ..] = wires();
        WireModel::new(endpoint, wire, Arc::new(Client::new(Roots::System))).err()
    };
    assert_eq!(made(|_| {}), None);
    assert_eq!(made(|endpoint| endpoint.key = None), None);
    assert_eq!(made(|endpoint| endpoint.key = Some("a b".into())), Some(Unusable::Key));
    assert_eq!(made(|endpoint| endpoint.base_url = "nowhere".into()), Some(Unusable::NotAUrl));
    assert_eq!(made(|endpoint| endpoint.base_url = "https://u:p@h/v1".into()), Some(Unusable::Credentials));
}

#[tokio::test]
async fn a_dropped_answer_ends_its_connection() {
    for wire in wires() {
        let (url, provider) = playing(": here\n\n".into()).await;
        let client = Arc::new(Client::new(Roots::System));
        let stream =
            WireModel::new(endpoint(url), wire, client).unwrap().open(&asking("hello")).await.unwrap();
        drop(stream);
        provider.await.unwrap();
    }
}
