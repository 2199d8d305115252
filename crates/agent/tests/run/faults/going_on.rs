//! Runs that go on after a wait, with a model and a store that fail.

use std::sync::Arc;

use runyard_agent::phase::TerminationReason;
use runyard_agent::run::{Decision, RunEnd, RunStatus};
use runyard_store::{ThreadRunStore, ThreadStore};

use super::{Ask, Listed, asks, lost, script};
use crate::support::flaky::{Failure, Flaky, Operation, Plan};
use crate::support::parts::{Effects, effect};
use crate::support::{World, assert_paired, calls, run_id, says};

/// Every operation, each time that a run which goes on asks for it.
fn plans() -> Vec<Plan> {
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
        Operation::UnfinishedRun | Operation::RenewClaim => "a runtime asks for it, and not the loop",
        Operation::ReleaseClaim => "only a run whose end cannot be recorded gives its claim up",
        Operation::Commit => "the run ended with fewer steps",
        _ => {
            assert_eq!(plan.from, 2, "every run that goes on asks for {plan:?}");
            "so little is there that once is enough"
        }
    }
}

async fn check(listed: &mut Listed, ask: &Ask, plan: Plan) {
    let name = format!("{ask:?} × {plan:?}");
    let (flaky, effects) = (Flaky::new(None), Effects::default());
    let mut world = World::new([calls("a", "ask")])
        .tool(crate::suspension::asks("ask"))
        .tool(effect("pay", &effects).done());
    world.store = Arc::clone(&flaky) as Arc<dyn ThreadRunStore>;
    let run = run_id();
    let seen = world.go(run, &["Go."], Vec::new()).await;
    let yes = crate::suspension::yes(&seen);
    world.again([]);
    world.model = script(ask);
    flaky.fails(Some(plan));
    let went = world.try_go(run, &[], vec![yes.clone()]).await;
    if flaky.failed() == 0 {
        *listed.entry(unreached(plan)).or_default() += 1;
    }
    let lost = lost(Some(plan), &flaky);
    // From here on it is the test that asks.
    flaky.fails(None);
    match went {
        Ok(seen) => {
            let reason = seen.reason().clone();
            assert_ne!(reason, TerminationReason::Suspended, "{name}");
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
    let is_held = plan.operation == Operation::Claim && plan.failure == Failure::Unheard;
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
            check(&mut listed, &ask, plan).await;
        }
    }
    let reasons: Vec<&str> = listed.keys().copied().collect();
    assert_eq!(
        reasons,
        [
            "a runtime asks for it, and not the loop",
            "only a run whose end cannot be recorded gives its claim up",
            "so little is there that once is enough",
            "the run ended with fewer steps",
            "the store takes nothing any more: the run is left to whoever recovers it",
            "the thread of a run that goes on is there",
        ]
    );
}
