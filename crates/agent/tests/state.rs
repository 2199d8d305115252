//! State: batches whole or not at all, frozen revisions, what a commit costs, what is stored and read back.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use runyard_agent::plugin::{Environment, InstallError, Plugin, Registrar};
use runyard_agent::state::{
    KeyOptions, MutationBatch, PersistedState, Scope, StateError, StateKey, StateStore, UnknownKeyPolicy,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use support::{Journal, Label, Memory, Scratch, Tally, Touchy, environment, stored};

fn label(word: &str) -> MutationBatch {
    MutationBatch::new().with::<Label>(word.to_owned())
}

// clause: D16
#[test]
fn d16_a_batch_is_applied_whole_and_in_order() {
    let store = StateStore::new(&environment());
    let batch = label("a").with::<Tally>(2).with::<Label>("b".to_owned()).with::<Tally>(3);
    assert_eq!(batch.touched_keys(), ["test.label", "test.tally"]);
    let snapshot = store.commit(batch).unwrap();
    assert_eq!(snapshot.revision(), 1);
    assert_eq!(snapshot.get::<Label>().unwrap(), "b");
    assert_eq!(snapshot.get::<Tally>(), Some(&5));
    assert_eq!(snapshot.get::<Journal>(), None);
}

#[test]
fn d16_a_batch_for_another_revision_or_with_an_unknown_key_changes_nothing() {
    let store = StateStore::new(&Environment::default());
    let unknown = store.commit(label("a")).unwrap_err();
    assert_eq!(unknown, StateError::UnknownKey { key: "test.label".to_owned() });
    let store = StateStore::new(&environment());
    store.commit(label("a")).unwrap();
    let late = MutationBatch::based_on(0).with::<Tally>(1).with::<Label>("b".to_owned());
    assert_eq!(store.commit(late).unwrap_err(), StateError::RevisionConflict { expected: 0, actual: 1 });
    assert_eq!(store.snapshot().revision(), 1);
    assert_eq!(stored(&store.snapshot()), [("test.label".to_owned(), json!("a"))].into());
    store.commit(MutationBatch::based_on(1).with::<Tally>(1)).unwrap();
}

#[test]
fn d16_a_panic_in_the_middle_of_a_batch_changes_nothing() {
    let store = StateStore::new(&environment());
    store.commit(label("a").with::<Touchy>(1)).unwrap();
    let batch = label("b").with::<Touchy>(0);
    assert!(catch_unwind(AssertUnwindSafe(|| store.commit(batch))).is_err());
    assert_eq!(store.snapshot().revision(), 1);
    assert_eq!(store.snapshot().get::<Label>().unwrap(), "a");
    assert_eq!(store.commit(label("c")).unwrap().revision(), 2, "the store goes on");
}

#[test]
fn d16_an_empty_batch_makes_no_revision() {
    let store = StateStore::new(&environment());
    assert_eq!(store.commit(MutationBatch::new()).unwrap().revision(), 0);
}

#[test]
fn d16_batches_side_by_side_meet_by_name_at_an_exclusive_key_alone() {
    let merged = MutationBatch::new().with::<Tally>(1).merge_parallel(label("a").with::<Tally>(2)).unwrap();
    let conflict = merged.merge_parallel(label("b")).unwrap_err();
    assert_eq!(conflict, StateError::ParallelMergeConflict { key: "test.label".to_owned() });
    let based = MutationBatch::based_on(3).merge_parallel(label("a")).unwrap();
    assert_eq!(based.base_revision(), Some(3));
    let mismatch = based.merge_parallel(MutationBatch::based_on(4)).unwrap_err();
    assert_eq!(mismatch, StateError::MutationBaseRevisionMismatch { left: 3, right: 4 });
    let one_after_the_other = label("a").merge(label("b")).unwrap();
    let store = StateStore::new(&environment());
    assert_eq!(store.commit(one_after_the_other).unwrap().get::<Label>().unwrap(), "b");
}

// What a commit costs

static FILLER_CLONES: AtomicUsize = AtomicUsize::new(0);
static HEAVY_CLONES: AtomicUsize = AtomicUsize::new(0);

#[derive(Default, Serialize, Deserialize)]
struct Counted(u32);

impl Clone for Counted {
    fn clone(&self) -> Self {
        FILLER_CLONES.fetch_add(1, Ordering::Relaxed);
        Counted(self.0)
    }
}

#[derive(Default, Serialize, Deserialize)]
struct Heavy(Vec<u32>);

impl Clone for Heavy {
    fn clone(&self) -> Self {
        HEAVY_CLONES.fetch_add(1, Ordering::Relaxed);
        Heavy(self.0.clone())
    }
}

struct HeavyKey;

impl StateKey for HeavyKey {
    const KEY: &'static str = "heavy";
    type Value = Heavy;
    type Update = u32;

    fn apply(value: &mut Heavy, update: u32) {
        value.0.push(update);
    }
}

/// One of 2,048 keys.
struct Filler<const A: u8, const B: u8, const C: u8>;

impl<const A: u8, const B: u8, const C: u8> Filler<A, B, C> {
    const NAME: [u8; 3] = [b'a' + A, b'a' + B, b'a' + C];
}

impl<const A: u8, const B: u8, const C: u8> StateKey for Filler<A, B, C> {
    const KEY: &'static str = match std::str::from_utf8(&Self::NAME) {
        Ok(name) => name,
        Err(_) => "never",
    };
    type Value = Counted;
    type Update = u32;

    fn apply(value: &mut Counted, update: u32) {
        value.0 = update;
    }
}

