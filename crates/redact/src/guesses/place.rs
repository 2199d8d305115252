//! Where the value of a key stands: the many ways in which texts write a name and its value.
//!
//! This says only where to look. Whether what stands there is a secret is judged in [`super::assignment`].

use crate::names::{self, NAME_MAX};
use crate::placeholder::SecretKind;
use crate::window::{Window, is_word};

/// What stands around the value, as far as it matters.
pub(super) struct Place {
    pub(super) kind: SecretKind,
    /// The name as it is written.
    pub(super) name: Vec<u8>,
    /// `--name value`.
    pub(super) is_flag: bool,
    /// `?name=value` or `&name=value`.
    pub(super) is_query: bool,
    pub(super) separator: Separator,
    /// Where the value begins.
    pub(super) from: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Separator {
    /// `name=value`.
    Equals,
    /// `name = value`.
    SpacedEquals,
    /// `name: value`, `name => value`.
    Colon,
    /// `--name value`.
    Blank,
    /// `"name", "value"`, `| name | value |`.
    Comma,
    /// `<name>value</name>`.
    Tag,
    /// `the name is value`.
    Prose,
    /// `name%3Dvalue`, as in the query of an address.
    Encoded,
}

/// A name, and what stands around it.
struct Key<'a> {
    name: Vec<u8>,
    /// What is to the left of it.
    left: &'a [u8],
    /// The byte to the left of it.
    before: Option<u8>,
    end: usize,
    /// The end of the quotes and brackets that close it.
    closes: usize,
    is_flag: bool,
}

/// The place of the value whose name has a word at the window's place, if that names a secret.
pub(super) fn place(window: &Window<'_>, word: usize) -> Option<Place> {
    let mut place = place_of_any(window, word)?;
    let by_query = || if place.is_query { signature(&place.name) } else { None };
    place.kind = names::secret_kind(&place.name).or_else(by_query)?;
    // Headers and cookies have matchers of their own, which know how they are written.
    let is_header = matches!(place.kind, SecretKind::Header | SecretKind::Cookie);
    if is_header && !names::folded(&place.name).ends_with("sessid") {
        return None;
    }
    Some(place)
}

/// The same whatever the name names.
pub(super) fn place_of_any(window: &Window<'_>, word: usize) -> Option<Place> {
    let key = key(window, word)?;
    let (separator, after) = separator(window, &key).or_else(|| separator_by_format(window, &key))?;
    let from = past_block_mark(window, window.blanks(after), separator);
    let is_query = matches!(key.before, Some(b'?' | b'&'));
    Some(Place { kind: SecretKind::Secret, name: key.name, is_flag: key.is_flag, is_query, separator, from })
}

fn key<'a>(window: &Window<'a>, word: usize) -> Option<Key<'a>> {
    let is_name = |byte: u8| is_word(byte) || byte == b'-';
    let end = window.run_of(word, NAME_MAX, is_name);
    let closes = closing_of_key(window, end);
    // Most words are no keys; what follows them tells that at the least cost.
    window.get(window.blanks(closes))?;
    let left = window.left();
    let start = left.iter().rposition(|byte| !is_name(*byte) && *byte != b'.').map_or(0, |at| at + 1);
    // The `n` of an escaped line break is no part of the name behind it.
    let escaped = left[..start].ends_with(b"\\") && left.get(start).is_some_and(|byte| b"nrt".contains(byte));
    let mut name = left[start + usize::from(escaped)..].to_vec();
    name.extend_from_slice(window.slice(0, end));
    let dashes = name.iter().take_while(|byte| **byte == b'-').count();
    name.drain(..dashes);
    if name.len() > NAME_MAX || name.is_empty() {
        return None;
    }
    let (left, before) = (&left[..start], left[..start].last().copied());
    Some(Key { name, left, before, end, closes, is_flag: dashes > 0 })
}

/// `=`, `:` and the like, which mean the same everywhere; and where the value begins behind them.
fn separator(window: &Window<'_>, key: &Key<'_>) -> Option<(Separator, usize)> {
    let (at, is_quoted) = (window.blanks(key.closes), key.closes > key.end);
    match (window.get(at)?, window.get(at + 1)) {
        (b'%', Some(b'3')) => matches!(window.get(at + 2), Some(b'D' | b'd' | b'A' | b'a'))
            .then_some((Separator::Encoded, at + 3)),
        (b'=', Some(b'=' | b'~')) => None,
        (b'=', Some(b'>')) | (b':', Some(b'=')) => Some((Separator::Colon, at + 2)),
        (b'=', _) if at > key.closes => Some((Separator::SpacedEquals, at + 1)),
        (b'=', Some(b' ' | b'\t')) => Some((Separator::SpacedEquals, at + 1)),
        (b'=', _) => Some((Separator::Equals, at + 1)),
        // `userPassword:: c2VjcmV0`, as directories write what is base64.
        (b':', Some(b':')) if window.get(at + 2) == Some(b' ') => Some((Separator::Colon, at + 2)),
        (b':', Some(b':')) => None,
        // A file's name, as in `/srv/token: not found`.
        (b':', _) if key.before == Some(b'/') && !is_quoted => None,
        // A part of a longer name, as in `arn:aws:…:secret:prod/db`, or what a placeholder says.
        (b':', Some(after)) if key.before == Some(b':') && after != b' ' => None,
        (b':', _) => Some((Separator::Colon, at + 1)),
        (_, _) if key.is_flag && at > key.end && !is_quoted => Some((Separator::Blank, at)),
        // `["--password", "hunter2"]`
        (b',', _) if key.is_flag && is_quoted => Some((Separator::Blank, at + 1)),
        // `.header("x-api-key", "…")`
        (b',', _) if is_quoted => Some((Separator::Comma, at + 1)),
        _ => None,
    }
}

