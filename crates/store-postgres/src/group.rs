//! One transaction for what waits together: lock the runs, plan, check, write, commit.
//!
//! A change that is refused leaves nothing and stops no other. When this returns an error, nothing of the group was
//! committed, now or later.

use std::collections::HashSet;

use runyard_domain::{AppendId, RunId};
use runyard_store::plan::{LookFor, Planned, Prepared};
use runyard_store::{Appended, StorageError};
use tokio_postgres::Client;
use uuid::Uuid;

use crate::checks::Checks;
use crate::connection::{Connector, Link, within};
use crate::fault::{Failure, was_not_committed};
use crate::options::ConnectOptions;
use crate::planning::{Found, FoundRun, Judged};
use crate::reconnect::LaneSession;
use crate::run_row::{self, run_uuid, signed, time, unsigned};
use crate::schema;
use crate::statements::Statements;
use crate::writes::Writes;

const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";

/// A lane's connection, ready to write.
pub(crate) struct Session {
    link: Link,
    statements: Statements,
    options: ConnectOptions,
}

/// What became of a group.
pub(crate) enum Settled {
    /// It is durable.
    Committed(Vec<Verdict>, Box<Writes>),
    /// There was nothing to write.
    Nothing(Vec<Verdict>),
    /// It is durable or not.
    Unknown(Vec<Verdict>),
}

/// What became of one change of the group.
pub(crate) enum Verdict {
    /// It was written with the group.
    Written(Appended),
    /// It was answered without writing anything.
    Answered {
        answer: Result<Appended, StorageError>,
        /// Whether the answer counts on what the group writes.
        leans: bool,
    },
}

impl LaneSession for Session {
    async fn open(connector: &Connector) -> Result<Self, Failure> {
        let mut link = connector.connect().await?;
        let options = *connector.options();
        let statements = within(options.connect, Statements::prepare(&link.client)).await?;
        let mended = tokio::time::timeout(options.silence(), schema::mend_feed(&mut link.client));
        mended.await.map_err(|_| Failure::Silent)??;
        Ok(Session { link, statements, options })
    }

    fn is_closed(&self) -> bool {
        self.link.client.is_closed()
    }
}

impl Session {
    /// Ends a transaction that is not to be committed.
    pub(crate) async fn roll_back(&self) -> Result<(), Failure> {
        within(self.options.silence(), self.link.client.batch_execute("ROLLBACK")).await
    }

    /// Makes the changes of a group.
    pub(crate) async fn settle(&self, changes: &mut [&mut Prepared]) -> Result<Settled, Failure> {
        let prepared = tokio::time::timeout(self.options.silence(), self.write(changes));
        let (verdicts, writes) = prepared.await.map_err(|_| Failure::Silent)??;
        if writes.is_empty() {
            self.roll_back().await?;
            return Ok(Settled::Nothing(verdicts));
        }
        let commit = tokio::time::timeout(self.options.commit, self.link.client.batch_execute("COMMIT"));
        match commit.await {
            Ok(Ok(())) => Ok(Settled::Committed(verdicts, Box::new(writes))),
            Ok(Err(error)) if was_not_committed(&error) => Err(error.into()),
            Ok(Err(_)) | Err(_) => Ok(Settled::Unknown(verdicts)),
        }
    }

