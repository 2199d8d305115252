//! Credentials in addresses: `scheme://user:password@host`, and a token where the user's name would stand.

use super::{Found, Rest};
use crate::guesses::values::{looks_random, speaks_of_one};
use crate::placeholder::{SecretKind, is_only_placeholders};
use crate::window::Window;

/// Called at `://`.
pub(crate) fn find(window: &Window<'_>) -> Option<Found> {
    if !window.before(1)?.is_ascii_alphanumeric() {
        return None;
    }
    let from = 3;
    let end = window
        .run(from, |byte| !byte.is_ascii_whitespace() && !b"/?#\"'`<>\\|".contains(&byte) && byte >= b' ');
    // References are resolved before they are used: what they hold may have any byte.
    let authority = window.slice(from, end);
    if window.is_cut_at(end) {
        // No host is this long: what follows the first colon is withheld.
        let colon = authority.iter().position(|byte| *byte == b':')?;
        return Found::new(window, from + colon + 1, end, SecretKind::Url, Rest::Token);
    }
    let Some(at) = authority.iter().rposition(|byte| *byte == b'@') else {
        return unescaped(window, from, end);
    };
    let user_info = &authority[..at];
    if is_only_placeholders(user_info) {
        return None;
    }
    let colon = user_info.iter().position(|byte| *byte == b':');
    match colon {
        Some(colon) => {
            let password = &user_info[colon + 1..];
            // `user:password@host` in a document; the same word twice is a real and weak one.
            if speaks_of_one(password) || is_marked_as_example(password) {
                return None;
            }
            Found::new(window, from + colon + 1, from + at, SecretKind::Url, Rest::Token)
        }
        None if looks_random(user_info)
            && user_info.len() >= 16
            && !user_info.contains(&b'.')
            && !speaks_of_one(user_info) =>
        {
            Found::new(window, from, from + at, SecretKind::Url, Rest::Token)
        }
        None => None,
    }
}

/// The longest user and password that are looked for past the end of what an address can have there.
const UNESCAPED_MAX: usize = 256;

/// `mysql://app:x#T6@127.0.0.1/shop`: a password that ought to have been escaped, and ends before a host.
fn unescaped(window: &Window<'_>, from: usize, stop: usize) -> Option<Found> {
    let is_domain = window.get(stop) == Some(b'\\')
        && window.get(stop + 1).is_some_and(|byte| byte.is_ascii_alphabetic() && !b"nrtux".contains(&byte));
    let user_end = if is_domain {
        window.run_of(stop + 1, 64, |byte| byte.is_ascii_alphanumeric() || b"._-$".contains(&byte))
    } else {
        from + window.slice(from, stop).iter().position(|byte| *byte == b':')?
    };
    let start = user_end + 1;
    let port = window.slice(start, stop.max(start));
    let is_host = !is_domain && (port.iter().all(u8::is_ascii_digit) || port.starts_with(b"$"));
    if window.get(user_end) != Some(b':') || is_host || window.get(from) == Some(b'[') {
        return None;
    }
    let end = window.run_of(start, UNESCAPED_MAX, |byte| {
        !byte.is_ascii_whitespace() && !b"\"'`<>|".contains(&byte) && byte >= b' '
    });
    let rest = window.slice(start, end);
    let at = rest.iter().rposition(|byte| *byte == b'@')?;
    let host = rest[at + 1..]
        .iter()
        .take_while(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(byte))
        .count();
    let after = rest.get(at + 1 + host);
    let password = &rest[..at];
    if host == 0
        || !after.is_none_or(|byte| b"/:?#,;)]}".contains(byte))
        || memchr::memmem::find(password, b"://").is_some()
        || speaks_of_one(password)
        || is_marked_as_example(password)
    {
        return None;
    }
    Found::new(window, start, start + at, SecretKind::Url, Rest::Token)
}

fn is_marked_as_example(password: &[u8]) -> bool {
    let folded = crate::names::folded(password);
    ["p", "pw", "s3cret", "pass", "passw", "mypassword", "mypass", "yourpassword"].contains(&folded.as_str())
        || password.starts_with(b"{")
        || password.starts_with(b"[")
}
