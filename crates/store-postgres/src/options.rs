//! How long the store waits for what.

use std::time::Duration;

/// For a connection: the way to the server, its certificate, the password.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// For one statement; the server gives it up then.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);
/// For a lock that another transaction holds.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// For the next statement of a transaction: a hub that was stopped in the middle does not hold its runs for ever.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// For the answer to a commit. After that its outcome is unknown.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(30);
/// For a server that went away, before those who wait are told.
const OUTAGE_PATIENCE: Duration = Duration::from_secs(10);

/// How long the store waits for what. The defaults are meant to stay.
#[derive(Clone, Copy, Debug)]
pub struct ConnectOptions {
    pub(crate) connect: Duration,
    pub(crate) statement: Duration,
    pub(crate) lock: Duration,
    pub(crate) idle: Duration,
    pub(crate) commit: Duration,
    pub(crate) outage: Duration,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        ConnectOptions {
            connect: CONNECT_TIMEOUT,
            statement: STATEMENT_TIMEOUT,
            lock: LOCK_TIMEOUT,
            idle: IDLE_TIMEOUT,
            commit: COMMIT_TIMEOUT,
            outage: OUTAGE_PATIENCE,
        }
    }
}

impl ConnectOptions {
    /// How long the answer to a commit is waited for before its outcome counts as unknown.
    #[must_use]
    pub fn commit_timeout(mut self, commit: Duration) -> Self {
        self.commit = commit;
        self
    }

    /// How long one statement may take before the server gives it up and those who wait are told.
    #[must_use]
    pub fn statement_timeout(mut self, statement: Duration) -> Self {
        self.statement = statement;
        self
    }

    /// How long a lock that another transaction holds is waited for before those who wait are told.
    #[must_use]
    pub fn lock_timeout(mut self, lock: Duration) -> Self {
        self.lock = lock;
        self
    }

    /// How long a server that went away is waited for before those who wait are told.
    #[must_use]
    pub fn outage_patience(mut self, outage: Duration) -> Self {
        self.outage = outage;
        self
    }

    /// How long our side waits for a statement that the server should have given up by then.
    pub(crate) fn silence(&self) -> Duration {
        self.statement + self.lock
    }
}
