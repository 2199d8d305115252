//! An answer of a scenario with everything filled in: what is said, part by part, on whichever wire.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::{
    scenario::{Answer, Call, Ending},
    wire::Wire,
};

const CHARS_PER_TOKEN: usize = 4;

/// What the placeholders of a scenario's texts stand for.
pub(crate) struct Fill<'a> {
    /// What the marker says after the scenario's name.
    pub(crate) argument: &'a str,
    /// The bearer key of the request; empty without one.
    pub(crate) key: &'a str,
}

impl Fill<'_> {
    /// Fills a text in. What is filled in is not looked at again.
    pub(crate) fn text(&self, text: &str) -> String {
        let (first, rest) = self.argument.split_once(char::is_whitespace).unwrap_or((self.argument, ""));
        let known =
            [("{argument}", self.argument), ("{first}", first), ("{rest}", rest.trim()), ("{key}", self.key)];
        let mut filled = String::with_capacity(text.len());
        let mut left = text;
        while let Some(start) = left.find('{') {
            let (before, from) = left.split_at(start);
            filled.push_str(before);
            let found = known.iter().find_map(|(name, value)| Some((*value, from.strip_prefix(name)?)));
            let (value, after) = found.unwrap_or(("{", &from[1..]));
            filled.push_str(value);
            left = after;
        }
        filled + left
    }

    fn texts(&self, texts: &[String]) -> Vec<String> {
        texts.iter().map(|text| self.text(text)).collect()
    }

    fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.text(text).into(),
            Value::Array(values) => values.iter().map(|value| self.value(value)).collect(),
            Value::Object(fields) => {
                let filled = fields.iter().map(|(name, value)| (name.clone(), self.value(value)));
                filled.collect::<Map<_, _>>().into()
            }
            other => other.clone(),
        }
    }
}

/// What is said.
pub(crate) struct Speech<'a> {
    pub(crate) parts: Vec<Part>,
    interleaved: bool,
    pub(crate) end: &'a Ending,
}

/// One step in saying it, by the part's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beat {
    Open(usize),
    Delta(usize, usize),
    /// The part is at its end, whole or not. One in whose midst the answer ends has none.
    Close(usize),
}

/// One item of it.
pub(crate) struct Part {
    pub(crate) kind: Kind,
    pub(crate) deltas: Vec<String>,
    /// Before each delta.
    pub(crate) pause: Duration,
    pub(crate) said: Said,
}

pub(crate) enum Kind {
    Reasoning,
    Text,
    Function { tool: String },
    FreeForm { tool: String },
}

/// How much of a part is said.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    Whole,
    /// It is at its end, and it is said that more was to come.
    Short,
    /// In the midst of it the answer ends.
    Midway,
}

impl Part {
    pub(crate) fn text(&self) -> String {
        self.deltas.concat()
    }

    fn chars(&self) -> usize {
        self.deltas.iter().map(|delta| delta.chars().count()).sum()
    }

    fn is_call(&self) -> bool {
        matches!(self.kind, Kind::Function { .. } | Kind::FreeForm { .. })
    }
}

impl<'a> Speech<'a> {
    /// Fills an answer in. Only the Responses API has free-form tools: elsewhere they are functions of one text, `input`.
    pub(crate) fn of(answer: &'a Answer, fill: &Fill<'_>, wire: Wire) -> Self {
        let mut parts = Vec::new();
        let pause = Duration::from_millis(answer.pause_ms);
        let mut add = |kind, deltas: Vec<String>, pause| {
            parts.push(Part { kind, deltas, pause, said: Said::Whole });
        };
        if !answer.reasoning.is_empty() {
            add(Kind::Reasoning, fill.texts(&answer.reasoning), pause);
        }
        if !answer.say.is_empty() {
            let once = fill.texts(&answer.say);
            let all: Vec<_> = once.iter().cycle().take(once.len() * answer.repeat).cloned().collect();
            let deltas = match answer.delta_chars {
                Some(size) => pieces(&all.concat(), size.get()),
                None => all,
            };
            add(Kind::Text, deltas, pause);
        }
        for call in &answer.call {
            let (kind, value) = match call {
                Call::Function { tool, arguments } => {
                    (Kind::Function { tool: fill.text(tool) }, fill.value(arguments).to_string())
                }
                Call::Raw { tool, raw } => (Kind::Function { tool: fill.text(tool) }, fill.text(raw)),
                Call::FreeForm { tool, input } if wire != Wire::Responses => {
                    (Kind::Function { tool: tool.clone() }, json!({"input": fill.text(input)}).to_string())
                }
                Call::FreeForm { tool, input } => (Kind::FreeForm { tool: tool.clone() }, fill.text(input)),
            };
            add(kind, halves(&value), Duration::ZERO);
        }
        let said = match answer.end {
            Ending::Completed => Said::Whole,
            Ending::Incomplete { .. } => Said::Short,
            _ => Said::Midway,
        };
        if let Some(last) = parts.last_mut() {
            last.said = said;
            if last.is_call() && said != Said::Whole {
                last.deltas.truncate(1);
            }
        }
        Self { parts, interleaved: answer.interleaved, end: &answer.end }
    }

