//! The start of a hub that has many finished runs behind it and many open ones before it.

use std::path::Path;
use std::time::Instant;

use runyard_domain::run::RunEvent;
use runyard_domain::{AppendId, EventId, RunId, SessionId, Timestamp};
use runyard_redact::{Redactor, TagKey};
use runyard_store::{Change, EventLog, LoggedEvent, NewEvent, Place, Projection, RunRow, Runs, Writes};
use runyard_store_sqlite::{OpenOptions, SqliteStore};
use serde_json::Value;

use crate::support::api::{Scripted, Yard};
use crate::{Asked, figure, idle, private_kib, start_many, until, up};

/// So many finished runs are written side by side.
const SIDE_BY_SIDE: usize = 256;

pub(crate) fn start(asked: &Asked) {
    let (finished, open) = (asked.size(100_000, 1_000), asked.size(1_000, 50));
    let (short, waits) = ("say = \"Done.\"", "wait_for_command = true");
    let script = |step: &str| format!("[[turn]]\n[[turn.step]]\n{step}\n");
    let (short, waits) = (script(short), script(waits));
    let profile = "runs_max = 10000";
    let agents = [
        Scripted { name: "short", profile, script: &short },
        Scripted { name: "waits", profile, script: &waits },
    ];
    let yard = Yard::new("[hub]\nruns_max = 10000\n", &agents);
    let (hub, api) = up(&yard);
    let template = api.start("short", yard.place());
    until(|| idle(&api));
    let begun = Instant::now();
    start_many(&api, "waits", yard.place(), open);
    until(|| figure(&api, "runyard_batches_recorded_total") >= 4 * open as u64);
    println!("  {open} runs made and running in {:.1} s", begun.elapsed().as_secs_f64());
    // As a crash does it.
    drop(hub);
    let begun = Instant::now();
    fill(&yard.home.path("runyard.db"), &template, finished);
    let bytes = std::fs::metadata(yard.home.path("runyard.db")).unwrap().len();
    let took = begun.elapsed().as_secs_f64();
    println!(
        "  {finished} finished runs written in {took:.1} s; the database has {:.0} MB",
        bytes as f64 / 1e6
    );
    for what in ["after a crash", "and once more"] {
        let begun = Instant::now();
        let (hub, api) = up(&yard);
        let listens = begun.elapsed().as_secs_f64();
        // Each is opened anew and says so.
        until(|| figure(&api, "runyard_batches_recorded_total") >= open as u64);
        let all = begun.elapsed().as_secs_f64();
        assert_eq!(figure(&api, "runyard_runs_active"), open as u64);
        println!(
            "  {what}: it answers after {listens:.2} s, all {open} runs are live after {all:.2} s; {} KiB of memory",
            private_kib(&hub)
        );
    }
}

/// Writes finished runs that are like this one.
fn fill(database: &Path, template: &str, count: usize) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = SqliteStore::open(OpenOptions::new(database, "bench")).unwrap();
        let run: RunId = template.parse().unwrap();
        let like = Template {
            row: store.run(run).await.unwrap().unwrap(),
            events: store.read(run, 0, 1_000).await.unwrap(),
            redactor: Redactor::builder(TagKey::from_bytes([7; 32])).build().unwrap(),
        };
        for first in (0..count).step_by(SIDE_BY_SIDE) {
            let some = (first..count.min(first + SIDE_BY_SIDE)).map(|number| store.append(like.copy(number)));
            let written: Vec<_> = some.collect();
            for appended in join(written).await {
                appended.unwrap();
            }
        }
        store.close().await;
    });
}

/// Waits for all of them side by side.
async fn join<T>(all: Vec<impl Future<Output = T>>) -> Vec<T> {
    let mut all: Vec<_> = all.into_iter().map(|one| (Box::pin(one), None)).collect();
    std::future::poll_fn(|context| {
        let mut ready = true;
        for (future, done) in &mut all {
            if done.is_none() {
                match future.as_mut().poll(context) {
                    std::task::Poll::Ready(value) => *done = Some(value),
                    std::task::Poll::Pending => ready = false,
                }
            }
        }
        if ready { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    all.into_iter().filter_map(|(_, done)| done).collect()
}

/// A finished run, as it is stored.
struct Template {
    row: RunRow,
    events: Vec<LoggedEvent>,
    redactor: Redactor,
}

impl Template {
    /// Another run like it.
    fn copy(&self, number: usize) -> Change {
        // Older than the runs that are open.
        let parts = |of: u64| {
            let mut random = [0; 10];
            random[..8].copy_from_slice(&((number as u64) << 8 | of).to_be_bytes());
            (1_700_000_000_000 + number as u64, random)
        };
        let (at, random) = parts(0);
        let run = RunId::from_parts(at, &random);
        let named = |value: &Value| {
            let text = value.to_string().replace(&self.row.run.to_string(), &run.to_string());
            self.redactor.json(serde_json::from_str(&text).unwrap())
        };
        let events = self.events.iter().zip(1..).map(|(event, of)| {
            let envelope = event.envelope().unwrap();
            let (at, random) = parts(of);
            NewEvent {
                session: Some(SessionId::from_parts(at, &random)),
                ..NewEvent::new(
                    EventId::from_parts(at, &random),
                    Timestamp::from_unix_ms(at as i64),
                    known(&envelope.kind),
                    named(&envelope.payload),
                )
            }
        });
        let state: Value = serde_json::from_slice(&self.row.state).unwrap();
        let projection = Projection { status: "completed", state: named(&state) };
        let writes = Writes { events: events.collect(), projection: Some(projection), ..Writes::default() };
        Change {
            run,
            append: AppendId::from_parts(at, &random),
            generation: None,
            place: Place::At(0, writes),
        }
    }
}

/// The program's own word for an event.
fn known(kind: &str) -> &'static str {
    let mut kinds = RunEvent::KINDS.iter().copied();
    kinds.find(|known| *known == kind).unwrap_or_else(|| panic!("{kind} is not expected"))
}
