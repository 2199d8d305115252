//! When an agent stops by itself. Pure: it is told what happened, and says whether that is enough.

use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};

use regex::Regex;
use runyard_llm::inference::{Message, ToolCall};
use runyard_llm::usage::Usage;
use runyard_store::KeyDigest;
use serde::{Deserialize, Serialize};

use crate::state::StateKey;

/// The most calls that are compared to find a repetition.
pub const REPETITION_WINDOW_MAX: usize = 64;

/// When an agent stops by itself. What is none stops it never.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Limits {
    /// So many times its model is asked.
    pub rounds_max: u32,
    /// So many tokens, of questions and answers together.
    pub tokens_max: Option<u64>,
    /// So much money, where the prices are known.
    pub cost_max: Option<Cost>,
    /// So long, without the time in which it waits for people.
    pub time_max_ms: Option<u64>,
    /// So many calls in a row that fail.
    pub consecutive_errors_max: Option<u32>,
    /// So often the same call, with the same arguments, among the last ones.
    pub repetition: Option<Repetition>,
    /// After a call of one of these tools.
    pub stop_on_tools: BTreeSet<String>,
    /// After an answer that this regular expression finds something in.
    pub stop_on_content: Option<String>,
    /// So often an answer that was cut is gone on with.
    pub continuations_max: u32,
}

/// What an agent may cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Cost {
    /// In dollars.
    pub dollars_max: f64,
    /// A million tokens of questions, in dollars.
    pub input_price: f64,
    /// A million tokens of answers, in dollars.
    pub output_price: f64,
}

/// What counts as going round in circles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Repetition {
    /// So many of the last calls are looked at.
    pub window: usize,
    /// So many of them are the same.
    pub times: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            rounds_max: 64,
            tokens_max: None,
            cost_max: None,
            time_max_ms: None,
            consecutive_errors_max: None,
            repetition: None,
            stop_on_tools: BTreeSet::new(),
            stop_on_content: None,
            continuations_max: 2,
        }
    }
}

impl Cost {
    fn of(&self, usage: Usage) -> f64 {
        (usage.input_tokens as f64 * self.input_price + usage.output_tokens as f64 * self.output_price) / 1e6
    }
}

/// Why an agent stops by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// Which limit, as a word.
    pub code: Cow<'static, str>,
    /// More about it.
    pub detail: String,
}

impl Stop {
    fn new(code: &'static str, detail: String) -> Option<Self> {
        Some(Stop { code: Cow::Borrowed(code), detail })
    }
}

/// What was counted of a run beside its rounds: as much as its limits ask for. It goes on counting after a wait or a crash.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Counted {
    errors_in_a_row: u32,
    /// The last calls, as numbers that are the same when they are: arguments may be long.
    recent: VecDeque<u64>,
    met: Option<Stop>,
    /// So often in a row an answer was cut and gone on with.
    #[serde(default, skip_serializing_if = "is_none")]
    continuations: u32,
}

fn is_none(count: &u32) -> bool {
    *count == 0
}

/// Where that is kept.
pub(crate) struct Counters;

impl StateKey for Counters {
    const KEY: &'static str = "runtime.counters";
    type Value = Counted;
    type Update = Counted;

    fn apply(counted: &mut Counted, now: Counted) {
        *counted = now;
    }
}

/// Counts what happens in one run.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    rounds: u32,
    content: Option<Regex>,
    counted: Counted,
    /// The same, as it was kept last.
    kept: Counted,
}

impl Watch {
    /// A watch for these limits. One that goes on has asked so many times already.
    ///
    /// An expression that is none is found when an agent is resolved; here it finds nothing.
    pub(crate) fn new(limits: &Limits, rounds: u32) -> Self {
        let content = limits.stop_on_content.as_deref().and_then(|text| Regex::new(text).ok());
        Watch { rounds, content, ..Watch::default() }
    }

    /// Goes on with what was counted before.
    pub(crate) fn go_on(&mut self, counted: &Counted) {
        self.counted = counted.clone();
        self.kept = counted.clone();
    }

    /// What is to be kept, if it is other than it was last.
    pub(crate) fn changed(&mut self) -> Option<Counted> {
        if self.counted == self.kept {
            return None;
        }
        self.kept = self.counted.clone();
        Some(self.kept.clone())
    }

    pub(crate) fn rounds(&self) -> u32 {
        self.rounds
    }

    /// The model answered.
    pub(crate) fn answered(&mut self, limits: &Limits, answer: &Message) {
        self.rounds += 1;
        if let (Some(content), Some(pattern)) = (&self.content, &limits.stop_on_content)
            && content.is_match(&answer.said())
        {
            self.meet("content_match", || format!("an answer matches {pattern}"));
        }
    }

    /// A call ended. It is compared with others as it is stored: so it is the same in another process.
    pub(crate) fn called(&mut self, limits: &Limits, call: &ToolCall, ok: bool) {
        if limits.consecutive_errors_max.is_some() {
            let errors = self.counted.errors_in_a_row.saturating_add(1);
            self.counted.errors_in_a_row = if ok { 0 } else { errors };
        }
        if limits.stop_on_tools.contains(&call.name) {
            self.meet("stop_on_tool", || format!("{} was called", call.name));
        }
        let Some(Repetition { window, times }) = limits.repetition else { return };
        let (recent, last) = (&mut self.counted.recent, number(call));
        recent.push_back(last);
        while recent.len() > window.min(REPETITION_WINDOW_MAX) {
            recent.pop_front();
        }
        let same = recent.iter().filter(|other| **other == last).count();
        if times > 0 && same >= times {
            self.meet("loop_detection", || {
                format!("{} was called {same} times with the same arguments", call.name)
            });
        }
    }

