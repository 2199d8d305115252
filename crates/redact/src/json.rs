//! JSON as it streams by: a lexer with a stack, no tree. Every string is a text of its own, with its escapes undone; values
//! under keys that name a secret are taken out whole; all else keeps its exact bytes.
//!
//! Several documents in a row are fine, with or without line breaks. What is no JSON is read as plain text from there on.

mod escapes;

use crate::forms::FORM_MAX;
use crate::known::KnownScans;
use crate::lane::{Guesses, Lane};
use crate::names::{NAME_MAX, secret_kind};
use crate::output::Output;
use crate::placeholder::SecretKind;
use crate::rules::Rules;
use crate::span::{Layer, Replacement, Span};
use crate::structured::{
    Words, announced, is_collection, is_description, is_pair_key, is_secret_pair, is_secret_text,
    is_value_key,
};
use crate::window::Window;

/// What is nested deeper is read as plain text.
const DEPTH_MAX: usize = 512;
/// How far ahead an object under a sensitive key is read to see whether it is a description.
const PEEK_MAX: usize = 256;

/// What may come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expect {
    Value,
    ValueOrEnd,
    KeyOrEnd,
    Key,
    Colon,
    CommaOrEnd,
}

/// An object or list that is open.
#[derive(Clone, Copy, Debug)]
struct Frame {
    is_object: bool,
    /// The kind of secret that `value` and the like hold here.
    value_kind: Option<SecretKind>,
    words: Words,
}

/// A string that is open.
#[derive(Clone, Copy, Debug)]
struct OpenString {
    is_key: bool,
    /// The kind of secret it is, if its key says so.
    kind: Option<SecretKind>,
    /// Its key says only that it may be one.
    may_be_pair: bool,
    /// Where its content starts.
    start: usize,
    /// Whether the content was told as a secret up to some place already, since it is longer than a form.
    told_to: Option<usize>,
}

/// A list or object that is a secret as a whole.
#[derive(Clone, Copy, Debug)]
struct Withheld {
    kind: SecretKind,
    start: usize,
    /// How many frames are open around it.
    depth: usize,
    told_to: Option<usize>,
}

enum Step {
    Went,
    Starved,
    Broken,
}

/// The lexer's state between two pieces of the input.
#[derive(Debug)]
pub(crate) struct Json {
    at: usize,
    expect: Expect,
    frames: Vec<Frame>,
    key: Vec<u8>,
    /// The kind of secret that the next value is, by its key or the element before it.
    kind: Option<SecretKind>,
    string: Option<OpenString>,
    withheld: Option<Withheld>,
    lane: Lane,
    raw_known: KnownScans,
    /// Reads the rest as plain text.
    is_text: bool,
}

impl Json {
    pub(crate) fn new() -> Self {
        Json {
            at: 0,
            expect: Expect::Value,
            frames: Vec::new(),
            key: Vec::new(),
            kind: None,
            string: None,
            withheld: None,
            lane: Lane::new(Guesses::ByName, 0),
            raw_known: KnownScans::of_text(),
            is_text: false,
        }
    }

    /// Reads what was pushed to the output, and gives the place before which all is settled.
    pub(crate) fn read(&mut self, rules: &Rules, output: &mut Output, pushed: &[u8], ended: bool) -> usize {
        self.raw_known.push(pushed, &rules.known);
        let mut frontier = output.end();
        if self.is_text {
            self.lane.push(pushed, rules);
        } else {
            frontier = self.lex(rules, output, ended);
        }
        if self.is_text {
            frontier = frontier.min(self.lane.scan(rules, ended, output.spans()));
        }
        let (end, spans) = (output.end(), output.spans());
        let known = self.raw_known.scan(&rules.known, end, ended, |start, end, tag| {
            spans.push(Span { start, end, layer: Layer::Known, replacement: Replacement::KnownInJson(tag) });
        });
        frontier.min(known)
    }

