//! `runyard config show`: every value that counts, where it came from, and what was said and does not count.
//!
//! It changes nothing, and no secret value is shown.

use clap::{Arg, ArgMatches, Command};
use runyard::ActionError;
use runyard_redact::{Redactor, TagKey, without_tags};
use runyard_surfaces::cli::{ExtraCommand, ExtraRun, show_data};
use serde_json::{Value, json};

use crate::configuration::{Configuration, Environment, Origin};
use crate::home::Home;
use crate::hub_file::{is_claimed, told};
use crate::wiring;

pub(crate) fn command(home: Home) -> ExtraCommand {
    let origin = Arg::new("origin")
        .long("origin")
        .value_name("ORIGIN")
        .value_parser(Origin::WORDS)
        .help("Only what came from there");
    let show = Command::new("show").about("Show every value and where it came from").arg(origin);
    let command = Command::new("config")
        .about("Show the configuration")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands([show]);
    let run = move |matches: ArgMatches| {
        Box::pin(async move {
            let origin = matches.subcommand().and_then(|(_, asked)| asked.get_one::<String>("origin"));
            let data = settings(&home, origin.map(String::as_str))?;
            Ok(show_data(&matches, data))
        }) as ExtraRun
    };
    ExtraCommand { command, run: Box::new(run) }
}

fn settings(home: &Home, only: Option<&str>) -> Result<Value, ActionError> {
    let here = std::env::current_dir().ok();
    // A running hub has its own flags on top.
    let hub = told(&home.hub()).filter(|_| is_claimed(home));
    let flags = hub.map(|told| told.flags).unwrap_or_default();
    let configuration =
        Configuration::load(home.path(), here.as_deref(), &Environment::of_process(), &flags)?;
    let backends = wiring::backends(home, &configuration);
    let backends = backends.map_err(|error| ActionError::internal(format!("{error:#}")))?;
    wiring::check_kinds(&configuration, &backends)?;
    let redactor = redactor()?;
    let wanted = |origin: &Origin| only.is_none_or(|only| origin.word() == only);
    let mut rows = Vec::new();
    for (key, value) in configuration.values().iter().filter(|(_, value)| wanted(&value.origin)) {
        rows.push(row(key, &shown(&redactor, key, &value.value), &value.origin));
    }
    let (rules, actions) = configuration.sourced();
    for rule in rules.iter().filter(|rule| wanted(&rule.origin)) {
        rows.push(row("policy.rule", &json!(rule.value.id()), &rule.origin));
    }
    for action in actions.iter().filter(|action| wanted(&action.origin)) {
        let key = format!("actions.{}", action.value.name());
        rows.push(row(&key, &json!(action.value.spec().description), &action.origin));
    }
    for ignored in configuration.ignored().iter().filter(|ignored| wanted(&ignored.origin)) {
        let mut row = row(&ignored.key, &Value::Null, &ignored.origin);
        row["ignored"] = json!(ignored.why.to_string());
        rows.push(row);
    }
    Ok(json!({"settings": rows}))
}

/// File and line stand apart, so that a long path hides no line.
fn row(key: &str, value: &Value, origin: &Origin) -> Value {
    let name = match origin {
        Origin::Environment(_) | Origin::Flag(_) => format!("{} {origin}", origin.word()),
        _ => origin.word().to_owned(),
    };
    let mut row = json!({"key": key, "value": value, "origin": name});
    if let Origin::Data(place) | Origin::Project(place) = origin {
        row["file"] = json!(place.file());
        row["line"] = json!(place.line);
    }
    row
}

/// Knows forms and names of secrets. The person's own paths are no secret to the person.
pub(crate) fn redactor() -> Result<Redactor, ActionError> {
    Ok(Redactor::builder(TagKey::for_this_process()).build()?)
}

/// A value as it may be shown: without what has the form of a secret, or stands under a name of one.
pub(crate) fn shown(redactor: &Redactor, key: &str, value: &Value) -> Value {
    let name = key.rsplit('.').next().unwrap_or(key);
    let safe = redactor.json(json!({name: value})).into_inner();
    match safe.get(name) {
        Some(Value::String(text)) => json!(without_tags(text)),
        Some(safe) => safe.clone(),
        None => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_under_the_name_of_a_secret_is_not_shown() {
        let redactor = redactor().unwrap();
        let value = |key| shown(&redactor, key, &json!("hunter2-Tulip-93"));
        assert!(!value("backend.demo.settings.api_key").to_string().contains("hunter2"));
        assert_eq!(value("backend.demo.settings.mode"), "hunter2-Tulip-93");
    }
}
