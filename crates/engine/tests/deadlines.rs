//! Deadlines over a hub's death and against a clock of their own: time in which nobody looked after a run is not the run's, and
//! a timer that is refused keeps nobody busy.
//!
//! clause: C12
//! clause: J05

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use runyard_backend::link::{OpenRun, ToEdge};
use runyard_domain::run::RunState;
use runyard_domain::{Code, ExecutionPolicy, RunId, Timestamp};
use runyard_engine::{Decision, Engine, Limits, NewRun, Resolve};
use runyard_store::{Clock, ManualClock, MemoryStore};

use support::*;

const HOUR_MS: i64 = 60 * 60 * 1000;

fn limited(timeout_ms: u64) -> NewRun {
    let policy = ExecutionPolicy { timeout_ms, ..ExecutionPolicy::default() };
    NewRun { execution_policy: Some(policy.into()), ..new_run("x") }
}

#[tokio::test]
async fn c12_what_a_run_asks_when_its_time_is_over_is_asked_of_nobody() {
    let clock = Arc::new(ManualClock::at(1_700_000_000_000));
    let (engine, mut edge) = World { clock: clock.clone(), ..World::default() }.hub_and_edge().await;
    let run = engine.create_run(limited(60_000), &person()).await.unwrap().standing.run.id;
    let open = edge.start().await;
    // Whether a timer was looked at before it asks or not.
    clock.advance_ms(60_000);
    edge.report(&open, 4, vec![asked("a1", "ls")]).await;
    let ToEdge::Refused { fenced: false, .. } = edge.hear().await else { panic!("it is late") };
    let RunState::Failed { failure } = until(&engine, run, "failed").await.state else { panic!() };
    assert_eq!(failure.code, Code::RunTimeout);
    assert!(engine.open_approvals(Some(run), None, 10, true).await.unwrap().is_empty());
}

#[tokio::test]
async fn c12_time_in_which_no_hub_was_there_counts_toward_no_timeout() {
    let clock = Arc::new(ManualClock::at(1_700_000_000_000));
    let shared: Arc<dyn Clock> = Arc::<ManualClock>::clone(&clock);
    let store = Arc::new(MemoryStore::with_clock(Arc::clone(&shared)));
    let world = World { store, clock: shared, ..World::default() };
    let (engine, mut edge) = world.hub_and_edge().await;
    let run = engine.create_run(limited(10_000), &person()).await.unwrap().standing.run.id;
    let open = edge.start().await;
    clock.advance_ms(4_000);
    edge.recorded(&open, 4, vec![call("c1", true), result("c1")]).await;
    engine.stop();
    drop((engine, edge));
    clock.advance_ms(HOUR_MS);
    let (engine, mut edge) = world.hub_and_edge().await;
    assert_eq!(edge.opened().await.run, run, "it goes on");
    let taken_up = engine.run(run).await.unwrap().run;
    assert_eq!((taken_up.state.name(), taken_up.active_ms(clock.now())), ("running", 4_000));
    assert_eq!(
        world.store.next_timer().await.unwrap(),
        Some(clock.now().plus_ms(6_000)),
        "it has what it had left"
    );
    let kinds = kinds(&engine, run).await;
    assert_eq!(kinds.last().map(String::as_str), Some("runtime.status"), "that nobody was there is recorded");
    clock.advance_ms(6_000);
    let RunState::Failed { failure } = until(&engine, run, "failed").await.state else { panic!() };
    assert_eq!(failure.code, Code::RunTimeout, "and no more than that");
}

/// One place for two runs: the first was asked something and parked, the second one has its place when the answer comes.
struct OnePlace {
    clock: Arc<ManualClock>,
    world: World,
    engine: Engine,
    edge: PlayedEdge,
    /// The one that waits, of whose time four seconds are used up.
    run: RunId,
    /// The one that has the place.
    other: RunId,
    taken: OpenRun,
}

