//! MCP over standard input and output, for one local client.

use std::sync::Arc;

use rmcp::ServiceExt;
use rmcp::transport::io::stdio_pipes;
use runyard_actions::ActionError;
use runyard_domain::Actor;
use tokio_util::sync::CancellationToken;

use super::McpApi;
use super::lines::Lines;
use super::server::McpServer;

/// Serves this caller until its input ends or somebody says stop. Nothing else may write to standard output meanwhile.
pub async fn serve_stdio(
    api: &McpApi,
    actor: Arc<Actor>,
    stop: CancellationToken,
) -> Result<(), ActionError> {
    let server = McpServer::new(api, Some(actor));
    let failed = |error: &dyn std::fmt::Display| ActionError::internal(format!("MCP on stdio: {error}"));
    let (input, output) = stdio_pipes();
    let running = match server.serve_with_ct(Lines::new(input, output), stop).await {
        Ok(running) => running,
        // A client that leaves before it said anything is no failure.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(failed(&error)),
    };
    running.waiting().await.map(drop).map_err(|error| failed(&error))
}
