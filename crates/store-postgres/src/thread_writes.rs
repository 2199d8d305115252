//! The rows that a group of commits to threads writes, collected commit by commit and written as columns.

use runyard_store::threads::plan::{Planned, Record};
use runyard_store::{AgentRunId, Scope};
use tokio_postgres::Client;
use uuid::Uuid;

use crate::fault::Failure;
use crate::run_row::signed;
use crate::thread_statements::ThreadStatements;
use crate::writes::write;

/// All rows that a group writes.
#[derive(Default)]
pub(crate) struct ThreadWrites<'a> {
    threads: Threads<'a>,
    messages: Messages<'a>,
    quiet: Quiet,
    new_runs: Runs<'a>,
    runs: Runs<'a>,
    set: Values<'a>,
    removed: Values<'a>,
    calls: Calls<'a>,
    answered: Calls<'a>,
}

#[derive(Default)]
struct Threads<'a> {
    keys: Vec<i64>,
    versions: Vec<i64>,
    runs: Vec<i64>,
    unfinished: Vec<Option<&'a str>>,
    updated: Vec<i64>,
    released: Vec<bool>,
}

#[derive(Default)]
struct Messages<'a> {
    threads: Vec<i64>,
    positions: Vec<i64>,
    appends: Vec<Uuid>,
    bodies: Vec<&'a [u8]>,
}

#[derive(Default)]
struct Quiet {
    threads: Vec<i64>,
    appends: Vec<Uuid>,
    versions: Vec<i64>,
}

#[derive(Default)]
struct Runs<'a> {
    threads: Vec<i64>,
    numbers: Vec<i64>,
    ids: Vec<&'a str>,
    finished: Vec<bool>,
    updated: Vec<i64>,
    statuses: Vec<&'a str>,
    payloads: Vec<&'a [u8]>,
}

#[derive(Default)]
struct Values<'a> {
    threads: Vec<i64>,
    runs: Vec<i64>,
    names: Vec<&'a str>,
    values: Vec<&'a [u8]>,
}

#[derive(Default)]
struct Calls<'a> {
    threads: Vec<i64>,
    runs: Vec<i64>,
    ids: Vec<&'a str>,
    keys: Vec<&'a [u8]>,
    intents: Vec<&'a [u8]>,
    results: Vec<Option<&'a [u8]>>,
}

impl<'a> Runs<'a> {
    fn push(&mut self, thread: i64, number: i64, run: &'a AgentRunId, record: &'a Record, now: i64) {
        self.threads.push(thread);
        self.numbers.push(number);
        self.ids.push(run.as_str());
        self.finished.push(record.finished);
        self.updated.push(now);
        self.statuses.push(record.status);
        self.payloads.push(&record.payload);
    }
}

impl<'a> ThreadWrites<'a> {
    /// Adds the rows of a commit to the thread of this key. No other commit of the group is to the same thread.
    pub(crate) fn add(&mut self, key: i64, run: &'a AgentRunId, planned: &'a Planned<'a>) {
        let (row, now) = (&planned.row, planned.row.updated.unix_ms());
        let (number, append) = (signed(planned.number), Uuid::from_bytes(*planned.append.as_bytes()));
        self.threads.keys.push(key);
        self.threads.versions.push(signed(row.version));
        self.threads.runs.push(signed(row.runs));
        self.threads.unfinished.push(row.unfinished.as_ref().map(AgentRunId::as_str));
        self.threads.updated.push(now);
        self.threads.released.push(row.holder.is_none());
        for (body, position) in planned.messages.iter().zip(planned.first()..) {
            self.messages.threads.push(key);
            self.messages.positions.push(signed(position));
            self.messages.appends.push(append);
            self.messages.bodies.push(body);
        }
        if planned.is_quiet() {
            self.quiet.threads.push(key);
            self.quiet.appends.push(append);
            self.quiet.versions.push(signed(row.version));
        }
        if let Some(record) = planned.record {
            let runs = if planned.is_new_run { &mut self.new_runs } else { &mut self.runs };
            runs.push(key, number, run, record, now);
        }
        for ((scope, name), value) in planned.values {
            let values = if value.is_some() { &mut self.set } else { &mut self.removed };
            values.threads.push(key);
            values.runs.push(if *scope == Scope::Run { number } else { 0 });
            values.names.push(name);
            values.values.extend(value.as_deref());
        }
        for intent in &planned.intents {
            self.calls.threads.push(key);
            self.calls.runs.push(number);
            self.calls.ids.push(intent.call);
            self.calls.keys.push(intent.key.as_bytes());
            self.calls.intents.push(intent.intent);
            self.calls.results.push(intent.result);
        }
        for (call, result) in &planned.results {
            self.answered.threads.push(key);
            self.answered.runs.push(number);
            self.answered.ids.push(call);
            self.answered.results.push(Some(result));
        }
    }

    /// Writes everything, in one round trip.
    pub(crate) async fn execute(&self, client: &Client, to: &ThreadStatements) -> Result<(), Failure> {
        let (threads, messages, quiet) = (&self.threads, &self.messages, &self.quiet);
        // Polled in this order, so sent in this order.
        let (moved, said, quietly, runs, others) = tokio::join!(
            biased;
            write(client, &to.move_threads, threads.keys.len(), [
                &threads.keys, &threads.versions, &threads.runs, &threads.unfinished, &threads.updated,
                &threads.released,
            ]),
            write(client, &to.insert_messages, messages.bodies.len(), [
                &messages.threads, &messages.positions, &messages.appends, &messages.bodies,
            ]),
            write(client, &to.insert_quiet, quiet.threads.len(), [
                &quiet.threads, &quiet.appends, &quiet.versions,
            ]),
            self.write_runs(client, to),
            self.write_others(client, to),
        );
        // The first that failed is the cause of the rest.
        moved.and(said).and(quietly).and(runs).and(others)
    }

    async fn write_runs(&self, client: &Client, to: &ThreadStatements) -> Result<(), Failure> {
        let (new, old) = (&self.new_runs, &self.runs);
        let (inserted, updated) = tokio::join!(
            biased;
            write(client, &to.insert_agent_runs, new.ids.len(), [
                &new.threads, &new.numbers, &new.ids, &new.finished, &new.updated, &new.statuses, &new.payloads,
            ]),
            write(client, &to.update_agent_runs, old.ids.len(), [
                &old.threads, &old.numbers, &old.ids, &old.finished, &old.updated, &old.statuses, &old.payloads,
            ]),
        );
        inserted.and(updated)
    }

    async fn write_others(&self, client: &Client, to: &ThreadStatements) -> Result<(), Failure> {
        let (set, removed, calls, answered) = (&self.set, &self.removed, &self.calls, &self.answered);
        let remove = async {
            // How many there were does not matter.
            if !removed.names.is_empty() {
                client.execute(&to.remove_values, &[&removed.threads, &removed.runs, &removed.names]).await?;
            }
            Ok(())
        };
        let (set, removed, announced, answered) = tokio::join!(
            biased;
            write(client, &to.set_values, set.names.len(), [&set.threads, &set.runs, &set.names, &set.values]),
            remove,
            write(client, &to.insert_calls, calls.ids.len(), [
                &calls.threads, &calls.runs, &calls.ids, &calls.keys, &calls.intents, &calls.results,
            ]),
            write(client, &to.answer_calls, answered.ids.len(), [
                &answered.threads, &answered.runs, &answered.ids, &answered.results,
            ]),
        );
        set.and(removed).and(announced).and(answered)
    }
}
