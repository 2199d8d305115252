//! What holds of state whatever is done to it.
//!
//! 128 cases by default; `RUNYARD_PROOF=soak` makes it many more.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

mod support;

use proptest::collection::vec;
use proptest::prelude::*;
use runyard_agent::state::{
    MutationBatch, PersistedState, Scope, Snapshot, StateKey, StateStore, UnknownKeyPolicy,
};
use support::{Journal, Label, Memory, Scratch, Tally, Touchy, cases, environment, stored};

/// A change, as data, so that the same batch can be made twice.
#[derive(Debug, Clone)]
enum Step {
    Tally(i64),
    Label(String),
    Memory(String, u32),
    Journal(String),
    Scratch(String),
}

fn commutative() -> impl Strategy<Value = Step> {
    prop_oneof![
        any::<i64>().prop_map(Step::Tally),
        ("[a-d]", 0u32..9).prop_map(|(word, count)| Step::Memory(word, count))
    ]
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        commutative(),
        "[a-z]{0,4}".prop_map(Step::Label),
        "[a-z]{0,4}".prop_map(Step::Journal),
        "[a-z]{0,4}".prop_map(Step::Scratch),
    ]
}

fn batch(steps: &[Step]) -> MutationBatch {
    let mut batch = MutationBatch::new();
    for step in steps.iter().cloned() {
        match step {
            Step::Tally(more) => batch.update::<Tally>(more),
            Step::Label(word) => batch.update::<Label>(word),
            Step::Memory(word, count) => batch.update::<Memory>((word, count)),
            Step::Journal(line) => batch.update::<Journal>(line),
            Step::Scratch(word) => batch.update::<Scratch>(word),
        }
    }
    batch
}

/// Everything that can be read of a snapshot.
fn seen(snapshot: &Snapshot) -> impl PartialEq + std::fmt::Debug + use<> {
    (snapshot.revision(), stored(snapshot), snapshot.get::<Scratch>().cloned())
}

fn start(before: &[Vec<Step>]) -> StateStore {
    let store = StateStore::new(&environment());
    before.iter().for_each(|steps| drop(store.commit(batch(steps)).unwrap()));
    store
}

