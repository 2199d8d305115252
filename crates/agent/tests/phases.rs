//! Phases: hooks on one revision, one commit, who is asked again, scheduled actions, effects, cancellation, panics.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed expectation fails the test")]

mod support;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use runyard_agent::phase::{
    ACTIONS_PENDING_MAX, ActionHandler, EFFECT_TIME_MAX, EffectHandler, FAILED_ACTIONS_MAX, FailedActions,
    Fault, Moment, PHASE_ROUNDS_MAX, Phase, PhaseContext, PhaseError, PhaseHook, PhaseReport, Scheduled,
    ScheduledAction, StateCommand, StateEffect,
};
use runyard_agent::state::{MutationBatch, Scope, StateError, StateStore, UnknownKeyPolicy};
use runyard_domain::Code;
use support::{Journal, Label, Memory, Tally, Touchy, at, at_with, environment, environment_with, hook};
use tokio_util::sync::CancellationToken;

/// Writes a line. With a payload above nought, it schedules the next lower one.
struct Write;

impl ScheduledAction for Write {
    const KEY: &'static str = "test.write";
    const PHASE: Phase = Phase::StepStart;
    type Payload = (String, u32);
}

#[async_trait]
impl ActionHandler<Write> for Write {
    async fn handle(
        &self,
        (line, more): (String, u32),
        context: &PhaseContext<'_>,
    ) -> Result<StateCommand, Fault> {
        match line.as_str() {
            "fail" => return Err("no ink".into()),
            "panic" => panic!("ink everywhere"),
            _ => {}
        }
        let seen = context.snapshot.get::<Journal>().map_or(0, Vec::len);
        let command = StateCommand::none().update::<Journal>(format!("{line} after {seen}"));
        match more {
            0 => Ok(command),
            _ => Ok(command.schedule::<Write>(&(line, more - 1))?),
        }
    }
}

struct Ring;

impl StateEffect for Ring {
    const KEY: &'static str = "test.ring";
    type Payload = &'static str;
}

/// Remembers what it was told, at which revision.
#[derive(Clone, Default)]
struct Bell(Arc<Mutex<Vec<(&'static str, u64)>>>);

#[async_trait]
impl EffectHandler<Ring> for Bell {
    async fn handle(&self, word: &'static str, context: &PhaseContext<'_>) -> Result<(), Fault> {
        self.0.lock().unwrap().push((word, context.snapshot.revision()));
        match word {
            "fail" => Err("it is broken".into()),
            "panic" => panic!("it is cracked"),
            "hang" => std::future::pending().await,
            _ => Ok(()),
        }
    }
}

fn write(line: &str, more: u32) -> StateCommand {
    StateCommand::none().schedule::<Write>(&(line.to_owned(), more)).unwrap()
}

fn label(word: &str) -> StateCommand {
    StateCommand::none().update::<Label>(word.to_owned())
}

/// What a phase leads to, and the lines that were written.
async fn run_one(
    environment: &runyard_agent::plugin::Environment,
    moment: Moment<'static>,
) -> (PhaseReport, StateStore) {
    let store = StateStore::new(environment);
    let report = environment.run_phase(&store, at(moment)).await.unwrap();
    (report, store)
}

// clause: D16
#[tokio::test]
async fn d16_hooks_see_one_revision_side_by_side_and_make_one_commit() {
    /// Waits until all of them are there.
    struct Meeting(Arc<tokio::sync::Barrier>);
    #[async_trait]
    impl PhaseHook for Meeting {
        async fn run(&self, context: &PhaseContext<'_>) -> Result<StateCommand, Fault> {
            self.0.wait().await;
            let line = format!("{} sees {}", context.phase(), context.snapshot.revision());
            Ok(StateCommand::none().update::<Journal>(line).update::<Tally>(1))
        }
    }
    let barrier = Arc::new(tokio::sync::Barrier::new(3));
    let environment = environment_with(move |registrar| {
        (0..3).for_each(|_| registrar.hook(Phase::RunStart, Meeting(Arc::clone(&barrier))));
        Ok(())
    });
    let (report, store) = run_one(&environment, Moment::RunStart).await;
    let snapshot = store.snapshot();
    assert_eq!((report.commits, snapshot.revision(), snapshot.get::<Tally>()), (1, 1, Some(&3)));
    assert_eq!(snapshot.get::<Journal>().unwrap(), &["run_start sees 0"; 3]);
}

// clause: D16
#[tokio::test]
async fn d16_who_meets_another_at_an_exclusive_key_is_asked_again_in_order_and_on_what_is_there() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&asked);
    let environment = environment_with(move |registrar| {
        for name in ["a", "b", "c"] {
            let log = Arc::clone(&log);
            registrar.hook(
                Phase::StepEnd,
                hook(move |context| {
                    let before = context.snapshot.get::<Label>().cloned().unwrap_or_default();
                    log.lock().unwrap().push(format!("{name}@{}", context.snapshot.revision()));
                    Ok(label(&format!("{before}{name}")))
                }),
            );
        }
        registrar.hook(Phase::StepEnd, hook(|_| Ok(StateCommand::none().update::<Tally>(1))));
        Ok(())
    });
    let (report, store) = run_one(&environment, Moment::StepEnd).await;
    assert_eq!(store.snapshot().get::<Label>().unwrap(), "abc", "no word is lost");
    assert_eq!(store.snapshot().get::<Tally>(), Some(&1));
    assert_eq!(*asked.lock().unwrap(), ["a@0", "b@0", "c@0", "b@1", "c@2"]);
    assert_eq!(report.commits, 3);
}

