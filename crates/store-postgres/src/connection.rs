//! Connections: made within limits, and prepared as sessions of the store.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{
    Connect, Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime, TimeoutType,
};
use runyard_store::StorageError;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, Connection, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::fault::{Failure, MAJOR_VERSION_MIN, PostgresError};
use crate::options::ConnectOptions;
use crate::tls;
use crate::url::Target;

/// How many connections the pool has: reads, leases, blobs and kept results.
const POOL_CONNECTIONS_MAX: usize = 8;
/// After so much silence the other side is asked whether it is there.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
/// So long passes between two such questions.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// So many of them may stay without an answer.
const KEEPALIVE_RETRIES: u32 = 3;
/// So long may what was sent stay unacknowledged.
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(30);
const OPENING: &str = "connecting to the database";

/// The schema that holds the tables, apart from whatever else is in the database.
pub(crate) const SCHEMA_NAME: &str = "runyard";

/// The other half of a connection: what moves its bytes.
pub(crate) type Wire = Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

/// Makes connections to one database.
#[derive(Clone)]
pub(crate) struct Connector(Arc<Parts>);

/// What the connections are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Everything. A server that only follows another one is refused.
    Write,
    /// Reading, also of a server that only follows another one. The server refuses every write.
    Read,
}

struct Parts {
    config: Config,
    tls: MakeRustlsConnect,
    session: String,
    place: String,
    options: ConnectOptions,
    access: Access,
}

impl Connector {
    pub(crate) fn new(url: &str, options: ConnectOptions, access: Access) -> Result<Self, StorageError> {
        let target = Target::parse(url)?;
        let tls = tls::connector(&target)?;
        let Target { mut config, place, .. } = target;
        if access == Access::Read {
            // Of several servers, any.
            config.target_session_attrs(TargetSessionAttrs::Any);
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(options.connect);
        }
        config
            .keepalives_idle(KEEPALIVE_IDLE)
            .keepalives_interval(KEEPALIVE_INTERVAL)
            .keepalives_retries(KEEPALIVE_RETRIES)
            .tcp_user_timeout(UNACKNOWLEDGED_MAX);
        let session = session(&options, access);
        Ok(Connector(Arc::new(Parts { config, tls, session, place, options, access })))
    }

    pub(crate) fn place(&self) -> &str {
        &self.0.place
    }

    pub(crate) fn options(&self) -> &ConnectOptions {
        &self.0.options
    }

    /// A connection whose bytes the caller moves.
    pub(crate) async fn open(&self) -> Result<(Client, Wire), Failure> {
        let connecting = self.0.config.connect(self.0.tls.clone());
        let (client, wire) = within(self.0.options.connect, connecting).await?;
        self.check_version(&wire)?;
        Ok((client, wire))
    }

    /// A connection that is prepared as a session of the store, and can write unless it is for reading.
    pub(crate) async fn connect(&self) -> Result<Link, Failure> {
        let (client, wire) = self.open().await?;
        let link = Link { client, driver: drive(wire) };
        within(self.0.options.connect, self.prepare(&link.client)).await?;
        if self.0.access == Access::Read {
            return Ok(link);
        }
        let standby = link.client.query_one("SELECT pg_is_in_recovery()", &[]);
        if within(self.0.options.connect, standby).await?.try_get(0)? {
            let what = format!("the standby server at {}", self.0.place);
            return Err(StorageError::ReadOnly { doing: OPENING, what }.into());
        }
        Ok(link)
    }

    /// Makes it a session of the store.
    pub(crate) async fn prepare(&self, client: &Client) -> Result<(), tokio_postgres::Error> {
        client.batch_execute(&self.0.session).await
    }

    fn check_version(&self, wire: &Wire) -> Result<(), StorageError> {
        let found = wire.parameter("server_version").unwrap_or_default();
        let major = found.split(|c: char| !c.is_ascii_digit()).next().and_then(|major| major.parse().ok());
        if major.is_some_and(|major: u32| major >= MAJOR_VERSION_MIN) {
            return Ok(());
        }
        let too_old = PostgresError::TooOld { place: self.0.place.clone(), found: found.to_owned() };
        Err(StorageError::io(OPENING, too_old))
    }

    /// The pool of those who read.
    pub(crate) fn pool(&self) -> Result<Pool, StorageError> {
        let config = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_connect(self.0.config.clone(), self.clone(), config);
        Pool::builder(manager)
            .max_size(POOL_CONNECTIONS_MAX)
            .wait_timeout(Some(self.0.options.statement))
            .create_timeout(Some(self.0.options.connect))
            .recycle_timeout(Some(self.0.options.connect))
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| StorageError::io(OPENING, error))
    }
}

impl Connect for Connector {
    fn connect(&self, _: &Config) -> Pin<Box<dyn Future<Output = Connected> + Send + '_>> {
        Box::pin(async move {
            let (client, wire) = self.0.config.connect(self.0.tls.clone()).await?;
            let driver = drive(wire);
            self.prepare(&client).await?;
            Ok((client, driver))
        })
    }
}

type Connected = Result<(Client, JoinHandle<()>), tokio_postgres::Error>;

/// Takes a connection of the pool.
pub(crate) async fn taken(pool: &Pool) -> Result<Object, Failure> {
    pool.get().await.map_err(|error| match error {
        PoolError::Backend(error) => Failure::Postgres(error),
        PoolError::Timeout(TimeoutType::Create | TimeoutType::Recycle) => Failure::Silent,
        _ => Failure::Busy,
    })
}

/// What came of using a connection of the pool, which gets it back. One that stayed silent is ended instead: nobody else
/// shall wait for it.
pub(crate) fn given_back<T>(client: Object, answer: Result<T, Failure>) -> Result<T, Failure> {
    if matches!(answer, Err(Failure::Silent)) {
        drop(Object::take(client));
    }
    answer
}

/// What PostgreSQL says, unless it says nothing for too long.
pub(crate) async fn within<T, E: Into<Failure>>(
    limit: Duration,
    answer: impl Future<Output = Result<T, E>>,
) -> Result<T, Failure> {
    timeout(limit, answer).await.map_err(|_| Failure::Silent)?.map_err(Into::into)
}

/// What every session begins with.
///
/// A commit is durable before it is acknowledged, whatever the default is. Rows are found by their keys also before the
/// server has counted how many there are: a plan that reads whole tables would be kept for too long.
fn session(options: &ConnectOptions, access: Access) -> String {
    let read_only = if access == Access::Read { "on" } else { "off" };
    format!(
        "SET search_path = {SCHEMA_NAME};
         SET client_min_messages = warning;
         SET statement_timeout = {};
         SET lock_timeout = {};
         SET idle_in_transaction_session_timeout = {};
         SET default_transaction_read_only = {read_only};
         SET jit = off;
         SET enable_seqscan = off;
         SET enable_hashjoin = off;
         SET enable_mergejoin = off;
         SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'",
        options.statement.as_millis(),
        options.lock.as_millis(),
        options.idle.as_millis(),
    )
}

fn drive(wire: Wire) -> JoinHandle<()> {
    tokio::spawn(async move {
        if let Err(error) = wire.await {
            tracing::debug!(%error, "a connection to the database ended");
        }
    })
}

/// A connection of one's own. Dropping it ends it, whatever it is doing.
pub(crate) struct Link {
    pub(crate) client: Client,
    driver: JoinHandle<()>,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.driver.abort();
    }
}
