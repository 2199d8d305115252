//! The backend profiles: program, version, secrets by name, and how each reaches its provider.
//!
//! Nothing is started but a program's `--version`; `runyard backends check` does more. What a secret holds is not looked at.

use runyard_backend::Backend;
use runyard_domain::BackendProfile;
use runyard_edge::Secrets;

use super::{Finding, GIVE_IT_WITH};
use crate::configuration::Configuration;
use crate::home::Home;
use crate::wiring;

/// Whether each backend profile could start.
pub(super) async fn backends(home: &Home) -> Vec<Finding> {
    let Ok(configuration) = Configuration::of_data(home) else { return Vec::new() };
    let Ok(known) = wiring::backends(home, &configuration) else { return Vec::new() };
    let secrets = Secrets::at(&configuration.edge().secrets_directory);
    let mut findings = Vec::new();
    for profile in wiring::catalog(&configuration, &known).backends.values() {
        let what = format!("backend {}", profile.profile);
        match known.get(&profile.backend_kind) {
            Some(backend) => {
                findings.push(program(&what, &**backend, profile).await);
                findings.extend(secrets_of(&secrets, profile));
            }
            None => {
                let found = format!("nothing here runs the kind {}", profile.backend_kind);
                let kinds: Vec<&str> = known.keys().map(String::as_str).collect();
                let next = format!("Choose one of these kinds: {}.", kinds.join(", "));
                findings.push(Finding::to_do(&what, found, next));
            }
        }
    }
    findings
}

async fn program(what: &str, backend: &dyn Backend, profile: &BackendProfile) -> Finding {
    match backend.check(profile).await {
        Ok(found) => Finding::ok(what, found),
        // Others can be used without it.
        Err(error) => {
            let recovery = error.failure_kind.code().row().recovery;
            let install = backend.install().map(|install| format!(" Get it with: {install}"));
            Finding::note(what, error.message, format!("{recovery}{}", install.unwrap_or_default()))
        }
    }
}

/// Which secrets a profile has, where it needs any. Other profiles can be used without them.
fn secrets_of(secrets: &Secrets, profile: &BackendProfile) -> Option<Finding> {
    let (name, required) = (&profile.profile, &profile.required_secret_keys);
    if required.is_empty() {
        return None;
    }
    let what = format!("secrets {name}");
    let missing = required.iter().find_map(|key| Some((key, secrets.look(name, key).err()?)));
    Some(match missing {
        Some((key, error)) => {
            let next = format!("{GIVE_IT_WITH}runyard secrets set {name} {key}");
            Finding::note(&what, error.to_string(), next)
        }
        None => {
            let optional = profile.optional_secret_keys.iter().filter(|key| secrets.look(name, key).is_ok());
            let keys: Vec<&str> = required.iter().chain(optional).map(String::as_str).collect();
            let how = match profile.gateway {
                true => "the gateway keeps the provider's key to itself",
                false => "copied into the agent's own home",
            };
            Finding::ok(&what, format!("{}; {how}", keys.join(", ")))
        }
    })
}
