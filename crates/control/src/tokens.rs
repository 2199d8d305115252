//! Named tokens: who else may come in, and as what.

use runyard_actions::{Action, ActionError, Context, DefinitionError, action};
use runyard_domain::run::Who;
use runyard_engine::{Engine, InstallationError, Role, TokenInfo};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failed::{failing, failing_at};
use crate::rule_view::time;
use crate::who_view::WhoView;

pub(crate) fn actions() -> Vec<Result<Action, DefinitionError>> {
    vec![token_create(), token_list(), token_revoke()]
}

/// What the holder of a token may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum RoleWord {
    /// Look at everything but tokens.
    Viewer,
    /// Look, and have runs and workspaces.
    Operator,
    /// Look, and decide what runs ask.
    Approver,
    /// Everything.
    Admin,
}

impl From<RoleWord> for Role {
    fn from(word: RoleWord) -> Role {
        match word {
            RoleWord::Viewer => Role::Viewer,
            RoleWord::Operator => Role::Operator,
            RoleWord::Approver => Role::Approver,
            RoleWord::Admin => Role::Admin,
        }
    }
}

impl From<Role> for RoleWord {
    fn from(role: Role) -> RoleWord {
        match role {
            Role::Viewer => RoleWord::Viewer,
            Role::Operator => RoleWord::Operator,
            Role::Approver => RoleWord::Approver,
            Role::Admin => RoleWord::Admin,
        }
    }
}

/// A token. Its text is not kept.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct TokenView {
    /// Its id.
    id: String,
    /// The name that its holder acts under.
    name: String,
    /// What its holder may do.
    role: RoleWord,
    /// When it was made.
    created_at: String,
    /// Who had it made.
    created_by: WhoView,
    /// When it stops to let anybody in.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
}

impl From<&TokenInfo> for TokenView {
    fn from(info: &TokenInfo) -> Self {
        TokenView {
            id: info.id.to_string(),
            name: info.name.clone(),
            role: info.role.into(),
            created_at: info.created.to_string(),
            created_by: (&info.created_by).into(),
            expires_at: info.expires.map(|time| time.to_string()),
        }
    }
}

#[derive(Deserialize, JsonSchema)]
struct Create {
    /// Whose it is, or what for: the name that its holder acts under.
    #[schemars(length(min = 1, max = 64))]
    name: String,
    /// What its holder may do: all of them look; an operator has runs, an approver decides what they ask, an admin does everything.
    role: RoleWord,
    /// When it stops to let anybody in (RFC 3339); never without it.
    expires: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct CreatedToken {
    /// The token.
    token: TokenView,
    /// Its text, shown here and never again.
    text: String,
}

/// Make a named token with a role. Its text is shown once.
// The key is the action's own, so that no answer with a token's text is ever kept for it.
#[action(
    crate = "runyard_actions",
    side_effects = "write",
    idempotency = "non_idempotent",
    owns_idempotency_key,
    people_only,
    permissions = ["tokens.write"],
    http = "POST /api/v1/tokens",
    example = r#"{"name": "ada", "role": "approver"}"#
)]
async fn token_create(input: Create, ctx: &Context) -> Result<CreatedToken, ActionError> {
    let expires = input.expires.map(|text| time("expires", &text)).transpose()?;
    let (engine, who) = (ctx.service::<Engine>()?, Who::from(ctx.actor()));
    let made = engine.installation().create_token(&input.name, input.role.into(), expires, &who).await;
    let (info, text) = made.map_err(|error| match error {
        InstallationError::ExpiredAlready => failing_at("expires", error),
        _ => failing_at("name", error),
    })?;
    Ok(CreatedToken { token: (&info).into(), text: text.reveal() })
}

#[derive(Serialize, JsonSchema)]
struct Tokens {
    /// The tokens, oldest first, expired ones among them.
    tokens: Vec<TokenView>,
}

/// List the named tokens: who may come in, and as what.
#[action(
    crate = "runyard_actions",
    idempotency = "idempotent",
    people_only,
    permissions = ["tokens.write"],
    http = "GET /api/v1/tokens"
)]
async fn token_list(ctx: &Context) -> Result<Tokens, ActionError> {
    let engine = ctx.service::<Engine>()?;
    Ok(Tokens { tokens: engine.installation().tokens().iter().map(TokenView::from).collect() })
}

#[derive(Deserialize, JsonSchema)]
struct Revoke {
    /// The token's id or name.
    #[schemars(length(min = 1, max = 64))]
    id: String,
}

#[derive(Serialize, JsonSchema)]
struct Revoked {
    /// Whether its holder is kept out from now on.
    revoked: bool,
}

/// Revoke a token: its holder is not let in again.
#[action(
    crate = "runyard_actions",
    side_effects = "write",
    idempotency = "conditional",
    people_only,
    permissions = ["tokens.write"],
    http = "DELETE /api/v1/tokens/{id}"
)]
async fn token_revoke(input: Revoke, ctx: &Context) -> Result<Revoked, ActionError> {
    let (engine, who) = (ctx.service::<Engine>()?, Who::from(ctx.actor()));
    engine.installation().revoke_token(&input.id, &who).await.map_err(failing)?;
    Ok(Revoked { revoked: true })
}