#[tokio::test]
async fn d16_an_unknown_key_of_one_hook_stops_what_all_of_them_want() {
    let environment = environment_with(|registrar| {
        registrar.hook(Phase::RunStart, hook(|_| Ok(StateCommand::none().update::<Tally>(1))));
        registrar.hook(Phase::RunStart, hook(|_| Ok(write("x", 0))));
        Ok(())
    });
    let store = StateStore::new(&environment);
    let error = environment.run_phase(&store, at(Moment::RunStart)).await.unwrap_err();
    assert_eq!(error.code(), Code::StateUnknownScheduledActionHandler);
    assert_eq!(store.snapshot().revision(), 0);
    let command = StateCommand::none().update::<Tally>(1).emit::<Ring>("x");
    let error = environment.submit(&store, command, at(Moment::StepEnd)).await.unwrap_err();
    assert_eq!(error.code(), Code::StateUnknownEffectHandler);
    assert_eq!(store.snapshot().revision(), 0);
    let bare = runyard_agent::plugin::Environment::default();
    let error = bare.submit(&StateStore::new(&bare), label("x"), at(Moment::StepEnd)).await.unwrap_err();
    assert_eq!(error.code(), Code::StateUnknownKey);
}

#[tokio::test]
async fn d16_scheduled_actions_are_handled_until_none_is_left_each_on_what_is_there() {
    let environment = environment_with(|registrar| {
        registrar.action::<Write>(Write)?;
        registrar.hook(Phase::StepStart, hook(|_| Ok(write("a", 2))));
        registrar.hook(Phase::StepStart, hook(|_| Ok(write("b", 0))));
        registrar.hook(Phase::RunStart, hook(|_| Ok(write("early", 0))));
        Ok(())
    });
    let (report, store) = run_one(&environment, Moment::RunStart).await;
    assert_eq!((report.rounds, store.snapshot().get::<Journal>()), (0, None), "it waits for its phase");
    let report = environment.run_phase(&store, at(Moment::StepStart)).await.unwrap();
    let expected = ["early after 0", "a after 1", "b after 2", "a after 3", "a after 4"];
    assert_eq!(store.snapshot().get::<Journal>().unwrap(), &expected);
    assert_eq!((report.rounds, report.commits), (3, 6));
}

#[tokio::test]
async fn d16_a_scheduled_action_outlives_the_process() {
    let environment = environment_with(|registrar| Ok(registrar.action::<Write>(Write)?));
    let store = StateStore::new(&environment);
    environment.submit(&store, write("kept", 0), at(Moment::StepEnd)).await.unwrap();
    let checkpoint = store.snapshot().export(Scope::Run).unwrap();
    let next = StateStore::new(&environment);
    next.restore(&checkpoint, UnknownKeyPolicy::Error).unwrap();
    environment.run_phase(&next, at(Moment::StepStart)).await.unwrap();
    assert_eq!(next.snapshot().get::<Journal>().unwrap(), &["kept after 0"]);
    let report = environment.run_phase(&next, at(Moment::StepStart)).await.unwrap();
    assert_eq!(report, PhaseReport::default(), "it is done once");
}

