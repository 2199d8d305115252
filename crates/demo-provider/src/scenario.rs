//! Scenarios: what the model says and does, step by step, as data.
//!
//! A scenario is one TOML file, named by its file. It knows nothing of the wire; `answer` does.

use std::{collections::BTreeMap, fs, path::Path};

use serde::Deserialize;
use serde_json::Value;

use crate::ProviderError;

/// What is played when the text names no scenario, or one that does not exist.
const FALLBACK: &str = "text";

/// The most deltas of one answer.
const DELTAS_MAX: usize = 10_000;

const BUILT_IN: &[(&str, &str)] = &[
    ("approval", include_str!("../scenarios/approval.toml")),
    ("cut", include_str!("../scenarios/cut.toml")),
    ("http-400", include_str!("../scenarios/http-400.toml")),
    ("http-401", include_str!("../scenarios/http-401.toml")),
    ("http-403", include_str!("../scenarios/http-403.toml")),
    ("http-404", include_str!("../scenarios/http-404.toml")),
    ("http-429", include_str!("../scenarios/http-429.toml")),
    ("http-500", include_str!("../scenarios/http-500.toml")),
    ("http-503", include_str!("../scenarios/http-503.toml")),
    ("key", include_str!("../scenarios/key.toml")),
    ("patch", include_str!("../scenarios/patch.toml")),
    ("shell", include_str!("../scenarios/shell.toml")),
    ("shells", include_str!("../scenarios/shells.toml")),
    ("slow", include_str!("../scenarios/slow.toml")),
    ("stall", include_str!("../scenarios/stall.toml")),
    ("text", include_str!("../scenarios/text.toml")),
    ("unfinished", include_str!("../scenarios/unfinished.toml")),
];

/// One scenario.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    /// What `{argument}` stands for when the marker gives none.
    #[serde(default)]
    pub(crate) argument: String,
    /// The bearer key without which every step is refused with 401.
    pub(crate) bearer: Option<String>,
    #[serde(rename = "step")]
    pub(crate) steps: Vec<Step>,
}

/// What is done with one request.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Step {
    /// A streamed response.
    Answer(Answer),
    /// An HTTP error.
    Refuse(Refusal),
}

/// A streamed response: a text, then its end, before which come the tool calls if it is a good one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Answer {
    /// The deltas of the text; none, no text.
    #[serde(default)]
    pub(crate) say: Vec<String>,
    /// How many times the deltas are said.
    #[serde(default = "once")]
    pub(crate) repeat: usize,
    /// The pause before each delta.
    #[serde(default)]
    pub(crate) pause_ms: u64,
    #[serde(default)]
    pub(crate) call: Vec<Call>,
    #[serde(default)]
    pub(crate) end: Ending,
}

/// A tool call: with `arguments` a function's, with `input` a free-form tool's.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Call {
    Function { tool: String, arguments: Value },
    Custom { tool: String, input: String },
}

/// How a stream ends.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ending {
    /// With `response.completed`.
    #[default]
    Completed,
    /// The connection is cut in the middle of the body.
    Cut,
    /// The body ends properly, but nothing said that the response is complete.
    Unfinished,
    /// Nothing more is sent, until the client goes away.
    Stall,
}

/// An HTTP error in the shape of the API.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) kind: String,
    pub(crate) code: Option<String>,
    pub(crate) message: String,
    pub(crate) retry_after_s: Option<u32>,
}

fn once() -> usize {
    1
}

impl Step {
    fn calls(&self) -> usize {
        match self {
            Step::Answer(answer) if answer.end == Ending::Completed => answer.call.len(),
            Step::Answer(_) | Step::Refuse(_) => 0,
        }
    }
}

impl Scenario {
    fn parse(name: &str, text: &str) -> Result<Self, ProviderError> {
        let scenario: Self = toml::from_str(text)
            .map_err(|error| ProviderError::Parse { name: name.to_owned(), source: Box::new(error) })?;
        scenario.check(name)?;
        Ok(scenario)
    }

