//! The gateway is all that a sandbox without a network can reach, tried with real processes (B07, C11, J05).
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "the helpers of tests fail like tests"
)]

#[path = "custody/marked.rs"]
mod marked;

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use marked::{PATIENCE, marked, no_supervisor_left};
use runyard_backend::{Exit, Launch, ProcessError, Processes};
use runyard_domain::{ExecutionPolicy, Network, Sandbox};
use runyard_edge::custody::Supervised;
use runyard_edge::sandbox::{Needs, Places, Sandboxes, Step, System, run_step};
use tokio::io::AsyncReadExt;

const HELPER: &str = env!("CARGO_BIN_EXE_custody-helper");
const SEARCH_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// So many connections are forwarded at a time.
const CONNECTIONS_MAX: usize = 64;

/// A run with a gateway: what stands there for it is a function of each connection.
struct Run {
    kept: tempfile::TempDir,
    /// The gateway's own port on the machine's loopback. Nobody may come that way.
    tcp: TcpListener,
    processes: Supervised,
    /// How many connections there were at a time, at most.
    most: Arc<AtomicUsize>,
}

type Answer = fn(UnixStream) -> io::Result<()>;

impl Run {
    async fn new(answer: Answer) -> Run {
        Run::with(answer, Network::Deny).await
    }

    async fn with(answer: Answer, network: Network) -> Run {
        // Not in /tmp where that can be helped: every sandbox has one of its own.
        let kept = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let root = kept.path().canonicalize().unwrap();
        for directory in ["data/run/checkout", "data/run/home"] {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        fs::write(root.join("data/run/checkout/file"), "a copy").unwrap();
        let socket = root.join("data/run/gateway.sock");
        let most = serve(&socket, answer);
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        tcp.set_nonblocking(true).unwrap();
        let needs = Needs::Gateway { socket, port: tcp.local_addr().unwrap().port() };
        let sandboxes = Sandboxes::look(SEARCH_PATH, System::look(None, &root.join("data"))).await;
        assert_eq!(sandboxes.why_absent(), None, "bubblewrap must be there and work: ./test installs it");
        let places = Places {
            checkout: root.join("data/run/checkout"),
            homes: vec![root.join("data/run/home")],
            readable: Vec::new(),
            hidden: Vec::new(),
        };
        let policy =
            ExecutionPolicy { sandbox: Sandbox::WorkspaceWrite, network, ..ExecutionPolicy::default() };
        let in_force = sandboxes.for_run(&policy, needs, places);
        assert_eq!(in_force.degraded, [] as [String; 0]);
        let processes = Supervised::new(root.join("data/run/custody.lock"))
            .with_program(HELPER)
            .confined(in_force.confinement);
        Run { kept, tcp, processes, most }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.kept.path().canonicalize().unwrap().join("data/run").join(name)
    }

    fn launch(&self, program: impl Into<PathBuf>, arguments: &[&str]) -> Launch {
        let port = self.tcp.local_addr().unwrap().port().to_string();
        let home = self.at("home").to_str().unwrap().to_owned();
        let environment = [("PATH", SEARCH_PATH.to_owned()), ("HOME", home), ("PORT", port)];
        Launch {
            program: program.into(),
            arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
            directory: self.at("checkout"),
            environment: environment.map(|(name, value)| (name.to_owned(), value)).into(),
        }
    }

    async fn sh(&self, script: &str) -> Step {
        let step = run_step(&self.processes, self.launch("bash", &["-c", script]), PATIENCE).await.unwrap();
        assert!(!text(&step).contains("bwrap:"), "it was started: {}", text(&step));
        step
    }

    #[track_caller]
    fn nobody_came_by_tcp(&self) {
        assert_eq!(self.tcp.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    }

    async fn prints(&self, script: &str, printed: &str) {
        let step = self.sh(script).await;
        assert_eq!((step.exit, text(&step).trim()), (Some(Exit::Code(0)), printed), "{script}");
    }

    async fn fails(&self, script: &str) {
        let step = self.sh(script).await;
        assert!(matches!(step.exit, Some(Exit::Code(1..))), "{script}: {}", text(&step));
    }

    async fn exchanges(&self, connections: usize, bytes: usize) {
        let port = self.tcp.local_addr().unwrap().port().to_string();
        let arguments = ["exchange", &port, &connections.to_string(), &bytes.to_string()];
        let step = run_step(&self.processes, self.launch(HELPER, &arguments), PATIENCE).await.unwrap();
        assert_eq!((step.exit, text(&step)), (Some(Exit::Code(0)), format!("{connections} intact\n")));
    }
}

fn serve(socket: &Path, answer: Answer) -> Arc<AtomicUsize> {
    let listener = UnixListener::bind(socket).unwrap();
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let seen = most.clone();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (now, most) = (now.clone(), most.clone());
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            thread::spawn(move || {
                // Before the stream is closed: the next one comes when it is.
                let kept = stream.try_clone();
                let _ = answer(stream);
                now.fetch_sub(1, Ordering::SeqCst);
                drop(kept);
            });
        }
    });
    seen
}

