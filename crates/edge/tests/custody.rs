//! Processes under custody do what processes do: input, output, exit, environment (C17).
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "the helpers of tests fail like tests"
)]

#[path = "custody/marked.rs"]
mod marked;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::Duration;

use marked::{PATIENCE, marked, no_supervisor_left, supervisors};
use runyard_backend::{Exit, Launch, Process, ProcessError, Processes};
use runyard_edge::custody::{Supervised, wait_until_gone};
use rustix::io::FdFlags;
use rustix::process::{Signal, kill_process};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

const HELPER: &str = env!("CARGO_BIN_EXE_custody-helper");

struct Place {
    directory: tempfile::TempDir,
    supervised: Supervised,
}

impl Place {
    fn new() -> Place {
        let directory = tempfile::tempdir().unwrap();
        let supervised = Supervised::new(directory.path().join("lock")).with_program(HELPER);
        Place { directory, supervised }
    }

    fn lock(&self) -> PathBuf {
        self.directory.path().join("lock")
    }

    fn launch(&self, program: impl Into<PathBuf>, arguments: &[&str]) -> Launch {
        Launch {
            program: program.into(),
            arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
            directory: self.directory.path().to_owned(),
            environment: BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
        }
    }

    async fn sh(&self, script: &str) -> Process {
        self.supervised.start(self.launch("sh", &["-c", script])).await.unwrap()
    }
}

async fn all(output: &mut Option<Pin<Box<dyn AsyncRead + Send>>>) -> String {
    let mut text = String::new();
    output.as_mut().unwrap().read_to_string(&mut text).await.unwrap();
    text
}

async fn line(process: &mut Process) -> String {
    let (stdout, mut line) = (process.stdout.as_mut().unwrap(), String::new());
    while !line.ends_with('\n') {
        line.push(char::from(stdout.read_u8().await.unwrap()));
    }
    line
}

#[tokio::test]
async fn c17_exit_codes_and_signals_come_through() {
    let place = Place::new();
    for (script, expected) in [
        ("exit 0", Exit::Code(0)),
        ("exit 7", Exit::Code(7)),
        ("kill -KILL $$", Exit::Signal(9)),
        ("kill -TERM $$", Exit::Signal(15)),
    ] {
        let mut process = place.sh(script).await;
        assert_eq!(process.custody.wait().await.unwrap(), expected, "{script}");
        assert_eq!(process.custody.wait().await.unwrap(), expected, "the same when asked again");
        assert_eq!(process.custody.stop().await.unwrap(), expected, "nothing is left to stop");
        assert_eq!(supervisors(&place.lock(), ""), []);
    }
}

#[tokio::test]
async fn c17_a_program_that_cannot_be_executed_is_told_with_the_reason_of_the_system() {
    let place = Place::new();
    let text = place.directory.path().join("text");
    File::create(&text).unwrap();
    let elsewhere = Launch { directory: "/does/not/exist".into(), ..place.launch("sh", &[]) };
    for (launch, expected) in [
        (place.launch("/does/not/exist", &[]), ErrorKind::NotFound),
        (place.launch("in-no-path", &[]), ErrorKind::NotFound),
        (place.launch(text, &[]), ErrorKind::PermissionDenied),
        (place.launch("sh", &["a\0b"]), ErrorKind::InvalidInput),
        (elsewhere, ErrorKind::NotFound),
    ] {
        let named = launch.program.display().to_string();
        match place.supervised.start(launch).await {
            Err(ProcessError::Start { program, source }) => {
                assert_eq!((program, source.kind()), (named, expected));
            }
            Err(error) => panic!("{named}: {error}"),
            Ok(_) => panic!("{named} was started"),
        }
    }
    no_supervisor_left(&place.lock()).await;
}

#[tokio::test]
async fn c17_a_missing_supervisor_or_lock_directory_is_told_too() {
    let place = Place::new();
    let absent = Supervised::new(place.directory.path().join("absent/lock")).with_program(HELPER);
    let unsupervised = Supervised::new(place.lock()).with_program("/does/not/exist");
    for supervised in [absent, unsupervised] {
        match supervised.start(place.launch("true", &[])).await {
            Err(ProcessError::Start { source, .. }) => assert_eq!(source.kind(), ErrorKind::NotFound),
            Err(error) => panic!("{error}"),
            Ok(_) => panic!("it was started"),
        }
    }
}

#[tokio::test]
async fn c17_the_program_has_the_given_arguments_directory_environment_and_no_other_open_files() {
    let place = Place::new();
    let leaked = File::open("/").unwrap();
    rustix::io::fcntl_setfd(&leaked, FdFlags::empty()).unwrap();
    let mut launch = place.launch(HELPER, &["tell", "one two", ""]);
    launch.environment = BTreeMap::from([("ONLY".to_owned(), "this and\tthat = all".to_owned())]);
    let mut process = place.supervised.start(launch).await.unwrap();
    let told = all(&mut process.stdout).await;
    assert_eq!(process.custody.wait().await.unwrap(), Exit::Code(0));
    let directory = place.directory.path().canonicalize().unwrap();
    let expected = format!(
        "env ONLY=this and\tthat = all\narg one two\narg \ndir {}\nfd 0\nfd 1\nfd 2\n",
        directory.display()
    );
    assert_eq!(told, expected);
}

