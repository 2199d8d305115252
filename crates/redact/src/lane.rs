//! One text on its way through the scanners: known values, forms, guesses, private paths.
//!
//! What is read as plain text is one lane. In JSON every string is a lane of its own, with its escapes undone; the lane
//! keeps where each byte came from, so that what is found is a piece of the raw input.

use crate::colours::{self, Sequence};
use crate::forms::triggers::{Rule, SHORTEST, Trigger};
use crate::forms::{FORM_MAX, Found, PEM_MAX, Rest, flags, headers, jwt, pem, url, vendors};
use crate::guesses::{assignment, header_lines};
use crate::known::KnownScans;
use crate::placeholder::SecretKind;
use crate::rules::Rules;
use crate::source_map::SourceMap;
use crate::span::{Layer, Replacement, Span};
use crate::window::{LOOK_BEHIND_MAX, Window};
use crate::{names, paths};

/// Which guesses apply to a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guesses {
    /// None: file content and diffs.
    None,
    /// By the names of keys.
    ByName,
    /// And whole values by the names at the start of lines.
    ByNameAndLine,
}

/// A text, as far as it is not settled, and how far each scanner is.
#[derive(Debug)]
pub(crate) struct Lane {
    guesses: Guesses,
    text: Vec<u8>,
    /// Where `text` starts in the lane.
    base: usize,
    sources: SourceMap,
    /// What may become a control sequence: each byte, and the length of the escape that it came from, if from one.
    undecided: Vec<(u8, Option<usize>)>,
    known: KnownScans,
    /// The next place where a trigger may stand.
    next: usize,
    /// The start of the next line, for guesses by line; or a place in a line that is judged already.
    next_line: usize,
    line_is_judged: bool,
    /// Secrets that are longer than their form may be: how each goes on from `followed`.
    rests: Vec<Rest>,
    /// The end of the text that was scanned.
    followed: usize,
}

impl Lane {
    pub(crate) fn new(guesses: Guesses, raw_start: usize) -> Self {
        Lane {
            guesses,
            text: Vec::new(),
            base: 0,
            sources: SourceMap::starting_at(raw_start),
            undecided: Vec::new(),
            known: match guesses {
                Guesses::None => KnownScans::of_content(),
                Guesses::ByName | Guesses::ByNameAndLine => KnownScans::of_text(),
            },
            next: 0,
            next_line: 0,
            line_is_judged: false,
            rests: Vec::new(),
            followed: 0,
        }
    }

    /// Forgets the text, for a new one that starts at this place of the raw input.
    pub(crate) fn reset(&mut self, raw_start: usize) {
        self.text.clear();
        self.undecided.clear();
        self.rests.clear();
        self.followed = 0;
        self.known.reset();
        self.sources.reset(raw_start);
        (self.base, self.next, self.next_line, self.line_is_judged) = (0, 0, 0, false);
    }

    pub(crate) fn end(&self) -> usize {
        self.base + self.text.len()
    }

    /// What follows in the text, as it stands in the raw input. Colours are left out.
    pub(crate) fn push(&mut self, text: &[u8], rules: &Rules) {
        let mut rest = text;
        while let Some(first) = rest.first() {
            if !self.undecided.is_empty() {
                self.undecided.push((*first, None));
                self.decide(rules);
                rest = &rest[1..];
                continue;
            }
            let plain = colours::next_start(rest).unwrap_or(rest.len());
            self.keep(&rest[..plain], rules);
            rest = &rest[plain..];
            match colours::sequence(rest) {
                Sequence::Whole(length) => {
                    self.sources.escape(self.end(), 0, length);
                    rest = &rest[length..];
                }
                Sequence::No => {
                    self.keep(&rest[..1], rules);
                    rest = &rest[1..];
                }
                Sequence::Open => {
                    self.undecided.extend(rest.iter().map(|byte| (*byte, None)));
                    return;
                }
            }
        }
    }

