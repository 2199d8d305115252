//! The backend profiles: program, version, secrets by name, and how each reaches its provider.
//!
//! Nothing is started but a program's `--version`; `runyard backends check` does more. No value of a secret is shown.

use runyard_backend::Backend;
use runyard_domain::BackendProfile;
use runyard_edge::{Secrets, check_projection};

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
                findings.extend(secrets_of(&secrets, &**backend, profile));
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
            let install = backend.install().filter(|_| error.message.contains("there is no program"));
            let install = install.map(|install| format!(" Get it with: {install}"));
            Finding::note(what, error.message, format!("{recovery}{}", install.unwrap_or_default()))
        }
    }
}

/// Whether a run of a profile could use its secrets, where it needs any. Other profiles can be used without them.
fn secrets_of(secrets: &Secrets, backend: &dyn Backend, profile: &BackendProfile) -> Option<Finding> {
    if profile.required_secret_keys.is_empty() {
        return None;
    }
    let what = format!("secrets {}", profile.profile);
    Some(match check_projection(secrets, profile, &backend.info()) {
        Ok(found) => Finding::ok(&what, found),
        Err(failure) => {
            let key = &profile.required_secret_keys[0];
            let next = format!("{GIVE_IT_WITH}runyard secrets set {} {key}", profile.profile);
            Finding::note(&what, failure.message, next)
        }
    })
}
