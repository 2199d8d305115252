//! JSON web tokens: `header.payload.signature`, each of them base64url, the header an object.

use super::{Found, Rest};
use crate::placeholder::SecretKind;
use crate::window::{Window, is_word};

/// How many parts are read; an encrypted token has five.
const PARTS_MAX: usize = 5;

/// Called at `eyJ`, which is how `{"` looks in base64.
pub(crate) fn find(window: &Window<'_>) -> Option<Found> {
    if !window.is_word_start() && !window.is_behind_percent() && !matches!(window.before(1), Some(b'_')) {
        return None;
    }
    let is_part = |byte: u8| is_word(byte) || byte == b'-';
    let header = window.run(0, is_part);
    if header < 16 || window.get(header) != Some(b'.') {
        return None;
    }
    let payload = window.run(header + 1, is_part);
    if payload < header + 1 + 8 {
        return None;
    }
    let mut end = payload;
    for _ in 2..PARTS_MAX {
        if window.get(end) != Some(b'.') {
            break;
        }
        let part = window.run(end + 1, is_part);
        // A full stop after the token is no part of it.
        if part == end + 1 && !window.is_cut_at(part) {
            break;
        }
        end = part;
    }
    Found::new(window, 0, end, SecretKind::Jwt, Rest::Token)
}
