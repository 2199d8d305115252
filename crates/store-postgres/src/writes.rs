//! The rows that a group writes, collected change by change and written as columns.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use runyard_domain::{BlobId, RunId};
use runyard_store::plan::{OtherRows, Planned};
use runyard_store::{ApprovalWrite, KeyDigest, LoggedEvent, RunRow, TimerWrite};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Statement};
use uuid::Uuid;

use crate::fault::Failure;
use crate::planning::Found;
use crate::results::json;
use crate::run_row::{run_uuid, signed};
use crate::statements::Statements;

/// All rows that a group writes.
#[derive(Default)]
pub(crate) struct Writes {
    now: i64,
    runs: BTreeMap<RunId, Moved>,
    events: Events,
    /// Which of the events belong to which change.
    changes: Vec<(RunId, Range<usize>)>,
    head_changes: Vec<(Uuid, Uuid, i64, i64)>,
    approvals: BTreeMap<Uuid, Approval>,
    timers: BTreeMap<(Uuid, String), Timer>,
    outbox: Vec<(Uuid, Vec<u8>)>,
    results: BTreeMap<KeyDigest, (Vec<u8>, Vec<u8>, i64)>,
    references: BTreeSet<(BlobId, RunId)>,
}

/// A run's row after the group.
struct Moved {
    row: RunRow,
    feed: i64,
    created: bool,
    projected: bool,
}

#[derive(Default)]
struct Events {
    runs: Vec<Uuid>,
    sequences: Vec<i64>,
    feeds: Vec<i64>,
    appends: Vec<Uuid>,
    bodies: Vec<Vec<u8>>,
}

/// A timer after the group.
enum Timer {
    Set { due: i64, payload: Vec<u8> },
    Cancelled,
}

/// An approval after the group.
enum Approval {
    Open { run: Uuid, expires: i64, request: Vec<u8>, decision: Option<Vec<u8>> },
    Decided(Vec<u8>),
}

impl Writes {
    pub(crate) fn new(found: &Found) -> Self {
        Writes { now: found.now.unix_ms(), ..Writes::default() }
    }

    /// Adds the rows of a change, the next one of the group.
    pub(crate) fn add(&mut self, plan: Planned, found: &Found) {
        let (run, appended) = (plan.row.run, plan.appended());
        let feed = found.runs.get(&run).map_or(found.feed, |before| before.feed.max(found.feed));
        let (id, append) = (run_uuid(run), Uuid::from_bytes(*plan.append.as_bytes()));
        let first = self.events.bodies.len();
        for event in plan.events {
            self.events.runs.push(id);
            self.events.sequences.push(signed(event.sequence));
            self.events.feeds.push(feed);
            self.events.appends.push(append);
            self.events.bodies.push(event.body);
            self.references.extend(event.blobs.into_iter().map(|blob| (blob, run)));
        }
        self.changes.push((run, first..self.events.bodies.len()));
        if plan.at_head {
            self.head_changes.push((id, append, signed(appended.first), signed(appended.last)));
        }
        let before = self.runs.get(&run);
        let created = plan.created || before.is_some_and(|before| before.created);
        let projected = plan.projected || before.is_some_and(|before| before.projected);
        self.runs.insert(run, Moved { row: plan.row, feed, created, projected });
        self.add_others(id, plan.rows);
    }