/// What came, while it comes. Its end is told by whoever counts the connections.
fn echo(stream: UnixStream) -> io::Result<()> {
    io::copy(&mut &stream, &mut &stream).map(drop)
}

/// Once everything is there, how much it was.
fn count(mut stream: UnixStream) -> io::Result<()> {
    let read = io::copy(&mut stream, &mut io::sink())?;
    writeln!(stream, "{read} bytes")
}

/// As a server that closes after its answer, without having seen the end of what it was sent.
fn answer_and_close(mut stream: UnixStream) -> io::Result<()> {
    let mut request = [0; 18];
    stream.read_exact(&mut request)?;
    stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhello\n")
}

fn text(step: &Step) -> String {
    String::from_utf8_lossy(&step.output).into_owned()
}

const TALK: &str = "exec 3<>/dev/tcp/127.0.0.1/$PORT && echo hello >&3 && read -r line <&3 && echo \"$line\"";

#[tokio::test]
async fn b07_the_gateway_is_reached_at_its_own_address_and_nothing_else_is() {
    let run = Run::new(echo).await;
    run.prints(TALK, "hello").await;
    run.nobody_came_by_tcp();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port();
    run.fails(&format!("exec 3<>/dev/tcp/127.0.0.1/{port}")).await;
    run.fails(&format!("exec 3<>/dev/tcp/localhost/{port}")).await;
    // Addresses for documentation, where nothing is; with a network they would at least have a way.
    run.fails("exec 3<>/dev/tcp/192.0.2.1/443").await;
    run.fails("exec 3<>/dev/udp/192.0.2.1/53").await;
    run.fails("getent hosts name.example").await;
    run.prints("sed 1,2d /proc/net/dev | cut -d: -f1 | tr -d ' '; sed 1d /proc/net/route", "lo").await;
    // No abstract socket of this machine either, and nothing that listens but the forwarder.
    run.prints("sed 1d /proc/net/tcp | grep -c ' 0A '; sed 1d /proc/net/unix | wc -l", "1\n0").await;
}

#[tokio::test]
async fn b07_datagrams_leave_no_sandbox_that_is_cut() {
    let listener = UdpSocket::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let send = format!("echo name > /dev/udp/127.0.0.1/{}", listener.local_addr().unwrap().port());
    let mut name = [0; 8];
    let cut = Run::new(echo).await;
    cut.sh(&send).await;
    assert_eq!(listener.recv(&mut name).unwrap_err().kind(), ErrorKind::WouldBlock);
    let shared = Run::with(echo, Network::Ask).await;
    shared.sh(&send).await;
    assert_eq!(listener.recv(&mut name).unwrap(), 5);
}

#[tokio::test]
async fn b07_where_the_network_is_not_denied_the_same_address_is_the_gateways_own() {
    let run = Run::with(echo, Network::Ask).await;
    run.prints("exec 3<>/dev/tcp/127.0.0.1/$PORT && echo there", "there").await;
    run.tcp.accept().unwrap();
}