impl OnePlace {
    async fn waited_for(timeout_ms: u64) -> OnePlace {
        let clock = Arc::new(ManualClock::at(1_700_000_000_000));
        let shared: Arc<dyn Clock> = Arc::<ManualClock>::clone(&clock);
        let store = Arc::new(MemoryStore::with_clock(Arc::clone(&shared)));
        let limits = Limits { runs_per_edge_max: 1, park_after_ms: 1, ..Limits::default() };
        let world = World { store, clock: shared, limits, ..World::default() };
        let (engine, mut edge) = world.hub_and_edge().await;
        let run = engine.create_run(limited(timeout_ms), &person()).await.unwrap().standing.run.id;
        let open = edge.start().await;
        clock.advance_ms(4_000);
        edge.recorded(&open, 4, vec![asked("a1", "ls")]).await;
        assert!(!edge.closes(run).await, "it is parked");
        let other = engine.create_run(new_run("y"), &person()).await.unwrap().standing.run.id;
        let taken = edge.start().await;
        assert_eq!(taken.run, other);
        let waiting = engine.open_approvals(Some(run), None, 10, true).await.unwrap().remove(0);
        let yes = Resolve::new(Decision::Approve, &waiting.asked.digest);
        engine.resolve(waiting.asked.approval_id, yes, &person()).await.unwrap();
        let waits = OnePlace { clock, world, engine, edge, run, other, taken };
        let before = waits.told().await;
        waits.clock.advance_ms(60_000);
        // Its timer is due, and says only that it waits.
        while waits.told().await == before {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        waits
    }

    /// How often it was said that it waits.
    async fn told(&self) -> usize {
        let kinds = kinds(&self.engine, self.run).await;
        kinds.iter().filter(|kind| *kind == "runtime.status").count()
    }
}

#[tokio::test]
async fn c12_time_in_which_an_approved_run_waits_for_a_place_counts_toward_no_timeout() {
    let OnePlace { clock, engine, mut edge, run, other, taken, .. } = OnePlace::waited_for(10_000).await;
    clock.advance_ms(5_000);
    edge.recorded(&taken, 4, vec![turn_ended()]).await;
    assert!(edge.closes(other).await);
    assert_eq!(edge.opened().await.run, run, "now it has a place");
    let placed = engine.run(run).await.unwrap().run;
    assert_eq!((placed.state.name(), placed.active_ms(clock.now())), ("running", 4_000));
    clock.advance_ms(6_000);
    let RunState::Failed { failure } = until(&engine, run, "failed").await.state else { panic!() };
    assert_eq!(failure.code, Code::RunTimeout, "it has what it had left, and no more than that");
}

#[tokio::test]
async fn c12_a_run_with_hardly_any_time_left_does_not_fill_its_log_while_it_waits_for_a_place() {
    let waits = OnePlace::waited_for(4_001).await;
    let due = waits.world.store.next_timer().await.unwrap().unwrap();
    assert!(
        due >= waits.clock.now().plus_ms(1_000),
        "a millisecond is left, and it is said again at {due:?}"
    );
}

#[tokio::test]
async fn j05_a_run_that_is_taken_up_at_once_says_nothing_about_it() {
    let clock = Arc::new(ManualClock::at(1_700_000_000_000));
    let shared: Arc<dyn Clock> = Arc::<ManualClock>::clone(&clock);
    let store = Arc::new(MemoryStore::with_clock(Arc::clone(&shared)));
    let world = World { store, clock: shared, ..World::default() };
    let (engine, mut edge) = world.hub_and_edge().await;
    let run = engine.create_run(new_run("x"), &person()).await.unwrap().standing.run.id;
    edge.start().await;
    let before = engine.run(run).await.unwrap().sequence;
    engine.stop();
    drop((engine, edge));
    clock.advance_ms(999);
    let (engine, mut edge) = world.hub_and_edge().await;
    edge.opened().await;
    assert_eq!(engine.run(run).await.unwrap().sequence, before);
}

/// A clock that stands still and counts who looks at it.
struct Counting {
    at: Timestamp,
    looks: AtomicU64,
}

impl Clock for Counting {
    fn now(&self) -> Timestamp {
        self.looks.fetch_add(1, Ordering::SeqCst);
        self.at
    }
}

#[tokio::test(start_paused = true)]
async fn a_timer_that_is_refused_again_and_again_is_tried_less_and_less() {
    let at = Timestamp::from_unix_ms(1_700_000_000_000);
    let ahead = Arc::new(ManualClock::at(at.unix_ms()));
    let clock = Arc::new(Counting { at, looks: AtomicU64::new(0) });
    let shared: Arc<dyn Clock> = Arc::<Counting>::clone(&clock);
    let store = Arc::new(MemoryStore::with_clock(Arc::<ManualClock>::clone(&ahead)));
    let world = World { store, clock: shared, ..World::default() };
    let (engine, mut edge) = world.hub_and_edge().await;
    let run = engine.create_run(limited(10_000), &person()).await.unwrap().standing.run.id;
    edge.start().await;
    // Due for the store, and not for the hub.
    ahead.advance_ms(HOUR_MS);
    assert_eq!(world.store.due_timers(10).await.unwrap().len(), 1);
    clock.looks.store(0, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    let looks = clock.looks.load(Ordering::SeqCst);
    assert!((60..2_000).contains(&looks), "about one try in a minute, and it is still tried: {looks}");
    assert_eq!(engine.run(run).await.unwrap().run.state.name(), "running");
}

#[tokio::test(start_paused = true)]
async fn c12_a_run_is_timed_out_by_the_hub_that_looks_after_it_and_by_another_only_where_that_one_is_gone() {
    let clock = Arc::new(ManualClock::at(1_700_000_000_000));
    let shared: Arc<dyn Clock> = Arc::<ManualClock>::clone(&clock);
    let store = Arc::new(MemoryStore::with_clock(Arc::clone(&shared)));
    let world = World { store, clock: shared, ..World::default() };
    // It never looks at its timers.
    let theirs = world.hub().await;
    let mut edge = PlayedEdge::attach(&theirs).await;
    let run = theirs.create_run(limited(10_000), &person()).await.unwrap().standing.run.id;
    edge.start().await;
    let ours = world.hub_of(&[]).await;
    ours.go().await.unwrap();
    clock.advance_ms(10_001);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(ours.run(run).await.unwrap().run.state, RunState::Running, "it may wait for a place there");
    clock.advance_ms(i64::try_from(world.limits.lease_ms).unwrap());
    // It is tried less and less often meanwhile.
    tokio::time::sleep(Duration::from_secs(60)).await;
    let RunState::Failed { failure } = until(&ours, run, "failed").await.state else { panic!() };
    assert_eq!(failure.code, Code::RunTimeout);
}
