//! What must be true of every sequence of signals.

use std::collections::{BTreeMap, BTreeSet};

use crate::Signal;

/// What a sequence of signals leaves behind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// The last thread that was said.
    pub thread: Option<String>,
    /// Whether a turn ever began.
    pub turn_begun: bool,
    /// Whether a turn runs.
    pub turn_active: bool,
    /// Steps that were begun and have no result.
    pub open_calls: BTreeSet<String>,
    /// Whether the backend came to its end.
    pub ended: bool,
    /// How often each step was begun, and how often it has a result.
    pub steps: BTreeMap<String, (usize, usize)>,
}

impl Summary {
    /// Of these signals.
    pub fn of(signals: &[Signal]) -> Self {
        let mut summary = Summary::default();
        for signal in signals {
            match signal {
                Signal::Status { thread: Some(thread), .. } => summary.thread = Some(thread.clone()),
                Signal::TurnStarted { .. } => (summary.turn_begun, summary.turn_active) = (true, true),
                Signal::TurnEnded { .. } => summary.turn_active = false,
                Signal::ToolCall { call, .. } => {
                    summary.open_calls.insert(call.clone());
                    summary.steps.entry(call.clone()).or_default().0 += 1;
                }
                Signal::ToolResult { call, .. } => {
                    summary.open_calls.remove(call);
                    summary.steps.entry(call.clone()).or_default().1 += 1;
                }
                Signal::Ended { .. } => summary.ended = true,
                _ => {}
            }
        }
        summary
    }
}

/// Checks one session's signals. `turn_active` says whether it was opened in the middle of a turn.
#[track_caller]
pub fn check_order(signals: &[Signal], turn_active: bool) {
    let mut at = Place { turn: turn_active, ..Place::default() };
    for (index, signal) in signals.iter().enumerate() {
        if let Err(wrong) = at.step(signal) {
            panic!("{wrong}: signal {index} of {signals:#?}");
        }
    }
    if let Some(first) = signals.first() {
        assert!(
            matches!(first, Signal::Status { .. }),
            "the first signal says what it is doing: {signals:#?}"
        );
    }
}

#[derive(Default)]
struct Place {
    thread: bool,
    turn: bool,
    ended: bool,
    calls: BTreeSet<String>,
    asks: BTreeSet<String>,
    open_asks: BTreeSet<String>,
}

impl Place {
    fn step(&mut self, signal: &Signal) -> Result<(), &'static str> {
        require(!self.ended, "nothing comes after the end")?;
        match signal {
            Signal::Status { thread, .. } => self.thread |= thread.is_some(),
            Signal::Unasked { .. }
            | Signal::Degraded { .. }
            | Signal::Error { .. }
            | Signal::Raw { .. }
            | Signal::Heard { .. } => {}
            Signal::Ended { .. } => self.ended = true,
            Signal::TurnStarted { .. } => {
                require(self.thread, "a turn begins when the thread is known")?;
                require(!self.turn, "a turn begins when none runs")?;
                self.turn = true;
            }
            Signal::TurnEnded { .. } => {
                require(self.turn, "a turn that ends has begun")?;
                require(self.calls.is_empty(), "a turn leaves no step open")?;
                self.turn = false;
                self.open_asks.clear();
            }
            of_a_turn => {
                require(self.turn, "what belongs to a turn comes in one")?;
                self.within_turn(of_a_turn)?;
            }
        }
        Ok(())
    }

    fn within_turn(&mut self, signal: &Signal) -> Result<(), &'static str> {
        match signal {
            Signal::ToolCall { call, .. } => require(self.calls.insert(call.clone()), "a step begins once"),
            Signal::ToolOutput { call, .. } => {
                require(self.calls.contains(call), "a step prints while it is open")
            }
            Signal::ToolResult { call, .. } => require(self.calls.remove(call), "a step that ends has begun"),
            Signal::Ask { key, .. } => {
                self.open_asks.insert(key.clone());
                require(self.asks.insert(key.clone()), "a key is not used twice in a session")
            }
            Signal::Withdraw { key } => {
                require(self.open_asks.remove(key), "what is withdrawn was asked and is withdrawn once")
            }
            _ => Ok(()),
        }
    }
}

fn require(holds: bool, otherwise: &'static str) -> Result<(), &'static str> {
    if holds { Ok(()) } else { Err(otherwise) }
}