/// How particular formats and languages write a name and its value.
fn separator_by_format(window: &Window<'_>, key: &Key<'_>) -> Option<(Separator, usize)> {
    let (at, is_quoted) = (window.blanks(key.closes), key.closes > key.end);
    let is_spaced = at > key.closes;
    match (window.get(at)?, window.get(at + 1)) {
        // `setPassword("…")`, `.token("…")`
        (b'(', Some(b'"' | b'\'')) if at == key.end && is_setter(&key.name) => {
            Some((Separator::Comma, at + 1))
        }
        // `(:password "…")`
        (b'"', _) if key.before == Some(b':') && is_spaced => Some((Separator::Blank, at)),
        // `ENV API_KEY …`, `setenv API_KEY …`
        (_, _) if is_spaced && !is_quoted && is_set_by_word(key.left) => Some((Separator::Blank, at)),
        // `<add key="ApiKey" value="…"/>`
        (b'v', _) if is_quoted && is_spaced && window.has(at, b"value=") => Some((Separator::Equals, at + 6)),
        // `<key>Password</key><string>…</string>`
        (b'<', Some(b'/')) if key.before == Some(b'>') && window.has(at, b"</key>") => {
            let value = window.run_of(at + 6, 24, |byte| byte.is_ascii_whitespace());
            window.has(value, b"<string>").then_some((Separator::Tag, value + 8))
        }
        // `<property name="password">…</property>`
        (b'>', _) if is_quoted && key.left.ends_with(b"=\"") && at == key.closes => {
            Some((Separator::Tag, at + 1))
        }
        // `the password is …`
        (b'i', Some(b's')) if is_spaced && !is_quoted && window.get(at + 2) == Some(b' ') => {
            Some((Separator::Prose, at + 3))
        }
        // A row of a table.
        (b'|', Some(b' ')) if is_spaced && !key.left.is_empty() => Some((Separator::Comma, at + 1)),
        // `<password>…</password>`
        (b'>', _) if key.before == Some(b'<') && at == key.end => Some((Separator::Tag, at + 1)),
        // `machine … login … password …`
        (_, _) if is_spaced && is_login_line(key.left) => Some((Separator::Blank, at)),
        // `ALTER USER app PASSWORD '…'`
        (b'\'', _) if is_spaced && key.name == b"PASSWORD" => Some((Separator::Blank, at)),
        // `- name: DB_PASSWORD`, and its value on the next line.
        (b'\n' | b'\r', _) if key.left.ends_with(b"name: ") || key.left.ends_with(b"name: \"") => {
            let value = window.run_of(at, 48, |byte| byte.is_ascii_whitespace());
            window.has(value, b"value:").then_some((Separator::Colon, value + 6))
        }
        _ => None,
    }
}

/// Past the quotes and brackets that close a key: `"]`, `\"`, `')`.
fn closing_of_key(window: &Window<'_>, at: usize) -> usize {
    // As addresses and pages write a quote.
    for quote in [&b"%22"[..], b"&quot;", b"&#34;"] {
        if window.has(at, quote) {
            return at + quote.len();
        }
    }
    let quoted = window.run_of(at, 4, |byte| b"\\\"'`".contains(&byte));
    let bracket = window.get(quoted);
    if quoted > at && bracket == Some(b']') { quoted + 1 } else { quoted }
}

/// Past the mark and line break of a YAML block: `password: |`, and the value on the next line.
fn past_block_mark(window: &Window<'_>, from: usize, separator: Separator) -> usize {
    if separator != Separator::Colon || !matches!(window.get(from), Some(b'|' | b'>')) {
        return from;
    }
    let mark = window.run_of(from + 1, 2, |byte| b"+-0123456789".contains(&byte));
    let line = window.run_of(mark, 2, |byte| byte == b'\r' || byte == b'\n');
    let value = window.blanks(line);
    if line > mark && value > line { value } else { from }
}

/// What signs an address in its query.
fn signature(name: &[u8]) -> Option<SecretKind> {
    let folded = names::folded(name);
    (folded == "sig" || folded.ends_with("signature")).then_some(SecretKind::Url)
}

/// A function that takes a secret, not one that looks it up or reads it.
fn is_setter(name: &[u8]) -> bool {
    let readers = [
        "get", "parse", "read", "load", "find", "has", "is", "from", "check", "validate", "next", "fetch",
        "env",
    ];
    let folded = names::folded(name);
    !readers.iter().any(|reader| folded.starts_with(reader))
}

/// Words that are followed by a name and a value.
fn is_set_by_word(left: &[u8]) -> bool {
    let words: [&[u8]; 8] =
        [b"ENV ", b"ARG ", b"setenv ", b"setx ", b"set -x ", b"set -gx ", b"set -Ux ", b"#define "];
    words.iter().any(|word| left.ends_with(word))
}

/// A line of a `.netrc`.
fn is_login_line(left: &[u8]) -> bool {
    let line = left.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    line.trim_ascii_start().starts_with(b"login ")
        || memchr::memmem::find(line, b" login ").is_some()
            && memchr::memmem::find(line, b"machine ").is_some()
}
