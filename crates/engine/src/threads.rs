//! The conversations that our own agent keeps in the logs of its runs, put together again for a session that goes on with one.

use std::collections::VecDeque;

use runyard_backend::LeftOver;
use runyard_domain::run::{Failure, FailureKind, Run, RunEvent, RunState, ThreadRecorded, ToolOutcome};
use runyard_domain::{Code, RunId};
use runyard_store::LoggedEvent;

use crate::{Engine, EngineError};

/// So many runs may share a conversation.
const RUNS_MAX: usize = 10_000;
/// So many bytes of it are put together; its agent keeps what it reads of it far below.
const BYTES_MAX: usize = 256 * 1024 * 1024;
/// So many events are read at a time.
const PAGE: u32 = 500;
/// One part of a conversation has about so many bytes at most on the link.
const PART_BYTES_MAX: usize = 2 * 1024 * 1024;

/// So many of the last steps are looked at that a run may have left without a result; one answer calls no more.
const LEFT_MAX: usize = 256;

const RECORDED: &str = "run.thread.recorded";
const CALLED: &str = "run.tool.call";
const ENDED: &str = "run.tool.result";

/// The conversation that a run goes on with.
#[derive(Default)]
pub(crate) struct History {
    /// What was recorded of it, oldest first, in parts for the link.
    pub(crate) parts: Vec<Vec<ThreadRecorded>>,
    /// What is known of calls that the run itself may have left without a result, or the one before where it has not begun.
    pub(crate) left: Option<LeftOver>,
}

/// What one run recorded of its conversation.
#[derive(Default)]
struct Told {
    /// With the size of each record.
    recorded: Vec<(usize, ThreadRecorded)>,
    /// Its last steps that nobody saw the end of.
    begun: VecDeque<String>,
}

impl Engine {
    /// The conversation that a run goes on with, or why it cannot.
    pub(crate) async fn history(&self, run: &Run) -> Result<Result<History, Failure>, EngineError> {
        let (mut bytes, mut of_runs) = (0, Vec::new());
        let mut left = None;
        let earlier = self.earlier_in_thread(run).await?;
        for id in std::iter::once(run.id).chain(earlier) {
            if of_runs.len() >= RUNS_MAX {
                return Ok(Err(too_long()));
            }
            let Told { recorded, begun } = self.of_thread(id, &mut bytes).await?;
            // What has no result was called by the answer that came last.
            let is_its_own = id == run.id && run.turns > 0;
            if left.is_none() && (is_its_own || recorded.iter().any(|(_, recorded)| has_answer(recorded))) {
                let rejected = if is_its_own { None } else { rejected(&self.run(id).await?.run) };
                left = Some(LeftOver { begun: begun.into_iter().collect(), rejected });
            }
            of_runs.push(recorded);
            if bytes > BYTES_MAX {
                return Ok(Err(too_long()));
            }
        }
        Ok(Ok(History { parts: parts(of_runs.into_iter().rev().flatten()), left }))
    }

    /// The runs that had part in the conversation before this one, the latest first; no more than may share one.
    pub(crate) async fn earlier_in_thread(&self, run: &Run) -> Result<Vec<RunId>, EngineError> {
        let mut earlier = Vec::new();
        let mut before = run.created.parent_run_id.filter(|_| run.created.thread.is_some());
        while let Some(id) = before.filter(|_| earlier.len() < RUNS_MAX) {
            let parent = self.run(id).await?.run;
            if parent.thread != run.created.thread {
                break;
            }
            earlier.push(id);
            before = parent.created.parent_run_id.filter(|_| parent.created.thread.is_some());
        }
        Ok(earlier)
    }

    /// What one run recorded of its conversation, up to where it is too much.
    async fn of_thread(&self, run: RunId, bytes: &mut usize) -> Result<Told, EngineError> {
        let (mut after, mut told) = (0, Told::default());
        loop {
            let events = self.events(run, after, PAGE).await?;
            let Some(last) = events.last().filter(|_| *bytes <= BYTES_MAX) else { return Ok(told) };
            after = last.sequence;
            for event in &events {
                let size = event.body.len();
                match read(event)? {
                    Some(RunEvent::ThreadRecorded(recorded)) => {
                        *bytes += size;
                        told.recorded.push((size, recorded));
                    }
                    Some(RunEvent::ToolCall(call)) => told.begin(call.call),
                    // One that was given up may have been made all the same.
                    Some(RunEvent::ToolResult(result)) if result.outcome != ToolOutcome::Cancelled => {
                        told.begun.retain(|begun| *begun != result.call);
                    }
                    _ => {}
                }
            }
        }
    }
}

impl Told {
    fn begin(&mut self, call: String) {
        if self.begun.len() >= LEFT_MAX {
            self.begun.pop_front();
        }
        self.begun.push_back(call);
    }
}

fn has_answer(recorded: &ThreadRecorded) -> bool {
    recorded.messages.iter().any(|message| message["role"] == "assistant")
}

/// Why a person rejected what a run asked for, where that ended it.
fn rejected(run: &Run) -> Option<String> {
    match &run.state {
        RunState::Cancelled { cancelled } if cancelled.code == Some(Code::ApprovalRejected) => {
            Some(cancelled.reason.clone())
        }
        _ => None,
    }
}

fn too_long() -> Failure {
    let message = "the conversation is too long to be gone on with; start another session";
    Failure::of_backend(FailureKind::BackendFailed, message)
}

/// An event, where it says something about the conversation.
fn read(event: &LoggedEvent) -> Result<Option<RunEvent>, EngineError> {
    let envelope = event.envelope()?;
    if ![RECORDED, CALLED, ENDED].contains(&envelope.kind.as_str()) {
        return Ok(None);
    }
    Ok(Some(RunEvent::read(&envelope.kind, &envelope.payload)?))
}

/// Puts as many together as fit into one part.
fn parts(recorded: impl Iterator<Item = (usize, ThreadRecorded)>) -> Vec<Vec<ThreadRecorded>> {
    let mut parts: Vec<Vec<ThreadRecorded>> = Vec::new();
    let mut room = 0;
    for (bytes, recorded) in recorded {
        match parts.last_mut() {
            Some(part) if bytes <= room => {
                room -= bytes;
                part.push(recorded);
            }
            _ => {
                room = PART_BYTES_MAX.saturating_sub(bytes);
                parts.push(vec![recorded]);
            }
        }
    }
    parts
}
