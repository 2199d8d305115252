//! What a backend profile says about the agent.

use std::sync::Arc;
use std::time::Duration;

use runyard_agent::run::{ContextPolicy, Limits, Repetition};
use runyard_agent::{CallOrder, Settings};
use runyard_backend::{Access, GatewayAccess, OPENAI_KEY, SecretFile, api_key};
use runyard_domain::{BackendProfile, Wire as Speaks};
use runyard_llm::http::Limits as Waits;
use runyard_llm::inference::{Effort, Inference, Model, Pool, RETRIES_MAX as RETRIES_EVER_MAX, RetryPolicy};
use runyard_llm::wire::{Endpoint, Wire, WireModel};
use serde_json::{Map, Value};

use super::{
    CONTINUATIONS_MAX, IDLE_MS, IDLE_MS_EVER_MAX, Models, REPETITIONS_EVER_MAX, REPETITIONS_MAX,
    REPETITIONS_MIN, RETRIES_MAX, ROUNDS_MAX, TOOLS,
};

const PROMPT: &str = "You are a careful software engineer. You work in a directory with the tools you are given. Look before you \
change something, change only what the task needs, and say at the end in a few sentences what you did and found.";
/// The names of the settings, for whoever misspells one.
pub(super) const SETTINGS: [&str; 16] = [
    "prompt",
    "tools",
    "fallback_models",
    "parallel_calls",
    "effort",
    "temperature",
    "output_tokens_max",
    "rounds_max",
    "tokens_max",
    "context_tokens_max",
    "time_max_ms",
    "consecutive_errors_max",
    "repetitions_max",
    "continuations_max",
    "retries_max",
    "idle_ms",
];

/// What a backend profile says about the agent.
#[derive(Debug, Clone)]
pub(super) struct Profile {
    name: String,
    base_url: Option<String>,
    wire: Speaks,
    pub(super) model: String,
    fallback_models: Vec<String>,
    pub(super) prompt: String,
    pub(super) tools: Vec<String>,
    pub(super) calls: CallOrder,
    pub(super) settings: Settings,
    pub(super) limits: Limits,
    retry: RetryPolicy,
    waits: Waits,
    pub(super) context: ContextPolicy,
}

impl Profile {
    /// Reads it, or says what is wrong.
    pub(super) fn read(profile: &BackendProfile) -> Result<Self, String> {
        let model = profile.model.clone().ok_or_else(|| {
            let name = &profile.profile;
            format!("the backend profile names no model; say model = \"…\" in [backend.{name}]")
        })?;
        let settings = &profile.settings;
        if let Some(unknown) = settings.keys().find(|name| !SETTINGS.contains(&name.as_str())) {
            return Err(format!("there is no setting \"{unknown}\"; there are {}", SETTINGS.join(", ")));
        }
        let text = |name: &str| settings.get(name).map(String::as_str);
        let list = |name: &str| text(name).map(|said| words(said, name)).transpose();
        let tools = list("tools")?.unwrap_or_else(|| TOOLS.map(str::to_owned).to_vec());
        if let Some(unknown) = tools.iter().find(|tool| !TOOLS.contains(&tool.as_str())) {
            return Err(format!("there is no tool \"{unknown}\"; there are {}", TOOLS.join(", ")));
        }
        let is_steered = text("temperature").is_some() && text("effort").is_some();
        if is_steered && profile.wire == Speaks::Messages {
            return Err(
                "temperature and effort do not go together on messages: a model that thinks takes no temperature there".to_owned()
            );
        }
        Ok(Profile {
            name: profile.profile.clone(),
            base_url: profile.base_url.clone().or(profile.wire.base_url().map(str::to_owned)),
            wire: profile.wire,
            model,
            fallback_models: list("fallback_models")?.unwrap_or_default(),
            prompt: text("prompt").unwrap_or(PROMPT).to_owned(),
            tools,
            calls: match text("parallel_calls") {
                None | Some("false") => CallOrder::OneByOne,
                Some("true") => CallOrder::Parallel,
                Some(_) => return Err("parallel_calls is true or false".to_owned()),
            },
            settings: Settings {
                temperature: number(text("temperature"), "temperature")?,
                output_tokens_max: number(text("output_tokens_max"), "output_tokens_max")?,
                effort: text("effort").map(effort).transpose()?,
                ..Settings::default()
            },
            limits: Limits {
                rounds_max: number(text("rounds_max"), "rounds_max")?.unwrap_or(ROUNDS_MAX),
                tokens_max: number(text("tokens_max"), "tokens_max")?,
                time_max_ms: number(text("time_max_ms"), "time_max_ms")?,
                consecutive_errors_max: number(text("consecutive_errors_max"), "consecutive_errors_max")?,
                repetition: repetition(number(text("repetitions_max"), "repetitions_max")?)?,
                continuations_max: number(text("continuations_max"), "continuations_max")?
                    .unwrap_or(CONTINUATIONS_MAX),
                ..Limits::default()
            },
            retry: retry(number(text("retries_max"), "retries_max")?)?,
            waits: waits(number(text("idle_ms"), "idle_ms")?)?,
            context: ContextPolicy {
                tokens_max: number(text("context_tokens_max"), "context_tokens_max")?,
                ..ContextPolicy::default()
            },
        })
    }