    fn lex(&mut self, rules: &Rules, output: &mut Output, ended: bool) -> usize {
        loop {
            let step = match self.string {
                Some(_) => self.in_string(rules, output, ended),
                None => self.between(rules, output, ended),
            };
            match step {
                Step::Went => {}
                Step::Starved => break,
                Step::Broken => {
                    self.end_withheld(rules, output);
                    self.is_text = true;
                    self.lane.reset(self.at);
                    let rest = output.raw(self.at, output.end()).to_vec();
                    self.lane.push(&rest, rules);
                    return output.end();
                }
            }
        }
        let mut frontier = self.at;
        if self.string.is_some() {
            self.tell_long_string(rules, output);
            frontier = frontier.min(self.lane.scan(rules, ended, output.spans()));
            if let Some(OpenString { kind, may_be_pair, told_to: None, start, .. }) = self.string
                && (kind.is_some() || (may_be_pair && self.lane.end() <= FORM_MAX))
            {
                frontier = frontier.min(start);
            }
        }
        self.tell_long_withheld(rules, output);
        if let Some(Withheld { start, told_to: None, .. }) = self.withheld {
            frontier = frontier.min(start);
        }
        frontier
    }

    /// Reads one sign between strings.
    fn between(&mut self, rules: &Rules, output: &mut Output, ended: bool) -> Step {
        let raw = output.raw(self.at, output.end());
        let blanks = raw.iter().take_while(|byte| b" \t\r\n\x1e".contains(byte)).count();
        self.at += blanks;
        let raw = &raw[blanks..];
        let Some(first) = raw.first().copied() else {
            if ended {
                self.end_withheld(rules, output);
            }
            return Step::Starved;
        };
        let top = self.frames.last().map(|frame| frame.is_object);
        match (first, self.expect) {
            (b'"', Expect::Value | Expect::ValueOrEnd) => self.open_string(false, output),
            (b'"', Expect::Key | Expect::KeyOrEnd) => self.open_string(true, output),
            (b':', Expect::Colon) => {
                self.expect = Expect::Value;
                self.at += 1;
                Step::Went
            }
            (b',', Expect::CommaOrEnd) => {
                self.expect = if top == Some(true) { Expect::Key } else { Expect::Value };
                self.at += 1;
                Step::Went
            }
            (b'}', Expect::KeyOrEnd | Expect::CommaOrEnd) if top == Some(true) => self.close(rules, output),
            (b']', Expect::ValueOrEnd | Expect::CommaOrEnd) if top == Some(false) => {
                self.close(rules, output)
            }
            (b'{' | b'[', Expect::Value | Expect::ValueOrEnd) => self.open(first == b'{', raw, ended),
            (b'-' | b'0'..=b'9', Expect::Value | Expect::ValueOrEnd) => self.number(rules, output, ended),
            (b't' | b'f' | b'n', Expect::Value | Expect::ValueOrEnd) => self.word(raw, ended),
            // A byte order mark, and the next document.
            (0xef, Expect::Value) if self.at == 0 && raw.starts_with(b"\xef\xbb\xbf") => {
                self.at += 3;
                Step::Went
            }
            (0xef, Expect::Value) if self.at == 0 && raw.len() < 3 && !ended => Step::Starved,
            _ => Step::Broken,
        }
    }

    /// Whether the value that is read belongs to the last key.
    fn expect_is_member(&self) -> bool {
        self.frames.last().is_some_and(|frame| frame.is_object)
    }

    /// After a value: at the top another document may follow.
    fn after_value(&mut self) {
        self.kind = None;
        self.expect = if self.frames.is_empty() { Expect::Value } else { Expect::CommaOrEnd };
    }

    fn open_string(&mut self, is_key: bool, output: &mut Output) -> Step {
        self.at += 1;
        let kind = if is_key { None } else { self.kind };
        let may_be_pair = !is_key && self.expect_is_member() && is_pair_key(&self.key);
        self.string = Some(OpenString { is_key, kind, may_be_pair, start: self.at, told_to: None });
        self.lane.reset(self.at);
        output.string_starts(self.at);
        Step::Went
    }

