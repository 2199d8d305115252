//! Where every rule begins and ends: each line of the corpus with its neighbourhood.
//!
//! Rules are boundaries: how long a token must be, what may stand before it, where a value ends. The corpus has lines on both
//! sides of each, but seldom the last one on this side and the first one on the other, so that a boundary can move by a
//! character and every line of it still comes out right. Here each line is edited in many small ways (a character is left
//! out, doubled, replaced, put in; the text is cut; a run is made shorter; another value is put in the secret's place), and
//! `corpus/neighbours` keeps for each line how many of its neighbours come out changed, and a digest of all that comes out.
//! The digest does not say what is right. It says that nothing moved, or which lines were touched by a change of a rule, and
//! then a person has to look: `RUNYARD_BLESS=1` writes the files anew, and the difference goes with the change.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod corpus_lines;
mod seeds;

use std::fmt::Write as _;

use corpus_lines::{Label, Line, folder, read, redactor};
use runyard_redact::{Kind, Redactor, TagKey};
use seeds::Long;
use serde_json::json;

/// What is put before, or in the place of, a character. Each place takes the next few.
#[rustfmt::skip]
const TELLING: [&str; 36] = [
    " ", "\"", "=", ":", "/", "a", "7", "\n", "'", ".", "-", "_", "\\", "<", ">", "(", ")", "{", "}", "[", "]", ",",
    ";", "&", "%", "$", "@", "#", "|", "+", "*", "`", "\t", "Z", "\r", "é",
];
/// How many of them each place takes.
const TELLING_EACH: usize = 3;
/// Longer runs are cut to no more lengths than this.
const RUN_LENGTHS_MAX: usize = 72;
/// Shorter runs are no tokens.
const RUN_MIN: usize = 6;
/// How many lines that differ are shown; there is no need to look for more.
const SHOWN_MAX: usize = 3;
/// The most places of a line that are edited; of more, only so many are taken, evenly.
const PLACES_MAX: usize = 48;

/// What is put where a secret stood, or a word of an ordinary line: secrets, words, references, masks, code, paths.
#[rustfmt::skip]
const VALUES: &[&str] = &[
    "hunter2", "Xk29fLqW83mz", "4711", "47110", "12345678", "correct", "Correct", "correct-horse",
    "correct horse staple", "aaaaaaaaaaaaaaaaaaaa", "abcdefghijklmnop", "ABCDEFGHIJKL", "abcdefghijKLMNOPqrst",
    "$TOKEN", "${TOKEN}", "$1", "%s", "%TOKEN%", "<token>", "{token}", "{{ token }}", "****", "xxxxx", "abc...",
    "…", "YOUR_TOKEN", "your-token-here", "changeme", "DB_TOKEN", "self.token", "os.environ[0]", "load()",
    "Foo::bar", "/run/secrets/db", "~/x", "C:\\x", "true", "null", "rsa", "#1a2b3c", "required|min:8", "op://a/b/c",
    "projects/p/secrets/db", "[REDACTED]", "Password is required", "p4ss", "a1", "x", "", "YWRhOmh1bnRlcjI=",
    "ab12cd34", "ab12cd3", "user:pw99@host", "é1é2é3é4", "1-2-3", "u32", "a.b", "[]", "[a1b2c3]", "[your token]",
    "your", "yours", "API Key", "New Password", "Db Password9", "C:\\", "C:/", "a.b.c.d.e.f.g", "a.b.c.d.e.f",
    "self.token!", "self.token?", "abcdefghijklmnopqrstuvwxyzabcdef1", "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEF",
    "getPasswordFromTheEnvironment", "a:/x", "t.key,t.secret", "x,y", "_0x1f[0]", "a[", "a1.b2", "a123.b", "a/b/c",
    "a/b1/c123", "aaa", "111", "...", "a....b", "•••", "Xx1x", "a****b", "a**b", "xXxXxb", "xXxXb", ":name", ":n1",
    "$", "$a1", "$1a", "%", "%a", "%ab%", "%(x)s", "#{x}", "#1a2b", "#1a2b3", "AB_CD", "AB_C1", "AB_12", "__", "A_",
    "fake-1", "fake-1234", "abc-here", "Must have 12 letters", "Must have 1234 letters", "aa/bb123/cc", "a12/b/c",
    "self.abcdefghijklmnopqrstuvwxyzabcdefghijklmn", "self.abcdefghijklmnopqrstuvwxyzabcdefghijklmno",
    "a1b2c3a1b2c3", "a1b2ca1b2ca1",
];

