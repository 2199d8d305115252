//! PostgreSQL for tests: a private cluster that can be stopped and killed, and a proxy that cuts connections.
//!
//! It needs the server's programs and installs none; the `test` script does. It knows nothing of the project: a test
//! gives the URL of a database to whatever it tests.
//!
//! ```no_run
//! # fn main() -> anyhow::Result<()> {
//! use runyard_testkit_postgres::{Cut, CuttingProxy, Postgres};
//!
//! let postgres = Postgres::start()?;
//! let proxy = CuttingProxy::start(postgres.address())?;
//! let url = proxy.through(&postgres.database()?);
//! proxy.cut_next_commit(Cut::AfterCommitBeforeAnswer);
//! // … a client of `url` now loses its connection in its next commit.
//! # Ok(())
//! # }
//! ```

mod account;
mod cluster;
mod port;
mod processes;
mod programs;
mod proxy;
mod supervisor;
mod template;

pub use cluster::{PASSWORD, Postgres, USER};
pub use proxy::{Cut, CuttingProxy};
