//! Nothing is left, however it is stopped, whoever is killed (J05).
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "the helpers of tests fail like tests"
)]

#[path = "custody/confined.rs"]
mod confined;
#[path = "custody/marked.rs"]
mod marked;

use std::collections::BTreeMap;
use std::io::{BufRead, ErrorKind};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use marked::{PATIENCE, marked, no_supervisor_left, supervisors};
use runyard_backend::{Exit, Launch, Process, ProcessError, Processes};
use runyard_edge::custody::{Supervised, wait_until_gone};
use runyard_edge::sandbox::Confinement;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};

const HELPER: &str = env!("CARGO_BIN_EXE_custody-helper");
const STOPS: usize = 100;
/// So many trees are there at a time.
const TOGETHER: usize = 4;
const GRACE: Duration = Duration::from_millis(20);

struct Place {
    directory: tempfile::TempDir,
    confinement: Confinement,
    _gateway: Option<UnixListener>,
}

impl Place {
    fn new() -> Place {
        Place { directory: tempfile::tempdir().unwrap(), confinement: Confinement::None, _gateway: None }
    }

    /// One in which everything is started in a sandbox.
    async fn confined() -> Place {
        let directory = tempfile::tempdir().unwrap();
        let confinement = confined::confinement(directory.path()).await;
        Place { directory, confinement, _gateway: None }
    }

    /// One in which everything is started in a sandbox, by a forwarder.
    async fn forwarded() -> Place {
        let directory = tempfile::tempdir().unwrap();
        let gateway = Some(UnixListener::bind(directory.path().join(confined::SOCKET)).unwrap());
        let confinement = confined::confinement(directory.path()).await;
        Place { directory, confinement, _gateway: gateway }
    }

    fn lock(&self) -> PathBuf {
        self.directory.path().join("lock")
    }

    /// What everything nasty holds a lock on; its path is in the environment of the program and nowhere else.
    fn hold(&self) -> PathBuf {
        self.directory.path().join("hold")
    }

    fn marked(&self) -> Vec<Pid> {
        marked(self.hold().to_str().unwrap())
    }

    fn supervised(&self) -> Supervised {
        let supervised = Supervised::new(self.lock()).with_program(HELPER).with_grace(GRACE);
        supervised.confined(self.confinement.clone())
    }

    fn launch(&self, program: &str, arguments: &[&str]) -> Launch {
        Launch {
            program: program.into(),
            arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
            directory: PathBuf::from("/"),
            environment: BTreeMap::from([
                ("HOLD".to_owned(), self.hold().display().to_string()),
                ("PATH".to_owned(), "/usr/bin:/bin".to_owned()),
            ]),
        }
    }

    async fn nasty(&self) -> Process {
        let mut process = self.supervised().start(self.launch(HELPER, &["nasty"])).await.unwrap();
        let mut ready = [0; 6];
        process.stdout.as_mut().unwrap().read_exact(&mut ready).await.unwrap();
        assert_eq!(&ready, b"ready\n");
        let held = wait_until_gone(&self.hold(), Duration::ZERO).await;
        assert_eq!(held.unwrap_err().kind(), ErrorKind::TimedOut, "the tree is there");
        process
    }

    fn edge(&self) -> Command {
        let mut command = Command::new(HELPER);
        let mode = match self.confinement {
            Confinement::None => "edge",
            Confinement::Within(_) => "confined-edge",
        };
        command.arg(mode).arg(self.lock()).arg(self.hold()).stdin(Stdio::null()).stdout(Stdio::piped());
        command
    }

    /// Once the lock is free nothing of the program is there; the supervisors may take a moment longer, or, where the
    /// edge died before it gave the order, may only be coming up.
    async fn nothing_is_left(&self) {
        wait_until_gone(&self.lock(), PATIENCE).await.unwrap();
        self.is_clear().await;
        no_supervisor_left(&self.lock()).await;
        self.is_clear().await;
    }

    /// Nothing of the program is there at this moment.
    async fn is_clear(&self) {
        assert_eq!(self.marked(), []);
        wait_until_gone(&self.hold(), Duration::ZERO).await.unwrap();
    }
}

#[derive(Clone, Copy, Debug)]
enum Forced {
    Stop,
    Drop,
    KillEdge,
    LeaveBehind,
}

async fn force(how: Forced, place: Place) {
    match how {
        Forced::Stop => {
            let mut process = place.nasty().await;
            assert_eq!(process.custody.stop().await.unwrap(), Exit::Signal(9));
            // Nothing to wait for: when a stop returns, it is done.
            place.is_clear().await;
            assert_eq!(supervisors(&place.lock(), ""), []);
        }
        Forced::Drop => drop(place.nasty().await),
        Forced::KillEdge => {
            let started = tokio::task::spawn_blocking({
                let mut edge = place.edge();
                move || {
                    let mut edge = edge.spawn().unwrap();
                    let mut line = String::new();
                    std::io::BufReader::new(edge.stdout.take().unwrap()).read_line(&mut line).unwrap();
                    assert_eq!(line, "started\n");
                    edge.kill().unwrap();
                    edge.wait().unwrap();
                }
            });
            started.await.unwrap();
        }
        Forced::LeaveBehind => {
            let mut process = place.nasty().await;
            process.stdin = None;
            assert_eq!(process.custody.wait().await.unwrap(), Exit::Code(0));
            place.is_clear().await;
        }
    }
    place.nothing_is_left().await;
}

