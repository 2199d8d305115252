//! `Authorization` and cookie headers, and `Bearer …` and `Basic …` wherever they stand.
//!
//! The scheme is shown, what follows it is not. Code that builds a header from a variable stays as it is.

use super::{FORM_MAX, Found, Rest, before_unopened, is_token};
use crate::guesses::values::{looks_random, speaks_of_one};
use crate::placeholder::SecretKind;
use crate::window::Window;

/// Schemes that are followed by one token.
const TOKEN_SCHEMES: [&[u8]; 10] =
    [b"bearer", b"basic", b"token", b"apikey", b"negotiate", b"ntlm", b"ssws", b"key", b"dpop", b"splunk"];
/// Schemes that are followed by a list of parameters.
const LIST_SCHEMES: [&[u8]; 6] =
    [b"digest", b"aws4-hmac-sha256", b"hawk", b"googlelogin", b"oauth", b"signature"];

/// Where a header's value starts, and the quote that ends it, if it is quoted. `at` is behind the header's name.
fn value_start(window: &Window<'_>, at: usize) -> Option<(usize, Option<u8>)> {
    let closes = window.run_of(at, 4, |byte| b"\"'\\`]".contains(&byte));
    let separator = window.blanks(closes);
    let separated = match window.get(separator)? {
        b':' | b'=' if window.get(separator + 1) != Some(b'=') => separator + 1,
        // `.header("Authorization", "Bearer …")`
        b',' if closes > at => separator + 1,
        _ => return None,
    };
    // `=>`
    let separated = if window.get(separated) == Some(b'>') { separated + 1 } else { separated };
    let from = window.blanks(separated);
    let bracket = usize::from(window.get(from) == Some(b'[') && !window.has(from, b"[REDACTED:"));
    let opens = window.run_of(from + bracket, 6, |byte| b"\"'\\`".contains(&byte));
    // `Authorization:\ Bearer\ …` of shells.
    let opens = if window.has(from, b"\\ ") { window.blanks(opens) } else { opens };
    let inside = (from..opens).rev().find_map(|at| window.get(at).filter(|byte| b"\"'`".contains(byte)));
    // `-H "Authorization: …"` and `{"headers": "Authorization: …"}`: the quote was opened before the name.
    let outside = || {
        let line = window.left().rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
        line.iter().rev().take(24).copied().find(|byte| b"\"'`".contains(byte))
    };
    Some((opens, inside.or_else(|| if closes == at { outside() } else { None })))
}

fn line_end(window: &Window<'_>, from: usize, quote: Option<u8>) -> usize {
    let mut end = from;
    while let Some(byte) = window.get(end) {
        let escaped_end = byte == b'\\' && matches!(window.get(end + 1), Some(b'n' | b'r' | b'"' | b'\\'));
        if byte == b'\n' || byte == b'\r' || quote == Some(byte) || escaped_end {
            break;
        }
        end += 1;
    }
    end
}

