//! What agents asked for before: the requests in the logs of recent runs, to try a rule on before it is stored.

use std::collections::BTreeMap;

use runyard_domain::gate::{Effect, Request};
use runyard_domain::run::{Resolution, RunEvent};
use runyard_domain::{ApprovalId, RunId, SessionId, Timestamp};
use runyard_store::LoggedEvent;

use crate::{Engine, EngineError, Standing};

/// So many runs are looked at, the newest first.
const RUNS_MAX: usize = 200;
/// So many events are looked at.
const EVENTS_MAX: usize = 50_000;
/// So many events are read at a time.
const PAGE: u32 = 500;
/// So many runs are listed at a time.
const RUNS_PAGE: u32 = 50;

/// A request that an agent once made.
#[derive(Clone, Debug, PartialEq)]
pub struct PastRequest {
    /// The run that made it.
    pub run: RunId,
    /// The run's session.
    pub session: SessionId,
    /// The agent profile.
    pub agent: String,
    /// The workspace's label.
    pub workspace: String,
    /// When.
    pub at: Timestamp,
    /// What was asked for, as it is stored.
    pub request: Request,
    /// What the gate made of it then.
    pub effect: Effect,
    /// How a person decided, where one was asked.
    pub decided: Option<Resolution>,
}

/// The requests of recent runs, the newest run first.
#[derive(Clone, Debug, Default)]
pub struct Past {
    /// What was asked for.
    pub requests: Vec<PastRequest>,
    /// How many runs were looked at.
    pub runs: u64,
    /// Whether there is more than was looked at.
    pub more: bool,
}

impl Engine {
    /// What agents asked for in recent runs.
    pub async fn past_requests(&self) -> Result<Past, EngineError> {
        let (mut past, mut before, mut events_left) = (Past::default(), None, EVENTS_MAX);
        loop {
            let (runs, more) = self.runs(None, before, RUNS_PAGE).await?;
            before = runs.last().map(|last| last.run.id);
            for standing in &runs {
                if past.runs as usize >= RUNS_MAX || events_left == 0 {
                    past.more = true;
                    return Ok(past);
                }
                past.runs += 1;
                self.look_back(standing, &mut past, &mut events_left).await?;
            }
            if !more {
                return Ok(past);
            }
        }
    }

    async fn look_back(
        &self,
        standing: &Standing,
        past: &mut Past,
        events_left: &mut usize,
    ) -> Result<(), EngineError> {
        let (mut after, mut asked) = (0, BTreeMap::new());
        while *events_left > 0 && after < standing.sequence {
            let limit = PAGE.min(u32::try_from(*events_left).unwrap_or(PAGE));
            let events = self.events(standing.run.id, after, limit).await?;
            for event in &events {
                note(standing, event, &mut past.requests, &mut asked)?;
            }
            *events_left -= events.len().min(*events_left);
            // What is counted is there; were it not, this ends all the same.
            after = events.last().map_or(standing.sequence, |last| last.sequence);
        }
        past.more |= after < standing.sequence;
        Ok(())
    }
}

/// Takes up what an event says about a request.
fn note(
    standing: &Standing,
    event: &LoggedEvent,
    requests: &mut Vec<PastRequest>,
    asked: &mut BTreeMap<ApprovalId, usize>,
) -> Result<(), EngineError> {
    let envelope = event.envelope()?;
    if !matches!(
        envelope.kind.as_str(),
        "run.gate.judged" | "run.approval.requested" | "run.approval.resolved"
    ) {
        return Ok(());
    }
    let made = |request: Request, effect| PastRequest {
        run: standing.run.id,
        session: standing.run.created.session_id,
        agent: standing.run.created.agent_id.clone(),
        workspace: standing.run.created.workspace.label.clone(),
        at: envelope.timestamp,
        request,
        effect,
        decided: None,
    };
    match RunEvent::read(&envelope.kind, &envelope.payload)? {
        RunEvent::GateJudged(judged) => requests.push(made(judged.request, judged.effect)),
        RunEvent::ApprovalRequested(open) => {
            asked.insert(open.approval_id, requests.len());
            requests.push(made(open.request, Effect::Ask));
        }
        RunEvent::ApprovalResolved(resolved) => {
            let at = asked.get(&resolved.approval_id);
            if let Some(request) = at.and_then(|at| requests.get_mut(*at)) {
                request.decided = Some(resolved.resolution);
            }
        }
        _ => {}
    }
    Ok(())
}
