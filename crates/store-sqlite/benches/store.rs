//! What the store costs, against the disk that it writes to: every ratio is taken within one run, in turns.
//!
//! A batch is what one `fdatasync` of the raw loop makes durable. On the store's side it is what one commit holds at most
//! ("per commit": 64 runs each have one append of one event under way, of four for 256; commits are not always full), or
//! what one append holds ("per append": the writer commits what is waiting, up to 256 events). An event is about 1 kB; hash
//! chain, projection and append id are on.
//!
//! `RUNYARD_BENCH_DIR` says on which disk; in memory (`/dev/shm`) it shows what the processor alone costs.
//!
//! `cargo bench -p runyard-store-sqlite`, or with the names of parts: `-- batches latency replay tails size chain
//! threads`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "this is a benchmark")]

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use runyard_domain::{AppendId, EventId, RunId, Timestamp};
use runyard_redact::Safe;
use runyard_store::conformance::{began, commit_of, fresh_agent_run, fresh_thread, granted, record};
use runyard_store::{
    AgentRunId, Change, ClaimAfter, EventLog, Hash, JournalWrite, KeyDigest, NewEvent, Place, Projection,
    Scope, Tail, ThreadId, ThreadRunStore, ThreadStore, ThreadWrites, ValueWrite, Writes, verify,
};
use runyard_store_sqlite::{OpenOptions, SqliteStore};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

const RUNS: usize = 64;
const ROUNDS: usize = 15;
const ROUND: Duration = Duration::from_millis(150);