    /// The parts piece by piece, in the order in which they are said.
    pub(crate) fn beats(&self) -> Vec<Beat> {
        let (together, alone): (Vec<usize>, Vec<usize>) =
            (0..self.parts.len()).partition(|at| self.interleaved && self.parts[*at].is_call());
        let mut beats = Vec::new();
        for at in alone {
            beats.push(Beat::Open(at));
            beats.extend((0..self.parts[at].deltas.len()).map(|delta| Beat::Delta(at, delta)));
            beats.extend(self.closing(at));
        }
        beats.extend(together.iter().map(|at| Beat::Open(*at)));
        let rounds = together.iter().map(|at| self.parts[*at].deltas.len()).max().unwrap_or_default();
        for round in 0..rounds {
            let in_turn = together.iter().filter(|at| round < self.parts[**at].deltas.len());
            beats.extend(in_turn.map(|at| Beat::Delta(*at, round)));
        }
        beats.extend(together.iter().flat_map(|at| self.closing(*at)));
        beats
    }

    fn closing(&self, at: usize) -> Option<Beat> {
        (self.parts[at].said != Said::Midway).then_some(Beat::Close(at))
    }

    /// The how-many-th call a part is, if it is one.
    pub(crate) fn call_number(&self, at: usize) -> usize {
        self.parts[..at].iter().filter(|part| part.is_call()).count()
    }

    pub(crate) fn calls(&self) -> usize {
        self.parts.iter().filter(|part| part.is_call()).count()
    }

    /// How long it takes to say.
    pub(crate) fn duration(&self) -> Duration {
        let count = |part: &Part| u32::try_from(part.deltas.len()).unwrap_or(u32::MAX);
        self.parts.iter().map(|part| part.pause.saturating_mul(count(part))).sum()
    }

    /// What was said in tokens, and how much of that was reasoning. A token is a quarter of the characters, so that the
    /// same conversation always costs the same.
    pub(crate) fn tokens(&self) -> (usize, usize) {
        let reasoning = self.parts.iter().filter(|part| matches!(part.kind, Kind::Reasoning));
        let all = self.parts.iter().map(Part::chars).sum();
        (tokens(all), tokens(reasoning.map(Part::chars).sum()))
    }
}

/// So many characters in tokens.
pub(crate) fn tokens(chars: usize) -> usize {
    chars.div_ceil(CHARS_PER_TOKEN)
}

fn pieces(text: &str, chars: usize) -> Vec<String> {
    let all: Vec<char> = text.chars().collect();
    all.chunks(chars).map(|piece| piece.iter().collect()).collect()
}

/// Arguments come in two deltas, so that whoever reads them has to join them.
fn halves(text: &str) -> Vec<String> {
    let half = text.chars().count().div_ceil(2);
    if half == 0 { vec![String::new()] } else { pieces(text, half) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_filled_in_once() {
        let fill = Fill { argument: "name  {key} and more", key: "{argument}" };
        #[track_caller]
        fn check(fill: &Fill<'_>, text: &str, expected: &str) {
            assert_eq!(fill.text(text), expected);
        }
        check(&fill, "{argument}|{key}", "name  {key} and more|{argument}");
        check(&fill, "{first}: {rest}", "name: {key} and more");
        check(&fill, "{", "{");
        check(&fill, "{{key}} {other} é{", "{{argument}} {other} é{");
        check(&Fill { argument: "", key: "" }, "a{argument}{first}{rest}{key}b", "ab");
    }

    #[test]
    fn arguments_come_in_two_halves_and_never_within_a_character() {
        assert_eq!(halves("äöü"), ["äö", "ü"]);
        assert_eq!(halves("a"), ["a"]);
        assert_eq!(halves(""), [""]);
    }
}