/// A text, and what was done to it.
struct Neighbours<'a> {
    text: &'a str,
    seen: Vec<String>,
}

impl Neighbours<'_> {
    fn with(&mut self, from: usize, to: usize, piece: &str) {
        self.seen.push([&self.text[..from], piece, &self.text[to..]].concat());
    }
}

/// The places where a character differs in kind from one of its neighbours: inside a run of letters nothing begins or ends.
fn places(text: &str) -> Vec<(usize, char)> {
    let kind = |character: char| match character {
        letter if letter.is_ascii_alphabetic() => 'a',
        digit if digit.is_ascii_digit() => '0',
        other => other,
    };
    let characters: Vec<(usize, char)> = text.char_indices().collect();
    let at = |index: usize| characters.get(index).map(|(_, character)| kind(*character));
    let is_place = |index: &usize| {
        let here = at(*index);
        *index == 0 || at(index - 1) != here || at(index + 1) != here
    };
    let places: Vec<(usize, char)> =
        (0..characters.len()).filter(is_place).map(|index| characters[index]).collect();
    let step = places.len().div_ceil(PLACES_MAX).max(1);
    places.into_iter().step_by(step).collect()
}

/// The runs of what tokens are made of.
fn runs(text: &str) -> Vec<(usize, usize)> {
    let is_run = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    let mut runs = Vec::new();
    let mut from = None;
    for (at, byte) in text.bytes().chain([b' ']).enumerate() {
        match (from, is_run(byte)) {
            (None, true) => from = Some(at),
            (Some(start), false) => {
                runs.push((start, at));
                from = None;
            }
            _ => {}
        }
    }
    runs
}

fn neighbours(text: &str, secrets: &[String]) -> Vec<String> {
    let mut found = Neighbours { text, seen: vec![text.to_owned()] };
    for (number, (at, character)) in places(text).into_iter().enumerate() {
        let next = at + character.len_utf8();
        found.with(at, next, "");
        found.with(at, at, character.encode_utf8(&mut [0; 4]));
        found.seen.push(text[..at].to_owned());
        if character.is_ascii_alphabetic() {
            let other = if character.is_ascii_lowercase() {
                character.to_ascii_uppercase()
            } else {
                character.to_ascii_lowercase()
            };
            found.with(at, next, other.encode_utf8(&mut [0; 4]));
        }
        for turn in 0..TELLING_EACH {
            let piece = TELLING[(text.len() + number * 5 + turn * 7) % TELLING.len()];
            found.with(at, next, piece);
            found.with(at, at, TELLING[(text.len() + number * 11 + turn * 13) % TELLING.len()]);
        }
    }
    let runs = runs(text);
    for (from, to) in runs.iter().copied().filter(|(from, to)| !secrets.is_empty() && to - from >= RUN_MIN) {
        (0..(to - from).min(RUN_LENGTHS_MAX)).for_each(|length| found.with(from + length, to, ""));
    }
    for secret in secrets {
        if let Some(at) = text.find(secret.as_str()) {
            VALUES.iter().for_each(|value| found.with(at, at + secret.len(), value));
        }
    }
    for (number, (from, to)) in runs.into_iter().enumerate().filter(|_| secrets.is_empty()) {
        found.with(from, to, "Xk29fLqW83mz");
        found.with(from, to, VALUES[(text.len() + number) % VALUES.len()]);
    }
    found.seen
}

/// How many of the texts come out changed, and a digest of all that comes out.
fn fingerprint(redactor: &Redactor, kind: Kind, text: &str, secrets: &[String]) -> String {
    let mut all = Vec::new();
    let mut changed = 0;
    let texts = neighbours(text, secrets);
    for neighbour in &texts {
        let shown = redactor.text(kind, neighbour);
        changed += usize::from(*shown != *neighbour);
        all.extend_from_slice(shown.as_bytes());
        all.push(0);
    }
    for kind in Kind::ALL {
        all.extend_from_slice(redactor.text(kind, text).as_bytes());
        all.push(0);
    }
    let quoted = serde_json::to_string(text).unwrap();
    all.extend_from_slice(redactor.text(Kind::Json, &format!("{{\"a\":[{quoted}, {quoted}]}}")).as_bytes());
    let value = serde_json::from_str(text).unwrap_or_else(|_| json!([text, {text: text}]));
    all.extend_from_slice(redactor.json(value).to_string().as_bytes());
    all.extend(in_pieces(redactor, kind, text, 3));
    format!("{changed} of {} {}", texts.len(), digest(&all))
}

