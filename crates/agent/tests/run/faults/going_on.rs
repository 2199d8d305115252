//! Runs that go on after a wait, with a model, phases and a store that fail.

use std::sync::atomic::Ordering;

use runyard_agent::phase::{Phase, TerminationReason};
use runyard_agent::run::{Decision, RunEnd, RunStatus};
use runyard_store::ThreadStore;

use super::{
    Ask, Case, Fail, Listed, OF_RUNTIME, asks, expected_of, fails, lost, place, script, triples,
    without_message,
};
use crate::support::flaky::{Failure, Operation, Plan};
use crate::support::{assert_paired, calls, run_id, says};

/// Every operation, each time that a run which goes on asks for it.
pub(super) fn plans() -> Vec<Plan> {
    let mut all = Vec::new();
    for operation in Operation::ALL {
        for from in 1..=if operation == Operation::Commit { 5 } else { 2 } {
            for (failure, times) in [(Failure::Io, 1), (Failure::Unheard, 1), (Failure::Io, u32::MAX)] {
                all.push(Plan { operation, from, times, failure });
            }
        }
    }
    all
}

/// Why an operation that was to fail was not asked for.
fn unreached(plan: Plan) -> &'static str {
    match plan.operation {
        Operation::CreateThread => "the thread of a run that goes on is there",
        Operation::UnfinishedRun | Operation::RenewClaim => OF_RUNTIME,
        Operation::ReleaseClaim => "only a run whose end cannot be recorded gives its claim up",
        Operation::Commit => "the run ended with fewer steps",
        _ => {
            assert_eq!(plan.from, 2, "every run that goes on asks for {plan:?}");
            "so little is there that once is enough"
        }
    }
}

/// How a run that goes on ends in a store that does not fail. First it makes the call that waited, and then come both questions.
pub(super) fn expected(ask: &Ask, fail: &Fail) -> TerminationReason {
    let place = match fail {
        Fail::Hook(Phase::RunStart, _) => return expected_of(ask, &Fail::Nothing, None),
        Fail::Hook(Phase::AfterInference | Phase::RunEnd, _) => place(fail),
        fail => place(fail).map(|_| 0),
    };
    expected_of(ask, fail, place)
}

async fn check(listed: &mut Listed, ask: &Ask, fail: &Fail, plan: Option<Plan>) {
    let name = format!("{ask:?} × {fail:?} × {plan:?}");
    let Case { world, flaky, effects, armed, failed } = Case::new(ask, fail, None);
    let mut world = world.tool(crate::suspension::asks("ask"));
    armed.store(false, Ordering::SeqCst);
    world.again([calls("a", "ask")]);
    let run = run_id();
    let seen = world.go(run, &["Go."], Vec::new()).await;
    let yes = crate::suspension::yes(&seen);
    world.again([]);
    world.model = script(ask);
    armed.store(true, Ordering::SeqCst);
    flaky.fails(plan);
    let went = world.try_go(run, &[], vec![yes.clone()]).await;
    let is_spared = flaky.failed() == 0;
    if let Some(plan) = plan.filter(|_| is_spared) {
        *listed.entry(unreached(plan)).or_default() += 1;
    }
    let lost = lost(plan, &flaky);
    // From here on it is the test that asks.
    armed.store(false, Ordering::SeqCst);
    flaky.fails(None);
    match went {
        Ok(seen) => {
            let reason = seen.reason().clone();
            assert_ne!(reason, TerminationReason::Suspended, "{name}");
            if is_spared {
                assert_eq!(without_message(&reason), expected(ask, fail), "{name}");
                if matches!(ask, Ask::Fine) {
                    let is_failing = !matches!(fail, Fail::Nothing | Fail::Hook(Phase::RunStart, _));
                    assert_eq!(failed.load(Ordering::SeqCst), is_failing, "{name}");
                }
            }
            match lost {
                Some(why) => *listed.entry(why).or_default() += 1,
                None => {
                    let record = world.record(run).await;
                    let end = Some(RunEnd::from(&reason));
                    assert_eq!((record.status, record.end), (RunStatus::Done, end), "{name}");
                }
            }
        }
        Err(_) => assert!(world.heard.events().is_empty(), "{name}: it never began"),
    }
    let row = flaky.thread(&world.thread()).await.unwrap().unwrap();
    let is_held =
        plan.is_some_and(|plan| plan.operation == Operation::Claim && plan.failure == Failure::Unheard);
    assert!(row.holder.is_none() || is_held, "{name}");

    let mut decisions = vec![yes];
    for _ in 0..3 {
        if flaky.thread(&world.thread()).await.unwrap().unwrap().unfinished.is_none() {
            break;
        }
        world.again([calls("c", "pay"), says("Done."), says("Done.")]);
        let seen = world.go(run, &[], std::mem::take(&mut decisions)).await;
        let no =
            |(_, ticket): &(_, runyard_agent::tool::SuspendTicket)| Decision::cancel(ticket.id.clone(), "no");
        decisions = seen.outcome.waiting.iter().map(no).collect();
    }
    assert!(world.is_free().await, "{name}");
    assert_paired(&world.messages().await);
    let made = effects.all();
    let mut once = made.clone();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), made.len(), "{name}: a call was made twice");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_goes_on_in_a_store_that_fails() {
    let mut listed = Listed::new();
    for ask in asks() {
        for plan in plans() {
            check(&mut listed, &ask, &Fail::Nothing, Some(plan)).await;
        }
    }
    assert_listed(&listed);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_goes_on_with_a_failing_phase_in_a_store_that_fails() {
    let mut listed = Listed::new();
    for fail in fails() {
        check(&mut listed, &Ask::Fine, &fail, None).await;
        for plan in plans() {
            check(&mut listed, &Ask::Fine, &fail, Some(plan)).await;
        }
    }
    assert_listed(&listed);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_goes_on_with_all_three_at_once() {
    let mut listed = Listed::new();
    let check = async |ask: &Ask, fail: &Fail, plan| check(&mut listed, ask, fail, Some(plan)).await;
    assert_eq!(triples(plans(), check).await, 208_800, "with RUNYARD_PROOF=soak all of these are tried");
    assert_listed(&listed);
}

/// Each of these was met, and nothing else kept anything from coming about.
#[track_caller]
fn assert_listed(listed: &Listed) {
    let reasons: Vec<&str> = listed.keys().copied().collect();
    assert_eq!(
        reasons,
        [
            "only a run whose end cannot be recorded gives its claim up",
            OF_RUNTIME,
            "so little is there that once is enough",
            "the run ended with fewer steps",
            "the store takes nothing any more: the run is left to whoever recovers it",
            "the thread of a run that goes on is there",
        ]
    );
}
