//! From an error to a wait: what is asked for, what is chosen, and when to stop.

use std::time::Duration;

use proptest::prelude::*;
use runyard_llm::inference::{
    Backoff, InferenceExecutionError as E, InterruptCause, InterruptSnapshot, Jitter, Others, RETRIES_MAX,
    RetryPolicy, SeededJitter, Verdict, WAIT_MAX,
};
use serde_json::json;

fn policy() -> RetryPolicy {
    RetryPolicy { retries_max: 10, stream_retries_max: 10, ..RetryPolicy::default() }
}

fn limited(retry_after_ms: u64) -> E {
    let retry_after = Some(Duration::from_millis(retry_after_ms));
    E::RateLimited { message: String::new(), retry_after }
}

#[track_caller]
fn check(error: &E, others: Others, roll: u64, expected_ms: &[u64]) {
    let mut backoff = Backoff::opening(&policy());
    let waits: Vec<Verdict> =
        expected_ms.iter().map(|_| backoff.after(error, &policy(), others, roll)).collect();
    let expected: Vec<Verdict> =
        expected_ms.iter().map(|ms| Verdict::Wait(Duration::from_millis(*ms))).collect();
    assert_eq!(waits, expected);
}

// clause: D08
#[test]
fn d08_what_the_provider_asks_for_comes_first() {
    check(&limited(3_000), Others::None, 0, &[3_000, 3_000, 3_000]);
    check(&limited(0), Others::None, 0, &[0, 0]);
    let overloaded = E::Overloaded { message: String::new(), retry_after: Some(Duration::from_secs(5)) };
    check(&overloaded, Others::Ready, 0, &[5_000]);
}

// The original waits as long as a provider says, whatever that is.
// clause: D08
#[test]
fn d08_what_the_provider_asks_for_is_capped() {
    check(&limited(u64::MAX), Others::None, u64::MAX, &[120_000, 120_000]);
}

// clause: D08
#[test]
fn d08_without_a_word_of_the_provider_waits_grow_up_to_the_cap() {
    let last = u64::MAX;
    let mut backoff = Backoff::opening(&policy());
    let waits: Vec<u128> = (0..5)
        .map(|_| match backoff.after(&E::Provider(String::new()), &policy(), Others::None, last) {
            Verdict::Wait(wait) => wait.as_millis(),
            Verdict::GiveUp => panic!("gave up"),
        })
        .collect();
    assert_eq!(waits, [1_499, 4_499, 7_999, 7_999, 7_999]);
    // Also at the cap not all come back at once.
    let mut at_the_cap = Backoff::opening(&policy());
    for _ in 0..4 {
        at_the_cap.after(&E::Provider(String::new()), &policy(), Others::None, last);
    }
    let half = at_the_cap.after(&E::Provider(String::new()), &policy(), Others::None, last / 2);
    assert_eq!(half, Verdict::Wait(Duration::from_nanos(4_249_999_999)));
    check(&E::Provider(String::new()), Others::None, 0, &[500, 500, 500]);
    check(&E::overloaded(""), Others::None, 0, &[2_000, 2_000]);
}

// clause: D08
#[test]
fn d08_a_provider_that_is_overloaded_in_the_middle_is_left_alone_as_long_as_one_that_says_so_first() {
    use InterruptCause::{ConnectionReset, GoAway, IdleStall, Provider5xxMidStream as Status};
    for (cause, base_ms) in [
        (Status(503), 2_000),
        (Status(529), 2_000),
        (GoAway, 2_000),
        (Status(500), 500),
        (ConnectionReset, 500),
        (IdleStall, 500),
    ] {
        let snapshot = Box::<InterruptSnapshot>::default();
        check(&E::StreamInterrupted { cause, snapshot }, Others::None, 0, &[base_ms, base_ms]);
    }
}

// clause: D07
#[test]
fn d07_a_long_wait_that_is_asked_for_is_no_reason_to_wait_where_another_model_is_ready() {
    let mut backoff = Backoff::opening(&policy());
    assert_eq!(backoff.after(&limited(10_001), &policy(), Others::Ready, 0), Verdict::GiveUp);
    assert!(matches!(backoff.after(&limited(10_000), &policy(), Others::Ready, 0), Verdict::Wait(_)));
    assert!(matches!(backoff.after(&limited(10_001), &policy(), Others::None, 0), Verdict::Wait(_)));
}