    /// An answer was not cut.
    pub(crate) fn was_whole(&mut self) {
        self.counted.continuations = 0;
    }

    /// An answer was cut. It is gone on with, unless that was done too often.
    pub(crate) fn was_cut(&mut self, limits: &Limits) -> Option<Stop> {
        if self.counted.continuations >= limits.continuations_max {
            return Stop::new("output_truncated", "the answer was cut at its length limit".to_owned());
        }
        self.counted.continuations += 1;
        None
    }

    /// What is met first counts.
    fn meet(&mut self, code: &'static str, detail: impl FnOnce() -> String) {
        if self.counted.met.is_none() {
            self.counted.met = Stop::new(code, detail());
        }
    }

    /// The limit that something which happened has met.
    pub(crate) fn met(&self) -> Option<&Stop> {
        self.counted.met.as_ref()
    }

    /// Whether it is enough, at the end of a step.
    pub(crate) fn enough(&self, limits: &Limits, usage: Usage) -> Option<Stop> {
        if let Some(met) = &self.counted.met {
            return Some(met.clone());
        }
        let tokens = usage.input_tokens.saturating_add(usage.output_tokens);
        if let Some(max) = limits.tokens_max.filter(|max| tokens >= *max) {
            return Stop::new("token_budget", format!("{tokens} of {max} tokens are used"));
        }
        if let Some(cost) = limits.cost_max.filter(|cost| cost.of(usage) >= cost.dollars_max) {
            let spent = cost.of(usage);
            return Stop::new(
                "cost_budget",
                format!("{spent:.4} of {:.4} dollars are used", cost.dollars_max),
            );
        }
        if let Some(max) = limits.consecutive_errors_max.filter(|max| self.counted.errors_in_a_row >= *max) {
            return Stop::new("consecutive_errors", format!("{max} calls in a row failed"));
        }
        if self.rounds >= limits.rounds_max {
            return Stop::new("max_rounds", format!("the model was asked {} times", self.rounds));
        }
        None
    }
}

/// A number that is the same for the same call.
fn number(call: &ToolCall) -> u64 {
    let digest = KeyDigest::of(&[&call.name, &call.arguments.to_string()]);
    let mut first = [0; 8];
    first.copy_from_slice(&digest.as_bytes()[..8]);
    u64::from_le_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(name: &str, n: u64) -> ToolCall {
        ToolCall { id: "c".into(), name: name.into(), arguments: json!({ "n": n }) }
    }

    fn usage(input_tokens: u64, output_tokens: u64) -> Usage {
        Usage { input_tokens, output_tokens, ..Usage::default() }
    }

    #[track_caller]
    fn check(limits: &Limits, watch: &Watch, used: Usage, code: Option<&str>) {
        assert_eq!(watch.enough(limits, used).map(|stop| stop.code.into_owned()).as_deref(), code);
    }

    #[test]
    fn each_limit_stops_exactly_when_it_is_reached() {
        let limits = Limits { rounds_max: 2, ..Limits::default() };
        let mut watch = Watch::new(&limits, 0);
        watch.answered(&limits, &Message::assistant("a"));
        check(&limits, &watch, usage(0, 0), None);
        watch.answered(&limits, &Message::assistant("b"));
        check(&limits, &watch, usage(0, 0), Some("max_rounds"));

        let limits = Limits { tokens_max: Some(10), ..Limits::default() };
        check(&limits, &Watch::new(&limits, 0), usage(6, 3), None);
        check(&limits, &Watch::new(&limits, 0), usage(6, 4), Some("token_budget"));

        let cost = Cost { dollars_max: 1.0, input_price: 1.0, output_price: 10.0 };
        let limits = Limits { cost_max: Some(cost), ..Limits::default() };
        check(&limits, &Watch::new(&limits, 0), usage(900_000, 9_000), None);
        check(&limits, &Watch::new(&limits, 0), usage(900_000, 10_000), Some("cost_budget"));
    }

    #[test]
    fn errors_count_only_in_a_row() {
        let limits = Limits { consecutive_errors_max: Some(2), ..Limits::default() };
        let mut watch = Watch::new(&limits, 0);
        for (ok, code) in [(false, None), (true, None), (false, None), (false, Some("consecutive_errors"))] {
            watch.called(&limits, &call("a", 1), ok);
            check(&limits, &watch, usage(0, 0), code);
        }
    }

    #[test]
    fn a_repetition_is_the_same_call_among_the_last_ones() {
        let limits = Limits { repetition: Some(Repetition { window: 3, times: 2 }), ..Limits::default() };
        let mut watch = Watch::new(&limits, 0);
        for (n, code) in [(1, None), (2, None), (3, None), (1, None), (3, Some("loop_detection"))] {
            watch.called(&limits, &call("a", n), true);
            check(&limits, &watch, usage(0, 0), code);
        }
    }

    #[test]
    fn a_tool_and_a_content_stop_it() {
        let limits = Limits { stop_on_tools: ["done".to_owned()].into(), ..Limits::default() };
        let mut watch = Watch::new(&limits, 0);
        watch.called(&limits, &call("other", 1), true);
        check(&limits, &watch, usage(0, 0), None);
        watch.called(&limits, &call("done", 1), true);
        check(&limits, &watch, usage(0, 0), Some("stop_on_tool"));

        let limits = Limits { stop_on_content: Some("FINAL:".into()), ..Limits::default() };
        let mut watch = Watch::new(&limits, 0);
        watch.answered(&limits, &Message::assistant("not FINAL yet"));
        check(&limits, &watch, usage(0, 0), None);
        watch.answered(&limits, &Message::assistant("FINAL: 4"));
        check(&limits, &watch, usage(0, 0), Some("content_match"));
    }
}
