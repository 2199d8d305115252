//! What codex is told by files and variables before it starts: `config.toml`, `auth.json`, the gateway's token.
//!
//! The configuration is made of the backend profile and of our policy. Of the person's own `config.toml` only the keys that choose
//! and tune a model are taken, and a provider where none is ours; what is not taken is named. It holds no approval policy: codex
//! refuses to start with `untrusted` in the file, and takes it with the thread.

use std::path::Path;

use runyard_backend::{Access, BackendError, SecretFile};
use runyard_domain::run::FailureKind;
use runyard_domain::{BackendProfile, Wire};
use toml::{Table, Value};

use super::models;

/// The model provider's name inside the file.
const PROVIDER: &str = "profile";
/// The variable that holds the gateway's token.
const TOKEN_VARIABLE: &str = "RUNYARD_GATEWAY_TOKEN";
/// The secrets, and the files of codex's home, that have these names.
const AUTH: &str = "auth.json";
const CONFIG: &str = "config.toml";
/// The catalog of models, where codex does not know the model.
const MODELS: &str = "models.json";
/// What of the person's own configuration is taken.
const TAKEN: &[&str] = &[
    "model",
    "model_context_window",
    "model_max_output_tokens",
    "model_reasoning_effort",
    "model_reasoning_summary",
    "model_verbosity",
];
/// What is taken too where no provider is ours.
const TAKEN_PROVIDERS: &[&str] = &["model_provider", "model_providers"];
/// How often codex itself tries again; beyond that the turn is tried again.
const RETRIES_MAX: i64 = 2;
/// How long the provider may be silent within an answer.
const IDLE_MS_MAX: i64 = 60_000;

/// What codex is told before it starts.
#[derive(Debug)]
pub(super) struct Config {
    /// The files of its home.
    pub(super) files: Vec<SecretFile>,
    /// What only codex itself finds in its environment.
    pub(super) variable: Option<(&'static str, String)>,
    /// The keys of the person's own configuration that were not taken.
    pub(super) unused: Vec<String>,
}

impl Config {
    /// Makes it for a run in this checkout, and for codex's home.
    pub(super) fn of(
        profile: &BackendProfile,
        access: &Access,
        checkout: &Path,
        home: &Path,
    ) -> Result<Self, BackendError> {
        let secrets = secrets(profile, access)?;
        let base_url = match access {
            Access::Gateway(gateway) => Some(&gateway.base_url),
            Access::Open | Access::Projected(_) => profile.base_url.as_ref(),
        };
        let mut taken = TAKEN.to_vec();
        if base_url.is_none() {
            taken.extend(TAKEN_PROVIDERS);
        }
        let (mut config, unused): (Table, Table) =
            persons(secrets)?.into_iter().partition(|(key, _)| taken.contains(&key.as_str()));
        if let Some(Value::Table(providers)) = config.get_mut("model_providers") {
            providers.iter_mut().filter_map(|(_, provider)| provider.as_table_mut()).for_each(bound);
        }
        config.extend(ours(profile, checkout));
        if let Some(base_url) = base_url {
            config.insert("model_provider".to_owned(), text(PROVIDER));
            let provider = Value::Table(provider(base_url, access));
            config.insert("model_providers".to_owned(), table([(PROVIDER, provider)]));
        }
        let catalog = match config.get("model").and_then(Value::as_str) {
            Some(model) if profile.wire == Wire::Chat => {
                let content = models::catalog(model).into_bytes();
                let file = home.join(MODELS).to_string_lossy().into_owned();
                config.insert("model_catalog_json".to_owned(), Value::String(file));
                Some(SecretFile { key: MODELS.to_owned(), content })
            }
            _ => None,
        };
        let config = SecretFile { key: CONFIG.to_owned(), content: config.to_string().into_bytes() };
        let (auth, variable) = match access {
            Access::Gateway(gateway) => (None, Some((TOKEN_VARIABLE, gateway.token.clone()))),
            Access::Open | Access::Projected(_) => (find(secrets, AUTH).cloned(), None),
        };
        let files = std::iter::once(config).chain(auth).chain(catalog).collect();
        let mut unused: Vec<String> = unused.into_iter().map(|(key, _)| key).collect();
        unused.sort();
        Ok(Config { files, variable, unused })
    }
}

/// The configuration of one that is only met: it reaches nobody.
pub(super) fn plain(checkout: &Path) -> SecretFile {
    let config = ours(&BackendProfile::default(), checkout);
    SecretFile { key: CONFIG.to_owned(), content: config.to_string().into_bytes() }
}

/// The secrets that came, if those came that must.
fn secrets<'a>(profile: &BackendProfile, access: &'a Access) -> Result<&'a [SecretFile], BackendError> {
    let unavailable = |message| Err(BackendError::new(FailureKind::SecretUnavailable, message));
    let name = &profile.profile;
    let files: &[SecretFile] = match access {
        Access::Gateway(gateway) => return Ok(&gateway.files),
        Access::Projected(files) => files,
        Access::Open => &[],
    };
    if profile.wire == Wire::Chat {
        let message =
            format!("profile {name}: codex cannot speak to a provider of chat completions by itself");
        return Err(BackendError::new(FailureKind::BackendSpawnFailed, message));
    }
    if let Some(key) = profile.required_secret_keys.iter().find(|key| find(files, key).is_none()) {
        return unavailable(format!("profile {name}: the secret {key} is not there"));
    }
    // Codex would go on without it, and be refused by the provider.
    let usable = |file: &SecretFile| serde_json::from_slice::<serde_json::Map<_, _>>(&file.content).is_ok();
    match find(files, AUTH) {
        Some(auth) if !usable(auth) => {
            unavailable(format!("profile {name}: the secret {AUTH} is no JSON object"))
        }
        _ => Ok(files),
    }
}

