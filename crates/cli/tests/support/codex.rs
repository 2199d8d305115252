//! Codex, the real program, on model providers of our own: one that speaks Responses, and one that speaks chat completions alone.
//! Each takes one key only, which lies in the secrets of its profile.

use std::path::{Path, PathBuf};

use runyard_demo_provider::{DemoProvider, Options};
use serde_json::{Value, json};

use super::api::{Api, Yard, left_of};
use super::eventually;

/// The key of profile `codex`. No form gives it away: only who knows it can take it out.
pub(crate) const CODEX_KEY: &str = "tr0ub4dor-quite-plain-words-7319";
/// The key of profile `deepseek`.
pub(crate) const DEEPSEEK_KEY: &str = "c0rrect-horse-other-words-5522";

/// The program, which must be there.
pub(crate) fn program() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let native =
        "codex-0.166.0/node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex";
    let program = std::env::var_os("RUNYARD_TEST_CODEX").map_or_else(|| target.join(native), PathBuf::from);
    assert!(program.is_file(), "there is no {}; ./test installs it", program.display());
    program
}

/// A hub whose codex and deepseek talk to providers of ours.
pub(crate) struct Bench {
    pub(crate) yard: Yard,
    /// Speaks Responses, for profile `codex`.
    pub(crate) responses: DemoProvider,
    /// Speaks chat completions, for profile `deepseek`.
    pub(crate) chat: DemoProvider,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Bench::with("", None)
    }

    /// With more configuration for profile `codex` and after it, and more scenarios.
    pub(crate) fn with(more: &str, scenarios: Option<&Path>) -> Self {
        let provider = |key: &str| {
            let executor = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let scenarios = scenarios.map(Path::to_owned);
            let options = Options { keys: vec![key.to_owned()], scenarios, ..Options::default() };
            executor.block_on(DemoProvider::start_with(options)).unwrap()
        };
        let (responses, chat) = (provider(CODEX_KEY), provider(DEEPSEEK_KEY));
        let program = program();
        let configuration = format!(
            "[backend.deepseek]\ncommand = [{program:?}]\nbase_url = {:?}\n\n\
             [backend.codex]\ncommand = [{program:?}]\nbase_url = {:?}\nmodel = \"gpt-5.5\"\n{more}\n",
            chat.url(),
            responses.url(),
        );
        let bench = Bench { yard: Yard::new(&configuration, &[]), responses, chat };
        bench.secret("codex", CODEX_KEY);
        bench.secret("deepseek", DEEPSEEK_KEY);
        bench
    }

    /// Gives a profile its key.
    pub(crate) fn secret(&self, profile: &str, key: &str) {
        let auth = json!({ "OPENAI_API_KEY": key }).to_string();
        let ran = self.yard.home.run_with(["secrets", "set", profile, "auth.json"], auth.as_bytes());
        assert_eq!(ran.exit, 0, "{} {}", ran.stdout, ran.stderr);
    }

    /// Starts a run of an agent and gives its id.
    #[track_caller]
    pub(crate) fn start(&self, api: &Api, agent: &str, task: &str) -> String {
        self.start_with(api, agent, task, &json!({}))
    }

    /// The same with more.
    #[track_caller]
    pub(crate) fn start_with(&self, api: &Api, agent: &str, task: &str, more: &Value) -> String {
        let mut new = json!({"task": task, "agent": agent, "workspace": self.yard.place()});
        for (name, value) in more.as_object().unwrap() {
            new[name] = value.clone();
        }
        let made = api.post("/runs", &new);
        made["run"]["id"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned()
    }

    /// What a file of the run's checkout holds.
    pub(crate) fn file(&self, run: &str, name: &str) -> Option<String> {
        std::fs::read_to_string(self.yard.home.path(&format!("edge/runs/{run}/checkout/{name}"))).ok()
    }

    /// Everything that was written, but for the secrets' own directory: as a user's backup would find it.
    pub(crate) fn written(&self) -> Vec<PathBuf> {
        let secrets = self.yard.home.path("secrets");
        let (mut files, mut left) = (Vec::new(), vec![self.yard.home.path("")]);
        while let Some(next) = left.pop() {
            // Agents at work take their own directories away.
            for entry in std::fs::read_dir(next).into_iter().flatten().flatten() {
                let path = entry.path();
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() && path != secrets => left.push(path),
                    Ok(kind) if kind.is_file() => files.push(path),
                    _ => {}
                }
            }
        }
        files
    }
}

/// The events' types.
pub(crate) fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

/// The processes of the run whose program is codex.
pub(crate) fn codex_of(run: &str) -> Vec<u32> {
    let codex = |pid: &String| {
        std::fs::read_link(format!("/proc/{pid}/exe"))
            .is_ok_and(|exe| exe.file_name().is_some_and(|name| name == "codex"))
    };
    left_of(run).into_iter().filter(codex).map(|pid| pid.parse().unwrap()).collect()
}

/// Waits until no process of the run is left.
#[track_caller]
pub(crate) fn nothing_left(run: &str) {
    eventually("nothing of the run is left", || left_of(run).is_empty().then_some(()));
}
