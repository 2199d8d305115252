//! Scenarios: what the model says and does, step by step, as data.
//!
//! A scenario is one TOML file, named by its file. It knows nothing of a wire; `wire` does. In its texts `{argument}`
//! stands for the marker's argument, `{first}` for the first word of that and `{rest}` for what follows, and `{key}` for
//! the bearer key of the request.

use std::num::NonZeroUsize;

use serde::Deserialize;
use serde_json::Value;

use crate::ProviderError;

/// The most deltas of one answer, as its file has them.
const DELTAS_MAX: usize = 10_000;
/// The most steps of one scenario.
const STEPS_MAX: usize = 1_000;

/// One scenario.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    /// What it plays, in a sentence.
    #[serde(default)]
    pub(crate) about: String,
    /// What `{argument}` stands for when the marker gives none.
    #[serde(default)]
    pub(crate) argument: String,
    /// The bearer key without which every step is refused with 401.
    pub(crate) bearer: Option<String>,
    /// How many requests are refused with 503 before the first step, for each argument and key.
    #[serde(default)]
    pub(crate) flaky: u32,
    #[serde(rename = "step")]
    pub(crate) steps: Vec<Step>,
}

/// What is done with one request.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Step {
    /// A response of the model.
    Answer(Answer),
    /// An HTTP error.
    Refuse(Refusal),
    /// 200 with a page of HTML, as from a proxy that is in the way.
    Page(String),
    /// Not even the head of a response, until the client goes away.
    Silence(Silence),
}

/// A response: reasoning, a text, tool calls, and its end. One that does not complete ends in the midst of the last of
/// these.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Answer {
    /// The deltas of the reasoning; none, no reasoning.
    #[serde(default)]
    pub(crate) reasoning: Vec<String>,
    /// The deltas of the text; none, no text.
    #[serde(default)]
    pub(crate) say: Vec<String>,
    /// How many times the deltas of the text are said.
    #[serde(default = "once")]
    pub(crate) repeat: usize,
    /// Cuts the text into deltas of so many characters instead.
    pub(crate) delta_chars: Option<NonZeroUsize>,
    /// The pause before each delta.
    #[serde(default)]
    pub(crate) pause_ms: u64,
    #[serde(default)]
    pub(crate) call: Vec<Call>,
    /// Whether the calls are said all at once, a piece of each in turn.
    #[serde(default)]
    pub(crate) interleaved: bool,
    #[serde(default)]
    pub(crate) end: Ending,
}

/// A tool call: with `arguments` a function's, with `raw` a function's whose arguments are sent as they stand, JSON or
/// not, with `input` a free-form tool's.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Call {
    Function { tool: String, arguments: Value },
    Raw { tool: String, raw: String },
    FreeForm { tool: String, input: String },
}

/// How a response ends.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Ending {
    /// As it should.
    #[default]
    Completed,
    /// The model's output was too long, or was stopped.
    Incomplete { reason: String },
    /// The provider says that it failed, and as some do, with which status and when to come back.
    Failed { code: String, message: String, status: Option<u16>, retry_after_s: Option<u32> },
    /// The connection is cut in the middle of the body.
    Cut,
    /// The body ends properly, but nothing said that the response is complete.
    Unfinished,
    /// Data that is not JSON, and then the body ends.
    Malformed,
    /// Nothing more is sent, until the client goes away.
    Stall,
}

/// An HTTP error in the shape of the API.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) kind: String,
    pub(crate) code: Option<String>,
    pub(crate) message: String,
    pub(crate) retry_after_s: Option<u32>,
    /// The same in milliseconds, in a header of its own.
    pub(crate) retry_after_ms: Option<u32>,
    /// The same as the text of the header, such as a date.
    pub(crate) retry_after: Option<String>,
}

/// There is nothing to say about it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Silence {}

fn once() -> usize {
    1
}

impl Step {
    fn calls(&self) -> usize {
        match self {
            Step::Answer(answer) if answer.end == Ending::Completed => answer.call.len(),
            _ => 0,
        }
    }
}

impl Scenario {
    pub(crate) fn parse(name: &str, text: &str) -> Result<Self, ProviderError> {
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
        if self.steps.len() > STEPS_MAX {
            return Err(ProviderError::TooManySteps {
                name: name(),
                steps: self.steps.len(),
                max: STEPS_MAX,
            });
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
                        let max = DELTAS_MAX;
                        return Err(ProviderError::TooLong { name: name(), step: number, deltas, max });
                    }
                }
                Step::Refuse(Refusal { status, .. }) if !(400..600).contains(status) => {
                    return Err(ProviderError::NoRefusal { name: name(), step: number, status: *status });
                }
                Step::Refuse(_) | Step::Page(_) | Step::Silence(_) => {}
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

#[cfg(test)]
mod tests {
    use super::*;

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
        check("[[step]]\nanswer.end.failed = { code = 'c' }", "the scenario `s` does not parse");
        check("[[step]]\nsilence = { long = true }", "the scenario `s` does not parse");
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
        let call = "[[step]]\nanswer.call = [{ tool = 't', raw = '' }]\n";
        check(&call.repeat(1_001), "the scenario `s` has 1001 steps; 1000 are allowed");
    }
}
