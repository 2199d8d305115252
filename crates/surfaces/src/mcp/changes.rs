//! Telling clients that a resource or a list changed.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::SubscriptionContext;
use rmcp::{Peer, RoleServer};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// So many changes wait for a client that is slow. One that misses some is told that all it watches may have changed, and all
/// lists.
const CHANGES_AHEAD_MAX: usize = 256;
/// So many resources may be watched by one client.
pub(super) const WATCHED_MAX: usize = 256;

/// What changed.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Change {
    Resource(Arc<str>),
    Tools,
    Prompts,
    Resources,
}

/// Where an application tells what changed. Cloning is cheap; all clones tell the same clients.
#[derive(Clone)]
pub struct Changes(broadcast::Sender<Change>);

impl Default for Changes {
    fn default() -> Self {
        Changes(broadcast::channel(CHANGES_AHEAD_MAX).0)
    }
}

impl Changes {
    /// What is read at this address is no longer what it was.
    pub fn resource(&self, uri: impl Into<Arc<str>>) {
        // Nobody may be listening.
        let _ = self.0.send(Change::Resource(uri.into()));
    }

    /// There are other tools.
    pub fn tools(&self) {
        let _ = self.0.send(Change::Tools);
    }

    /// There are other prompts.
    pub fn prompts(&self) {
        let _ = self.0.send(Change::Prompts);
    }

    /// There are other resources.
    pub fn resources(&self) {
        let _ = self.0.send(Change::Resources);
    }

    /// All that changes from now on.
    pub(super) fn coming(&self) -> Coming {
        Coming(self.0.subscribe())
    }
}

/// Changes that nobody has been told of yet.
pub(super) struct Coming(broadcast::Receiver<Change>);

impl Coming {
    /// Tells a client of the newer wire, until it is no longer there.
    pub(super) async fn tell_subscription(mut self, subscription: &SubscriptionContext) {
        let sink = subscription.sink();
        let watched = sink.accepted().resource_subscriptions.clone().unwrap_or_default();
        loop {
            let change = tokio::select! {
                () = subscription.cancelled() => return,
                change = self.0.recv() => change,
            };
            // What was not asked for is refused by the sink, and that is no failure.
            match change {
                Ok(Change::Resource(uri)) => drop(sink.notify_resource_updated(&*uri).await),
                Ok(Change::Tools) => drop(sink.notify_tool_list_changed().await),
                Ok(Change::Prompts) => drop(sink.notify_prompt_list_changed().await),
                Ok(Change::Resources) => drop(sink.notify_resource_list_changed().await),
                Err(RecvError::Lagged(_)) => {
                    for uri in &watched {
                        let _ = sink.notify_resource_updated(uri).await;
                    }
                    let _ = sink.notify_tool_list_changed().await;
                    let _ = sink.notify_prompt_list_changed().await;
                    let _ = sink.notify_resource_list_changed().await;
                }
                Err(RecvError::Closed) => return,
            }
        }
    }

    /// Tells a client of the older wire, until it is no longer there.
    pub(super) async fn tell_session(mut self, peer: Peer<RoleServer>, watched: Arc<Watched>) {
        loop {
            let told = match self.0.recv().await {
                Ok(Change::Resource(uri)) if watched.contains(&uri) => {
                    peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(&*uri)).await
                }
                Ok(Change::Resource(_)) => Ok(()),
                Ok(Change::Tools) => peer.notify_tool_list_changed().await,
                Ok(Change::Prompts) => peer.notify_prompt_list_changed().await,
                Ok(Change::Resources) => peer.notify_resource_list_changed().await,
                Err(RecvError::Lagged(_)) => {
                    for uri in watched.all() {
                        let _ =
                            peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await;
                    }
                    let _ = peer.notify_tool_list_changed().await;
                    let _ = peer.notify_prompt_list_changed().await;
                    peer.notify_resource_list_changed().await
                }
                Err(RecvError::Closed) => return,
            };
            if told.is_err() {
                return;
            }
        }
    }
}