#[tokio::test]
async fn many_connections_at_once_are_carried_and_no_more_than_a_bounded_number() {
    let run = Run::new(echo).await;
    run.exchanges(20, 256 * 1024).await;
    run.exchanges(150, 1024).await;
    assert!(run.most.load(Ordering::SeqCst) <= CONNECTIONS_MAX, "{:?}", run.most);
}

#[tokio::test]
async fn megabytes_are_carried_both_ways_as_they_are() {
    let run = Run::new(echo).await;
    run.exchanges(1, 8 * 1024 * 1024).await;
    run.exchanges(4, 2 * 1024 * 1024 + 1).await;
}

#[tokio::test]
async fn the_end_of_one_direction_is_carried_and_the_other_goes_on() {
    // The server answers when it has seen the end of what was sent.
    let run = Run::new(count).await;
    let port = run.tcp.local_addr().unwrap().port().to_string();
    let step =
        run_step(&run.processes, run.launch(HELPER, &["ask", &port, "100000"]), PATIENCE).await.unwrap();
    assert_eq!((step.exit, text(&step).as_str()), (Some(Exit::Code(0)), "100000 bytes\n"));
    // The client only reads on, and the server closes.
    let run = Run::new(answer_and_close).await;
    let request =
        "exec 3<>/dev/tcp/127.0.0.1/$PORT; printf 'GET / HTTP/1.1\\r\\n\\r\\n' >&3; cat <&3 | tail -n 1";
    run.prints(request, "hello").await;
    // It sends more than anybody reads, and gets its answer all the same.
    let much = "exec 3<>/dev/tcp/127.0.0.1/$PORT; head -c 4000000 /dev/zero >&3; cat <&3 | tail -n 1";
    run.prints(much, "hello").await;
}

#[tokio::test]
async fn a_gateway_that_is_gone_ends_the_connection_and_one_that_never_was_is_told_at_the_start() {
    let run = Run::new(echo).await;
    fs::remove_file(run.at("gateway.sock")).unwrap();
    match run.processes.start(run.launch("true", &[])).await {
        Err(ProcessError::Start { source, .. }) => assert_eq!(source.kind(), ErrorKind::NotFound),
        other => panic!("{:?}", other.map(|_| "started").map_err(|error| error.to_string())),
    }
    // A socket that nobody listens at.
    drop(UnixListener::bind(run.at("gateway.sock")).unwrap());
    run.prints("exec 3<>/dev/tcp/127.0.0.1/$PORT; cat <&3 2>/dev/null; echo ended", "ended").await;
}

#[tokio::test]
async fn c17_how_the_program_ends_comes_through_the_forwarder() {
    let run = Run::new(echo).await;
    for (script, code) in [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143), ("kill -KILL $$", 137)] {
        assert_eq!(run.sh(script).await.exit, Some(Exit::Code(code)), "{script}");
    }
    // Input, output and error output are the program's own.
    run.prints("cat; echo out; { echo err >&2; } 2>&1", "out\nerr").await;
}

#[tokio::test]
async fn j05_a_program_that_leaves_others_behind_or_kills_its_forwarder_leaves_nothing() {
    let run = Run::new(echo).await;
    let mark = run.at("home").to_str().unwrap().to_owned();
    let daemon = "(setsid bash -c 'trap \"\" TERM INT HUP; sleep 1000 & wait' >/dev/null 2>&1 &) ; exit 3";
    assert_eq!(run.sh(daemon).await.exit, Some(Exit::Code(3)));
    assert_eq!(marked(&mark), []);
    let alone = "(setsid sleep 1000 >/dev/null 2>&1 &); kill -KILL $PPID; sleep 1000";
    assert_eq!(run.sh(alone).await.exit, Some(Exit::Code(137)));
    assert_eq!(marked(&mark), []);
    // Stopped, it cannot tell that the program ended; but it can be stopped like everything else.
    let script = "echo ready; kill -STOP $PPID; exec sleep 1000";
    let processes = run.processes.clone().with_grace(std::time::Duration::from_millis(20));
    let mut process = processes.start(run.launch("bash", &["-c", script])).await.unwrap();
    process.stdout.as_mut().unwrap().read_exact(&mut [0; 6]).await.unwrap();
    process.custody.stop().await.unwrap();
    assert_eq!(marked(&mark), []);
    no_supervisor_left(&run.at("custody.lock")).await;
}

