//! What the writer is asked to do: a change of a run, or an errand beside the runs' logs.

use runyard_domain::RunId;
use runyard_store::plan::{PlannedEvent, Prepared};
use runyard_store::{Appended, Live, LoggedEvent, StorageError};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::append::Written;
use crate::fault::Trouble;
use crate::ledger::Ledger;

/// About how many bytes an errand writes.
const ERRAND_BYTES: usize = 256;

/// Something that the writer does as a part of a group.
pub(crate) trait Job: Send {
    /// How many events and bytes it adds to its group.
    fn weight(&self) -> (usize, usize);

    /// Does it in the open transaction. That it may not be done is an outcome too; an error is the database's. It may be
    /// asked again, when the transaction was taken back.
    fn run(&mut self, ledger: &mut Ledger) -> rusqlite::Result<()>;

    /// Answers whoever asked.
    fn settle(self: Box<Self>, ending: &Ending<'_>);
}

/// How a group ended.
pub(crate) enum Ending<'a> {
    /// It is durable.
    Durable(&'a Live),
    /// Nothing of it was written, now or later.
    Failed(&'a dyn Fn() -> StorageError),
    /// It may be durable or not.
    Unknown(&'a dyn Fn() -> StorageError),
}

/// A change of a run.
pub(crate) struct AppendJob {
    prepared: Prepared,
    /// Its share of the memory that waiting changes may take.
    _room: OwnedSemaphorePermit,
    outcome: Option<Result<Written, StorageError>>,
    answer: oneshot::Sender<AppendAnswer>,
}

/// The answer to a change. With it comes back what the change was made of, so that its memory is freed by whoever asked and
/// not by the writer.
pub(crate) struct AppendAnswer {
    pub(crate) appended: Result<Appended, StorageError>,
    _spent: (Prepared, Vec<PlannedEvent>),
}

impl AppendJob {
    pub(crate) fn answered(
        prepared: Prepared,
        room: OwnedSemaphorePermit,
    ) -> (Box<dyn Job>, oneshot::Receiver<AppendAnswer>) {
        let (answer, answered) = oneshot::channel();
        (Box::new(AppendJob { prepared, _room: room, outcome: None, answer }), answered)
    }
}

impl Job for AppendJob {
    fn weight(&self) -> (usize, usize) {
        (self.prepared.events(), self.prepared.size())
    }

    fn run(&mut self, ledger: &mut Ledger) -> rusqlite::Result<()> {
        let now = ledger.now();
        self.outcome = outcome(ledger.append(&mut self.prepared, now))?;
        Ok(())
    }

    fn settle(self: Box<Self>, ending: &Ending<'_>) {
        let append = self.prepared.append;
        let mut events = Vec::new();
        let appended = match (ending, self.outcome) {
            (Ending::Durable(live), Some(Ok(written))) => {
                publish(live, self.prepared.run, &written.events);
                events = written.events;
                Ok(written.appended)
            }
            (Ending::Durable(_), Some(Err(error))) => Err(error),
            (Ending::Failed(error), _) => Err(error()),
            // What was refused was not written, whatever became of the rest.
            (Ending::Unknown(error), Some(Err(_))) => Err(error()),
            (Ending::Unknown(_) | Ending::Durable(_), _) => Err(StorageError::unknown(append)),
        };
        // Whoever went away does not undo the change.
        let _ = self.answer.send(AppendAnswer { appended, _spent: (self.prepared, events) });
    }
}

fn publish(live: &Live, run: RunId, events: &[PlannedEvent]) {
    if events.is_empty() {
        return;
    }
    if live.is_followed(run) {
        let logged =
            |event: &PlannedEvent| LoggedEvent { sequence: event.sequence, body: event.body[..].into() };
        live.publish(run, &events.iter().map(logged).collect::<Vec<_>>());
    } else {
        live.wake_feed();
    }
}

/// Anything else: `work` in the transaction, and `after` once it is durable, before the next group begins.
pub(crate) struct Errand<T, W, A> {
    work: W,
    after: A,
    outcome: Option<Result<T, StorageError>>,
    answer: oneshot::Sender<Result<T, StorageError>>,
}

impl<T, W, A> Errand<T, W, A>
where
    T: Send + 'static,
    W: FnMut(&mut Ledger) -> Result<T, Trouble> + Send + 'static,
    A: FnOnce(&T) + Send + 'static,
{
    pub(crate) fn answered(work: W, after: A) -> (Box<dyn Job>, oneshot::Receiver<Result<T, StorageError>>) {
        let (answer, answered) = oneshot::channel();
        (Box::new(Errand { work, after, outcome: None, answer }), answered)
    }
}

impl<T, W, A> Job for Errand<T, W, A>
where
    T: Send + 'static,
    W: FnMut(&mut Ledger) -> Result<T, Trouble> + Send + 'static,
    A: FnOnce(&T) + Send + 'static,
{
    fn weight(&self) -> (usize, usize) {
        (1, ERRAND_BYTES)
    }

    fn run(&mut self, ledger: &mut Ledger) -> rusqlite::Result<()> {
        self.outcome = outcome(ledger.in_savepoint(&mut self.work))?;
        Ok(())
    }

    fn settle(self: Box<Self>, ending: &Ending<'_>) {
        let answer = match (ending, self.outcome) {
            (Ending::Durable(_), Some(outcome)) => outcome,
            (Ending::Failed(error) | Ending::Unknown(error), _) => Err(error()),
            (Ending::Durable(_), None) => return,
        };
        if let Ok(done) = &answer {
            (self.after)(done);
        }
        let _ = self.answer.send(answer);
    }
}

pub(crate) fn outcome<T>(done: Result<T, Trouble>) -> rusqlite::Result<Option<Result<T, StorageError>>> {
    match done {
        Ok(done) => Ok(Some(Ok(done))),
        Err(Trouble::Refused(error)) => Ok(Some(Err(error))),
        Err(Trouble::Database(error)) => Err(error),
    }
}
