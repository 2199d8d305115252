//! Which hub the relay talks to. One that ends, because the command that ran it did, is followed by another.

use runyard::{ActionError, Code};
use tokio::sync::{Mutex, MutexGuard};

use super::exchange::Endpoint;
use crate::home::Home;
use crate::hub_here::{AnyHub, Stay};

/// The way to a hub.
pub(super) struct Way(Mutex<Now>);

/// Where it leads now.
pub(super) struct Now {
    /// Where another hub is found; nothing where only the one that was named is meant.
    home: Option<Home>,
    endpoint: Endpoint,
    hub: Option<AnyHub>,
    /// How many hubs there were before.
    number: u64,
}

impl Way {
    /// To the hub that was named, and no other.
    pub(super) fn named(endpoint: Endpoint) -> Self {
        Way(Mutex::new(Now { home: None, endpoint, hub: None, number: 0 }))
    }

    /// To the hub of this home: one that runs, or one in this process.
    pub(super) async fn own(home: &Home) -> Result<Self, ActionError> {
        let (endpoint, hub) = found(home).await?;
        Ok(Way(Mutex::new(Now { home: Some(home.clone()), endpoint, hub: Some(hub), number: 0 })))
    }

    /// The hub, and its number.
    pub(super) async fn now(&self) -> (Endpoint, u64) {
        let now = self.0.lock().await;
        (now.endpoint.clone(), now.number)
    }

    /// Holds the way until what has to be done with another hub first is done.
    pub(super) async fn hold(&self) -> MutexGuard<'_, Now> {
        self.0.lock().await
    }

    /// Stops the hub if it is in this process.
    pub(super) async fn stop(&self) {
        let hub = self.0.lock().await.hub.take();
        if let Some(hub) = hub {
            hub.stop().await;
        }
    }
}

impl Now {
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Another hub after this one, if there can be one.
    pub(super) async fn another(&mut self) -> Option<Endpoint> {
        let home = self.home.as_ref()?;
        match found(home).await {
            Ok((endpoint, hub)) => {
                (self.endpoint, self.hub) = (endpoint.clone(), Some(hub));
                self.number += 1;
                Some(endpoint)
            }
            Err(error) => {
                tracing::warn!(code = %error.code(), "no other hub: {}", error.message());
                None
            }
        }
    }
}

async fn found(home: &Home) -> Result<(Endpoint, AnyHub), ActionError> {
    let hub = AnyHub::get(home, Stay::WithCommand).await?;
    let token = std::fs::read_to_string(home.token()).map_err(|error| {
        let message = format!("Cannot read {}: {}.", home.token().display(), error.kind());
        ActionError::new(Code::StorageIo, message)
    })?;
    match Endpoint::at(&hub.client().url(), token.trim()) {
        Some(endpoint) => Ok((endpoint, hub)),
        None => Err(ActionError::internal("the hub has no address")),
    }
}
