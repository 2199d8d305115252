//! What codex is told before it starts: the profile's settings, its program, its private home with `config.toml`.
//!
//! The file is written anew each time a session opens, so what an agent wrote into it does not count. It holds no secret and no
//! approval policy: codex refuses to start with `untrusted` in the file, and takes it with the thread.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use runyard_backend::BackendError;
use runyard_domain::BackendProfile;
use runyard_domain::run::FailureKind;
use toml::{Table, Value};

use crate::process::find;

/// The model provider's name inside the file.
const PROVIDER: &str = "profile";
/// How often codex itself tries again; beyond that the run does.
const RETRIES_MAX: i64 = 2;
/// How long the provider may be silent within an answer.
const IDLE_MS_MAX: i64 = 60_000;

/// A backend profile's settings, all optional.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Settings {
    /// The program: a path, or a name to be looked for in `PATH`.
    pub(super) program: Option<String>,
    /// The model.
    pub(super) model: Option<String>,
    /// Where the provider listens; without it codex talks to OpenAI.
    pub(super) base_url: Option<String>,
    /// The variable that holds the provider's key.
    pub(super) env_key: Option<String>,
}

impl Settings {
    const KNOWN: &str = "base_url, env_key, model, program";

    /// Reads them. A setting that nobody knows is an error.
    pub(super) fn read(profile: &BackendProfile) -> Result<Self, BackendError> {
        let mut settings = Settings::default();
        for (name, value) in &profile.settings {
            let place = match name.as_str() {
                "program" => &mut settings.program,
                "model" => &mut settings.model,
                "base_url" => &mut settings.base_url,
                "env_key" => &mut settings.env_key,
                _ => {
                    let known = Settings::KNOWN;
                    let message =
                        format!("profile {}: no setting \"{name}\"; there are {known}", profile.profile);
                    return Err(BackendError::new(FailureKind::BackendSpawnFailed, message));
                }
            };
            *place = Some(value.clone());
        }
        Ok(settings)
    }

    /// The program itself, never the script that npm puts before it: what is started is then what is stopped.
    pub(super) fn program(&self, path: Option<&std::ffi::OsStr>) -> Result<PathBuf, BackendError> {
        let name = self.program.as_deref().unwrap_or("codex");
        let found = find(name, path).ok_or_else(|| {
            let message =
                format!("there is no program {name}; install codex, or name it in the profile's \"program\"");
            BackendError::new(FailureKind::BackendSpawnFailed, message)
        })?;
        Ok(behind_npm(&found).unwrap_or(found))
    }

    fn config(&self, directory: &Path) -> Table {
        let table = |rows: Vec<(&str, Value)>| -> Table {
            rows.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
        };
        let text = |text: &str| Value::String(text.to_owned());
        let mut config = Table::new();
        if let Some(model) = &self.model {
            config.insert("model".to_owned(), text(model));
        }
        // A search at the provider would be network that no gate sees.
        config.insert("web_search".to_owned(), text("disabled"));
        let mut sections = vec![
            (
                "features",
                table(vec![("plugins", false.into()), ("unbounded_connection_retries", false.into())]),
            ),
            ("shell_environment_policy", table(vec![("inherit", text("core"))])),
            ("analytics", table(vec![("enabled", false.into())])),
        ];
        // What the repository says about codex does not count: it could start processes without asking.
        let untrusted = table(vec![("trust_level", text("untrusted"))]);
        let project = directory.to_string_lossy().into_owned();
        sections.push(("projects", Table::from_iter([(project, Value::Table(untrusted))])));
        if let Some(base_url) = &self.base_url {
            config.insert("model_provider".to_owned(), text(PROVIDER));
            let mut provider = table(vec![
                ("name", text(PROVIDER)),
                ("base_url", text(base_url)),
                ("wire_api", text("responses")),
                ("request_max_retries", RETRIES_MAX.into()),
                ("stream_max_retries", RETRIES_MAX.into()),
                ("stream_idle_timeout_ms", IDLE_MS_MAX.into()),
            ]);
            if let Some(env_key) = &self.env_key {
                provider.insert("env_key".to_owned(), text(env_key));
            }
            sections
                .push(("model_providers", Table::from_iter([(PROVIDER.to_owned(), Value::Table(provider))])));
        }
        config.extend(sections.into_iter().map(|(name, section)| (name.to_owned(), Value::Table(section))));
        config
    }
}

/// A private home for codex.
pub(super) struct Home {
    pub(super) path: PathBuf,
    /// Whether an earlier session of the run left it here.
    pub(super) was_there: bool,
}

