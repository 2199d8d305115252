//! Every state that a circuit breaker can get into, by whatever order of events: none is stuck.
//!
//! The states are found by going from each to all that can follow, so what is shown here holds for every interleaving of any
//! number of requests up to [`REQUESTS_MAX`] at a time, and of any length.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use runyard_llm::inference::{Breaker, BreakerPolicy, Health, Standing, Ticket};

const OPEN: Duration = Duration::from_millis(10);
const TICK: Duration = Duration::from_millis(5);
/// How long a place is kept for a probe.
const PROBE: Duration = Duration::from_millis(15);
const REQUESTS_MAX: usize = 4;

/// A breaker with the requests that are on their way. The oldest request may end first or last.
#[derive(Debug, Clone)]
struct World {
    breaker: Breaker,
    now: Duration,
    /// Each with when it was let through.
    tickets: Vec<(Ticket, Duration)>,
    /// When it opened, if it is open.
    opened: Option<Duration>,
}

/// All that can tell two worlds apart from now on.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Print {
    standing: String,
    /// Of each request whether it still counts, and for how many ticks its place is kept.
    requests: Vec<(bool, u128)>,
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
            Move::Ask => next.tickets.extend(next.breaker.admit(next.now).map(|ticket| (ticket, next.now))),
            Move::End { at, health } => {
                let (ticket, _) = next.tickets.remove(at);
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

    fn is_current(&self, (ticket, _): &(Ticket, Duration)) -> bool {
        // A ticket is current when an end of it changes something, or would if it were given back.
        let mut well = self.breaker.clone();
        let mut ill = self.breaker.clone();
        let mut unknown = self.breaker.clone();
        well.settle(ticket.clone(), Health::Well, self.now);
        ill.settle(ticket.clone(), Health::Ill, self.now);
        unknown.settle(ticket.clone(), Health::Unknown, self.now);
        [well, ill, unknown].iter().any(|after| *after != self.breaker)
    }

    fn print(&self) -> Print {
        let standing = format!("{:?}", self.breaker.standing(self.now));
        let left = |at: &Duration| (*at + PROBE).saturating_sub(self.now).as_millis() / TICK.as_millis();
        let request = |request: &(Ticket, Duration)| (self.is_current(request), left(&request.1));
        Print { standing, requests: self.tickets.iter().map(request).collect() }
    }

    /// What must hold in every state.
    fn check(&self, policy: &BreakerPolicy) {
        let has_place =
            |request: &&(Ticket, Duration)| self.is_current(request) && self.now < request.1 + PROBE;
        let placed = self.tickets.iter().filter(has_place).count();
        match self.breaker.standing(self.now) {
            Standing::HalfOpen { probes } => {
                assert!(probes <= policy.probes_max, "more probes than may be: {self:?}");
                assert_eq!(probes as usize, placed, "a place is lost or counted twice: {self:?}");
            }
            Standing::Open { left } => {
                let opened = self.opened.expect("it opened some time");
                assert!(left <= OPEN && self.now - opened < OPEN, "open for too long: {self:?}");
            }
            Standing::Closed { failures } => assert!(failures < policy.failures_max),
        }
    }

    /// With a healthy provider it closes, whoever is still on their way: as soon as one of them comes back, well or not heard of, and
    /// after a while though none ever does.
    fn check_that_health_closes_it(&self, policy: &BreakerPolicy) {
        let mut world = self.clone();
        world.now += OPEN;
        let stuck_probes = match world.breaker.standing(world.now) {
            Standing::HalfOpen { probes } => probes >= policy.probes_max,
            _ => false,
        };
        if stuck_probes {
            for health in [Health::Well, Health::Unknown] {
                let has_place = |at: &usize| {
                    let request = &world.tickets[*at];
                    world.is_current(request) && world.now < request.1 + PROBE
                };
                let at = (0..world.tickets.len()).find(has_place);
                let freed = world.after(Move::End { at: at.expect("a probe"), health });
                freed.check_that_one_success_closes_it();
            }
            world.now += PROBE;
        }
        world.check_that_one_success_closes_it();
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
            let policy = BreakerPolicy { failures_max, open_ms: 10, probes_max, probe_ms: 15 };
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
    let policy = BreakerPolicy { failures_max: 2, open_ms: 10, probes_max: 1, probe_ms: 15 };
    let mut orders = 0;
    let length = if std::env::var("RUNYARD_PROOF").as_deref() == Ok("soak") { 10 } else { 8 };
    go(&World::new(&policy), &policy, length, &mut orders);
    assert!(orders > 10_000, "only {orders} orders");
}

// clause: D07
#[test]
fn d07_a_place_is_given_back_once_and_a_late_success_still_counts() {
    let policy = BreakerPolicy { failures_max: 1, open_ms: 10, probes_max: 2, probe_ms: 15 };
    let opened = || {
        let mut breaker = Breaker::new(&policy);
        let ticket = breaker.admit(Duration::ZERO).unwrap();
        breaker.settle(ticket, Health::Ill, Duration::ZERO);
        breaker
    };
    let mut breaker = opened();
    let first = breaker.admit(OPEN).unwrap();
    let second = breaker.admit(OPEN).unwrap();
    for _ in 0..2 {
        breaker.settle(first.clone(), Health::Unknown, OPEN);
    }
    assert_eq!(breaker.standing(OPEN), Standing::HalfOpen { probes: 1 });
    breaker.settle(first, Health::Well, OPEN);
    assert_eq!(breaker.standing(OPEN), Standing::HalfOpen { probes: 1 }, "it said nothing, and that is that");
    let late = OPEN + PROBE;
    assert_eq!(breaker.standing(late), Standing::HalfOpen { probes: 0 }, "its place is another's");
    breaker.settle(second, Health::Well, late);
    assert_eq!(breaker.standing(late), Standing::Closed { failures: 0 });

    let mut crowded = opened();
    for round in 1..1_000 {
        let now = OPEN * round * 2;
        crowded.admit(now).unwrap();
        assert_eq!(
            crowded.standing(now),
            Standing::HalfOpen { probes: 1 },
            "who never comes back keeps nobody out"
        );
    }
}
