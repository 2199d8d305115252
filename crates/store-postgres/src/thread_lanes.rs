//! The lanes of threads: each has a connection, takes what is waiting, makes it one transaction, and answers each caller
//! when the commit is durable. A thread always takes the same lane. They connect when the first commit comes.

use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use runyard_store::threads::plan::PreparedCommit;
use runyard_store::{COMMIT_BYTES_MAX, Committed, StorageError, ThreadId};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::connection::Connector;
use crate::fault::{Failure, Remedy};
use crate::reconnect::Kept;
use crate::thread_group::{Settled, ThreadSession, Verdict};

/// How many lanes there are.
const LANES: usize = 4;
/// How many commits are made together at most.
const GROUP_COMMITS_MAX: usize = 256;
/// How many bytes are committed together at most, unless one commit has more.
const GROUP_BYTES_MAX: usize = 1024 * 1024;
/// How many KiB wait in a lane at most. Whoever comes then waits for room.
const WAITING_KIB_MAX: u32 = 64 * 1024;
/// How often a group is tried on connections that break before the commit.
const ATTEMPTS_MAX: u32 = 5;
pub(crate) const DOING: &str = "committing to a thread";

// The largest commit must find room, else it would wait for ever.
const _: () = assert!(COMMIT_BYTES_MAX / 1024 * 2 < WAITING_KIB_MAX as usize);

/// A commit that waits for its turn.
struct Waiting {
    prepared: PreparedCommit,
    answer: oneshot::Sender<Result<Committed, StorageError>>,
    _room: OwnedSemaphorePermit,
}

/// All lanes. Dropping it lets them finish what waits, and ends them.
pub(crate) struct ThreadLanes(Vec<Lane>);

struct Lane {
    queue: mpsc::UnboundedSender<Waiting>,
    room: Arc<Semaphore>,
}

impl ThreadLanes {
    pub(crate) fn start(connector: &Connector) -> Self {
        let lanes = (0..LANES).map(|_| {
            let (queue, waiting) = mpsc::unbounded_channel();
            tokio::spawn(Worker { kept: Kept::new(connector) }.run(waiting));
            Lane { queue, room: Arc::new(Semaphore::new(WAITING_KIB_MAX as usize)) }
        });
        ThreadLanes(lanes.collect())
    }

    /// Makes a commit; returns when it is durable.
    pub(crate) async fn commit(&self, prepared: PreparedCommit) -> Result<Committed, StorageError> {
        let append = prepared.append;
        let lane = &self.0[lane_of(&prepared.thread)];
        let kib = u32::try_from(prepared.size() / 1024 + 1).unwrap_or(u32::MAX).min(WAITING_KIB_MAX);
        let room = lane.room.clone().acquire_many_owned(kib).await;
        let room = room.map_err(|error| StorageError::io(DOING, error))?;
        let (answer, answered) = oneshot::channel();
        let sent = lane.queue.send(Waiting { prepared, answer, _room: room });
        sent.map_err(|_| StorageError::io(DOING, "the writer has ended"))?;
        // A lane that ends without an answer may have ended after the commit.
        answered.await.unwrap_or(Err(StorageError::unknown(append)))
    }
}

fn lane_of(thread: &ThreadId) -> usize {
    let mut hasher = DefaultHasher::new();
    thread.hash(&mut hasher);
    usize::try_from(hasher.finish() % LANES as u64).unwrap_or_default()
}

/// The task of a lane.
struct Worker {
    kept: Kept<ThreadSession>,
}

impl Worker {
    async fn run(mut self, mut queue: mpsc::UnboundedReceiver<Waiting>) {
        let mut carried = VecDeque::new();
        while let Some(group) = next_group(&mut queue, &mut carried).await {
            self.settle(group).await;
        }
    }

    /// Settles a group and answers.
    async fn settle(&mut self, group: Vec<Waiting>) {
        let failure = match self.attempt(&group).await {
            Ok(settled) => return answer(group, settled),
            Err(failure) => failure,
        };
        // Where the server is away, it is away for each of them.
        if group.len() > 1 && failure.remedy() != Remedy::Reconnect {
            // One of them makes the database refuse all: each for itself then.
            for waiting in group {
                Box::pin(self.settle(vec![waiting])).await;
            }
            return;
        }
        for waiting in group {
            // Whoever went away does not want the answer.
            let _ = waiting.answer.send(Err(failure.storage(DOING, self.kept.connector().place())));
        }
    }

    /// Tries until the group is settled or cannot be. Nothing is repeated that may have been committed.
    async fn attempt(&mut self, group: &[Waiting]) -> Result<Settled, Failure> {
        let commits: Vec<&PreparedCommit> = group.iter().map(|waiting| &waiting.prepared).collect();
        let mut attempt = 0;
        loop {
            attempt += 1;
            let session = self.kept.get().await?;
            let failure = match session.settle(&commits).await {
                Ok(settled) => {
                    if matches!(settled, Settled::Unknown(_)) {
                        self.kept.end();
                    }
                    return Ok(settled);
                }
                Err(failure) => failure,
            };
            let remedy = failure.remedy();
            if remedy == Remedy::Reconnect || session.roll_back().await.is_err() {
                self.kept.end();
            }
            if remedy == Remedy::None || attempt == ATTEMPTS_MAX {
                return Err(failure);
            }
            tracing::debug!(?failure, attempt, "a group of commits to threads is tried again");
        }
    }
}

fn answer(group: Vec<Waiting>, settled: Settled) {
    let (verdicts, is_known) = match settled {
        Settled::Known(verdicts) => (verdicts, true),
        Settled::Unknown(verdicts) => (verdicts, false),
    };
    for (waiting, verdict) in group.into_iter().zip(verdicts) {
        let answer = match verdict {
            Verdict::Written(committed) if is_known => Ok(committed),
            Verdict::Written(_) => Err(StorageError::unknown(waiting.prepared.append)),
            Verdict::Answered(answer) => answer,
        };
        let _ = waiting.answer.send(answer);
    }
}

/// Waits for a commit, and takes with it what else is waiting: of each thread and each run one. The others are carried to
/// the next group, in their order. Nothing more comes when all senders are gone.
async fn next_group(
    queue: &mut mpsc::UnboundedReceiver<Waiting>,
    carried: &mut VecDeque<Waiting>,
) -> Option<Vec<Waiting>> {
    let first = match carried.pop_front() {
        Some(first) => first,
        None => queue.recv().await?,
    };
    let mut bytes = first.prepared.size();
    let mut threads = HashSet::from([first.prepared.thread.clone()]);
    let mut runs = HashSet::from([first.prepared.run.clone()]);
    let mut group = vec![first];
    let mut aside = VecDeque::new();
    while group.len() < GROUP_COMMITS_MAX && aside.len() < GROUP_COMMITS_MAX && bytes < GROUP_BYTES_MAX {
        let Some(next) = carried.pop_front().or_else(|| queue.try_recv().ok()) else { break };
        let PreparedCommit { thread, run, .. } = &next.prepared;
        // Behind one that is set aside its thread's and its run's next ones are set aside too.
        if threads.insert(thread.clone()) & runs.insert(run.clone()) {
            bytes += next.prepared.size();
            group.push(next);
        } else {
            aside.push_back(next);
        }
    }
    aside.append(carried);
    *carried = aside;
    Some(group)
}
