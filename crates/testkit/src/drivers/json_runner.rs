//! The JSON runner: a process for each vector, its calls as lines of JSON.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use runyard::Surface;
use serde_json::Value;
use tempfile::TempDir;

use super::{Answer, Driver, Status};
use crate::Call;
use crate::process::Program;

/// Feeds payloads to a program's `json` command.
#[derive(Debug)]
pub struct JsonRunnerDriver {
    program: PathBuf,
    home: TempDir,
}

impl JsonRunnerDriver {
    /// Drives this program.
    pub fn new(program: impl Into<PathBuf>) -> Result<Self> {
        Ok(JsonRunnerDriver { program: program.into(), home: tempfile::tempdir()? })
    }

    fn start(&self, calls: &[Call]) -> Result<Program> {
        let mut program = Program::start(&self.program, ["json"], self.home.path())?;
        let lines: String = calls.iter().map(|call| call.payload_with_action() + "\n").collect();
        program.feed(&lines)?;
        Ok(program)
    }
}

/// The answer to the last of `calls`. The exit code is that of the first failure, so it says something of one call only.
fn last(program: Program, calls: usize) -> Result<Answer> {
    let ended = program.finish()?;
    let exit = ended.exit.context("a signal ended the process")?;
    let lines: Result<Vec<Value>, _> = ended.stdout.lines().map(serde_json::from_str).collect();
    let mut envelopes = lines.with_context(|| format!("a line is not JSON: {}", ended.stdout))?;
    ensure!(envelopes.len() == calls, "{} envelopes for {calls} payloads: {}", envelopes.len(), ended.stdout);
    let status = if calls == 1 { Status::Exit(exit) } else { Status::Silent };
    Ok(Answer { envelope: envelopes.pop().context("there is no call")?, status })
}

impl Driver for JsonRunnerDriver {
    fn surface(&self) -> Surface {
        Surface::Json
    }

    fn call(&self, calls: &[Call]) -> Result<Answer> {
        last(self.start(calls)?, calls.len())
    }

    fn cancel(&self, call: &Call, marker: &Path) -> Result<Answer> {
        let mut program = self.start(std::slice::from_ref(call))?;
        program.wait_for_file(marker)?;
        program.interrupt()?;
        last(program, 1)
    }
}