    /// What an escape sequence of this length in the raw input stands for.
    pub(crate) fn push_escape(&mut self, text: &[u8], raw_length: usize, rules: &Rules) {
        let may_be_colour = !self.undecided.is_empty() || colours::next_start(text).is_some();
        if let ([byte], true) = (text, may_be_colour) {
            self.undecided.push((*byte, Some(raw_length)));
            self.decide(rules);
        } else {
            self.give_up_deciding(rules);
            self.keep_escape(text, raw_length, rules);
        }
    }

    fn keep(&mut self, text: &[u8], rules: &Rules) {
        self.text.extend_from_slice(text);
        self.sources.plain(text.len());
        self.known.push(text, &rules.known);
    }

    fn keep_escape(&mut self, text: &[u8], raw_length: usize, rules: &Rules) {
        let at = self.end();
        self.text.extend_from_slice(text);
        self.sources.escape(at, text.len(), raw_length);
        self.known.push(text, &rules.known);
    }

    /// Keeps or leaves out what waited for its next byte.
    fn decide(&mut self, rules: &Rules) {
        while !self.undecided.is_empty() {
            let bytes: Vec<u8> = self.undecided.iter().map(|(byte, _)| *byte).collect();
            match colours::sequence(&bytes) {
                Sequence::Open => return,
                Sequence::Whole(length) => {
                    let raw = self.undecided.drain(..length).map(|(_, escape)| escape.unwrap_or(1)).sum();
                    self.sources.escape(self.end(), 0, raw);
                }
                Sequence::No => self.keep_undecided(1, rules),
            }
            // What is no start of one need not wait.
            let waits = self.undecided.iter().position(|(byte, _)| colours::next_start(&[*byte]).is_some());
            self.keep_undecided(waits.unwrap_or(self.undecided.len()), rules);
        }
    }

    fn give_up_deciding(&mut self, rules: &Rules) {
        self.keep_undecided(self.undecided.len(), rules);
    }

    fn keep_undecided(&mut self, count: usize, rules: &Rules) {
        for (byte, escape) in self.undecided.drain(..count).collect::<Vec<_>>() {
            match escape {
                Some(raw_length) => self.keep_escape(&[byte], raw_length, rules),
                None => self.keep(&[byte], rules),
            }
        }
    }

    /// Says that nothing follows, so that [`Lane::text`] is whole.
    pub(crate) fn finish(&mut self, rules: &Rules) {
        self.give_up_deciding(rules);
    }

    /// The text so far; the start of it is there as long as it is no longer than a form.
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Tells what is found, and gives the place in the raw input before which all is settled.
    pub(crate) fn scan(&mut self, rules: &Rules, ended: bool, spans: &mut Vec<Span>) -> usize {
        if ended {
            self.finish(rules);
        }
        for rest in std::mem::take(&mut self.rests) {
            self.follow(self.followed, rest, spans);
        }
        let (end, sources) = (self.end(), &self.sources);
        let mut settled = self.known.scan(&rules.known, end, ended, |start, end, tag| {
            let (start, end) = (sources.start(start), sources.end(end));
            let replacement = Replacement::Secret { kind: SecretKind::Known, tag };
            spans.push(Span { start, end, layer: Layer::Known, replacement });
        });
        self.look_closer(rules, ended, spans);
        settled = settled.min(self.next);
        if self.guesses == Guesses::ByNameAndLine {
            self.look_at_lines(rules, ended, spans);
            settled = settled.min(self.next_line);
        }
        self.followed = self.end();
        let frontier = self.sources.start(settled);
        self.forget(settled);
        frontier
    }

    /// Looks at every trigger, up to the first that cannot be judged yet.
    fn look_closer(&mut self, rules: &Rules, ended: bool, spans: &mut Vec<Span>) {
        let mut from = self.next - self.base;
        while let Some((at, slot)) = rules.triggers.next(&self.text, from) {
            for trigger in rules.triggers.at_slot(slot) {
                if !self.judge(rules, trigger, at, ended, spans) {
                    self.next = self.base + at;
                    return;
                }
            }
            from = at + 1;
        }
        // The last bytes are too few to be looked up.
        let end = self.text.len();
        let tail = end.saturating_sub(SHORTEST).max(from);
        let open =
            if ended { None } else { (tail..end).find(|at| rules.triggers.may_start(&self.text[*at..])) };
        self.next = self.base + open.unwrap_or(end);
    }

