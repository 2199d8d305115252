//! The suite that every journal must pass: one function per promise of the [`Journal`] port.
//!
//! A [`JournalBench`] has a hub on a store and one run, and plays the world around it: the hub is away, dies and comes back,
//! another owner takes the run, people answer and cancel.
//! [`journal_conformance_tests!`](crate::journal_conformance_tests) turns the suite into tests, one for each promise. It stands
//! where a backend stands, and looks at what is durable; how a batch gets there it does not know.

mod asking;
mod desk;
mod durable;
mod refusing;
mod reopening;
mod texts;

use std::sync::Arc;
use std::time::Duration;

pub use asking::*;
use async_trait::async_trait;
pub use desk::{Desk, facts};
pub use durable::*;
pub use refusing::*;
pub use reopening::*;
use runyard_domain::{ApprovalId, Event};
pub use texts::*;
use tokio::sync::mpsc;

use crate::{Command, Journal};

/// What happens around a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lever {
    /// Nothing reaches the hub from now on.
    HoldWords,
    /// Nothing that the hub says is heard from now on.
    HoldAnswers,
    /// The hub hears and is heard again; nothing was lost.
    Connect,
    /// Another owner takes the run.
    Fence,
    /// A person ends the run.
    Cancel,
    /// The session is closed because its run waits for people. Over when nothing of it is left.
    Park,
    /// A person answers an approval.
    Answer { approval: ApprovalId, approved: bool },
    /// Everything but the store is gone, without a word.
    Kill,
    /// There is a hub on the store again.
    Reopen,
}

/// What a backend is given of a session.
pub struct Given {
    pub journal: Arc<dyn Journal>,
    /// Ends when the session is closed.
    pub commands: mpsc::Receiver<Command>,
}

/// What is durable of a run.
#[derive(Clone, Debug)]
pub struct Durable {
    pub events: Vec<Event>,
    /// Everything else that is stored with them, as text.
    pub rows: String,
}

/// A hub with one run, whose gate is C11's and whose agent goes on after a rejection.
#[async_trait]
pub trait JournalBench: Send + Sync {
    /// The run's next session, when there is one: the run is made by the first call, and a session that was parked or killed
    /// is opened again as soon as the run can go on.
    async fn session(&self) -> Given;

    /// Reads the store, past any journal.
    async fn durable(&self) -> Durable;

    async fn pull(&self, lever: Lever);

    /// Values that must not be stored.
    fn secrets(&self) -> Vec<String>;

    /// How long is waited for something that must happen.
    fn patience(&self) -> Duration {
        Duration::from_secs(30)
    }

    /// How long is looked before something is held not to happen.
    fn vigil(&self) -> Duration {
        Duration::from_millis(50)
    }
}

/// One test for each promise. `$open` is an `async fn() -> impl JournalBench`.
#[macro_export]
macro_rules! journal_conformance_tests {
    ($open:path) => {
        $crate::journal_conformance_tests! { $open =>
            j05_what_is_recorded_is_durable_when_record_returns
            j05_batches_that_are_recorded_at_once_are_each_whole_and_in_order
            j05_a_batch_of_many_signals_is_durable_whole_or_not_at_all
            j05_a_batch_of_long_signals_is_durable_whole_or_not_at_all
            b09_a_batch_of_very_many_signals_is_durable_in_order
            c18_while_the_hub_is_away_record_waits_and_then_nothing_is_missing
            c18_a_batch_whose_answer_comes_late_is_recorded_once
            c12_a_request_is_durable_before_it_waits_and_is_answered_once
            c12_a_rejection_is_handed_on_once
            c12_an_answer_is_handed_on_only_when_that_is_durable
            c11_what_the_gate_decides_is_answered_only_when_that_is_durable
            c18_a_fenced_journal_stores_nothing_and_says_so_for_ever
            c18_a_batch_that_waits_while_the_run_is_fenced_is_not_stored
            c22_a_cancelled_run_stores_nothing_more_and_its_journal_stops_for_ever
            c22_a_batch_that_waits_while_the_run_is_cancelled_is_not_stored
            c22_a_batch_that_was_durable_before_the_run_was_cancelled_is_acknowledged
            c22_nothing_is_recorded_after_the_run_has_ended
            j07_a_parked_session_stops_and_its_grant_answers_the_same_request_once
            j07_a_grant_answers_nothing_but_the_same_request
            j07_a_decision_that_a_killed_session_never_heard_answers_the_next_one_once
            j05_what_was_acknowledged_survives_a_kill_and_the_next_session_goes_on_after_it
            j05_what_a_kill_left_unacknowledged_is_there_whole_or_not_at_all
            b11_no_secret_is_stored_whatever_signal_holds_it
            b09_pieces_of_text_are_put_together_and_nothing_of_the_text_is_missing
            b09_text_that_waits_is_durable_before_what_comes_after_it
        }
    };
    ($open:path => $($name:ident)+) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let bench = $open().await;
                $crate::conformance::journal::$name(&bench).await;
            }
        )+
    };
}
