//! One transaction for the commits to threads that wait together: lock the threads, look up, plan, write, commit.
//!
//! Each commit of a group is to another thread and of another run, so none counts on what another one writes. When this
//! returns an error, nothing of the group was committed, now or later.

use std::collections::HashMap;

use runyard_domain::{AppendId, Timestamp};
use runyard_store::threads::plan::{CallHead, Earlier, Found, LookFor, Outcome, Planned, PreparedCommit};
use runyard_store::{AgentRunId, Committed, StorageError, ThreadId};
use uuid::Uuid;

use crate::connection::{Connector, Link, within};
use crate::fault::{Failure, was_not_committed};
use crate::options::ConnectOptions;
use crate::reconnect::LaneSession;
use crate::run_row::{signed, time, unsigned};
use crate::schema;
use crate::store::Parameter;
use crate::thread_row::{self, StoredHead, StoredThread};
use crate::thread_statements::ThreadStatements;
use crate::thread_writes::ThreadWrites;

const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";

/// A lane's connection, ready to commit to threads.
pub(crate) struct ThreadSession {
    link: Link,
    statements: ThreadStatements,
    options: ConnectOptions,
}

/// What became of a group.
pub(crate) enum Settled {
    /// What was written is durable.
    Known(Vec<Verdict>),
    /// What was written is durable or not.
    Unknown(Vec<Verdict>),
}

/// What became of one commit of the group.
pub(crate) enum Verdict {
    /// It was written with the group.
    Written(Committed),
    /// It was answered without writing anything.
    Answered(Result<Committed, StorageError>),
}

impl LaneSession for ThreadSession {
    async fn open(connector: &Connector) -> Result<Self, Failure> {
        let link = connector.connect().await?;
        let options = *connector.options();
        let statements = within(options.connect, ThreadStatements::prepare(&link.client)).await?;
        Ok(ThreadSession { link, statements, options })
    }

    fn is_closed(&self) -> bool {
        self.link.client.is_closed()
    }
}

impl ThreadSession {
    /// Ends a transaction that is not to be committed.
    pub(crate) async fn roll_back(&self) -> Result<(), Failure> {
        within(self.options.silence(), self.link.client.batch_execute("ROLLBACK")).await
    }

    /// Makes the commits of a group.
    pub(crate) async fn settle(&self, commits: &[&PreparedCommit]) -> Result<Settled, Failure> {
        let written = tokio::time::timeout(self.options.silence(), self.write(commits));
        let verdicts = written.await.map_err(|_| Failure::Silent)??;
        if verdicts.iter().all(|verdict| matches!(verdict, Verdict::Answered(_))) {
            self.roll_back().await?;
            return Ok(Settled::Known(verdicts));
        }
        let commit = tokio::time::timeout(self.options.commit, self.link.client.batch_execute("COMMIT"));
        match commit.await {
            Ok(Ok(())) => Ok(Settled::Known(verdicts)),
            Ok(Err(error)) if was_not_committed(&error) => Err(error.into()),
            Ok(Err(_)) | Err(_) => Ok(Settled::Unknown(verdicts)),
        }
    }

