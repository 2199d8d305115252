//! What leaves the edge: no secret, no private path, bounded, in few pieces.

use runyard_backend::link::{Report, ToEdge};
use runyard_backend::{Access, JournalError, Signal, Stream};
use runyard_domain::run::{ProjectedHow, ToolOutcome, TurnOutcome};
use runyard_domain::{ProviderCredential, SecretRef, SecretScope};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::harness::{Place, TOKEN, delta, message, shell};

fn output(stream: Stream, text: &str) -> Signal {
    Signal::ToolOutput { call: "c".to_owned(), stream, text: text.to_owned() }
}

fn result() -> Signal {
    Signal::ToolResult {
        call: "c".to_owned(),
        outcome: ToolOutcome::Succeeded,
        code: None,
        summary: "done".to_owned(),
    }
}

fn turn_ended() -> Signal {
    Signal::TurnEnded { outcome: TurnOutcome::Completed }
}

async fn recorded(recording: JoinHandle<Result<(), JournalError>>) {
    recording.await.unwrap().unwrap();
}

/// The text of a message's pieces, whose offsets must fit together.
fn text_of(reports: &[Report]) -> String {
    let mut whole = String::new();
    for report in reports {
        if let Report::Delta { text, offset, .. } = report {
            assert_eq!(*offset, whole.len() as u64, "{reports:?}");
            whole.push_str(text);
        }
    }
    whole
}

#[tokio::test(start_paused = true)]
async fn b11_a_secret_that_is_split_over_pieces_never_leaves_the_edge() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    let puppet = hub.start(place.open(1)).await;
    for cut in 1..TOKEN.len() {
        let (one, other) = TOKEN.split_at(cut);
        let whole = message(&format!("it is {TOKEN}, see"));
        let batch = vec![delta("it is "), delta(one), delta(other), delta(", see"), whole];
        let recording = puppet.record(batch);
        let reports = hub.reports().await;
        recorded(recording).await;
        let said = serde_json::to_string(&reports).unwrap();
        assert!(!said.contains(TOKEN), "{said}");
        let text = text_of(&reports);
        assert!(text.starts_with("it is [REDACTED:known:") && text.ends_with("], see"), "{text}");
        let Some(Report::Signal(Signal::Message { text: whole, .. })) = reports.last() else {
            panic!("{reports:?}")
        };
        assert_eq!(*whole, text, "the pieces are the message");
    }
}

