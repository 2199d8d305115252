//! `key=value`, `key: value`, `"key": "value"`, `--key value`: the value of a key that names a secret, in any text.
//!
//! Texts are full of code, documents and sentences about passwords and tokens. The value counts only where it looks like a
//! literal: a quoted string, or a run of characters that is no name, call, type, reference or word of a sentence.

use super::place::{Place, Separator, place, place_of_any};
use super::values::{is_code, is_path, is_plain_word, is_sentence, looks_random, speaks_of_one};
use crate::forms::{Found, Rest, before_unopened};
use crate::names;
use crate::placeholder::SecretKind;
use crate::window::{Window, is_word};

/// Called at a word that may end a name, with the length of that.
pub(crate) fn find(window: &Window<'_>, word: usize) -> Option<Found> {
    let place = place(window, word)?;
    let from = past_wrapping(window, place.from);
    let opening = ENCODED_QUOTES.iter().find(|quote| window.has(from, quote));
    if opening.is_some() || place.separator == Separator::Encoded {
        return encoded(window, &place, from + opening.map_or(0, |quote| quote.len()));
    }
    let (quote_end, quote) = opening_quote(window, from);
    match quote {
        Some(quote) => quoted(window, &place, quote_end, quote),
        None => bare(window, &place, from),
    }
}

/// Quotes as addresses and pages write them.
const ENCODED_QUOTES: [&[u8]; 5] = [b"%22", b"%27", b"&quot;", b"&#34;", b"&#39;"];

/// A value in an address or page: `password%3D…`, `&quot;password&quot;:&quot;…&quot;`.
fn encoded(window: &Window<'_>, place: &Place, from: usize) -> Option<Found> {
    let ends = [&b"%22"[..], b"%27", b"%26", b"%20", b"%2C", b"%3B", b"%7D", b"%0A", b"%0D"];
    let mut end = from;
    while let Some(byte) = window.get(end) {
        let is_end = match byte {
            b'%' => ends.iter().any(|escape| window.has_in_any_case(end, &escape.to_ascii_lowercase())),
            byte => byte.is_ascii_whitespace() || b"&\"'`<>,;#\\".contains(&byte),
        };
        if is_end {
            break;
        }
        end += 1;
    }
    let end = before_unopened(window, from, end);
    let found = Found::new(window, from, end, place.kind, Rest::Token);
    if window.is_cut_at(end) {
        return found;
    }
    let value = window.slice(from, end);
    found.filter(|_| is_mixed(value) && !speaks_of_one(value) && !is_path(value) && !is_code(value))
}

/// The value under a name that is to be found whatever it is: for short known values, whose name the caller knows.
pub(crate) fn literal_value(window: &Window<'_>, word: usize) -> Option<(Vec<u8>, Found)> {
    let place = place_of_any(window, word)?;
    let (from, quote) = opening_quote(window, past_wrapping(window, place.from));
    let end = match quote {
        Some(quote) => closing_quote(window, from, quote).0,
        None => window.run(from, |byte| !byte.is_ascii_whitespace() && !b"\"'`,;&<>)}]\\".contains(&byte)),
    };
    Some((place.name, Found { start: from, end, kind: SecretKind::Known, rest: None }))
}

/// Past `Some(`, a type (`password: &str = "…"`), and the letters before a string (`b"…"`).
fn past_wrapping(window: &Window<'_>, from: usize) -> usize {
    for wrapping in [&b"Some("[..], b"<![CDATA[", b"!!str "] {
        if window.has(from, wrapping) {
            return from + wrapping.len();
        }
    }
    let letters = window.run_of(from, 2, |byte| b"brfuBRFU@".contains(&byte));
    if matches!(window.get(letters), Some(b'"' | b'\'')) {
        return letters;
    }
    // A type before the value: names, brackets and references, then ` = `.
    let type_end = window.run_of(from, 48, |byte| is_word(byte) || b"&'<>[]:.?|".contains(&byte));
    let equals = window.blanks(type_end);
    let starts = window.get(from).is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'&');
    if starts && equals > type_end && window.get(equals) == Some(b'=') && window.get(equals + 1) == Some(b' ')
    {
        let value = window.blanks(equals + 1);
        if matches!(window.get(value), Some(b'"' | b'\'')) {
            return value;
        }
    }
    from
}

/// A quote with the backslashes before it: `"`, `\"`, `\\\"`.
#[derive(Clone, Copy)]
struct Quote {
    mark: u8,
    backslashes: usize,
}

