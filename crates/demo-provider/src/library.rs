//! The scenarios by name: those that come with the provider, and those of a directory.

use std::{collections::BTreeMap, fs, path::Path};

use crate::{ProviderError, scenario::Scenario};

/// What is played when the text names no scenario, or one that does not exist.
const FALLBACK: &str = "text";

/// The most scenarios of one directory.
const SCENARIOS_MAX: usize = 1_000;

macro_rules! built_in {
    ($($name:literal)*) => {
        [$(($name, include_str!(concat!("../scenarios/", $name, ".toml")))),*]
    };
}

#[rustfmt::skip]
const BUILT_IN: &[(&str, &str)] = &built_in![
    "approval" "cut" "cut-call" "cut-calls"
    "failed-502" "failed-content-filter" "failed-context-length" "failed-overloaded" "failed-quota"
    "failed-rate-limit" "failed-rate-limit-wait" "failed-server-error"
    "filtered" "flaky" "goaway" "html"
    "http-400" "http-401" "http-402" "http-403" "http-404" "http-408" "http-413"
    "http-429" "http-429-date" "http-429-ms" "http-500" "http-503" "http-503-wait" "http-504" "http-529"
    "http-content-filter" "http-context-length"
    "incomplete" "incomplete-call" "key" "long" "malformed" "malformed-call" "no-arguments" "no-headers"
    "parallel" "patch" "question" "quota" "reasoning"
    "secret-echo" "secret-error" "secret-pieces" "secret-shell"
    "shell" "shells" "slow" "stall" "text" "tool" "unfinished"
];

/// A scenario as a list names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// What the marker names.
    pub name: String,
    /// What it plays, in a sentence; empty where its file does not say.
    pub about: String,
}

/// The scenarios that a provider with this directory plays, by name.
pub fn scenarios(directory: Option<&Path>) -> Result<Vec<Listed>, ProviderError> {
    Ok(Library::with(directory)?.list())
}

/// All scenarios by name.
#[derive(Debug)]
pub(crate) struct Library(BTreeMap<String, Scenario>);

impl Library {
    /// The scenarios that come with the provider, and those of the directory.
    pub(crate) fn with(directory: Option<&Path>) -> Result<Self, ProviderError> {
        let built_in =
            BUILT_IN.iter().map(|(name, text)| Ok(((*name).to_owned(), Scenario::parse(name, text)?)));
        let mut library = Self(built_in.collect::<Result<_, _>>()?);
        if let Some(directory) = directory {
            library.add_directory(directory)?;
        }
        Ok(library)
    }

    /// Adds each `NAME.toml` of a directory; a name that exists is replaced.
    fn add_directory(&mut self, directory: &Path) -> Result<(), ProviderError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| ProviderError::Read { path, source }
        };
        let mut count = 0;
        for entry in fs::read_dir(directory).map_err(failed(directory))? {
            let path = entry.map_err(failed(directory))?.path();
            let Some(name) = path.file_stem().and_then(|stem| stem.to_str()) else { continue };
            if path.extension().is_some_and(|extension| extension == "toml") {
                count += 1;
                if count > SCENARIOS_MAX {
                    return Err(ProviderError::TooMany { path: directory.to_owned(), max: SCENARIOS_MAX });
                }
                let text = fs::read_to_string(&path).map_err(failed(&path))?;
                self.0.insert(name.to_owned(), Scenario::parse(name, &text)?);
            }
        }
        Ok(())
    }

    pub(crate) fn list(&self) -> Vec<Listed> {
        self.0
            .iter()
            .map(|(name, scenario)| Listed { name: name.clone(), about: scenario.about.clone() })
            .collect()
    }

    /// The scenario of this name and its name, or the plain text one.
    pub(crate) fn find(&self, name: Option<&str>) -> (&str, &Scenario) {
        let wanted = name.and_then(|name| self.0.get_key_value(name));
        let (name, scenario) = wanted.unwrap_or_else(|| self.fallback());
        (name, scenario)
    }

    // The built-in one is always in the map, since a directory can only replace it.
    #[expect(clippy::expect_used)]
    fn fallback(&self) -> (&String, &Scenario) {
        self.0.get_key_value(FALLBACK).expect("the plain text scenario is built in")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_file_is_built_in_and_says_what_it_is() {
        let mut files: Vec<_> = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios"))
            .unwrap()
            .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
            .collect();
        files.sort();
        let listed = scenarios(None).unwrap();
        assert_eq!(files, listed.iter().map(|listed| listed.name.as_str()).collect::<Vec<_>>());
        for Listed { name, about } in listed {
            assert!(about.ends_with('.') && about.chars().count() <= 110, "{name}: {about}");
        }
    }

    #[test]
    fn a_directory_has_a_bounded_number_of_scenarios() {
        let directory = tempfile::tempdir().unwrap();
        for number in 0..=SCENARIOS_MAX {
            fs::write(directory.path().join(format!("s{number}.toml")), "[[step]]\nanswer.say = ['x']")
                .unwrap();
        }
        let refused = scenarios(Some(directory.path())).unwrap_err();
        assert!(matches!(refused, ProviderError::TooMany { max: SCENARIOS_MAX, .. }), "{refused}");
    }
}
