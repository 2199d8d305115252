//! What the gateway needs of a profile's secrets: the provider's address and its key.

use runyard_backend::{NoKey, OPENAI_KEY, api_key};
use runyard_domain::run::{Failure, FailureKind};
use runyard_domain::{BackendProfile, Wire};

use crate::Secret;
use crate::gateway::Upstream;
use crate::secrets::{BadForm, json_of, toml_of};

/// Where codex keeps its provider's key.
pub(super) const AUTH: &str = "auth.json";
/// Where codex is told about providers.
pub(super) const CONFIG: &str = "config.toml";

/// The provider behind the gateway.
pub(super) fn upstream(
    profile: &BackendProfile,
    auth: &Secret,
    config: Option<&Secret>,
) -> Result<Upstream, Failure> {
    let name = profile.secrets_name();
    let auth = json_of(auth.expose()).map_err(|error| bad_form(name, AUTH, error))?;
    let key = api_key(&auth, profile.wire).map_err(|why| no_key(name, why))?;
    let configured = match (&profile.base_url, config) {
        (Some(url), _) => Some(url.clone()),
        (None, Some(config)) => {
            let config = toml_of(config.expose()).map_err(|error| bad_form(name, CONFIG, error))?;
            base_url(&config).map(str::to_owned)
        }
        (None, None) => None,
    };
    let base_url = configured.or(profile.wire.base_url().map(str::to_owned));
    let base_url = base_url.ok_or_else(|| no_address(&profile.profile))?;
    Ok(Upstream { base_url, wire: profile.wire, key: Secret::new(key.as_bytes().to_vec()) })
}

/// Refuses an auth file in which there is neither a key nor a login.
pub(super) fn check_credential(profile: &str, wire: Wire, auth: &Secret) -> Result<(), Failure> {
    let auth = json_of(auth.expose()).map_err(|error| bad_form(profile, AUTH, error))?;
    match api_key(&auth, wire) {
        Ok(_) | Err(NoKey::Login | NoKey::Several) => Ok(()),
        Err(NoKey::None) => Err(no_key(profile, NoKey::None)),
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
