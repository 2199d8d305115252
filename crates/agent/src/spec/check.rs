//! What is wrong with a spec, looked at by itself.

use regex::Regex;
use runyard_llm::http::{Address, is_key};
use runyard_llm::inference::{RETRIES_MAX, RetryPolicy};

use super::{AgentSpec, ApiKey, ModelSpec, ProviderSpec};
use crate::run::{Cost, Limits, REPETITION_WINDOW_MAX};

/// The longest id of an agent, a model, a provider, a tool, a plugin or a backend, in characters.
pub const ID_CHARS_MAX: usize = 128;
/// The most names in one list of a spec.
pub const LIST_MAX: usize = 1_024;

/// What is wrong with a spec.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {message}")]
pub struct SpecError {
    /// Whose spec, and which of its fields.
    pub what: String,
    /// What is wrong, without repeating what may be secret.
    pub message: String,
}

impl SpecError {
    pub(crate) fn new(what: impl Into<String>, message: impl Into<String>) -> Self {
        SpecError { what: what.into(), message: message.into() }
    }
}

/// Whether this can be an id: it can be seen, and is not long.
pub(crate) fn check_id(kind: &str, id: &str) -> Result<(), SpecError> {
    let chars = id.chars().take(ID_CHARS_MAX + 1).count();
    let is_seen = |c: char| !c.is_control() && !c.is_whitespace();
    if chars == 0 || chars > ID_CHARS_MAX || !id.chars().all(is_seen) {
        let message = format!("an id has 1 to {ID_CHARS_MAX} characters, and no space among them");
        return Err(SpecError::new(format!("the id of {kind}"), message));
    }
    Ok(())
}

impl AgentSpec {
    /// Looks at the spec by itself.
    pub fn check(&self) -> Result<(), SpecError> {
        check_id("an agent", &self.id)?;
        let wrong = |field: &str, message: String| {
            Err(SpecError::new(format!("{field} of agent \"{}\"", self.id), message))
        };
        match (&self.model, &self.endpoint) {
            (None, None) => return wrong("model", "an agent has a model, or an endpoint".to_owned()),
            (_, Some(endpoint)) => {
                let bare = AgentSpec {
                    label: self.label.clone(),
                    ..AgentSpec::remote(self.id.as_str(), endpoint.clone())
                };
                if *self != bare {
                    let message =
                        "an agent that runs elsewhere has an id, a label and its endpoint, and nothing else";
                    return wrong("endpoint", message.to_owned());
                }
                check_id("a backend", &endpoint.backend)?;
            }
            (Some(_), None) => {}
        }
        let (allow, exclude) = (self.tools.allow.as_deref().unwrap_or_default(), &self.tools.exclude);
        for (field, names) in [
            ("fallbackModels", self.fallback_models.as_slice()),
            ("tools.allow", allow),
            ("tools.exclude", exclude),
            ("plugins", &self.plugins),
        ] {
            if names.len() > LIST_MAX {
                return wrong(field, format!("a list has at most {LIST_MAX} names"));
            }
        }
        if let Some(twice) = repeated(self.models()) {
            return wrong("fallbackModels", format!("model \"{twice}\" is there twice"));
        }
        if let Some(twice) = repeated(self.plugins.iter().map(String::as_str)) {
            return wrong("plugins", format!("plugin \"{twice}\" is there twice"));
        }
        check_limits(&self.limits).or_else(|(field, message)| wrong(&format!("limits.{field}"), message))?;
        check_retry(&self.retry).or_else(|(field, message)| wrong(&format!("retry.{field}"), message))
    }
}

fn repeated<'a>(mut names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut seen = std::collections::HashSet::new();
    names.find(|name| !seen.insert(*name))
}