#[tokio::test]
async fn d16_a_phase_that_converges_in_the_last_round_is_no_error_and_one_round_more_is() {
    let rounds = u32::try_from(PHASE_ROUNDS_MAX).unwrap();
    for (more, ends) in [(rounds - 1, true), (rounds, false)] {
        let environment = environment_with(move |registrar| {
            registrar.action::<Write>(Write)?;
            registrar.hook(Phase::StepStart, hook(move |_| Ok(write("x", more))));
            Ok(())
        });
        let store = StateStore::new(&environment);
        let outcome = environment.run_phase(&store, at(Moment::StepStart)).await;
        assert_eq!(store.snapshot().get::<Journal>().unwrap().len(), PHASE_ROUNDS_MAX);
        match outcome {
            Ok(report) => assert_eq!((ends, report.rounds), (true, PHASE_ROUNDS_MAX)),
            Err(error) => assert_eq!((ends, error.code()), (false, Code::StatePhaseRunLoopExceeded)),
        }
    }
}

#[tokio::test]
async fn d16_no_more_actions_wait_than_there_is_room_for() {
    let environment = environment_with(|registrar| Ok(registrar.action::<Write>(Write)?));
    let store = StateStore::new(&environment);
    let many = |count: usize| {
        let action = Scheduled::new::<Write>(&("x".to_owned(), 0)).unwrap();
        StateCommand { actions: vec![action; count], ..StateCommand::none() }
    };
    environment.submit(&store, many(ACTIONS_PENDING_MAX), at(Moment::StepEnd)).await.unwrap();
    let error = environment.submit(&store, many(1), at(Moment::StepEnd)).await.unwrap_err();
    assert_eq!(error.code(), Code::StatePhaseRunLoopExceeded);
    assert_eq!(store.snapshot().revision(), 1);
}

// clause: D16
#[tokio::test]
async fn d16_an_action_that_fails_or_panics_is_kept_aside_and_the_others_go_on() {
    let environment = environment_with(|registrar| {
        registrar.action::<Write>(Write)?;
        let all = || ["fail", "panic", "fine"].map(|line| write(line, 0).actions.remove(0)).to_vec();
        registrar.hook(
            Phase::StepStart,
            hook(move |_| Ok(StateCommand { actions: all(), ..StateCommand::none() })),
        );
        Ok(())
    });
    let (report, store) = run_one(&environment, Moment::StepStart).await;
    let snapshot = store.snapshot();
    assert_eq!(snapshot.get::<Journal>().unwrap(), &["fine after 0"]);
    let failed: Vec<_> =
        snapshot.get::<FailedActions>().unwrap().iter().map(|failed| failed.message.as_str()).collect();
    assert_eq!(failed, ["no ink", "panicked: ink everywhere"]);
    let told: Vec<_> = report.failed_actions.iter().map(|failure| failure.message.as_str()).collect();
    assert_eq!(told, failed);
    for _ in 0..FAILED_ACTIONS_MAX {
        environment.run_phase(&store, at(Moment::StepStart)).await.unwrap();
    }
    assert_eq!(store.snapshot().get::<FailedActions>().unwrap().len(), FAILED_ACTIONS_MAX);
}

#[tokio::test]
async fn d16_an_action_whose_handler_is_gone_or_whose_payload_is_not_read_is_kept_aside() {
    let with = environment_with(|registrar| Ok(registrar.action::<Write>(Write)?));
    let store = StateStore::new(&with);
    let mut wrong = write("x", 0);
    wrong.actions[0].payload = serde_json::json!(7);
    with.submit(&store, wrong, at(Moment::StepEnd)).await.unwrap();
    assert_eq!(with.run_phase(&store, at(Moment::StepStart)).await.unwrap().failed_actions.len(), 1);
    with.submit(&store, write("x", 0), at(Moment::StepEnd)).await.unwrap();
    let without = environment();
    store.switch_to(&without);
    assert_eq!(without.run_phase(&store, at(Moment::StepStart)).await.unwrap().failed_actions.len(), 1);
    let failed: Vec<_> = store
        .snapshot()
        .get::<FailedActions>()
        .unwrap()
        .iter()
        .map(|failed| failed.message.clone())
        .collect();
    assert_eq!(failed.len(), 2);
    assert_eq!(failed[1], "it has no handler");
}

