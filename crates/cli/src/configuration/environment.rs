//! Variables and flags. One rule names both: the key of `[hub]`, `[edge]` or `[server]`, as `RUNYARD_` and capitals, or as `--` and dashes.

use std::collections::BTreeMap;
use std::ffi::OsString;

use clap::ArgMatches;
use clap::parser::ValueSource;
use runyard::closest;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::origin::{Origin, Sourced};
use super::problem::{Fault, Problem};
use super::setting::{Kind, Section, Setting};

const PREFIX: &str = "RUNYARD_";
/// Variables that are no settings.
const OTHERS: [&str; 6] =
    ["RUNYARD_HOME", "RUNYARD_LOG", "RUNYARD_URL", "RUNYARD_TOKEN", "RUNYARD_RUN_ID", "RUNYARD_RUN_TOKEN"];

/// The variables of a process that concern Runyard.
#[derive(Clone, Default)]
pub(crate) struct Environment(BTreeMap<String, OsString>);

impl Environment {
    pub(crate) fn of_process() -> Self {
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value))).collect()
    }

    /// Whether an agent's process is asked, as far as its environment tells.
    pub(crate) fn is_of_a_run(&self) -> bool {
        ["RUNYARD_RUN_ID", "RUNYARD_RUN_TOKEN"].iter().any(|name| self.0.contains_key(*name))
    }

    /// What they set, by full key.
    pub(super) fn settings(&self) -> Result<Given, Vec<Problem>> {
        let given = settable().filter_map(|(key, setting)| {
            let name = variable(setting.key);
            let value = self.0.get(&name)?;
            Some((key, setting, value.to_str().map(str::to_owned), Origin::Environment(name)))
        });
        checked(given)
    }

    /// Variables that are probably misspelt, with what was meant.
    pub(super) fn misspelt(&self) -> Vec<(String, String)> {
        let known: Vec<String> = settable().map(|(_, setting)| variable(setting.key)).collect();
        let names = self.0.keys().filter(|name| !known.contains(name) && !OTHERS.contains(&name.as_str()));
        let meant = |name: &String| {
            let tails = known.iter().filter_map(|known| known.strip_prefix(PREFIX));
            closest(name.strip_prefix(PREFIX)?, tails).map(|tail| format!("{PREFIX}{tail}"))
        };
        names.filter_map(|name| Some((name.clone(), meant(name)?))).collect()
    }
}

impl FromIterator<(String, OsString)> for Environment {
    fn from_iter<I: IntoIterator<Item = (String, OsString)>>(variables: I) -> Self {
        // Empty is as good as unset.
        let ours = |(name, value): &(String, OsString)| name.starts_with(PREFIX) && !value.is_empty();
        Environment(variables.into_iter().filter(ours).collect())
    }
}

/// What a variable or a flag can set, by full key.
fn settable() -> impl Iterator<Item = (String, &'static Setting)> {
    let named = |name: &str, setting: &'static Setting| (format!("{name}.{}", setting.key), setting);
    Section::OWN
        .into_iter()
        .flat_map(move |(section, name)| section.settings().map(move |setting| named(name, setting)))
}

/// The variable of a key of `[hub]`, `[edge]` or `[server]`.
pub(super) fn variable(key: &str) -> String {
    format!("{PREFIX}{}", key.to_ascii_uppercase())
}

/// Flags that a person gave and that stand for settings.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Flags(Vec<(String, String)>);

impl Flags {
    /// Those of a command line; what is only a flag's default does not count.
    pub(crate) fn of(matches: &ArgMatches) -> Self {
        let given = settable().filter_map(|(_, setting)| {
            let flag = setting.key.replace('_', "-");
            let by_person = matches.ids().any(|id| id.as_str() == flag)
                && matches.value_source(&flag) == Some(ValueSource::CommandLine);
            let value = by_person.then(|| matches.get_raw(&flag)).flatten()?.next_back()?;
            Some((flag, value.to_str()?.to_owned()))
        });
        Flags(given.collect())
    }

    pub(super) fn settings(&self) -> Result<Given, Vec<Problem>> {
        let given = self.0.iter().filter_map(|(flag, value)| {
            let (key, setting) = settable().find(|(_, setting)| setting.key == flag.replace('-', "_"))?;
            Some((key, setting, Some(value.clone()), Origin::Flag(flag.clone())))
        });
        checked(given)
    }
}

/// Values by full key.
pub(super) type Given = Vec<(String, Sourced<Value>)>;

fn checked(
    given: impl Iterator<Item = (String, &'static Setting, Option<String>, Origin)>,
) -> Result<Given, Vec<Problem>> {
    let (mut values, mut problems) = (Vec::new(), Vec::new());
    for (key, setting, text, origin) in given {
        let value = text.map(|text| match setting.kind {
            Kind::Number { .. } | Kind::NumberOrNone { .. } => json!(text.parse::<u64>().ok()),
            Kind::Origins => text.split(',').map(|origin| json!(origin.trim())).collect(),
            _ => json!(text),
        });
        match value.filter(|value| setting.takes(value)) {
            Some(value) => values.push((key, Sourced { value, origin })),
            None => {
                let fault = Fault::WrongValue { key, expected: setting.expected() };
                problems.push(Problem { origin, fault });
            }
        }
    }
    if problems.is_empty() { Ok(values) } else { Err(problems) }
}
