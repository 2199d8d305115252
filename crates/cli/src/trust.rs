//! `runyard trust`: a person says that a project's configuration counts as it is, byte for byte.
//!
//! It is a command and no action, so that no other surface has it. What it shows is what it records: the file is read once.

mod records;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use runyard::{ActionError, Code, Issue, command_actions};
use runyard_domain::gate::Effect;
use runyard_store::{Clock, SystemClock};
use runyard_surfaces::cli::{ExtraCommand, ExtraRun, local_actor, show_data};
use serde_json::{Value, json};

pub(crate) use self::records::{Digest, Standing, TrustRecords, Trusted};
use crate::config_show::{redactor, shown};
use crate::configuration::{
    ConfigurationProblems, Environment, FILE_NAME, Fault, Origin, Problem, ProjectLayer, files_above,
};
use crate::home::Home;

pub(crate) fn command(home: Home) -> ExtraCommand {
    let flag = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
    };
    let command = Command::new("trust")
        .about("Let a project's runyard.toml count as it is now; any change to it ends that")
        .arg(
            Arg::new("path")
                .value_name("PATH")
                .value_parser(value_parser!(PathBuf))
                .help("The file or its directory; by default that of the current project"),
        )
        .arg(flag("list", "List what is trusted").conflicts_with_all(["path", "revoke", "confirm"]))
        .arg(flag("revoke", "No longer trust it").conflicts_with("confirm"))
        .arg(flag("confirm", "Do not ask"));
    let run = move |matches: ArgMatches| {
        Box::pin(async move {
            let path = matches.get_one::<PathBuf>("path").map(PathBuf::as_path);
            let data = if matches.get_flag("list") {
                list(&home)?
            } else if matches.get_flag("revoke") {
                people_only(&Environment::of_process())?;
                revoke(&home, path)?
            } else {
                people_only(&Environment::of_process())?;
                trust(&home, path, &matches)?
            };
            Ok(show_data(&matches, data))
        }) as ExtraRun
    };
    ExtraCommand { command, run: Box::new(run) }
}

/// An agent that calls this from its run is told so. What keeps one that hides it from succeeding is that no agent can write
/// the data directory.
fn people_only(environment: &Environment) -> Result<(), ActionError> {
    if environment.is_of_a_run() {
        let message = "Trust is for people only, and this is the environment of a run.";
        return Err(ActionError::new(Code::AuthorizationError, message));
    }
    Ok(())
}

fn list(home: &Home) -> Result<Value, ActionError> {
    let records = TrustRecords::read(home.path()).map_err(|problem| ConfigurationProblems(vec![problem]))?;
    let row = |record: &Trusted| {
        let state = match ProjectLayer::of(record.path.clone(), &records) {
            Ok(layer) => match layer.standing {
                Standing::Trusted => "trusted",
                Standing::WritableByOthers => "writable by others",
                Standing::Changed | Standing::Unknown => "changed",
            },
            Err(_) if !record.path.exists() => "gone",
            Err(_) => "broken",
        };
        json!({"path": record.path, "state": state, "at": record.at, "by": record.by, "digest": record.digest})
    };
    Ok(json!({"trusted": records.all().iter().map(row).collect::<Vec<_>>()}))
}

fn revoke(home: &Home, path: Option<&Path>) -> Result<Value, ActionError> {
    let file = named(home, path)?;
    home.make().map_err(|error| refused(error.into()))?;
    let (by, now) = (&local_actor().id, SystemClock.now());
    match TrustRecords::revoke(home.path(), &file, by, now).map_err(refused)? {
        Some(record) => Ok(json!({"path": record.path, "state": "revoked", "digest": record.digest})),
        None => Err(ActionError::new(Code::ValidationError, format!("{} is not trusted.", file.display()))),
    }
}

fn trust(home: &Home, path: Option<&Path>, matches: &ArgMatches) -> Result<Value, ActionError> {
    let file = named(home, path)?;
    let records = TrustRecords::read(home.path()).map_err(|problem| ConfigurationProblems(vec![problem]))?;
    let layer = ProjectLayer::of(file, &records)?;
    check(&layer)?;
    let answer = |state: &str, summary: Value| json!({"path": *layer.file, "state": state, "digest": layer.digest, "declares": summary});
    let summary = Summary::of(&layer)?;
    if layer.standing == Standing::Trusted {
        return Ok(answer("trusted already", json!(summary.lines)));
    }
    let said = match matches.get_flag("confirm") {
        true => Some(true),
        false => asked(&layer, &summary, matches)?,
    };
    if said == Some(false) {
        return Err(ActionError::new(Code::ConfirmationRequired, "Not trusted."));
    }
    if said.is_none() {
        let issues = summary.lines.iter().map(Issue::root).collect();
        let message = format!(
            "Say --confirm to trust {} as it is now. {}",
            layer.file.display(),
            summary.in_a_sentence()
        );
        return Err(ActionError::new(Code::ConfirmationRequired, message).with_issues(issues));
    }
    let record = Trusted {
        path: layer.file.to_path_buf(),
        digest: layer.digest.clone(),
        at: SystemClock.now(),
        by: local_actor().id.clone(),
    };
    home.make().map_err(|error| refused(error.into()))?;
    TrustRecords::add(home.path(), record).map_err(refused)?;
    Ok(answer("trusted", json!(summary.lines)))
}