impl Home {
    /// Makes it, or takes the one that is there, and writes the configuration.
    pub(super) fn prepare(parent: &Path, settings: &Settings, checkout: &Path) -> Result<Self, BackendError> {
        let path = parent.join("codex");
        let made = || -> io::Result<bool> {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&path)?;
            let file = path.join("config.toml");
            // Removed and made anew: an agent may have put a link in its place.
            let was_there = match fs::remove_file(&file) {
                Ok(()) => true,
                Err(error) if error.kind() == io::ErrorKind::NotFound => false,
                Err(error) => return Err(error),
            };
            let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file)?;
            file.write_all(settings.config(checkout).to_string().as_bytes())?;
            Ok(was_there)
        };
        let was_there = made().map_err(|error| {
            let message = format!("cannot prepare the home of codex: {error}");
            BackendError::new(FailureKind::BackendSpawnFailed, message)
        })?;
        Ok(Home { path, was_there })
    }
}

/// The native program of an npm package, where the one that was found is its script.
fn behind_npm(found: &Path) -> Option<PathBuf> {
    let script = found.canonicalize().ok().filter(|file| file.extension().is_some_and(|end| end == "js"))?;
    let (package, target) = match std::env::consts::ARCH {
        "aarch64" => ("codex-linux-arm64", "aarch64-unknown-linux-musl"),
        _ => ("codex-linux-x64", "x86_64-unknown-linux-musl"),
    };
    let own = script.parent()?.parent()?;
    [own.join("..").join(package), own.join("node_modules/@openai").join(package)]
        .into_iter()
        .map(|place| place.join("vendor").join(target).join("bin/codex"))
        .find_map(|program| program.canonicalize().ok())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn profile(settings: &[(&str, &str)]) -> BackendProfile {
        BackendProfile {
            profile: "codex".to_owned(),
            backend_kind: "codex-app-server-stdio".to_owned(),
            required_secret_keys: Vec::new(),
            settings: settings
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect::<BTreeMap<_, _>>(),
        }
    }

    #[test]
    fn a_setting_that_nobody_knows_is_an_error_that_names_the_known_ones() {
        let error = Settings::read(&profile(&[("modle", "gpt-5.5")])).unwrap_err();
        assert_eq!(error.failure_kind, FailureKind::BackendSpawnFailed);
        assert_eq!(
            error.message,
            "profile codex: no setting \"modle\"; there are base_url, env_key, model, program"
        );
    }

    #[test]
    fn b12_the_home_is_private_and_its_configuration_is_written_anew() {
        let run = tempfile::tempdir().unwrap();
        let settings =
            Settings::read(&profile(&[("model", "m\"1"), ("base_url", "http://127.0.0.1:1/v1")])).unwrap();
        let home = Home::prepare(run.path(), &settings, Path::new("/checkout")).unwrap();
        assert!(!home.was_there);
        let file = home.path.join("config.toml");
        let written = fs::read_to_string(&file).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&home.path), mode(&file)), (0o700, 0o600));
        let config: Table = written.parse().unwrap();
        assert_eq!(config["model"].as_str(), Some("m\"1"));
        assert_eq!(config["model_providers"][PROVIDER]["base_url"].as_str(), Some("http://127.0.0.1:1/v1"));
        assert_eq!(config["projects"]["/checkout"]["trust_level"].as_str(), Some("untrusted"));
        assert_eq!(config["shell_environment_policy"]["inherit"].as_str(), Some("core"));
        assert!(!config.contains_key("approval_policy") && !config.contains_key("sandbox_mode"));

        let outside = run.path().join("outside");
        fs::write(&outside, "mine").unwrap();
        fs::remove_file(&file).unwrap();
        symlink(&outside, &file).unwrap();
        let home = Home::prepare(run.path(), &settings, Path::new("/checkout")).unwrap();
        assert!(home.was_there);
        assert_eq!(fs::read_to_string(&file).unwrap(), written);
        assert_eq!(fs::read_to_string(&outside).unwrap(), "mine");
    }

    #[test]
    fn behind_the_script_of_npm_the_native_program_is_found() {
        let place = tempfile::tempdir().unwrap();
        let (scope, bin) = (place.path().join("node_modules/@openai"), place.path().join("bin"));
        let (package, target) = match std::env::consts::ARCH {
            "aarch64" => ("codex-linux-arm64", "aarch64-unknown-linux-musl"),
            _ => ("codex-linux-x64", "x86_64-unknown-linux-musl"),
        };
        let native = scope.join(package).join("vendor").join(target).join("bin/codex");
        let script = scope.join("codex/bin/codex.js");
        for file in [&native, &script] {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
            fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
        }
        fs::create_dir(&bin).unwrap();
        symlink(&script, bin.join("codex")).unwrap();
        let program = Settings::default().program(Some(bin.as_os_str())).unwrap();
        assert_eq!(program, native.canonicalize().unwrap());
    }
}