    /// Everything but the commit.
    async fn write(&self, commits: &[&PreparedCommit]) -> Result<Vec<Verdict>, Failure> {
        let (threads, now) = self.lock(commits).await?;
        let found = self.look_up(commits, &threads).await?;
        let mut planned: Vec<(i64, &AgentRunId, Box<Planned<'_>>)> = Vec::new();
        let mut verdicts = Vec::with_capacity(commits.len());
        for commit in commits {
            let stored = threads.get(&commit.thread);
            let found = found.of(commit, stored);
            verdicts.push(match (commit.plan(stored.map(|stored| &stored.row), &found, now), stored) {
                (Ok(Outcome::Write(plan)), Some(stored)) => {
                    let committed = plan.committed();
                    planned.push((stored.key, &commit.run, plan));
                    Verdict::Written(committed)
                }
                (Ok(Outcome::Write(_)), None) => {
                    Verdict::Answered(Err(StorageError::not_found(format!("thread {}", commit.thread))))
                }
                (Ok(Outcome::Already(committed)), _) => Verdict::Answered(Ok(committed)),
                (Err(error), _) => Verdict::Answered(Err(error)),
            });
        }
        let mut writes = ThreadWrites::default();
        planned.iter().for_each(|(key, run, plan)| writes.add(*key, run, plan));
        writes.execute(&self.link.client, &self.statements).await?;
        Ok(verdicts)
    }

    /// Begins, and locks the threads that are there. What is read from here on was committed by whoever held them before.
    async fn lock(
        &self,
        commits: &[&PreparedCommit],
    ) -> Result<(HashMap<ThreadId, StoredThread>, Timestamp), Failure> {
        let client = &self.link.client;
        let ids: Vec<&str> = commits.iter().map(|commit| commit.thread.as_str()).collect();
        let (began, locked, clock) = tokio::join!(
            biased;
            client.batch_execute(BEGIN),
            async { client.query(&self.statements.lock_threads, &[&ids]).await },
            client.query_one(&self.statements.clock, &[]),
        );
        began?;
        let (locked, clock) = (locked?, clock?);
        schema::check(clock.try_get(1)?)?;
        let mut threads = HashMap::new();
        for row in locked {
            let stored = thread_row::read(&row)?;
            threads.insert(stored.row.id.clone(), stored);
        }
        Ok((threads, time(clock.try_get(0)?)))
    }

    /// Looks up what the commits ask for, in one round trip.
    async fn look_up(
        &self,
        commits: &[&PreparedCommit],
        threads: &HashMap<ThreadId, StoredThread>,
    ) -> Result<Known, Failure> {
        let wanted = Wanted::of(commits, threads);
        let (client, to) = (&self.link.client, &self.statements);
        let (heads, messages, quiet, calls) = tokio::join!(
            biased;
            rows(client, &to.heads, wanted.runs.len(), [&wanted.runs]),
            rows(client, &to.messages_at, wanted.positions.len(), [&wanted.of_positions, &wanted.positions]),
            rows(client, &to.quiet_commits, wanted.appends.len(), [&wanted.of_appends, &wanted.appends]),
            rows(client, &to.calls, wanted.calls.len(), [&wanted.of_calls, &wanted.calls]),
        );
        let mut known = Known::default();
        for row in heads? {
            let head = thread_row::head(&row)?;
            known.heads.insert(head.run.clone(), head);
        }
        for row in messages? {
            let append = AppendId::from_bytes(row.try_get::<_, Uuid>(1)?.into_bytes());
            let message = Earlier::Message { append, body: row.try_get(2)? };
            known.messages.insert(ThreadId::from_stored(row.try_get(0)?), message);
        }
        for row in quiet? {
            let append = AppendId::from_bytes(row.try_get::<_, Uuid>(1)?.into_bytes());
            let quiet = Earlier::Quiet { version: unsigned(row.try_get(2)?)? };
            known.quiet.insert((ThreadId::from_stored(row.try_get(0)?), append), quiet);
        }
        for row in calls? {
            let head = if row.try_get(2)? { CallHead::Answered } else { CallHead::Open };
            let run = AgentRunId::from_stored(row.try_get(0)?);
            known.calls.entry(run).or_default().insert(row.try_get(1)?, head);
        }
        Ok(known)
    }
}

async fn rows<const N: usize>(
    client: &tokio_postgres::Client,
    statement: &tokio_postgres::Statement,
    wanted: usize,
    parameters: [Parameter<'_>; N],
) -> Result<Vec<tokio_postgres::Row>, Failure> {
    if wanted == 0 {
        return Ok(Vec::new());
    }
    Ok(client.query(statement, &parameters).await?)
}

/// What the commits ask for, as columns.
#[derive(Default)]
struct Wanted<'a> {
    runs: Vec<&'a str>,
    of_positions: Vec<&'a str>,
    positions: Vec<i64>,
    of_appends: Vec<&'a str>,
    appends: Vec<Uuid>,
    of_calls: Vec<&'a str>,
    calls: Vec<&'a str>,
}

impl<'a> Wanted<'a> {
    fn of(commits: &[&'a PreparedCommit], threads: &HashMap<ThreadId, StoredThread>) -> Self {
        let mut wanted = Wanted::default();
        for commit in commits {
            wanted.runs.push(commit.run.as_str());
            match commit.look_for(threads.get(&commit.thread).map(|stored| &stored.row)) {
                LookFor::Nothing => {}
                LookFor::MessageAt(position) => {
                    wanted.of_positions.push(commit.thread.as_str());
                    wanted.positions.push(signed(position));
                }
                LookFor::Quiet => {
                    wanted.of_appends.push(commit.thread.as_str());
                    wanted.appends.push(Uuid::from_bytes(*commit.append.as_bytes()));
                }
            }
            for call in commit.calls() {
                wanted.of_calls.push(commit.run.as_str());
                wanted.calls.push(call);
            }
        }
        wanted
    }
}

/// What was found. Each thread and each run is of one commit of the group only.
#[derive(Default)]
struct Known {
    heads: HashMap<AgentRunId, StoredHead>,
    messages: HashMap<ThreadId, Earlier>,
    quiet: HashMap<(ThreadId, AppendId), Earlier>,
    calls: HashMap<AgentRunId, HashMap<String, CallHead>>,
}

impl Known {
    fn of(&self, commit: &PreparedCommit, stored: Option<&StoredThread>) -> Found {
        let Some(stored) = stored else { return Found::default() };
        let earlier = match commit.look_for(Some(&stored.row)) {
            LookFor::Nothing => None,
            LookFor::MessageAt(_) => self.messages.get(&commit.thread).cloned(),
            LookFor::Quiet => self.quiet.get(&(commit.thread.clone(), commit.append)).cloned(),
        };
        Found {
            earlier,
            run: self.heads.get(&commit.run).map(|head| head.of(stored.key)),
            calls: self.calls.get(&commit.run).cloned().unwrap_or_default(),
        }
    }
}
