//! What clients are tried with beyond the suite: an action that must be confirmed, and one that goes on until it is cancelled.

use runyard::{Action, Context, SideEffects, fields};
use serde_json::json;
use tokio::sync::Semaphore;

use super::Defined;

/// How often `hang` ended without an answer.
pub(super) struct Hanging(Semaphore);

impl Default for Hanging {
    fn default() -> Self {
        Hanging(Semaphore::new(0))
    }
}

/// Says on its way out that the action is over.
struct Over(std::sync::Arc<Hanging>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.0.add_permits(1);
    }
}

pub(super) fn actions() -> Vec<Defined> {
    vec![
        Action::define("erase", "Erases something for good.")
            .side_effects(SideEffects::Destructive)
            .input_schema(
                json!({"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]}),
            )
            .handler(|input, _| async move { Ok(json!({"erased": input["what"]})) }),
        Action::define("hang", "Goes on until it is cancelled.").handler(|_, ctx: Context| async move {
            let _over = Over(ctx.service::<Hanging>()?);
            ctx.logger().info("hanging", fields! {});
            std::future::pending().await
        }),
        Action::define("hang_over", "Waits until a call of hang has ended.").handler(
            |_, ctx: Context| async move {
                let hanging = ctx.service::<Hanging>()?;
                hanging.0.acquire().await.map_err(|_| runyard::ActionError::cancelled())?.forget();
                Ok(json!("A call of hang is over."))
            },
        ),
    ]
}
