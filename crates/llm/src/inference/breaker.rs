//! The circuit breaker of one model, as a state machine.
//!
//! It is pure: the time is told to it, and it holds no lock. Whoever asks a model uses a [`Permit`](super::Permit), which
//! settles exactly once whatever happens.
//!
//! ```text
//! Closed ── failures_max failures in a row ──▶ Open ── open_ms pass ──▶ HalfOpen, at most probes_max at a time
//!   ▲                                           ▲                          │ │
//!   └───────────────── a success ───────────────┼──────────────────────────┘ │
//!                                               └──────── a failure ─────────┘
//! ```
//!
//! A request that ends without a verdict gives its place back and changes nothing else; one that has not ended after `probe_ms` has lost
//! its place, so that none who forgets about theirs keeps all others out. What was let through before the breaker last changed says
//! nothing about it now, and is not counted.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::InferenceExecutionError;

/// When a model is left alone, and for how long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BreakerPolicy {
    /// After how many failures in a row it is left alone; at least one.
    pub failures_max: u32,
    /// For how long.
    pub open_ms: u64,
    /// How many may try it at a time afterwards; at least one. An answer counts when it ends, and a long one should not
    /// keep everybody else waiting: hence more than one.
    pub probes_max: u32,
    /// How long a place is kept for one of them.
    pub probe_ms: u64,
}

/// So many are remembered that lost their places: one that ends well after all still counts.
const PROBES_KEPT_MAX: usize = 64;

impl Default for BreakerPolicy {
    fn default() -> Self {
        BreakerPolicy { failures_max: 5, open_ms: 30_000, probes_max: 3, probe_ms: 300_000 }
    }
}

/// The circuit breaker of one model.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Breaker {
    failures_max: u32,
    open: Duration,
    probes_max: u32,
    probe: Duration,
    state: State,
    /// Which stretch between two changes this is: a ticket of another one is stale.
    stretch: u64,
    /// How many requests were let through to try.
    probes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum State {
    Closed { failures: u32 },
    Open { until: Duration },
    HalfOpen { probes: Vec<Probe> },
}

/// A request that tries the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Probe {
    number: u64,
    /// Until when its place is kept.
    until: Duration,
}

/// Where a breaker stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Everybody is let through.
    Closed {
        /// The failures in a row.
        failures: u32,
    },
    /// Nobody is let through.
    Open {
        /// For how long still.
        left: Duration,
    },
    /// A few are let through.
    HalfOpen {
        /// How many are on their way.
        probes: u32,
    },
}

/// That a request was let through. It is settled once; what is settled again changes no place.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Ticket {
    stretch: u64,
    probe: Option<u64>,
}

/// That a request was not let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    /// After which time it may be; `None` when that depends on those who are trying.
    pub left: Option<Duration>,
}

/// What a request says about the model's health.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// It answered to the end.
    Well,
    /// It failed in a way that counts.
    Ill,
    /// Nothing: the request was wrong, or was given up.
    Unknown,
}

impl Health {
    /// What an error says.
    pub const fn of(error: &InferenceExecutionError) -> Self {
        if error.counts_toward_circuit_breaker() { Health::Ill } else { Health::Unknown }
    }
}

impl Breaker {
    /// A closed breaker.
    pub fn new(policy: &BreakerPolicy) -> Self {
        Breaker {
            failures_max: policy.failures_max.max(1),
            open: Duration::from_millis(policy.open_ms),
            probes_max: policy.probes_max.max(1),
            probe: Duration::from_millis(policy.probe_ms),
            state: State::Closed { failures: 0 },
            stretch: 0,
            probes: 0,
        }
    }

    /// Where it stands.
    pub fn standing(&self, now: Duration) -> Standing {
        match &self.state {
            State::Closed { failures } => Standing::Closed { failures: *failures },
            State::Open { until } if now < *until => Standing::Open { left: until.saturating_sub(now) },
            State::Open { .. } => Standing::HalfOpen { probes: 0 },
            State::HalfOpen { probes } => {
                let placed = probes.iter().filter(|probe| now < probe.until).count();
                Standing::HalfOpen { probes: u32::try_from(placed).unwrap_or(u32::MAX) }
            }
        }
    }

    /// Why a request would not be let through now, if so.
    pub fn refuses(&self, now: Duration) -> Option<Refused> {
        match self.standing(now) {
            Standing::Open { left } => Some(Refused { left: Some(left) }),
            Standing::HalfOpen { probes } if probes >= self.probes_max => Some(Refused { left: None }),
            Standing::HalfOpen { .. } | Standing::Closed { .. } => None,
        }
    }

    /// Lets a request through, or not.
    ///
    /// # Errors
    /// [`Refused`] while it is open, and while as many as may are trying.
    pub fn admit(&mut self, now: Duration) -> Result<Ticket, Refused> {
        if let Some(refused) = self.refuses(now) {
            return Err(refused);
        }
        if let State::Closed { .. } = self.state {
            return Ok(Ticket { stretch: self.stretch, probe: None });
        }
        if let State::Open { .. } = self.state {
            self.become_state(State::HalfOpen { probes: Vec::new() });
        }
        let number = self.probes;
        self.probes += 1;
        if let State::HalfOpen { probes } = &mut self.state {
            if probes.len() >= PROBES_KEPT_MAX.max(self.probes_max as usize) {
                // There is a place, so the oldest has lost its own.
                probes.remove(0);
            }
            probes.push(Probe { number, until: now.saturating_add(self.probe) });
        }
        Ok(Ticket { stretch: self.stretch, probe: Some(number) })
    }

    /// Takes back what a request was let through with.
    pub fn settle(&mut self, ticket: Ticket, health: Health, now: Duration) {
        if ticket.stretch != self.stretch {
            return;
        }
        match (&mut self.state, health) {
            (State::Closed { failures }, Health::Well) => *failures = 0,
            (State::Closed { failures }, Health::Ill) if *failures + 1 < self.failures_max => *failures += 1,
            (State::Closed { .. }, Health::Ill) => self.open_at(now),
            (State::Closed { .. }, Health::Unknown) | (State::Open { .. }, _) => {}
            (State::HalfOpen { probes }, health) => {
                let at = probes.iter().position(|probe| Some(probe.number) == ticket.probe);
                // One that is not among them was settled before, or is forgotten.
                let Some(at) = at else { return };
                probes.remove(at);
                match health {
                    Health::Well => self.become_state(State::Closed { failures: 0 }),
                    Health::Ill => self.open_at(now),
                    Health::Unknown => {}
                }
            }
        }
    }

    fn open_at(&mut self, now: Duration) {
        self.become_state(State::Open { until: now.saturating_add(self.open) });
    }

    fn become_state(&mut self, state: State) {
        self.state = state;
        self.stretch += 1;
    }
}
