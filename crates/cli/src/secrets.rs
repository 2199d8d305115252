//! `runyard secrets`: the keys to model providers, by backend profile.
//!
//! It is a command and no action, so that no other surface has it. A value comes from standard input or from a prompt that does not
//! show it, never from an argument or a variable, and no answer holds one.

mod prompt;
mod value;

use std::io::IsTerminal;

use clap::{Arg, ArgAction, ArgMatches, Command};
use runyard::{ActionError, Code, Issue};
use runyard_domain::BackendProfile;
use runyard_domain::run::Failure;
use runyard_edge::{Secrets, SecretsError, check_projection};
use runyard_engine::Catalog;
use runyard_surfaces::cli::{ExtraCommand, ExtraRun, one_line, show_data};
use serde_json::{Value, json};

use crate::configuration::{Configuration, Environment};
use crate::home::Home;
use crate::run::typed;
use crate::views::is_text;
use crate::wiring;

pub(crate) fn command(home: Home) -> ExtraCommand {
    let command = Command::new("secrets")
        .about("The keys to model providers, by backend profile")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands([set(), list(), check(), rm()]);
    let run = move |matches: ArgMatches| Box::pin(run(home, matches)) as ExtraRun;
    ExtraCommand { command, run: Box::new(run) }
}

fn profile() -> Arg {
    Arg::new("profile").value_name("PROFILE").help("The backend profile, such as codex")
}

fn key() -> Arg {
    Arg::new("key").value_name("KEY")
}

fn set() -> Command {
    Command::new("set")
        .about("Keep a secret of a backend profile")
        .arg(profile().required(true))
        .arg(key().help("Which of its secrets; by default the first one that it cannot do without"))
        // Whoever gives the value here is told better than by a parser, which would repeat it.
        .arg(Arg::new("value").hide(true).num_args(1..))
        .after_help(
            "The value is read from standard input; on a terminal you are asked for it, and it is not shown:\n  \
             runyard secrets set codex\n  \
             runyard secrets set codex auth.json < ~/.codex/auth.json\n\n\
             An API key alone is kept as auth.json with that key in it. Agents see it only where their profile does without the \
             gateway.",
        )
}

fn list() -> Command {
    Command::new("list").about("Which secrets there are; never their values")
}

fn check() -> Command {
    Command::new("check")
        .about("Look whether backend profiles have what they need")
        .arg(profile())
        .after_help("Exit codes: 0 all is there and can be used, 1 something is missing or wrong.")
}

fn rm() -> Command {
    Command::new("rm")
        .about("Remove a secret, or all of a backend profile")
        .arg(profile().required(true))
        .arg(key().help("Which of its secrets; all of them where none is named"))
        .arg(
            Arg::new("yes")
                .long("yes")
                .visible_alias("confirm")
                .action(ArgAction::SetTrue)
                .help("Do not ask"),
        )
}

async fn run(home: Home, matches: ArgMatches) -> Result<u8, ActionError> {
    if Environment::of_process().is_of_a_run() {
        let message = "Secrets are for people only, and this is the environment of a run.";
        return Err(ActionError::new(Code::AuthorizationError, message));
    }
    let site = Site::of(home)?;
    let (data, text) = match matches.subcommand() {
        Some(("set", asked)) => site.set(asked)?,
        Some(("list", _)) => site.list()?,
        Some(("check", asked)) => site.check(asked)?,
        Some(("rm", asked)) => site.remove(asked).await?,
        _ => return Ok(0),
    };
    let form = matches.get_one::<String>("output").map(String::as_str);
    Ok(show_data(&matches, if is_text(form) { text } else { data }))
}

/// What is configured, and where the secrets are.
struct Site {
    home: Home,
    catalog: Catalog,
    secrets: Secrets,
}

/// An answer as JSON, and for people.
type Answer = (Value, Value);

