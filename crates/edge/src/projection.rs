//! Secret projection: which of one backend profile's secrets one run is given, and how.
//!
//! It is decided by the profile, the run's execution policy and the directory of secrets, and by nothing else: no other profile's
//! secrets, no variable of the edge. Where something is missing the run fails; there is no second choice. It writes nothing: the
//! adapter puts the files where its agent looks for them, and [`private_files`](crate::private_files) takes them away.

mod known;
mod provider;

use runyard_backend::{BackendInfo, SecretFile};
use runyard_domain::run::{Failure, FailureKind};
use runyard_domain::{BackendProfile, ProviderCredential, SecretRef, SecretScope, Wire};
use runyard_redact::Known;

use self::provider::{AUTH, CONFIG};
use crate::gateway::Upstream;
use crate::secrets::{SecretsError, check_form};
use crate::{Secret, Secrets};

/// How much a run is given at most, in bytes: all of it is looked for in whatever the run says.
const PROJECTED_BYTES_MAX: usize = 256 * 1024;

/// What one run is given.
#[derive(Debug)]
pub(crate) struct Projection {
    /// How its agent reaches its provider.
    pub(crate) how: How,
    /// What is put into its home.
    pub(crate) files: Vec<SecretFile>,
    /// Every value in it, for the redactor.
    pub(crate) known: Vec<Known>,
    /// The names of what was read, for the record.
    pub(crate) keys: Vec<String>,
    /// What is said of it, without any value.
    pub(crate) said: String,
}

/// How an agent reaches its provider.
#[derive(Debug)]
pub(crate) enum How {
    /// It needs no secret.
    Nothing,
    /// Through the gateway, which holds the provider's key.
    Gateway(Upstream),
    /// By itself, with what is in its home.
    Files,
}

/// Decides what a run of this profile is given.
pub(crate) fn project(
    secrets: &Secrets,
    profile: &BackendProfile,
    scope: &SecretScope,
    info: &BackendInfo,
) -> Result<Projection, Failure> {
    let by_gateway = profile.gateway && info.gateway;
    let translated = by_gateway && profile.required_secret_keys.iter().any(|key| key == AUTH);
    if info.gateway && !info.wires.contains(&profile.wire) {
        match profile.wire {
            Wire::Chat if translated => {}
            Wire::Chat => return Err(chat_needs_the_gateway(&profile.profile)),
            Wire::Responses | Wire::Messages => return Err(not_spoken(profile)),
        }
    }
    // A reference to another profile's secrets is none to this one's.
    let is_own = |found: &&ProviderCredential| {
        found.profile == profile.profile && found.secret_ref.name == profile.secrets_name()
    };
    let Some(credential) = scope.provider_credentials.iter().find(is_own) else {
        return match profile.required_secret_keys.is_empty() {
            true => Ok(nothing()),
            false => Err(not_in_scope(&profile.profile)),
        };
    };
    let read = read(secrets, profile, &credential.secret_ref.keys)?;
    if read.is_empty() {
        return Ok(nothing());
    }
    for (key, value) in &read {
        check_form(key, value.expose())
            .map_err(|error| provider::bad_form(profile.secrets_name(), key, error))?;
    }
    let auth = read.iter().find(|(key, _)| key == AUTH).map(|(_, value)| value);
    let config = read.iter().find(|(key, _)| key == CONFIG).map(|(_, value)| value);
    let how = match auth {
        Some(auth) if by_gateway => How::Gateway(provider::upstream(profile, auth, config)?),
        Some(auth) => {
            provider::check_credential(profile.secrets_name(), profile.wire, auth)?;
            How::Files
        }
        None => How::Files,
    };
    let mut known = known::of_files(&read).map_err(|error| too_much(&profile.profile, error))?;
    known.extend(profile.base_url.iter().flat_map(|url| known::of_url(url)));
    let keys: Vec<String> = read.iter().map(|(key, _)| key.clone()).collect();
    let held_back = |key: &str| matches!(how, How::Gateway(_)) && key == AUTH;
    let said = said(profile.secrets_name(), &keys, held_back);
    let file =
        |(key, value): &(String, Secret)| SecretFile { key: key.clone(), content: value.expose().to_vec() };
    let files = read.iter().filter(|(key, _)| !held_back(key)).map(file).collect();
    Ok(Projection { how, files, known, keys, said })
}