fn opening_quote(window: &Window<'_>, from: usize) -> (usize, Option<Quote>) {
    let slashes = window.run_of(from, 7, |byte| byte == b'\\');
    match window.get(slashes) {
        Some(mark @ (b'"' | b'\'')) if slashes == from && window.has(from + 1, &[mark, mark]) => {
            (from + 3, Some(Quote { mark, backslashes: 0 }))
        }
        Some(mark @ (b'"' | b'\'' | b'`')) => {
            (slashes + 1, Some(Quote { mark, backslashes: slashes - from }))
        }
        _ => (from, None),
    }
}

/// Where the value ends, and whether its quote was closed there.
fn closing_quote(window: &Window<'_>, from: usize, quote: Quote) -> (usize, bool) {
    let mut at = from;
    loop {
        match window.get(at) {
            None | Some(b'\n' | b'\r') => return (at, false),
            Some(b'\\') => {
                let slashes = window.run(at, |byte| byte == b'\\');
                let (is_mark, count) = (window.get(slashes) == Some(quote.mark), slashes - at);
                // With fewer backslashes than the opening quote it closes an outer string: the value is over.
                if is_mark && count <= quote.backslashes {
                    return (at, true);
                }
                // Backslashes in pairs stand for themselves, and the quote behind them closes.
                if is_mark && quote.backslashes == 0 && count.is_multiple_of(2) {
                    return (slashes, true);
                }
                at = slashes + usize::from(window.get(slashes).is_some());
            }
            // `'it''s'`
            Some(byte) if byte == quote.mark && at > from && is_doubled(window, at, quote) => at += 2,
            Some(byte) if byte == quote.mark => return (at, true),
            Some(_) => at += 1,
        }
    }
}

/// Whether a quote stands twice inside a value, which goes on behind it.
fn is_doubled(window: &Window<'_>, at: usize, quote: Quote) -> bool {
    quote.backslashes == 0
        && window.get(at + 1) == Some(quote.mark)
        && window.get(at + 2).is_some_and(|next| is_word(next) || !next.is_ascii())
}

fn quoted(window: &Window<'_>, place: &Place, from: usize, quote: Quote) -> Option<Found> {
    let (end, closed) = closing_quote(window, from, quote);
    let value = window.slice(from, end);
    let found = Found::new(window, from, end, place.kind, Rest::Quoted(quote.mark));
    if window.is_cut_at(end) {
        return found;
    }
    if speaks_of_one(value) || (is_sentence(value) && !is_passphrase(place)) {
        return None;
    }
    if !closed && !value.iter().any(u8::is_ascii_digit) {
        return None;
    }
    let follows = window.get(window.blanks(end + 1));
    let is_joined = closed && matches!(follows, Some(b'+' | b'%')) && !is_mixed(value);
    let is_loose = matches!(place.separator, Separator::Comma | Separator::Prose) || is_collective(place);
    if is_joined || (is_loose && !is_mixed(value)) {
        return None;
    }
    let is_interpolated = value.iter().any(|byte| b"{}".contains(byte)) && is_template(value);
    if is_interpolated || is_names_of_it(value) || is_path(value) {
        return None;
    }
    if place.kind == SecretKind::Token && !is_certain_token(place) && !is_token_like(value) {
        return None;
    }
    // What follows says that the literal is only a part: `"a" + b`, `"password".len()`.
    match window.get(end + 1) {
        Some(b'.') if closed && window.get(end + 2).is_some_and(|byte| byte.is_ascii_alphabetic()) => None,
        _ => found,
    }
}

/// What is made of words.
fn is_passphrase(place: &Place) -> bool {
    let folded = names::folded(&place.name);
    ["passphrase", "mnemonic", "seedphrase"].iter().any(|name| folded.ends_with(name))
}

/// `credentials`: a word there says how, as in `credentials: 'include'`.
fn is_collective(place: &Place) -> bool {
    let folded = names::folded(&place.name);
    folded.ends_with("credential") || folded.ends_with("credentials")
}

/// `{name}` or `{0}` somewhere in it.
fn is_template(value: &[u8]) -> bool {
    let mut rest = value;
    while let Some(open) = memchr::memchr(b'{', rest) {
        rest = &rest[open + 1..];
        let inner = rest.iter().take_while(|byte| is_word(**byte) || b".:?!-".contains(byte)).count();
        if rest.get(inner) == Some(&b'}') {
            return true;
        }
    }
    false
}

/// `"db_password"`, `"api-token"`: the value is again only a name of it.
fn is_names_of_it(value: &[u8]) -> bool {
    let parted = value.iter().any(|byte| b"_-./ ".contains(byte)) || value.iter().any(u8::is_ascii_uppercase);
    let words = value.iter().all(|byte| byte.is_ascii_alphabetic() || b"_-./ :".contains(byte));
    words && parted && names::secret_kind(value).is_some()
}

