//! What the tests of custody start: the supervisors, an edge that can be killed, and programs that are hard to stop.

mod confined;

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use runyard_backend::{Launch, Processes};
use runyard_edge::custody::{COMMAND, Supervised, supervise};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

type Done = Result<(), Box<dyn Error>>;

const FLOOD_CHUNKS: usize = 160;
const FLOOD_CHUNK_BYTES: usize = 64 * 1024;
/// A process that is gone as soon as it has forked the next: there is hardly ever one to signal. A shell allows so many
/// calls inside each other, so it begins anew now and then; and it ends by itself, after some ten thousand, for nothing
/// else could stop it that does not adopt it.
const CHAIN: &str = r#"
    f() {
        if [ "$1" = 0 ]; then [ "$ROUND" = 0 ] || ROUND=$((ROUND - 1)) exec /bin/sh -c "$CHAIN"; exit; fi
        f $(($1 - 1)) &
    }
    f 500"#;
const CHAIN_ROUNDS: &str = "40";
/// A process that the test forgot to stop ends by itself.
const LIFE_MAX: Duration = Duration::from_secs(120);

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let mode = arguments.next().and_then(|mode| mode.into_string().ok()).unwrap_or_default();
    if mode == COMMAND {
        return ExitCode::from(supervise(arguments));
    }
    let arguments: Vec<String> = arguments.filter_map(|argument| argument.into_string().ok()).collect();
    let done = match mode.as_str() {
        "edge" => edge(&arguments, false),
        "confined-edge" => edge(&arguments, true),
        "nasty" => nasty(),
        "daemon" => daemon(),
        "stubborn" => stubborn(LIFE_MAX),
        "blink" => stubborn(Duration::from_millis(50)),
        "forker" => forker(),
        "tell" => tell(),
        "flood" => flood(),
        "ask" => ask(&arguments),
        "exchange" => exchange(&arguments),
        _ => return ExitCode::from(64),
    };
    if done.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The same binary in another mode, with the same output and error output.
fn again(mode: &str) -> std::io::Result<Child> {
    command(mode)?.spawn()
}

fn command(mode: &str) -> std::io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(mode).stdin(Stdio::null());
    Ok(command)
}

fn say(line: &str) -> std::io::Result<()> {
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{line}")?;
    stdout.flush()
}

/// Starts the nasty program under custody, says so, and lives until it is killed.
fn edge(arguments: &[String], confined: bool) -> Done {
    let [lock, hold] = arguments else { return Err("edge LOCK HOLD".into()) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let launch = Launch {
            program: std::env::current_exe()?,
            arguments: vec!["nasty".to_owned()],
            directory: PathBuf::from("/"),
            environment: BTreeMap::from([("HOLD".to_owned(), hold.clone())]),
        };
        let mut supervised = Supervised::new(lock).with_grace(Duration::from_millis(20));
        if confined {
            let checkout = Path::new(hold).parent().ok_or("a hold in a directory")?;
            supervised = supervised.confined(confined::confinement(checkout).await);
        }
        let _process = supervised.start(launch).await?;
        say("started")?;
        std::future::pending::<Done>().await
    })
}

fn ignore_signals() -> std::io::Result<()> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    Ok(())
}

/// A whole tree that ignores every gentle signal; it leaves it behind when its input ends.
///
/// All of it has one open file as its error output, so the lock on it is held for as long as any of it is there, however
/// short the life of each.
fn nasty() -> Done {
    ignore_signals()?;
    let hold = File::create(std::env::var("HOLD")?)?;
    hold.lock_shared()?;
    let mut chain = Command::new("/bin/sh");
    chain.args(["-c", CHAIN]).env("CHAIN", CHAIN).env("ROUND", CHAIN_ROUNDS).stdin(Stdio::null());
    for mut one in [command("stubborn")?, command("forker")?, command("daemon")?, chain] {
        one.stderr(hold.try_clone()?).spawn()?;
    }
    say("ready")?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn daemon() -> Done {
    rustix::process::setsid()?;
    again("stubborn")?;
    Ok(())
}

fn stubborn(life: Duration) -> Done {
    ignore_signals()?;
    std::thread::sleep(life);
    Ok(())
}

fn forker() -> Done {
    ignore_signals()?;
    let deadline = std::time::Instant::now() + LIFE_MAX;
    while std::time::Instant::now() < deadline {
        let mut child = again("blink")?;
        std::thread::sleep(Duration::from_millis(5));
        child.try_wait()?;
    }
    Ok(())
}

/// Says what it was given: environment, directory, open files, and its session's leader.
fn tell() -> Done {
    for (name, value) in std::env::vars() {
        say(&format!("env {name}={value}"))?;
    }
    for argument in std::env::args().skip(2) {
        say(&format!("arg {argument}"))?;
    }
    say(&format!("dir {}", std::env::current_dir()?.display()))?;
    let files: Vec<PathBuf> = std::fs::read_dir("/proc/self/fd")?.flatten().map(|file| file.path()).collect();
    // The one through which they were listed is closed again.
    for file in files.iter().filter(|file| file.exists() || file.read_link().is_ok()) {
        say(&format!("fd {}", file.file_name().unwrap_or_default().to_string_lossy()))?;
    }
    Ok(())
}

/// Writes ten mebibytes, and after each chunk says so on the error output.
fn flood() -> Done {
    let chunk = vec![b'x'; FLOOD_CHUNK_BYTES];
    for _ in 0..FLOOD_CHUNKS {
        std::io::stdout().write_all(&chunk)?;
        std::io::stdout().flush()?;
        std::io::stderr().write_all(b".")?;
    }
    Ok(())
}

/// Sends so many bytes to a port of the loopback, ends its side, and says what is answered.
fn ask(arguments: &[String]) -> Done {
    let [port, bytes] = arguments else { return Err("ask PORT BYTES".into()) };
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port.parse()?))?;
    stream.write_all(&vec![b'x'; bytes.parse()?])?;
    stream.shutdown(Shutdown::Write)?;
    std::io::copy(&mut stream, &mut std::io::stdout())?;
    Ok(())
}

/// Opens so many connections to a port of the loopback, and only then sends so many bytes on each, ends its side, and says how
/// many came back as they were sent.
fn exchange(arguments: &[String]) -> Done {
    let [port, connections, bytes] = arguments else { return Err("exchange PORT CONNECTIONS BYTES".into()) };
    let (port, connections, bytes): (u16, usize, usize) =
        (port.parse()?, connections.parse()?, bytes.parse()?);
    let connect = |_| TcpStream::connect((Ipv4Addr::LOCALHOST, port));
    let streams: Vec<TcpStream> = (0..connections).map(connect).collect::<Result<_, _>>()?;
    let talk = |(number, stream): (usize, &TcpStream)| -> std::io::Result<bool> {
        let sent: Vec<u8> = (0..bytes).map(|at| (at.wrapping_mul(number + 7) >> 3) as u8).collect();
        let mut received = Vec::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut stream = stream;
                stream.write_all(&sent).and_then(|()| stream.shutdown(Shutdown::Write))
            });
            let mut stream = stream;
            stream.read_to_end(&mut received)
        })?;
        Ok(received == sent)
    };
    let intact = std::thread::scope(|scope| {
        let talks: Vec<_> = streams.iter().enumerate().map(|one| scope.spawn(move || talk(one))).collect();
        talks.into_iter().map(|talk| talk.join()).filter(|talk| matches!(talk, Ok(Ok(true)))).count()
    });
    say(&format!("{intact} intact"))?;
    Ok(())
}
