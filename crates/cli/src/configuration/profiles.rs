//! The values as types: what the hub, the agents and the backends are told.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use runyard_domain::gate::OwnRuns;
use runyard_domain::run::Budget;
use runyard_domain::{AgentProfile, BackendProfile, Changes, ExecutionPolicy, Preparation};
use runyard_surfaces::http::PageOrigin;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::layers::{Values, by_default, names};
use super::native;
use super::origin::Origin;
use super::problem::{Fault, Hint, Problem};

/// What the hub is told.
#[derive(Clone)]
pub(crate) struct Hub {
    /// Where it listens.
    pub(crate) listen: SocketAddr,
    /// Where PostgreSQL is, with its password, so it is never shown; SQLite without it.
    pub(crate) database_url: Option<String>,
    /// How many runs are active on an edge at a time.
    pub(crate) runs_max: usize,
    /// Whether people approve what their own runs ask.
    pub(crate) own_runs: OwnRuns,
    /// After how long a session that waits for a person is parked.
    pub(crate) park_after_ms: u64,
    /// After how long an approval that nobody answered is a rejection.
    pub(crate) approval_expiry_ms: u64,
    /// How long an edge may take to accept a run.
    pub(crate) accept_ms: u64,
    /// How long it may take to prepare it.
    pub(crate) prepare_ms: u64,
    pub(crate) apply_ms: u64,
    pub(crate) lease_ms: u64,
    /// How long it may take to stop it.
    pub(crate) stop_ms: u64,
    /// How much the directories of all runs take on an edge, before checkouts have to be collected.
    pub(crate) checkouts_max_bytes: u64,
}

impl Hub {
    pub(super) fn of(values: &Values) -> Result<Self, Problem> {
        let number = |key: &str| field::<u64>(values, &format!("hub.{key}"));
        Ok(Hub {
            listen: field(values, "hub.listen")?,
            database_url: values
                .get("hub.database_url")
                .and_then(|url| url.value.as_str().map(str::to_owned)),
            runs_max: field(values, "hub.runs_max")?,
            own_runs: field(values, "hub.own_runs")?,
            park_after_ms: number("park_after_ms")?,
            approval_expiry_ms: number("approval_expiry_ms")?,
            accept_ms: number("accept_ms")?,
            prepare_ms: number("prepare_ms")?,
            apply_ms: number("apply_ms")?,
            lease_ms: number("lease_ms")?,
            stop_ms: number("stop_ms")?,
            checkouts_max_bytes: number("checkouts_max_bytes")?,
        })
    }
}

/// What the edge in the hub's own process is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    /// Where the secrets of backend profiles lie.
    pub(crate) secrets_directory: PathBuf,
}

impl Edge {
    const SECRETS: &str = "edge.secrets_directory";

    pub(super) fn of(values: &Values, data: &Path) -> Result<Self, Problem> {
        let said = values.get(Edge::SECRETS).is_some_and(|value| value.origin != Origin::Default);
        let directory = said.then(|| field(values, Edge::SECRETS)).transpose()?;
        Ok(Edge { secrets_directory: directory.unwrap_or_else(|| Edge::secrets_in(data)) })
    }

    /// Adds what holds where nobody says otherwise.
    pub(super) fn complete(values: &mut Values, data: &Path) {
        let secrets = || by_default(Value::from(Edge::secrets_in(data).to_string_lossy()));
        values.entry(Edge::SECRETS.to_owned()).or_insert_with(secrets);
    }

    fn secrets_in(data: &Path) -> PathBuf {
        data.join("secrets")
    }
}

/// What the server in front of the hub is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Server {
    /// Pages elsewhere that may ask as its own do.
    pub(crate) origins: Vec<PageOrigin>,
}

impl Server {
    pub(super) fn of(values: &Values) -> Result<Self, Problem> {
        let origins: Vec<String> = optional(values, "server.origins")?.unwrap_or_default();
        // Whatever is said here was checked where it was read.
        Ok(Server { origins: origins.iter().filter_map(|origin| origin.parse().ok()).collect() })
    }
}

/// What prepares checkouts.
pub(super) fn preparation(values: &Values) -> Result<Preparation, Problem> {
    Ok(Preparation {
        copy: optional(values, "workspace.copy")?.unwrap_or_default(),
        setup: optional(values, "workspace.setup")?.unwrap_or_default(),
    })
}