// clause: D07
#[test]
fn d07_only_transient_errors_are_retried() {
    let text = String::new;
    let snapshot = Box::<InterruptSnapshot>::default();
    let transient = [
        E::Provider(text()),
        E::rate_limited(""),
        E::overloaded(""),
        E::Timeout(text()),
        E::StreamInterrupted { cause: InterruptCause::GoAway, snapshot },
    ];
    let others = [
        E::ContextOverflow(text()),
        E::InvalidRequest(text()),
        E::Unauthorized(text()),
        E::ModelNotFound(text()),
        E::ContentFiltered(text()),
        E::AllModelsUnavailable,
        E::Cancelled,
    ];
    let retried = |error: &E| {
        let verdict = Backoff::opening(&policy()).after(error, &policy(), Others::None, 0);
        matches!(verdict, Verdict::Wait(_))
    };
    assert!(transient.iter().all(retried));
    assert!(!others.iter().any(retried));
}

#[test]
fn retries_end_at_the_policy_s_limit_and_at_the_crate_s() {
    let count = |retries_max: u32| {
        let policy = RetryPolicy { retries_max, ..RetryPolicy::default() };
        let mut backoff = Backoff::opening(&policy);
        let error = E::Timeout(String::new());
        (0..1_000).take_while(|_| backoff.after(&error, &policy, Others::None, 0) != Verdict::GiveUp).count()
    };
    assert_eq!((count(0), count(3), count(u32::MAX)), (0, 3, RETRIES_MAX as usize));
}

#[test]
fn a_policy_is_read_from_an_agent_s_settings_and_mistakes_in_it_are_found() {
    let policy: RetryPolicy = serde_json::from_value(json!({"retriesMax": 7, "idleLimitMs": 9})).unwrap();
    assert_eq!(policy, RetryPolicy { retries_max: 7, idle_limit_ms: 9, ..RetryPolicy::default() });
    let written = serde_json::to_value(&policy).unwrap();
    assert_eq!((&written["streamRetriesMax"], &written["retryAfterCapMs"]), (&json!(2), &json!(120_000)));
    for wrong in [json!({"maxRetries": 7}), json!({"retries_max": 7})] {
        assert!(serde_json::from_value::<RetryPolicy>(wrong).is_err());
    }
}

#[test]
fn the_same_seed_rolls_the_same_and_chance_does_not() {
    let rolls = |jitter: &SeededJitter| (0..8).map(|_| jitter.roll()).collect::<Vec<u64>>();
    assert_eq!(rolls(&SeededJitter::from_seed(7)), rolls(&SeededJitter::from_seed(7)));
    assert_ne!(rolls(&SeededJitter::from_chance()), rolls(&SeededJitter::from_chance()));
}

proptest! {
    #![proptest_config(crate::support::cases())]

    // clause: D08
    #[test]
    fn d08_no_wait_is_shorter_than_asked_for_or_longer_than_allowed(
        rolls in prop::collection::vec(any::<u64>(), 1..8),
        asked in prop::option::of(0_u64..300_000),
        base_ms in 0_u64..5_000,
        cap_ms in any::<u64>(),
    ) {
        let policy = RetryPolicy { base_ms, cap_ms, ..policy() };
        let error = E::RateLimited { message: String::new(), retry_after: asked.map(Duration::from_millis) };
        let mut backoff = Backoff::opening(&policy);
        for roll in rolls {
            let Verdict::Wait(wait) = backoff.after(&error, &policy, Others::None, roll) else {
                panic!("gave up before its limit")
            };
            let (least, most) = match asked {
                Some(asked) => (asked.min(120_000), (asked + base_ms).min(120_000)),
                None => (base_ms.min(cap_ms), cap_ms),
            };
            prop_assert!(wait >= Duration::from_millis(least).min(WAIT_MAX));
            prop_assert!(wait <= Duration::from_millis(most).min(WAIT_MAX));
        }
    }
}
