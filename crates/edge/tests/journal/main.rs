//! The journal that a backend is really given: the edge's, over a link, to a hub on a store. It keeps the promises of the port,
//! and the suite that says so can fail.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "the helpers of tests fail like tests"
)]

mod bench;
mod broken;
mod hub;
mod link;
mod puppet;

use bench::HubBench;

async fn in_memory() -> HubBench {
    HubBench::in_memory().await
}

async fn in_sqlite() -> HubBench {
    HubBench::in_sqlite().await
}

mod on_memory {
    runyard_backend::journal_conformance_tests!(super::in_memory);
}

mod on_sqlite {
    runyard_backend::journal_conformance_tests!(super::in_sqlite);
}
