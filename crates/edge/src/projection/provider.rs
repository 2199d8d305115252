//! What the gateway needs of a profile's secrets: the provider's address and its key.

use runyard_domain::run::{Failure, FailureKind};
use runyard_domain::{BackendProfile, Wire};
use serde_json::{Map, Value};

use crate::Secret;
use crate::gateway::Upstream;
use crate::secrets::{BadForm, json_of, toml_of};

/// Where codex keeps its provider's key.
pub(super) const AUTH: &str = "auth.json";
/// Where codex is told about providers.
pub(super) const CONFIG: &str = "config.toml";

/// The key that counts where there are several.
const OPENAI_KEY: &str = "OPENAI_API_KEY";
/// How the names of other providers' keys end.
const KEY_ENDING: &str = "_API_KEY";
/// Where OpenAI listens.
const OPENAI_URL: &str = "https://api.openai.com/v1";

/// The provider behind the gateway.
pub(super) fn upstream(
    profile: &BackendProfile,
    auth: &Secret,
    config: Option<&Secret>,
) -> Result<Upstream, Failure> {
    let name = &profile.profile;
    let auth = json_of(auth.expose()).map_err(|error| bad_form(name, AUTH, error))?;
    let key = key(&auth).map_err(|why| no_key(name, why))?;
    let configured = match (&profile.base_url, config) {
        (Some(url), _) => Some(url.clone()),
        (None, Some(config)) => {
            let config = toml_of(config.expose()).map_err(|error| bad_form(name, CONFIG, error))?;
            base_url(&config).map(str::to_owned)
        }
        (None, None) => None,
    };
    let base_url = match (configured, profile.wire) {
        (Some(url), _) => url,
        (None, Wire::Responses) => OPENAI_URL.to_owned(),
        (None, Wire::Chat) => return Err(no_address(name)),
    };
    Ok(Upstream { base_url, wire: profile.wire, key: Secret::new(key.as_bytes().to_vec()) })
}

/// Refuses an auth file in which there is neither a key nor a login.
pub(super) fn check_credential(profile: &str, auth: &Secret) -> Result<(), Failure> {
    let auth = json_of(auth.expose()).map_err(|error| bad_form(profile, AUTH, error))?;
    match key(&auth) {
        Ok(_) | Err(NoKey::Login | NoKey::Several) => Ok(()),
        Err(NoKey::None) => Err(no_key(profile, NoKey::None)),
    }
}

/// Why there is no key to use.
enum NoKey {
    /// A person's login instead of a key.
    Login,
    /// More than one, and none that comes first.
    Several,
    /// None.
    None,
}

fn key(auth: &Map<String, Value>) -> Result<&str, NoKey> {
    let text = |value: &'_ Value| value.as_str().is_some_and(|text| !text.trim().is_empty());
    if let Some(key) = auth.get(OPENAI_KEY).filter(|key| text(key)).and_then(Value::as_str) {
        return Ok(key.trim());
    }
    let mut others = auth.iter().filter(|(name, value)| name.ends_with(KEY_ENDING) && text(value));
    match (others.next().and_then(|(_, value)| value.as_str()), others.next()) {
        (Some(key), None) => Ok(key.trim()),
        (Some(_), Some(_)) => Err(NoKey::Several),
        (None, _) if auth.get("tokens").is_some_and(Value::is_object) => Err(NoKey::Login),
        (None, _) => Err(NoKey::None),
    }
}

/// The address of the provider that the configuration chooses.
fn base_url(config: &toml::Table) -> Option<&str> {
    let chosen = config.get("model_provider")?.as_str()?;
    config.get("model_providers")?.get(chosen)?.get("base_url")?.as_str()
}

fn no_key(profile: &str, why: NoKey) -> Failure {
    let why = match why {
        NoKey::Login => format!(
            "{AUTH} of {profile} holds a ChatGPT login and no API key, which the gateway cannot use: say gateway = false in \
             [backend.{profile}] to give it to the agent itself, or set an API key with \"runyard secrets set {profile} {AUTH}\""
        ),
        NoKey::Several => format!(
            "{AUTH} of {profile} holds several keys and no {OPENAI_KEY}: leave only the one to use, with \"runyard secrets set \
             {profile} {AUTH}\""
        ),
        NoKey::None => format!(
            "{AUTH} of {profile} holds no {OPENAI_KEY}: set one with \"runyard secrets set {profile} {AUTH}\""
        ),
    };
    Failure::of_backend(FailureKind::ProviderAuthFailed, why)
}

fn no_address(profile: &str) -> Failure {
    let message = format!("{profile} has wire = \"chat\" and no base_url: say one in [backend.{profile}]");
    Failure::of_backend(FailureKind::BackendSpawnFailed, message)
}

/// A bad auth file is a provider's refusal before it is asked; with any other the agent would not start.
pub(super) fn bad_form(profile: &str, key: &str, error: BadForm) -> Failure {
    let kind = match key {
        AUTH => FailureKind::ProviderAuthFailed,
        _ => FailureKind::BackendSpawnFailed,
    };
    let message = format!(
        "{key} of {profile} cannot be used: {error}; set it again with \"runyard secrets set {profile} {key}\""
    );
    Failure::of_backend(kind, message)
}
