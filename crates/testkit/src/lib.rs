//! Development only: the vector table, the application that it runs on, and the drivers that call it.
//!
//! `vectors.json` holds calls, each with the one envelope it must give; [`vector_app`] is the application that is called; a
//! [`Driver`] makes a call on one surface; [`failures`] runs the whole table with a driver and says what is not as it should
//! be. A new surface is a new driver and one test. [`http_client`] and [`process`] are there for other tests, too.
//!
//! [`typescript`] writes the types of the TypeScript client, and [`fixtures`] the logs that both languages fold: here, since
//! nothing that is built into the binary needs them, and only here may everything be used.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

mod app;
mod comparison;
pub mod drivers;
pub mod fixtures;
pub mod http_client;
pub mod mcp_fixture;
pub mod process;
mod table_run;
pub mod typescript;
mod vectors;

pub use app::vector_app;
pub use comparison::{differences, whole};
pub use drivers::{Answer, Driver, Status};
pub use table_run::failures;
pub use vectors::{Call, Different, Input, Step, Table, Vector};
