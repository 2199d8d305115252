//! What a sandboxed process can reach, tried with real processes, each in the sandbox and outside of it (C11, B07, J06).
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "the helpers of tests fail like tests"
)]

use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use runyard_backend::{Exit, Launch, ProcessError, Processes};
use runyard_domain::{ExecutionPolicy, Network, Sandbox};
use runyard_edge::custody::Supervised;
use runyard_edge::sandbox::{Absent, Confinement, Needs, Places, Sandboxes, Step, System, run_step};
use tokio::io::AsyncReadExt;

const HELPER: &str = env!("CARGO_BIN_EXE_custody-helper");
const SEARCH_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// No step of a test takes so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// A machine in small: a person's home with a workspace and secrets, and a data directory with two runs.
struct Machine {
    _kept: tempfile::TempDir,
    root: PathBuf,
    sandboxes: Sandboxes,
}

impl Machine {
    async fn new() -> Machine {
        // Not in /tmp where that can be helped: every sandbox has one of its own.
        let kept = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let root = kept.path().canonicalize().unwrap();
        for (file, content) in [
            ("ada/.ssh/id_ed25519", "a key"),
            ("ada/.cargo/credentials.toml", "a token"),
            ("ada/.rustup/settings.toml", "version = 1"),
            ("ada/notes.txt", "a secret"),
            ("ada/project/file", "the person's own"),
            ("data/token", "the hub's token"),
            ("data/runyard.db", "everything"),
            ("data/edge/digest.key", "a key"),
            ("data/edge/runs/one/checkout/file", "a copy"),
            ("data/edge/runs/one/home/tmp/nothing", ""),
            ("data/edge/runs/one/custody.lock", ""),
            ("data/edge/runs/two/checkout/file", "of another run"),
            ("data/edge/sessions/one/demo/thread", "a conversation"),
            ("data/edge/sessions/two/demo/thread", "of another session"),
        ] {
            let file = root.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, content).unwrap();
        }
        let tool = root.join("ada/.cargo/bin/tool");
        fs::create_dir_all(tool.parent().unwrap()).unwrap();
        fs::write(&tool, "#!/bin/sh\necho the tool\n").unwrap();
        fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
        let system = System::look(Some(&root.join("ada")), &root.join("data"));
        let sandboxes = Sandboxes::look(SEARCH_PATH, system).await;
        assert_eq!(sandboxes.why_absent(), None, "bubblewrap must be there and work: ./test installs it");
        Machine { _kept: kept, root, sandboxes }
    }

    fn at(&self, name: &str) -> String {
        self.root.join(name).to_str().unwrap().to_owned()
    }

    fn run(&self, name: &str) -> String {
        self.at(&format!("data/edge/runs/one/{name}"))
    }

    fn processes(&self, sandbox: Sandbox, network: Network) -> Supervised {
        let places = Places {
            checkout: self.run("checkout").into(),
            homes: vec![self.run("home").into(), self.at("data/edge/sessions/one/demo").into()],
            readable: Vec::new(),
            hidden: vec![self.at("ada/project").into()],
        };
        let policy = ExecutionPolicy { sandbox, network, ..ExecutionPolicy::default() };
        let confinement = self.sandboxes.for_run(&policy, Needs::Nothing, places).confinement;
        assert_eq!(matches!(confinement, Confinement::None), sandbox == Sandbox::None);
        Supervised::new(self.run("custody.lock")).with_program(HELPER).confined(confinement)
    }

    fn launch(&self, program: impl Into<PathBuf>, arguments: &[&str]) -> Launch {
        let environment =
            [("PATH", SEARCH_PATH.to_owned()), ("HOME", self.run("home")), ("TMPDIR", self.run("home/tmp"))];
        Launch {
            program: program.into(),
            arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
            directory: self.run("checkout").into(),
            environment: environment.map(|(name, value)| (name.to_owned(), value)).into(),
        }
    }

    async fn sh(&self, processes: &Supervised, script: &str) -> Step {
        run_step(processes, self.launch("bash", &["-c", script]), PATIENCE).await.unwrap()
    }

    /// Tried outside it works, and in the sandbox it does not.
    async fn check(&self, (sandbox, network): (Sandbox, Network), script: &str) {
        let outside = self.sh(&self.processes(Sandbox::None, Network::Allow), script).await;
        assert_eq!(outside.exit, Some(Exit::Code(0)), "outside: {script}: {}", text(&outside));
        let inside = self.sh(&self.processes(sandbox, network), script).await;
        assert!(matches!(inside.exit, Some(Exit::Code(1..))), "inside: {script}: {}", text(&inside));
        assert!(!text(&inside).contains("bwrap:"), "it was started: {}", text(&inside));
    }

    /// In the sandbox it works, and prints this.
    async fn works(&self, (sandbox, network): (Sandbox, Network), script: &str, printed: &str) {
        let step = self.sh(&self.processes(sandbox, network), script).await;
        assert_eq!((step.exit, text(&step).trim()), (Some(Exit::Code(0)), printed), "{script}");
    }
}