    /// Everything but the commit.
    async fn write(&self, changes: &mut [&mut Prepared]) -> Result<(Vec<Verdict>, Writes), Failure> {
        let (client, statements) = (&self.link.client, &self.statements);
        let runs = changes.iter().map(|change| run_uuid(change.run)).collect();
        let mut found = self.lock(runs).await?;
        let wanted = Wanted::of(changes, &found);
        found.look_up(client, statements, wanted).await?;
        let mut judged: Vec<Judged> = Vec::with_capacity(changes.len());
        for change in changes.iter_mut() {
            let next = found.judge(change, &judged);
            judged.push(next);
        }
        if judged.iter().filter_map(Judged::planned).any(needs_checks) {
            judged = self.check(&found, changes, judged).await?;
        }
        let mut writes = Writes::new(&found);
        let mut verdicts = Vec::with_capacity(judged.len());
        let mut written: HashSet<RunId> = HashSet::new();
        for judged in judged {
            verdicts.push(match judged {
                Judged::Planned(plan) => {
                    let appended = plan.appended();
                    written.insert(plan.row.run);
                    writes.add(*plan, &found);
                    Verdict::Written(appended)
                }
                // Whether it was this run's row or another one's approval that was in the way is not told apart.
                Judged::Already(appended) => {
                    Verdict::Answered { answer: Ok(appended), leans: !written.is_empty() }
                }
                Judged::Refused(error) => {
                    Verdict::Answered { answer: Err(error), leans: !written.is_empty() }
                }
            });
        }
        writes.execute(client, statements).await?;
        Ok((verdicts, writes))
    }

    /// Begins, and locks the runs that are there. What is read from here on was committed by whoever held them before.
    async fn lock(&self, mut runs: Vec<Uuid>) -> Result<Found, Failure> {
        let client = &self.link.client;
        runs.sort_unstable();
        runs.dedup();
        let (began, locked, clock) = tokio::join!(
            biased;
            client.batch_execute(BEGIN),
            async { client.query(&self.statements.lock_runs, &[&runs]).await },
            client.query_one(&self.statements.clock, &[]),
        );
        began?;
        let (locked, clock) = (locked?, clock?);
        schema::check(clock.try_get(2)?)?;
        let mut found = Found::new(time(clock.try_get(0)?), clock.try_get(1)?);
        for row in locked {
            let run = FoundRun { row: run_row::read(&row)?, feed: row.try_get(run_row::COLUMNS)? };
            found.runs.insert(run.row.run, run);
        }
        Ok(found)
    }

    /// Refuses changes whose other rows may not be written. What was planned on top of one of them is planned again.
    async fn check(
        &self,
        found: &Found,
        changes: &mut [&mut Prepared],
        judged: Vec<Judged>,
    ) -> Result<Vec<Judged>, Failure> {
        let (client, statements) = (&self.link.client, &self.statements);
        let mut checks = Checks::default();
        let unknown = checks.unknown(judged.iter().filter_map(Judged::planned));
        checks.look_up(client, statements, unknown).await?;
        let mut checked: Vec<Judged> = Vec::with_capacity(judged.len());
        let mut changed: HashSet<RunId> = HashSet::new();
        for (change, mut next) in changes.iter_mut().zip(judged) {
            if changed.contains(&change.run) {
                next = found.judge(change, &checked);
                let unknown = checks.unknown(next.planned().into_iter());
                checks.look_up(client, statements, unknown).await?;
            }
            if let Judged::Planned(plan) = &mut next
                && let Err(error) = checks.admit(plan, found.now)
            {
                changed.insert(change.run);
                next = Judged::Refused(error);
            }
            checked.push(next);
        }
        Ok(checked)
    }
}

fn needs_checks(plan: &Planned) -> bool {
    !plan.rows.is_empty() || plan.events.iter().any(|event| !event.blobs.is_empty())
}

/// Where earlier changes of the same append ids would be.
#[derive(Default)]
struct Wanted {
    event_runs: Vec<Uuid>,
    event_places: Vec<i64>,
    head_runs: Vec<Uuid>,
    head_appends: Vec<Uuid>,
}

impl Wanted {
    fn of(changes: &[&mut Prepared], found: &Found) -> Self {
        let mut wanted = Wanted::default();
        for change in changes {
            let row = found.runs.get(&change.run).map(|found| &found.row);
            match change.look_for(row) {
                LookFor::Nothing => {}
                LookFor::EventAt(sequence) => {
                    wanted.event_runs.push(run_uuid(change.run));
                    wanted.event_places.push(signed(sequence));
                }
                LookFor::HeadChange => {
                    wanted.head_runs.push(run_uuid(change.run));
                    wanted.head_appends.push(Uuid::from_bytes(*change.append.as_bytes()));
                }
            }
        }
        wanted
    }
}