macro_rules! for_each_digit {
    ($digit:ident in $($value:literal)* => $body:expr) => {
        $({
            const $digit: u8 = $value;
            $body;
        })*
    };
}

fn add_all(environment: &mut Environment) {
    for_each_digit!(A in 0 1 2 3 4 5 6 7 => add_second::<A>(environment));
}

fn add_second<const A: u8>(environment: &mut Environment) {
    for_each_digit!(B in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 => add_third::<A, B>(environment));
}

fn add_third<const A: u8, const B: u8>(environment: &mut Environment) {
    for_each_digit!(C in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 => add::<A, B, C>(environment));
}

fn add<const A: u8, const B: u8, const C: u8>(environment: &mut Environment) {
    environment.add_key::<Filler<A, B, C>>(KeyOptions::DEFAULT).unwrap();
}

// clause: D16
#[test]
fn d16_a_commit_copies_the_touched_value_once_and_none_of_two_thousand_others() {
    let mut environment = environment();
    add_all(&mut environment);
    environment.add_key::<HeavyKey>(KeyOptions::DEFAULT).unwrap();
    let store = StateStore::new(&environment);
    let letters = |count: u8| (0..count).map(|letter| (b'a' + letter) as char);
    let names = letters(8)
        .flat_map(|a| letters(16).flat_map(move |b| letters(16).map(move |c| format!("{a}{b}{c}"))));
    let values: std::collections::BTreeMap<_, _> = names.map(|name| (name, json!(1))).collect();
    assert_eq!(values.len(), 2048);
    let before = store.restore(&PersistedState { revision: 1, values }, UnknownKeyPolicy::Error).unwrap();
    store.commit(MutationBatch::new().with::<HeavyKey>(1)).unwrap();
    let held = store.snapshot();
    assert_eq!((FILLER_CLONES.load(Ordering::Relaxed), HEAVY_CLONES.load(Ordering::Relaxed)), (0, 0));

    for round in 1..=100u32 {
        let other = MutationBatch::new().with::<Filler<3, 4, 5>>(round).with::<Filler<3, 4, 5>>(round);
        store.commit(other).unwrap();
    }
    assert_eq!(FILLER_CLONES.load(Ordering::Relaxed), 100, "once a commit, and of one key");
    assert_eq!(HEAVY_CLONES.load(Ordering::Relaxed), 0, "held by a snapshot, and not touched");

    let batch = MutationBatch::new().with::<HeavyKey>(2).with::<HeavyKey>(3).with::<HeavyKey>(4);
    store.commit(batch).unwrap();
    assert_eq!(HEAVY_CLONES.load(Ordering::Relaxed), 1);
    assert_eq!(held.get::<HeavyKey>().unwrap().0, [1]);
    assert_eq!(store.snapshot().get::<HeavyKey>().unwrap().0, [1, 2, 3, 4]);
    assert_eq!(before.get::<Filler<3, 4, 5>>().unwrap().0, 1);

    let since = held.revision();
    let changes = store.snapshot().export_changes(Scope::Run, since).unwrap();
    assert_eq!(changes.set.keys().collect::<Vec<_>>(), ["def", "heavy"]);
}

// What is stored

// clause: D15
#[test]
fn d15_a_stored_key_that_nobody_registered_is_refused_unless_it_is_to_be_skipped() {
    let store = StateStore::new(&environment());
    let values =
        [("test.tally", json!(3)), ("test.unheard_of", json!(1))].map(|(key, value)| (key.to_owned(), value));
    let persisted = PersistedState { revision: 9, values: values.into() };
    let error = store.restore(&persisted, UnknownKeyPolicy::default()).unwrap_err();
    assert_eq!(error, StateError::UnknownKey { key: "test.unheard_of".to_owned() });
    assert_eq!((store.snapshot().revision(), stored(&store.snapshot()).len()), (0, 0));
    let restored = store.restore(&persisted, UnknownKeyPolicy::Skip).unwrap();
    assert_eq!((restored.revision(), restored.get::<Tally>()), (9, Some(&3)));
}

