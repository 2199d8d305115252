//! Codex driven directly: the program, a home with the least that it needs, and one turn over its standard input and output.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use crate::support::codex::{Bench, CODEX_KEY, program};

const KEY_VARIABLE: &str = "BENCH_KEY";

/// Who drives it.
pub(crate) struct Direct {
    program: PathBuf,
    provider: String,
}

/// What a turn took.
pub(crate) struct Took {
    /// From the start of the process to the turn's.
    pub(crate) until_turn: Duration,
    /// The turn.
    pub(crate) turn: Duration,
    /// From the start of the process until it is gone.
    pub(crate) whole: Duration,
}

impl Direct {
    /// On the provider of the profile `codex`.
    pub(crate) fn on(bench: &Bench) -> Self {
        Direct { program: program(), provider: bench.responses.url() }
    }

    /// One turn with this text, in a home of its own.
    pub(crate) fn turn(&self, text: &str) -> Took {
        let place = tempfile::tempdir().unwrap();
        let (home, checkout) = (place.path().join("home"), place.path().join("checkout"));
        std::fs::create_dir(&home).unwrap();
        std::fs::create_dir(&checkout).unwrap();
        std::fs::write(home.join("config.toml"), self.configuration(&checkout)).unwrap();
        std::fs::write(checkout.join("README.md"), "A place to look around in.\n").unwrap();

        let begun = Instant::now();
        let mut codex = Talk::start(&self.program, &home, &checkout);
        let client = json!({"name": "bench", "title": "Bench", "version": "0"});
        codex.call("initialize", &json!({"clientInfo": client, "capabilities": {"experimentalApi": true}}));
        codex.say(&json!({"method": "initialized"}));
        let thread = json!({"cwd": checkout, "approvalPolicy": "untrusted", "sandbox": "danger-full-access"});
        let thread = codex.call("thread/start", &thread)["thread"]["id"].clone();
        let until_turn = begun.elapsed();
        let turn = json!({"threadId": thread, "input": [{"type": "text", "text": text}]});
        codex.call("turn/start", &turn);
        let ended = codex.until("turn/completed");
        assert_eq!(ended["turn"]["status"], "completed", "{ended}");
        let turn = begun.elapsed() - until_turn;
        drop(codex);
        Took { until_turn, turn, whole: begun.elapsed() }
    }

    /// What the adapter says to codex too, but for the gateway: the provider is called with its key.
    fn configuration(&self, checkout: &Path) -> String {
        format!(
            "model = \"gpt-5.5\"\nmodel_provider = \"profile\"\nweb_search = \"disabled\"\n\
             suppress_unstable_features_warning = true\n\n\
             [features]\nplugins = false\nunbounded_connection_retries = false\nmulti_agent = false\n\n\
             [analytics]\nenabled = false\n\n\
             [shell_environment_policy]\ninherit = \"core\"\n\n\
             [projects.{checkout:?}]\ntrust_level = \"untrusted\"\n\n\
             [model_providers.profile]\nname = \"profile\"\nbase_url = {:?}\nwire_api = \"responses\"\n\
             env_key = \"{KEY_VARIABLE}\"\nrequest_max_retries = 2\nstream_max_retries = 2\nsupports_websockets = false\n",
            self.provider
        )
    }
}

/// A conversation with one process. Dropping it kills all of its group, and waits until it is gone.
struct Talk {
    codex: Child,
    says: ChildStdin,
    hears: BufReader<ChildStdout>,
    calls: u64,
}

impl Talk {
    fn start(program: &Path, home: &Path, checkout: &Path) -> Self {
        let mut command = Command::new(program);
        command
            .args(["app-server", "--listen", "stdio://"])
            .current_dir(checkout)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", home)
            .env("CODEX_HOME", home)
            .env(KEY_VARIABLE, CODEX_KEY)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0);
        let mut codex = command.spawn().unwrap();
        let (says, hears) = (codex.stdin.take().unwrap(), BufReader::new(codex.stdout.take().unwrap()));
        Talk { codex, says, hears, calls: 0 }
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.says, "{message}").unwrap();
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.hears.read_line(&mut line).unwrap() > 0, "codex goes on");
        serde_json::from_str(&line).unwrap()
    }

    /// Asks, and gives the answer; what else comes until then is passed over.
    fn call(&mut self, method: &str, params: &Value) -> Value {
        self.calls += 1;
        let id = self.calls;
        self.say(&json!({"id": id, "method": method, "params": params}));
        loop {
            let mut heard = self.hear();
            if heard["id"] == id && heard.get("method").is_none() {
                assert!(heard.get("error").is_none(), "{method}: {heard}");
                return heard["result"].take();
            }
        }
    }

    fn until(&mut self, method: &str) -> Value {
        loop {
            let mut heard = self.hear();
            if heard["method"] == method {
                return heard["params"].take();
            }
        }
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.codex), Signal::KILL);
        let _ = self.codex.wait();
    }
}
