//! `-u user:password`, as `curl` takes it.

use super::{Found, Rest};
use crate::guesses::values::{is_path, speaks_of_one};
use crate::placeholder::SecretKind;
use crate::window::Window;

/// Programs whose `-u user:…` is a user and a group, a place, or something else that is no password.
const OTHERS: [&[u8]; 10] =
    [b"docker", b"podman", b"chown", b"rsync", b"sudo", b"kubectl", b"install", b"sort", b"su ", b"date"];

/// Called at `-u` or `--user`, with the length of that.
pub(crate) fn find(window: &Window<'_>, flag: usize) -> Option<Found> {
    let starts =
        window.before(1).is_none_or(|byte| byte.is_ascii_whitespace() || b"\"'[,(\\".contains(&byte));
    if !starts {
        return None;
    }
    let separated = window.run_of(flag, 6, |byte| byte == b' ' || byte == b'=' || b"\"',\\".contains(&byte));
    if separated == flag {
        return None;
    }
    let quote =
        (flag..separated).rev().map(|at| window.get(at)).find(|byte| matches!(byte, Some(b'"' | b'\'')));
    let last = window.get(separated - 1)?;
    let quoted = matches!(last, b'"' | b'\'').then_some(last).filter(|_| quote.is_some());
    let ends = |byte: u8| match quoted {
        Some(quote) => byte == quote || byte == b'\n',
        None => byte.is_ascii_whitespace() || b"\"'`,;|&<>".contains(&byte),
    };
    // A user that was taken out already has colons of its own.
    let shown = if window.has(separated, b"[REDACTED:") {
        window.run_of(separated, 64, |byte| byte != b']')
    } else {
        separated
    };
    let user_end = window.run_of(shown, 128, |byte| byte != b':' && !ends(byte));
    let user = window.slice(separated, user_end);
    if window.get(user_end) != Some(b':')
        || user.is_empty()
        || user.iter().any(|byte| b"/$(){}".contains(byte) && !user.starts_with(b"$"))
    {
        return None;
    }
    let from = user_end + 1;
    let end = window.run(from, |byte| !ends(byte));
    let found = Found::new(window, from, end, SecretKind::Password, quoted.map_or(Rest::Token, Rest::Quoted));
    if window.is_cut_at(end) {
        return found;
    }
    let password = window.slice(from, end);
    let numbers = password.iter().all(u8::is_ascii_digit) && user.iter().all(u8::is_ascii_digit);
    let line = window.left().rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    let other = OTHERS.iter().any(|program| memchr::memmem::find(line, program).is_some());
    let calls = [&b"curl"[..], b"http", b"wget", b"xh "]
        .iter()
        .any(|program| memchr::memmem::find(line, program).is_some());
    let plausible = calls || password.iter().any(|byte| !byte.is_ascii_alphabetic());
    if numbers
        || password.starts_with(b"//")
        || (other && !calls)
        || !plausible
        || is_path(password)
        || speaks_of_one(password)
    {
        return None;
    }
    found
}

/// Called at `-b` or `--cookie`, with the length of that: the cookies that `curl` sends.
pub(crate) fn cookie(window: &Window<'_>, flag: usize) -> Option<Found> {
    let line = window.left().rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    let calls =
        [&b"curl"[..], b"http", b"wget"].iter().any(|program| memchr::memmem::find(line, program).is_some());
    let opens = window.run_of(flag, 6, |byte| b" =\"'\\".contains(&byte));
    if !calls || opens == flag {
        return None;
    }
    let quote = window.get(opens - 1).filter(|byte| matches!(byte, b'"' | b'\''));
    let name =
        window.run_of(opens, 128, |byte| byte.is_ascii_alphanumeric() || b"!#$%&*+.^_|~-".contains(&byte));
    if name == opens || window.get(name) != Some(b'=') {
        return None;
    }
    let end = window.run(name + 1, |byte| match quote {
        Some(quote) => byte != quote && byte != b'\n' && byte != b'\\',
        None => !byte.is_ascii_whitespace(),
    });
    if speaks_of_one(window.slice(name + 1, end)) {
        return None;
    }
    Found::new(window, name + 1, end, SecretKind::Cookie, quote.map_or(Rest::Token, Rest::Quoted))
}

/// Programs whose `-p` takes a password as the next word, and those that take it without a blank.
const SPACED: [&[u8]; 6] = [b"sshpass", b"login", b"twine", b"mongo", b"expect", b"ldap"];
const ATTACHED: [&[u8]; 2] = [b"mysql", b"mariadb"];

/// Called at ` -p`, with the length of that.
pub(crate) fn password(window: &Window<'_>, flag: usize) -> Option<Found> {
    let line = window.left().rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    let runs =
        |programs: &[&[u8]]| programs.iter().any(|program| memchr::memmem::find(line, program).is_some());
    let blanks = window.blanks(flag);
    let applies = if blanks == flag { runs(&ATTACHED) } else { runs(&SPACED) };
    if !applies || window.get(flag) == Some(b'=') {
        return None;
    }
    let quote = window.get(blanks).filter(|byte| matches!(byte, b'"' | b'\''));
    let from = blanks + usize::from(quote.is_some());
    let end = window.run(from, |byte| match quote {
        Some(quote) => byte != quote && byte != b'\n',
        None => !byte.is_ascii_whitespace() && !b"|;&<>\"'`".contains(&byte),
    });
    let found = Found::new(window, from, end, SecretKind::Password, quote.map_or(Rest::Token, Rest::Quoted));
    let value = window.slice(from, end);
    let is_port = value.iter().all(u8::is_ascii_digit) && value.len() <= 5;
    found.filter(|_| !is_port && !value.starts_with(b"-") && !speaks_of_one(value) && !is_path(value))
}
