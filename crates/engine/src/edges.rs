//! The hub's end of the links to its edges.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use runyard_backend::link::frames::{Writer, frames};
use runyard_backend::link::{CheckLine, FromEdge, ToEdge};
use runyard_domain::{BackendProfile, SessionId};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use crate::driver::ToDriver;
use crate::{Engine, EngineError};

/// How many messages wait for an edge. Each run has at most a few on their way.
const OUTGOING_MAX: usize = 4096;
/// How long an edge may take to answer a question; it gives up by itself before that.
const ANSWER_MAX: Duration = Duration::from_secs(120);

/// An edge, as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeInfo {
    /// Its id.
    pub id: String,
    /// Its version.
    pub version: String,
    /// What confines the processes that it starts.
    pub sandbox: String,
    /// Whether it can be reached.
    pub connected: bool,
    /// How many runs are active on it.
    pub active_runs: usize,
}

/// Sends to an edge.
#[derive(Clone)]
pub(crate) struct EdgeHandle {
    outgoing: mpsc::Sender<ToEdge>,
    checks: Arc<Questions<Vec<CheckLine>>>,
    closings: Arc<Questions<bool>>,
}

/// Questions to an edge that somebody waits for on one link.
struct Questions<T>(Mutex<Awaited<T>>);

struct Awaited<T> {
    asked: u64,
    answers: HashMap<u64, oneshot::Sender<T>>,
}

impl<T> Default for Questions<T> {
    fn default() -> Self {
        Questions(Mutex::new(Awaited { asked: 0, answers: HashMap::new() }))
    }
}

impl<T> Questions<T> {
    fn locked(&self) -> MutexGuard<'_, Awaited<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self) -> (u64, oneshot::Receiver<T>) {
        let (answer, answered) = oneshot::channel();
        let mut awaited = self.locked();
        // Those that nobody waits for any more.
        awaited.answers.retain(|_, answer| !answer.is_closed());
        awaited.asked += 1;
        let id = awaited.asked;
        awaited.answers.insert(id, answer);
        (id, answered)
    }

    fn end(&self, id: u64, found: T) {
        if let Some(answer) = self.locked().answers.remove(&id) {
            let _ = answer.send(found);
        }
    }
}

impl EdgeHandle {
    /// Queues a message. Where the edge is gone it is lost, and whoever waits for it hears that the edge is gone.
    pub(crate) async fn send(&self, message: ToEdge) {
        let _ = self.outgoing.send(message).await;
    }

    /// Has a backend profile checked; nothing where the edge goes away or takes too long.
    async fn check(&self, profile: BackendProfile) -> Option<Vec<CheckLine>> {
        let (id, answered) = self.checks.begin();
        self.send(ToEdge::Check { id, profile: Box::new(profile) }).await;
        self.answer(answered).await
    }

    /// Has everything removed that is kept of a session; whether it is, or nothing where the edge does not say.
    async fn close_session(&self, session: SessionId) -> Option<bool> {
        let (id, answered) = self.closings.begin();
        self.send(ToEdge::CloseSession { id, session }).await;
        self.answer(answered).await
    }

    async fn answer<T>(&self, answered: oneshot::Receiver<T>) -> Option<T> {
        tokio::select! {
            biased;
            answer = tokio::time::timeout(ANSWER_MAX, answered) => answer.ok()?.ok(),
            () = self.outgoing.closed() => None,
        }
    }
}

struct Known {
    version: String,
    sandbox: String,
    handle: Option<EdgeHandle>,
}

/// The edges that were seen.
#[derive(Default)]
pub(crate) struct Edges(Mutex<BTreeMap<String, Known>>);

impl Edges {
    pub(crate) fn handle(&self, id: &str) -> Option<EdgeHandle> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(id)?.handle.clone()
    }

    pub(crate) fn handles(&self) -> Vec<EdgeHandle> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.values().filter_map(|edge| edge.handle.clone()).collect()
    }

    fn arrived(&self, id: String, version: String, sandbox: String, handle: EdgeHandle) {
        let known = Known { version, sandbox, handle: Some(handle) };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id, known);
    }

    /// Its link is closed, unless it has another one by now.
    fn left(&self, id: &str, link: &EdgeHandle) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get_mut(id)
            && known.handle.as_ref().is_some_and(|handle| handle.outgoing.same_channel(&link.outgoing))
        {
            known.handle = None;
        }
    }
}

