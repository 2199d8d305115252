//! The store: how it is opened, and how it asks the database.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{Object, Pool};
use runyard_store::{Live, PAGE_MAX, StorageError};
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use crate::connection::{Access, Connector, given_back, taken, within};
use crate::fault::{Failure, Remedy};
use crate::notices::{self, Notices};
use crate::options::ConnectOptions;
use crate::schema;
use crate::thread_lanes::{self, ThreadLanes};
use crate::writer::{self, Lanes};

const OPENING: &str = "connecting to the database";
/// The first wait before something is asked again; it doubles.
const REPEAT_WAIT_FIRST: Duration = Duration::from_millis(20);
/// The longest wait before something is asked again.
const REPEAT_WAIT_MAX: Duration = Duration::from_secs(1);
/// How often something is repeated that lost a race.
const RACES_MAX: u32 = 5;

/// A parameter of a statement.
pub(crate) type Parameter<'a> = &'a (dyn ToSql + Sync);

/// The store in PostgreSQL. Several of them, in as many processes, may use one database.
///
/// Dropping it lets what was handed over be written, and ends its connections.
pub struct PostgresStore {
    /// None where the store is for reading.
    lanes: Option<Lanes>,
    /// None where the store is for reading.
    thread_lanes: Option<ThreadLanes>,
    pub(crate) live: Arc<Live>,
    connector: Connector,
    pool: Pool,
    background: Vec<AbortHandle>,
}

impl PostgresStore {
    /// Connects to the database of a URL, `postgres://user:password@host:port/database`, and brings it to the newest
    /// schema. One that a newer version of this program wrote is refused.
    ///
    /// `sslmode` is `disable`, `prefer`, `require` or `verify-full`; whenever TLS is used the certificate is verified,
    /// against the file in `sslrootcert` or the system's authorities. Without `sslmode` TLS is preferred, except to a
    /// server on the same machine. No error repeats the password.
    pub async fn connect(url: &str) -> Result<Self, StorageError> {
        Self::connect_with(url, ConnectOptions::default()).await
    }

    /// Connects with other limits than the usual ones.
    pub async fn connect_with(url: &str, options: ConnectOptions) -> Result<Self, StorageError> {
        let connector = Connector::new(url, options, Access::Write)?;
        let refused = |failure: Failure| failure.into_refusal(OPENING, connector.place());
        let mut link = connector.connect().await.map_err(refused)?;
        warn_if_not_durable(&link.client).await.map_err(refused)?;
        schema::migrate(&connector, &mut link.client).await?;
        schema::mend_feed(&mut link.client).await.map_err(refused)?;
        drop(link);
        let pool = connector.pool()?;
        let (live, notices) = (Arc::new(Live::default()), Arc::new(Notices::default()));
        let lanes = Lanes::start(&connector, &live, &notices);
        let id = store_id(&pool, &connector).await.map_err(refused)?;
        let exchange = notices::exchange(connector.clone(), notices, live.clone(), id);
        let poll = notices::poll(pool.clone(), connector.clone(), live.clone());
        let background = vec![tokio::spawn(exchange).abort_handle(), tokio::spawn(poll).abort_handle()];
        let thread_lanes = Some(ThreadLanes::start(&connector));
        Ok(PostgresStore { lanes: Some(lanes), thread_lanes, live, connector, pool, background })
    }

    /// Connects to read what others write, also at a standby server. It makes and changes nothing: where nothing is
    /// recorded yet, or in an older schema, it is refused, and so is every write. What others write is seen within a
    /// second by those who follow.
    pub async fn connect_to_read(url: &str) -> Result<Self, StorageError> {
        let connector = Connector::new(url, ConnectOptions::default(), Access::Read)?;
        let refused = |failure: Failure| failure.into_refusal(OPENING, connector.place());
        let link = connector.connect().await.map_err(refused)?;
        schema::check_to_read(&connector, &link.client).await.map_err(refused)?;
        drop(link);
        let (pool, live) = (connector.pool()?, Arc::new(Live::default()));
        let poll = notices::poll(pool.clone(), connector.clone(), live.clone());
        let background = vec![tokio::spawn(poll).abort_handle()];
        Ok(PostgresStore { lanes: None, thread_lanes: None, live, connector, pool, background })
    }

    /// The way to write to the log.
    pub(crate) fn lanes(&self) -> Result<&Lanes, StorageError> {
        self.lanes.as_ref().ok_or_else(|| self.read_only(writer::DOING))
    }

    /// The way to commit to threads.
    pub(crate) fn thread_lanes(&self) -> Result<&ThreadLanes, StorageError> {
        self.thread_lanes.as_ref().ok_or_else(|| self.read_only(thread_lanes::DOING))
    }

    fn read_only(&self, doing: &'static str) -> StorageError {
        let what = format!("the database at {}, which was opened for reading,", self.connector.place());
        StorageError::ReadOnly { doing, what }
    }

    /// Asks the database. What is asked may be asked twice: when the connection is lost it is asked again.
    pub(crate) async fn rows(
        &self,
        doing: &'static str,
        sql: &'static str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, StorageError> {
        let ask = || async move {
            let client = self.client().await?;
            let answer = async {
                let statement = client.prepare_cached(sql).await?;
                client.query(&statement, parameters).await
            };
            let answer = within(self.silence(), answer).await;
            given_back(client, answer)
        };
        self.repeated(doing, ask).await
    }

    /// How long a statement may take before its connection counts as lost.
    pub(crate) fn silence(&self) -> Duration {
        self.connector.options().silence()
    }

    /// A connection of the pool.
    pub(crate) async fn client(&self) -> Result<Object, Failure> {
        taken(&self.pool).await
    }

    /// Does something that may be done twice, again when the connection is lost or a race, for a limited time.
    pub(crate) async fn repeated<T, F>(
        &self,
        doing: &'static str,
        mut attempt: impl FnMut() -> F + Send,
    ) -> Result<T, StorageError>
    where
        F: Future<Output = Result<T, Failure>> + Send,
    {
        let deadline = Instant::now() + self.connector.options().outage;
        let mut wait = REPEAT_WAIT_FIRST;
        let mut races = 0;
        loop {
            let failure = match attempt().await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            races += u32::from(failure.remedy() == Remedy::Repeat);
            if failure.remedy() == Remedy::None || races > RACES_MAX || Instant::now() >= deadline {
                return Err(failure.into_storage(doing, self.connector.place()));
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(REPEAT_WAIT_MAX);
        }
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").field("place", &self.connector.place()).finish_non_exhaustive()
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.background.iter().for_each(AbortHandle::abort);
    }
}

/// How many rows a page holds at most.
pub(crate) fn page(limit: u32) -> i64 {
    i64::from(limit.min(PAGE_MAX))
}

/// The server's administrator may have chosen so; the store cannot change it.
async fn warn_if_not_durable(client: &Client) -> Result<(), Failure> {
    for setting in ["fsync", "full_page_writes"] {
        let row = client.query_one("SELECT current_setting($1)", &[&setting]).await?;
        if row.try_get::<_, &str>(0)? == "off" {
            tracing::warn!(
                setting,
                "the server's setting is off: a crash of its machine can lose what was acknowledged"
            );
        }
    }
    Ok(())
}

/// An id that tells this store from others at the same database.
async fn store_id(pool: &Pool, connector: &Connector) -> Result<Uuid, Failure> {
    let client = taken(pool).await?;
    let id = within(connector.options().silence(), client.query_one("SELECT gen_random_uuid()", &[])).await;
    Ok(given_back(client, id)?.try_get(0)?)
}
