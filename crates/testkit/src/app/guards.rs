//! What stands around actions: exposure, confirmation, permission, middleware, the concurrency limit, and a hook.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use runyard::{
    Action, ActionError, Actor, Context, DefinitionError, Envelope, Hook, Invocation, InvocationStream,
    Middleware, MiddlewareCall, Next, Permission, PermissionChecker, PermissionRequest, Runtime, Surface,
    action, fields,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

#[derive(Deserialize, JsonSchema)]
struct Target {
    /// What it is done to.
    target: String,
}

macro_rules! done {
    ($(#[doc = $about:literal] #[$attributes:meta] $name:ident)*) => {
        $(
            #[doc = $about]
            #[$attributes]
            async fn $name(input: Target) -> Result<String, ActionError> {
                Ok(format!("done to {}", input.target))
            }
        )*

        pub(super) fn actions() -> Vec<Result<Action, DefinitionError>> {
            vec![$($name(),)* guarded(), wrapped(), last_envelope()]
        }
    };
}

done! {
    /// Destructive, and not offered over the wire.
    #[action(side_effects = "destructive")]
    wipe
    /// Destructive, and offered over the wire.
    #[action(side_effects = "destructive")]
    erase
    /// Destructive, offered over the wire, and never asks.
    #[action(side_effects = "destructive", requires_confirmation = false)]
    purge
    /// Not destructive, and asks.
    #[action(side_effects = "write", requires_confirmation = true)]
    publish_page
    /// Only for callers on this machine.
    #[action(visibility = "local")]
    local_only
    /// Only for Rust code.
    #[action(visibility = "private")]
    private_only
    /// Only for people.
    #[action(people_only)]
    people_only
    /// Only from the command line.
    #[action(surfaces = ["cli"])]
    from_cli
    /// Only over MCP.
    #[action(surfaces = ["mcp"])]
    from_mcp
}

/// What the permission checker answers to [`guarded`].
#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    Allow,
    #[default]
    Deny,
    Words,
    Secret,
    Fail,
    Panic,
}

#[derive(Deserialize, JsonSchema)]
struct Guarded {
    /// What the checker answers.
    #[serde(default)]
    verdict: Verdict,
}

/// Run if the permission checker says so.
#[action(side_effects = "write", requires_confirmation = true)]
async fn guarded(input: Guarded) -> Result<bool, ActionError> {
    Ok(matches!(input.verdict, Verdict::Allow))
}

/// Answers as the input of [`guarded`] says; and fills [`crowded`] before the first call of it gets to its limit.
pub(super) struct Checker {
    crowd: Runtime,
    /// A call that stays inside.
    inside: OnceCell<Mutex<InvocationStream>>,
}

impl Checker {
    pub(super) fn new(crowded: &Action) -> Self {
        let crowd = Runtime::builder().action(crowded.clone()).build().expect("one action builds");
        Checker { crowd, inside: OnceCell::new() }
    }

    /// Starts a call that stays inside; it shares the action, and so the limit, with the application.
    async fn fill(&self) -> Mutex<InvocationStream> {
        let call = Invocation::new("crowded", json!({}), Surface::Code, Arc::new(Actor::owner("crowd")));
        let mut inside = self.crowd.stream(call);
        // Its first log entry says that it is inside.
        inside.next().await;
        Mutex::new(inside)
    }
}

#[async_trait]
impl PermissionChecker for Checker {
    async fn check(&self, request: PermissionRequest<'_>) -> Result<Permission, ActionError> {
        match request.action.name() {
            "guarded" => match request.input["verdict"].as_str() {
                Some("allow") => Ok(Permission::Allow),
                Some("deny") => Ok(Permission::Deny),
                Some("words") => Ok(Permission::DenyWith("Only on Mondays.".to_owned())),
                Some("secret") => Ok(Permission::DenyWith("Not with password=hunter22.".to_owned())),
                Some("fail") => Err(std::io::Error::other("password=hunter22").into()),
                _ => panic!("password=hunter22"),
            },
            "crowded" => {
                self.inside.get_or_init(|| self.fill()).await;
                Ok(Permission::Allow)
            }
            _ => Ok(Permission::Allow),
        }
    }
}

/// One at a time; and whoever is inside stays there.
pub(super) fn crowded() -> Action {
    let action = Action::define("crowded", "Have room for one call only.").concurrency(1, 0);
    let action = action.handler(|_, context: Context| async move {
        context.logger().info("inside", fields! {});
        std::future::pending().await
    });
    action.expect("it is well defined")
}

#[derive(Deserialize, JsonSchema)]
struct Wrapped {
    /// What the middleware does.
    #[expect(dead_code, reason = "for the middleware, which reads it from the JSON")]
    how: How,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum How {
    Pass,
    Replace,
    ShortCircuit,
    Lie,
    Refuse,
    Twice,
}

#[derive(Serialize, JsonSchema)]
struct Text {
    text: String,
}

/// Run inside a middleware.
#[action]
async fn wrapped(_input: Wrapped, ctx: &Context) -> Result<Text, ActionError> {
    ctx.logger().info("handler", fields! {});
    Ok(Text { text: "plain".to_owned() })
}

/// Does to [`wrapped`] what its input says.
pub(super) struct Wrapper;

#[async_trait]
impl Middleware for Wrapper {
    async fn call(&self, call: MiddlewareCall<'_>, next: Next<'_>) -> Result<Value, ActionError> {
        if call.action.name() != "wrapped" {
            return next.run().await;
        }
        match call.input["how"].as_str() {
            Some("replace") => {
                let inner = next.run().await?;
                call.context.logger().info("middleware", fields! {});
                Ok(json!({"text": format!("wrapped {}", inner["text"].as_str().unwrap_or_default())}))
            }
            Some("short_circuit") => Ok(json!({"text": "without the handler"})),
            Some("lie") => next.run().await.map(|_| json!({"text": 5})),
            Some("refuse") => Err(ActionError::conflict("The middleware is against it.")),
            Some("twice") => {
                next.run().await?;
                next.run().await
            }
            _ => next.run().await,
        }
    }
}

/// The last envelope of each action in this process.
#[derive(Clone, Default)]
pub(super) struct LastEnvelopes(Arc<Mutex<HashMap<String, Envelope>>>);

#[async_trait]
impl Hook for LastEnvelopes {
    async fn ended(&self, envelope: &Envelope) {
        if let Some(action) = &envelope.meta.action {
            self.0.lock().unwrap().insert(action.to_string(), envelope.clone());
        }
    }
}

#[derive(Deserialize, JsonSchema)]
struct OfAction {
    /// The action.
    action: String,
}

/// Give the last envelope of an action in this process, for callers that did not stay to get it.
#[action]
async fn last_envelope(input: OfAction, ctx: &Context) -> Result<Value, ActionError> {
    let envelopes = ctx.service::<LastEnvelopes>()?;
    let last = envelopes.0.lock().unwrap().get(&input.action).cloned();
    Ok(serde_json::to_value(last)?)
}
