//! A process that speaks JSON lines: its input, its output, the end of what it writes to standard error.
//!
//! It starts processes only through the port that it is given. It redacts nothing: that is the edge's matter.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsStr;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use runyard_backend::{BackendError, Custody, Exit, Launch, Probe, Process, Processes};
use runyard_domain::run::FailureKind;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::task::JoinHandle;

use crate::cut;
use crate::jsonl::JsonLines;

/// How much of the end of standard error is kept, in bytes.
pub(crate) const TAIL_BYTES_MAX: usize = 4 * 1024;
/// How long the end of standard error is waited for once the process is gone.
const TAIL_WAIT: Duration = Duration::from_secs(2);
/// How long a program may take to say its version.
const VERSION_WAIT: Duration = Duration::from_secs(20);
/// How much of what it says then is looked at, in bytes.
const VERSION_BYTES_MAX: usize = 1024;

/// A process that speaks JSON lines.
pub(crate) struct Speaker {
    stdin: Option<Pin<Box<dyn AsyncWrite + Send>>>,
    /// What it says.
    pub(crate) lines: JsonLines<Pin<Box<dyn AsyncRead + Send>>>,
    tail: Arc<Mutex<VecDeque<u8>>>,
    tail_task: JoinHandle<()>,
    custody: Box<dyn Custody>,
}

impl Speaker {
    /// Starts it.
    pub(crate) async fn start(processes: &dyn Processes, launch: Launch) -> Result<Self, BackendError> {
        let spawn_failed = |message| BackendError::new(FailureKind::BackendSpawnFailed, message);
        let Process { stdin, stdout, stderr, custody } =
            processes.start(launch).await.map_err(|error| spawn_failed(error.to_string()))?;
        let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
            return Err(spawn_failed("the process was started without its pipes".to_owned()));
        };
        let tail = Arc::new(Mutex::new(VecDeque::new()));
        let tail_task = tokio::spawn(keep_tail(stderr, Arc::clone(&tail)));
        Ok(Speaker { stdin: Some(stdin), lines: JsonLines::new(stdout), tail, tail_task, custody })
    }

    /// Says something to it.
    pub(crate) async fn say(&mut self, value: &Value) -> std::io::Result<()> {
        let stdin = self.stdin.as_mut().ok_or(std::io::ErrorKind::BrokenPipe)?;
        let mut line = value.to_string().into_bytes();
        line.push(b'\n');
        stdin.write_all(&line).await?;
        stdin.flush().await
    }

    /// Stops it with everything it started. Gives how it ended, for people, with the end of its standard error.
    pub(crate) async fn stop(&mut self) -> String {
        let exit = self.custody.stop().await;
        self.stdin = None;
        // Whoever inherited the pipe from it is stopped too; a bound is there for what nobody foresaw.
        let _ = tokio::time::timeout(TAIL_WAIT, &mut self.tail_task).await;
        self.tail_task.abort();
        let ended = match exit {
            Ok(exit) => in_words(exit),
            Err(error) => error.to_string(),
        };
        let mut tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        let text = last_words(tail.make_contiguous());
        if text.is_empty() { ended } else { format!("{ended}; it said last: {text}") }
    }
}

async fn keep_tail(mut from: impl AsyncRead + Unpin, tail: Arc<Mutex<VecDeque<u8>>>) {
    let mut chunk = [0; 1024];
    while let Ok(read @ 1..) = from.read(&mut chunk).await {
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend(&chunk[..read]);
        // One more than is said: it tells whether what is said begins in the middle.
        let over = tail.len().saturating_sub(TAIL_BYTES_MAX + 1);
        tail.drain(..over);
    }
}

fn last_words(tail: &[u8]) -> String {
    cut::tail(&String::from_utf8_lossy(tail), TAIL_BYTES_MAX).trim().to_owned()
}

/// The program, where it is named by its path; else the first of that name in these directories.
pub(crate) fn find(program: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    let executable = |file: &Path| {
        file.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|file| executable(file));
    }
    std::env::split_paths(path?).map(|directory| directory.join(program)).find(|file| executable(file))
}

/// What makes a file the same file as before, with the same content: device, inode, size and time of its last change.
type Identity = (u64, u64, u64, i64, i64);

/// What programs said to `--version`, as long as their files are the same: asking is not free, and each run asks.
static SAID: Mutex<BTreeMap<Identity, String>> = Mutex::new(BTreeMap::new());
/// How many are remembered.
const SAID_MAX: usize = 64;