impl Site {
    fn of(home: Home) -> Result<Self, ActionError> {
        let configuration = Configuration::of_data(&home)?;
        let backends = wiring::backends(&home, &configuration)
            .map_err(|error| ActionError::internal(format!("{error:#}")))?;
        let catalog = wiring::catalog(&configuration, &backends);
        let secrets = Secrets::at(&configuration.edge().secrets_directory);
        Ok(Site { home, catalog, secrets })
    }

    fn set(&self, asked: &ArgMatches) -> Result<Answer, ActionError> {
        if asked.get_many::<String>("value").is_some() {
            return Err(invalid(
                "A value is never an argument: your shell and other processes see it. Give it on standard input, or leave it out \
                 to be asked; and do not use this one any more.",
            ));
        }
        let profile = self.profile(text(asked, "profile"))?;
        let key = chosen_key(profile, asked.get_one::<String>("key").map(String::as_str))?;
        let given = match std::io::stdin().is_terminal() {
            true => prompt::ask(&format!("{key} of {} (not shown): ", profile.profile))?,
            false => value::read(std::io::stdin().lock())?,
        };
        let value::Value { bytes, wrapped } = value::of(key, given)?;
        self.home
            .make()
            .map_err(|error| ActionError::new(Code::StorageIo, format!("Cannot keep it: {error}.")))?;
        self.secrets.set(&profile.profile, key, bytes.expose()).map_err(refused)?;
        let name = &profile.profile;
        let mut said = format!("Kept {key} of {name}.");
        if wrapped {
            said.push_str(" It holds the API key that you gave, as OPENAI_API_KEY.");
        }
        Ok((json!({"profile": name, "key": key, "wrapped": wrapped}), said.into()))
    }

    fn list(&self) -> Result<Answer, ActionError> {
        let profiles = self.secrets.profiles().map_err(refused)?;
        let rows = profiles.iter().filter(|found| !found.keys.is_empty());
        let data: Vec<Value> =
            rows.clone().map(|found| json!({"profile": found.profile, "keys": found.keys})).collect();
        let lines: Vec<Value> =
            rows.map(|found| json!({"profile": found.profile, "keys": found.keys.join(", ")})).collect();
        let for_people = match lines.is_empty() {
            true => "No secrets. Keep one with: runyard secrets set PROFILE".into(),
            false => json!({"rows": lines}),
        };
        Ok((json!({"directory": self.secrets.directory(), "secrets": data}), for_people))
    }

    fn check(&self, asked: &ArgMatches) -> Result<Answer, ActionError> {
        let profiles: Vec<&BackendProfile> = match asked.get_one::<String>("profile") {
            Some(name) => vec![self.profile(name)?],
            None => self.catalog.backends.values().filter(|profile| needs_some(profile)).collect(),
        };
        let checked: Vec<(&BackendProfile, Result<Checked, Failure>)> =
            profiles.into_iter().map(|profile| (profile, self.checked(profile))).collect();
        let failures: Vec<&Failure> =
            checked.iter().filter_map(|(_, checked)| checked.as_ref().err()).collect();
        if !failures.is_empty() {
            return Err(unusable(&failures));
        }
        let ready = checked.iter().filter_map(|(profile, checked)| Some((*profile, checked.as_ref().ok()?)));
        let data: Vec<Value> = ready
            .clone()
            .map(|(profile, ready)| json!({"profile": profile.profile, "found": ready.said, "warnings": ready.warnings}))
            .collect();
        let width =
            checked.iter().map(|(profile, _)| profile.profile.chars().count()).max().unwrap_or_default();
        let lines = ready.flat_map(|(profile, ready)| {
            let line = move |word: &str, said: &str| {
                format!("{word:<4}  {:<width$}  {}", profile.profile, one_line(said))
            };
            let warnings = ready.warnings.iter().map(move |warning| line("note", warning));
            [line("ok", &ready.said)].into_iter().chain(warnings)
        });
        let for_people = match data.is_empty() {
            true => "No backend profile needs a secret.".to_owned(),
            false => lines.collect::<Vec<_>>().join("\n"),
        };
        Ok((json!({"profiles": data}), for_people.into()))
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
        let open =
            |key: &&String| self.secrets.look(&profile.profile, key).is_ok_and(|seen| seen.open_to_others);
        let warning = |key: &String| {
            let file = self.secrets.directory().join(&profile.profile).join(key);
            format!("others can read {key}: chmod 600 {}", file.display())
        };
        let keys = profile.required_secret_keys.iter().chain(&profile.optional_secret_keys);
        Ok(Checked { said, warnings: keys.filter(open).map(warning).collect() })
    }

