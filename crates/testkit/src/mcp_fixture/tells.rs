//! Tools that tell something while they run.

use std::time::Duration;

use runyard::surfaces::mcp::Changes;
use runyard::{Action, Context, Progress, fields};
use serde_json::json;

use super::Defined;

/// Clients forget whom a report is for once they have the answer, so that one in the same packet is lost on them.
const BREATH: Duration = Duration::from_millis(50);
const MOMENT: Duration = Duration::from_millis(100);

pub(super) fn actions() -> Vec<Defined> {
    vec![
        Action::define("test_tool_with_logging", "Logs while it runs.").handler(
            |_, ctx: Context| async move {
                for message in ["Tool execution started", "Tool processing data", "Tool execution completed"]
                {
                    ctx.logger().info(message, fields! {});
                    tokio::time::sleep(BREATH).await;
                }
                Ok(json!("Logging test completed"))
            },
        ),
        Action::define("test_tool_with_progress", "Reports how far it is.").handler(
            |_, ctx: Context| async move {
                for (percent, message) in [(0.0, "Starting"), (50.0, "Halfway"), (100.0, "Complete")] {
                    ctx.progress().report(Progress::percent(percent).message(message));
                    tokio::time::sleep(BREATH).await;
                }
                Ok(json!("Progress test completed"))
            },
        ),
        Action::define("test_logging_tool", "Logs at every level.").handler(|_, ctx: Context| async move {
            ctx.logger().debug("a detail", fields! {});
            ctx.logger().info("a step", fields! {});
            ctx.logger().warn("a doubt", fields! {});
            ctx.logger().error("a fault", fields! {});
            Ok(json!("Logging tool completed"))
        }),
        Action::define("test_trigger_tool_change", "Says that there are other tools.").handler(
            |_, ctx: Context| async move {
                ctx.service::<Changes>()?.tools();
                Ok(json!("Tool list change triggered"))
            },
        ),
        Action::define("test_trigger_prompt_change", "Says that there are other prompts.").handler(
            |_, ctx: Context| async move {
                ctx.service::<Changes>()?.prompts();
                Ok(json!("Prompt list change triggered"))
            },
        ),
        Action::define("change_watched", "Says that resources have changed.").handler(
            |_, ctx: Context| async move {
                let changes = ctx.service::<Changes>()?;
                changes.resource("test://static-text");
                changes.resource("test://watched-resource");
                Ok(json!("Changes told"))
            },
        ),
        // Its answer can be fetched again by a client whose connection broke meanwhile.
        Action::define("test_reconnection", "Takes a moment.").handler(|_, _| async {
            tokio::time::sleep(MOMENT).await;
            Ok(json!("Reconnection test completed"))
        }),
    ]
}
