//! Where threads are kept, here and in a process of its own.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use runyard_domain::Timestamp;
use runyard_store::{Clock, StorageError, SystemClock, ThreadRunStore};
use runyard_store_postgres::PostgresStore;
use runyard_store_sqlite::{OpenOptions, SqliteStore};
use runyard_testkit_postgres::Postgres;
use tempfile::TempDir;

/// What a child says when its run is in the middle of a call.
pub(crate) const CALLED: &str = "the call is being made";
/// Where a child finds what its parent means.
const FILE: &str = "RUNYARD_TEST_FILE";
const SERVER: &str = "RUNYARD_TEST_SERVER";

/// Where threads are kept.
pub(crate) struct Place {
    which: Which,
    _folder: Option<TempDir>,
}

enum Which {
    File(String),
    Server(String),
}

/// The time in a while.
struct Later(Duration);

impl Clock for Later {
    fn now(&self) -> Timestamp {
        let ahead = i64::try_from(self.0.as_millis()).unwrap();
        Timestamp::from_unix_ms(SystemClock.now().unix_ms() + ahead)
    }
}

impl Place {
    pub(crate) fn sqlite() -> Self {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("threads.db").to_str().unwrap().to_owned();
        Place { which: Which::File(file), _folder: Some(folder) }
    }

    pub(crate) fn postgres() -> Self {
        let url = Postgres::shared().unwrap().database().unwrap();
        Place { which: Which::Server(url), _folder: None }
    }

    /// What the parent of this process means, where it is a child.
    pub(crate) fn of_parent() -> Option<Self> {
        let file = std::env::var(FILE).ok().map(Which::File);
        let which = file.or_else(|| std::env::var(SERVER).ok().map(Which::Server))?;
        Some(Place { which, _folder: None })
    }

    pub(crate) async fn open(&self) -> Arc<dyn ThreadRunStore> {
        self.try_open().await.unwrap()
    }

    pub(crate) async fn try_open(&self) -> Result<Arc<dyn ThreadRunStore>, StorageError> {
        Ok(match &self.which {
            Which::File(file) => Arc::new(SqliteStore::open(OpenOptions::new(file, "tests"))?),
            Which::Server(url) => Arc::new(PostgresStore::connect(url).await?),
        })
    }

    /// A file, opened when so much time has passed.
    pub(crate) async fn open_later(&self, wait: Duration) -> Arc<dyn ThreadRunStore> {
        let Which::File(file) = &self.which else { panic!("a server has its own clock") };
        let options = OpenOptions::new(file, "tests").clock(Arc::new(Later(wait)));
        Arc::new(SqliteStore::open(options).unwrap())
    }
}

/// A process with a run in the middle of a call.
pub(crate) struct Child(std::process::Child);

impl Child {
    pub(crate) fn start(place: &Place) -> Self {
        let (name, value) = match &place.which {
            Which::File(file) => (FILE, file),
            Which::Server(url) => (SERVER, url),
        };
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--nocapture"])
            .env(name, value)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        let called = said.lines().map_while(Result::ok).any(|line| line == CALLED);
        assert!(called, "it never came to its call");
        Child(child)
    }

    /// Kills it, as `kill -9` does.
    pub(crate) fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