// clause: D16
#[tokio::test(start_paused = true)]
async fn d16_effects_go_out_after_their_commit_one_by_one_and_a_failing_one_undoes_nothing() {
    let bell = Bell::default();
    let handler = bell.clone();
    let environment = environment_with(move |registrar| {
        registrar.effect::<Ring>(handler.clone())?;
        registrar.hook(
            Phase::RunStart,
            hook(|_| Ok(label("kept").emit::<Ring>("one").emit::<Ring>("fail").emit::<Ring>("panic"))),
        );
        registrar.hook(
            Phase::RunStart,
            hook(|_| Ok(StateCommand::none().emit::<Ring>("hang").emit::<Ring>("last"))),
        );
        Ok(())
    });
    let began = tokio::time::Instant::now();
    let (report, store) = run_one(&environment, Moment::RunStart).await;
    assert_eq!(began.elapsed(), EFFECT_TIME_MAX, "the one that hangs is given up");
    assert_eq!(*bell.0.lock().unwrap(), ["one", "fail", "panic", "hang", "last"].map(|word| (word, 1)));
    let failed: Vec<_> = report.effects.failed.iter().map(|failure| failure.message.as_str()).collect();
    let late = format!("not done after {} s", EFFECT_TIME_MAX.as_secs());
    assert_eq!(failed, ["it is broken", "panicked: it is cracked", &late]);
    assert_eq!((report.effects.dispatched, report.commits), (5, 1));
    assert_eq!(store.snapshot().get::<Label>().unwrap(), "kept");
}

#[tokio::test]
async fn d16_a_failing_or_panicking_hook_is_an_error_and_nothing_is_committed() {
    for panics in [false, true] {
        let environment = environment_with(move |registrar| {
            registrar.hook(Phase::RunStart, hook(|_| Ok(StateCommand::none().update::<Tally>(1))));
            registrar.hook(
                Phase::RunStart,
                hook(move |_| if panics { panic!("lost") } else { Err("lost".into()) }),
            );
            Ok(())
        });
        let store = StateStore::new(&environment);
        let error = environment.run_phase(&store, at(Moment::RunStart)).await.unwrap_err();
        assert_eq!((error.code(), store.snapshot().revision()), (Code::InternalError, 0));
        match error {
            PhaseError::Panicked { plugin, phase, message } if panics => {
                assert_eq!(
                    (plugin.as_str(), phase, message.as_str()),
                    ("ad-hoc", Phase::RunStart, "panicked: lost")
                );
            }
            PhaseError::Failed { plugin, fault, .. } if !panics => {
                assert_eq!((plugin.as_str(), fault.to_string().as_str()), ("ad-hoc", "lost"));
            }
            other => panic!("{other:?}"),
        }
        let next = environment.run_phase(&store, at(Moment::StepStart)).await;
        assert!(next.is_ok(), "the phase is over, and another one can come");
    }
}

#[tokio::test]
async fn d16_a_panic_of_a_key_is_an_error_and_nothing_is_committed() {
    let environment = environment();
    let store = StateStore::new(&environment);
    let command = label("x").update::<Touchy>(0);
    let error = environment.submit(&store, command, at(Moment::StepEnd)).await.unwrap_err();
    assert!(matches!(error, PhaseError::Panicked { .. }));
    assert_eq!(store.snapshot().revision(), 0);
}

#[tokio::test]
async fn d16_a_state_error_of_a_hook_stays_what_it_is() {
    let environment = environment_with(|registrar| {
        let stale =
            || StateCommand { batch: MutationBatch::based_on(9).with::<Tally>(1), ..StateCommand::none() };
        registrar.hook(Phase::RunStart, hook(move |_| Ok(stale())));
        registrar.hook(Phase::StepStart, hook(|_| Err(Box::new(StateError::Cancelled))));
        Ok(())
    });
    let store = StateStore::new(&environment);
    let error = environment.run_phase(&store, at(Moment::RunStart)).await.unwrap_err();
    assert!(matches!(error, PhaseError::State(StateError::RevisionConflict { expected: 9, actual: 0 })));
    let error = environment.run_phase(&store, at(Moment::StepStart)).await.unwrap_err();
    assert_eq!(error.code(), Code::StateCancelled);
}

/// Waits for ever, and says that it waits.
struct Waiting(Arc<tokio::sync::Notify>);

#[async_trait]
impl PhaseHook for Waiting {
    async fn run(&self, _: &PhaseContext<'_>) -> Result<StateCommand, Fault> {
        self.0.notify_one();
        std::future::pending().await
    }
}

