//! The `tasks` program as a process: its own folder, its own task file, nothing of the caller's environment that matters.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use runyard::Envelope;
use serde_json::Value;
use tempfile::TempDir;

/// Whatever is waited for comes within this time or the test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Program {
    folder: TempDir,
}

impl Program {
    pub(crate) fn new() -> Self {
        Program { folder: tempfile::tempdir().unwrap() }
    }

    /// A path in the program's own folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file into the program's own folder and gives its path as an argument.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        std::fs::write(self.path(name), content).unwrap();
        self.path(name).to_str().unwrap().to_owned()
    }

    fn dress(&self, command: &mut Command) {
        command
            .current_dir(self.folder.path())
            .env("TASKS_FILE", self.path("tasks.json"))
            .env("HOME", self.folder.path())
            .env("USER", "tester")
            .env("TERM", "xterm-256color")
            .env_remove("NO_COLOR")
            .env_remove("RUNYARD_LOG")
            .env_remove("RUST_BACKTRACE");
    }

    pub(crate) fn command(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tasks"));
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        self.dress(&mut command);
        command
    }

    pub(crate) fn run(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Ran {
        self.run_with(arguments, b"")
    }

    /// Runs to the end with these bytes on standard input.
    pub(crate) fn run_with(
        &self,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
        input: &[u8],
    ) -> Ran {
        let mut child = self.command(arguments).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let output = std::thread::scope(|scope| {
            // A program that stops reading early is free to.
            scope.spawn(move || drop(stdin.write_all(input)));
            child.wait_with_output().unwrap()
        });
        Ran {
            exit: output.status.code().unwrap_or_else(|| panic!("{}", output.status)),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// What the program stored, without ids.
    pub(crate) fn stored(&self) -> Vec<Value> {
        let text =
            std::fs::read_to_string(self.path("tasks.json")).unwrap_or_else(|_| r#"{"tasks":[]}"#.to_owned());
        let mut tasks: Value = serde_json::from_str(&text).unwrap();
        let tasks = tasks["tasks"].as_array_mut().unwrap();
        tasks.iter_mut().for_each(|task| drop(task.as_object_mut().unwrap().remove("id")));
        std::mem::take(tasks)
    }

    /// Runs a command line of the shell on a real terminal.
    pub(crate) fn on_terminal(&self, variables: &[(&str, &str)], shell_command: &str) -> Terminal {
        let mut command = Command::new("script");
        let line = shell_command.replace("tasks ", &format!("{} ", env!("CARGO_BIN_EXE_tasks")));
        command.args(["-q", "-e", "-c", &line, "/dev/null"]);
        self.dress(&mut command);
        command.env("SHELL", "/bin/sh").envs(variables.iter().copied());
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("script of util-linux");
        let (send, shown) = mpsc::channel();
        let mut stdout = child.stdout.take().unwrap();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = stdout.read(&mut bytes) {
                if send.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        let stdin = child.stdin.take().unwrap();
        Terminal { child, stdin, shown, screen: Vec::new() }
    }
}

pub(crate) struct Ran {
    pub(crate) exit: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// The envelope on standard output, with what holds for every envelope checked.
    #[track_caller]
    pub(crate) fn envelope(&self) -> Value {
        let envelope: Value = serde_json::from_str(&self.stdout)
            .unwrap_or_else(|_| panic!("no JSON: {} {}", self.stdout, self.stderr));
        assert_envelope(&envelope);
        assert_eq!(self.exit, exit_of(&envelope), "{envelope}");
        envelope
    }

    #[track_caller]
    pub(crate) fn data(&self) -> Value {
        let envelope = self.envelope();
        assert_eq!(envelope["ok"], true, "{envelope}");
        envelope["data"].clone()
    }

    /// The error's code and the first issue's message.
    #[track_caller]
    pub(crate) fn refusal(&self) -> (String, String) {
        let envelope = self.envelope();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (text(&envelope["error"]["code"]), text(&envelope["error"]["issues"][0]["message"]))
    }
}

/// Every envelope reads as one, and says no more than one does.
#[track_caller]
pub(crate) fn assert_envelope(envelope: &Value) {
    let read: Envelope =
        serde_json::from_value(envelope.clone()).unwrap_or_else(|error| panic!("{error}: {envelope}"));
    assert_eq!(&serde_json::to_value(&read).unwrap(), envelope);
}

/// The table of A19, written down once more.
pub(crate) fn exit_of(envelope: &Value) -> i32 {
    match envelope["error"]["code"].as_str() {
        None => 0,
        Some("VALIDATION_ERROR") => 2,
        Some("AUTHENTICATION_ERROR" | "AUTHORIZATION_ERROR") => 3,
        Some("ACTION_NOT_FOUND") => 4,
        Some("EXTERNAL_SERVICE_ERROR") => 5,
        Some("TIMEOUT") => 124,
        Some("CANCELLED") => 130,
        Some(_) => 1,
    }
}

/// A program on a terminal.
pub(crate) struct Terminal {
    child: std::process::Child,
    stdin: std::process::ChildStdin,
    shown: mpsc::Receiver<Vec<u8>>,
    screen: Vec<u8>,
}

impl Terminal {
    fn screen(&self) -> String {
        String::from_utf8_lossy(&self.screen).replace("\r\n", "\n")
    }

    /// Waits until the screen shows the text.
    #[track_caller]
    pub(crate) fn expect(&mut self, text: &str) -> &mut Self {
        let end = Instant::now() + PATIENCE;
        while !self.screen().contains(text) {
            let left = end.saturating_duration_since(Instant::now());
            match self.shown.recv_timeout(left) {
                Ok(bytes) => self.screen.extend(bytes),
                Err(_) => panic!("{text:?} was never shown, only {:?}", self.screen()),
            }
        }
        self
    }

    /// Types these keys.
    pub(crate) fn keys(&mut self, keys: &str) -> &mut Self {
        self.stdin.write_all(keys.as_bytes()).unwrap();
        self.stdin.flush().unwrap();
        self
    }

    /// Waits for the end: the exit code and everything that was on the screen.
    pub(crate) fn end(&mut self) -> (i32, String) {
        let end = Instant::now() + PATIENCE;
        while let Ok(bytes) = self.shown.recv_timeout(end.saturating_duration_since(Instant::now())) {
            self.screen.extend(bytes);
        }
        let status = self.child.wait().unwrap();
        (status.code().unwrap_or(-1), self.screen())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