#[tokio::test]
async fn j05_a_hundred_forced_stops_leave_no_process() {
    force_all(STOPS, async || Place::new()).await;
}

#[tokio::test]
async fn j05_a_hundred_forced_stops_of_sandboxes_leave_no_process() {
    force_all(STOPS, Place::confined).await;
}

#[tokio::test]
async fn j05_forced_stops_of_sandboxes_with_a_forwarder_leave_no_process() {
    force_all(STOPS / 4, Place::forwarded).await;
}

async fn force_all(stops: usize, place: impl AsyncFn() -> Place) {
    let ways = [Forced::Stop, Forced::Drop, Forced::KillEdge, Forced::LeaveBehind];
    let mut running = tokio::task::JoinSet::new();
    for how in ways.into_iter().cycle().take(stops) {
        if running.len() >= TOGETHER {
            running.join_next().await.unwrap().unwrap();
        }
        running.spawn(force(how, place().await));
    }
    while let Some(done) = running.join_next().await {
        done.unwrap();
    }
}

#[tokio::test]
async fn j05_an_edge_killed_at_any_moment_of_a_start_leaves_nothing() {
    for moment in 0..60 {
        let place = Place::new();
        let mut edge = place.edge().spawn().unwrap();
        // The moment is what is tried, from before anything is started until after everything is.
        tokio::time::sleep(Duration::from_micros(moment * 300)).await;
        edge.kill().unwrap();
        edge.wait().unwrap();
        place.nothing_is_left().await;
    }
}

#[tokio::test]
async fn j05_a_start_dropped_at_any_moment_leaves_nothing() {
    for moment in 0..60 {
        let place = Place::new();
        let supervised = place.supervised();
        let start = supervised.start(place.launch(HELPER, &["nasty"]));
        drop(tokio::time::timeout(Duration::from_micros(moment * 200), start).await);
        place.nothing_is_left().await;
    }
}

#[tokio::test]
async fn j05_a_killed_keeper_leaves_nothing_and_the_edge_is_told_that_the_exit_is_not_known() {
    for place in [Place::new(), Place::confined().await, Place::forwarded().await] {
        let mut process = place.nasty().await;
        kill(&supervisors(&place.lock(), "keeper"));
        assert!(matches!(process.custody.wait().await, Err(ProcessError::Lost { .. })));
        place.is_clear().await;
        assert!(matches!(process.custody.stop().await, Err(ProcessError::Lost { .. })));
        place.nothing_is_left().await;
    }
}

#[tokio::test]
async fn j05_a_killed_guard_leaves_nothing() {
    for place in [Place::new(), Place::confined().await, Place::forwarded().await] {
        let mut process = place.nasty().await;
        kill(&supervisors(&place.lock(), "guard"));
        assert_eq!(process.custody.wait().await.unwrap(), Exit::Signal(9));
        place.is_clear().await;
        place.nothing_is_left().await;
    }
}

#[tokio::test]
async fn j05_where_guard_and_keeper_are_killed_at_once_the_program_itself_ends() {
    let place = Place::new();
    let launch = place.launch("sh", &["-c", "echo $$; exec sleep 100"]);
    let mut process = place.supervised().start(launch).await.unwrap();
    let mut id = String::new();
    BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut id).await.unwrap();
    let id = Pid::from_raw(id.trim().parse().unwrap()).unwrap();
    let program = pidfd_open(id, PidfdFlags::empty()).unwrap();
    let (guards, keepers) = (supervisors(&place.lock(), "guard"), supervisors(&place.lock(), "keeper"));
    // A stopped guard cannot come to the help of what the keeper leaves.
    guards.iter().for_each(|guard| kill_process(*guard, Signal::STOP).unwrap());
    kill(&keepers);
    kill(&guards);
    let ended = tokio::task::spawn_blocking(move || {
        poll(&mut [PollFd::new(&program, PollFlags::IN)], Some(&PATIENCE.try_into().unwrap())).unwrap()
    });
    assert_eq!(ended.await.unwrap(), 1);
    assert!(matches!(process.custody.wait().await, Err(ProcessError::Lost { .. })));
    place.nothing_is_left().await;
}

#[tokio::test]
async fn j05_where_guard_and_keeper_are_killed_at_once_all_of_a_sandbox_ends() {
    for place in [Place::confined().await, Place::forwarded().await] {
        let mut process = place.nasty().await;
        let (guards, keepers) = (supervisors(&place.lock(), "guard"), supervisors(&place.lock(), "keeper"));
        guards.iter().for_each(|guard| kill_process(*guard, Signal::STOP).unwrap());
        kill(&keepers);
        kill(&guards);
        // All of it holds this lock, and nobody is left who could stop it but the kernel.
        wait_until_gone(&place.hold(), PATIENCE).await.unwrap();
        assert!(matches!(process.custody.wait().await, Err(ProcessError::Lost { .. })));
        place.nothing_is_left().await;
    }
}

#[track_caller]
fn kill(supervisors: &[Pid]) {
    assert_eq!(supervisors.len(), 1);
    supervisors.iter().for_each(|supervisor| kill_process(*supervisor, Signal::KILL).unwrap());
}
