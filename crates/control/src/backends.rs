//! The backend profiles: what each is, what bounds it, and whether it could be used now.
//!
//! Listing and showing read the catalog and nothing else: no file of a secret is opened for it. Checking is the edge's work.

use runyard_actions::{Action, ActionError, Context, DefinitionError, action};
use runyard_domain::{BackendProfile, Code};
use runyard_engine::{BackendInfo, Catalog, CheckLine, Engine, EngineError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failed::failed;

pub(crate) fn actions() -> Vec<Result<Action, DefinitionError>> {
    vec![backend_list(), backend_show(), backend_check()]
}

#[derive(Serialize, JsonSchema)]
struct Backends {
    /// The backend profiles, by name.
    backends: Vec<BackendView>,
}

#[derive(Serialize, JsonSchema)]
struct BackendAnswer {
    /// The backend profile.
    backend: BackendView,
}

/// A backend profile: what it can do and what bounds it, never a secret's value.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct BackendView {
    /// Its name.
    profile: String,
    /// The kind of backend.
    backend_kind: String,
    /// The protocol that it speaks.
    protocol: &'static str,
    /// How.
    transport: &'static str,
    /// The program that it starts and its arguments; none where it starts none.
    command: Vec<String>,
    /// The names of the secrets that it cannot do without.
    required_secret_keys: Vec<String>,
    /// The names of those that it is given where there are any.
    optional_secret_keys: Vec<String>,
    /// What keeps its runs apart from everything else.
    isolation: IsolationView,
    /// What it can do.
    capabilities: CapabilitiesView,
    /// The model, where the profile names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// Where its provider listens, where the profile says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    base_url: Option<String>,
    /// What its provider speaks: responses or chat; absent where it has no provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    wire: Option<&'static str>,
    /// Whether it reaches its provider through the edge's gateway.
    gateway: bool,
    /// Whether what it says is kept raw, but redacted.
    debug_raw: bool,
}

#[derive(Serialize, JsonSchema)]
struct IsolationView {
    /// What has a home of its own: each session and profile.
    home: &'static str,
    /// How it comes to its secrets: gateway, projected or none.
    credentials: &'static str,
    /// What bounds its processes on the edge of this hub.
    sandbox: String,
    /// What bounds their network.
    network: &'static str,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CapabilitiesView {
    /// How far it can be resumed after its process died: thread, steps or never.
    resumes: Value,
    /// Whether it asks before it acts.
    asks: bool,
    /// Whether it tells of each step that it takes.
    tells_steps: bool,
    /// Whether it works in a checkout, which is looked at when it is done.
    checkout: bool,
    /// Whether it can be pointed at the edge's gateway.
    gateway: bool,
}

impl BackendView {
    fn of(profile: &BackendProfile, info: &BackendInfo, sandbox: &str) -> Result<Self, ActionError> {
        let needs_secrets = !profile.required_secret_keys.is_empty();
        let credentials = match (needs_secrets, profile.gateway) {
            (false, _) => "none",
            (true, true) => "gateway",
            (true, false) => "projected",
        };
        let network = match (info.needs_network, credentials) {
            (false, _) => "as the execution policy says",
            (true, "gateway") => "as the execution policy says; where it is denied, the edge's gateway alone",
            (true, _) => {
                "as the execution policy says; where it is denied, it is not cut: the provider is called directly"
            }
        };
        Ok(BackendView {
            profile: profile.profile.clone(),
            backend_kind: profile.backend_kind.clone(),
            protocol: info.protocol,
            transport: info.transport,
            command: command(profile, info),
            required_secret_keys: profile.required_secret_keys.clone(),
            optional_secret_keys: profile.optional_secret_keys.clone(),
            isolation: IsolationView {
                home: "session-and-profile",
                credentials,
                sandbox: sandbox.to_owned(),
                network,
            },
            capabilities: CapabilitiesView {
                resumes: serde_json::to_value(info.resumes)?,
                asks: info.asks,
                tells_steps: info.tells_steps,
                checkout: info.checkout,
                gateway: info.gateway,
            },
            model: profile.model.clone(),
            base_url: profile.base_url.clone(),
            wire: info.gateway.then(|| profile.wire.as_str()),
            gateway: profile.gateway,
            debug_raw: profile.debug_raw,
        })
    }
}

