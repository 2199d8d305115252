//! A child process and everything it starts, which end together.
//!
//! Descendants are found by their process group, by their parents, and by a cookie in their environment, which a
//! `setsid` or a double fork does not shake off. It is no sandbox: a program that clears its environment, leaves its
//! group and is an orphan before anybody looks is not found.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::process::ExitStatus;
use std::thread;
use std::time::Duration;

use runyard_domain::InvocationId;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use crate::fresh::id_parts;

/// The variable whose value tells the trees that a process belongs to, outermost first.
pub(crate) const COOKIE_VARIABLE: &str = "RUNYARD_PROCESS_TREE";
/// So many times is looked for processes that are left.
const PASSES_MAX: u32 = 200;
/// So many times is looked again because a process could not be told from a member.
const UNSURE_PASSES_MAX: u32 = 20;
/// The wait between two looks; a killed process needs a moment to be gone.
const PAUSE: Duration = Duration::from_millis(1);
/// The cookies of outer trees are handed on up to this length.
const COOKIES_LENGTH_MAX: usize = 1024;
/// So much of an environment is searched; the kernel allows about half of it.
const ENVIRON_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// So much of a line of `/proc/<pid>/stat` is read.
const STAT_BYTES_MAX: u64 = 4 * 1024;

/// A running child with all its descendants. Dropping it kills every one of them before it returns.
#[derive(Debug)]
pub(crate) struct ProcessTree {
    child: Child,
    cookie: String,
    leader: Pid,
    /// When the leader started, in the kernel's ticks. What is older is no descendant.
    started: u64,
}

impl ProcessTree {
    /// Starts a command as the leader of its own process group.
    pub(crate) fn spawn(command: &mut Command) -> io::Result<Self> {
        let (unix_ms, random) = id_parts();
        let cookie = InvocationId::from_parts(unix_ms, &random).to_string();
        let outer = std::env::var(COOKIE_VARIABLE).ok().filter(|outer| outer.len() <= COOKIES_LENGTH_MAX);
        let cookies = outer.map_or_else(|| cookie.clone(), |outer| format!("{outer}:{cookie}"));
        let child = command.env(COOKIE_VARIABLE, cookies).process_group(0).kill_on_drop(true).spawn()?;
        let id = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let leader = id.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        let started = Process::read(leader).map_or(0, |process| process.started);
        Ok(ProcessTree { child, cookie, leader, started })
    }

    /// The child's input, output and error output, for those that are piped and were not taken yet.
    pub(crate) fn pipes(&mut self) -> (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>) {
        (self.child.stdin.take(), self.child.stdout.take(), self.child.stderr.take())
    }

    /// Waits for the child itself, not for its descendants. May be dropped and called again.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Kills whatever is left, like dropping it, but without holding up the executor.
    pub(crate) async fn end(self) {
        // When it does not run, because the executor shuts down, it is dropped there, which is all it would do.
        let _ = tokio::task::spawn_blocking(move || drop(self)).await;
    }

    /// Until it is reaped, nobody else can have the child's process id.
    fn is_reaped(&self) -> bool {
        self.child.id().is_none()
    }

    fn kill(&self) {
        if !self.is_reaped() {
            // Stopped first, so that the group holds still while its descendants are looked for.
            let _ = kill_process_group(self.leader, Signal::STOP);
        }
        let mut unsure = 0;
        for _ in 0..PASSES_MAX {
            match self.pass() {
                Pass::Clear => return,
                Pass::Unsure if unsure >= UNSURE_PASSES_MAX => return,
                Pass::Unsure => unsure += 1,
                Pass::Killed => {}
            }
            thread::sleep(PAUSE);
        }
        tracing::warn!(leader = %self.leader.as_raw_nonzero(), "some processes of a command could not be ended");
    }

    /// Looks once at all processes and kills the members among them.
    fn pass(&self) -> Pass {
        let (members, unsure) = self.members();
        // The number of a group whose leader was reaped is still ours only while a member holds it.
        if !self.is_reaped() || members.iter().any(|member| member.group == self.leader.as_raw_pid()) {
            let _ = kill_process_group(self.leader, Signal::KILL);
        }
        members.iter().for_each(kill_same);
        match (members.is_empty(), unsure) {
            (false, _) => Pass::Killed,
            (true, true) => Pass::Unsure,
            (true, false) => Pass::Clear,
        }
    }

    /// The members that are alive, and whether another process may be one that cannot be told right now.
    fn members(&self) -> (Vec<Process>, bool) {
        let leader = self.leader.as_raw_pid();
        let (mut members, mut others, mut unsure) = (Vec::new(), Vec::new(), false);
        for process in Process::all().filter(|process| process.started >= self.started && !process.dead) {
            let is_leader = process.id.as_raw_pid() == leader && !self.is_reaped();
            let cookie =
                if is_leader || process.group == leader { Cookie::Ours } else { self.cookie_of(&process) };
            unsure |= cookie == Cookie::Unreadable;
            if cookie == Cookie::Ours { members.push(process) } else { others.push(process) }
        }
        let mut parents: HashSet<i32> = members.iter().map(|member| member.id.as_raw_pid()).collect();
        if !self.is_reaped() {
            parents.insert(leader);
        }
        // Children of members; each round but the last finds one, so it ends.
        loop {
            let children = others.extract_if(.., |process| parents.contains(&process.parent));
            let children: Vec<_> = children.collect();
            if children.is_empty() {
                return (members, unsure);
            }
            parents.extend(children.iter().map(|child| child.id.as_raw_pid()));
            members.extend(children);
        }
    }

