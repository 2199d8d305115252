//! A small shell beside each cluster, so that nothing is left behind however the test ends.
//!
//! It starts and stops the server on request. When the pipe from the test closes (also because the test was killed), it
//! stops the server, removes the folder and ends. It is in a process group of its own: what kills the test's group
//! leaves it alive to clean up.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use anyhow::{Context, Result, ensure};

use crate::account::Account;

/// `$1` is the folder to remove at the end, the rest is the server's command.
const SCRIPT: &str = r#"
trap '' HUP INT TERM
folder=$1
shift
server=
while read -r word; do
    case $word in
        start)
            "$@" >>"$folder/log" 2>&1 </dev/null &
            server=$!
            ;;
        stop)
            kill -CONT "$server" 2>/dev/null
            kill -QUIT "$server" 2>/dev/null
            wait "$server"
            ;;
        forget)
            wait "$server"
            ;;
    esac
    echo "$server"
done
if [ -n "$server" ]; then
    kill -CONT "$server" 2>/dev/null
    kill -QUIT "$server" 2>/dev/null
    wait "$server"
fi
exec rm -rf "$folder"
"#;

/// The running shell, and the pipes to and from it.
#[derive(Debug)]
pub(crate) struct Supervisor {
    shell: Child,
    words: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Supervisor {
    /// Starts the shell. From now on it owns the folder.
    pub(crate) fn start<'a>(
        account: Account,
        folder: &Path,
        server: impl IntoIterator<Item = &'a std::ffi::OsStr>,
    ) -> Result<Self> {
        let mut shell = account
            .command(Path::new("sh"))
            .args(["-c", SCRIPT, "supervisor"])
            .arg(folder)
            .args(server)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .context("cannot start sh")?;
        let words = Some(shell.stdin.take().context("sh has no standard input")?);
        let answers = BufReader::new(shell.stdout.take().context("sh has no standard output")?);
        Ok(Self { shell, words, answers })
    }

    /// Starts the server; gives its process id.
    pub(crate) fn start_server(&mut self) -> Result<u32> {
        self.ask("start")
    }

    /// Stops the server at once, without a checkpoint, and waits for its end.
    pub(crate) fn stop_server(&mut self) -> Result<()> {
        self.ask("stop").map(drop)
    }

    /// Waits for the end of a server that was killed.
    pub(crate) fn forget_server(&mut self) -> Result<()> {
        self.ask("forget").map(drop)
    }

    fn ask(&mut self, word: &str) -> Result<u32> {
        let words = self.words.as_mut().context("the supervisor has ended")?;
        writeln!(words, "{word}").context("the supervisor does not listen")?;
        let mut answer = String::new();
        let length = self.answers.read_line(&mut answer).context("the supervisor does not answer")?;
        ensure!(length > 0, "the supervisor has ended");
        answer.trim().parse().with_context(|| format!("the supervisor answered {answer:?}"))
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        drop(self.words.take());
        let _ = self.shell.wait();
    }
}
