//! Where a scene is played: directories of its own, plain processes, and a hand that answers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use runyard_domain::run::ThreadRecorded;
use runyard_domain::{CommandId, ExecutionPolicy, RunId};
use serde_json::Value;
use tokio::time::{sleep, timeout};

use super::{Bench, Part, PlainProcesses, Recorder, check_order};
use crate::{Access, Answer, Command, Redaction, Session, SessionSpec, Sight, Signal, Start};

/// So often is looked where nothing tells of a change.
const PAUSE: Duration = Duration::from_millis(5);

/// Directories and processes of one scene.
pub struct Stage {
    root: tempfile::TempDir,
    pub processes: Arc<PlainProcesses>,
    pub run: RunId,
    patience: Duration,
    vigil: Duration,
    /// Where its sessions recorded, in their order: together they are the log.
    recorders: Mutex<Vec<Arc<Recorder>>>,
}

/// What is answered to whatever a backend asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decide {
    Approve,
    Deny,
    /// Nothing is answered.
    Wait,
}

impl Stage {
    pub fn new(bench: &dyn Bench) -> Self {
        let root = tempfile::tempdir().expect("a temporary directory");
        for folder in ["checkout", "home"] {
            std::fs::create_dir(root.path().join(folder)).expect("a directory in it");
        }
        // A run of its own: what is kept for a run must not reach another scene.
        static SCENES: AtomicU64 = AtomicU64::new(1_700_000_000_000);
        let run = RunId::from_parts(SCENES.fetch_add(1, Ordering::Relaxed), &[7; 10]);
        Stage {
            root,
            processes: Arc::default(),
            run,
            patience: bench.patience(),
            vigil: bench.vigil(),
            recorders: Mutex::default(),
        }
    }

    /// The run's checkout.
    pub fn directory(&self) -> PathBuf {
        self.root.path().join("checkout")
    }

    /// The file that a step adds a line to.
    pub fn marker(&self) -> PathBuf {
        self.directory().join("marker")
    }

    /// How often a step was done.
    pub fn marks(&self) -> usize {
        self.lines().len()
    }

    fn lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.marker()).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Looks for a while, and gives how often a step was done by then: what is to be shown here is that nothing happens.
    pub async fn marks_after_a_while(&self) -> usize {
        let marked = async {
            while self.marks() == 0 {
                sleep(PAUSE).await;
            }
        };
        let (Ok(()) | Err(_)) = timeout(self.vigil, marked).await;
        self.marks()
    }

    /// Waits until a step was done so often.
    pub async fn marked(&self, times: usize) {
        self.wait("the step was done", || self.marks() >= times).await;
    }

    /// Waits until none of the processes that left a mark is there.
    pub async fn steps_are_gone(&self) {
        let pids: Vec<u32> = self.lines().iter().filter_map(|line| line.parse().ok()).collect();
        // One that has ended and was not collected yet is gone, too.
        let gone = |pid: &u32| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_none_or(|(_, state)| state.starts_with('Z'))
        };
        self.wait("the step's process is gone", || pids.iter().all(gone)).await;
    }

    /// Waits until no process is left.
    pub async fn is_empty(&self) {
        self.wait("no process is left", || self.processes.left() == 0).await;
        self.steps_are_gone().await;
    }

    async fn wait(&self, what: &str, mut done: impl FnMut() -> bool) {
        let waiting = async {
            while !done() {
                sleep(PAUSE).await;
            }
        };
        timeout(self.patience, waiting).await.unwrap_or_else(|_| panic!("it never came about that {what}"));
    }

    /// Opens a session with the part's task, afresh.
    pub async fn fresh(&self, bench: &dyn Bench, part: &Part, recorder: &Arc<Recorder>) -> Live {
        let start = Start::Fresh { task: part.task.clone(), thread: None };
        self.open(bench, part, start, recorder).await
    }

    /// What a session is given.
    pub fn spec(&self, part: &Part, start: Start) -> SessionSpec {
        let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".to_owned());
        let home = self.root.path().join("home");
        // As an edge says it: a login shell reads nothing of whoever runs the tests.
        let own = home.to_string_lossy().into_owned();
        SessionSpec {
            run: self.run,
            profile: part.profile.clone(),
            start,
            history: Vec::new(),
            left: None,
            redaction: Arc::new(Unchanged),
            sight: Arc::new(Unchanged),
            directory: self.directory(),
            home,
            notes: self.root.path().join("notes"),
            policy: ExecutionPolicy::default(),
            access: Access::Open,
            confined: false,
            environment: BTreeMap::from([("PATH".to_owned(), path), ("HOME".to_owned(), own)]),
            processes: self.processes.clone(),
        }
    }

    /// What was recorded of the conversation so far.
    fn history(&self, next: &Arc<Recorder>) -> Vec<ThreadRecorded> {
        let mut recorders = self.recorders.lock().expect("nobody panicked while it was held");
        let signals: Vec<Signal> = recorders.iter().flat_map(|recorder| recorder.signals()).collect();
        recorders.push(Arc::clone(next));
        let recorded = signals.into_iter().filter_map(|signal| match signal {
            Signal::Thread(recorded) => Some(recorded),
            _ => None,
        });
        recorded.collect()
    }

    /// Opens a session.
    pub async fn open(&self, bench: &dyn Bench, part: &Part, start: Start, recorder: &Arc<Recorder>) -> Live {
        let spec = SessionSpec { history: self.history(recorder), ..self.spec(part, start) };
        self.play(bench, spec, recorder).await
    }

    /// Opens a session with what it is given.
    pub async fn play(&self, bench: &dyn Bench, spec: SessionSpec, recorder: &Arc<Recorder>) -> Live {
        let turn_active = matches!(spec.start, Start::Resume { turn_active: true, .. });
        let session = bench.backend().open(spec, recorder.clone()).await.expect("the session opens");
        let recorder = Arc::clone(recorder);
        Live { session, recorder, answered: BTreeSet::new(), patience: self.patience, turn_active }
    }
}

