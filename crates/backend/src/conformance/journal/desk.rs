//! Where the suite sits: a backend's place in a session, and a look at what is durable.

use std::sync::Arc;
use std::time::Duration;

use runyard_domain::ApprovalId;
use runyard_domain::gate::Request;
use runyard_domain::run::RunEvent;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::{Given, JournalBench};
use crate::{Answer, Command, Journal, JournalError, Signal};

/// So often is looked where nothing tells of a change.
const PAUSE: Duration = Duration::from_millis(5);

/// How often a journal that refused is asked again.
const AGAIN: usize = 3;

/// A backend's place in a session.
pub struct Desk<'a> {
    bench: &'a dyn JournalBench,
    pub journal: Arc<dyn Journal>,
    commands: mpsc::Receiver<Command>,
}

impl<'a> Desk<'a> {
    /// The run's first session, in its first turn.
    pub async fn begun(bench: &'a dyn JournalBench) -> Self {
        let desk = Desk::next(bench).await;
        let thread = Some("thread-1".to_owned());
        let ready =
            Signal::Status { phase: "ready".to_owned(), model: None, version: None, thread, usage: None };
        desk.recorded(vec![ready, Signal::TurnStarted { command: None }]).await;
        desk
    }

    /// The run's next session.
    pub async fn next(bench: &'a dyn JournalBench) -> Self {
        let given = timeout(bench.patience(), bench.session()).await;
        let Given { journal, commands } = given.expect("a session is opened");
        Desk { bench, journal, commands }
    }

    /// Records, and says what came of it.
    pub async fn record(&self, batch: Vec<Signal>) -> Result<(), JournalError> {
        let recording = timeout(self.bench.patience(), self.journal.record(batch));
        recording.await.expect("record returns")
    }

    /// Records what must be taken.
    #[track_caller]
    pub fn recorded(&self, batch: Vec<Signal>) -> impl Future<Output = ()> {
        let place = std::panic::Location::caller();
        async move { assert_eq!(self.record(batch).await, Ok(()), "at {place}") }
    }

    /// Begins to record.
    pub fn recording(&self, batch: Vec<Signal>) -> Recording {
        let journal = Arc::clone(&self.journal);
        let task = tokio::spawn(async move { journal.record(batch).await });
        Recording { task, patience: self.bench.patience(), vigil: self.bench.vigil() }
    }

    /// The next command, which is an answer to this request.
    #[track_caller]
    pub fn answer(&mut self, key: &str) -> impl Future<Output = Answer> {
        let place = std::panic::Location::caller();
        async move {
            match timeout(self.bench.patience(), self.commands.recv()).await {
                Ok(Some(Command::Answer { key: of, answer })) if of == key => answer,
                Ok(heard) => panic!("{key} is answered, at {place}: {heard:?}"),
                Err(_) => panic!("{key} is answered, at {place}: nothing was heard"),
            }
        }
    }

    /// Nothing is said to it for a while.
    pub async fn hears_nothing(&mut self, why: &str) {
        if let Ok(heard) = timeout(self.bench.vigil(), self.commands.recv()).await {
            panic!("{why}: {heard:?}");
        }
    }

    /// Nothing is said to it until its session is closed.
    pub async fn is_closed(&mut self) {
        let heard = timeout(self.bench.patience(), self.commands.recv()).await;
        assert_eq!(
            heard.expect("the session is closed"),
            None,
            "nothing is said to a session that is closed"
        );
    }

    /// The journal says this, and nothing else any more.
    pub async fn refuses_for_ever(&self, error: JournalError) {
        for number in 0..AGAIN {
            let refused = self.record(marks(&format!("late-{number}"), 1)).await;
            assert_eq!(refused, Err(error), "who was refused once is refused for ever");
        }
    }
}

/// A batch on its way.
pub struct Recording {
    task: JoinHandle<Result<(), JournalError>>,
    patience: Duration,
    vigil: Duration,
}

impl Recording {
    /// It is not answered for a while.
    pub async fn waits(&mut self, why: &str) {
        if let Ok(answered) = timeout(self.vigil, &mut self.task).await {
            panic!("{why}: record returned {answered:?}");
        }
    }

    /// What it is answered.
    pub async fn over(self) -> Result<(), JournalError> {
        timeout(self.patience, self.task).await.expect("record returns").expect("it does not panic")
    }

    /// Nobody waits for it any more.
    pub fn give_up(self) {
        self.task.abort();
    }
}

/// What is durable, as facts of the run.
pub async fn facts(bench: &dyn JournalBench) -> Vec<RunEvent> {
    let events = bench.durable().await.events;
    let fact = |event: &runyard_domain::Event| RunEvent::read(&event.kind, &event.payload);
    events.iter().map(|event| fact(event).expect("a stored event can be read")).collect()
}

/// Waits until this is true of what is durable.
pub(super) async fn until(bench: &dyn JournalBench, what: &str, done: impl Fn(&[RunEvent]) -> bool) {
    let waiting = async {
        while !done(&facts(bench).await) {
            sleep(PAUSE).await;
        }
    };
    if timeout(bench.patience(), waiting).await.is_err() {
        panic!("it never came about that {what}; durable is {:#?}", facts(bench).await);
    }
}

/// Signals that are found again one by one: `name.0`, `name.1`, …
pub(super) fn marks(name: &str, count: usize) -> Vec<Signal> {
    (0..count).map(|number| Signal::FileRead { path: format!("{name}.{number}") }).collect()
}

/// Those that are durable, in order.
pub(super) fn marked(facts: &[RunEvent]) -> Vec<String> {
    let paths = facts.iter().filter_map(|fact| match fact {
        RunEvent::FileRead(read) => Some(read.path.clone()),
        _ => None,
    });
    paths.collect()
}

/// What [`marks`] leaves behind.
pub(super) fn names(name: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{name}.{number}")).collect()
}

/// A request that a person must decide.
pub(super) fn risky(command: &str) -> Request {
    Request::Shell { command: command.to_owned(), cwd: ".".to_owned() }
}

pub(super) fn ask(key: &str, request: Request) -> Vec<Signal> {
    vec![Signal::Ask { key: key.to_owned(), request }]
}

/// The approvals that were ever asked for, with the requests' keys.
pub(super) fn asked(facts: &[RunEvent]) -> Vec<(ApprovalId, String)> {
    let asked = facts.iter().filter_map(|fact| match fact {
        RunEvent::ApprovalRequested(asked) => Some((asked.approval_id, asked.key.clone())),
        _ => None,
    });
    asked.collect()
}

/// The approval that this key asked for.
#[track_caller]
pub(super) fn approval(facts: &[RunEvent], key: &str) -> ApprovalId {
    let found = asked(facts).into_iter().find(|(_, of)| of == key);
    found.unwrap_or_else(|| panic!("{key} is not durable as a request: {facts:#?}")).0
}

/// The approvals that were handed to a backend.
pub(super) fn used(facts: &[RunEvent]) -> Vec<ApprovalId> {
    let used = facts.iter().filter_map(|fact| match fact {
        RunEvent::ApprovalUsed(used) => Some(used.approval_id),
        _ => None,
    });
    used.collect()
}