/// What a program says to `--version`, after these arguments: one line, in bounded time. Nothing that it started is left.
pub async fn version(program: &Path, arguments: &[String], probe: &Probe) -> Result<String, BackendError> {
    // With arguments it may be another file that answers.
    let known = program.metadata().ok().filter(|_| arguments.is_empty());
    let known = known.map(|data| (data.dev(), data.ino(), data.size(), data.ctime(), data.ctime_nsec()));
    let said = |known: Identity| SAID.lock().unwrap_or_else(PoisonError::into_inner).get(&known).cloned();
    if let Some(said) = known.and_then(said) {
        return Ok(said);
    }
    let answer = asked_version(program, arguments, probe).await?;
    if let Some(known) = known {
        let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
        if said.len() >= SAID_MAX {
            said.clear();
        }
        said.insert(known, answer.clone());
    }
    Ok(answer)
}

async fn asked_version(program: &Path, arguments: &[String], probe: &Probe) -> Result<String, BackendError> {
    let failed = |why: String| {
        let message = format!("{} --version: {why}", program.display());
        BackendError::new(FailureKind::BackendSpawnFailed, message)
    };
    let launch = Launch {
        program: program.to_owned(),
        arguments: [arguments, &["--version".to_owned()]].concat(),
        directory: probe.directory.clone(),
        environment: probe.environment.clone(),
    };
    let started = probe.processes.start(launch).await;
    let Process { stdin, stdout, stderr, mut custody } =
        started.map_err(|error| failed(error.to_string()))?;
    drop(stdin);
    let (mut said, mut complaints) = (Vec::new(), Vec::new());
    let ended = tokio::time::timeout(VERSION_WAIT, async {
        tokio::join!(custody.wait(), first_bytes(stdout, &mut said), first_bytes(stderr, &mut complaints)).0
    });
    match ended.await {
        Err(_) => {
            let why = format!("no answer within {} seconds", VERSION_WAIT.as_secs());
            Err(failed(match custody.stop().await {
                Ok(_) => why,
                Err(error) => format!("{why}, and {error}"),
            }))
        }
        Ok(Err(error)) => Err(failed(error.to_string())),
        Ok(Ok(Exit::Code(0))) => {
            Ok(String::from_utf8_lossy(&said).lines().next().unwrap_or_default().trim().to_owned())
        }
        Ok(Ok(exit)) => Err(failed(in_words(exit))),
    }
}

/// Reads to the end, since what is not read would hold up who says it, and keeps the beginning.
async fn first_bytes(from: Option<impl AsyncRead + Unpin>, kept: &mut Vec<u8>) {
    let Some(mut from) = from else { return };
    let mut chunk = [0; 1024];
    while let Ok(read @ 1..) = from.read(&mut chunk).await {
        let room = VERSION_BYTES_MAX - kept.len();
        kept.extend_from_slice(&chunk[..read.min(room)]);
    }
}

fn in_words(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exit code {code}"),
        Exit::Signal(signal) => format!("signal {signal}"),
    }
}

#[cfg(test)]
mod tests {
    use runyard_backend::conformance::PlainProcesses;

    use super::*;
    use crate::cut::tests::{SECRET, holds_no_part};

    #[tokio::test]
    async fn of_standard_error_only_the_end_is_kept() {
        let said = last_words_of(&format!("{}the end", "a".repeat(3 * TAIL_BYTES_MAX))).await;
        assert_eq!(said.len(), TAIL_BYTES_MAX - cut::WORD_BYTES_MAX);
        assert!(said.ends_with("aaathe end"));
        assert_eq!(last_words_of("all of it\n").await, "all of it");
    }

    #[tokio::test]
    async fn b12_the_end_of_standard_error_begins_with_no_part_of_a_secret() {
        for left in 0..=SECRET.len() {
            let rest = " and so on".repeat(TAIL_BYTES_MAX / 10 - 10);
            let rest = format!("{rest}{}", ".".repeat(TAIL_BYTES_MAX - left - rest.len()));
            let said = last_words_of(&format!("the key is {SECRET}{rest}")).await;
            // The edge knows the whole secret, and takes it out.
            holds_no_part(&said.replace(SECRET, ""));
        }
    }

    async fn last_words_of(text: &str) -> String {
        let tail = Arc::new(Mutex::new(VecDeque::new()));
        keep_tail(text.as_bytes(), Arc::clone(&tail)).await;
        let mut tail = tail.lock().unwrap();
        last_words(tail.make_contiguous())
    }

    #[tokio::test]
    async fn a_program_is_found_by_name_or_path_and_says_its_version() {
        assert_eq!(find("sh", Some(OsStr::new("/nowhere:/bin"))), Some(PathBuf::from("/bin/sh")));
        assert_eq!(find("sh", None), None);
        assert_eq!(find("/bin", None), None, "a directory is no program");
        let bash = find("/bin/bash", None).unwrap();
        let probe = PlainProcesses::probe();
        assert!(version(&bash, &[], &probe).await.unwrap().starts_with("GNU bash"));
        let failed = version(Path::new("/bin/false"), &[], &probe).await.unwrap_err();
        assert_eq!(failed.failure_kind, FailureKind::BackendSpawnFailed);
        assert!(failed.message.ends_with("exit code 1"), "{failed}");
    }
}
