//! Lines of headers and environments: the whole value of a name that names a secret.

use super::values::{is_path, is_stand_in};
use crate::forms::{Found, Rest};
use crate::names::{self, NAME_MAX};
use crate::placeholder::SecretKind;
use crate::window::{Window, is_word};

/// Called at the start of a line.
pub(crate) fn find(window: &Window<'_>) -> Option<Found> {
    let mut at = window.blanks(0);
    // What tools write before headers and environments: `> `, `< `, `export `.
    for prefix in [&b"> "[..], b"< ", b"* ", b"export ", b"declare -x ", b"set ", b"-e ", b"-H "] {
        if window.has(at, prefix) {
            at = window.blanks(at + prefix.len());
            break;
        }
    }
    at = window.run_of(at, 1, |byte| byte == b'"' || byte == b'\'');
    let name_end = window.run_of(at, NAME_MAX, |byte| is_word(byte) || byte == b'-' || byte == b'.');
    let closed = window.run_of(name_end, 1, |byte| byte == b'"' || byte == b'\'');
    let separator = window.blanks(closed);
    if !matches!(window.get(separator), Some(b':' | b'=')) {
        return None;
    }
    let name = window.slice(at, name_end);
    let kind = names::secret_kind(name)?;
    let from = window.blanks(separator + 1);
    let line_end = value_end(window, from, kind);
    let cut = window.is_cut_at(line_end);
    let value = window.slice(from, line_end);
    let blank_end = value.len() - value.trim_ascii_end().len();
    let (mut start, mut end) = (from, if cut { line_end } else { line_end - blank_end });
    if let [quote @ (b'"' | b'\''), .., last] = window.slice(start, end)
        && quote == last
    {
        (start, end) = (start + 1, end - 1);
    } else if matches!(window.get(start), Some(b'"' | b'\'')) && end > start + 1 {
        // A value of several lines; the quote that ends it stands on the last.
        start += 1;
    }
    if kind == SecretKind::Header {
        start = past_scheme(window, start, end);
    }
    let value = window.slice(start, end);
    if !cut && (is_stand_in(value) || is_literal_nothing(value) || is_path(value)) {
        return None;
    }
    Found::new(window, start, end, kind, Rest::Line)
}

/// The end of the line; a header goes on in the next one if that is indented.
fn value_end(window: &Window<'_>, from: usize, kind: SecretKind) -> usize {
    let folds = matches!(kind, SecretKind::Header | SecretKind::Cookie);
    let mut end = from;
    loop {
        end = window.run(end, |byte| byte != b'\n' && byte != b'\r');
        let after = window.run_of(end, 2, |byte| byte == b'\n' || byte == b'\r');
        if !folds || after == end || !matches!(window.get(after), Some(b' ' | b'\t')) {
            return end;
        }
        end = after;
    }
}

/// Past the scheme of an `Authorization` header, which is shown.
fn past_scheme(window: &Window<'_>, start: usize, end: usize) -> usize {
    let word = window.run_of(start, 32, |byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let credentials = window.run_of(word, 16, |byte| byte.is_ascii_whitespace());
    let is_scheme = word > start && credentials > word && credentials < end && word - start <= 20;
    if is_scheme { credentials } else { start }
}

/// A switch or nothing, rather than a secret.
fn is_literal_nothing(value: &[u8]) -> bool {
    [&b"true"[..], b"false", b"null", b"none", b"nil", b"undefined", b"yes", b"no"]
        .iter()
        .any(|word| value.eq_ignore_ascii_case(word))
}