    fn check(&self, name: &str) -> Result<(), ProviderError> {
        let name = || name.to_owned();
        if self.steps.is_empty() {
            return Err(ProviderError::NoStep { name: name() });
        }
        for (index, step) in self.steps.iter().enumerate() {
            let number = index + 1;
            if step.calls() == 0 && number < self.steps.len() {
                return Err(ProviderError::Unreachable { name: name(), step: number });
            }
            match step {
                Step::Answer(answer) => {
                    let deltas = answer.say.len().saturating_mul(answer.repeat);
                    if deltas > DELTAS_MAX {
                        return Err(ProviderError::TooLong {
                            name: name(),
                            step: number,
                            deltas,
                            max: DELTAS_MAX,
                        });
                    }
                }
                Step::Refuse(Refusal { status, .. }) if !(400..600).contains(status) => {
                    return Err(ProviderError::NoRefusal { name: name(), step: number, status: *status });
                }
                Step::Refuse(_) => {}
            }
        }
        Ok(())
    }

    /// The step to play once `results` tool results are in, from 0: the first one whose calls are not all answered,
    /// else the last.
    pub(crate) fn step_after(&self, results: usize) -> usize {
        let mut answered = 0;
        for (index, step) in self.steps.iter().enumerate() {
            answered += step.calls();
            if results < answered {
                return index;
            }
        }
        self.steps.len() - 1
    }
}

/// All scenarios by name.
#[derive(Debug)]
pub(crate) struct Library(BTreeMap<String, Scenario>);

impl Library {
    /// The scenarios that come with the provider.
    pub(crate) fn built_in() -> Result<Self, ProviderError> {
        BUILT_IN
            .iter()
            .map(|(name, text)| Ok(((*name).to_owned(), Scenario::parse(name, text)?)))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Adds each `NAME.toml` of a directory; a name that exists is replaced.
    pub(crate) fn add_directory(&mut self, directory: &Path) -> Result<(), ProviderError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| ProviderError::Read { path, source }
        };
        for entry in fs::read_dir(directory).map_err(failed(directory))? {
            let path = entry.map_err(failed(directory))?.path();
            let Some(name) = path.file_stem().and_then(|stem| stem.to_str()) else { continue };
            if path.extension().is_some_and(|extension| extension == "toml") {
                let text = fs::read_to_string(&path).map_err(failed(&path))?;
                self.0.insert(name.to_owned(), Scenario::parse(name, &text)?);
            }
        }
        Ok(())
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
    fn every_scenario_file_is_built_in_and_parses() {
        let mut files: Vec<_> = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios"))
            .unwrap()
            .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
            .collect();
        files.sort();
        let library = Library::built_in().unwrap();
        assert_eq!(files, library.0.into_keys().collect::<Vec<_>>());
    }

    #[test]
    fn the_step_follows_from_the_results_also_when_one_step_calls_twice() {
        let call = r#"{ tool = "exec_command", arguments = { cmd = "true" } }"#;
        let text = format!(
            "[[step]]\nanswer.call = [{call}, {call}]\n[[step]]\nanswer.call = [{call}]\n[[step]]\nanswer.say = ['x']"
        );
        let scenario = Scenario::parse("two", &text).unwrap();
        let steps: Vec<_> = (0..6).map(|results| scenario.step_after(results)).collect();
        assert_eq!(steps, [0, 0, 1, 2, 2, 2]);
    }

    #[test]
    fn what_could_never_be_played_is_refused_at_the_start() {
        #[track_caller]
        fn check(text: &str, expected: &str) {
            assert_eq!(Scenario::parse("s", text).unwrap_err().to_string(), expected);
        }
        check("step = []", "the scenario `s` has no step");
        check("[[step]]\nanswer.say = ['x']\nrepeat = 1", "the scenario `s` does not parse");
        check(
            "[[step]]\nanswer.say = ['x']\n[[step]]\nanswer.say = ['y']",
            "step 1 of the scenario `s` calls no tool, so what follows it is never reached",
        );
        check(
            "[[step]]\nanswer = { say = ['x', 'y'], repeat = 5001 }",
            "step 1 of the scenario `s` has 10002 deltas; 10000 are allowed",
        );
        check(
            "[[step]]\nrefuse = { status = 200, kind = 'k', message = 'm' }",
            "step 1 of the scenario `s` refuses with 200; 400 to 599 are refusals",
        );
    }
}
