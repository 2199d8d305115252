//! Programs that tests start: ended when dropped, and never waited for without a limit.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

/// So long is waited for a program, or for what it should bring about.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// So often is looked.
const PAUSE: Duration = Duration::from_millis(5);

/// A program that runs; dropping it kills it.
#[derive(Debug)]
pub struct Program(Child);

/// How a program ended.
#[derive(Debug)]
pub struct Ended {
    /// Its exit code; `None` when a signal ended it.
    pub exit: Option<i32>,
    /// What it wrote to standard output.
    pub stdout: String,
}

impl Program {
    /// Starts a program in a folder that is its home, too. Its standard input is ready to be written to.
    pub fn start(
        program: &Path,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
        home: &Path,
    ) -> Result<Self> {
        let child = Command::new(program)
            .args(arguments)
            .current_dir(home)
            .env("HOME", home)
            .env("RUNYARD_LOG", "off")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        child.map(Program).with_context(|| format!("cannot start {}", program.display()))
    }

    /// Writes to its standard input and closes that.
    pub fn feed(&mut self, text: &str) -> Result<()> {
        self.stdin()?.write_all(text.as_bytes()).context("it does not read its standard input")
    }

    /// The standard input, which can be taken once.
    fn stdin(&mut self) -> Result<ChildStdin> {
        self.0.stdin.take().context("its standard input is taken")
    }

    fn stdout(&mut self) -> Result<ChildStdout> {
        self.0.stdout.take().context("its standard output is taken")
    }

    /// The first line of its standard output.
    pub fn first_line(&mut self) -> Result<String> {
        let stdout = self.stdout()?;
        let (sender, line) = mpsc::channel();
        std::thread::spawn(move || {
            let mut lines = BufReader::new(stdout).lines();
            let _ = sender.send(lines.next());
            // What follows is read, too, so that the program never waits for a reader.
            lines.for_each(drop);
        });
        line.recv_timeout(PATIENCE)?.context("it ended without a word")?.context("its output is not UTF-8")
    }

    /// Sends it what Ctrl-C sends.
    pub fn interrupt(&self) -> Result<()> {
        rustix::process::kill_process(
            rustix::process::Pid::from_child(&self.0),
            rustix::process::Signal::INT,
        )?;
        Ok(())
    }

    /// Waits for its end.
    pub fn finish(mut self) -> Result<Ended> {
        // Without this a program that reads would wait for us while we wait for it.
        drop(self.0.stdin.take());
        let mut stdout = self.stdout()?;
        let (sender, text) = mpsc::channel();
        std::thread::spawn(move || {
            let mut text = String::new();
            let _ = sender.send(stdout.read_to_string(&mut text).map(|_| text));
        });
        let stdout =
            text.recv_timeout(PATIENCE).context("it does not end")?.context("its output is not UTF-8")?;
        let mut exit = None;
        let ended = eventually(|| {
            exit = self.0.try_wait().ok().flatten();
            exit.is_some()
        });
        ensure!(ended, "it closed its output and does not end");
        Ok(Ended { exit: exit.and_then(|status| status.code()), stdout })
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }

    /// Waits until a file exists; fails when the program ends without making it.
    pub fn wait_for_file(&mut self, path: &Path) -> Result<()> {
        let made = eventually(|| path.exists() || self.has_ended()) && path.exists();
        if !made {
            bail!("{} was not made", path.display());
        }
        Ok(())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A program that is talked with, line by line, in a home of its own.
#[derive(Debug)]
pub struct Conversation {
    stdin: ChildStdin,
    lines: mpsc::Receiver<std::io::Result<String>>,
    /// Ended before its home is removed.
    _program: Program,
    _home: tempfile::TempDir,
}

impl Conversation {
    /// Starts the program.
    pub fn start(program: &Path, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<Self> {
        let home = tempfile::tempdir()?;
        let mut program = Program::start(program, arguments, home.path())?;
        let (stdin, stdout) = (program.stdin()?, program.stdout()?);
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Conversation { stdin, lines, _program: program, _home: home })
    }

    /// Writes one line.
    pub fn say(&mut self, line: &str) -> Result<()> {
        self.stdin.write_all(format!("{line}\n").as_bytes()).context("it does not read its standard input")
    }

    /// The next line that it writes.
    pub fn hear(&mut self) -> Result<String> {
        self.lines.recv_timeout(PATIENCE).context("it says nothing more")?.context("its output is not UTF-8")
    }
}

/// Looks again and again, for a bounded time, and says whether it came true.
pub fn eventually(mut is_true: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if is_true() {
            return true;
        }
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(PAUSE);
    }
}
