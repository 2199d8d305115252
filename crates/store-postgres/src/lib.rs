//! The shared store: PostgreSQL 14 or newer, used by as many hubs as there are.
//!
//! Changes go through a few lanes, each a connection of its own; a run always takes the same lane, so its changes keep
//! their order. A lane takes what is waiting and commits it as one transaction, under the locks of the runs that it
//! touches. Commits to threads go the same way through lanes of their own. Reads go through a pool and never hold up a writer. What is legal is decided in [`runyard_store::plan`].
//!
//! Whenever TLS is used the server's certificate is verified, whatever `sslmode` says: there is no encrypted but
//! unverified connection. The password of the URL is in no error, no `Debug` and no log.
//!
//! It deliberately does not run behind a pooler that shares connections between transactions (sessions are prepared
//! once, and one of them listens), and it does not use `jsonb`: what was hashed is what is stored.

mod blobs;
mod checks;
mod connection;
mod fault;
mod group;
mod leases;
mod log;
mod notices;
mod options;
mod planning;
mod queries;
mod reconnect;
mod results;
mod run_row;
mod schema;
mod statements;
mod store;
mod thread_claims;
mod thread_group;
mod thread_lanes;
mod thread_row;
mod thread_statements;
mod thread_writes;
mod threads;
mod tls;
mod url;
mod writer;
mod writes;

pub use fault::PostgresError;
pub use options::ConnectOptions;
pub use store::PostgresStore;