    fn cookie_of(&self, process: &Process) -> Cookie {
        let Some(environ) = read_proc(process.id, "environ", ENVIRON_BYTES_MAX) else { return Cookie::None };
        // While a program takes the place of another, its environment is empty for a moment.
        if environ.is_empty() {
            return Cookie::Unreadable;
        }
        if carries(&environ, &self.cookie) { Cookie::Ours } else { Cookie::None }
    }
}

/// Whether an environment has the cookie, alone or among those of outer trees.
fn carries(environ: &[u8], cookie: &str) -> bool {
    let mut entries = environ.split(|byte| *byte == 0);
    let cookies =
        entries.find_map(|entry| entry.strip_prefix(COOKIE_VARIABLE.as_bytes())?.strip_prefix(b"="));
    cookies.is_some_and(|cookies| cookies.split(|byte| *byte == b':').any(|one| one == cookie.as_bytes()))
}

impl Drop for ProcessTree {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What one look at all processes led to.
enum Pass {
    /// No member is alive.
    Clear,
    /// No member was found, but another process may be one.
    Unsure,
    /// Members were found and sent a kill.
    Killed,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Cookie {
    Ours,
    None,
    Unreadable,
}

/// What the kernel says about a process.
#[derive(Debug)]
struct Process {
    id: Pid,
    parent: i32,
    group: i32,
    started: u64,
    dead: bool,
}

impl Process {
    /// All processes but those of the kernel; none where there is no `/proc`.
    fn all() -> impl Iterator<Item = Process> {
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        entries.filter_map(|entry| Process::read(Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?))
    }

    fn read(id: Pid) -> Option<Process> {
        let stat = read_proc(id, "stat", STAT_BYTES_MAX)?;
        Process::parse(id, &String::from_utf8_lossy(&stat))
    }

    fn parse(id: Pid, stat: &str) -> Option<Process> {
        const KERNEL_THREAD: u64 = 0x0020_0000;
        // The name stands in parentheses and may itself contain some.
        let fields: Vec<&str> = stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        if number(6)? & KERNEL_THREAD != 0 {
            return None;
        }
        let (parent, group) = (fields.get(1)?.parse().ok()?, fields.get(2)?.parse().ok()?);
        // Where only the first thread has ended, the others still run.
        let dead = matches!(*fields.first()?, "Z" | "X" | "x") && number(17)? <= 1;
        Some(Process { id, parent, group, started: number(19)?, dead })
    }
}

fn read_proc(id: Pid, file: &str, bytes_max: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = File::open(format!("/proc/{}/{file}", id.as_raw_nonzero())).ok()?;
    file.take(bytes_max).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Kills the process that was seen, not one that has got its id since.
#[cfg(target_os = "linux")]
fn kill_same(seen: &Process) {
    use rustix::io::Errno;
    use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
    let killed = match pidfd_open(seen.id, PidfdFlags::empty()) {
        Ok(handle) => match Process::read(seen.id) {
            Some(now) if now.started == seen.started => pidfd_send_signal(handle, Signal::KILL),
            _ => Ok(()),
        },
        Err(Errno::SRCH) => Ok(()),
        // A kernel or a sandbox without handles for processes.
        Err(_) => kill_process(seen.id, Signal::KILL),
    };
    // One that cannot be killed is found again by the next pass.
    let _ = killed;
}

/// Kills the process that was seen.
#[cfg(not(target_os = "linux"))]
fn kill_same(seen: &Process) {
    let _ = kill_process(seen.id, Signal::KILL);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_found_alone_or_inside_an_outer_tree() {
        #[track_caller]
        fn check(environ: &str, expected: bool) {
            assert_eq!(carries(environ.as_bytes(), "c0de"), expected);
        }
        check("PATH=/bin\0RUNYARD_PROCESS_TREE=c0de\0", true);
        check("RUNYARD_PROCESS_TREE=outer:c0de:inner\0HOME=/", true);
        check("RUNYARD_PROCESS_TREE=c0de2\0X=c0de\0", false);
        check("MY_RUNYARD_PROCESS_TREE=c0de\0", false);
        check("", false);
    }

    #[test]
    fn a_process_is_read_from_its_line_whatever_its_name() {
        #[track_caller]
        fn check(stat: &str, expected: Option<(i32, i32, u64, bool)>) {
            let process = Process::parse(Pid::INIT, stat);
            assert_eq!(process.map(|p| (p.parent, p.group, p.started, p.dead)), expected);
        }
        let tail = |threads: u32| format!("0 0 0 0 0 0 0 0 20 0 {threads} 0 777 0 0");
        check(&format!("9 (a) R (b) S 3 4 5 0 -1 4194304 {}", tail(1)), Some((3, 4, 777, false)));
        check(&format!("9 (gone) Z 3 4 5 0 -1 4194304 {}", tail(1)), Some((3, 4, 777, true)));
        check(&format!("9 (threads go on) Z 3 4 5 0 -1 4194304 {}", tail(2)), Some((3, 4, 777, false)));
        check(&format!("9 (kworker) I 2 0 0 0 -1 {} {}", 0x0020_8040, tail(1)), None);
        check("9 (cut", None);
        check("9 (cut) S 3", None);
    }
}
