//! What the tests of this crate share: stores in a temporary folder, and child processes that use one.
//!
//! A child is the test program itself, started again with one of its tests (`child`) and a role in its environment.

#![allow(dead_code, unreachable_pub, reason = "not every test program uses all of it")]
#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;

use runyard_domain::{AppendId, EventId, RunId, Timestamp};
use runyard_redact::Safe;
use runyard_store::conformance::{event, fresh_append};
use runyard_store::{Change, EventLog, NewEvent, Place, Projection, Writes, verify};
use runyard_store_sqlite::{OpenOptions, SqliteStore};
use serde_json::json;
use tempfile::TempDir;

const ROLE: &str = "RUNYARD_TEST_ROLE";
const DATABASE: &str = "RUNYARD_TEST_DATABASE";

/// How long a proof is to be.
pub fn proof(quick: usize, sample: usize, soak: usize) -> usize {
    match std::env::var("RUNYARD_PROOF").as_deref() {
        Ok("quick") => quick,
        Ok("soak") => soak,
        _ => sample,
    }
}

/// A folder, and the database in it.
pub fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("runyard.db");
    (folder, database)
}

pub fn open(database: &Path) -> Arc<SqliteStore> {
    Arc::new(SqliteStore::open(OpenOptions::new(database, "the test")).unwrap())
}

pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// A change with one event that says `marker`, and a projection.
pub fn marked(run: RunId, after: u64, marker: u64) -> Change {
    change(run, after, vec![event(json!({ "marker": marker }))])
}

pub fn change(run: RunId, after: u64, events: Vec<NewEvent>) -> Change {
    let projection = Projection { status: "running", state: Safe::object([("at", after.into())]) };
    let writes = Writes { events, projection: Some(projection), ..Writes::default() };
    Change { run, append: fresh_append(), generation: None, place: Place::At(after, writes) }
}

/// The same change every time that it is made, so that it can be repeated.
pub fn repeatable(run: RunId, after: u64, marker: u64) -> Change {
    let mut unique = [9; 10];
    unique[..8].copy_from_slice(&marker.to_be_bytes());
    let payload = Safe::object([("marker", marker.into())]);
    let at = Timestamp::from_unix_ms(1_700_000_000_000);
    let event = NewEvent::new(EventId::from_parts(1, &unique), at, "run.message.delta", payload);
    Change { append: AppendId::from_parts(1, &unique), ..change(run, after, vec![event]) }
}

pub fn run_number(number: u64) -> RunId {
    let mut unique = [1; 10];
    unique[..8].copy_from_slice(&number.to_be_bytes());
    RunId::from_parts(1_700_000_000_000, &unique)
}

/// The markers of a run's events, in order, having checked that its log holds.
pub async fn markers(store: &SqliteStore, run: RunId) -> Vec<u64> {
    let verified = verify(store, run).await.unwrap().unwrap();
    let mut markers = Vec::new();
    while (markers.len() as u64) < verified.events {
        for event in store.read(run, markers.len() as u64, 500).await.unwrap() {
            markers.push(event.envelope().unwrap().payload["marker"].as_u64().unwrap());
        }
    }
    markers
}

/// Numbers that look random and can be had again.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Dice(seed | 1)
    }

    pub fn roll(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }
}

/// What a child does with the database.
pub type Role = fn(&Path);

/// Does what the environment says, if this process is a child.
pub fn play(roles: &[(&str, Role)]) {
    let Ok(asked) = std::env::var(ROLE) else { return };
    let database = PathBuf::from(std::env::var(DATABASE).unwrap());
    let (_, role) = roles.iter().find(|(name, _)| *name == asked).unwrap();
    role(&database);
}

/// Says something to the parent, at once and in one piece.
pub fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // A parent that is gone ends the child by other means.
    let _ = out.write_all(format!("\n> {line}\n").as_bytes()).and_then(|()| out.flush());
}

/// A child in a role.
pub struct Player {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Player {
    pub fn command(role: &str, database: &Path) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "child", "--nocapture", "--test-threads=1"])
            .env(ROLE, role)
            .env(DATABASE, database)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        command
    }

    pub fn start(role: &str, database: &Path) -> Self {
        Player::spawn(Player::command(role, database))
    }

    pub fn spawn(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Player { child, out }
    }

    /// The next thing that it says; nothing when it is gone.
    pub fn hear(&mut self) -> Option<String> {
        let mut line = Vec::new();
        loop {
            line.clear();
            if self.out.read_until(b'\n', &mut line).unwrap() == 0 {
                return None;
            }
            if let Some(said) = line.strip_prefix(b"> ")
                && let Some(said) = said.strip_suffix(b"\n")
            {
                return Some(String::from_utf8_lossy(said).into_owned());
            }
        }
    }

    #[track_caller]
    pub fn expect(&mut self, line: &str) {
        assert_eq!(self.hear().as_deref(), Some(line));
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills it as the kernel would, and gives what it had still said.
    pub fn kill(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        let rest = self.rest();
        self.child.wait().unwrap();
        rest
    }

    /// Everything until it ends by itself.
    pub fn finish(mut self) -> (Vec<String>, ExitStatus) {
        let rest = self.rest();
        (rest, self.child.wait().unwrap())
    }

    fn rest(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.hear()).collect()
    }
}
