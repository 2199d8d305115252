//! Codex's lines to redacted, put-together batches on the link, against reading the same bytes as untyped JSON and nothing more.
//!
//! The hub is played, and reads of a batch only its number and what kinds of report are in it: what a real hub makes of them is
//! another part's matter.

use std::hint::black_box;
use std::time::{Duration, Instant};

use runyard_backend::Start;
use runyard_backend::link::frames::{Reader, Writer};
use runyard_backend::link::{OpenRun, Stage as RunStage, ToEdge, Work};
use runyard_domain::gate::Policy;
use runyard_domain::run::{ApprovalPolicyRef, Task};
use runyard_domain::{ExecutionPolicy, Preparation, RunId, SessionId};
use serde::Deserialize;
use serde_json::Value;
use tokio::io::duplex;

use crate::played::{Stage, profile, rules};
use crate::speech::Speech;
use crate::{Asked, median, ms, speed};

/// How much of the link is on its way at most, as in a hub.
const LINK_BYTES: usize = 256 * 1024;

pub(crate) fn to_batches(asked: &Asked) {
    let speech = Speech::of(asked.size(16, 1) * 1_000_000);
    let bytes = speech.bytes.len();
    println!(
        "  {:.1} MB in {} lines, {} of them requests",
        bytes as f64 / 1e6,
        speech.lines,
        speech.pauses.len()
    );
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (mut plain, mut batched) = (Vec::new(), Vec::new());
    for _ in 0..asked.size(7, 2) {
        plain.push(untyped(&speech.bytes));
        batched.push(runtime.block_on(through_edge(&speech)));
    }
    let counted = batched[0].counted;
    let (plain, batched) = (median(plain), median(batched.into_iter().map(|round| round.took)));
    println!("  to untyped values:           {:>6.1} MB/s ({:.1} ms)", speed(bytes, plain), ms(plain));
    println!("  to batches at the hub's end: {:>6.1} MB/s ({:.1} ms)", speed(bytes, batched), ms(batched));
    println!(
        "  share: {:.2} (aim: at least 0.33); {} batches with {} reports",
        plain.as_secs_f64() / batched.as_secs_f64(),
        counted.batches,
        counted.reports
    );
}

fn untyped(bytes: &[u8]) -> Duration {
    let begun = Instant::now();
    for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        black_box(serde_json::from_slice::<Value>(line).unwrap());
    }
    begun.elapsed()
}

#[derive(Clone, Copy, Default)]
struct Counted {
    batches: usize,
    reports: usize,
}

struct Round {
    took: Duration,
    counted: Counted,
}

/// As much of what an edge says as the played hub needs.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Seen {
    message: String,
    run: Option<RunId>,
    #[serde(default)]
    generation: u64,
    #[serde(default)]
    edge_sequence: u64,
    #[serde(default)]
    reports: Vec<Kind>,
}

#[derive(Deserialize)]
struct Kind {
    report: String,
    #[serde(default)]
    signal: String,
    #[serde(default)]
    failure: Value,
    #[serde(default)]
    ending: Value,
}

/// From the start of codex to the batch that says that its turn is over.
async fn through_edge(speech: &Speech) -> Round {
    let stage = Stage::new(speech).await;
    let edge = stage.edge();
    let (near, far) = duplex(LINK_BYTES);
    let serving = tokio::spawn(async move { edge.serve(far).await });
    let (read, write) = tokio::io::split(near);
    let (mut hears, mut says) = (Reader::<_, Seen>::new(read), Writer::<_, ToEdge>::new(write));
    says.send(&ToEdge::Policy(Box::new(Policy { rules: rules(), ..Policy::default() }))).await.unwrap();
    says.send(&ToEdge::Open(Box::new(open(&stage)))).await.unwrap();
    let mut counted = Counted::default();
    let took = loop {
        let seen = hears.next().await.unwrap().expect("the link is open");
        let Seen { message, run: Some(run), generation, edge_sequence, reports } = seen else { continue };
        assert_eq!(message, "batch", "the session goes on");
        let over = reports.iter().any(ends_the_turn);
        counted.batches += 1;
        counted.reports += reports.len();
        if over {
            break stage.begun().elapsed();
        }
        says.send(&ToEdge::Recorded { run, generation, edge_sequence, granted: Vec::new() }).await.unwrap();
    };
    drop((hears, says));
    let _ = serving.await.unwrap();
    Round { took, counted }
}

/// Anything that would keep the turn from its end is none to be measured.
fn ends_the_turn(Kind { report, signal, failure, ending }: &Kind) -> bool {
    let broken = matches!(report.as_str(), "failed" | "asked") || signal == "ended";
    assert!(!broken, "{report} {signal} {failure} {ending}");
    signal == "turn_ended"
}

fn open(stage: &Stage) -> OpenRun {
    OpenRun {
        run: RunId::from_parts(1, &[1; 10]),
        generation: 1,
        session: SessionId::from_parts(1, &[1; 10]),
        agent_id: "codex".to_owned(),
        backend_profile: profile("codex"),
        workspace: stage.workspace.reference(),
        execution_policy: ExecutionPolicy::default(),
        approval_policy: ApprovalPolicyRef { preset: "default".to_owned(), version: 0 },
        stage: RunStage::Planned,
        preparation: Preparation::default(),
        rules_used: Vec::new(),
        work: Work::default(),
        start: Start::Fresh {
            task: Task::Text { text: "look around".to_owned(), redacted: false },
            thread: None,
        },
        history: Vec::new(),
        left: None,
        run_token: "ryr_run_token_0123456789".to_owned(),
        usage: None,
    }
}
