//! The scripted backend: an agent that is a data file. The demo and the tests run on it; it needs no key and no model.
//!
//! A script is TOML: `[[turn]]`s of `[[turn.step]]`s, each of which does one thing.
//!
//! | a step | does | may also say |
//! |---|---|---|
//! | `say = "text"` | says it, piece by piece | |
//! | `deltas = 100` | says one message of so many pieces | `piece` |
//! | `read = "path"` | asks, then reads the file | `or_first`, `then_say`, `on_denied` |
//! | `shell = "command"` | asks, then runs it | `idempotent`, `on_denied` |
//! | `write = "path"` | asks, then writes the file | `content`, `on_denied` |
//! | `ask = "question"` | asks a person | `schema`, `then_say`, `on_denied` |
//! | `status = {…}` | says `model`, `input_tokens`, `output_tokens`, `cost_usd` | |
//! | `error = "message"` | says that something failed, and goes on | `failure_kind`, `retrying` |
//! | `degraded = "reason"` | says that something cannot be relied on | |
//! | `fail = "backend-failed"` | comes to its end | `message` |
//! | `block = "permission_denied"` | cannot go on | `message` |
//! | `wait_for_command = true` | waits for a word into its turn | |
//!
//! `repeat = n` does a step n times. `on_denied` is `continue` or `stop`. In texts `{task}` and `{run}` stand for the task and
//! the run, and in `then_say` `{path}`, `{lines}` and `{answer}` for what was found. A command has no placeholders: nothing that
//! a task says becomes part of one.

mod files;
mod output;
mod player;
mod position;
mod script;
mod steps;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use runyard_domain::BackendProfile;
use runyard_domain::run::{FailureKind, Task};
use tokio::sync::mpsc;

use self::player::{Opening, Player, clip};
use self::position::Position;
pub use self::script::{Problem, SCRIPT_BYTES_MAX, STEPS_MAX, Script, ScriptError, TEXT_BYTES_MAX};
use crate::{
    Backend, BackendError, BackendInfo, COMMANDS_MAX, Hearing, Journal, Probe, Resumes, Runs, SecretKeys,
    Session, SessionSpec, Start,
};

/// The scripts that a scripted backend knows by name.
#[derive(Clone, Debug)]
pub struct Scripts(BTreeMap<String, Arc<Script>>);

impl Scripts {
    /// The ones that come with the product: `demo` and `shortest`.
    pub fn embedded() -> Result<Self, ScriptError> {
        Scripts(BTreeMap::new())
            .with("demo", include_str!("../scripts/demo.toml"))?
            .with("shortest", include_str!("../scripts/shortest.toml"))
    }

    /// One more.
    pub fn with(mut self, name: &str, text: &str) -> Result<Self, ScriptError> {
        self.0.insert(name.to_owned(), Arc::new(Script::read(text)?));
        Ok(self)
    }

    fn get(&self, name: &str) -> Result<Arc<Script>, ScriptError> {
        self.0.get(name).cloned().ok_or_else(|| ScriptError::Unknown {
            name: name.to_owned(),
            known: self.0.keys().cloned().collect::<Vec<_>>().join(", "),
        })
    }
}

/// What a profile may say of it.
const SETTINGS: [&str; 2] = ["script", "scriptFile"];

/// Runs scripted agents. A backend profile says which script: setting `script` names one, `scriptFile` is the path of one.
pub struct ScriptedBackend {
    scripts: Scripts,
}

impl ScriptedBackend {
    /// Plays these scripts.
    pub fn new(scripts: Scripts) -> Self {
        ScriptedBackend { scripts }
    }

