//! Text in small pieces: put together by time and size, and redacted as one stream.

#![allow(clippy::unwrap_used, clippy::panic, reason = "the helpers of tests fail like tests")]

use proptest::prelude::*;
use runyard_redact::{Known, Redactor, TagKey};
use runyard_store::{DELTA_AGE_MAX_MS, DELTA_BYTES_MAX, Deltas};

fn redactor(known: &[&str]) -> Redactor {
    let known = known.iter().map(|value| Known::value(*value));
    Redactor::builder(TagKey::from_bytes([1; 32])).known(known).build().unwrap()
}

fn texts(pieces: Vec<runyard_redact::Safe<String>>) -> Vec<String> {
    pieces.into_iter().map(|piece| piece.into_inner()).collect()
}

#[test]
fn b09_small_pieces_wait_for_each_other_but_not_for_long() {
    let mut deltas = Deltas::new(&redactor(&[]));
    assert_eq!(deltas.due_at_ms(), None);
    assert_eq!(texts(deltas.push(b"Hello,", 1_000)), [""; 0]);
    assert_eq!(texts(deltas.push(b" world.", 1_000 + DELTA_AGE_MAX_MS - 1)), [""; 0]);
    assert_eq!(deltas.due_at_ms(), Some(1_000 + DELTA_AGE_MAX_MS));
    assert_eq!(texts(deltas.due(1_000 + DELTA_AGE_MAX_MS)), ["Hello, world."]);
    assert_eq!(deltas.due_at_ms(), None);
    assert_eq!(texts(deltas.due(9_000)), [""; 0]);
    assert_eq!(texts(deltas.finish()), [""; 0]);
}

#[test]
fn b09_a_piece_is_never_larger_than_its_limit() {
    let mut deltas = Deltas::new(&redactor(&[]));
    let text = "ä b\n".repeat(5_000);
    let mut pieces = texts(deltas.push(text.as_bytes(), 1));
    assert!(pieces.len() >= 4);
    pieces.extend(texts(deltas.finish()));
    assert!(pieces.iter().all(|piece| piece.len() <= DELTA_BYTES_MAX && !piece.is_empty()));
    assert_eq!(pieces.concat(), text);
}

#[test]
fn b11_a_secret_that_is_cut_into_pieces_is_in_none_of_them_nor_across_them() {
    let secret = "correct-horse-battery-staple";
    let mut deltas = Deltas::new(&redactor(&[secret]));
    let mut pieces = Vec::new();
    for (byte, now_ms) in
        format!("the secret is {secret}, says the agent").into_bytes().into_iter().zip((0..).step_by(200))
    {
        pieces.extend(texts(deltas.push(&[byte], now_ms)));
        pieces.extend(texts(deltas.due(now_ms + DELTA_AGE_MAX_MS)));
    }
    pieces.extend(texts(deltas.finish()));
    let whole = pieces.concat();
    assert!(
        whole.starts_with("the secret is [REDACTED:known:") && whole.ends_with("], says the agent"),
        "{whole}"
    );
    assert!(pieces.len() > 10, "live text must not wait for the end: {pieces:?}");
}

proptest! {
    #[test]
    fn b09_whatever_the_pieces_and_times_the_text_is_the_same(
        pieces in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..2000), 0..200_u64), 0..20)
    ) {
        let mut deltas = Deltas::new(&redactor(&[]));
        let mut now_ms = 0;
        let mut got = Vec::new();
        let mut input = Vec::new();
        for (piece, passed_ms) in pieces {
            now_ms += passed_ms;
            input.extend_from_slice(&piece);
            got.extend(texts(deltas.push(&piece, now_ms)));
        }
        got.extend(texts(deltas.finish()));
        let redacted = redactor(&[]).bytes(runyard_redact::Kind::Text, &input).into_inner();
        prop_assert_eq!(got.concat(), String::from_utf8_lossy(&redacted));
    }
}