    /// Judges one trigger at one place. False if more of the text is needed for that.
    fn judge(
        &mut self,
        rules: &Rules,
        trigger: &Trigger,
        at: usize,
        ended: bool,
        spans: &mut Vec<Span>,
    ) -> bool {
        let limit = if matches!(trigger.rule, Rule::Pem | Rule::PemInBase64) { PEM_MAX } else { FORM_MAX };
        let window = Window::new(&self.text, at, limit, ended);
        // A separator at the end of the literal only makes it rarer; the matcher wants to see it.
        let separators = trigger.literal.iter().rev().take_while(|byte| b" =:".contains(byte)).count();
        let length = trigger.literal.len() - separators;
        let there = if trigger.any_case {
            window.has_in_any_case(0, &trigger.literal)
        } else {
            window.has(0, &trigger.literal)
        };
        if !there {
            return !window.is_starved();
        }
        if let Rule::Path(number) = trigger.rule {
            let path = paths::find(&window, &rules.paths[number]);
            if window.is_starved() {
                return false;
            }
            if let Some((length, shown)) = path {
                let (start, end) = (self.base + at, self.base + at + length);
                let replacement = Replacement::Path(shown);
                spans.push(Span {
                    start: self.sources.start(start),
                    end: self.sources.end(end),
                    layer: Layer::Paths,
                    replacement,
                });
            }
            return true;
        }
        let found = self.found(rules, &window, trigger.rule, length);
        if window.is_starved() {
            return false;
        }
        if let Some((layer, found)) = found {
            self.tell(rules, at, layer, found, spans);
        }
        true
    }

    fn found(&self, rules: &Rules, window: &Window<'_>, rule: Rule, length: usize) -> Option<(Layer, Found)> {
        let guesses = self.guesses != Guesses::None;
        let form = |found: Option<Found>| found.map(|found| (Layer::Forms, found));
        let guess = |found: Option<Found>| found.map(|found| (Layer::Guesses, found));
        match rule {
            Rule::Vendor(number) => form(vendors::find(window, &vendors::VENDORS[number])),
            Rule::Twilio => form(vendors::twilio(window)),
            Rule::Telegram => form(vendors::telegram(window)),
            Rule::Azure => form(vendors::azure(window)),
            Rule::Airtable => form(vendors::airtable(window)),
            Rule::Resend => form(vendors::resend(window)),
            Rule::Discord => form(vendors::discord(window)),
            Rule::AwsSecret => form(vendors::aws_secret(window, length)),
            Rule::Jwt => form(jwt::find(window)),
            Rule::Pem => form(pem::find(window)),
            Rule::PemInBase64 => form(pem::in_base64(window)),
            Rule::Url => form(url::find(window)),
            Rule::Authorization => form(headers::authorization(window, length)),
            Rule::Bearer => form(headers::bearer(window, length)),
            Rule::Basic => form(headers::basic(window, length)),
            Rule::Cookie => form(headers::cookie(window, length, guesses)),
            // Arguments of commands are guesses as well: in file content they are examples more often than not.
            Rule::User if guesses => guess(flags::find(window, length)),
            Rule::Curl if guesses => guess(flags::curl(window, length)),
            Rule::CookieFlag if guesses => guess(flags::cookie(window, length)),
            Rule::PasswordFlag if guesses => guess(flags::password(window, length)),
            Rule::AuthPair if guesses => guess(headers::pair(window, length)),
            Rule::IdentifiedBy if guesses => guess(assignment::identified_by(window, length)),
            Rule::User
            | Rule::Curl
            | Rule::CookieFlag
            | Rule::PasswordFlag
            | Rule::AuthPair
            | Rule::IdentifiedBy => None,
            Rule::Name | Rule::ShortKnown => {
                if let Some(found) = short_known(rules, window, length) {
                    return Some((Layer::Known, found));
                }
                guess(if guesses && rule == Rule::Name { assignment::find(window, length) } else { None })
            }
            Rule::Path(_) => None,
        }
    }

