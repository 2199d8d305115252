//! The coding agents that are installed here, by their programs.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use runyard_surfaces::cli::one_line;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::process::Command;

/// The programs that are looked for, and whether there is an adapter that drives them.
const KNOWN: [(&str, bool); 3] = [("codex", true), ("claude", false), ("opencode", false)];
/// How long a program may take to say its version.
const PATIENCE: Duration = Duration::from_secs(10);
/// How much of that is read.
const VERSION_BYTES_MAX: u64 = 200;

/// An agent that is or is not there.
pub(super) struct Found {
    pub(super) name: String,
    pub(super) adapter: bool,
    pub(super) program: PathBuf,
    pub(super) version: Result<String, Missing>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// There is no such program.
    Absent,
    /// It does not say its version.
    Silent,
}

impl Found {
    pub(super) fn line(&self) -> String {
        let name = format!("{:<9}", self.name);
        match (&self.version, self.adapter) {
            (Ok(version), true) => format!("{name}  {version}, at {}", self.program.display()),
            (Ok(version), false) => {
                format!("{name}  {version} is installed, and there is no adapter for it yet")
            }
            (Err(Missing::Absent), _) => format!("{name}  not installed"),
            (Err(Missing::Silent), _) => {
                format!("{name}  {} does not say its version, and is left alone", self.program.display())
            }
        }
    }

    pub(super) fn json(&self) -> Value {
        let mut told = json!({"name": self.name, "installed": self.version != Err(Missing::Absent), "adapter": self.adapter});
        if self.version != Err(Missing::Absent) {
            told["program"] = self.program.display().to_string().into();
        }
        if let Ok(version) = &self.version {
            told["version"] = version.as_str().into();
        }
        told
    }
}

/// Looks for all of them.
pub(super) async fn find() -> Vec<Found> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found = Vec::new();
    for (name, adapter) in KNOWN {
        // A relative directory would be another one for the hub.
        let mut places =
            std::env::split_paths(&path).filter(|place| place.is_absolute()).map(|place| place.join(name));
        let program = places.find(|place| is_program(place));
        let version = match &program {
            Some(program) => version(program).await.ok_or(Missing::Silent),
            None => Err(Missing::Absent),
        };
        found.push(Found { name: name.to_owned(), adapter, program: program.unwrap_or_default(), version });
    }
    found
}

fn is_program(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

async fn version(program: &Path) -> Option<String> {
    let mut child = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .ok()?;
    let mut said = String::new();
    let mut output = child.stdout.take()?.take(VERSION_BYTES_MAX);
    let all = async {
        output.read_to_string(&mut said).await.ok()?;
        child.wait().await.ok()
    };
    let ended = tokio::time::timeout(PATIENCE, all).await.ok()??;
    let line = said.lines().next().map(|line| one_line(line.trim())).unwrap_or_default();
    (ended.success() && !line.is_empty()).then_some(line)
}