#[tokio::test(start_paused = true)]
async fn b11_a_secret_that_is_split_over_batches_and_streams_of_output_never_leaves_the_edge() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    let puppet = hub.start(place.open(1)).await;
    let (one, other) = TOKEN.split_at(9);
    recorded(puppet.record(vec![output(Stream::Stdout, one)])).await;
    hub.hears_nothing().await;
    let recording =
        puppet.record(vec![output(Stream::Stderr, "warning\n"), output(Stream::Stdout, other), result()]);
    let reports = hub.reports().await;
    recorded(recording).await;
    let said = serde_json::to_string(&reports).unwrap();
    assert!(!said.contains(one) && !said.contains(other), "{said}");
    assert!(said.contains("[REDACTED:known:") && said.contains("warning"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn c15_private_paths_are_shown_relative_to_the_workspace() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    let open = place.open(1);
    let (root, directory) = (place.root(), place.run_directory(open.run));
    let puppet = hub.start(open).await;
    let (checkout, root, directory) =
        (directory.join("checkout/src/a.rs"), root.join("src/a.rs"), directory.join("home/x"));
    let [checkout, root, directory] = [checkout, root, directory].map(|path| path.display().to_string());
    let recording = puppet.record(vec![
        Signal::FileRead { path: checkout.clone() },
        Signal::Patch { files: vec![checkout.clone(), root.clone()], summary: format!("in {directory}") },
        Signal::ToolCall {
            call: "c".to_owned(),
            tool: "edit".to_owned(),
            summary: format!("edit {checkout}"),
            arguments: json!({"path": root, "token": TOKEN}),
            idempotent: false,
        },
        Signal::Ask { key: "k".to_owned(), request: shell(&format!("cat {checkout} {TOKEN}")) },
    ]);
    let reports = hub.reports().await;
    recorded(recording).await;
    let files = vec!["src/a.rs".to_owned(), "src/a.rs".to_owned()];
    assert_eq!(reports[0], Report::Signal(Signal::FileRead { path: "src/a.rs".to_owned() }));
    assert_eq!(reports[1], Report::Signal(Signal::Patch { files, summary: "in <run>/home/x".to_owned() }));
    let Report::Signal(Signal::ToolCall { summary, arguments, .. }) = &reports[2] else {
        panic!("{reports:?}")
    };
    assert_eq!((summary.as_str(), &arguments["path"]), ("edit src/a.rs", &json!("src/a.rs")));
    let Report::Asked { request, redacted: true, .. } = &reports[3] else { panic!("{reports:?}") };
    let shown = serde_json::to_string(request).unwrap();
    assert!(shown.contains("cat src/a.rs [REDACTED:known:"), "{shown}");
    assert!(!serde_json::to_string(&reports).unwrap().contains(TOKEN));
}

#[tokio::test(start_paused = true)]
async fn b09_small_pieces_are_put_together_and_wait_only_a_moment() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    let puppet = hub.start(place.open(1)).await;
    for number in 0..100 {
        recorded(puppet.record(vec![delta(&format!("{number}\n"))])).await;
    }
    let expected: String = (0..100).map(|number| format!("{number}\n")).collect();
    let reports = hub.reports().await;
    assert_eq!((reports.len(), text_of(&reports)), (1, expected));
}

#[tokio::test(start_paused = true)]
async fn b17_what_an_edge_reads_never_crosses_its_link() {
    const KEY: &str = "plain-words-that-no-form-gives-away";
    let place = Place::new().await;
    place.secret("puppet", "auth.json", &json!({ "OPENAI_API_KEY": KEY }).to_string());
    let mut hub = place.link().await;
    let mut open = place.open(1);
    open.backend_profile.required_secret_keys = vec!["auth.json".to_owned()];
    let secret_ref = SecretRef { name: "puppet".to_owned(), keys: vec!["auth.json".to_owned()] };
    let credential = ProviderCredential { profile: "puppet".to_owned(), secret_ref };
    open.execution_policy.secret_scope = Some(SecretScope { provider_credentials: vec![credential] });
    hub.send(ToEdge::Open(Box::new(open))).await;
    let mut crossed = Vec::new();
    for _ in 0..3 {
        crossed.extend(hub.reports().await);
    }
    let projected = |report: &Report| matches!(report, Report::Projected { profile, keys, how: ProjectedHow::Home } if profile == "puppet" && keys == &["auth.json"]);
    assert!(crossed.iter().any(projected), "{crossed:?}");
    let puppet = hub.puppet().await;
    let Access::Projected(files) = &puppet.spec.access else { panic!("{:?}", puppet.spec.access) };
    assert!(String::from_utf8_lossy(&files[0].content).contains(KEY), "the adapter has it");
    let said = vec![
        delta(&KEY[..9]),
        delta(&KEY[9..]),
        message(&format!("the key is {KEY}")),
        output(Stream::Stderr, &format!("{KEY}\n")),
        result(),
        Signal::Error { failure_kind: None, message: format!("refused: {KEY}"), retrying: false },
        Signal::Reasoning { item: "r".to_owned(), text: KEY.to_owned() },
        Signal::Raw { told: true, line: format!("{{\"key\":\"{KEY}\"}}") },
        Signal::Ask { key: "k".to_owned(), request: shell(&format!("curl -H 'x: {KEY}' host")) },
        turn_ended(),
    ];
    let recording = puppet.record(said);
    crossed.extend(hub.reports().await);
    recorded(recording).await;
    let crossed = serde_json::to_string(&crossed).unwrap();
    assert!(!crossed.contains(KEY), "{crossed}");
    assert!(crossed.contains("[REDACTED:known:"), "{crossed}");
}

