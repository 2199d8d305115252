//! Group commit: what is waiting is written in one transaction, and each caller is answered when it is durable.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use runyard_store::{Live, StorageError};
use tokio::sync::mpsc;

use crate::errand::{Ending, Job};
use crate::fault::{Kind, Shared, translate_shared};
use crate::ledger::{CommitError, Ledger};
use crate::poison::Poison;

/// The most events that are committed together, unless one change alone has more.
pub(crate) const GROUP_EVENTS_MAX: usize = 256;
/// The most bytes that are committed together, unless one change alone has more.
const GROUP_BYTES_MAX: usize = 1024 * 1024;

const DOING: &str = "writing to the database";

/// The jobs of one group, in the order in which they came.
pub(crate) type Jobs = Vec<Box<dyn Job>>;

/// What the writer is sent.
pub(crate) enum Message {
    /// Something to do.
    Job(Box<dyn Job>),
    /// Nothing more is to be taken, and what waits is to be done.
    Close,
}

/// Takes what is waiting behind the first job, without waiting for more.
pub(crate) fn gather(
    first: Box<dyn Job>,
    waiting: &mut mpsc::Receiver<Message>,
    held: &mut Option<Message>,
    events_max: usize,
) -> Jobs {
    let (mut events, mut bytes) = first.weight();
    let mut jobs = vec![first];
    while events < events_max && bytes < GROUP_BYTES_MAX {
        match waiting.try_recv() {
            Ok(Message::Job(job)) => {
                let (more_events, more_bytes) = job.weight();
                (events, bytes) = (events + more_events, bytes + more_bytes);
                if events > events_max || bytes > GROUP_BYTES_MAX {
                    // It begins the next group instead.
                    *held = Some(Message::Job(job));
                    break;
                }
                jobs.push(job);
            }
            Ok(Message::Close) => {
                *held = Some(Message::Close);
                break;
            }
            Err(_) => break,
        }
    }
    jobs
}

/// Makes groups durable.
pub(crate) struct Committer {
    pub(crate) ledger: Ledger,
    pub(crate) live: Arc<Live>,
    pub(crate) poison: Arc<Poison>,
    /// How many groups were committed.
    pub(crate) commits: Arc<AtomicU64>,
    /// The database's name.
    pub(crate) name: String,
}

/// Why a group was not committed.
enum Failure {
    /// Nothing of it is or will be in the database.
    TakenBack(Shared),
    /// Nothing is known about it; going on is fine.
    Unknown(Shared),
    /// Nothing can be known about anything any more.
    Fatal(Shared),
}

impl Committer {
    /// Commits the jobs together and answers whoever asked.
    pub(crate) fn settle(&mut self, mut jobs: Jobs) {
        if self.poison.is_set() {
            return settle_all(jobs, &Ending::Failed(&|| StorageError::Poisoned));
        }
        match self.commit(&mut jobs) {
            // A checkpoint beside this may have failed meanwhile, and after that nothing is acknowledged.
            Ok(()) if self.poison.is_set() => {
                settle_all(jobs, &Ending::Unknown(&|| StorageError::Poisoned));
            }
            Ok(()) => settle_all(jobs, &Ending::Durable(&self.live)),
            // The damage may concern one of them alone.
            Err(Failure::TakenBack(error)) if error.kind() == Kind::Corrupt && jobs.len() > 1 => {
                jobs.into_iter().for_each(|job| self.settle(vec![job]));
            }
            Err(Failure::TakenBack(error)) => {
                settle_all(jobs, &Ending::Failed(&|| translate_shared(DOING, &self.name, &error)));
            }
            Err(Failure::Unknown(error)) => {
                settle_all(jobs, &Ending::Unknown(&|| translate_shared(DOING, &self.name, &error)));
            }
            Err(Failure::Fatal(error)) => {
                // First of all, so that nobody is told anything else from here on.
                self.poison.set();
                settle_all(jobs, &Ending::Unknown(&|| StorageError::Poisoned));
                self.poison.end(&error.to_string());
            }
        }
    }

    fn commit(&mut self, jobs: &mut Jobs) -> Result<(), Failure> {
        if let Err(error) = self.write(jobs) {
            return Err(self.taken_back(error));
        }
        match self.ledger.commit() {
            Ok(()) => {
                self.commits.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            Err(CommitError::Before(error)) => Err(self.taken_back(error)),
            Err(CommitError::AtCommit(error)) => {
                let failure = self.taken_back(error);
                Err(match failure {
                    // The last page, which alone makes a commit, was not written.
                    Failure::TakenBack(error) if error.kind() == Kind::Full => Failure::TakenBack(error),
                    Failure::TakenBack(error) => Failure::Unknown(error),
                    other => other,
                })
            }
        }
    }

    fn write(&mut self, jobs: &mut Jobs) -> rusqlite::Result<()> {
        self.ledger.begin()?;
        jobs.iter_mut().try_for_each(|job| job.run(&mut self.ledger))
    }

    fn taken_back(&mut self, error: rusqlite::Error) -> Failure {
        let is_clean = self.ledger.roll_back();
        let error = Shared::new(error);
        if error.kind() == Kind::Unsynced || !is_clean {
            return Failure::Fatal(error);
        }
        Failure::TakenBack(error)
    }
}

fn settle_all(jobs: Jobs, ending: &Ending<'_>) {
    jobs.into_iter().for_each(|job| job.settle(ending));
}