fn text(step: &Step) -> String {
    String::from_utf8_lossy(&step.output).into_owned()
}

const WRITES: (Sandbox, Network) = (Sandbox::WorkspaceWrite, Network::Ask);
const READS: (Sandbox, Network) = (Sandbox::ReadOnly, Network::Ask);
const CUT: (Sandbox, Network) = (Sandbox::WorkspaceWrite, Network::Deny);

#[tokio::test]
async fn c11_j06_nothing_of_the_data_directory_the_home_or_the_workspace_can_be_read() {
    let machine = Machine::new().await;
    for file in [
        "data/token",
        "data/runyard.db",
        "data/edge/digest.key",
        "data/edge/runs/two/checkout/file",
        "data/edge/runs/one/custody.lock",
        "data/edge/sessions/two/demo/thread",
        "ada/.ssh/id_ed25519",
        "ada/.cargo/credentials.toml",
        "ada/notes.txt",
        "ada/project/file",
    ] {
        for mode in [WRITES, READS] {
            machine.check(mode, &format!("cat {}", machine.at(file))).await;
        }
    }
    machine.check(WRITES, &format!("ls {}", machine.at("data/edge/runs/two"))).await;
    // A link that the agent makes leads to nothing either.
    machine.check(WRITES, &format!("ln -sf {} link && cat link", machine.at("data/token"))).await;
}

#[tokio::test]
async fn b12_a_directory_of_secrets_beside_the_program_cannot_be_read() {
    let mut machine = Machine::new().await;
    let (agent, secrets) = (machine.at("tools/agent"), machine.at("tools/secrets"));
    fs::create_dir_all(&secrets).unwrap();
    fs::write(format!("{secrets}/auth.json"), "a provider's key").unwrap();
    fs::write(&agent, format!("#!/bin/sh\ncat {secrets}/auth.json\n")).unwrap();
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
    let plain = System::look(Some(&machine.root.join("ada")), &machine.root.join("data"));
    let hiding = plain.clone().hiding(&secrets);
    for (system, expected) in [(plain, Exit::Code(0)), (hiding, Exit::Code(1))] {
        machine.sandboxes = Sandboxes::look(SEARCH_PATH, system).await;
        let processes = machine.processes(WRITES.0, WRITES.1);
        let step = run_step(&processes, machine.launch(&agent, &[]), PATIENCE).await.unwrap();
        assert_eq!(step.exit, Some(expected), "{}", text(&step));
        assert_eq!(text(&step).contains("a provider's key"), expected == Exit::Code(0));
    }
}

#[tokio::test]
async fn c11_nothing_outside_of_checkout_and_home_can_be_written() {
    let machine = Machine::new().await;
    for name in ["data/new", "data/edge/runs/two/checkout/new", "ada/new", "ada/project/new"] {
        let file = machine.at(name);
        let (outside, inside) =
            (machine.processes(Sandbox::None, Network::Ask), machine.processes(WRITES.0, WRITES.1));
        machine.sh(&outside, &format!("touch {file}")).await;
        assert!(fs::remove_file(&file).is_ok(), "outside {name} can be made");
        // What it makes in a private place of the same name is nobody else's.
        machine
            .sh(&inside, &format!("mkdir -p {0}; touch {0}/new", file.strip_suffix("/new").unwrap()))
            .await;
        assert!(!Path::new(&file).exists(), "{name} was made");
    }
    for file in [machine.at("ada/.cargo/bin/new"), "/var/tmp/runyard-sandbox-test".to_owned()] {
        machine.check(WRITES, &format!("touch {file} && rm {file}")).await;
    }
    machine
        .works(WRITES, "echo new > new && echo more >> file && echo h > $HOME/h && echo t > $TMPDIR/t", "")
        .await;
    let read = |name: &str| fs::read_to_string(machine.run(name)).unwrap();
    assert_eq!(read("checkout/new") + &read("checkout/file"), "new\na copymore\n");
    assert_eq!(read("home/h") + &read("home/tmp/t"), "h\nt\n");
}