    /// The models that it asks, as the run may reach them.
    pub(super) fn inference(&self, access: &Access, models: &Models) -> Result<Inference, String> {
        let (base_url, key, wire) = match access {
            Access::Gateway(GatewayAccess { base_url, token, .. }) => {
                (base_url.as_str(), Some(token.clone()), self.wire())
            }
            Access::Projected(files) => (self.base_url()?, Some(key_of(files, self.wire)?), self.wire()),
            Access::Open => (self.base_url()?, None, self.wire()),
        };
        let names = std::iter::once(&self.model).chain(&self.fallback_models);
        let asked: Result<Vec<Arc<dyn Model>>, String> = names
            .map(|model| {
                let endpoint = Endpoint {
                    provider: self.name.clone(),
                    base_url: base_url.to_owned(),
                    key: key.clone(),
                    model: model.clone(),
                    limits: self.waits,
                };
                let model = WireModel::new(endpoint, wire.clone(), Arc::clone(&models.client));
                model.map(|model| Arc::new(model) as Arc<dyn Model>).map_err(|error| error.to_string())
            })
            .collect();
        Ok(Inference::new(Pool::new(asked?, &models.breakers), self.retry.clone()))
    }

    /// Where the provider listens, for an agent that calls it by itself.
    fn base_url(&self) -> Result<&str, String> {
        let name = &self.name;
        self.base_url.as_deref().ok_or_else(|| format!("{name} has wire = \"chat\" and no base_url"))
    }

    fn wire(&self) -> Wire {
        match self.wire {
            Speaks::Responses => Wire::Responses(Default::default()),
            Speaks::Chat => Wire::Chat(Default::default()),
            Speaks::Messages => Wire::Anthropic(Default::default()),
        }
    }
}

/// A list: as JSON, in which a text may hold anything, or its words with commas or spaces between them.
fn words(text: &str, name: &str) -> Result<Vec<String>, String> {
    if text.trim_start().starts_with('[') {
        return serde_json::from_str(text).map_err(|error| format!("{name} is no list of texts: {error}"));
    }
    Ok(text.split([',', ' ']).filter(|word| !word.is_empty()).map(str::to_owned).collect())
}

fn number<T: std::str::FromStr>(text: Option<&str>, name: &str) -> Result<Option<T>, String> {
    text.map(|text| text.parse().map_err(|_| format!("{name} is a number"))).transpose()
}

fn effort(word: &str) -> Result<Effort, String> {
    match word {
        "low" => Ok(Effort::Low),
        "medium" => Ok(Effort::Medium),
        "high" => Ok(Effort::High),
        _ => Err("effort is low, medium or high".to_owned()),
    }
}

/// How many equal calls in a row are too many, if any.
fn repetition(repetitions_max: Option<usize>) -> Result<Option<Repetition>, String> {
    match repetitions_max.unwrap_or(REPETITIONS_MAX) {
        0 => Ok(None),
        max @ REPETITIONS_MIN..=REPETITIONS_EVER_MAX => Ok(Some(Repetition { window: max, times: max })),
        _ => {
            Err(format!("repetitions_max is {REPETITIONS_MIN} to {REPETITIONS_EVER_MAX}, or 0 for no limit"))
        }
    }
}

/// How often a model is asked again, be it before or in the midst of an answer.
fn retry(retries_max: Option<u32>) -> Result<RetryPolicy, String> {
    match retries_max.unwrap_or(RETRIES_MAX) {
        max if max > RETRIES_EVER_MAX => Err(format!("retries_max is at most {RETRIES_EVER_MAX}")),
        max => Ok(RetryPolicy { retries_max: max, stream_retries_max: max, ..RetryPolicy::default() }),
    }
}