    async fn remove(&self, asked: &ArgMatches) -> Result<Answer, ActionError> {
        let (profile, key) = (text(asked, "profile"), asked.get_one::<String>("key").map(String::as_str));
        let there = self.secrets.profiles().map_err(refused)?;
        let found = there.iter().find(|found| found.profile == profile).map(|found| found.keys.as_slice());
        let going: Vec<&String> =
            found.into_iter().flatten().filter(|name| key.is_none_or(|key| key == name.as_str())).collect();
        if going.is_empty() {
            let there: Vec<String> = there
                .iter()
                .flat_map(|found| found.keys.iter().map(|key| format!("{} {key}", found.profile)))
                .collect();
            let there = if there.is_empty() { "none at all".to_owned() } else { there.join(", ") };
            return Err(ActionError::new(
                Code::NotFound,
                format!("There is no such secret; there are: {there}."),
            ));
        }
        let names = going.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
        if !asked.get_flag("yes") {
            if !typed::can_ask() {
                let message = format!("Say --yes to remove {names} of {profile}.");
                return Err(ActionError::new(Code::ConfirmationRequired, message));
            }
            typed::confirm(&format!("Remove {names} of {profile}? [y/N] ")).await?;
        }
        let gone = self.secrets.remove(profile, key).map_err(refused)?;
        let said = format!("Removed {} of {profile}.", gone.join(", "));
        Ok((json!({"profile": profile, "removed": gone}), said.into()))
    }

    /// A backend profile that is configured. What was given is not repeated: it may be a value in the wrong place.
    fn profile(&self, name: &str) -> Result<&BackendProfile, ActionError> {
        self.catalog.backends.get(name).ok_or_else(|| {
            let known = self.catalog.backends.values().filter(|profile| needs_some(profile));
            let known: Vec<&str> = known.map(|profile| profile.profile.as_str()).collect();
            invalid(format!("PROFILE is no backend profile; those with secrets are: {}.", known.join(", ")))
        })
    }
}

/// What was found of a profile that can be used.
struct Checked {
    said: String,
    warnings: Vec<String>,
}

fn needs_some(profile: &BackendProfile) -> bool {
    !profile.required_secret_keys.is_empty()
}

fn text<'a>(matches: &'a ArgMatches, name: &str) -> &'a str {
    matches.get_one::<String>(name).map(String::as_str).unwrap_or_default()
}

/// The key that is meant, as the profile names it.
fn chosen_key<'a>(profile: &'a BackendProfile, key: Option<&str>) -> Result<&'a str, ActionError> {
    let name = &profile.profile;
    let known: Vec<&str> = profile
        .required_secret_keys
        .iter()
        .chain(&profile.optional_secret_keys)
        .map(String::as_str)
        .collect();
    let Some(first) = known.first() else { return Err(invalid(format!("{name} needs no secret."))) };
    match key {
        None => Ok(*first),
        Some(key) => known.iter().find(|known| **known == key).copied().ok_or_else(|| {
            invalid(format!("KEY is no secret that {name} has; there are: {}.", known.join(", ")))
        }),
    }
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

fn refused(error: SecretsError) -> ActionError {
    ActionError::new(error.code(), sentence(&error.to_string()))
}

fn invalid(message: impl Into<String>) -> ActionError {
    ActionError::new(Code::ValidationError, message)
}

/// The same with its full stop. What begins with a name stays as it is.
fn sentence(text: &str) -> String {
    format!("{}.", text.trim_end_matches('.'))
}
