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

/// Which other hub will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seek {
    /// One that runs.
    Running,
    /// One that runs, or one in this process.
    OrStart,
}

impl Way {
    /// To the hub that was named, and no other.
    pub(super) fn named(endpoint: Endpoint) -> Self {
        Way(Mutex::new(Now { home: None, endpoint, hub: None, number: 0 }))
    }

    /// To the hub of this home: one that runs, or one in this process.
    pub(super) async fn own(home: &Home) -> Result<Self, ActionError> {
        let (endpoint, hub) = opened(home, AnyHub::get(home, Stay::WithCommand).await?)?;
        Ok(Way(Mutex::new(Now { home: Some(home.clone()), endpoint, hub: Some(hub), number: 0 })))
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
    /// The hub, and its number.
    pub(super) fn hub(&self) -> (Endpoint, u64) {
        (self.endpoint.clone(), self.number)
    }

    /// Whether there is a hub to go on with. It has another number if it is another one.
    pub(super) async fn another(&mut self, seek: Seek) -> bool {
        let Some(home) = self.home.as_ref() else { return false };
        let found = match seek {
            Seek::OrStart => AnyHub::get(home, Stay::WithCommand).await.and_then(|hub| opened(home, hub)),
            Seek::Running => match AnyHub::find(home).await {
                Some(hub) => opened(home, hub),
                None => {
                    tracing::debug!("no hub runs, and none is needed yet");
                    return false;
                }
            },
        };
        match found {
            Ok((endpoint, hub)) => {
                if hub.is_here() || endpoint != self.endpoint {
                    (self.endpoint, self.hub) = (endpoint, Some(hub));
                    self.number += 1;
                }
                true
            }
            Err(error) => {
                tracing::warn!(code = %error.code(), "no other hub: {}", error.message());
                false
            }
        }
    }
}

/// How one comes into this hub.
fn opened(home: &Home, hub: AnyHub) -> Result<(Endpoint, AnyHub), ActionError> {
    let token = std::fs::read_to_string(home.token()).map_err(|error| {
        let message = format!("Cannot read {}: {}.", home.token().display(), error.kind());
        ActionError::new(Code::StorageIo, message)
    })?;
    match Endpoint::at(&hub.client().url(), token.trim()) {
        Some(endpoint) => Ok((endpoint, hub)),
        None => Err(ActionError::internal("the hub has no address")),
    }
}
