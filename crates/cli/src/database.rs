//! Which database an installation uses, and opening it.

use std::path::PathBuf;
use std::sync::Arc;

use runyard::ActionError;
use runyard_store::{StorageError, Store};
use runyard_store_postgres::PostgresStore;
use runyard_store_sqlite::{OpenOptions, SqliteStore};

use crate::configuration::Configuration;
use crate::home::Home;

/// Where everything is recorded.
pub(crate) enum Database {
    Sqlite(PathBuf),
    /// With its password, so it is never shown.
    Postgres(String),
}

/// A database that is open.
pub(crate) enum Opened {
    Sqlite(Arc<SqliteStore>),
    Postgres(Arc<PostgresStore>),
}

impl Database {
    /// The one that the configuration names; else the file in the home.
    pub(crate) fn of(home: &Home, configuration: &Configuration) -> Self {
        match &configuration.hub().database_url {
            Some(url) => Database::Postgres(url.clone()),
            None => Database::Sqlite(home.database()),
        }
    }

    /// Opens it to write, under the name that others are told.
    pub(crate) async fn open(&self, owner: &str) -> Result<Opened, ActionError> {
        match self {
            Database::Sqlite(path) => {
                let options = OpenOptions::new(path, owner);
                let opened = tokio::task::spawn_blocking(move || SqliteStore::open(options)).await;
                Ok(Opened::Sqlite(Arc::new(finished(opened)?)))
            }
            Database::Postgres(url) => {
                let store = PostgresStore::connect(url).await.map_err(refused)?;
                Ok(Opened::Postgres(Arc::new(store)))
            }
        }
    }

    /// Opens it to read, also beside a process that writes.
    pub(crate) async fn open_to_read(&self) -> Result<Opened, ActionError> {
        match self {
            Database::Sqlite(path) => {
                let path = path.clone();
                let opened = tokio::task::spawn_blocking(move || SqliteStore::open_read_only(path)).await;
                Ok(Opened::Sqlite(Arc::new(finished(opened)?)))
            }
            Database::Postgres(url) => {
                let store = PostgresStore::connect_to_read(url).await.map_err(refused)?;
                Ok(Opened::Postgres(Arc::new(store)))
            }
        }
    }
}

fn finished<T>(task: Result<Result<T, StorageError>, tokio::task::JoinError>) -> Result<T, ActionError> {
    task.map_err(|error| ActionError::internal(error.to_string()))?.map_err(refused)
}

impl Opened {
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        match self {
            Opened::Sqlite(store) => Arc::clone(store) as Arc<dyn Store>,
            Opened::Postgres(store) => Arc::clone(store) as Arc<dyn Store>,
        }
    }
}

/// A store's error, as the error of an action.
pub(crate) fn refused(error: StorageError) -> ActionError {
    let code = error.code();
    if let StorageError::NotFound(what) = &error
        && what.starts_with("database")
    {
        let message = "Nothing is recorded yet: there is no database. \"runyard up\" makes it.";
        return ActionError::new(code, message);
    }
    let mut message = error.to_string();
    if let Some(first) = message.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    ActionError::new(code, format!("{message}."))
}