    fn open(&mut self, is_object: bool, raw: &[u8], ended: bool) -> Step {
        if self.frames.len() >= DEPTH_MAX {
            return Step::Broken;
        }
        let mut value_kind = None;
        if let Some(kind) = self.kind {
            let window = Window::new(raw, 0, PEEK_MAX, ended);
            let close = window.run(1, |byte| b" \t\r\n".contains(&byte));
            let is_empty = matches!(window.get(close), Some(b'}' | b']'));
            let describes = is_empty
                || is_collection(&self.key)
                || (is_object && describes(&window))
                || (!is_object && holds_no_secret(&window, &self.key, kind));
            if window.is_starved() {
                return Step::Starved;
            }
            if describes {
                value_kind = Some(kind);
            } else if self.withheld.is_none() {
                self.withheld =
                    Some(Withheld { kind, start: self.at, depth: self.frames.len(), told_to: None });
            }
        }
        self.kind = None;
        self.frames.push(Frame { is_object, value_kind, words: Words::default() });
        self.expect = if is_object { Expect::KeyOrEnd } else { Expect::ValueOrEnd };
        self.at += 1;
        Step::Went
    }

    fn close(&mut self, rules: &Rules, output: &mut Output) -> Step {
        self.frames.pop();
        self.at += 1;
        if self.withheld.is_some_and(|withheld| withheld.depth == self.frames.len()) {
            self.end_withheld(rules, output);
        }
        self.after_value();
        Step::Went
    }

