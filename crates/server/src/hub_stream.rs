//! Which runs changed, over the whole hub: one message at once, then at most a few a second while something changes.
//!
//! It only says what is worth reading again, and says it after the commit, so whoever reads then sees it. One task looks for all
//! readers, and only while there are any: it is woken by what is committed, here or by another hub on the same store.

mod standings;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{Extension, State};
use axum::response::Response;
use runyard_control::plain;
use runyard_engine::Engine;
use runyard_surfaces::http::{ActionError, Actor, Visit, refusal};
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::standings::{Standings, look};
use crate::Shared;
use crate::frames::Place;
use crate::stream::{ALIVE, HEARTBEAT};

/// The least time between two looks.
const PAUSE: Duration = Duration::from_millis(250);
/// Looking takes at most this part of the time, however many runs there are.
const LOOKING_SHARE: u32 = 8;

/// Looks on behalf of all readers.
pub(crate) struct HubWatch {
    engine: Engine,
    stop: CancellationToken,
    latest: watch::Sender<Arc<Standings>>,
    wanted: Arc<Notify>,
    begun: AtomicBool,
}

impl HubWatch {
    pub(crate) fn new(engine: Engine, stop: CancellationToken) -> Self {
        let (latest, wanted) = (watch::Sender::new(Arc::default()), Arc::default());
        HubWatch { engine, stop, latest, wanted, begun: AtomicBool::new(false) }
    }

    /// What is found from now on.
    fn subscribe(&self) -> watch::Receiver<Arc<Standings>> {
        let latest = self.latest.subscribe();
        if !self.begun.swap(true, Ordering::Relaxed) {
            let (engine, stop) = (self.engine.clone(), self.stop.clone());
            let (found, wanted) = (self.latest.clone(), Arc::clone(&self.wanted));
            tokio::spawn(async move {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = keep_looking(&engine, &found, &wanted) => {}
                }
            });
        }
        self.wanted.notify_one();
        latest
    }
}

async fn keep_looking(engine: &Engine, found: &watch::Sender<Arc<Standings>>, wanted: &Notify) {
    let (mut committed, mut known) = (engine.committed(), Standings::default());
    loop {
        while found.receiver_count() == 0 {
            wanted.notified().await;
        }
        // What is committed from here on is news for the next look.
        committed.mark_unchanged();
        let begun = Instant::now();
        match look(engine, &mut known).await {
            Ok(()) => {
                let now = Arc::new(known.clone());
                found.send_if_modified(|latest| {
                    let differs = **latest != *now;
                    *latest = now;
                    differs
                });
            }
            Err(error) => tracing::warn!(%error, "what changed cannot be looked for"),
        }
        tokio::time::sleep(PAUSE.max(begun.elapsed() * LOOKING_SHARE)).await;
        // A snoozed approval comes back without anything being committed, so it is looked now and then in any case.
        tokio::select! {
            Ok(()) = committed.changed() => {}
            () = wanted.notified() => {}
            () = tokio::time::sleep(HEARTBEAT) => {}
        }
    }
}

/// `GET /api/v1/stream`.
pub(crate) async fn stream(
    State(shared): State<Arc<Shared>>,
    Extension(actor): Extension<Arc<Actor>>,
    Extension(visit): Extension<Visit>,
) -> Response {
    let surface = visit.surface();
    match begin(&shared, &actor, visit).await {
        Ok(response) => response,
        Err(error) => refusal(surface, None, error),
    }
}

async fn begin(shared: &Shared, actor: &Actor, visit: Visit) -> Result<Response, ActionError> {
    plain::look_at_all(&shared.engine, actor, "hub_stream").await?;
    // First subscribed, then looked: what changes in between is told.
    let found = shared.watch.subscribe();
    let mut now = Standings::default();
    look(&shared.engine, &mut now).await.map_err(|error| {
        tracing::error!(%error, "the runs of the hub cannot be read");
        ActionError::new(error.code(), "The runs of this hub cannot be read; its log says why.")
    })?;
    shared.streams.open(visit, move |out| tell(found, now, out))
}

async fn tell(mut found: watch::Receiver<Arc<Standings>>, begin: Standings, out: Place) {
    let (mut told, mut approvals) = (begin.runs, begin.approvals);
    out.put(message(&[], approvals)).await;
    loop {
        match tokio::time::timeout(HEARTBEAT, found.changed()).await {
            Err(_) => {
                out.put(Bytes::from_static(ALIVE)).await;
                continue;
            }
            Ok(Err(_)) => return,
            Ok(Ok(())) => {}
        }
        let now = Arc::clone(&found.borrow_and_update());
        let news: Vec<Value> = now
            .runs
            .iter()
            .filter(|(run, (_, sequence))| told.get(*run).is_none_or(|(_, told)| told < sequence))
            .map(|(run, (state, sequence))| json!({ "id": run, "state": state, "lastSequence": sequence }))
            .collect();
        if news.is_empty() && now.approvals == approvals {
            continue;
        }
        (told, approvals) = (now.runs.clone(), now.approvals);
        out.put(message(&news, approvals)).await;
    }
}

/// Whoever is told reads again what they show, so it has no id to go on from.
fn message(runs: &[Value], approvals: usize) -> Bytes {
    let data = json!({ "runs": runs, "approvals": approvals });
    format!("event: changed\ndata: {data}\n\n").into()
}
