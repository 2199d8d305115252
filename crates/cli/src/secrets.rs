//! `runyard secrets`: the keys to model providers, by backend profile.
//!
//! It is a command and no action, so that no other surface has it. A value comes from standard input or from a prompt that does not
//! show it, never from an argument or a variable, and no answer holds one.

mod check;
mod prompt;
mod value;

use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};

use clap::{Arg, ArgAction, ArgMatches, Command};
use runyard::{ActionError, Code};
use runyard_domain::BackendProfile;
use runyard_edge::{Secrets, SecretsError};
use runyard_engine::Catalog;
use runyard_surfaces::cli::{ExtraCommand, ExtraRun, one_line, show_data, styled};
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
    let for_people = is_text(matches.get_one::<String>("output").map(String::as_str));
    let ((data, text), exit) = match matches.subcommand() {
        Some(("set", asked)) => (site.set(asked)?, 0),
        Some(("list", _)) => (site.list()?, 0),
        Some(("check", asked)) => site.check(asked, for_people)?,
        Some(("rm", asked)) => match site.remove(asked).await {
            Err(error) if for_people && *error.code() == Code::ConfirmationRequired => {
                return Ok(told_alone(&error));
            }
            done => (done?, 0),
        },
        _ => return Ok(0),
    };
    Ok(show_data(&matches, if for_people { text } else { data }).max(exit))
}

/// Tells an error without what is advised for its code in general, which names the flag of another command.
fn told_alone(error: &ActionError) -> u8 {
    let mut stderr = std::io::stderr().lock();
    let (red, plain) = if styled(&stderr) { ("\x1b[1;31m", "\x1b[0m") } else { ("", "") };
    let (code, message) = (error.code().as_str(), one_line(error.message()));
    let _ = writeln!(stderr, "{red}error[{code}]{plain}: {message}");
    error.code().row().exit
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
            true => prompt::ask(profile.secrets_name(), key)?,
            false => value::read(std::io::stdin().lock())?,
        };
        let value::Value { bytes, wrapped } = value::of(key, given)?;
        self.home
            .make()
            .map_err(|error| ActionError::new(Code::StorageIo, format!("Cannot keep it: {error}.")))?;
        self.refuse_useless(profile, key, &bytes)?;
        self.secrets.set(profile.secrets_name(), key, bytes.expose()).map_err(refused)?;
        let name = profile.secrets_name();
        let mut said = format!("Kept {key} of {name}.");
        if wrapped {
            said.push_str(" It holds the API key that you gave, as OPENAI_API_KEY.");
        }
        let warnings = self.lacking(profile);
        for warning in &warnings {
            said.push_str(&format!("\nnote: {}", one_line(warning)));
        }
        let data = json!({"profile": name, "key": key, "wrapped": wrapped, "warnings": warnings});
        Ok((data, said.into()))
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

    async fn remove(&self, asked: &ArgMatches) -> Result<Answer, ActionError> {
        let (profile, key) = (text(asked, "profile"), asked.get_one::<String>("key").map(String::as_str));
        let there = self.secrets.profiles().map_err(refused)?;
        let found = there.iter().find(|found| found.profile == profile).map(|found| found.keys.as_slice());
        let going: Vec<&String> =
            found.into_iter().flatten().filter(|name| key.is_none_or(|key| key == name.as_str())).collect();
        if going.is_empty() {
            return Err(self.nothing_to_remove(profile, key));
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

    /// A name that is none of a profile is not repeated either.
    fn nothing_to_remove(&self, profile: &str, key: Option<&str>) -> ActionError {
        let name = if self.catalog.backends.contains_key(profile) { profile } else { "The name you gave" };
        let what = if key.is_some() { "no such secret" } else { "no secrets" };
        let message = format!("{name} has {what}; \"runyard secrets list\" shows what there is.");
        ActionError::new(Code::NotFound, message)
    }

    /// A backend profile that is configured. What was given is not repeated: it may be a value in the wrong place.
    fn profile(&self, name: &str) -> Result<&BackendProfile, ActionError> {
        // Several profiles may use the secrets of one name, which need not be a profile's.
        let named = self.catalog.backends.values().find(|profile| profile.secrets_name() == name);
        named.or_else(|| self.catalog.backends.get(name)).ok_or_else(|| {
            let known = self.catalog.backends.values().filter(|profile| needs_some(profile));
            let known: BTreeSet<&str> = known.map(BackendProfile::secrets_name).collect();
            let known = known.into_iter().collect::<Vec<_>>().join(", ");
            invalid(format!("The name you gave is no backend profile; those that need secrets are: {known}."))
        })
    }
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
            invalid(format!("The key you named is no secret of {name}; there are: {}.", known.join(", ")))
        }),
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