/// The words that are started: the profile's own, with the kind's arguments unless they are there.
fn command(profile: &BackendProfile, info: &BackendInfo) -> Vec<String> {
    let kind: Vec<String> =
        info.command.into_iter().flat_map(|words| words.split(' ')).map(str::to_owned).collect();
    match (profile.command.as_slice(), kind.get(1..)) {
        ([], _) => kind,
        (own, Some([first, ..])) if own.contains(first) => own.to_vec(),
        (own, arguments) => [own, arguments.unwrap_or_default()].concat(),
    }
}

/// What bounds processes on the edge of this hub.
fn sandbox(engine: &Engine) -> String {
    let edge = engine.edges().into_iter().find(|edge| edge.connected);
    edge.map_or_else(|| "not known: no edge is connected".to_owned(), |edge| edge.sandbox)
}

/// The profile of this name; unknown ones are refused with those that there are.
fn known<'a>(catalog: &'a Catalog, name: &str) -> Result<(&'a BackendProfile, &'a BackendInfo), ActionError> {
    catalog.find_backend(name).ok_or_else(|| {
        let names: Vec<&str> =
            catalog.known_backends().map(|(profile, _)| profile.profile.as_str()).collect();
        let message = format!("There is no backend profile of this name. There are: {}.", names.join(", "));
        ActionError::new(Code::NotFound, message)
    })
}

/// List the backend profiles: what each can do and what bounds it. No secret is read for it.
#[action(
    crate = "runyard_actions",
    idempotency = "idempotent",
    permissions = ["runs.read"],
    http = "GET /api/v1/backends"
)]
async fn backend_list(ctx: &Context) -> Result<Backends, ActionError> {
    let engine = ctx.service::<Engine>()?;
    let sandbox = sandbox(&engine);
    let views =
        engine.catalog().known_backends().map(|(profile, info)| BackendView::of(profile, info, &sandbox));
    Ok(Backends { backends: views.collect::<Result<_, _>>()? })
}

/// One backend profile.
#[derive(Deserialize, JsonSchema)]
struct One {
    /// The backend profile's name.
    #[schemars(length(min = 1, max = 64))]
    profile: String,
}

/// Show a backend profile: what it can do and what bounds it. No secret is read for it.
#[action(
    crate = "runyard_actions",
    idempotency = "idempotent",
    permissions = ["runs.read"],
    http = "GET /api/v1/backends/{profile}",
    example = r#"{"profile": "codex"}"#
)]
async fn backend_show(input: One, ctx: &Context) -> Result<BackendAnswer, ActionError> {
    let engine = ctx.service::<Engine>()?;
    let (profile, info) = known(engine.catalog(), &input.profile)?;
    Ok(BackendAnswer { backend: BackendView::of(profile, info, &sandbox(&engine))? })
}

#[derive(Serialize, JsonSchema)]
struct Checked {
    /// The backend profile.
    profile: String,
    /// The edge that looked.
    edge: String,
    /// Whether nothing is missing.
    ok: bool,
    /// What was found, part by part.
    checks: Vec<CheckView>,
}

#[derive(Serialize, JsonSchema)]
struct CheckView {
    /// Which part: program, secrets, sandbox or handshake.
    check: String,
    /// Whether a run could begin as far as this goes.
    ok: bool,
    /// What was found.
    found: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl From<CheckLine> for CheckView {
    fn from(line: CheckLine) -> Self {
        let CheckLine { check, ok, found, next } = line;
        CheckView { check, ok, found, next }
    }
}

/// Look on the edge whether a backend profile could be used now: its program and version, its secrets by name, what confines it,
/// and whether it answers when it is started. Nothing of it is left, and no provider is called.
#[action(
    crate = "runyard_actions",
    side_effects = "write",
    idempotency = "idempotent",
    people_only,
    permissions = ["runs.write"],
    concurrency(max = 4, wait_ms = 0),
    http = "POST /api/v1/backends/{profile}/check",
    example = r#"{"profile": "codex"}"#
)]
async fn backend_check(input: One, ctx: &Context) -> Result<Checked, ActionError> {
    let engine = ctx.service::<Engine>()?;
    known(engine.catalog(), &input.profile)?;
    let (edge, found) = engine.check_backend(&input.profile).await.map_err(|error| match error {
        EngineError::EdgeSilent => {
            ActionError::new(Code::TargetOffline, "The edge is not there, or took too long to answer.")
                .retryable()
        }
        error => failed(error),
    })?;
    let ok = found.iter().all(|line| line.ok);
    Ok(Checked { profile: input.profile, edge, ok, checks: found.into_iter().map(CheckView::from).collect() })
}
