//! The hub's end of the links to its edges.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use runyard_backend::link::frames::{Writer, frames};
use runyard_backend::link::{FromEdge, ToEdge};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::Engine;
use crate::driver::ToDriver;

/// How many messages wait for an edge. Each run has at most a few on their way.
const OUTGOING_MAX: usize = 4096;

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
}

impl EdgeHandle {
    /// Queues a message. Where the edge is gone it is lost, and whoever waits for it hears that the edge is gone.
    pub(crate) async fn send(&self, message: ToEdge) {
        let _ = self.outgoing.send(message).await;
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

    fn handles(&self) -> Vec<EdgeHandle> {
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

    /// Tells every edge the policy that counts now.
    pub async fn policy_changed(&self) {
        let policy = self.policy();
        for edge in self.edges_known().handles() {
            edge.send(ToEdge::Policy(Box::new(policy.clone()))).await;
        }
    }

    /// Speaks with an edge until its link closes.
    pub async fn attach<S: AsyncRead + AsyncWrite + Send + 'static>(&self, io: S) {
        let (mut incoming, outgoing) = frames::<S, FromEdge, ToEdge>(io);
        let Ok(Some(FromEdge::Hello { edge_id, version, sandbox })) = incoming.next().await else { return };
        let (sender, queue) = mpsc::channel(OUTGOING_MAX);
        // Goes with this call, also when it is dropped: while its half is there the edge believes in the link.
        let mut writing = JoinSet::new();
        writing.spawn(write(outgoing, queue));
        let handle = EdgeHandle { outgoing: sender };
        handle.send(ToEdge::Policy(Box::new(self.policy()))).await;
        self.edges_known().arrived(edge_id.clone(), version, sandbox, handle.clone());
        self.pump();
        loop {
            match incoming.next().await {
                Ok(Some(FromEdge::Batch { run, generation, edge_sequence, reports })) => {
                    self.to_driver(run, ToDriver::Batch { generation, edge_sequence, reports });
                }
                Ok(Some(FromEdge::Closed { run, generation })) => {
                    self.to_driver(run, ToDriver::Closed { generation });
                }
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