fn find<'a>(files: &'a [SecretFile], key: &str) -> Option<&'a SecretFile> {
    files.iter().find(|file| file.key == key)
}

/// The person's own configuration. What it holds is not repeated where it cannot be read: it may be secret.
fn persons(secrets: &[SecretFile]) -> Result<Table, BackendError> {
    let Some(file) = find(secrets, CONFIG) else { return Ok(Table::new()) };
    let read = str::from_utf8(&file.content).ok().and_then(|text| text.parse().ok());
    read.ok_or_else(|| {
        let message = format!("{CONFIG} of the secrets is not TOML");
        BackendError::new(FailureKind::BackendSpawnFailed, message)
    })
}

/// What is said whatever anybody else says.
fn ours(profile: &BackendProfile, checkout: &Path) -> Table {
    let off = || Value::Boolean(false);
    let on = || Value::Boolean(true);
    let features = table([
        ("plugins", off()),
        // The chat wire has no place for a picture in what a tool says.
        ("view_image", Value::Boolean(profile.wire != Wire::Chat)),
        ("unbounded_connection_retries", off()),
        // What an agent's agents do would be on threads that nobody asks about and nobody sees.
        ("multi_agent", off()),
        ("default_mode_request_user_input", on()),
    ]);
    // The exclusion says again what `core` means, for a codex that means something else by it.
    let excluded = Value::Array(vec![text(TOKEN_VARIABLE)]);
    let environment = table([("inherit", text("core")), ("exclude", excluded)]);
    // What the repository says about codex does not count: it could start processes without asking.
    let untrusted = table([("trust_level", text("untrusted"))]);
    let project = Table::from_iter([(checkout.to_string_lossy().into_owned(), untrusted)]);
    let rows = [
        // A search at the provider would be network that no gate sees.
        ("web_search", text("disabled")),
        ("suppress_unstable_features_warning", on()),
        ("features", features),
        ("tools", table([("update_plan", table([("enabled", on())]))])),
        ("shell_environment_policy", environment),
        ("analytics", table([("enabled", off())])),
        ("projects", Value::Table(project)),
    ];
    let model = profile.model.as_deref().map(|model| ("model", text(model)));
    rows.into_iter().chain(model).map(|(key, value)| (key.to_owned(), value)).collect()
}