#[test]
fn d15_a_value_that_does_not_read_back_leaves_everything_as_it_was() {
    let store = StateStore::new(&environment());
    store.commit(label("kept")).unwrap();
    let values = [("test.label", json!("new")), ("test.tally", json!("many"))]
        .map(|(key, value)| (key.to_owned(), value));
    let persisted = PersistedState { revision: 9, values: values.into() };
    for policy in [UnknownKeyPolicy::Error, UnknownKeyPolicy::Skip] {
        assert!(matches!(store.restore(&persisted, policy), Err(StateError::KeyDecode { .. })));
        assert_eq!(
            (store.snapshot().revision(), store.snapshot().get::<Label>().unwrap().as_str()),
            (1, "kept")
        );
    }
}

#[test]
fn d16_each_scope_is_stored_by_itself_and_what_is_transient_never() {
    let store = StateStore::new(&environment());
    let batch = label("a").with::<Memory>(("x".to_owned(), 1)).with::<Scratch>("b".to_owned());
    let snapshot = store.commit(batch).unwrap();
    assert_eq!(snapshot.export(Scope::Run).unwrap().values, [("test.label".to_owned(), json!("a"))].into());
    assert_eq!(
        snapshot.export(Scope::Thread).unwrap().values,
        [("test.memory".to_owned(), json!({"x": 1}))].into()
    );
    let stale = PersistedState { revision: 5, values: [("test.scratch".to_owned(), json!("old"))].into() };
    let restored = store.restore(&stale, UnknownKeyPolicy::Error).unwrap();
    assert_eq!(restored.get::<Scratch>().unwrap(), "b", "not stored any more, so not read either");
}

#[test]
fn d16_a_run_begins_without_what_belonged_to_the_run_before_it() {
    let store = StateStore::new(&environment());
    let before =
        store.commit(label("a").with::<Memory>(("x".to_owned(), 1)).with::<Scratch>("b".to_owned())).unwrap();
    let after = store.clear_run_scope();
    assert_eq!((after.get::<Label>(), after.get::<Scratch>()), (None, None));
    assert!(after.get::<Memory>().is_some());
    let changes = after.export_changes(Scope::Run, before.revision()).unwrap();
    assert_eq!((changes.set.len(), changes.cleared), (0, ["test.label".to_owned()].into()));
    assert_eq!(store.clear_run_scope().revision(), after.revision(), "there is nothing left to clear");
}

// Plugins that own keys

struct Owning;

impl Plugin for Owning {
    fn id(&self) -> &str {
        "owning"
    }

    fn register(&self, registrar: &mut Registrar<'_>) -> Result<(), InstallError> {
        registrar.key::<Label>(KeyOptions::DEFAULT)?;
        Ok(registrar.key::<Memory>(KeyOptions::DEFAULT.retained())?)
    }
}

// clause: D16
#[test]
fn d16_a_plugin_takes_its_keys_with_it_but_for_those_to_be_retained() {
    let mut environment = Environment::default();
    environment.install(&Owning).unwrap();
    let store = StateStore::new(&environment);
    let batch = || label("a").with::<Memory>(("x".to_owned(), 1));
    let with = store.commit(batch()).unwrap();
    let mut checkpoint = [Scope::Run, Scope::Thread].map(|scope| with.export(scope).unwrap());

    environment.uninstall::<Owning>().unwrap();
    let without = store.switch_to(&environment);
    assert_eq!(without.get::<Label>(), None);
    assert_eq!(without.get::<Memory>().unwrap().len(), 1);
    assert!(with.get::<Label>().is_some(), "an earlier revision stays as it was");
    assert!(store.commit(label("b")).is_err());
    for (scope, checkpoint) in [Scope::Run, Scope::Thread].into_iter().zip(&mut checkpoint) {
        checkpoint.apply(without.export_changes(scope, with.revision()).unwrap());
        assert_eq!(*checkpoint, without.export(scope).unwrap());
    }

    environment.install(&Owning).unwrap();
    let again = store.switch_to(&environment);
    assert_eq!((again.get::<Label>(), again.get::<Memory>().unwrap().len()), (None, 1));
    let changes = again.export_changes(Scope::Run, with.revision()).unwrap();
    assert_eq!(changes.cleared, ["test.label".to_owned()].into(), "also for who missed that it went");
    assert!(store.commit(batch()).unwrap().revision() > again.revision());
}

#[test]
fn d16_a_retained_key_is_not_left_to_another_type_of_the_same_name() {
    struct Other;
    impl StateKey for Other {
        const KEY: &'static str = Memory::KEY;
        type Value = u8;
        type Update = u8;
        fn apply(value: &mut u8, update: u8) {
            *value = update;
        }
    }
    let mut environment = Environment::default();
    environment.install(&Owning).unwrap();
    environment.uninstall::<Owning>().unwrap();
    let taken = StateError::KeyAlreadyRegistered { key: Memory::KEY.to_owned() };
    assert_eq!(environment.add_key::<Other>(KeyOptions::DEFAULT), Err(taken));
    assert_eq!(environment.add_key::<Memory>(KeyOptions::DEFAULT), Ok(()));
}