/// What a client of the older wire watches.
#[derive(Default)]
pub(super) struct Watched(Mutex<HashSet<String>>);

impl Watched {
    /// Whether there was room for one more.
    pub(super) fn add(&self, uri: String) -> bool {
        let mut watched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        watched.contains(&uri) || (watched.len() < WATCHED_MAX && watched.insert(uri))
    }

    pub(super) fn remove(&self, uri: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(uri);
    }

    fn contains(&self, uri: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(uri)
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use rmcp::ServiceExt;
    use runyard_actions::Runtime;
    use runyard_domain::Actor;
    use serde_json::{Value, json};
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};
    use tokio::task::JoinHandle;

    use super::*;
    use crate::mcp::McpApi;
    use crate::mcp::lines::Lines;
    use crate::mcp::server::McpServer;

    async fn until(holds: impl Fn() -> bool) {
        const LOOKS_MAX: usize = 1_000_000;
        for _ in 0..LOOKS_MAX {
            if holds() {
                return;
            }
            tokio::task::yield_now().await;
        }
        panic!("it never came true");
    }

    /// A client of the older wire that has said so many times that it is ready, and the server's end.
    async fn session(changes: &Changes, ready: usize) -> (DuplexStream, JoinHandle<()>) {
        let runtime = Runtime::builder().build().unwrap();
        let api = McpApi::new("tasks", "1.0.0", runtime).changes(changes.clone());
        let (mut client, server) = tokio::io::duplex(1024 * 1024);
        let (input, output) = tokio::io::split(server);
        let serving = tokio::spawn(async move {
            let server = McpServer::new(&api, Some(Arc::new(Actor::owner("ada"))));
            server.serve(Lines::new(input, output)).await.unwrap().waiting().await.unwrap();
        });
        let named = json!({"name": "tests", "version": "1.0.0"});
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": named});
        let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let said = format!("{initialize}\n{}", format!("{initialized}\n").repeat(ready));
        client.write_all(said.as_bytes()).await.unwrap();
        until(|| changes.0.receiver_count() >= 1).await;
        (client, serving)
    }

    /// The methods of what a client is told until, and with, the answer to a ping.
    async fn told(client: DuplexStream) -> Vec<Value> {
        let (reader, mut writer) = tokio::io::split(client);
        writer.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"}\n").await.unwrap();
        let (mut lines, mut told) = (BufReader::new(reader).lines(), Vec::new());
        while let Some(line) = lines.next_line().await.unwrap() {
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == 9 {
                break;
            }
            told.push(message["method"].clone());
        }
        told
    }

    #[tokio::test]
    async fn a_session_that_is_over_is_told_nothing_and_leaves_nothing_behind() {
        let changes = Changes::default();
        let (client, serving) = session(&changes, 1).await;
        assert_eq!(changes.0.receiver_count(), 1);
        drop(client);
        serving.await.unwrap();
        until(|| changes.0.receiver_count() == 0).await;
    }

    #[tokio::test]
    async fn a_client_that_says_often_that_it_is_ready_is_told_once() {
        let changes = Changes::default();
        let (client, _serving) = session(&changes, 6).await;
        // The answer to what came after them says that all of them were heard.
        told(client).await;
        assert_eq!(changes.0.receiver_count(), 1);
    }

    #[tokio::test]
    async fn a_client_that_missed_changes_is_told_that_every_list_may_have_changed() {
        let changes = Changes::default();
        let (client, _serving) = session(&changes, 1).await;
        changes.tools();
        for _ in 0..CHANGES_AHEAD_MAX {
            changes.resource("shop://orders");
        }
        until(|| changes.0.is_empty()).await;
        let lists =
            ["tools", "prompts", "resources"].map(|list| json!(format!("notifications/{list}/list_changed")));
        let told = told(client).await;
        assert!(lists.iter().all(|list| told.contains(list)), "{told:?}");
    }
}