impl Found {
    async fn look_up(
        &mut self,
        client: &Client,
        statements: &Statements,
        wanted: Wanted,
    ) -> Result<(), Failure> {
        if !wanted.event_runs.is_empty() {
            let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 2] =
                [&wanted.event_runs, &wanted.event_places];
            for row in client.query(&statements.events_at, &parameters).await? {
                let place = (run(row.try_get(0)?), unsigned(row.try_get(1)?)?);
                self.events.insert(place, (append(row.try_get(2)?), row.try_get(3)?));
            }
        }
        if !wanted.head_runs.is_empty() {
            let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 2] =
                [&wanted.head_runs, &wanted.head_appends];
            for row in client.query(&statements.head_changes, &parameters).await? {
                let (first, last) = (unsigned(row.try_get(2)?)?, unsigned(row.try_get(3)?)?);
                let change = (run(row.try_get(0)?), append(row.try_get(1)?));
                self.head_changes.insert(change, Appended { first, last });
            }
        }
        Ok(())
    }
}

fn run(id: Uuid) -> RunId {
    RunId::from_bytes(id.into_bytes())
}

fn append(id: Uuid) -> AppendId {
    AppendId::from_bytes(id.into_bytes())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use runyard_store::conformance::{ManyRuns, append, fresh_append, one};
    use runyard_store::{Change, EventLog, FeedCursor, Place};
    use runyard_testkit_postgres::Postgres;
    use serde_json::json;

    use super::*;
    use crate::PostgresStore;
    use crate::connection::Access;

    /// An older transaction waits for one run while a younger one writes another, and then writes that one too.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn c08_a_run_keeps_its_order_in_the_feed_when_an_older_transaction_writes_it_later() {
        let url = Postgres::shared().unwrap().database().unwrap();
        let store = PostgresStore::connect(&url).await.unwrap();
        let mut runs = ManyRuns::start(&store, 3).await.0;
        runs.sort();
        let connector = Connector::new(&url, ConnectOptions::default(), Access::Write).unwrap();
        let raw = connector.connect().await.unwrap();
        let hold = "SELECT 1 FROM runs WHERE run_id = $1 FOR UPDATE";
        raw.client.batch_execute("BEGIN").await.unwrap();
        raw.client.execute(hold, &[&run_uuid(runs[1])]).await.unwrap();

        let older = Session::open(&connector).await.unwrap();
        let mut changes: Vec<Prepared> = runs
            .iter()
            .map(|run| {
                let place = Place::Head(Box::new(|_| Ok(one(json!({"by": "older"})))));
                Change { run: *run, append: fresh_append(), generation: None, place }.prepare().unwrap()
            })
            .collect();
        let settling = tokio::spawn(async move {
            let mut changes: Vec<&mut Prepared> = changes.iter_mut().collect();
            matches!(older.settle(&mut changes).await.unwrap(), Settled::Committed(..))
        });
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'
            AND datname = current_database()";
        while raw.client.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        append(&store, runs[2], 1, json!({"by": "younger"})).await.unwrap();
        raw.client.batch_execute("COMMIT").await.unwrap();
        assert!(settling.await.unwrap());

        let page = store.feed(&FeedCursor::start(), 100).await.unwrap();
        let last = page.entries.iter().filter(|entry| entry.run == runs[2]);
        let last: Vec<_> =
            last.map(|entry| (entry.event.sequence, entry.event.envelope().unwrap().payload)).collect();
        assert_eq!(
            last,
            [(1, json!({"first": true})), (2, json!({"by": "younger"})), (3, json!({"by": "older"}))]
        );
    }
}
