//! Private keys in PEM. Certificates and public keys are public, and stay.
//!
//! A header without a key behind it, as code and documents write it, is no secret. A key that was cut off before its end
//! is one.

use super::headers::decoded;
use super::{Found, Rest};
use crate::placeholder::SecretKind;
use crate::window::Window;

const DASHES: &[u8] = b"-----";
/// The longest word between `BEGIN` and the dashes.
const LABEL_MAX: usize = 64;
/// A line of a key that has no end in sight has at least this length.
const LINE_MIN: usize = 16;

/// Called at `-----BEGIN `.
pub(crate) fn find(window: &Window<'_>) -> Option<Found> {
    let label = b"-----BEGIN".len();
    let label_end = window.run_of(label, LABEL_MAX, is_label);
    let name = String::from_utf8_lossy(window.slice(label, label_end)).replace("%20", " ");
    let name = name.as_bytes();
    let prefix = line_prefix(window);
    if !(name.ends_with(b"PRIVATE KEY") || name.ends_with(b"PRIVATE KEY BLOCK"))
        || !window.has(label_end, DASHES)
    {
        return None;
    }
    let mut end = label_end + DASHES.len();
    let (mut has_body, mut has_line) = (false, false);
    loop {
        let at = past_separators(window, end, prefix);
        if window.has(at, b"-----END") {
            let close = window.run_of(at + 8, LABEL_MAX, is_label);
            if !has_body {
                return None;
            }
            let close = if window.has(close, DASHES) { close + DASHES.len() } else { close };
            return Found::new(window, 0, close, SecretKind::Pem, Rest::Pem);
        }
        if let Some(header_end) = header_line(window, at) {
            end = header_end;
            continue;
        }
        let run_end = body_end(window, at);
        if run_end == at {
            break;
        }
        // A short run is the last line of a key, or a word of a sentence. The end of the key tells.
        let short = run_end - at < LINE_MIN;
        if short && !window.has(past_separators(window, run_end, prefix), b"-----END") {
            let ends_line = window.get(run_end).is_none_or(|byte| b"\r\n\\\"'".contains(&byte));
            end = if ends_line { run_end } else { end };
            break;
        }
        has_body = true;
        has_line |= !short;
        end = run_end;
    }
    if !has_line {
        return None;
    }
    let open = past_separators(window, end, prefix);
    if window.is_cut_at(open) {
        end = open;
    }
    Found::new(window, 0, end, SecretKind::Pem, Rest::Pem)
}

/// Past what may stand between the lines of a key: blanks, line breaks also as `\n`, quotes and what joins them in code,
/// and the marks of diffs, quotations and comments.
fn past_separators(window: &Window<'_>, from: usize, prefix: &[u8]) -> usize {
    let mut at = from;
    let mut at_line_start = false;
    loop {
        match window.get(at) {
            Some(b'\n') => {
                at_line_start = true;
                if let Some(end) = past_prefix(window, at + 1, prefix) {
                    at = end;
                    continue;
                }
            }
            Some(b'%')
                if [&b"%0A"[..], b"%0a", b"%0D", b"%0d", b"%20"]
                    .iter()
                    .any(|escape| window.has(at, escape)) =>
            {
                at += 2;
            }
            Some(b'<') if window.has(at, b"<br") => {
                at = window.run_of(at + 3, 2, |byte| byte == b' ' || byte == b'/')
            }
            Some(b' ' | b'\t' | b'\r' | b'"' | b'\'' | b',' | b'`') => {}
            Some(b'\\') => match window.get(at + 1) {
                Some(b'n' | b'r' | b't') => {
                    at += 1;
                    at_line_start = false;
                }
                Some(b'\\' | b'"' | b'\'' | b'\n') => {}
                _ => return at,
            },
            Some(b'>' | b'|' | b'#' | b'*' | b';' | b'.') if at_line_start => {}
            // `+` can begin a line of the key as well; then it is covered all the same.
            Some(b'+') if at_line_start || matches!(window.get(at + 1), Some(b' ' | b'\n' | b'\r')) => {}
            Some(b'-') if at_line_start && !window.has(at, DASHES) => at_line_start = false,
            // The mark of a removed line before the dashes of the last one.
            Some(b'-') if at_line_start && window.has(at, b"------") => at_line_start = false,
            _ => return at,
        }
        at += 1;
    }
}

fn is_label(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' ' || byte == b'%'
}

/// Where a run of base64 ends, in which an address may have escaped what it must.
fn body_end(window: &Window<'_>, from: usize) -> usize {
    let mut at = from;
    loop {
        match window.get(at) {
            Some(byte) if byte.is_ascii_alphanumeric() || b"+/=".contains(&byte) => at += 1,
            Some(b'%') if [&b"%2"[..], b"%3D", b"%3d"].iter().any(|escape| window.has(at, escape)) => {
                if !matches!(window.get(at + 2), Some(b'B' | b'b' | b'F' | b'f' | b'D' | b'd')) {
                    return at;
                }
                at += 3;
            }
            _ => return at,
        }
    }
}

/// What stands before the key in its first line, and so perhaps before each of its lines: a time, `app | `, `// `.
fn line_prefix<'a>(window: &Window<'a>) -> &'a [u8] {
    let left = window.left();
    left.iter().rposition(|byte| *byte == b'\n').map_or(left, |line| &left[line + 1..])
}

/// Past the same prefix in another line. Numbers and the blanks around them may differ.
fn past_prefix(window: &Window<'_>, from: usize, prefix: &[u8]) -> Option<usize> {
    if prefix.is_empty() {
        return None;
    }
    let is_blank = |byte: u8| byte == b' ' || byte == b'\t';
    let (mut at, mut rest) = (from, prefix);
    while let Some(first) = rest.first() {
        let next = window.get(at)?;
        let length = match first {
            first if first.is_ascii_digit() && next.is_ascii_digit() => {
                at = window.run_of(at, 32, |byte| byte.is_ascii_digit());
                rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
            }
            first if is_blank(*first) && is_blank(next) => {
                at = window.run_of(at, 64, is_blank);
                rest.iter().take_while(|byte| is_blank(**byte)).count()
            }
            first if *first == next => {
                at += 1;
                1
            }
            _ => return None,
        };
        rest = &rest[length..];
    }
    Some(at)
}

/// Called at the start of `-----BEGIN` in base64: a key that was encoded once more.
pub(crate) fn in_base64(window: &Window<'_>) -> Option<Found> {
    let is_body = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=_-".contains(&byte);
    let start = window.slice(0, window.run_of(0, 96, is_body));
    memchr::memmem::find(&decoded(start), b"PRIVATE KEY")?;
    let mut end = window.run(0, is_body);
    loop {
        // Wrapped.
        let line = window.run_of(end, 8, |byte| b"\r\n\t ".contains(&byte));
        let next = window.run(line, is_body);
        if line == end || next - line < LINE_MIN || !window.slice(end, line).contains(&b'\n') {
            break;
        }
        end = next;
    }
    Found::new(window, 0, end, SecretKind::Pem, Rest::Pem)
}

/// The end of a line such as `Proc-Type: 4,ENCRYPTED`, if one stands there.
fn header_line(window: &Window<'_>, at: usize) -> Option<usize> {
    let names: [&[u8]; 5] = [b"Proc-Type:", b"DEK-Info:", b"Comment:", b"Version:", b"Hash:"];
    let name = names.iter().find(|name| window.has(at, name))?;
    Some(window.run_of(at + name.len(), 128, |byte| byte != b'\n' && byte != b'\\' && byte != b'"'))
}
