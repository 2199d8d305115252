//! Event streams: what is an event, and that the cutting of the bytes changes nothing.
#![allow(clippy::unwrap_used, missing_docs)]

use proptest::prelude::*;
use runyard_llm::{
    LlmError,
    sse::{Decoder, EVENT_BYTES_MAX, Event, encode},
};

fn event(name: &str, data: &str) -> Event {
    Event { name: name.into(), data: data.into() }
}

#[track_caller]
fn check(bytes: &[u8], expected: &[(&str, &str)]) {
    let expected: Vec<Event> = expected.iter().map(|(name, data)| event(name, data)).collect();
    assert_eq!(Decoder::new().push(bytes).unwrap(), expected);
}

#[test]
fn an_empty_line_ends_an_event_whatever_ends_the_lines() {
    check(b"event: a\ndata: 1\n\ndata: 2\n\n", &[("a", "1"), ("", "2")]);
    check(b"event: a\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n", &[("a", "1"), ("", "2")]);
    check(b"event: a\rdata: 1\r\rdata: 2\r\r", &[("a", "1"), ("", "2")]);
    check(b"data: 1\r\n\ndata: 2\n\r\n", &[("", "1"), ("", "2")]);
}

#[test]
fn several_data_lines_are_one_text() {
    check(b"data: a\ndata:b\ndata\ndata:  c\n\n", &[("", "a\nb\n\n c")]);
    check(b"data:\n\n", &[("", "")]);
    check(b"data\ndata\n\n", &[("", "\n")]);
}

#[test]
fn comments_and_other_fields_are_skipped() {
    check(b": hello\nid: 7\nretry: 10\nnonsense\ndata: x\n:\n\n", &[("", "x")]);
    check(b"data: a:b: c\n\n", &[("", "a:b: c")]);
    check(b"Data: x\n data: y\n\n", &[]);
}

#[test]
fn an_event_without_data_or_without_its_end_is_none() {
    check(b"event: a\n\ndata: x\n\n", &[("", "x")]);
    check(b"data: x\n", &[]);
    check(b"\n\n\n", &[]);
}

#[test]
fn a_byte_order_mark_counts_only_at_the_beginning() {
    check(b"\xEF\xBB\xBFdata: x\n\n", &[("", "x")]);
    check("\u{feff}\n\u{feff}data: y\n\n".as_bytes(), &[]);
}

#[test]
fn what_is_not_utf_8_is_replaced() {
    check(b"data: a\xFFb\n\n", &[("", "a\u{fffd}b")]);
}

#[test]
fn a_line_break_in_a_name_begins_no_field() {
    let mut bytes = Vec::new();
    encode(&event("a\ndata: b\r", "c"), &mut bytes);
    check(&bytes, &[("adata: b", "c")]);
}

#[test]
fn an_event_that_never_ends_is_refused() {
    let too_long = LlmError::EventTooLong { max: EVENT_BYTES_MAX };
    let piece = vec![b'x'; 1024 * 1024];
    let mut one_line = Decoder::new();
    let pieces = EVENT_BYTES_MAX / piece.len();
    for _ in 0..pieces {
        one_line.push(&piece).unwrap();
    }
    assert_eq!(one_line.push(b"x"), Err(too_long.clone()));

    let mut many_lines = Decoder::new();
    let line = [b"data: ".as_slice(), &piece, b"\n"].concat();
    let refused = (0..=pieces).find_map(|_| many_lines.push(&line).err());
    assert_eq!(refused, Some(too_long));
}

/// Bytes that are often parts of events.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => Just(b"data: ".to_vec()),
        2 => Just(b"event:".to_vec()),
        4 => Just(b"\n".to_vec()),
        2 => Just(b"\r".to_vec()),
        2 => Just(b"\r\n\r\n".to_vec()),
        1 => Just(b": comment".to_vec()),
        1 => Just(b"\xEF\xBB\xBF".to_vec()),
        3 => "[a-zé€\u{1F600}:]{0,6}".prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>(), 0..4),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_cutting_of_a_stream_gives_the_same_events(bytes in stream(), cuts in prop::collection::vec(0_usize..200, 0..12)) {
        let whole = Decoder::new().push(&bytes).unwrap();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let mut decoder = Decoder::new();
        let pieces: Vec<Event> =
            cuts.windows(2).flat_map(|cut| decoder.push(&bytes[cut[0]..cut[1]]).unwrap()).collect();
        prop_assert_eq!(pieces, whole);
    }

    #[test]
    fn what_is_encoded_decodes_to_the_same(names in prop::collection::vec(("[a-z._]{0,8}", "[^\r]{0,30}"), 0..6)) {
        let events: Vec<Event> = names.iter().map(|(name, data)| event(name, data)).collect();
        let mut bytes = Vec::new();
        for event in &events {
            encode(event, &mut bytes);
        }
        prop_assert_eq!(Decoder::new().push(&bytes).unwrap(), events);
    }
}