proptest! {
    #![proptest_config(cases(128))]

    // clause: D16
    #[test]
    fn d16_commutative_batches_merge_to_the_same_in_any_order(
        (batches, shuffled) in vec(vec(commutative(), 0..4), 0..6)
            .prop_flat_map(|batches| (Just(batches.clone()), Just(batches).prop_shuffle()))
    ) {
        let merged = |batches: &[Vec<Step>]| {
            let all = batches.iter().try_fold(MutationBatch::new(), |all, steps| all.merge_parallel(batch(steps)));
            stored(&StateStore::new(&environment()).commit(all.unwrap()).unwrap())
        };
        let one_by_one = stored(&start(&batches).snapshot());
        prop_assert_eq!(merged(&batches), merged(&shuffled));
        prop_assert_eq!(merged(&shuffled), one_by_one);
    }

    // clause: D16
    #[test]
    fn d16_a_refused_batch_changes_nothing(
        before in vec(vec(any_step(), 0..4), 0..6),
        refused in vec(any_step(), 0..6),
        off in 1u64..9,
    ) {
        let store = start(&before);
        let unchanged = seen(&store.snapshot());
        let late = MutationBatch::based_on(store.snapshot().revision() + off).merge(batch(&refused)).unwrap();
        prop_assert!(store.commit(late).is_err());
        prop_assert_eq!(&seen(&store.snapshot()), &unchanged);
        struct Nobody;
        impl StateKey for Nobody {
            const KEY: &'static str = "test.nobody";
            type Value = u8;
            type Update = u8;
            fn apply(value: &mut u8, update: u8) {
                *value = update;
            }
        }
        prop_assert!(store.commit(batch(&refused).with::<Nobody>(1)).is_err());
        prop_assert_eq!(&seen(&store.snapshot()), &unchanged);
        let panicking = batch(&refused).with::<Touchy>(0);
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| store.commit(panicking)));
        prop_assert!(panicked.is_err());
        prop_assert_eq!(&seen(&store.snapshot()), &unchanged);
    }

    // clause: D16
    #[test]
    fn d16_a_snapshot_never_sees_what_is_committed_later(batches in vec(vec(any_step(), 0..4), 0..8)) {
        let store = StateStore::new(&environment());
        let mut kept = vec![(store.snapshot(), seen(&store.snapshot()))];
        for steps in &batches {
            let snapshot = store.commit(batch(steps)).unwrap();
            kept.push((snapshot.clone(), seen(&snapshot)));
        }
        store.clear_run_scope();
        for (snapshot, then) in &kept {
            prop_assert_eq!(&seen(snapshot), then);
        }
    }

    // clause: D16
    #[test]
    fn d16_what_is_exported_reads_back_as_the_same(batches in vec(vec(any_step(), 0..4), 0..8)) {
        let snapshot = start(&batches).snapshot();
        let store = StateStore::new(&environment());
        for scope in [Scope::Thread, Scope::Run] {
            let exported = snapshot.export(scope).unwrap();
            let text = serde_json::to_string(&exported).unwrap();
            let read: PersistedState = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(&read, &exported);
            let restored = store.restore(&read, UnknownKeyPolicy::Error).unwrap();
            prop_assert_eq!(restored.export(scope).unwrap().values, exported.values);
        }
        prop_assert_eq!(stored(&store.snapshot()), stored(&snapshot));
        prop_assert!(store.snapshot().revision() >= snapshot.revision());
    }

    // clause: D16
    #[test]
    fn d16_changes_one_after_the_other_add_up_to_the_whole(
        batches in vec((vec(any_step(), 0..4), any::<bool>(), 0..10u8), 0..8)
    ) {
        let store = StateStore::new(&environment());
        let scopes = [Scope::Run, Scope::Thread];
        let mut checkpoints = [PersistedState::default(), PersistedState::default()];
        for (steps, checkpoint_now, clear) in &batches {
            store.commit(batch(steps)).unwrap();
            if *clear == 0 {
                store.clear_run_scope();
            }
            if *checkpoint_now {
                for (scope, checkpoint) in scopes.into_iter().zip(&mut checkpoints) {
                    let changes = store.snapshot().export_changes(scope, checkpoint.revision).unwrap();
                    checkpoint.apply(changes);
                    prop_assert_eq!(&*checkpoint, &store.snapshot().export(scope).unwrap());
                }
            }
        }
    }

    // clause: D16
    #[test]
    fn d16_any_interleaving_of_commits_loses_none_and_keeps_revisions_rising(
        writers in vec(vec(1i64..100, 1..20), 1..5)
    ) {
        let store = StateStore::new(&environment());
        let sums: i64 = writers.iter().flatten().sum();
        let commits: u64 = writers.iter().map(|writer| writer.len() as u64).sum();
        let made: Vec<u64> = std::thread::scope(|scope| {
            let running: Vec<_> = writers.iter().map(|writer| {
                let store = store.clone();
                scope.spawn(move || {
                    let made: Vec<u64> = writer.iter().map(|more| {
                        let revision = store.commit(MutationBatch::new().with::<Tally>(*more)).unwrap().revision();
                        assert!(store.snapshot().revision() >= revision);
                        revision
                    }).collect();
                    assert!(made.is_sorted_by(|earlier, later| earlier < later));
                    made
                })
            }).collect();
            running.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
        });
        let each_once: std::collections::BTreeSet<u64> = made.iter().copied().collect();
        prop_assert_eq!(each_once, (1..=commits).collect());
        prop_assert_eq!(store.snapshot().get::<Tally>().copied(), Some(sums));
    }
}
