//! A codex that plays a script: acts as data, over pipes in memory, so that time can stand still while it waits.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use runyard_adapters::codex::{CODEX_KIND, CodexBackend};
use runyard_backend::conformance::{Recorder, Unchanged, check_order};
use runyard_backend::{
    Access, Answer, Backend, BackendError, Command, Custody, Ending, Exit, Launch, Process, ProcessError,
    Processes, Session, SessionSpec, Signal, Start,
};
use runyard_domain::run::Task;
use runyard_domain::{BackendProfile, ExecutionPolicy, RunId};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex};
use tokio::task::JoinHandle;

/// How much fits into a pipe.
const PIPE_BYTES: usize = 64 * 1024;
/// How long a test waits at most; where time stands still that is no time at all.
const PATIENCE: Duration = Duration::from_secs(600);

/// One thing that the scripted codex does.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Waits for the next message, which must be of this method.
    Hear(&'static str),
    /// Waits for the next message, which must be this answer to a request of its own.
    HearAnswer(Value),
    /// Waits for the next message, whatever it is.
    HearAny,
    /// Answers the request that it heard last.
    Reply(Value),
    /// The same with an error.
    Refuse(i64, &'static str),
    /// Says something.
    Say(Value),
    /// Says these bytes, as they are.
    Bytes(Vec<u8>),
    /// Says something on standard error.
    Complain(&'static str),
    /// Ends with this code.
    Exit(i32),
}

/// A notification about the thread and its first turn.
pub(crate) fn note(method: &str, mut params: Value) -> Act {
    params["threadId"] = "thread-1".into();
    Act::Say(json!({ "method": method, "params": params, "emittedAtMs": 1 }))
}

/// It opens a thread.
pub(crate) fn opened() -> Vec<Act> {
    opened_in("dangerFullAccess")
}

/// The same in this sandbox.
pub(crate) fn opened_in(sandbox: &str) -> Vec<Act> {
    let thread = json!({ "id": "thread-1", "cliVersion": "0.166.0" });
    let answer = json!({
        "thread": thread, "model": "demo", "approvalPolicy": "untrusted", "sandbox": { "type": sandbox },
    });
    vec![
        Act::Hear("initialize"),
        Act::Reply(json!({ "userAgent": "scripted" })),
        Act::Hear("initialized"),
        Act::Hear("thread/start"),
        Act::Reply(answer),
    ]
}

/// It begins a turn.
pub(crate) fn turn(id: &str) -> Vec<Act> {
    vec![Act::Hear("turn/start"), Act::Reply(json!({ "turn": { "id": id, "status": "inProgress" } }))]
}

/// It ends a turn.
pub(crate) fn ended(id: &str, status: &str) -> Act {
    note("turn/completed", json!({ "turn": { "id": id, "status": status, "error": null } }))
}

/// It says a message.
pub(crate) fn message(text: &str) -> Vec<Act> {
    let item = |text: &str| json!({ "item": { "type": "agentMessage", "id": "m", "text": text } });
    vec![
        note("item/started", item("")),
        note("item/agentMessage/delta", json!({ "itemId": "m", "delta": text })),
        note("item/completed", item(text)),
    ]
}

/// Its turn fails.
pub(crate) fn failed(id: &str, message: &str, info: &Value) -> Vec<Act> {
    let error = json!({ "message": message, "codexErrorInfo": info, "additionalDetails": null });
    vec![
        note("error", json!({ "error": error, "willRetry": false })),
        note("turn/completed", json!({ "turn": { "id": id, "status": "failed", "error": error } })),
    ]
}

/// Everything that was said to codex.
pub(crate) type Heard = Arc<Mutex<Vec<Value>>>;

/// A run with a codex that plays a script.
pub(crate) struct Scene {
    pub(crate) root: tempfile::TempDir,
    pub(crate) profile: BackendProfile,
    pub(crate) access: Access,
    pub(crate) policy: ExecutionPolicy,
    pub(crate) confined: bool,
    /// What was started.
    pub(crate) launches: Arc<Mutex<Vec<Launch>>>,
    /// What codex heard.
    pub(crate) heard: Heard,
    acts: Vec<Act>,
}

impl Scene {
    pub(crate) fn new(acts: Vec<Act>) -> Self {
        let profile = BackendProfile {
            profile: "codex".to_owned(),
            backend_kind: CODEX_KIND.to_owned(),
            command: vec!["/bin/true".to_owned()],
            ..BackendProfile::default()
        };
        let root = tempfile::tempdir().unwrap();
        Scene {
            root,
            profile,
            access: Access::Open,
            policy: ExecutionPolicy::default(),
            confined: false,
            launches: Arc::default(),
            heard: Arc::default(),
            acts,
        }
    }

    /// The home of codex.
    pub(crate) fn home(&self) -> PathBuf {
        self.root.path().join("home/codex")
    }

    pub(crate) async fn open(&self) -> Result<Playing, BackendError> {
        self.open_at(Start::Fresh {
            task: Task::Text { text: "hello".to_owned(), redacted: false },
            thread: None,
        })
        .await
    }

    pub(crate) async fn open_at(&self, start: Start) -> Result<Playing, BackendError> {
        let processes = Script {
            acts: self.acts.clone(),
            launches: Arc::clone(&self.launches),
            heard: Arc::clone(&self.heard),
        };
        let spec = SessionSpec {
            run: RunId::from_bytes([7; 16]),
            profile: self.profile.clone(),
            start,
            history: Vec::new(),
            left: None,
            redaction: Arc::new(Unchanged),
            sight: Arc::new(Unchanged),
            directory: self.root.path().to_owned(),
            home: self.root.path().join("home"),
            notes: self.root.path().join("notes"),
            policy: self.policy.clone(),
            access: self.access.clone(),
            confined: self.confined,
            environment: BTreeMap::from([("PATH".to_owned(), "/bin".to_owned())]),
            processes: Arc::new(processes),
        };
        let recorder = Recorder::new();
        let session = CodexBackend::new().open(spec, recorder.clone()).await?;
        Ok(Playing { session, recorder })
    }

    /// Everything that is said until the session is over by itself, or its turn is; whatever is asked is approved.
    pub(crate) async fn played(&self) -> Vec<Signal> {
        let playing = self.open().await.unwrap();
        let mut answered = 0;
        loop {
            let signals = playing
                .until("a turn or the session is over, or something is asked", |signals| {
                    asks(signals).count() > answered || signals.iter().any(over)
                })
                .await;
            if signals.iter().any(over) {
                return playing.close().await;
            }
            for key in asks(&signals).skip(answered) {
                playing.answer(key, true).await;
            }
            answered = asks(&signals).count();
        }
    }
}

fn over(signal: &Signal) -> bool {
    matches!(signal, Signal::TurnEnded { .. } | Signal::Ended { .. })
}

pub(crate) fn asks(signals: &[Signal]) -> impl Iterator<Item = &str> {
    signals.iter().filter_map(|signal| match signal {
        Signal::Ask { key, .. } => Some(key.as_str()),
        _ => None,
    })
}

/// How it came to its end.
#[track_caller]
pub(crate) fn ending(signals: &[Signal]) -> &Ending {
    match signals.last() {
        Some(Signal::Ended { ending }) => ending,
        _ => panic!("it comes to its end: {signals:#?}"),
    }
}

/// A session that is open.
pub(crate) struct Playing {
    session: Session,
    recorder: Arc<Recorder>,
}

impl Playing {
    /// Waits until something is true of what was said.
    pub(crate) async fn until(&self, what: &str, done: impl Fn(&[Signal]) -> bool) -> Vec<Signal> {
        let mut changes = self.recorder.changes();
        let waiting = async {
            loop {
                let signals = self.recorder.signals();
                if done(&signals) {
                    return signals;
                }
                changes.changed().await.unwrap();
            }
        };
        match tokio::time::timeout(PATIENCE, waiting).await {
            Ok(signals) => signals,
            Err(_) => panic!("it never came about that {what}: {:#?}", self.recorder.signals()),
        }
    }

    pub(crate) async fn send(&self, command: Command) {
        // One that has come to its end does not hear it.
        let (Ok(()) | Err(_)) = self.session.commands.send(command).await;
    }

    pub(crate) async fn answer(&self, key: &str, approved: bool) {
        let answer = Answer { approved, reason: None, answer: None };
        self.send(Command::Answer { key: key.to_owned(), answer }).await;
    }

    /// Closes it, and gives everything that was said.
    pub(crate) async fn close(self) -> Vec<Signal> {
        drop(self.session.commands);
        self.session.task.await.unwrap();
        let signals = self.recorder.signals();
        assert_eq!(self.recorder.violations(), [""; 0]);
        if !signals.iter().any(|signal| matches!(signal, Signal::Raw { .. })) {
            check_order(&signals, false);
        }
        signals
    }
}

/// Starts a codex that plays these acts.
struct Script {
    acts: Vec<Act>,
    launches: Arc<Mutex<Vec<Launch>>>,
    heard: Heard,
}

#[async_trait]
impl Processes for Script {
    async fn start(&self, launch: Launch) -> Result<Process, ProcessError> {
        self.launches.lock().unwrap().push(launch);
        let (stdin, ear) = duplex(PIPE_BYTES);
        let (mouth, stdout) = duplex(PIPE_BYTES);
        let (complaints, stderr) = duplex(PIPE_BYTES);
        let (ear, all) = (BufReader::new(ear), Arc::clone(&self.heard));
        let player = Player { ear, mouth, complaints, heard: Value::Null, all };
        let task = tokio::spawn(player.play(self.acts.clone()));
        Ok(Process {
            stdin: Some(Box::pin(stdin)),
            stdout: Some(Box::pin(stdout)),
            stderr: Some(Box::pin(stderr)),
            custody: Box::new(Held(task)),
        })
    }
}

struct Held(JoinHandle<i32>);

#[async_trait]
impl Custody for Held {
    async fn wait(&mut self) -> Result<Exit, ProcessError> {
        Ok((&mut self.0).await.map_or(Exit::Signal(15), Exit::Code))
    }

    async fn stop(&mut self) -> Result<Exit, ProcessError> {
        self.0.abort();
        self.wait().await
    }
}

struct Player {
    ear: BufReader<DuplexStream>,
    mouth: DuplexStream,
    complaints: DuplexStream,
    /// What it heard last.
    heard: Value,
    all: Heard,
}

impl Player {
    async fn play(mut self, acts: Vec<Act>) -> i32 {
        for act in acts {
            let id = self.heard["id"].clone();
            let said = match act {
                Act::Hear(method) => {
                    self.hear().await;
                    let expected = self.heard["method"] == method;
                    if expected {
                        Ok(())
                    } else {
                        self.complain(&format!("{} is no {method}", self.heard)).await
                    }
                }
                Act::HearAnswer(answer) => {
                    self.hear().await;
                    let expected = self.heard == answer;
                    if expected {
                        Ok(())
                    } else {
                        self.complain(&format!("{} is not {answer}", self.heard)).await
                    }
                }
                Act::HearAny => {
                    self.hear().await;
                    Ok(())
                }
                Act::Reply(result) => self.say(&json!({ "id": id, "result": result })).await,
                Act::Refuse(code, message) => {
                    self.say(&json!({ "id": id, "error": { "code": code, "message": message } })).await
                }
                Act::Say(message) => self.say(&message).await,
                Act::Bytes(bytes) => self.mouth.write_all(&bytes).await,
                Act::Complain(text) => self.complaints.write_all(text.as_bytes()).await,
                Act::Exit(code) => return code,
            };
            if said.is_err() {
                return 9;
            }
        }
        // It stays until nobody speaks to it any more.
        while self.hear().await {}
        0
    }

    async fn hear(&mut self) -> bool {
        let mut line = String::new();
        let read = self.ear.read_line(&mut line).await;
        self.heard = serde_json::from_str(&line).unwrap_or_default();
        self.all.lock().unwrap().push(self.heard.clone());
        matches!(read, Ok(1..))
    }

    async fn say(&mut self, message: &Value) -> std::io::Result<()> {
        self.mouth.write_all(format!("{message}\n").as_bytes()).await
    }

    /// Says what was wrong, and ends.
    async fn complain(&mut self, what: &str) -> std::io::Result<()> {
        self.complaints.write_all(what.as_bytes()).await?;
        Err(std::io::ErrorKind::InvalidInput.into())
    }
}