#[tokio::test]
async fn b07_a_read_only_sandbox_cannot_write_the_checkout() {
    let machine = Machine::new().await;
    machine.works(READS, "cat file; echo h > $HOME/h; cat $HOME/h", "a copyh").await;
    machine.check(READS, "echo new > new").await;
    machine.check(READS, "echo more >> file").await;
    machine.check(READS, "chmod 700 .").await;
}

#[tokio::test]
async fn j06_other_processes_are_neither_seen_nor_reached() {
    let machine = Machine::new().await;
    let own = std::process::id();
    for mode in [WRITES, READS] {
        machine.check(mode, &format!("cat /proc/{own}/cmdline > /dev/null")).await;
        machine.check(mode, &format!("kill -0 {own}")).await;
    }
    machine.works(WRITES, "set -- /proc/[0-9]*; echo $(($# < 8))", "1").await;
    machine.works(WRITES, "grep -c '^Cap[IPEBA].*0000000000000000$' /proc/self/status", "5").await;
    machine.works(WRITES, "grep NoNewPrivs /proc/self/status | tr -d '\\t'", "NoNewPrivs:1").await;
    if rustix::process::geteuid().is_root() {
        machine.check(WRITES, "cat /etc/shadow").await;
        machine.check(WRITES, "test -O /etc/passwd && test $(id -u) = 0").await;
    }
}

#[tokio::test]
async fn b07_a_denied_network_is_not_there() {
    let machine = Machine::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{}", listener.local_addr().unwrap().port());
    machine.check(CUT, &connect).await;
    machine.check((Sandbox::ReadOnly, Network::Deny), &connect).await;
    machine.works(WRITES, &connect, "").await;
    machine.works((Sandbox::WorkspaceWrite, Network::Allow), &connect, "").await;
    machine.works(CUT, "sed 1,2d /proc/net/dev | cut -d: -f1 | tr -d ' '", "lo").await;
}

#[tokio::test]
async fn the_system_and_the_persons_toolchains_are_there() {
    let machine = Machine::new().await;
    machine.works(CUT, &machine.at("ada/.cargo/bin/tool"), "the tool").await;
    machine.works(CUT, "cat $RUSTUP_HOME/settings.toml", "version = 1").await;
    machine.works(CUT, "test -r /etc/passwd && test -c /dev/null && echo there", "there").await;
    machine
        .works(
            CUT,
            "echo private > /tmp/file && cat /tmp/file && pwd",
            &format!("private\n{}", machine.run("checkout")),
        )
        .await;
    let shared = tempfile::NamedTempFile::new_in("/tmp").unwrap();
    machine.check(CUT, &format!("test -e {}", shared.path().display())).await;
    let tool = machine.launch(machine.at("ada/.cargo/bin/tool"), &[]);
    let step = run_step(&machine.processes(Sandbox::ReadOnly, Network::Deny), tool, PATIENCE).await.unwrap();
    assert_eq!((step.exit, text(&step).as_str()), (Some(Exit::Code(0)), "the tool\n"));
}

#[tokio::test]
async fn c17_exit_codes_come_through_and_what_cannot_be_started_is_told() {
    let machine = Machine::new().await;
    let processes = machine.processes(Sandbox::WorkspaceWrite, Network::Deny);
    assert_eq!(machine.sh(&processes, "exit 7").await.exit, Some(Exit::Code(7)));
    assert_eq!(machine.sh(&processes, "kill -9 $$").await.exit, Some(Exit::Code(137)));
    let text = machine.run("checkout/file");
    for (program, expected) in [
        ("/does/not/exist", ErrorKind::NotFound),
        ("in-no-path", ErrorKind::NotFound),
        (&*text, ErrorKind::PermissionDenied),
    ] {
        match processes.start(machine.launch(program, &[])).await {
            Err(ProcessError::Start { program: named, source }) => {
                assert_eq!((named.as_str(), source.kind()), (program, expected));
            }
            other => panic!("{program}: {:?}", other.map(|_| "started").map_err(|error| error.to_string())),
        }
    }
}