    fn add_others(&mut self, run: Uuid, rows: OtherRows) {
        for write in rows.approvals {
            match write {
                ApprovalWrite::Open { id, expires, request } => {
                    let (expires, request) = (expires.unix_ms(), json(&request));
                    let open = Approval::Open { run, expires, request, decision: None };
                    self.approvals.insert(Uuid::from_bytes(*id.as_bytes()), open);
                }
                ApprovalWrite::Resolve { id, decision } => {
                    let id = Uuid::from_bytes(*id.as_bytes());
                    match self.approvals.get_mut(&id) {
                        Some(Approval::Open { decision: none, .. }) => *none = Some(json(&decision)),
                        _ => drop(self.approvals.insert(id, Approval::Decided(json(&decision)))),
                    }
                }
            }
        }
        for write in rows.timers {
            let (name, state) = match write {
                TimerWrite::Set { name, due, payload } => {
                    (name, Timer::Set { due: due.unix_ms(), payload: json(&payload) })
                }
                TimerWrite::Cancel { name } => (name, Timer::Cancelled),
            };
            self.timers.insert((run, name.into_inner()), state);
        }
        self.outbox.extend(rows.outbox.iter().map(|message| (run, json(message))));
        if let Some(kept) = rows.result {
            let row = (kept.fingerprint.to_vec(), json(&kept.result), kept.expires.unix_ms());
            self.results.insert(kept.key, row);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Writes everything, in as few round trips as there can be: one.
    pub(crate) async fn execute(&self, client: &Client, to: &Statements) -> Result<(), Failure> {
        let new = RunColumns::of(self.runs.values().filter(|moved| moved.created));
        let projected = RunColumns::of(self.runs.values().filter(|moved| !moved.created && moved.projected));
        let moved = RunColumns::of(self.runs.values().filter(|moved| !moved.created && !moved.projected));
        let events = &self.events;
        // Polled in this order, so sent in this order.
        let (runs, events, others) = tokio::join!(
            biased;
            async {
                tokio::join!(
                    biased;
                    write(client, &to.insert_runs, new.len(), [
                        &new.runs, &new.sequences, &new.heads, &new.feeds, &new.updated, &new.created,
                        &new.statuses, &new.states,
                    ]),
                    write(client, &to.project_runs, projected.len(), [
                        &projected.runs, &projected.sequences, &projected.heads, &projected.feeds,
                        &projected.updated, &projected.statuses, &projected.states,
                    ]),
                    write(client, &to.move_runs, moved.len(), [
                        &moved.runs, &moved.sequences, &moved.heads, &moved.feeds, &moved.updated,
                    ]),
                )
            },
            write(client, &to.insert_events, events.bodies.len(), [
                &events.runs, &events.sequences, &events.feeds, &events.appends, &events.bodies,
            ]),
            self.execute_others(client, to),
        );
        // The first that failed is the cause of the rest.
        runs.0.and(runs.1).and(runs.2).and(events).and(others)
    }

    async fn execute_others(&self, client: &Client, to: &Statements) -> Result<(), Failure> {
        let (heads, approvals, timers, outbox, results, references) = tokio::join!(
            biased;
            self.insert_head_changes(client, to),
            self.write_approvals(client, to),
            self.write_timers(client, to),
            self.insert_outbox(client, to),
            self.keep_results(client, to),
            self.refer_to_blobs(client, to),
        );
        heads.and(approvals).and(timers).and(outbox).and(results).and(references)
    }

    async fn insert_head_changes(&self, client: &Client, to: &Statements) -> Result<(), Failure> {
        let rows = &self.head_changes;
        let runs: Vec<Uuid> = rows.iter().map(|row| row.0).collect();
        let appends: Vec<Uuid> = rows.iter().map(|row| row.1).collect();
        let (firsts, lasts): (Vec<i64>, Vec<i64>) = rows.iter().map(|row| (row.2, row.3)).unzip();
        write(client, &to.insert_head_changes, rows.len(), [&runs, &appends, &firsts, &lasts]).await
    }

    async fn write_approvals(&self, client: &Client, to: &Statements) -> Result<(), Failure> {
        let (mut ids, mut runs, mut expiries) = (Vec::new(), Vec::new(), Vec::new());
        let (mut requests, mut decisions): (Vec<&[u8]>, Vec<Option<&[u8]>>) = (Vec::new(), Vec::new());
        let (mut decided, mut answers): (Vec<Uuid>, Vec<&[u8]>) = (Vec::new(), Vec::new());
        for (id, approval) in &self.approvals {
            match approval {
                Approval::Open { run, expires, request, decision } => {
                    ids.push(*id);
                    runs.push(*run);
                    expiries.push(*expires);
                    requests.push(request);
                    decisions.push(decision.as_deref());
                }
                Approval::Decided(decision) => {
                    decided.push(*id);
                    answers.push(decision);
                }
            }
        }
        let (opened, resolved) = tokio::join!(
            biased;
            write(client, &to.open_approvals, ids.len(), [&ids, &runs, &expiries, &requests, &decisions]),
            write(client, &to.decide_approvals, decided.len(), [&decided, &answers]),
        );
        opened.and(resolved)
    }

    async fn write_timers(&self, client: &Client, to: &Statements) -> Result<(), Failure> {
        let (mut runs, mut names, mut dues, mut payloads) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (mut gone_runs, mut gone_names): (Vec<Uuid>, Vec<&str>) = (Vec::new(), Vec::new());
        for ((run, name), state) in &self.timers {
            match state {
                Timer::Set { due, payload } => {
                    runs.push(*run);
                    names.push(name.as_str());
                    dues.push(*due);
                    payloads.push(payload.as_slice());
                }
                Timer::Cancelled => {
                    gone_runs.push(*run);
                    gone_names.push(name);
                }
            }
        }
        let cancel = async {
            // How many there were does not matter.
            if !gone_runs.is_empty() {
                client.execute(&to.cancel_timers, &[&gone_runs, &gone_names]).await?;
            }
            Ok(())
        };
        let (set, cancelled) = tokio::join!(
            biased;
            write(client, &to.set_timers, runs.len(), [&runs, &names, &dues, &payloads]),
            cancel,
        );
        set.and(cancelled)
    }

    async fn insert_outbox(&self, client: &Client, to: &Statements) -> Result<(), Failure> {
        let runs: Vec<Uuid> = self.outbox.iter().map(|(run, _)| *run).collect();
        let payloads: Vec<&[u8]> = self.outbox.iter().map(|(_, payload)| payload.as_slice()).collect();
        write(client, &to.insert_outbox, runs.len(), [&runs, &payloads]).await
    }

    async fn keep_results(&self, client: &Client, to: &Statements) -> Result<(), Failure> {
        let keys: Vec<&[u8]> = self.results.keys().map(|key| key.as_bytes().as_slice()).collect();
        let fingerprints: Vec<&[u8]> = self.results.values().map(|row| row.0.as_slice()).collect();
        let results: Vec<&[u8]> = self.results.values().map(|row| row.1.as_slice()).collect();
        let expiries: Vec<i64> = self.results.values().map(|row| row.2).collect();
        let parameters: [Parameter<'_>; 5] = [&keys, &fingerprints, &results, &expiries, &self.now];
        write(client, &to.keep_results, keys.len(), parameters).await
    }

    async fn refer_to_blobs(&self, client: &Client, to: &Statements) -> Result<(), Failure> {
        if self.references.is_empty() {
            return Ok(());
        }
        let blobs: Vec<&[u8]> = self.references.iter().map(|(blob, _)| blob.as_bytes().as_slice()).collect();
        let runs: Vec<Uuid> = self.references.iter().map(|(_, run)| run_uuid(*run)).collect();
        client.execute(&to.refer_to_blobs, &[&blobs, &runs]).await?;
        Ok(())
    }

    /// The runs that moved.
    pub(crate) fn moved(&self) -> impl Iterator<Item = RunId> {
        self.runs.keys().copied()
    }

    /// The events of each change of the runs that `wanted` names, in order.
    pub(crate) fn events<'a>(
        &'a self,
        wanted: impl Fn(RunId) -> bool + 'a,
    ) -> impl Iterator<Item = (RunId, Vec<LoggedEvent>)> + 'a {
        let changes = self.changes.iter().filter(move |(run, _)| wanted(*run));
        changes.map(|(run, range)| {
            let event = |place: usize| LoggedEvent {
                // What was planned is never negative.
                sequence: self.events.sequences[place].unsigned_abs(),
                body: self.events.bodies[place].as_slice().into(),
            };
            (*run, range.clone().map(event).collect())
        })
    }
}

type Parameter<'a> = &'a (dyn ToSql + Sync);

/// Writes so many rows, if any. Another number is a race that was lost: somebody else wrote one of them.
pub(crate) async fn write<const N: usize>(
    client: &Client,
    statement: &Statement,
    rows: usize,
    parameters: [Parameter<'_>; N],
) -> Result<(), Failure> {
    if rows == 0 {
        return Ok(());
    }
    let written = client.execute(statement, &parameters).await?;
    if written != rows as u64 {
        return Err(Failure::Outrun);
    }
    Ok(())
}

/// Rows of runs as columns.
#[derive(Default)]
struct RunColumns<'a> {
    runs: Vec<Uuid>,
    sequences: Vec<i64>,
    heads: Vec<Option<&'a [u8]>>,
    feeds: Vec<i64>,
    updated: Vec<i64>,
    created: Vec<i64>,
    statuses: Vec<&'a str>,
    states: Vec<&'a [u8]>,
}

impl<'a> RunColumns<'a> {
    fn of(rows: impl Iterator<Item = &'a Moved>) -> Self {
        let mut columns = RunColumns::default();
        for Moved { row, feed, .. } in rows {
            columns.runs.push(run_uuid(row.run));
            columns.sequences.push(signed(row.sequence));
            columns.heads.push(row.head.as_ref().map(|head| head.as_bytes().as_slice()));
            columns.feeds.push(*feed);
            columns.updated.push(row.updated.unix_ms());
            columns.created.push(row.created.unix_ms());
            columns.statuses.push(&row.status);
            columns.states.push(&row.state);
        }
        columns
    }

    fn len(&self) -> usize {
        self.runs.len()
    }
}