    fn number(&mut self, rules: &Rules, output: &mut Output, ended: bool) -> Step {
        let raw = output.raw(self.at, output.end());
        let window = Window::new(raw, 0, FORM_MAX, ended);
        let end = window.run(0, |byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
        if window.is_starved() {
            return Step::Starved;
        }
        if end >= FORM_MAX {
            return Step::Broken;
        }
        if let (Some(kind), None) = (self.kind, self.withheld) {
            let replacement = Replacement::QuotedSecret { kind, tag: rules.key.tag(&raw[..end]) };
            let (start, end) = (self.at, self.at + end);
            output.spans().push(Span { start, end, layer: Layer::Guesses, replacement });
        }
        self.at += end;
        self.after_value();
        Step::Went
    }

    fn word(&mut self, raw: &[u8], ended: bool) -> Step {
        for word in [&b"true"[..], b"false", b"null"] {
            if raw.starts_with(word) {
                self.at += word.len();
                self.after_value();
                return Step::Went;
            }
            if word.starts_with(raw) && !ended {
                return Step::Starved;
            }
        }
        Step::Broken
    }

    /// Reads on in a string, up to its end or the end of what is there.
    fn in_string(&mut self, rules: &Rules, output: &mut Output, ended: bool) -> Step {
        let raw = output.raw(self.at, output.end());
        let Some(first) = raw.first().copied() else { return self.string_is_cut(rules, output, ended) };
        match first {
            b'"' => {
                self.tell_long_string(rules, output);
                self.end_string(rules, output);
                self.at += 1;
                Step::Went
            }
            b'\\' => match escapes::read(raw, ended) {
                escapes::Read::Starved => Step::Starved,
                escapes::Read::Escape { length, text, text_length } => {
                    self.lane.push_escape(&text[..text_length], length, rules);
                    output.escape(self.at, self.at + length);
                    self.at += length;
                    Step::Went
                }
                // No escape of JSON's: it stands for itself.
                escapes::Read::Unknown => {
                    self.lane.push(b"\\", rules);
                    self.at += 1;
                    Step::Went
                }
            },
            _ => {
                let length = memchr::memchr2(b'"', b'\\', raw).unwrap_or(raw.len());
                self.lane.push(&raw[..length], rules);
                self.at += length;
                Step::Went
            }
        }
    }

    fn string_is_cut(&mut self, rules: &Rules, output: &mut Output, ended: bool) -> Step {
        if ended {
            self.tell_long_string(rules, output);
            self.end_string(rules, output);
            self.end_withheld(rules, output);
        }
        Step::Starved
    }

    /// At the closing quote, which stands at `self.at`.
    fn end_string(&mut self, rules: &Rules, output: &mut Output) {
        let Some(string) = self.string.take() else { return };
        output.string_ends(self.at);
        self.lane.finish(rules);
        let text = self.lane.text();
        let pair = string.may_be_pair && is_secret_pair(&self.key, text);
        let kind = string.kind.or(pair.then_some(SecretKind::Secret));
        if let (Some(kind), None) = (kind, string.told_to)
            && is_secret_text(if self.expect_is_member() { &self.key } else { b"" }, kind, text)
        {
            let replacement = Replacement::Secret { kind, tag: rules.key.tag(text) };
            let (start, end) = (string.start, self.at);
            output.spans().push(Span { start, end, layer: Layer::Guesses, replacement });
        }
        if string.is_key {
            self.key.clear();
            if text.len() <= NAME_MAX {
                self.key.extend_from_slice(text);
            }
            let value_kind = self.frames.last().and_then(|frame| frame.value_kind);
            self.kind = secret_kind(&self.key).or(value_kind.filter(|_| is_value_key(&self.key)));
            self.expect = Expect::Colon;
        } else {
            let mut next = None;
            if text.len() <= NAME_MAX
                && let Some(frame) = self.frames.last_mut()
            {
                if frame.is_object {
                    frame.value_kind = announced(&self.key, text).or(frame.value_kind);
                } else {
                    next = frame.words.take(text);
                }
            }
            self.after_value();
            self.kind = next;
        }
        self.lane.scan(rules, true, output.spans());
    }

    /// Tells a secret string as soon as it is longer than a form, so that it need not be held.
    fn tell_long_string(&mut self, rules: &Rules, output: &mut Output) {
        let Some(string) = &mut self.string else { return };
        let Some(kind) = string.kind else { return };
        let (start, replacement) = match string.told_to {
            None if self.lane.end() > FORM_MAX => {
                let tag = rules.key.tag(&self.lane.text()[..FORM_MAX]);
                (string.start, Replacement::Secret { kind, tag })
            }
            None => return,
            Some(told_to) => (told_to, Replacement::Continuation),
        };
        if !(start..self.at).is_empty() {
            output.spans().push(Span { start, end: self.at, layer: Layer::Guesses, replacement });
        }
        string.told_to = Some(self.at);
    }

    /// The same for a list or object that is a secret as a whole.
    fn tell_long_withheld(&mut self, rules: &Rules, output: &mut Output) {
        if self
            .withheld
            .is_some_and(|withheld| withheld.told_to.is_some() || self.at > withheld.start + FORM_MAX)
        {
            self.tell_withheld(rules, output);
        }
    }

    fn tell_withheld(&mut self, rules: &Rules, output: &mut Output) {
        let Some(withheld) = &mut self.withheld else { return };
        let (start, replacement) = match withheld.told_to {
            None => {
                let raw = output.raw(withheld.start, self.at.min(withheld.start + FORM_MAX));
                (withheld.start, Replacement::QuotedSecret { kind: withheld.kind, tag: rules.key.tag(raw) })
            }
            Some(told_to) => (told_to, Replacement::Continuation),
        };
        if !(start..self.at).is_empty() {
            output.spans().push(Span { start, end: self.at, layer: Layer::Guesses, replacement });
        }
        withheld.told_to = Some(self.at);
    }

    fn end_withheld(&mut self, rules: &Rules, output: &mut Output) {
        self.tell_withheld(rules, output);
        self.withheld = None;
    }
}

/// Whether a short list, which starts here, holds only texts that are no secrets.
fn holds_no_secret(window: &Window<'_>, key: &[u8], kind: SecretKind) -> bool {
    let blank = |byte: u8| b" \t\r\n".contains(&byte);
    let mut at = window.run(1, blank);
    loop {
        let end = window.run(at + 1, |byte| byte != b'"' && byte != b'\\');
        let is_text = window.get(at) == Some(b'"') && window.get(end) == Some(b'"');
        if !is_text || is_secret_text(key, kind, window.slice(at + 1, end)) {
            return false;
        }
        at = window.run(end + 1, blank);
        match window.get(at) {
            Some(b',') => at = window.run(at + 1, blank),
            closing => return closing == Some(b']'),
        }
    }
}

/// Whether an object, which starts here, is a description by its first member.
fn describes(window: &Window<'_>) -> bool {
    let blank = |byte: u8| b" \t\r\n".contains(&byte);
    let text = |at: usize| {
        let end = window.run(at + 1, |byte| byte != b'"' && byte != b'\\');
        (window.get(at) == Some(b'"') && window.get(end) == Some(b'"')).then_some((at + 1, end))
    };
    let Some((from, to)) = text(window.run(1, blank)) else { return false };
    let colon = window.run(to + 1, blank);
    if window.get(colon) != Some(b':') {
        return false;
    }
    let value = text(window.run(colon + 1, blank)).map(|(from, to)| window.slice(from, to));
    is_description(window.slice(from, to), value)
}