/// Whether a run of this profile would be given what it needs, and what is said of it then. No value is kept.
pub fn check_projection(
    secrets: &Secrets,
    profile: &BackendProfile,
    info: &BackendInfo,
) -> Result<String, Failure> {
    let name = profile.profile.clone();
    let secret_ref = SecretRef { name: profile.secrets_name().to_owned(), keys: Vec::new() };
    let credential = ProviderCredential { profile: name, secret_ref };
    let scope = SecretScope { provider_credentials: vec![credential] };
    project(secrets, profile, &scope, info).map(|projection| projection.said)
}

/// Reads what the run's execution policy and the profile both name: all that is required, and what there is of the rest.
fn read(
    secrets: &Secrets,
    profile: &BackendProfile,
    named: &[String],
) -> Result<Vec<(String, Secret)>, Failure> {
    let name = profile.secrets_name();
    let is_named = |key: &str| named.is_empty() || named.iter().any(|named| named == key);
    let (mut read, mut bytes) = (Vec::new(), 0);
    let required = profile.required_secret_keys.iter().map(|key| (key, true));
    let optional = profile.optional_secret_keys.iter().map(|key| (key, false));
    for (key, required) in required.chain(optional) {
        match (is_named(key), required) {
            (true, _) => {}
            (false, true) => return Err(not_named(name, key)),
            (false, false) => continue,
        }
        let value = match secrets.read(name, key) {
            Err(SecretsError::Missing { .. }) if !required => continue,
            value => value.map_err(|error| unavailable(name, key, &error))?,
        };
        bytes += value.expose().len();
        if bytes > PROJECTED_BYTES_MAX {
            return Err(too_much(name, known::TooMuch::Bytes { max: PROJECTED_BYTES_MAX }));
        }
        read.push((key.clone(), value));
    }
    Ok(read)
}

fn nothing() -> Projection {
    Projection {
        how: How::Nothing,
        files: Vec::new(),
        known: Vec::new(),
        keys: Vec::new(),
        said: "no secret is projected".to_owned(),
    }
}

fn said(profile: &str, keys: &[String], held_back: impl Fn(&str) -> bool) -> String {
    let (held, given): (Vec<&str>, Vec<&str>) =
        keys.iter().map(String::as_str).partition(|key| held_back(key));
    let mut said = Vec::new();
    if !held.is_empty() {
        said.push(format!("{} of {profile}, held by the gateway", held.join(", ")));
    }
    if !given.is_empty() {
        said.push(format!("{} of {profile}, in the session's home", given.join(", ")));
    }
    said.join("; ")
}

fn not_in_scope(profile: &str) -> Failure {
    let message = format!(
        "the run's execution policy names no secrets of {profile}: secretScope.providerCredentials must name them"
    );
    Failure::of_backend(FailureKind::SecretUnavailable, message)
}

fn not_named(profile: &str, key: &str) -> Failure {
    let message = format!(
        "the run's execution policy does not name {key} of {profile}, which {profile} cannot do without"
    );
    Failure::of_backend(FailureKind::SecretUnavailable, message)
}

fn unavailable(profile: &str, key: &str, error: &SecretsError) -> Failure {
    let message = format!("{error}: set it with \"runyard secrets set {profile} {key}\"");
    Failure::of_backend(FailureKind::SecretUnavailable, message)
}

fn too_much(profile: &str, error: known::TooMuch) -> Failure {
    let message = format!("the secrets of {profile} cannot all be kept out of what the run says: {error}");
    Failure::of_backend(FailureKind::SecretUnavailable, message)
}

fn chat_needs_the_gateway(profile: &str) -> Failure {
    let message = format!(
        "{profile} has wire = \"chat\", which its agent does not speak: the gateway translates it, with gateway = true and {AUTH} \
         among required_secret_keys in [backend.{profile}]"
    );
    Failure::of_backend(FailureKind::BackendSpawnFailed, message)
}

fn not_spoken(profile: &BackendProfile) -> Failure {
    let (name, wire) = (&profile.profile, profile.wire.as_str());
    let message = format!(
        "{name} has wire = \"{wire}\", which its agent does not speak and the gateway does not translate: an agent with backend = \
         \"native\" speaks it"
    );
    Failure::of_backend(FailureKind::BackendSpawnFailed, message)
}

#[cfg(test)]
mod tests;
