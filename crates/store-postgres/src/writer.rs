//! The lanes: each has a connection, takes what is waiting, makes it one transaction, and answers each caller when the
//! commit is durable. A run always takes the same lane, so its changes are made in the order in which they came.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use runyard_domain::RunId;
use runyard_store::plan::{CHANGE_BYTES_MAX, Prepared};
use runyard_store::{Appended, Change, Live, StorageError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::connection::Connector;
use crate::fault::{Failure, Remedy};
use crate::group::{Session, Settled, Verdict};
use crate::notices::Notices;
use crate::reconnect::Kept;
use crate::writes::Writes;

/// How many lanes there are.
const LANES: usize = 4;
/// How many events are committed together at most, unless one change has more.
const GROUP_EVENTS_MAX: usize = 256;
/// How many bytes are committed together at most, unless one change has more.
const GROUP_BYTES_MAX: usize = 1024 * 1024;
/// How many KiB wait in a lane at most. Whoever comes then waits for room.
const WAITING_KIB_MAX: u32 = 64 * 1024;
/// How often a group is tried on connections that break before the commit.
const ATTEMPTS_MAX: u32 = 5;
pub(crate) const DOING: &str = "writing to the log";

// The largest change must find room, else it would wait for ever.
const _: () = assert!(CHANGE_BYTES_MAX / 1024 * 2 < WAITING_KIB_MAX as usize);

/// A change that waits for its turn.
struct Waiting {
    prepared: Prepared,
    answer: oneshot::Sender<Result<Appended, StorageError>>,
    _room: OwnedSemaphorePermit,
}

/// All lanes. Dropping it lets them finish what waits, and ends them.
pub(crate) struct Lanes(Vec<Lane>);

struct Lane {
    queue: mpsc::UnboundedSender<Waiting>,
    room: Arc<Semaphore>,
}

impl Lanes {
    pub(crate) fn start(connector: &Connector, live: &Arc<Live>, notices: &Arc<Notices>) -> Self {
        let lanes = (0..LANES).map(|_| {
            let (queue, waiting) = mpsc::unbounded_channel();
            let worker = Worker { kept: Kept::new(connector), live: live.clone(), notices: notices.clone() };
            tokio::spawn(worker.run(waiting));
            Lane { queue, room: Arc::new(Semaphore::new(WAITING_KIB_MAX as usize)) }
        });
        Lanes(lanes.collect())
    }

    /// Makes a change; returns when it is durable.
    pub(crate) async fn append(&self, change: Change) -> Result<Appended, StorageError> {
        let prepared = change.prepare()?;
        let append = prepared.append;
        let lane = &self.0[lane_of(prepared.run)];
        let kib = u32::try_from(prepared.size() / 1024 + 1).unwrap_or(u32::MAX).min(WAITING_KIB_MAX);
        // Those who wait for room get it in the order in which they came.
        let room = lane.room.clone().acquire_many_owned(kib).await;
        let room = room.map_err(|error| StorageError::io(DOING, error))?;
        let (answer, answered) = oneshot::channel();
        let sent = lane.queue.send(Waiting { prepared, answer, _room: room });
        sent.map_err(|_| StorageError::io(DOING, "the writer has ended"))?;
        // A lane that ends without an answer may have ended after the commit.
        answered.await.unwrap_or(Err(StorageError::unknown(append)))
    }
}

fn lane_of(run: RunId) -> usize {
    let mut hasher = DefaultHasher::new();
    run.hash(&mut hasher);
    usize::try_from(hasher.finish() % LANES as u64).unwrap_or_default()
}

/// The task of a lane.
struct Worker {
    kept: Kept<Session>,
    live: Arc<Live>,
    notices: Arc<Notices>,
}

impl Worker {
    async fn run(mut self, mut queue: mpsc::UnboundedReceiver<Waiting>) {
        let mut carried = VecDeque::new();
        while let Some(group) = next_group(&mut queue, &mut carried).await {
            // What has to be judged anew comes before whatever came after it.
            let again = self.settle(group).await;
            again.into_iter().rev().for_each(|waiting| carried.push_front(waiting));
        }
    }

    /// Settles a group and answers; gives back what has to be judged anew.
    async fn settle(&mut self, mut group: Vec<Waiting>) -> Vec<Waiting> {
        let failure = match self.attempt(&mut group).await {
            Ok(settled) => return self.answer(group, settled),
            Err(failure) => failure,
        };
        // Where the server is away, it is away for each of them.
        if group.len() > 1 && failure.remedy() != Remedy::Reconnect {
            // One of them makes the database refuse all: each for itself then.
            let mut again = Vec::new();
            for waiting in group {
                again.extend(Box::pin(self.settle(vec![waiting])).await);
            }
            return again;
        }
        for waiting in group {
            // Whoever went away does not want the answer.
            let _ = waiting.answer.send(Err(failure.storage(DOING, self.kept.connector().place())));
        }
        Vec::new()
    }

    /// Tries until the group is settled or cannot be. Nothing is repeated that may have been committed.
    async fn attempt(&mut self, group: &mut [Waiting]) -> Result<Settled, Failure> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let session = self.kept.get().await?;
            let mut changes: Vec<&mut Prepared> =
                group.iter_mut().map(|waiting| &mut waiting.prepared).collect();
            let failure = match session.settle(&mut changes).await {
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
            // Others may be waiting for what this transaction held up.
            self.live.wake_feed();
            if remedy == Remedy::None || attempt == ATTEMPTS_MAX {
                return Err(failure);
            }
            tracing::debug!(?failure, attempt, "a group is tried again");
        }
    }

    fn answer(&self, group: Vec<Waiting>, settled: Settled) -> Vec<Waiting> {
        let verdicts = match settled {
            Settled::Committed(verdicts, writes) => {
                self.tell(&writes);
                verdicts
            }
            Settled::Nothing(verdicts) => {
                self.live.wake_feed();
                verdicts
            }
            Settled::Unknown(verdicts) => return answer_unknown(group, verdicts),
        };
        for (waiting, verdict) in group.into_iter().zip(verdicts) {
            let answer = match verdict {
                Verdict::Written(appended) => Ok(appended),
                Verdict::Answered { answer, .. } => {
                    if let Ok(made) = &answer {
                        // When it was made its outcome was unknown, so nobody was told.
                        self.live.wake(waiting.prepared.run, made.last);
                        self.notices.moved(std::iter::once(waiting.prepared.run));
                    }
                    answer
                }
            };
            let _ = waiting.answer.send(answer);
        }
        Vec::new()
    }

    /// Tells those who follow, here and at other hubs.
    fn tell(&self, writes: &Writes) {
        for (run, events) in writes.events(|run| self.live.is_followed(run)) {
            self.live.publish(run, &events);
        }
        self.live.wake_feed();
        self.notices.moved(writes.moved());
    }
}