#[tokio::test]
async fn c17_a_name_is_looked_for_in_the_given_path() {
    let place = Place::new();
    std::os::unix::fs::symlink(HELPER, place.directory.path().join("only-here")).unwrap();
    let mut launch = place.launch("only-here", &["tell"]);
    launch.environment = BTreeMap::from([("PATH".to_owned(), place.directory.path().display().to_string())]);
    let mut process = place.supervised.start(launch).await.unwrap();
    assert_eq!(process.custody.wait().await.unwrap(), Exit::Code(0));
}

#[tokio::test]
async fn c17_what_is_written_is_read_and_a_closed_input_reaches_the_program() {
    let place = Place::new();
    let mut process = place.sh("cat; echo gone >&2").await;
    process.stdin.as_mut().unwrap().write_all(b"hello\n").await.unwrap();
    assert_eq!(line(&mut process).await, "hello\n");
    process.stdin = None;
    assert_eq!(process.custody.wait().await.unwrap(), Exit::Code(0));
    assert_eq!(
        (all(&mut process.stdout).await.as_str(), all(&mut process.stderr).await.as_str()),
        ("", "gone\n")
    );
}

#[tokio::test]
async fn c17_a_slow_reader_holds_up_the_program_and_nothing_is_lost() {
    const CHUNK_BYTES: usize = 64 * 1024;
    let place = Place::new();
    let mut process = place.supervised.start(place.launch(HELPER, &["flood"])).await.unwrap();
    let (mut stdout, mut stderr) = (process.stdout.take().unwrap(), process.stderr.take().unwrap());
    let (mut read, mut written, mut chunk) = (0, 0, vec![0; CHUNK_BYTES]);
    loop {
        let count = stdout.read(&mut chunk).await.unwrap();
        if count == 0 {
            break;
        }
        assert!(chunk.iter().take(count).all(|byte| *byte == b'x'));
        read += count;
        let mut dots = [0; 1024];
        if let Ok(told) = tokio::time::timeout(Duration::ZERO, stderr.read(&mut dots)).await {
            written += told.unwrap() * CHUNK_BYTES;
        }
        // What it has written and nobody has read is in the pipe, which holds one chunk.
        assert!(written <= read + CHUNK_BYTES, "{written} written, {read} read");
    }
    assert_eq!(read, 10 * 1024 * 1024);
    assert_eq!(process.custody.wait().await.unwrap(), Exit::Code(0));
}

#[tokio::test]
async fn c17_a_stop_interrupts_first_then_terminates_then_kills() {
    let place = Place::new();
    for (traps, grace_ms, expected) in [
        ("trap 'exit 42' INT", 60_000, Exit::Code(42)),
        ("trap '' INT; trap 'exit 43' TERM", 2_000, Exit::Code(43)),
        ("trap '' INT TERM", 20, Exit::Signal(9)),
    ] {
        let supervised = place.supervised.clone().with_grace(Duration::from_millis(grace_ms));
        let script = format!("{traps}; echo ready; while :; do sleep 0.01; done");
        let mut process = supervised.start(place.launch("sh", &["-c", &script])).await.unwrap();
        assert_eq!(line(&mut process).await, "ready\n");
        assert_eq!(process.custody.stop().await.unwrap(), expected, "{traps}");
        assert_eq!(supervisors(&place.lock(), ""), []);
    }
}

#[tokio::test]
async fn c17_what_a_program_leaves_behind_is_stopped_before_its_exit_is_told() {
    let place = Place::new();
    let mut launch = place.launch("sh", &["-c", "setsid sleep 100 & sleep 100 & exit 3"]);
    let mark = place.directory.path().display().to_string();
    launch.environment.insert("MARK".to_owned(), mark.clone());
    let mut process = place.supervised.start(launch).await.unwrap();
    assert_eq!(process.custody.wait().await.unwrap(), Exit::Code(3));
    assert_eq!(marked(&mark), []);
}

#[tokio::test]
async fn c17_supervisors_are_deaf_to_the_signals_of_a_terminal() {
    let place = Place::new();
    let mut process = place.sh("cat").await;
    for supervisor in supervisors(&place.lock(), "") {
        for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
            kill_process(supervisor, signal).unwrap();
        }
    }
    process.stdin.as_mut().unwrap().write_all(b"still here\n").await.unwrap();
    assert_eq!(line(&mut process).await, "still here\n");
    assert_eq!(supervisors(&place.lock(), "").len(), 2);
    process.stdin = None;
    assert_eq!(process.custody.wait().await.unwrap(), Exit::Code(0));
}

#[tokio::test]
async fn j05_the_lock_is_held_until_the_tree_is_gone() {
    let place = Place::new();
    wait_until_gone(&place.lock(), Duration::ZERO).await.unwrap();
    let first = place.sh("cat").await;
    let second = place.sh("cat").await;
    let is_held = async |lock: &Path| match wait_until_gone(lock, Duration::ZERO).await {
        Ok(()) => false,
        Err(error) => error.kind() == ErrorKind::TimedOut,
    };
    assert!(is_held(&place.lock()).await);
    drop(first);
    assert!(is_held(&place.lock()).await);
    drop(second);
    wait_until_gone(&place.lock(), PATIENCE).await.unwrap();
    assert_eq!(supervisors(&place.lock(), ""), []);
}
