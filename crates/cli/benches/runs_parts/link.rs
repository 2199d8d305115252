//! Appends through an edge's link: batches that a played edge reports, over the serialised link, into a database on disk.

use std::sync::Arc;
use std::time::{Duration, Instant};

use runyard_backend::link::{FromEdge, OpenRun, Report, ToEdge};
use runyard_store_sqlite::{OpenOptions, SqliteStore};

use crate::Asked;
use crate::played::{World, new_run, person};

/// For how long each case is measured.
const CASE: Duration = Duration::from_secs(3);

pub(crate) fn appends(asked: &Asked) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let case = if asked.quick { Duration::from_millis(300) } else { CASE };
    for runs in [1, 8] {
        for batch in [1, 16, 64] {
            let (events, batches, took) = runtime.block_on(measured(runs, batch, case));
            println!(
                "  {runs} runs, batches of {batch}: {:.0} events a second in {:.0} batches a second",
                events as f64 / took,
                batches as f64 / took
            );
        }
    }
}

/// Events, batches and seconds.
async fn measured(runs: usize, batch: usize, case: Duration) -> (usize, usize, f64) {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(OpenOptions::new(folder.path().join("runyard.db"), "bench")).unwrap();
    let world = World { store: Arc::new(store), ..World::default() };
    let (engine, mut edge) = world.hub_and_edge().await;
    let mut open = Vec::new();
    for _ in 0..runs {
        engine.create_run(new_run("talk"), &person()).await.unwrap();
        open.push((edge.start().await, 3));
    }
    let begun = Instant::now();
    for (run, sequence) in &mut open {
        *sequence += 1;
        edge.say(report(run, *sequence, batch)).await;
    }
    let (mut batches, mut under_way) = (0, runs);
    // Each run has one batch on its way, as an edge does it.
    while under_way > 0 {
        let id = match edge.hear().await {
            ToEdge::Recorded { run, .. } => run,
            other => {
                let state = engine.run(open[0].0.run).await.unwrap().run.state;
                panic!("expected Recorded, not {other:?}: {state:?}")
            }
        };
        batches += 1;
        if begun.elapsed() >= case {
            under_way -= 1;
            continue;
        }
        let (run, sequence) = open.iter_mut().find(|(run, _)| run.run == id).unwrap();
        *sequence += 1;
        edge.say(report(run, *sequence, batch)).await;
    }
    let took = begun.elapsed().as_secs_f64();
    engine.stop();
    (batches * batch, batches, took)
}

fn report(open: &OpenRun, edge_sequence: u64, batch: usize) -> FromEdge {
    let text = "Some words of an agent, about as many as come at a time in a stream.";
    let delta = |_| Report::Delta { item: "message-1".to_owned(), text: text.to_owned(), offset: 0 };
    let reports = (0..batch).map(delta).collect();
    FromEdge::Batch { run: open.run, generation: open.generation, edge_sequence, reports }
}
