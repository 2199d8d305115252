//! The scripted backend keeps the promises of the port.

use crate::bench::ScriptedBench;

async fn scripted() -> ScriptedBench {
    ScriptedBench
}

runyard_backend::backend_conformance_tests!(scripted);
