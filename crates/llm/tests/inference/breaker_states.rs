//! Every state that a circuit breaker can get into, by whatever order of events: none is stuck.
//!
//! The states are found by going from each to all that can follow, so what is shown here holds for every interleaving of any
//! number of requests up to [`REQUESTS_MAX`] at a time, and of any length.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use runyard_llm::inference::{Breaker, BreakerPolicy, Health, Standing, Ticket};

const OPEN: Duration = Duration::from_millis(10);
const TICK: Duration = Duration::from_millis(5);
const REQUESTS_MAX: usize = 4;

/// A breaker with the requests that are on their way. The oldest request may end first or last.
#[derive(Debug, Clone)]
struct World {
    breaker: Breaker,
    now: Duration,
    tickets: Vec<Ticket>,
    /// When it opened, if it is open.
    opened: Option<Duration>,
}

/// All that can tell two worlds apart from now on.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Print {
    standing: String,
    stale: Vec<bool>,
}

#[derive(Debug, Clone, Copy)]
enum Move {
    Ask,
    End { at: usize, health: Health },
    Tick,
}

impl World {
    fn new(policy: &BreakerPolicy) -> Self {
        World { breaker: Breaker::new(policy), now: Duration::ZERO, tickets: Vec::new(), opened: None }
    }

    fn moves(&self) -> Vec<Move> {
        let mut moves = vec![Move::Tick];
        if self.tickets.len() < REQUESTS_MAX {
            moves.push(Move::Ask);
        }
        for at in 0..self.tickets.len() {
            // An error that does not count, a cancelled request and a dropped one are one to the breaker.
            moves.extend([Health::Well, Health::Ill, Health::Unknown].map(|health| Move::End { at, health }));
        }
        moves
    }

    fn after(&self, step: Move) -> World {
        let mut next = self.clone();
        match step {
            Move::Ask => next.tickets.extend(next.breaker.admit(next.now)),
            Move::End { at, health } => {
                let ticket = next.tickets.remove(at);
                next.breaker.settle(ticket, health, next.now);
            }
            Move::Tick => next.now += TICK,
        }
        next.opened = match next.breaker.standing(next.now) {
            Standing::Open { .. } => next.opened.or(Some(next.now)),
            _ => None,
        };
        next
    }

    fn is_current(&self, ticket: Ticket) -> bool {
        // A ticket is current when an end of it changes something, or would if it were given back.
        let mut well = self.breaker.clone();
        let mut ill = self.breaker.clone();
        let mut unknown = self.breaker.clone();
        well.settle(ticket, Health::Well, self.now);
        ill.settle(ticket, Health::Ill, self.now);
        unknown.settle(ticket, Health::Unknown, self.now);
        [well, ill, unknown].iter().any(|after| *after != self.breaker)
    }

    fn print(&self) -> Print {
        let standing = format!("{:?}", self.breaker.standing(self.now));
        Print { standing, stale: self.tickets.iter().map(|ticket| !self.is_current(*ticket)).collect() }
    }

    /// What must hold in every state.
    fn check(&self, policy: &BreakerPolicy) {
        let current = self.tickets.iter().filter(|ticket| self.is_current(**ticket)).count();
        match self.breaker.standing(self.now) {
            Standing::HalfOpen { probes } => {
                assert!(probes <= policy.probes_max, "more probes than may be: {self:?}");
                assert_eq!(probes as usize, current, "a place is lost or counted twice: {self:?}");
            }
            Standing::Open { left } => {
                let opened = self.opened.expect("it opened some time");
                assert!(left <= OPEN && self.now - opened < OPEN, "open for too long: {self:?}");
            }
            Standing::Closed { failures } => assert!(failures < policy.failures_max),
        }
    }

    /// With a healthy provider it closes, whoever is still on their way and never comes back.
    fn check_that_health_closes_it(&self, policy: &BreakerPolicy) {
        let mut world = self.clone();
        world.now += OPEN;
        let stuck_probes = match world.breaker.standing(world.now) {
            Standing::HalfOpen { probes } => probes >= policy.probes_max,
            _ => false,
        };
        if stuck_probes {
            // All places are taken by requests that are on their way: one of them comes back well, or is dropped.
            for health in [Health::Well, Health::Unknown] {
                let at = (0..world.tickets.len()).find(|at| world.is_current(world.tickets[*at]));
                let freed = world.after(Move::End { at: at.expect("a probe"), health });
                freed.check_that_one_success_closes_it();
            }
        } else {
            world.check_that_one_success_closes_it();
        }
    }

    fn check_that_one_success_closes_it(&self) {
        let mut breaker = self.breaker.clone();
        let ticket = breaker.admit(self.now).expect("it lets a request through");
        breaker.settle(ticket, Health::Well, self.now);
        assert_eq!(breaker.standing(self.now), Standing::Closed { failures: 0 }, "{self:?}");
    }
}

/// Every state there is, up to what tells them apart.
fn explore(policy: &BreakerPolicy) -> usize {
    let mut seen = HashSet::new();
    let mut next = VecDeque::from([World::new(policy)]);
    while let Some(world) = next.pop_front() {
        if !seen.insert(world.print()) {
            continue;
        }
        world.check(policy);
        world.check_that_health_closes_it(policy);
        next.extend(world.moves().into_iter().map(|step| world.after(step)));
    }
    seen.len()
}

// clause: D07
#[test]
fn d07_no_interleaving_leaves_the_breaker_stuck() {
    for failures_max in 1..=3 {
        for probes_max in 1..=3 {
            let policy = BreakerPolicy { failures_max, open_ms: 10, probes_max };
            let states = explore(&policy);
            assert!(states > 20, "only {states} states were reached with {policy:?}");
        }
    }
}

/// Every order of moves up to a length, one by one: nothing is taken for the same as something else.
// clause: D07
#[test]
fn d07_every_order_of_events_keeps_the_breaker_within_its_bounds() {
    fn go(world: &World, policy: &BreakerPolicy, left: u32, orders: &mut u64) {
        world.check(policy);
        world.check_that_health_closes_it(policy);
        *orders += 1;
        if left > 0 {
            for step in world.moves() {
                go(&world.after(step), policy, left - 1, orders);
            }
        }
    }
    let policy = BreakerPolicy { failures_max: 2, open_ms: 10, probes_max: 1 };
    let mut orders = 0;
    let length = if std::env::var("RUNYARD_PROOF").as_deref() == Ok("soak") { 10 } else { 8 };
    go(&World::new(&policy), &policy, length, &mut orders);
    assert!(orders > 10_000, "only {orders} orders");
}
