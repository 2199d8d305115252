//! The suite that every backend must pass: one function per promise of the [`Backend`] port.
//!
//! A [`Bench`] makes its backend play a few scenes; [`backend_conformance_tests!`](crate::backend_conformance_tests) turns the
//! suite into tests, one for each promise. It looks at what is recorded and at what is really done (a mark in a file), never at
//! how a backend does it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "these are tests")]
#![allow(missing_docs, reason = "the name of a promise says it")]

pub mod journal;
mod order;
mod plain;
mod recorder;
mod recording;
mod resuming;
mod stage;
mod stopping;
mod turns;

use std::sync::Arc;
use std::time::Duration;

pub use order::{Summary, check_order};
pub use plain::PlainProcesses;
pub use recorder::{Fault, Kept, Recorder, What, When};
pub use recording::*;
pub use resuming::*;
use runyard_domain::BackendProfile;
use runyard_domain::run::Task;
pub use stage::{Decide, Live, Stage, Unchanged};
pub use stopping::*;
pub use turns::*;

use crate::Backend;

/// No signal is longer, as JSON.
pub const SIGNAL_BYTES_MAX: usize = 64 * 1024;
/// No batch is longer, as JSON.
pub const BATCH_BYTES_MAX: usize = 1024 * 1024;
/// So much is said or printed at least in [`Scene::Chatter`], in bytes.
pub const CHATTER_BYTES_MIN: usize = 128 * 1024;

/// What a backend is made to do in its one turn. Whatever it asks for on the way is answered by the suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scene {
    /// It says something, and its turn ends.
    Talk,
    /// It asks for one step and does it if it may: the step adds a line to [`Stage::marker`]. Its turn ends either way.
    Act,
    /// It asks for one step that adds a line to [`Stage::marker`] (the id of the step's process, or `-` where it has none) and
    /// then does not end by itself.
    Linger,
    /// It says or prints at least [`CHATTER_BYTES_MIN`], and its turn ends.
    Chatter,
}

/// What makes a backend play a scene.
#[derive(Clone, Debug)]
pub struct Part {
    pub profile: BackendProfile,
    pub task: Task,
}

/// A backend under test.
pub trait Bench: Send + Sync {
    fn backend(&self) -> Arc<dyn Backend>;

    fn part(&self, scene: Scene, stage: &Stage) -> Part;

    /// How long is waited for something that must happen.
    fn patience(&self) -> Duration {
        Duration::from_secs(30)
    }

    /// How long is looked before something is held not to happen.
    fn vigil(&self) -> Duration {
        Duration::from_millis(50)
    }
}

/// One test for each promise. `$open` is an `async fn() -> impl Bench`.
#[macro_export]
macro_rules! backend_conformance_tests {
    ($open:path) => {
        $crate::backend_conformance_tests! { $open =>
            b02_a_session_says_its_thread_begins_its_turn_and_ends_it
            b02_a_further_turn_names_its_command
            c11_an_approved_step_is_done_once_and_has_its_result
            c11_a_denied_step_is_not_done_and_the_turn_comes_to_its_end
            b02_an_interrupt_withdraws_what_was_asked_and_ends_the_turn
            b02_an_interrupt_stops_the_step_that_runs
            b02_a_word_into_the_turn_is_said_to_be_heard_before_the_turn_ends
            b09_every_signal_and_every_batch_is_bounded
            j05_nothing_is_done_before_its_call_is_durable
            j05_nothing_is_done_before_its_request_is_durable
            j05_a_refused_batch_ends_the_session_and_nothing_is_done_after
            c08_while_a_batch_waits_nothing_goes_on_and_then_nothing_is_missing
            c17_closing_between_turns_leaves_nothing
            c17_closing_while_it_asks_leaves_the_request_open
            c17_closing_stops_the_step_that_runs
            c17_closing_does_not_wait_for_a_batch
            j05_a_killed_session_goes_on_after_the_last_recorded_step
            j07_a_parked_session_asks_for_exactly_the_same_again
        }
    };
    ($open:path => $($name:ident)+) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let bench = $open().await;
                $crate::conformance::$name(&bench).await;
            }
        )+
    };
}
