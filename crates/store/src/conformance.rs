//! The suite that every store must pass: one function per promise, run on a store of its own or on a shared one.
//!
//! [`conformance_tests!`](crate::conformance_tests) turns it into tests, one for each promise.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "these are tests")]
#![allow(missing_docs, reason = "the name of a promise says it")]

mod concurrency;
mod fixtures;
mod leaks;
mod log;
mod rows;
mod tails;
mod threads;

pub use concurrency::*;
pub use fixtures::{ManyRuns, append, at, event, fresh_append, fresh_approval, fresh_run, one, safe, start};
pub use leaks::{assert_holds_none, plant_secrets, redactor_of_secrets, texts_with_secrets};
pub use log::*;
pub use rows::*;
pub use tails::*;
pub use threads::*;

/// One test for each promise. `$open` is an `async fn() -> (Arc<dyn Store>, impl Sized)`: the store, and what must live as
/// long as the test.
#[macro_export]
macro_rules! conformance_tests {
    ($open:path) => {
        $crate::conformance_tests! { $open =>
            c06_an_event_is_stored_as_its_envelope
            c07_sequences_are_gapless_from_1_and_ids_are_unique
            d11_a_conflict_names_both_places_and_leaves_nothing
            d11_a_refused_row_leaves_nothing_of_its_change
            d11_a_change_that_can_never_be_made_is_a_validation_error
            d11_a_head_change_sees_the_row_and_may_refuse
            d11_a_change_at_a_place_is_made_once_however_often_it_is_sent
            d11_a_change_at_the_head_is_made_once_however_often_it_is_sent
            b09_events_are_read_in_pages
            c07_payloads_come_back_byte_for_byte
            b09_a_payload_beyond_the_limit_is_refused
            b09_a_long_text_goes_to_a_blob_and_the_event_says_what_was_cut
            c07_a_log_verifies_from_its_first_event_to_its_head
            d11_a_stale_generation_is_refused
            d11_a_lease_is_taken_when_it_is_free_over_or_ones_own
            d11_an_expired_lease_that_nobody_took_can_be_renewed
            d11_an_approval_is_asked_and_answered_once
            d11_timers_are_due_by_the_databases_clock
            d11_outbox_messages_stay_until_they_are_delivered
            d11_a_result_is_kept_once_for_its_key
            b09_blobs_are_kept_once_and_collected_only_when_nothing_refers_to_them
            d11_runs_are_listed_newest_first_in_pages
            c07_eight_writers_on_one_run_agree_with_the_model
            c07_eight_writers_on_many_runs_agree_with_the_model
            d11_a_head_change_is_not_starved_by_a_chatty_writer
            c08_a_tail_that_joins_anywhere_sees_every_event_once_while_writers_write
            c08_a_slow_tail_loses_nothing
            c08_a_tail_ahead_of_its_log_is_told
            c08_the_feed_shows_every_event_once_and_each_run_in_order
            c08_the_feed_goes_on_where_its_cursor_says
        }
    };
    ($open:path => $($name:ident)+) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let (store, _guard) = $open().await;
                $crate::conformance::$name(store).await;
            }
        )+
    };
}