#[tokio::test]
async fn j05_a_sandboxed_program_is_asked_to_end_before_it_is_killed() {
    let machine = Machine::new().await;
    let processes = machine.processes(Sandbox::WorkspaceWrite, Network::Deny).with_grace(PATIENCE);
    let script = "trap 'echo asked > asked; exit 3' INT; echo ready; while :; do sleep 0.02; done";
    let mut process = processes.start(machine.launch("bash", &["-c", script])).await.unwrap();
    let mut ready = [0; 6];
    process.stdout.as_mut().unwrap().read_exact(&mut ready).await.unwrap();
    assert_eq!(&ready, b"ready\n");
    assert_eq!(process.custody.stop().await.unwrap(), Exit::Code(3));
    assert_eq!(fs::read_to_string(machine.run("checkout/asked")).unwrap(), "asked\n");
}

#[tokio::test]
async fn a_step_that_takes_too_long_is_stopped_and_its_output_is_bounded() {
    let machine = Machine::new().await;
    let processes =
        machine.processes(Sandbox::WorkspaceWrite, Network::Deny).with_grace(Duration::from_millis(20));
    let endless = machine.launch("bash", &["-c", "echo begun; exec sleep 1000"]);
    let step = run_step(&processes, endless, Duration::from_millis(500)).await.unwrap();
    assert_eq!((step.exit, text(&step).as_str()), (None, "begun\n"));
    let step = machine.sh(&processes, "head -c 200000 /dev/zero | tr '\\0' x; echo end >&2").await;
    assert_eq!(step.exit, Some(Exit::Code(0)));
    assert_eq!((step.output.len() as u64 + step.left_out, step.output.len()), (200_004, 64 * 1024));
}

#[tokio::test]
async fn an_agent_can_use_bubblewrap_inside_and_stays_confined() {
    let machine = Machine::new().await;
    let own = "bwrap --unshare-user --unshare-pid --unshare-net --ro-bind / / --dev /dev --";
    for mode in [WRITES, CUT] {
        machine.works(mode, &format!("{own} cat file"), "a copy").await;
        machine.check(mode, &format!("{own} cat {}", machine.at("data/token"))).await;
    }
}

#[tokio::test]
async fn b02_the_sandbox_of_codex_works_inside_ours() {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let native =
        "codex-0.166.0/node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex";
    let codex = std::env::var_os("RUNYARD_TEST_CODEX").map_or_else(|| target.join(native), PathBuf::from);
    assert!(codex.is_file(), "there is no {}; ./test installs it", codex.display());
    let machine = Machine::new().await;
    let script = "cat file; echo new > new || echo confined";
    for network in [Network::Ask, Network::Deny] {
        let mut launch = machine.launch(&codex, &["sandbox", "--", "bash", "-c", script]);
        launch.environment.insert("CODEX_HOME".to_owned(), machine.at("data/edge/sessions/one/demo"));
        let processes = machine.processes(Sandbox::WorkspaceWrite, network);
        let step = run_step(&processes, launch, PATIENCE).await.unwrap();
        let said = text(&step);
        assert_eq!(step.exit, Some(Exit::Code(0)), "{said}");
        for expected in ["a copy", "Read-only file system", "confined\n"] {
            assert!(said.contains(expected), "{said}");
        }
    }
}

#[tokio::test]
async fn b07_where_bubblewrap_is_missing_or_broken_that_is_said() {
    let place = tempfile::tempdir().unwrap();
    let look = |path: &Path| {
        let path = path.to_str().unwrap().to_owned();
        async move { Sandboxes::look(&path, System::look(None, Path::new("/does/not/exist"))).await }
    };
    let missing = look(place.path()).await;
    assert_eq!(missing.why_absent(), Some(&Absent::NotInstalled));
    assert_eq!(missing.to_string(), "none in force: bubblewrap is not installed (apt install bubblewrap)");
    let program = place.path().join("bwrap");
    fs::write(&program, "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
        .unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let broken = look(place.path()).await;
    let said = "No permissions to create new namespace".to_owned();
    assert_eq!(broken.why_absent(), Some(&Absent::Fails { said }));
}