fn main() {
    let parts: Vec<String> = std::env::args().skip(1).filter(|part| !part.starts_with('-')).collect();
    let is_asked = |part: &str| parts.is_empty() || parts.iter().any(|asked| asked == part);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(2).build().unwrap();
    let begun = Instant::now();
    type Part = (&'static str, fn(&Runtime));
    let all: [Part; 9] = [
        ("batches", batches),
        ("latency", latency),
        ("replay", replay),
        ("replay", replay_interleaved),
        ("tails", tails),
        ("size", size),
        ("chain", chain),
        ("threads", threads),
        ("threads", thread_growth),
    ];
    for (name, part) in all {
        if is_asked(name) {
            part(&runtime);
        }
    }
    println!("took {:.0} s", begun.elapsed().as_secs_f64());
}

fn unique() -> [u8; 10] {
    static COUNT: AtomicU64 = AtomicU64::new(1);
    let mut unique = [0; 10];
    unique[2..].copy_from_slice(&COUNT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    unique
}

fn text() -> &'static str {
    static TEXT: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    TEXT.get_or_init(|| "The quick brown fox. ".repeat(39))
}

fn event() -> NewEvent {
    let id = EventId::from_parts(1_700_000_000_000, &unique());
    let payload = Safe::object([("text", text().into()), ("index", 7.into())]);
    NewEvent::new(id, Timestamp::from_unix_ms(1_700_000_000_000), "run.message.delta", payload)
}

fn change(run: RunId, after: u64, events: usize) -> Change {
    let append = AppendId::from_parts(1_700_000_000_000, &unique());
    let state = Safe::object([("state", "running".into()), ("since", 1_700_000_000_000.into())]);
    let writes = Writes {
        events: (0..events).map(|_| event()).collect(),
        projection: Some(Projection { status: "running", state }),
        ..Writes::default()
    };
    Change { run, append, generation: None, place: Place::At(after, writes) }
}

fn new_run() -> RunId {
    RunId::from_parts(1_700_000_000_000, &unique())
}

fn folder() -> tempfile::TempDir {
    let on = std::env::var("RUNYARD_BENCH_DIR").unwrap_or_else(|_| env!("CARGO_TARGET_TMPDIR").to_owned());
    tempfile::tempdir_in(on).unwrap()
}

fn open(folder: &Path, group_events_max: usize) -> Arc<SqliteStore> {
    let options = OpenOptions::new(folder.join("runyard.db"), "benchmark").group_events_max(group_events_max);
    Arc::new(SqliteStore::open(options).unwrap())
}

/// The bytes of one event, as they are stored.
fn stored_event(runtime: &Runtime) -> Vec<u8> {
    let folder = folder();
    let store = open(folder.path(), 1);
    let run = new_run();
    runtime.block_on(async {
        store.append(change(run, 0, 2)).await.unwrap();
        store.read(run, 1, 1).await.unwrap()[0].body.to_vec()
    })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn raw_round(file: &mut File, batch: &[u8], events: usize) -> f64 {
    let begun = Instant::now();
    let mut written = 0;
    while begun.elapsed() < ROUND {
        file.write_all(batch).unwrap();
        file.sync_data().unwrap();
        written += events;
    }
    written as f64 / begun.elapsed().as_secs_f64()
}

/// Appends to all runs for a while, one append under way in each; events per second.
async fn store_round(store: &Arc<SqliteStore>, runs: &mut Vec<(RunId, u64)>, events: usize) -> f64 {
    let begun = Instant::now();
    let mut tasks = JoinSet::new();
    for (run, mut after) in runs.drain(..) {
        let store = Arc::clone(store);
        tasks.spawn(async move {
            let from = after;
            while begun.elapsed() < ROUND {
                after = store.append(change(run, after, events)).await.unwrap().last;
            }
            (run, after, after - from)
        });
    }
    let mut written = 0;
    while let Some(done) = tasks.join_next().await {
        let (run, after, more) = done.unwrap();
        runs.push((run, after));
        written += more;
    }
    written as f64 / begun.elapsed().as_secs_f64()
}

/// How a batch of the store comes about.
#[derive(Clone, Copy)]
enum Batch {
    /// The writer commits at most so many events together.
    Group(usize),
    /// Each append has so many events, and the writer commits what is waiting.
    Append(usize),
}

fn batches(runtime: &Runtime) {
    let body = stored_event(runtime);
    println!("(a) durable events/s, {RUNS} runs, {} B each; medians of {ROUNDS} rounds in turns", body.len());
    println!("    batch                 raw      store   ratio   events/commit   writer's CPU us/event");
    let groups = batch_sizes().into_iter().map(Batch::Group);
    for batch in groups.chain(batch_sizes().into_iter().map(Batch::Append)) {
        let (name, size, group_max, per_append) = match batch {
            Batch::Group(size) => ("per commit", size, size, size.div_ceil(RUNS)),
            Batch::Append(size) => ("per append", size, 256, size),
        };
        let folder = folder();
        let mut file = File::create(folder.path().join("raw")).unwrap();
        let bytes = body.repeat(size);
        let store = open(folder.path(), group_max);
        let mut runs: Vec<(RunId, u64)> = (0..RUNS).map(|_| (new_run(), 0)).collect();
        let (mut raw, mut stored) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            raw.push(raw_round(&mut file, &bytes, size));
            stored.push(runtime.block_on(store_round(&store, &mut runs, per_append)));
        }
        let ratio = median(raw.iter().zip(&stored).map(|(raw, stored)| stored / raw).collect()) * 100.0;
        let (raw, stored) = (median(raw), median(stored));
        let events = runs.iter().map(|(_, after)| after).sum::<u64>() as f64;
        let (group, cpu) = (events / store.commits() as f64, writer_cpu_seconds() * 1e6 / events);
        println!("    {size:3} {name} {raw:10.0} {stored:10.0} {ratio:5.0} % {group:15.1} {cpu:15.1}");
        let (run, after) = runs[0];
        assert_eq!(runtime.block_on(verify(&*store, run)).unwrap().unwrap().events, after);
    }
}

/// What the writer's thread has used of a processor. It shows the store's own cost whatever the disk does.
fn writer_cpu_seconds() -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    let stats = tasks.map(|task| std::fs::read_to_string(task.join("stat")).unwrap_or_default());
    let ticks = stats.filter(|stat| stat.contains("(sqlite-writer)")).map(|stat| {
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()
    });
    ticks.sum::<f64>() / 100.0
}