/// Answers a group of which nobody knows whether it was committed. What was refused because of what the group wrote has
/// to be judged anew, since that may not be there.
fn answer_unknown(group: Vec<Waiting>, verdicts: Vec<Verdict>) -> Vec<Waiting> {
    let mut again = Vec::new();
    for (waiting, verdict) in group.into_iter().zip(verdicts) {
        let answer = match verdict {
            Verdict::Written(_) => Err(StorageError::unknown(waiting.prepared.append)),
            Verdict::Answered { leans: true, .. } => {
                again.push(waiting);
                continue;
            }
            Verdict::Answered { answer, leans: false } => answer,
        };
        let _ = waiting.answer.send(answer);
    }
    again
}

/// Waits for a change, and takes with it what else is waiting. Nothing more comes when all senders are gone.
async fn next_group(
    queue: &mut mpsc::UnboundedReceiver<Waiting>,
    carried: &mut VecDeque<Waiting>,
) -> Option<Vec<Waiting>> {
    let first = match carried.pop_front() {
        Some(first) => first,
        None => queue.recv().await?,
    };
    let (mut events, mut bytes) = (first.prepared.events(), first.prepared.size());
    let mut group = vec![first];
    while events < GROUP_EVENTS_MAX && bytes < GROUP_BYTES_MAX {
        let Some(next) = carried.pop_front().or_else(|| queue.try_recv().ok()) else { break };
        events += next.prepared.events();
        bytes += next.prepared.size();
        group.push(next);
    }
    Some(group)
}
