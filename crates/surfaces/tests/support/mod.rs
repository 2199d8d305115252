//! What the HTTP tests share: a server on a real socket, a client that writes what it is told, and an application.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test file uses a part; a failed expectation fails the test"
)]

pub(crate) mod app;
pub(crate) mod client;
pub(crate) mod server;

use std::time::Duration;

/// Longer than any time limit of the server, so that a wait ends only where something hangs.
const WAIT_MAX: Duration = Duration::from_secs(120);
const POLL_PAUSE: Duration = Duration::from_millis(5);

/// Waits until something holds; what never comes true fails the test.
#[track_caller]
pub(crate) fn until(what: &str, holds: impl Fn() -> bool) -> impl Future<Output = ()> {
    let place = std::panic::Location::caller();
    async move {
        let polling = async {
            while !holds() {
                tokio::time::sleep(POLL_PAUSE).await;
            }
        };
        assert!(tokio::time::timeout(WAIT_MAX, polling).await.is_ok(), "never: {what} ({place})");
    }
}