fn percentile(times: &mut [Duration], part: f64) -> f64 {
    times.sort();
    times[((times.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e6
}

fn latency(runtime: &Runtime) {
    let body = stored_event(runtime);
    let folder = folder();
    let mut file = File::create(folder.path().join("raw")).unwrap();
    let store = open(folder.path(), 256);
    let run = new_run();
    let (mut raw, mut stored, mut after) = (Vec::new(), Vec::new(), 0);
    for _ in 0..ROUNDS {
        let until = Instant::now() + ROUND;
        while Instant::now() < until {
            let begun = Instant::now();
            file.write_all(&body).unwrap();
            file.sync_data().unwrap();
            raw.push(begun.elapsed());
        }
        let until = Instant::now() + ROUND;
        runtime.block_on(async {
            while Instant::now() < until {
                let change = change(run, after, 1);
                let begun = Instant::now();
                after = store.append(change).await.unwrap().last;
                stored.push(begun.elapsed());
            }
        });
    }
    let (raw50, raw99) = (percentile(&mut raw, 0.5), percentile(&mut raw, 0.99));
    let (p50, p99) = (percentile(&mut stored, 0.5), percentile(&mut stored, 0.99));
    println!("(b) latency of one append in us: p50 {p50:.0}, p99 {p99:.0}");
    println!(
        "    one event appended and fdatasync: p50 {raw50:.0}, p99 {raw99:.0}; p50 ratio {:.1}",
        p50 / raw50
    );
}

/// Fills one run, in changes of 256 events.
async fn fill(store: &SqliteStore, events: u64) -> RunId {
    let run = new_run();
    let mut after = 0;
    while after < events {
        let more = (events - after).min(256) as usize;
        after = store.append(change(run, after, more)).await.unwrap().last;
    }
    run
}

async fn read_all(store: &SqliteStore, run: RunId) -> (u64, u64) {
    let (mut after, mut bytes) = (0, 0);
    loop {
        let page = store.read(run, after, 2_000).await.unwrap();
        let Some(last) = page.last() else { return (after, bytes) };
        after = last.sequence;
        bytes += page.iter().map(|event| event.body.len() as u64).sum::<u64>();
    }
}

fn replay(runtime: &Runtime) {
    let folder = folder();
    let store = open(folder.path(), 256);
    runtime.block_on(async {
        let run = fill(&store, 100_000).await;
        let mut rates = Vec::new();
        for _ in 0..ROUNDS {
            let begun = Instant::now();
            let (events, bytes) = read_all(&store, run).await;
            assert_eq!(events, 100_000);
            rates.push(bytes as f64 / begun.elapsed().as_secs_f64() / 1e6);
        }
        println!("(c) replay of 100,000 events: {:.0} MB/s", median(rates));
    });
}

fn replay_interleaved(runtime: &Runtime) {
    let folder = folder();
    let store = open(folder.path(), 256);
    runtime.block_on(async {
        let mut runs: Vec<(RunId, u64)> = (0..RUNS).map(|_| (new_run(), 0)).collect();
        for _ in 0..16 {
            store_round(&store, &mut runs, 4).await;
        }
        let begun = Instant::now();
        let mut bytes = 0;
        for (run, _) in &runs {
            bytes += read_all(&store, *run).await.1;
        }
        let events: u64 = runs.iter().map(|(_, after)| after).sum();
        let rate = bytes as f64 / begun.elapsed().as_secs_f64() / 1e6;
        println!("    replay of {RUNS} runs written at the same time, {events} events: {rate:.0} MB/s");
    });
}

fn tails(runtime: &Runtime) {
    const TAILS: usize = 1_000;
    const EVENTS: u64 = 2_000;
    let folder = folder();
    let store = open(folder.path(), 256);
    runtime.block_on(async {
        let run = new_run();
        let mut after = store.append(change(run, 0, 1)).await.unwrap().last;
        let mut tasks = JoinSet::new();
        for _ in 0..TAILS {
            let mut tail = Tail::open(Arc::clone(&store), run, 0).await.unwrap();
            tasks.spawn(async move {
                let mut seen = 0;
                while seen < EVENTS {
                    seen += tail.next().await.unwrap().len() as u64;
                }
            });
        }
        let begun = Instant::now();
        while after < EVENTS {
            let more = (EVENTS - after).min(16) as usize;
            after = store.append(change(run, after, more)).await.unwrap().last;
        }
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
        let seconds = begun.elapsed().as_secs_f64();
        let delivered = TAILS as f64 * EVENTS as f64 / seconds;
        println!(
            "(d) {TAILS} tails of one run: {delivered:.0} events/s delivered ({:.0} appended/s)",
            EVENTS as f64 / seconds
        );
    });
}

/// Microseconds per append while 64 are under way, each to the next of `runs`.
async fn cost(store: &Arc<SqliteStore>, runs: &mut [(RunId, u64)], appends: usize) -> f64 {
    let begun = Instant::now();
    let lanes = RUNS.min(runs.len());
    let size = runs.len().div_ceil(lanes);
    let mut tasks = JoinSet::new();
    for (lane, own) in runs.chunks(size).enumerate() {
        let (store, mut own) = (Arc::clone(store), own.to_vec());
        tasks.spawn(async move {
            for turn in 0..appends / lanes {
                // Far apart, so that neighbours do not share a page.
                let index = turn * 7_919 % own.len();
                let (run, after) = own[index];
                own[index].1 = store.append(change(run, after, 1)).await.unwrap().last;
            }
            (lane, own)
        });
    }
    while let Some(done) = tasks.join_next().await {
        let (lane, own) = done.unwrap();
        runs[lane * size..lane * size + own.len()].copy_from_slice(&own);
    }
    begun.elapsed().as_secs_f64() * 1e6 / appends as f64
}

fn size(runtime: &Runtime) {
    println!(
        "(e) microseconds per append, 64 under way (10 with 10 runs); in brackets the raw loop at that time"
    );
    for count in [10, 1_000, 100_000] {
        let folder = folder();
        let store = open(folder.path(), 256);
        let mut runs: Vec<(RunId, u64)> = (0..count).map(|_| (new_run(), 0)).collect();
        runtime.block_on(cost(&store, &mut runs, count));
        let steady = median((0..3).map(|_| runtime.block_on(cost(&store, &mut runs, 20_000))).collect());
        println!("    {count:7} runs: {steady:.1} {}", raw_note(folder.path()));
    }
    let folder = folder();
    let store = open(folder.path(), 256);
    runtime.block_on(async {
        for events in [100, 100_000] {
            let run = fill(&store, events).await;
            let mut runs = [(run, events)];
            let steady = cost(&store, &mut runs, 2_000).await;
            println!(
                "    one run with {events:6} events, one append under way: {steady:.1} {}",
                raw_note(folder.path())
            );
        }
    });
}

/// The disk changes its mind from second to second, so each figure gets the disk's own beside it.
fn raw_note(folder: &Path) -> String {
    let mut file = File::create(folder.join("raw")).unwrap();
    let rate = raw_round(&mut file, &[7; 1_100], 1);
    format!("[one event and fdatasync: {:.0}]", 1e6 / rate)
}

fn chain(runtime: &Runtime) {
    let body = stored_event(runtime);
    let begun = Instant::now();
    const TIMES: u32 = 200_000;
    for _ in 0..TIMES {
        std::hint::black_box(Hash::of(std::hint::black_box(&body)));
    }
    let cost = begun.elapsed().as_secs_f64() * 1e6 / f64::from(TIMES);
    println!("(f) the hash chain: {cost:.2} us per event of {} B", body.len());
}

/// A run of an agent on a thread of its own, which has one tool call: one claim and four commits, each durable.
async fn agent_run(store: &SqliteStore) {
    let (thread, run) = (fresh_thread(), fresh_agent_run());
    store.create_thread(&thread, Safe::NULL).await.unwrap();
    turn(store, &thread, &run, 0).await;
}

/// One turn of a conversation: 4 messages, of which the last ends the run.
async fn turn(store: &SqliteStore, thread: &ThreadId, run: &AgentRunId, version: u64) -> u64 {
    let term = Duration::from_secs(60);
    let claim = granted(store.claim(thread, run, "benchmark".into(), term).await.unwrap());
    for step in 0..4 {
        let mut writes = ThreadWrites { messages: vec![text().into()], ..ThreadWrites::default() };
        match step {
            0 => writes.record = record("running").record,
            1 => {
                let key = KeyDigest::of(&[run.as_str()]);
                let payload = Safe::object([("tool", "read".into())]);
                writes.journal = vec![JournalWrite::Intent { call: "call".into(), key, payload }];
            }
            2 => {
                let payload = Safe::object([("ok", true.into())]);
                writes.journal = vec![JournalWrite::Result { call: "call".into(), payload }];
                writes.values =
                    vec![ValueWrite::Set { scope: Scope::Thread, key: "turn".into(), value: version.into() }];
            }
            _ => writes.record = record("done").record,
        }
        let mut commit = commit_of(thread, run, &claim, version + step, writes);
        if step == 3 {
            commit.claim = ClaimAfter::Released;
        }
        store.commit(commit).await.unwrap();
    }
    version + 4
}

/// Does something again and again in so many tasks, for a while; times per second.
async fn repeated<F: Future<Output = ()> + Send + 'static>(
    tasks: usize,
    job: impl Fn(usize) -> F + Send + Sync + 'static,
) -> f64 {
    let (begun, job) = (Instant::now(), Arc::new(job));
    let mut lanes = JoinSet::new();
    for task in 0..tasks {
        let job = Arc::clone(&job);
        lanes.spawn(async move {
            let mut done = 0;
            while begun.elapsed() < ROUND {
                job(task).await;
                done += 1;
            }
            done
        });
    }
    let done: u64 = lanes.join_all().await.into_iter().sum();
    done as f64 / begun.elapsed().as_secs_f64()
}

fn threads(runtime: &Runtime) {
    println!("(g) threads, medians of {ROUNDS} rounds in turns; a message is about 0.8 kB");
    println!("    under way   appends/s   commits/s   runs/s of 1 claim and 4 commits (and a new thread)");
    for under_way in [1, 64, 256] {
        let folder = folder();
        let store = open(folder.path(), 256);
        let mut runs: Vec<(RunId, u64)> = (0..under_way).map(|_| (new_run(), 0)).collect();
        let mut own = Vec::new();
        runtime.block_on(async {
            for _ in 0..under_way {
                own.push(Arc::new((began(&*store).await, AtomicU64::new(0))));
            }
        });
        let (mut appends, mut commits, mut all) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            appends.push(runtime.block_on(store_round(&store, &mut runs, 1)));
            let (shared, lanes) = (Arc::clone(&store), own.clone());
            commits.push(runtime.block_on(repeated(under_way, move |task| {
                let lane = Arc::clone(&lanes[task]);
                let store = Arc::clone(&shared);
                async move {
                    let ((thread, run, claim), version) = &*lane;
                    let expected = version.fetch_add(1, Ordering::SeqCst);
                    let writes = ThreadWrites { messages: vec![text().into()], ..ThreadWrites::default() };
                    store.commit(commit_of(thread, run, claim, expected, writes)).await.unwrap();
                }
            })));
            let shared = Arc::clone(&store);
            all.push(runtime.block_on(repeated(under_way, move |_| {
                let store = Arc::clone(&shared);
                async move { agent_run(&store).await }
            })));
        }
        println!("    {under_way:9} {:11.0} {:11.0} {:8.0}", median(appends), median(commits), median(all));
    }
}

/// What a turn costs the longer the thread, and the more threads there are.
fn thread_growth(runtime: &Runtime) {
    let folder = folder();
    let store = open(folder.path(), 256);
    let cost = async |threads: &mut Vec<(ThreadId, u64)>, turns: usize| {
        let cpu = writer_cpu_seconds();
        let begun = Instant::now();
        for n in 0..turns {
            let index = n * 7_919 % threads.len();
            let (thread, version) = &mut threads[index];
            *version = turn(&store, thread, &fresh_agent_run(), *version).await;
        }
        let per = |seconds: f64| seconds * 1e6 / turns as f64;
        (per(begun.elapsed().as_secs_f64()), per(writer_cpu_seconds() - cpu))
    };
    runtime.block_on(async {
        let make = async |count: usize| {
            let mut threads = Vec::new();
            for _ in 0..count {
                let thread = fresh_thread();
                store.create_thread(&thread, Safe::NULL).await.unwrap();
                threads.push((thread, 0));
            }
            threads
        };
        let mut one = make(1).await;
        for upto in [200, 400, 600, 800, 1_000] {
            let (wall, cpu) = cost(&mut one, 200).await;
            println!("    one thread up to turn {upto:5}: {wall:.0} us, of the writer's CPU {cpu:.0}");
        }
        for count in [10, 1_000, 10_000] {
            let mut threads = make(count).await;
            let (wall, cpu) = cost(&mut threads, 1_000).await;
            println!("    a turn with {count:6} threads: {wall:.0} us, of the writer's CPU {cpu:.0}");
        }
    });
}

/// The batches to measure: all, or those that `RUNYARD_BENCH_BATCHES` names.
fn batch_sizes() -> Vec<usize> {
    let asked = std::env::var("RUNYARD_BENCH_BATCHES").unwrap_or_else(|_| "1,16,64,256".to_owned());
    asked.split(',').map(|batch| batch.parse().unwrap()).collect()
}