/// Called at `authorization`, with the length of that.
pub(crate) fn authorization(window: &Window<'_>, name: usize) -> Option<Found> {
    let (from, quote) = value_start(window, name)?;
    let word_end = window.run_of(from, 32, |byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let word = window.slice(from, word_end).to_ascii_lowercase();
    // `-HAuthorization:\ Bearer\ …`
    let escaped = usize::from(window.has(word_end, b"\\ "));
    let spaced = window.get(word_end + escaped) == Some(b' ');
    let rest = quote.map_or(Rest::Line, Rest::Quoted);
    if spaced && LIST_SCHEMES.contains(&&word[..]) {
        let start = window.blanks(word_end);
        let end = before_unopened(window, start, line_end(window, start, quote));
        let end = trimmed(window, start, end);
        let value = window.slice(start, end);
        if !value.contains(&b'=') || speaks_of_one(value) {
            return None;
        }
        return Found::new(window, start, end, SecretKind::Header, rest);
    }
    let is_scheme = spaced && TOKEN_SCHEMES.contains(&&word[..]);
    let start = if is_scheme { past_join(window, window.blanks(word_end + escaped)) } else { from };
    let end = window.run(start, |byte| {
        !byte.is_ascii_whitespace() && !b"\"'`,;\\<>".contains(&byte) && Some(byte) != quote
    });
    if window.is_cut_at(end) {
        return Found::new(window, start, end, SecretKind::Header, Rest::Token);
    }
    let end = before_unopened(window, start, end);
    let value = window.slice(start, end);
    // Without a scheme only what looks like a credential is taken for one: `authorization: required`.
    let believed = if start == from { looks_random(value) } else { is_credential(value) };
    if !believed
        || speaks_of_one(value)
        || is_code(value)
        || window.get(end).is_some_and(|byte| b"<".contains(&byte) && end == start)
    {
        return None;
    }
    Found::new(window, start, end, SecretKind::Header, Rest::Token)
}

/// Past `" + "`, where code puts the scheme and the credential together.
fn past_join(window: &Window<'_>, at: usize) -> usize {
    let joins = [&b"\" + \""[..], b"' + '", b"\" . \"", b"' . '"];
    at + joins.iter().find(|join| window.has(at, join)).map_or(0, |join| join.len())
}

/// Called at `bearer`, with the length of that.
pub(crate) fn bearer(window: &Window<'_>, name: usize) -> Option<Found> {
    let start = scheme_end(window, name)?;
    let end = trimmed(window, start, window.run(start, is_token));
    let value = window.slice(start, end);
    if window.is_cut_at(end) {
        return Found::new(window, start, end, SecretKind::Header, Rest::Token);
    }
    let joined = value.contains(&b'-') && !value.iter().any(u8::is_ascii_digit);
    if value.len() < 8 || !is_credential(value) || speaks_of_one(value) || is_code(value) || joined {
        return None;
    }
    Found::new(window, start, end, SecretKind::Header, Rest::Token)
}

/// Called at `basic`, with the length of that: only what decodes to a user and a password counts.
pub(crate) fn basic(window: &Window<'_>, name: usize) -> Option<Found> {
    let start = scheme_end(window, name)?;
    let end = window.run(start, |byte| byte.is_ascii_alphanumeric() || b"+/=_-".contains(&byte));
    let value = window.slice(start, end);
    if value.len() < 6 || !decodes_to_a_pair(&value[..value.len().min(FORM_MAX)]) {
        return None;
    }
    Found::new(window, start, end, SecretKind::Header, Rest::Token)
}

fn scheme_end(window: &Window<'_>, name: usize) -> Option<usize> {
    if !window.is_word_start() {
        return None;
    }
    // `Bearer=abc` and `bearer:abc` are the business of guesses by name.
    let start = window.run_of(name, 4, |byte| byte == b' ' || byte == b'+');
    (start > name).then_some(start)
}

/// Called at `cookie`, with the length of that. Where nothing is to be guessed, only a header that carries what looks like
/// a session counts: `cookie = "theme=dark"` is code.
pub(crate) fn cookie(window: &Window<'_>, name: usize, guesses: bool) -> Option<Found> {
    let set = window.left().last_chunk::<4>().is_some_and(|left| left.eq_ignore_ascii_case(b"set-"));
    if !set && !window.is_word_start() {
        return None;
    }
    if !guesses && window.get(name) != Some(b':') {
        return None;
    }
    let (from, quote) = value_start(window, name)?;
    let pair =
        window.run_of(from, 128, |byte| byte.is_ascii_alphanumeric() || b"!#$%&*+.^_|~-".contains(&byte));
    if pair == from || window.get(pair) != Some(b'=') {
        return None;
    }
    let end = before_unopened(window, from, line_end(window, from, quote));
    let end = trimmed(window, from, end);
    let found = Found::new(window, from, end, SecretKind::Cookie, quote.map_or(Rest::Line, Rest::Quoted));
    if window.is_cut_at(end) {
        return found;
    }
    let first_end =
        window.run(pair, |byte| !byte.is_ascii_whitespace() && byte != b';' && Some(byte) != quote);
    let first = window.slice(pair + 1, first_end.min(end));
    if first.is_empty()
        || first.starts_with(b"=")
        || first.starts_with(b">")
        || speaks_of_one(first)
        || is_code(first)
        || !(guesses || has_session(window.slice(from, end)))
    {
        return None;
    }
    found
}

/// Whether one of several cookies is more than a setting.
fn has_session(cookies: &[u8]) -> bool {
    cookies
        .split(|byte| *byte == b';')
        .filter_map(|cookie| cookie.splitn(2, |byte| *byte == b'=').nth(1))
        .any(|value| {
            let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
            let letters = value.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
            looks_random(value) || (value.len() >= 8 && digits >= 2 && letters >= 2)
        })
}

/// Without blanks at the end, unless the window ends there.
fn trimmed(window: &Window<'_>, start: usize, end: usize) -> usize {
    if window.is_cut_at(end) {
        return end;
    }
    let value = window.slice(start, end);
    end - value.iter().rev().take_while(|byte| b" \t.,;".contains(byte)).count()
}

/// A credential of a scheme: not a word of a sentence.
fn is_credential(value: &[u8]) -> bool {
    let letters_only = value.iter().all(|byte| byte.is_ascii_lowercase() || b"-_".contains(byte));
    value.len() >= 4
        && !(letters_only && value.len() < 20)
        && !(value.iter().all(u8::is_ascii_alphabetic) && value.len() < 16)
}

fn is_code(value: &[u8]) -> bool {
    value.iter().any(|byte| b"(){}$<>|^".contains(byte)) || value.starts_with(b"[")
}

/// Called at `"auth`, with the length of that: how container tools keep a user and a password.
pub(crate) fn pair(window: &Window<'_>, name: usize) -> Option<Found> {
    let (start, quote) = value_start(window, name)?;
    let end = window.run(start, |byte| byte.is_ascii_alphanumeric() || b"+/=_-".contains(&byte));
    quote.filter(|_| decodes_to_a_pair(window.slice(start, end)))?;
    Found::new(window, start, end, SecretKind::Secret, Rest::Token)
}

/// Whether a text is base64 of `user:password`.
pub(crate) fn decodes_to_a_pair(value: &[u8]) -> bool {
    let decoded = decoded(value);
    let printable = decoded.iter().all(|byte| *byte >= b' ' && *byte != 0x7f);
    printable && decoded.iter().position(|byte| *byte == b':').is_some_and(|colon| colon + 1 < decoded.len())
}

/// What a text is base64 of, as far as it is.
pub(super) fn decoded(value: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(value.len());
    let (mut bits, mut have) = (0u32, 0);
    for byte in value {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => break,
        };
        bits = ((bits << 6) + u32::from(digit)) & 0x3fff;
        have += 6;
        if have >= 8 {
            have -= 8;
            decoded.push((bits >> have) as u8);
        }
    }
    decoded
}