// clause: D16
#[tokio::test]
async fn d16_a_cancelled_phase_ends_at_once_wherever_it_is() {
    let waits = Arc::new(tokio::sync::Notify::new());
    let inside = Arc::clone(&waits);
    let environment = environment_with(move |registrar| {
        registrar.hook(Phase::RunStart, Waiting(Arc::clone(&inside)));
        Ok(())
    });
    let store = StateStore::new(&environment);
    let cancel = CancellationToken::new();
    let (outcome, ()) =
        tokio::join!(environment.run_phase(&store, at_with(Moment::RunStart, &cancel)), async {
            waits.notified().await;
            cancel.cancel();
        });
    assert_eq!(outcome.unwrap_err().code(), Code::StateCancelled);
    let error = environment.run_phase(&store, at_with(Moment::StepEnd, &cancel)).await.unwrap_err();
    assert_eq!(error.code(), Code::StateCancelled, "also where there is nothing to do");
    assert_eq!(store.snapshot().revision(), 0);
}

#[tokio::test]
async fn d16_what_was_committed_before_a_phase_is_cancelled_stays_and_its_effects_go_out() {
    let cancel = CancellationToken::new();
    let (bell, inside) = (Bell::default(), cancel.clone());
    let handler = bell.clone();
    let handled = Arc::new(AtomicUsize::new(0));
    struct Stop(CancellationToken, Arc<AtomicUsize>);
    #[async_trait]
    impl ActionHandler<Write> for Stop {
        async fn handle(&self, _: (String, u32), _: &PhaseContext<'_>) -> Result<StateCommand, Fault> {
            self.0.cancel();
            self.1.fetch_add(1, Ordering::Relaxed);
            Ok(StateCommand::none().update::<Tally>(1).emit::<Ring>("told"))
        }
    }
    let counter = Arc::clone(&handled);
    let environment = environment_with(move |registrar| {
        registrar.effect::<Ring>(handler.clone())?;
        registrar.action::<Write>(Stop(inside.clone(), Arc::clone(&counter)))?;
        registrar.hook(Phase::StepStart, hook(|_| Ok(write("a", 0))));
        registrar.hook(Phase::StepStart, hook(|_| Ok(write("b", 0))));
        Ok(())
    });
    let store = StateStore::new(&environment);
    let error = environment.run_phase(&store, at_with(Moment::StepStart, &cancel)).await.unwrap_err();
    assert_eq!(error.code(), Code::StateCancelled);
    assert_eq!(handled.load(Ordering::Relaxed), 1, "the second one was not begun");
    assert_eq!((store.snapshot().get::<Tally>(), store.snapshot().revision()), (Some(&1), 2));
    assert_eq!(*bell.0.lock().unwrap(), [("told", 2)]);
}

#[tokio::test]
async fn d16_one_phase_at_a_time() {
    struct Alone(Arc<AtomicUsize>);
    #[async_trait]
    impl PhaseHook for Alone {
        async fn run(&self, _: &PhaseContext<'_>) -> Result<StateCommand, Fault> {
            assert_eq!(self.0.fetch_add(1, Ordering::SeqCst), 0, "another phase is under way");
            tokio::time::sleep(Duration::from_millis(5)).await;
            self.0.fetch_sub(1, Ordering::SeqCst);
            Ok(StateCommand::none().update::<Memory>(("x".to_owned(), 1)))
        }
    }
    tokio::time::pause();
    let inside = Arc::new(AtomicUsize::new(0));
    let environment = environment_with(move |registrar| {
        registrar.hook(Phase::AfterToolExecute, Alone(Arc::clone(&inside)));
        registrar.hook(Phase::StepEnd, Alone(Arc::clone(&inside)));
        Ok(())
    });
    let store = StateStore::new(&environment);
    let phases = || environment.run_phase(&store, at(Moment::StepEnd));
    let (one, two, three) = tokio::join!(phases(), phases(), phases());
    assert!(one.is_ok() && two.is_ok() && three.is_ok());
    assert_eq!(store.snapshot().revision(), 3);
}

#[test]
fn the_nine_phases_stand_in_their_order_under_their_words() {
    assert!(Phase::ALL.is_sorted());
    for (position, phase) in Phase::ALL.into_iter().enumerate() {
        assert_eq!(phase as usize, position);
        assert_eq!(serde_json::to_value(phase).unwrap(), phase.as_str());
    }
}