/// A name that nothing but a credential goes by.
fn is_certain_token(place: &Place) -> bool {
    let folded = names::folded(&place.name);
    let certain = [
        "access", "auth", "refresh", "api", "bearer", "session", "id", "csrf", "bot", "secret", "oauth",
        "personal",
    ];
    let prefix = folded.strip_suffix("token").unwrap_or(&folded);
    let capitals = place.name.iter().all(|byte| !byte.is_ascii_lowercase()) && place.name.len() > 5;
    capitals || certain.iter().any(|word| prefix.ends_with(word))
}

/// What a `token` in code and logs may be as well: a word or a sign that a parser saw.
fn is_token_like(value: &[u8]) -> bool {
    value.len() >= 6
        && !value.contains(&b' ')
        && (value.iter().any(u8::is_ascii_digit) && value.iter().any(u8::is_ascii_alphabetic)
            || looks_random(value)
            || (value.len() >= 8 && value.iter().all(u8::is_ascii_digit)))
}

/// Letters and digits and no blanks: more than a word.
fn is_mixed(value: &[u8]) -> bool {
    value.len() >= 8
        && !value.contains(&b' ')
        && value.iter().any(u8::is_ascii_digit)
        && value.iter().any(u8::is_ascii_alphabetic)
}

/// More than a word with a number: several digits, or capitals inside.
fn is_made_up(value: &[u8]) -> bool {
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    let capitals = value.iter().skip(1).any(u8::is_ascii_uppercase);
    (digits >= 2 || capitals) && !value.iter().all(|byte| byte.is_ascii_digit() || b"-:.TZ".contains(byte))
}

/// Called at `IDENTIFIED BY`, with the length of that.
pub(crate) fn identified_by(window: &Window<'_>, length: usize) -> Option<Found> {
    let from = window.blanks(length);
    let (start, quote) = opening_quote(window, from);
    let (end, closed) = closing_quote(window, start, quote?);
    let found = Found::new(window, start, end, SecretKind::Password, Rest::Quoted(quote?.mark));
    found.filter(|_| closed && !speaks_of_one(window.slice(start, end)))
}

fn bare(window: &Window<'_>, place: &Place, from: usize) -> Option<Found> {
    let end = bare_end(window, place, from);
    let value = window.slice(from, end);
    let found = Found::new(window, from, end, place.kind, Rest::Token);
    if window.is_cut_at(end) {
        return found;
    }
    if is_collective(place) && !is_mixed(value) {
        return None;
    }
    let next = window.get(end);
    let name_is_constant = place.name.iter().all(|byte| !byte.is_ascii_lowercase());
    // `TOKEN=x` as an environment gives it; there is no code to confuse it with.
    let is_environment = name_is_constant && place.separator == Separator::Equals && place.name.len() > 3;
    if matches!(next, Some(b'(' | b'[' | b'{' | b'<')) && !is_environment && place.separator != Separator::Tag
    {
        return None;
    }
    if speaks_of_one(value) || is_code(value) || is_signature_of_code(value) {
        return None;
    }
    if value.iter().all(u8::is_ascii_digit) {
        let enough =
            if place.kind == SecretKind::Password || place.kind == SecretKind::Secret { 4 } else { 5 };
        return found.filter(|_| value.len() >= enough);
    }
    if place.kind == SecretKind::Token
        && !is_certain_token(place)
        && !place.is_query
        && !is_token_like(value)
        && !place.is_flag
    {
        return None;
    }
    let wordlike = is_plain_word(value);
    let believed = match place.separator {
        Separator::Equals => {
            !wordlike || is_environment || place.is_flag || place.is_query || assigned(window, place, end)
        }
        Separator::Comma => is_mixed(value),
        Separator::Encoded => false,
        Separator::Prose => is_mixed(value) && is_made_up(value),
        Separator::Tag => {
            matches!(next, Some(b'<' | b']')) && (!wordlike || place.kind == SecretKind::Password)
        }
        // `--secret id=npmrc,src=.npmrc`
        Separator::Blank
            if [&b"id="[..], b"src=", b"type=", b"env="].iter().any(|start| value.starts_with(start)) =>
        {
            false
        }
        Separator::Blank => !value.starts_with(b"-") && (!wordlike || value.len() >= 6),
        Separator::SpacedEquals => {
            let name = value.iter().all(|byte| is_word(*byte)) && !value[0].is_ascii_digit();
            let in_code = matches!(next, Some(b';' | b',' | b')')) || follows_code(window, end);
            !(wordlike || name && in_code)
        }
        Separator::Colon => {
            let alone = is_alone_on_line(window, end);
            if wordlike {
                alone && starts_line(window, place) && is_password_word(place, value)
            } else {
                !is_type(value, next)
            }
        }
    };
    found.filter(|_| believed)
}

