//! Threads: what a store of conversations promises.

mod claims;
mod commits;
mod concurrency;
mod journal;
mod leaks;
mod steps;

pub use claims::*;
pub use commits::*;
pub use concurrency::*;
pub use journal::*;
pub use leaks::plant_thread_secrets;
pub use steps::{
    Whole, began, commit_of, fresh_agent_run, fresh_thread, granted, message, record, set, start_thread,
    whole,
};

/// One test for each promise. `$open` is an `async fn() -> (Arc<dyn ThreadRunStore>, impl Sized)`: the store, and what must
/// live as long as the test.
#[macro_export]
macro_rules! thread_conformance_tests {
    ($open:path) => {
        $crate::conformance_tests! { $open =>
            d12_a_thread_is_made_once_and_threads_are_listed_in_order
            d12_a_run_claims_a_thread_commits_and_gives_it_up
            d12_a_claim_is_granted_when_the_thread_is_free_or_its_claim_over_or_ones_own
            d12_a_claim_that_ran_out_and_nobody_took_goes_on
            d11_a_commit_of_an_older_claim_is_refused
            d12_a_thread_is_deleted_whole_and_not_while_somebody_holds_it
            d12_messages_come_back_byte_for_byte_in_pages
            d12_values_are_set_and_removed_by_key_each_in_its_scope
            d11_a_commit_at_another_version_names_both
            d11_a_commit_is_made_once_however_often_it_is_sent
            d11_a_refused_commit_leaves_nothing_of_it
            d11_a_commit_that_can_never_be_made_is_a_validation_error_of_its_part
            d12_a_tool_call_is_announced_once_and_answered_once
            d12_runs_are_listed_newest_first_and_one_at_a_time_is_unfinished
            d12_a_run_that_has_finished_stays_so
            d12_of_two_who_claim_a_thread_exactly_one_gets_it
            d12_many_runs_at_once_on_many_threads_lose_and_mix_up_nothing
        }
    };
}
