//! Who may do what: step 5 of an invocation.

use std::time::Duration;

use async_trait::async_trait;
use runyard_domain::Code;
use serde_json::Value;

use crate::caught::caught;
use crate::{Action, ActionError, Context};

/// A checker that takes longer has not said yes.
const CHECK_TIME_MAX: Duration = Duration::from_secs(30);

/// What a permission checker is asked about.
#[derive(Clone, Copy, Debug)]
pub struct PermissionRequest<'a> {
    /// The action.
    pub action: &'a Action,
    /// Its validated input, defaults applied.
    pub input: &'a Value,
    /// The invocation, with its actor.
    pub context: &'a Context,
}

/// A checker's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Permission {
    /// Go on.
    Allow,
    /// Stop, with the generic message.
    Deny,
    /// Stop, with this message.
    DenyWith(String),
}

/// Decides whether an actor may invoke an action with an input.
///
/// A checker that returns an error, panics, or gives no answer within half a minute denies.
#[async_trait]
pub trait PermissionChecker: Send + Sync {
    /// Answers one request. The error's text goes to the scrubbed log only.
    async fn check(&self, request: PermissionRequest<'_>) -> Result<Permission, ActionError>;
}

/// The default: the actor must hold every permission that the action declares.
pub(crate) struct DeclaredPermissions;

#[async_trait]
impl PermissionChecker for DeclaredPermissions {
    async fn check(&self, request: PermissionRequest<'_>) -> Result<Permission, ActionError> {
        let grants = &request.context.actor().grants;
        let missing = request.action.spec().permissions.iter().find(|permission| !grants.include(permission));
        Ok(missing.map_or(Permission::Allow, |name| {
            Permission::DenyWith(format!("Action needs the permission \"{name}\"."))
        }))
    }
}

/// Asks the checker; whatever is not a clear yes is `AUTHORIZATION_ERROR`.
pub(crate) async fn authorise(
    checker: Option<&dyn PermissionChecker>,
    request: PermissionRequest<'_>,
) -> Result<(), ActionError> {
    let checker = checker.unwrap_or(&DeclaredPermissions);
    let denied = |message: String| Err(ActionError::new(Code::AuthorizationError, message));
    let generic = || "Action is not authorized.".to_owned();
    let failed = |detail: &str| {
        let (invocation, detail) = (request.context.invocation_id(), runyard_redact::process::text(detail));
        tracing::error!(%invocation, detail, "the permission checker failed, so the action is denied");
    };
    match caught(async { tokio::time::timeout(CHECK_TIME_MAX, checker.check(request)).await }).await {
        Ok(Ok(Ok(Permission::Allow))) => Ok(()),
        Ok(Ok(Ok(Permission::Deny))) => denied(generic()),
        Ok(Ok(Ok(Permission::DenyWith(message)))) => denied(message),
        Ok(Err(_)) => {
            failed("it gave no answer in time");
            denied(generic())
        }
        Ok(Ok(Err(error))) => {
            failed(error.detail().unwrap_or(error.message()));
            denied(generic())
        }
        Err(panicked) => {
            failed(&panicked.0);
            denied(generic())
        }
    }
}
