//! The connection that a lane keeps, made again when it broke.

use std::time::Duration;

use tokio::time::Instant;

use crate::connection::Connector;
use crate::fault::{Failure, Remedy};

/// The first wait for a server that went away; it doubles.
const RECONNECT_WAIT_FIRST: Duration = Duration::from_millis(20);
/// The longest wait between two attempts to reach it.
const RECONNECT_WAIT_MAX: Duration = Duration::from_millis(500);

/// A connection that is ready for a lane's work.
pub(crate) trait LaneSession: Sized {
    fn open(connector: &Connector) -> impl Future<Output = Result<Self, Failure>> + Send;

    fn is_closed(&self) -> bool;
}

/// A lane's connection, where there is one.
pub(crate) struct Kept<S> {
    connector: Connector,
    session: Option<S>,
    /// Since when the server cannot be reached.
    away_since: Option<Instant>,
}

impl<S: LaneSession> Kept<S> {
    pub(crate) fn new(connector: &Connector) -> Self {
        Kept { connector: connector.clone(), session: None, away_since: None }
    }

    pub(crate) fn connector(&self) -> &Connector {
        &self.connector
    }

    /// Ends the connection; the next one is made when it is needed.
    pub(crate) fn end(&mut self) {
        self.session = None;
    }

    /// The connection. A server that went away is waited for, for a while.
    pub(crate) async fn get(&mut self) -> Result<&S, Failure> {
        if self.session.as_ref().is_some_and(S::is_closed) {
            self.session = None;
        }
        if self.session.is_none() {
            let since = *self.away_since.get_or_insert_with(Instant::now);
            let mut wait = RECONNECT_WAIT_FIRST;
            let session = loop {
                match S::open(&self.connector).await {
                    Ok(session) => break session,
                    Err(failure) => {
                        let is_enough = since.elapsed() >= self.connector.options().outage;
                        if is_enough || failure.remedy() == Remedy::None {
                            return Err(failure);
                        }
                    }
                }
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(RECONNECT_WAIT_MAX);
            };
            self.away_since = None;
            return Ok(self.session.insert(session));
        }
        self.session.as_ref().ok_or(Failure::Silent)
    }
}