    /// The script of a profile, and its name.
    async fn script(&self, profile: &BackendProfile) -> Result<(String, Arc<Script>), BackendError> {
        let settings = &profile.settings;
        if let Some(unknown) = settings.keys().find(|key| !SETTINGS.contains(&key.as_str())) {
            return Err(refused(format!("a scripted backend knows no setting \"{unknown}\"")));
        }
        match (settings.get("script"), settings.get("scriptFile")) {
            (Some(name), None) => {
                Ok((name.clone(), self.scripts.get(name).map_err(|error| refused(error.to_string()))?))
            }
            (None, Some(path)) => {
                let path = path.clone();
                let read = tokio::task::spawn_blocking(move || read_file(Path::new(&path))).await;
                let read = read.map_err(|error| refused(error.to_string()))?;
                read.map_err(|error| refused(error.to_string()))
            }
            _ => Err(refused("say which script: either \"script\" or \"scriptFile\"".to_owned())),
        }
    }
}

fn refused(message: String) -> BackendError {
    BackendError::new(FailureKind::BackendSpawnFailed, message)
}

fn read_file(path: &Path) -> Result<(String, Arc<Script>), ScriptError> {
    use std::io::Read;
    let unreadable = |source| ScriptError::Unreadable { path: path.to_owned(), source };
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut text = String::new();
    // One byte more than allowed, so that a longer one is found out.
    file.take(SCRIPT_BYTES_MAX as u64 + 1).read_to_string(&mut text).map_err(unreadable)?;
    let name = path.file_stem().map_or_else(|| "script".into(), |stem| stem.to_string_lossy());
    Ok((name.into_owned(), Arc::new(Script::read(&text)?)))
}

#[async_trait]
impl Backend for ScriptedBackend {
    fn info(&self) -> BackendInfo {
        BackendInfo {
            backend_kind: "scripted",
            protocol: "runyard-script",
            transport: "in-process",
            command: None,
            resumes: Resumes::Steps,
            runs: Runs::Agent,
            asks: true,
            tells_steps: true,
            checkout: true,
            needs_network: false,
            secret_keys: SecretKeys::default(),
            gateway: false,
            wires: &[],
            logs_thread: false,
            private_files: &[],
            settings: &SETTINGS,
        }
    }

    async fn check(&self, profile: &BackendProfile, _: &Probe) -> Result<String, BackendError> {
        let (name, script) = self.script(profile).await?;
        let (turns, steps) = script.size();
        Ok(format!("script {name}: {}, {}", counted(turns, "turn"), counted(steps, "step")))
    }

    async fn open(&self, spec: SessionSpec, journal: Arc<dyn Journal>) -> Result<Session, BackendError> {
        let (name, script) = self.script(&spec.profile).await?;
        let (opening, position) = place(&name, &spec.start)?;
        let (Start::Fresh { task, .. } | Start::Resume { task, .. }) = spec.start;
        let (commands, receiver) = mpsc::channel(COMMANDS_MAX);
        let player = Player {
            run: spec.run,
            task: clip(match task {
                Task::Text { text, .. } => text,
                Task::Action { action, .. } => action,
            }),
            script,
            position,
            journal,
            hearing: Hearing::new(receiver),
            processes: spec.processes,
            directory: spec.directory,
            environment: spec.environment,
            last_words: Vec::new(),
        };
        Ok(Session { commands, task: tokio::spawn(player.play(opening)) })
    }
}

/// Where a session begins, and how.
fn place(script: &str, start: &Start) -> Result<(Opening, Position), BackendError> {
    let read = |thread: &str| {
        Position::read(script, thread).ok_or_else(|| {
            let message = format!("the thread is none of the script {script}");
            BackendError::new(FailureKind::BackendProtocolError, message)
        })
    };
    match start {
        Start::Fresh { thread: None, .. } | Start::Resume { thread: None, turn_active: false, .. } => {
            Ok((Opening::Turn, Position::start(script)))
        }
        Start::Fresh { thread: Some(thread), .. } => {
            let mut position = read(thread)?;
            position.next_turn();
            Ok((Opening::Turn, position))
        }
        Start::Resume { thread: None, turn_active: true, .. } => {
            Ok((Opening::Resumed, Position::start(script)))
        }
        Start::Resume { thread: Some(thread), turn_active, .. } => {
            let opening = if *turn_active { Opening::Resumed } else { Opening::Idle };
            Ok((opening, read(thread)?))
        }
    }
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