/// What comes out piece by piece, and how much is held back after each.
fn in_pieces(redactor: &Redactor, kind: Kind, text: &str, size: usize) -> Vec<u8> {
    let mut stream = redactor.stream(kind);
    let mut all = Vec::new();
    for piece in text.as_bytes().chunks(size) {
        all.extend_from_slice(&stream.push(piece));
        all.extend(format!("<{}>", stream.held()).into_bytes());
    }
    all.extend_from_slice(&stream.finish());
    all
}

fn digest(bytes: &[u8]) -> String {
    let digest = TagKey::from_bytes([9; 32]).digest(bytes);
    digest[..4].iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// Compares with the file of that name, line by line, or writes it.
#[track_caller]
fn check(name: &str, lines: impl Iterator<Item = String>) {
    let file = folder().join("neighbours").join(name).with_extension("txt");
    if std::env::var_os("RUNYARD_BLESS").is_some() {
        std::fs::write(&file, lines.map(|line| line + "\n").collect::<String>()).unwrap();
        return;
    }
    let golden = std::fs::read_to_string(&file).unwrap_or_default();
    let mut golden = golden.lines();
    let moved = lines.filter_map(|line| {
        let was = golden.next().unwrap_or_default();
        (was != line).then(|| format!("- {was}\n+ {line}"))
    });
    let moved: Vec<String> = moved.take(SHOWN_MAX).collect();
    assert!(
        moved.is_empty(),
        "neighbourhoods of these lines come out otherwise (the first {SHOWN_MAX} at most); if that is meant, write {} \
         anew with RUNYARD_BLESS=1:\n{}",
        file.display(),
        moved.join("\n")
    );
    assert_eq!(golden.next(), None, "{} has more lines", file.display());
}

fn check_kind(kind: Kind) {
    let without_known = redactor(&[]);
    let lines = read(&folder(), kind);
    let fingerprints = lines
        .iter()
        .zip(1..)
        .map(|(line, number)| format!("{number} {} {}", of_line(&without_known, kind, line), line.note));
    check(kind.word(), fingerprints);
}

fn of_line(without_known: &Redactor, kind: Kind, line: &Line) -> String {
    let own = (!line.known.is_empty()).then(|| redactor(&line.known));
    let label = if line.label == Label::Secret { "secret" } else { "ordinary" };
    let redactor = own.as_ref().unwrap_or(without_known);
    format!("{label} {}", fingerprint(redactor, kind, &line.text, &line.secrets))
}

#[test]
fn b11_no_boundary_of_a_rule_for_text_moves_unseen() {
    check_kind(Kind::Text);
}

#[test]
fn b11_no_boundary_of_a_rule_for_json_moves_unseen() {
    check_kind(Kind::Json);
}

#[test]
fn b11_no_boundary_of_a_rule_for_diffs_moves_unseen() {
    check_kind(Kind::Diff);
}

#[test]
fn b11_no_boundary_of_a_rule_for_headers_moves_unseen() {
    check_kind(Kind::Headers);
}

/// What the corpus has no lines for, since it needs more than a redactor that knows nothing: private paths, short values and
/// their names, values in many forms.
#[test]
fn b11_c15_no_boundary_around_what_is_known_moves_unseen() {
    let redactor = seeds::redactor();
    let fingerprints = seeds::SEEDS.iter().map(|(kind, text)| {
        let in_bytes = digest(&in_pieces(&redactor, *kind, text, 1));
        let fingerprint = fingerprint(&redactor, *kind, text, &[]);
        format!("{} {fingerprint} {in_bytes} {}", kind.word(), text.escape_debug())
    });
    check("known", fingerprints);
}

/// Around the greatest lengths of forms: each opening with a body of every length there, whole and in pieces.
#[test]
fn b11_no_greatest_length_of_a_form_moves_unseen() {
    let redactor = seeds::redactor();
    check(
        "long",
        seeds::LONG
            .iter()
            .map(|long| format!("{} {}", of_long(&redactor, long), long.opening.escape_debug())),
    );
}

fn of_long(redactor: &Redactor, long: &Long) -> String {
    let (mut all, mut hidden) = (Vec::new(), 0);
    for length in long.lengths.clone() {
        let body: String = long.body.chars().cycle().take(length).collect();
        let text = [long.opening, &body, long.closing].concat();
        let shown = redactor.text(long.kind, &text);
        hidden += usize::from(!shown.contains(&body[..body.len().min(16)]));
        all.extend_from_slice(shown.as_bytes());
        all.extend(in_pieces(redactor, long.kind, &text, long.piece));
    }
    format!("{} {hidden} of {} {}", long.kind.word(), long.lengths.len(), digest(&all))
}