/// Takes nothing out: what a suite records holds no secret.
pub struct Unchanged;

impl Redaction for Unchanged {
    fn content(&self, text: &str) -> String {
        text.to_owned()
    }

    fn arguments(&self, arguments: Value) -> Value {
        arguments
    }
}

impl Sight for Unchanged {
    fn may_read(&self, _: &str) -> bool {
        true
    }
}

/// A live session under test.
pub struct Live {
    pub session: Session,
    pub recorder: Arc<Recorder>,
    answered: BTreeSet<String>,
    patience: Duration,
    turn_active: bool,
}

impl Live {
    /// Answers what is asked until something is true of what is recorded.
    pub async fn until(&mut self, decide: Decide, what: &str, done: impl Fn(&[Signal], &Recorder) -> bool) {
        let patience = self.patience;
        let recorder = Arc::clone(&self.recorder);
        let waiting = async {
            let mut changes = recorder.changes();
            loop {
                let signals = recorder.signals();
                if done(&signals, &recorder) {
                    return;
                }
                self.answer(&signals, decide).await;
                changes.changed().await.expect("the recorder lives");
            }
        };
        if timeout(patience, waiting).await.is_err() {
            panic!("it never came about that {what}; recorded is {:#?}", recorder.signals());
        }
    }

    async fn answer(&mut self, signals: &[Signal], decide: Decide) {
        if decide == Decide::Wait {
            return;
        }
        let approved = decide == Decide::Approve;
        for signal in signals {
            if let Signal::Ask { key, .. } = signal
                && self.answered.insert(key.clone())
            {
                let reason = (!approved).then(|| "the suite says no".to_owned());
                let answer = Answer { approved, reason, answer: None };
                self.send(Command::Answer { key: key.clone(), answer }).await;
            }
        }
    }

    /// Until the turn with this number, from 1 on, is over.
    pub async fn turn_over(&mut self, decide: Decide, turns: usize) {
        self.until(decide, "the turn ends", |signals, _| turns_over(signals) >= turns || ended(signals))
            .await;
    }

    /// Until something is asked.
    pub async fn asked(&mut self) {
        let asks = |signal: &Signal| matches!(signal, Signal::Ask { .. });
        self.until(Decide::Wait, "something is asked", |signals, _| signals.iter().any(asks)).await;
    }

    /// Until a batch waits for its answer, or the turn is over without.
    pub async fn held(&mut self, decide: Decide) -> bool {
        self.until(decide, "a batch is held", |signals, recorder| {
            recorder.is_held() || turns_over(signals) > 0 || ended(signals)
        })
        .await;
        self.recorder.is_held()
    }

    /// A command, which a session that has come to its end does not hear.
    pub async fn send(&self, command: Command) {
        let sent = timeout(self.patience, self.session.commands.send(command)).await;
        let (Ok(()) | Err(_)) = sent.expect("the session hears commands");
    }

    /// Interrupts the turn.
    pub async fn interrupt(&self) {
        self.send(Command::Interrupt { id: CommandId::from_bytes([9; 16]) }).await;
    }

    /// Waits until the session has come to its end by itself.
    pub async fn over(self) {
        let Live { session, recorder, patience, turn_active, .. } = self;
        let commands = session.commands;
        let ended = timeout(patience, session.task).await;
        ended.expect("the session stops, and its task ends").expect("its task does not panic");
        drop(commands);
        settle(&recorder, turn_active);
    }

    /// Closes the session, and waits until its task has ended.
    pub async fn close(self) {
        let Live { session, recorder, patience, turn_active, .. } = self;
        drop(session.commands);
        let ended = timeout(patience, session.task).await;
        ended.expect("the session is closed, and its task ends").expect("its task does not panic");
        settle(&recorder, turn_active);
    }

    /// Ends the session as the death of its process would.
    pub async fn kill(self) {
        self.session.task.abort();
        let (Ok(()) | Err(_)) = self.session.task.await;
    }
}

#[track_caller]
fn settle(recorder: &Recorder, turn_active: bool) {
    assert_eq!(recorder.violations(), Vec::<&str>::new());
    check_order(&recorder.signals(), turn_active);
}

pub(super) fn turns_over(signals: &[Signal]) -> usize {
    signals.iter().filter(|signal| matches!(signal, Signal::TurnEnded { .. })).count()
}

pub(super) fn ended(signals: &[Signal]) -> bool {
    matches!(signals.last(), Some(Signal::Ended { .. }))
}
