//! The conversations that our own agent keeps in the logs of its runs, put together again for a session that goes on with one.

use runyard_domain::RunId;
use runyard_domain::run::{Failure, FailureKind, Run, RunEvent, ThreadRecorded};
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

const RECORDED: &str = "run.thread.recorded";

impl Engine {
    /// What was recorded of the conversation that a run goes on with, oldest first, in parts for the link; or why the run cannot
    /// go on with it.
    pub(crate) async fn history(
        &self,
        run: &Run,
    ) -> Result<Result<Vec<Vec<ThreadRecorded>>, Failure>, EngineError> {
        let (mut bytes, mut of_runs) = (0, Vec::new());
        let earlier = self.earlier_in_thread(run).await?;
        for id in std::iter::once(run.id).chain(earlier) {
            if of_runs.len() >= RUNS_MAX {
                return Ok(Err(too_long()));
            }
            of_runs.push(self.of_thread(id, &mut bytes).await?);
            if bytes > BYTES_MAX {
                return Ok(Err(too_long()));
            }
        }
        Ok(Ok(parts(of_runs.into_iter().rev().flatten())))
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

    /// What one run recorded of its conversation, with the size of each record, up to where it is too much.
    async fn of_thread(
        &self,
        run: RunId,
        bytes: &mut usize,
    ) -> Result<Vec<(usize, ThreadRecorded)>, EngineError> {
        let (mut after, mut found) = (0, Vec::new());
        loop {
            let events = self.events(run, after, PAGE).await?;
            let Some(last) = events.last().filter(|_| *bytes <= BYTES_MAX) else { return Ok(found) };
            after = last.sequence;
            for event in &events {
                let Some(recorded) = read(event)? else { continue };
                *bytes += event.body.len();
                found.push((event.body.len(), recorded));
            }
        }
    }
}

fn too_long() -> Failure {
    let message = "the conversation is too long to be gone on with; start another session";
    Failure::of_backend(FailureKind::BackendFailed, message)
}

fn read(event: &LoggedEvent) -> Result<Option<ThreadRecorded>, EngineError> {
    let envelope = event.envelope()?;
    if envelope.kind != RECORDED {
        return Ok(None);
    }
    match RunEvent::read(&envelope.kind, &envelope.payload)? {
        RunEvent::ThreadRecorded(recorded) => Ok(Some(recorded)),
        _ => Ok(None),
    }
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