/// How long a provider may take, and pause.
fn waits(idle_ms: Option<u64>) -> Result<Waits, String> {
    match idle_ms.unwrap_or(IDLE_MS) {
        ms @ 1..=IDLE_MS_EVER_MAX => Ok(Waits { idle: Duration::from_millis(ms), ..Waits::default() }),
        _ => Err(format!("idle_ms is 1 to {IDLE_MS_EVER_MAX}")),
    }
}

/// The provider's key, out of the file that it comes in.
fn key_of(files: &[SecretFile], wire: Speaks) -> Result<String, String> {
    let file = files.iter().find(|file| file.key == super::KEY);
    let file = file.ok_or_else(|| format!("the profile's secret {} is not there", super::KEY))?;
    let auth: Map<String, Value> = serde_json::from_slice(&file.content)
        .map_err(|_| format!("the profile's secret {} is no JSON object", super::KEY))?;
    let key = api_key(&auth, wire).map(str::to_owned);
    key.map_err(|_| format!("the profile's secret {} holds no {OPENAI_KEY}", super::KEY))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(settings: &[(&str, &str)]) -> BackendProfile {
        let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        BackendProfile {
            profile: "mine".into(),
            backend_kind: super::super::NATIVE_KIND.into(),
            model: Some("m".into()),
            settings: settings.collect(),
            ..BackendProfile::default()
        }
    }

    #[test]
    fn c17_what_cannot_be_used_is_told_with_what_could() {
        for (settings, said) in [
            (&[("promt", "x")][..], "there is no setting \"promt\"; there are prompt, tools"),
            (&[("tools", "read fly")], "there is no tool \"fly\"; there are read"),
            (&[("rounds_max", "many")], "rounds_max is a number"),
            (&[("repetitions_max", "65")], "repetitions_max is 2 to 64, or 0"),
            (&[("repetitions_max", "1")], "repetitions_max is 2 to 64, or 0"),
            (&[("idle_ms", "0")], "idle_ms is 1 to 300000"),
            (&[("idle_ms", "300001")], "idle_ms is 1 to 300000"),
            (&[("effort", "huge")], "effort is low, medium or high"),
            (&[("fallback_models", "[\"b\", 3]")], "fallback_models is no list of texts: "),
            (&[("parallel_calls", "yes")], "parallel_calls is true or false"),
        ] {
            let error = Profile::read(&profile(settings)).unwrap_err();
            assert!(error.starts_with(said), "{error}");
        }
        let steered = profile(&[("temperature", "1"), ("effort", "low")]);
        assert!(Profile::read(&steered).is_ok());
        let steered = BackendProfile { wire: Speaks::Messages, ..steered };
        assert!(
            Profile::read(&steered).unwrap_err().starts_with("temperature and effort do not go together")
        );
        let without = BackendProfile { model: None, ..profile(&[]) };
        assert!(Profile::read(&without).unwrap_err().contains("[backend.mine]"));
    }

    #[test]
    fn what_is_said_counts_and_the_rest_has_a_default() {
        let read = Profile::read(&profile(&[
            ("tools", "read, shell"),
            ("rounds_max", "3"),
            ("fallback_models", "b c"),
        ]));
        let read = read.unwrap();
        assert_eq!(
            (read.tools.as_slice(), read.limits.rounds_max),
            (&["read".to_owned(), "shell".to_owned()][..], 3)
        );
        assert_eq!(read.fallback_models, ["b", "c"]);
        let listed = [("fallback_models", r#"["b, large", "c d"]"#), ("tools", r#"["read"]"#)];
        let read = Profile::read(&profile(&listed)).unwrap();
        assert_eq!(read.fallback_models, ["b, large", "c d"], "a name holds what it holds");
        assert_eq!(read.tools, ["read"]);
        assert_eq!(Profile::read(&profile(&[])).unwrap().tools, TOOLS);
    }

    /// Else its answers would be cut by the gateway, and nobody could tell that from a provider that hung up.
    #[test]
    fn the_agent_gives_a_pause_up_before_the_gateway_does() {
        let gateways = Waits::default();
        let idle = |settings: &[(&str, &str)]| Profile::read(&profile(settings)).unwrap().waits.idle;
        assert_eq!(idle(&[]), Duration::from_secs(300));
        let longest = IDLE_MS_EVER_MAX.to_string();
        assert!(idle(&[("idle_ms", &longest)]) < gateways.idle);
    }
}