#[tokio::test(start_paused = true)]
async fn c08_pieces_of_different_streams_keep_their_order() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    let puppet = hub.start(place.open(1)).await;
    let (out, err) = (|text| output(Stream::Stdout, text), |text| output(Stream::Stderr, text));
    let recording =
        puppet.record(vec![out("1\n"), err("2\n"), err("3\n"), out("4\n"), delta("5\n"), turn_ended()]);
    let reports = hub.reports().await;
    recorded(recording).await;
    let texts: Vec<&str> = reports
        .iter()
        .filter_map(|report| match report {
            Report::Delta { text, .. } | Report::Output { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(texts, ["1\n", "2\n3\n", "4\n", "5\n"]);
}

#[tokio::test(start_paused = true)]
async fn b09_what_a_step_prints_beyond_the_limit_is_counted_and_kept_as_its_log() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    let puppet = hub.start(place.open(1)).await;
    let line = format!("{}\n", "x".repeat(1023));
    for (lines, logged) in [(128_u64, 0), (200, 72), (900, 512)] {
        let mut printing = vec![output(Stream::Stdout, &line); usize::try_from(lines).unwrap()];
        printing.push(result());
        let recording = puppet.record(printing);
        let (mut kept, mut omitted, mut next, mut log) = (0, 0, 0, 0);
        for report in hub.reports().await {
            let (text, offset, left_out) = match report {
                Report::Output { text, offset, omitted, .. } => (text.len() as u64, offset, omitted),
                Report::Log { text, offset, omitted, lost, .. } => {
                    log += text.len() as u64;
                    assert_eq!(128 * 1024 + log + lost, lines * 1024, "what is lost is said");
                    (0, offset, omitted)
                }
                _ => continue,
            };
            assert_eq!(offset, next);
            kept += text;
            omitted += left_out;
            next = offset + text + left_out;
        }
        recorded(recording).await;
        assert_eq!((kept, kept + omitted, log), (128 * 1024, lines * 1024, logged * 1024));
    }
}

#[tokio::test(start_paused = true)]
async fn b09_long_messages_and_arguments_are_cut_and_say_so() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    let puppet = hub.start(place.open(1)).await;
    let call = Signal::ToolCall {
        call: "c".to_owned(),
        tool: "edit".to_owned(),
        summary: "é".repeat(4096),
        arguments: json!({"content": "x".repeat(70_000)}),
        idempotent: false,
    };
    let recording = puppet.record(vec![message(&"é".repeat(200_000)), call]);
    let reports = hub.reports().await;
    recorded(recording).await;
    let Report::Signal(Signal::Message { text, .. }) = &reports[0] else { panic!("{reports:?}") };
    assert!(text.ends_with("… 137856 bytes left out") && text.len() < 257 * 1024);
    let Report::Signal(Signal::ToolCall { summary, arguments, .. }) = &reports[1] else {
        panic!("{reports:?}")
    };
    assert!(summary.ends_with("… 4096 bytes left out"), "{summary}");
    assert_eq!(*arguments, json!({"omittedBytes": 70_014}));
}

#[tokio::test(start_paused = true)]
async fn j05_a_thread_is_passed_on_as_it_is_or_not_at_all() {
    let place = Place::new().await;
    let mut hub = place.link().await;
    let puppet = hub.start(place.open(1)).await;
    let status = |thread: Option<&str>| Signal::Status {
        phase: "ready".to_owned(),
        model: None,
        version: None,
        thread: thread.map(str::to_owned),
        usage: None,
    };
    let thread = "019a8a52-7d5c-7e33-9f5e-0f4d3a1c2b10";
    let recording = puppet.record(vec![status(Some(thread)), status(Some(TOKEN))]);
    assert_eq!(hub.reports().await, [status(Some(thread)), status(None)].map(Report::Signal));
    recorded(recording).await;
}