impl Engine {
    /// The edges that were seen since this process began.
    pub fn edges(&self) -> Vec<EdgeInfo> {
        let known = self.edges_known().0.lock().unwrap_or_else(PoisonError::into_inner);
        let info = |(id, edge): (&String, &Known)| EdgeInfo {
            id: id.clone(),
            version: edge.version.clone(),
            sandbox: edge.sandbox.clone(),
            connected: edge.handle.is_some(),
            active_runs: self.schedule().active_on(id),
        };
        known.iter().map(info).collect()
    }

    /// Has every edge of this hub remove what it keeps of a session: the agents' own files of its conversation.
    pub(crate) async fn forget_session(&self, session: SessionId) -> Result<(), EngineError> {
        for id in self.own_edges() {
            let edge = self.edges_known().handle(id).ok_or(EngineError::EdgeSilent)?;
            match edge.close_session(session).await {
                Some(true) => {}
                Some(false) => return Err(EngineError::SessionKept { session }),
                None => return Err(EngineError::EdgeSilent),
            }
        }
        Ok(())
    }

    /// Has an edge of this hub look whether a backend profile could be used there. Gives the edge and what it found.
    pub async fn check_backend(&self, name: &str) -> Result<(String, Vec<CheckLine>), EngineError> {
        let (profile, _) = self.catalog().backend(name)?;
        let there = |id: &String| Some((id.clone(), self.edges_known().handle(id)?));
        let (id, edge) = self.own_edges().iter().find_map(there).ok_or(EngineError::EdgeSilent)?;
        let found = edge.check(profile.clone()).await.ok_or(EngineError::EdgeSilent)?;
        Ok((id, found))
    }

    /// Speaks with an edge until its link closes.
    pub async fn attach<S: AsyncRead + AsyncWrite + Send + 'static>(&self, io: S) {
        let (mut incoming, outgoing) = frames::<S, FromEdge, ToEdge>(io);
        let Ok(Some(FromEdge::Hello { edge_id, version, sandbox })) = incoming.next().await else { return };
        let (sender, queue) = mpsc::channel(OUTGOING_MAX);
        // Goes with this call, also when it is dropped: while its half is there the edge believes in the link.
        let mut writing = JoinSet::new();
        writing.spawn(write(outgoing, queue));
        let handle = EdgeHandle { outgoing: sender, checks: Arc::default(), closings: Arc::default() };
        let arrive = || self.edges_known().arrived(edge_id.clone(), version, sandbox, handle.clone());
        self.tell_policy_first(&handle, arrive).await;
        self.pump();
        loop {
            match incoming.next().await {
                Ok(Some(FromEdge::Batch { run, generation, edge_sequence, reports })) => {
                    self.to_driver(run, ToDriver::Batch { generation, edge_sequence, reports });
                }
                Ok(Some(FromEdge::Closed { run, generation })) => {
                    self.to_driver(run, ToDriver::Closed { generation });
                }
                Ok(Some(FromEdge::Checked { id, found })) => handle.checks.end(id, found),
                Ok(Some(FromEdge::SessionClosed { id, removed })) => handle.closings.end(id, removed),
                Ok(Some(FromEdge::Hello { .. })) => {}
                Ok(None) => break,
                Err(error) => {
                    tracing::error!(edge = edge_id, %error, "the link to the edge broke");
                    break;
                }
            }
        }
        self.edges_known().left(&edge_id, &handle);
        drop(writing);
        self.schedule().tell_all_on(&edge_id, || ToDriver::EdgeGone);
    }
}

async fn write<S: AsyncWrite>(
    mut outgoing: Writer<tokio::io::WriteHalf<S>, ToEdge>,
    mut queue: mpsc::Receiver<ToEdge>,
) {
    while let Some(message) = queue.recv().await {
        if outgoing.send(&message).await.is_err() {
            break;
        }
    }
}
