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
    let at = authority.iter().rposition(|byte| *byte == b'@')?;
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

fn is_marked_as_example(password: &[u8]) -> bool {
    let folded = crate::names::folded(password);
    ["p", "pw", "s3cret", "pass", "passw", "mypassword", "mypass", "yourpassword"].contains(&folded.as_str())
        || password.starts_with(b"{")
        || password.starts_with(b"[")
}
