//! The coding agents that are installed here, by their programs.

use std::path::{Path, PathBuf};

use runyard_surfaces::cli::one_line;
use serde_json::{Value, json};

use crate::wiring;

/// The programs that are looked for, and whether there is an adapter that drives them.
const KNOWN: [(&str, bool); 3] = [("codex", true), ("claude", false), ("opencode", false)];

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

/// Under custody, as a hub asks: nothing that it starts is left.
async fn version(program: &Path) -> Option<String> {
    let mut probe = wiring::probe();
    probe.environment.extend(std::env::var("HOME").map(|home| ("HOME".to_owned(), home)));
    let said = one_line(&runyard_adapters::version(program, &[], &probe).await.ok()?);
    (!said.is_empty()).then_some(said)
}
