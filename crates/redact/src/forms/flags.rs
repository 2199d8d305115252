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
    let is_argument = window.before(1).is_some_and(|byte| b"\"'".contains(&byte));
    if separated == flag && !is_argument { None } else { pair(window, flag, separated) }
}

/// A user and a password from `separated` on, behind a flag that ends at `flag`.
fn pair(window: &Window<'_>, flag: usize, separated: usize) -> Option<Found> {
    let last = separated.checked_sub(1).filter(|last| *last >= flag).and_then(|last| window.get(last));
    let quoted = last.filter(|last| matches!(last, b'"' | b'\''));
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
    // `'ada':'…'`
    let is_parted =
        quoted.is_some() && window.get(user_end) == quoted && window.get(user_end + 1) == Some(b':');
    let colon = user_end + usize::from(is_parted);
    if window.get(colon) != Some(b':')
        || user.is_empty()
        || user.iter().any(|byte| b"/$(){}".contains(byte) && !user.starts_with(b"$"))
    {
        return None;
    }
    // `ada:"…"`
    let own = window.get(colon + 1).filter(|byte| (is_parted || quoted.is_none()) && b"\"'".contains(byte));
    let from = colon + 1 + usize::from(own.is_some());
    let end = window.run(from, |byte| match own {
        Some(own) => byte != own && byte != b'\n',
        None => !ends(byte),
    });
    let rest = own.or(quoted).map_or(Rest::Token, Rest::Quoted);
    let found = Found::new(window, from, end, SecretKind::Password, rest);
    if window.is_cut_at(end) {
        return found;
    }
    let password = window.slice(from, end);
    let numbers = password.iter().all(u8::is_ascii_digit) && user.iter().all(u8::is_ascii_digit);
    let line = window.left().rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    let other = OTHERS.iter().any(|program| memchr::memmem::find(line, program).is_some());
    let calls = window.has(0, b"curl")
        || [&b"curl"[..], b"http", b"wget", b"xh "]
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

/// The most words of a command line that are looked at.
const WORDS_MAX: usize = 24;
/// The flags of `curl` that take no value, so that `-u` can stand behind them in one word.
const BARE_FLAGS: &[u8] = b"sSkvLfiIgGNOjlnpqRaJ#046";

/// Called at `curl`, with the length of that: `-uada:…`, `-sSu ada:…`, `-U proxy:…`.
pub(crate) fn curl(window: &Window<'_>, name: usize) -> Option<Found> {
    let is_separator = |byte: u8| b" \t\"',\\".contains(&byte);
    if !window.is_word_start() || !window.get(name).is_some_and(is_separator) {
        return None;
    }
    let mut at = name;
    for _ in 0..WORDS_MAX {
        let word = window.run_of(at, 8, is_separator);
        let quote = window.get(word - 1).filter(|byte| b"\"'".contains(byte));
        if window.get(word) == Some(b'-') {
            let bare = window.run_of(word + 1, 8, |byte| BARE_FLAGS.contains(&byte));
            if matches!(window.get(bare), Some(b'u' | b'U')) {
                let flag = bare + 1;
                let separated = window.run_of(flag, 6, |byte| b" \"',\\".contains(&byte));
                return pair(window, flag, separated);
            }
        }
        at = window.run_of(word, 512, |byte| match quote {
            Some(quote) => byte != quote && byte != b'\n',
            None => !byte.is_ascii_whitespace() && byte != b'"' && byte != b'\'',
        });
        if !window.get(at).is_some_and(is_separator) {
            return None;
        }
    }
    None
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
    let end = window.run(name, |byte| match quote {
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
    // `["docker", "login", "-p", "…"]`
    let is_argument = matches!(window.get(flag - 1), Some(b'"' | b'\''));
    let blanks = match is_argument {
        true => window.run_of(flag, 4, |byte| byte == b',' || byte == b' '),
        false => window.blanks(flag),
    };
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