    fn tell(&mut self, rules: &Rules, at: usize, layer: Layer, found: Found, spans: &mut Vec<Span>) {
        let secret = &self.text[at + found.start..at + found.end];
        let tag = rules.key.tag(secret);
        let (start, end) = (self.base + at + found.start, self.base + at + found.end);
        let replacement = Replacement::Secret { kind: found.kind, tag };
        spans.push(Span { start: self.sources.start(start), end: self.sources.end(end), layer, replacement });
        if let Some(rest) = found.rest {
            self.follow(end, rest, spans);
        }
    }

    fn look_at_lines(&mut self, rules: &Rules, ended: bool, spans: &mut Vec<Span>) {
        while self.next_line < self.end() {
            let at = self.next_line - self.base;
            if !self.line_is_judged {
                let window = Window::new(&self.text, at, FORM_MAX, ended);
                let found = header_lines::find(&window);
                if window.is_starved() {
                    return;
                }
                if let Some(found) = found {
                    self.tell(rules, at, Layer::Guesses, found, spans);
                }
            }
            let line = memchr::memchr(b'\n', &self.text[at..]);
            self.line_is_judged = line.is_none();
            self.next_line = line.map_or(self.end(), |line| self.next_line + line + 1);
        }
    }

    /// Goes on withholding what is still open beyond its greatest length, as far as the text goes.
    fn follow(&mut self, from: usize, rest: Rest, spans: &mut Vec<Span>) {
        let open = &self.text[from - self.base..];
        let length = open.iter().take_while(|byte| rest.goes_on(**byte)).count();
        // Colours that stand right behind it go with it: nobody can tell yet whether it goes on after them.
        let (start, end) = (self.sources.end(from), self.sources.start(from + length));
        if !(start..end).is_empty() {
            spans.push(Span { start, end, layer: Layer::Forms, replacement: Replacement::Continuation });
        }
        if length == open.len() && !self.rests.contains(&rest) {
            self.rests.push(rest);
        }
    }

    /// Forgets what no scanner can look at any more, once it is worth it.
    fn forget(&mut self, settled: usize) {
        let keep = settled.saturating_sub(LOOK_BEHIND_MAX).max(self.base);
        let gone = keep - self.base;
        if gone >= 4096 {
            self.text.drain(..gone);
            self.base = keep;
            self.sources.forget(keep);
        }
    }
}

/// A known value that is too short to be looked for alone, where it is the value of its key.
fn short_known(rules: &Rules, window: &Window<'_>, word: usize) -> Option<Found> {
    if rules.known.short.is_empty() {
        return None;
    }
    let (name, found) = assignment::literal_value(window, word)?;
    let value = window.slice(found.start, found.end);
    let folded = names::folded(&name);
    let known = rules.known.short.iter().filter(|known| known.value == value);
    let under_its_key = |name_of_it: &Option<String>| match name_of_it {
        Some(name_of_it) => folded.ends_with(name_of_it.as_str()) || names::secret_kind(&name).is_some(),
        None => names::secret_kind(&name).is_some(),
    };
    known.map(|known| &known.name).find(|name| under_its_key(name)).map(|_| found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placeholder::TagKey;
    use crate::redactor::Redactor;

    #[test]
    fn a_long_text_is_forgotten_as_it_is_settled() {
        let redactor = Redactor::assembled(TagKey::from_bytes([1; 32]), &[], Vec::new());
        let (mut lane, mut spans) = (Lane::new(Guesses::ByName, 0), Vec::new());
        for round in 1..=100 {
            lane.push("ordinary words\n".repeat(100).as_bytes(), redactor.rules());
            assert_eq!(lane.scan(redactor.rules(), false, &mut spans), round * 1500);
            assert!(lane.text().len() < 4096 + LOOK_BEHIND_MAX + 1500, "{}", lane.text().len());
            assert!(lane.text().len() >= LOOK_BEHIND_MAX, "{}", lane.text().len());
        }
        assert!(spans.is_empty());
    }
}
