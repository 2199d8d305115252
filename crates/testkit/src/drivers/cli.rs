//! The command line: a process for each call.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use runyard::Surface;
use serde_json::Value;
use tempfile::TempDir;

use super::{Answer, Driver, Status};
use crate::process::{Ended, Program};
use crate::{Call, Input};

/// An argument may be so long; a longer input goes through a file.
const ARGUMENT_BYTES_MAX: usize = 64 * 1024;
/// Where a longer input goes, in the folder that the program runs in.
const INPUT_FILE: &str = "input.json";

/// Calls a program's actions as commands.
#[derive(Debug)]
pub struct CliDriver {
    program: PathBuf,
    home: TempDir,
}

impl CliDriver {
    /// Drives this program.
    pub fn new(program: impl Into<PathBuf>) -> Result<Self> {
        Ok(CliDriver { program: program.into(), home: tempfile::tempdir()? })
    }

    fn start(&self, call: &Call) -> Result<Program> {
        let mut arguments = match &call.arguments {
            // The other way to name an action: behind `call`, in kebab case.
            Some(_) => vec!["call".to_owned(), call.action.replace('_', "-")],
            None => vec![call.action.clone()],
        };
        match &call.arguments {
            Some(given) => arguments.extend(given.iter().cloned()),
            None => arguments.extend(self.input(call)?),
        }
        arguments.extend(options(call));
        arguments.extend(["--output", "json"].map(str::to_owned));
        Program::start(&self.program, arguments, self.home.path())
    }

    fn input(&self, call: &Call) -> Result<Vec<String>> {
        let text = match &call.input {
            Input::Missing => return Ok(Vec::new()),
            Input::Json(value) => value.to_string(),
            Input::Raw(text) => text.clone(),
            Input::RawPayload(_) => anyhow::bail!("a command line has no payload; the table must say so"),
        };
        if text.len() <= ARGUMENT_BYTES_MAX {
            return Ok(vec!["--json".to_owned(), text]);
        }
        std::fs::write(self.home.path().join(INPUT_FILE), text)?;
        Ok(vec!["--json".to_owned(), format!("@{INPUT_FILE}")])
    }
}

/// The call's options as flags.
fn options(call: &Call) -> Vec<String> {
    let flag = |name: &str, value: &Value| match (name, value) {
        ("confirm", Value::Bool(true)) => vec!["--confirm".to_owned()],
        ("confirm", Value::Bool(false)) => Vec::new(),
        ("confirm", other) => vec![format!("--confirm={}", text(other))],
        ("idempotencyKey", key) => vec!["--idempotency-key".to_owned(), text(key)],
        ("timeoutMs", limit) => vec!["--timeout-ms".to_owned(), text(limit)],
        ("deadlineMs", limit) => vec!["--deadline-ms".to_owned(), text(limit)],
        (other, value) => vec![format!("--{other}"), text(value)],
    };
    call.options.iter().flat_map(|(name, value)| flag(name, value)).collect()
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn answer(ended: &Ended) -> Result<Answer> {
    let exit = ended.exit.context("a signal ended the process")?;
    let envelope = serde_json::from_str(&ended.stdout)
        .with_context(|| format!("standard output is not one JSON document: {}", ended.stdout))?;
    Ok(Answer { envelope, status: Status::Exit(exit) })
}

impl Driver for CliDriver {
    fn surface(&self) -> Surface {
        Surface::Cli
    }

    fn call(&self, calls: &[Call]) -> Result<Answer> {
        ensure!(calls.len() == 1, "a process makes one call; the table must say so");
        answer(&self.start(&calls[0])?.finish()?)
    }

    fn cancel(&self, call: &Call, marker: &Path) -> Result<Answer> {
        let mut program = self.start(call)?;
        program.wait_for_file(marker)?;
        program.interrupt()?;
        answer(&program.finish()?)
    }
}
