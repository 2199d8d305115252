//! The `git` program, run so that it does nothing but what it is asked for.
//!
//! An argument vector, an environment of our own, no hooks, no monitor, no transport, no prompt, bounded output, and an end when
//! somebody wants one. It does not know what the answers mean, nor who looks after it when this process dies: that is for whoever
//! says what it is started through.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::CheckoutError;

/// How much it says at most: a listing of all files that a checkout may hold.
const OUTPUT_BYTES_MAX: usize = 256 * 1024 * 1024;
/// How much of its complaints is kept.
const SAID_BYTES_MAX: usize = 64 * 1024;
/// How much of a complaint is told.
const LINE_BYTES_MAX: usize = 300;
/// So often it is asked whether somebody still wants it.
const STOP_CHECK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// What holds for every call, whatever a repository's own configuration says.
const ALWAYS: [&str; 6] = [
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.untrackedCache=false",
    // A repository that fetches what it lacks would run what its configuration names.
    "protocol.allow=never",
    "safe.directory=*",
    "gc.auto=0",
];

/// What `git` is started through.
static THROUGH: OnceLock<Vec<OsString>> = OnceLock::new();
/// How that one says that there is no `git`.
pub const NO_PROGRAM: u8 = 127;
/// How that one says that it could not look after `git`, whatever `git` did. `git` itself never ends so.
pub const NOT_LOOKED_AFTER: u8 = 126;

/// From here on every `git` of this process is started through another program, whose words end where those of `git` begin.
///
/// It hands on its standard input and outputs, and how `git` ended, or [`NO_PROGRAM`] or [`NOT_LOOKED_AFTER`]. When it is terminated, `git` ended or this
/// process is gone, it ends only after all that `git` started. Only the first call counts.
pub fn start_git_through(words: impl IntoIterator<Item = OsString>) {
    THROUGH.get_or_init(|| words.into_iter().collect());
}

/// How `git` is called for one repository.
#[derive(Clone, Debug)]
pub(crate) struct Git {
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
}

/// What it answered.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Whether it went well.
    pub(crate) success: bool,
    /// What it put out.
    pub(crate) output: Vec<u8>,
    /// What it complained about.
    pub(crate) said: Vec<u8>,
}

impl Git {
    /// For the repository that a directory of the person's lies in, with what the person configured.
    pub(crate) fn of_person(directory: &Path) -> Git {
        let home = ["HOME", "XDG_CONFIG_HOME"];
        let environment =
            home.iter().filter_map(|name| Some((name.into(), std::env::var_os(name)?))).collect();
        Git { arguments: vec!["-C".into(), directory.into()], environment }.bounded()
    }

    /// For a repository's directory of our own, with nothing but what stands there.
    pub(crate) fn own(git_dir: &Path) -> Git {
        let mut place = OsString::from("--git-dir=");
        place.push(git_dir);
        let environment = [("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_CONFIG_GLOBAL", "/dev/null")];
        let environment = environment.map(|(name, value)| (name.into(), value.into())).into();
        Git { arguments: vec![place], environment }.bounded()
    }

    fn bounded(mut self) -> Git {
        for setting in ALWAYS {
            self.arguments.extend(["-c".into(), setting.into()]);
        }
        self.arguments.extend(["--no-pager".into(), "--literal-pathspecs".into()]);
        self.with("LC_ALL", "C")
            .with("GIT_OPTIONAL_LOCKS", "0")
            .with("GIT_TERMINAL_PROMPT", "0")
            .with("GIT_NO_LAZY_FETCH", "1")
            .with("PATH", std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into()))
    }

    /// It, with a further variable in its environment.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: impl Into<OsString>) -> Git {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// What is started, with nothing connected yet.
    pub(crate) fn command(&self, arguments: &[impl AsRef<OsStr>]) -> Command {
        let mut words =
            THROUGH.get().into_iter().flatten().map(OsString::as_os_str).chain([OsStr::new("git")]);
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).args(&self.arguments).args(arguments).env_clear();
        // Whatever it starts goes with it.
        command.process_group(0);
        // The directory that this process was started in may be gone, and every path here is absolute.
        command.current_dir("/");
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// What it puts out; anything but success is an error.
    pub(crate) fn run(
        &self,
        doing: &'static str,
        arguments: &[impl AsRef<OsStr>],
        input: &[u8],
        stop: &AtomicBool,
    ) -> Result<Vec<u8>, CheckoutError> {
        let answer = self.ask(doing, arguments, input, stop)?;
        match answer.success {
            true => Ok(answer.output),
            false => Err(CheckoutError::Git { doing, said: answer.complaint() }),
        }
    }

    /// What it answers, whether it went well or not.
    pub(crate) fn ask(
        &self,
        doing: &'static str,
        arguments: &[impl AsRef<OsStr>],
        input: &[u8],
        stop: &AtomicBool,
    ) -> Result<Answer, CheckoutError> {
        let mut command = self.command(arguments);
        command.stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| not_started(doing, error))?;
        let stdin = child.stdin.take();
        let answered = thread::scope(|scope| {
            if let Some(mut stdin) = stdin {
                // It may end before it has read everything, and then says why.
                scope.spawn(move || stdin.write_all(input));
            }
            let answered = listen(&mut child, doing, stop);
            if answered.is_err() {
                end(&child);
            }
            answered
        });
        let status = child.wait().map_err(|source| failed(doing, source))?;
        let (output, said) = answered?;
        match status.code().filter(|_| THROUGH.get().is_some()).and_then(|code| u8::try_from(code).ok()) {
            Some(NO_PROGRAM) => return Err(CheckoutError::NoGit),
            // That it failed is no answer of `git`.
            Some(NOT_LOOKED_AFTER) => {
                return Err(failed(doing, io::Error::other("git could not be looked after")));
            }
            _ => {}
        }
        Ok(Answer { success: status.success(), output, said })
    }
}

