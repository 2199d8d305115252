//! The MCP fixture as a program: `mcp-fixture mcp`, `mcp-fixture serve`.

use std::process::ExitCode;

use runyard::surfaces::mcp::Changes;

fn main() -> ExitCode {
    runyard_testkit::mcp_fixture::mcp_fixture(Changes::default()).main()
}
