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

/// How an adapter says that its program is not there.
const NO_PROGRAM: &str = "there is no program ";
/// What begins the part of a failure that says what to do.
const STEPS: [&str; 4] = [": set ", "; set ", ": say ", ": leave "];

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
    match backend.check(profile, &wiring::probe()).await {
        Ok(found) => Finding::ok(what, found),
        // Others can be used without it.
        Err(error) => {
            match backend.install().zip(error.message.split_once(NO_PROGRAM)) {
                // The command that gets it says more than the advice that is the same for all.
                Some((install, (before, rest))) => {
                    let program = rest.split(';').next().unwrap_or_default();
                    let next = format!(
                        "Get it with: {install} — or name it in \"command\" of [backend.{}].",
                        profile.profile
                    );
                    Finding::note(what, format!("{before}{NO_PROGRAM}{program}"), next)
                }
                None => Finding::note(what, error.message, error.failure_kind.code().row().recovery),
            }
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
            let command =
                format!("runyard secrets set {} {}", profile.secrets_name(), profile.required_secret_keys[0]);
            let (found, next) = parted(&failure.message, &command);
            Finding::note(&what, found, next)
        }
    })
}

/// What was found, and what to do about it: a failure says both in one sentence.
fn parted(message: &str, command: &str) -> (String, String) {
    let give = format!("{GIVE_IT_WITH}{command}");
    for step in STEPS {
        if let Some((found, rest)) = message.rsplit_once(step) {
            if step.ends_with("set ") && rest.contains(command) {
                return (found.to_owned(), give);
            }
            let mut next = format!("{}{rest}.", &step[2..]);
            next[..1].make_ascii_uppercase();
            return (found.to_owned(), next);
        }
    }
    (message.to_owned(), give)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_and_what_to_do_are_each_said_once() {
        let command = "runyard secrets set codex auth.json";
        let give = "Give it with: runyard secrets set codex auth.json";
        for (message, found, next) in [
            (
                "auth.json of codex is missing: set it with \"runyard secrets set codex auth.json\"",
                "auth.json of codex is missing",
                give,
            ),
            (
                "auth.json of codex cannot be used: no JSON; set it again with \"runyard secrets set codex auth.json\"",
                "auth.json of codex cannot be used: no JSON",
                give,
            ),
            (
                "a login, which the gateway cannot use: say gateway = false, or set a key with \"runyard secrets set codex auth.json\"",
                "a login, which the gateway cannot use",
                "Say gateway = false, or set a key with \"runyard secrets set codex auth.json\".",
            ),
            (
                "several keys: leave only the one to use, with \"runyard secrets set codex auth.json\"",
                "several keys",
                "Leave only the one to use, with \"runyard secrets set codex auth.json\".",
            ),
            ("too much of it: 9 bytes", "too much of it: 9 bytes", give),
        ] {
            assert_eq!(parted(message, command), (found.to_owned(), next.to_owned()));
        }
    }
}
