//! Private absolute paths: those under a directory that nobody else needs to know are shown by the directory's short name.

use std::sync::Arc;

use crate::forms::triggers::{Rule, Trigger};
use crate::window::Window;

/// A private directory, in one of the ways in which it is written.
pub(crate) struct PrivatePath {
    written: Vec<u8>,
    /// What is shown for it; none for the workspace, under which paths are shown relative.
    shown: Option<Arc<[u8]>>,
}

impl PrivatePath {
    /// A directory in every way in which it is written: as it is, in JSON with escaped slashes, in URLs.
    pub(crate) fn all_written(path: &str, shown: Option<&str>) -> Vec<PrivatePath> {
        let plain = path.as_bytes().to_vec();
        let escaped = path.replace('/', "\\/").into_bytes();
        let mut encoded = Vec::new();
        for byte in path.bytes() {
            if byte.is_ascii_alphanumeric() || b"-_.~/!$&'()*+,;=:@".contains(&byte) {
                encoded.push(byte);
            } else {
                encoded.extend_from_slice(format!("%{byte:02X}").as_bytes());
            }
        }
        let mut written = vec![plain, escaped, encoded];
        written.dedup();
        let shown: Option<Arc<[u8]>> = shown.map(|shown| shown.as_bytes().into());
        written.into_iter().map(|written| PrivatePath { written, shown: shown.clone() }).collect()
    }

    pub(crate) fn trigger(&self, number: usize) -> Trigger {
        Trigger { literal: self.written.as_slice().into(), any_case: false, rule: Rule::Path(number) }
    }
}

/// Called where the path is written: how much of it is replaced, and by what.
pub(crate) fn find(window: &Window<'_>, path: &PrivatePath) -> Option<(usize, Arc<[u8]>)> {
    if !starts_here(window) {
        return None;
    }
    let end = path.written.len();
    let slash = slash_at(window, end);
    if slash == 0 && goes_on(window, end) {
        return None;
    }
    match &path.shown {
        Some(shown) => Some((end, Arc::clone(shown))),
        // `/work/app/src` is `src`; the root itself is `.`.
        None if slash > 0 && window.get(end + slash).is_some_and(is_name) => {
            Some((end + slash, Arc::from(&b""[..])))
        }
        None => Some((end, Arc::from(&b"."[..]))),
    }
}

/// Not in the middle of a longer path. A flag's letter may stand before it: `-I/usr/include`.
fn starts_here(window: &Window<'_>) -> bool {
    match window.before(1) {
        None => true,
        // `scheme://` is followed by a host or user, however much it looks like the root of a path.
        Some(b'/' | b'\\')
            if [&b":/"[..], br":\/", br":\/\"].iter().any(|end| window.left().ends_with(end)) =>
        {
            false
        }
        Some(b'n' | b'r' | b't') if window.before(2) == Some(b'\\') => true,
        Some(letter) if letter.is_ascii_alphabetic() => {
            window.before(2) == Some(b'-')
                && window.before(3).is_none_or(|byte| !is_name(byte) && byte != b'-')
        }
        Some(byte) => !is_name(byte) && byte != b'~',
    }
}

/// The length of a slash at this place, which JSON may escape.
fn slash_at(window: &Window<'_>, at: usize) -> usize {
    match window.get(at) {
        Some(b'/') => 1,
        Some(b'\\') if window.get(at + 1) == Some(b'/') => 2,
        _ => 0,
    }
}

/// Whether the last name of the path goes on at this place.
fn goes_on(window: &Window<'_>, at: usize) -> bool {
    match window.get(at) {
        Some(b'.') => window.get(at + 1).is_some_and(is_name),
        Some(b'%') => {
            window.get(at + 1).is_some_and(|byte| byte.is_ascii_hexdigit()) && !window.has(at, b"%2F")
        }
        Some(byte) => is_name(byte) || byte == b'~',
        None => false,
    }
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.+".contains(&byte) || !byte.is_ascii()
}