type Wrong = (&'static str, String);

fn check_limits(limits: &Limits) -> Result<(), Wrong> {
    if limits.rounds_max == 0 {
        return Err(("roundsMax", "a model is asked at least once".to_owned()));
    }
    if let Some(expression) = &limits.stop_on_content
        && let Err(error) = Regex::new(expression)
    {
        return Err(("stopOnContent", error.to_string()));
    }
    if let Some(Cost { dollars_max, input_price, output_price }) = limits.cost_max
        && [dollars_max, input_price, output_price].iter().any(|amount| !amount.is_finite() || *amount < 0.0)
    {
        return Err(("costMax", "an amount is a number, and not less than nought".to_owned()));
    }
    if let Some(repetition) = limits.repetition
        && !(2..=repetition.window.min(REPETITION_WINDOW_MAX)).contains(&repetition.times)
    {
        let message = format!("a call is repeated 2 times at least, among {REPETITION_WINDOW_MAX} at most");
        return Err(("repetition", message));
    }
    Ok(())
}

fn check_retry(retry: &RetryPolicy) -> Result<(), Wrong> {
    let message = || format!("a model is asked again at most {RETRIES_MAX} times");
    if retry.retries_max > RETRIES_MAX {
        return Err(("retriesMax", message()));
    }
    if retry.stream_retries_max > RETRIES_MAX {
        return Err(("streamRetriesMax", message()));
    }
    Ok(())
}

impl ModelSpec {
    /// Looks at the spec by itself.
    pub fn check(&self) -> Result<(), SpecError> {
        check_id("a model", &self.id)?;
        let what = |field: &str| format!("{field} of model \"{}\"", self.id);
        if self.upstream().is_empty() {
            return Err(SpecError::new(what("name"), "a model has a name at its provider"));
        }
        if self.context_window == Some(0) {
            return Err(SpecError::new(what("contextWindow"), "a window has room for something"));
        }
        Ok(())
    }
}

impl ProviderSpec {
    /// Looks at the spec by itself, and at the key that goes with it.
    pub fn check(&self, key: Option<&ApiKey>) -> Result<(), SpecError> {
        check_id("a provider", &self.id)?;
        let what = |field: &str| format!("{field} of provider \"{}\"", self.id);
        Address::parse(&self.base_url)
            .map_err(|unusable| SpecError::new(what("baseUrl"), unusable.to_string()))?;
        match key {
            Some(key) if !is_key(key.expose().as_bytes()) => {
                Err(SpecError::new(what("the key"), "it is empty, too long, or cannot be sent in a header"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Repetition;
    use crate::spec::{EndpointSpec, ToolFilter, WireKind};

    #[track_caller]
    fn refused(spec: &AgentSpec, what: &str) {
        assert_eq!(spec.check().unwrap_err().what, what);
    }

    #[test]
    fn an_agent_that_cannot_be_meant_so_is_refused() {
        let fine = AgentSpec::new("a", "m");
        assert_eq!(fine.check(), Ok(()));
        let endpoint = EndpointSpec { backend: "http".into(), url: "http://h".into(), ..Default::default() };
        assert_eq!(AgentSpec::remote("a", endpoint.clone()).check(), Ok(()));

        refused(&AgentSpec::new("", "m"), "the id of an agent");
        refused(&AgentSpec::new("a b", "m"), "the id of an agent");
        refused(&AgentSpec { id: "a".into(), ..AgentSpec::default() }, "model of agent \"a\"");
        let both = AgentSpec { endpoint: Some(endpoint), ..fine.clone() };
        refused(&both, "endpoint of agent \"a\"");
        let twice = AgentSpec { fallback_models: vec!["m".into()], ..fine.clone() };
        refused(&twice, "fallbackModels of agent \"a\"");
        let twice = AgentSpec { plugins: vec!["p".into(), "p".into()], ..fine.clone() };
        refused(&twice, "plugins of agent \"a\"");
        let many = ToolFilter::only(vec!["t"; LIST_MAX + 1]);
        refused(&AgentSpec { tools: many, ..fine }, "tools.allow of agent \"a\"");
    }

    #[test]
    fn limits_that_mean_nothing_are_refused() {
        let cost = |dollars_max| Cost { dollars_max, input_price: 1.0, output_price: 1.0 };
        let usual = Limits::default();
        for (limits, field) in [
            (Limits { rounds_max: 0, ..usual.clone() }, "roundsMax"),
            (Limits { stop_on_content: Some("(".into()), ..usual.clone() }, "stopOnContent"),
            (Limits { cost_max: Some(cost(f64::NAN)), ..usual.clone() }, "costMax"),
            (Limits { cost_max: Some(cost(-1.0)), ..usual.clone() }, "costMax"),
            (Limits { repetition: Some(Repetition { window: 3, times: 4 }), ..usual.clone() }, "repetition"),
            (
                Limits { repetition: Some(Repetition { window: 100, times: 90 }), ..usual.clone() },
                "repetition",
            ),
        ] {
            let spec = AgentSpec { limits, ..AgentSpec::new("a", "m") };
            refused(&spec, &format!("limits.{field} of agent \"a\""));
        }
        let retry = RetryPolicy { retries_max: RETRIES_MAX + 1, ..RetryPolicy::default() };
        refused(&AgentSpec { retry, ..AgentSpec::new("a", "m") }, "retry.retriesMax of agent \"a\"");
    }

    #[test]
    fn what_is_wrong_with_a_provider_does_not_repeat_its_secrets() {
        let spec = ProviderSpec::new("p", WireKind::Chat, "https://user:Sorrel64@h/v1");
        let error = spec.check(None).unwrap_err();
        assert_eq!(error.what, "baseUrl of provider \"p\"");
        assert!(!error.to_string().contains("Sorrel64"));
        let spec = ProviderSpec::new("p", WireKind::Chat, "https://h/v1");
        let error = spec.check(Some(&ApiKey::new("Sorrel64\n"))).unwrap_err();
        assert_eq!(error.what, "the key of provider \"p\"");
        assert!(!format!("{error} {:?}", ApiKey::new("Sorrel64")).contains("Sorrel64"));
        assert_eq!(spec.check(Some(&ApiKey::new("Sorrel64"))), Ok(()));
    }
}
