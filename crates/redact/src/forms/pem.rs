//! Private keys in PEM. Certificates and public keys are public, and stay.
//!
//! A header without a key behind it, as code and documents write it, is no secret. A key that was cut off before its end
//! is one.

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
    let label = b"-----BEGIN ".len();
    let label_end = window
        .run_of(label, LABEL_MAX, |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' ');
    let name = window.slice(label, label_end);
    if !(name.ends_with(b"PRIVATE KEY") || name.ends_with(b"PRIVATE KEY BLOCK"))
        || !window.has(label_end, DASHES)
    {
        return None;
    }
    let mut end = label_end + DASHES.len();
    let (mut runs, mut longest) = (0, 0);
    loop {
        let at = past_separators(window, end);
        if window.has(at, b"-----END ") {
            let close = window.run_of(at + 9, LABEL_MAX, |byte| {
                byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' '
            });
            if runs == 0 {
                return None;
            }
            let close = if window.has(close, DASHES) { close + DASHES.len() } else { close };
            return Found::new(window, 0, close, SecretKind::Pem, Rest::Pem);
        }
        if let Some(header_end) = header_line(window, at) {
            end = header_end;
            continue;
        }
        let run_end = window.run(at, |byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte));
        if run_end == at {
            break;
        }
        // A short run is the last line of a key, or a word of a sentence. The end of the key tells.
        let short = run_end - at < LINE_MIN;
        if short {
            let after = past_separators(window, run_end);
            let closes = window.has(after, b"-----END ");
            if !closes && (longest < LINE_MIN || runs == 0) {
                break;
            }
            let ends_line = window.get(run_end).is_none_or(|byte| b"\r\n\\\"'".contains(&byte));
            if !closes {
                end = if ends_line { run_end } else { end };
                break;
            }
        }
        longest = longest.max(run_end - at);
        runs += 1;
        end = run_end;
    }
    if longest < LINE_MIN {
        return None;
    }
    let open = past_separators(window, end);
    if window.is_cut_at(open) {
        end = open;
    }
    Found::new(window, 0, end, SecretKind::Pem, Rest::Pem)
}

/// Past what may stand between the lines of a key: blanks, line breaks also as `\n`, quotes and what joins them in code,
/// and the marks of diffs, quotations and comments.
fn past_separators(window: &Window<'_>, from: usize) -> usize {
    let mut at = from;
    let mut at_line_start = false;
    loop {
        match window.get(at) {
            Some(b'\n') => at_line_start = true,
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

/// The end of a line such as `Proc-Type: 4,ENCRYPTED`, if one stands there.
fn header_line(window: &Window<'_>, at: usize) -> Option<usize> {
    let names: [&[u8]; 5] = [b"Proc-Type:", b"DEK-Info:", b"Comment:", b"Version:", b"Hash:"];
    let name = names.iter().find(|name| window.has(at, name))?;
    Some(window.run_of(at + name.len(), 128, |byte| byte != b'\n' && byte != b'\\' && byte != b'"'))
}