#[tokio::test]
async fn j05_a_program_behind_a_forwarder_is_asked_to_end_before_it_is_killed() {
    let run = Run::new(echo).await;
    let script = "trap 'echo asked > asked; exit 3' INT; echo ready; while :; do sleep 0.02; done";
    let processes = run.processes.clone().with_grace(PATIENCE);
    let mut process = processes.start(run.launch("bash", &["-c", script])).await.unwrap();
    process.stdout.as_mut().unwrap().read_exact(&mut [0; 6]).await.unwrap();
    assert_eq!(process.custody.stop().await.unwrap(), Exit::Code(3));
    assert_eq!(fs::read_to_string(run.at("checkout/asked")).unwrap(), "asked\n");
}

#[tokio::test]
async fn c11_the_program_has_no_file_of_the_forwarder_and_sees_none() {
    let run = Run::new(echo).await;
    let step = run_step(&run.processes, run.launch(HELPER, &["tell"]), PATIENCE).await.unwrap();
    let files: Vec<String> =
        text(&step).lines().filter_map(|line| line.strip_prefix("fd ").map(str::to_owned)).collect();
    assert_eq!(files, ["0", "1", "2"]);
    run.prints("tr '\\0' ' ' < /proc/$PPID/cmdline | cut -d' ' -f2-3", "child forwarder").await;
    for file in ["fd/61", "environ", "root/etc", "mem"] {
        run.fails(&format!("ls /proc/$PPID/{file}/ || cat /proc/$PPID/{file}")).await;
    }
    run.fails(&format!("ls {}", run.at("gateway.sock").display())).await;
    run.fails("ls -l /proc/[0-9]*/fd | grep gateway").await;
}

#[tokio::test]
async fn an_agents_own_sandbox_works_inside_and_has_no_way_to_the_gateway_where_it_cuts_the_network() {
    let run = Run::new(echo).await;
    let own = "bwrap --unshare-user --unshare-pid --ro-bind / / --dev /dev";
    run.prints(&format!("{own} cat file"), "a copy").await;
    run.prints(&format!("{own} bash -c '{TALK}'"), "hello").await;
    run.fails(&format!("{own} --unshare-net bash -c '{TALK}'")).await;
}

#[tokio::test]
async fn b02_the_sandbox_of_codex_works_behind_a_forwarder_and_cuts_its_commands_off() {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let native =
        "codex-0.166.0/node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex";
    let codex = std::env::var_os("RUNYARD_TEST_CODEX").map_or_else(|| target.join(native), PathBuf::from);
    assert!(codex.is_file(), "there is no {}; ./test installs it", codex.display());
    let run = Run::new(echo).await;
    let script = format!("cat file; echo new > new || echo confined; {TALK} || echo cut");
    let mut launch = run.launch(&codex, &["sandbox", "--", "bash", "-c", &script]);
    // Codex puts no helper of its own into a home beneath the temporary directory, wherever these tests lie.
    let (home, temporary) = (run.at("home"), run.at("home").join("tmp"));
    std::fs::create_dir_all(&temporary).unwrap();
    for (name, place) in [("CODEX_HOME", home), ("TMPDIR", temporary)] {
        launch.environment.insert(name.to_owned(), place.to_str().unwrap().to_owned());
    }
    let step = run_step(&run.processes, launch, PATIENCE).await.unwrap();
    let said = text(&step);
    assert_eq!(step.exit, Some(Exit::Code(0)), "{said}");
    for expected in ["a copy", "confined\n", "cut\n"] {
        assert!(said.contains(expected), "{said}");
    }
}

#[tokio::test]
async fn an_open_connection_does_not_keep_an_ended_program() {
    let run = Run::new(echo).await;
    let script = "exec 3<>/dev/tcp/127.0.0.1/$PORT; echo hello >&3; read -r line <&3; exit 4";
    assert_eq!(run.sh(script).await.exit, Some(Exit::Code(4)));
}
