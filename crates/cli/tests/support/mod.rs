//! The `runyard` program as a process, each with a home of its own.
#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

pub(crate) mod api;
pub(crate) mod codex;
pub(crate) mod mortal;
pub(crate) mod native;
pub(crate) mod poem;
pub(crate) mod spy;
pub(crate) mod terminal;

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use runyard::Envelope;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// Whatever is waited for comes within this time or the test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Home(TempDir);

impl Home {
    pub(crate) fn new() -> Self {
        Home(tempfile::tempdir().unwrap())
    }

    /// A home with this configuration.
    pub(crate) fn with(configuration: &str) -> Self {
        let home = Home::new();
        std::fs::create_dir(home.path("")).unwrap();
        std::fs::write(home.path("runyard.toml"), configuration).unwrap();
        home
    }

    /// `$RUNYARD_HOME`, or a file in it. It is not there before the program makes it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        let home = self.0.path().join("home");
        if name.is_empty() { home } else { home.join(name) }
    }

    /// A place beside the home, gone with it.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn command(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_runyard"));
        command
            .args(arguments)
            .current_dir(self.0.path())
            .env("RUNYARD_HOME", self.path(""))
            .env("TERM", "xterm-256color")
            .env_remove("NO_COLOR")
            .env_remove("RUNYARD_LOG")
            // An error must not depend on it.
            .env("RUST_BACKTRACE", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Ran {
        Ran::of(&mut self.command(arguments))
    }

    pub(crate) fn run_with(
        &self,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
        input: &[u8],
    ) -> Ran {
        let mut child = self.command(arguments).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        Ran::from(child.wait_with_output().unwrap())
    }

    /// The command that starts a hub.
    pub(crate) fn command_up(&self) -> Command {
        let mut command = self.command(["up", "--listen", "127.0.0.1:0"]);
        command.stderr(Stdio::inherit());
        command
    }

    /// Starts a hub and waits until it listens.
    #[track_caller]
    pub(crate) fn up(&self) -> Hub {
        Hub::of(self.command_up().spawn().unwrap()).expect("the hub says where it listens")
    }
}

pub(crate) struct Ran {
    pub(crate) exit: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<std::process::Output> for Ran {
    fn from(output: std::process::Output) -> Self {
        Ran {
            exit: output.status.code().unwrap_or_else(|| panic!("{}", output.status)),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Ran {
    pub(crate) fn of(command: &mut Command) -> Self {
        Ran::from(command.output().unwrap())
    }

    /// The envelope on standard output; nothing else is said, and it agrees with the exit code.
    #[track_caller]
    pub(crate) fn envelope(&self) -> Value {
        let read: Envelope = serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {} {}", self.stdout, self.stderr));
        assert_eq!(self.stderr, "");
        assert_eq!(self.exit, i32::from(read.exit_code()));
        serde_json::from_str(&self.stdout).unwrap()
    }

    #[track_caller]
    pub(crate) fn data(&self) -> Value {
        let envelope = self.envelope();
        assert_eq!(envelope["ok"], true, "{envelope}");
        envelope["data"].clone()
    }

    /// Exit code, error code and message.
    #[track_caller]
    pub(crate) fn failure(&self) -> (i32, String, String) {
        let envelope = self.envelope();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (self.exit, text(&envelope["error"]["code"]), text(&envelope["error"]["message"]))
    }
}

/// A hub that runs; it is killed when the test lets go of it.
pub(crate) struct Hub {
    child: Child,
    stdout: BufReader<ChildStdout>,
    pub(crate) url: String,
}

impl Hub {
    /// A hub that was started, once it listens; nothing when it ended before that.
    pub(crate) fn of(mut child: Child) -> Option<Hub> {
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        stdout.read_line(&mut first).unwrap();
        match first.strip_prefix("listening on ") {
            Some(url) => Some(Hub { child, stdout, url: url.trim_end().to_owned() }),
            None => {
                let _ = child.wait();
                None
            }
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it said after the first line, until a line starts with this.
    pub(crate) fn said_until(&mut self, start: &str) -> String {
        let mut said = String::new();
        loop {
            let before = said.len();
            assert!(self.stdout.read_line(&mut said).unwrap() > 0, "{said}");
            if said[before..].starts_with(start) {
                return said;
            }
        }
    }

    pub(crate) fn address(&self) -> &str {
        self.url.strip_prefix("http://").unwrap()
    }

    /// Sends a request with these headers; the status and the body.
    pub(crate) fn get(&self, path: &str, headers: &str) -> (u16, String) {
        self.request("GET", path, headers, "")
    }

    /// Posts JSON with the token; the status and the body.
    pub(crate) fn post(&self, path: &str, token: &str, body: &str) -> (u16, String) {
        let length = body.len();
        let headers = format!(
            "Authorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n"
        );
        self.request("POST", path, &headers, body)
    }

    fn request(&self, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
        self.try_request(method, path, headers, body).expect("the hub answers")
    }

    /// The same, where the hub may die meanwhile: then there is no answer.
    pub(crate) fn try_request(
        &self,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> Option<(u16, String)> {
        let mut stream = TcpStream::connect(self.address()).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let host = self.address();
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n");
        write!(stream, "{head}{body}").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let status = answer.split(' ').nth(1)?.parse().ok()?;
        Some((status, answer.split_once("\r\n\r\n")?.1.to_owned()))
    }

    pub(crate) fn signal(&self, signal: Signal) {
        send(self.child.id(), signal);
    }

    /// Waits for its end: the exit code, if it was not killed, and the rest of what it said.
    pub(crate) fn ended(mut self) -> (Option<i32>, String) {
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code(), rest)
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn send(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), signal).unwrap();
}

/// Whether a process is there and not only waits to be collected.
pub(crate) fn is_running(pid: u32) -> bool {
    let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    let state = status.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}

/// Asks again and again until it holds.
#[track_caller]
pub(crate) fn eventually<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < end, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