impl Answer {
    /// What it complained about, in a line.
    pub(crate) fn complaint(&self) -> String {
        let line = self.said.split(|byte| *byte == b'\n').rfind(|line| !line.is_empty()).unwrap_or_default();
        let line = &line[..line.len().min(LINE_BYTES_MAX)];
        String::from_utf8_lossy(line).chars().filter(|character| !character.is_control()).collect()
    }
}

/// Ends it with what it started. It is still to be waited for.
pub(crate) fn end(child: &Child) {
    let Some(process) = Pid::from_raw(child.id().cast_signed()) else { return };
    let _ = match THROUGH.get() {
        // It knows also what left the group.
        Some(_) => kill_process(process, Signal::TERM),
        None => kill_process_group(process, Signal::KILL),
    };
}

/// Everything that a child says, until it has said it or somebody stops it.
fn listen(
    child: &mut Child,
    doing: &'static str,
    stop: &AtomicBool,
) -> Result<(Vec<u8>, Vec<u8>), CheckoutError> {
    let (mut stdout, mut stderr) = (child.stdout.take(), child.stderr.take());
    let (mut output, mut said) = (Vec::new(), Vec::new());
    let mut buffer = vec![0; 256 * 1024];
    while stdout.is_some() || stderr.is_some() {
        if stop.load(Ordering::Relaxed) {
            return Err(CheckoutError::Stopped);
        }
        let (out_ready, said_ready) =
            ready(stdout.as_ref(), stderr.as_ref()).map_err(|source| failed(doing, source))?;
        if out_ready {
            let bytes = pull(&mut stdout, &mut buffer).map_err(|source| failed(doing, source))?;
            output.extend_from_slice(bytes);
            if output.len() > OUTPUT_BYTES_MAX {
                return Err(CheckoutError::Git {
                    doing,
                    said: "it says more than can be taken in".to_owned(),
                });
            }
        }
        if said_ready {
            let bytes = pull(&mut stderr, &mut buffer).map_err(|source| failed(doing, source))?;
            let room = SAID_BYTES_MAX - said.len();
            said.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
    }
    Ok((output, said))
}

/// Whether there is something to read, of two, or an end.
fn ready(one: Option<&impl AsFd>, other: Option<&impl AsFd>) -> io::Result<(bool, bool)> {
    let mut polled = Vec::with_capacity(2);
    polled.extend(one.map(|one| PollFd::new(one, PollFlags::IN)));
    polled.extend(other.map(|other| PollFd::new(other, PollFlags::IN)));
    match poll(&mut polled, Some(&STOP_CHECK)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let mut events = polled.iter().map(|polled| !polled.revents().is_empty());
    let first = one.is_some() && events.next().unwrap_or_default();
    Ok((first, other.is_some() && events.next().unwrap_or_default()))
}

/// What is there now. At its end the pipe is closed.
fn pull<'a>(pipe: &mut Option<impl Read>, buffer: &'a mut [u8]) -> io::Result<&'a [u8]> {
    let read = match pipe {
        Some(pipe) => pipe.read(buffer)?,
        None => 0,
    };
    if read == 0 {
        *pipe = None;
    }
    Ok(&buffer[..read])
}

pub(crate) fn not_started(doing: &'static str, source: io::Error) -> CheckoutError {
    match source.kind() {
        io::ErrorKind::NotFound => CheckoutError::NoGit,
        _ => failed(doing, source),
    }
}

fn failed(doing: &'static str, source: io::Error) -> CheckoutError {
    CheckoutError::Io { doing, path: "git".to_owned(), source }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_git_started_goes_with_it_when_it_is_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let (git, started) = (folder.path().join("git"), folder.path().join("started"));
        fs::write(&git, format!("#!/bin/sh\nsleep 300 &\necho $! > {}\nwait\n", started.display())).unwrap();
        fs::set_permissions(&git, Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:/usr/bin:/bin", folder.path().display());
        let git = Git { arguments: Vec::new(), environment: vec![("PATH".into(), path.into())] };
        let stop = AtomicBool::new(false);
        let child = thread::scope(|scope| {
            let asked = scope.spawn(|| git.ask("wait", &["status"], &[], &stop).map(|answer| answer.success));
            let child = loop {
                match fs::read_to_string(&started).ok().and_then(|pid| pid.trim().parse::<u32>().ok()) {
                    Some(pid) => break pid,
                    None => thread::sleep(Duration::from_millis(5)),
                }
            };
            stop.store(true, Ordering::Relaxed);
            assert!(matches!(asked.join().unwrap(), Err(CheckoutError::Stopped)));
            child
        });
        // It is gone, or nobody has taken note of that yet.
        let status = format!("/proc/{child}/status");
        let lives = || fs::read_to_string(&status).is_ok_and(|status| !status.contains("State:\tZ"));
        for _ in 0..1_000 {
            if !lives() {
                return;
            }
            thread::sleep(Duration::from_millis(5));
        }
        panic!("it is still there");
    }
}
