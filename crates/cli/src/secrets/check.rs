//! Whether what a profile has, or is about to be given, can be used.
//!
//! The judgement is the edge's own, on files: what is not kept yet lies in a directory of its own for that long.

use std::path::PathBuf;

use clap::ArgMatches;
use runyard::{ActionError, Code, Issue};
use runyard_domain::run::Failure;
use runyard_domain::{BackendProfile, Wire};
use runyard_edge::{Secret, Secrets, check_projection};
use runyard_surfaces::cli::one_line;
use serde_json::{Value, json};

use super::{Answer, Site, invalid, needs_some, refused, sentence};

/// What was found of a profile that can be used.
struct Checked {
    said: String,
    warnings: Vec<String>,
}

/// A profile, and what a run of it would find.
type Judged<'a> = (&'a BackendProfile, Result<Checked, Failure>);

/// Secrets of nobody, which are gone when this is dropped.
struct Draft {
    directory: PathBuf,
}

impl Drop for Draft {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

impl Site {
    /// Looks at one profile or at all, with the exit code. People are told of each; others get what is wrong as an error.
    pub(super) fn check(&self, asked: &ArgMatches, for_people: bool) -> Result<(Answer, u8), ActionError> {
        let profiles: Vec<&BackendProfile> = match asked.get_one::<String>("profile") {
            Some(name) => vec![self.profile(name)?],
            None => self.catalog.backends.values().filter(|profile| needs_some(profile)).collect(),
        };
        let judged: Vec<Judged<'_>> =
            profiles.into_iter().map(|profile| (profile, self.checked(profile))).collect();
        let failures: Vec<&Failure> = judged.iter().filter_map(|(_, found)| found.as_ref().err()).collect();
        if !failures.is_empty() && !for_people {
            return Err(unusable(&failures));
        }
        let ready = judged.iter().filter_map(|(profile, found)| Some((profile, found.as_ref().ok()?)));
        let data: Vec<Value> = ready
            .map(|(profile, ready)| json!({"profile": profile.profile, "found": ready.said, "warnings": ready.warnings}))
            .collect();
        Ok(((json!({"profiles": data}), lines(&judged).into()), u8::from(!failures.is_empty())))
    }

    /// What a run of a profile would find.
    fn checked(&self, profile: &BackendProfile) -> Result<Checked, Failure> {
        if !needs_some(profile) {
            return Ok(Checked { said: "it needs none".to_owned(), warnings: Vec::new() });
        }
        let said = match self.catalog.kinds.get(&profile.backend_kind) {
            Some(info) => check_projection(&self.secrets, profile, info)?,
            None => String::new(),
        };
        let open = |key: &&String| {
            self.secrets.look(profile.secrets_name(), key).is_ok_and(|seen| seen.open_to_others)
        };
        let warning = |key: &String| {
            let file = self.secrets.directory().join(profile.secrets_name()).join(key);
            format!("others can read {key}: chmod 600 {}", file.display())
        };
        let keys = profile.required_secret_keys.iter().chain(&profile.optional_secret_keys);
        Ok(Checked { said, warnings: keys.filter(open).map(warning).collect() })
    }

    /// What a profile still lacks, now that one of its secrets is kept.
    pub(super) fn lacking(&self, profile: &BackendProfile) -> Vec<String> {
        match self.checked(profile) {
            Ok(checked) => checked.warnings,
            Err(failure) => {
                vec![format!("{} cannot be used yet: {}", profile.profile, sentence(&failure.message))]
            }
        }
    }

    /// Refuses a value that no run could use, before it takes the place of one that can be. It is judged as if the agent itself got
    /// it: whether the gateway can use it too is a matter of the configuration, which may follow.
    pub(super) fn refuse_useless(
        &self,
        profile: &BackendProfile,
        key: &str,
        value: &Secret,
    ) -> Result<(), ActionError> {
        let Some(info) = self.catalog.kinds.get(&profile.backend_kind) else { return Ok(()) };
        let draft = Draft { directory: self.home.path().join(format!(".secret-{}", std::process::id())) };
        let secrets = Secrets::at(&draft.directory);
        secrets.set(profile.secrets_name(), key, value.expose()).map_err(refused)?;
        let alone = BackendProfile {
            required_secret_keys: vec![key.to_owned()],
            optional_secret_keys: Vec::new(),
            gateway: false,
            wire: Wire::Responses,
            ..profile.clone()
        };
        check_projection(&secrets, &alone, info).map(drop).map_err(|failure| {
            invalid(format!("Nothing is kept, because it could not be used: {}", sentence(&failure.message)))
        })
    }
}

/// A line for each profile, and for each warning.
fn lines(judged: &[Judged<'_>]) -> String {
    if judged.is_empty() {
        return "No backend profile needs a secret.".to_owned();
    }
    let width = judged.iter().map(|(profile, _)| profile.profile.chars().count()).max().unwrap_or_default();
    let mut lines = Vec::new();
    for (profile, found) in judged {
        let line =
            |word: &str, said: &str| format!("{word:<4}  {:<width$}  {}", profile.profile, one_line(said));
        match found {
            Ok(checked) => {
                lines.push(line("ok", &checked.said));
                lines.extend(checked.warnings.iter().map(|warning| line("note", warning)));
            }
            Err(failure) => lines.push(line("do", &failure.message)),
        }
    }
    lines.join("\n")
}

/// What is missing or wrong: one in the message, several as an issue each.
fn unusable(failures: &[&Failure]) -> ActionError {
    let said: Vec<String> = failures.iter().map(|failure| sentence(&failure.message)).collect();
    let kind = failures.iter().find_map(|failure| failure.failure_kind);
    let code = kind.map_or(Code::SecretUnavailable, |kind| kind.code());
    match said.as_slice() {
        [only] => ActionError::new(code, only),
        all => {
            let message = format!("{} backend profiles cannot be used.", all.len());
            ActionError::new(code, message).with_issues(all.iter().map(Issue::root).collect())
        }
    }
}
