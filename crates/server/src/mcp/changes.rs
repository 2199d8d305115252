//! Telling clients what changed in runs and approvals: every live run is followed, and whatever it records is told by address.
//!
//! It only says that something is worth reading again. What it says comes after the commit, so whoever reads then sees it.

use std::collections::BTreeSet;
use std::time::Duration;

use runyard_engine::{Engine, EngineError};
use runyard_surfaces::mcp::Changes;
use serde::Deserialize;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{APPROVALS, RUNS};

/// So many live runs are followed at a time. Those beyond are followed as soon as others have ended.
const RUNS_FOLLOWED_MAX: usize = 256;
/// So many runs are looked at together.
const PAGE: u32 = 256;
/// How often new runs are looked for.
const LOOK: Duration = Duration::from_millis(250);
/// What a run records within this time is told together.
const TOGETHER: Duration = Duration::from_millis(100);
/// Stands for what a run recorded before it was followed.
const MISSED: &[u8] = br#"{"type":"run.approval.requested"}"#;
/// The states of a run that has not ended.
const LIVE: [&str; 7] =
    ["created", "planned", "accepted", "preparing", "running", "needs_approval", "applying"];

/// Tells what changes until the hub stops.
pub(super) async fn tell(engine: Engine, changes: Changes, stop: CancellationToken) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = follow_all(&engine, &changes) => {}
    }
}

async fn follow_all(engine: &Engine, changes: &Changes) {
    let (mut followed, mut running) = (BTreeSet::new(), JoinSet::new());
    // The newest run of the last look, if there was one, and whether also older ones may have to be followed.
    let (mut newest, mut older) = (None, true);
    loop {
        let mut found = Vec::new();
        // In this order, so that no run is in neither.
        match engine.runs(None, None, PAGE).await {
            Ok((runs, more)) => {
                let is_new = |run| newest.is_some_and(|newest| Some(run) > newest);
                found.extend(runs.iter().map(|standing| standing.run.id).filter(|run| is_new(*run)));
                older |= more && !found.is_empty() && found.len() == runs.len();
                newest = Some(runs.first().map(|standing| standing.run.id).max(newest.flatten()));
            }
            Err(error) => tracing::warn!(%error, "new runs cannot be looked for"),
        }
        let mut found: Vec<_> = found.into_iter().map(|run| (run, 0)).collect();
        if older && followed.len() < RUNS_FOLLOWED_MAX {
            for state in LIVE {
                let runs = engine.runs(Some(state), None, PAGE).await.map(|(runs, _)| runs);
                let live = runs.unwrap_or_default();
                found.extend(live.iter().map(|standing| (standing.run.id, standing.sequence)));
            }
            older = false;
        }
        found.retain(|(run, _)| !followed.contains(run));
        for (run, after) in found {
            if followed.len() >= RUNS_FOLLOWED_MAX {
                older = true;
                break;
            }
            if followed.insert(run) {
                let following = follow(engine.clone(), changes.clone(), run.to_string(), after);
                running.spawn(async move { (run, following.await) });
            }
        }
        tokio::time::sleep(LOOK).await;
        while let Some(ended) = running.try_join_next() {
            let Ok((run, ended)) = ended else { continue };
            followed.remove(&run);
            if let Err(error) = ended {
                tracing::warn!(%run, %error, "a run cannot be followed");
                older = true;
            }
        }
    }
}

/// Tells what a run records after a place, to its end.
async fn follow(engine: Engine, changes: Changes, run: String, after: u64) -> Result<(), EngineError> {
    let id = run.parse().map_err(|_| EngineError::NotFound { what: format!("run {run}") })?;
    let mut tail = engine.follow(id, after).await?;
    if after > 0 {
        // Somebody may have begun to watch before it was followed.
        told(&changes, &run, std::iter::once(MISSED));
    }
    loop {
        let events = tail.next().await?;
        if told(&changes, &run, events.iter().map(|event| &*event.body)) {
            return Ok(());
        }
        tokio::time::sleep(TOGETHER).await;
    }
}

/// What of an event matters here.
#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    payload: Payload,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Payload {
    approval_id: Option<String>,
}

/// Tells what these events of a run change. Says whether it is over.
fn told<'a>(changes: &Changes, run: &str, events: impl Iterator<Item = &'a [u8]>) -> bool {
    let (addresses, over) = addresses(run, events);
    addresses.into_iter().for_each(|address| changes.resource(address));
    over
}

/// The addresses at which something else is read from now on, and whether the run is over.
fn addresses<'a>(run: &str, events: impl Iterator<Item = &'a [u8]>) -> (BTreeSet<String>, bool) {
    let of_run = format!("{RUNS}/{run}");
    let mut addresses = BTreeSet::from([format!("{of_run}/events")]);
    let mut over = false;
    for event in events {
        let Ok(Event { kind, payload }) = serde_json::from_slice(event) else { continue };
        match kind.as_str() {
            "run.approval.requested" | "run.approval.resolved" | "run.approval.snoozed" => {
                addresses.insert(APPROVALS.to_owned());
                addresses.extend(payload.approval_id.map(|id| format!("{APPROVALS}/{id}")));
            }
            "run.diff.ready" | "run.applying" | "run.applied" => {
                addresses.insert(format!("{of_run}/diff"));
            }
            "run.created" | "run.planned" | "run.accepted" | "run.preparing" | "run.started" => {}
            "run.completed" | "run.failed" | "run.cancelled" => over = true,
            // A note: where the run stands is what it was.
            _ => continue,
        }
        addresses.extend([of_run.clone(), RUNS.to_owned()]);
    }
    (addresses, over)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(events: &[&str], expected: &[&str], over: bool) {
        let (found, ended) = addresses("run_1", events.iter().map(|event| event.as_bytes()));
        let expected = expected.iter().map(|rest| format!("runyard://{rest}")).collect();
        assert_eq!((found, ended), (expected, over), "{events:?}");
    }

    #[test]
    fn j01_what_changes_is_told_by_its_address() {
        let delta = r#"{"type":"run.message.delta","payload":{"text":"x"}}"#;
        check(&[delta], &["runs/run_1/events"], false);
        let asked = r#"{"type":"run.approval.requested","payload":{"approvalId":"apr_1"}}"#;
        let approvals = ["approvals", "approvals/apr_1", "runs", "runs/run_1", "runs/run_1/events"];
        check(&[delta, asked], &approvals, false);
        let ready = r#"{"type":"run.diff.ready","payload":{}}"#;
        let ended = r#"{"type":"run.completed","payload":{}}"#;
        check(&[ready, ended], &["runs", "runs/run_1", "runs/run_1/diff", "runs/run_1/events"], true);
    }
}
