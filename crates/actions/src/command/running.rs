//! Running a command once: start it, feed it, read it, and end all of it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::pin::pin;
use std::process::ExitStatus;
use std::time::Duration;

use runyard_domain::Code;
use serde::Deserialize;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};

use super::reports;
use crate::handler::unsafe_output;
use crate::process_tree::COOKIE_VARIABLE;
use crate::programs::{Here, Program, Programs, Started};
use crate::{ActionError, Context, Issue, OUTPUT_BYTES_MAX, PathSegment, UnsafeJson};

const INVOCATION_VARIABLE: &str = "RUNYARD_INVOCATION_ID";
const ACTION_VARIABLE: &str = "RUNYARD_ACTION";
const KEY_VARIABLE: &str = "RUNYARD_IDEMPOTENCY_KEY";
/// The variables that every command is given here, or in a run, and that a declaration therefore cannot set.
pub(super) const OWN_VARIABLES: [&str; 7] = [
    INVOCATION_VARIABLE,
    ACTION_VARIABLE,
    KEY_VARIABLE,
    COOKIE_VARIABLE,
    "RUNYARD_URL",
    "RUNYARD_RUN_ID",
    "RUNYARD_RUN_TOKEN",
];
/// The variables that a command inherits, besides those that begin with `LC_`.
const INHERITED_VARIABLES: [&str; 9] =
    ["PATH", "HOME", "LANG", "TZ", "TMPDIR", "USER", "LOGNAME", "SHELL", "TERM"];
/// So long is read on after the command and its descendants have ended, should something still hold its pipes.
const DRAIN_MAX: Duration = Duration::from_secs(1);
/// An error message of a command is cut at this length.
const MESSAGE_BYTES_MAX: usize = 8 * 1024;

/// What to run, and where.
#[derive(Debug)]
pub(super) struct CommandLine {
    /// A name to be looked up in PATH, or an absolute path.
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<String>,
    pub(super) folder: PathBuf,
    pub(super) env: BTreeMap<String, String>,
}

/// What came first: the end of all pipes, or the end of the process.
enum First {
    Talked(Result<(), ActionError>),
    Exited(io::Result<ExitStatus>),
}

/// Runs the command. Dropping the future kills it with all its descendants.
pub(super) async fn run(line: &CommandLine, input: &Value, context: &Context) -> Result<Value, ActionError> {
    let program = program(line, context);
    let started = match context.programs() {
        Some(programs) => programs.start(program).await,
        None => Here.start(program).await,
    };
    let Started { stdin, stdout, stderr, mut hold } = started.map_err(|error| not_started(line, &error))?;
    let mut output = Vec::new();
    let status = {
        let talk = async {
            let follow = async {
                reports::follow(BufReader::new(stderr), context).await;
                Ok(())
            };
            tokio::try_join!(feed(stdin, input), collect(stdout, &mut output), follow)
        };
        let mut talk = pin!(talk);
        let first = tokio::select! {
            talked = &mut talk => First::Talked(talked.map(|_| ())),
            status = hold.wait() => First::Exited(status),
        };
        match first {
            First::Talked(Err(error)) => {
                hold.end().await;
                return Err(error);
            }
            First::Talked(Ok(())) => {
                let status = hold.wait().await;
                hold.end().await;
                status?
            }
            First::Exited(status) => {
                // What the command left behind may hold its pipes for ever; it ends first, then the rest is read.
                hold.end().await;
                if let Ok(talked) = tokio::time::timeout(DRAIN_MAX, talk).await {
                    talked?;
                }
                status?
            }
        }
    };
    outcome(status, &output)
}

fn program(line: &CommandLine, context: &Context) -> Program {
    let own = line.env.iter().map(|(name, value)| (name.into(), value.into()));
    let mut environment: BTreeMap<OsString, OsString> = inherited().chain(own).collect();
    let mut tell = |name: &str, value: &str| environment.insert(name.into(), value.into());
    tell(INVOCATION_VARIABLE, &context.invocation_id().to_string());
    tell(ACTION_VARIABLE, context.action());
    if let Some(key) = context.idempotency_key() {
        tell(KEY_VARIABLE, key);
    }
    let (program, arguments) = (line.program.clone(), line.arguments.clone());
    Program { program, arguments, folder: line.folder.clone(), environment }
}