fn provider(base_url: &str, access: &Access) -> Table {
    let key = match access {
        Access::Gateway(_) => Some(("env_key", text(TOKEN_VARIABLE))),
        Access::Projected(files) if find(files, AUTH).is_some() => {
            Some(("requires_openai_auth", Value::Boolean(true)))
        }
        Access::Open | Access::Projected(_) => None,
    };
    let rows = [("name", text(PROVIDER)), ("base_url", text(base_url)), ("wire_api", text("responses"))];
    let rows = rows.into_iter().chain(key).map(|(key, value)| (key.to_owned(), value));
    let mut provider: Table = rows.collect();
    bound(&mut provider);
    provider
}

/// Bounds how long codex stays with a provider that does not answer, and keeps it to what a gateway can follow.
fn bound(provider: &mut Table) {
    for (key, limit) in [
        ("request_max_retries", RETRIES_MAX),
        ("stream_max_retries", RETRIES_MAX),
        ("stream_idle_timeout_ms", IDLE_MS_MAX),
    ] {
        provider.insert(key.to_owned(), Value::Integer(limit));
    }
    provider.insert("supports_websockets".to_owned(), Value::Boolean(false));
}

fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}

fn table<const N: usize>(rows: [(&str, Value); N]) -> Value {
    Value::Table(rows.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

#[cfg(test)]
mod tests {
    use runyard_backend::GatewayAccess;

    use super::*;

    const PERSONS: &str = "model = \"theirs\"\nmodel_reasoning_effort = \"high\"\nmodel_provider = \"own\"\n\
                           approval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"\nnotify = [\"curl\"]\n\
                           web_search = \"live\"\n[features]\nplugins = true\n[mcp_servers.a]\ncommand = \"b\"\n\
                           [model_providers.own]\nbase_url = \"http://own/v1\"\nstream_max_retries = 99\n";

    fn profile(base_url: Option<&str>, model: Option<&str>) -> BackendProfile {
        BackendProfile {
            profile: "codex".to_owned(),
            base_url: base_url.map(str::to_owned),
            model: model.map(str::to_owned),
            ..BackendProfile::default()
        }
    }

    fn file(key: &str, content: &str) -> SecretFile {
        SecretFile { key: key.to_owned(), content: content.as_bytes().to_vec() }
    }

    fn gateway(files: Vec<SecretFile>) -> Access {
        Access::Gateway(GatewayAccess {
            base_url: "http://edge/v1".to_owned(),
            token: "token-1".to_owned(),
            files,
        })
    }

    fn made(profile: &BackendProfile, access: &Access) -> (Config, Table) {
        let config = Config::of(profile, access, Path::new("/checkout"), Path::new("/home/codex")).unwrap();
        let table = String::from_utf8(config.files[0].content.clone()).unwrap().parse().unwrap();
        (config, table)
    }

    #[test]
    fn b07_the_configuration_is_ours_and_the_repository_is_not_trusted() {
        let (config, table) = made(&profile(Some("http://127.0.0.1:1/v1"), Some("m\"1")), &Access::Open);
        assert_eq!(table["model"].as_str(), Some("m\"1"));
        assert_eq!(table["model_providers"][PROVIDER]["base_url"].as_str(), Some("http://127.0.0.1:1/v1"));
        assert_eq!(table["projects"]["/checkout"]["trust_level"].as_str(), Some("untrusted"));
        assert_eq!(table["shell_environment_policy"]["inherit"].as_str(), Some("core"));
        assert!(!table.contains_key("approval_policy") && !table.contains_key("sandbox_mode"));
        assert_eq!((config.files.len(), config.variable, config.unused.len()), (1, None, 0));
    }

    #[test]
    fn b12_behind_the_gateway_the_file_holds_no_secret_and_the_token_is_a_variable_that_commands_do_not_get()
    {
        let (config, table) = made(&profile(Some("http://real/v1"), None), &gateway(vec![file(AUTH, "{}")]));
        let provider = &table["model_providers"][PROVIDER];
        assert_eq!(provider["base_url"].as_str(), Some("http://edge/v1"));
        assert_eq!(provider["env_key"].as_str(), Some("RUNYARD_GATEWAY_TOKEN"));
        assert_eq!(table["shell_environment_policy"]["exclude"][0].as_str(), Some("RUNYARD_GATEWAY_TOKEN"));
        assert_eq!(config.variable, Some(("RUNYARD_GATEWAY_TOKEN", "token-1".to_owned())));
        assert_eq!(config.files.len(), 1, "no auth.json");
        assert!(!table.to_string().contains("token-1"));
    }

    #[test]
    fn b12_projected_secrets_are_the_files_of_codex_and_are_used_with_the_profiles_provider() {
        let auth = file(AUTH, "{\"OPENAI_API_KEY\":\"sk-1\"}");
        let access = Access::Projected(vec![auth.clone()]);
        let (config, table) = made(&profile(Some("http://real/v1"), None), &access);
        assert_eq!(table["model_providers"][PROVIDER]["requires_openai_auth"].as_bool(), Some(true));
        assert_eq!(config.files[1..], [auth]);
        let (_, table) = made(&profile(None, None), &access);
        assert!(!table.contains_key("model_providers"), "codex knows where OpenAI is");
    }

    #[test]
    fn b07_of_the_persons_own_configuration_only_the_model_is_taken_and_the_rest_is_named() {
        let access = Access::Projected(vec![file(CONFIG, PERSONS)]);
        let (config, table) = made(&profile(None, None), &access);
        assert_eq!(
            (table["model"].as_str(), table["model_provider"].as_str()),
            (Some("theirs"), Some("own"))
        );
        assert_eq!(table["model_reasoning_effort"].as_str(), Some("high"));
        assert_eq!(table["model_providers"]["own"]["stream_max_retries"].as_integer(), Some(RETRIES_MAX));
        assert_eq!(
            (table["web_search"].as_str(), table["features"]["plugins"].as_bool()),
            (Some("disabled"), Some(false))
        );
        let unused = ["approval_policy", "features", "mcp_servers", "notify", "sandbox_mode", "web_search"];
        assert_eq!(config.unused, unused);
        for access in [gateway(vec![file(CONFIG, PERSONS)]), access] {
            let (config, table) = made(&profile(Some("http://real/v1"), Some("mine")), &access);
            assert_eq!(
                (table["model"].as_str(), table["model_provider"].as_str()),
                (Some("mine"), Some(PROVIDER))
            );
            assert!(table["model_providers"].get("own").is_none());
            assert!(config.unused.contains(&"model_providers".to_owned()));
        }
    }

    #[test]
    fn b15_a_model_behind_chat_completions_is_in_a_catalog_of_its_own() {
        let chat = BackendProfile { wire: Wire::Chat, ..profile(None, Some("deepseek-chat")) };
        let (config, table) = made(&chat, &gateway(Vec::new()));
        assert_eq!(table["model_catalog_json"].as_str(), Some("/home/codex/models.json"));
        let catalog: serde_json::Value = serde_json::from_slice(&config.files[1].content).unwrap();
        assert_eq!(
            (config.files[1].key.as_str(), &catalog["models"][0]["slug"]),
            (MODELS, &"deepseek-chat".into())
        );
        let (config, table) = made(&profile(None, Some("gpt-5.5")), &gateway(Vec::new()));
        assert!(config.files.len() == 1 && !table.contains_key("model_catalog_json"));
    }

    #[test]
    fn b13_a_secret_that_is_missing_or_broken_is_told_without_its_content() {
        let needs = BackendProfile { required_secret_keys: vec![AUTH.to_owned()], ..profile(None, None) };
        let broken = |key: &str| Access::Projected(vec![file(AUTH, "{}"), file(key, "sk-secret = {")]);
        let broken_auth = Access::Projected(vec![file(AUTH, "sk-secret")]);
        for (access, kind) in [
            (Access::Open, FailureKind::SecretUnavailable),
            (Access::Projected(Vec::new()), FailureKind::SecretUnavailable),
            (broken_auth, FailureKind::SecretUnavailable),
            (broken(CONFIG), FailureKind::BackendSpawnFailed),
        ] {
            let error =
                Config::of(&needs, &access, Path::new("/checkout"), Path::new("/home/codex")).unwrap_err();
            assert_eq!(error.failure_kind, kind, "{error}");
            assert!(!error.message.contains("sk-secret"), "{error}");
        }
        assert!(
            Config::of(&needs, &gateway(Vec::new()), Path::new("/checkout"), Path::new("/home/codex"))
                .is_ok()
        );
    }
}