/// The agent profiles by their id.
pub(super) fn agents(values: &Values) -> Result<BTreeMap<String, AgentProfile>, Vec<Problem>> {
    let backends = names(values, "backend");
    collected(names(values, "agent"), |id| {
        let key = |name: &str| format!("agent.{id}.{name}");
        let backend_profile = match native::is(values, id) {
            true => id.to_owned(),
            false => field(values, &key("backend"))?,
        };
        native::check(values, id)?;
        if !native::is(values, id) && !backends.contains(&backend_profile) {
            let hint = Hint::of(&backend_profile, backends.iter().map(String::as_str));
            let fault = Fault::UnknownName { key: key("backend"), what: "backend profile", hint };
            return Err(wrong(values, &key("backend"), fault));
        }
        let budget = Budget {
            cost_usd: optional(values, &key("budget"))?,
            tokens: optional(values, &key("budget_tokens"))?,
        };
        Ok(AgentProfile {
            id: id.to_owned(),
            label: field(values, &key("label"))?,
            backend_profile,
            capabilities: field(values, &key("capabilities"))?,
            preset: field(values, &key("preset"))?,
            on_reject: field(values, &key("on_reject"))?,
            execution_policy: ExecutionPolicy {
                sandbox: field(values, &key("sandbox"))?,
                network: field(values, &key("network"))?,
                approval: field(values, &key("approval"))?,
                timeout_ms: field(values, &key("timeout_ms"))?,
                idle_ms: field(values, &key("idle_ms"))?,
                keep_open_ms: None,
                budget: (!budget.is_empty()).then_some(budget),
                changes: Changes::default(),
                secret_scope: None,
            },
            runs_max: field(values, &key("runs_max"))?,
        })
    })
}

/// The backend profiles by their name, as far as files say: what a kind knows better is not in here.
pub(super) fn backends(values: &Values) -> Result<BTreeMap<String, BackendProfile>, Vec<Problem>> {
    let own = names(values, "agent").into_iter().filter(|id| native::is(values, id));
    collected(names(values, "backend").into_iter().chain(own), |name| {
        if native::is(values, name) {
            return native::profile(values, name);
        }
        let prefix = format!("backend.{name}.");
        let key = |name: &str| format!("{prefix}{name}");
        let settings = values.iter().filter_map(|(key, value)| {
            let name = key.strip_prefix(&prefix)?.strip_prefix("settings.")?;
            Some((name.to_owned(), value.value.as_str()?.to_owned()))
        });
        Ok(BackendProfile {
            profile: name.to_owned(),
            backend_kind: field(values, &key("kind"))?,
            secret: None,
            required_secret_keys: optional(values, &required_secret_keys(name))?.unwrap_or_default(),
            optional_secret_keys: Vec::new(),
            command: optional(values, &key("command"))?.unwrap_or_default(),
            base_url: optional(values, &key("base_url"))?,
            model: optional(values, &key("model"))?,
            wire: optional(values, &key("wire"))?.unwrap_or_default(),
            // Where the kind can be pointed at it.
            gateway: optional(values, &key("gateway"))?.unwrap_or(true),
            debug_raw: optional(values, &key("debug_raw"))?.unwrap_or_default(),
            settings: settings.collect(),
        })
    })
}

/// Whether it is said which secrets a backend profile needs, be it none; else its kind says so.
pub(super) fn names_secrets(values: &Values, profile: &str) -> bool {
    values.contains_key(&required_secret_keys(profile)) || native::is_keyless(values, profile)
}

fn required_secret_keys(profile: &str) -> String {
    format!("backend.{profile}.required_secret_keys")
}

fn collected<T>(
    names: impl IntoIterator<Item = String>,
    make: impl Fn(&str) -> Result<T, Problem>,
) -> Result<BTreeMap<String, T>, Vec<Problem>> {
    let (mut made, mut problems) = (BTreeMap::new(), Vec::new());
    for name in names {
        match make(&name) {
            Ok(profile) => {
                made.insert(name, profile);
            }
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok(made) } else { Err(problems) }
}

pub(super) fn optional<T: DeserializeOwned>(values: &Values, key: &str) -> Result<Option<T>, Problem> {
    values.contains_key(key).then(|| field(values, key)).transpose()
}

pub(super) fn field<T: DeserializeOwned>(values: &Values, key: &str) -> Result<T, Problem> {
    let Some(value) = values.get(key) else {
        return Err(wrong(values, key, Fault::Missing { key: key.to_owned() }));
    };
    serde_json::from_value::<T>(Value::clone(&value.value))
        .map_err(|source| wrong(values, key, Fault::Unfit { key: key.to_owned(), source }))
}

/// A problem at the value's place, or where something else of the same table stands.
pub(super) fn wrong(values: &Values, key: &str, fault: Fault) -> Problem {
    let table = key.rsplit_once('.').map_or(key, |(table, _)| table);
    let beside = || {
        let mut others = values.iter().filter(|(other, value)| {
            other.starts_with(&format!("{table}.")) && value.origin != Origin::Default
        });
        others.next().map(|(_, value)| value)
    };
    let origin = values.get(key).filter(|value| value.origin != Origin::Default).or_else(beside);
    Problem { origin: origin.map_or(Origin::Default, |value| value.origin.clone()), fault }
}