/// `password=foo` is an assignment in shells, connection strings and logs; `password=foo)` and `password=foo,` are
/// arguments in code.
fn assigned(window: &Window<'_>, place: &Place, end: usize) -> bool {
    place.kind == SecretKind::Password
        && match window.get(end) {
            None | Some(b'\n' | b'\r' | b';' | b'&' | b'"' | b'\'') => true,
            Some(b' ') => !window.get(end + 1).is_some_and(|byte| b"+-*/%&|?:)".contains(&byte)),
            _ => false,
        }
}

/// A word alone under `password:` in a file of settings.
fn is_password_word(place: &Place, value: &[u8]) -> bool {
    let lower = value.iter().all(|byte| byte.is_ascii_lowercase() || *byte == b'-' || !byte.is_ascii());
    place.kind == SecretKind::Password && lower && value.len() >= 5
}

fn is_type(value: &[u8], next: Option<u8>) -> bool {
    let name = value.iter().all(|byte| is_word(*byte)) && value[0].is_ascii_alphabetic();
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    // `token: u32,`, `token: Token2)`
    name && digits <= 2 && (matches!(next, Some(b',' | b')' | b';' | b'>' | b'|' | b'}')) || value.len() <= 4)
}

fn is_signature_of_code(value: &[u8]) -> bool {
    [&b"=>"[..], b"->", b"::", b"||", b"&&", b"??"]
        .iter()
        .any(|mark| memchr::memmem::find(value, mark).is_some())
}

fn starts_line(window: &Window<'_>, place: &Place) -> bool {
    let line = window.left().rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    let before = line.iter().take_while(|byte| b" \t-\"'".contains(byte)).count();
    let name = line.len() - before <= place.name.len();
    name && window.left().len() >= line.len()
}

fn is_alone_on_line(window: &Window<'_>, end: usize) -> bool {
    let after = window.blanks(end);
    match window.get(after) {
        None | Some(b'\n' | b'\r') => true,
        Some(b'#') => after > end,
        _ => false,
    }
}

fn follows_code(window: &Window<'_>, end: usize) -> bool {
    let after = window.blanks(end);
    let words = [&b"if "[..], b"or ", b"and ", b"in ", b"as ", b"else"];
    after > end
        && (window.get(after).is_some_and(|byte| b"+-*/%&|?<>=!.".contains(&byte))
            || words.iter().any(|word| window.has(after, word)))
}

/// Where a value without quotes ends. A comma, semicolon or ampersand ends it only where something follows that is no
/// part of a password: a blank, the end, or the next key.
fn bare_end(window: &Window<'_>, place: &Place, from: usize) -> usize {
    let mut end = from;
    let mut open = 0usize;
    while let Some(byte) = window.get(end) {
        let ends = match byte {
            ..=b' ' => true,
            b'"' | b'\'' | b'`' | b'<' | b'>' | b'|' => true,
            b'(' | b'[' | b'{' => {
                window.get(end - 1).is_some_and(is_word) && place.separator != Separator::Equals
            }
            b')' | b'}' | b']' => open == 0,
            b'\\' => matches!(window.get(end + 1), Some(b'n' | b'r' | b't' | b'"' | b'\'' | b'\\') | None),
            b'&' if place.is_query => true,
            b'#' if place.is_query => true,
            b',' | b';' | b'&' => next_starts(window, end + 1),
            b'.' | b':' => {
                let dots = window.get(end - 1) == Some(b'.');
                !dots && window.get(end + 1).is_none_or(|next| next.is_ascii_whitespace())
            }
            _ => false,
        };
        if ends {
            break;
        }
        match byte {
            b'(' | b'[' | b'{' => open += 1,
            b')' | b']' | b'}' => open -= 1,
            _ => {}
        }
        end += 1;
    }
    end
}

/// Whether what follows a delimiter is a blank, an end or a quote, or a further `name=`.
fn next_starts(window: &Window<'_>, at: usize) -> bool {
    match window.get(at) {
        None => true,
        Some(byte) if byte.is_ascii_whitespace() || b"\"'`\\&;,)".contains(&byte) => true,
        Some(_) => {
            let name = window.run_of(at, 40, |byte| is_word(byte) || b"-. ".contains(&byte));
            name > at && matches!(window.get(name), Some(b'=' | b':'))
        }
    }
}