fn inherited() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os().filter(|(name, _)| {
        name.to_str().is_some_and(|name| name.starts_with("LC_") || INHERITED_VARIABLES.contains(&name))
    })
}

/// Says which program could not be started and why, but not where on this machine it was looked for.
fn not_started(line: &CommandLine, error: &io::Error) -> ActionError {
    let program = line.program.file_name().unwrap_or(line.program.as_os_str()).to_string_lossy();
    let reason = match error.kind() {
        io::ErrorKind::NotFound if !line.folder.is_dir() => "its working folder was not found".to_owned(),
        io::ErrorKind::NotFound => "it was not found (ENOENT)".to_owned(),
        io::ErrorKind::PermissionDenied => "it may not be executed (EACCES)".to_owned(),
        other => other.to_string(),
    };
    ActionError::external_service(format!("Program \"{program}\" could not be started: {reason}."))
}

/// A command need not read its input: that its pipe is closed is no failure.
async fn feed(mut stdin: impl AsyncWrite + Unpin, input: &Value) -> Result<(), ActionError> {
    let mut bytes = serde_json::to_vec(input)?;
    bytes.push(b'\n');
    let _ = stdin.write_all(&bytes).await;
    Ok(())
}

async fn collect(stdout: impl AsyncRead + Unpin, output: &mut Vec<u8>) -> Result<(), ActionError> {
    // What was read before a failure is judged like what was read before the end.
    let _ = stdout.take(OUTPUT_BYTES_MAX as u64 + 1).read_to_end(output).await;
    if output.len() > OUTPUT_BYTES_MAX {
        return Err(unsafe_output(UnsafeJson::TooLarge { max: OUTPUT_BYTES_MAX }));
    }
    Ok(())
}

fn outcome(status: ExitStatus, output: &[u8]) -> Result<Value, ActionError> {
    if !status.success() {
        return Err(reported_error(output).unwrap_or_else(|| failed(status)));
    }
    let output = output.trim_ascii();
    if output.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(output).map_err(|error| {
        // Only the place: what stands there may be secret.
        let (line, column) = (error.line(), error.column());
        let message = format!("Command wrote an output that is not JSON (line {line}, column {column}).");
        ActionError::new(Code::OutputSerializationError, message)
    })
}

fn failed(status: ExitStatus) -> ActionError {
    ActionError::external_service(match (status.code(), status.signal()) {
        (Some(code), _) => format!("Command exited with status {code}."),
        (None, Some(signal)) => format!("Command was ended by signal {signal}."),
        (None, None) => "Command did not end as a process does.".to_owned(),
    })
}

/// The `{"error": {…}}` of a command that failed in a way it knows.
fn reported_error(output: &[u8]) -> Option<ActionError> {
    #[derive(Deserialize)]
    struct Wire {
        error: ErrorWire,
    }
    #[derive(Deserialize)]
    struct ErrorWire {
        code: String,
        message: String,
        #[serde(default)]
        issues: Vec<Value>,
        #[serde(default)]
        retryable: bool,
    }
    #[derive(Deserialize)]
    struct IssueWire {
        #[serde(default)]
        path: Vec<PathSegment>,
        message: String,
    }
    let ErrorWire { code, mut message, issues, retryable } =
        serde_json::from_slice::<Wire>(output).ok()?.error;
    message.truncate(message.floor_char_boundary(MESSAGE_BYTES_MAX));
    // An issue that cannot be read is no reason to lose the error.
    let issues = issues.into_iter().filter_map(|issue| serde_json::from_value::<IssueWire>(issue).ok());
    let issues = issues.map(|IssueWire { path, message }| Issue { path, message });
    let error = ActionError::application(&code, message).with_issues(issues.collect());
    Some(if retryable { error.retryable() } else { error })
}