/// What cannot count is not trusted: a file that others can write, actions that are not well defined.
fn check(layer: &ProjectLayer) -> Result<(), ConfigurationProblems> {
    let mut problems = Vec::new();
    if layer.writable_by_others {
        let place = crate::configuration::Place::new(&layer.file, 1);
        problems.push(Problem { origin: Origin::Project(place), fault: Fault::WritableByOthers });
    }
    let base = layer.file.parent().unwrap_or(Path::new("/"));
    for action in &layer.content.actions {
        if let Err(error) = command_actions(&action.value.document, base) {
            let origin = Origin::Project(action.place.clone());
            problems.push(Problem { origin, fault: Fault::Action(error) });
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(ConfigurationProblems(problems)) }
}

/// The file that is meant, under the path by which it is found.
fn named(home: &Home, path: Option<&Path>) -> Result<PathBuf, ActionError> {
    let invalid = |message: String| ActionError::new(Code::ValidationError, message);
    let file = match path {
        None => {
            let here = std::env::current_dir().map_err(|error| invalid(format!("No directory: {error}.")))?;
            let found = files_above(&here, home.path()).pop();
            found.ok_or_else(|| invalid(format!("There is no {FILE_NAME} here or above.")))?
        }
        Some(path) if path.is_dir() => path.join(FILE_NAME),
        Some(path) => path.to_owned(),
    };
    if file.file_name().is_none_or(|name| name != FILE_NAME) {
        return Err(invalid(format!("Name a {FILE_NAME}, or the directory that holds it.")));
    }
    let file = std::path::absolute(&file).map_err(|error| invalid(format!("No usable path: {error}.")))?;
    let folder = file.parent().and_then(|folder| folder.canonicalize().ok());
    let file = folder.map_or(file.clone(), |folder| folder.join(FILE_NAME));
    if home.path().canonicalize().is_ok_and(|data| file.parent() == Some(&data)) {
        return Err(invalid(
            "The data directory's own configuration counts without being trusted.".to_owned(),
        ));
    }
    Ok(file)
}

/// What would count, in lines for people.
struct Summary {
    lines: Vec<String>,
    commands: usize,
    allows: usize,
}

impl Summary {
    fn of(layer: &ProjectLayer) -> Result<Self, ActionError> {
        let redactor = redactor()?;
        let content = &layer.content;
        let command = |name: &str, command: &[String]| format!("actions.{name} runs {}", json!(command));
        let mut lines: Vec<String> =
            content.actions.iter().map(|action| command(&action.value.name, &action.value.command)).collect();
        lines.extend(content.rules.iter().map(|rule| format!("policy.rule {}", rule.value.id())));
        let counts = |key: &str| !key.starts_with("hub.");
        let values = content.values.iter().map(|located| &located.value).filter(|(key, _)| counts(key));
        lines.extend(values.map(|(key, value)| format!("{key} = {}", shown(&redactor, key, value))));
        let allows = content.rules.iter().filter(|rule| rule.value.effect() == Effect::Allow).count();
        let steps = content.values.iter().find(|located| located.value.0 == "workspace.setup");
        let steps = steps.and_then(|located| located.value.1.as_array()).map_or(0, Vec::len);
        Ok(Summary { lines, commands: content.actions.len() + steps, allows })
    }

    fn in_a_sentence(&self) -> String {
        let Summary { lines, commands, allows } = self;
        format!(
            "It says {} in all, among them {} and {}. What the commands run can change without it.",
            counted(lines.len(), "thing"),
            counted(*commands, "command"),
            counted(*allows, "allow rule"),
        )
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// What the person at the terminal says; nothing where there is nobody to ask.
fn asked(layer: &ProjectLayer, summary: &Summary, matches: &ArgMatches) -> Result<Option<bool>, ActionError> {
    let output = matches.get_one::<String>("output").map(String::as_str);
    let for_people = output == Some("text") || (output.is_none() && std::io::stdout().is_terminal());
    let (stdin, mut stderr) = (std::io::stdin(), std::io::stderr());
    if !for_people || !stdin.is_terminal() || !stderr.is_terminal() {
        return Ok(None);
    }
    let file = layer.file.display().to_string();
    let mut text: String = summary.lines.iter().map(|line| format!("  {}\n", one_line(line))).collect();
    // Whatever a long list pushed off the screen is still counted beside the question.
    text.push_str(&format!("{}\nTrust {} as it is now? [y/N] ", summary.in_a_sentence(), one_line(&file)));
    let mut answer = String::new();
    let said = stderr.write_all(text.as_bytes()).and_then(|()| stdin.read_line(&mut answer));
    said.map_err(|error| ActionError::new(Code::StorageIo, format!("Cannot ask: {error}.")))?;
    Ok(Some(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")))
}

/// The text of a file that is not trusted, on one line and in characters that no terminal obeys.
fn one_line(text: &str) -> String {
    let is_plain = |character: char| character.is_alphanumeric() || matches!(character, ' '..='~');
    text.chars().fold(String::new(), |mut line, character| {
        match is_plain(character) {
            true => line.push(character),
            false => line.extend(character.escape_default()),
        }
        line
    })
}

fn refused(error: records::TrustError) -> ActionError {
    ActionError::new(Code::StorageIo, format!("Trust is unchanged: {error}."))
}
